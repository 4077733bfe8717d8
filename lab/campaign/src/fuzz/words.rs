//! Random command lines: commands with flags of their own and of others, and values that flags may take
//! amiss.

use super::{corpus, keep};
use crate::Common;
use crate::figures::Figure;
use crate::tool::Tool;
use apportion::random::Random;
use std::fs;
use std::path::Path;
use std::time::Instant;

pub const NAME: &str = "command-line";

/// Command lines that work in the directory of [`files`]; the corpus holds others, a line each.
const LINES: [&str; 12] = [
    "partition --units 1000 --speeds 9,1",
    "partition --units 1000 --models models.json --min 10",
    "partition --shape 64x48x32 --speeds 5,3,1 --method auto",
    "partition --shape 100x100 --platform two.toml --method square-corner --svg p.svg",
    "simulate --plan plan.json --platform two.toml --flow ring --block 8",
    "simulate --platform two.toml --shape 64x64 --sweep block=1..16",
    "arrange --plan plan.json --platform two.toml --objective hops --search exhaustive",
    "matmul a.npy a.npy -o c.npy --platform two.toml --seed 3",
    "power a.npy -k 3 -o c.npy --speeds 2,1 --platform two.toml",
    "closure a.npy --semiring min-plus --platform two.toml",
    "plot --plan plan.json -o plot.svg",
    "study --draws 5 --processors 3",
];

const VALUES: [&str; 26] = [
    "0",
    "1",
    "-1",
    "7",
    "1e6",
    "1e999",
    "NaN",
    "inf",
    "",
    "9,1",
    "9:1:0",
    "0,0",
    "64x64",
    "0x5",
    "64x-1",
    "1..8",
    "block=1..1e18",
    "18446744073709551616",
    "1 parsec",
    "two.toml",
    "models.json",
    "nowhere/x",
    "/dev/null",
    "square-corner",
    "ring",
    "\u{202e}\u{1b}[2J",
];

/// Small files that the command lines name.
fn files(directory: &Path, tool: &Tool) -> Result<(), String> {
    for (name, target) in [("two.toml", "platform"), ("models.json", "models")] {
        let text = corpus(target)?.swap_remove(0);
        fs::write(directory.join(name), text).map_err(|e| e.to_string())?;
    }
    tool.must(directory, &["random", "24", "24", "-o", "a.npy"])?;
    let plan = ["partition", "--shape", "24x24", "--platform", "two.toml", "-o", "plan.json"];
    tool.must(directory, &plan)
}

/// Runs random command lines for this long. They must end in order, soon, and leave no temporary file.
pub fn attack(seconds: f64, common: &Common, tool: &Tool) -> Result<Figure, String> {
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    files(directory.path(), tool)?;
    let lines: Vec<Vec<String>> =
        LINES.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    let flags: Vec<&String> = lines.iter().flatten().filter(|word| word.starts_with('-')).collect();
    let mut random = Random::new(common.seed);
    let (mut tried, mut worked) = (0u64, 0u64);
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds {
        let mut line = lines[random.below(lines.len())].clone();
        for _ in 0..random.below(4) {
            let at = 1 + random.below(line.len());
            let value = VALUES[random.below(VALUES.len())].to_owned();
            match random.below(5) {
                0 if at < line.len() => line[at] = value,
                1 if at < line.len() => {
                    line.remove(at);
                }
                2 => line.insert(at, flags[random.below(flags.len())].clone()),
                3 => line.insert(at, value),
                _ => line.extend([flags[random.below(flags.len())].clone(), value]),
            }
        }
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let ended = tool.run(directory.path(), &words);
        let defect = ended.and_then(|ended| {
            worked += u64::from(ended.code == Some(0));
            ended.is_orderly()?;
            no_leftovers(directory.path())
        });
        if let Err(defect) = defect {
            let kept = keep(line.join("\n").as_bytes(), NAME, common);
            return Err(format!("{defect}: apportion {}: {kept}", line.join(" ")));
        }
        tried += 1;
    }
    Ok(Figure::new(
        "command line",
        format!("{tried} lines"),
        format!("{worked} worked, the others ended in one line"),
    ))
}

/// No temporary file may stay behind.
pub fn no_leftovers(directory: &Path) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|e| e.to_string())?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".apportion-") {
            return Err(format!("{name} is left over"));
        }
    }
    Ok(())
}

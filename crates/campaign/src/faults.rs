//! Each system call on files fails once, in turn: by a library that is loaded before the others. It sees the
//! calls that go through the C library. With `RUSTFLAGS='--cfg rustix_use_libc'` these are all but those that
//! delete files; without, renaming and reserving space are not among them.
//!
//! The property: the command succeeds with the right output, or it ends with one line; what was there before
//! stays, and nothing is left over.

use crate::Found;
use crate::figures::Figure;
use crate::fuzz::no_leftovers;
use crate::tool::{Tool, built, ended};
use std::fs;
use std::path::{Path, PathBuf};

/// Errors of the operating system: input or output error, no space left, too many open files.
const ERRORS: [(&str, &str); 3] = [("5", "EIO"), ("28", "ENOSPC"), ("24", "EMFILE")];

/// A command under attack, and the files that it writes.
struct Case {
    line: &'static str,
    outputs: &'static [&'static str],
    /// True if the outputs have the same bytes in every run.
    same: bool,
}

const fn case(line: &'static str, outputs: &'static [&'static str], same: bool) -> Case {
    Case { line, outputs, same }
}

const CASES: [Case; 9] = [
    case("random 30 20 -o new.npy --seed 7", &["new.npy"], true),
    case("partition --shape 60x60 --platform two.toml -o p.json --svg p.svg", &["p.json", "p.svg"], true),
    case("arrange --plan plan.json --platform two.toml -o a.json", &["a.json"], true),
    case("simulate --plan plan.json --platform two.toml --trace t.json", &["t.json"], true),
    case("matmul a.npy a.npy -o c.npy --platform two.toml", &["c.npy"], true),
    case("matmul a.npy a.npy -o c.npy --platform two.toml --report r.json", &["c.npy", "r.json"], false),
    case("matmul a.npy a.npy -o c.npy --platform two.toml --panels 3 --checkpoint k", &["c.npy"], true),
    case("closure a.npy -o c.npy --platform two.toml --predecessors q.npy", &["c.npy", "q.npy"], true),
    case(
        "advect --field a.npy --courant 0.2,0.1 --steps 3 -o out.npy --platform two.toml",
        &["out.npy"],
        true,
    ),
];

const PLATFORM: &str = "[[processor]]\nname = \"f\"\nspeed = \"9 Gflop/s\"\n\
    [[processor]]\nname = \"s\"\nspeed = \"1 Gflop/s\"\n[network]\nbandwidth = \"1 GB/s\"\n";

/// The content of outputs before a command.
const EARLIER: &[u8] = b"an earlier result";

/// Fails up to `most` calls of each command.
pub fn run(most: u32, tool: &Tool) -> Found {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let library = bench.path().join("faults.so");
    if let Some(why) = built("faults.c", &library, &["-ldl"])? {
        return Ok(vec![Figure::new("system calls on files", "none", format!("skipped: {why}"))]);
    }
    CASES.iter().map(|case| attack(case, most, (tool, &library))).collect()
}

fn attack(case: &Case, most: u32, (tool, library): (&Tool, &PathBuf)) -> Result<Figure, String> {
    let words: Vec<&str> = case.line.split(' ').collect();
    // Without faults: the right outputs, and the number of calls.
    let clean = prepared(tool)?;
    let count = clean.path().join("calls");
    faulty(tool, clean.path(), &words, library, &count, None)?.is_orderly()?;
    let calls = fs::metadata(&count).map_err(|e| format!("no call was seen: {e}"))?.len();
    let right: Vec<Vec<u8>> = case
        .outputs
        .iter()
        .map(|name| fs::read(clean.path().join(name)).map_err(|e| format!("{}: {name}: {e}", case.line)))
        .collect::<Result<_, _>>()?;
    let step = (calls / u64::from(most.max(1))).max(1);
    let (mut tried, mut refused) = (0u32, 0u32);
    for (turn, at) in (1..=calls).step_by(step as usize).enumerate() {
        let (number, name) = ERRORS[turn % ERRORS.len()];
        let bench = prepared(tool)?;
        for output in case.outputs {
            fs::write(bench.path().join(output), EARLIER).map_err(|e| e.to_string())?;
        }
        let count = bench.path().join("calls");
        let ended = faulty(tool, bench.path(), &words, library, &count, Some((at, number)))?;
        let about = format!("apportion {}: call {at} fails with {name}", case.line);
        ended.is_orderly().map_err(|defect| format!("{about}: {defect}"))?;
        no_leftovers(bench.path()).map_err(|defect| format!("{about}: {defect}: {}", ended.said))?;
        let read = |output: &&str| fs::read(bench.path().join(output)).unwrap_or_default();
        let found: Vec<Vec<u8>> = case.outputs.iter().map(read).collect();
        let whole = |(found, right): (&Vec<u8>, &Vec<u8>)| match case.same {
            true => found == right,
            false => found.len() > EARLIER.len(),
        };
        let new = found.iter().zip(&right).all(whole);
        // After an error, all of them are as before, or all are there.
        let sound = new || (ended.code != Some(0) && found.iter().all(|found| found == EARLIER));
        if !sound {
            return Err(format!("{about}: {:?} are not sound: {}", case.outputs, ended.said));
        }
        tried += 1;
        refused += u32::from(ended.code != Some(0));
    }
    let outcome = format!("{refused} ended in one line, {} went on, nothing lost", tried - refused);
    Ok(Figure::new(format!("`{}`", case.line), format!("{tried} of {calls} calls failed"), outcome))
}

/// A directory with the inputs of all cases.
fn prepared(tool: &Tool) -> Result<tempfile::TempDir, String> {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    fs::write(bench.path().join("two.toml"), PLATFORM).map_err(|e| e.to_string())?;
    tool.must(bench.path(), &["random", "40", "40", "-o", "a.npy"])?;
    tool.must(bench.path(), &["partition", "--shape", "40x40", "--platform", "two.toml", "-o", "plan.json"])?;
    Ok(bench)
}

/// Runs with the library loaded; call number `at` fails.
fn faulty(
    tool: &Tool,
    directory: &Path,
    words: &[&str],
    library: &PathBuf,
    count: &Path,
    at: Option<(u64, &str)>,
) -> Result<crate::tool::Ended, String> {
    let mut command = tool.command(directory, words);
    command.env("LD_PRELOAD", library).env("FAULT_COUNT", count);
    if let Some((at, number)) = at {
        command.env("FAULT_AT", at.to_string()).env("FAULT_ERRNO", number);
    }
    ended(command, words)
}

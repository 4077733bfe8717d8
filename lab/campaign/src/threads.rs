//! Threads are refused, as by a limit on processes: each thread of a command in turn, alone or with all that
//! follow, by a library that is loaded before the others. Threads that libraries start are not refused.
//!
//! The property: the command succeeds with the right output, or it ends with one line and exit code 1; what
//! was there before stays, and no file and no program that it started is left over.

use crate::Found;
use crate::commands::{Attack, CASES, Case, Environment, case};
use crate::figures::Figure;
use crate::tool::{Tool, built};
use std::fs;
use std::path::Path;

/// Commands with threads of other kinds, or that start programs.
const MORE: [Case; 7] = [
    case("matmul a.npy a.npy -o c.npy --platform wide.toml --tail 0.1", &["c.npy"], true),
    case("measure --platform wide.toml --sizes 900,1600 --max-seconds 0.05 -o m.json", &["m.json"], false),
    case(
        "measure --platform wide.toml --kernel stencil-f64 --sizes 900,1600 --max-seconds 0.05 -o m.json",
        &["m.json"],
        false,
    ),
    case(
        "measure --platform wide.toml --kernel mpdata-f64 --sizes 900,1600 --max-seconds 0.05 -o m.json",
        &["m.json"],
        false,
    ),
    case(
        "measure --network --platform two.toml --sizes 100,100000,4000000 --max-seconds 0.1 -o m.toml",
        &["m.toml"],
        false,
    ),
    case(
        "balance --units 30 --platform two.toml --max-rounds 2 -o b.json -- sleep 0.{share}",
        &["b.json"],
        false,
    ),
    case("run --plan units.json --platform two.toml -- sleep 0.{share}", &[], true),
];

/// Refuses up to `most` threads of each command.
pub fn run(most: u32, tool: &Tool) -> Found {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    if let Some(why) = built("threads.c", &bench.path().join("threads.so"), &["-ldl"])? {
        return Ok(vec![Figure::new("threads", "none", format!("skipped: {why}"))]);
    }
    let attacks = CASES.iter().chain(&MORE).map(|case| attack(case, most, (tool, bench.path())));
    attacks.filter_map(Result::transpose).collect()
}

/// The library is loaded.
fn loaded(bench: &Path) -> Environment {
    let file = |name| bench.join(name).into_os_string();
    vec![("LD_PRELOAD", file("threads.so")), ("REFUSE_COUNT", file("count"))]
}

/// `None` for a command without threads.
fn attack(case: &Case, most: u32, (tool, bench): (&Tool, &Path)) -> Result<Option<Figure>, String> {
    let _ = fs::remove_file(bench.join("count"));
    let attack = Attack::new(case, tool, loaded(bench))?;
    let Ok(text) = fs::read_to_string(bench.join("count")) else { return Ok(None) };
    let count: u64 = text.parse().map_err(|e| format!("threads: {e}"))?;
    let step = count.div_ceil(u64::from(most.max(1)));
    let (mut tried, mut refused) = (0u64, 0u64);
    for (turn, at) in (1..=count).step_by(step as usize).enumerate() {
        let (flag, further) = [("0", ""), ("1", " and all that follow")][turn % 2];
        let mut environment = loaded(bench);
        environment.extend([("REFUSE_AT", at.to_string().into()), ("REFUSE_ALL", flag.into())]);
        let about = format!("thread {at} is refused{further}");
        let ended = attack.disturbed(&about, environment)?;
        if !matches!(ended.code, Some(0 | 1)) {
            return Err(format!(
                "apportion {}: {about}: exit code {:?}: {}",
                case.line, ended.code, ended.said
            ));
        }
        tried += 1;
        refused += u64::from(ended.code != Some(0));
    }
    let outcome = format!("{refused} ended in one line, {} went on, nothing lost", tried - refused);
    Ok(Some(Figure::new(format!("`{}`", case.line), format!("{tried} of {count} threads refused"), outcome)))
}

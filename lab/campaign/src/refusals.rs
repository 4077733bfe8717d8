//! Memory is refused: each allocation of a command in turn, alone or with all that follow, by a library that
//! is loaded before the others. It sees every allocation that goes through the C library, also those of that
//! library itself.
//!
//! The property: the command succeeds with the right output, or it ends with one line and exit code 1; what
//! was there before stays, and nothing is left over.

use crate::Found;
use crate::commands::{Attack, CASES, Case, Environment, case};
use crate::figures::Figure;
use crate::tool::{Tool, built};
use std::fs;
use std::path::Path;

mod ranks;

/// Refusals concern allocations of so many bytes and more, in turn: of any size, and large ones.
const FROM: [u64; 3] = [1, 200, 4096];

/// A command that starts programs, to which nothing is refused.
const RUN: Case =
    case("run --plan units.json --platform two.toml -- env -u LD_PRELOAD sleep 0.{share}", &[], true);

/// Refuses up to `most` allocations of each command.
pub fn run(most: u32, tool: &Tool) -> Found {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    if let Some(why) = built("refusals.c", &bench.path().join("refusals.so"), &[])? {
        return Ok(vec![Figure::new("memory", "none", format!("skipped: {why}"))]);
    }
    let commands = CASES.iter().chain([&RUN]).map(|case| attack(case, most, (tool, bench.path())));
    let mut figures: Vec<Figure> = commands.collect::<Result<_, _>>()?;
    figures.push(ranks::attack(most, tool, bench.path())?);
    Ok(figures)
}

/// The library is loaded, and sees allocations from this size.
fn loaded(bench: &Path, from: u64) -> Environment {
    let file = |name| bench.join(name).into_os_string();
    vec![
        ("LD_PRELOAD", file("refusals.so")),
        ("REFUSE_COUNT", file("count")),
        ("REFUSE_FROM", from.to_string().into()),
    ]
}

/// The number of allocations that the latest undisturbed run made.
fn counted(bench: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(bench.join("count")).map_err(|e| format!("no allocation was seen: {e}"))?;
    text.parse().map_err(|e| format!("allocations: {e}"))
}

fn attack(case: &Case, most: u32, (tool, bench): (&Tool, &Path)) -> Result<Figure, String> {
    let (mut tried, mut refused, mut all) = (0u64, 0u64, 0);
    for from in FROM {
        let attack = Attack::new(case, tool, loaded(bench, from))?;
        let count = counted(bench)?;
        all = all.max(count);
        let step = (count * FROM.len() as u64 / u64::from(most.max(1))).max(1);
        for (turn, at) in (1..=count).step_by(step as usize).enumerate() {
            let (flag, further) = [("0", ""), ("1", " and all that follow")][turn % 2];
            let mut environment = loaded(bench, from);
            environment.extend([("REFUSE_AT", at.to_string().into()), ("REFUSE_ALL", flag.into())]);
            let about = format!("allocation {at} of {from} bytes or more is refused{further}");
            let ended = attack.disturbed(&about, environment)?;
            // A matrix that does not fit into the free memory counts as wrong input.
            if ended.code == Some(2) && !ended.said.contains("more than is free") {
                return Err(format!("apportion {}: {about}: exit code 2: {}", case.line, ended.said));
            }
            tried += 1;
            refused += u64::from(ended.code != Some(0));
        }
    }
    let outcome = format!("{refused} ended in one line, {} went on, nothing lost", tried - refused);
    Ok(Figure::new(
        format!("`{}`", case.line),
        format!("{tried} refusals of memory ({all} allocations)"),
        outcome,
    ))
}

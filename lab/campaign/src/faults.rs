//! Each system call on files fails once, in turn: by a library that is loaded before the others. It sees the
//! calls that go through the C library. With `RUSTFLAGS='--cfg rustix_use_libc'` these are all but those that
//! delete files; without, renaming and reserving space are not among them.
//!
//! The property: the command succeeds with the right output, or it ends with one line; what was there before
//! stays, and nothing is left over.

use crate::Found;
use crate::commands::{Attack, CASES, Case, Environment};
use crate::figures::Figure;
use crate::tool::{Tool, built};
use std::fs;
use std::path::Path;

/// Errors of the operating system: input or output error, no space left, too many open files.
const ERRORS: [(&str, &str); 3] = [("5", "EIO"), ("28", "ENOSPC"), ("24", "EMFILE")];

/// Fails up to `most` calls of each command.
pub fn run(most: u32, tool: &Tool) -> Found {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let library = bench.path().join("faults.so");
    if let Some(why) = built("faults.c", &library, &["-ldl"])? {
        return Ok(vec![Figure::new("system calls on files", "none", format!("skipped: {why}"))]);
    }
    CASES.iter().map(|case| attack(case, most, (tool, bench.path()))).collect()
}

fn attack(case: &Case, most: u32, (tool, bench): (&Tool, &Path)) -> Result<Figure, String> {
    let count = bench.join("calls");
    let loaded = || -> Environment {
        vec![("LD_PRELOAD", bench.join("faults.so").into()), ("FAULT_COUNT", count.clone().into())]
    };
    // Each call adds a byte.
    let _ = fs::remove_file(&count);
    let attack = Attack::new(case, tool, loaded())?;
    let calls = fs::metadata(&count).map_err(|e| format!("no call was seen: {e}"))?.len();
    let step = (calls / u64::from(most.max(1))).max(1);
    let (mut tried, mut refused) = (0u32, 0u32);
    for (turn, at) in (1..=calls).step_by(step as usize).enumerate() {
        let (number, name) = ERRORS[turn % ERRORS.len()];
        let mut environment = loaded();
        environment.extend([("FAULT_AT", at.to_string().into()), ("FAULT_ERRNO", number.into())]);
        let ended = attack.disturbed(&format!("call {at} fails with {name}"), environment)?;
        tried += 1;
        refused += u32::from(ended.code != Some(0));
    }
    let outcome = format!("{refused} ended in one line, {} went on, nothing lost", tried - refused);
    Ok(Figure::new(format!("`{}`", case.line), format!("{tried} of {calls} calls failed"), outcome))
}

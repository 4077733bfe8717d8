//! Each message between ranks is lost, late or doubled once, in turn: by a library between apportion and Open
//! MPI.
//!
//! The property: the right result, or an error that names what happened, soon; what was there before stays.

use crate::Found;
use crate::commands::{EARLIER, THREE, sound_of_ranks};
use crate::figures::Figure;
use crate::fuzz::no_leftovers;
use crate::tool::{Ended, Tool, built, ended, mpirun};
use std::fs;
use std::path::{Path, PathBuf};

const KINDS: [&str; 3] = ["lost", "late", "doubled"];
const RANKS: usize = 3;

/// Commands with their output.
const CASES: [(&str, &str); 6] = [
    ("matmul a.npy a.npy -o c.npy --flow ring", "c.npy"),
    ("matmul a.npy a.npy -o c.npy --flow one-to-all --overlap", "c.npy"),
    ("matmul a.npy a.npy -o c.npy --flow bulk", "c.npy"),
    ("matmul a.npy a.npy -o c.npy --panels 3 --resume k", "c.npy"),
    ("closure a.npy -o c.npy", "c.npy"),
    ("advect --field a.npy --courant 0.2,0.1 --steps 4 -o out.npy", "out.npy"),
];

/// Seconds without a message after which a run must end.
const STALL: &str = "3";

/// Disturbs up to `most` messages of each command.
pub fn run(most: u32, tool: &Tool) -> Found {
    let skipped =
        |why: String| Ok(vec![Figure::new("messages between ranks", "none", format!("skipped: {why}"))]);
    let Some(mpirun) = mpirun() else { return skipped("no mpirun".into()) };
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let library = bench.path().join("libfaulty_mpi.so");
    // By its file name: the development files need not be installed.
    let arguments = ["-Wl,--no-as-needed", "-l:libmpi.so.40"];
    if let Some(why) = built("faulty_mpi.c", &library, &arguments)? {
        return skipped(why);
    }
    CASES
        .iter()
        .enumerate()
        .map(|(turn, case)| attack(case, (most, turn), (tool, mpirun, &library)))
        .collect()
}

type With<'a> = (&'a Tool, &'a str, &'a PathBuf);

/// Disturbs up to `most` messages of a command. Kinds and places go on from command to command, so that one
/// message of each already shows all kinds, near the beginning and near the end.
fn attack(
    (line, output): &(&str, &str),
    (most, command): (u32, usize),
    with: With<'_>,
) -> Result<Figure, String> {
    let clean = prepared(with.0)?;
    let undisturbed = faulty(clean.path(), line, with, None)?;
    if undisturbed.code != Some(0) {
        return Err(format!("{line}: fails without faults: {}", undisturbed.said));
    }
    let right = fs::read(clean.path().join(output)).map_err(|e| format!("{line}: {e}"))?;
    let mut messages: Vec<(usize, u64)> = Vec::new();
    for rank in 0..RANKS {
        let count = fs::read_to_string(clean.path().join(format!("sent-{rank}")));
        let count: u64 = count.ok().and_then(|text| text.parse().ok()).ok_or("no message was seen")?;
        messages.extend((1..=count).map(|at| (rank, at)));
    }
    let step = (messages.len() / (most.max(1) as usize)).max(1);
    let (mut tried, mut refused) = (0u32, 0u32);
    let first = step * command / CASES.len();
    let chosen = messages.iter().skip(first).step_by(step).take(most as usize);
    for (turn, &(rank, at)) in chosen.enumerate() {
        let kind = KINDS[(turn + command) % KINDS.len()];
        let about = format!("mpirun -n {RANKS} apportion {line}: message {at} of rank {rank} is {kind}");
        let bench = prepared(with.0)?;
        fs::write(bench.path().join(output), EARLIER).map_err(|e| e.to_string())?;
        let ended = faulty(bench.path(), line, with, Some((kind, rank, at)))
            .map_err(|defect| format!("{about}: {defect}"))?;
        let found = fs::read(bench.path().join(output)).unwrap_or_default();
        sound_of_ranks(&ended, &found, &right).map_err(|defect| format!("{about}: {defect}"))?;
        no_leftovers(bench.path()).map_err(|defect| format!("{about}: {defect}: {}", ended.said))?;
        if kind == "late" && ended.code != Some(0) {
            return Err(format!("{about}: a late message is no reason to fail: {}", ended.said));
        }
        tried += 1;
        refused += u32::from(ended.code != Some(0));
    }
    let outcome = format!("{refused} ended with an error, {} with the right result", tried - refused);
    Ok(Figure::new(
        format!("`{line}`"),
        format!("{tried} of {} messages lost, late or doubled", messages.len()),
        outcome,
    ))
}

fn prepared(tool: &Tool) -> Result<tempfile::TempDir, String> {
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    fs::write(bench.path().join("three.toml"), THREE).map_err(|e| e.to_string())?;
    // Large enough that some messages are in shared memory, and their notices are disturbed.
    tool.must(bench.path(), &["random", "80", "80", "-o", "a.npy"])?;
    Ok(bench)
}

/// Runs under mpirun with the library between; this message of this rank is disturbed.
fn faulty(
    directory: &Path,
    line: &str,
    (tool, mpirun, library): With<'_>,
    fault: Option<(&str, usize, u64)>,
) -> Result<Ended, String> {
    let more = ["--platform", "three.toml", "--block", "8", "--engine", "mpi", "--stall-timeout", STALL];
    // An advection has no pivot blocks.
    let more = if line.starts_with("advect") { [&more[..2], &more[4..]].concat() } else { more.to_vec() };
    let words = [line.split(' ').collect::<Vec<_>>(), more].concat();
    let mut command = tool.command_under(mpirun, RANKS, directory, &words);
    command.env("APPORTION_MPI", library).env("FAULT_COUNT", directory.join("sent-"));
    if let Some((kind, rank, at)) = fault {
        command.env("FAULT_KIND", kind).env("FAULT_RANK", rank.to_string()).env("FAULT_AT", at.to_string());
    }
    ended(command, &words)
}

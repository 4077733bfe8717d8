//! Memory is refused to one rank of three. Only what apportion itself asks for: what an MPI library does
//! without memory is not ours.

use super::{counted, loaded};
use crate::commands::{EARLIER, THREE, sound_of_ranks};
use crate::figures::Figure;
use crate::fuzz::no_leftovers;
use crate::tool::{Ended, Tool, ended, mpirun};
use std::fs;
use std::path::Path;

const LINE: &str =
    "matmul a.npy a.npy -o c.npy --platform three.toml --block 8 --engine mpi --stall-timeout 3";
const RANKS: u64 = 3;

/// Runs are slower than those of one process: the most that are made.
const RUNS: u32 = 60;

pub fn attack(most: u32, tool: &Tool, library: &Path) -> Result<Figure, String> {
    let what = format!("`mpirun -n {RANKS} apportion {LINE}`");
    let Some(mpirun) = mpirun() else { return Ok(Figure::new(what, "none", "skipped: no mpirun")) };
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (at, output) = (bench.path(), bench.path().join("c.npy"));
    fs::write(at.join("three.toml"), THREE).map_err(|e| e.to_string())?;
    tool.must(at, &["random", "40", "40", "-o", "a.npy"])?;
    let run = |rank: u64, turn: Option<u64>, further: u64| -> Result<Ended, String> {
        let words: Vec<&str> = LINE.split(' ').collect();
        let mut command = tool.command_under(mpirun, RANKS as usize, at, &words);
        command.envs(loaded(library, 1)).env("REFUSE_OWN", "1").env("REFUSE_RANK", rank.to_string());
        if let Some(turn) = turn {
            command.env("REFUSE_AT", turn.to_string()).env("REFUSE_ALL", further.to_string());
        }
        ended(command, &words)
    };
    let (mut right, mut counts) = (Vec::new(), Vec::new());
    for rank in 0..RANKS {
        let undisturbed = run(rank, None, 0)?;
        if undisturbed.code != Some(0) {
            return Err(format!("{what}: fails undisturbed: {}", undisturbed.said));
        }
        right = fs::read(&output).map_err(|e| e.to_string())?;
        counts.push(counted(library)?);
    }
    let (total, most) = (counts.iter().sum::<u64>(), u64::from(most.clamp(1, RUNS)));
    let (mut tried, mut refused) = (0, 0);
    for turn in 0..most.min(total) {
        let rank = turn % RANKS;
        let nth = 1 + counts[rank as usize] * turn / most;
        let about = format!("{what}: allocation {nth} of rank {rank} is refused");
        fs::write(&output, EARLIER).map_err(|e| e.to_string())?;
        let ended = run(rank, Some(nth), turn / RANKS % 2).map_err(|defect| format!("{about}: {defect}"))?;
        let found = fs::read(&output).unwrap_or_default();
        sound_of_ranks(&ended, &found, &right).map_err(|defect| format!("{about}: {defect}"))?;
        no_leftovers(at).map_err(|defect| format!("{about}: {defect}: {}", ended.said))?;
        tried += 1;
        refused += u64::from(ended.code != Some(0));
    }
    let outcome = format!("{refused} ended with an error, {} with the right result", tried - refused);
    Ok(Figure::new(what, format!("{tried} refusals of memory to one rank ({total} allocations)"), outcome))
}

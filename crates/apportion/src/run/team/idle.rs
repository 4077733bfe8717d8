//! Teams that no worker has: they are kept from one run to the next, so that a run starts no threads and touches no new
//! pages for what it packs.

use super::ThreadTeam;
use std::sync::{Mutex, PoisonError};

/// The oldest first. Their number of threads is at most twice that of the cores, but one team is kept in any case.
static IDLE: Mutex<Vec<ThreadTeam>> = Mutex::new(Vec::new());

/// The team of this many threads that was last on these cores. The calling thread gets its memory.
pub(super) fn take(cores: &[usize], threads: usize) -> Option<ThreadTeam> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let here = std::process::id();
    // After a fork the helpers are in the other process: nothing of them can be used, or ended.
    while let Some(foreign) = idle.iter().position(|team| team.process != here) {
        std::mem::forget(idle.swap_remove(foreign));
    }
    let fits = |team: &ThreadTeam| team.cores == cores && team.shared.threads == threads;
    let mut team = idle.iter().rposition(fits).map(|at| idle.remove(at))?;
    team.memory.exchange();
    Some(team)
}

/// Keeps a team, with the memory of the calling thread.
pub(super) fn keep(mut team: ThreadTeam) {
    team.memory.exchange();
    if cfg!(miri) {
        // Miri wants all threads to end before the process does.
        return;
    }
    let most = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    idle.push(team);
    let mut old = Vec::new();
    while idle.len() > 1 && idle.iter().map(|team| team.shared.threads).sum::<usize>() > most {
        old.push(idle.remove(0));
    }
    drop(idle);
    // Ends their helpers, without the lock.
    drop(old);
}

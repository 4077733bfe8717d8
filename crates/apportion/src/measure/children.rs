//! The programs in progress, so that a process can end them when it must end at once, as when memory is
//! refused.
//!
//! A signal at the death of the parent (`PR_SET_PDEATHSIG`) would reach the program alone and not those that
//! it started, and would have to be set between `fork` and `exec`, which makes starts slower: they are part
//! of what is measured.

use std::io::{ErrorKind, Result};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Programs that are known; further ones are not ended.
const MOST: usize = 1024;

/// Ids of programs that lead a process group each; 0 is a free place. A list would need memory.
static RUNNING: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// The number of programs that are being started.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// True once no further program may start.
static OVER: AtomicBool = AtomicBool::new(false);

/// Glances at programs that are being started, of a millisecond each, before they are given up: the thread
/// that starts one may be the one that ends the process.
const GLANCES: u32 = 100;

/// Kills all programs that [`run_units`](super::run_units), [`balance`](super::balance()) and
/// [`sweep_command`](super::sweep_command) have started, and their child processes. Takes no memory and no
/// lock: for a process that ends at once. On Unix only; elsewhere they live on.
pub fn abandon_programs() {
    OVER.store(true, Ordering::SeqCst);
    for _ in 0..GLANCES {
        if STARTING.load(Ordering::SeqCst) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    #[cfg(unix)]
    for place in &RUNNING {
        let id = i32::try_from(place.load(Ordering::SeqCst)).ok();
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // It may have ended.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// A program's place. It must be dropped before the program is reaped: its id may then become another's.
pub(super) struct Running(Option<&'static AtomicU32>);

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Result<(Child, Self)> {
        STARTING.fetch_add(1, Ordering::SeqCst);
        let started = match OVER.load(Ordering::SeqCst) {
            true => Err(ErrorKind::OutOfMemory.into()),
            false => command.spawn(),
        };
        let listed = started.map(|program| {
            let running = Self::new(&program);
            (program, running)
        });
        STARTING.fetch_sub(1, Ordering::SeqCst);
        listed
    }

    fn new(program: &Child) -> Self {
        let free = |place: &&AtomicU32| {
            place.compare_exchange(0, program.id(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        Self(RUNNING.iter().find(free))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, Ordering::SeqCst);
        }
    }
}

//! The programs in progress, so that a process can end them when it must end at once, as when memory is
//! refused, and so that they end when it is killed.
//!
//! A shell beside this process reads their process groups from a pipe. The pipe ends with this process,
//! however that ends, and the shell then kills the groups that are left. A signal at the death of the parent
//! (`PR_SET_PDEATHSIG`) would reach the program alone and not those that it started, and would have to be set
//! between `fork` and `exec`, which makes starts slower: they are part of what is measured. The price is the
//! moment between the start of a program and the line about it: killed there, this process leaves that
//! program.

use std::io::{ErrorKind, Result};
#[cfg(unix)]
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
#[cfg(unix)]
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(unix)]
use std::sync::{Mutex, OnceLock, PoisonError};
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

/// Says that it is ready; then keeps a list of process groups, to which a line `+ ID` adds and from which
/// `- ID` removes one; at the end of its input, kills those that are left.
#[cfg(unix)]
const GUARDIAN: &str = "trap '' HUP INT TERM; echo; groups=' '
    while read -r change group; do
        case $change in
            +) groups=\"$groups$group \" ;;
            -) rest=' '
               for each in $groups; do [ \"$each\" = \"$group\" ] || rest=\"$rest$each \"; done
               groups=$rest ;;
        esac
    done
    for each in $groups; do kill -s KILL -- \"-$each\"; done";

/// The guardian's input. `None` if there is no shell: programs then outlive a process that is killed.
#[cfg(unix)]
fn guardian() -> Option<&'static Mutex<ChildStdin>> {
    static INPUT: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();
    let start = || {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", GUARDIAN]).current_dir("/").process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().ok()?;
        let ready = shell.stdout.take().map(|mut output| output.read_exact(&mut [0]));
        ready.and_then(Result::ok)?;
        shell.stdin.take().map(Mutex::new)
    };
    INPUT.get_or_init(start).as_ref()
}

/// Starts the guardian, unless it runs: before a program's time is measured.
pub(super) fn start_guardian() {
    #[cfg(unix)]
    guardian();
}

/// Tells the guardian that a program leads a process group (`+`) or has ended (`-`).
fn tell_guardian(change: char, id: u32) {
    #[cfg(unix)]
    if let Some(input) = guardian() {
        let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
        // A guardian that was killed itself guards nothing.
        let _ = input.write_all(format!("{change} {id}\n").as_bytes());
    }
    #[cfg(not(unix))]
    let _ = (change, id);
}

/// A program's place. It must be dropped before the program is reaped: its id may then become another's.
pub(super) struct Running {
    place: Option<&'static AtomicU32>,
    id: u32,
}

impl Running {
    /// Starts a program that leads a process group.
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
        tell_guardian('+', program.id());
        Self { place: RUNNING.iter().find(free), id: program.id() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.store(0, Ordering::SeqCst);
        }
        tell_guardian('-', self.id);
    }
}

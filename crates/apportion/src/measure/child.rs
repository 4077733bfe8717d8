//! One run of a program: its start, the wait for its end, and the termination of all its child processes.
//!
//! The program leads its own process group, so that processes that it leaves behind are terminated with it.
//! Ctrl-C on the terminal therefore reaches it only through this module, which first asks it to end and soon
//! after kills it.

use crate::error::{Error, Result};
use crate::run::mailboxes::StopSignal;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks for a stop.
const GLANCE: Duration = Duration::from_millis(20);
/// Time that a program has to end after it was asked to.
const GRACE: Duration = Duration::from_millis(500);
/// Number of bytes kept from the end of a program's output.
const TAIL: usize = 4096;

/// Result of a run.
pub(super) struct Ended {
    pub status: ExitStatus,
    /// Seconds from before the start to the end of the program.
    pub seconds: f64,
    /// The last 4 KiB of its standard output.
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program to its end on the cores of the calling thread; stdin is empty.
///
/// The outer error is an interruption, the inner one an error of the system: the program cannot be started.
pub(super) fn run(mut command: Command, halt: &StopSignal<'_>) -> Result<std::io::Result<Ended>> {
    halt.check()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    let stdout = tail(child.stdout.take());
    let stderr = tail(child.stderr.take());
    let end = match wait(&mut child, halt) {
        Ok(end) => end,
        Err(error) => {
            end_all(&mut child);
            return Err(error);
        }
    };
    // It may have left processes that still hold our pipes.
    kill_group(&child, true);
    let outcome = child.wait().and_then(|status| {
        let seconds = end?.duration_since(start).as_secs_f64();
        Ok((status, seconds))
    });
    let (stdout, stderr) = (text(&stdout, halt)?, text(&stderr, halt)?);
    Ok(outcome.map(|(status, seconds)| Ended { status, seconds, stdout, stderr }))
}

/// Collects the end of a stream on its own thread.
fn tail(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (give, take) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; TAIL];
        if let Some(mut stream) = stream {
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        kept.extend_from_slice(&buffer[..n]);
                        kept.drain(..kept.len().saturating_sub(TAIL));
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        // After an interruption, the receiver is gone.
        let _ = give.send(kept);
    });
    take
}

fn text(stream: &Receiver<Vec<u8>>, halt: &StopSignal<'_>) -> Result<String> {
    let bytes = receive(stream, halt)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Receives a value from a thread; `None` if the thread has ended without one.
fn receive<T>(from: &Receiver<T>, halt: &StopSignal<'_>) -> Result<Option<T>> {
    loop {
        match from.recv_timeout(GLANCE) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => halt.check()?,
        }
    }
}

/// The moment at which the program ended. It is not reaped yet, so that the id of its process group stays
/// valid.
#[cfg(unix)]
fn wait(child: &mut Child, halt: &StopSignal<'_>) -> Result<std::io::Result<Instant>> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = Pid::from_child(child);
    let (give, take) = channel();
    std::thread::spawn(move || {
        let outcome = loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break Ok(Instant::now()),
                Err(error) => break Err(error.into()),
            }
        };
        let _ = give.send(outcome);
    });
    let lost = || Err(std::io::Error::other("the thread that waits for it was lost"));
    Ok(receive(&take, halt)?.unwrap_or_else(lost))
}

/// Without `waitid`, the program is polled every millisecond.
#[cfg(not(unix))]
fn wait(child: &mut Child, halt: &StopSignal<'_>) -> Result<std::io::Result<Instant>> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(Ok(Instant::now())),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Ok(Err(error)),
        }
        halt.check()?;
    }
}

/// Asks the program and its child processes to end, and soon after kills them.
fn end_all(child: &mut Child) {
    kill_group(child, false);
    let asked = Instant::now();
    while asked.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_group(child, true);
    let _ = child.kill();
    let _ = child.wait();
}

/// Signals the program's process group. An empty group is not an error.
#[cfg(unix)]
fn kill_group(child: &Child, hard: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if hard { Signal::KILL } else { Signal::TERM };
    let _ = kill_process_group(Pid::from_child(child), signal);
}

#[cfg(not(unix))]
fn kill_group(_child: &Child, _hard: bool) {}

/// The error for a program that cannot be started.
pub(super) fn cannot_start(program: &str, error: &std::io::Error) -> Error {
    Error::input(
        "`command`",
        format!("cannot start \"{program}\": {error}"),
        "check its path and permissions",
    )
}

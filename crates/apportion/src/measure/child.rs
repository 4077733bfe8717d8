//! One run of a program: its start, the wait for its end, and the termination of all its child processes.
//!
//! The program leads its own process group, so that processes that it leaves behind are terminated with it.
//! Ctrl-C on the terminal therefore reaches it only through this module, which first asks it to end and soon
//! after kills it.

use crate::error::{Error, Result};
use crate::measure::children::{Running, start_guardian};
use crate::run::mailboxes::StopSignal;
use crate::threads;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks for a stop.
const GLANCE: Duration = Duration::from_millis(20);
/// Time that a program has to end after it was asked to, and its pipes after it has ended.
const GRACE: Duration = Duration::from_millis(500);
/// Number of bytes kept from the end of a program's output.
const TAIL: usize = 4096;
/// A line is passed on in pieces of this many bytes at most.
const LONGEST_LINE: usize = 65_536;

/// Receives each line that a program prints, to either stream, as it is printed.
pub(super) type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// How a run ended.
pub(super) enum End {
    Exited(ExitStatus),
    /// It was ended because its time was over.
    TimedOut,
}

/// Result of a run.
pub(super) struct Ended {
    pub end: End,
    /// Seconds from before the start to the end of the program.
    pub seconds: f64,
    /// The last 4 KiB of its standard output.
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program to its end, or for at most `most` time, on the cores of the calling thread; stdin is empty.
///
/// The outer error is an interruption or a refused thread, the inner one an error of the system: the program
/// cannot be started.
pub(super) fn run(
    mut command: Command,
    most: Option<Duration>,
    lines: Option<&Lines>,
    halt: &StopSignal<'_>,
) -> Result<std::io::Result<Ended>> {
    halt.check()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    start_guardian();
    let start = Instant::now();
    let (mut child, running) = match Running::start(&mut command) {
        Ok(started) => started,
        Err(error) => return Ok(Err(error)),
    };
    let deadline = most.and_then(|most| start.checked_add(most));
    let watched = watch(&mut child, lines, halt, deadline);
    drop(running);
    let (end, [stdout, stderr]) = watched.inspect_err(|_| end_all(&mut child))?;
    let outcome = match end {
        None => {
            end_all(&mut child);
            Ok((End::TimedOut, start.elapsed().as_secs_f64()))
        }
        Some(end) => {
            // It may have left processes that still hold our pipes.
            kill_group(&child, true);
            child.wait().and_then(|status| {
                let seconds = end?.duration_since(start).as_secs_f64();
                Ok((End::Exited(status), seconds))
            })
        }
    };
    let (stdout, stderr) = (stdout.text(halt)?, stderr.text(halt)?);
    Ok(outcome.map(|(end, seconds)| Ended { end, seconds, stdout, stderr }))
}

/// Waits for the program's end as [`wait`] does, and collects its streams.
fn watch(
    child: &mut Child,
    lines: Option<&Lines>,
    halt: &StopSignal<'_>,
    deadline: Option<Instant>,
) -> Result<(Option<std::io::Result<Instant>>, [Tail; 2])> {
    let stdout = Tail::of(child.stdout.take(), lines.cloned())?;
    let stderr = Tail::of(child.stderr.take(), lines.cloned())?;
    Ok((wait(child, halt, deadline)?, [stdout, stderr]))
}

/// The end of a stream, collected on a thread of its own.
struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Tail {
    fn of(stream: Option<impl Read + Send + 'static>, lines: Option<Lines>) -> Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (give, ended) = channel();
        let ours = Arc::clone(&kept);
        threads::start_detached(move || {
            let mut buffer = [0; TAIL];
            let mut line = Vec::new();
            if let Some(mut stream) = stream {
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(n) => {
                            let mut kept = ours.lock().unwrap_or_else(PoisonError::into_inner);
                            kept.extend_from_slice(&buffer[..n]);
                            let surplus = kept.len().saturating_sub(TAIL);
                            kept.drain(..surplus);
                            drop(kept);
                            if let Some(lines) = &lines {
                                pass_on(&mut line, &buffer[..n], lines);
                            }
                        }
                        Err(e) if e.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
            }
            if let Some(lines) = lines.filter(|_| !line.is_empty()) {
                lines(&String::from_utf8_lossy(&line));
            }
            // After an interruption, the receiver is gone.
            let _ = give.send(());
        })?;
        Ok(Self { kept, ended })
    }

    /// The text so far, once the stream has ended. A process that has left its group may hold the stream
    /// open: it is not waited for.
    fn text(&self, halt: &StopSignal<'_>) -> Result<String> {
        receive(&self.ended, halt, Some(Instant::now() + GRACE))?;
        let bytes = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Passes on the whole lines of `line` and `more`; the rest stays in `line`.
fn pass_on(line: &mut Vec<u8>, more: &[u8], lines: &Lines) {
    for piece in more.split_inclusive(|&byte| byte == b'\n') {
        line.extend_from_slice(piece);
        if line.ends_with(b"\n") || line.len() >= LONGEST_LINE {
            lines(String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']));
            line.clear();
        }
    }
}

/// What was waited for, if it came.
enum Received<T> {
    Value(T),
    /// The thread that was to send it has ended.
    Lost,
    /// The deadline has passed.
    Late,
}

/// Receives a value from a thread.
fn receive<T>(from: &Receiver<T>, halt: &StopSignal<'_>, deadline: Option<Instant>) -> Result<Received<T>> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match from.recv_timeout(left.map_or(GLANCE, |left| left.min(GLANCE))) {
            Ok(value) => return Ok(Received::Value(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(Received::Lost),
            Err(RecvTimeoutError::Timeout) if left == Some(Duration::ZERO) => return Ok(Received::Late),
            Err(RecvTimeoutError::Timeout) => halt.check()?,
        }
    }
}

/// The moment at which the program ended; `None` if it runs beyond the deadline. It is not reaped yet, so
/// that the id of its process group stays valid.
#[cfg(unix)]
fn wait(
    child: &mut Child,
    halt: &StopSignal<'_>,
    deadline: Option<Instant>,
) -> Result<Option<std::io::Result<Instant>>> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = Pid::from_child(child);
    let (give, take) = channel();
    threads::start_detached(move || {
        let outcome = loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break Ok(Instant::now()),
                Err(error) => break Err(error.into()),
            }
        };
        let _ = give.send(outcome);
    })?;
    Ok(match receive(&take, halt, deadline)? {
        Received::Value(end) => Some(end),
        Received::Lost => Some(Err(std::io::Error::other("the thread that waits for it was lost"))),
        Received::Late => None,
    })
}

/// Without `waitid`, the program is polled every millisecond.
#[cfg(not(unix))]
fn wait(
    child: &mut Child,
    halt: &StopSignal<'_>,
    deadline: Option<Instant>,
) -> Result<Option<std::io::Result<Instant>>> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(Some(Ok(Instant::now()))),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Ok(Some(Err(error))),
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
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
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) {
        return threads::refused_another("process", error);
    }
    Error::input(
        "`command`",
        format!("cannot start \"{program}\": {error}"),
        "check its path and permissions",
    )
}

//! One run of a program: its start, the wait for its end, and the termination of all its child processes.
//!
//! The program leads its own process group, so that processes that it leaves behind are terminated with it.
//! Ctrl-C on the terminal therefore reaches it only through this module, which first asks it to end and soon
//! after kills it.
//!
//! This process ends its programs when it must end at once, as when memory is refused. Where it is killed
//! itself, a shell beside it, the guardian, does: it reads the process groups from a pipe, which ends with
//! this process, and then kills the groups that are left. A signal at the death of the parent
//! (`PR_SET_PDEATHSIG`) would reach the program alone and not those that it started, and would have to be set
//! between `fork` and `exec`, which makes starts slower: they are part of what is measured. The price is the
//! moment between the start of a program and the line about it: killed there, this process leaves that
//! program.

use crate::error::{Error, Result};
use crate::measure::marks::Marks;
use crate::run::mailboxes::StopSignal;
use crate::threads;
use std::io::{self, ErrorKind, Read, Write};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
#[cfg(unix)]
use std::process::ChildStdin;
use std::process::{Child, Command, ExitStatus, Stdio};
#[cfg(unix)]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks for a stop.
const GLANCE: Duration = Duration::from_millis(20);
/// Time that a program has to end after it was asked to, and its pipes after it has ended.
const GRACE: Duration = Duration::from_millis(500);
/// The exit code and signal of a program that this process ends.
pub(super) const ENDED: [i32; 2] = [128 + 15, 15];
/// Number of bytes remembered from the end of a program's output.
const TAIL: usize = 4096;
/// A line is passed on in pieces of this many bytes at most.
const LONGEST_LINE: usize = 65_536;

/// Receives each line that a program prints as it is printed.
pub(super) type LineObserver = Arc<dyn Fn(&str) + Send + Sync>;

/// Who gets what a program prints to a stream.
#[derive(Clone)]
pub(super) enum Listener {
    Lines(LineObserver),
    /// All bytes are kept.
    Whole(Arc<Mutex<Vec<u8>>>),
}

/// The listeners of both streams.
#[derive(Clone, Default)]
pub(super) struct Listeners {
    pub stdout: Option<Listener>,
    pub stderr: Option<Listener>,
}

impl Listeners {
    /// Each line of either stream.
    pub(crate) fn of_lines(lines: LineObserver) -> Self {
        let listener = Some(Listener::Lines(lines));
        Self { stdout: listener.clone(), stderr: listener }
    }
}

/// How a run ended.
pub(super) enum End {
    Exited {
        /// How it failed, if it did: `exit status: 3`.
        failure: Option<String>,
        /// Its exit code; 128 plus the signal's number if a signal has ended it.
        code: i32,
        /// The signal that has ended it, or 0.
        signal: i32,
    },
    /// It was ended because its time was over.
    TimedOut,
}

impl End {
    fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
        #[cfg(not(unix))]
        let signal = 0;
        let failure = (!status.success()).then(|| status.to_string());
        Self::Exited { failure, code: status.code().unwrap_or(128 + signal), signal }
    }

    /// The exit code and the signal for a joblog.
    pub(crate) fn code_and_signal(&self) -> [i32; 2] {
        match self {
            Self::Exited { code, signal, .. } => [*code, *signal],
            Self::TimedOut => ENDED,
        }
    }
}

/// Result of a run.
pub(super) struct Exit {
    pub(crate) end: End,
    /// Seconds from before the start to the end of the program.
    pub(crate) seconds: f64,
    /// The last 4 KiB of its standard output.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Exit {
    /// How it failed, if it did and its time was not over.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.end {
            End::Exited { failure, .. } => failure.as_deref(),
            End::TimedOut => None,
        }
    }

    /// The last line of its stderr, or else of its stdout, that is not blank.
    pub(crate) fn last_line(&self) -> Option<String> {
        last_line(&self.stderr).or_else(|| last_line(&self.stdout))
    }
}

/// The last line that is not blank, cut to 200 characters.
pub(super) fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(one_line).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// A text with single blanks between its words.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs a program to its end, or for at most `most` time, on the cores of the calling thread; stdin is empty.
///
/// With `marks` it is the launcher of a program on another machine, which tells by marks when that begins and ends.
/// Its stdin holds a line and then stays open while the launcher runs: its end tells the other machine that nobody
/// waits any more.
///
/// The outer error is an interruption or a refused thread, the inner one an error of the system: the program
/// cannot be started.
pub(crate) fn run(
    mut command: Command,
    most: Option<Duration>,
    listeners: &Listeners,
    marks: Option<&Arc<Marks>>,
    halt: &StopSignal<'_>,
) -> Result<io::Result<Exit>> {
    halt.check()?;
    command.stdin(if marks.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    start_guardian();
    let start = Instant::now();
    let (mut child, running) = match RunningProgram::start(&mut command) {
        Ok(started) => started,
        Err(error) => return Ok(Err(error)),
    };
    if let Some(input) = &mut child.stdin {
        // A launcher that has ended at once reads nothing.
        let _ = input.write_all(b"go\n");
    }
    let deadline = most.and_then(|most| start.checked_add(most));
    let watched = watch(&mut child, listeners, marks, halt, deadline);
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
                Ok((End::of(status), seconds))
            })
        }
    };
    let (stdout, stderr) = (stdout.text(halt)?, stderr.text(halt)?);
    Ok(outcome.map(|(end, seconds)| Exit { end, seconds, stdout, stderr }))
}

/// Waits for the program's end as [`wait`] does, and collects its streams.
fn watch(
    child: &mut Child,
    listeners: &Listeners,
    marks: Option<&Arc<Marks>>,
    halt: &StopSignal<'_>,
    deadline: Option<Instant>,
) -> Result<(Option<io::Result<Instant>>, [Tail; 2])> {
    let stdout = Tail::of(child.stdout.take(), listeners.stdout.clone(), marks.cloned())?;
    let stderr = Tail::of(child.stderr.take(), listeners.stderr.clone(), marks.cloned())?;
    // A launcher may stay after the program that it has started has ended.
    let last = || match marks.and_then(|marks| marks.end()) {
        Some(end) => Some(deadline.map_or(end + GRACE, |deadline| deadline.min(end + GRACE))),
        None => deadline,
    };
    let ended = wait(child, halt, &last)?;
    let late = marks.and_then(|marks| marks.end()).filter(|_| ended.is_none());
    Ok((ended.or(late.map(Ok)), [stdout, stderr]))
}

/// The end of a stream, collected on a thread of its own.
struct Tail {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Tail {
    fn of(
        stream: Option<impl Read + Send + 'static>,
        listener: Option<Listener>,
        marks: Option<Arc<Marks>>,
    ) -> Result<Self> {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (give, ended) = channel();
        let ours = Arc::clone(&bytes);
        threads::start_free(move || {
            let mut buffer = [0; TAIL];
            let mut line = Vec::new();
            let mut take = |more: &[u8]| {
                let mut tail = ours.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(more);
                let surplus = tail.len().saturating_sub(TAIL);
                tail.drain(..surplus);
                drop(tail);
                match &listener {
                    None => {}
                    Some(Listener::Lines(lines)) => pass_on(&mut line, more, lines),
                    Some(Listener::Whole(bytes)) => {
                        bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(more);
                    }
                }
            };
            let mut unsure = Vec::new();
            if let Some(mut stream) = stream {
                loop {
                    match (stream.read(&mut buffer), &marks) {
                        (Ok(0), _) => break,
                        (Ok(n), None) => take(&buffer[..n]),
                        (Ok(n), Some(marks)) => take(&marks.take(&mut unsure, &buffer[..n])),
                        (Err(e), _) if e.kind() == ErrorKind::Interrupted => {}
                        (Err(_), _) => break,
                    }
                }
                take(&unsure);
            }
            if let Some(Listener::Lines(lines)) = listener.filter(|_| !line.is_empty()) {
                lines(&String::from_utf8_lossy(&line));
            }
            // After an interruption, the receiver is gone.
            let _ = give.send(());
        })?;
        Ok(Self { bytes, ended })
    }

    /// The text so far, once the stream has ended. A process that has left its group may hold the stream
    /// open: it is not waited for.
    fn text(&self, halt: &StopSignal<'_>) -> Result<String> {
        let last = Some(Instant::now() + GRACE);
        receive(&self.ended, halt, &|| last)?;
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Passes on the whole lines of `line` and `more`; the rest stays in `line`.
fn pass_on(line: &mut Vec<u8>, more: &[u8], lines: &LineObserver) {
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

/// Receives a value from a thread; the deadline may become known meanwhile.
fn receive<T>(
    from: &Receiver<T>,
    halt: &StopSignal<'_>,
    deadline: &dyn Fn() -> Option<Instant>,
) -> Result<Received<T>> {
    loop {
        let left = deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
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
    deadline: &dyn Fn() -> Option<Instant>,
) -> Result<Option<io::Result<Instant>>> {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let pid = Pid::from_child(child);
    let (give, take) = channel();
    threads::start_free(move || {
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
        Received::Lost => Some(Err(io::Error::other("the thread that waits for it was lost"))),
        Received::Late => None,
    })
}

/// Without `waitid`, the program is polled every millisecond.
#[cfg(not(unix))]
fn wait(
    child: &mut Child,
    halt: &StopSignal<'_>,
    deadline: &dyn Fn() -> Option<Instant>,
) -> Result<Option<io::Result<Instant>>> {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(Some(Ok(Instant::now()))),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return Ok(Some(Err(error))),
        }
        if deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
        }
        halt.check()?;
    }
}

/// Asks the program and its child processes to end, and soon after kills them.
fn end_all(child: &mut Child) {
    // The end of this stream ends what a launcher has started on another machine.
    drop(child.stdin.take());
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
pub(super) fn cannot_start(program: &str, error: &io::Error) -> Error {
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) {
        return threads::refused_another("process", error);
    }
    Error::input(
        "`command`",
        format!("cannot start \"{program}\": {error}"),
        "check its path and permissions",
    )
}

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

/// Kills all programs that [`run_units`](super::run_units), [`balance`](super::balance()) and sweeps of a
/// [`UserCommand`](super::UserCommand) have started, and their child processes. Takes no memory and no
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
        ready.and_then(io::Result::ok)?;
        shell.stdin.take().map(Mutex::new)
    };
    INPUT.get_or_init(start).as_ref()
}

/// Starts the guardian, unless it runs: before a program's time is measured.
fn start_guardian() {
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
struct RunningProgram {
    place: Option<&'static AtomicU32>,
    id: u32,
}

impl RunningProgram {
    /// Starts a program that leads a process group.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Self)> {
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

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.store(0, Ordering::SeqCst);
        }
        tell_guardian('-', self.id);
    }
}

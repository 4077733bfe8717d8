//! stdout, stderr, progress, Ctrl-C and panics.

use apportion::error::Error;
use apportion::output::abandon_all;
use apportion::run::Monitor;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::any::Any;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Time between two updates of a progress bar.
const TICK: Duration = Duration::from_millis(60);

/// Amount and form of the output.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    json: bool,
    quiet: bool,
    verbose: u8,
}

impl Console {
    pub fn new(json: bool, quiet: bool, verbose: u8) -> Self {
        Self { json, quiet, verbose }
    }

    /// The same without notes.
    pub fn silenced(self) -> Self {
        Self { quiet: true, verbose: 0, ..self }
    }

    /// The result: one JSON object, or text. A reader that has closed the pipe (`| head`) is not an error.
    pub fn result(&self, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        print_text(&if self.json { format!("{:#}\n", value()) } else { text() });
    }

    /// A note on stderr.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{}", text.as_ref());
        }
    }

    /// A note on stderr for --verbose.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.verbose > 0 {
            eprintln!("{}", text.as_ref());
        }
    }

    /// Runs long work with a progress bar (on a terminal only).
    pub fn watch<R>(&self, what: &str, monitor: &Monitor, work: impl FnOnce() -> R) -> R {
        if self.quiet || !std::io::stderr().is_terminal() {
            return work();
        }
        let bar = ProgressBar::new(1);
        let style =
            ProgressStyle::with_template("{msg:10} {bar:40} {percent:>3} %  {elapsed} (about {eta} left)");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        follow(&bar, monitor, work)
    }
}

/// Runs work while a thread updates the bar. The thread ends when the work does, also by a panic.
fn follow<R>(bar: &ProgressBar, monitor: &Monitor, work: impl FnOnce() -> R) -> R {
    let (working, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let (done, total) = monitor.progress();
                bar.set_length(total.max(1));
                bar.set_position(done);
            }
            bar.finish_and_clear();
        });
        // Dropped when the work returns or unwinds, which signals the thread.
        let _working = working;
        work()
    })
}

/// The first error of stdout; a closed pipe is none.
static UNPRINTED: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Writes to stdout. An error is kept for [`unprinted`].
pub fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    let outcome = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = outcome
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// The error of output that could not be written to stdout, if there is one.
pub fn unprinted() -> Option<Error> {
    let error = UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.map(|error| Error::file("stdout", "write", error))
}

/// An error as one line, written in one piece: output of mpirun cannot split it.
pub fn say(error: &Error) {
    let _ = std::io::stderr().write_all(format!("apportion: {}\n", crate::flags::told(error)).as_bytes());
}

/// The place of the latest panic.
static PANICKED_AT: Mutex<Option<String>> = Mutex::new(None);

/// Replaces the backtrace of a panic by a record of its place, for [`internal_error`].
pub fn record_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line()));
        *PANICKED_AT.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// The reason that a panic gave.
pub fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

/// A panic as one line: place, reason and version.
pub fn internal_error(panic: &(dyn Any + Send)) -> String {
    let place = PANICKED_AT.lock().unwrap_or_else(PoisonError::into_inner).take();
    format!(
        "apportion: internal error at {}: {} (a defect in apportion {}: please report this line and your \
         command)",
        place.as_deref().unwrap_or("an unknown place"),
        reason(panic).split_whitespace().collect::<Vec<_>>().join(" "),
        env!("CARGO_PKG_VERSION")
    )
}

/// The process's monitor: Ctrl-C, SIGHUP and SIGTERM stop the current work, so that it can clean up.
pub fn monitor() -> &'static Monitor {
    static MONITOR: OnceLock<Monitor> = OnceLock::new();
    MONITOR.get_or_init(|| {
        let monitor = Monitor::new();
        let handle = monitor.clone();
        // Without a handler, Ctrl-C ends the process at once: results are still correct, but temporary files
        // may remain.
        let _ = ctrlc::set_handler(move || match AT_ONCE.load(Ordering::SeqCst) {
            true => end(),
            false => handle.stop(),
        });
        monitor
    })
}

/// True while a signal may end the process at once.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// For commands that only compute: from now on, Ctrl-C, SIGHUP and SIGTERM remove the temporary files and end
/// the process, whatever it is doing. There are no programs to stop and no results to keep.
pub fn end_at_once() {
    AT_ONCE.store(true, Ordering::SeqCst);
    let _ = monitor();
}

/// Does something that may wait for others, such as opening a pipe: signals end the process meanwhile.
pub fn interruptible<R>(work: impl FnOnce() -> R) -> R {
    let before = AT_ONCE.swap(true, Ordering::SeqCst);
    let _ = monitor();
    let result = work();
    AT_ONCE.store(before, Ordering::SeqCst);
    result
}

/// Ends the process after a signal.
fn end() {
    let (written, _none_appears) = abandon_all();
    say(&match written {
        0 => Error::Interrupted,
        _ => Error::Interrupted.with_kept("the files were written"),
    });
    std::process::exit(i32::from(Error::Interrupted.exit_code()));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_in_watched_work_ends_the_bar_and_is_reported_with_its_place() {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let (bar, monitor) = (ProgressBar::hidden(), Monitor::new());
            let hook = std::panic::take_hook();
            record_panics();
            let outcome =
                catch_unwind(AssertUnwindSafe(|| -> () { follow(&bar, &monitor, || panic!("the\nwork")) }));
            let line = internal_error(&*outcome.unwrap_err());
            std::panic::set_hook(hook);
            sender.send((line, bar.is_finished())).unwrap();
        });
        let (line, finished) = receiver.recv_timeout(Duration::from_secs(30)).expect("the bar hangs");
        assert!(finished);
        let version = env!("CARGO_PKG_VERSION");
        assert!(line.starts_with("apportion: internal error at ") && !line.contains('\n'), "{line}");
        assert!(line.contains("console.rs:") && line.contains(": the work ("), "{line}");
        assert!(line.contains(version), "{line}");
    }

    #[test]
    fn watched_work_returns_its_value() {
        assert_eq!(follow(&ProgressBar::hidden(), &Monitor::new(), || 7), 7);
    }
}

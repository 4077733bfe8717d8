//! stdout, stderr, progress, signals and panics.

use crate::flags::in_flags;
use apportion::error::Error;
use apportion::job::Observer;
use apportion::measure::abandon_programs;
use apportion::output::abandon_all;
use apportion::run::{Monitor, MpiLaunch, Progress};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde_json::Value;
use std::any::Any;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time between two updates of a progress bar.
const TICK: Duration = Duration::from_millis(60);
/// Seconds after which long work is reported where there is no bar; the reports then come at twice the time …
const FIRST_REPORT: f64 = 5.0;
/// … but at least this often.
const REPORTS: f64 = 60.0;

/// The bar that is shown: other output moves it out of the way.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);
/// The part of the work that runs, for lines where there is no bar.
static PART: Mutex<String> = Mutex::new(String::new());

/// Amount and form of the output.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    json: bool,
    quiet: bool,
    verbose: u8,
    /// True if an output goes to stdout: the text for people then goes to stderr.
    stdout_taken: bool,
}

impl Console {
    pub fn new(json: bool, quiet: bool, verbose: u8) -> Self {
        Self { json, quiet, verbose, stdout_taken: false }
    }

    /// Whether the result is one JSON object.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// The same where an output goes to stdout, or does not.
    pub fn with_stdout_taken(self, stdout_taken: bool) -> Self {
        Self { stdout_taken, ..self }
    }

    /// The result: one JSON object, or text, on stdout unless that is for an output. A reader that has closed
    /// the pipe (`| head`) is not an error.
    pub fn result(&self, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        if self.json {
            print_text(&format!("{:#}\n", value()));
        } else if self.stdout_taken {
            self.note(text().trim_end());
        } else {
            print_text(&text());
        }
    }

    /// Whether more than the summary is asked for.
    pub fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    /// A part of the result that is known before the end: on stdout, or on stderr if stdout is for one object
    /// or for another tool.
    pub fn early(&self, text: &str, stdout_is_free: bool) {
        if stdout_is_free && !self.json && !self.stdout_taken {
            beside_bar(|| print_text(text));
        } else {
            self.note(text.trim_end());
        }
    }

    /// What programs have printed: on stdout, or on stderr if stdout is for something else.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn pass_on(&self, text: &[u8]) -> Result<(), Error> {
        let free = !self.json && !self.stdout_taken;
        let mut outcome = Ok(());
        beside_bar(|| {
            outcome = if free { print_bytes(text) } else { std::io::stderr().lock().write_all(text) };
        });
        outcome.map_err(|error| Error::file(if free { "stdout" } else { "stderr" }, "write", error))
    }

    /// A note on stderr.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            beside_bar(|| say_wrapped(text.as_ref()));
        }
    }

    /// Names the part of long work that runs, on the bar where there is one.
    pub fn name_part(&self, part: impl Into<String>) {
        let part = part.into();
        if let Some(bar) = BAR.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            bar.set_message(part.clone());
        }
        *PART.lock().unwrap_or_else(PoisonError::into_inner) = part;
    }

    /// A note on stderr for --verbose.
    pub fn detail(&self, text: impl AsRef<str>) {
        if self.verbose > 0 {
            beside_bar(|| say_text(text.as_ref()));
        }
    }

    /// Runs long work with a progress bar, or with a line on stderr from time to time if that is no terminal.
    pub fn watch<R>(&self, what: &str, monitor: &Monitor, work: impl FnOnce() -> R) -> R {
        let (mut work, mut outcome) = (Some(work), None);
        let mut watched = || self.watched(what, monitor, &mut || outcome = work.take().map(|work| work()));
        if AT_ONCE.load(Ordering::SeqCst) {
            watched()
        } else {
            in_order(watched)
        }
        outcome.expect("the work is done once")
    }

    /// Compiled once for all work.
    fn watched(&self, what: &str, monitor: &Monitor, work: &mut dyn FnMut()) {
        if self.quiet {
            return work();
        }
        if !std::io::stderr().is_terminal() {
            let (begin, mut next) = (Instant::now(), FIRST_REPORT);
            what.clone_into(&mut PART.lock().unwrap_or_else(PoisonError::into_inner));
            let tick = move || {
                let elapsed = begin.elapsed().as_secs_f64();
                if elapsed >= next {
                    let part = PART.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    say_text(&report(&part, monitor.progress(), elapsed));
                    next += next.min(REPORTS);
                }
            };
            return follow(tick, work);
        }
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{msg:10} {bar:40} {percent:>3} %  {elapsed}{left}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let followed = monitor.clone();
        let style = style.with_key("left", move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let (elapsed, end) = (state.elapsed().as_secs_f64(), followed.progress().end);
            let left = end.map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
            let _ = out.write_str(&remaining_time(state.fraction(), elapsed, left));
        });
        let ascii = !is_utf8(|name| std::env::var(name).ok());
        bar.set_style(if ascii { style.progress_chars("#>-") } else { style });
        bar.set_message(what.to_owned());
        run_with_bar(bar, monitor, work)
    }
}

impl Observer for Console {
    fn note(&self, text: &str) {
        Console::note(self, in_flags(text));
    }

    fn detail(&self, text: &str) {
        Console::detail(self, in_flags(text));
    }

    fn watch(&self, what: &str, work: &mut dyn FnMut()) {
        Console::watch(self, what, monitor(), work);
    }
}

/// Runs work with a bar, which is removed at the end.
fn run_with_bar(bar: ProgressBar, monitor: &Monitor, work: &mut dyn FnMut()) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    let _removed = Removed(bar.clone());
    let tick = move || {
        let progress = monitor.progress();
        bar.set_length(progress.total.max(1));
        bar.set_position(progress.done);
    };
    follow(tick, work)
}

/// Removes a bar when dropped, also by a panic.
struct Removed(ProgressBar);

impl Drop for Removed {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Prints while the bar, if there is one, is out of the way.
fn beside_bar(print: impl FnOnce()) {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// One line about work that takes long: never at its end, since work that has ended is not reported.
fn report(what: &str, progress: Progress, elapsed: f64) -> String {
    let Progress { done, total, .. } = progress;
    let percent = match total {
        0 => String::new(),
        _ => format!("{} % ", (u128::from(done) * 100 / u128::from(total)).min(99)),
    };
    format!("{what}: {percent}after {elapsed:.0} s")
}

/// The remaining time, where the progress so far allows an estimate: not in the first seconds, at the first
/// percent, or at the end, when results are written.
///
/// `left`: the remaining seconds, where more is known of them than the progress shows.
fn remaining_time(fraction: f32, elapsed: f64, left: Option<f64>) -> String {
    let fraction = f64::from(fraction);
    if fraction >= 0.995 {
        return ", finishing".into();
    }
    let is_early = left.is_none() && fraction < 0.01;
    let left = left.unwrap_or(elapsed / fraction.max(1e-9) - elapsed);
    if is_early || elapsed < 2.0 || left < 1.0 {
        return String::new();
    }
    let mut text = ", about ".to_owned();
    let _ = match left {
        s if s < 90.0 => write!(text, "{s:.0} s left"),
        s if s < 5400.0 => write!(text, "{:.0} min left", s / 60.0),
        s => write!(text, "{:.1} h left", s / 3600.0),
    };
    text
}

/// Whether the locale's characters are UTF-8, by the variables of the environment that POSIX names.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.into_iter().filter_map(variable).find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8")
}

/// Fits tables to the terminal, or to COLUMNS, or to 80 columns. Colours are for terminals, unless NO_COLOR is
/// set (<https://no-color.org>).
pub fn fit_text() {
    let plain = ["NO_COLOR", "TERM"].map(|name| std::env::var(name).unwrap_or_default());
    // A launcher gives each rank a terminal of its own, and reads it.
    let terminal = std::io::stdout().is_terminal() && MpiLaunch::detect().is_none();
    let colour = terminal && plain[0].is_empty() && plain[1] != "dumb";
    apportion_report::set_text_look(colour, !is_utf8(|name| std::env::var(name).ok()));
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if let Some(columns) = asked.or(terminal.map(|(width, _)| usize::from(width.0))) {
        apportion_report::set_text_width(columns);
    }
}

/// Runs work while a thread calls `tick`. The thread ends when the work does, also by a panic. If the system
/// refuses the thread, the work is done without.
fn follow(mut tick: impl FnMut() + Send, work: &mut dyn FnMut()) {
    let (working, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
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
    if let Err(error) = print_bytes(text.as_bytes()) {
        UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Writes to stdout. A closed pipe is no error.
fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// The error of output that could not be written to stdout, if there is one.
pub fn unprinted() -> Option<Error> {
    let error = UNPRINTED.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.map(|error| Error::file("stdout", "write", error))
}

/// A line on stderr, in one piece: output of mpirun cannot split it. Nobody is left to tell if it cannot be
/// written (a full disk, a closed pipe), and the work goes on.
pub fn say_text(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// A note on stderr, in lines that fit where stderr is a terminal.
fn say_wrapped(text: &str) {
    if std::io::stderr().is_terminal() {
        say_text(&apportion_report::wrap_text(text));
    } else {
        say_text(text);
    }
}

/// An error as one line.
pub fn say(error: &Error) {
    say_text(&format!("apportion: {}", crate::flags::error_line(error)));
}

/// The time that ranks above 0 leave to rank 0 to report what all ranks meet; mpirun ends them then. Long,
/// for busy machines.
pub const LATER_RANKS: Duration = Duration::from_secs(3);

/// The same with the rank and its host, in a job of several.
pub fn say_of(rank: usize, error: &Error) {
    let (text, name) =
        (crate::flags::error_line(error), format!("rank {rank} ({})", apportion::run::host_name()));
    match text.contains(&name) {
        true => say_text(&format!("apportion: {text}")),
        false => say_text(&format!("apportion: {name}: {text}")),
    }
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

/// The process's monitor.
pub fn monitor() -> &'static Monitor {
    static MONITOR: OnceLock<Monitor> = OnceLock::new();
    MONITOR.get_or_init(Monitor::new)
}

/// Parts of the work in progress that end in order when the monitor is stopped.
static ORDERLY: AtomicUsize = AtomicUsize::new(0);

/// True for a command that has no results to keep and no programs to stop.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// The time that work has to end in order after a signal, before the process ends at once.
const ORDERLY_END: Duration = Duration::from_millis(900);

/// From now on, a signal ends the process within a second: it stops work that ends in order, such as watched work.
/// Anything else, such as waiting for the other end of a pipe, and work that does not end soon, ends at once:
/// temporary files are removed and programs are ended.
pub fn heed_signals() {
    let mut first: Option<Instant> = None;
    crate::signals::on_end(move || {
        let again = first.get_or_insert_with(Instant::now).elapsed() > ORDERLY_END;
        let launched = MpiLaunch::detect().filter(|launch| launch.size > 1);
        if ORDERLY.load(Ordering::SeqCst) > 0 && !again {
            monitor().stop();
            if launched.is_some() {
                // The ranks tell each other, and their launcher ends those that hang.
                return;
            }
            std::thread::sleep(ORDERLY_END);
        }
        match launched {
            // A launcher ends all of its processes once one has ended with an error: that error is the
            // one to be read, and this process may be about to say it, too.
            Some(launch) => {
                std::thread::sleep(FOR_AN_ERROR);
                end(launch.rank == 0)
            }
            None => end(true),
        }
    });
}

/// True once a thread reports why the process ends.
static SPEAKS: AtomicBool = AtomicBool::new(false);

/// Whether the caller is to say why the process ends: no other thread does.
pub fn may_speak() -> bool {
    !SPEAKS.swap(true, Ordering::SeqCst)
}

/// Ends the process, for which everything is written.
pub fn leave(code: u8) -> ! {
    let _ = std::io::stdout().flush();
    crate::signals::leave(code)
}

/// For commands that only compute: signals end also their watched work at once.
pub fn end_at_once() {
    AT_ONCE.store(true, Ordering::SeqCst);
}

/// Does work that ends in order when the monitor is stopped.
pub fn in_order<R>(work: impl FnOnce() -> R) -> R {
    struct Leaves;
    impl Drop for Leaves {
        fn drop(&mut self) {
            ORDERLY.fetch_sub(1, Ordering::SeqCst);
        }
    }
    ORDERLY.fetch_add(1, Ordering::SeqCst);
    let _leaves = Leaves;
    work()
}

/// The time that a process of a launcher has to say why it ends, when the launcher ends it.
const FOR_AN_ERROR: Duration = Duration::from_millis(300);

/// Ends the process after a signal, and says so if it `speaks`.
fn end(speaks: bool) -> ! {
    if !may_speak() {
        // Work has ended in order, and its thread says so: it has a moment to leave.
        std::thread::sleep(FOR_AN_ERROR);
        crate::signals::leave(exit_code(&Error::Interrupted));
    }
    abandon_programs();
    let abandoned = abandon_all();
    let error = match abandoned.appeared {
        0 => Error::Interrupted,
        _ => Error::Interrupted.with_kept("the files were written"),
    };
    if speaks {
        let code = exit_code(&error);
        let (done, said) = channel();
        // A reader of stderr that does not read is not waited for.
        let speaker = std::thread::Builder::new().spawn(move || {
            say(&error);
            let _ = done.send(());
        });
        if speaker.is_ok() {
            let _ = said.recv_timeout(FOR_AN_ERROR);
        }
        crate::signals::leave(code)
    }
    crate::signals::leave(exit_code(&error))
}

/// The exit code of a process that ends with this error: that of the signal, if one came.
pub fn exit_code(error: &Error) -> u8 {
    crate::signals::exit_code().unwrap_or_else(|| error.exit_code())
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
            let work = AssertUnwindSafe(|| run_with_bar(bar.clone(), &monitor, &mut || panic!("the\nwork")));
            let outcome: std::thread::Result<()> = catch_unwind(work);
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
    fn the_remaining_time_is_told_once_it_is_known() {
        assert_eq!(
            [
                remaining_time(0.0, 2.0, None),
                remaining_time(0.004, 60.0, None),
                remaining_time(0.5, 0.5, None)
            ],
            ["", "", ""]
        );
        assert_eq!(remaining_time(0.5, 10.0, None), ", about 10 s left");
        assert_eq!(
            [remaining_time(0.1, 60.0, None), remaining_time(0.02, 600.0, None)],
            [", about 9 min left", ", about 8.2 h left"]
        );
        assert_eq!([remaining_time(1.0, 60.0, None), remaining_time(0.9, 2.0, None)], [", finishing", ""]);
    }

    #[test]
    fn bars_are_ascii_unless_the_locale_is_utf8() {
        let locale = |all: &'static str, lang: &'static str| {
            is_utf8(move |name| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            })
        };
        assert!(locale("", "en_GB.UTF-8") && locale("C.utf8", "C"));
        assert!(!locale("C", "en_GB.UTF-8") && !locale("", "POSIX") && !is_utf8(|_| None));
    }

    #[test]
    fn watched_work_returns_its_value() {
        let mut done = 0;
        run_with_bar(ProgressBar::hidden(), &Monitor::new(), &mut || done += 1);
        assert_eq!(done, 1);
    }

    #[test]
    fn work_that_goes_on_is_never_at_its_end() {
        assert_eq!(
            report("measuring", Progress { done: 8, total: 8, end: None }, 5.04),
            "measuring: 99 % after 5 s"
        );
        assert_eq!(
            report("measuring", Progress { done: 1, total: 3, end: None }, 10.0),
            "measuring: 33 % after 10 s"
        );
        assert_eq!(
            report("measuring", Progress { done: 0, total: 0, end: None }, 64.9),
            "measuring: after 65 s"
        );
    }
}

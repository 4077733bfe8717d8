//! stdout, stderr, progress and Ctrl-C.

use apportion::error::Error;
use apportion::run::Monitor;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// How the user wants to be talked to.
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

    /// The result: one JSON object, or text. A reader that has gone (`| head`) is no error.
    pub fn result(&self, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
        let out = if self.json { format!("{:#}\n", value()) } else { text() };
        let _ = std::io::stdout().write_all(out.as_bytes());
    }

    /// A note for people, on stderr.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{}", text.as_ref());
        }
    }

    /// A note for those who asked to be told more.
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
        let finished = std::sync::atomic::AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !finished.load(std::sync::atomic::Ordering::Relaxed) {
                    let (done, total) = monitor.progress();
                    bar.set_length(total.max(1));
                    bar.set_position(done);
                    std::thread::sleep(Duration::from_millis(60));
                }
            });
            let outcome = work();
            finished.store(true, std::sync::atomic::Ordering::Relaxed);
            outcome
        });
        bar.finish_and_clear();
        outcome
    }
}

/// An error as one line, written at once: what mpirun says at the same time goes before or after it.
pub fn say(error: &Error) {
    let _ = std::io::stderr().write_all(format!("apportion: {error}\n").as_bytes());
}

/// The process's monitor: Ctrl-C, a hang-up or a polite kill stops whatever runs, so that it can clean up.
pub fn monitor() -> &'static Monitor {
    static MONITOR: OnceLock<Monitor> = OnceLock::new();
    MONITOR.get_or_init(|| {
        let monitor = Monitor::new();
        let handle = monitor.clone();
        // Without a handler Ctrl-C ends the process at once: still correct, but temporary files may stay.
        let _ = ctrlc::set_handler(move || handle.stop());
        monitor
    })
}

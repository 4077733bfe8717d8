//! Programs on other machines, started by the command of their processor: `ssh beta`, `srun -w beta`,
//! `docker exec box`.
//!
//! The command gets a shell with a script: it enters the directory, sets the variables, pins itself to the
//! processor's cores where the machine has `taskset`, and runs the program between two [`Marks`]. Some launchers
//! hand on words as they are, others, as `ssh`, let a shell read them again: which is found out once, by a word of
//! backslashes, of which every shell takes half.
//!
//! The script reads its stdin. Its end tells it that nobody waits any more, as after Ctrl-C: it then ends the
//! program. A launcher that passes no stdin on, as `docker exec` without `-i`, leaves the program to its end.

use crate::error::{Error, Result};
use crate::measure::command::unusable_cores;
use crate::measure::marks::Marks;
use crate::measure::process::{self, End, Exit, Listeners, cannot_start};
use crate::platform::{Processor, list_cpus};
use crate::run::mailboxes::StopSignal;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Backslashes in the word that is sent to find out how many shells read it.
const BACKSLASHES: usize = 8;

/// The least time of a program, in seconds: no process starts and ends sooner.
const SHORTEST: f64 = 1e-5;

/// A program for another machine.
pub(super) struct RemoteProgram<'a> {
    pub processor: &'a Processor,
    /// The program and its arguments.
    pub words: &'a [String],
    /// Variables and their values.
    pub environment: &'a [(&'static str, String)],
}

/// Finds out how the launcher of a processor hands words on, which also shows that it works. It is done once for
/// each launcher.
///
/// # Errors
/// There is no such launcher (exit code 2); it fails or does not answer (exit code 1); interrupted.
pub(super) fn prepare(processor: &Processor, most: Option<Duration>, halt: &StopSignal<'_>) -> Result<()> {
    if processor.start.is_empty() { Ok(()) } else { shells(processor, most, halt).map(drop) }
}

/// Number of shells that read the words after the processor's launcher.
fn shells(processor: &Processor, most: Option<Duration>, halt: &StopSignal<'_>) -> Result<usize> {
    static KNOWN: Mutex<BTreeMap<Vec<String>, usize>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&shells) = known().get(&processor.start) {
        return Ok(shells);
    }
    let (begin, end) = ("apportion", "asks");
    let word = format!("{begin}{}{end}", "\\".repeat(BACKSLASHES));
    let ended = launch(
        processor,
        ["printf", "%s", &word].map(String::from).to_vec(),
        most,
        &Listeners::default(),
        None,
        halt,
    )?;
    let found = (0..=BACKSLASHES.ilog2() as usize)
        .find(|shells| ended.stdout.contains(&format!("{begin}{}{end}", "\\".repeat(BACKSLASHES >> shells))));
    match (ended.failure(), found) {
        (None, Some(shells)) => {
            known().insert(processor.start.clone(), shells);
            Ok(shells)
        }
        (failure, _) => {
            let silent = match ended.end {
                End::TimedOut => "it did not answer within `timeout`",
                End::Exited { .. } => "it did not print what it should",
            };
            let failure = failure.unwrap_or(silent);
            Err(unreachable(processor, failure, &ended))
        }
    }
}

/// The error of a launcher that did not start the program.
fn unreachable(processor: &Processor, failure: &str, ended: &Exit) -> Error {
    let launcher = name(processor);
    let what =
        format!("processor \"{}\": `{launcher}` failed: {failure}{}", processor.name, last_words(ended));
    Error::infeasible(what, format!("`{launcher} true` must work by itself, without a password"))
}

/// The last line that a launcher printed, for an error.
fn last_words(ended: &Exit) -> String {
    ended.last_line().map_or_else(String::new, |line| format!(", its last line: {line}"))
}

/// The launcher as it is written.
pub(super) fn name(processor: &Processor) -> String {
    shlex::try_join(processor.start.iter().map(String::as_str)).unwrap_or_else(|_| processor.start.join(" "))
}

/// Runs the launcher with these words after it.
fn launch(
    processor: &Processor,
    words: Vec<String>,
    most: Option<Duration>,
    listeners: &Listeners,
    marks: Option<&Arc<Marks>>,
    halt: &StopSignal<'_>,
) -> Result<Exit> {
    let mut command = Command::new(&processor.start[0]);
    command.args(&processor.start[1..]).args(words);
    if std::env::var_os("SSH_ASKPASS_REQUIRE").is_none() {
        // Where ssh needs a password, it fails instead of waiting for one: nobody could type it.
        command.env("SSH_ASKPASS_REQUIRE", "force").env("SSH_ASKPASS", "false");
    }
    process::run(command, most, listeners, marks, halt)?.map_err(|error| {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) {
            return cannot_start(&processor.start[0], &error);
        }
        let place = format!("processor \"{}\": start", processor.name);
        Error::input(
            place,
            format!("cannot start \"{}\": {error}", processor.start[0]),
            "install it, or correct start",
        )
    })
}

impl RemoteProgram<'_> {
    /// Runs the program once; the seconds are those between its marks.
    ///
    /// # Errors
    /// The launcher or the program cannot be started; the connection is lost; interrupted.
    pub(super) fn run(
        &self,
        most: Option<Duration>,
        listeners: &Listeners,
        halt: &StopSignal<'_>,
    ) -> Result<Exit> {
        let (processor, marks) = (self.processor, Arc::new(Marks::new()));
        let mut words = vec!["sh".to_owned(), "-c".to_owned(), self.script(marks.token())?];
        for _ in 0..shells(processor, most, halt)? {
            words = words.iter().map(|word| quoted(word)).collect::<Result<_>>()?;
        }
        let ended = launch(processor, words, most, listeners, Some(&marks), halt)?;
        if matches!(ended.end, End::TimedOut) {
            return Ok(ended);
        }
        let (program, launcher, failure) =
            (&self.words[0], name(processor), ended.failure().unwrap_or("it ended"));
        if !marks.of(ABSENT).is_empty() {
            let what =
                format!("cannot start \"{program}\" on processor \"{}\" (`{launcher}`)", processor.name);
            return Err(Error::input("`command`", what, "check its path and permissions there"));
        }
        if !marks.of(UNPINNED).is_empty() {
            let what = format!("cores = {:?} cannot be used there (`{launcher}`)", processor.cores);
            return Err(unusable_cores(processor, what));
        }
        let begins = marks.of(Marks::BEGIN);
        if !marks.of(NO_DIRECTORY).is_empty() {
            let what =
                format!("processor \"{}\": `{launcher}`: there is no directory {}", processor.name, here()?);
            return Err(Error::infeasible(what, "work in a directory that all machines have"));
        }
        let Some(begin) = begins.first() else { return Err(unreachable(processor, failure, &ended)) };
        if begins.len() > 1 {
            let what = format!("starts a program {} times: `{launcher}`", begins.len());
            let remedy = "let it start one task, such as srun -N1 -n1 -w beta";
            return Err(Error::input(format!("processor \"{}\": start", processor.name), what, remedy));
        }
        let end = marks.of(Marks::END).into_iter().next();
        let Some((end, code)) = end.and_then(|end| {
            let code = end.text.split(' ').nth(1)?.parse::<u8>().ok()?;
            Some((end.at, code))
        }) else {
            let words = last_words(&ended);
            let what = format!(
                "processor \"{}\": `{launcher}` ended before its program: {failure}{words}",
                processor.name
            );
            return Err(Error::infeasible(what, "check the connection and the other machine"));
        };
        let failure = (code != 0).then(|| format!("exit status: {code}"));
        // A short program's marks may arrive together.
        let seconds = end.duration_since(begin.at).as_secs_f64().max(SHORTEST);
        let end = End::Exited { failure, code: i32::from(code), signal: 0 };
        Ok(Exit { end, seconds, ..ended })
    }

    /// The script that the shell on the other machine reads, on one line: shells of users read it too.
    fn script(&self, token: &str) -> Result<String> {
        let directory = quoted(&here()?)?;
        let mut script = format!(
            "exec 3<&0 4>&2; mark() {{ echo \"{token} $*\" >&4; }}; \
             cd {directory} 2>/dev/null || {{ mark {NO_DIRECTORY}; exit 1; }}; "
        );
        for (name, value) in self.environment {
            script += &format!("export {name}={}; ", quoted(value)?);
        }
        let words = self.words.iter().map(|word| quoted(word)).collect::<Result<Vec<_>>>()?.join(" ");
        script += &format!(
            "set -- {words}; case $1 in */*) [ -x \"$1\" ] && [ ! -d \"$1\" ] ;; *) command -v \"$1\" >/dev/null 2>&1 ;; \
             esac || {{ mark {ABSENT}; exit 127; }}; "
        );
        if !self.processor.cores.is_empty() {
            let pinned = format!("taskset -c {}", list_cpus(&self.processor.cores));
            script += &format!(
                "if {pinned} true >/dev/null 2>&1; then set -- {pinned} \"$@\"; \
                 elif command -v taskset >/dev/null 2>&1; then mark {UNPINNED}; exit 1; fi; "
            );
        }
        // The program runs in the background, so that the shell that waits for the end of stdin can end it.
        script += &format!(
            "read -r go <&3 || go=; mark {begin}; (exec \"$@\" 3<&- 4>&- </dev/null) & program=$!; watcher=; \
             if [ -n \"$go\" ]; then (trap '' TERM; exec >/dev/null 2>&1 4>&-; read -r go <&3; kill -s TERM 0; \
             sleep 1; kill -s KILL 0) & watcher=$!; fi; \
             exec 3<&-; wait $program; code=$?; mark {end} $code; exec 2>/dev/null 4>&-; trap '' TERM; \
             if [ -n \"$watcher\" ]; then kill -s KILL $watcher; fi; kill -s TERM 0; exit $code",
            begin = Marks::BEGIN,
            end = Marks::END
        );
        Ok(script)
    }
}

/// The mark of a program that is not there.
const ABSENT: &str = "absent";
/// The mark of cores that are not there.
const UNPINNED: &str = "unpinned";
/// The mark of a directory that is not there.
const NO_DIRECTORY: &str = "no-directory";

/// The directory that the program works in.
fn here() -> Result<String> {
    let here = std::env::current_dir().map_err(|error| Error::file(".", "find", error))?;
    Ok(here.to_string_lossy().into_owned())
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> Result<String> {
    shlex::try_quote(word).map(String::from).map_err(|_| {
        Error::input("`command`", format!("cannot start \"{}\"", word.replace('\0', "\\0")), "remove the NUL")
    })
}

//! A user program, timed on a processor of a platform.

use crate::error::{Error, Result};
use crate::measure::child;
use crate::measure::child::Ended;
use crate::measure::sweep;
use crate::measure::sweep::{Keep, Sizes, Subject, Sweep, Trial};
use crate::model::Models;
use crate::platform::{Platform, Processor};
use crate::run::Monitor;
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use std::collections::BTreeMap;
use std::process::Command;
use std::str::FromStr;

/// Source of a program's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondsFrom {
    /// Wall-clock time of the whole run, from its start to its end.
    #[default]
    Wall,
    /// The last line of its output that is not empty; it must be a number of seconds and nothing else.
    Stdout,
}

/// A command line with a placeholder for the size of the task.
///
/// The text is split into words as in a POSIX shell (blanks, quotes, backslashes), but no shell runs: write
/// `sh -c '…'` if you need one. Then `{size}` (or its synonym `{share}`), `{processor}` and `{rank}` are
/// replaced in each word, so that a name with a blank stays one word. The program also finds the values in
/// the environment, as `APPORTION_SIZE`, `APPORTION_PROCESSOR` and `APPORTION_RANK`. Inside `sh -c`, that is
/// the safe way to get a processor's name.
///
/// # Example
/// ```
/// use apportion::measure::{SecondsFrom, UserCommand};
/// let command = UserCommand::parse("./solver --n {size} 'two words'", SecondsFrom::Wall)?;
/// assert_eq!(command.words(1000.0, "p0", 0), ["./solver", "--n", "1000", "two words"]);
/// # Ok::<(), apportion::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommand {
    text: String,
    words: Vec<String>,
    seconds_from: SecondsFrom,
}

impl UserCommand {
    /// Parses a command line.
    ///
    /// # Errors
    /// No word, an unclosed quote, or no placeholder for the size.
    pub fn parse(text: &str, seconds_from: SecondsFrom) -> Result<Self> {
        let refuse = |what: &str, remedy: &str| Err(Error::input("`command`", what, remedy));
        let Some(words) = shlex::split(text) else {
            return refuse("a quote is not closed, or a backslash ends it", "close the quote");
        };
        if words.first().is_none_or(String::is_empty) {
            return refuse("it names no program", "write it like './solver {size}'");
        }
        if !words
            .iter()
            .any(|w| ["{size}", "{share}", "APPORTION_SIZE"].iter().any(|place| w.contains(place)))
        {
            let what = format!("\"{text}\" has no place for the size of the task");
            return refuse(&what, "put {size} or {share} where the program takes it");
        }
        Ok(Self { text: text.to_owned(), words, seconds_from })
    }

    /// The command line as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words with all placeholders replaced. A size is written without an exponent.
    pub fn words(&self, size: f64, processor: &str, rank: usize) -> Vec<String> {
        self.words
            .iter()
            .map(|word| {
                filled(word, &[("size", &size), ("share", &size), ("processor", &processor), ("rank", &rank)])
            })
            .collect()
    }

    /// Runs the program once on `processor`; the calling thread is pinned to its cores. Returns the seconds,
    /// multiplied by the processor's slowdown.
    ///
    /// # Errors
    /// The program cannot be started (exit code 2); it fails or prints no time (exit code 1); stopped.
    pub(super) fn seconds(
        &self,
        processor: &Processor,
        rank: usize,
        size: f64,
        halt: &StopSignal<'_>,
    ) -> Result<f64> {
        clock::pin(&processor.cores);
        let words = self.words(size, &processor.name, rank);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("APPORTION_SIZE", size.to_string())
            .env("APPORTION_PROCESSOR", &processor.name)
            .env("APPORTION_RANK", rank.to_string());
        let ended = child::run(command, halt)?.map_err(|error| child::cannot_start(&words[0], &error))?;
        let seconds = self.read(&ended).map_err(|(what, remedy)| {
            Error::infeasible(
                format!(
                    "`{}` with size {size} on processor \"{}\" {what}",
                    one_line(&self.text),
                    processor.name
                ),
                remedy,
            )
        })?;
        Ok(seconds * processor.slowdown)
    }

    /// The time of a run that has ended, or the problem and its remedy.
    fn read(&self, ended: &Ended) -> std::result::Result<f64, (String, &'static str)> {
        if !ended.status.success() {
            let mut what = format!("failed: {}", ended.status);
            if let Some(line) = last_line(&ended.stderr).or_else(|| last_line(&ended.stdout)) {
                what += &format!(", its last line: {line}");
            }
            return Err((what, "run it by hand with that size"));
        }
        match self.seconds_from {
            SecondsFrom::Wall => Ok(ended.seconds),
            SecondsFrom::Stdout => {
                let remedy = "its last line must be a positive number of seconds and nothing else";
                let Some(line) = last_line(&ended.stdout) else {
                    return Err(("printed nothing".into(), remedy));
                };
                match f64::from_str(&line) {
                    Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
                    Ok(seconds) => Err((format!("printed a time of {seconds} seconds"), remedy)),
                    Err(_) => Err((format!("ended with \"{line}\", which is not a number"), remedy)),
                }
            }
        }
    }
}

/// Speed functions of a program. Each processor runs one instance at a time, pinned to its cores. All
/// processors measure together unless the options say otherwise. The first run of a size is not counted.
///
/// If one run takes longer than the time for a size, it is the only run of that size. The `slowdown` of an
/// emulated processor multiplies the seconds of its program, whether they are wall-clock seconds or printed
/// by the program; no time is spent sleeping.
///
/// # Errors
/// No size, or one that is not a positive number; a program that cannot be started (exit code 2), fails or
/// prints no time (exit code 1; the message contains command, size and processor); known points of another
/// subject; errors of `keep`; interrupted.
pub fn sweep_command(
    platform: &Platform,
    command: &UserCommand,
    sweep: &Sweep,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    let refuse = |what: String| Err(Error::input("`sizes`", what, "give sizes such as 1000,10000,100000"));
    if let Sizes::Listed(sizes) = &sweep.sizes {
        match sizes.iter().find(|size| !(size.is_finite() && **size > 0.0)) {
            Some(size) => return refuse(format!("{size} is not a positive size")),
            None if sizes.is_empty() => return refuse("no size is given".into()),
            None => {}
        }
    }
    let subject = Subject {
        platform,
        kernel: format!("command: {}", command.text()),
        unit: "{size} of the command".into(),
        parameters: BTreeMap::new(),
        rounded: |size| size,
        largest: &|_| f64::INFINITY,
    };
    let trial =
        |_: &Processor, rank: usize, size| Run { command, processor: &platform.processors[rank], rank, size };
    sweep::run(&subject, sweep, trial, keep, monitor)
}

/// One size of one processor.
struct Run<'a> {
    command: &'a UserCommand,
    processor: &'a Processor,
    rank: usize,
    size: f64,
}

impl Trial for Run<'_> {
    const FEWEST_WHEN_LATE: usize = 1;

    fn warm_up(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        self.time(halt)
    }

    fn time(&mut self, halt: &StopSignal<'_>) -> Result<f64> {
        self.command.seconds(self.processor, self.rank, self.size, halt)
    }
}

/// Replaces each `{name}`. Other braces stay, and inserted text is not scanned again.
fn filled(word: &str, values: &[(&str, &dyn std::fmt::Display)]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let hit = values
            .iter()
            .find(|(name, _)| rest[1..].strip_prefix(name).is_some_and(|after| after.starts_with('}')));
        match hit {
            Some((name, value)) => {
                out.push_str(&value.to_string());
                rest = &rest[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

/// The last line that is not blank, cut to 200 characters.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(one_line).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> UserCommand {
        UserCommand::parse(text, SecondsFrom::Stdout).unwrap()
    }

    #[test]
    fn words_are_split_first_and_filled_then() {
        let words = command("prog '{size} x' {processor}-{rank} {share}{size} {other} '{print $1}'");
        assert_eq!(
            words.words(1e9, "a b; rm {size}", 3),
            ["prog", "1000000000 x", "a b; rm {size}-3", "10000000001000000000", "{other}", "{print $1}"]
        );
        assert_eq!(command("p {size}").words(0.5, "p", 0), ["p", "0.5"]);
        for bad in ["", "   ", "'' {size}", "solver", "solver '{size}"] {
            assert_eq!(UserCommand::parse(bad, SecondsFrom::Wall).unwrap_err().exit_code(), 2, "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_last_line_is_the_time_and_slowdown_multiplies_it() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let slow = Processor { slowdown: 3.0, ..Processor::named("slow") };
        let run = |text: &str| command(text).seconds(&slow, 1, 8.0, &halt);
        assert_eq!(run("sh -c 'echo chatter; echo {size}e-1; echo'").unwrap(), 0.8 * 3.0);
        assert_eq!(run("sh -c 'echo $APPORTION_RANK$APPORTION_SIZE'").unwrap(), 18.0 * 3.0);
        for (text, code, word) in [
            ("sh -c 'echo oh dear >&2; exit 3 # {size}'", 1, "oh dear"),
            ("sh -c 'echo word {size}'", 1, "not a number"),
            ("sh -c 'true {size}'", 1, "printed nothing"),
            ("sh -c 'echo -{size}'", 1, "-8 seconds"),
            ("sh -c 'echo NaN # {size}'", 1, "NaN"),
            ("sh -c 'echo inf # {size}'", 1, "inf"),
            ("sh -c 'echo 0 # {size}'", 1, "a time of 0 "),
            ("sh -c 'kill -9 $$ # {size}'", 1, "signal: 9"),
            ("./no-such-program {size}", 2, "cannot start"),
        ] {
            let error = run(text).unwrap_err();
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(word) && !error.to_string().contains('\n'), "{error}");
        }
    }

    /// Background processes of a program hold its pipes, and must not block us.
    #[cfg(unix)]
    #[test]
    fn leftovers_are_ended() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let run = command("sh -c 'sleep 3600 & echo {size}'").seconds(&Processor::named("p"), 0, 2.0, &halt);
        assert_eq!(run.unwrap(), 2.0);
    }

    #[cfg(unix)]
    #[test]
    fn a_stopped_run_ends_its_program() {
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                command("sh -c 'sleep {size} & wait'").seconds(&Processor::named("p"), 0, 3600.0, &halt)
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            monitor.stop();
            assert!(matches!(run.join().unwrap(), Err(Error::Interrupted)));
        });
    }
}

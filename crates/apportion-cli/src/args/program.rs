//! Flags for a user's program.

use super::numbers;
use apportion::error::{Error, Result};
use apportion::measure::{SecondsFrom, UserCommand};
use clap::{Args, ValueEnum};

/// Where a program's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SecondsName {
    /// Wall-clock time of the whole run.
    Wall,
    /// Last line of the program's output: a number of seconds and nothing else.
    Stdout,
}

impl From<SecondsName> for SecondsFrom {
    fn from(name: SecondsName) -> Self {
        match name {
            SecondsName::Wall => Self::Wall,
            SecondsName::Stdout => Self::Stdout,
        }
    }
}

/// Your own program.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// Command line of your program, such as './work {from} {to}' or './work {share}'.
    #[arg(long, value_name = "COMMAND", conflicts_with = "program", help_heading = "Your program")]
    pub command: Option<String>,
    /// Let a shell run the command: `sh -c COMMAND`.
    #[arg(long, requires = "command", help_heading = "Your program")]
    pub shell: bool,
    /// The same, word by word.
    #[arg(last = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<String>,
    /// Source of the program's time [default: wall].
    #[arg(long, value_enum, help_heading = "Your program")]
    pub seconds_from: Option<SecondsName>,
    /// Stop a program that runs longer than this, and fail [default: no limit].
    #[arg(long, value_name = "SECONDS", value_parser = timeout, help_heading = "For experts")]
    pub timeout: Option<f64>,
}

/// Says what placeholders a command has; the end of a command's help.
pub const PLACEHOLDERS: &str = "\
    A command is split into words as a shell does, but no shell runs it: pipes, redirections and the like need \
    --shell, and in it \"$APPORTION_PROCESSOR\" stands for {processor}. {share} (or {size}), the number of units, \
    {from} and {to}, their half-open range, {piece}, {processor} and {rank} are replaced; APPORTION_SIZE, \
    APPORTION_FROM, APPORTION_TO, APPORTION_PIECE, APPORTION_PROCESSOR and APPORTION_RANK are set, and OMP_NUM_THREADS to the number of the \
    processor's cores, if it has any. Where the platform file gives a processor start = \"ssh beta\", that command \
    starts its programs. ./work stands for your program.";

impl ProgramArgs {
    /// The program, if one is named.
    ///
    /// # Errors
    /// A command line that cannot be used, or flags without a program.
    pub fn command(&self) -> Result<Option<UserCommand>> {
        let seconds_from = self.seconds_from.map_or(SecondsFrom::Wall, Into::into);
        let command = match &self.command {
            Some(text) if self.shell => UserCommand::of_shell(text, seconds_from)?,
            Some(text) => UserCommand::parse(text, seconds_from)?,
            None if !self.program.is_empty() => UserCommand::of_words(&self.program, seconds_from)?,
            None => {
                let flags =
                    [("--seconds-from", self.seconds_from.is_some()), ("--timeout", self.timeout.is_some())];
                return match flags.iter().find(|(_, given)| *given) {
                    Some((flag, _)) => {
                        Err(Error::input(*flag, "is for your own program", "add --command './work {share}'"))
                    }
                    None => Ok(None),
                };
            }
        };
        Ok(Some(command.with_timeout(self.timeout)))
    }

    /// The program.
    ///
    /// # Errors
    /// None is named, or its command line cannot be used.
    pub fn required(&self) -> Result<UserCommand> {
        self.command()?.ok_or_else(|| {
            let remedy = "add --command './work {from} {to}', or -- ./work {from} {to} as the last words";
            Error::input("--command", "no program is named", remedy)
        })
    }
}

/// Reads a time limit.
pub fn timeout(text: &str) -> std::result::Result<f64, String> {
    let seconds = numbers::seconds(text)?;
    // 30 years, which every clock can count.
    (seconds > 0.0 && seconds <= 1e9)
        .then_some(seconds)
        .ok_or_else(|| "give a positive time such as 30, 500 ms or 10 min".into())
}

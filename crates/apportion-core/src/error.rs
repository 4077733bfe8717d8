//! The error type of this crate: what is wrong, where, and how to fix it.

use std::path::{Path, PathBuf};

/// All errors of this crate. A message is one line that states what is wrong, where, and how to fix it.
///
/// A message names a parameter of the library in backquotes, with a value if it asks for one: `` `block` ``,
/// `` `flow = ring` ``. A program with flags or fields of its own can replace these names by its own before
/// it shows the message; the `apportion` command does.
///
/// [`Error::exit_code`] distinguishes wrong input (2) from work that failed (1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is wrong: a field of a file, the value of a parameter, sizes that do not match. Exit code 2.
    #[error("{place}: {what} ({remedy})")]
    Input {
        /// The file with its line or field, or the parameter in backquotes.
        place: String,
        /// What is wrong, with the value.
        what: String,
        /// How to fix it.
        remedy: String,
    },
    /// A file cannot be read or written. Exit code 2; 1 if the disk or the memory is full.
    #[error("{}: cannot {action}: {source}", one_line(&path.display().to_string()))]
    File {
        /// The file.
        path: PathBuf,
        /// The operation: "read", "write", "create", …
        action: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The request is well-formed, but no plan or method can satisfy it. Exit code 1.
    #[error("{what} ({remedy})")]
    Infeasible {
        /// What cannot be satisfied.
        what: String,
        /// How to change the request.
        remedy: String,
    },
    /// One processor, or all processors together, would exceed the memory that the platform allows. Exit code
    /// 1.
    #[error("{what} ({remedy})")]
    TooLittleMemory {
        /// The processor, the bytes that it would hold, and the bytes that it may hold.
        what: String,
        /// How to need less memory.
        remedy: String,
    },
    /// The run finished, but its result failed verification. Exit code 1.
    #[error("the result is wrong: {what} (nothing was written)")]
    WrongResult {
        /// The first element or row that is wrong.
        what: String,
    },
    /// A worker failed, and the other workers were stopped. Exit code 1.
    #[error("processor {} was lost: {} (nothing was written)", one_line(processor), one_line(why))]
    WorkerLost {
        /// The worker's processor.
        processor: String,
        /// The worker's own message.
        why: String,
    },
    /// An error that all processes of a run agreed on, or an error with further information.
    #[error("{text}")]
    Agreed {
        /// The whole message.
        text: String,
        /// The exit code of the original error.
        code: u8,
    },
    /// The user stopped the run. Exit code 1; a command that a signal ends has 128 plus its number instead.
    #[error("interrupted (nothing was written)")]
    Interrupted,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Input`]. `place` is a file with its line or field, or a parameter in backquotes.
    pub fn input(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { place: brief(&place.into()), what: brief(&what.into()), remedy: brief(&remedy.into()) }
    }

    /// An [`Error::Infeasible`].
    pub fn infeasible(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Infeasible { what: brief(&what.into()), remedy: brief(&remedy.into()) }
    }

    /// An [`Error::File`].
    pub fn file(path: impl AsRef<Path>, action: &'static str, source: std::io::Error) -> Self {
        Self::File { path: path.as_ref().to_path_buf(), action, source }
    }

    /// The parameter of the library that is wrong, if it is one: `Some("block")`.
    pub fn parameter(&self) -> Option<&str> {
        let Self::Input { place, .. } = self else { return None };
        let (name, _) = place.strip_prefix('`')?.split_once('`')?;
        Some(name.split(" = ").next().unwrap_or(name))
    }

    /// The same error for a run whose finished parts are kept. `kept` states which parts, where they are, and
    /// how to continue the run.
    #[must_use]
    pub fn with_kept(self, kept: &str) -> Self {
        let text = self.to_string();
        let text = text.strip_suffix(" (nothing was written)").unwrap_or(&text);
        Self::Agreed { text: format!("{text} ({})", one_line(kept)), code: self.exit_code() }
    }

    /// The exit code for a process that ends with this error: 2 for wrong usage or input, 1 for work that
    /// failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Agreed { code, .. } => *code,
            Self::File { source, .. } if is_full(source) => 1,
            Self::Input { .. } | Self::File { .. } => 2,
            Self::Infeasible { .. }
            | Self::TooLittleMemory { .. }
            | Self::WrongResult { .. }
            | Self::WorkerLost { .. }
            | Self::Interrupted => 1,
        }
    }
}

/// True if there was no room for the data, on the disk or in memory, or nobody to read them: the request was right, but the work
/// failed.
fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull, WriteZero};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | WriteZero | OutOfMemory | BrokenPipe)
}

/// Characters of a statement that an error repeats: input that it quotes may be long.
const MOST_SAID: usize = 500;

/// One line of at most [`MOST_SAID`] characters; the middle of a longer one is left out.
fn brief(text: &str) -> String {
    let line = one_line(text);
    let count = line.chars().count();
    if count <= MOST_SAID {
        return line;
    }
    let first: String = line.chars().take(60).collect();
    let last: String = line.chars().skip(count - 100).collect();
    format!("{first} … {last}")
}

/// True for characters that command a terminal, end a line, change the direction of the text around them, or are not
/// to be seen.
pub(crate) fn unprintable(c: char) -> bool {
    let direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unseen = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    c.is_control() || direction || unseen || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Joins the lines of a text with spaces and escapes other control characters: an error is one line, and
/// names from a file cannot send commands to the terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut breaks = text
        .split(['\n', '\r', '\u{2028}', '\u{2029}'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .peekable();
    while let Some(part) = breaks.next() {
        for c in part.chars() {
            if unprintable(c) { line.extend(c.escape_default()) } else { line.push(c) }
        }
        if breaks.peek().is_some() {
            line.push(' ');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_input_is_not_repeated_in_whole() {
        let error = Error::input("file", format!("{:?} is wrong", vec![7; 5000]), "fix it").to_string();
        assert!(error.chars().count() < 200 && error.ends_with("is wrong (fix it)"), "{error}");
        assert_eq!(Error::input("a", "b\nc", "d").to_string(), "a: b c (d)");
    }

    #[test]
    fn the_parameter_that_is_wrong_is_known() {
        assert_eq!(Error::input("`flow = ring`", "b", "c").parameter(), Some("flow"));
        assert_eq!(Error::input("`block`", "b", "c").parameter(), Some("block"));
        assert_eq!(Error::input("p.toml: block", "b", "c").parameter(), None);
    }
}

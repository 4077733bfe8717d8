//! The one error type: what is wrong, where, and what to do about it.

use std::path::{Path, PathBuf};

/// Everything that can go wrong, worded for the person who has to mend it.
///
/// Every message is one line. [`Error::exit_code`] tells bad input (2) from work that failed (1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input or the usage is wrong: a file's field, a flag's value, a shape that does not fit.
    #[error("{place}: {what} ({remedy})")]
    Input {
        /// File, line or field, or the flag.
        place: String,
        /// What is wrong, with the value.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}", one_line(&path.display().to_string()))]
    File {
        /// The file.
        path: PathBuf,
        /// "read", "write", "create" …
        action: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The request is well-formed but no plan serves it.
    #[error("{what} ({remedy})")]
    Infeasible {
        /// What cannot be had.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Some processor, or all together, may not hold what they would have to.
    #[error("{what} ({remedy})")]
    TooLittleMemory {
        /// Whose memory, how much it would hold, and how much it may.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The run ended but its result did not pass verification.
    #[error("the result is wrong: {what} (nothing was written)")]
    WrongResult {
        /// The first element or row found wrong.
        what: String,
    },
    /// A worker died; the others were stopped.
    #[error("processor {} was lost: {} (nothing was written)", one_line(processor), one_line(why))]
    WorkerLost {
        /// Its name.
        processor: String,
        /// Its own last words.
        why: String,
    },
    /// What another process of the same run met, known to all of them; or a failure with more to say.
    #[error("{text}")]
    Agreed {
        /// Its own words.
        text: String,
        /// Its exit code.
        code: u8,
    },
    /// The user asked to stop.
    #[error("interrupted (nothing was written)")]
    Interrupted,
}

/// The library's result type.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Input`]: `place` is a file, field or flag.
    pub fn input(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input {
            place: one_line(&place.into()),
            what: one_line(&what.into()),
            remedy: one_line(&remedy.into()),
        }
    }

    /// An [`Error::Infeasible`].
    pub fn infeasible(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Infeasible { what: one_line(&what.into()), remedy: one_line(&remedy.into()) }
    }

    /// An [`Error::File`].
    pub fn file(path: impl AsRef<Path>, action: &'static str, source: std::io::Error) -> Self {
        Self::File { path: path.as_ref().to_path_buf(), action, source }
    }

    /// The same failure of a run whose finished parts are kept; `kept` says which, where, and how to go on.
    #[must_use]
    pub fn with_kept(self, kept: &str) -> Self {
        let text = self.to_string();
        let text = text.strip_suffix(" (nothing was written)").unwrap_or(&text);
        Self::Agreed { text: format!("{text} ({})", one_line(kept)), code: self.exit_code() }
    }

    /// Process exit code: 2 for bad usage or input, 1 for work that failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Agreed { code, .. } => *code,
            Self::Input { .. } | Self::File { .. } => 2,
            Self::Infeasible { .. }
            | Self::TooLittleMemory { .. }
            | Self::WrongResult { .. }
            | Self::WorkerLost { .. }
            | Self::Interrupted => 1,
        }
    }
}

/// Folds a text into one line, so that an error never spreads over several; other control characters (a file may
/// name its processors as it likes) are shown, not sent to the terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut breaks = text.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = breaks.next() {
        for c in part.chars() {
            if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
        }
        if breaks.peek().is_some() {
            line.push(' ');
        }
    }
    line
}

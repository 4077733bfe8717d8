//! Marks: the words by which the shell around a program on another machine tells that the program begins and how
//! it has ended, between what the program prints.
//!
//! Their moments are those of this machine's clock. Both marks travel equally long, so that the time between them
//! is the program's, without that of its launcher.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The longest mark, in bytes after its token.
const LONGEST: usize = 64;

/// The marks of one run.
#[derive(Debug)]
pub(super) struct Marks {
    /// Begins every mark; nothing else prints it.
    token: String,
    seen: Mutex<Vec<Mark>>,
}

/// One mark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    /// When it arrived.
    pub at: Instant,
    /// Its words.
    pub text: String,
}

impl Marks {
    /// The first word of the mark that begins a program.
    pub(crate) const BEGIN: &str = "begin";
    /// The first word of the mark after a program; its exit code follows.
    pub(crate) const END: &str = "end";

    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { token: format!("apportion-{}-{now:x}-{number}:", process::id()), seen: Mutex::new(Vec::new()) }
    }

    /// What begins the line of a mark.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Mark>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The marks whose first word is this one.
    pub(crate) fn of(&self, word: &str) -> Vec<Mark> {
        let is = |mark: &&Mark| mark.text.split(' ').next() == Some(word);
        self.seen().iter().filter(is).cloned().collect()
    }

    /// The moment at which the program has ended.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.of(Self::END).first().map(|mark| mark.at)
    }

    /// Takes the next bytes of a stream and returns those that are the program's. Bytes that may be the beginning
    /// of a mark stay in `unsure` until more are known.
    pub(crate) fn take(&self, unsure: &mut Vec<u8>, more: &[u8]) -> Vec<u8> {
        let (at, token) = (Instant::now(), self.token.as_bytes());
        unsure.extend_from_slice(more);
        let mut out = Vec::new();
        while let Some(start) = unsure.windows(token.len()).position(|window| window == token) {
            out.extend(unsure.drain(..start));
            let rest = &unsure[token.len()..];
            let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
                if rest.len() <= LONGEST {
                    return out;
                }
                out.extend(unsure.drain(..token.len()));
                continue;
            };
            let text = String::from_utf8_lossy(&rest[..length]).trim().to_owned();
            self.seen().push(Mark { at, text });
            unsure.drain(..=token.len() + length);
        }
        let kept = (0..token.len().min(unsure.len() + 1))
            .rev()
            .find(|&length| unsure.ends_with(&token[..length]))
            .unwrap_or(0);
        out.extend(unsure.drain(..unsure.len() - kept));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a stream is cut into pieces, the program's bytes and the marks are told apart.
    #[test]
    fn marks_are_found_in_every_piece() {
        let marks = Marks::new();
        let token = marks.token().to_owned();
        let half = &token[..token.len() / 2];
        let stream = format!("banner\n{token} begin\r\nab{half}{half}c{token} end 3\nlate{half}");
        let wanted = format!("banner\nab{half}{half}clate{half}");
        for piece in 1..=stream.len() {
            let marks = Marks { token: token.clone(), seen: Mutex::default() };
            let (mut unsure, mut out) = (Vec::new(), Vec::new());
            for bytes in stream.as_bytes().chunks(piece) {
                out.extend(marks.take(&mut unsure, bytes));
            }
            out.extend(unsure);
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "{piece}");
            let texts: Vec<String> = marks.seen().iter().map(|mark| mark.text.clone()).collect();
            assert_eq!(texts, ["begin", "end 3"], "{piece}");
            assert!(marks.end() >= marks.of(Marks::BEGIN).first().map(|mark| mark.at));
        }
    }

    #[test]
    fn a_token_without_a_line_is_the_programs() {
        let marks = Marks::new();
        let mut unsure = Vec::new();
        let text = format!("{}{}", marks.token(), "x".repeat(2 * LONGEST));
        let out = marks.take(&mut unsure, text.as_bytes());
        assert_eq!((String::from_utf8(out).unwrap(), unsure.len(), marks.end()), (text, 0, None));
        assert_ne!(Marks::new().token(), Marks::new().token());
    }
}

//! One line of a trace, parsed in place: no word is copied.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::Load;
use crate::simulate::collectives::{barrier, broadcast};
use crate::simulate::fluid::{Action, Then};
use std::str::FromStr;

/// Maximum number of words of an action, its rank included.
const MOST_WORDS: usize = 6;

/// The lines of a trace that are neither empty nor comments.
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: Line<'a>,
}

/// A line: `<rank> <action> …`.
pub(super) struct Line<'a> {
    place: &'a str,
    number: usize,
    ranks: usize,
    words: [&'a str; MOST_WORDS],
    /// Number of words; those beyond the maximum are only counted.
    count: usize,
}

impl<'a> Lines<'a> {
    /// Lines of the file `place`; valid ranks are below `ranks`.
    pub fn new(place: &'a str, text: &'a str, ranks: usize) -> Self {
        Self { text, at: 0, line: Line { place, number: 0, ranks, words: [""; MOST_WORDS], count: 0 } }
    }

    /// The next line that is neither empty nor a comment. Blanks and control characters separate words.
    pub fn next_line(&mut self) -> Option<&Line<'a>> {
        let (bytes, line) = (self.text.as_bytes(), &mut self.line);
        line.count = 0;
        let mut at = self.at;
        while let Some(&byte) = bytes.get(at) {
            if byte > b' ' && byte != b'#' {
                let end = bytes[at..].iter().position(|&b| b <= b' ' || b == b'#');
                let end = end.map_or(bytes.len(), |length| at + length);
                if line.count < MOST_WORDS {
                    line.words[line.count] = &self.text[at..end];
                }
                line.count += 1;
                at = end;
                continue;
            }
            if byte == b'#' {
                let rest = bytes[at..].iter().position(|&b| b == b'\n');
                at = rest.map_or(bytes.len(), |length| at + length);
                continue;
            }
            at += 1;
            if byte == b'\n' {
                line.number += 1;
                if line.count > 0 {
                    break;
                }
            }
        }
        if at == bytes.len() && bytes.last() != Some(&b'\n') && self.at < at {
            line.number += 1; // the last line, which has no end
        }
        self.at = at;
        (line.count > 0).then_some(&self.line)
    }
}

impl Line<'_> {
    pub fn error(&self, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}:{}", self.place, self.number), what, remedy)
    }

    fn number<T: FromStr>(&self, word: &str, what: &str) -> Result<T> {
        word.parse().map_err(|_| {
            self.error(format!("\"{word}\" is not a {what}"), "see smpirun's time-independent traces")
        })
    }

    fn known(&self, word: &str) -> Result<usize> {
        let rank: usize = self.number(word, "rank")?;
        if rank < self.ranks {
            return Ok(rank);
        }
        Err(self.error(
            format!("rank {rank} does not exist: there are {} ranks", self.ranks),
            "ranks count from 0",
        ))
    }

    /// The rank of the line.
    pub fn rank(&self) -> Result<usize> {
        self.known(self.words[0].strip_prefix('p').unwrap_or(self.words[0]))
    }

    fn amount(&self, word: &str, what: &str) -> Result<f64> {
        // Whole numbers of up to 15 digits are exact, and the most frequent ones.
        if (1..=15).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(word.bytes().fold(0, |sum: u64, digit| 10 * sum + u64::from(digit - b'0')) as f64);
        }
        let value: f64 = self.number(word, what)?;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err(self.error(format!("{value} is not a {what}"), "give a finite number of at least 0"))
    }

    fn load(&self, word: &str) -> Result<Load> {
        Ok(Load { horizontal: self.amount(word, "number of bytes")?, vertical: 0.0 })
    }

    fn tag(&self, word: &str) -> Result<u64> {
        self.number::<u32>(word, "tag").map(u64::from)
    }

    /// Appends its actions to `script`.
    pub fn actions(&self, rank: usize, script: &mut Vec<Action>) -> Result<()> {
        let words = &self.words[1..self.count.clamp(1, MOST_WORDS)];
        match words {
            ["init" | "finalize"] | ["init", _] => {}
            ["compute", flops] => script.push(Action::Compute(self.amount(flops, "number of flops")?)),
            [kind @ ("send" | "isend"), to, tag, bytes] => {
                let then = if *kind == "send" { Then::Wait } else { Then::Remember };
                let (to, tag) = (Rank(self.known(to)?), self.tag(tag)?);
                script.push(Action::Send { to, tag, load: self.load(bytes)?, then });
            }
            [kind @ ("recv" | "irecv"), from, tag, rest @ ..] if rest.len() <= 1 => {
                let then = if *kind == "recv" { Then::Wait } else { Then::Remember };
                rest.iter().try_for_each(|bytes| self.load(bytes).map(drop))?;
                script.push(Action::Receive { from: Rank(self.known(from)?), tag: self.tag(tag)?, then });
            }
            ["wait", from, to, tag] => {
                let (from, to) = (Rank(self.known(from)?), Rank(self.known(to)?));
                script.push(Action::Await { from, to, tag: self.tag(tag)? });
            }
            ["waitall"] => script.push(Action::AwaitAll),
            ["bcast", bytes, rest @ ..] if rest.len() <= 1 => {
                let root = rest.first().map_or(Ok(0), |word| self.known(word))?;
                broadcast(rank, root, self.ranks, self.load(bytes)?, script);
            }
            ["barrier"] => barrier(rank, self.ranks, script),
            [] => {
                return Err(self.error("the action is missing", "see smpirun's time-independent traces"));
            }
            [action, ..] => {
                let what = format!("unknown action \"{action}\" with {} values", self.count - 2);
                let remedy = "use init, finalize, compute F, send/isend DST TAG BYTES, \
                    recv/irecv SRC TAG [BYTES], wait SRC DST TAG, waitall, bcast BYTES [ROOT] or barrier";
                return Err(self.error(what, remedy));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the same result as splitting with the standard library into lines, comments and words.
    #[test]
    fn lines_are_split_as_by_the_standard_library() {
        let text = "0 init\r\n\n  # all\n1\tsend 2 3\u{c} 4#5 6\n0 a b c d e f g\n#\n \n7 été #x\n8 last";
        let expected: Vec<(usize, Vec<&str>)> = text
            .lines()
            .enumerate()
            .map(|(i, l)| (i + 1, l.split('#').next().unwrap().split_ascii_whitespace().collect::<Vec<_>>()))
            .filter(|l| !l.1.is_empty())
            .collect();
        let mut lines = Lines::new("t", text, 9);
        for (number, words) in expected {
            let line = lines.next_line().unwrap();
            assert_eq!((line.number, line.count), (number, words.len()));
            assert_eq!(line.words[..words.len().min(MOST_WORDS)], words[..words.len().min(MOST_WORDS)]);
        }
        assert!(lines.next_line().is_none());
    }

    #[test]
    fn whole_numbers_are_read_as_by_the_standard_library() {
        let line = Line { place: "t", number: 1, ranks: 1, words: [""; MOST_WORDS], count: 0 };
        for text in ["0", "7", "00012", "999999999999999", "123456789012345678", "1e9", "2.5", ".5"] {
            assert_eq!(line.amount(text, "number").unwrap(), text.parse::<f64>().unwrap());
        }
        for text in ["", "-1", "nan", "inf", "1e999", "0x10", "1 2"] {
            assert_eq!(line.amount(text, "number").unwrap_err().exit_code(), 2, "{text}");
        }
    }
}

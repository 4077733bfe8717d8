//! One line of a trace, parsed in place: no word is copied.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::Load;
use crate::simulate::collectives::Member;
use crate::simulate::fluid::{Action, Then};
use std::str::FromStr;

/// Bytes of SimGrid's datatypes by number, as its replay of version 3.32 counts them. 0 is a double.
const DATATYPES: [u8; 60] = [
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16,
    8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32, 1, 8, 16, 32, 0, 0, 1, 8, 8,
];
/// Bytes of an element without a datatype after `init` with a value.
const DOUBLE: f64 = 8.0;
/// The tag of `sendRecv`, whose own is not recorded.
const SENDRECV: u64 = 0;

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
    /// Bytes of an element without a datatype.
    element: f64,
    words: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    /// Lines of the file `place`; valid ranks are below `ranks`.
    pub fn new(place: &'a str, text: &'a str, ranks: usize) -> Self {
        Self { text, at: 0, line: Line { place, number: 0, ranks, element: 1.0, words: Vec::new() } }
    }

    /// The next line that is neither empty nor a comment. Blanks and control characters separate words.
    pub fn next_line(&mut self) -> Option<&Line<'a>> {
        let (bytes, line) = (self.text.as_bytes(), &mut self.line);
        line.words.clear();
        let mut at = self.at;
        while let Some(&byte) = bytes.get(at) {
            if byte > b' ' && byte != b'#' {
                let end = bytes[at..].iter().position(|&b| b <= b' ' || b == b'#');
                let end = end.map_or(bytes.len(), |length| at + length);
                line.words.push(&self.text[at..end]);
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
                if !line.words.is_empty() {
                    break;
                }
            }
        }
        if at == bytes.len() && bytes.last() != Some(&b'\n') && self.at < at {
            line.number += 1; // the last line, which has no end
        }
        self.at = at;
        match line.words[..] {
            [] => return None,
            [_, "init"] => line.element = 1.0,
            [_, "init", _] => line.element = DOUBLE,
            _ => {}
        }
        Some(&self.line)
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
        if word.starts_with('-') {
            return Err(self.error(
                format!("rank {word} stands for MPI_ANY_SOURCE or MPI_PROC_NULL, which are recorded alike"),
                "name the rank in the program, or leave the message out, and record it again",
            ));
        }
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

    /// The bytes of an element of the datatype that `word` names, or of the trace's own.
    fn element(&self, word: Option<&&str>) -> Result<f64> {
        let Some(word) = word else { return Ok(self.element) };
        let size = word.parse().ok().and_then(|number: usize| DATATYPES.get(number));
        size.map(|size| f64::from(*size)).ok_or_else(|| {
            self.error(
                format!("\"{word}\" is not the number of a datatype of MPI"),
                "send elements of a predefined datatype: the size of others is not recorded",
            )
        })
    }

    fn bytes(&self, count: &str, datatype: Option<&&str>) -> Result<f64> {
        Ok(self.amount(count, "number of elements")? * self.element(datatype)?)
    }

    /// The bytes of each rank's part.
    fn parts(&self, counts: &[&str], datatype: Option<&&str>) -> Result<Vec<f64>> {
        counts.iter().map(|count| self.bytes(count, datatype)).collect()
    }

    fn root(&self, word: Option<&&str>) -> Result<usize> {
        word.map_or(Ok(0), |word| self.known(word))
    }

    fn tag(&self, word: &str) -> Result<u64> {
        self.number::<u32>(word, "tag").map(u64::from)
    }

    fn compute(&self, flops: &str, script: &mut Vec<Action>) -> Result<()> {
        script.push(Action::Compute(self.amount(flops, "number of flops")?));
        Ok(())
    }

    /// Appends its actions to `script`.
    pub fn actions(&self, rank: usize, script: &mut Vec<Action>) -> Result<()> {
        let Some((&action, values)) = self.words[1..].split_first() else {
            return Err(self.error("the action is missing", "see smpirun's time-independent traces"));
        };
        match (action, values) {
            ("init", [] | [_]) | ("finalize", []) => {}
            // Where the call stands in the program, and communicators: of no effect on time.
            ("location" | "comm_size" | "comm_split" | "comm_dup", _) => {}
            ("compute", [flops]) => self.compute(flops, script)?,
            ("sleep", [seconds]) => {
                script.push(Action::Sleep(self.amount(seconds, "number of seconds")?));
            }
            ("send" | "isend", [to, tag, count, rest @ ..]) if rest.len() <= 1 => {
                let then = if action == "send" { Then::Wait } else { Then::Remember };
                let (to, tag) = (Rank(self.known(to)?), self.tag(tag)?);
                let load = Load { horizontal: self.bytes(count, rest.first())?, vertical: 0.0 };
                script.push(Action::Send { to, tag, load, then });
            }
            ("recv" | "irecv", [from, tag, rest @ ..]) if rest.len() <= 2 => {
                let then = if action == "recv" { Then::Wait } else { Then::Remember };
                if let [count, datatype @ ..] = rest {
                    self.bytes(count, datatype.first())?;
                }
                script.push(Action::Receive { from: Rank(self.known(from)?), tag: self.tag(tag)?, then });
            }
            ("wait" | "test", [from, to, tag]) => {
                let (from, to, tag) = (Rank(self.known(from)?), Rank(self.known(to)?), self.tag(tag)?);
                script.push(match action {
                    "wait" => Action::Await { from, to, tag },
                    _ => Action::Test { from, to, tag },
                });
            }
            ("waitall", [] | [_]) => script.push(Action::AwaitAll),
            _ => return self.collective(action, values, Member { rank, ranks: self.ranks, script }),
        }
        Ok(())
    }

    /// Appends the actions of a collective operation, or of `sendRecv`.
    fn collective(&self, action: &str, values: &[&str], mut member: Member<'_>) -> Result<()> {
        let ranks = member.ranks;
        match (action, values) {
            ("barrier", []) => member.barrier(),
            ("bcast", [count, rest @ ..]) if rest.len() <= 2 => {
                member.broadcast(self.root(rest.first())?, self.bytes(count, rest.get(1))?);
            }
            ("reduce", [count, flops, rest @ ..]) if rest.len() <= 2 => {
                member.gather(self.root(rest.first())?, self.bytes(count, rest.get(1))?);
                self.compute(flops, member.script)?;
            }
            ("allreduce", [count, flops, rest @ ..]) if rest.len() <= 1 => {
                member.allreduce(self.bytes(count, rest.first())?);
                self.compute(flops, member.script)?;
            }
            ("scan" | "exscan", [count, flops, rest @ ..]) if rest.len() <= 1 => {
                member.scan(self.bytes(count, rest.first())?);
                self.compute(flops, member.script)?;
            }
            ("alltoall", [count, _, rest @ ..]) if rest.len() <= 2 => {
                member.alltoall(self.bytes(count, rest.first())?);
            }
            ("allgather", [count, _, rest @ ..]) if rest.len() <= 2 => {
                let bytes = self.bytes(count, rest.first())?;
                member.exchange_all(|_| bytes);
            }
            ("gather", [count, _, rest @ ..]) if rest.len() <= 3 => {
                member.gather(self.root(rest.first())?, self.bytes(count, rest.get(1))?);
            }
            ("scatter", [count, _, rest @ ..]) if rest.len() <= 3 => {
                let bytes = self.bytes(count, rest.get(1))?;
                member.scatter(self.root(rest.first())?, |_| bytes);
            }
            ("gatherv", [count, rest @ ..]) if (ranks..=ranks + 3).contains(&rest.len()) => {
                member.gather(self.root(rest.get(ranks))?, self.bytes(count, rest.get(ranks + 1))?);
            }
            ("scatterv", counts) if (ranks + 1..=ranks + 4).contains(&counts.len()) => {
                let parts = self.parts(&counts[..ranks], counts.get(ranks + 2))?;
                member.scatter(self.root(counts.get(ranks + 1))?, |to| parts[to]);
            }
            ("allgatherv", [count, rest @ ..]) if (ranks..=ranks + 2).contains(&rest.len()) => {
                let bytes = self.bytes(count, rest.get(ranks))?;
                member.exchange_all(|_| bytes);
            }
            ("alltoallv", [_, counts @ ..]) if [1, 3].map(|n| n + 2 * ranks).contains(&counts.len()) => {
                let parts = self.parts(&counts[..ranks], counts.get(2 * ranks + 1))?;
                member.exchange_all(|to| parts[to]);
            }
            ("reducescatter", counts) if (ranks + 1..=ranks + 2).contains(&counts.len()) => {
                let elements = counts[..ranks].iter().map(|count| self.amount(count, "number of elements"));
                let elements = elements.collect::<Result<Vec<_>>>()?;
                member.reduce_scatter(&elements, self.element(counts.get(ranks + 1))?);
                self.compute(counts[ranks], member.script)?;
            }
            ("sendRecv", [count, to, _, from, rest @ ..]) if rest.len() <= 2 => {
                let (to, from) = (self.known(to)?, self.known(from)?);
                member.send_and_receive(to, self.bytes(count, rest.first())?, from, SENDRECV);
            }
            _ => return Err(self.unknown(action, values.len(), ranks)),
        }
        Ok(())
    }

    fn unknown(&self, action: &str, values: usize, ranks: usize) -> Error {
        let what = format!("unknown action \"{action}\" with {values} values, in a trace of {ranks} ranks");
        let remedy = "use init, finalize, compute F, sleep S, send/isend DST TAG COUNT [TYPE], recv/irecv SRC TAG \
            [COUNT [TYPE]], wait/test SRC DST TAG, waitall, sendRecv, barrier, bcast, reduce, allreduce, scan, \
            exscan, alltoall[v], [all]gather[v], scatter[v], reducescatter, comm_size or location, as smpirun 3.32 \
            records them";
        self.error(what, remedy)
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
            assert_eq!((line.number, &line.words), (number, &words));
        }
        assert!(lines.next_line().is_none());
    }

    #[test]
    fn whole_numbers_are_read_as_by_the_standard_library() {
        let line = Line { place: "t", number: 1, ranks: 1, element: 1.0, words: Vec::new() };
        for text in ["0", "7", "00012", "999999999999999", "123456789012345678", "1e9", "2.5", ".5"] {
            assert_eq!(line.amount(text, "number").unwrap(), text.parse::<f64>().unwrap());
        }
        for text in ["", "-1", "nan", "inf", "1e999", "0x10", "1 2"] {
            assert_eq!(line.amount(text, "number").unwrap_err().exit_code(), 2, "{text}");
        }
    }
}

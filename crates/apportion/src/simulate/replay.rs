//! Time-independent traces: what each rank of an MPI program did, without saying when.
//!
//! The format of `smpirun -replay` (Desprez, Markomanolis, Quinson and Suter, PSTI 2011): a line is `<rank> <action> …`.

use super::collectives::{barrier, broadcast};
use super::fluid::{Action, Then};
use crate::error::{Error, Result};
use crate::platform::Load;
use crate::rect::Rank;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most ranks that traces may have.
const MOST_RANKS: usize = 1_000_000;
/// Most actions of all ranks together, collectives taken apart: 3 GiB of them.
const MOST_ACTIONS: usize = 1 << 26;

/// Reads the traces that a list names, one file a rank; a directory stands for the `traces.txt` in it. A name is looked
/// for beside the list, then from the current directory. A list of one file holds all ranks' actions.
///
/// Understood: `init`, `finalize`, `compute flops`, `send dst tag bytes`, `recv src tag [bytes]`, `isend`, `irecv`, `wait src
/// dst tag`, `waitall`, `bcast bytes [root]` (a binomial tree), `barrier` (to rank 0 and back); `#` begins a comment.
///
/// # Errors
/// A file that cannot be read, or a line that is not understood (with its file and line).
pub fn read_traces(list: &Path) -> Result<Vec<Vec<Action>>> {
    let list = if list.is_dir() { list.join("traces.txt") } else { list.to_path_buf() };
    let text = std::fs::read_to_string(&list).map_err(|e| Error::file(&list, "read", e))?;
    let names: Vec<&str> = text.split_whitespace().collect();
    if names.is_empty() || names.len() > MOST_RANKS {
        return Err(Error::input(
            list.display().to_string(),
            format!("names {} traces", names.len()),
            "give one file name a line, one for each rank",
        ));
    }
    let read = |name: &&str| {
        let beside = list.parent().unwrap_or(Path::new("")).join(name);
        let path = if beside.exists() { beside } else { PathBuf::from(name) };
        let text = std::fs::read_to_string(&path).map_err(|e| Error::file(&path, "read", e))?;
        Ok((path.display().to_string(), text))
    };
    parse_traces(&names.iter().map(read).collect::<Result<Vec<_>>>()?)
}

/// The actions of traces given as (name, text), one a rank, or one for all; see [`read_traces`].
///
/// # Errors
/// A line that is not understood, with its file and line.
pub fn parse_traces(files: &[(String, String)]) -> Result<Vec<Vec<Action>>> {
    let mut ranks = files.len();
    if let [(place, text)] = files {
        for line in lines(place, text, MOST_RANKS) {
            ranks = ranks.max(line.rank()? + 1);
        }
    }
    let mut scripts: Vec<Vec<Action>> = vec![Vec::new(); ranks];
    let mut actions = 0;
    for (number, (place, text)) in files.iter().enumerate() {
        for line in lines(place, text, ranks) {
            let rank = line.rank()?;
            if files.len() > 1 && rank != number {
                let what = format!("is of rank {rank} in the trace of rank {number}");
                return Err(line.error(what, "give each rank a file of its own, in order"));
            }
            let before = scripts[rank].len();
            line.actions(rank, &mut scripts[rank])?;
            actions += scripts[rank].len() - before;
            if actions > MOST_ACTIONS {
                return Err(
                    line.error(format!("more than {MOST_ACTIONS} actions"), "replay fewer iterations")
                );
            }
        }
    }
    Ok(scripts)
}

/// The lines that say something.
fn lines<'a>(place: &'a str, text: &'a str, ranks: usize) -> impl Iterator<Item = Line<'a>> {
    text.lines().enumerate().filter_map(move |(i, line)| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let rank = words.next()?;
        Some(Line { place, number: i + 1, ranks, rank, words: words.collect() })
    })
}

struct Line<'a> {
    place: &'a str,
    number: usize,
    ranks: usize,
    rank: &'a str,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn error(&self, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}:{}", self.place, self.number), what, remedy)
    }

    fn number<T: FromStr>(&self, word: &str, what: &str) -> Result<T> {
        word.parse().map_err(|_| {
            self.error(format!("\"{word}\" is no {what}"), "see smpirun's time-independent traces")
        })
    }

    fn known(&self, word: &str) -> Result<usize> {
        let rank: usize = self.number(word, "rank")?;
        if rank < self.ranks {
            return Ok(rank);
        }
        Err(self.error(format!("there is no rank {rank}: there are {}", self.ranks), "ranks count from 0"))
    }

    fn rank(&self) -> Result<usize> {
        self.known(self.rank.strip_prefix('p').unwrap_or(self.rank))
    }

    fn amount(&self, word: &str, what: &str) -> Result<f64> {
        let value: f64 = self.number(word, what)?;
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err(self.error(format!("{value} is no {what}"), "give a finite number of at least 0"))
    }

    fn load(&self, word: &str) -> Result<Load> {
        Ok(Load { horizontal: self.amount(word, "number of bytes")?, vertical: 0.0 })
    }

    /// Its actions, at the end of those of before.
    fn actions(&self, rank: usize, script: &mut Vec<Action>) -> Result<()> {
        let words = self.words.as_slice();
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
                return Err(self.error("no action follows the rank", "see smpirun's time-independent traces"));
            }
            [action, ..] => {
                let what = format!("cannot make out \"{action}\" with {} values", words.len() - 1);
                let remedy = "init, finalize, compute F, send/isend DST TAG BYTES, recv/irecv SRC TAG [BYTES], wait SRC DST \
                    TAG, waitall, bcast BYTES [ROOT] and barrier are understood";
                return Err(self.error(what, remedy));
            }
        }
        Ok(())
    }

    fn tag(&self, word: &str) -> Result<u64> {
        self.number::<u32>(word, "tag").map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Vec<Action>>> {
        parse_traces(&[("t".into(), text.into())])
    }

    #[test]
    fn lines_become_actions() {
        let scripts = parse(
            "0 init\n1 init\n0 compute 1e9 # work\n\n0 isend 1 7 100\n1 irecv 0 7 100\n1 wait 0 1 7\n0 waitall\n0 finalize\n",
        );
        let scripts = scripts.unwrap();
        assert_eq!(scripts[0][0], Action::Compute(1e9));
        assert_eq!(scripts[0][2], Action::AwaitAll);
        assert_eq!(scripts[1][1], Action::Await { from: Rank(0), to: Rank(1), tag: 7 });
    }

    #[test]
    fn defects_are_refused_by_line() {
        for (text, what) in [
            ("0 send 0 7 100\n0 sned 1 7 100\n", "t:2: cannot make out \"sned\""),
            ("0 compute nan\n", "t:1: NaN is no number of flops"),
            ("0 compute -1\n", "number of flops"),
            ("0 send 4 1 1\n", "no rank 4"),
            ("0 send 0 -1 1\n", "no tag"),
            ("x compute 1\n", "t:1: \"x\" is no rank"),
            ("99999999 compute 1\n", "no rank 99999999"),
            ("0\n", "no action"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(what), "{error}");
        }
        let two = [("a".to_string(), "0 init\n".to_string()), ("b".to_string(), "0 init\n".to_string())];
        assert!(parse_traces(&two).unwrap_err().to_string().contains("b:1: is of rank 0"));
    }
}

//! Time-independent traces: the actions of each rank of an MPI program, without times.
//!
//! The format is that of `smpirun -replay` (Desprez, Markomanolis, Quinson and Suter, PSTI 2011): a line is
//! `<rank> <action> …`.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::input::read_up_to;
use crate::platform::Load;
use crate::simulate::collectives::Member;
use crate::simulate::fluid::{Action, Then};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Maximum number of ranks of a trace.
const MOST_RANKS: usize = 1_000_000;
/// Maximum number of actions of all ranks, with collectives expanded: 3 GiB.
const MOST_ACTIONS: usize = 1 << 26;
/// Maximum size of one file, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the traces that a list names, one file per rank. A directory means its `traces.txt`. File names are
/// relative to the list's directory, then to the current directory. A list of one file contains the actions
/// of all ranks. O(bytes) in total.
///
/// Supported actions, as SimGrid 3.32 records and replays them: `init`, `finalize`, `compute flops`, `sleep
/// seconds`, `send dst tag count`, `recv src tag [count]`, `isend`, `irecv`, `wait src dst tag`, `test`,
/// `waitall`, `sendRecv`, `barrier`, `bcast count [root]`, `reduce`, `allreduce`, `scan`, `exscan`, `gather`,
/// `allgather`, `scatter`, `alltoall` and their forms with `v`, `reducescatter`. `location`, `comm_size`,
/// `comm_split` and `comm_dup` take no time. A datatype may end the line; without one, an element is a byte,
/// or a double after an `init` with a value. `#` starts a comment.
///
/// # Errors
/// A file that cannot be read, or a line that cannot be parsed (with its file and line): the first error by
/// rank.
pub fn read_traces(list: &Path) -> Result<Vec<Vec<Action>>> {
    let list = if list.is_dir() { list.join("traces.txt") } else { list.to_path_buf() };
    let text = read_up_to(&list, MOST_BYTES)?;
    let names: Vec<&str> = text.split_whitespace().collect();
    if names.is_empty() || names.len() > MOST_RANKS {
        return Err(Error::input(
            list.display().to_string(),
            format!("names {} traces", names.len()),
            "write one file name per line, one for each rank",
        ));
    }
    let path_of = |name: &str| {
        let beside = list.parent().unwrap_or(Path::new("")).join(name);
        if beside.exists() { beside } else { PathBuf::from(name) }
    };
    if let [name] = names[..] {
        let path = path_of(name);
        return parse_traces(&[(path.display().to_string(), read_up_to(&path, MOST_BYTES)?)]);
    }
    let actions = Cell::new(0);
    let mut scripts = Vec::with_capacity(names.len());
    for (rank, name) in names.iter().enumerate() {
        let path = path_of(name);
        let text = read_up_to(&path, MOST_BYTES)?;
        scripts.push(trace_of(rank, &path.display().to_string(), &text, names.len(), &actions)?);
    }
    within(&list.display().to_string(), &actions)?;
    Ok(scripts)
}

/// Parses the actions of traces given as (name, text), one per rank, or one for all; see [`read_traces`].
///
/// # Errors
/// A line that cannot be parsed, with its file and line.
pub fn parse_traces(files: &[(String, String)]) -> Result<Vec<Vec<Action>>> {
    let actions = Cell::new(0);
    let [(place, text)] = files else {
        let each = files.iter().enumerate();
        let scripts =
            each.map(|(rank, (place, text))| trace_of(rank, place, text, files.len(), &actions)).collect();
        within("the traces", &actions)?;
        return scripts;
    };
    let mut ranks = 1;
    let mut lines = Lines::new(place, text, MOST_RANKS);
    while let Some(line) = lines.next_line() {
        ranks = ranks.max(line.rank()? + 1);
    }
    let mut scripts: Vec<Vec<Action>> = vec![Vec::new(); ranks];
    let mut lines = Lines::new(place, text, ranks);
    let mut count = 0;
    while let Some(line) = lines.next_line() {
        let rank = line.rank()?;
        let before = scripts[rank].len();
        line.actions(rank, &mut scripts[rank])?;
        count += scripts[rank].len() - before;
        if count > MOST_ACTIONS {
            actions.set(count);
            break;
        }
    }
    within(place, &actions)?;
    Ok(scripts)
}

/// Parses one rank's actions. Stops when the total of all ranks, counted in `actions`, is too large.
fn trace_of(
    rank: usize,
    place: &str,
    text: &str,
    ranks: usize,
    actions: &Cell<usize>,
) -> Result<Vec<Action>> {
    /// Actions between two updates of the common count.
    const LOOK: usize = 1024;
    // Lines are rarely shorter than this many bytes.
    let mut script = Vec::with_capacity(text.len() / 16);
    let mut lines = Lines::new(place, text, ranks);
    let mut counted = 0;
    while let Some(line) = lines.next_line() {
        let of = line.rank()?;
        if of != rank {
            let what = format!("belongs to rank {of}, in the trace of rank {rank}");
            return Err(line.error(what, "give each rank its own file, in the order of ranks"));
        }
        line.actions(rank, &mut script)?;
        if script.len() - counted >= LOOK {
            actions.set(actions.get() + script.len() - counted);
            counted = script.len();
            if actions.get() > MOST_ACTIONS {
                break;
            }
        }
    }
    actions.set(actions.get() + script.len() - counted);
    Ok(script)
}

fn within(place: &str, actions: &Cell<usize>) -> Result<()> {
    if actions.get() <= MOST_ACTIONS {
        return Ok(());
    }
    Err(Error::input(place, format!("more than {MOST_ACTIONS} actions"), "replay fewer iterations"))
}

// One line of a trace, parsed in place: no word is copied.

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
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: Line<'a>,
}

/// A line: `<rank> <action> …`.
struct Line<'a> {
    place: &'a str,
    number: usize,
    ranks: usize,
    /// Bytes of an element without a datatype.
    element: f64,
    words: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    /// Lines of the file `place`; valid ranks are below `ranks`.
    pub(crate) fn new(place: &'a str, text: &'a str, ranks: usize) -> Self {
        Self { text, at: 0, line: Line { place, number: 0, ranks, element: 1.0, words: Vec::new() } }
    }

    /// The next line that is neither empty nor a comment. Blanks and control characters separate words.
    pub(crate) fn next_line(&mut self) -> Option<&Line<'a>> {
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
    pub(crate) fn error(&self, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}:{}", self.place, self.number), what, remedy)
    }

    fn number<T: FromStr>(&self, word: &str, what: &str) -> Result<T> {
        word.parse().map_err(|_| {
            self.error(format!("\"{word}\" is not a {what}"), "see smpirun's time-independent traces")
        })
    }

    fn parse_rank(&self, word: &str) -> Result<usize> {
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
    pub(crate) fn rank(&self) -> Result<usize> {
        self.parse_rank(self.words[0].strip_prefix('p').unwrap_or(self.words[0]))
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
        word.map_or(Ok(0), |word| self.parse_rank(word))
    }

    fn tag(&self, word: &str) -> Result<u64> {
        self.number::<u32>(word, "tag").map(u64::from)
    }

    fn compute(&self, flops: &str, script: &mut Vec<Action>) -> Result<()> {
        script.push(Action::Compute(self.amount(flops, "number of flops")?));
        Ok(())
    }

    /// Appends its actions to `script`.
    pub(crate) fn actions(&self, rank: usize, script: &mut Vec<Action>) -> Result<()> {
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
                let (to, tag) = (Rank(self.parse_rank(to)?), self.tag(tag)?);
                let load = Load { horizontal: self.bytes(count, rest.first())?, vertical: 0.0 };
                script.push(Action::Send { to, tag, load, then });
            }
            ("recv" | "irecv", [from, tag, rest @ ..]) if rest.len() <= 2 => {
                let then = if action == "recv" { Then::Wait } else { Then::Remember };
                if let [count, datatype @ ..] = rest {
                    self.bytes(count, datatype.first())?;
                }
                script.push(Action::Receive {
                    from: Rank(self.parse_rank(from)?),
                    tag: self.tag(tag)?,
                    then,
                });
            }
            ("wait" | "test", [from, to, tag]) => {
                let (from, to, tag) =
                    (Rank(self.parse_rank(from)?), Rank(self.parse_rank(to)?), self.tag(tag)?);
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
                let (to, from) = (self.parse_rank(to)?, self.parse_rank(from)?);
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
    use crate::geometry::Rank;

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

    /// Elements are bytes, doubles after an `init` with a value, or what the line says.
    #[test]
    fn counts_are_multiplied_by_the_size_of_an_element() {
        let bytes = |text: &str| {
            let scripts = parse(&format!("{text}1 init\n")).unwrap();
            match scripts[0][0] {
                Action::Send { load, .. } => load.horizontal,
                other => panic!("{other:?}"),
            }
        };
        for (text, expected) in [
            ("0 init\n0 send 1 0 1e6\n", 1e6),
            ("0 init 0\n0 send 1 0 1e6\n", 8e6),
            ("0 init 1\n0 isend 1 0 1e6\n", 8e6),
            ("0 init 1\n0 bcast 10\n", 80.0),
            ("0 init 1\n0 bcast 10 0 1\n", 40.0),
            ("0 init\n0 send 1 0 10 3\n", 20.0),
            ("0 init\n0 location /a/b.c 7\n0 comm_size 2\n0 sendRecv 10 1 10 1 5 5\n", 40.0),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn defects_are_refused_by_line() {
        for (text, what) in [
            ("0 send 0 7 100\n0 sned 1 7 100\n", "t:2: unknown action \"sned\""),
            ("0 compute nan\n", "t:1: NaN is not a number of flops"),
            ("0 compute -1\n", "number of flops"),
            ("0 send 4 1 1\n", "rank 4 does not exist"),
            ("0 send 0 -1 1\n", "is not a tag"),
            ("0 ibarrier\n", "unknown action \"ibarrier\""),
            ("0 recv -333 -444 10 4\n", "MPI_ANY_SOURCE"),
            ("0 bcast 10 0 -1\n", "\"-1\" is not the number of a datatype"),
            ("0 bcast 10 0 60\n", "\"60\" is not the number of a datatype"),
            (
                "0 reducescatter 1 2 3 0 0\n",
                "unknown action \"reducescatter\" with 5 values, in a trace of 1 ranks",
            ),
            ("x compute 1\n", "t:1: \"x\" is not a rank"),
            ("99999999 compute 1\n", "rank 99999999 does not exist"),
            ("0\n", "the action is missing"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(what), "{error}");
        }
        let two = [("a".to_string(), "0 init\n".to_string()), ("b".to_string(), "0 init\n".to_string())];
        assert!(parse_traces(&two).unwrap_err().to_string().contains("b:1: belongs to rank 0"));
    }

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

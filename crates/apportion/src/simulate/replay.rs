//! Time-independent traces: the actions of each rank of an MPI program, without times.
//!
//! The format is that of `smpirun -replay` (Desprez, Markomanolis, Quinson and Suter, PSTI 2011): a line is
//! `<rank> <action> …`.

mod line;

use super::fluid::Action;
use crate::error::{Error, Result};
use crate::input::read_up_to;
use crate::threads::share_out;
use line::Lines;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of ranks of a trace.
const MOST_RANKS: usize = 1_000_000;
/// Maximum number of actions of all ranks, with collectives expanded: 3 GiB.
const MOST_ACTIONS: usize = 1 << 26;
/// Maximum size of one file, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the traces that a list names, one file per rank. A directory means its `traces.txt`. File names are
/// relative to the list's directory, then to the current directory. A list of one file contains the actions
/// of all ranks. As many threads as there are cores read the files; O(bytes) in total.
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
    let actions = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let numbered: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    let read = |&(rank, name): &(usize, &str)| {
        let path = path_of(name);
        let text = read_up_to(&path, MOST_BYTES)?;
        trace_of(rank, (&path.display().to_string(), &text), names.len(), &actions)
    };
    let mut parts: Vec<Option<Result<Vec<Action>>>> = names.iter().map(|_| None).collect();
    share_out(numbered.iter().zip(&mut parts).collect(), threads, |(file, part)| *part = Some(read(file)));
    within(&list.display().to_string(), &actions)?;
    parts.into_iter().flatten().collect()
}

/// Parses the actions of traces given as (name, text), one per rank, or one for all; see [`read_traces`].
///
/// # Errors
/// A line that cannot be parsed, with its file and line.
pub fn parse_traces(files: &[(String, String)]) -> Result<Vec<Vec<Action>>> {
    let actions = AtomicUsize::new(0);
    let [(place, text)] = files else {
        let each = files.iter().enumerate();
        let scripts =
            each.map(|(rank, (place, text))| trace_of(rank, (place, text), files.len(), &actions)).collect();
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
            actions.store(count, Ordering::Relaxed);
            break;
        }
    }
    within(place, &actions)?;
    Ok(scripts)
}

/// Parses one rank's actions. Stops when the total of all ranks, counted in `actions`, is too large.
fn trace_of(
    rank: usize,
    (place, text): (&str, &str),
    ranks: usize,
    actions: &AtomicUsize,
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
            let all = actions.fetch_add(script.len() - counted, Ordering::Relaxed);
            counted = script.len();
            if all > MOST_ACTIONS {
                break;
            }
        }
    }
    actions.fetch_add(script.len() - counted, Ordering::Relaxed);
    Ok(script)
}

fn within(place: &str, actions: &AtomicUsize) -> Result<()> {
    if actions.load(Ordering::Relaxed) <= MOST_ACTIONS {
        return Ok(());
    }
    Err(Error::input(place, format!("more than {MOST_ACTIONS} actions"), "replay fewer iterations"))
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
}

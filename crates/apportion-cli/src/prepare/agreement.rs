//! Whether all ranks were started alike and see the same files: otherwise their parts do not belong to one
//! product, and the check of each part cannot tell.

use crate::args::RunningArgs;
use crate::prepare::distributed::block_files;
use crate::prepare::task::Task;
use apportion::error::{Error, Result};
use apportion::run::World;
use serde_json::{Value, json};
use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// Bytes of the operands that are compared on every run, in pieces of [`PIECE`].
const SAMPLE: u64 = 4 << 20;
const PIECE: u64 = 64 << 10;

/// Compares arguments, version and files of all ranks. Files with the same length, sample and time of change
/// count as equal; if only their times differ, as those of copies do, their whole contents are compared.
///
/// # Errors
/// The first rank that differs from rank 0 and in what: exit code 2 on every rank.
pub fn agree(task: &Task<'_>, world: &World) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let mine = world.all_ok(facts(task))?;
    let times = compare(&mine, world)?;
    if !times {
        let hashes = || operands(task)?.iter().map(|path| Ok((shown(path), json!(whole(path)?)))).collect();
        let contents: Vec<(String, Value)> = world.all_ok(hashes())?;
        let agreed = contents.into_iter().map(|(what, hash)| Fact { what, value: hash, copies: false });
        compare(&agreed.collect::<Vec<_>>(), world)?;
    }
    Ok(())
}

/// Something that must be the same on all ranks.
struct Fact {
    what: String,
    value: Value,
    /// True if a difference only asks for a closer look.
    copies: bool,
}

/// The files of the operands, and those that their layout files name.
fn operands(task: &Task<'_>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in task.operands() {
        files.push(path.to_path_buf());
        files.extend(block_files(path)?);
    }
    Ok(files)
}

fn facts(task: &Task<'_>) -> Result<Vec<Fact>> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let fact = |what: &str, value: Value| Fact { what: what.into(), value, copies: false };
    let mut facts = vec![
        fact("version", json!(env!("CARGO_PKG_VERSION"))),
        fact("arguments", json!(arguments.join(" "))),
    ];
    let RunningArgs { plan, sources, .. } = task.running;
    for path in [plan, &sources.models, &sources.platform].into_iter().flatten() {
        facts.push(Fact { what: shown(path), value: json!(whole(path)?), copies: false });
    }
    let files = operands(task)?;
    let budget = (SAMPLE / files.len() as u64).max(PIECE);
    for path in &files {
        let file = |e| Error::file(path, "read", e);
        let about = std::fs::metadata(path).map_err(file)?;
        let changed = about.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let value = json!([about.len(), sample(path, about.len(), budget)?]);
        facts.push(Fact { what: shown(path), value, copies: false });
        let time = json!(changed.map(|at| at.as_nanos().to_string()));
        facts.push(Fact { what: shown(path), value: time, copies: true });
    }
    Ok(facts)
}

/// True if all facts agree; false if only those of possible copies differ.
fn compare(mine: &[Fact], world: &World) -> Result<bool> {
    let text = json!(mine.iter().map(|fact| &fact.value).collect::<Vec<_>>()).to_string();
    let all = world.all_gather(text.as_bytes())?;
    let parsed = |text: &Vec<u8>| serde_json::from_slice::<Vec<Value>>(text).unwrap_or_default();
    let all: Vec<Vec<Value>> = all.iter().map(parsed).collect();
    let mut same = true;
    for (rank, theirs) in all.iter().enumerate().skip(1) {
        let Some(at) = (0..mine.len()).find(|at| theirs.get(*at) != all[0].get(*at)) else { continue };
        let differ = (at..mine.len()).find(|at| theirs.get(*at) != all[0].get(*at) && !mine[*at].copies);
        same = false;
        if let Some(at) = differ {
            return world.all_ok(Err(refusal(&mine[at].what, rank, [theirs.get(at), all[0].get(at)])));
        }
    }
    Ok(same)
}

fn refusal(what: &str, rank: usize, [theirs, ours]: [Option<&Value>; 2]) -> Error {
    let said = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("nothing").to_owned();
    match what {
        "arguments" | "version" => Error::input(
            what,
            format!("rank {rank} was started with \"{}\", rank 0 with \"{}\"", said(theirs), said(ours)),
            "start every rank with the same program and the same arguments",
        ),
        file => Error::input(
            file,
            format!("rank {rank} sees another file of this name than rank 0"),
            "use a file system that all hosts share, or copy the file to each of them",
        ),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A hash of pieces spread evenly over a file, its first and last bytes among them, of `budget` bytes at
/// most.
fn sample(path: &Path, length: u64, budget: u64) -> Result<String> {
    let failed = |e| Error::file(path, "read", e);
    let mut file = File::open(path).map_err(failed)?;
    let pieces = (budget / PIECE).min(length.div_ceil(PIECE)).max(1);
    let mut hash = XxHash64::with_seed(0);
    let mut piece = Vec::with_capacity(PIECE as usize);
    for number in 0..pieces {
        let last = length.saturating_sub(PIECE);
        let at = if pieces == 1 {
            0
        } else {
            (u128::from(last) * u128::from(number) / u128::from(pieces - 1)) as u64
        };
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        piece.clear();
        Read::by_ref(&mut file).take(PIECE).read_to_end(&mut piece).map_err(failed)?;
        hash.write(&piece);
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// A hash of a whole file.
fn whole(path: &Path) -> Result<String> {
    let failed = |e| Error::file(path, "read", e);
    let mut file = File::open(path).map_err(failed)?;
    let (mut hash, mut bytes) = (XxHash64::with_seed(0), vec![0; 1 << 20]);
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(format!("{:016x}", hash.finish())),
            Ok(count) => hash.write(&bytes[..count]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    #[test]
    fn samples_cover_both_ends_and_lengths_of_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for length in [0usize, 1, 65_535, 65_536, 65_537, 6 << 20] {
            let mut bytes = vec![7u8; length];
            std::fs::write(&path, &bytes).unwrap();
            let (before, all) = (sample(&path, length as u64, SAMPLE).unwrap(), whole(&path).unwrap());
            for at in [0, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                bytes[at] ^= 1;
                std::fs::write(&path, &bytes).unwrap();
                assert_ne!(sample(&path, length as u64, SAMPLE).unwrap(), before, "{length} {at}");
                assert_ne!(whole(&path).unwrap(), all);
                bytes[at] ^= 1;
            }
        }
    }

    #[test]
    fn refusals_say_who_differs_in_what() {
        let (theirs, ours) = (json!("matmul a b --alpha 2"), json!("matmul a b"));
        let text = refusal("arguments", 2, [Some(&theirs), Some(&ours)]).to_string();
        assert!(text.contains("rank 2 was started with \"matmul a b --alpha 2\""), "{text}");
        assert!(refusal("a.npy", 1, [None, None]).to_string().starts_with("a.npy: rank 1 sees another"));
    }
}

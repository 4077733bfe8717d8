//! Comparison of what the ranks of a world begin with. Ranks that were started with other arguments or see
//! other files compute parts that do not belong to one result, which the check of each part cannot tell.

use super::World;
use crate::error::{Error, Result};
use bytemuck::Pod;
use serde_json::{Value, json};
use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

/// Files of several copies are compared whole up to this many bytes in all, the smallest first.
const WHOLE: u64 = 1 << 30;

/// Bytes of a larger file that are compared, in pieces of [`PIECE`].
const SAMPLE: u64 = 4 << 20;
const PIECE: u64 = 64 << 10;

/// Something that must be the same on all ranks before a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A text that an error may quote: a version, the value of an environment variable.
    Text {
        /// What it is.
        name: String,
        /// The text.
        value: String,
    },
    /// The words of a command line, or the arguments of a call; an error quotes those that differ.
    Words {
        /// What they are.
        name: String,
        /// The words, in their order.
        words: Vec<String>,
    },
    /// Data that every rank holds whole.
    Data {
        /// What they are.
        name: String,
        /// Their hash, of [`hash_elements`].
        hash: u64,
    },
    /// A file that every rank reads.
    File(PathBuf),
}

/// A file as one rank sees it.
#[derive(Debug, PartialEq, Eq)]
struct FileView {
    /// Names the file itself: the same on two ranks only if they see one file, not copies.
    identity: String,
    length: u64,
    changed: String,
}

impl World {
    /// Compares facts of all ranks, which must name them in the same order. Every rank must call it.
    ///
    /// Ranks that open one file (by device and number on one running system) need not read it. Copies are
    /// compared by a hash of all bytes, up to 1 GiB in all; of larger ones the lengths, the times of change
    /// and samples spread over the file count, and all bytes if the times differ. Returns the files of which
    /// samples were compared.
    ///
    /// # Errors
    /// Exit code 2, the same on every rank: the first fact that differs, with the first rank that differs
    /// from rank 0, and their hosts. A file cannot be read, or is not a regular file.
    pub(crate) fn compare(&self, facts: &[Fact]) -> Result<Vec<PathBuf>> {
        if self.size() == 1 {
            return Ok(Vec::new());
        }
        self.compare_values(facts)?;
        let mut files: Vec<&Path> = Vec::new();
        for fact in facts {
            if let Fact::File(path) = fact
                && !files.contains(&path.as_path())
            {
                files.push(path);
            }
        }
        self.compare_files(&files)
    }

    /// Compares all but the contents of files.
    fn compare_values(&self, facts: &[Fact]) -> Result<()> {
        let mine: Vec<Value> = facts.iter().map(Fact::value).collect();
        let all = self.all_gather_values(&mine)?;
        for (rank, theirs) in all.iter().enumerate().skip(1) {
            let differs = |at: &usize| theirs.get(*at) != all[0].get(*at);
            let Some(at) = (0..mine.len().max(theirs.len())).find(differs) else { continue };
            return self.all_ok(Err(self.refusal(facts.get(at), rank, [theirs.get(at), all[0].get(at)])));
        }
        Ok(())
    }

    fn compare_files(&self, files: &[&Path]) -> Result<Vec<PathBuf>> {
        let seen: Vec<FileView> = self.all_ok(files.iter().map(|path| FileView::of(path)).collect())?;
        let mine: Vec<Value> =
            seen.iter().map(|seen| json!([seen.identity, seen.length, seen.changed])).collect();
        let all = self.all_gather_values(&mine)?;
        let value = |rank: usize, file: usize, what: usize| &all[rank][file][what];
        // The lowest rank of those that see one file reads it for all of them.
        let reads =
            |rank: usize, file: usize| (0..rank).all(|lower| value(lower, file, 0) != value(rank, file, 0));
        let copied = |file: &usize| (1..self.size()).any(|rank| reads(rank, *file));
        let mut copies: Vec<usize> = (0..files.len()).filter(copied).collect();
        for &file in &copies {
            let other = (1..self.size()).find(|&rank| value(rank, file, 1) != value(0, file, 1));
            if let Some(rank) = other {
                return self.all_ok(Err(self.other_file(files[file], rank)));
            }
        }
        copies.sort_by_key(|&file| seen[file].length);
        let (mut sum, mut sampled) = (0u64, Vec::new());
        let mut hashes = Vec::new();
        for &file in &copies {
            sum = sum.saturating_add(seen[file].length);
            let same_time = (1..self.size()).all(|rank| value(rank, file, 2) == value(0, file, 2));
            let is_sampled = sum > WHOLE && same_time;
            if is_sampled {
                sampled.push(files[file].to_path_buf());
            }
            let bytes = if is_sampled { SAMPLE } else { u64::MAX };
            let hash = || match reads(self.rank(), file) {
                true => hash_file(files[file], seen[file].length, bytes, &|| self.check()),
                false => Ok(String::new()),
            };
            hashes.push(hash());
        }
        let hashes: Vec<String> = self.all_ok(hashes.into_iter().collect())?;
        let all = self.all_gather_values(&hashes)?;
        for (number, &file) in copies.iter().enumerate() {
            let differs = |rank: &usize| reads(*rank, file) && all[*rank][number] != all[0][number];
            if let Some(rank) = (1..self.size()).find(differs) {
                return self.all_ok(Err(self.other_file(files[file], rank)));
            }
        }
        Ok(sampled)
    }

    fn refusal(&self, fact: Option<&Fact>, rank: usize, [theirs, ours]: [Option<&Value>; 2]) -> Error {
        let (theirs, ours) = (words_of(theirs), words_of(ours));
        let (rank, first) = (self.name_of(rank), self.name_of(0));
        let remedy = "give every rank the same";
        match fact {
            Some(Fact::Data { name, .. }) => {
                Error::input(name, format!("{rank} has other elements than {first}"), remedy)
            }
            Some(Fact::Text { name, .. } | Fact::Words { name, .. }) => {
                let [theirs, ours] = difference(&theirs, &ours);
                Error::input(name, format!("{rank} has {theirs}, {first} has {ours}"), remedy)
            }
            _ => Error::input("files", format!("{rank} names other files than {first}"), remedy),
        }
    }

    fn other_file(&self, file: &Path, rank: usize) -> Error {
        Error::input(
            file.display().to_string(),
            format!("{} sees another file of this name than {}", self.name_of(rank), self.name_of(0)),
            "use a file system that all hosts share, or copy the file to each of them",
        )
    }
}

impl Fact {
    /// What is compared at once: a list of words.
    fn value(&self) -> Value {
        match self {
            Self::Text { name, value } => json!([name, value]),
            Self::Words { name, words } => {
                json!(std::iter::once(name).chain(words).collect::<Vec<&String>>())
            }
            Self::Data { name, hash } => json!([name, format!("{hash:016x}")]),
            Self::File(path) => json!([path.display().to_string()]),
        }
    }
}

/// The words after the name.
fn words_of(value: Option<&Value>) -> Vec<String> {
    let words = value.and_then(Value::as_array).into_iter().flatten().skip(1);
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// The words in which two lists differ, quoted; with the flag before them.
fn difference(theirs: &[String], ours: &[String]) -> [String; 2] {
    let same = |(a, b): &(&String, &String)| a == b;
    let mut before = theirs.iter().zip(ours).take_while(same).count();
    let rest = [&theirs[before..], &ours[before..]];
    let after = rest[0].iter().rev().zip(rest[1].iter().rev()).take_while(same).count();
    if before > 0 && theirs[before - 1].starts_with('-') {
        before -= 1;
    }
    [theirs, ours].map(|words| match &words[before..words.len() - after] {
        [] => "nothing".to_owned(),
        words => format!("\"{}\"", words.join(" ")),
    })
}

impl FileView {
    fn of(path: &Path) -> Result<Self> {
        let about = std::fs::metadata(path).map_err(|e| Error::file(path, "read", e))?;
        if !about.is_file() {
            return Err(Error::input(
                path.display().to_string(),
                "is not a regular file, so that several ranks cannot read the same",
                "write it to a file that all hosts see",
            ));
        }
        let changed = about.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let changed = changed.map_or_else(String::new, |at| at.as_nanos().to_string());
        Ok(Self { identity: identity(path, &about)?, length: about.len(), changed })
    }
}

/// The running system, and the file's device and number on it.
#[cfg(unix)]
fn identity(_: &Path, about: &std::fs::Metadata) -> Result<String> {
    use std::os::unix::fs::MetadataExt;
    let system = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Ok(format!("{} {} {}:{}", super::host_name(), system.trim(), about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path, _: &std::fs::Metadata) -> Result<String> {
    let path = path.canonicalize().map_err(|e| Error::file(path, "read", e))?;
    Ok(path.display().to_string())
}

/// A hash of data, for [`Fact::Data`].
pub fn hash_elements<N: Pod>(elements: &[N]) -> u64 {
    XxHash64::oneshot(0, bytemuck::cast_slice(elements))
}

/// A hash of a file: of all its bytes if it has at most `most`, else of pieces of as many bytes in all, which
/// are spread evenly over it, its first and last bytes among them.
fn hash_file(path: &Path, length: u64, most: u64, check: &dyn Fn() -> Result<()>) -> Result<String> {
    let failed = |e| Error::file(path, "read", e);
    let mut file = File::open(path).map_err(failed)?;
    let (mut hash, mut piece) = (XxHash64::with_seed(0), Vec::new());
    let (pieces, size) = if length <= most { (1, u64::MAX) } else { (most / PIECE, PIECE) };
    for number in 0..pieces {
        if size < length {
            let (last, number, gaps) =
                (u128::from(length - size), u128::from(number), u128::from(pieces - 1));
            file.seek(SeekFrom::Start((last * number / gaps) as u64)).map_err(failed)?;
        }
        let mut left = size;
        loop {
            check()?;
            piece.clear();
            let read =
                Read::by_ref(&mut file).take(left.min(1 << 20)).read_to_end(&mut piece).map_err(failed)?;
            hash.write(&piece);
            left -= read as u64;
            if read == 0 || left == 0 {
                break;
            }
        }
    }
    Ok(format!("{:016x}", hash.finish()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;
    use crate::run::Monitor;

    /// What every rank of a world gets; `facts` are those of a rank.
    fn compared(size: usize, facts: impl Fn(usize) -> Vec<Fact> + Sync) -> Vec<Result<Vec<PathBuf>>> {
        World::threads(size, &Monitor::new(), |world| Ok(world.compare(&facts(world.rank())))).unwrap()
    }

    fn words(text: &str) -> Vec<Fact> {
        vec![Fact::Words { name: "arguments".into(), words: text.split(' ').map(str::to_owned).collect() }]
    }

    #[test]
    fn the_rank_that_differs_is_named_on_all_ranks() {
        let line = |rank| if rank == 2 { "run --alpha 2 -q" } else { "run --alpha 1 -q" };
        for outcome in compared(4, |rank| words(line(rank))) {
            let error = outcome.unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert_eq!(
                error.to_string(),
                "arguments: rank 2 has \"--alpha 2\", rank 0 has \"--alpha 1\" (give every rank the same)"
            );
        }
        let data = |hash| vec![Fact::Data { name: "A".into(), hash }];
        for outcome in compared(2, |rank| data(hash_elements(&[rank as u8]))) {
            assert!(outcome.unwrap_err().to_string().starts_with("A: rank 1 has other elements than rank 0"));
        }
        let more = |rank: usize| [words("run"), vec![Fact::File("x".into()); rank]].concat();
        for outcome in compared(2, more) {
            assert!(outcome.unwrap_err().to_string().contains("names other files"));
        }
        assert!(compared(3, |_| words("run")).into_iter().all(|outcome| outcome.unwrap().is_empty()));
    }

    #[test]
    fn differences_show_the_words_that_differ() {
        let differ = |theirs: &str, ours: &str| {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            difference(&words(theirs), &words(ours))
        };
        assert_eq!(differ("a --b 1 --c", "a --b 2 --c"), ["\"--b 1\"", "\"--b 2\""]);
        assert_eq!(differ("a x y", "a y"), ["\"x\"", "nothing"]);
        assert_eq!(differ("a a", "a"), ["\"a\"", "nothing"]);
        assert_eq!(differ("", "a"), ["nothing", "\"a\""]);
    }

    #[test]
    fn one_byte_of_a_copy_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        let at = |rank: usize, name: &str| directory.path().join(format!("{rank}-{name}"));
        for length in [1usize, 65_537, 3 << 20] {
            for rank in 0..3 {
                let mut bytes = vec![7u8; length];
                std::fs::write(at(rank, "same"), &bytes).unwrap();
                bytes[length / 2] ^= u8::from(rank == 2);
                std::fs::write(at(rank, "other"), &bytes).unwrap();
            }
            // The names differ here as directories would on hosts.
            let outcomes = World::threads(3, &Monitor::new(), |world| {
                let of = |name| at(world.rank(), name);
                Ok([world.compare_files(&[&of("same")]), world.compare_files(&[&of("same"), &of("other")])])
            });
            for [same, other] in outcomes.unwrap() {
                assert!(same.unwrap().is_empty());
                let error = other.unwrap_err().to_string();
                assert!(error.contains("other: rank 2 sees another file"), "{error}");
            }
        }
    }

    #[test]
    fn samples_cover_both_ends_and_lengths_of_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let hash = |length: usize| hash_file(&path, length as u64, 1 << 20, &|| Ok(())).unwrap();
        for length in [0usize, 1, 65_535, 65_536, 65_537, 6 << 20] {
            let mut bytes = vec![7u8; length];
            std::fs::write(&path, &bytes).unwrap();
            let before = hash(length);
            for at in [0, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                bytes[at] ^= 1;
                std::fs::write(&path, &bytes).unwrap();
                assert_ne!(hash(length), before, "{length} {at}");
                bytes[at] ^= 1;
            }
        }
    }

    /// A pipe, which the first reader would empty, is refused without being opened.
    #[cfg(unix)]
    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        for outcome in compared(2, |_| vec![Fact::File("/dev/zero".into())]) {
            let error = outcome.unwrap_err().to_string();
            assert!(error.starts_with("/dev/zero: is not a regular file"), "{error}");
        }
        let missing = compared(2, |_| vec![Fact::File("/no/such/file".into())]);
        assert!(missing.into_iter().all(|outcome| outcome.unwrap_err().to_string().starts_with("/no/such")));
    }
}

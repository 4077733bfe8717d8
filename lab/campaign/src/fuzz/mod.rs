//! Hostile input: files damaged by structure and by bytes, and random command lines.
//!
//! Inputs start from the corpus (`corpus/TARGET/`, part of the tree). An input that reveals a defect is kept,
//! and belongs into the corpus once the defect is fixed.

mod bytes;
mod parsers;
mod trees;
mod words;

pub use words::no_leftovers;

use crate::figures::Figure;
use crate::tool::Tool;
use crate::{Common, Found};
use apportion::error::Error;
use apportion::random::Random;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest that one input may take before it counts as hanging.
const LONGEST: Duration = Duration::from_secs(10);

/// What the latest panic said.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// A target: how inputs are made from the corpus, and what is done with one.
pub struct Target {
    pub name: &'static str,
    /// How the text is damaged by structure; bytes are damaged in any case.
    pub grammar: Grammar,
    /// Reads an input and uses what it says. An error is expected; a panic is a defect.
    pub read: fn(&[u8]) -> Result<(), Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    Json,
    Toml,
    Bytes,
}

/// Attacks the named targets, or all, each for this long.
pub fn run(names: &[String], seconds: f64, common: &Common, tool: &Tool) -> Found {
    let targets = parsers::targets();
    let known = |name: &String| name == words::NAME || targets.iter().any(|target| target.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return Err(format!("there is no target {unknown}"));
    }
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    std::panic::set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string().replace('\n', " ");
    }));
    let attacks = targets.iter().filter(|target| chosen(target.name));
    let mut figures: Vec<Figure> =
        attacks.map(|target| attack(target, seconds, common)).collect::<Result<_, _>>()?;
    let _ = std::panic::take_hook();
    if chosen(words::NAME) {
        figures.push(words::attack(seconds, common, tool)?);
    }
    Ok(figures)
}

/// The corpus of a target.
pub fn corpus(name: &str) -> Result<Vec<Vec<u8>>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let unreadable = |e: std::io::Error| format!("{}: {e}", directory.display());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&directory)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect::<Result<_, _>>()?;
    // The order of a directory is not reproducible.
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let inputs: Vec<Vec<u8>> = paths.iter().map(read).collect::<Result<_, _>>()?;
    if inputs.is_empty() { Err(format!("{} is empty", directory.display())) } else { Ok(inputs) }
}

fn attack(target: &Target, seconds: f64, common: &Common) -> Result<Figure, String> {
    let seeds = corpus(target.name)?;
    let mut random = Random::new(common.seed);
    let (mut tried, mut taken) = (0u64, 0u64);
    let watch = Watch::begin(target.name, common.finds.clone());
    let mut current = Current::begin(target.name, common)?;
    let begun = Instant::now();
    // The corpus itself first, however short the time: it has what was a defect once.
    let mut unchanged = seeds.iter();
    loop {
        let input = match unchanged.next() {
            Some(input) => input.clone(),
            None if begun.elapsed().as_secs_f64() >= seconds => break,
            None => damaged(target.grammar, &seeds, &mut random),
        };
        watch.now(&input);
        current.now(&input)?;
        let outcome = std::panic::catch_unwind(|| (target.read)(&input));
        let defect = match outcome {
            Ok(Ok(())) => {
                taken += 1;
                None
            }
            Ok(Err(error)) => disorderly(&error),
            Err(_) => Some(LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        };
        if let Some(defect) = defect {
            return Err(format!("{}: {defect}: {}", target.name, keep(&input, target.name, common)));
        }
        tried += 1;
    }
    watch.end();
    let outcome = format!("{taken} accepted, the others refused in one line");
    Ok(Figure::new(format!("parser: {}", target.name), format!("{tried} inputs"), outcome))
}

/// What is wrong with an error: it must be one short line with the exit code of bad input or failed work.
fn disorderly(error: &Error) -> Option<String> {
    let text = error.to_string();
    match error.exit_code() {
        1 | 2 if text.contains('\n') => Some("an error of several lines".into()),
        1 | 2 if text.len() > 4000 => Some("an error of more than 4,000 bytes".into()),
        1 | 2 => None,
        code => Some(format!("exit code {code}")),
    }
}

/// An input from the corpus, damaged once or several times.
fn damaged(grammar: Grammar, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    if grammar != Grammar::Bytes && random.below(4) > 0 {
        input = trees::damaged(grammar, &input, random).unwrap_or(input);
    }
    if grammar == Grammar::Bytes || random.below(4) == 0 {
        for _ in 0..=random.below(4) {
            bytes::damage(&mut input, seeds, random);
        }
    }
    input
}

/// Keeps an input; returns its name.
fn keep(input: &[u8], name: &str, common: &Common) -> String {
    let path = common.finds.join(format!("{name}-{:016x}", number(input)));
    let kept = std::fs::create_dir_all(&common.finds).and_then(|()| std::fs::write(&path, input));
    kept.map_or_else(|e| format!("it could not be kept: {e}"), |()| format!("kept as {}", path.display()))
}

/// A number for the name of an input (FNV-1a, Fowler, Noll and Vo 1991).
fn number(input: &[u8]) -> u64 {
    input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The input that is read now, in a file: it stays there if the input aborts this program. The file stays
/// open, since some file systems bring a file that is written again to the disk whenever it is closed.
struct Current {
    path: PathBuf,
    file: File,
}

impl Current {
    fn begin(name: &str, common: &Common) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", common.finds.display());
        std::fs::create_dir_all(&common.finds).map_err(failed)?;
        let path = common.finds.join(format!("{name}-now"));
        let file = File::create(&path).map_err(failed)?;
        Ok(Self { path, file })
    }

    fn now(&mut self, input: &[u8]) -> Result<(), String> {
        let written = self.file.rewind().and_then(|()| self.file.write_all(input));
        written
            .and_then(|()| self.file.set_len(input.len() as u64))
            .map_err(|e| format!("{}: {e}", self.path.display()))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // Only if nothing is kept there.
        let _ = self.path.parent().map(std::fs::remove_dir);
    }
}

/// Ends the program, with the input kept, if one input takes too long: a thread cannot be stopped.
struct Watch {
    state: Arc<(Mutex<Vec<u8>>, AtomicU64)>,
}

/// The count of a watch that has ended.
const ENDED: u64 = u64::MAX;

impl Watch {
    fn begin(name: &'static str, finds: PathBuf) -> Self {
        let state = Arc::new((Mutex::new(Vec::new()), AtomicU64::new(0)));
        let seen = state.clone();
        std::thread::spawn(move || {
            let (mut last, mut since) = (0, Instant::now());
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let count = seen.1.load(Ordering::Relaxed);
                if count == ENDED {
                    return;
                }
                if count != last {
                    (last, since) = (count, Instant::now());
                } else if since.elapsed() > LONGEST {
                    let input = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
                    let common = Common { binary: None, seed: 0, report: None, finds: finds.clone() };
                    eprintln!("campaign: {name}: an input hangs: {}", keep(&input, name, &common));
                    std::process::exit(1);
                }
            }
        });
        Self { state }
    }

    /// This input is next.
    fn now(&self, input: &[u8]) {
        *self.state.0.lock().unwrap_or_else(PoisonError::into_inner) = input.to_vec();
        self.state.1.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.state.1.store(ENDED, Ordering::Relaxed);
    }
}

//! What a file is: a regular file, whose contents may change while they are read, or a stream: a descriptor
//! of this process, such as `/dev/stdout`, or a pipe.

#![allow(unsafe_code)] // `duplicate` borrows a descriptor by its number.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use twox_hash::XxHash64;

/// True in a process that follows the conventions of command lines.
static COMMAND_LINE: AtomicBool = AtomicBool::new(false);

/// What was read from streams, which can be read only once.
static CONTENTS: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// From now on, the name `-` stands for the standard input or output, matrices are read from pipes too, and
/// what was read from a stream under a name is read again under this name: for programs that read their
/// files once, but perhaps in several places.
pub fn follow_command_line() {
    COMMAND_LINE.store(true, Ordering::SeqCst);
}

fn is_dash(path: &Path) -> bool {
    COMMAND_LINE.load(Ordering::SeqCst) && path == Path::new("-")
}

/// The number of the descriptor of this process to which an output's name leads: `-`, `/dev/stdout`,
/// `/dev/fd/3`, `/proc/self/fd/3`, links to them.
pub(crate) fn output_descriptor(path: &Path) -> Option<u32> {
    if is_dash(path) { Some(1) } else { descriptor(path) }
}

/// The same for an input's name, where `-` is the standard input.
pub(crate) fn input_descriptor(path: &Path) -> Option<u32> {
    if is_dash(path) { Some(0) } else { descriptor(path) }
}

/// Links that are followed before a chain is called endless, as Linux does.
const LONGEST_CHAIN: usize = 40;

fn descriptor(path: &Path) -> Option<u32> {
    if !cfg!(unix) {
        return None;
    }
    let mut path = path.to_path_buf();
    for _ in 0..LONGEST_CHAIN {
        match path.to_str() {
            Some("/dev/stdin") => return Some(0),
            Some("/dev/stdout") => return Some(1),
            Some("/dev/stderr") => return Some(2),
            _ => {}
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        if let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse().ok())
            && is_of_descriptors(directory)
        {
            return Some(number);
        }
        path = directory.join(fs::read_link(&path).ok()?);
    }
    None
}

/// True for `/dev/fd`, `/proc/self/fd` and the same by other names.
fn is_of_descriptors(directory: &Path) -> bool {
    if directory == Path::new("/dev/fd") {
        return true;
    }
    let own = Path::new("/proc").join(std::process::id().to_string());
    let inside =
        directory.canonicalize().ok().and_then(|at| at.strip_prefix(&own).map(Path::to_path_buf).ok());
    // `fd`, or `task/ID/fd` of a thread.
    inside.is_some_and(|inside| {
        inside.ends_with("fd") && (inside == Path::new("fd") || inside.starts_with("task"))
    })
}

/// A second descriptor of the same open file, with its offset and its flags.
#[cfg(unix)]
pub(crate) fn duplicate(number: u32) -> std::io::Result<File> {
    use std::os::fd::BorrowedFd;
    let Some(number) = i32::try_from(number).ok().filter(|number| *number >= 0) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the number is not -1, and the descriptor is only borrowed to be duplicated, which the system
    // refuses if it is not open. This process closes no descriptor that it did not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
pub(crate) fn duplicate(_: u32) -> std::io::Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// True for a pipe's name.
pub(crate) fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// True if an input is a stream: a descriptor of this process, or a pipe.
pub fn is_stream(path: &Path) -> bool {
    input_descriptor(path).is_some() || is_pipe(path)
}

/// The contents of an input that is a stream, in a file without a name; `None` for other inputs, and unless
/// the process follows the conventions of command lines. At most `most` bytes.
///
/// # Errors
/// The stream cannot be read or is longer: exit code 2; the disk of temporary files is full: exit code 1.
pub fn contents(path: &Path, most: u64) -> Result<Option<File>> {
    if !COMMAND_LINE.load(Ordering::SeqCst) || !is_stream(path) {
        return Ok(None);
    }
    let failed = |e| Error::file(path, "read", e);
    let mut known = CONTENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains_key(path) {
        let from = input_descriptor(path).map_or_else(|| File::open(path), duplicate).map_err(failed)?;
        let mut all = tempfile::tempfile().map_err(failed)?;
        let length = std::io::copy(&mut from.take(most.saturating_add(1)), &mut all).map_err(failed)?;
        if length > most {
            let what = format!("has more than {most} bytes");
            return Err(Error::input(
                path.display().to_string(),
                what,
                "check that this is the intended file",
            ));
        }
        known.insert(path.to_path_buf(), all);
    }
    let mut file = known[path].try_clone().map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(Some(file))
}

/// Maximum size of a text file of the program's own: no measurement is so large.
const LARGEST_OWN: u64 = 64 << 20;

/// Reads a text file of the program's own, which nothing but a regular file can be.
///
/// # Errors
/// It is no regular file, cannot be read, has more than 64 MiB, or is not UTF-8: exit code 2. A file that is
/// not there is [`Error::File`].
pub fn read_own_text(path: &Path) -> Result<String> {
    read_file(path, open_regular(path)?, LARGEST_OWN)
}

/// The directory of what is cached between runs; `None` if the user has none.
pub fn cache_directory() -> Option<PathBuf> {
    let directory = match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(".cache"),
    };
    Some(directory.join("apportion"))
}

/// Reads the text of a file of at most `most` bytes.
///
/// # Errors
/// As [`read_up_to`](crate::input::read_up_to).
pub(crate) fn read_file(path: &Path, file: File, most: u64) -> Result<String> {
    let failed = |e| Error::file(path, "read", e);
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return Err(Error::input(path.display().to_string(), "is a directory", "name a file"));
    }
    let mut text = String::new();
    text.reserve(file.metadata().map_or(0, |about| about.len()).min(most) as usize + 1);
    file.take(most + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > most {
        let what = format!("has more than {most} bytes");
        return Err(Error::input(path.display().to_string(), what, "check that this is the intended file"));
    }
    Ok(text)
}

/// Opens a regular file for reading. Never waits, as opening a pipe would.
///
/// # Errors
/// It cannot be opened, or is a directory, a pipe, a socket or a device: exit code 2.
pub fn open_regular(path: &Path) -> Result<File> {
    let failed = |e| Error::file(path, "read", e);
    let refuse = |found: &fs::Metadata| {
        let what = if found.is_dir() { "is a directory" } else { "is not a regular file" };
        Err(Error::input(path.display().to_string(), what, "give a regular file"))
    };
    // Asked first, since opening a device may have effects; asked again, since it may be another by then.
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return refuse(&found);
    }
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() { Ok(file) } else { refuse(&found) }
}

/// A hash of all bytes of an open file (XXH64): it distinguishes files, but does not protect from forgery.
///
/// # Errors
/// The file cannot be read: exit code 2.
pub fn hash_file(path: &Path, file: &mut File) -> Result<u64> {
    let failed = |e| Error::file(path, "read", e);
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let (mut hash, mut buffer) = (XxHash64::with_seed(0), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hash.finish()),
            read => hash.write(&buffer[..read]),
        }
    }
}

/// The state of a file's contents: its place on the disk, its length and its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    length: u64,
    modified: Option<std::time::SystemTime>,
    /// Device and inode; the inode's change in seconds and nanoseconds; its mode, owner and number of names,
    /// which change it too.
    #[cfg(unix)]
    inode: ([u64; 2], [i64; 2], [u64; 3]),
}

impl FileState {
    fn new(about: &fs::Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            length: about.len(),
            modified: about.modified().ok(),
            #[cfg(unix)]
            inode: (
                [about.dev(), about.ino()],
                [about.ctime(), about.ctime_nsec()],
                [about.mode().into(), about.uid().into(), about.nlink()],
            ),
        }
    }

    /// The state of the file under a name.
    ///
    /// # Errors
    /// It cannot be asked for: exit code 2.
    pub fn of(path: &Path) -> Result<Self> {
        fs::metadata(path).map(|about| Self::new(&about)).map_err(|e| Error::file(path, "read", e))
    }

    /// The state of an open file.
    pub fn of_open(path: &Path, file: &File) -> Result<Self> {
        file.metadata().map(|about| Self::new(&about)).map_err(|e| Error::file(path, "read", e))
    }

    /// Checks that the name still leads to the file, and that nothing has written to this by its times.
    ///
    /// # Errors
    /// It does not: exit code 1.
    pub fn check(&self, path: &Path) -> Result<()> {
        let now = Self::of(path)?;
        if self.is_same_file(&now) && self.has_contents_of(&now, true) { Ok(()) } else { Err(changed(path)) }
    }

    /// Checks that nothing has written to an open file, which may have lost its name, by its times.
    ///
    /// # Errors
    /// Something has: exit code 1.
    pub fn check_open(&self, path: &Path, file: &File) -> Result<()> {
        let now = Self::of_open(path, file)?;
        let named = Self::of(path).is_ok_and(|there| there.is_same_file(&now));
        if self.has_contents_of(&now, named) { Ok(()) } else { Err(changed(path)) }
    }

    fn is_same_file(&self, now: &Self) -> bool {
        #[cfg(unix)]
        return self.inode.0 == now.inode.0;
        #[cfg(not(unix))]
        return self.length == now.length;
    }

    /// A change of the inode that neither a new name, mode nor owner explains is one of its contents, after
    /// which somebody has set the time back.
    fn has_contents_of(&self, now: &Self, named: bool) -> bool {
        let same = self.length == now.length && self.modified == now.modified;
        #[cfg(unix)]
        let same = same && (self.inode.1 == now.inode.1 || self.inode.2 != now.inode.2 || !named);
        #[cfg(not(unix))]
        let _ = named;
        same
    }
}

/// The error of an input whose contents are not those that a run began with: exit code 1.
pub fn changed(path: &Path) -> Error {
    let what = format!("{} changed during the run", path.display());
    Error::infeasible(what, "run again once nothing writes to it")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_contents_is_noticed_and_another_name_is_none() {
        use std::io::Write;
        let directory = tempfile::tempdir().unwrap();
        let [path, new, link] = ["a", "b", "c"].map(|name| directory.path().join(name));
        let write = |path: &Path| fs::write(path, "contents").unwrap();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(30));
        let watched = || {
            write(&path);
            pause();
            let file = open_regular(&path).unwrap();
            (FileState::of(&path).unwrap(), file)
        };
        let (state, file) = watched();
        state.check(&path).unwrap();
        fs::hard_link(&path, &link).unwrap();
        state.check_open(&path, &file).unwrap();
        // Replaced: the open file is as it was, but the name leads to another one.
        write(&new);
        fs::rename(&new, &path).unwrap();
        state.check_open(&path, &file).unwrap();
        assert!(state.check(&path).is_err());
        // Overwritten in place, also if the time is set back afterwards.
        for back in [false, true] {
            let (state, file) = watched();
            let time = file.metadata().unwrap().modified().unwrap();
            let mut there = File::options().write(true).open(&path).unwrap();
            there.write_all(b"CONTENTS").unwrap();
            if back {
                there.set_modified(time).unwrap();
            }
            let error = state.check_open(&path, &file).unwrap_err().to_string();
            assert!(error.contains("a changed during the run"), "{error}");
            assert!(state.check(&path).is_err());
        }
    }

    #[test]
    fn what_is_not_regular_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [directory.path(), &pipe, Path::new("/dev/zero")] {
            assert_eq!(read_own_text(path).unwrap_err().exit_code(), 2, "{}", path.display());
        }
    }

    #[test]
    fn names_of_descriptors_are_recognised_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let [link, again, other] = ["link", "again", "other"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
        std::os::unix::fs::symlink("link", &again).unwrap();
        std::os::unix::fs::symlink("missing/1", &other).unwrap();
        for path in [Path::new("/dev/stdout"), Path::new("/dev/fd/1"), &link, &again] {
            assert_eq!(output_descriptor(path), Some(1), "{}", path.display());
        }
        if cfg!(target_os = "linux") {
            let own = format!("/proc/{}/fd/7", std::process::id());
            for path in ["/proc/self/fd/7", "/proc/thread-self/fd/7", "/dev/../proc/self/fd/7", &own] {
                assert_eq!(input_descriptor(Path::new(path)), Some(7), "{path}");
            }
        }
        for path in [Path::new("/dev/null"), Path::new("1"), Path::new("/dev/fd/x"), &other] {
            assert_eq!(output_descriptor(path), None, "{}", path.display());
        }
    }
}

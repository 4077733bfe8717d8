//! Output files that are written completely or not at all.

mod large;
mod links;
mod unfinished;

pub use unfinished::{Abandoned, abandon_all, abandon_now};

use crate::error::{Error, Result};
use links::follow;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use unfinished::Listed;

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// A file that is being written. [`commit`](Self::commit) makes it appear under its name; dropping it deletes
/// it.
///
/// The data go to a temporary file in the same directory, which is renamed at the end. An existing file that
/// is not regular, as `/dev/null` or a pipe, is written directly. Symbolic links are followed. A new file
/// gets the usual permissions; a replaced file keeps its own.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Whole { file: BufWriter<Temporary>, target: PathBuf, keep: Option<fs::Permissions>, listed: Listed },
    Direct(BufWriter<File>),
}

/// A complete file: its name, the file, its target and its entry among the unfinished ones.
type Filled = (PathBuf, tempfile::NamedTempFile, PathBuf, Listed);

/// A temporary file, whose errors are those of the operating system: its own would add its name, which means
/// nothing to a user.
#[derive(Debug)]
struct Temporary(tempfile::NamedTempFile);

impl Temporary {
    fn as_file(&self) -> &File {
        self.0.as_file()
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

impl OutputFile {
    /// Starts a file. Conditions that would make [`commit`](Self::commit) fail are checked here, before any
    /// work is done.
    ///
    /// # Errors
    /// The directory does not exist or is not writable, the name is that of a directory, or a file of that
    /// name is write-protected: exit code 2.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_as(path, ".apportion-")
    }

    /// The same with another start of the temporary file's name.
    pub(crate) fn create_as(path: impl AsRef<Path>, prefix: &str) -> Result<Self> {
        let path = path.as_ref();
        let refuse = |what: String, remedy: &str| Err(Error::input(path.display().to_string(), what, remedy));
        // Not that of the links' end: it has no name if it is a pipe, as behind /dev/stdout.
        let found = fs::metadata(path);
        let end = follow(path)?;
        let target =
            if found.as_ref().is_ok_and(|found| !found.is_file()) { path.to_path_buf() } else { end };
        let keep = match found {
            Ok(found) if found.is_dir() => return refuse("is a directory".into(), "add a file name to it"),
            Ok(found) => {
                // Opened in either case, to check that the file may be written.
                let file =
                    OpenOptions::new().write(true).open(path).map_err(|e| Error::file(path, "write", e))?;
                if !found.is_file() {
                    let sink = Sink::Direct(BufWriter::with_capacity(BUFFER, file));
                    return Ok(Self { path: path.to_path_buf(), sink });
                }
                Some(found.permissions())
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::file(path, "create", e)),
        };
        let named = target.file_name().is_some() && !path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if !named {
            return refuse("is not the name of a file".into(), "add a file name to it");
        }
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            let what = format!("there is no directory {}", directory.display());
            return refuse(what, "create it, or write elsewhere");
        }
        let (file, listed) = match temporary(directory, prefix) {
            Ok((file, listed)) => (BufWriter::with_capacity(BUFFER, Temporary(file)), listed),
            Err(e) => {
                let what = format!("no file can be created in {}: {e}", directory.display());
                return refuse(what, "make the directory writable, or write elsewhere");
            }
        };
        Ok(Self { path: path.to_path_buf(), sink: Sink::Whole { file, target, keep, listed } })
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk is full, or another error of the operating system.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.sink {
            Sink::Whole { file, .. } if bytes.len() >= large::MANY => {
                file.flush().and_then(|()| large::append(file.get_ref().as_file(), bytes))
            }
            _ => self.write_all(bytes),
        };
        written.map_err(|e| Error::file(&self.path, "write", e))
    }

    /// Extends the file to `length` bytes with zeros, so that other processes can write parts of it, and
    /// returns the path of the temporary file.
    ///
    /// # Errors
    /// The file is not regular, so that parts cannot be written in any order; or the disk is full.
    pub fn share(&mut self, length: u64) -> Result<PathBuf> {
        self.flush().map_err(|e| Error::file(&self.path, "write", e))?;
        match &self.sink {
            Sink::Direct(_) => Err(Error::input(
                self.path.display().to_string(),
                "is not a regular file, so that processes cannot write their parts of it",
                "name a file, or leave the output out",
            )),
            Sink::Whole { file, .. } => {
                let failed = |e| Error::file(&self.path, "write", e);
                extend(file.get_ref().as_file(), length).map_err(failed)?;
                std::path::absolute(file.get_ref().0.path()).map_err(failed)
            }
        }
    }

    /// The bytes that are free on the disk of this file; `None` if the system does not tell, or the file is
    /// not regular.
    pub fn room(&self) -> Option<u64> {
        match &self.sink {
            Sink::Whole { file, .. } => free_bytes(file.get_ref().as_file()),
            Sink::Direct(_) => None,
        }
    }

    /// Checks that the disk has room for `bytes` more, so that a long computation does not end with a full
    /// disk. Later writers may still take the room.
    ///
    /// # Errors
    /// Exit code 1: fewer bytes are free.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        match self.room() {
            Some(free) if free < bytes => {
                let what = format!("{bytes} bytes are needed, and {free} are free on its disk");
                Err(Error::infeasible(
                    format!("{}: {what}", self.path.display()),
                    "free some, or write elsewhere",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Brings what was written so far to the disk. The file does not appear yet.
    ///
    /// # Errors
    /// The disk is full, or another error of the operating system.
    pub fn complete(&mut self) -> Result<()> {
        self.flush().and_then(|()| self.synchronised()).map_err(|e| Error::file(&self.path, "write", e))
    }

    fn synchronised(&self) -> std::io::Result<()> {
        match &self.sink {
            Sink::Whole { file, .. } => file.get_ref().as_file().sync_all(),
            // A pipe or a device cannot be synchronised.
            Sink::Direct(_) => Ok(()),
        }
    }

    /// Makes the complete file appear under its name.
    ///
    /// # Errors
    /// The data do not fit on the disk, or the file cannot be renamed. No file appears then.
    pub fn commit(self) -> Result<()> {
        Self::commit_all(vec![self])
    }

    /// Makes several complete files appear: all of them or, where the process is interrupted, none.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_all(files: Vec<Self>) -> Result<()> {
        let mut full = Vec::with_capacity(files.len());
        for file in files {
            full.extend(file.filled()?);
        }
        let _closed = unfinished::closed();
        for (path, file, target, _listed) in full {
            file.persist(&target).map_err(|e| Error::file(&path, "write", e.error))?;
            unfinished::appeared();
            sync_directory(&target);
        }
        Ok(())
    }

    /// The file on the disk, to be renamed to its target; `None` if it was written directly.
    fn filled(self) -> Result<Option<Filled>> {
        let failed = |e| Error::file(&self.path, "write", e);
        match self.sink {
            Sink::Direct(mut file) => file.flush().map_err(failed).map(|()| None),
            Sink::Whole { file, target, keep, listed } => {
                let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
                if let Some(permissions) = keep {
                    file.as_file().set_permissions(permissions).map_err(failed)?;
                }
                file.as_file().sync_all().map_err(failed)?;
                Ok(Some((self.path, file.0, target, listed)))
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.sink {
            Sink::Whole { file, .. } => file.write(bytes),
            Sink::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.sink {
            Sink::Whole { file, .. } => file.flush(),
            Sink::Direct(file) => file.flush(),
        }
    }
}

/// Writes a whole file at once.
///
/// # Errors
/// Those of [`OutputFile::create`] and [`OutputFile::commit`].
pub fn write_whole(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    file.put(bytes)?;
    file.commit()
}

/// Writes a directory's entries to the disk, so that a renamed file is there after a power failure. Some file
/// systems cannot; the file itself is complete in either case.
fn sync_directory(file: &Path) {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let _ = File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
}

/// Extends an empty file with zeros, and takes the room on the disk at once where the file system can.
fn extend(file: &File, length: u64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, length)) {
            // The file system cannot: it takes the room when the data come.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {}
            Err(e) => return Err(e.into()),
        }
    }
    file.set_len(length)
}

/// The bytes that are free on the disk of a file, if the system tells.
#[cfg(unix)]
fn free_bytes(file: &File) -> Option<u64> {
    let disk = rustix::fs::fstatvfs(file).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_file: &File) -> Option<u64> {
    None
}

/// A temporary file with the permissions of any new file.
fn temporary(directory: &Path, prefix: &str) -> std::io::Result<(tempfile::NamedTempFile, Listed)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // The operating system takes the umask off.
        options.mode(0o666);
    }
    let _closed = unfinished::closed();
    let (mut listed, mut refused) = (None, None);
    let file = tempfile::Builder::new().prefix(prefix).make_in(directory, |path| {
        listed = Some(Listed::new(path)?);
        options.open(path).inspect_err(|error| (listed, refused) = (None, error.raw_os_error()))
    });
    let file = file.map_err(|error| refused.map_or(error, std::io::Error::from_raw_os_error))?;
    let listed = listed.ok_or_else(|| std::io::Error::other("no file was created"))?;
    Ok((file, listed))
}

#[cfg(test)]
mod tests;

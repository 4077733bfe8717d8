//! Outputs that are written completely or not at all: the one place that decides how.

mod large;
mod links;
mod target;
mod unfinished;

pub use target::{Target, targets};
pub use unfinished::{Abandoned, abandon_all, abandon_now};

use crate::error::{Error, Result};
use crate::files::{duplicate, output_descriptor};
use links::follow;
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use unfinished::Listed;

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// A file that is being written. [`commit`](Self::commit) makes it appear under its name; dropping it deletes
/// it.
///
/// The data go to a temporary file in the same directory, which is renamed at the end. Symbolic links are
/// followed. A new file gets the usual permissions; a replaced file keeps its own.
///
/// An output that is no regular file with a name of its own is a stream: a descriptor of this process
/// (`/dev/stdout`, `/dev/fd/3`, a link to one, the file to which the standard output is redirected), a pipe,
/// a device. Its data follow what was written there before, once they are complete: it is neither replaced
/// nor truncated. A reader that has closed a pipe is no error.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Whole {
        file: BufWriter<Temporary>,
        target: PathBuf,
        keep: Option<fs::Permissions>,
        listed: Listed,
        /// False for a file of the program's own, such as a cache.
        counts: bool,
    },
    /// The contents so far, which go to the stream when they are complete.
    Stream { contents: tempfile::SpooledTempFile, stream: File },
}

/// A complete file.
struct Filled {
    path: PathBuf,
    file: tempfile::NamedTempFile,
    target: PathBuf,
    counts: bool,
    _listed: Listed,
}

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
        Self::create_as(path.as_ref(), ".apportion-", true)
    }

    /// A file of the program's own, such as a cache or a part of a checkpoint, which is not counted among the
    /// outputs; with another start of the temporary file's name.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_own(path: impl AsRef<Path>, prefix: &str) -> Result<Self> {
        Self::create_as(path.as_ref(), prefix, false)
    }

    fn create_as(path: &Path, prefix: &str, counts: bool) -> Result<Self> {
        if let Some(stream) = open_stream(path)? {
            let contents = tempfile::spooled_tempfile(BUFFER);
            return Ok(Self { path: path.to_path_buf(), sink: Sink::Stream { contents, stream } });
        }
        let refuse = |what: String, remedy: &str| Err(Error::input(path.display().to_string(), what, remedy));
        let found = fs::metadata(path);
        let target = follow(path)?;
        let keep = match found {
            Ok(found) if found.is_dir() => return refuse("is a directory".into(), "add a file name to it"),
            Ok(found) => {
                // Opened to check that the file may be written.
                OpenOptions::new().write(true).open(path).map_err(|e| Error::file(path, "write", e))?;
                Some(found.permissions())
            }
            Err(e) if e.kind() == ErrorKind::NotFound => None,
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
        Ok(Self { path: path.to_path_buf(), sink: Sink::Whole { file, target, keep, listed, counts } })
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the data follow what is there already, rather than replace a file.
    pub fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream { .. })
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
            Sink::Stream { .. } => Err(Error::input(
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
            Sink::Stream { .. } => None,
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
            Sink::Stream { .. } => Ok(()),
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
        for Filled { path, file, target, counts, _listed } in full {
            file.persist(&target).map_err(|e| Error::file(&path, "write", e.error))?;
            if counts {
                unfinished::appeared();
            }
            sync_directory(&target);
        }
        Ok(())
    }

    /// The file on the disk, to be renamed to its target; `None` for a stream, which has the data then.
    fn filled(self) -> Result<Option<Filled>> {
        let failed = |e| Error::file(&self.path, "write", e);
        match self.sink {
            Sink::Stream { mut contents, mut stream } => {
                contents.rewind().map_err(failed)?;
                let copied = std::io::copy(&mut BufReader::with_capacity(BUFFER, contents), &mut stream);
                match copied {
                    Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(failed(e)),
                    _ => Ok(None),
                }
            }
            Sink::Whole { file, target, keep, listed, counts } => {
                let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
                if let Some(permissions) = keep {
                    file.as_file().set_permissions(permissions).map_err(failed)?;
                }
                file.as_file().sync_all().map_err(failed)?;
                Ok(Some(Filled { path: self.path, file: file.0, target, counts, _listed: listed }))
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.sink {
            Sink::Whole { file, .. } => file.write(bytes),
            Sink::Stream { contents, .. } => contents.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.sink {
            Sink::Whole { file, .. } => file.flush(),
            Sink::Stream { contents, .. } => contents.flush(),
        }
    }
}

/// The stream to which an output's name leads; `None` for a regular file with a name of its own, and for a
/// file that is not there. Opening a pipe waits for its reader.
///
/// # Errors
/// The stream is not open, or only for reading: exit code 2.
fn open_stream(path: &Path) -> Result<Option<File>> {
    let failed = |e| Error::file(path, "write", e);
    if let Some(number) = stream_number(path) {
        let stream = duplicate(number).map_err(failed)?;
        if !is_writable(&stream) {
            return Err(Error::input(
                path.display().to_string(),
                "is open for reading only",
                "name an output that can be written, such as -",
            ));
        }
        return Ok(Some(stream));
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            OpenOptions::new().write(true).open(path).map(Some).map_err(failed)
        }
        _ => Ok(None),
    }
}

/// The descriptor to which an output's name leads: by a name for descriptors, or since the standard output or
/// the standard error is redirected to this very file.
fn stream_number(path: &Path) -> Option<u32> {
    output_descriptor(path).or_else(|| {
        let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        [1, 2].into_iter().find(|number| {
            duplicate(*number)
                .and_then(|file| file.metadata())
                .is_ok_and(|open| target::is_same(&open, &there))
        })
    })
}

/// True for an output that is a stream; see [`OutputFile`]. Opens nothing.
pub fn is_stream(path: &Path) -> bool {
    stream_number(path).is_some() || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Checks that an output can be written, as [`OutputFile::create`] does, but leaves it alone: a pipe's reader
/// would take its end for the end of the data.
///
/// # Errors
/// As [`OutputFile::create`].
pub fn try_output(path: &Path) -> Result<()> {
    let is_pipe = stream_number(path).is_none() && is_stream(path);
    if is_pipe { Ok(()) } else { OutputFile::create(path).map(drop) }
}

#[cfg(unix)]
fn is_writable(file: &File) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl};
    fcntl_getfl(file).is_ok_and(|flags| flags & OFlags::ACCMODE != OFlags::RDONLY)
}

#[cfg(not(unix))]
fn is_writable(_: &File) -> bool {
    true
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

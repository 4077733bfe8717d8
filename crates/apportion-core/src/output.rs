//! Outputs that are written completely or not at all: the one place that decides how.

use crate::error::{Error, Result};
use crate::files::{duplicate, input_descriptor, output_descriptor};
use crate::{memory, threads};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use std::{fs, io};

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
/// nor truncated. A reader that has closed a pipe before all is written is an error.
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
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
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
        // A file of the program's own is no stream: a pipe in its place would be waited for.
        let stream = if counts { open_stream(path)? } else { None };
        if let Some(stream) = stream {
            let contents = tempfile::spooled_tempfile(BUFFER);
            return Ok(Self { path: path.to_path_buf(), sink: Sink::Stream { contents, stream } });
        }
        let refuse = |what: String, remedy: &str| Err(Error::input(path.display().to_string(), what, remedy));
        let found = fs::metadata(path);
        let target = follow(path)?;
        let keep = match found {
            Ok(found) if found.is_dir() => return refuse("is a directory".into(), "add a file name to it"),
            Ok(found) if !found.is_file() => return refuse("is not a regular file".into(), "remove it"),
            Ok(found) => {
                // Opened to check that the file may be written.
                OpenOptions::new().write(true).open(path).map_err(|e| Error::file(path, "write", e))?;
                Some(without_privilege(found.permissions()))
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
            Sink::Whole { file, .. } if bytes.len() >= MANY => {
                file.flush().and_then(|()| append(file.get_ref().as_file(), bytes))
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

    /// True if the data go to the disk of this directory too, whose room both need.
    pub fn is_on_disk_of(&self, directory: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let Sink::Whole { file, .. } = &self.sink else { return false };
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            let disks =
                file.get_ref().as_file().metadata().and_then(|own| Ok((own, fs::metadata(directory)?)));
            disks.is_ok_and(|(own, there)| own.dev() == there.dev())
        }
        #[cfg(not(unix))]
        {
            let _ = directory;
            false
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

    fn synchronised(&self) -> io::Result<()> {
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
        let _closed = closed();
        for Filled { path, file, target, counts, _listed } in full {
            file.persist(&target).map_err(|e| Error::file(&path, "write", e.error))?;
            if counts {
                appeared();
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
                let copied = io::copy(&mut BufReader::with_capacity(BUFFER, contents), &mut stream);
                copied.map(|_| None).map_err(failed)
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
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Whole { file, .. } => file.write(bytes),
            Sink::Stream { contents, .. } => contents.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
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
        let there = fs::metadata(path).ok().filter(Metadata::is_file)?;
        [1, 2].into_iter().find(|number| {
            duplicate(*number).and_then(|file| file.metadata()).is_ok_and(|open| is_same(&open, &there))
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

/// The permissions of a file with other contents: nobody has trusted these with another user's rights.
fn without_privilege(permissions: fs::Permissions) -> fs::Permissions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::Permissions::from_mode(permissions.mode() & 0o1777)
    }
    #[cfg(not(unix))]
    permissions
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

/// Writes a file of what is cached between runs, and its directory; a cache that cannot be written is not an
/// error.
pub fn write_cache(path: &Path, contents: impl AsRef<[u8]>) {
    if let Some(directory) = path.parent()
        && fs::create_dir_all(directory).is_ok()
    {
        let written = OutputFile::create_own(path, ".apportion-").and_then(|mut file| {
            file.put(contents.as_ref())?;
            file.commit()
        });
        let _ = written;
    }
}

/// Writes a directory's entries to the disk, so that a renamed file is there after a power failure. Some file
/// systems cannot; the file itself is complete in either case.
fn sync_directory(file: &Path) {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let _ = File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
}

/// Extends an empty file with zeros, and takes the room on the disk at once where the file system can.
fn extend(file: &File, length: u64) -> io::Result<()> {
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
fn temporary(directory: &Path, prefix: &str) -> io::Result<(tempfile::NamedTempFile, Listed)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // The operating system takes the umask off.
        options.mode(0o666);
    }
    let _closed = closed();
    let (mut listed, mut refused) = (None, None);
    let file = tempfile::Builder::new().prefix(prefix).make_in(directory, |path| {
        listed = Some(Listed::new(path)?);
        options.open(path).inspect_err(|error| (listed, refused) = (None, error.raw_os_error()))
    });
    let file = file.map_err(|error| refused.map_or(error, io::Error::from_raw_os_error))?;
    let listed = listed.ok_or_else(|| io::Error::other("no file was created"))?;
    Ok((file, listed))
}

// Many bytes, which go to the disk while they are written: the wait for it at the end is shorter.

/// Bytes that are many.
const MANY: usize = 64 << 20;

/// Appends the bytes. While the second half is copied to the system, the first goes to the disk.
///
/// # Errors
/// The disk is full, or another error of the operating system.
fn append(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    threads::scope(|scope| {
        let helper = threads::start(scope, move || file.sync_data());
        file.write_all(second)?;
        // Without a thread, all goes to the disk at the end. What failed here is not told again there.
        helper.map_or(Ok(()), |helper| helper.join().expect("bringing data to the disk does not panic"))
    })
}

// Symbolic links in the names of outputs, followed as the system itself would.

/// Links that are followed before a chain is called endless, as Linux does.
const LONGEST_CHAIN: usize = 40;

/// The end of a chain of symbolic links, which need not exist.
///
/// # Errors
/// Exit code 2: the chain does not end, or it passes a link that another user left in a directory that
/// everybody may write to, such as `/tmp`. Linux refuses to write through those where
/// `fs.protected_symlinks` is set; a rename would not notice.
fn follow(path: &Path) -> Result<PathBuf> {
    let place = path.display().to_string();
    let mut target = path.to_path_buf();
    for _ in 0..LONGEST_CHAIN {
        let Ok(next) = fs::read_link(&target) else {
            return Ok(target);
        };
        if is_foreign(&target) {
            let what = format!("{} is a link that another user left in a shared directory", target.display());
            return Err(Error::input(place, what, "remove the link, or write elsewhere"));
        }
        // A relative link is relative to its own directory.
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(Error::input(place, "is a symbolic link that leads to itself", "remove the link, or write elsewhere"))
}

/// True for a link in a sticky directory that others may write to, which belongs neither to this user nor to
/// the directory's owner: the rule of `fs.protected_symlinks`.
#[cfg(unix)]
fn is_foreign(link: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// Sticky, and writable by all.
    const SHARED: u32 = 0o1002;
    let directory = match link.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (Ok(link), Ok(directory)) = (fs::symlink_metadata(link), fs::metadata(directory)) else {
        return false;
    };
    let ours = [rustix::process::geteuid().as_raw(), directory.uid()];
    directory.mode() & SHARED == SHARED && !ours.contains(&link.uid())
}

#[cfg(not(unix))]
fn is_foreign(_link: &Path) -> bool {
    false
}

// Where a name leads, so that two names of one file are recognised.

/// One of the identities of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A descriptor of this process.
    Descriptor(u32),
    /// A regular file or a pipe, under whatever name: its device and its inode.
    Inode([u64; 2]),
    /// A name in a directory, without links.
    Name {
        /// The directory.
        directory: PathBuf,
        /// The name in it.
        name: String,
    },
}

/// Where the name of an output (or of an input) leads, also if the file is not there yet. Devices such as
/// `/dev/null` have no identity: they take any number of outputs. Names that cannot be followed have none.
pub fn targets(path: &Path, output: bool) -> Vec<Target> {
    let number = if output { output_descriptor(path) } else { input_descriptor(path) };
    if let Some(number) = number {
        let open = duplicate(number).and_then(|file| file.metadata()).ok();
        return [Some(Target::Descriptor(number)), open.as_ref().and_then(inode)]
            .into_iter()
            .flatten()
            .collect();
    }
    let found = fs::metadata(path).ok();
    if found.as_ref().is_some_and(|found| inode(found).is_none() && cfg!(unix)) {
        return Vec::new();
    }
    let mut all: Vec<Target> = found.as_ref().and_then(inode).into_iter().collect();
    let Ok(end) = follow(path) else { return all };
    let parent = end.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let (Ok(directory), Some(name)) = (parent.canonicalize(), end.file_name()) {
        all.push(Target::Name { directory, name: name.to_string_lossy().into_owned() });
    }
    all
}

/// The identity of a file that takes one output only.
#[cfg(unix)]
fn inode(found: &Metadata) -> Option<Target> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let takes_one = found.is_file() || found.file_type().is_fifo();
    takes_one.then(|| Target::Inode([found.dev(), found.ino()]))
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<Target> {
    None
}

/// True if both describe one file.
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    inode(a).is_some() && inode(a) == inode(b)
}

// The temporary files of all outputs that are being written, for processes that must end at once.
//
// A file is listed before it exists. The list has a lock of its own under which nothing waits and no memory
// is taken, so that it can be read wherever an allocation is refused.

static LISTED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held while an output begins or appears.
static GATE: Mutex<()> = Mutex::new(());

/// Outputs that have appeared.
static APPEARED: AtomicUsize = AtomicUsize::new(0);

/// The longest that a process which cannot go on waits for outputs that begin or appear now.
const PATIENCE: Duration = Duration::from_secs(1);

/// Outputs that were abandoned; see [`abandon_all`].
#[derive(Debug)]
pub struct Abandoned {
    /// The number of files that had appeared before.
    pub appeared: usize,
    _gate: MutexGuard<'static, ()>,
}

/// Removes the temporary files of all outputs that are being written, for a process that is about to end at
/// once. No output begins or appears as long as the returned value lives.
pub fn abandon_all() -> Abandoned {
    let gate = closed();
    remove_all(&list());
    Abandoned { appeared: APPEARED.load(Ordering::SeqCst), _gate: gate }
}

/// The same where this thread may itself be beginning an output or making one appear: where memory is
/// refused, or after SIGABRT. Outputs of other threads that appear now are waited for, but not for long.
pub fn abandon_now() -> usize {
    // Never opened again: the process ends.
    std::mem::forget(patiently(&GATE));
    if let Some(list) = patiently(&LISTED) {
        remove_all(&list);
    }
    APPEARED.load(Ordering::SeqCst)
}

/// Locks, unless that takes too long.
fn patiently<T>(lock: &'static Mutex<T>) -> Option<MutexGuard<'static, T>> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn remove_all(list: &[PathBuf]) {
    for path in list {
        // The process ends; an error cannot be reported.
        let _ = fs::remove_file(path);
    }
}

/// Keeps the process from abandoning outputs, as long as the guard is kept.
fn closed() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more output has appeared.
fn appeared() {
    APPEARED.fetch_add(1, Ordering::SeqCst);
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    LISTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file's entry in the list.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    /// An entry for a file that is about to be created.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let (entry, own) = (path.to_owned(), Self(path.to_owned()));
        let mut list = list();
        if memory::ask(|| list.try_reserve(1)).is_err() {
            // Before the entry is dropped, which looks for itself.
            drop(list);
            return Err(ErrorKind::OutOfMemory.into());
        }
        list.push(entry);
        Ok(own)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = list();
        let found = list.iter().position(|path| *path == self.0);
        let entry = found.map(|at| list.swap_remove(at));
        drop(list);
        drop(entry);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod large_tests {
    use super::*;

    #[test]
    fn halves_follow_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..99_999).map(|i| (i % 251) as u8).collect();
        append(file.as_file(), &bytes[..50_001]).unwrap();
        append(file.as_file(), &bytes[50_001..]).unwrap();
        assert!(fs::read(file.path()).unwrap() == bytes);
        #[cfg(unix)]
        assert!(append(&File::open(file.path()).unwrap(), &bytes).is_err());
    }
}

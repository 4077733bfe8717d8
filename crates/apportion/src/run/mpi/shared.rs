//! Memory that the ranks of one host share. Each rank has a file in memory that no folder names, and that
//! ends with the last process that has it open. It grows by segments, each of which carries one message at a
//! time: the sender packs into it, the receiver reads it in place, and then gives it back.
//!
//! A segment begins with its state, by which the two processes agree whose it is. A notice, which travels as
//! an ordinary message, says which segment carries what, so that messages are ordered, counted and missed as
//! others are.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, fallocate, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a segment before its words.
const HEAD: usize = 64;

/// Lengths of segments are multiples of this, and so of any page.
const GRAIN: u64 = 64 << 10;

/// Whose a segment is: the sender's until it is sent, and again when it is free.
const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const SENT: u32 = 2;
const TAKEN: u32 = 3;

/// The first bytes of a segment.
#[repr(C)]
struct Head {
    state: AtomicU32,
    /// The number of the message among all that its sender sent in this way.
    number: AtomicU64,
    words: AtomicU64,
}

/// The words of a notice that say which segment carries a message: its place, its bytes, the message's
/// number.
pub(in crate::run) const NOTICE: usize = 3;

/// This rank's file, and those of the others.
#[derive(Debug)]
pub(in crate::run) struct SharedMemory {
    mine: Mine,
    /// By rank.
    theirs: Vec<Theirs>,
}

/// This rank's file, before the others have it.
#[derive(Debug)]
pub(in crate::run) struct Mine {
    file: File,
    name: u64,
    segments: Mutex<Segments>,
}

#[derive(Debug, Default)]
struct Segments {
    all: Vec<Segment>,
    /// Where the next new one begins.
    end: u64,
    sent: u64,
}

#[derive(Debug, Clone)]
struct Segment {
    place: u64,
    memory: Arc<Mapping>,
}

/// Another rank's file, with the segments that have been seen, by place.
#[derive(Debug)]
struct Theirs {
    file: File,
    seen: Mutex<BTreeMap<u64, Arc<Mapping>>>,
}

impl Mine {
    /// A new file; `None` where the system has none, or limits the size of files, of which this is one.
    pub(crate) fn new() -> Option<Self> {
        if getrlimit(Resource::Fsize).current.is_some() {
            return None;
        }
        let name = RandomState::new().build_hasher().finish();
        let file = memfd_create(title(name), MemfdFlags::CLOEXEC).ok()?.into();
        Some(Self { file, name, segments: Mutex::default() })
    }

    /// How other processes of this host find the file: process, descriptor, name.
    pub(crate) fn address(&self) -> [u64; 3] {
        use std::os::fd::AsRawFd;
        [u64::from(std::process::id()), self.file.as_raw_fd() as u64, self.name]
    }

    /// With the files of all ranks, by rank; `None` if one of them cannot be opened here, as in another
    /// container.
    pub(crate) fn with(self, addresses: &[[u64; 3]]) -> Option<SharedMemory> {
        let theirs = addresses.iter().map(|address| Theirs::open(*address)).collect::<Option<_>>()?;
        Some(SharedMemory { mine: self, theirs })
    }
}

/// What the system calls the file of this name.
fn title(name: u64) -> String {
    format!("apportion-{name:016x}")
}

impl Theirs {
    fn open([process, descriptor, name]: [u64; 3]) -> Option<Self> {
        let link = format!("/proc/{process}/fd/{descriptor}");
        // Nothing else is opened: in another container, another process may have this number.
        let target = std::fs::read_link(&link).ok()?;
        if target.to_str()? != format!("/memfd:{} (deleted)", title(name)) {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(flags).open(link).ok()?;
        Some(Self { file, seen: Mutex::default() })
    }

    /// The segment at this place.
    fn segment(&self, place: u64, bytes: u64) -> io::Result<Option<Arc<Mapping>>> {
        let mut seen = locked(&self.seen);
        if let Some(memory) = seen.get(&place) {
            return Ok((memory.bytes as u64 == bytes).then(|| memory.clone()));
        }
        let end = place.checked_add(bytes);
        let is_whole = place.is_multiple_of(GRAIN) && bytes.is_multiple_of(GRAIN) && bytes > 0;
        if !is_whole || end.is_none_or(|end| end > fstat(&self.file).map_or(0, |stat| stat.st_size as u64)) {
            return Ok(None);
        }
        let memory = Arc::new(Mapping::new(&self.file, place, bytes as usize)?);
        seen.insert(place, memory.clone());
        Ok(Some(memory))
    }
}

impl SharedMemory {
    /// Memory for a message of this many words. It is that of an earlier message, if one has been given back
    /// that is long enough; a shorter one makes room for it.
    ///
    /// # Errors
    /// The system has no more memory.
    pub(crate) fn claim(&self, words: usize) -> Result<Outgoing> {
        let bytes = ((HEAD + size_of::<u64>() * words) as u64).next_multiple_of(GRAIN);
        let mut segments = locked(&self.mine.segments);
        let free = |segment: &&Segment| segment.memory.head().state.load(Ordering::Acquire) == FREE;
        let fit = segments.all.iter().filter(free).filter(|segment| segment.memory.bytes as u64 >= bytes);
        let (segment, is_new) = match fit.min_by_key(|segment| segment.memory.bytes).cloned() {
            Some(segment) => (segment, false),
            None => {
                let all = &segments.all;
                let unused = (0..all.len()).filter(|&i| free(&&all[i]));
                if let Some(longest) = unused.max_by_key(|&i| all[i].memory.bytes) {
                    self.mine.give_up(&segments.all.swap_remove(longest));
                }
                (self.mine.new_segment(&mut segments, bytes).map_err(|why| refused(bytes, &why))?, true)
            }
        };
        segments.sent += 1;
        let head = segment.memory.head();
        head.state.store(CLAIMED, Ordering::Relaxed);
        head.number.store(segments.sent, Ordering::Relaxed);
        head.words.store(words as u64, Ordering::Relaxed);
        Ok(Outgoing { segment, words, number: segments.sent, is_new })
    }

    /// Makes room for messages of these many words, so that the first ones need not wait for the system's
    /// memory.
    ///
    /// # Errors
    /// The system has no more memory.
    pub(crate) fn reserve(&self, lengths: &[usize]) -> Result<()> {
        let claimed: Vec<Outgoing> = lengths.iter().map(|words| self.claim(*words)).collect::<Result<_>>()?;
        for mut message in claimed {
            if message.is_new {
                message.words().fill(0);
            }
            message.segment.memory.head().state.store(FREE, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the message that a notice announces; `None` if it is not there, or is not of this many words:
    /// the notice is another message's.
    ///
    /// # Errors
    /// The system has no more memory.
    pub(crate) fn take(
        &self,
        from: usize,
        [place, bytes, number]: [u64; NOTICE],
        words: usize,
    ) -> Result<Option<Incoming>> {
        let found = self.theirs[from].segment(place, bytes).map_err(|why| refused(bytes, &why))?;
        let announced = |memory: &Arc<Mapping>| {
            let head = memory.head();
            head.state.load(Ordering::Acquire) == SENT
                && head.number.load(Ordering::Relaxed) == number
                && head.words.load(Ordering::Relaxed) == words as u64
                && HEAD + size_of::<u64>() * words <= memory.bytes
        };
        let Some(memory) = found.filter(announced) else { return Ok(None) };
        memory.head().state.store(TAKEN, Ordering::Release);
        Ok(Some(Incoming { memory, words }))
    }
}

impl Mine {
    /// A segment at the end of the file.
    fn new_segment(&self, segments: &mut Segments, bytes: u64) -> io::Result<Segment> {
        let place = segments.end;
        ftruncate(&self.file, place + bytes)?;
        segments.end = place + bytes;
        let memory = Arc::new(Mapping::new(&self.file, place, bytes as usize)?);
        let segment = Segment { place, memory };
        segments.all.push(segment.clone());
        Ok(segment)
    }

    /// Returns a segment's memory to the system, also where the receiver still maps it.
    fn give_up(&self, segment: &Segment) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Otherwise it is kept until the file ends.
        let _ = fallocate(&self.file, hole, segment.place, segment.memory.bytes as u64);
    }
}

/// A message that is being packed.
#[derive(Debug)]
pub(in crate::run) struct Outgoing {
    segment: Segment,
    words: usize,
    number: u64,
    /// True if the system has not given the memory yet.
    is_new: bool,
}

impl Outgoing {
    /// The words to be filled; they have any value.
    pub(crate) fn words(&mut self) -> &mut [u64] {
        let first = self.segment.memory.words();
        // SAFETY: the mapping is longer than the words, which are aligned; while the segment is claimed, no
        // process but this one has a reference to them, and in this one only the claim, which is borrowed.
        unsafe { std::slice::from_raw_parts_mut(first, self.words) }
    }

    /// Hands the message over. The notice is for its receiver, who takes it then.
    pub(crate) fn send(self) -> ([u64; NOTICE], Sent) {
        let Segment { place, memory } = self.segment;
        memory.head().state.store(SENT, Ordering::Release);
        let notice = [place, memory.bytes as u64, self.number];
        (notice, Sent { memory, number: self.number })
    }
}

/// A message that was handed over.
#[derive(Debug)]
pub(in crate::run) struct Sent {
    memory: Arc<Mapping>,
    number: u64,
}

impl Sent {
    /// True once its receiver has taken it.
    pub(crate) fn is_taken(&self) -> bool {
        let head = self.memory.head();
        head.state.load(Ordering::Acquire) != SENT || head.number.load(Ordering::Relaxed) != self.number
    }
}

/// A received message. Its memory is the sender's again once this is dropped.
#[derive(Debug)]
pub(in crate::run) struct Incoming {
    memory: Arc<Mapping>,
    words: usize,
}

impl Incoming {
    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: the mapping is longer than the words, which are aligned; the sender writes again only after
        // `drop`.
        unsafe { std::slice::from_raw_parts(self.memory.words(), self.words) }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.memory.head().state.store(FREE, Ordering::Release);
    }
}

/// A part of a file in this process's memory.
#[derive(Debug)]
struct Mapping {
    first: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is reached through atomics, and through references that the state of its segment
// permits.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &File, place: u64, bytes: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses a place where nothing else is.
        let first = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, place)? };
        Ok(Self { first: NonNull::new(first.cast()).expect("no mapping is at 0"), bytes })
    }

    fn head(&self) -> &Head {
        // SAFETY: a segment begins with its head; all of its fields are atomic, and any bits are valid.
        unsafe { self.first.cast::<Head>().as_ref() }
    }

    fn words(&self) -> *mut u64 {
        self.first.as_ptr().wrapping_add(HEAD).cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no reference outlives the mapping. A failure leaves it where it is.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

fn refused(bytes: u64, why: &io::Error) -> Error {
    let what = format!("{bytes} bytes for a message between two ranks of this host are refused: {why}");
    Error::input("memory", what, "use a smaller block, or a machine with more memory")
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! Calls of MPI. `library.rs` loads it, or finds one that runs already; the interface of both is safe.

#![allow(unsafe_code)]

use super::library::{
    self, Communicator, Dialect, Functions, Handle, Question, Request, answers, functions, largest_tag, load,
    return_errors, running, unusable, version_of,
};
use crate::error::{Error, Result};
use crate::run::Launcher;
use crate::run::world::{Pending, TAGS, Transfer};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of bytes of one MPI message on one host: longer ones travel in parts of this size.
const LARGEST: usize = 8 << 20;

/// Maximum number of bytes of one MPI message between hosts. It is below the libraries' eager limits, so that
/// no handshake precedes the data. With longer messages, the answers of the handshake wait behind data that
/// travel the same way, and two ranks that send to each other lose time.
const LARGEST_BETWEEN_HOSTS: usize = 60 << 10;

/// An initialised MPI. Calls are made one at a time, from any thread.
#[derive(Debug)]
pub(in crate::run) struct Mpi {
    functions: Mutex<Functions>,
    /// The communicator of all messages.
    comm: Handle,
    byte: Handle,
    /// True if the communicator is a duplicate of one of another program's, which ends MPI itself.
    adopted: bool,
    name: String,
    threads: bool,
    numbers: Numbers,
    /// Maximum number of words of one MPI message; the same on all ranks.
    part: usize,
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

/// Room for any library's `MPI_Status` (20 to 32 bytes).
type Status = [u64; 16];

/// A loaded and initialised library.
struct Library {
    name: String,
    library: libloading::os::unix::Library,
    functions: Functions,
    dialect: Dialect,
}

impl Mpi {
    /// Loads the first library of `names` that exists, and joins the world. `bare` is the launcher if it has given the
    /// processes no interface to join.
    pub(crate) fn start(names: &[String], bare: Option<&Launcher>) -> Result<Self> {
        let (name, library) = load(names)?;
        let (functions, dialect) = functions(&library, &name)?;
        // Open MPI would end the process, with a page of its own. MPICH may find the others by Slurm's variables.
        if let Some(launcher) = bare.filter(|_| dialect.abi == library::Abi::OpenMpi) {
            let what = format!("{name} ({}) was given no interface to join them", version_of(&functions));
            return Err(Error::input("MPI", what, launcher.remedy));
        }
        for question in [&b"MPI_Initialized\0"[..], b"MPI_Finalized\0"] {
            if answers(&library, question) {
                let remedy = "join once and keep the world, or adopt a communicator";
                return Err(Error::input("MPI", "this process has joined it before", remedy));
            }
        }
        let mut level = 0;
        // SAFETY: MPI allows null for the arguments; the result is written to a live integer.
        unsafe {
            (functions.init)(std::ptr::null_mut(), std::ptr::null_mut(), dialect.serialized, &mut level);
        }
        let adopted = false;
        Self::on(Library { name, library, functions, dialect }, dialect.world, level, adopted)
    }

    /// Joins the processes of a communicator of the MPI that this process runs already. All of them must call
    /// it. The communicator is duplicated, so that its own messages are not disturbed.
    pub(crate) fn adopt(communicator: Communicator) -> Result<Self> {
        let (name, library) = running()?;
        let (functions, dialect) = functions(&library, &name)?;
        let handle = library::handle(communicator, dialect.abi, &library)?;
        let mut comm: Handle = 0;
        let mut level = 0;
        // SAFETY: the handle has the form of this library's; a result that is a C `int` fills the lower half
        // of a word that was zero.
        unsafe {
            let duplicate: unsafe extern "C" fn(Handle, *mut Handle) -> c_int =
                *library.get(b"MPI_Comm_dup\0").map_err(|e| unusable(&name, &e))?;
            let done = duplicate(handle, &mut comm);
            if done != 0 {
                let what = format!("{name} cannot duplicate the communicator: error {done}");
                let remedy = "give one that is valid on all its processes";
                return Err(Error::input("communicator", what, remedy));
            }
            if let Ok(query) = library.get::<Question>(b"MPI_Query_thread\0") {
                query(&mut level);
            }
        }
        Self::on(Library { name, library, functions, dialect }, comm, level, true)
    }

    /// On a communicator, with this level of thread support.
    fn on(mpi: Library, comm: Handle, level: c_int, adopted: bool) -> Result<Self> {
        let Library { name, library, functions, dialect } = mpi;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised, and the communicator is this library's; the results are written to live
        // integers.
        let done = unsafe { (functions.rank)(comm, &mut rank) | (functions.size)(comm, &mut size) };
        if done != 0 {
            let what = format!("{name} does not answer about the communicator: error {done}");
            return Err(Error::input("communicator", what, "give one that is valid on all its processes"));
        }
        return_errors(&library, &dialect, comm);
        let numbers = Numbers::up_to(largest_tag(&library, &dialect));
        // The library's code is used until the process ends, by exit handlers as well.
        std::mem::forget(library);
        Ok(Self {
            functions: Mutex::new(functions),
            comm,
            byte: dialect.byte,
            adopted,
            name,
            threads: level >= dialect.serialized,
            numbers,
            part: LARGEST_BETWEEN_HOSTS / size_of::<u64>(),
            rank: rank as usize,
            size: size as usize,
        })
    }

    /// The file that was loaded.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends messages of the size that suits ranks of one host. All ranks must call it, with no message in
    /// flight.
    pub(crate) fn use_large_messages(&mut self) {
        self.part = LARGEST / size_of::<u64>();
    }

    /// True if threads other than the one that started MPI may make calls.
    pub(crate) fn any_thread(&self) -> bool {
        self.threads
    }

    /// The first line of the library's version string.
    pub(crate) fn version(&self) -> String {
        version_of(&self.functions())
    }

    /// Starts sending words to a rank; the tag is at most 2^15 - 1.
    pub(crate) fn send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer {
        let functions = self.functions();
        let (comm, byte) = (self.comm, self.byte);
        let start = |part: &[u64]| {
            let mut request = 0;
            let bytes = size_of_val(part) as c_int;
            let tag = self.numbers.tag(to, true, tag, part.len(), TAGS);
            // SAFETY: the memory lives and stays where it is until the transfer is done: see `Transfer`'s
            // drop.
            let sent = unsafe {
                (functions.send)(part.as_ptr().cast(), bytes, byte, to as c_int, tag, comm, &mut request)
            };
            assert_eq!(sent, 0, "MPI_Isend of {bytes} bytes to rank {to} works");
            request
        };
        // If a later part fails, the memory of earlier parts, which is in flight, is not freed.
        let mut transfer = Transfer { peer: to, words, pending: Pending::Requests(Vec::new()) };
        for part in parts(transfer.words.len(), self.part) {
            let request = start(&transfer.words[part]);
            transfer.push_request(request);
        }
        transfer
    }

    /// Starts receiving words from a rank; they must fill `room` exactly.
    pub(crate) fn receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer {
        let functions = self.functions();
        let (comm, byte) = (self.comm, self.byte);
        let start = |part: &mut [u64]| {
            let mut request = 0;
            let bytes = size_of_val(part) as c_int;
            let tag = self.numbers.tag(from, false, tag, part.len(), TAGS);
            // SAFETY: as for `send`; no other code reads or writes the memory until the transfer is done.
            let posted = unsafe {
                (functions.receive)(
                    part.as_mut_ptr().cast(),
                    bytes,
                    byte,
                    from as c_int,
                    tag,
                    comm,
                    &mut request,
                )
            };
            assert_eq!(posted, 0, "MPI_Irecv of {bytes} bytes from rank {from} works");
            request
        };
        let mut transfer = Transfer { peer: from, words: room, pending: Pending::Requests(Vec::new()) };
        for part in parts(transfer.words.len(), self.part) {
            let request = start(&mut transfer.words[part]);
            transfer.push_request(request);
        }
        transfer
    }

    /// True once all requests of a transfer are done; those are removed.
    ///
    /// # Errors
    /// The library's error code, as of a message that is longer than the receiver expects.
    pub(crate) fn are_done(&self, requests: &mut Vec<Request>) -> std::result::Result<bool, c_int> {
        let functions = self.functions();
        while let Some(request) = requests.last_mut() {
            let (mut flag, mut status): (c_int, Status) = (0, [0; 16]);
            // SAFETY: the request is one of this library's; the status is larger than any library's.
            let tested = unsafe { (functions.test)(request, &mut flag, status.as_mut_ptr().cast()) };
            if tested != 0 {
                // MPI has freed the request, or still uses the memory: the transfer keeps both.
                return Err(tested);
            }
            if flag == 0 {
                return Ok(false);
            }
            requests.pop();
        }
        Ok(true)
    }

    /// Lets the library advance the messages in flight.
    pub(crate) fn probe(&self) {
        let (mut flag, mut status): (c_int, Status) = (0, [0; 16]);
        // SAFETY: probes for a message from this rank to itself, which is never sent; results are written to
        // live memory.
        unsafe {
            (self.functions().probe)(
                self.rank as c_int,
                0x7fff,
                self.comm,
                &mut flag,
                status.as_mut_ptr().cast(),
            );
        }
    }

    /// Ends all ranks.
    pub(crate) fn end_all(&self, code: u8) -> ! {
        // Launchers may drop output that they have not yet forwarded when a rank aborts. That of Open MPI 4.1
        // crashes or hangs at times if several ranks abort at once, as all do that wait for one: the first
        // one ends the others.
        let before = self.rank.min(8) as u64;
        std::thread::sleep(Duration::from_millis(100 + 200 * before));
        // SAFETY: may be called at any time between init and finalize.
        unsafe { (self.functions().abort)(self.comm, code.into()) };
        std::process::exit(code.into())
    }

    /// Leaves the world; every rank must call it. MPI ends, unless it is another program's.
    pub(crate) fn finish(self) {
        let mut comm = self.comm;
        // SAFETY: the value is consumed: no call follows. A duplicate is freed, unless MPI has ended.
        unsafe {
            let functions = self.functions();
            if !self.adopted {
                (functions.finalize)();
                return;
            }
            let mut ended = 0;
            (functions.finalized)(&mut ended);
            if ended == 0 {
                (functions.free)(&mut comm);
            }
        };
    }

    fn functions(&self) -> MutexGuard<'_, Functions> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts in which this many words travel; an empty message is one empty part.
fn parts(words: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..words.div_ceil(most).max(1)).map(move |i| i * most..words.min((i + 1) * most))
}

// MPI tags that number the messages of each pair of ranks, and distinguish their lengths: a message that is
// lost, that arrives twice, or that a rank out of step sends, is not taken for another one. Who waits for a
// lost message goes on waiting, and is told by a stall timeout.
//
// Lengths matter most: Open MPI 4.1 writes a message of more than a few KiB whole, even where the receive
// that it matches has less room, before it reports the error.

/// How tags are divided among messages.
#[derive(Debug, Clone, Copy)]
struct Ranges {
    /// Tags of a schedule are distinguished modulo this number. Many kinds: both ends of a pair must handle
    /// messages of one kind in the same order, and partial sums may overtake operands whose tags are far
    /// away.
    kinds: u64,
    /// Messages of one such tag are numbered modulo this.
    numbers: u64,
    /// The first tag of all other messages, and how many there are.
    others: (u64, u64),
}

/// For tags up to 2^15 - 1, which is the tag of no message. Lengths of one kind may meet here.
const NARROW: Ranges = Ranges { kinds: 7168, numbers: 4, others: (0x7000, 0xfff) };

/// For tags up to 2^27 - 1.
const WIDE: Ranges = Ranges { kinds: 0x7ff0, numbers: 0x1000, others: (0x07ff_0000, 0xffff) };

/// Spreads lengths over numbers.
const SPREAD: u64 = 40503;

/// The next numbers, by the rank at the other end, the direction and the tag.
#[derive(Debug)]
pub(super) struct Numbers {
    ranges: Ranges,
    next: Mutex<BTreeMap<(usize, bool, u16), u64>>,
}

impl Numbers {
    /// For a library with tags up to `largest`, the same on all ranks.
    pub(crate) fn up_to(largest: c_int) -> Self {
        let last = (WIDE.others.0 + WIDE.others.1) as c_int;
        Self { ranges: if largest >= last { WIDE } else { NARROW }, next: Mutex::default() }
    }

    /// The tag of the next part of a message of `words` words, from or to a rank. `tag` is a schedule's if it
    /// is below `schedule`.
    pub(crate) fn tag(&self, peer: usize, sends: bool, tag: u16, words: usize, schedule: u64) -> c_int {
        let Ranges { kinds, numbers, others: (first, others) } = self.ranges;
        let is_other = u64::from(tag) >= schedule;
        let kind = if is_other { tag } else { (u64::from(tag) % kinds) as u16 };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let count = next.entry((peer, sends, kind)).or_default();
        let number = count.wrapping_add((words as u64).wrapping_mul(SPREAD));
        *count += 1;
        if is_other {
            (first + number % others) as c_int
        } else {
            (u64::from(kind) * numbers + number % numbers) as c_int
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a later part fails and the stack unwinds, memory in flight stays allocated.
    #[test]
    fn memory_in_flight_is_not_freed() {
        let words = vec![7_u64; 1000];
        let place = words.as_ptr();
        drop(Transfer { peer: 1, words, pending: Pending::Requests(vec![1]) });
        // SAFETY: the vector was leaked, not freed: its memory is as it was.
        assert_eq!(unsafe { std::slice::from_raw_parts(place, 1000) }, [7; 1000]);
    }

    #[test]
    fn long_messages_travel_in_parts() {
        let lengths = |words: usize| parts(words, 100).map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(lengths(0), [0]);
        assert_eq!(lengths(5), [5]);
        assert_eq!(lengths(100), [100]);
        assert_eq!(lengths(201), [100, 100, 1]);
        assert_eq!(parts(201, 100).last(), Some(200..201));
    }

    #[test]
    fn a_missing_library_is_told_in_one_line() {
        let names = ["libno-such-mpi.so.1".to_owned(), "libnone.so".to_owned()];
        let error = Mpi::start(&names, None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(
            text.contains("tried libno-such-mpi.so.1, libnone.so") && text.contains("openmpi-bin"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn messages_that_may_meet_have_tags_of_their_own() {
        for (largest, ranges) in [(0x7fff, NARROW), (0x07ff_ffff, WIDE), (c_int::MAX, WIDE)] {
            let (sender, receiver) = (Numbers::up_to(largest), Numbers::up_to(largest));
            let mut seen = std::collections::BTreeSet::new();
            for tag in [0, 1, 511, 0x7ffe] {
                for _ in 0..ranges.numbers {
                    let sent = sender.tag(1, true, tag, 9, 0x7ff0);
                    assert_eq!(sent, receiver.tag(1, true, tag, 9, 0x7ff0));
                    assert!((0..largest).contains(&sent) && seen.insert(sent), "{sent}");
                }
            }
            // Other ranks and the other direction count for themselves.
            assert_eq!(sender.tag(2, true, 0, 0, 0x7ff0), 0);
            assert_eq!(sender.tag(1, false, 0, 0, 0x7ff0), 0);
            // Another length is another message.
            let short = sender.tag(4, true, 0x7ffe, 1, 0x7ff0);
            assert_ne!(receiver.tag(4, true, 0x7ffe, 721, 0x7ff0), short);
            // A schedule's last one, and the largest of all.
            let end = (0..ranges.numbers).map(|_| receiver.tag(3, true, 0x7fef, 9, 0x7ff0)).max();
            assert!(end < Some(ranges.others.0 as c_int), "{end:?}");
            let last = (0..ranges.others.1).map(|_| receiver.tag(3, true, 0x7ffe, 9, 0x7ff0)).max();
            assert_eq!(last, Some((ranges.others.0 + ranges.others.1 - 1) as c_int));
        }
    }
}

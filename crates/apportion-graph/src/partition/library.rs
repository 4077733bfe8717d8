//! Partitioners, which are loaded while running.

use apportion::error::{Error, Result};
use libloading::Library;
use std::ffi::{c_int, c_void};

/// A library that stays loaded until the process ends.
pub(super) struct Partitioner {
    name: &'static str,
    library: &'static Library,
    file: String,
    install: &'static str,
}

/// Any address that is passed on.
pub(super) type Address = *const c_void;

impl Partitioner {
    /// The first of these files that the loader finds. `install` says how to have one, and `name` is what errors call it.
    #[allow(unsafe_code)]
    pub(super) fn load(name: &'static str, files: &[&str], install: &'static str) -> Result<Self> {
        for file in files {
            // SAFETY: loading runs the library's own initialisers, and the loader reports an error for a file that is no
            // library.
            if let Ok(library) = unsafe { Library::new(file) } {
                return Ok(Self {
                    name,
                    library: Box::leak(Box::new(library)),
                    file: (*file).into(),
                    install,
                });
            }
        }
        let what = format!("{} is not on this machine", files[0]);
        Err(Error::input(name, what, format!("{install}, or divide otherwise")))
    }

    /// A function of the library. `T` must be its type.
    #[allow(unsafe_code)]
    pub(super) fn function<T: Copy>(&self, name: &str) -> Result<T> {
        // SAFETY: every caller gives the type that the library's manual has for the name.
        let found = unsafe { self.library.get::<T>(name.as_bytes()) };
        let missing = |_| self.unusable(&format!("has no function {name}"));
        Ok(*found.map_err(missing)?)
    }

    /// The error of a library that cannot be used.
    pub(super) fn unusable(&self, why: &str) -> Error {
        Error::input(self.name, format!("{} {why}", self.file), self.install)
    }
}

/// Why a library cannot be used, said again to everybody who asks for it.
pub(super) fn again(error: &Error) -> Error {
    match error {
        Error::Input { place, what, remedy } => Error::input(place, what, remedy),
        other => Error::infeasible(other.to_string(), "use another method"),
    }
}

/// Whole numbers as a library of 32 or 64 bits takes them.
pub(super) enum Integers<'a> {
    Narrow(&'a [u32]),
    Own(Vec<u32>),
    Wide(Vec<i64>),
}

impl<'a> Integers<'a> {
    pub(super) fn new(numbers: &'a [u32], wide: bool) -> Self {
        match wide {
            false => Self::Narrow(numbers),
            true => Self::Wide(numbers.iter().map(|number| i64::from(*number)).collect()),
        }
    }

    /// Weights, of which all groups of `every` together stay below 2^30 where numbers have 32 bits.
    pub(super) fn weights(numbers: &'a [u32], every: usize, wide: bool) -> Self {
        let largest = |first: usize| {
            numbers.iter().skip(first).step_by(every).map(|number| u64::from(*number)).sum::<u64>()
        };
        let sum = (0..every).map(largest).max().unwrap_or(0);
        if wide || sum < 1 << 30 {
            return Self::new(numbers, wide);
        }
        let scale = (1u64 << 29) as f64 / sum as f64;
        let scaled =
            |number: &u32| if *number == 0 { 0 } else { (f64::from(*number) * scale).max(1.0) as u32 };
        Self::Own(numbers.iter().map(scaled).collect())
    }

    /// Their address; null if there are none.
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Narrow([]) => std::ptr::null(),
            Self::Narrow(numbers) => numbers.as_ptr().cast(),
            Self::Own(numbers) => numbers.as_ptr().cast(),
            Self::Wide(numbers) if numbers.is_empty() => std::ptr::null(),
            Self::Wide(numbers) => numbers.as_ptr().cast(),
        }
    }
}

/// Room for whole numbers that a library writes.
pub(super) enum Answer {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Answer {
    pub(super) fn new(length: usize, wide: bool) -> Self {
        if wide { Self::Wide(vec![0; length]) } else { Self::Narrow(vec![0; length]) }
    }

    pub(super) fn address(&mut self) -> *mut c_void {
        match self {
            Self::Narrow(numbers) => numbers.as_mut_ptr().cast(),
            Self::Wide(numbers) => numbers.as_mut_ptr().cast(),
        }
    }

    /// The numbers, which must be below `most`.
    pub(super) fn below(self, most: usize) -> Option<Vec<u32>> {
        let number = |number: i64| u32::try_from(number).ok().filter(|number| (*number as usize) < most);
        match self {
            Self::Narrow(numbers) => numbers.into_iter().map(|n| number(i64::from(n))).collect(),
            Self::Wide(numbers) => numbers.into_iter().map(number).collect(),
        }
    }
}

/// What METIS and Scotch return.
pub(super) type Status = c_int;

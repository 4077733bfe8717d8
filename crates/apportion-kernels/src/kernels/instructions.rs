//! Which vector instructions the kernels may use.

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use std::sync::OnceLock;

/// Sets of vector instructions, the narrowest first.
///
/// A processor without a set uses the widest narrower one that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// What every processor of the architecture has.
    Portable,
    /// AVX2 and fused multiply-add, 256 bits; NEON on aarch64.
    Avx2,
    /// AVX-512, 512 bits.
    Avx512,
}

impl Instructions {
    /// The environment variable that limits the kernels of a process.
    pub const VARIABLE: &str = "APPORTION_INSTRUCTIONS";

    /// The widest set that kernels may use: [`Instructions::VARIABLE`], by default AVX-512. Kernels read it
    /// once, when the first of them runs.
    ///
    /// # Errors
    /// The variable names no set. Kernels then run without a limit.
    pub fn limit() -> Result<Self> {
        let text = std::env::var_os(Self::VARIABLE).filter(|text| !text.is_empty());
        text.map_or(Ok(Self::Avx512), |text| Self::parse(&text.to_string_lossy()))
    }

    fn parse(text: &str) -> Result<Self> {
        match text {
            "portable" => Ok(Self::Portable),
            "avx2" => Ok(Self::Avx2),
            "avx512" => Ok(Self::Avx512),
            _ => Err(Error::input(
                Self::VARIABLE,
                format!("{text:?} is no set of instructions"),
                "set it to portable, avx2 or avx512, or unset it",
            )),
        }
    }

    /// Whether the limit leaves this set.
    pub(super) fn is_allowed(self) -> bool {
        static LIMIT: OnceLock<Instructions> = OnceLock::new();
        self <= *LIMIT.get_or_init(|| Self::limit().unwrap_or(Self::Avx512))
    }
}

/// Whether kernels may use a set of instructions, and this processor has its features.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($set:ident: $($feature:tt),+) => {
        $crate::kernels::Instructions::$set.is_allowed() && $(is_x86_feature_detected!($feature))&&+
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use has;

impl Instructions {
    /// Whether products here round a multiplication and its addition once: by all sets but the portable one, which
    /// rounds twice and gives other bytes.
    pub fn are_fused() -> bool {
        #[cfg(target_arch = "x86_64")]
        return has!(Avx512: "avx512f") || has!(Avx2: "avx2", "fma");
        #[cfg(not(target_arch = "x86_64"))]
        return cfg!(target_arch = "aarch64") && Self::Avx2.is_allowed();
    }
}

// Loops compiled for the widest registers that this processor has.

/// A loop to run by [`widest`]. Implementations mark `run`, and what it calls, `#[inline(always)]`: what is
/// not inlined is compiled for any processor.
pub trait Loop {
    /// Runs the loop once.
    fn run(self);
}

/// Runs a loop, compiled once for each instruction set, in the widest registers of this processor that
/// [`Instructions`](super::Instructions) allow. No operation
/// is fused or reordered, so that all return the same bits.
pub fn widest(work: impl Loop) {
    #[cfg(target_arch = "x86_64")]
    {
        if has!(Avx512: "avx512f", "avx512dq", "avx512vl") {
            // SAFETY: the features were just detected.
            return unsafe { avx512(work) };
        }
        if has!(Avx2: "avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { avx2(work) };
        }
    }
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn avx512(work: impl Loop) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(work: impl Loop) {
    work.run();
}

// The processor's caches: the size of the second level, and what is fetched into them before it is used.

/// Bytes of a second-level cache, if the system does not say.
const SECOND_LEVEL: usize = 512 << 10;

/// Bytes of a core's second-level cache, from 256 KiB to 2 MiB: its part of one that several cores share.
pub(crate) fn second_level() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let read = |file: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/{file}")).ok();
        let size = read("cache/index2/size");
        let kib = size.and_then(|text| text.trim().strip_suffix('K')?.parse::<usize>().ok());
        let threads = |file: &str| read(file).and_then(|text| length_of_list(text.trim())).unwrap_or(1);
        let cores = threads("cache/index2/shared_cpu_list") / threads("topology/thread_siblings_list").max(1);
        let bytes = kib.map_or(SECOND_LEVEL, |kib| (kib << 10) / cores.max(1));
        bytes.clamp(SECOND_LEVEL / 2, 4 * SECOND_LEVEL)
    })
}

/// How many numbers a list such as `0-3,8` has.
fn length_of_list(text: &str) -> Option<usize> {
    let length = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?).map(|rest| rest + 1)
    };
    text.split(',').map(length).sum()
}

/// Prefetches the cache line at an address, which need not be valid.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch is a hint that never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_have_lengths() {
        assert_eq!(["0", "0-3,8", "2,4-5"].map(length_of_list), [Some(1), Some(5), Some(3)]);
        assert_eq!(["", "3-1", "a", "1,"].map(length_of_list), [None; 4]);
    }

    #[test]
    fn names_are_read_and_others_refused() {
        let sets = ["portable", "avx2", "avx512"].map(|text| Instructions::parse(text).unwrap());
        assert!(sets.is_sorted() && sets[0] < sets[2]);
        for text in ["AVX2", "avx", "avx2 ", "sse"] {
            let error = Instructions::parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(text.trim()), "{error}");
        }
    }
}

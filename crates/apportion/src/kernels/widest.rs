//! Loops compiled for the widest registers that this processor has.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::kernels::has;

/// A loop to run by [`widest`]. Implementations mark `run`, and what it calls, `#[inline(always)]`: what is
/// not inlined is compiled for any processor.
pub(crate) trait Loop {
    fn run(self);
}

/// Runs a loop, compiled once for each instruction set, in the widest registers of this processor that
/// [`Instructions`](super::Instructions) allow. No operation
/// is fused or reordered, so that all return the same bits.
pub(crate) fn widest(work: impl Loop) {
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

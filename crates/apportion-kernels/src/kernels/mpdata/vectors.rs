//! The loops of [`flat`](super::flat), compiled for each instruction set. All return the same bits: they
//! neither fuse nor reorder operations.

#![allow(unsafe_code)]

use super::flat::{self, Faces};
use super::options::Advectable;
#[cfg(target_arch = "x86_64")]
use crate::kernels::has;

/// What the processor offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What every processor of the target has.
    Portable,
}

impl Vectors {
    /// The widest that this processor has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has!(Avx512: "avx512f", "avx512dq", "avx512vl") {
                return Self::Avx512;
            }
            if has!(Avx2: "avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }
}

/// Defines a loop that is compiled for every instruction set.
macro_rules! loops {
    ($name:ident, [$($generics:tt)*], [$($passed:tt)*], ($($arg:ident: $type:ty),*)) => {
        pub(crate) fn $name<$($generics)*>(vectors: Vectors, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn wide<$($generics)*>($($arg: $type),*) {
                    flat::$name::<$($passed)*>($($arg),*);
                }
                #[target_feature(enable = "avx2")]
                fn medium<$($generics)*>($($arg: $type),*) {
                    flat::$name::<$($passed)*>($($arg),*);
                }
                match vectors {
                    // SAFETY: `Vectors::detect` names only what this processor has.
                    Vectors::Avx512 => return unsafe { wide::<$($passed)*>($($arg),*) },
                    // SAFETY: as above.
                    Vectors::Avx2 => return unsafe { medium::<$($passed)*>($($arg),*) },
                    Vectors::Portable => {}
                }
            }
            flat::$name::<$($passed)*>($($arg),*);
        }
    };
}

loops!(
    advance,
    [T: Advectable, const N: usize, const UNIFORM: bool],
    [T, N, UNIFORM],
    (psi: &[T], around: [[&[T]; 2]; N], courant: [[&[T]; 2]; N], out: &mut [T])
);
loops!(
    subtract,
    [T: Advectable, const N: usize],
    [T, N],
    (psi: &[T], fluxes: [[&[T]; 2]; N], out: &mut [T])
);
loops!(
    subtract_limited,
    [T: Advectable, const N: usize],
    [T, N],
    (
        psi: &[T],
        fluxes: [[&[T]; 2]; N],
        up: (&[T], [[&[T]; 2]; N]),
        down: (&[T], [[&[T]; 2]; N]),
        out: &mut [T]
    )
);
loops!(fluxes, [T: Advectable], [T], (cells: [&[T]; 2], courant: &[T], out: &mut [T]));
loops!(
    correct,
    [T: Advectable, const N: usize, const KIND: u8, const THIRD: bool, const FLUX: bool, const UNIFORM: bool],
    [T, N, KIND, THIRD, FLUX, UNIFORM],
    (faces: &Faces<'_, T, N>, out: &mut [T])
);
loops!(
    limits,
    [T: Advectable, const N: usize],
    [T, N],
    (
        start: (&[T], [[&[T]; 2]; N]),
        psi: (&[T], [[&[T]; 2]; N]),
        fluxes: [[&[T]; 2]; N],
        out: (&mut [T], &mut [T])
    )
);
loops!(limit, [T: Advectable], [T], (up: [&[T]; 2], down: [&[T]; 2], fluxes: &mut [T]));
loops!(
    limit_both,
    [T: Advectable],
    [T],
    (up: [&[T]; 2], down: [&[T]; 2], fluxes: &mut [T], courant: &mut [T])
);

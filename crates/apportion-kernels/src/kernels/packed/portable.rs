//! Tiles in plain Rust, for any processor.

#![allow(unsafe_code)]

use crate::kernels::Real;
use crate::kernels::packed::block;
use crate::kernels::packed::block::{MicroKernel, tile};
use crate::kernels::packed::substitution::{self, Substitution};
use crate::kernels::packed::together;
use crate::kernels::packed::vector::{Fused, Ordered, Vector};
use crate::kernels::packed::vector::{Number, Operation};
use crate::kernels::tropical::Element;
use std::ops::{Add, Mul};

/// An array that the compiler may keep in registers.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Lanes<T, const N: usize>([T; N]);

impl<T: Number, const N: usize> Lanes<T, N> {
    #[inline(always)]
    fn with(mut self, other: Self, combine: impl Fn(T, T) -> T) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = combine(*x, y);
        }
        self
    }
}

// No function here needs any processor feature; only the pointers must be valid.
impl<T: Number, const N: usize> Vector for Lanes<T, N> {
    type Element = T;
    const LANES: usize = N;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: valid for N elements by the trait's contract; read_unaligned requires nothing else.
        Self(unsafe { from.cast::<[T; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<[T; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self.with(other, T::plus)
    }
}

impl<T: Element, const N: usize> Ordered for Lanes<T, N> {
    #[inline(always)]
    unsafe fn over<const MIN: bool>(self, other: Self) -> Self {
        self.with(other, T::over::<MIN>)
    }
    #[inline(always)]
    unsafe fn finish_over<const MIN: bool>(self, other: Self) -> Self {
        self.with(other, |x, y| if x.is_true::<MIN>() { x.over::<MIN>(y) } else { y })
    }
}

impl<T: Number + Add<Output = T> + Mul<Output = T>, const N: usize> Fused for Lanes<T, N> {
    /// Rounded twice: without the instruction, rounding once takes a hundred times as long.
    #[inline(always)]
    unsafe fn times_plus(self, other: Self, sum: Self) -> Self {
        self.with(other, T::mul).with(sum, T::add)
    }
}

/// Four rows of one vector.
pub(in crate::kernels) fn tile_of<V: Vector, O: Operation<V>>() -> MicroKernel<V::Element> {
    MicroKernel {
        name: "portable",
        rows: 4,
        cols: V::LANES,
        update: tile::<V, O, 4, 1>,
        interleave: None,
        product: block::product::<V, O>,
        part: together::part::<V, O>,
    }
}

/// Four rows of one vector of unknowns.
pub(in crate::kernels) fn substitution_of<V: Fused<Element: Real>>() -> Substitution<V::Element> {
    Substitution {
        rows: 4,
        lanes: V::LANES,
        substitute: substitution::substitute::<V, 4, 1>,
        factor: substitution::factor::<V, 4, 1>,
        squares: None,
    }
}

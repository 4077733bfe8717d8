//! Tiles in plain Rust, for any processor.

#![allow(unsafe_code)]

use crate::kernels::tropical::block;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::tile::{MicroKernel, tile};
use crate::kernels::tropical::vector::Vector;

/// An array that the compiler may keep in registers.
#[derive(Clone, Copy)]
pub(super) struct Lanes<T, const N: usize>([T; N]);

impl<T: Element, const N: usize> Lanes<T, N> {
    #[inline(always)]
    fn with(mut self, other: Self, combine: impl Fn(T, T) -> T) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = combine(*x, y);
        }
        self
    }
}

// No function here needs any processor feature; only the pointers must be valid.
impl<T: Element, const N: usize> Vector for Lanes<T, N> {
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
    #[inline(always)]
    unsafe fn over<const MIN: bool>(self, other: Self) -> Self {
        self.with(other, T::over::<MIN>)
    }
    #[inline(always)]
    unsafe fn settled_over<const MIN: bool>(self, other: Self) -> Self {
        self.with(other, |x, y| if x.is_true::<MIN>() { x.over::<MIN>(y) } else { y })
    }
}

/// Four rows of one vector.
pub(super) fn tile_of<V: Vector, const MIN: bool>() -> MicroKernel<V::Element> {
    MicroKernel {
        name: "portable",
        rows: 4,
        cols: V::LANES,
        update: tile::<V, 4, 1, MIN>,
        interleave: None,
        product: block::product::<V::Element, MIN>,
    }
}

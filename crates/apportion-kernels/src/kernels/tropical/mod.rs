//! Products over max-plus and min-plus, by the [packed](super::packed) body.
//!
//! All instruction sets return the same bits: among equal sums (+0 and -0 among them) the first in the order
//! C, p = 0, 1, … is kept.

#![allow(unsafe_code)]

use crate::kernels::packed::{Best, MicroKernel, Number, product_together, tiles};
use crate::kernels::team::share_rows;
use crate::kernels::view::check_shapes;
use crate::kernels::{Alone, Team, View, ViewMut};

/// An element type of max-plus and min-plus matrices: `f64`, `f32`, `i64`, `i32`.
///
/// The zero of max-plus is -infinity or the integers' `MIN`, that of min-plus is +infinity or `MAX`. It
/// absorbs: zero plus anything, even the opposite infinity, is zero. Sums of floats round, and may overflow
/// to an infinity; sums of integers saturate. NaN is treated as absent. Callers reject NaN and the opposite
/// infinity with [`Kernel::check`](crate::kernels::Kernel::check).
pub trait Tropical: Element {
    /// [`max_plus`] by the threads of a team. It is compiled with this crate.
    #[doc(hidden)]
    fn max_plus_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team);

    /// The same of [`min_plus`].
    #[doc(hidden)]
    fn min_plus_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team);
}

macro_rules! tropical {
    ($($element:ty)*) => {$(
        impl Tropical for $element {
            fn max_plus_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team) {
                tropical_together::<Self, false>(a, b, c, team);
            }

            fn min_plus_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team) {
                tropical_together::<Self, true>(a, b, c, team);
            }
        }
    )*};
}
tropical!(f64 f32 i64 i32);

/// C := max(C, max over p of a(i, p) + b(p, j)). 2 m n k operations; each thread keeps memory for two packed
/// blocks (about 4 MB).
///
/// Exact up to the rounding of each single sum, and bit-identical on every processor. Integers whose
/// magnitude is below 2^30 / 3 (2^62 / 3 for `i64`), apart from zeros, run at full speed; larger ones use a
/// plain loop of saturating sums.
///
/// Source: blocking of Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
///
/// # Example
/// ```
/// use apportion_kernels::kernels::{View, ViewMut, max_plus};
/// let (a, b, mut c) = ([1.0, 5.0], [10.0, 2.0], [f64::NEG_INFINITY]);
/// max_plus(View::dense(&a, 1, 2), View::dense(&b, 2, 1), ViewMut::dense(&mut c, 1, 1));
/// assert_eq!(c, [11.0]);
/// ```
pub fn max_plus<T: Tropical>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    T::max_plus_together(a, b, c, &Alone);
}

/// C := min(C, min over p of a(i, p) + b(p, j)); otherwise the same as [`max_plus`].
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
pub fn min_plus<T: Tropical>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    T::min_plus_together(a, b, c, &Alone);
}

/// Checks that max-plus accepts all elements: neither NaN nor +infinity. Every integer is accepted.
///
/// # Errors
/// The position of the first element that is not accepted.
pub(crate) fn check_max_plus<T: Tropical>(elements: &[T]) -> Result<(), usize> {
    elements.iter().position(|x| !x.is_taken::<false>()).map_or(Ok(()), Err)
}

/// Checks that min-plus accepts all elements: neither NaN nor -infinity. Every integer is accepted.
///
/// # Errors
/// The position of the first element that is not accepted.
pub(crate) fn check_min_plus<T: Tropical>(elements: &[T]) -> Result<(), usize> {
    elements.iter().position(|x| !x.is_taken::<true>()).map_or(Ok(()), Err)
}

/// The instruction set that [`max_plus`] and [`min_plus`] use on this processor: "AVX-512", "AVX2", "NEON"
/// or "portable".
pub fn instruction_set() -> &'static str {
    f64::tiles::<false>()[0].name()
}

/// The product by the threads of a team, with the widest registers available, or with saturating sums where plain ones
/// might overflow.
fn tropical_together<T: Tropical, const MIN: bool>(
    a: View<T>,
    b: View<T>,
    mut c: ViewMut<T>,
    team: &dyn Team,
) {
    check_shapes(&a, &b, &c);
    let tile = &T::tiles::<MIN>()[0];
    // SAFETY: `Element::tiles` offers only tiles that the processor supports.
    let done = unsafe { product_together(tile, a, b, c.reborrow(), team) };
    if !done {
        // The updates made so far are correct, and repeating them has no effect.
        share_rows(c, team, |rows, part| {
            saturating::<T, MIN>(a.tile(rows.start, 0, rows.len(), a.cols()), b, part);
        });
    }
}

/// The product by the definition of the sum, row by row.
fn saturating<T: Tropical, const MIN: bool>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    for i in 0..a.rows() {
        for (p, x) in a.row(i).iter().enumerate() {
            for (z, &y) in c.row(i).iter_mut().zip(b.row(p)) {
                *z = x.times::<MIN>(y).over::<MIN>(*z);
            }
        }
    }
}

// The elements: their infinities, their sums, and the tiles that work on them.

/// What a product needs to know of an element type. `MIN` is false for max-plus and true for min-plus.
pub trait Element: Number + PartialOrd {
    /// The zero of max-plus.
    const LOWEST: Self;
    /// The zero of min-plus.
    const HIGHEST: Self;
    /// The number 0, the one of both.
    const NOUGHT: Self;
    /// The number 1.
    const UNIT: Self;
    /// The largest magnitude of a sum of two packed numbers; a sum that involves a packed zero exceeds it.
    const REACH: Self;
    /// The neutral element of the sum.
    #[inline(always)]
    fn zero<const MIN: bool>() -> Self {
        if MIN { Self::HIGHEST } else { Self::LOWEST }
    }
    /// `self` if it is strictly better, else `other`.
    #[inline(always)]
    fn over<const MIN: bool>(self, other: Self) -> Self {
        if if MIN { self < other } else { self > other } { self } else { other }
    }
    /// The product of two elements, by definition: the zero absorbs, integers saturate.
    fn times<const MIN: bool>(self, other: Self) -> Self;
    /// Whether plain sums wrap, so that zeros and large elements need care.
    const WRAPS: bool;
    /// What stands for a zero in a packed block.
    fn stand_in<const MIN: bool>() -> Self;
    /// The number that, added to an element, turns a zero into the best element and any other into its
    /// neighbour.
    fn beyond<const MIN: bool>() -> Self;
    /// Whether plain sums cannot overflow, given the least and the greatest of some elements; the bound on
    /// the side of the zeros is that of the elements with [`Element::beyond`] added.
    fn are_tame<const MIN: bool>(least: Self, greatest: Self) -> bool;
    /// Whether a sum of packed elements is an actual sum, and does not involve a packed zero.
    fn is_true<const MIN: bool>(self) -> bool;
    /// Whether the argument checks accept it.
    fn is_taken<const MIN: bool>(&self) -> bool;
    /// The tiles that this processor can run, best first; the last is the portable one.
    fn tiles<const MIN: bool>() -> Vec<MicroKernel<Self>>;
}

macro_rules! float {
    ($float:ident, $vector:ident, $lanes:literal) => {
        impl Element for $float {
            const LOWEST: Self = $float::NEG_INFINITY;
            const HIGHEST: Self = $float::INFINITY;
            const NOUGHT: Self = 0.0;
            const UNIT: Self = 1.0;
            const REACH: Self = $float::INFINITY;
            #[inline(always)]
            fn times<const MIN: bool>(self, other: Self) -> Self {
                // The sum of opposite infinities is NaN, which is never better than anything: the zero
                // absorbs.
                self + other
            }
            const WRAPS: bool = false;
            #[inline(always)]
            fn stand_in<const MIN: bool>() -> Self {
                Self::zero::<MIN>()
            }
            #[inline(always)]
            fn beyond<const MIN: bool>() -> Self {
                0.0
            }
            #[inline(always)]
            fn are_tame<const MIN: bool>(_: Self, _: Self) -> bool {
                true
            }
            #[inline(always)]
            fn is_true<const MIN: bool>(self) -> bool {
                true
            }
            fn is_taken<const MIN: bool>(&self) -> bool {
                !self.is_nan() && *self != if MIN { Self::LOWEST } else { Self::HIGHEST }
            }
            fn tiles<const MIN: bool>() -> Vec<MicroKernel<Self>> {
                tiles!($vector, $lanes, Best<MIN>)
            }
        }
    };
}

macro_rules! integer {
    ($integer:ident, $vector:ident, $lanes:literal) => {
        impl Element for $integer {
            const LOWEST: Self = $integer::MIN;
            const HIGHEST: Self = $integer::MAX;
            const NOUGHT: Self = 0;
            const UNIT: Self = 1;
            // Packed zeros are at half the range, Z. With numbers up to R, a sum of two is within 2 R and a
            // sum that involves Z is beyond Z - R: 3 R < Z keeps them apart.
            const REACH: Self = 2 * ($integer::MAX / 6 - 1);
            #[inline(always)]
            fn times<const MIN: bool>(self, other: Self) -> Self {
                let zero = Self::zero::<MIN>();
                if self == zero || other == zero { zero } else { self.saturating_add(other) }
            }
            const WRAPS: bool = true;
            #[inline(always)]
            fn stand_in<const MIN: bool>() -> Self {
                Self::zero::<MIN>() / 2
            }
            #[inline(always)]
            fn beyond<const MIN: bool>() -> Self {
                if MIN { 1 } else { -1 }
            }
            #[inline(always)]
            fn are_tame<const MIN: bool>(least: Self, greatest: Self) -> bool {
                let largest = Self::REACH / 2;
                let (low, high) = if MIN { (0, 1) } else { (-1, 0) };
                least >= low - largest && greatest <= high + largest
            }
            #[inline(always)]
            fn is_true<const MIN: bool>(self) -> bool {
                if MIN { self <= Self::REACH } else { self >= -Self::REACH }
            }
            fn is_taken<const MIN: bool>(&self) -> bool {
                true
            }
            fn tiles<const MIN: bool>() -> Vec<MicroKernel<Self>> {
                tiles!($vector, $lanes, Best<MIN>)
            }
        }
    };
}

float!(f64, F64, 4);
float!(f32, F32, 8);
integer!(i64, I64, 4);
integer!(i32, I32, 8);

#[cfg(test)]
mod tests;

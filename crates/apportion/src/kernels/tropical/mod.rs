//! Products over max-plus and min-plus, by the [packed](super::packed) body.
//!
//! All instruction sets return the same bits: among equal sums (+0 and -0 among them) the first in the order
//! C, p = 0, 1, … is kept.

#![allow(unsafe_code)]

mod element;

use crate::kernels::view::check_shapes;
use crate::kernels::{View, ViewMut};
pub use element::Element;

/// An element type of max-plus and min-plus matrices: `f64`, `f32`, `i64`, `i32`.
///
/// The zero of max-plus is -infinity or the integers' `MIN`, that of min-plus is +infinity or `MAX`. It
/// absorbs: zero plus anything, even the opposite infinity, is zero. Sums of floats round, and may overflow
/// to an infinity; sums of integers saturate. NaN is treated as absent. Callers reject NaN and the opposite
/// infinity with [`check_max_plus`] and [`check_min_plus`].
pub trait Tropical: Element {}

impl Tropical for f64 {}
impl Tropical for f32 {}
impl Tropical for i64 {}
impl Tropical for i32 {}

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
/// use apportion::kernels::{View, ViewMut, max_plus};
/// let (a, b, mut c) = ([1.0, 5.0], [10.0, 2.0], [f64::NEG_INFINITY]);
/// max_plus(View::dense(&a, 1, 2), View::dense(&b, 2, 1), ViewMut::dense(&mut c, 1, 1));
/// assert_eq!(c, [11.0]);
/// ```
pub fn max_plus<T: Tropical>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    product::<T, false>(a, b, c);
}

/// C := min(C, min over p of a(i, p) + b(p, j)); otherwise the same as [`max_plus`].
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
pub fn min_plus<T: Tropical>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    product::<T, true>(a, b, c);
}

/// Checks that max-plus accepts all elements: neither NaN nor +infinity. Every integer is accepted.
///
/// # Errors
/// The position of the first element that is not accepted.
pub fn check_max_plus<T: Tropical>(elements: &[T]) -> Result<(), usize> {
    elements.iter().position(|x| !x.is_taken::<false>()).map_or(Ok(()), Err)
}

/// Checks that min-plus accepts all elements: neither NaN nor -infinity. Every integer is accepted.
///
/// # Errors
/// The position of the first element that is not accepted.
pub fn check_min_plus<T: Tropical>(elements: &[T]) -> Result<(), usize> {
    elements.iter().position(|x| !x.is_taken::<true>()).map_or(Ok(()), Err)
}

/// The instruction set that [`max_plus`] and [`min_plus`] use on this processor: "AVX-512", "AVX2", "NEON"
/// or "portable".
pub fn instruction_set() -> &'static str {
    f64::tiles::<false>()[0].name()
}

/// The product with the widest registers available, or with saturating sums where plain ones might overflow.
fn product<T: Tropical, const MIN: bool>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    check_shapes(&a, &b, &c);
    let tile = &T::tiles::<MIN>()[0];
    // SAFETY: `Element::tiles` offers only tiles that the processor supports.
    let done = unsafe { tile.product(a, b, c.reborrow()) };
    if !done {
        // The updates made so far are correct, and repeating them has no effect.
        saturating::<T, MIN>(a, b, c);
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

#[cfg(test)]
mod tests;

//! The semirings as the innermost loop sees them.

#![allow(unsafe_code)]

use crate::kernels::packed::vector::{Fused, Ordered, Vector};
use crate::kernels::tropical::Element;

/// An element of a packed block: a number of four or eight bytes, of which every bit pattern is one.
pub trait Number: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// The sum of two elements; integers wrap.
    fn plus(self, other: Self) -> Self;
}

macro_rules! number {
    ($($number:ident: $plus:expr),*) => {
        $(impl Number for $number {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        })*
    };
}
number!(f64: std::ops::Add::add, f32: std::ops::Add::add, i64: i64::wrapping_add, i32: i32::wrapping_add);

/// A semiring on vectors `V`.
///
/// # Safety
/// The functions on vectors need the processor features of `V`.
pub(in crate::kernels) trait Operation<V: Vector>: 'static {
    /// The neutral element of the sum, in a packed block; pads strips.
    fn zero() -> V::Element;
    /// `sum` with the product of `x` and `y` added.
    unsafe fn step(x: V, y: V, sum: V) -> V;
    /// What C becomes: its old value with the sum of a block added.
    unsafe fn settled(sum: V, old: V) -> V;
    /// Turns elements into packed ones; false if plain sums with them might overflow.
    #[inline(always)]
    fn prepare(_: &mut [V::Element]) -> bool {
        true
    }
}

/// Sums of products.
pub(in crate::kernels) struct PlusTimes;

impl<V: Fused> Operation<V> for PlusTimes {
    #[inline(always)]
    fn zero() -> V::Element {
        V::Element::default()
    }
    #[inline(always)]
    unsafe fn step(x: V, y: V, sum: V) -> V {
        // SAFETY: the trait's contract grants the processor feature, here and below.
        unsafe { x.times_plus(y, sum) }
    }
    #[inline(always)]
    unsafe fn settled(sum: V, old: V) -> V {
        // SAFETY: as in `step`.
        unsafe { sum.plus(old) }
    }
}

/// The largest of the sums, or with `MIN` the smallest.
pub(in crate::kernels) struct Best<const MIN: bool>;

impl<V: Ordered, const MIN: bool> Operation<V> for Best<MIN>
where
    V::Element: Element,
{
    #[inline(always)]
    fn zero() -> V::Element {
        V::Element::zero::<MIN>()
    }
    #[inline(always)]
    unsafe fn step(x: V, y: V, sum: V) -> V {
        // SAFETY: the trait's contract grants the processor feature, here and below.
        unsafe { x.plus(y).over::<MIN>(sum) }
    }
    #[inline(always)]
    unsafe fn settled(sum: V, old: V) -> V {
        // SAFETY: as in `step`.
        unsafe { sum.settled_over::<MIN>(old) }
    }
    #[inline(always)]
    fn prepare(elements: &mut [V::Element]) -> bool {
        V::Element::prepare::<MIN>(elements)
    }
}

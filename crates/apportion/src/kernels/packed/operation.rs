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
    /// Whether packed elements differ from others and must be checked: by `packed` and `is_tame`.
    const PREPARES: bool = false;
    /// Elements as they are in a packed block; `seen` collects what [`Operation::is_tame`] asks for.
    #[inline(always)]
    unsafe fn packed(x: V, _seen: &mut Seen<V>) -> V {
        x
    }
    /// Whether plain sums of the elements seen cannot overflow.
    #[inline(always)]
    unsafe fn is_tame(_seen: Seen<V>) -> bool {
        true
    }
}

/// Lane by lane, the least and the greatest element so far.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Seen<V> {
    least: V,
    greatest: V,
}

impl<V: Vector> Seen<V> {
    /// Nothing but the number 0.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn nothing() -> Self {
        // SAFETY: guaranteed by the caller.
        let nought = unsafe { V::splat(V::Element::default()) };
        Self { least: nought, greatest: nought }
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

/// The most lanes of a vector.
const MOST_LANES: usize = 16;

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
    const PREPARES: bool = V::Element::WRAPS;
    #[inline(always)]
    unsafe fn packed(x: V, seen: &mut Seen<V>) -> V {
        // SAFETY: as in `step`.
        unsafe {
            // One step beyond a zero of max-plus is the largest integer: it cannot be the least. Likewise
            // one beyond a zero of min-plus.
            let beyond = x.plus(V::splat(V::Element::beyond::<MIN>()));
            let (least, greatest) = if MIN { (x, beyond) } else { (beyond, x) };
            seen.least = least.over::<true>(seen.least);
            seen.greatest = greatest.over::<false>(seen.greatest);
            // No other tame element is worse than what stands for a zero.
            x.over::<MIN>(V::splat(V::Element::stand_in::<MIN>()))
        }
    }
    #[inline(always)]
    unsafe fn is_tame(seen: Seen<V>) -> bool {
        let fold = |all: V, better: fn(V::Element, V::Element) -> V::Element| {
            let mut lanes = [V::Element::default(); MOST_LANES];
            // SAFETY: there is room for the lanes.
            unsafe { all.store(lanes.as_mut_ptr()) };
            lanes.into_iter().fold(V::Element::default(), better)
        };
        let least = fold(seen.least, V::Element::over::<true>);
        let greatest = fold(seen.greatest, V::Element::over::<false>);
        V::Element::are_tame::<MIN>(least, greatest)
    }
}

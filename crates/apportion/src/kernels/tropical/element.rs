//! The elements: their infinities, their sums, and the tiles that work on them.

use crate::kernels::packed::{Best, MicroKernel, Number, tiles};

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

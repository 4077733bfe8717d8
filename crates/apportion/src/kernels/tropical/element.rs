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
    /// Turns elements into [`Element::packed`] ones; false if plain sums with them might overflow.
    fn prepare<const MIN: bool>(elements: &mut [Self]) -> bool;
    /// The representation of the element in a packed block.
    fn packed<const MIN: bool>(self) -> Self;
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
            #[inline(always)]
            fn prepare<const MIN: bool>(_: &mut [Self]) -> bool {
                true
            }
            #[inline(always)]
            fn packed<const MIN: bool>(self) -> Self {
                self
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
            #[inline(always)]
            fn prepare<const MIN: bool>(elements: &mut [Self]) -> bool {
                let largest = Self::REACH / 2;
                // A number, and no early return, so that the loop vectorizes.
                let mut wild: Self = 0;
                for x in elements {
                    let too_large = (*x > largest) | (*x < -largest);
                    wild |= Self::from(too_large & (*x != Self::zero::<MIN>()));
                    *x = x.packed::<MIN>();
                }
                wild == 0
            }
            #[inline(always)]
            fn packed<const MIN: bool>(self) -> Self {
                let stand_in = Self::zero::<MIN>() / 2;
                if self == Self::zero::<MIN>() { stand_in } else { self }
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

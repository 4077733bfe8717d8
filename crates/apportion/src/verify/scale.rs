//! Scaling by powers of two, so that no sum overflows, and random words.

use crate::matrix::Element;

/// The binary exponent of the largest finite absolute value, within ±1000; `None` if all are zero.
#[inline(always)]
pub(super) fn exponent<T: Element>(values: &[T]) -> Option<i32> {
    // Positive doubles are ordered as their bits are.
    let sizes = values.iter().map(|v| v.to_f64().abs().to_bits());
    let largest = sizes.filter(|size| *size < f64::INFINITY.to_bits()).fold(0, u64::max);
    (largest > 0).then(|| ((largest >> 52) as i32 - 1023).clamp(-1000, 1000))
}

/// Multiplication by a power of two, in two steps, since the power itself may not be a double.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    factors: [f64; 2],
    inverses: [f64; 2],
    /// Applied last; 1 unless it is a factor of [`Scale::times`].
    factor: f64,
}

impl Scale {
    /// By 2^-exponent, for exponents within ±2000.
    pub fn down(exponent: i32) -> Self {
        let power = |e: i32| f64::from_bits(((1023 + e) as u64) << 52);
        let first = exponent / 2;
        let second = exponent - first;
        Self {
            factors: [power(-first), power(-second)],
            inverses: [power(first), power(second)],
            factor: 1.0,
        }
    }

    /// The scaled value.
    #[inline(always)]
    pub fn of(self, value: f64) -> f64 {
        value * self.factors[0] * self.factors[1] * self.factor
    }

    /// Scaling, and multiplication by a factor, in this order.
    pub fn times(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// The value that was scaled.
    pub fn back(self, value: f64) -> f64 {
        value * self.inverses[0] * self.inverses[1]
    }
}

//! Scaling by powers of two, so that no sum overflows, and random words.

use crate::matrix::Element;

/// The binary exponent of the largest finite absolute value, within ±1000; `None` if all are zero.
#[inline(always)]
pub(super) fn exponent<T: Element>(values: &[T]) -> Option<i32> {
    exponent_of(largest_and_others(values).0)
}

/// The exponent of a number given by the bits of its absolute value; `None` for 0.
#[inline(always)]
pub(super) fn exponent_of(largest: u64) -> Option<i32> {
    (largest > 0).then(|| ((largest >> 52) as i32 - 1023).clamp(-1000, 1000))
}

/// The bits of the largest finite absolute value, 0 if there is none, and whether there are infinities or
/// NaN.
#[inline(always)]
pub(super) fn largest_and_others<T: Element>(values: &[T]) -> (u64, bool) {
    // Positive doubles are ordered as their bits are. In lanes, so that the loop fills registers.
    const LANES: usize = 8;
    let mut lanes = [[0u64; LANES]; 2];
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut note = |t: usize, x: &T| {
        let size = x.to_f64().abs().to_bits();
        let finite = size < f64::INFINITY.to_bits();
        lanes[0][t] = lanes[0][t].max(if finite { size } else { 0 });
        lanes[1][t] |= u64::from(!finite);
    };
    for chunk in whole {
        for (t, x) in chunk.iter().enumerate() {
            note(t, x);
        }
    }
    rest.iter().for_each(|x| note(0, x));
    (lanes[0].into_iter().fold(0, u64::max), lanes[1].into_iter().any(|x| x == 1))
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

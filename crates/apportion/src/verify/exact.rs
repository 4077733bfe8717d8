//! One element by its definition: sums that do not overflow, and the infinities among the products.

use crate::matrix::Element;

/// The sum of the products that make one element: of the finite ones, scaled, with the sum of their absolute
/// values; and of the others, which is 0 if there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    sum: f64,
    size: f64,
    exceptional: f64,
}

/// An [`Exact`] as it is sent.
pub(super) type Share = [f64; 3];

impl From<Share> for Exact {
    fn from([sum, size, exceptional]: Share) -> Self {
        Self { sum, size, exceptional }
    }
}

/// Adds a product, given its factors both scaled and unscaled.
pub(super) fn add_product(share: &mut Share, scaled: f64, x: f64, y: f64) {
    if x.is_finite() && y.is_finite() {
        share[0] += scaled;
        share[1] += scaled.abs();
    } else {
        share[2] += x * y;
    }
}

/// Which infinities sums of finite terms may reach in some order: that of the positive ones alone, and that
/// of the negative ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overflow {
    pub(crate) up: bool,
    pub(crate) down: bool,
}

impl Overflow {
    /// Those of either.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { up: self.up || other.up, down: self.down || other.down }
    }

    /// Those of the terms times a number.
    pub(crate) fn times(self, factor: f64) -> Self {
        if factor < 0.0 { Self { up: self.down, down: self.up } } else { self }
    }
}

impl Exact {
    /// The infinities that the terms reach, where `beyond` says of a scaled sum whether it is too large for
    /// an element.
    pub(crate) fn overflow(&self, beyond: impl Fn(f64) -> bool) -> Overflow {
        let [positive, negative] = [self.size + self.sum, self.size - self.sum].map(|twice| 0.5 * twice);
        Overflow { up: beyond(positive), down: beyond(negative) }
    }

    /// Multiplied by an infinity or NaN. The sign is that of the sum, unless the sum may be 0 by rounding,
    /// within `margin`, or overflows to either side.
    pub(crate) fn times_exceptional(&mut self, factor: f64, margin: f64, overflow: Overflow) {
        let unknown = self.size > 0.0 && (self.sum.abs() <= margin || (overflow.up && overflow.down));
        if factor.is_nan() || self.exceptional != 0.0 {
            self.exceptional = if self.exceptional == 0.0 { factor } else { self.exceptional * factor };
        } else if unknown {
            self.sum = f64::NAN;
            return;
        } else {
            self.exceptional = self.sum * factor;
        }
        (self.sum, self.size) = (0.0, 0.0);
    }

    /// The sum of the absolute values.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// Adds a finite number, scaled.
    pub(crate) fn add(&mut self, scaled: f64) {
        self.sum += scaled;
        self.size += scaled.abs();
    }

    /// Adds an infinity or NaN.
    pub(crate) fn add_exceptional(&mut self, value: f64) {
        self.exceptional += value;
    }

    /// Multiplied by a number; infinities change sign with it even if it underflowed.
    pub(crate) fn times(&mut self, scaled: f64) {
        self.sum *= scaled;
        self.size *= scaled.abs();
        if self.exceptional != 0.0 {
            self.exceptional *= scaled.signum();
        }
    }

    /// The element, given the exponent that undoes the scaling.
    pub(crate) fn value(&self, back: impl Fn(f64) -> f64) -> f64 {
        if self.exceptional == 0.0 { back(self.sum) } else { self.exceptional }
    }

    /// True if an element, both unscaled and scaled, is right up to `margin`. One that overflows may have the
    /// infinity that its terms reach, and be NaN only if they reach both.
    pub(crate) fn allows(&self, seen: f64, scaled: f64, margin: f64, overflow: Overflow) -> bool {
        let Overflow { up, down } = overflow;
        if self.exceptional.is_nan() {
            seen.is_nan()
        } else if self.sum.is_nan() {
            // An infinite scalar times a sum whose sign rounding decides.
            !seen.is_finite()
        } else if self.exceptional != 0.0 {
            let opposite = if self.exceptional > 0.0 { down } else { up };
            seen == self.exceptional || (seen.is_nan() && opposite)
        } else if seen.is_finite() {
            (scaled - self.sum).abs() <= margin
        } else if seen.is_nan() {
            up && down
        } else if seen > 0.0 {
            up
        } else {
            down
        }
    }
}

// Scaling by powers of two, so that no sum overflows, and random words.

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
    pub(crate) fn down(exponent: i32) -> Self {
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
    pub(crate) fn of(self, value: f64) -> f64 {
        value * self.factors[0] * self.factors[1] * self.factor
    }

    /// Scaling, and multiplication by a factor, in this order.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// The value that was scaled.
    pub(crate) fn back(self, value: f64) -> f64 {
        value * self.inverses[0] * self.inverses[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_allow_rounding_and_nothing_else() {
        let allows =
            |exact: Share, seen: f64| Exact::from(exact).allows(seen, seen, 1e-9, Overflow::default());
        let one = [1.0, 1.0, 0.0];
        assert!(allows(one, 1.0 + 1e-10) && !allows(one, 1.1) && !allows(one, f64::NAN));
        assert!(!allows(one, f64::INFINITY));
        let nan = [1.0, 1.0, f64::NAN];
        assert!(allows(nan, f64::NAN) && !allows(nan, 1.0));
        let infinite = [1.0, 1.0, f64::INFINITY];
        assert!(!allows(infinite, 1e300) && allows(infinite, f64::INFINITY));
        assert!(!allows(infinite, f64::NEG_INFINITY) && !allows(infinite, f64::NAN));
    }

    /// The infinity is that of the terms' sign, whichever their order; NaN takes terms of both signs.
    #[test]
    fn an_overflow_has_the_sign_of_terms_that_reach_it() {
        let [inf, minus] = [f64::INFINITY, f64::NEG_INFINITY];
        let allowed = |exact: Share, factor: f64| {
            let mut exact = Exact::from(exact);
            let overflow = exact.overflow(|sum| sum >= 8.0).times(factor);
            exact.times(factor);
            [inf, minus, f64::NAN].map(|seen| exact.allows(seen, seen, 1e-9, overflow))
        };
        assert_eq!(allowed([9.0, 9.0, 0.0], 1.0), [true, false, false]);
        assert_eq!(allowed([9.0, 9.0, 0.0], -1.0), [false, true, false]);
        assert_eq!(allowed([-9.0, 9.0, 0.0], 1.0), [false, true, false]);
        // 10 - 9 and 10 - 3.
        assert_eq!(allowed([1.0, 19.0, 0.0], 1.0), [true, true, true]);
        assert_eq!(allowed([7.0, 13.0, 0.0], 1.0), [true, false, false]);
        assert_eq!(allowed([7.0, 7.0, 0.0], 1.0), [false; 3]);
        // Beside an infinity, NaN takes an overflow to the other side.
        assert_eq!(allowed([9.0, 9.0, inf], 1.0), [true, false, false]);
        assert_eq!(allowed([-9.0, 9.0, inf], 1.0), [true, false, true]);
    }

    #[test]
    fn infinite_scalars_take_the_sign_of_the_sum() {
        let value = |exact: Share, factor: f64, margin: f64| {
            let mut exact = Exact::from(exact);
            exact.times_exceptional(factor, margin, Overflow::default());
            exact.value(|sum| sum)
        };
        assert_eq!(value([-2.0, 2.0, 0.0], f64::INFINITY, 0.1), f64::NEG_INFINITY);
        assert_eq!(value([2.0, 2.0, f64::NEG_INFINITY], f64::NEG_INFINITY, 0.1), f64::INFINITY);
        assert!(value([0.0, 0.0, 0.0], f64::INFINITY, 0.1).is_nan(), "0 times infinity");
        assert!(value([2.0, 2.0, 0.0], f64::NAN, 0.1).is_nan());
        let mut unknown = Exact::from([0.01, 2.0, 0.0]);
        unknown.times_exceptional(f64::INFINITY, 0.1, Overflow::default());
        let allows = |seen: f64| unknown.allows(seen, seen, 0.1, Overflow::default());
        assert!(allows(f64::INFINITY) && allows(f64::NAN) && !allows(0.0));
    }

    #[test]
    fn infinities_are_added_and_change_sign_as_products_do() {
        let mut share = [0.0; 3];
        add_product(&mut share, 6.0, 2.0, 3.0);
        add_product(&mut share, f64::INFINITY, f64::INFINITY, 1.0);
        assert_eq!(share, [6.0, 6.0, f64::INFINITY]);
        let mut exact = Exact::from(share);
        exact.times(-0.0);
        assert_eq!(exact.value(|_| 1.0), f64::NEG_INFINITY);
        exact.add_exceptional(f64::INFINITY);
        assert!(exact.value(|_| 1.0).is_nan());
        exact.times(1.0);
        assert!(exact.value(|_| 1.0).is_nan());
        add_product(&mut share, f64::NAN, f64::INFINITY, 0.0);
        assert!(share[2].is_nan());
    }
}

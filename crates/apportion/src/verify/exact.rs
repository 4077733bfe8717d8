//! One element by its definition: sums that do not overflow, and the infinities among the products.

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
pub(super) fn add_product(share: &mut Share, scaled: f64, (x, y): (f64, f64)) {
    if x.is_finite() && y.is_finite() {
        share[0] += scaled;
        share[1] += scaled.abs();
    } else {
        share[2] += x * y;
    }
}

impl Exact {
    /// The sum of the absolute values.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// Adds a finite number, scaled.
    pub fn add(&mut self, scaled: f64) {
        self.sum += scaled;
        self.size += scaled.abs();
    }

    /// Adds an infinity or NaN.
    pub fn add_exceptional(&mut self, value: f64) {
        self.exceptional += value;
    }

    /// Multiplied by a number; infinities change sign with it even if it underflowed.
    pub fn times(&mut self, scaled: f64) {
        self.sum *= scaled;
        self.size *= scaled.abs();
        if self.exceptional != 0.0 {
            self.exceptional *= scaled.signum();
        }
    }

    /// The element, given the exponent that undoes the scaling.
    pub fn value(&self, back: impl Fn(f64) -> f64) -> f64 {
        if self.exceptional == 0.0 { back(self.sum) } else { self.exceptional }
    }

    /// True if an element, both unscaled and scaled, is right up to `margin`. An element that `overflows` may
    /// be infinite or NaN.
    pub fn allows(&self, (seen, scaled): (f64, f64), margin: f64, overflows: bool) -> bool {
        if self.exceptional.is_nan() {
            seen.is_nan()
        } else if self.exceptional != 0.0 {
            seen == self.exceptional || (seen.is_nan() && overflows)
        } else if !self.sum.is_finite() {
            // Alpha or beta is infinite or NaN.
            !seen.is_finite()
        } else if seen.is_finite() {
            (scaled - self.sum).abs() <= margin
        } else {
            overflows
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_allow_rounding_and_nothing_else() {
        let allows = |exact: Share, seen: f64| Exact::from(exact).allows((seen, seen), 1e-9, false);
        let one = [1.0, 1.0, 0.0];
        assert!(allows(one, 1.0 + 1e-10) && !allows(one, 1.1) && !allows(one, f64::NAN));
        assert!(!allows(one, f64::INFINITY));
        assert!(Exact::from(one).allows((f64::INFINITY, f64::INFINITY), 1e-9, true));
        let nan = [1.0, 1.0, f64::NAN];
        assert!(allows(nan, f64::NAN) && !allows(nan, 1.0));
        let infinite = [1.0, 1.0, f64::INFINITY];
        assert!(!allows(infinite, 1e300) && allows(infinite, f64::INFINITY));
        assert!(!allows(infinite, f64::NEG_INFINITY));
    }

    #[test]
    fn infinities_are_added_and_change_sign_as_products_do() {
        let mut share = [0.0; 3];
        add_product(&mut share, 6.0, (2.0, 3.0));
        add_product(&mut share, f64::INFINITY, (f64::INFINITY, 1.0));
        assert_eq!(share, [6.0, 6.0, f64::INFINITY]);
        let mut exact = Exact::from(share);
        exact.times(-0.0);
        assert_eq!(exact.value(|_| 1.0), f64::NEG_INFINITY);
        exact.add_exceptional(f64::INFINITY);
        assert!(exact.value(|_| 1.0).is_nan());
        exact.times(1.0);
        assert!(exact.value(|_| 1.0).is_nan());
        add_product(&mut share, f64::NAN, (f64::INFINITY, 0.0));
        assert!(share[2].is_nan());
    }
}

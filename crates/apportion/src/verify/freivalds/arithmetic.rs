//! Sums that neither overflow nor mind infinities.

use crate::matrix::Element;
use crate::verify::freivalds::{LANES, Lanes};

/// The sum of the products that make one element: finite ones scaled, and which infinities are among the others.
#[derive(Clone, Copy, Default)]
pub(super) struct Exact {
    sum: f64,
    /// The sum of the absolute values.
    pub size: f64,
    plus: bool,
    minus: bool,
    nan: bool,
}

impl Exact {
    pub fn add(&mut self, product: f64) {
        self.sum += product;
        self.size += product.abs();
    }

    pub fn add_infinite(&mut self, product: f64) {
        self.plus |= product == f64::INFINITY;
        self.minus |= product == f64::NEG_INFINITY;
        self.nan |= product.is_nan();
    }

    /// Multiplied by a number; infinities change sign with it even if it underflowed.
    pub fn times(&mut self, scaled: f64) {
        self.sum *= scaled;
        self.size *= scaled.abs();
        if scaled.is_sign_negative() {
            std::mem::swap(&mut self.plus, &mut self.minus);
        }
    }

    pub fn value(&self, back: impl Fn(f64) -> f64) -> f64 {
        match (self.nan, self.plus, self.minus) {
            (false, false, false) => back(self.sum),
            (false, true, false) => f64::INFINITY,
            (false, false, true) => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    pub fn allows(&self, seen: f64, scaled: f64, margin: f64, overflows: bool) -> bool {
        let wanted = self.value(|_| 0.0);
        if wanted.is_nan() {
            seen.is_nan()
        } else if wanted.is_infinite() {
            seen == wanted || (seen.is_nan() && overflows)
        } else if seen.is_finite() {
            (scaled - self.sum).abs() <= margin
        } else {
            overflows
        }
    }
}

/// The sums of a row with every vector, and the first element that is not finite though its column is.
pub(super) fn project<T: Element>(row: &[T], scale: Scale, vectors: &[Lanes]) -> (Lanes, Option<usize>) {
    let mut sums = [0.0; LANES];
    let mut strange = None;
    for (j, (v, x)) in row.iter().zip(vectors).enumerate() {
        let v = v.to_f64();
        if v.is_finite() {
            let v = scale.of(v);
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum += v * x;
            }
        } else if x[0] != 0.0 && strange.is_none() {
            strange = Some(j);
        }
    }
    (sums, strange)
}

/// The binary exponent of the largest finite absolute value, within ±1000, and whether all are finite.
pub(crate) fn exponent<T: Element>(values: &[T]) -> (i32, bool) {
    let (mut largest, mut finite) = (0.0f64, true);
    for v in values.iter().map(|v| v.to_f64().abs()) {
        if v.is_finite() {
            largest = largest.max(v);
        } else {
            finite = false;
        }
    }
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    (if largest == 0.0 { 0 } else { exponent.clamp(-1000, 1000) }, finite)
}

/// Multiplication by a power of two, in two steps, since the power itself may not be a double.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    factors: [f64; 2],
    inverses: [f64; 2],
}

impl Scale {
    /// By 2^-exponent, for exponents within ±2000.
    pub(crate) fn down(exponent: i32) -> Self {
        let power = |e: i32| f64::from_bits(((1023 + e) as u64) << 52);
        let first = exponent / 2;
        let second = exponent - first;
        Self { factors: [power(-first), power(-second)], inverses: [power(first), power(second)] }
    }

    pub fn of(self, value: f64) -> f64 {
        value * self.factors[0] * self.factors[1]
    }

    pub fn back(self, value: f64) -> f64 {
        value * self.inverses[0] * self.inverses[1]
    }
}

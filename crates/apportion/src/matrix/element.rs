//! Matrix elements: floating-point numbers, integers, or bytes that hold truth values.

use bytemuck::Pod;
use std::fmt::{Debug, Display};

/// A matrix element: `f32` or `f64`; `i32` or `i64` for max-plus and min-plus; `u8` for or-and, where any
/// value but 0 is true; or a [`PathElement`](crate::kernels::PathElement), a length together with the last
/// vertex passed.
pub trait Element: Pod + PartialEq + PartialOrd + Send + Sync + Debug + Display + 'static {
    /// `"f32"`, `"f64"`, `"i32"`, `"i64"` or `"u8"`, as in kernel names.
    const NAME: &'static str;
    /// NumPy's name of it, little-endian.
    const DESCR: &'static str;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;
    /// True for the types that plus-times takes, `f32` and `f64`.
    const REAL: bool = false;
    /// The smallest positive number with full precision; below it the rounding error is absolute.
    const TINY: f64;
    /// The largest finite number.
    const LARGEST: f64;
    /// Zero.
    const ZERO: Self;

    /// The value as a double: exact except for integers beyond 2^53.
    fn to_f64(self) -> f64;

    /// The nearest element to a double.
    fn from_f64(value: f64) -> Self;
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    const DESCR: &'static str = "<f4";
    const EPSILON: f64 = f32::EPSILON as f64;
    const REAL: bool = true;
    const TINY: f64 = f32::MIN_POSITIVE as f64;
    const LARGEST: f64 = f32::MAX as f64;
    const ZERO: Self = 0.0;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Element for f64 {
    const NAME: &'static str = "f64";
    const DESCR: &'static str = "<f8";
    const EPSILON: f64 = f64::EPSILON;
    const REAL: bool = true;
    const TINY: f64 = f64::MIN_POSITIVE;
    const LARGEST: f64 = f64::MAX;
    const ZERO: Self = 0.0;

    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Element for u8 {
    const NAME: &'static str = "u8";
    const DESCR: &'static str = "|u1";
    const EPSILON: f64 = 1.0;
    const TINY: f64 = 1.0;
    const LARGEST: f64 = 255.0;
    const ZERO: Self = 0;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        value.round() as u8
    }
}

macro_rules! whole {
    ($integer:ident, $descr:literal) => {
        impl Element for $integer {
            const NAME: &'static str = stringify!($integer);
            const DESCR: &'static str = $descr;
            const EPSILON: f64 = 1.0;
            const TINY: f64 = 1.0;
            const LARGEST: f64 = $integer::MAX as f64;
            const ZERO: Self = 0;

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64(value: f64) -> Self {
                value.round() as $integer
            }
        }
    };
}

whole!(i32, "<i4");
whole!(i64, "<i8");

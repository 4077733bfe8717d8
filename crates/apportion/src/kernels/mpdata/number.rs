//! The numbers that are advected.

use super::subdomain::Part;
use crate::matrix::Element;
use std::ops::{Add, Div, Mul, Sub};

/// A floating-point number that can be advected.
pub trait Advectable:
    Element + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// True if products of three denominators neither overflow nor underflow, so that fractions can be added
    /// over one denominator.
    const WIDE: bool;
    /// The largest magnitude of a field's values.
    const LIMIT: f64;

    /// The larger of two numbers that are not NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// The smaller of two numbers that are not NaN.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    /// The magnitude.
    fn magnitude(self) -> Self;

    /// A constant of the formulas.
    fn constant(value: f64) -> Self;

    /// Carries out passes for a part of a box. No generic function: the loops are compiled once, with this
    /// crate, and not with each program that uses it.
    #[doc(hidden)]
    fn compute(part: Part<'_, Self>);
}

impl Advectable for f32 {
    const WIDE: bool = false;
    const LIMIT: f64 = 1e37;

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn constant(value: f64) -> Self {
        value as Self
    }

    fn compute(part: Part<'_, Self>) {
        part.computed();
    }
}

impl Advectable for f64 {
    const WIDE: bool = true;
    const LIMIT: f64 = 1e100;

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn constant(value: f64) -> Self {
        value
    }

    fn compute(part: Part<'_, Self>) {
        part.computed();
    }
}

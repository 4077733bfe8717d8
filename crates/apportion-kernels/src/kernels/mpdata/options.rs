//! The variants of the scheme, and how far each pass looks.

use super::subdomain::Part;
use crate::error::{Error, Result};
use crate::matrix::Element;
use serde::{Deserialize, Serialize};
use std::ops::{Add, Div, Mul, Sub};

/// The most passes of one step.
pub(crate) const MOST_PASSES: usize = 4;

/// A variant of MPDATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Passes of a step: one upwind pass, the others corrective. From 1 to 4.
    pub passes: usize,
    /// Limit the corrective fluxes so that no new extremes appear.
    pub nonoscillatory: bool,
    /// Linearise the corrections about a large constant background: for fields of both signs.
    pub infinite_gauge: bool,
    /// Correct the third-order error too.
    pub third_order: bool,
}

impl Scheme {
    /// The basic scheme with this number of passes.
    ///
    /// # Errors
    /// Not 1 to 4 passes: exit code 2.
    pub fn new(passes: usize) -> Result<Self> {
        Self { passes, nonoscillatory: false, infinite_gauge: false, third_order: false }.checked()
    }

    /// The same scheme, if it is one.
    ///
    /// # Errors
    /// Not 1 to 4 passes; an option without a corrective pass; an infinite gauge with more than two passes,
    /// which steepens the field: exit code 2.
    pub fn checked(self) -> Result<Self> {
        if !(1..=MOST_PASSES).contains(&self.passes) {
            let what = format!("{} passes", self.passes);
            return Err(Error::input("`iterations`", what, format!("give 1 to {MOST_PASSES}")));
        }
        if self.passes == 1 && (self.nonoscillatory || self.infinite_gauge || self.third_order) {
            return Err(Error::input(
                "`iterations`",
                "a single upwind pass has no correction that an option could change",
                "give 2 iterations, or leave the options out",
            ));
        }
        if self.infinite_gauge && self.passes > 2 {
            return Err(Error::input(
                "`infinite_gauge`",
                format!("{} passes with an infinite gauge steepen the field", self.passes),
                "give 2 iterations, or leave the infinite gauge out",
            ));
        }
        Ok(self)
    }

    /// Number of cells by which the input of a pass (from 1) is wider than its output, on each side.
    pub fn reach(&self, pass: usize) -> usize {
        if pass == 1 { 1 } else { 1 + usize::from(self.nonoscillatory) + usize::from(self.third_order) }
    }

    /// Number of cells by which the input of a step is wider than its output, on each side.
    pub fn halo(&self) -> usize {
        (1..=self.passes).map(|pass| self.reach(pass)).sum()
    }

    /// The largest reach of a pass.
    pub(crate) fn pass_halo(&self) -> usize {
        self.reach(self.passes.min(2))
    }

    /// Arithmetic operations of a pass (from 1) per cell.
    pub fn pass_operations(&self, pass: usize, dimensions: usize) -> f64 {
        let axes = dimensions as f64;
        let upwind = 6.0 * axes;
        if pass == 1 {
            return upwind;
        }
        let correction = axes * (8.0 + 16.0 * (axes - 1.0)) * if self.third_order { 1.6 } else { 1.0 };
        let limiter = if self.nonoscillatory { 30.0 * axes } else { 0.0 };
        upwind + correction + limiter
    }

    /// Arithmetic operations of a step per cell.
    pub fn operations(&self, dimensions: usize) -> f64 {
        (1..=self.passes).map(|pass| self.pass_operations(pass, dimensions)).sum()
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.passes, if self.passes == 1 { "pass" } else { "passes" })?;
        let options = [
            (self.nonoscillatory, "non-oscillatory"),
            (self.infinite_gauge, "infinite gauge"),
            (self.third_order, "third order"),
        ];
        options.iter().filter(|(on, _)| *on).try_for_each(|(_, name)| write!(f, ", {name}"))
    }
}

/// What is beyond the two ends of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The other end of the axis.
    Periodic,
    /// Nothing: the field, the Courant numbers and the limiters are 0.
    Zero,
    /// What is at the end: the field and the Courant numbers continue with their last value.
    Extrapolated,
}

impl std::str::FromStr for Boundary {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "periodic" => Ok(Self::Periodic),
            "zero" => Ok(Self::Zero),
            "extrapolated" => Ok(Self::Extrapolated),
            _ => Err(format!("\"{text}\" is not a boundary: choose periodic, zero or extrapolated")),
        }
    }
}

// The numbers that are advected.

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

macro_rules! advectable {
    ($number:ident, $wide:literal, $limit:literal) => {
        impl Advectable for $number {
            const WIDE: bool = $wide;
            const LIMIT: f64 = $limit;

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
    };
}

advectable!(f32, false, 1e37);
advectable!(f64, true, 1e100);

#[cfg(test)]
mod tests {
    use super::*;

    /// The widths of the literature: K; 1 + 2 (K - 1); 1 + 3 (K - 1).
    #[test]
    fn halos_are_those_of_the_scheme() {
        for passes in 1..=MOST_PASSES {
            let basic = Scheme::new(passes).unwrap();
            assert_eq!(basic.halo(), passes);
            let limited = Scheme { nonoscillatory: true, ..basic };
            assert_eq!(limited.halo(), 1 + 2 * (passes - 1));
            assert_eq!(Scheme { third_order: true, ..limited }.halo(), 1 + 3 * (passes - 1));
        }
    }

    #[test]
    fn schemes_that_are_none_are_refused() {
        let gauge = Scheme { infinite_gauge: true, ..Scheme::new(2).unwrap() };
        assert!(gauge.checked().is_ok());
        for bad in [
            Scheme { passes: 0, ..gauge },
            Scheme { passes: 5, infinite_gauge: false, ..gauge },
            Scheme { passes: 3, ..gauge },
            Scheme { passes: 1, ..gauge },
        ] {
            assert_eq!(bad.checked().unwrap_err().exit_code(), 2, "{bad}");
        }
    }
}

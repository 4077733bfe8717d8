//! The four semirings that matrices are multiplied over.

use crate::error::{Error, Result};
use crate::kernels::Tropical;
use std::fmt;
use std::str::FromStr;

/// The operations that replace + and x in a product of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Semiring {
    /// The usual sum of products.
    #[default]
    PlusTimes,
    /// The largest of sums: longest paths, schedules. Its zero is -infinity, its one is 0.
    MaxPlus,
    /// The smallest of sums: shortest paths. Its zero is +infinity, its one is 0.
    MinPlus,
    /// Or of ands: reachability. Its zero is false, its one is true.
    OrAnd,
}

impl Semiring {
    /// All four, in the order of their declaration.
    pub(crate) const ALL: [Self; 4] = [Self::PlusTimes, Self::MaxPlus, Self::MinPlus, Self::OrAnd];

    /// The name used in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlusTimes => "plus-times",
            Self::MaxPlus => "max-plus",
            Self::MinPlus => "min-plus",
            Self::OrAnd => "or-and",
        }
    }

    /// The neutral element of the sum, which absorbs in a product. False is 0.
    pub fn zero<T: Tropical>(self) -> T {
        match self {
            Self::MaxPlus => T::LOWEST,
            Self::MinPlus => T::HIGHEST,
            Self::PlusTimes | Self::OrAnd => T::NOUGHT,
        }
    }

    /// The neutral element of the product. True is 1.
    pub(crate) fn one<T: Tropical>(self) -> T {
        match self {
            Self::MaxPlus | Self::MinPlus => T::NOUGHT,
            Self::PlusTimes | Self::OrAnd => T::UNIT,
        }
    }
}

impl fmt::Display for Semiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Semiring {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|s| s.name() == text).ok_or_else(|| {
            Error::input(
                "semiring",
                format!("unknown name '{text}'"),
                "choose plus-times, max-plus, min-plus or or-and",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for semiring in Semiring::ALL {
            assert_eq!(semiring.to_string().parse::<Semiring>().unwrap(), semiring);
        }
        let message = "times-plus".parse::<Semiring>().unwrap_err().to_string();
        assert_eq!(
            message,
            "semiring: unknown name 'times-plus' (choose plus-times, max-plus, min-plus or or-and)"
        );
    }

    #[test]
    fn zeros_and_ones() {
        assert_eq!(Semiring::PlusTimes.zero::<f64>(), 0.0);
        assert_eq!(Semiring::PlusTimes.one::<f64>(), 1.0);
        assert_eq!(Semiring::MaxPlus.zero::<f32>(), f32::NEG_INFINITY);
        assert_eq!(Semiring::MinPlus.zero::<i32>(), i32::MAX);
        assert_eq!(Semiring::MinPlus.one::<i64>(), 0);
        assert_eq!(Semiring::OrAnd.one::<f64>(), 1.0);
    }
}

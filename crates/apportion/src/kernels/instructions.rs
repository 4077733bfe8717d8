//! Which vector instructions the kernels may use.

use crate::error::{Error, Result};
use std::sync::OnceLock;

/// Sets of vector instructions, the narrowest first.
///
/// A processor without a set uses the widest narrower one that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// What every processor of the architecture has.
    Portable,
    /// AVX2 and fused multiply-add, 256 bits; NEON on aarch64.
    Avx2,
    /// AVX-512, 512 bits.
    Avx512,
}

impl Instructions {
    /// The environment variable that limits the kernels of a process.
    pub const VARIABLE: &str = "APPORTION_INSTRUCTIONS";

    /// The widest set that kernels may use: [`Instructions::VARIABLE`], by default AVX-512. Kernels read it
    /// once, when the first of them runs.
    ///
    /// # Errors
    /// The variable names no set. Kernels then run without a limit.
    pub fn limit() -> Result<Self> {
        let text = std::env::var_os(Self::VARIABLE).filter(|text| !text.is_empty());
        text.map_or(Ok(Self::Avx512), |text| Self::parse(&text.to_string_lossy()))
    }

    fn parse(text: &str) -> Result<Self> {
        match text {
            "portable" => Ok(Self::Portable),
            "avx2" => Ok(Self::Avx2),
            "avx512" => Ok(Self::Avx512),
            _ => Err(Error::input(
                Self::VARIABLE,
                format!("{text:?} is no set of instructions"),
                "set it to portable, avx2 or avx512, or unset it",
            )),
        }
    }

    /// Whether the limit leaves this set.
    pub(super) fn is_allowed(self) -> bool {
        static LIMIT: OnceLock<Instructions> = OnceLock::new();
        self <= *LIMIT.get_or_init(|| Self::limit().unwrap_or(Self::Avx512))
    }
}

/// Whether kernels may use a set of instructions, and this processor has its features.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($set:ident: $($feature:tt),+) => {
        $crate::kernels::Instructions::$set.is_allowed() && $(is_x86_feature_detected!($feature))&&+
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use has;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        let sets = ["portable", "avx2", "avx512"].map(|text| Instructions::parse(text).unwrap());
        assert!(sets.is_sorted() && sets[0] < sets[2]);
        for text in ["AVX2", "avx", "avx2 ", "sse"] {
            let error = Instructions::parse(text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(text.trim()), "{error}");
        }
    }
}

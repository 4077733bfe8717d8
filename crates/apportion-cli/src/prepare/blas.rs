//! From `--blas` to a kernel.

use crate::args::BlasArgs;
use apportion::error::{Error, Result};
use apportion::kernels::{Blas, Kernel, Real, Semiring};

impl BlasArgs {
    /// The kernel of a semiring of real numbers; `None` if it is to be the fastest.
    ///
    /// # Errors
    /// The library cannot be loaded, or is named for a semiring other than plus-times.
    pub fn kernel<T: Real>(&self, semiring: Semiring) -> Result<Option<Kernel<T>>> {
        match (semiring, self.named()) {
            (Semiring::PlusTimes, "auto") => Ok(None),
            (_, "none" | "auto") => Kernel::over(semiring).map(Some),
            (Semiring::PlusTimes, name) => Blas::open(name).map(|blas| Some(Kernel::by_blas(blas))),
            _ => Err(self.refused(semiring)),
        }
    }

    /// Rejects a named library for kernels that no library provides.
    ///
    /// # Errors
    /// Unless it is `none` or `auto`.
    pub fn unused(&self, semiring: Semiring) -> Result<()> {
        if matches!(self.named(), "none" | "auto") { Ok(()) } else { Err(self.refused(semiring)) }
    }

    /// What was asked for, or the default.
    fn named(&self) -> &str {
        self.blas.as_deref().unwrap_or(if self.reproducible { "none" } else { "auto" })
    }

    fn refused(&self, semiring: Semiring) -> Error {
        Error::input(
            format!("--blas {}", self.named()),
            format!("libraries support plus-times only, not {semiring}"),
            "remove the flag",
        )
    }
}

//! `--blas`: whose kernel multiplies real numbers.

use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::{Blas, Real, Semiring};
use clap::Args;

#[derive(Debug, Args)]
pub struct BlasArgs {
    /// Whose kernel plus-times runs on: none (the built-in one: the same bytes on every machine), auto (the first of
    /// OpenBLAS, BLIS, MKL that is installed, else the built-in one), openblas, blis, mkl, or a library's file.
    #[arg(long, value_name = "auto|none|PATH", default_value = "none")]
    pub blas: String,
}

impl BlasArgs {
    /// The kernel of a semiring of real numbers.
    ///
    /// # Errors
    /// A library that is not there or does not multiply; a library named for another semiring than plus-times.
    pub fn kernel<T: Real>(&self, semiring: Semiring) -> Result<Kernel<T>> {
        match (semiring, self.blas.as_str()) {
            (_, "none") => Kernel::over(semiring),
            (Semiring::PlusTimes, "auto") => Ok(Blas::any().map_or_else(Kernel::plus_times, Kernel::by_blas)),
            (Semiring::PlusTimes, name) => Blas::open(name).map(Kernel::by_blas),
            (_, "auto") => Kernel::over(semiring),
            _ => Err(self.refused(semiring)),
        }
    }

    /// Refuses a named library where the kernel is not real numbers' plus-times.
    ///
    /// # Errors
    /// Unless it is `none` or `auto`.
    pub fn unused(&self, semiring: Semiring) -> Result<()> {
        if matches!(self.blas.as_str(), "none" | "auto") { Ok(()) } else { Err(self.refused(semiring)) }
    }

    fn refused(&self, semiring: Semiring) -> Error {
        Error::input(
            format!("--blas {}", self.blas),
            format!("libraries multiply over plus-times only, not over {semiring}"),
            "leave it out",
        )
    }
}

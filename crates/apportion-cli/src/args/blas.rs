//! `--blas`: which library multiplies real numbers.

use clap::Args;

#[derive(Debug, Args)]
pub struct BlasArgs {
    /// Library for plus-times products: none (built-in kernel; identical bytes on every machine with fused
    /// multiply-add, which x86-64 processors have since about 2013), auto (the first installed of OpenBLAS,
    /// BLIS and MKL, else built-in), openblas, blis, mkl, or the path of a library [default: none].
    #[arg(long, value_name = "auto|none|PATH")]
    pub blas: Option<String>,
}

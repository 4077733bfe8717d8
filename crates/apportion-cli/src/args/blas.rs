//! `--blas`: which library multiplies real numbers.

use clap::Args;

#[derive(Debug, Args)]
pub struct BlasArgs {
    /// Kernel for plus-times products: auto (the fastest, by a race of half a second, of the built-in kernel,
    /// OpenBLAS, BLIS and MKL; built-in for small products, and for products in panels), none (the built-in
    /// kernel), openblas, blis, mkl, or the path of a library [default: auto].
    #[arg(long, value_name = "auto|none|PATH", help_heading = "For experts")]
    pub blas: Option<String>,
    /// Use the built-in kernel: the same bytes whatever is installed, on every machine with fused
    /// multiply-add (x86-64 since about 2013, all of ARM's 64-bit processors).
    #[arg(long, conflicts_with = "blas", help_heading = "For experts")]
    pub reproducible: bool,
}

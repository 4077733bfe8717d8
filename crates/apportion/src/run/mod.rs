//! Running a schedule for real.

mod blocks;
mod clock;
mod governor;
mod kernel;
pub mod kernels;
mod measure;
mod monitor;
mod post;
mod threads;

pub use kernel::Kernel;
pub use measure::{MeasureOptions, measure_gemm, measure_kernel};
pub use monitor::Monitor;
pub use threads::{RunOutput, run_kernel, run_threads};

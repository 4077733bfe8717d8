//! Running a schedule for real.

mod blocks;
mod clock;
mod governor;
pub mod kernels;
mod measure;
mod monitor;
mod post;
mod threads;

pub use measure::{MeasureOptions, measure_gemm};
pub use monitor::Monitor;
pub use threads::{RunOutput, run_threads};

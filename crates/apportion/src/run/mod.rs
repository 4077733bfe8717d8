//! Running a schedule for real.

mod balance;
mod blocks;
mod carry;
mod child;
mod clock;
mod command;
mod governor;
mod kernel;
pub mod kernels;
mod links;
mod measure;
mod monitor;
mod post;
mod scaled;
mod segments;
mod stencil;
mod sweep;
mod threads;
mod worker;

pub use balance::{Balance, BalanceOptions, Round, balance};
pub use carry::carry_by_threads;
pub use command::{SecondsFrom, UserCommand, sweep_command};
pub use kernel::Kernel;
pub use links::{Carry, LinkOptions, MeasuredLink, Probe, measure_links};
pub use measure::{measure_gemm, measure_kernel, sweep_kernel};
pub use monitor::Monitor;
pub(crate) use segments::ThreadSegments;
pub use stencil::sweep_stencil;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};
pub use threads::{RunOutput, run_kernel, run_threads};

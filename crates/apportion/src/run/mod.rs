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
mod launched;
mod links;
mod measure;
mod monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
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
pub use launched::Launched;
pub use links::{Carry, LinkOptions, MeasuredLink, Probe, measure_links};
pub use measure::{measure_gemm, measure_kernel, sweep_kernel};
pub use monitor::Monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub use mpi::{World, measure_links_mpi, run_mpi};
pub(crate) use segments::ThreadSegments;
pub use stencil::sweep_stencil;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};
pub use threads::{RunOutput, run_kernel, run_threads};

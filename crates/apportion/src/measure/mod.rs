//! How fast processors and links are: kernels, users' programs, messages.

mod balance;
mod child;
mod command;
mod kernels;
mod links;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod links_mpi;
mod links_threads;
mod stencil;
mod sweep;

pub use balance::{Balance, BalanceOptions, Round, balance};
pub use command::{SecondsFrom, UserCommand, sweep_command};
pub use kernels::{measure_gemm, measure_kernel, sweep_kernel};
pub use links::{LinkOptions, MeasuredLink, Probe, ProbeFn, measure_links};
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub use links_mpi::measure_links_mpi;
pub use links_threads::threads_probe;
pub use stencil::sweep_stencil;
pub use sweep::{Keep, MeasureOptions, Sizes, Sweep};

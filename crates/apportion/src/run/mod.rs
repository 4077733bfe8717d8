//! Running a schedule for real.

mod blocks;
pub(crate) mod clock;
mod launch;
pub(crate) mod mailboxes;
mod monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
mod segments;
mod threads;
pub(crate) mod throttle;
pub(crate) mod worker;

pub use launch::MpiLaunch;
pub use monitor::Monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub use mpi::{World, run_mpi};
pub(crate) use segments::ThreadSegments;
pub use threads::{RunOutput, run_kernel, run_threads};

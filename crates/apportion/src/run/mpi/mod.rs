//! MPI, loaded at run time, whose only user is `run/world/mpi.rs`; and memory that ranks share.

mod adopted;
mod library;
mod numbers;
mod raw;
#[cfg(target_os = "linux")]
pub(super) mod shared;

pub(super) use adopted::Communicator;
pub(super) use library::VARIABLE;
pub(super) use raw::Mpi;

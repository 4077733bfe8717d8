//! MPI, loaded at run time, whose only user is `run/world/mpi.rs`; and memory that ranks share.

mod library;
mod raw;
#[cfg(target_os = "linux")]
pub(super) mod shared;

pub(super) use library::{Communicator, VARIABLE, loadable};
pub(super) use raw::Mpi;

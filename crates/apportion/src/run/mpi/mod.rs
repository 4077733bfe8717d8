//! MPI, loaded at run time. `run/world/mpi.rs` is its only user.

mod adopted;
mod library;
mod numbers;
mod raw;

pub(super) use adopted::Communicator;
pub(super) use library::VARIABLE;
pub(super) use raw::{Mpi, Transfer};

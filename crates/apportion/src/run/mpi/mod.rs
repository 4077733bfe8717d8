//! MPI, loaded at run time. [`World::mpi`](super::World::mpi) is its only user.

mod raw;

pub(super) use raw::{Mpi, Transfer, VARIABLE};

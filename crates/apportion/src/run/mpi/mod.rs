//! MPI, found at run time. [`World::mpi`](super::World::mpi) joins its world; nothing else calls it.

mod raw;

pub(super) use raw::{Mpi, Transfer, VARIABLE};

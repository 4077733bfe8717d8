//! The contract under MPI: the same commands as on threads, started by the mpirun of Open MPI and of MPICH,
//! give the same bytes.
//!
//! If an mpirun is missing, its tests are visibly skipped.

mod combinations;
mod detect;
mod distributed;
mod events;
mod hosts;
pub mod launch;
mod lost;
mod measure;
mod nodes;
mod programs;
mod refusals;
mod same;

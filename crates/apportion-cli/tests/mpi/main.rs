//! The contract under MPI: the same commands as on threads, started by the mpirun of Open MPI and of MPICH,
//! give the same bytes.
//!
//! If an mpirun is missing, its tests are visibly skipped.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

mod combinations;
mod distributed;
mod events;
mod hosts;
mod launch;
mod lost;
mod measure;
mod refusals;
mod same;

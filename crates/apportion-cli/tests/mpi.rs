//! The contract under MPI: the same commands as on threads, started by the mpirun of Open MPI and of MPICH, give the same bytes.
//!
//! Where an mpirun is missing its tests skip themselves, saying so.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod mpi {
    mod combinations;
    mod hosts;
    mod launch;
    mod lost;
    mod refusals;
    mod same;
}

//! `--engine`.

use clap::ValueEnum;

/// The engines that run a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Threads of this process, one per processor.
    Threads,
    /// MPI processes started by mpirun, one per processor.
    Mpi,
}

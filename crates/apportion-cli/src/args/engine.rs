//! `--engine`.

use super::program::timeout;
use clap::{Args, ValueEnum};

/// The engines that run a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Threads of this process, one per processor.
    Threads,
    /// MPI processes started by mpirun, one per processor.
    Mpi,
}

/// What runs the schedule, and its patience.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// What runs the schedule: threads, or mpi under `mpirun -n P`, with one process per processor.
    #[arg(long = "engine", value_enum, default_value = "threads")]
    pub name: EngineName,
    /// End with an error that names the rank if a message is waited for longer than this (with --engine mpi):
    /// a rank that hangs is otherwise waited for without end. Choose more than the longest computation
    /// between two messages.
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    pub stall_timeout: Option<f64>,
}

impl EngineArgs {
    /// The engine, and the longest wait for a message in seconds.
    pub fn patient(&self) -> (EngineName, Option<f64>) {
        (self.name, self.stall_timeout)
    }
}

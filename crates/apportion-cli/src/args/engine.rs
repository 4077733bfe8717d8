//! `--engine`.

use super::program::timeout;
use apportion::run::MpiLaunch;
use clap::{Args, ValueEnum};

/// The engines that run a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Threads of this process, one per processor.
    Threads,
    /// MPI processes started by mpirun, one per processor.
    Mpi,
}

impl EngineName {
    /// The engine of a choice: without one, MPI in a process that a launcher has started beside others.
    pub fn of(choice: Option<Self>) -> Self {
        let several = MpiLaunch::detect().is_some_and(|launch| launch.is_of_several());
        choice.unwrap_or(if several { Self::Mpi } else { Self::Threads })
    }
}

/// What runs the schedule, and its patience.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// What runs the schedule: threads, or mpi with one process per processor [default: mpi in processes that
    /// mpirun or another launcher has started, else threads].
    #[arg(long, value_enum, help_heading = "Running")]
    engine: Option<EngineName>,
    /// End with an error that names the rank if a message is waited for longer than this (under MPI):
    /// a rank that hangs is otherwise waited for without end. Choose more than the longest computation
    /// between two messages.
    #[arg(long, value_name = "SECONDS", value_parser = timeout, help_heading = "For experts")]
    stall_timeout: Option<f64>,
}

impl EngineArgs {
    /// The engine.
    pub fn name(&self) -> EngineName {
        EngineName::of(self.engine)
    }

    /// The engine, and the longest wait for a message in seconds.
    pub fn patient(&self) -> (EngineName, Option<f64>) {
        (self.name(), self.stall_timeout)
    }
}

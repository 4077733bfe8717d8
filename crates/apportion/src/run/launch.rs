//! What mpirun tells a process by its environment, before MPI is loaded.

/// This process as one of those that an mpirun started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiLaunch {
    /// This process's rank.
    pub rank: usize,
    /// How many were started.
    pub size: usize,
    /// True if Open MPI's mpirun did it; else one that speaks PMI, such as MPICH's.
    pub open_mpi: bool,
}

impl MpiLaunch {
    /// What the environment says; `None` if no mpirun started this process.
    pub fn detect() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let said = |rank, size, open_mpi| Some(Self { rank: number(rank)?, size: number(size)?, open_mpi });
        said("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true)
            .or_else(|| said("PMI_RANK", "PMI_SIZE", false))
    }
}

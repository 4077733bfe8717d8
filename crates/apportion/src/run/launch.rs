//! Launch information that mpirun passes in the environment, read before MPI is loaded.

/// This process as one of those that mpirun started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiLaunch {
    /// This process's rank.
    pub rank: usize,
    /// Number of processes that were started.
    pub size: usize,
    /// True for Open MPI's mpirun; false for one that uses PMI, such as MPICH's.
    pub open_mpi: bool,
}

impl MpiLaunch {
    /// Reads the environment; `None` if mpirun did not start this process.
    pub fn detect() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let said = |rank, size, open_mpi| Some(Self { rank: number(rank)?, size: number(size)?, open_mpi });
        said("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true)
            .or_else(|| said("PMI_RANK", "PMI_SIZE", false))
    }
}

//! The MPI libraries of this machine.

/// An MPI library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiLibrary {
    /// Its file, as the loader finds it.
    pub file: String,
    /// Its own description.
    pub version: String,
}

/// The MPI libraries that can be loaded, each once; the one that `APPORTION_MPI` names comes first. None is
/// started. Systems for which there is no MPI engine have none.
pub fn mpi_libraries() -> Vec<MpiLibrary> {
    #[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
    let found = super::mpi::loadable();
    #[cfg(not(all(unix, target_pointer_width = "64", target_endian = "little")))]
    let found = Vec::new();
    found
}

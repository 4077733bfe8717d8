//! Joining the processes that mpirun started.

use super::{Engine, World};
use crate::error::{Error, Result};
use crate::run::mpi::{Mpi, VARIABLE};
use crate::run::{Monitor, MpiLaunch};

/// Calls into the library that make it look at everything: Open MPI looks at sockets only every eighth time.
pub(super) const SWEEP: u32 = 8;

/// Libraries to try, the likeliest first.
fn libraries(launch: Option<MpiLaunch>) -> Vec<String> {
    let names = match launch {
        Some(MpiLaunch { open_mpi: false, .. }) => {
            ["libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1", "libmpich.so", "libmpi.so"]
        }
        _ => ["libmpi.so.40", "libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", "libmpi.so"],
    };
    names.map(str::to_owned).into()
}

impl World {
    /// Joins the world that mpirun made, or a world of one rank without mpirun. `monitor` ends all waiting.
    ///
    /// # Errors
    /// Exit code 2: no MPI library, or one that sees another world than the mpirun that started this process.
    pub fn mpi(monitor: &Monitor) -> Result<Self> {
        let launch = MpiLaunch::detect();
        let names = match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => vec![name],
            _ => libraries(launch),
        };
        let mpi = Mpi::start(&names)?;
        if let Some(MpiLaunch { size, .. }) = launch
            && size != mpi.size
        {
            let what = format!(
                "mpirun started {size} processes, but {} ({}) sees {}: it belongs to another MPI",
                mpi.name(),
                mpi.version(),
                mpi.size
            );
            // Each process is alone in a world of its own: leaving it is safe.
            mpi.finish();
            let remedy = format!("use that library's own mpirun, or name mpirun's library in {VARIABLE}");
            return Err(Error::input("MPI", what, remedy));
        }
        let mut world = Self::new(Engine::Mpi(mpi), monitor);
        let one_host = world.is_on_one_host()?;
        if let Engine::Mpi(mpi) = &mut world.engine
            && one_host
        {
            mpi.on_one_host();
        }
        Ok(world)
    }

    /// Whether all ranks' hosts have one name.
    fn is_on_one_host(&self) -> Result<bool> {
        let host = twox_hash::XxHash64::oneshot(0, rustix::system::uname().nodename().to_bytes());
        // The least, and the complement of the greatest.
        let ends = self.all_reduce(&[host, !host], u64::min)?;
        Ok(ends[0] == !ends[1])
    }
}

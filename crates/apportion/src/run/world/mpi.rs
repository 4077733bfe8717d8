//! Joining the processes that mpirun started, or those of another program's communicator.

use super::engine::{Engine, Pending, Transfer};
use super::{World, host_name};
use crate::error::{Error, Result};
use crate::run::mpi::{Communicator, Mpi, VARIABLE};
use crate::run::{Monitor, MpiLaunch};
use std::time::Duration;

/// Calls into the library until it has polled everything: Open MPI polls sockets only every eighth time.
const SWEEP: u32 = 8;

/// Libraries to try, the most likely first.
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
    /// Joins the world that mpirun started, or a world of one rank without mpirun. `monitor` interrupts all
    /// waits.
    ///
    /// # Errors
    /// Exit code 2: no MPI library is found, or it sees fewer processes than the launcher has started.
    pub fn mpi(monitor: &Monitor) -> Result<Self> {
        Self::mpi_within(monitor, None)
    }

    /// The same world, in which no message is waited for longer than the stall timeout: a rank that has
    /// stopped ends the others. Choose more than the longest computation between two messages.
    ///
    /// # Errors
    /// As [`World::mpi`], and [`Error::WorkerLost`].
    pub fn mpi_within(monitor: &Monitor, stall_timeout: Option<Duration>) -> Result<Self> {
        let launch = MpiLaunch::detect();
        let names = match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => vec![name],
            _ => libraries(launch),
        };
        let launch = launch.filter(MpiLaunch::is_of_several);
        let bare = launch.filter(|launch| launch.is_bare).map(|launch| launch.launcher);
        let mpi = Mpi::start(&names, bare).map_err(|error| match (launch, error) {
            (Some(launch), Error::Input { place, what, remedy }) => {
                let MpiLaunch { size, launcher, .. } = launch;
                let what = format!("{} started {size} processes, but {what}", launcher.name);
                Error::input(place, what, format!("{remedy}; {}", launcher.independence()))
            }
            (_, error) => error,
        })?;
        if let Some(MpiLaunch { size, launcher, .. }) = launch
            && mpi.size < size
        {
            let what = format!(
                "{} started {size} processes, but {} ({}) sees {}: they do not form one world",
                launcher.name,
                mpi.name(),
                mpi.version(),
                mpi.size
            );
            // Each process has a world of its own: leaving it is safe.
            mpi.finish();
            return Err(Error::input(
                "MPI",
                what,
                format!("{}; {}", launcher.remedy, launcher.independence()),
            ));
        }
        Self::of(mpi, monitor, stall_timeout)
    }

    /// Joins the processes of a communicator of the program that this process runs: the MPI that is loaded
    /// already is used, whoever loaded it. Every process of the communicator must call it. The communicator
    /// is duplicated; [`World::finalize`] frees the duplicate and does not end MPI. While the world works,
    /// other threads must not call MPI unless the program asked for `MPI_THREAD_MULTIPLE`.
    ///
    /// `handle` is the C handle: the pointer of Open MPI, or the number of MPICH and of the standard ABI
    /// (mpi4py: `MPI._handleof(comm)`, or `comm.handle`).
    ///
    /// # Errors
    /// Exit code 2: no MPI runs in this process, or the handle cannot be one of its communicators, as when
    /// the caller was compiled for another MPI.
    pub fn adopt(handle: usize, monitor: &Monitor) -> Result<Self> {
        Self::of(Mpi::adopt(Communicator::C(handle))?, monitor, None)
    }

    /// The same for a Fortran handle, which `comm%MPI_VAL` and `MPI_Comm_c2f` give (mpi4py: `comm.py2f()`).
    ///
    /// # Errors
    /// As [`World::adopt`].
    pub fn adopt_fortran(handle: i32, monitor: &Monitor) -> Result<Self> {
        Self::of(Mpi::adopt(Communicator::Fortran(handle))?, monitor, None)
    }

    fn of(mpi: Mpi, monitor: &Monitor, stall_timeout: Option<Duration>) -> Result<Self> {
        let mut world = Self::new(mpi, monitor).with_stall_timeout(stall_timeout);
        world.hosts = world.all_gather_texts(&host_name())?;
        if world.hosts.iter().all(|host| *host == world.hosts[0]) {
            world.engine.set_on_one_host();
            world.share_memory()?;
        }
        Ok(world)
    }
}

impl Engine for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn library(&self) -> String {
        self.version()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn start_send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer {
        self.send(words, to, tag)
    }

    fn start_receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer {
        self.receive(room, from, tag)
    }

    fn is_done(&self, transfer: &mut Transfer) -> std::result::Result<bool, i32> {
        let Pending::Requests(requests) = &mut transfer.pending else { return Ok(true) };
        for _ in 0..SWEEP {
            if self.are_done(requests)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_for_any_thread(&self) -> bool {
        self.any_thread()
    }

    fn needs_progress(&self) -> bool {
        self.size > 1 && self.any_thread()
    }

    fn progress(&self) {
        (0..SWEEP).for_each(|_| self.probe());
    }

    fn set_on_one_host(&mut self) {
        self.use_large_messages();
    }

    fn finalize(self: Box<Self>) {
        self.finish();
    }

    fn abort(&self, code: u8) -> ! {
        self.end_all(code)
    }
}

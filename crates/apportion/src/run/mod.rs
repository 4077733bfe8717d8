//! Execution of an application on a [`World`].

mod buffer_pool;
pub(crate) mod clock;
mod emulated_links;
mod engine;
mod launch;
pub(crate) mod mailboxes;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
mod mpi_libraries;
pub mod parallel;
mod session;
pub(crate) mod sync;
pub(crate) mod team;
pub(crate) mod throttle;
mod transport;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
mod unshared;
mod world;

pub(crate) use buffer_pool::BufferPool;
pub(crate) use clock::{absent_cores, absent_cores_of, usable_threads};
pub use engine::{RunOutput, run, trace_of_all};
pub use launch::{Launcher, MpiLaunch};
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
use mpi::shared;
pub use mpi_libraries::{MpiLibrary, mpi_libraries};
pub use session::{Monitor, Progress, Session};
pub(crate) use team::{fill, worker_threads};
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
use unshared as shared;
pub(crate) use world::{Awaited, first_failure, redistribute_views};
pub use world::{Fact, Hosts, World, hash_elements, host_name, redistribute};

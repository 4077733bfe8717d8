//! Execution of an application on a [`World`].

pub(crate) mod clock;
mod engine;
mod holder;
mod launch;
pub(crate) mod mailboxes;
mod messages;
mod monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
pub(crate) mod parallel;
mod session;
mod spare;
mod sync;
pub(crate) mod throttle;
mod transport;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
mod unshared;
pub(crate) mod worker;
mod world;

pub use clock::absent_cores;
pub(crate) use engine::trace_of_all;
pub use engine::{RunOutput, run};
pub use launch::{Launcher, MpiLaunch};
pub use monitor::Monitor;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
use mpi::shared;
pub use session::Session;
pub(crate) use spare::Spare;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
use unshared as shared;
pub(crate) use world::redistribute_views;
pub use world::{Fact, Hosts, World, hash_elements, host_name, redistribute};

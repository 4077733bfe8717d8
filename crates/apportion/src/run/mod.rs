//! Execution of an application on a [`World`].

pub(crate) mod clock;
mod engine;
mod launch;
pub(crate) mod mailboxes;
mod messages;
mod monitor;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod mpi;
pub(crate) mod parallel;
mod session;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[path = "mpi/shared.rs"]
mod shared;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
#[path = "unshared.rs"]
mod shared;
mod spare;
mod sync;
pub(crate) mod throttle;
mod transport;
pub(crate) mod worker;
mod world;

pub use clock::absent_cores;
pub(crate) use engine::trace_of_all;
pub use engine::{RunOutput, run};
pub use launch::MpiLaunch;
pub use monitor::Monitor;
pub use session::Session;
pub(crate) use spare::Spare;
pub(crate) use world::redistribute_views;
pub use world::{World, redistribute};

//! MPDATA on unequal processors: files to fields, checks of the flow, the run, and its report.
//!
//! The crate uses the public interface of `apportion` alone: what it does, another application can do too.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion::kernels::mpdata::{Boundary, Scheme};
//! use apportion::model::{Machine, WorkUnit};
//! use apportion::platform::Platform;
//! use apportion_advect::{AdvectOptions, AdvectOrder, AdvectProblem, plan_advection};
//!
//! // A grid of 60 x 40 cells, for two processors of which one is three times as fast.
//! let boundary = vec![Boundary::Periodic; 2];
//! let problem = AdvectProblem { sizes: vec![60, 40], boundary, scheme: Scheme::new(2)? };
//! let platform = Platform::from_speeds(&[3.0, 1.0])?;
//! let machine = Machine::from_platform(platform, WorkUnit::Unit)?;
//!
//! // Every layout with every order of its steps, the fastest first.
//! let options =
//!     AdvectOptions { method: None, orders: &AdvectOrder::ALL, plan: None, steps: 10, element: 8 };
//! let best = plan_advection(&problem, &machine, &options)?.remove(0);
//! assert_eq!(best.plan.shares, [1800, 600]);
//! # Ok::<(), apportion::Error>(())
//! ```
#![warn(unreachable_pub)]

mod application;
mod check;
mod choose;
mod job;
mod moments;
mod record;
mod schedule;
mod slabs;
mod task;

pub use application::Courant;
pub(crate) use check::{FlowCheck, check_flow};
pub use choose::{AdvectChoice, AdvectOptions, advection_rates, plan_advection};
pub(crate) use job::own_cells;
pub use job::{AdvectJob, AdvectReport, advect, needed_faces};
pub(crate) use moments::MomentsSoFar;
pub(crate) use moments::{Moments, moments};
pub(crate) use schedule::Plane;
pub(crate) use schedule::Region;
pub use schedule::{Advance, AdvectOrder, AdvectProblem, AdvectSchedule, HaloPiece};
pub(crate) use slabs::{
    Band, CourantFile, SlabCosts, SlabRun, check_flow_in_file, each_band, slab_bytes, tallest_slab,
};
pub(crate) use slabs::{DiskUse, Slabs};
pub(crate) use task::SlabOutcome;
pub use task::{AdvectOutcome, AdvectTask, ArraySource, CourantSource, Frames, advect_field, snapshot};

#[cfg(test)]
mod tests;

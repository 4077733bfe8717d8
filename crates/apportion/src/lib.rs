//! Divides a computation among unequal processors so that all finish at the same moment, with as little data
//! moved as possible.
//!
//! Machines are unequal: fast and slow cores in one processor, old and new nodes in one cluster, fast and
//! slow links. This crate measures how fast each processor is as a function of problem size, divides the
//! work, orders the messages, runs it on threads or under MPI, verifies the result, and predicts all of it
//! beforehand.
//!
//! # A product on two unequal processors
//!
//! ```
//! use apportion::prelude::*;
//!
//! // Two processors, one three times as fast; speeds in elements of C updated by one inner index, a second.
//! let platform = Platform::from_speeds(&[3.0, 1.0])?;
//! let models = [Model::constant("p0", 3e8)?, Model::constant("p1", 1e8)?];
//!
//! // Who computes what, in which order: every layout and flow is simulated, the fastest comes first.
//! let shape = Shape::new(120, 80, 100, "example")?;
//! let best = plan_matmul(shape, &platform, &models, 1, &PlanOptions::open(32, 8))?.remove(0);
//! assert_eq!(best.plan.shares.iter().sum::<u64>(), 120 * 100);
//!
//! // Run and verify it, here on threads of this process.
//! let ones = |rows, cols| whole_block(Matrix::new(rows, cols, vec![1.0_f64; rows * cols]));
//! let (a, b) = (ones(120, 80), ones(80, 100));
//! let (monitor, kernel) = (Monitor::new(), Kernel::plus_times());
//! let world = World::solo(&monitor);
//! let job = MatmulJob::new(kernel, &best.plan, best.order, &models, 1);
//! let session = Session::new(&world, &platform, &monitor, job.work());
//! let (c, report) = multiply(Operands::new(&a, &b), &job, &session)?;
//! assert_eq!(whole_matrix(c).row(7)[9], 80.0);
//! println!("forecast {} s, measured {} s", report.forecast_seconds, report.seconds());
//! # Ok::<(), Error>(())
//! ```
//!
//! # The way through
//!
//! [`platform`] (what the machine is) → [`model`] (how fast it is) → [`plan`] (who does what) → [`schedule`]
//! (in which order) → [`run`] it or [`simulate`] it → [`trace`] → [`report`]. [`select`] makes the decisions
//! that are left open, [`product`] is the main job, [`measure`] finds the speeds, [`verify`] checks results,
//! [`explore`] asks "what if". A module uses only what is to its left; a test keeps it so.
//!
//! # Other applications
//!
//! The matrix product is one [`Application`](schedule::Application). A stencil or a user's own code is
//! another: implement the trait, and [`run::run`], [`simulate::simulate`] and the exports take it.
//! `examples/own_application.rs` is complete.

pub mod advect;
pub mod error;
pub mod events;
pub mod explore;
pub mod files;
pub mod geometry;
mod input;
pub mod kernels;
pub mod matrix;
pub mod measure;
pub mod memory;
pub mod model;
pub mod output;
pub mod plan;
pub mod platform;
pub mod product;
pub mod random;
pub mod report;
pub mod run;
pub mod schedule;
pub mod select;
pub mod simulate;
mod threads;
pub mod trace;
pub mod units;
pub mod verify;

pub use error::{Error, Result};
pub use geometry::{Rank, Rect, Span};

/// What most programs need: `use apportion::prelude::*;`.
pub mod prelude {
    pub use crate::error::{Error, Result};
    pub use crate::geometry::{Rank, Rect, Span};
    pub use crate::kernels::{Kernel, Semiring};
    pub use crate::matrix::{LocalBlocks, Matrix};
    pub use crate::model::{Model, Models};
    pub use crate::plan::shares::{Balancer, Decision};
    pub use crate::plan::{Layout, Plan, Shape};
    pub use crate::platform::{Platform, Processor, read_platform};
    pub use crate::product::{MatmulJob, Operands, RunReport, multiply, whole_block, whole_matrix};
    pub use crate::run::{Monitor, Session, World};
    pub use crate::schedule::{Application, Executable, Flow, MatmulSchedule, ScheduleOptions};
    pub use crate::select::{PlanOptions, plan_matmul};
    pub use crate::simulate::{CostModel, simulate};
    pub use crate::trace::Trace;
}

//! Divides a computation among unequal processors so that all finish at the same moment, with as little data
//! moved as possible.
//!
//! Machines are unequal: fast and slow cores in one processor, old and new nodes in one cluster, fast and
//! slow links. This crate measures how fast each processor is as a function of problem size, divides the
//! work, orders the messages, runs it on threads or under MPI, verifies the result, and predicts all of it
//! beforehand.
//!
//! # The common cases
//!
//! ```
//! use apportion::matrix::Matrix;
//!
//! // A thousand units for two processors, one nine times as fast.
//! assert_eq!(apportion::shares(1000, &[9.0, 1.0])?, [900, 100]);
//!
//! // Who computes which part of a product of two matrices.
//! let layout = apportion::layout( 4000, 4000, &[9.0, 1.0])?;
//! assert_eq!(layout.processors(), 2);
//!
//! // A product on the cores of this machine, by their measured speeds; the result is verified.
//! let ones = Matrix::new(40, 40, vec![1.0; 1600]);
//! assert_eq!(apportion::matmul(&ones, &ones)?.row(7)[9], 40.0);
//! # Ok::<(), apportion::Error>(())
//! ```
//!
//! [`job`] has the options behind them: processors and networks, methods and flows, panels from disk, MPI.
//!
//! # Planning without running
//!
//! ```
//! use apportion::model::Machine;
//! use apportion::plan::Shape;
//! use apportion::platform::parse_platform;
//! use apportion::select::{PlanOptions, plan_matmul};
//!
//! let text = "[[processor]]\nname = \"new\"\nspeed = \"3 Gflop/s\"\n\
//!     [[processor]]\nname = \"old\"\nspeed = \"1 Gflop/s\"\n[network]\nbandwidth = \"1 Gbit/s\"\n";
//! let platform = parse_platform(text, "example")?;
//! let machine = Machine::from_platform(platform, apportion::model::WorkUnit::MultiplyAdd)?;
//!
//! // Every layout and flow is simulated; the fastest comes first.
//! let shape = Shape::new(1200, 800, 1000, "example")?;
//! let best = plan_matmul(shape, &machine, &PlanOptions::open(32, 8))?.remove(0);
//! assert_eq!(best.plan.shares.iter().sum::<u64>(), 1200 * 1000);
//! println!("{}, {}: {:.3} s", best.plan.method, best.order, best.plan.forecast.unwrap().seconds);
//! # Ok::<(), apportion::Error>(())
//! ```
//!
//! # The way through
//!
//! [`platform`] (what the machine is) → [`model`] (how fast it is) → [`plan`] (who does what) → [`schedule`]
//! (in which order) → [`run`] it or [`simulate`] it → [`trace`]. [`select`] makes the decisions that are left
//! open, [`job`] is the main job, [`measure`] finds the speeds, [`verify`] checks results, [`record`] says what happened,
//! [`explore`] asks "what if". A module uses only what is to its left; a test keeps it so.
//!
//! `platform`, `model`, `plan`, `schedule`, `select`, `simulate` and `trace` are the crate `apportion-plan`,
//! which runs nothing; `matrix` and `kernels` are `apportion-kernels`. Both can be used alone. Results are
//! printed and drawn by `apportion-report`.
//!
//! # Other applications
//!
//! A computation of your own is a [`Problem`](job::Problem): implement it, and a [`Job`](job::Job) measures, divides,
//! forecasts, runs on threads or MPI, and verifies. [`Halo`](job::Halo) has the steps of stencils;
//! `crates/apportion/examples/jacobi.rs` is complete, in 60 lines. Other steps are an
//! [`Application`](schedule::Application), as the matrix product is: [`run::run`], [`simulate::simulate`] and the exports
//! take any.
#![warn(unreachable_pub)]

pub mod explore;
pub mod job;
pub mod measure;
pub mod product;
pub mod record;
pub mod run;
pub mod verify;

pub use apportion_core::{
    Error, Rank, Rect, Result, Span, error, files, geometry, input, memory, output, process_memory, random,
    threads, units,
};
pub use apportion_kernels::{device, kernels, matrix};
pub use apportion_plan::{model, plan, platform, schedule, select, simulate, trace};
pub use job::{layout, matmul, shares};

/// What most programs need: `use apportion::prelude::*;`.
pub mod prelude {
    pub use crate::error::{Error, Result};
    pub use crate::geometry::{Rank, Rect, Span};
    pub use crate::kernels::{Kernel, Semiring};
    pub use crate::matrix::{LocalBlocks, Matrix};
    pub use crate::model::{Machine, Model, Models};
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

/// The page for Rust users, whose snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust.md")]
struct RustPage;

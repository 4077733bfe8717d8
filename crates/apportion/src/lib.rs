//! Divides a computation among unequal processors so that all finish at the same moment with as little data
//! moved as possible.
//!
//! The way through: [`Platform`](platform::Platform) (what the machine is) → [`Model`](model::Model) (how fast it is) →
//! [`Plan`](plan::Plan) (who does what) → [`Schedule`](schedule::Schedule) (in which order) → run or simulate →
//! [`Trace`](trace::Trace) → report. A module uses only what is to its left.

pub mod error;
pub mod explore;
pub mod geometry;
pub mod kernels;
pub mod matrix;
pub mod measure;
pub mod model;
pub mod output;
pub mod plan;
pub mod platform;
pub mod product;
pub mod report;
pub mod run;
pub mod schedule;
pub mod select;
pub mod simulate;
pub mod trace;
pub mod units;
pub mod verify;

pub use error::{Error, Result};
pub use geometry::{Rank, Rect, Span};

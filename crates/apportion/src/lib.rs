//! Divides a computation among unequal processors so that all finish at the same moment with as little data
//! moved as possible.
//!
//! The way through: [`Platform`] (what the machine is) → [`Model`] (how fast it is) → [`Plan`] (who does what)
//! → [`Schedule`] (in which order) → run or simulate → [`Trace`] → report. A module uses only what stands to
//! its left.

mod error;
mod model;
mod plan;
mod platform;
mod rect;
mod run;
pub mod units;

pub use error::{Error, Result};
pub use model::*;
pub use plan::*;
pub use platform::*;
pub use rect::{Rank, Rect, Span, SpanSet};
pub use run::kernels;

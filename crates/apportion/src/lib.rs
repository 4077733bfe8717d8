//! Divides a computation among unequal processors so that all finish at the same moment with as little data
//! moved as possible.
//!
//! The way through: [`Platform`] (what the machine is) → [`Model`] (how fast it is) → [`Plan`] (who does what)
//! → [`Schedule`] (in which order) → run or simulate → [`Trace`] → report. A module uses only what stands to
//! its left.

mod error;
mod matrix;
mod model;
mod output;
mod plan;
mod platform;
mod rect;
mod report;
pub mod units;

pub use error::{Error, Result};
pub use matrix::*;
pub use model::*;
pub use output::{OutputFile, write_whole};
pub use plan::*;
pub use platform::*;
pub use rect::{Rank, Rect, Span, SpanSet};
pub use report::plan_svg;

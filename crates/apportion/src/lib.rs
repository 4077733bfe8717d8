//! Divides a computation among unequal processors so that all finish at the same moment with as little data
//! moved as possible.
//!
//! The way through: [`Platform`] (what the machine is) → [`Model`] (how fast it is) → [`Plan`] (who does what)
//! → [`Schedule`] (in which order) → run or simulate → [`Trace`] → report. A module uses only what stands to
//! its left.

mod adaptive;
mod checkpoint;
mod choose;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod distributed;
mod error;
mod fit;
mod fpm_br;
mod ideal;
mod matrix;
mod model;
mod multiply;
mod output;
mod panels;
mod plan;
mod platform;
mod rebalance;
mod rect;
mod repeat;
mod report;
mod run;
mod schedule;
mod simulate;
mod study;
mod trace;
pub mod units;
mod what_if;

pub use adaptive::{Adaptation, Adaptive, Repartition};
pub use checkpoint::{Begun, Checkpoint, Identity};
pub use choose::{
    Choice, Minimise, Wishes, affordable, capped, communication_of, forecast, ideal_seconds, imbalance,
    orders, plan_matmul, rates,
};
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub use distributed::{closure_mpi, measure_world, multiply_mpi, paths_mpi, power_mpi};
pub use error::{Error, Result};
pub use fit::{Excess, Fit, check_caps, fit_order};
pub use fpm_br::{Balanced, fpm_br, plan_fpm_br};
pub use ideal::ideal_seconds_turning;
pub use matrix::*;
pub use model::*;
pub use multiply::{Multiplication, multiply};
pub use output::{OutputFile, write_whole};
pub use panels::{Files, PanelRun, Panels, check_panels};
pub use plan::*;
pub use platform::*;
pub use rect::{Rank, Rect, Span, SpanSet};
pub use repeat::{matrix_closure, matrix_paths, matrix_power};
pub use report::*;
pub use run::*;
pub use schedule::*;
pub use simulate::*;
pub use study::{Distribution, Study, StudyCorner, StudyRatio, StudyRow, StudySearched, study};
pub use trace::{Activity, Counts, Event, Lane, Trace};
pub use what_if::{Contender, Crossover, Parameter, Setting, Swept, SweptPoint, Way, WhatIf, sweep};

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

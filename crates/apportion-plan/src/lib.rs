//! Divides a computation among unequal processors, orders the messages, and predicts how long it takes. This
//! crate computes and reads files, nothing else: it starts no threads, measures nothing and runs nothing. The
//! crate `apportion` measures and runs.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion_plan::model::Machine;
//! use apportion_plan::plan::Shape;
//! use apportion_plan::platform::parse_platform;
//! use apportion_plan::select::{PlanOptions, plan_matmul};
//!
//! let text = "[[processor]]\nname = \"new\"\nspeed = \"3 Gflop/s\"\n\
//!     [[processor]]\nname = \"old\"\nspeed = \"1 Gflop/s\"\n[network]\nbandwidth = \"1 Gbit/s\"\n";
//! let platform = parse_platform(text, "example")?;
//! let machine = Machine::from_platform(platform, apportion_plan::model::WorkUnit::MultiplyAdd)?;
//!
//! // Every layout and flow is simulated; the fastest comes first.
//! let shape = Shape::new(1200, 800, 1000, "example")?;
//! let best = plan_matmul(shape, &machine, &PlanOptions::open(32, 8))?.remove(0);
//! assert_eq!(best.plan.shares.iter().sum::<u64>(), 1200 * 1000);
//! println!("{}, {}: {:.3} s", best.plan.method, best.order, best.plan.forecast.unwrap().seconds);
//! # Ok::<(), apportion_plan::Error>(())
//! ```
//!
//! [`platform`] (what the machine is) → [`model`] (how fast it is) → [`plan`] (who does what) → [`schedule`]
//! (in which order) → [`simulate`] it → [`trace`]. [`select`] makes the decisions that are left open.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod model;
pub mod plan;
pub mod platform;
pub mod schedule;
pub mod select;
pub mod simulate;
pub mod trace;

use apportion_core::{ControlGroups, geometry, input, output, random, system_files, units};
pub use apportion_core::{Error, Result, error};

//! What the crates of apportion share: errors, ranks, rectangles and spans, units of numbers, random numbers,
//! and files that are written whole or not at all.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion_core::{Error, Rect, Span};
//!
//! let part = Rect::new(Span::new(0, 3), Span::new(4, 8));
//! assert_eq!(part.area(), 12);
//! let error = Error::input("`block`", "0 is no size", "give at least 1");
//! assert_eq!(error.parameter(), Some("block"));
//! assert_eq!(error.exit_code(), 2);
//! ```
#![warn(unreachable_pub)]

mod control_groups;
pub mod error;
pub mod files;
pub mod geometry;
pub mod input;
pub mod memory;
pub mod output;
pub mod process_memory;
pub mod random;
pub mod system_files;
pub mod threads;
pub mod units;

pub use control_groups::ControlGroups;
pub use error::{Error, Result};
pub use geometry::{Rank, Rect, Span};

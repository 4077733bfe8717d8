//! Plans: how a problem is divided among processors.
//!
//! Three kinds of problem are divided. *n independent units* get 1-D shares ([`shares`]). *A matrix product* C
//! (m x n) = A (m x k) B (k x n) gets a [`Layout`]: rectangles of C with owners, made by one of the methods
//! in [`shapes`] and mapped to the processors of a network by [`arrange`]. *A factorisation* gets owners of
//! the tiles of a [`TileMap`]. A [`Plan`] holds any of them, with its [`Metrics`] and, where speeds are known, a
//! [`Forecast`]. `plan.json` stores it; [`export()`] writes the
//! shares for other tools.

pub mod arrange;
mod boxes;
mod constraints;
mod export;
mod file;
mod graph;
mod layout;
mod messages;
mod metrics;
mod problem;
pub mod shapes;
pub mod shares;
mod tile_map;
mod volume_bound;

pub use boxes::Cuboid;
#[cfg(test)]
pub(crate) use boxes::tests::random_layout;
pub(crate) use boxes::{Cell, Segment, between, cells, segments};
pub(crate) use constraints::Member;
pub use constraints::{Hierarchy, LayoutConstraints, in_blocks, repeat_block};
pub use export::{Export, ExportFormat, export, export_plan};
pub use file::{Baselines, Division, FastestAlone, Forecast, Plan, read_plan};
pub use graph::{Border, GraphParts};
pub use layout::{Layout, Part, inner_cuts_refused};
pub(crate) use messages::{merged, relayed};
pub use messages::{message_steps, star_volume};
pub use metrics::{Metrics, interrupts, lower_bound, outlines, volume_lower_bound};
pub(crate) use metrics::{OwnedLines, communication_free, interrupts_by_owner};
pub use problem::{Factors, Problem, Shape};
pub use tile_map::TileMap;
pub use volume_bound::volume_bound;

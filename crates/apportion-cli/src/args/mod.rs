//! What may be typed: clap's structs only.

pub mod blas;
mod flow;
pub mod sharing;
mod sources;

pub use flow::{BLOCK, FlowArgs};
pub use sources::Sources;

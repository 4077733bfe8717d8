//! What is printed and written.

pub mod chosen;
pub mod explain;
pub mod export;
mod files;
pub mod results;

pub use files::{appear, is_csv, open, picture, timeline};

//! Tinetti, chapter 3: broadcasts on Ethernet.

mod broadcasts;
mod chapter;
mod items;

pub use items::DOCUMENT;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[&chapter::Chapter, &broadcasts::Equations];

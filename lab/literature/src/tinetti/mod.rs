//! Tinetti, chapter 3: broadcasts on Ethernet.

mod broadcast_time;
mod broadcasts;
mod chapter;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[&chapter::Chapter, &broadcasts::Equations];

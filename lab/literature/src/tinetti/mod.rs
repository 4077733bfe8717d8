//! Tinetti, chapter 3: broadcasts on Ethernet.

mod broadcasts;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[&broadcasts::Equations];

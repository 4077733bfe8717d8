//! Lastovetsky and Reddy 2007 (speed functions), and Lastovetsky's slides on grid partitioning.

mod figure_10;
mod slides;
mod table_2;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] =
    &[&table_2::Table2, &figure_10::Figure10, &slides::Grids, &slides::Cartesian];

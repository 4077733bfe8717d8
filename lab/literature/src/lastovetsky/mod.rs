//! Lastovetsky and Reddy 2007 (speed functions), and Lastovetsky's slides on grid partitioning.

mod columns;
mod figure_10;
mod figure_9;
mod set_partition;
mod slides;
mod table_2;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &set_partition::SetPartition,
    &table_2::Table2,
    &figure_9::Figure9,
    &figure_10::Figure10,
    &columns::ColumnBased,
    &slides::Grids,
    &slides::Cartesian,
];

//! Malik, PhD thesis, 2016: arrangement of parts on networks of clusters.

mod advection;
mod causes;
mod chapter_3;
mod chapter_4;
mod figures;
mod figures_data;
mod mapping;
mod ninety;
mod timing;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &chapter_3::Statements,
    &figures::Hops,
    &figures::Bandwidth,
    &ninety::SIX,
    &ninety::EIGHT,
    &causes::Causes,
    &chapter_4::Statements,
    &mapping::Clusters,
    &mapping::OneCluster,
    &advection::Runs,
    &timing::Timing,
];

//! Malik, PhD thesis, 2016: arrangement of parts on networks of clusters.

mod advection;
mod figures;
mod figures_data;
mod items;
mod mapping;
mod ninety;

pub use items::DOCUMENT;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &figures::Hops,
    &figures::Bandwidth,
    &ninety::SIX,
    &ninety::EIGHT,
    &mapping::Clusters,
    &mapping::OneCluster,
    &advection::Runs,
];

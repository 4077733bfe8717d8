//! Malik, PhD thesis, 2016: arrangement of parts on networks of clusters.
//!
//! Runs of MPDATA (4.5) belong in a file of their own here, beside [`mapping`], whose exchange they repeat.

mod figures;
mod figures_data;
mod mapping;
mod ninety;

use crate::experiment::Experiment;

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &figures::Hops,
    &figures::Bandwidth,
    &ninety::SIX,
    &ninety::EIGHT,
    &mapping::Clusters,
    &mapping::OneCluster,
];

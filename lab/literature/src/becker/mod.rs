//! Becker, PhD thesis, 2010: square corners on two and three processors and clusters.

mod algebra;
mod causes;
mod cluster;
mod comparison;
mod corner;
mod diagonal;
mod forecasts;
mod interrupts;
mod limiter;
mod metrics;
mod monte_carlo;
mod overlap;
mod overlapped;
mod places;
pub mod rectangles;
mod stars;
mod three;
mod two_parties;
mod volumes;

use crate::experiment::Experiment;
use two_parties::{Clusters, ConstantPower, Pair, Semirings};

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &rectangles::Rectangles,
    &cluster::Cluster,
    &corner::Formulae,
    &monte_carlo::MonteCarlo,
    &volumes::Serial,
    &volumes::Parallel,
    &metrics::HybridZones,
    &metrics::HalfPerimeters,
    &interrupts::Interrupts,
    &forecasts::Forecasts,
    &places::Places,
    &overlapped::Overlapped,
    &stars::Tables,
    &stars::Surface,
    &limiter::Limiter,
    &overlap::Recovered,
    &Pair { ids: &["becker-5.13", "becker-5.16"], mbit: 100.0, duplex: false, alone: Some(17.0) },
    &Pair { ids: &["becker-5.14", "becker-5.17"], mbit: 500.0, duplex: false, alone: None },
    &Pair { ids: &["becker-5.15", "becker-5.18"], mbit: 1000.0, duplex: false, alone: Some(23.0) },
    &Pair { ids: &["becker-5.19", "becker-5.22"], mbit: 100.0, duplex: true, alone: Some(19.0) },
    &Pair { ids: &["becker-5.20", "becker-5.23"], mbit: 500.0, duplex: true, alone: None },
    &Pair { ids: &["becker-5.21", "becker-5.24"], mbit: 1000.0, duplex: true, alone: Some(22.0) },
    &Clusters { ids: &["becker-5.26", "becker-5.29"], mbit: 100.0 },
    &Clusters { ids: &["becker-5.27", "becker-5.30"], mbit: 500.0 },
    &Clusters { ids: &["becker-5.28", "becker-5.31"], mbit: 1000.0 },
    &ConstantPower,
    &three::STAR,
    &three::FULL,
    &causes::Causes,
    &three::SITES,
    &Semirings { ids: &["becker-7.2", "becker-7.3"], max_plus: true },
    &Semirings { ids: &["becker-7.4", "becker-7.5"], max_plus: false },
    &algebra::Algebra,
    &diagonal::Diagonal,
];

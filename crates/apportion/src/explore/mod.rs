//! Exploration: forecasts as a function of one platform parameter, and Monte Carlo studies of layouts.

mod candidates;
mod study;
mod sweep;

pub use candidates::{SweepQuestion, factor_candidates, sweep_candidates};
pub use study::{
    Distribution, Study, StudyCorner, StudyDepth, StudyRatio, StudyRow, StudySearched, StudySubsets, study,
};
pub(crate) use sweep::LayoutSource;
pub use sweep::{
    Candidate, CandidateForecast, Crossover, Parameter, ParameterSweep, SweepPoint, SweepResult, SweepSetup,
    forecast_candidates, sweep,
};

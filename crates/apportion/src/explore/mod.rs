//! Exploration: forecasts as a function of one platform parameter, and Monte Carlo studies of layouts.

pub mod study;
pub mod sweep;

pub use study::{
    Distribution, Study, StudyCorner, StudyDepth, StudyRatio, StudyRow, StudySearched, StudySubsets, study,
};
pub use sweep::{
    Candidate, CandidateForecast, Crossover, LayoutSource, Parameter, ParameterSweep, SweepPoint,
    SweepResult, SweepSetup, sweep,
};

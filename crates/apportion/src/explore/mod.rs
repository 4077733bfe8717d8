//! Machines that are not there: forecasts along one parameter, and Monte Carlo studies of layouts.

mod study;
mod sweep;

pub use study::{Distribution, Study, StudyCorner, StudyRatio, StudyRow, StudySearched, study};
pub use sweep::{
    Candidate, Crossover, LayoutSource, Parameter, ParameterSweep, SweepPoint, SweepResult, SweepSetup, sweep,
};

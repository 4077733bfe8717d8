//! How parts are sized.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SharesName {
    /// In proportion to the speeds.
    Proportional,
    /// So that computation and communication together end at the same time.
    Forecast,
    /// Smaller squares, so that a bulk run that computes while data travel ends sooner.
    Overlap,
}

/// Who gets the rows or units that are left over after rounding down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LeftOverName {
    /// The processor that finishes each one soonest.
    Soonest,
    /// One each for the first processors (Tinetti).
    First,
}

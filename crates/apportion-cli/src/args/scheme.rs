//! Flags of the variant of MPDATA, and of when halos travel.

use super::numbers::within;
use clap::{Args, ValueEnum};

/// The variant of MPDATA.
#[derive(Debug, Args)]
pub struct SchemeArgs {
    /// Passes of a step: an upwind pass and corrective ones, from 1 to 4 [default: 2].
    #[arg(long, value_name = "N", value_parser = within(1..=4), help_heading = "Advection")]
    pub iterations: Option<u64>,
    /// Let no new extremes appear.
    #[arg(long, help_heading = "Advection")]
    pub nonoscillatory: bool,
    /// Linearise the corrections about a large background; for fields of both signs. Needs 2 iterations.
    #[arg(long, help_heading = "For experts")]
    pub infinite_gauge: bool,
    /// Correct the third-order error too.
    #[arg(long, help_heading = "For experts")]
    pub third_order: bool,
    /// What is beyond the ends: periodic, zero or extrapolated; one for all axes, or one for each [default:
    /// periodic].
    #[arg(long, value_name = "B,B,…", help_heading = "For experts")]
    pub boundary: Option<String>,
    /// When halos are exchanged: wide (once a step), narrow (before every pass), or auto, the least forecast
    /// time [default: auto].
    #[arg(long, value_enum, help_heading = "For experts")]
    pub exchange: Option<ExchangeName>,
}

impl SchemeArgs {
    /// Each flag, and whether it was given.
    pub fn flags(&self) -> [(&'static str, bool); 6] {
        [
            ("--iterations", self.iterations.is_some()),
            ("--nonoscillatory", self.nonoscillatory),
            ("--infinite-gauge", self.infinite_gauge),
            ("--third-order", self.third_order),
            ("--boundary", self.boundary.is_some()),
            ("--exchange", self.exchange.is_some()),
        ]
    }
}

/// When halos are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExchangeName {
    /// The least forecast time.
    Auto,
    /// Once a step.
    Wide,
    /// Before every pass.
    Narrow,
}

//! Flags that say where speeds come from.

use clap::Args;
use std::path::PathBuf;

/// Where speeds come from.
#[derive(Debug, Args)]
pub struct Sources {
    /// Relative speeds, one per processor: 9,1.
    #[arg(long, value_name = "S,S,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub speeds: Option<Vec<f64>>,
    /// Speed functions (models.json).
    #[arg(long, value_name = "FILE", conflicts_with = "speeds")]
    pub models: Option<PathBuf>,
    /// Processors and network (platform.toml).
    #[arg(long, value_name = "FILE")]
    pub platform: Option<PathBuf>,
}

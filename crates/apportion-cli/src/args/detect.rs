//! Flags of `apportion detect`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion detect\n  apportion detect -o platform.toml")]
pub struct DetectArgs {
    /// Write the platform to this file (platform.toml).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

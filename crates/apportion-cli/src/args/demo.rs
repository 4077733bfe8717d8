//! Flags of `apportion demo`.

use super::numbers::within;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion demo\n  apportion demo --size 1000 --dir pictures")]
pub struct DemoArgs {
    /// Number of rows and columns of the matrices [default: 2000; less on a slow machine].
    #[arg(long, value_name = "N", value_parser = within(16..=20000), help_heading = "Output")]
    pub size: Option<u64>,
    /// Directory for the platform, models, plans and pictures: new, empty, or of an earlier demo.
    #[arg(long, value_name = "DIR", default_value = "apportion-demo", help_heading = "Output")]
    pub dir: PathBuf,
}

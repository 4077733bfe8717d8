//! Flags of `apportion plot`.

use super::numbers::within;
use super::pictures::picture;
use super::{LogArgs, Sources};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion plot --models models.json --svg speeds.svg\n  \
    apportion plot --platform platforms/fpm-2007-table-2.toml --units 1e8 --svg line.svg")]
pub struct PlotArgs {
    #[command(flatten)]
    pub sources: Sources,
    /// Draw the line through the origin on which N units finish together, and each share on it.
    #[arg(long, value_name = "N", value_parser = within(1..=1 << 53), help_heading = "What is divided")]
    pub units: Option<u64>,
    /// Largest size shown [default: the last point, or 1.5 times the largest share].
    #[arg(long, value_name = "SIZE", value_parser = within(1..=1 << 53), help_heading = "Output")]
    pub to: Option<u64>,
    /// Picture to write.
    #[arg(long, value_name = "FILE", value_parser = picture, help_heading = "Output")]
    pub svg: PathBuf,
    #[command(flatten)]
    pub log: LogArgs,
}

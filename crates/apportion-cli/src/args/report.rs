//! Flags of `apportion report`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion matmul A.npy B.npy -o C.npy --report run.json\n  \
    apportion report run.json -o report.html\n  \
    apportion report monday.json tuesday.json -o compared.html\n\
    The page is one file, for screens of any width, light and dark, and for paper. Several results are \
    compared first.")]
pub struct ReportArgs {
    /// Results: run.json, plan.json, models.json, or what simulate, balance and mdem print with --json.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the page to this file (report.html).
    #[arg(long, short, required = true, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}

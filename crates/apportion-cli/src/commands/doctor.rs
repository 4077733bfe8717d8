//! `apportion doctor`.

use crate::console::{Console, monitor};
use crate::output::doctor::Findings;
use apportion::error::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion doctor\n  apportion doctor --json\n\
    Takes about a third of a second, in which it looks at what other programs leave of each core.")]
pub struct DoctorArgs {}

pub fn run(_: &DoctorArgs, console: &Console) -> Result<()> {
    let findings = console.watch("looking", monitor(), || Findings::new(monitor()))?;
    console.result(|| findings.to_value(), || findings.to_text());
    Ok(())
}

//! `apportion doctor`.

use crate::args::DoctorArgs;
use crate::console::{Console, monitor};
use crate::output::doctor::Findings;
use apportion::error::Result;

pub fn run(_: &DoctorArgs, console: &Console) -> Result<()> {
    let findings = console.watch("looking", monitor(), || Findings::new(monitor()))?;
    console.result(|| findings.to_value(), || findings.to_text());
    Ok(())
}

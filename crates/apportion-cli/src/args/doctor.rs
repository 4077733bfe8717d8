//! Flags of `apportion doctor`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion doctor\n  apportion doctor --json\n\
    Takes about a third of a second, in which it looks at what other programs leave of each core.")]
pub struct DoctorArgs {}

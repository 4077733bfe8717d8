//! Flags of `apportion merge`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    apportion merge old.json new.json --prefix old,new -o models.json    # old:core0, new:core0, …\n\
    All files must be of the same kernel, unit and parameters. Processors keep their names if they are \
    distinct; otherwise, name the hosts with --prefix.")]
pub struct MergeArgs {
    /// Models files (models.json), one per host.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Put these names, one per file, before the processors' names: HOST:NAME.
    #[arg(long, value_name = "HOST,HOST,…", value_delimiter = ',', help_heading = "Output")]
    pub prefix: Vec<String>,
    /// Write the merged models to this file (models.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

//! Flags of `apportion detect`.

use apportion::platform::Grouping;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which cores are one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupingName {
    /// Each core.
    Core,
    /// The cores of a kind: all cores of a machine whose cores are alike.
    Kind,
    /// The cores of a NUMA node.
    Node,
    /// All cores.
    Machine,
}

impl GroupingName {
    pub fn grouping(self) -> Grouping {
        match self {
            Self::Core => Grouping::Core,
            Self::Kind => Grouping::Kind,
            Self::Node => Grouping::Node,
            Self::Machine => Grouping::Machine,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion detect\n  apportion detect --by core -o platform.toml")]
pub struct DetectArgs {
    /// Which cores are one processor; several are a pool, which works as one.
    #[arg(
        long,
        value_enum,
        default_value = "kind",
        value_name = "GROUP",
        help_heading = "Processors and speeds"
    )]
    pub by: GroupingName,
    /// Describe the machine whose files of /proc and /sys were recorded in this directory, in DIR/proc and
    /// DIR/sys.
    #[arg(long, value_name = "DIR", help_heading = "Processors and speeds")]
    pub root: Option<PathBuf>,
    /// Write the platform to this file (platform.toml).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

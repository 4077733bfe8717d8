//! Flags for the flow of operands and the size of its blocks.

use super::numbers::within;
use apportion::schedule::{Flow, Messages};
use clap::Args;

/// How operands travel and in which blocks.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// Order of messages and updates: one-to-all (SUMMA), ring, bulk, broadcast, or auto (the least forecast
    /// time).
    #[arg(long, default_value = "auto", value_parser = flow, long_help = "Order of messages and updates:\n\
        - one-to-all: the owners of each pivot block send it to all that need it (SUMMA)\n\
        - ring: the pieces of each pivot block go from neighbour to neighbour\n\
        - bulk: all communication, then all computation\n\
        - broadcast: processors take turns to broadcast what they own\n\
        - auto: the flow of least forecast time", help_heading = "Flow")]
    pub flow: FlowChoice,
    /// Overlap communication with computation.
    #[arg(long, help_heading = "Flow")]
    pub overlap: bool,
    /// Number of pivot blocks in transit during an update; each takes the memory of one more block. Implies
    /// --overlap.
    #[arg(long, value_name = "N", value_parser = within(1..=1 << 20), help_heading = "For experts")]
    pub look_ahead: Option<u64>,
    /// Pivot block size: inner indices of one update [default: 256, less where a processor's memory requires
    /// it, and the size of least forecast time where messages cost time].
    #[arg(long, value_name = "N", value_parser = within(1..=1 << 20), help_heading = "Flow")]
    pub block: Option<u64>,
    /// Number of messages in which a processor broadcasts its part, instead of --block; broadcast flow only.
    /// Each takes 1/N of the memory [default: as few as fit, each of at most 256 rows of B].
    #[arg(long, value_name = "N", conflicts_with = "block", value_parser = within(1..=1 << 20),
        help_heading = "For experts")]
    pub blocks: Option<u64>,
    /// Messages of the bulk flow: together, one from each processor to each other, or separate, one for each
    /// rectangle, so that every step of the thesis costs the latency [default: together].
    #[arg(long, value_name = "HOW", help_heading = "For experts")]
    pub messages: Option<Messages>,
}

impl FlowArgs {
    /// Each flag, and whether it was given.
    pub fn flags(&self) -> [(&'static str, bool); 6] {
        [
            ("--flow", self.flow.0.is_some()),
            ("--overlap", self.overlap),
            ("--look-ahead", self.look_ahead.is_some()),
            ("--block", self.block.is_some()),
            ("--blocks", self.blocks.is_some()),
            ("--messages", self.messages.is_some()),
        ]
    }
}

/// A flow, or the choice left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowChoice(pub Option<Flow>);

fn flow(text: &str) -> Result<FlowChoice, String> {
    if text == "auto" {
        return Ok(FlowChoice(None));
    }
    text.parse().map(|f| FlowChoice(Some(f)))
}

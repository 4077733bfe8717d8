//! Flags that say how operands travel and in which blocks.

use apportion::error::{Error, Result};
use apportion::schedule::{DataPath, Flow, ScheduleOptions};
use apportion::select::{MemoryPolicy, orders};
use clap::Args;

/// Default pivot block size: where the gemm kernel is at its best.
pub const BLOCK: u64 = 256;

/// How operands travel and in which blocks.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// one-to-all, ring, bulk, broadcast, or auto: the one with the least forecast time.
    #[arg(long, default_value = "auto", value_parser = flow)]
    pub flow: FlowChoice,
    /// Compute while data travel.
    #[arg(long)]
    pub overlap: bool,
    /// Pivot blocks that travel during an update, each at the cost of one more block's memory; implies --overlap.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub look_ahead: Option<u64>,
    /// Pivot block size [default: 256, or less where a processor's memory asks for it].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub block: Option<u64>,
    /// Instead of --block: in how many messages a processor broadcasts its part (broadcast flow); each takes 1/N of the
    /// memory. By default as few as fit, of at most 256 rows of B.
    #[arg(long, value_name = "N", conflicts_with = "block", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub blocks: Option<u64>,
}

impl FlowArgs {
    /// Pivot block size, as asked for or by default.
    pub fn block(&self) -> u64 {
        self.block.unwrap_or(BLOCK)
    }

    /// What is done where a processor would hold more than its memory: what was asked for stays.
    pub fn fit(&self, path: DataPath) -> MemoryPolicy {
        match (self.block, self.blocks) {
            (None, None) => MemoryPolicy::SmallerBlocks(path),
            _ => MemoryPolicy::AsAsked(path),
        }
    }

    /// Whether to overlap.
    pub fn overlaps(&self) -> bool {
        self.overlap || self.look_ahead.is_some()
    }

    /// Pivot blocks under way during an update.
    ///
    /// # Errors
    /// Asked for with the bulk flow, which has none.
    pub fn look_ahead(&self) -> Result<u64> {
        match (self.look_ahead, self.flow.0) {
            (Some(_), Some(Flow::Bulk)) => Err(Error::input(
                "--look-ahead",
                "the bulk flow sends everything at once and has no pivot blocks to look ahead to",
                "leave it out, or choose another flow",
            )),
            (ahead, _) => Ok(ahead.unwrap_or(1)),
        }
    }

    /// Pivot block size for an inner dimension of `k`.
    ///
    /// # Errors
    /// A block count for another flow than broadcast.
    pub fn pivot(&self, k: u64) -> Result<u64> {
        match (self.blocks, self.flow.0) {
            (None, _) => Ok(self.block()),
            (Some(blocks), Some(Flow::Broadcast)) => Ok(k.div_ceil(blocks)),
            (Some(_), _) => Err(Error::input(
                "--blocks",
                "counts the messages of the broadcast flow, which was not asked for",
                "add --flow broadcast, or give --block N, the size of a pivot block",
            )),
        }
    }

    /// The orders to choose from, for an inner dimension of `k`.
    ///
    /// # Errors
    /// As [`FlowArgs::look_ahead`] and [`FlowArgs::pivot`].
    pub fn orders(&self, k: u64) -> Result<Vec<ScheduleOptions>> {
        Ok(orders(self.flow.0, self.pivot(k)?, self.overlaps(), self.look_ahead()?))
    }
}

/// A flow, or the choice left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowChoice(pub Option<Flow>);

fn flow(text: &str) -> std::result::Result<FlowChoice, String> {
    if text == "auto" {
        return Ok(FlowChoice(None));
    }
    text.parse().map(|f| FlowChoice(Some(f)))
}

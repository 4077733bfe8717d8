//! From the flags of a flow to orders of steps.

use crate::args::{BLOCK, FlowArgs};
use apportion::error::{Error, Result};
use apportion::schedule::{DataPath, Flow, Messages, ScheduleOptions};
use apportion::select::{MemoryPolicy, orders};

impl FlowArgs {
    /// Pivot block size, as requested or by default.
    pub fn block(&self) -> u64 {
        self.block.unwrap_or(BLOCK)
    }

    /// The policy if a processor would exceed its memory: requested values are kept.
    pub fn fit(&self, carrier: DataPath) -> MemoryPolicy {
        match (self.block, self.blocks) {
            (None, None) => MemoryPolicy::SmallerBlocks(carrier),
            _ => MemoryPolicy::AsAsked(carrier),
        }
    }

    /// Whether to overlap.
    pub fn overlaps(&self) -> bool {
        self.overlap || self.look_ahead.is_some()
    }

    /// Number of pivot blocks in transit during an update.
    ///
    /// # Errors
    /// Requested with the bulk flow, which has none.
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
    /// A block count for a flow other than broadcast.
    pub fn pivot(&self, k: u64) -> Result<u64> {
        match (self.blocks, self.flow.0) {
            (None, _) => Ok(self.block()),
            (Some(blocks), Some(Flow::Broadcast)) => Ok(k.div_ceil(blocks)),
            (Some(_), _) => Err(Error::input(
                "--blocks",
                "applies to the broadcast flow only",
                "add --flow broadcast, or give --block N, the size of a pivot block",
            )),
        }
    }

    /// The messages of the bulk flow.
    ///
    /// # Errors
    /// Separate ones for another flow, or without a flow.
    pub fn messages(&self) -> Result<Messages> {
        match (self.messages, self.flow.0) {
            (Some(Messages::Separate), None)
            | (Some(_), Some(Flow::OneToAll | Flow::Ring | Flow::Broadcast)) => Err(Error::input(
                "--messages",
                "applies to the bulk flow only",
                "add --flow bulk, or remove it",
            )),
            (messages, _) => Ok(messages.unwrap_or_default()),
        }
    }

    /// The orders to choose from, for an inner dimension of `k`.
    ///
    /// # Errors
    /// As [`FlowArgs::look_ahead`], [`FlowArgs::pivot`] and [`FlowArgs::messages`].
    pub fn orders(&self, k: u64) -> Result<Vec<ScheduleOptions>> {
        let messages = self.messages()?;
        let orders = orders(self.flow.0, self.pivot(k)?, self.overlaps(), self.look_ahead()?);
        Ok(orders.into_iter().map(|order| order.with_messages(messages)).collect())
    }
}

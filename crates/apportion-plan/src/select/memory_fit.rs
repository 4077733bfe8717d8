//! Orders of steps that fit into the processors' memory: smaller pivot blocks need less memory in addition to
//! the own parts (Tinetti, section 3.4.4: messages in blocks, the memory for them divided by their number).

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::plan::Layout;
use crate::platform::{Platform, Processor};
use crate::schedule::{DataPath, ScheduleOptions, predicted_memory};
use crate::units::show_bytes;

/// Handling of a platform's `memory` caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// Ignored: only the layout is needed, not its execution.
    Unchecked,
    /// The order must fit as it is.
    AsAsked(DataPath),
    /// If the order does not fit, the largest pivot block that fits is used.
    SmallerBlocks(DataPath),
}

/// A processor that would exceed its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOverrun {
    /// The processor.
    pub rank: Rank,
    /// Bytes that it would hold.
    pub need: u64,
    /// Bytes that it may hold.
    pub cap: u64,
}

impl MemoryOverrun {
    /// The processor that exceeds its cap by the largest amount.
    fn of(needs: &[u64], platform: &Platform) -> Option<Self> {
        let over = |(rank, (&need, processor)): (usize, (&u64, &Processor))| {
            let cap = processor.memory_cap().filter(|&cap| need > cap)?;
            Some(Self { rank: Rank(rank), need, cap })
        };
        let all = needs.iter().zip(&platform.processors).enumerate().filter_map(over);
        all.max_by_key(|excess| (excess.need - excess.cap, std::cmp::Reverse(excess.rank)))
    }

    /// The error for the user.
    pub(super) fn error(self, platform: &Platform) -> Error {
        let Self { rank, need, cap } = self;
        Error::TooLittleMemory {
            what: format!(
                "processor \"{}\" would hold {} of matrix data, more than its memory of {}",
                platform.processors[rank.0].name,
                show_bytes(need as f64),
                show_bytes(cap as f64)
            ),
            remedy: "give it a smaller share or more memory, the flow a smaller `block` (or `flow = broadcast` and `blocks = N`), \
                     or cut C with `panels = N`"
                .into(),
        }
    }
}

/// Refuses a layout and an order with which some processor would hold more than its `memory`.
///
/// # Errors
/// [`Error::TooLittleMemory`] names the processor that exceeds its cap by the largest amount: exit code 1.
pub fn check_caps(
    layout: &Layout,
    order: ScheduleOptions,
    platform: &Platform,
    element: u64,
    path: DataPath,
) -> Result<()> {
    if platform.processors.iter().all(|p| p.memory_cap().is_none()) {
        return Ok(());
    }
    let excess = MemoryOverrun::of(&predicted_memory(layout, order, element, path), platform);
    excess.map_or(Ok(()), |excess| Err(excess.error(platform)))
}

/// An order of steps that fits into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FittedOrder {
    /// The order.
    pub order: ScheduleOptions,
    /// The processor that would exceed its cap with the requested pivot block, if `order` has a smaller one.
    pub overrun: Option<MemoryOverrun>,
}

/// The given order, or one with a smaller pivot block, that fits the given layout.
///
/// # Errors
/// As [`check_caps`] and [`ScheduleOptions::check_layout`].
pub fn fit_order(
    layout: &Layout,
    order: ScheduleOptions,
    platform: &Platform,
    element: u64,
    policy: MemoryPolicy,
) -> Result<FittedOrder> {
    order.check_layout(layout)?;
    let (path, least) = match policy {
        MemoryPolicy::Unchecked => return Ok(FittedOrder { order, overrun: None }),
        MemoryPolicy::AsAsked(path) => (path, u64::MAX),
        MemoryPolicy::SmallerBlocks(path) => (path, 1),
    };
    largest_fitting_order(layout, order, platform, element, path, least)
        .map_err(|excess| excess.error(platform))
}

/// The order with the largest pivot block, at least `least`, with which no processor exceeds its cap. The
/// error is the processor that exceeds its cap with every block. O(R log R log block).
pub(super) fn largest_fitting_order(
    layout: &Layout,
    order: ScheduleOptions,
    platform: &Platform,
    element: u64,
    path: DataPath,
    least: u64,
) -> std::result::Result<FittedOrder, MemoryOverrun> {
    let excess = |block| {
        MemoryOverrun::of(
            &predicted_memory(layout, ScheduleOptions { block, ..order }, element, path),
            platform,
        )
    };
    let Some(asked) = excess(order.block) else { return Ok(FittedOrder { order, overrun: None }) };
    let (mut low, mut high) = (least, order.block.min(layout.shape().k));
    if low > high || excess(low).is_some() {
        return Err(asked);
    }
    // The need grows with the block: low fits; high does not fit, or equals low.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if excess(middle).is_some() { high = middle } else { low = middle }
    }
    // The smallest number of blocks that fits, all of equal size (T4).
    let count = layout.shape().k.div_ceil(low);
    let order = ScheduleOptions { block: layout.shape().k.div_ceil(count), ..order };
    Ok(FittedOrder { order, overrun: Some(asked) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Shape, shapes};
    use crate::schedule::Flow;

    fn platform(caps: [Option<u64>; 2]) -> Platform {
        let mut platform = Platform::from_speeds(&[3.0, 1.0]).unwrap();
        platform.processors.iter_mut().zip(caps).for_each(|(p, cap)| p.memory = cap);
        platform
    }

    /// Against a search over all blocks.
    #[test]
    fn the_largest_block_that_fits() {
        let shape = Shape::new(24, 60, 30, "test").unwrap();
        for layout in [
            shapes::Rows::default().layout(shape, &[3.0, 1.0]),
            shapes::SquareCorner.layout(shape, &[3.0, 1.0]),
        ] {
            let layout = layout.unwrap();
            for flow in Flow::ALL {
                for (cap, look_ahead) in (0..60).flat_map(|i| [1, 3].map(|ahead| (i * 500, ahead))) {
                    let platform = platform([None, Some(cap)]);
                    let order = ScheduleOptions::new(flow, 40).with_look_ahead(look_ahead);
                    let fits = |&block: &u64| {
                        check_caps(
                            &layout,
                            ScheduleOptions { block, ..order },
                            &platform,
                            8,
                            DataPath::Copied,
                        )
                        .is_ok()
                    };
                    let best = (1..=40).rev().find(fits);
                    match (largest_fitting_order(&layout, order, &platform, 8, DataPath::Copied, 1), best) {
                        (Ok(FittedOrder { order: found, overrun }), Some(best)) => {
                            // Blocks of equal length: the same number as with the largest block.
                            assert!(fits(&found.block) && found.block <= best);
                            assert_eq!(60_u64.div_ceil(found.block), 60_u64.div_ceil(best), "{flow} {cap}");
                            assert_eq!(overrun.is_none(), best == 40);
                        }
                        (Err(excess), None) => assert_eq!((excess.rank, excess.cap), (Rank(1), cap)),
                        (found, best) => panic!("{flow} {cap}: {found:?} {best:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn the_refusal_names_processor_need_cap_and_remedy() {
        let layout =
            shapes::Rows::default().layout(Shape::new(8, 12, 16, "test").unwrap(), &[3.0, 1.0]).unwrap();
        let order = ScheduleOptions::new(Flow::Bulk, 4);
        let error =
            check_caps(&layout, order, &platform([Some(4096), None]), 8, DataPath::Copied).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        // (6 x 12 + 9 x 16 + 6 x 16 + (6 + 16) x 12) x 8 bytes.
        let text = error.to_string();
        assert!(text.contains("\"p0\" would hold 4.6 kB") && text.contains("of 4.1 kB"), "{text}");
        assert!(text.contains("`panels = N`"), "{text}");
        assert!(check_caps(&layout, order, &platform([Some(4608), None]), 8, DataPath::Copied).is_ok());
    }
}

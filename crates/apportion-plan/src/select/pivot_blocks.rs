//! The size of pivot blocks: large ones make the pipeline of messages and updates slow to fill, and small ones pay
//! the latency of more messages.

use crate::error::Result;
use crate::model::Machine;
use crate::schedule::{Flow, ScheduleOptions};
use crate::select::candidates::SMALL_BLOCK;
use crate::select::improve::Trials;
use crate::select::{Appraiser, Choice, Minimise};

/// Numbers of pivot blocks that are compared.
const COUNTS: [u64; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// Blocks are multiples of this size, for the kernels.
const MULTIPLE: u64 = 8;
/// Another block is taken if it saves at least this fraction of the time: less is not worth a block that kernels
/// are not tuned for.
pub const WORTHWHILE: f64 = 0.005;
/// Part of the budget of planning for each search of a block.
const PART: f64 = 0.05;

/// Tries `order` with other pivot blocks for an inner dimension of `k`: smaller ones, then larger ones, until two in a
/// row are no better. Where speeds were measured with a pivot block, smaller ones would be slower than that, and are
/// not tried. Nothing is tried where messages cost nothing, where speeds are ratios, or where a device has its tiles.
///
/// # Errors
/// Those of `is_better`.
pub fn try_pivot_blocks(
    k: u64,
    machine: &Machine,
    order: ScheduleOptions,
    mut is_better: impl FnMut(ScheduleOptions) -> Result<bool>,
) -> Result<()> {
    let network = &machine.platform.network;
    if network.is_free() || !network.devices.is_empty() || machine.only_ratios() || order.flow == Flow::Bulk {
        return Ok(());
    }
    let least = machine.block.max(SMALL_BLOCK);
    let sizes = COUNTS.map(|count| k.div_ceil(count).next_multiple_of(MULTIPLE));
    let smaller = sizes.iter().filter(|size| **size >= least && **size < order.block);
    let larger = sizes.iter().rev().filter(|size| **size > order.block.min(k));
    let sides: [Vec<&u64>; 2] = [smaller.collect(), larger.collect()];
    for side in sides {
        let mut misses = 0;
        for &block in side {
            misses = if is_better(order.with_block(block))? { 0 } else { misses + 1 };
            if misses == 2 {
                break;
            }
        }
    }
    Ok(())
}

/// A candidate with another pivot block that is faster than the first of `choices`; the fastest one found. Of each
/// order of steps the first candidate is tried whose work leaves time for that.
pub(super) fn with_other_block(appraiser: &Appraiser<'_>, choices: &[Choice]) -> Result<Option<Choice>> {
    let timed = appraiser.options.minimise == Minimise::Time && appraiser.machine.processors() > 1;
    let Some(seconds) = choices[0].rank.filter(|_| timed && appraiser.options.open_block) else {
        return Ok(None);
    };
    let shape = choices[0].plan.layout()?.shape();
    let mut trials = Trials::new(appraiser, shape, seconds, seconds, PART);
    let (mut best, mut limit, mut flows) = (None, seconds * (1.0 - WORTHWHILE), Vec::new());
    for choice in choices {
        let flow = (choice.order.flow, choice.order.look_ahead);
        // No block makes the work of a processor shorter.
        let busy =
            choice.plan.forecast.iter().flat_map(|forecast| &forecast.compute).any(|&time| time >= limit);
        let Some(mut own) = choice.rank.filter(|_| !busy && !flows.contains(&flow)) else { continue };
        flows.push(flow);
        let layout = choice.plan.layout()?;
        try_pivot_blocks(shape.k, appraiser.machine, choice.order, |order| {
            if !trials.may_go_on() || !appraiser.fits(layout, order) {
                return Ok(false);
            }
            let Some(forecast) = trials.faster_than(own, layout, order)? else { return Ok(false) };
            own = forecast.seconds;
            if own < limit {
                limit = own;
                best = Some((choice, order, forecast));
            }
            Ok(true)
        })?;
    }
    let Some((choice, order, forecast)) = best else { return Ok(None) };
    let other = appraiser.choice(&choice.plan.method, choice.plan.layout()?, order, Some(forecast))?;
    let Choice { memory_overrun, left_out, sizing_gain, .. } = choice.clone();
    Ok(Some(Choice { memory_overrun, left_out, sizing_gain, ..other }))
}

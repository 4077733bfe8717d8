//! Forecasts where every pair of processors has a wire of its own in each direction.
//!
//! Nothing then competes for a wire but the messages of one sender, in their order. The times of a schedule
//! follow by recurrence, pivot block by pivot block: no queue of events, no pieces, no trace. The result is
//! that of [`simulate`](super::simulate), bit for bit; the tests compare both.

mod bulk;
mod clocks;
mod inner;
mod pivots;
mod ring;
#[cfg(test)]
mod tests;
mod turns;

use super::effort::ANALYSIS;
use super::{CostModel, Effort};
use crate::geometry::Rank;
use crate::plan::Forecast;
use crate::schedule::{Application, Flow, MatmulSchedule};
use clocks::Clocks;
pub(crate) use ring::least_seconds as least_seconds_of_ring;

/// True if [`timed`] serves this schedule on this network.
pub(crate) fn serves(schedule: &MatmulSchedule, conditions: CostModel<'_>) -> bool {
    let order = schedule.order();
    let flow = match order.flow {
        Flow::OneToAll | Flow::Broadcast => true,
        Flow::Bulk => !order.sends_separately(),
        Flow::Ring => false,
    };
    let usable = |rank: usize| {
        let rate = conditions.rates[rank];
        schedule.work(Rank(rank)) <= 0.0 || (rate.is_finite() && rate > 0.0)
    };
    (flow || schedule.boxes().is_some())
        && conditions.network.has_a_wire_for_each_pair()
        && (0..schedule.processors()).all(usable)
}

/// The forecast of a schedule that [`serves`] accepts; `None` if it takes more than `limit` seconds, which is
/// found as soon as some processor cannot do the rest of its work within the limit, or once the work is
/// spent.
///
/// O(messages + updates + log p for each change of an owner), without allocation for each of them.
pub(crate) fn timed(
    schedule: &MatmulSchedule,
    conditions: CostModel<'_>,
    limit: f64,
    effort: &Effort,
) -> Option<Forecast> {
    assert_eq!(conditions.rates.len(), schedule.processors(), "one rate per processor");
    effort.spend(ANALYSIS * schedule.members_and_exchanges().1 as f64);
    if effort.is_spent() {
        return None;
    }
    let mut clocks = Clocks::new(schedule, conditions, limit, effort);
    if let Some(boxes) = schedule.boxes() {
        inner::run(schedule, boxes, &mut clocks)?;
        return clocks.forecast();
    }
    match schedule.order().flow {
        Flow::Bulk => bulk::run(schedule, &mut clocks),
        Flow::Broadcast => turns::run(schedule, &mut clocks)?,
        _ => pivots::run(schedule, &mut clocks)?,
    }
    clocks.forecast()
}

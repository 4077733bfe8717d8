//! A lower bound of the ring flow, whose times are not computed by recurrence.

use crate::geometry::{Rank, Span};
use crate::schedule::{Application, MatmulSchedule, Operand};
use crate::simulate::CostModel;
use std::collections::BTreeMap;

/// Rounding of sums in another order than the simulation's.
const ROUNDING: f64 = 1e-9;

/// Seconds that the ring flow takes at least on a network with a wire for each pair: the first update of a
/// processor waits for the pieces of the first pivot block, which pass through its neighbours, and all its
/// work follows; and each wire carries what its end needs of a band. 0 with inner cuts. O(members^2) of all
/// bands.
pub(crate) fn least_seconds(schedule: &MatmulSchedule, conditions: CostModel<'_>) -> f64 {
    if schedule.layout().boxes().is_some() {
        return 0.0;
    }
    let p = schedule.processors();
    let element = conditions.element as f64;
    let (whole, first) = (schedule.inner(), schedule.pivot(0));
    let mut reached = vec![0.0; p];
    let mut carried: BTreeMap<(Rank, Rank), [f64; 2]> = BTreeMap::new();
    for operand in [Operand::A, Operand::B] {
        let load = |lines: Span, inner: u64| {
            let bytes = (lines.len() * inner) as f64 * element;
            if operand == Operand::B { [0.0, bytes] } else { [bytes, 0.0] }
        };
        for band in schedule.bands(operand) {
            let size = band.members.len();
            let next = |place: usize| (place + 1) % size;
            for (inner, owner) in band.owned_of(first) {
                let [h, v] = load(band.lines, inner.len());
                let (mut place, mut at) = (owner, 0.0);
                for _ in 1..size {
                    at +=
                        conditions.network.link(band.members[place], band.members[next(place)]).seconds(h, v);
                    place = next(place);
                    let reached: &mut f64 = &mut reached[band.members[place].0];
                    *reached = reached.max(at);
                }
            }
            let mut owned = vec![0; size];
            band.owned_of(whole).for_each(|(inner, owner)| owned[owner] += inner.len());
            for place in (0..size).filter(|_| size > 1) {
                let [h, v] = load(band.lines, whole.len() - owned[next(place)]);
                if h + v > 0.0 {
                    let sum = carried.entry((band.members[place], band.members[next(place)])).or_default();
                    *sum = [sum[0] + h, sum[1] + v];
                }
            }
        }
    }
    let wire =
        |(&(from, to), &[h, v]): (&(Rank, Rank), &[f64; 2])| conditions.network.link(from, to).seconds(h, v);
    let worked = |rank: usize| match schedule.work(Rank(rank)) {
        work if work > 0.0 => reached[rank] + work / conditions.rates[rank],
        _ => 0.0,
    };
    (0..p).map(worked).chain(carried.iter().map(wire)).fold(0.0, f64::max) * (1.0 - ROUNDING)
}

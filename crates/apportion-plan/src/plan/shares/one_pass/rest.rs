//! The units that nobody has taken yet, and what they cost.

use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Ranges of units in the order in which they are handed out.
///
/// The *work* of a range is the sum of the costs of its units, relative to the mean cost. Without costs it is the
/// number of units.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    ranges: VecDeque<Range<u64>>,
    /// Work of all units before each unit, and of all; `None`: each unit is a work of 1.
    before: Option<Vec<f64>>,
}

impl Rest {
    /// # Errors
    /// If the ranges overlap, or the costs are too few, negative or not finite.
    pub(super) fn new(remaining: &[Range<u64>], costs: Option<&Arc<[f64]>>) -> Result<Self> {
        let mut ranges: Vec<Range<u64>> =
            remaining.iter().filter(|range| !range.is_empty()).cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
            let what =
                format!("{}..{} and {}..{} overlap", pair[0].start, pair[0].end, pair[1].start, pair[1].end);
            return Err(Error::input("`remaining`", what, "give each unit once"));
        }
        let end = ranges.last().map_or(0, |range| range.end);
        let before = costs.map(|costs| sums(costs, end)).transpose()?.flatten();
        Ok(Self { ranges: ranges.into(), before })
    }

    pub(super) fn units(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn work(&self) -> f64 {
        self.ranges.iter().map(|range| self.work_of(range)).sum()
    }

    pub(super) fn work_of(&self, range: &Range<u64>) -> f64 {
        match &self.before {
            None => (range.end - range.start) as f64,
            Some(before) => before[range.end as usize] - before[range.start as usize],
        }
    }

    /// Takes the piece from the front whose work is nearest to `work`: at least one unit, and no more than the first
    /// range holds. `None` if nothing is left.
    pub(super) fn take(&mut self, work: f64) -> Option<Range<u64>> {
        let first = self.ranges.front_mut()?;
        let length = first.end - first.start;
        let units = match &self.before {
            // A number beyond the range of u64 becomes the nearest of the range.
            None => work.round() as u64,
            Some(before) => {
                let sums = &before[first.start as usize..=first.end as usize];
                let wanted = sums[0] + work;
                let above = sums.partition_point(|&sum| sum < wanted).min(sums.len() - 1);
                let nearer_below = above > 0 && wanted - sums[above - 1] < sums[above] - wanted;
                // Units without cost go along with the unit before them.
                let cut = sums[if nearer_below { above - 1 } else { above }];
                sums.partition_point(|&sum| sum <= cut) as u64 - 1
            }
        };
        let units = units.clamp(1, length);
        let piece = first.start..first.start + units;
        first.start = piece.end;
        if units == length {
            self.ranges.pop_front();
        }
        Some(piece)
    }

    /// Puts a piece back, to be handed out next.
    pub(super) fn give_back(&mut self, piece: Range<u64>) {
        self.ranges.push_front(piece);
    }
}

/// The sums of the costs before each unit up to `end`, in mean costs; `None` if nothing costs anything.
fn sums(costs: &[f64], end: u64) -> Result<Option<Vec<f64>>> {
    if (costs.len() as u64) < end {
        let what = format!("{} costs for {end} units", costs.len());
        return Err(Error::input("`costs`", what, "give one cost for each unit"));
    }
    if let Some(at) = costs.iter().position(|cost| !(cost.is_finite() && *cost >= 0.0)) {
        let what = format!("the cost of unit {at} is {}", costs[at]);
        return Err(Error::input("`costs`", what, "give finite numbers of at least 0"));
    }
    let mean = costs.iter().map(|cost| cost / costs.len() as f64).sum::<f64>();
    if mean == 0.0 {
        return Ok(None);
    }
    let mut before = Vec::with_capacity(costs.len() + 1);
    let mut sum = 0.0;
    before.push(sum);
    for cost in costs {
        sum += cost / mean;
        before.push(sum);
    }
    Ok(Some(before))
}

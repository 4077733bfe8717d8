//! Any layout as something to rearrange: owners of equal shares are exchanged, the rectangles stay.

use super::distance::Distances;
use super::rings::Rings;
use super::{Cost, CostFunction, Pivots, Watch, arrangement_cost_of};
use crate::error::Result;
use crate::plan::Layout;
use std::collections::BTreeMap;

/// Number of stops of rings (or of pairs of stops, if each sends to all others) that a search may visit.
const MOST_WORK: u64 = 500_000_000;
/// Number of evaluations that every search may make.
const LEAST: u64 = 500;

/// The mapping of owners to places.
#[derive(Debug, Clone)]
pub(super) struct Labels<'a> {
    /// `owner[i]` has the places of the layout's owner i.
    pub(crate) owner: Vec<usize>,
    /// Owners that may be exchanged, class by class; classes of one are left out.
    pub(crate) classes: Vec<Vec<usize>>,
    /// The distances between owners.
    pub(crate) distances: &'a Distances<'a>,
    rings: Rings,
    objective: CostFunction,
}

impl<'a> Labels<'a> {
    /// The owners of a layout in their present places. An owner's rows and columns move with its places, so
    /// that shares and volume stay the same when two owners of one class are exchanged.
    pub(super) fn of(layout: &Layout, distances: &'a Distances<'a>, objective: CostFunction) -> Self {
        let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (owner, share) in layout.shares().into_iter().enumerate() {
            classes.entry(share).or_default().push(owner);
        }
        classes.remove(&0);
        Self {
            owner: (0..layout.processors()).collect(),
            classes: classes.into_values().filter(|c| c.len() > 1).collect(),
            distances,
            rings: Rings::of(layout),
            objective,
        }
    }

    /// The cost of the mapping. O(rectangles in all bands).
    pub(super) fn cost(&self) -> Cost {
        arrangement_cost_of(&self.rings, self.distances, &self.owner, self.objective)
    }

    /// The layout's rectangles with their new owners; for a repeated block, the block's rectangles.
    pub(super) fn relabelled(&self, layout: &Layout) -> Result<Layout> {
        layout.among(&self.owner, layout.processors())
    }

    /// The number of the `wished` evaluations that take no more than a few seconds.
    pub(super) fn affordable(&self, wished: u64) -> u64 {
        let stops = self.rings.rows.iter().chain(&self.rings.cols).map(|ring| ring.stops.len() as u64);
        let one_to_all = matches!(
            self.objective,
            CostFunction::Hops(Pivots::OneToAll) | CostFunction::Bandwidth(Pivots::OneToAll)
        );
        let work: u64 = stops.map(|n| if one_to_all { n * n } else { n }).sum();
        wished.min(MOST_WORK / work.max(1)).max(LEAST)
    }
}

/// Exchanges two owners of a class whenever that costs less, until no exchange does (a local optimum) or the
/// limit of evaluations is reached. At most the cost of `given`.
pub(super) fn exchanged<'a>(given: &Labels<'a>, watch: Watch<'_>) -> (Labels<'a>, u64) {
    let mut state = given.clone();
    let most = given.affordable(u64::MAX);
    let (mut best, mut evaluations) = (state.cost().total, 1);
    loop {
        let before = best;
        for (class, j) in given.classes.iter().flat_map(|c| (1..c.len()).map(move |j| (c, j))) {
            for i in 0..j {
                if evaluations == most || !watch(1) {
                    return (state, evaluations);
                }
                state.owner.swap(class[i], class[j]);
                let cost = state.cost().total;
                evaluations += 1;
                // A difference that is only rounding is no improvement.
                if cost < best * (1.0 - 1e-12) {
                    best = cost;
                } else {
                    state.owner.swap(class[i], class[j]);
                }
            }
        }
        if best == before {
            return (state, evaluations);
        }
    }
}

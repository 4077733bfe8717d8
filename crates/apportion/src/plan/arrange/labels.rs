//! Any layout as something to rearrange: owners of equal shares change places, the rectangles stay.

use super::distance::Distances;
use super::rings::Rings;
use super::{Cost, Objective, arrangement_cost_of};
use crate::plan::{Layout, Part};
use crate::rect::Rank;
use std::collections::BTreeMap;

/// Who stands on whose places.
#[derive(Debug, Clone)]
pub(super) struct Labels<'a> {
    /// `owner[i]` stands on the places of the layout's owner i.
    pub owner: Vec<usize>,
    /// Owners that may change places, class by class; those alone in their class are left out.
    pub classes: Vec<Vec<usize>>,
    /// How far apart owners are.
    pub distances: &'a Distances<'a>,
    rings: Rings,
    objective: Objective,
}

impl<'a> Labels<'a> {
    /// The owners of a layout, where they are. An owner's rows and columns move with its places, so that shares
    /// and volume stay when two owners of one class change places.
    pub(super) fn of(layout: &Layout, distances: &'a Distances<'a>, objective: Objective) -> Self {
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

    /// What it costs. O(rectangles in all bands).
    pub(super) fn cost(&self) -> Cost {
        arrangement_cost_of(&self.rings, self.distances, &self.owner, self.objective)
    }

    /// The layout's rectangles with their new owners.
    pub(super) fn parts(&self, layout: &Layout) -> Vec<Part> {
        layout.parts().iter().map(|p| Part { owner: Rank(self.owner[p.owner.0]), ..*p }).collect()
    }
}

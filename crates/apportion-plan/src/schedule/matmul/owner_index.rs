//! Index of the processors that need each line of an operand and of the processors that own it. It avoids
//! comparing every pair of processors.

use crate::geometry::{Rank, Span};
use crate::plan::{Layout, Part};
use std::collections::BTreeSet;

/// Lines of one operand (rows of A, columns of B) between two cuts. A processor that needs one of them needs
/// all of them.
#[derive(Debug, Clone)]
pub(crate) struct Band {
    /// The lines.
    pub(crate) lines: Span,
    /// Processors that need these lines, in the order in which their parts of C begin along the lines.
    pub(crate) members: Vec<Rank>,
    /// Inner indices that each member owns, ascending: (indices, position of the owner among the members).
    pub(crate) owned: Vec<(Span, usize)>,
    /// The same indices in the order of their owners, and for each member where its own begin; nothing if
    /// each owns one part, which saves a look into memory for every piece of a ring.
    by_owner: Vec<Span>,
    first_of: Vec<u32>,
}

impl Band {
    fn new(lines: Span, members: Vec<Rank>, owned: Vec<(Span, usize)>) -> Self {
        let mut sorted = owned.clone();
        sorted.sort_by_key(|&(_, place)| place);
        let first = |place: usize| sorted.partition_point(|of| of.1 < place) as u32;
        let one_each =
            sorted.len() == members.len() && sorted.iter().zip(0..).all(|(of, place)| of.1 == place);
        let first_of = if one_each { Vec::new() } else { (0..=members.len()).map(first).collect() };
        let by_owner = sorted.into_iter().map(|(span, _)| span).collect();
        Self { lines, members, owned, by_owner, first_of }
    }

    /// The parts of these inner indices that the member at a position owns, ascending. O(1) for each part.
    pub(crate) fn owned_by(&self, place: usize, inner: Span) -> impl Iterator<Item = Span> + '_ {
        let (from, to) = match &self.first_of[..] {
            [] => (place, place + 1),
            first => (first[place] as usize, first[place + 1] as usize),
        };
        let own = &self.by_owner[from..to];
        own.iter().map(move |span| span.intersect(inner)).filter(|span| !span.is_empty())
    }

    /// The owned parts of these inner indices with the positions of their owners. O(log p + results).
    pub(crate) fn owned_of(&self, inner: Span) -> impl Iterator<Item = (Span, usize)> + '_ {
        let first = self.owned.partition_point(|(span, _)| span.end <= inner.start);
        let rest = self.owned[first..].iter().take_while(move |(span, _)| span.start < inner.end);
        rest.map(move |&(span, place)| (span.intersect(inner), place)).filter(|(span, _)| !span.is_empty())
    }
}

/// All bands of one operand, ascending.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnerIndex {
    bands: Vec<Band>,
    /// For each processor, the bands that it is a member of, with its position.
    of: Vec<Vec<(usize, usize)>>,
}

impl OwnerIndex {
    /// The bands of A's rows. O(S log S), where S is the number of members of all bands: p^1.5 on
    /// column-based layouts.
    pub(crate) fn of_a(layout: &Layout) -> Self {
        let needed = layout.parts().iter().map(|p| (p.rows, p.cols.start, p.owner));
        let owned = layout.parts_of_a();
        Self::new(layout, needed.collect(), owned.iter().map(|p| (p.rows, p.cols, p.owner)))
    }

    /// The bands of B's columns.
    pub(crate) fn of_b(layout: &Layout) -> Self {
        let needed = layout.parts().iter().map(|p| (p.cols, p.rows.start, p.owner));
        let owned: Vec<Part> = layout.parts_of_b();
        Self::new(layout, needed.collect(), owned.iter().map(|p| (p.cols, p.rows, p.owner)))
    }

    /// Builds the index from parts of C, each as (lines, start along them, owner), and parts of the operand,
    /// each as (lines, inner indices, owner).
    fn new(
        layout: &Layout,
        needed: Vec<(Span, u64, Rank)>,
        owned: impl Iterator<Item = (Span, Span, Rank)>,
    ) -> Self {
        let cuts: BTreeSet<u64> = needed.iter().flat_map(|(s, ..)| [s.start, s.end]).collect();
        let cuts: Vec<u64> = cuts.into_iter().collect();
        let within = |lines: Span| {
            cuts.partition_point(|&c| c < lines.start)..cuts.partition_point(|&c| c < lines.end)
        };
        let count = cuts.len().saturating_sub(1);
        let mut starts: Vec<Vec<(Rank, u64)>> = vec![Vec::new(); count];
        for &(lines, at, owner) in &needed {
            within(lines).for_each(|band| starts[band].push((owner, at)));
        }
        let mut pieces: Vec<Vec<(Span, Rank)>> = vec![Vec::new(); count];
        for (lines, inner, owner) in owned {
            within(lines).for_each(|band| pieces[band].push((inner, owner)));
        }
        let mut of = vec![Vec::new(); layout.processors()];
        let mut bands = Vec::with_capacity(count);
        for (i, (mut starts, mut pieces)) in starts.into_iter().zip(pieces).enumerate() {
            // A processor's first start along the band defines its position.
            starts.sort_unstable();
            starts.dedup_by_key(|(owner, _)| *owner);
            starts.sort_unstable_by_key(|&(owner, at)| (at, owner));
            let members: Vec<Rank> = starts.into_iter().map(|(owner, _)| owner).collect();
            let mut places: Vec<(Rank, usize)> = members.iter().copied().zip(0..).collect();
            places.sort_unstable();
            let place = |owner: Rank| places[places.partition_point(|(r, _)| *r < owner)].1;
            pieces.sort_unstable();
            let owned = pieces.into_iter().map(|(span, owner)| (span, place(owner))).collect();
            members.iter().zip(0..).for_each(|(rank, place)| of[rank.0].push((i, place)));
            bands.push(Band::new(Span::new(cuts[i], cuts[i + 1]), members, owned));
        }
        Self { bands, of }
    }

    /// All bands, ascending.
    pub(crate) fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// The bands that a processor is a member of, with its position.
    pub(crate) fn with(&self, rank: Rank) -> impl Iterator<Item = (&Band, usize)> + '_ {
        self.of[rank.0].iter().map(|&(band, place)| (&self.bands[band], place))
    }

    /// The bands that contain these lines; the lines must be cut where parts of C are.
    fn within(&self, lines: Span) -> &[Band] {
        let first = self.bands.partition_point(|b| b.lines.start < lines.start);
        let end = self.bands.partition_point(|b| b.lines.start < lines.end);
        &self.bands[first..end.max(first)]
    }

    /// Adds all processors that need some of these lines.
    pub(crate) fn needing(&self, lines: Span, found: &mut Vec<Rank>) {
        found.extend(self.within(lines).iter().flat_map(|band| &band.members));
    }

    /// Adds all processors that own something with these inner indices that `rank` needs.
    pub(crate) fn owning(&self, rank: Rank, inner: Span, found: &mut Vec<Rank>) {
        for (band, _) in self.with(rank) {
            found.extend(band.owned_of(inner).map(|(_, place)| band.members[place]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Shape, shapes};

    /// Three columns of unequal heights: A's bands are cut at every start and end of a rectangle.
    #[test]
    fn bands_follow_irregular_overlaps() {
        let shape = Shape::new(12, 12, 12, "test").unwrap();
        let layout = shapes::ColumnGroups { groups: &[vec![0, 1], vec![2], vec![3, 4]] }
            .layout(shape, &[1.0, 1.0, 2.0, 1.0, 1.0]);
        let bands = OwnerIndex::of_a(&layout.unwrap());
        let members: Vec<Vec<usize>> =
            bands.bands.iter().map(|b| b.members.iter().map(|m| m.0).collect()).collect();
        assert_eq!(members, [vec![0, 2, 3], vec![1, 2, 4]]);
        let owned: Vec<_> = bands.bands[1].owned_of(Span::new(3, 9)).collect();
        assert_eq!(owned, [(Span::new(3, 4), 0), (Span::new(4, 8), 1), (Span::new(8, 9), 2)]);
        let mut found = Vec::new();
        bands.owning(Rank(4), Span::new(0, 5), &mut found);
        assert_eq!(found, [Rank(1), Rank(2)]);
    }
}

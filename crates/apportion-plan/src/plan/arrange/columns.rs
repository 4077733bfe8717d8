//! A column-based layout as something to rearrange: columns of blocks, and what every neighbourhood costs.
//!
//! The cost of A's rings separates into pairs of neighbouring columns (the overlap of two blocks does not
//! depend on the other columns), the cost of B's rings into single columns. A move therefore changes only the
//! cost of the columns that it touches.

use super::distance::Distances;
use super::{Cost, CostFunction, Edges, Pivots};
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Layout, Part};
use std::collections::BTreeMap;

/// One rectangle: its owner and its height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The owner.
    pub(crate) owner: usize,
    /// Rows.
    pub(crate) height: u64,
}

/// Blocks from top to bottom and their common width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// Columns of the matrix.
    pub(crate) width: u64,
    /// The blocks.
    pub(crate) blocks: Vec<Block>,
}

impl Column {
    /// Number of elements of a block of this column: owners of equal shares may be exchanged.
    pub(super) fn share(&self, height: u64) -> u128 {
        u128::from(self.width) * u128::from(height)
    }
}

/// The links between neighbours that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// All links of a ring except the cheapest.
    AllButLeast,
    /// All links of a ring.
    Ring,
    /// All links except the one that closes the ring.
    Chain,
    /// From each member to all others, weighted by the number of times that it holds the pivot.
    OneToAll,
}

impl Rule {
    /// The rule of an objective.
    pub(super) fn of(objective: CostFunction) -> Self {
        match objective {
            CostFunction::Hops(Pivots::OneToAll) | CostFunction::Bandwidth(Pivots::OneToAll) => {
                Self::OneToAll
            }
            CostFunction::Hops(Pivots::Ring) => Self::AllButLeast,
            CostFunction::Bandwidth(Pivots::Ring) | CostFunction::Asymmetric(Edges::Periodic) => Self::Ring,
            CostFunction::Asymmetric(Edges::Open) => Self::Chain,
        }
    }

    /// The cost of `count` members in an order, from the cost between two of them (by place).
    pub(super) fn total(self, count: usize, between: impl Fn(usize, usize) -> f64) -> f64 {
        if count < 2 {
            return 0.0;
        }
        let ring = (0..count - 1).map(|i| between(i, i + 1));
        match self {
            Self::Chain => ring.sum(),
            Self::Ring => ring.sum::<f64>() + between(count - 1, 0),
            Self::AllButLeast => {
                let close = between(count - 1, 0);
                let (sum, least) = ring.fold((close, close), |(s, l), x| (s + x, l.min(x)));
                sum - least
            }
            Self::OneToAll => (0..count * count)
                .map(|x| (x / count, x % count))
                .filter(|(i, j)| i != j)
                .map(|(i, j)| between(i, j))
                .sum(),
        }
    }
}

/// A column-based layout, the distances between its owners, and the rule that counts links.
#[derive(Debug, Clone)]
pub(crate) struct Columns<'a> {
    /// From left to right.
    pub(crate) columns: Vec<Column>,
    /// The links that count.
    pub(crate) rule: Rule,
    /// The distances between owners.
    pub(crate) distances: &'a Distances<'a>,
}

impl<'a> Columns<'a> {
    /// The columns of a layout; `None` unless each column of rectangles spans the matrix and each owner has
    /// one rectangle.
    pub(super) fn of(layout: &Layout, distances: &'a Distances<'a>, objective: CostFunction) -> Option<Self> {
        let mut by_cols: BTreeMap<Span, Vec<&Part>> = BTreeMap::new();
        for part in layout.parts() {
            by_cols.entry(part.cols).or_default().push(part);
        }
        let mut seen = vec![false; layout.processors()];
        let mut at = 0;
        let mut columns = Vec::new();
        for (cols, parts) in by_cols {
            // Parts are in reading order and disjoint: they span the matrix if their heights add up.
            if cols.start != at || parts.iter().map(|p| p.rows.len()).sum::<u64>() != layout.shape().m {
                return None;
            }
            at = cols.end;
            if parts.iter().any(|p| std::mem::replace(&mut seen[p.owner.0], true)) {
                return None;
            }
            let blocks = parts.iter().map(|p| Block { owner: p.owner.0, height: p.rows.len() }).collect();
            columns.push(Column { width: cols.len(), blocks });
        }
        Some(Self { columns, rule: Rule::of(objective), distances })
    }

    /// The rectangles, laid out from left to right and from top to bottom.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut left = 0;
        let mut parts = Vec::new();
        for column in &self.columns {
            let cols = Span::new(left, left + column.width);
            left = cols.end;
            let mut top = 0;
            for block in &column.blocks {
                let rows = Span::new(top, top + block.height);
                top = rows.end;
                parts.push(Part::new(Rank(block.owner), Rect::new(rows, cols)));
            }
        }
        parts
    }

    /// The cost of B's ring in one column.
    pub(super) fn inside(&self, column: &Column) -> f64 {
        let blocks = &column.blocks;
        let height: u64 = blocks.iter().map(|b| b.height).sum();
        let between = |i: usize, j: usize| {
            self.pivot_fraction(blocks[i].height, height)
                * self.distances.between(blocks[i].owner, blocks[j].owner)[1]
        };
        column.width as f64 * self.rule.total(blocks.len(), between)
    }

    /// The fraction of the pivots that `lines` of `all` lines hold, if the rule counts it; otherwise 1.
    fn pivot_fraction(&self, lines: u64, all: u64) -> f64 {
        if self.rule == Rule::OneToAll { lines as f64 / all as f64 } else { 1.0 }
    }

    /// The cost of A's pieces from one column to another: height of overlap times distance, over all
    /// overlaps.
    pub(super) fn beside(&self, from: &Column, to: &Column) -> f64 {
        let (mut i, mut j, mut at) = (0, 0, 0);
        let (mut end_i, mut end_j) = (from.blocks[0].height, to.blocks[0].height);
        let held = self.pivot_fraction(from.width, self.columns.iter().map(|c| c.width).sum());
        let mut sum = 0.0;
        loop {
            let end = end_i.min(end_j);
            let distance = self.distances.between(from.blocks[i].owner, to.blocks[j].owner)[0];
            sum += (end - at) as f64 * distance;
            at = end;
            if end == end_i {
                i += 1;
                let Some(block) = from.blocks.get(i) else { return held * sum };
                end_i += block.height;
            }
            if end == end_j {
                j += 1;
                let Some(block) = to.blocks.get(j) else { return held * sum };
                end_j += block.height;
            }
        }
    }

    /// The cost of the arrangement, computed from scratch.
    pub(super) fn cost(&self) -> Cost {
        let c = &self.columns;
        let a = self.rule.total(c.len(), |i, j| self.beside(&c[i], &c[j]));
        Cost::of(a, c.iter().map(|column| self.inside(column)).sum())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::arrange::rings::Rings;
    use crate::plan::arrange::{arrangement_cost_of, every_objective};
    use crate::plan::shapes::{self, LayoutMethod, SquareCorner};
    use crate::platform::{Platform, parse_platform};
    use proptest::prelude::*;

    /// `p` processors dealt in turn to three clusters on two sites, with six different bandwidths, one of
    /// which differs by direction.
    pub(in crate::plan::arrange) fn three_clusters(p: usize) -> Platform {
        let mut text = String::new();
        for i in 0..p {
            let cluster = ["s/a", "s/b", "t/c"][(i * 7 + i / 3) % 3];
            text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"{cluster}\"\n");
        }
        text += "[network]\nbandwidth = \"11 MB/s\"\n";
        let known = |name: &str| text.contains(&format!("\"{name}\""));
        let mut links = String::new();
        for (x, y, b) in [
            ("s/a", "s/a", "\"900 MB/s\""),
            ("s/b", "s/b", "\"700 MB/s\""),
            ("t/c", "t/c", "\"6000 MB/s\""),
            ("s/a", "s/b", "{ horizontal = \"250 MB/s\", vertical = \"90 MB/s\" }"),
            ("s/a", "t/c", "\"50 MB/s\""),
        ] {
            if known(x) && known(y) {
                links += &format!("[[network.link]]\nbetween = [\"{x}\", \"{y}\"]\nbandwidth = {b}\n");
            }
        }
        parse_platform(&(text.clone() + &links), "p.toml").unwrap()
    }

    proptest! {
        /// Column by column or band by band: the same cost, for every objective.
        #[test]
        fn columns_and_rings_agree(weights in prop::collection::vec(0.1f64..10.0, 1..14)) {
            let platform = three_clusters(weights.len());
            let layout = shapes::Columns::default().layout(Shape::new(97, 10, 89, "t").unwrap(), &weights).unwrap();
            let owners: Vec<usize> = (0..weights.len()).collect();
            for objective in every_objective() {
                let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
                let ours = Columns::of(&layout, &distances, objective).unwrap();
                let again = Layout::new(layout.shape(), weights.len(), ours.parts()).unwrap();
                prop_assert_eq!(&again, &layout);
                let (ours, theirs) =
                    (ours.cost(), arrangement_cost_of(&Rings::of(&layout), &distances, &owners, objective));
                prop_assert!((ours.a - theirs.a).abs() <= 1e-9 * theirs.a, "{objective:?} {ours:?} {theirs:?}");
                prop_assert!((ours.b - theirs.b).abs() <= 1e-9 * theirs.b, "{objective:?} {ours:?} {theirs:?}");
            }
        }
    }

    #[test]
    fn owners_of_two_rectangles_are_left_alone() {
        let platform = three_clusters(3);
        let objective = CostFunction::Hops(Pivots::Ring);
        let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
        let layout = SquareCorner.layout(Shape::new(9, 9, 9, "t").unwrap(), &[8.0, 1.0]).unwrap();
        assert!(Columns::of(&layout, &distances, objective).is_none());
    }
}

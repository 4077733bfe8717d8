//! Recursive cuts of a box, and corners.
//!
//! The members of a box, in descending order of weight, are divided into the first and the rest, and the box
//! in proportion, across any side. Or the fastest takes all but a corner, in which the others are. The
//! options of each box are ranked by a lower bound of the faces that remain, and the best few are tried in
//! full.

use super::{MemberBoxes, Members, Sides, cut, faces};
use crate::geometry::Span;

/// Divisions tried at a box with many members: those nearest to equal halves.
const MOST_DIVISIONS: usize = 48;

/// Boxes whose options a search may try, all together.
const BUDGET: usize = 300;

/// A way to divide a box among members.
#[derive(Debug, Clone, Copy)]
enum Division {
    /// The first `count` members on the lower part of this side.
    Cut { side: usize, count: usize },
    /// The first member around a corner with all others.
    Corner,
}

/// The boxes of the members; with `corners`, slow members may be in corners.
pub(super) fn by_cuts(members: &Members, whole: Sides, corners: bool) -> MemberBoxes {
    let mut search = Search { members, corners, left: BUDGET };
    search.best(whole, 0, members.len()).1
}

struct Search<'a> {
    members: &'a Members,
    corners: bool,
    /// Boxes that may still be searched more than once.
    left: usize,
}

impl Search<'_> {
    /// The least sum of faces found for members `from` to `to` in a box, and their boxes.
    fn best(&mut self, sides: Sides, from: usize, to: usize) -> (f64, MemberBoxes) {
        if sides.iter().any(|side| side.is_empty()) || from == to {
            return (0.0, Vec::new());
        }
        if to - from == 1 || sides.iter().all(|side| side.len() < 2) {
            return (faces(&sides), vec![(from, sides)]);
        }
        let mut options = self.options(sides, from, to);
        options.sort_by(|x, y| x.0.total_cmp(&y.0));
        let tried = match to - from {
            2..=4 => options.len(),
            5..=16 => 3,
            17..=32 => 2,
            _ => 1,
        };
        let tried = if self.left == 0 { 1 } else { tried };
        self.left = self.left.saturating_sub(tried);
        let mut least: Option<(f64, MemberBoxes)> = None;
        for (bound, option) in options.into_iter().take(tried) {
            if least.as_ref().is_some_and(|(cost, _)| bound >= *cost) {
                break;
            }
            let (cost, found) = self.divide(sides, from, to, option);
            if least.as_ref().is_none_or(|(least, _)| cost < *least) {
                least = Some((cost, found));
            }
        }
        least.expect("a box of several indices can be cut")
    }

    /// The boxes by one option.
    fn divide(&mut self, sides: Sides, from: usize, to: usize, option: Division) -> (f64, MemberBoxes) {
        match option {
            Division::Cut { side, count } => {
                let [low, high] = self.halves(sides, from, to, side, count);
                let (one, mut found) = self.best(low, from, from + count);
                let (other, more) = self.best(high, from + count, to);
                found.extend(more);
                (one + other, found)
            }
            Division::Corner => {
                let corner = self.corner(sides, from, to);
                let (inside, mut found) = self.best(corner, from + 1, to);
                found.extend(around(sides, corner).map(|part| (from, part)));
                (inside + outer(sides, corner), found)
            }
        }
    }

    /// All options with a lower bound of the faces that they lead to, times the largest factor by which
    /// rounding makes a part too small.
    fn options(&self, sides: Sides, from: usize, to: usize) -> Vec<(f64, Division)> {
        let mut options = Vec::new();
        let count = to - from;
        let volume = |sides: Sides| sides.iter().map(|side| side.len() as f64).product::<f64>();
        let bound = |sides: Sides, from: usize, to: usize| self.bound(sides, from, to);
        for part in self.divisions(from, to) {
            for side in (0..3).filter(|&side| sides[side].len() > 1) {
                let [low, high] = self.halves(sides, from, to, side, part);
                let first = self.members.sum(from, from + part) / self.members.sum(from, to);
                let is = volume(low) / volume(sides);
                let uneven = (is / first).max((1.0 - is) / (1.0 - first)).max(1.0);
                let least = bound(low, from, from + part) + bound(high, from + part, to);
                options.push((least * uneven, Division::Cut { side, count: part }));
            }
        }
        if self.corners && count > 1 {
            let corner = self.corner(sides, from, to);
            let rest = self.members.sum(from + 1, to) / self.members.sum(from, to);
            let is = volume(corner) / volume(sides);
            let uneven = (is / rest).max((1.0 - is) / (1.0 - rest)).max(1.0);
            let least = outer(sides, corner) + bound(corner, from + 1, to);
            if sides.iter().any(|side| side.len() > 1) && is < 1.0 {
                options.push((least * uneven, Division::Corner));
            }
        }
        options
    }

    /// Numbers of members in the first part: all, or those nearest to equal halves.
    fn divisions(&self, from: usize, to: usize) -> Vec<usize> {
        let half = self.members.sum(from, to) / 2.0;
        let most = to - from - 1;
        if most <= MOST_DIVISIONS {
            return (1..=most).collect();
        }
        let off = |count: usize| (self.members.sum(from, from + count) - half).abs();
        // The nearest ones are around the first that reaches half.
        let middle =
            self.members.before[from + 1..to].partition_point(|sum| sum - self.members.before[from] < half);
        let window = middle.saturating_sub(MOST_DIVISIONS).max(1)..=(middle + MOST_DIVISIONS + 1).min(most);
        let mut counts: Vec<usize> = window.collect();
        counts.sort_by(|&x, &y| off(x).total_cmp(&off(y)));
        counts.truncate(MOST_DIVISIONS);
        counts
    }

    fn halves(&self, sides: Sides, from: usize, to: usize, side: usize, count: usize) -> [Sides; 2] {
        let part = self.members.sum(from, from + count) / self.members.sum(from, to);
        cut(sides[side], part).map(|span| {
            let mut half = sides;
            half[side] = span;
            half
        })
    }

    /// A corner for all members but the first: as near to a cube as the box allows.
    fn corner(&self, sides: Sides, from: usize, to: usize) -> Sides {
        let volume: f64 = sides.iter().map(|side| side.len() as f64).product();
        let mut left = volume * self.members.sum(from + 1, to) / self.members.sum(from, to);
        let mut order = [0, 1, 2];
        order.sort_by_key(|&side| sides[side].len());
        let mut corner = sides;
        for (number, &side) in order.iter().enumerate() {
            let length = left.powf(1.0 / (3 - number) as f64).min(sides[side].len() as f64);
            let whole = (length.round() as u64).clamp(1, sides[side].len());
            corner[side] = Span::new(sides[side].end - whole, sides[side].end);
            left /= whole as f64;
        }
        corner
    }

    /// Lower bound of the faces of members in a box with sides in real numbers: each has at least the faces
    /// of the best box of its volume ([`touched_bound`](crate::plan::touched_bound)). Members are in
    /// descending order, so that the three cases of the bound are one after another. O(log members).
    fn bound(&self, sides: Sides, from: usize, to: usize) -> f64 {
        let mut lengths = sides.map(|side| side.len() as f64);
        lengths.sort_by(|x, y| y.total_cmp(x));
        let [m, n, k] = lengths;
        let Members { weights, before, roots, .. } = self.members;
        let total = self.members.sum(from, to);
        let slabs = from + weights[from..to].partition_point(|weight| weight / total * m >= n);
        let bars = slabs + weights[slabs..to].partition_point(|weight| weight / total * m * n >= k * k);
        let (of_slabs, of_bars) = (before[slabs] - before[from], before[bars] - before[slabs]);
        (slabs - from) as f64 * n * k
            + of_slabs / total * (m * n + m * k)
            + of_bars / total * m * n
            + 2.0 * k * (m * n / total).sqrt() * (roots[bars][0] - roots[slabs][0])
            + 3.0 * (m * n * k / total).cbrt().powi(2) * (roots[to][1] - roots[bars][1])
    }
}

/// What is left of a box without a corner at its far end, in up to three boxes.
fn around(sides: Sides, corner: Sides) -> impl Iterator<Item = Sides> {
    let mut rest = sides;
    let parts: Vec<Sides> = (0..3)
        .map(|side| {
            let mut part = rest;
            part[side] = Span::new(rest[side].start, corner[side].start);
            rest[side] = corner[side];
            part
        })
        .filter(|part| part.iter().all(|side| !side.is_empty()))
        .collect();
    parts.into_iter()
}

/// Elements of the three faces of a box that remain without a corner: a face loses the corner's face where
/// the corner is as long as the box.
fn outer(sides: Sides, corner: Sides) -> f64 {
    let (whole, inside) = (sides.map(|side| side.len() as f64), corner.map(|side| side.len() as f64));
    let face = |across: usize, one: usize, other: usize| {
        let lost =
            if corner[across].len() == sides[across].len() { inside[one] * inside[other] } else { 0.0 };
        whole[one] * whole[other] - lost
    };
    face(0, 1, 2) + face(1, 0, 2) + face(2, 0, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::volume_bound::touched_bound;

    /// A corner of 2 x 2 x 4 in a box of 4 x 4 x 4: the face across its full side loses 4 of 16 elements.
    #[test]
    fn faces_around_a_corner() {
        let whole = [Span::new(0, 4); 3];
        let corner = [Span::new(2, 4), Span::new(2, 4), Span::new(0, 4)];
        assert_eq!(outer(whole, corner), 44.0);
        let parts: Vec<Sides> = around(whole, corner).collect();
        assert_eq!(parts.len(), 2);
        let volume = |s: &Sides| s.iter().map(|side| side.len()).product::<u64>();
        assert_eq!(parts.iter().map(volume).sum::<u64>() + volume(&corner), 64);
        assert_eq!(outer(whole, [Span::new(3, 4); 3]), 48.0);
        assert_eq!(around(whole, [Span::new(3, 4); 3]).count(), 3);
    }

    /// The bound of many members is the sum of each one's, in boxes of any form.
    #[test]
    fn bounds_add_up() {
        let weights: Vec<f64> = (1..40).map(|i| f64::from(i * i)).collect();
        let members = Members::new(&weights);
        let search = Search { members: &members, corners: false, left: 0 };
        for sides in [[100, 100, 100], [1000, 100, 10], [10, 2000, 3], [7, 7, 900]] {
            let shape = Shape::new(sides[0], sides[1], sides[2], "test").unwrap();
            for (from, to) in [(0, 39), (0, 1), (3, 20), (30, 39)] {
                let share = |i: usize| members.weights[i] / members.sum(from, to);
                let wanted: f64 = (from..to).map(|i| touched_bound(shape, share(i))).sum();
                let found = search.bound(sides.map(|side| Span::new(0, side)), from, to);
                assert!((found / wanted - 1.0).abs() < 1e-12, "{sides:?} {from} {to}: {found} {wanted}");
            }
        }
    }

    /// Of many members, the divisions are the first of all sorted by their distance from equal halves.
    #[test]
    fn the_nearest_divisions_are_found() {
        for steep in [0, 1, 3, 9] {
            let weights: Vec<f64> = (1..200).map(|i| f64::from(i).powi(steep)).collect();
            let members = Members::new(&weights);
            let search = Search { members: &members, corners: false, left: 0 };
            for (from, to) in [(0, 199), (0, 50), (20, 120), (150, 199)] {
                let half = members.sum(from, to) / 2.0;
                let off = |count: usize| (members.sum(from, from + count) - half).abs();
                let mut wanted: Vec<usize> = (1..to - from).collect();
                if wanted.len() > MOST_DIVISIONS {
                    wanted.sort_by(|&x, &y| off(x).total_cmp(&off(y)));
                    wanted.truncate(MOST_DIVISIONS);
                }
                assert_eq!(search.divisions(from, to), wanted, "{steep} {from} {to}");
            }
        }
    }
}

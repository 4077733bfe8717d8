//! Layouts of two and three processors with a strip: straight lines, a strip beside a block of two, and a strip
//! beside a square.
//!
//! Source: Becker 2010, chapters 4, 5.3.1 and 6.1; DeFlumere and Lastovetsky 2014.

use super::tiling::Tiling;
use super::{Columns, LayoutMethod, consecutive, descending, layout, retain_balanced, serves};
use crate::error::{Error, Result};
use crate::geometry::Span;
use crate::plan::shares::proportional;
use crate::plan::{Layout, Shape};

/// One straight cut for two processors. For three, three strips, or a strip for one with two halves for the
/// others: two halves move less where the matrix is not much longer than wide. Cuts run in either direction.
///
/// Of the layouts whose imbalance in whole rows and columns is at most 2 % above that of the best balanced one,
/// the one of least volume is taken that leaves the fewest processors idle. Of equals, the fastest has the strip, and cuts run along the shorter side. O(1).
///
/// Square matrices: volume N^2 for two, N^2 + s2 + s3 for three (shares s2, s3 of the two slower).
///
/// # Errors
/// More than three processors: exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StraightLine;

impl LayoutMethod for StraightLine {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        serves("straight-line", weights.len(), 1, 3)?;
        let across = shape.m <= shape.n;
        let mut candidates: Vec<Layout> = Vec::new();
        if weights.len() < 3 {
            candidates.extend([across, !across].map(|across| strips(shape, weights, across)));
        } else {
            // The first of the fastest has the strip; that of a slower one moves less where it rounds to nothing.
            let first = (0..3).rev().max_by(|&i, &j| weights[i].total_cmp(&weights[j])).unwrap_or(0);
            for across in [across, !across] {
                candidates.push(strip_and_halves(shape, weights, first, across));
                candidates.push(strips(shape, weights, across));
            }
            candidates.extend(lines_of_three(shape, weights).into_iter().map(|(_, layout)| layout));
            // Columns are one of these lines, but for rounding.
            candidates.push(Columns::default().layout(shape, weights)?);
        }
        retain_balanced(&mut candidates, weights, |layout| layout);
        Ok(candidates.into_iter().min_by_key(Layout::volume).expect("several candidates"))
    }
}

/// Every simple layout of straight lines for three processors, by name: three strips in both directions, and
/// a strip for each of them with two halves for the others.
pub(super) fn lines_of_three(shape: Shape, weights: &[f64]) -> Vec<(&'static str, Layout)> {
    let across = shape.m <= shape.n;
    let mut all = Vec::new();
    for across in [across, !across] {
        all.push(("three strips", strips(shape, weights, across)));
        let halves = |first| ("strip and two halves", strip_and_halves(shape, weights, first, across));
        all.extend((0..3).map(halves));
    }
    all
}

/// Strips side by side (`across`) or one below the other.
fn strips(shape: Shape, weights: &[f64], across: bool) -> Layout {
    let (high, wide) = if across { (shape.m, shape.n) } else { (shape.n, shape.m) };
    let all = Span::new(0, high);
    let spans = consecutive(&proportional(wide, weights)).into_iter().enumerate();
    turned(shape, weights.len(), across, spans.map(|(i, cols)| (i, all, cols)).collect())
}

/// One of three processors in a strip (on the left, if `across`), the others in their order in two halves of
/// the rest.
fn strip_and_halves(shape: Shape, weights: &[f64], first: usize, across: bool) -> Layout {
    let (high, wide) = if across { (shape.m, shape.n) } else { (shape.n, shape.m) };
    let rest: Vec<usize> = (0..3).filter(|&i| i != first).collect();
    let pair = [weights[rest[0]], weights[rest[1]]];
    let widths = consecutive(&proportional(wide, &[weights[first], pair[0] + pair[1]]));
    let heights = if pair == [0.0, 0.0] { vec![high, 0] } else { proportional(high, &pair) };
    let heights = consecutive(&heights);
    let all = Span::new(0, high);
    let parts =
        vec![(first, all, widths[0]), (rest[0], heights[0], widths[1]), (rest[1], heights[1], widths[1])];
    turned(shape, 3, across, parts)
}

/// A layout from parts as (owner, across the cuts, along the cuts).
fn turned(shape: Shape, processors: usize, across: bool, parts: Vec<(usize, Span, Span)>) -> Layout {
    let turn = |(owner, rows, cols)| if across { (owner, rows, cols) } else { (owner, cols, rows) };
    layout(shape, processors, parts.into_iter().map(turn))
}

/// The fastest processor has a strip across the shorter side; the two slower ones share the rest, each as
/// long as the rest is wide. O(1).
///
/// On the unit square the sum of half-perimeters is 3 + a2 + a3, the smallest of any three rectangles. The
/// lower right corner belongs to the slowest processor.
///
/// Source: DeFlumere and Lastovetsky 2014 ("block rectangle"); Becker 2010, section 6.1 (there one of the
/// straight-line layouts).
///
/// # Errors
/// More than three processors: exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockRectangle;

impl LayoutMethod for BlockRectangle {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        serves("block-rectangle", weights.len(), 1, 3)?;
        let tiling = strip_and_block(&descending(weights));
        let tiling = if shape.m > shape.n { tiling.turned() } else { tiling };
        Ok(tiling.layout(shape, weights, 1.0))
    }
}

/// The fastest processor on the left, the others on the right, one below the other.
pub(super) fn strip_and_block(order: &[usize]) -> Tiling {
    let (first, rest) = order.split_at(1);
    let mut parts = vec![Tiling::Whole(first[0])];
    if !rest.is_empty() {
        parts.push(Tiling::Rows(rest.iter().map(|&i| Tiling::Whole(i)).collect()));
    }
    Tiling::Cols(parts)
}

/// The second fastest processor has a strip across the shorter side, the slowest a square in a corner of the
/// rest, and the fastest the remainder. O(1).
///
/// On the unit square the sum of half-perimeters is 3 + 2 sqrt(a3). With fewer than three processors of
/// positive weight, the layout is the strip or the whole matrix.
///
/// Source: DeFlumere and Lastovetsky 2014.
///
/// # Errors
/// More than three processors, or a square that does not fit beside the strip (on the unit square:
/// sqrt(a3) > 1 - a2): exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SquareRectangle;

impl LayoutMethod for SquareRectangle {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        serves("square-rectangle", weights.len(), 1, 3)?;
        let order = descending(weights);
        let total: f64 = weights.iter().sum();
        let (long, short) = (shape.m.max(shape.n) as f64, shape.m.min(shape.n) as f64);
        if let &[_, second, last] = order.as_slice() {
            let side = (weights[last] / total * long * short).sqrt();
            let room = (1.0 - weights[second] / total) * long;
            if side > room.min(short) * (1.0 + 1e-12) {
                return Err(Error::infeasible(
                    format!(
                        "a square of side {side:.0} does not fit beside the strip into {room:.0} x {short}"
                    ),
                    "use block-rectangle, straight-line or auto",
                ));
            }
        }
        let tiling = strip_and_square(&order);
        let tiling = if shape.m > shape.n { tiling.turned() } else { tiling };
        Ok(tiling.layout(shape, weights, 1.0))
    }
}

/// The strip on the right, the square in the lower right corner of the rest.
pub(super) fn strip_and_square(order: &[usize]) -> Tiling {
    match *order {
        [first, second, last] => Tiling::Cols(vec![
            Tiling::Corners { owner: first, blocks: vec![(1.0, Tiling::Whole(last))] },
            Tiling::Whole(second),
        ]),
        _ => Tiling::Cols(order.iter().map(|&i| Tiling::Whole(i)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::{Rows, SquareCorner, idle, imbalance};
    use crate::random::Random;
    use proptest::prelude::*;

    fn volume(shape: Shape, weights: &[f64]) -> u64 {
        StraightLine.layout(shape, weights).unwrap().volume()
    }

    #[test]
    fn volumes_of_the_thesis() {
        let square = Shape::new(100, 100, 100, "test").unwrap();
        for ratio in 1..26 {
            assert_eq!(volume(square, &[f64::from(ratio), 1.0]), 100 * 100);
        }
        // N^2 + s2 + s3 = 10,000 + 3,000 + 2,000, whatever the order.
        assert_eq!(volume(square, &[5.0, 3.0, 2.0]), 15_000);
        assert_eq!(volume(square, &[2.0, 5.0, 3.0]), 15_000);
        assert_eq!(volume(square, &[1.0]), 0);
        assert!(StraightLine.layout(square, &[1.0; 4]).is_err());
    }

    #[test]
    fn the_cut_runs_along_the_shorter_side() {
        let high = Shape::new(100, 10, 20, "test").unwrap();
        let wide = Shape::new(20, 10, 100, "test").unwrap();
        assert_eq!(volume(high, &[3.0, 1.0]), 10 * 20);
        assert_eq!(volume(wide, &[3.0, 1.0]), 10 * 20);
    }

    /// Rounding to one of 100 columns costs at most 1 % of balance, and a cut of the 130 rows moves 1.3 times as much.
    #[test]
    fn rounding_does_not_turn_the_cut() {
        let shape = Shape::new(130, 1000, 100, "test").unwrap();
        for slow in 20..50 {
            let weights = [130.0 - f64::from(slow), f64::from(slow)];
            assert_eq!(volume(shape, &weights), 1000 * 100, "{slow} rows of 130");
        }
    }

    /// On long matrices three strips move less than a strip and two halves.
    #[test]
    fn strips_on_long_matrices() {
        let long = Shape::new(20, 30, 1000, "test").unwrap();
        assert_eq!(volume(long, &[80.0, 10.0, 10.0]), 2 * 20 * 30);
        assert_eq!(volume(Shape::new(100, 10, 1000, "test").unwrap(), &[1.0; 3]), 2 * 100 * 10);
        assert_eq!(volume(Shape::new(1000, 10, 100, "test").unwrap(), &[1.0; 3]), 2 * 100 * 10);
    }

    /// Strips across the short side leave two of the three without a share, and the volume is 0.
    #[test]
    fn no_processor_starves_on_thin_matrices() {
        for ([m, n], weights, expected) in [
            ([10_000, 11], [20.0, 5.0, 20.0], [48_895, 12_221, 48_884]),
            ([2, 10_000], [5.0, 1.0, 20.0], [3846, 768, 15_386]),
            ([7, 10_000], [80.0, 10.0, 10.0], [56_000, 7000, 7000]),
        ] {
            let shape = Shape::new(m, 1, n, "test").unwrap();
            assert_eq!(StraightLine.layout(shape, &weights).unwrap().shares(), expected);
        }
        // Three rows are divided evenly, and twenty columns are not.
        assert_eq!(
            StraightLine.layout(Shape::new(3, 1, 20, "test").unwrap(), &[2.0, 1.0]).unwrap().shares(),
            [40, 20]
        );
    }

    /// Every cut of small matrices in either direction: none that leaves both processors a part and is within 2 % of
    /// the best balance of all moves less.
    #[test]
    fn no_cut_moves_less_at_equal_balance() {
        for (m, n, fast) in (1..=14)
            .flat_map(|m| (1..=14).map(move |n| (m, n)))
            .flat_map(|(m, n)| [1.0, 1.2, 1.7, 2.0, 3.0, 7.3].map(|fast| (m, n, fast)))
        {
            let (shape, weights) = (Shape::new(m, 3, n, "test").unwrap(), [fast, 1.0]);
            let cut = |across: bool, at: u64| {
                let (high, wide) = if across { (m, n) } else { (n, m) };
                let spans = [Span::new(0, at), Span::new(at, wide)];
                turned(shape, 2, across, (0..2).map(|i| (i, Span::new(0, high), spans[i])).collect())
            };
            let cuts = (0..=n).map(|at| cut(true, at)).chain((0..=m).map(|at| cut(false, at)));
            let cuts: Vec<Layout> = cuts.collect();
            let least = cuts.iter().map(|cut| imbalance(cut, &weights)).fold(f64::INFINITY, f64::min);
            let near = |cut: &&Layout| idle(cut) == 0 && imbalance(cut, &weights) <= least * 1.02;
            let ours = StraightLine.layout(shape, &weights).unwrap();
            assert!(imbalance(&ours, &weights) <= least * 1.02 * (1.0 + 1e-12), "{m} x {n} at {fast}:1");
            if let Some(volume) =
                cuts.iter().filter(near).map(Layout::volume).min().filter(|_| idle(&ours) == 0)
            {
                assert_eq!(ours.volume(), volume, "{m} x {n} at {fast}:1");
            }
        }
    }

    proptest! {
        /// No strips, and no columns of rectangles in whole numbers, balance better by more than 2 %, and none
        /// that are within 2 % of the best balance move less, unless they leave more processors idle.
        #[test]
        fn no_simple_layout_is_better(
            weights in prop::collection::vec(1u32..50, 2..4), m in 2u64..400, k in 1u64..5, n in 2u64..400,
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let shape = Shape::new(m, k, n, "test").unwrap();
            let ours = StraightLine.layout(shape, &weights).unwrap();
            let balance = imbalance(&ours, &weights);
            let lines = if weights.len() == 3 { lines_of_three(shape, &weights) } else { Vec::new() };
            let others = [Rows::default().layout(shape, &weights).unwrap(), Columns::default().layout(shape, &weights).unwrap()];
            let others: Vec<Layout> = lines.into_iter().map(|(_, layout)| layout).chain(others).collect();
            let least = others.iter().map(|other| imbalance(other, &weights)).fold(balance, f64::min);
            prop_assert!(balance <= least * 1.02 * (1.0 + 1e-12), "{balance} {least}");
            for other in others.iter().filter(|other| idle(other) <= idle(&ours)) {
                let uneven = imbalance(other, &weights) > least * 1.02;
                prop_assert!(uneven || ours.volume() <= other.volume(), "{} {}", ours.volume(), other.volume());
            }
        }
    }

    #[test]
    fn the_block_costs_the_closed_form() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        for weights in [[5.0, 3.0, 2.0], [2.0, 5.0, 3.0], [1.0, 1.0, 98.0]] {
            let total: f64 = weights.iter().sum();
            let slow = 1.0 - weights.iter().copied().fold(0.0, f64::max) / total;
            let layout = BlockRectangle.layout(shape, &weights).unwrap();
            let metrics = Metrics::of_layout(&layout, 1.0);
            assert!((metrics.sum_half_perimeters.unwrap() - (3.0 + slow)).abs() < 1e-9);
            let line = Metrics::of_layout(&StraightLine.layout(shape, &weights).unwrap(), 1.0);
            assert_eq!(metrics.volume, line.volume);
        }
        assert_eq!(BlockRectangle.layout(shape, &[1.0; 4]).unwrap_err().exit_code(), 1);
        assert_eq!(BlockRectangle.layout(shape, &[1.0, 0.0, 0.0]).unwrap().shares(), [10_000, 0, 0]);
    }

    const SIDE: usize = 8;

    /// Half-perimeters in lines: distinct rows and columns of each owner, summed.
    fn lines(map: &[[u8; SIDE]; SIDE]) -> usize {
        (0..3)
            .map(|owner| {
                let rows = map.iter().filter(|row| row.contains(&owner)).count();
                rows + (0..SIDE).filter(|&j| map.iter().any(|row| row[j] == owner)).count()
            })
            .sum()
    }

    type Map = [[u8; SIDE]; SIDE];

    /// Push: exchanges the elements of one edge line of an owner's bounding rectangle with others' elements
    /// inside it, so that the rectangle shrinks; `None` if there is no room for them.
    fn push(map: &Map, owner: u8, edge: usize, pick: &mut impl FnMut() -> usize) -> Option<Map> {
        let cells: Vec<(usize, usize)> = (0..SIDE * SIDE).map(|at| (at / SIDE, at % SIDE)).collect();
        let own: Vec<_> = cells.iter().copied().filter(|&(i, j)| map[i][j] == owner).collect();
        let along = |&(i, j): &(usize, usize)| if edge < 2 { i } else { j };
        let line = if edge.is_multiple_of(2) {
            own.iter().map(along).min()?
        } else {
            own.iter().map(along).max()?
        };
        let range = |of: &dyn Fn(&(usize, usize)) -> usize| {
            own.iter().map(of).min().unwrap_or(0)..=own.iter().map(of).max().unwrap_or(0)
        };
        let (rows, cols) = (range(&|c| c.0), range(&|c| c.1));
        let inside = |c: &(usize, usize)| rows.contains(&c.0) && cols.contains(&c.1) && along(c) != line;
        let mut room: Vec<_> = cells.iter().filter(|c| inside(c) && map[c.0][c.1] != owner).collect();
        let mut next = *map;
        for &(i, j) in own.iter().filter(|c| along(c) == line) {
            if room.is_empty() {
                return None;
            }
            let &(x, y) = room.swap_remove(pick() % room.len());
            (next[i][j], next[x][y]) = (map[x][y], owner);
        }
        Some(next)
    }

    /// Push-descent: pushes of the slower processors, and exchanges of two elements, whenever the cost does
    /// not rise.
    fn descend(map: &mut Map, pick: &mut impl FnMut() -> usize) {
        let mut cost = lines(map);
        for round in 0..600 {
            let next = if round % 2 == 0 {
                push(map, 1 + (pick() % 2) as u8, pick() % 4, pick)
            } else {
                let (a, b) = (pick() % (SIDE * SIDE), pick() % (SIDE * SIDE));
                let mut next = *map;
                next[a / SIDE][a % SIDE] = map[b / SIDE][b % SIDE];
                next[b / SIDE][b % SIDE] = map[a / SIDE][a % SIDE];
                Some(next)
            };
            if let Some(next) = next.filter(|next| lines(next) <= cost) {
                (cost, *map) = (lines(&next), next);
            }
        }
    }

    /// A descent from a random map of `second` and `third` elements of the slower processors: its cost in
    /// lines.
    fn descent(second: usize, third: usize, seed: u64) -> usize {
        let mut random = Random::new(seed);
        let mut pick = || random.word() as usize;
        let mut map = [[0u8; SIDE]; SIDE];
        for i in 0..second + third {
            map[i / SIDE][i % SIDE] = if i < second { 1 } else { 2 };
        }
        for i in (1..SIDE * SIDE).rev() {
            let j = pick() % (i + 1);
            let keep = map[i / SIDE][i % SIDE];
            map[i / SIDE][i % SIDE] = map[j / SIDE][j % SIDE];
            map[j / SIDE][j % SIDE] = keep;
        }
        descend(&mut map, &mut pick);
        lines(&map)
    }

    proptest! {
        /// No descent from a random owner map ends below the best of the closed forms in real arithmetic.
        #[test]
        fn push_descent_never_beats_the_closed_forms(
            a in 1usize..32, b in 1usize..32, seed in any::<u64>(),
        ) {
            let (second, third) = (a.max(b), a.min(b));
            let whole = SIDE * SIDE;
            prop_assume!(second + third + second <= whole);
            let found = descent(second, third, seed);
            let (a2, a3) = (second as f64 / whole as f64, third as f64 / whole as f64);
            let mut closed = 3.0 + a2 + a3;
            if a2.sqrt() + a3.sqrt() <= 1.0 {
                closed = closed.min(2.0 + 2.0 * a2.sqrt() + 2.0 * a3.sqrt());
            }
            if a3.sqrt() <= 1.0 - a2 {
                closed = closed.min(3.0 + 2.0 * a3.sqrt());
            }
            prop_assert!(found as f64 / SIDE as f64 >= closed - 1e-9, "{} {}", found, closed);
        }
    }

    /// The oracle can detect a better shape: the best of some descents ends at the closed form, two 3 x 3
    /// squares in corners.
    #[test]
    fn push_descent_finds_the_square_corner() {
        let best = (0..300).map(|seed| descent(9, 9, seed * 7919)).min();
        assert_eq!(best, Some(16 + 12));
    }

    /// The three shapes each win somewhere (Figure 6.9's regions and the 2014 paper's).
    #[test]
    fn each_shape_has_its_region() {
        let shape = Shape::new(1200, 1200, 1200, "test").unwrap();
        let volumes = |weights: &[f64]| {
            let methods: [&dyn LayoutMethod; 3] = [&SquareCorner, &SquareRectangle, &BlockRectangle];
            methods.map(|method| {
                method
                    .layout(shape, weights)
                    .map_or(u64::MAX, |l| Metrics::of_layout(&l, 1.0).volume.unwrap())
            })
        };
        let winner = |weights: &[f64]| (0..3).min_by_key(|&i| volumes(weights)[i]).unwrap();
        assert_eq!(winner(&[20.0, 1.0, 1.0]), 0);
        assert_eq!(winner(&[50.0, 49.0, 1.0]), 1);
        assert_eq!(winner(&[1.0, 1.0, 1.0]), 2);
    }

    #[test]
    fn the_square_costs_the_closed_form() {
        let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
        for weights in [[5.0, 4.0, 1.0], [1.0, 50.0, 13.0], [40.0, 35.0, 25.0]] {
            let total: f64 = weights.iter().sum();
            let last = weights.iter().copied().fold(f64::INFINITY, f64::min) / total;
            let metrics = Metrics::of_layout(&SquareRectangle.layout(shape, &weights).unwrap(), 1.0);
            assert!((metrics.sum_half_perimeters.unwrap() - (3.0 + 2.0 * last.sqrt())).abs() < 3e-3);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shape = Shape::new(10, 10, 10, "test").unwrap();
        // sqrt(1/4) + 3/8 < 1, sqrt(1/3) + 1/3 < 1: fits at any speeds on a square.
        assert!(SquareRectangle.layout(shape, &[1.0; 3]).is_ok());
        assert_eq!(SquareRectangle.layout(shape, &[1.0; 4]).unwrap_err().exit_code(), 1);
        let flat = Shape::new(4, 4, 100, "test").unwrap();
        assert_eq!(SquareRectangle.layout(flat, &[1.0; 3]).unwrap_err().exit_code(), 1);
        assert_eq!(SquareRectangle.layout(flat, &[1.0, 0.0, 3.0]).unwrap().shares(), [100, 0, 300]);
        let high = Shape::new(100, 4, 4, "test").unwrap();
        assert!(SquareRectangle.layout(high, &[90.0, 9.0, 1.0]).is_ok());
    }
}

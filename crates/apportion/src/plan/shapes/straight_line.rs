//! Straight-line partitioning of two and three processors (Becker 2010, chapters 4, 5.3.1 and 6.1).

use super::{columns, consecutive, layout, retain_balanced, serves};
use crate::error::Result;
use crate::geometry::Span;
use crate::plan::shares::proportional;
use crate::plan::{Layout, Shape};

/// One straight cut for two processors. For three, three strips, or a strip for one with two halves for the
/// others: two halves move less where the matrix is not much longer than wide. Cuts run in either direction.
///
/// Of the layouts that balance the processors best in whole rows and columns, to half a per cent, that of
/// least volume is taken. Of equals, the fastest has the strip, and cuts run along the shorter side. O(1).
///
/// Square matrices: volume N^2 for two, N^2 + s2 + s3 for three (shares s2, s3 of the two slower).
///
/// # Errors
/// More than three processors: exit code 1.
pub fn straight_line(shape: Shape, weights: &[f64]) -> Result<Layout> {
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
        candidates.push(columns(shape, weights)?);
    }
    retain_balanced(&mut candidates, weights, |layout| layout);
    Ok(candidates.into_iter().min_by_key(Layout::volume).expect("several candidates"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::{imbalance, rows};
    use proptest::prelude::*;

    fn volume(shape: Shape, weights: &[f64]) -> u64 {
        straight_line(shape, weights).unwrap().volume()
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
        assert!(straight_line(square, &[1.0; 4]).is_err());
    }

    #[test]
    fn the_cut_runs_along_the_shorter_side() {
        let high = Shape::new(100, 10, 20, "test").unwrap();
        let wide = Shape::new(20, 10, 100, "test").unwrap();
        assert_eq!(volume(high, &[3.0, 1.0]), 10 * 20);
        assert_eq!(volume(wide, &[3.0, 1.0]), 10 * 20);
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
            assert_eq!(straight_line(shape, &weights).unwrap().shares(), expected);
        }
        // Three rows are divided evenly, and twenty columns are not.
        assert_eq!(
            straight_line(Shape::new(3, 1, 20, "test").unwrap(), &[2.0, 1.0]).unwrap().shares(),
            [40, 20]
        );
    }

    proptest! {
        /// No strips, and no columns of rectangles in whole numbers, balance better by more than half a per
        /// cent, and none that balance as well move less.
        #[test]
        fn no_simple_layout_is_better(
            weights in prop::collection::vec(1u32..50, 2..4), m in 2u64..400, k in 1u64..5, n in 2u64..400,
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let shape = Shape::new(m, k, n, "test").unwrap();
            let ours = straight_line(shape, &weights).unwrap();
            let balance = imbalance(&ours, &weights);
            let lines = if weights.len() == 3 { lines_of_three(shape, &weights) } else { Vec::new() };
            let others = [rows(shape, &weights).unwrap(), columns(shape, &weights).unwrap()];
            for other in lines.into_iter().map(|(_, layout)| layout).chain(others) {
                let theirs = imbalance(&other, &weights);
                prop_assert!(balance <= theirs * 1.005 * (1.0 + 1e-12), "{balance} {theirs}");
                prop_assert!(theirs > balance || ours.volume() <= other.volume());
            }
        }
    }
}

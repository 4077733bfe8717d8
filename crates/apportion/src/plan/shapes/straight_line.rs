//! Straight-line partitioning of two and three processors (Becker 2010, chapters 4, 5.3.1 and 6.1).

use super::{consecutive, layout, serves};
use crate::error::Result;
use crate::geometry::Span;
use crate::plan::shares::proportional;
use crate::plan::{Layout, Shape};

/// One straight cut for two processors. For three, the fastest has a strip of its own and the other two share
/// the rest. Cuts run along the shorter side, so that the volume is smallest. O(1).
///
/// Square matrices: volume N^2 for two, N^2 + s2 + s3 for three (shares s2, s3 of the two slower).
///
/// # Errors
/// More than three processors: exit code 1.
pub fn straight_line(shape: Shape, weights: &[f64]) -> Result<Layout> {
    serves("straight-line", weights.len(), 1, 3)?;
    // Works on the matrix as if it were at least as wide as high, and transposes the result.
    let turned = shape.m > shape.n;
    let (high, wide) = if turned { (shape.n, shape.m) } else { (shape.m, shape.n) };
    let turn = |(owner, rows, cols): (usize, Span, Span)| {
        if turned { (owner, cols, rows) } else { (owner, rows, cols) }
    };
    let all = Span::new(0, high);
    let parts: Vec<(usize, Span, Span)> = if let &[a, b, c] = weights {
        // The first of the fastest has the strip; the others keep their order.
        let first = (0..3).rev().max_by(|&i, &j| weights[i].total_cmp(&weights[j])).unwrap_or(0);
        let rest: Vec<usize> = (0..3).filter(|&i| i != first).collect();
        let fastest = weights[first];
        let widths = consecutive(&proportional(wide, &[fastest, a + b + c - fastest]));
        let pair = [weights[rest[0]], weights[rest[1]]];
        let heights = if pair == [0.0, 0.0] { vec![high, 0] } else { proportional(high, &pair) };
        let heights = consecutive(&heights);
        vec![(first, all, widths[0]), (rest[0], heights[0], widths[1]), (rest[1], heights[1], widths[1])]
    } else {
        consecutive(&proportional(wide, weights))
            .into_iter()
            .enumerate()
            .map(|(i, cols)| (i, all, cols))
            .collect()
    };
    Ok(layout(shape, weights.len(), parts.into_iter().map(turn)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;

    fn volume(shape: Shape, weights: &[f64]) -> u64 {
        Metrics::of_layout(&straight_line(shape, weights).unwrap(), 1.0).volume.unwrap()
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
}

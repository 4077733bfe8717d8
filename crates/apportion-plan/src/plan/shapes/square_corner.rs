//! Squares of the slower processors, with the fastest around them: in corners, and for comparison on an edge or
//! in the middle.
//!
//! Source: Becker 2010, Algorithms 4.1 and 5.1, Theorems 5.1 and 5.2 (two processors), section 6.1 (three),
//! section 8.1 (more, on the diagonal), section 8.3 (rectangular products); sections 5.5.1 to 5.5.3, Figures
//! 5.8 and 5.9, Table 5.2 (edge and middle).

use super::tiling::Tiling;
use super::{LayoutMethod, descending, layout, serves};
use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::plan::{Layout, Shape};

/// Squares of sides sqrt(s_i m n) on the diagonal: the slowest processor's in the lower right corner, the
/// next one's in the upper left, and further ones after that. The fastest processor (ties: the first) has the
/// rest. O(p log p).
///
/// Volume 2 k sum of the sides. No square shares a row or column with another, so that only the fastest
/// communicates with others (the five rules of section 8.1). Sides are rounded up or down so that loads
/// balance best, and differ by one at most.
///
/// # Errors
/// Squares that do not fit along the shorter side without sharing rows or columns: exit code 1. For a single
/// square that is too long, a strip across the shorter side moves less than any corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SquareCorner;

impl LayoutMethod for SquareCorner {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let order = descending(weights);
        let total: f64 = weights.iter().sum();
        let area = shape.m as f64 * shape.n as f64;
        let sides: Vec<f64> = order[1..].iter().map(|&i| (weights[i] / total * area).sqrt()).collect();
        let length: f64 = sides.iter().sum();
        let limit = shape.m.min(shape.n) as f64;
        // The tolerance lets squares meet at their corners (2:1:1).
        if length > limit * (1.0 + 1e-12) {
            let (what, remedy) = if let &[side] = sides.as_slice() {
                (
                    format!(
                        "a square of side {side:.0} does not fit into a corner of {} x {}",
                        shape.m, shape.n
                    ),
                    "use straight-line or hybrid: a strip moves less than any corner here",
                )
            } else {
                (
                    format!(
                        "the sides of the squares, {:.1} to {:.1}, add up to {:.6} times the shorter side of \
                         {} x {}, more than 1, and would overlap on the diagonal (on a square matrix three \
                         processors need sqrt(s2) + sqrt(s3) <= 1, such as 2:1:1)",
                        sides.last().unwrap_or(&0.0),
                        sides[0],
                        length / limit,
                        shape.m,
                        shape.n
                    ),
                    "use recursive or auto, which support any speeds",
                )
            };
            return Err(Error::infeasible(what, remedy));
        }
        Ok(diagonal(&order).layout(shape, weights, 1.0))
    }
}

/// Squares on the diagonal, for processors given from the fastest to the slowest.
pub(super) fn diagonal(order: &[usize]) -> Tiling {
    match *order {
        [owner] => Tiling::Whole(owner),
        _ => Tiling::Corners {
            owner: order[0],
            blocks: order[1..].iter().map(|&i| (1.0, Tiling::Whole(i))).collect(),
        },
    }
}

/// The square of the slower of two processors.
struct Square {
    /// Rank of the faster processor.
    fast: usize,
    /// Rank of the slower processor.
    slow: usize,
    /// Rows of the slower one's square.
    high: u64,
    /// Columns of the slower one's square.
    wide: u64,
}

/// The sides of the square for two processors, as [`SquareCorner`] makes it.
fn one_square(shape: Shape, weights: &[f64]) -> Result<Square> {
    let slow = usize::from(weights[1] <= weights[0]);
    let square =
        SquareCorner.layout(shape, weights)?.rects_by_owner()[slow].first().copied().unwrap_or_default();
    Ok(Square { fast: 1 - slow, slow, high: square.rows.len(), wide: square.cols.len() })
}

/// The square corner for runs that compute while data travel, with C2, X, Y, … in proportion to the weights, so that III, IV, V, … take equally long.
/// O(p log p).
///
/// The fastest processor computes C1, which needs no message (II), while data travel (I). Then all compute: the
/// fastest the rest C2 of its part (III), the others their squares X and Y (IV, V). The run takes t = max(I, II)
/// + max(III, IV, V) (Becker 2010, sections 5.5.4 and 6.1.4).
///
/// With sides f a_i, where a_i are those in proportion, a their sum and A = m n, the part C2 and the squares
/// together are A - (m - f a)(n - f a) = f a (m + n) - f^2 a^2, and each square is s_i of it where its area
/// is f^2 s_i A. Hence f = a (m + n) / (A + a^2): on a square matrix 2 q / (1 + q^2) with q = sum sqrt(s_i).
/// f is at most 1 where the squares in proportion fit, and f a at most the shorter side only there.
///
/// # Errors
/// As [`SquareCorner`].
pub(crate) fn square_corner_for_overlap(shape: Shape, weights: &[f64]) -> Result<Layout> {
    square_corner_scaled(shape, weights, overlap_factor(shape, weights))
}

/// The factor f of [`square_corner_for_overlap`].
fn overlap_factor(shape: Shape, weights: &[f64]) -> f64 {
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let [m, n] = [shape.m as f64, shape.n as f64];
    let a: f64 = order[1..].iter().map(|&i| (weights[i] / total * m * n).sqrt()).sum();
    a * (m + n) / (m * n + a * a)
}

/// The square corner with sides `factor` times those in proportion to the weights.
///
/// # Errors
/// As [`SquareCorner`].
pub(crate) fn square_corner_scaled(shape: Shape, weights: &[f64], factor: f64) -> Result<Layout> {
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let mut scaled: Vec<f64> = weights.iter().map(|w| factor * factor * w / total).collect();
    scaled[order[0]] = 1.0 - order[1..].iter().map(|&i| scaled[i]).sum::<f64>();
    SquareCorner.layout(shape, &scaled)
}

/// A square as for [`SquareCorner`], in the middle of the lower edge. O(1).
///
/// The same volume, in five messages instead of four, and a longer outline.
///
/// # Errors
/// Not two processors, or a square that does not fit: exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SquareEdge;

impl LayoutMethod for SquareEdge {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        serves("square-edge", weights.len(), 2, 2)?;
        let Square { fast, slow, high, wide } = one_square(shape, weights)?;
        let corner = [shape.m - high, (shape.n - wide) / 2];
        Ok(with_square(shape, fast, slow, rect_at(corner, high, wide)))
    }
}

/// The rectangle of `high` rows and `wide` columns whose first element is `[row, column]`.
fn rect_at([row, col]: [u64; 2], high: u64, wide: u64) -> Rect {
    Rect::new(Span::new(row, row + high), Span::new(col, col + wide))
}

/// The layout in which `slow` owns `square` and `fast` the rest.
fn with_square(shape: Shape, fast: usize, slow: usize, square: Rect) -> Layout {
    let Rect { rows: band, cols } = square;
    let all = Span::new(0, shape.n);
    let parts = [
        (fast, Span::new(0, band.start), all),
        (fast, band, Span::new(0, cols.start)),
        (slow, band, cols),
        (fast, band, Span::new(cols.end, shape.n)),
        (fast, Span::new(band.end, shape.m), all),
    ];
    layout(shape, 2, parts)
}

/// A square as for [`SquareCorner`], in the middle; the rest has a hole. O(1).
///
/// The same volume, in six messages instead of four, and a longer outline.
///
/// # Errors
/// Not two processors, or a square that does not fit: exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SquareMiddle;

impl LayoutMethod for SquareMiddle {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        serves("square-middle", weights.len(), 2, 2)?;
        let Square { fast, slow, high, wide } = one_square(shape, weights)?;
        let corner = [(shape.m - high) / 2, (shape.n - wide) / 2];
        Ok(with_square(shape, fast, slow, rect_at(corner, high, wide)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::StraightLine;
    use crate::plan::{Metrics, communication_free, interrupts, outlines};

    fn metrics(n: u64, ratio: f64) -> Metrics {
        let shape = Shape::new(n, n, n, "test").unwrap();
        Metrics::of_layout(&SquareCorner.layout(shape, &[ratio, 1.0]).unwrap(), 1.0)
    }

    #[test]
    fn volume_is_two_n_roots_of_the_share() {
        let n = 1000.0_f64;
        for ratio in 3..=25 {
            let side = n / (f64::from(ratio) + 1.0).sqrt();
            let volume = metrics(1000, f64::from(ratio)).volume.unwrap() as f64;
            assert!((volume - 2.0 * n * side).abs() <= n, "{ratio}: {volume}");
        }
        assert_eq!(metrics(1000, 3.0).volume, Some(1_000_000));
        assert_eq!(metrics(1000, 9.0).volume, Some(632_000));
    }

    /// Equations (5.10) to (5.12): 2 sqrt(s2) (1 - sqrt(s2)) N^2 one way, 2 s2 N^2 the other.
    #[test]
    fn directions_are_those_of_the_thesis() {
        let n = 1200;
        for (ratio, side) in [(3.0, 600), (8.0, 400), (15.0, 300), (24.0, 240)] {
            let table = metrics(n, ratio).volume_matrix.unwrap();
            assert_eq!(table[1][0], 2 * side * (n - side));
            assert_eq!(table[0][1], 2 * side * side);
        }
    }

    #[test]
    fn crossovers_are_at_three_and_two_to_one() {
        let line = |ratio: f64| {
            let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
            Metrics::of_layout(&StraightLine.layout(shape, &[ratio, 1.0]).unwrap(), 1.0)
        };
        for ratio in [1.0, 1.5, 2.5, 2.9, 3.1, 4.0, 25.0] {
            let serial = metrics(1000, ratio).volume < line(ratio).volume;
            assert_eq!(serial, ratio > 3.0, "serial {ratio}");
        }
        for ratio in [1.0, 1.5, 1.9, 2.1, 2.5, 3.0, 25.0] {
            let parallel = metrics(1000, ratio).largest_direction() < line(ratio).largest_direction();
            assert_eq!(parallel, ratio > 2.0, "parallel {ratio}");
        }
    }

    #[test]
    fn squares_that_do_not_fit_are_refused() {
        let flat = Shape::new(10, 10, 1000, "test").unwrap();
        assert_eq!(SquareCorner.layout(flat, &[1.0, 1.0]).unwrap_err().exit_code(), 1);
        let cube = Shape::new(10, 10, 10, "test").unwrap();
        assert_eq!(SquareCorner.layout(cube, &[1.0; 3]).unwrap_err().exit_code(), 1);
        assert_eq!(SquareCorner.layout(cube, &[5.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap_err().exit_code(), 1);
        // Just beyond 2:1:1 the message shows by how much, and names the limit.
        let error = SquareCorner.layout(cube, &[1.9999, 1.0, 1.0]).unwrap_err().to_string();
        assert!(error.contains("1.000013 times") && error.contains("2:1:1"), "{error}");
        assert_eq!(SquareCorner.layout(cube, &[1.0, 9.0]).unwrap().shares(), [9, 91]);
        assert_eq!(SquareCorner.layout(cube, &[1.0, 0.0]).unwrap().shares(), [100, 0]);
        let dot = Shape::new(1, 1, 1, "test").unwrap();
        assert_eq!(SquareCorner.layout(dot, &[1.0, 1.0]).unwrap().shares().iter().sum::<u64>(), 1);
    }

    /// (6.6): 2 N (sqrt(s2) + sqrt(s3)); (6.7): 2:1:1 is the limit, where the squares meet.
    #[test]
    fn two_squares() {
        let cube = Shape::new(1000, 1000, 1000, "test").unwrap();
        for weights in [[90.0, 9.0, 1.0], [80.0, 4.0, 16.0], [2.0, 1.0, 1.0], [25.0, 61.0, 4.0]] {
            let sides: f64 = weights.iter().map(|w| w / weights.iter().sum::<f64>()).map(f64::sqrt).sum();
            let fast = weights.iter().copied().fold(0.0, f64::max) / weights.iter().sum::<f64>();
            let exact = 2e6 * (sides - fast.sqrt());
            match SquareCorner.layout(cube, &weights) {
                Ok(layout) => {
                    let metrics = Metrics::of_layout(&layout, 1.0);
                    assert!((metrics.volume.unwrap() as f64 - exact).abs() <= 4000.0, "{weights:?}");
                    let slow: Vec<usize> = descending(&weights)[1..].to_vec();
                    let table = metrics.volume_matrix.unwrap();
                    assert_eq!((table[slow[0]][slow[1]], table[slow[1]][slow[0]]), (0, 0));
                }
                Err(error) => assert!(exact > 2e6, "{weights:?}: {error}"),
            }
        }
        assert!(SquareCorner.layout(cube, &[2.0, 1.0, 1.0]).is_ok());
        assert!(SquareCorner.layout(cube, &[1.99, 1.0, 1.0]).is_err());
    }

    /// Section 8.1: squares only, no two in the same row or column, areas in proportion, one part each.
    #[test]
    fn the_five_rules_of_the_diagonal() {
        let cube = Shape::new(900, 900, 900, "test").unwrap();
        let weights = [1.0, 4.0, 65.0, 1.0, 9.0, 1.0];
        let layout = SquareCorner.layout(cube, &weights).unwrap();
        assert_eq!(layout.shares(), [10_000, 40_000, 650_000, 10_000, 90_000, 10_000]);
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.volume, Some(2 * 900 * (100 + 200 + 100 + 300 + 100)));
        let table = metrics.volume_matrix.unwrap();
        for (to, line) in table.iter().enumerate() {
            for (from, &moved) in line.iter().enumerate() {
                assert_eq!(moved > 0, (to == 2) != (from == 2), "{to} {from}");
            }
        }
        for (i, rects) in layout.rects_by_owner().iter().enumerate().filter(|(i, _)| *i != 2) {
            assert_eq!((rects.len(), rects[0].rows.len()), (1, rects[0].cols.len()), "{i}");
        }
    }

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    /// The thesis's formula, from the layout: elements of C per second for each processor, and seconds per
    /// element that travels in the busiest direction.
    fn formula(layout: &Layout, rates: [f64; 3], per_element: f64) -> f64 {
        let metrics = Metrics::of_layout(layout, 1.0);
        let moved = metrics.largest_direction().unwrap() as f64 * per_element;
        let free = metrics.communication_free.unwrap()[0];
        let shares = layout.shares();
        let rest = [shares[0] - free, shares[1], shares[2]];
        let later = rest.iter().zip(rates).map(|(&c, rate)| c as f64 / rate).fold(0.0, f64::max);
        moved.max(free as f64 / rates[0]) + later
    }

    /// 90:5:5 on 1000 x 1000: q = 2 sqrt(0.05) = 0.4472, f = 0.8944 / 1.2 = 0.7454, sides 166.7 for 223.6.
    /// 1,000,000 elements of C take 2 s in all and 8 bytes travel at 5 MB/s. In proportion: I = 0.556 s, II =
    /// 305,000 / 450,000 = 0.68 s, then 2 s. For overlap: II = 444,000 / 450,000 = 0.99 s, then 1.11 s.
    #[test]
    fn ninety_five_five_by_hand() {
        let (weights, rates) = ([90.0, 5.0, 5.0], [450e3, 25e3, 25e3]);
        let layout = square_corner_for_overlap(cube(1000), &weights).unwrap();
        for rect in layout.rects_by_owner()[1..].iter().flatten() {
            assert!((166..=167).contains(&rect.rows.len()), "{rect:?}");
        }
        let free = communication_free(&layout);
        assert!((free[0].rows.len() as i64 - 667).abs() <= 1);
        let t = formula(&layout, rates, 8.0 / 5e6);
        assert!((t - 2.10).abs() < 0.015, "{t}");
        let plain = formula(&SquareCorner.layout(cube(1000), &weights).unwrap(), rates, 8.0 / 5e6);
        assert!((plain - 2.68).abs() < 0.02, "{plain}");
    }

    /// Two processors, 9:1: q = sqrt(0.1), f = 0.6325 / 1.1 = 0.575: a side of 182, and C2 : X = 9 : 1.
    #[test]
    fn two_processors_by_hand() {
        let layout = square_corner_for_overlap(cube(1000), &[9.0, 1.0]).unwrap();
        let (square, free) = (layout.shares()[1], Metrics::of_layout(&layout, 1.0).communication_free);
        assert!((square as f64).sqrt() > 181.0 && (square as f64).sqrt() < 183.0, "{square}");
        let rest = layout.shares()[0] - free.unwrap()[0];
        assert!((rest as f64 / square as f64 - 9.0).abs() < 0.15, "{rest} {square}");
    }

    /// At 2:1:1 nothing is free, and the shares are those in proportion; what does not fit is refused.
    #[test]
    fn limits() {
        let meeting = [2.0, 1.0, 1.0];
        assert_eq!(
            square_corner_for_overlap(cube(1000), &meeting).unwrap().shares(),
            SquareCorner.layout(cube(1000), &meeting).unwrap().shares()
        );
        // 100 x 400 at 24:1: a = 40, f = 40 x 500 / (40,000 + 1600).
        let long = Shape::new(100, 10, 400, "test").unwrap();
        assert!((overlap_factor(long, &[24.0, 1.0]) - 20_000.0 / 41_600.0).abs() < 1e-12);
        assert_eq!(square_corner_for_overlap(cube(9), &[1.0, 1.0, 1.0]).unwrap_err().exit_code(), 1);
        assert_eq!(square_corner_for_overlap(cube(9), &[1.0]).unwrap().shares(), [81]);
        let half = square_corner_scaled(cube(1000), &[3.0, 1.0], 0.5).unwrap();
        assert_eq!(half.shares(), [937_500, 62_500]);
    }

    /// Table 5.2: outlines over volume for the three places of the square. Its 2.66 for 0.75 in the corner is
    /// a slip: (2 + 1.5) / 1.5 = 2.33, as the other columns of the same line confirm.
    #[test]
    fn ratios_of_the_thesis() {
        let cube = Shape::new(1000, 1000, 1000, "test").unwrap();
        let table = [
            (0.1, [11.0, 11.5, 12.0]),
            (0.25, [5.0, 5.5, 6.0]),
            (0.5, [3.0, 3.5, 4.0]),
            (0.75, [7.0 / 3.0, 2.0 + 5.0 / 6.0, 10.0 / 3.0]),
            (0.9, [2.0 + 1.0 / 9.0, 2.0 + 11.0 / 18.0, 3.0 + 1.0 / 9.0]),
        ];
        for (side, ratios) in table {
            let square = (1000.0 * side) as u64;
            let rest = 1000 - square;
            for (corner, ratio) in
                [[rest, rest], [rest, rest / 2], [rest / 2, rest / 2]].into_iter().zip(ratios)
            {
                let layout = with_square(cube, 0, 1, rect_at(corner, square, square));
                let volume = Metrics::of_layout(&layout, 1.0).volume.unwrap();
                assert!((outlines(&layout) / (volume as f64 / 1e6) - ratio).abs() < 1e-9, "{side}");
                assert_eq!(2 * volume, 1000 * interrupts(&layout), "{side}");
            }
        }
    }

    #[test]
    fn the_same_volume_wherever_the_square_is() {
        let shape = Shape::new(60, 50, 80, "test").unwrap();
        for ratio in [3.0, 7.0, 20.0] {
            let volume = |method: &dyn LayoutMethod| {
                Metrics::of_layout(&method.layout(shape, &[1.0, ratio]).unwrap(), 1.0).volume
            };
            assert_eq!(volume(&SquareEdge), volume(&SquareCorner));
            assert_eq!(volume(&SquareMiddle), volume(&SquareCorner));
        }
        assert!(SquareEdge.layout(shape, &[1.0; 3]).is_err());
    }

    #[test]
    fn the_hole_is_in_the_middle() {
        let shape = Shape::new(9, 9, 9, "test").unwrap();
        let layout = SquareMiddle.layout(shape, &[8.0, 1.0]).unwrap();
        assert_eq!(layout.rects_by_owner()[1], [Rect::new(Span::new(3, 6), Span::new(3, 6))]);
        assert_eq!(layout.shares(), [72, 9]);
        assert_eq!(SquareMiddle.layout(shape, &[1.0]).unwrap_err().exit_code(), 1);
    }
}

//! Strips of the lower triangle of a symmetric C = A A^T.

use super::LayoutMethod;
use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Layout, Part, Shape};

/// Rows and columns of the squares on the diagonal, which are computed whole: small enough for little to be computed
/// twice, large enough for kernels. For doubles on a core with AVX-512, 64 and 128 take 3 % longer, 256 takes 4 %.
const SQUARE: u64 = 96;

/// The most squares on the diagonal before they grow: larger ones compute less than 1/512 of the triangle twice.
const MOST_SQUARES: u64 = 512;

/// Each processor gets consecutive rows of the lower triangle, a trapezoid: one rectangle, squares on the diagonal, and
/// the rectangles between these. Of all cuts between rows, these let the largest area over its weight be least.
///
/// The strip of rows from s to e needs the rows of A before e, and owns those from s on: it receives k s elements. The
/// volume k sum(s_i) is least if weights ascend from the top, where strips are high, to the bottom: s_i is n times the
/// square root of the areas above. O(p log p log n + n / 96).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Triangle;

impl LayoutMethod for Triangle {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let n = shape.n;
        let square = SQUARE.max(n.div_ceil(MOST_SQUARES));
        let mut order: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        order.sort_by(|&i, &j| weights[i].total_cmp(&weights[j]).then(i.cmp(&j)));
        let ascending: Vec<f64> = order.iter().map(|&i| weights[i]).collect();
        let (mut parts, mut start) = (Vec::new(), 0);
        for (&rank, end) in order.iter().zip(cuts(n, square, &ascending)) {
            let rows = Span::new(start, end);
            let mut add = |rect| parts.push(Part::new(Rank(rank), rect));
            add(Rect::new(rows, Span::new(0, start)));
            cut(rows, square, &mut add);
            start = end;
        }
        Layout::of_triangle(shape, weights.len(), parts)
    }
}

/// The last rows of strips from the top to the bottom.
fn cuts(n: u64, square: u64, weights: &[f64]) -> Vec<u64> {
    let within = |time: f64| -> Vec<u64> {
        let end = |start: &mut u64, weight: &f64| {
            let (mut low, mut high) = (*start, n);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                let fits = area(*start, middle, square) as f64 <= time * weight;
                if fits { low = middle } else { high = middle - 1 }
            }
            *start = low;
            Some(low)
        };
        weights.iter().scan(0, end).collect()
    };
    // The last, which has the largest weight, can have all.
    let last = weights[weights.len() - 1];
    let (mut low, mut high) = (0.0, area(0, n, square) as f64 / last * (1.0 + f64::EPSILON));
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if within(middle).last() == Some(&n) { high = middle } else { low = middle }
    }
    within(high)
}

/// Elements that a strip from one row to another computes.
fn area(start: u64, end: u64, square: u64) -> u64 {
    let rows = end - start;
    let (whole, rest) = (rows / square, rows % square);
    // Squares are computed whole.
    let above = (whole * square * (square - 1) + rest * rest.saturating_sub(1)) / 2;
    start * rows + rows * (rows + 1) / 2 + above
}

/// Cuts a triangle on the diagonal into squares on it, and the rectangles below them.
fn cut(lines: Span, square: u64, add: &mut impl FnMut(Rect)) {
    if lines.len() <= square {
        return add(Rect::new(lines, lines));
    }
    let middle = lines.start + lines.len().div_ceil(2).next_multiple_of(square);
    let (first, second) = (Span::new(lines.start, middle), Span::new(middle, lines.end));
    cut(first, square, add);
    add(Rect::new(second, first));
    cut(second, square, add);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;

    fn shape(n: u64, k: u64) -> Shape {
        Shape::new(n, k, n, "test").unwrap()
    }

    /// 1,000 rows at 1:3: half of the rows are a quarter of the triangle, and at the top, whoever has them; a little
    /// less, for squares are a larger part of it.
    #[test]
    fn the_fastest_is_at_the_bottom() {
        for (weights, slow) in [([1.0, 3.0], 0), ([3.0, 1.0], 1)] {
            let layout = Triangle.layout(shape(1000, 7), &weights).unwrap();
            let [Span { start: 0, end }] = *layout.rows_by_owner()[slow].spans() else {
                panic!("at the top")
            };
            assert!((470..500).contains(&end), "{end}");
            assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(end * 7));
        }
        let four = Triangle.layout(shape(300, 2), &[4.0, 0.0, 5.0, 0.0]).unwrap();
        assert_eq!(four.rows_by_owner()[0].spans()[0].start, 0);
        assert_eq!((four.shares()[1], four.shares()[3]), (0, 0));
    }

    /// No order of the strips moves less than ascending weights.
    #[test]
    fn no_order_moves_less() {
        let weights = [5.0, 1.0, 2.0, 9.0];
        let tops = |order: [usize; 4]| {
            let mut before = 0.0;
            let mut top = |i: usize| {
                let top = f64::sqrt(before / 17.0);
                before += weights[i];
                top
            };
            order.into_iter().map(&mut top).sum::<f64>()
        };
        let least = tops([1, 2, 0, 3]);
        for code in 0..256 {
            let order = [code % 4, code / 4 % 4, code / 16 % 4, code / 64];
            if (0..4).all(|i| order.contains(&i)) {
                assert!(tops(order) >= least, "{order:?}");
            }
        }
        let n = 100_000;
        let volume = Triangle.layout(shape(n, 1), &weights).unwrap().volume() as f64;
        assert!((volume / (least * n as f64) - 1.0).abs() < 5e-3, "{volume}");
    }

    /// By trying all cuts of three strips.
    #[test]
    fn no_cuts_are_more_even() {
        for (n, square) in [(1, 4), (9, 4), (23, 4), (40, 8)] {
            for weights in [[1.0, 1.0, 1.0], [1.0, 2.0, 6.0], [0.01, 3.0, 3.0]] {
                let longest = |cuts: [u64; 3]| {
                    let starts = [0, cuts[0], cuts[1]];
                    let time = |i: usize| area(starts[i], cuts[i], square) as f64 / weights[i];
                    (0..3).map(time).fold(0.0, f64::max)
                };
                let found = longest(cuts(n, square, &weights).try_into().unwrap());
                let all = (0..=n).flat_map(|first| (first..=n).map(move |second| [first, second, n]));
                let best = all.map(longest).fold(f64::INFINITY, f64::min);
                assert!(found <= best * (1.0 + 1e-9), "{n} {weights:?}: {found} {best}");
            }
        }
    }

    /// Areas are counted on the rectangles, and squares add less than 5 % to 2,000 rows; those of larger matrices are
    /// larger.
    #[test]
    fn little_more_than_half_is_computed() {
        for (n, most) in [(1, 2.0), (96, 2.0), (97, 2.0), (2000, 1.05), (3000, 1.033), (100_000, 1.005)] {
            for weights in [&[1.0][..], &[1.0, 3.0, 9.0], &[0.0, 1e-9, 1.0]] {
                let layout = Triangle.layout(shape(n, 1), weights).unwrap();
                let more = layout.multiply_adds() / (n as f64 * (n as f64 + 1.0) / 2.0);
                assert!((1.0..=most).contains(&more), "{n} {weights:?}: {more}");
                assert!(layout.parts().len() as u64 <= 2 * MOST_SQUARES + 8);
                let square = SQUARE.max(n.div_ceil(MOST_SQUARES));
                for (rows, share) in layout.rows_by_owner().iter().zip(layout.shares()) {
                    let counted = rows.spans().iter().map(|rows| area(rows.start, rows.end, square));
                    assert_eq!(counted.sum::<u64>(), share);
                }
            }
        }
    }

    #[test]
    fn more_processors_than_rows_leave_some_without() {
        let layout = Triangle.layout(shape(2, 3), &[1.0; 7]).unwrap();
        assert_eq!(layout.shares().iter().filter(|share| **share > 0).count(), 2);
        assert_eq!(layout.multiply_adds(), 3.0 * 3.0);
    }
}

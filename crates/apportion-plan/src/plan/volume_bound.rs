//! Lower bound of the elements that any parallel product moves.
//!
//! Source: Al Daas, Ballard, Grigori, Kumar and Rouse, "Tight memory-independent parallel matrix
//! multiplication communication lower bounds", SPAA 2022 (doi:10.1145/3490148.3538552), with a
//! processor's share of the work in place of 1/P.

use super::Shape;

/// The least number of elements of A, B and C that a processor touches if it computes the fraction `share` of
/// the multiply-adds of a product, whichever they are.
pub(crate) fn touched_bound(shape: Shape, share: f64) -> f64 {
    let mut sides = [shape.m as f64, shape.n as f64, shape.k as f64];
    sides.sort_by(|x, y| y.total_cmp(x));
    let [m, n, k] = sides;
    if share <= 0.0 {
        0.0
    } else if share * m >= n {
        // A slab across the longest side.
        share * (m * n + m * k) + n * k
    } else if share * m * n >= k * k {
        2.0 * (m * n * k * k * share).sqrt() + share * m * n
    } else {
        3.0 * (m * n * k * share).cbrt().powi(2)
    }
}

/// The least number of elements that processors with these fractions of the work exchange, whichever
/// multiply-adds each computes: the elements that they touch, without the m k + k n + m n that are somewhere
/// anyway. [`Metrics::volume`](super::Metrics::volume) never is below it.
pub fn volume_bound(shape: Shape, shares: impl IntoIterator<Item = f64>) -> u64 {
    let [m, k, n] = [shape.m, shape.k, shape.n].map(|side| side as f64);
    let touched: f64 = shares.into_iter().map(|share| touched_bound(shape, share)).sum();
    let whole = m * k + k * n + m * n;
    // Volumes are whole numbers; the sum's rounding must not push the bound beyond one that is reached.
    (touched * (1.0 - 1e-12) - whole).max(0.0).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Rank, Rect, Span};
    use crate::plan::{Cuboid, Layout, Metrics};
    use crate::random::Random;

    fn shape(m: u64, k: u64, n: u64) -> Shape {
        Shape::new(m, k, n, "test").unwrap()
    }

    /// The three cases of the theorem, by hand, and in whichever order the sides come.
    #[test]
    fn three_cases() {
        for [m, k, n] in [[1, 2, 8], [2, 8, 1], [8, 1, 2], [8, 2, 1]] {
            let s = shape(m, k, n);
            // Half of the longest side: 4 x 2 + 4 x 1 + 2 x 1.
            assert_eq!(touched_bound(s, 0.5), 14.0);
            // A quarter is the end of the first case, 2 x 2 x 1, and the start of the second.
            assert_eq!(touched_bound(s, 0.25), 8.0);
            assert!((touched_bound(s, 0.25 - 1e-12) - 8.0).abs() < 1e-9);
            // 1/16: one multiply-add, a cube of side 1, ends the second case.
            assert!((touched_bound(s, 1.0 / 16.0) - 3.0).abs() < 1e-12);
            assert_eq!(touched_bound(s, 0.0), 0.0);
        }
        // Eight equal processors on a cube have a half of every side each.
        assert_eq!(volume_bound(shape(8, 8, 8), [0.125; 8]), 8 * 3 * 16 - 3 * 64);
        // Cut across the inner dimension only: seven partial sums of C travel.
        assert_eq!(volume_bound(shape(4, 64, 4), [0.125; 8]), 7 * 16);
        assert_eq!(volume_bound(shape(5, 6, 7), [1.0]), 0);
    }

    /// No set of multiply-adds touches fewer elements: random sets, and the best boxes of each size.
    #[test]
    fn nothing_touches_less() {
        let mut draws = Random::new(5);
        for _ in 0..300 {
            let side = |draws: &mut Random| 1 + (draws.unit() * 5.0) as u64;
            let s = shape(side(&mut draws), side(&mut draws), side(&mut draws));
            let density = draws.unit();
            let mut touched = [(); 3].map(|()| std::collections::BTreeSet::new());
            let mut count = 0_u64;
            for (i, (j, l)) in
                (0..s.m).flat_map(|i| (0..s.n).flat_map(move |j| (0..s.k).map(move |l| (i, (j, l)))))
            {
                if draws.unit() < density {
                    count += 1;
                    [(i, l), (l, j), (i, j)].into_iter().zip(&mut touched).for_each(|(at, set)| {
                        set.insert(at);
                    });
                }
            }
            let share = count as f64 / (s.m * s.n * s.k) as f64;
            let least = touched.iter().map(|set| set.len() as f64).sum::<f64>();
            assert!(touched_bound(s, share) <= least + 1e-9, "{s:?} {share}");
        }
    }

    /// The bound of a layout that does not cut the inner dimension holds for those that do: boxes of the same
    /// shares move less than columns.
    #[test]
    fn no_plan_of_the_same_shares_moves_less() {
        use crate::plan::shapes::{Boxes, Columns, LayoutMethod};
        use crate::plan::volume_lower_bound;
        let weights = [1.0; 8];
        let s = shape(1000, 1000, 1000);
        let (uncut, cut) =
            (Columns::default().layout(s, &weights).unwrap(), Boxes.layout(s, &weights).unwrap());
        assert_eq!((uncut.volume(), cut.volume()), (3_750_000, 3_000_000));
        assert_eq!(volume_lower_bound(&uncut), Some(3_000_000));
    }

    /// A layout of eight half cubes reaches the bound; metrics say so.
    #[test]
    fn eight_boxes_reach_it() {
        let halves = [Span::new(0, 4), Span::new(4, 8)];
        let each =
            |i: usize| Cuboid::new(Rank(i), Rect::new(halves[i & 1], halves[i >> 1 & 1]), halves[i >> 2]);
        let layout = Layout::of_boxes(shape(8, 8, 8), 8, (0..8).map(each)).unwrap();
        let metrics = Metrics::of_layout(&layout, 1.0);
        assert_eq!(metrics.volume, Some(192));
        assert_eq!(metrics.volume_bound, Some(192));
    }
}

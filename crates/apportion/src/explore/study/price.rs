//! The costs of layouts of the unit square in real arithmetic, without laying anything out.

use crate::plan::shapes::LeastCost;
use crate::plan::{Metrics, Shape};

/// Side of the matrix that the portfolio lays out: rounding to elements changes costs by less than 1e-6.
const SIDE: u64 = 1 << 26;

/// Memory for the prices of draws of one number of processors.
pub(super) struct Prices {
    prefix: Vec<f64>,
    best: Vec<f64>,
}

impl Prices {
    pub(super) fn new(processors: usize) -> Self {
        Self { prefix: vec![0.0; processors + 1], best: vec![0.0; processors + 1] }
    }

    /// 2 sum sqrt(area): no layout costs less.
    pub(super) fn bound(&self, areas: &[f64]) -> f64 {
        2.0 * areas.iter().map(|a| a.sqrt()).sum::<f64>()
    }

    /// The sum of half-perimeters of the optimal columns of ascending areas that sum to 1. O(p^2) at most.
    ///
    /// A column of q processors and width w costs 1 + q w. The last column of the cheapest prefix never
    /// begins further left than that of a shorter prefix (the quadrangle inequality of `shapes::columns`), so
    /// that few beginnings have to be tried.
    pub(super) fn columns(&mut self, areas: &[f64]) -> f64 {
        let mut start = 0;
        for (j, area) in areas.iter().enumerate() {
            self.prefix[j + 1] = self.prefix[j] + area;
            let end = j + 1;
            let price =
                |i: usize| self.best[i] + 1.0 + (end - i) as f64 * (self.prefix[end] - self.prefix[i]);
            let (mut least, mut from) = (price(start), start);
            for i in start + 1..end {
                let other = price(i);
                if other < least {
                    (least, from) = (other, i);
                }
            }
            self.best[end] = least;
            start = from;
        }
        self.best[areas.len()]
    }

    /// The sum of half-perimeters with the slower processors in squares on the diagonal; infinite where these
    /// would overlap.
    pub(super) fn corner(&self, areas: &[f64]) -> f64 {
        let sides: f64 = areas[..areas.len() - 1].iter().map(|a| a.sqrt()).sum();
        if sides <= 1.0 { 2.0 + 2.0 * sides } else { f64::INFINITY }
    }

    /// The sum of half-perimeters of the best layout that the portfolio finds.
    pub(super) fn searched(&self, areas: &[f64]) -> f64 {
        let shape = Shape { m: SIDE, k: 1, n: SIDE };
        let layout = LeastCost::default().choose(shape, areas).layout;
        Metrics::of_layout(&layout, 1.0).sum_half_perimeters.unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::{Columns, LayoutMethod};
    use proptest::prelude::*;

    fn ascending(mut speeds: Vec<f64>) -> Vec<f64> {
        speeds.sort_unstable_by(f64::total_cmp);
        let total: f64 = speeds.iter().sum();
        speeds.iter().map(|s| s / total).collect()
    }

    /// Every assignment of processors to columns.
    fn every_assignment(areas: &[f64]) -> f64 {
        let p = areas.len();
        let mut least = f64::INFINITY;
        for mut code in 0..p.pow(p as u32) {
            let (mut width, mut count) = (vec![0.0; p], vec![0.0; p]);
            for area in areas {
                width[code % p] += area;
                count[code % p] += 1.0;
                code /= p;
            }
            let price = |c: usize| if count[c] > 0.0 { 1.0 + count[c] * width[c] } else { 0.0 };
            least = least.min((0..p).map(price).sum());
        }
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn no_assignment_to_columns_is_cheaper(speeds in prop::collection::vec(0.01f64..1.0, 1..7)) {
            let areas = ascending(speeds);
            let price = Prices::new(areas.len()).columns(&areas);
            prop_assert!((price - every_assignment(&areas)).abs() < 1e-9);
        }

        /// The priced layout is the one that is laid out.
        #[test]
        fn prices_are_those_of_the_layouts(speeds in prop::collection::vec(0.001f64..1.0, 2..41)) {
            let areas = ascending(speeds);
            let mut prices = Prices::new(areas.len());
            let shape = Shape { m: SIDE, k: 1, n: SIDE };
            let cost = |layout| Metrics::of_layout(&layout, 1.0).sum_half_perimeters.unwrap();
            let laid_out = cost(Columns::default().layout(shape, &areas).unwrap());
            prop_assert!((prices.columns(&areas) - laid_out).abs() < 1e-6);
            match crate::plan::shapes::SquareCorner.layout(shape, &areas) {
                Ok(layout) => prop_assert!((prices.corner(&areas) - cost(layout)).abs() < 1e-6),
                Err(_) => prop_assert!(prices.corner(&areas).is_infinite()),
            }
        }
    }

    #[test]
    fn the_portfolio_is_no_dearer() {
        for speeds in [vec![1.0], vec![1.0, 9.0], vec![1.0, 2.0, 50.0], vec![1.0, 1.0, 4.0, 5.0, 40.0]] {
            let areas = ascending(speeds);
            let mut prices = Prices::new(areas.len());
            let best = prices.columns(&areas).min(prices.corner(&areas));
            assert!(prices.searched(&areas) <= best + 1e-6);
            assert!(prices.searched(&areas) >= prices.bound(&areas) - 1e-6);
        }
    }
}

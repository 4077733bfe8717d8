//! The best of all recursive straight cuts, for few processors: branch and bound over subsets.

use super::tiling::{Tiling, Total};

/// Up to this number of processors every cut is tried: below a million nodes.
pub(super) const MOST_PROCESSORS: usize = 7;

/// The smallest cost of recursive straight cuts of a `high` x `wide` rectangle with any processors on either
/// side of each, and the cuts. `order` has at most [`MOST_PROCESSORS`] processors.
pub(super) fn best_cuts(weights: &[f64], order: &[usize], high: f64, wide: f64, total: Total) -> Tiling {
    let search = Slicing { weights, order, total };
    let all = (1usize << order.len()) - 1;
    let found = search.best(all, high, wide, f64::INFINITY);
    found.map_or_else(|| Tiling::columns([order]), |(_, tiling)| tiling)
}

struct Slicing<'a> {
    weights: &'a [f64],
    order: &'a [usize],
    total: Total,
}

impl Slicing<'_> {
    fn weight(&self, set: usize) -> f64 {
        self.members(set).map(|i| self.weights[i]).sum()
    }

    fn members(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, &i)| i)
    }

    /// No rectangles of these areas within `high` x `wide` cost less.
    fn bound(&self, set: usize, high: f64, wide: f64) -> f64 {
        let scale = high * wide / self.weight(set);
        let short = high.min(wide);
        let least = |area: f64| if area.sqrt() <= short { 2.0 * area.sqrt() } else { short + area / short };
        self.members(set).map(|i| least(self.weights[i] * scale)).fold(0.0, |sum, c| self.total.of(sum, c))
    }

    /// The best cuts that cost less than `limit`.
    fn best(&self, set: usize, high: f64, wide: f64, mut limit: f64) -> Option<(f64, Tiling)> {
        if set.count_ones() == 1 {
            let cost = high + wide;
            return (cost < limit).then(|| (cost, Tiling::Whole(self.order[set.trailing_zeros() as usize])));
        }
        let mut best = None;
        let first = set & set.wrapping_neg();
        let all = self.weight(set);
        // The subsets that contain the first processor, each once.
        let mut one = (set - 1) & set;
        while one > 0 {
            if one & first != 0 {
                let part = self.weight(one) / all;
                for rows in [true, false] {
                    let (a, b) = if rows { (high * part, wide) } else { (high, wide * part) };
                    let (c, d) = if rows { (high - a, wide) } else { (high, wide - b) };
                    let rest = set & !one;
                    let rest_bound = self.bound(rest, c, d);
                    if self.total.of(self.bound(one, a, b), rest_bound) >= limit {
                        continue;
                    }
                    let spare = |cost: f64| if self.total == Total::Sum { limit - cost } else { limit };
                    let Some((x, left)) = self.best(one, a, b, spare(rest_bound)) else { continue };
                    let Some((y, right)) = self.best(rest, c, d, spare(x)) else { continue };
                    let cost = self.total.of(x, y);
                    if cost < limit {
                        limit = cost;
                        let parts = vec![left, right];
                        best = Some((cost, if rows { Tiling::Rows(parts) } else { Tiling::Cols(parts) }));
                    }
                }
            }
            one = (one - 1) & set;
        }
        best
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The smallest cost of all recursive straight cuts, with any processors on either side: slow and
    /// obviously right.
    pub fn all_cuts(areas: &[f64], high: f64, wide: f64, total: Total) -> f64 {
        if areas.len() == 1 {
            return high + wide;
        }
        let whole: f64 = areas.iter().sum();
        let mut best = f64::INFINITY;
        for mask in 1..1u32 << (areas.len() - 1) {
            let side = |wanted| (0..areas.len()).filter(move |i| mask >> i & 1 == wanted).map(|i| areas[i]);
            let (one, two): (Vec<f64>, Vec<f64>) = (side(1).collect(), side(0).collect());
            let part = one.iter().sum::<f64>() / whole;
            let cost = |cut: [f64; 4]| {
                total.of(all_cuts(&one, cut[0], cut[1], total), all_cuts(&two, cut[2], cut[3], total))
            };
            let rows = cost([high * part, wide, high * (1.0 - part), wide]);
            best = best.min(rows).min(cost([high, wide * part, high, wide * (1.0 - part)]));
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn no_cuts_cost_less(weights in prop::collection::vec(0.02f64..1.0, 2..6), wide in 0.3f64..3.0) {
            let order: Vec<usize> = (0..weights.len()).collect();
            for total in [Total::Sum, Total::Largest] {
                let found = best_cuts(&weights, &order, 1.0, wide, total).cost(&weights, 1.0, wide, total);
                let oracle = all_cuts(&weights, 1.0, wide, total);
                prop_assert!((found - oracle).abs() < 1e-9, "{:?} {} {}", total, found, oracle);
            }
        }
    }
}

//! The order of items of which only neighbours matter: permutations, Held-Karp, or exchanges.

use super::columns::Rule;

/// Up to this number, every order is tried.
const MOST_PERMUTED: usize = 7;
/// Up to this number, orders are built up from subsets.
const MOST_SUBSETS: usize = 12;

/// The cheapest order found of `n` items, and the number of orders evaluated. `cost(order)` is the full cost,
/// and `between[i * n + j]` the cost of j directly after i.
///
/// Up to 7: all orders (optimal). Up to 12: Held and Karp 1962 over subsets, O(2^n n^2), optimal for a ring
/// and a chain. Beyond: exchanges and moves of single items until none helps. Never worse than the order 0,
/// 1, 2, …
pub(super) fn best_order(n: usize, rule: Rule, between: &[f64]) -> (Vec<usize>, u64) {
    let cost = |order: &[usize]| rule.total(n, |i, j| between[order[i] * n + order[j]]);
    let start: Vec<usize> = (0..n).collect();
    if n < 2 || rule == Rule::OneToAll {
        return (start, 0);
    }
    if n <= MOST_PERMUTED {
        return every_order(n, rule, cost);
    }
    let mut evaluations = 1;
    let mut best = (cost(&start), start);
    if n <= MOST_SUBSETS {
        let (order, weighed) = held_karp(n, rule, between);
        evaluations += weighed;
        let found = cost(&order);
        if found < best.0 {
            best = (found, order);
        }
        if rule != Rule::AllButLeast {
            return (best.1, evaluations);
        }
    }
    while let Some(better) = improved(&best, cost, &mut evaluations) {
        best = better;
    }
    (best.1, evaluations)
}

/// All orders, those of a ring from one fixed start.
fn every_order(n: usize, rule: Rule, cost: impl Fn(&[usize]) -> f64) -> (Vec<usize>, u64) {
    let mut order: Vec<usize> = (0..n).collect();
    let mut best = (cost(&order), order.clone());
    let mut evaluations = 1;
    let first = usize::from(rule != Rule::Chain);
    permutations(&mut order, first, &mut |order| {
        evaluations += 1;
        let found = cost(order);
        if found < best.0 {
            best = (found, order.to_vec());
        }
    });
    (best.1, evaluations)
}

/// Calls `visit` with every order of `items[from..]`.
pub(super) fn permutations<T: Clone>(items: &mut Vec<T>, from: usize, visit: &mut impl FnMut(&[T])) {
    if from + 1 >= items.len() {
        return visit(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        permutations(items, from + 1, visit);
        items.swap(from, i);
    }
}

/// Cheapest path through every subset, by its last member. Held and Karp 1962.
fn held_karp(n: usize, rule: Rule, between: &[f64]) -> (Vec<usize>, u64) {
    let full = (1usize << n) - 1;
    let mut best = vec![f64::INFINITY; (full + 1) * n];
    let mut from = vec![usize::MAX; (full + 1) * n];
    // A ring may start anywhere: at 0. A chain starts at each in turn.
    for start in 0..if rule == Rule::Chain { n } else { 1 } {
        best[(1 << start) * n + start] = 0.0;
    }
    let mut evaluations = 0;
    for set in 1..=full {
        for last in (0..n).filter(|l| set >> l & 1 == 1) {
            let so_far = best[set * n + last];
            if so_far.is_infinite() {
                continue;
            }
            for next in (0..n).filter(|x| set >> x & 1 == 0) {
                let place = (set | 1 << next) * n + next;
                let sum = so_far + between[last * n + next];
                evaluations += 1;
                if sum < best[place] {
                    best[place] = sum;
                    from[place] = last;
                }
            }
        }
    }
    let close = |last: usize| if rule == Rule::Chain { 0.0 } else { between[last * n] };
    let mut last = (0..n)
        .min_by(|&x, &y| (best[full * n + x] + close(x)).total_cmp(&(best[full * n + y] + close(y))))
        .unwrap_or(0);
    let mut set = full;
    let mut order = vec![last];
    while order.len() < n {
        let before = from[set * n + last];
        set &= !(1 << last);
        last = before;
        order.push(last);
    }
    order.reverse();
    (order, evaluations)
}

/// The best order that one exchange, one move or one reversal reaches, if it is better.
fn improved(
    best: &(f64, Vec<usize>),
    cost: impl Fn(&[usize]) -> f64,
    evaluations: &mut u64,
) -> Option<(f64, Vec<usize>)> {
    let n = best.1.len();
    let mut found: Option<(f64, Vec<usize>)> = None;
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j) {
        for kind in 0..3 {
            let mut order = best.1.clone();
            match kind {
                0 if i < j => order.swap(i, j),
                1 if i < j => order[i..=j].reverse(),
                2 => {
                    let thing = order.remove(i);
                    order.insert(j, thing);
                }
                _ => continue,
            }
            *evaluations += 1;
            let sum = cost(&order);
            if sum < found.as_ref().map_or(best.0, |f| f.0) - 1e-12 * best.0 {
                found = Some((sum, order));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Subsets against all permutations, on directed distances.
        #[test]
        fn held_karp_is_optimal(n in 2usize..8, distances in prop::collection::vec(0.0f64..1.0, 49)) {
            let between = &distances[..n * n];
            for rule in [Rule::Ring, Rule::Chain] {
                let cost = |order: &[usize]| rule.total(n, |i, j| between[order[i] * n + order[j]]);
                let (order, _) = held_karp(n, rule, between);
                let (oracle, _) = every_order(n, rule, cost);
                prop_assert!((cost(&order) - cost(&oracle)).abs() < 1e-12);
            }
        }

        /// Exchanges come close to the optimum and are never worse than the start.
        #[test]
        fn exchanges_help(n in 13usize..16, distances in prop::collection::vec(0.0f64..1.0, 225)) {
            let between = &distances[..n * n];
            for rule in [Rule::Ring, Rule::Chain, Rule::AllButLeast] {
                let cost = |order: &[usize]| rule.total(n, |i, j| between[order[i] * n + order[j]]);
                let start: Vec<usize> = (0..n).collect();
                let (order, _) = best_order(n, rule, between);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &start);
                prop_assert!(cost(&order) <= cost(&start));
            }
        }
    }
}

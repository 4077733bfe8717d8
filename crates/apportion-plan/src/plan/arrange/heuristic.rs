//! Groups of a cluster, moved as one: the source's heuristics.
//!
//! Source: Malik 2016, Algorithm 1 (section 3.4.1), Algorithm 2 (3.4.2) and the second step of Algorithm 3
//! (4.4.2).

use super::Watch;
use super::columns::{Block, Column, Columns, Rule};
use super::order::{best_order, permutations};

/// Up to this number of groups of a column, every order is tried (720 at most); beyond, exchanges.
const MOST_GROUPS: usize = 6;
/// Maximum number of passes over all columns; a pass that changes nothing ends the search earlier.
const MOST_PASSES: u64 = 20;
/// Beyond this number of processors there are no later passes if each processor sends to all others.
const MOST_SETTLED: usize = 1_000;

/// The source's Algorithms 1 and 2, and the second step of 3. In each column, rectangles of one cluster are
/// grouped. The columns are then built up from the left, each with the order of groups that costs least
/// beside those already placed. Finally the order of the columns is searched.
///
/// By hops, the first column's order stays and the others are judged by cost_A alone; by bandwidth, both
/// costs count everywhere. sum(g_i!) + c! evaluations for up to 6 groups and 7 columns, as printed; beyond
/// that, their number is polynomial (exchanges of groups, Held and Karp for columns). The result may be worse
/// than `given`: the caller keeps the better one.
pub(super) fn published<'a>(given: &Columns<'a>, watch: Watch<'_>) -> (Columns<'a>, u64) {
    let mut state = given.clone();
    let mut evaluations = 0;
    for column in &mut state.columns {
        *column = grouped(column, given);
    }
    let by_a_alone = state.rule == Rule::AllButLeast;
    for i in usize::from(by_a_alone)..state.columns.len() {
        evaluations += choose_order(&mut state, i, i + 1, by_a_alone, watch);
    }
    evaluations += reorder(&mut state);
    (state, evaluations)
}

/// [`published`], extended: later passes judge each column beside both neighbours, by both costs, until a
/// pass changes nothing (a fixed point), with at most 20 passes.
pub(super) fn heuristic<'a>(given: &Columns<'a>, watch: Watch<'_>) -> (Columns<'a>, u64) {
    let (mut state, mut evaluations) = published(given, watch);
    let blocks: usize = state.columns.iter().map(|c| c.blocks.len()).sum();
    let passes = if state.rule == Rule::OneToAll && blocks > MOST_SETTLED { 0 } else { MOST_PASSES };
    for _ in 0..passes {
        let before = state.columns.clone();
        let all = state.columns.len();
        for i in 0..all {
            evaluations += choose_order(&mut state, i, all, false, watch);
        }
        evaluations += reorder(&mut state);
        if state.columns == before || !watch(0) {
            break;
        }
    }
    (state, evaluations)
}

/// The column with the blocks of each cluster together, clusters and blocks in the order of their first
/// appearance.
fn grouped(column: &Column, columns: &Columns<'_>) -> Column {
    let blocks = groups(column, columns).into_iter().flatten().collect();
    Column { width: column.width, blocks }
}

fn groups(column: &Column, columns: &Columns<'_>) -> Vec<Vec<Block>> {
    let mut groups: Vec<(usize, Vec<Block>)> = Vec::new();
    for &block in &column.blocks {
        let cluster = columns.distances.cluster(block.owner);
        match groups.iter_mut().find(|g| g.0 == cluster) {
            Some((_, members)) => members.push(block),
            None => groups.push((cluster, vec![block])),
        }
    }
    groups.into_iter().map(|g| g.1).collect()
}

/// Gives column `i` the order of its groups that costs least among the first `count` columns.
fn choose_order(state: &mut Columns<'_>, i: usize, count: usize, a_alone: bool, watch: Watch<'_>) -> u64 {
    if !watch(0) {
        return 0;
    }
    let groups = groups(&state.columns[i], state);
    let mut evaluations = 0;
    let links = Links::of(state, i, count);
    let mut best = (f64::INFINITY, state.columns[i].clone());
    let mut weigh = |order: &[usize], best: &mut (f64, Column)| {
        let blocks = order.iter().flat_map(|&g| groups[g].iter().copied()).collect();
        let column = Column { width: state.columns[i].width, blocks };
        evaluations += 1;
        let inside = if a_alone { 0.0 } else { state.inside(&column) };
        let cost = inside + links.with(state, &column);
        // An order that is better only by rounding is not better: the result must be a fixed point.
        if cost < best.0 - 1e-12 * best.0.min(f64::MAX) {
            *best = (cost, column);
            return true;
        }
        false
    };
    let mut order: Vec<usize> = (0..groups.len()).collect();
    weigh(&order, &mut best);
    if groups.len() <= MOST_GROUPS {
        permutations(&mut order, 0, &mut |order| {
            weigh(order, &mut best);
        });
    } else {
        let mut improving = true;
        while std::mem::take(&mut improving) {
            for (x, y) in (0..groups.len()).flat_map(|x| (0..x).map(move |y| (x, y))) {
                order.swap(x, y);
                if weigh(&order, &mut best) {
                    improving = true;
                } else {
                    order.swap(x, y);
                }
            }
            // If each sends to all others, a test touches every column: one pass must suffice.
            improving &= state.rule != Rule::OneToAll && watch(0);
        }
    }
    watch(evaluations);
    state.columns[i] = best.1;
    evaluations
}

/// The links of A that involve column `i`, and the cost of the others.
struct Links {
    i: usize,
    count: usize,
    /// Neighbouring links for a ring or a chain; the whole table for one-to-all.
    between: Vec<f64>,
}

impl Links {
    fn of(state: &Columns<'_>, i: usize, count: usize) -> Self {
        let mut between = vec![0.0; count * count];
        for (x, y) in pairs(state.rule, count) {
            if x != i && y != i {
                between[x * count + y] = state.beside(&state.columns[x], &state.columns[y]);
            }
        }
        Self { i, count, between }
    }

    /// cost_A of the first `count` columns with another column in place i.
    fn with(&self, state: &Columns<'_>, column: &Column) -> f64 {
        state.rule.total(self.count, |x, y| match (x == self.i, y == self.i) {
            (true, _) => state.beside(column, &state.columns[y]),
            (_, true) => state.beside(&state.columns[x], column),
            _ => self.between[x * self.count + y],
        })
    }
}

/// The pairs of neighbours that a rule counts.
fn pairs(rule: Rule, count: usize) -> Vec<(usize, usize)> {
    match rule {
        Rule::OneToAll => {
            (0..count * count).map(|x| (x / count, x % count)).filter(|(x, y)| x != y).collect()
        }
        _ if count < 2 => Vec::new(),
        _ => (0..count).map(|x| (x, (x + 1) % count)).collect(),
    }
}

/// Searches for the best order of the columns.
pub(super) fn reorder(state: &mut Columns<'_>) -> u64 {
    let n = state.columns.len();
    if n < 2 || state.rule == Rule::OneToAll {
        return 0;
    }
    let between: Vec<f64> = (0..n * n)
        .map(|x| match (x / n, x % n) {
            (i, j) if i == j => 0.0,
            (i, j) => state.beside(&state.columns[i], &state.columns[j]),
        })
        .collect();
    let (order, evaluations) = best_order(n, state.rule, &between);
    state.columns = order.into_iter().map(|i| state.columns[i].clone()).collect();
    evaluations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::columns::tests::three_clusters;
    use crate::plan::arrange::distance::Distances;
    use crate::plan::arrange::every_objective;

    /// Groups stay together in every column, no processor is lost, and another run changes nothing
    /// significant.
    #[test]
    fn clusters_stand_together_at_a_fixed_point() {
        let platform = three_clusters(24);
        let mut owners = 0..;
        let columns: Vec<Column> = [5usize, 3, 9, 7]
            .iter()
            .map(|&count| Column {
                width: 10 * count as u64,
                blocks: (0..count)
                    .map(|i| Block {
                        owner: owners.next().unwrap(),
                        height: if i == 0 { 100 - 7 * (count as u64 - 1) } else { 7 },
                    })
                    .collect(),
            })
            .collect();
        for objective in every_objective() {
            let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
            let given =
                Columns { columns: columns.clone(), rule: Rule::of(objective), distances: &distances };
            let (found, evaluations) = heuristic(&given, &|_| true);
            assert!(evaluations > 0);
            for column in &found.columns {
                let mut seen: Vec<usize> = column.blocks.iter().map(|b| distances.cluster(b.owner)).collect();
                seen.dedup();
                assert!(seen.len() <= 3, "{objective:?}: {seen:?}");
            }
            let mut all: Vec<usize> =
                found.columns.iter().flat_map(|c| c.blocks.iter().map(|b| b.owner)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..24).collect::<Vec<_>>());
            let (again, _) = heuristic(&found, &|_| true);
            assert!(again.cost().total <= found.cost().total * (1.0 + 1e-9), "{objective:?}");
        }
    }
}

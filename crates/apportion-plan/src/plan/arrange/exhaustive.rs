//! Every arrangement: the optimum, and the oracle of the other searches.
//!
//! Source: Malik 2016, section 3.2.2, which tries the r_1! x ... x r_c! orders inside columns.

use super::Watch;
use super::columns::{Block, Column, Columns, Rule};
use super::labels::Labels;
use super::order::permutations;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Maximum number of arrangements that [`SearchMethod::Exhaustive`](super::SearchMethod) tries.
pub(super) const MOST: u64 = 1_000_000;

/// The cheapest of all orders of columns and of rectangles in them, and of all exchanges of owners of equal
/// shares. Processors that the network does not distinguish are interchangeable here, and a ring of columns
/// starts at a fixed one. One evaluation of O(p) each.
///
/// # Errors
/// More than `most` arrangements.
pub(super) fn columns<'a>(given: &Columns<'a>, most: u64, watch: Watch<'_>) -> Result<(Columns<'a>, u64)> {
    let n = given.columns.len();
    let orders = orders(given, most)?;
    let each = orders.len() as u64;
    let mut count = 0u64;
    fill(given, &mut |_| {
        count += 1;
        count * each <= most
    });
    if count * each > most {
        return Err(too_many(most));
    }
    let mut best = (given.cost().total, given.clone());
    fill(given, &mut |columns| {
        let inside: f64 = columns.iter().map(|c| given.inside(c)).sum();
        let between: Vec<f64> = (0..n * n)
            .map(|x| match (x / n, x % n) {
                (i, j) if i == j => 0.0,
                (i, j) => given.beside(&columns[i], &columns[j]),
            })
            .collect();
        for order in &orders {
            let total = inside + given.rule.total(n, |i, j| between[order[i] * n + order[j]]);
            if total < best.0 {
                let columns = order.iter().map(|&i| columns[i].clone()).collect();
                best = (total, Columns { columns, ..given.clone() });
            }
        }
        watch(each)
    });
    Ok((best.1, count * each))
}

/// The distinct orders of columns. Columns of the same width and heights keep their order, since they are
/// filled in every way. A ring starts at column 0. If each sends to all others, the order does not matter.
fn orders(given: &Columns<'_>, most: u64) -> Result<Vec<Vec<usize>>> {
    let n = given.columns.len();
    if given.rule == Rule::OneToAll {
        return Ok(vec![(0..n).collect()]);
    }
    let mut classes: BTreeMap<(u64, Vec<u64>), Vec<usize>> = BTreeMap::new();
    for (i, column) in given.columns.iter().enumerate().rev() {
        let mut heights: Vec<u64> = column.blocks.iter().map(|b| b.height).collect();
        heights.sort_unstable();
        classes.entry((column.width, heights)).or_default().push(i);
    }
    let mut classes: Vec<Vec<usize>> = classes.into_values().collect();
    let mut order = Vec::new();
    if given.rule != Rule::Chain {
        classes.iter_mut().filter(|c| c.last() == Some(&0)).for_each(|c| order.extend(c.pop()));
    }
    let mut all = Vec::new();
    if extend(&mut order, &mut classes, &mut all, n, most) { Ok(all) } else { Err(too_many(most)) }
}

/// Completes an order of `n` columns in every way; false if there are more than `most`.
fn extend(
    order: &mut Vec<usize>,
    classes: &mut [Vec<usize>],
    all: &mut Vec<Vec<usize>>,
    n: usize,
    most: u64,
) -> bool {
    if order.len() == n {
        all.push(order.clone());
        return all.len() as u64 <= most;
    }
    for i in 0..classes.len() {
        let Some(column) = classes[i].pop() else { continue };
        order.push(column);
        let go_on = extend(order, classes, all, n, most);
        order.pop();
        classes[i].push(column);
        if !go_on {
            return false;
        }
    }
    true
}

/// Fills the columns with blocks in every way, top to bottom, left to right; `visit` returns false to stop.
fn fill(given: &Columns<'_>, visit: &mut impl FnMut(&[Column]) -> bool) {
    // Per share and kind, the owners not yet placed.
    let mut owners: BTreeMap<(u128, usize), Vec<usize>> = BTreeMap::new();
    for column in &given.columns {
        for block in &column.blocks {
            let key = (column.share(block.height), given.distances.kind(block.owner));
            owners.entry(key).or_default().push(block.owner);
        }
    }
    let mut filled: Vec<Column> =
        given.columns.iter().map(|c| Column { width: c.width, blocks: Vec::new() }).collect();
    let mut heights: Vec<BTreeMap<u64, usize>> = Vec::new();
    for column in &given.columns {
        let mut counts = BTreeMap::new();
        for block in &column.blocks {
            *counts.entry(block.height).or_insert(0) += 1;
        }
        heights.push(counts);
    }
    place(0, &mut filled, &mut heights, &mut owners, visit);
}

/// Chooses a height and a kind of owner for the next place of column `at`; false ends the search.
fn place(
    at: usize,
    filled: &mut Vec<Column>,
    heights: &mut [BTreeMap<u64, usize>],
    owners: &mut BTreeMap<(u128, usize), Vec<usize>>,
    visit: &mut impl FnMut(&[Column]) -> bool,
) -> bool {
    if at == filled.len() {
        return visit(filled);
    }
    let choices: Vec<u64> = heights[at].iter().filter(|(_, n)| **n > 0).map(|(h, _)| *h).collect();
    if choices.is_empty() {
        return place(at + 1, filled, heights, owners, visit);
    }
    for height in choices {
        let share = filled[at].share(height);
        let kinds: Vec<(u128, usize)> = owners
            .range((share, 0)..=(share, usize::MAX))
            .filter(|(_, o)| !o.is_empty())
            .map(|(k, _)| *k)
            .collect();
        for kind in kinds {
            let owner = owners.get_mut(&kind).and_then(Vec::pop).expect("this kind has an owner left");
            heights[at].entry(height).and_modify(|n| *n -= 1);
            filled[at].blocks.push(Block { owner, height });
            let go_on = place(at, filled, heights, owners, visit);
            filled[at].blocks.pop();
            heights[at].entry(height).and_modify(|n| *n += 1);
            owners.entry(kind).and_modify(|o| o.push(owner));
            if !go_on {
                return false;
            }
        }
    }
    true
}

/// The cheapest of all exchanges of owners of equal shares in any layout.
///
/// # Errors
/// More than `most` of them.
pub(super) fn labels<'a>(given: &Labels<'a>, most: u64, watch: Watch<'_>) -> Result<(Labels<'a>, u64)> {
    let count = given
        .classes
        .iter()
        .flat_map(|c| 2..=c.len() as u64)
        .try_fold(1u64, |n, x| n.checked_mul(x).filter(|n| *n <= most))
        .ok_or_else(|| too_many(most))?;
    let mut best = (given.cost().total, given.clone());
    exchange(0, &mut given.clone(), &mut best, watch);
    Ok((best.1, count))
}

fn exchange<'a>(class: usize, labels: &mut Labels<'a>, best: &mut (f64, Labels<'a>), watch: Watch<'_>) {
    let Some(places) = labels.classes.get(class).cloned() else {
        if !watch(1) {
            return;
        }
        let total = labels.cost().total;
        if total < best.0 {
            *best = (total, labels.clone());
        }
        return;
    };
    let mut owners: Vec<usize> = places.iter().map(|&i| labels.owner[i]).collect();
    permutations(&mut owners, 0, &mut |owners| {
        for (&place, &owner) in places.iter().zip(owners) {
            labels.owner[place] = owner;
        }
        exchange(class + 1, labels, best, watch);
    });
    for (&place, &owner) in places.iter().zip(&owners) {
        labels.owner[place] = owner;
    }
}

fn too_many(most: u64) -> Error {
    Error::infeasible(
        format!("the exhaustive search would try more than {most} arrangements"),
        "use `search = local`, which comes near the optimum for any number of processors",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::columns::tests::three_clusters;
    use crate::plan::arrange::distance::Distances;
    use crate::plan::arrange::{cost_of, every_objective};
    use crate::plan::{Layout, Shape};

    /// Three columns of two, one and three blocks; with `equal`, two blocks of the same share in different
    /// columns.
    fn blocks(equal: bool) -> Vec<Column> {
        let heights: [&[u64]; 3] =
            [&[4, 8], &[12], &[if equal { 4 } else { 3 }, 2, if equal { 6 } else { 7 }]];
        let mut owners = 0..;
        heights
            .iter()
            .map(|heights| Column {
                width: 5,
                blocks: heights
                    .iter()
                    .zip(owners.by_ref())
                    .map(|(&height, owner)| Block { owner, height })
                    .collect(),
            })
            .collect()
    }

    /// Every order of everything, priced ring by ring on a layout: nothing is shared with the search.
    #[test]
    fn the_optimum_is_the_optimum() {
        let platform = three_clusters(6);
        let shape = Shape::new(12, 1, 15, "t").unwrap();
        for (objective, equal) in every_objective().into_iter().flat_map(|o| [(o, false), (o, true)]) {
            let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
            let given = Columns { columns: blocks(equal), rule: Rule::of(objective), distances: &distances };
            let mut best = f64::INFINITY;
            let swapped = |mut columns: Vec<Column>| {
                (columns[0].blocks[0].owner, columns[2].blocks[0].owner) = (3, 0);
                columns
            };
            let starts = if equal { vec![blocks(true), swapped(blocks(true))] } else { vec![blocks(false)] };
            for start in starts {
                permutations(&mut start.clone(), 0, &mut |order| {
                    let mut columns = order.to_vec();
                    let orders: Vec<Vec<Vec<Block>>> = columns
                        .iter_mut()
                        .map(|c| {
                            let mut all = Vec::new();
                            permutations(&mut c.blocks, 0, &mut |b| all.push(b.to_vec()));
                            all
                        })
                        .collect();
                    let (ys, zs) = (orders[1].len(), orders[2].len());
                    for i in 0..orders[0].len() * ys * zs {
                        let (x, y, z) = (i / (ys * zs), i / zs % ys, i % zs);
                        for (column, blocks) in
                            columns.iter_mut().zip([&orders[0][x], &orders[1][y], &orders[2][z]])
                        {
                            column.blocks.clone_from(blocks);
                        }
                        let state = Columns { columns: columns.clone(), ..given.clone() };
                        let layout = Layout::new(shape, 6, state.parts()).unwrap();
                        best = f64::min(best, cost_of(&layout, &distances, objective).total);
                    }
                });
            }
            let (found, _) = columns(&given, MOST, &|_| true).unwrap();
            let found = found.cost().total;
            assert!((found - best).abs() <= 1e-9 * best, "{objective:?} {equal} {found} {best}");
        }
    }
}

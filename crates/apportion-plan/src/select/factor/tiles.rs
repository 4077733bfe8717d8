//! Layouts of a factorisation in two dimensions.
//!
//! Sources: Kalinov and Lastovetsky, Heterogeneous distribution of computations solving linear algebra problems on
//! networks of heterogeneous computers, Journal of Parallel and Distributed Computing 61, 2001; Beaumont, Boudet,
//! Petitet, Rastello, Robert, A proposal for a heterogeneous cluster ScaLAPACK, IEEE Transactions on Computers 50(10),
//! 2001.

use super::{Factorisation, fastest_first, give_out};
use crate::error::Result;
use crate::geometry::Rank;
use crate::model::Machine;
use crate::plan::{BlockTiles, GridTiles};

/// With more blocks in a row, a layout by tiles has many parts, and its forecast takes long.
const MOST_BLOCKS: u64 = 400;
/// The same for processors.
const MOST_PROCESSORS: usize = 1024;
/// Among more processors, only the grid of the least half-perimeters is considered.
const MANY: usize = 256;

/// Grids of groups of processors: a group has block columns in proportion to its speed, given out from the last to the
/// first, and in these each of its processors block rows, given out in the same way. One for a single group, and for
/// the numbers of groups about that of the least half-perimeters; none for as many groups as processors, whose grid would
/// be of whole block columns, or where one processor has a speed.
///
/// # Errors
/// Every processor has speed 0.
pub(super) fn grids(problem: Factorisation, machine: &Machine) -> Result<Vec<BlockTiles>> {
    let order = fastest_first(problem, machine)?;
    if order.len() < 2 || is_too_large(problem, machine) {
        return Ok(Vec::new());
    }
    // More groups than a square of processors has columns are no better than whole columns.
    let most = ((order.len() as f64).sqrt() as usize + 2).min(order.len() - 1);
    let divisions = divisions(problem, machine, &order, most);
    let speed = |rank: usize| speed(problem, machine, rank);
    let of = |groups: &[Vec<usize>]| {
        groups.iter().map(|group| group.len() as f64 * sum(group, speed)).sum::<f64>()
    };
    let all = sum(&order, speed);
    let perimeters = divisions.iter().map(|groups| of(groups) / all + groups.len() as f64);
    let least = perimeters.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place);
    let few = order.len() > MANY;
    let near = |place: &usize| *place == least || !few && (*place == 0 || place.abs_diff(least) == 1);
    Ok((0..most).filter(near).map(|place| grid(problem, machine, &divisions[place])).collect())
}

/// Numbers of groups of LU that are compared.
const NUMBERS: u32 = 6;

/// The same for LU, whose tiles are those of the whole matrix. Large groups need fewer rows of L, and exchange more
/// rows: which are best depends on the network, and the numbers of groups are from few to almost as many as
/// processors, each a few times the one before.
///
/// # Errors
/// Every processor has speed 0.
pub(super) fn lu_grids(problem: Factorisation, machine: &Machine) -> Result<Vec<GridTiles>> {
    let order = fastest_first(problem, machine)?;
    if order.len() < 2 || is_too_large(problem, machine) {
        return Ok(Vec::new());
    }
    let p = order.len();
    let most = if p > MANY { 2 * (p as f64).sqrt() as usize } else { p - 1 };
    let number = |t: u32| (most as f64).powf(f64::from(t) / f64::from(NUMBERS)).round() as usize;
    let mut numbers: Vec<usize> = (1..=NUMBERS).map(number).collect();
    numbers.dedup();
    let divisions = divisions(problem, machine, &order, most);
    let grids = numbers.into_iter().map(|count| lu_grid(problem, machine, &divisions[count - 1]));
    Ok(grids.collect())
}

/// True if there are too many tiles or processors to forecast all layouts.
fn is_too_large(problem: Factorisation, machine: &Machine) -> bool {
    problem.n.div_ceil(problem.block) > MOST_BLOCKS || machine.processors() > MOST_PROCESSORS
}

fn sum(ranks: &[usize], speed: impl Fn(usize) -> f64) -> f64 {
    ranks.iter().map(|&rank| speed(rank)).sum()
}

/// Cuts processors, given from the fastest to the slowest, into groups of neighbours whose columns have the least sum of
/// half-perimeters: one group, two, and so on up to `most`. O(most p^2).
fn divisions(
    problem: Factorisation,
    machine: &Machine,
    order: &[usize],
    most: usize,
) -> Vec<Vec<Vec<usize>>> {
    let p = order.len();
    let mut sums = vec![0.0; p + 1];
    order.iter().enumerate().for_each(|(i, &rank)| sums[i + 1] = sums[i] + speed(problem, machine, rank));
    let cost = |from: usize, to: usize| (to - from) as f64 * (sums[to] - sums[from]) / sums[p];
    // By the number of groups and of processors in them: the cost, and where the last group begins.
    let mut best = vec![vec![(f64::INFINITY, 0); p + 1]; most + 1];
    best[0][0].0 = 0.0;
    for number in 1..=most {
        for to in number..=p {
            let of = |from: usize| (best[number - 1][from].0 + cost(from, to), from);
            let least = (number - 1..to).map(of).min_by(|a, b| a.0.total_cmp(&b.0));
            best[number][to] = least.expect("a group has a processor");
        }
    }
    let division = |count: usize| {
        let (mut groups, mut to) = (Vec::new(), p);
        for number in (1..=count).rev() {
            let from = best[number][to].1;
            groups.push(order[from..to].to_vec());
            to = from;
        }
        groups
    };
    (1..=most).map(division).collect()
}

/// The groups of block columns: a group takes what its processors take together.
fn group_of_columns(problem: Factorisation, machine: &Machine, groups: &[Vec<usize>]) -> Vec<usize> {
    let all: Vec<usize> = (0..groups.len()).collect();
    let seconds =
        |group: usize, area: f64, _: u64| area / sum(&groups[group], |rank| speed(problem, machine, rank));
    give_out(problem, vec![usize::MAX; groups.len()], seconds, &all)
}

/// The grid of these groups for LU: the block rows of a group are given out as block columns are.
fn lu_grid(problem: Factorisation, machine: &Machine, groups: &[Vec<usize>]) -> GridTiles {
    let Factorisation { n, block, .. } = problem;
    let p = machine.processors();
    let group_of = group_of_columns(problem, machine, groups);
    let mut columns = vec![0; groups.len()];
    group_of.iter().for_each(|&group| columns[group] += 1);
    let rows = groups.iter().zip(&columns).map(|(members, columns)| {
        // Of the columns that remain.
        let part = f64::from(*columns) / group_of.len() as f64;
        let seconds = |rank: usize, area: f64, _: u64| machine.models[rank].seconds((area * part).max(1.0));
        give_out(problem, vec![usize::MAX; p], seconds, members)
    });
    let rows: Vec<Vec<usize>> = rows.collect();
    GridTiles::new(n, block, p, |row, column| Rank(rows[group_of[column]][row]))
}

/// The grid of these groups.
fn grid(problem: Factorisation, machine: &Machine, groups: &[Vec<usize>]) -> BlockTiles {
    let Factorisation { n, block, .. } = problem;
    let count = n.div_ceil(block) as usize;
    let width = |place: usize| ((place as u64 + 1) * block).min(n) - place as u64 * block;
    let group_of = group_of_columns(problem, machine, groups);
    let mut rows: Vec<Vec<Rank>> = Vec::new();
    for (group, members) in groups.iter().enumerate() {
        let mut owners = vec![Rank(0); count];
        let mut taken = vec![0.0; members.len()];
        for row in (0..count).rev() {
            let columns = (0..=row).filter(|&column| group_of[column] == group);
            let area = (width(row) * columns.map(width).sum::<u64>()) as f64;
            let time = |i: &usize| machine.models[members[*i]].seconds(taken[*i] + area.max(1.0));
            let taker = (0..members.len()).min_by(|a, b| time(a).total_cmp(&time(b)));
            let taker = taker.expect("a group has a processor");
            taken[taker] += area;
            owners[row] = Rank(members[taker]);
        }
        rows.push(owners);
    }
    BlockTiles::new(n, block, machine.processors(), |row, column| rows[group_of[column]][row])
}

fn speed(problem: Factorisation, machine: &Machine, rank: usize) -> f64 {
    machine.models[rank].speed(super::typical_size(problem, machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Blocks, Factors};

    const CHOLESKY: Factorisation = Factorisation { factors: Factors::Cholesky, n: 2400, block: 50 };

    fn machine(speeds: &[f64]) -> Machine {
        Machine::from_speeds(speeds).unwrap()
    }

    /// The products of each processor over all panels, relative to its speed and the ideal.
    fn balance(tiles: &BlockTiles, speeds: &[f64]) -> f64 {
        let work = |rank: usize| -> f64 {
            let own = |i: usize, j: usize| tiles.owner(i, j) == Rank(rank);
            let tiles = (0..tiles.count()).flat_map(|i| (0..=i).map(move |j| (i, j)));
            tiles.filter(|&(i, j)| own(i, j)).map(|(_, j)| j as f64).sum()
        };
        let all: Vec<f64> = (0..speeds.len()).map(work).collect();
        let ideal = all.iter().sum::<f64>() / speeds.iter().sum::<f64>();
        all.iter().zip(speeds).map(|(work, speed)| work / speed / ideal).fold(0.0, f64::max)
    }

    /// Each suffix of a grid is balanced too.
    #[test]
    fn grids_are_balanced_by_speed() {
        for speeds in [&[1.0; 4][..], &[4.0, 2.0, 1.0, 1.0], &[9.0, 1.0], &[3.0, 0.0, 2.0, 2.0, 1.0]] {
            let grids = grids(CHOLESKY, &machine(speeds)).unwrap();
            assert!(!grids.is_empty());
            for tiles in grids {
                let found = balance(&tiles, speeds);
                assert!(found < 1.12, "{speeds:?}: {found}");
                let used: Vec<bool> = (0..speeds.len()).map(|rank| tiles.has_tiles(Rank(rank))).collect();
                assert_eq!(used, speeds.iter().map(|speed| *speed > 0.0).collect::<Vec<_>>());
                assert!((0..speeds.len()).all(|rank| tiles.sets(Rank(rank)).len() <= 1), "one set each");
            }
        }
        assert!(grids(CHOLESKY, &machine(&[0.0, 1.0])).unwrap().is_empty());
    }

    const LU: Factorisation = Factorisation { factors: Factors::Lu, ..CHOLESKY };

    /// As whole block columns are: no processor has more than its part of what remains, at any time, but for two block
    /// rows or columns.
    #[test]
    fn every_remainder_of_a_grid_of_lu_is_balanced() {
        for speeds in [
            &[1.0; 4][..],
            &[4.0, 2.0, 1.0, 1.0],
            &[9.0, 1.0],
            &[3.0, 0.0, 2.0, 2.0, 1.0],
            &[3.0, 3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        ] {
            let all = lu_grids(LU, &machine(speeds)).unwrap();
            assert!(!all.is_empty());
            let used = |rank| speeds[rank] > 0.0;
            let mut found = Vec::new();
            for tiles in all {
                assert!((0..speeds.len()).all(|rank| tiles.group(Rank(rank)).is_some() == used(rank)));
                let mut most: f64 = 0.0;
                for first in 0..tiles.count() {
                    let left = tiles.count() - first;
                    for (rank, speed) in speeds.iter().enumerate().filter(|(rank, _)| used(*rank)) {
                        let rank = Rank(rank);
                        let group = tiles.group(rank).unwrap();
                        let together: f64 = tiles.members(group).iter().map(|one| speeds[one.0]).sum();
                        let within = |own: &[usize], part: f64| {
                            let own = own.iter().filter(|place| **place >= first).count() as f64;
                            assert!(own < left as f64 * part + 2.0, "{speeds:?} {rank:?} {first}");
                        };
                        within(tiles.columns(rank), together / speeds.iter().sum::<f64>());
                        within(tiles.rows(rank), speed / together);
                    }
                }
                // All products, relative to the speed and the ideal.
                for (rank, speed) in speeds.iter().enumerate().filter(|(rank, _)| used(*rank)) {
                    let rows = tiles.rows(Rank(rank)).iter();
                    let own = rows.flat_map(|&i| tiles.columns(Rank(rank)).iter().map(move |&j| i.min(j)));
                    let count = tiles.count() as f64;
                    let ideal =
                        (count - 1.0) * count * (2.0 * count - 1.0) / 6.0 / speeds.iter().sum::<f64>();
                    most = most.max(own.sum::<usize>() as f64 / speed / ideal);
                }
                found.push(most);
            }
            let best = found.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(best < 1.12, "{speeds:?}: {found:?}");
        }
        assert!(lu_grids(LU, &machine(&[0.0, 1.0])).unwrap().is_empty());
        // One tile.
        let small = Factorisation { n: 50, ..LU };
        let layout = super::super::FactorLayout::Grid;
        let blocks = super::super::lay_out(small, layout, &machine(&[1.0, 2.0]), 8).unwrap();
        assert!(blocks.iter().all(Blocks::are_columns));
    }

    /// The cost of groups is the least of all that are neighbours.
    #[test]
    fn groups_are_the_cheapest() {
        let speeds = [9.0, 7.0, 4.0, 2.0, 1.0, 1.0];
        let machine = machine(&speeds);
        let order: Vec<usize> = (0..speeds.len()).collect();
        let cost = |groups: &[Vec<usize>]| -> f64 {
            groups
                .iter()
                .map(|group| group.len() as f64 * group.iter().map(|&i| speeds[i]).sum::<f64>())
                .sum()
        };
        for (i, groups) in divisions(CHOLESKY, &machine, &order, speeds.len()).iter().enumerate() {
            let (count, found) = (i + 1, cost(groups));
            let cuts =
                (0..1 << (speeds.len() - 1)).filter(|cuts: &usize| cuts.count_ones() as usize == count - 1);
            let least = cuts.map(|cuts| {
                let mut all = vec![vec![0]];
                for i in 1..speeds.len() {
                    if cuts >> (i - 1) & 1 == 1 {
                        all.push(Vec::new());
                    }
                    all.last_mut().unwrap().push(i);
                }
                cost(&all)
            });
            assert!((found - least.fold(f64::INFINITY, f64::min)).abs() < 1e-9, "{count}");
        }
    }
}

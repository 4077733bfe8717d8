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
use crate::plan::{Factors, TileMap};

/// With more blocks in a row, a layout by tiles has many parts, and its forecast takes long.
const MOST_BLOCKS: u64 = 400;
/// The same for processors.
const MOST_PROCESSORS: usize = 1024;
/// Among more processors, only the grid of the least half-perimeters is considered.
const MANY: usize = 256;

/// Numbers of groups of LU that are compared.
const NUMBERS: u32 = 6;

/// Grids of groups of processors: a group has block columns in proportion to its speed, given out from the last to the
/// first, and in these each of its processors block rows, given out in the same way. None where one processor has a speed.
///
/// Of symmetric matrices, one for a single group, and for the numbers of groups about that of the least half-perimeters;
/// not for as many groups as processors, whose grid would be of whole block columns. Of LU, large groups need fewer rows
/// of L, and exchange more rows: which are best depends on the network, and the numbers of groups are from few to almost
/// as many as processors, each a few times the one before.
///
/// # Errors
/// Every processor has speed 0.
pub(super) fn grids(problem: Factorisation, machine: &Machine) -> Result<Vec<TileMap>> {
    let order = fastest_first(problem, machine)?;
    let p = order.len();
    if p < 2 || is_too_large(problem, machine) {
        return Ok(Vec::new());
    }
    let (root, few) = ((p as f64).sqrt() as usize, p <= MANY);
    let most = match problem.factors {
        // More groups than a square of processors has columns are no better than whole columns.
        Factors::Cholesky | Factors::Ldlt => (root + 2).min(p - 1),
        Factors::Lu if few => p - 1,
        Factors::Lu => 2 * root,
    };
    let divisions = divisions(problem, machine, &order, most);
    let mut numbers: Vec<usize> = if problem.factors == Factors::Lu {
        let number = |t: u32| (most as f64).powf(f64::from(t) / f64::from(NUMBERS)).round() as usize;
        (1..=NUMBERS).map(number).collect()
    } else {
        let speed = |rank: usize| speed(problem, machine, rank);
        let heights = |group: &Vec<usize>| group.len() as f64 * sum(group, speed);
        let perimeter = |groups: &Vec<Vec<usize>>| {
            groups.iter().map(heights).sum::<f64>() / sum(&order, speed) + groups.len() as f64
        };
        let perimeters: Vec<f64> = divisions.iter().map(perimeter).collect();
        let least =
            (0..most).min_by(|&a, &b| perimeters[a].total_cmp(&perimeters[b])).map_or(0, |place| place + 1);
        let near = |number: &usize| *number == least || few && (*number == 1 || number.abs_diff(least) == 1);
        (1..=most).filter(near).collect()
    };
    numbers.dedup();
    Ok(numbers.into_iter().map(|number| grid(problem, machine, &divisions[number - 1])).collect())
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

/// The grid of these groups: a group takes what its processors take together.
fn grid(problem: Factorisation, machine: &Machine, groups: &[Vec<usize>]) -> TileMap {
    let Factorisation { factors, n, block } = problem;
    let all: Vec<usize> = (0..groups.len()).collect();
    let seconds =
        |group: usize, area: f64, _: u64| area / sum(&groups[group], |rank| speed(problem, machine, rank));
    let group_of = give_out(problem, vec![usize::MAX; groups.len()], seconds, &all);
    let rows = groups.iter().enumerate().map(|(group, members)| {
        let columns: Vec<usize> = (0..group_of.len()).filter(|&column| group_of[column] == group).collect();
        match factors {
            Factors::Lu => lu_rows(problem, machine, members, columns.len() as f64 / group_of.len() as f64),
            Factors::Cholesky | Factors::Ldlt => rows_by_area(problem, machine, members, &columns),
        }
    });
    let rows: Vec<Vec<usize>> = rows.collect();
    let owner = |row: usize, column: usize| Rank(rows[group_of[column]][row]);
    TileMap::tiles(factors, n, block, machine.processors(), owner)
        .expect("a group has the same rows in its columns")
}

/// The owners of the block rows of a group of LU, which has this part of the columns that remain: they are given out as
/// block columns are.
fn lu_rows(problem: Factorisation, machine: &Machine, members: &[usize], part: f64) -> Vec<usize> {
    let seconds = |rank: usize, area: f64, _: u64| machine.models[rank].seconds((area * part).max(1.0));
    give_out(problem, vec![usize::MAX; machine.processors()], seconds, members)
}

/// The owners of the block rows of a group with these block columns of a triangle: from the last row to the first, each to
/// the processor that then has the least time for all of its own.
fn rows_by_area(
    problem: Factorisation,
    machine: &Machine,
    members: &[usize],
    columns: &[usize],
) -> Vec<usize> {
    let Factorisation { n, block, .. } = problem;
    let count = n.div_ceil(block) as usize;
    let width = |place: usize| ((place as u64 + 1) * block).min(n) - place as u64 * block;
    let (mut owners, mut taken) = (vec![0; count], vec![0.0; members.len()]);
    for row in (0..count).rev() {
        let across =
            columns.iter().take_while(|column| **column <= row).map(|&column| width(column)).sum::<u64>();
        let area = (width(row) * across) as f64;
        let time = |i: &usize| machine.models[members[*i]].seconds(taken[*i] + area.max(1.0));
        let taker = (0..members.len()).min_by(|a, b| time(a).total_cmp(&time(b)));
        let taker = taker.expect("a group has a processor");
        taken[taker] += area;
        owners[row] = members[taker];
    }
    owners
}

fn speed(problem: Factorisation, machine: &Machine, rank: usize) -> f64 {
    machine.models[rank].speed(super::typical_size(problem, machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOLESKY: Factorisation = Factorisation { factors: Factors::Cholesky, n: 2400, block: 50 };

    fn machine(speeds: &[f64]) -> Machine {
        Machine::from_speeds(speeds).unwrap()
    }

    /// The products of each processor over all panels, relative to its speed and the ideal.
    fn balance(tiles: &TileMap, speeds: &[f64]) -> f64 {
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
                let used: Vec<bool> =
                    (0..speeds.len()).map(|rank| tiles.group(Rank(rank)).is_some()).collect();
                assert_eq!(used, speeds.iter().map(|speed| *speed > 0.0).collect::<Vec<_>>());
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
            let all = grids(LU, &machine(speeds)).unwrap();
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
                        within(tiles.own(rank), together / speeds.iter().sum::<f64>());
                        within(tiles.rows(rank), speed / together);
                    }
                }
                // All products, relative to the speed and the ideal.
                for (rank, speed) in speeds.iter().enumerate().filter(|(rank, _)| used(*rank)) {
                    let rows = tiles.rows(Rank(rank)).iter();
                    let own = rows.flat_map(|&i| tiles.own(Rank(rank)).iter().map(move |&j| i.min(j)));
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
        assert!(grids(LU, &machine(&[0.0, 1.0])).unwrap().is_empty());
        // One tile.
        let small = Factorisation { n: 50, ..LU };
        let layout = super::super::FactorLayout::Grid;
        let blocks = super::super::lay_out(small, layout, &machine(&[1.0, 2.0]), 8).unwrap();
        assert!(blocks.iter().all(TileMap::are_columns));
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

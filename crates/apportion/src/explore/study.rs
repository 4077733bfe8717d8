//! The Monte Carlo study of cost over lower bound: how close layouts of random areas come to 2 sum
//! sqrt(area).
//!
//! Source: Beaumont et al. 2001 (columns), Becker 2010, sections 4.2.4 and 6.1.3 (square corners; Figures
//! 4.4, 4.5).

mod depth;
mod draw;
mod price;
mod subsets;
mod tally;

pub use draw::Distribution;
pub use tally::{StudyCorner, StudyDepth, StudyRatio, StudyRow, StudySearched, StudySubsets};

use crate::error::{Error, Result};
use crate::random::Random;
use crate::run::Monitor;
use crate::threads::share_out;
use draw::Draws;
use price::Prices;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use tally::Tally;

/// Number of draws that share a seed: small enough that a stop takes effect soon, large enough that
/// scheduling is free.
const BLOCK: u64 = 1 << 13;

/// Number of draws in one task of the search, each of which costs thousands of times as much.
const SEARCH_BLOCK: u64 = 8;

/// Cost of one searched draw in ordinary draws; for progress only.
const SEARCH_COST: u64 = 10_000;

/// Number of draws in one task of subsets, and the cost of one in ordinary draws; for progress only.
const SUBSET_BLOCK: u64 = 4;
const SUBSET_COST: u64 = 100_000;

/// The same of boxes.
const BOX_BLOCK: u64 = 4;
const BOX_COST: u64 = 20_000;

/// Maximum number of processors of a study.
const MOST_PROCESSORS: usize = 1000;

/// The setup of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Numbers of processors, each with its own draws.
    pub processors: RangeInclusive<usize>,
    /// Draws of areas for each number of processors, at least 1.
    pub draws: u64,
    /// The number of draws, from the first, that are also laid out by the portfolio of methods, which
    /// includes `recursive`.
    pub searched: u64,
    /// The number of draws of machines with a network of two levels, for which `auto` may leave processors
    /// out.
    pub subsets: u64,
    /// The number of draws of products with a long inner dimension, which boxes may cut.
    pub boxes: u64,
    /// How speeds are drawn; areas are in proportion to them.
    pub distribution: Distribution,
    /// The largest ratio of the fastest to the slowest speed; draws with a larger ratio are dropped.
    pub most_unequal: Option<f64>,
    /// Equal seeds give equal results on any number of threads.
    pub seed: u64,
}

/// One row per number of processors: mean and minimum of cost / lower bound on the unit square, in real
/// arithmetic, for the optimal columns, for squares on the diagonal where they cost less, for the better of
/// the two, and for the best layout that the portfolio finds; what leaving processors out gains on random
/// networks; and the volume of boxes over its bound where the inner dimension is long.
///
/// Every block of draws has its own seed and sums are added in the order of blocks, so that the result does
/// not depend on `threads`. About 0.1 us per processor and draw, and milliseconds per searched draw.
///
/// # Errors
/// No draws, an empty range or more than 1,000 processors, a `most_unequal` below 1 (exit code 2); no draw
/// within `most_unequal`; [`Error::Interrupted`] if the monitor is told to stop.
pub fn study(study: &Study, threads: usize, monitor: &Monitor) -> Result<Vec<StudyRow>> {
    check(study)?;
    let tasks = tasks(study);
    monitor.begin(tasks.iter().map(Task::cost).sum());
    let done: Mutex<Vec<(usize, Tally)>> = Mutex::new(Vec::with_capacity(tasks.len()));
    // The most expensive tasks are last in the list. They are taken first, so that no thread is left with one
    // at the end.
    share_out(tasks.iter().rev().collect(), threads, |task| {
        if !monitor.is_stopped() {
            let tally = task.run(study);
            monitor.advance(task.cost());
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((task.number, tally));
        }
    });
    if monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    let mut rows: Vec<(usize, Tally)> = study.processors.clone().map(|p| (p, Tally::default())).collect();
    for (number, tally) in done {
        rows[tasks[number].processors - study.processors.start()].1.add(&tally);
    }
    rows.into_iter().map(|(p, tally)| tally.row(p, study)).collect()
}

fn check(study: &Study) -> Result<()> {
    let (first, last) = (*study.processors.start(), *study.processors.end());
    if first < 1 || first > last || last > MOST_PROCESSORS {
        return Err(Error::input(
            "`processors`",
            format!("{first}..{last} is not a range within 1..{MOST_PROCESSORS}"),
            "write a number or a range, such as 1..40",
        ));
    }
    if study.draws == 0 {
        return Err(Error::input("`draws`", "the number of draws must be at least 1", "give 1 or more"));
    }
    match study.most_unequal {
        Some(most) if most.is_nan() || most < 1.0 => Err(Error::input(
            "`most_unequal`",
            format!("{most} is less than 1, the ratio of equal speeds"),
            "give a ratio of at least 1, such as 100",
        )),
        _ => Ok(()),
    }
}

/// What is done with a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Price,
    Search,
    Subsets,
    Boxes,
}

/// A block of draws for one number of processors.
struct Task {
    number: usize,
    processors: usize,
    block: u64,
    draws: u64,
    kind: Kind,
}

fn tasks(study: &Study) -> Vec<Task> {
    let mut tasks = Vec::new();
    for processors in study.processors.clone() {
        let searched = study.searched.min(study.draws);
        for (draws, size, kind) in [
            (study.draws, BLOCK, Kind::Price),
            (searched, SEARCH_BLOCK, Kind::Search),
            (study.subsets, SUBSET_BLOCK, Kind::Subsets),
            (study.boxes, BOX_BLOCK, Kind::Boxes),
        ] {
            for block in 0..draws.div_ceil(size) {
                let draws = size.min(draws - block * size);
                tasks.push(Task { number: tasks.len(), processors, block, draws, kind });
            }
        }
    }
    tasks
}

impl Task {
    fn cost(&self) -> u64 {
        let weight = match self.kind {
            Kind::Price => 1,
            Kind::Search => SEARCH_COST,
            Kind::Subsets => SUBSET_COST,
            Kind::Boxes => BOX_COST,
        };
        self.processors as u64 * self.draws * weight
    }

    fn run(&self, study: &Study) -> Tally {
        let bits = match self.kind {
            Kind::Price => 0,
            Kind::Search => 1 << 47,
            Kind::Subsets => 1 << 46,
            Kind::Boxes => 1 << 45,
        };
        let stream = (self.processors as u64) << 48 | bits | self.block;
        // The output function of SplitMix64, from the state that it steps on to.
        let mix = |state: u64| Random::new(state.wrapping_sub(0x9e37_79b9_7f4a_7c15)).word();
        let seed = mix(study.seed) ^ mix(!stream);
        let mut draws = Draws::new(seed, study.distribution);
        let mut prices = Prices::new(self.processors);
        let mut networks = Random::new(!seed);
        let mut tally = Tally::default();
        let mut areas = vec![0.0; self.processors];
        for _ in 0..self.draws {
            draws.ascending(&mut areas);
            let (slowest, fastest) = (areas[0], areas[self.processors - 1]);
            if study.most_unequal.is_some_and(|most| fastest > most * slowest) {
                continue;
            }
            match self.kind {
                Kind::Search => {
                    tally.search(prices.columns(&areas), prices.searched(&areas), prices.bound(&areas));
                }
                Kind::Price => {
                    tally.take(prices.columns(&areas), prices.corner(&areas), prices.bound(&areas));
                }
                Kind::Subsets => tally.machine(subsets::priced(&areas, &mut networks)),
                Kind::Boxes => tally.depth(depth::priced(&areas, &mut networks)),
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests;

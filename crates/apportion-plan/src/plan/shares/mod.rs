//! 1-D shares: the number of units of each processor, out of n units.
//!
//! [`even`] ignores speeds. [`proportional()`] and [`largest_remainder`] take one speed per processor: the
//! first ends soonest, the second is nearest to the proportion. [`fpm()`] takes speed functions, and [`exact()`]
//! arbitrary time functions. [`robust`] takes bands of speeds, [`pareto`] also energies, and [`hierarchical`]
//! divides among clusters first. A [`Balancer`] follows the times of a running loop, a [`Search`] those of
//! whole runs, a [`OnePass`] hands out the pieces of work that is done once.

mod balancer;
mod chain;
mod exact;
mod fpm;
mod hierarchical;
mod largest_remainder;
mod least;
mod limits;
mod multiples;
pub mod noise;
mod one_pass;
mod pareto;
mod proportional;
mod robust;
mod search;

pub(crate) use balancer::offsets;
pub use balancer::{Balancer, Decision, MovingCost, Reason};
pub use chain::{Chain, ChainParts, SecondKind};
pub(in crate::plan) use exact::gcd;
pub use exact::{exact, exact_interpolated, exact_within};
pub(crate) use fpm::balanced_seconds;
pub use fpm::{fpm, fpm_within, ideal_seconds};
pub use hierarchical::hierarchical;
pub use largest_remainder::{even_among, largest_remainder, largest_remainder_within};
pub use least::{Fall, OptimalShares, least_time};
pub use limits::Limits;
pub use one_pass::{
    Estimate, Line, OnePass, OnePassOptions, Order, TimeRange, TimedPiece, learnt_costs, whole_lines,
};
pub use pareto::{Tradeoff, pareto, pareto_watched};
pub(crate) use proportional::even;
pub use proportional::{LeftOver, left_over_first, proportional};
pub use robust::{RobustShares, regret, robust};
pub use search::{Search, Step};

use crate::model::Model;

/// The longest of the processors' times.
pub fn makespan(models: &[Model], shares: &[u64]) -> f64 {
    models.iter().zip(shares).map(|(model, &share)| model.seconds(share as f64)).fold(0.0, f64::max)
}

/// All ways to write n as a sum of p numbers: the oracles of this folder try them all.
#[cfg(test)]
pub(crate) fn compositions(n: u64, p: usize) -> Vec<Vec<u64>> {
    if p == 1 {
        return vec![vec![n]];
    }
    (0..=n)
        .flat_map(|first| {
            compositions(n - first, p - 1).into_iter().map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
        })
        .collect()
}

/// The smallest longest time over all integer shares, by dynamic programming: slow and obviously right.
#[cfg(test)]
fn shortest_makespan(models: &[Model], n: u64) -> f64 {
    let n = n as usize;
    let mut best = vec![f64::INFINITY; n + 1];
    best[0] = 0.0;
    for model in models {
        let mut next = vec![f64::INFINITY; n + 1];
        for done in 0..=n {
            for share in 0..=done {
                next[done] = next[done].min(best[done - share].max(model.seconds(share as f64)));
            }
        }
        best = next;
    }
    best[n]
}

//! Time against energy: the Pareto front of all divisions.
//!
//! Source: HEPOPTA's problem (Khaleghzadeh, Fahad, Shahid, Manumachu, Lastovetsky, IEEE Transactions on
//! Parallel and Distributed Systems 2021): the front of (longest time, sum of energies) over measured sizes.

use super::limits::resolve;
use super::{Limits, gcd};
use crate::error::{Error, Result};
use crate::model::Model;
use serde::Serialize;

/// Maximum number of sums, over all processors.
const MOST_SUMS: u128 = 10_000_000;

/// Maximum number of combinations of a size and a sum: minutes, where fronts are short.
const MOST_COMBINATIONS: u128 = 1_000_000_000;

/// One division on the front.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tradeoff {
    /// The longest of the processors' times.
    pub seconds: f64,
    /// The sum of the processors' energies.
    pub joules: f64,
    /// Units of each processor.
    pub shares: Vec<u64>,
}

/// A division of some units among the first processors.
#[derive(Debug, Clone, Copy)]
struct State {
    seconds: f64,
    joules: f64,
    share: u64,
    /// Index of the state of the previous processors, in their front for the remaining units.
    before: usize,
}

/// All Pareto-optimal divisions of `n` units: no other division has both a shorter longest time and less
/// energy. They are sorted by time. Shares are measured sizes or 0, and 0 needs neither time nor energy.
///
/// Dynamic programming over processors, with dominated states dropped: O(p m n f log(m f)) time and O(p n f)
/// memory for m points each and fronts of f states. Sizes are counted in units of their greatest common
/// divisor.
///
/// # Errors
/// A whole size that could be used has no energy (exit code 2); more than 10^7 sums or 10^9 combinations of
/// sizes and sums; no measured sizes add up to `n`.
///
/// # Example
/// ```
/// use apportion_plan::{model::{Model, Point}, plan::shares::pareto};
/// let point = |x: f64, t: f64, e: f64| Point::new(x, t).with_energy(e);
/// let quick = Model::piecewise("quick", vec![point(1.0, 1.0, 9.0), point(2.0, 2.0, 18.0)], None)?;
/// let frugal = Model::piecewise("frugal", vec![point(1.0, 3.0, 1.0), point(2.0, 6.0, 2.0)], None)?;
/// let front = pareto(&[quick, frugal], 2, &[])?;
/// let front: Vec<_> = front.into_iter().map(|t| (t.seconds, t.joules)).collect();
/// assert_eq!(front, [(2.0, 18.0), (3.0, 10.0), (6.0, 2.0)]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
pub fn pareto(models: &[Model], n: u64, limits: &[Limits]) -> Result<Vec<Tradeoff>> {
    pareto_watched(models, n, limits, &mut |_, _| ())
}

/// [`pareto`] that reports its progress: `progress(done, total)` is called with the sums done since the last
/// call, and with all sums.
///
/// # Errors
/// As [`pareto`].
pub fn pareto_watched(
    models: &[Model],
    n: u64,
    limits: &[Limits],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Tradeoff>> {
    let allowed = resolve(models, n, limits)?;
    let options: Vec<Vec<State>> = models
        .iter()
        .zip(&allowed)
        .map(|(model, a)| {
            let mut states = Vec::new();
            if a.least == 0 {
                states.push(State { seconds: 0.0, joules: 0.0, share: 0, before: 0 });
            }
            for p in model.points().iter().filter(|p| p.size.fract() == 0.0 && p.size >= 1.0) {
                let share = p.size as u64;
                if !(a.least..=a.most).contains(&share) || !share.is_multiple_of(a.step) {
                    continue;
                }
                let joules = p.energy.ok_or_else(|| no_energy(model, p.size))?;
                states.push(State { seconds: p.seconds, joules, share, before: 0 });
            }
            Ok(states)
        })
        .collect::<Result<_>>()?;
    let unit = options.iter().flatten().fold(n, |g, o| gcd(g, o.share)).max(1);
    let blocks = n / unit;
    let combinations: u128 = options.iter().map(|o| o.len() as u128 * u128::from(blocks)).sum();
    if u128::from(blocks) * models.len() as u128 > MOST_SUMS || combinations > MOST_COMBINATIONS {
        return Err(Error::infeasible(
            format!(
                "{n} units in blocks of {unit} and {combinations} combinations of sizes and sums are too many to \
                 weigh time against energy: at most {MOST_COMBINATIONS}"
            ),
            "use sizes with a larger common block, fewer points, or `method = exact` for time alone",
        ));
    }
    let layers = fronts(&options, unit, blocks as usize, progress);
    let last = &layers[models.len()][blocks as usize];
    if last.is_empty() {
        return Err(Error::infeasible(
            format!("no measured sizes add up to {n} units"),
            "measure more sizes, or divide another number of units",
        ));
    }
    Ok(last.iter().map(|state| trace_back(&layers, state, blocks as usize, unit)).collect())
}

/// `layers[i][s]`: the front of dividing s blocks among the first i processors.
fn fronts(
    options: &[Vec<State>],
    unit: u64,
    blocks: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<Vec<Vec<State>>> {
    let total = (options.len() * (blocks + 1)) as u64;
    let size = |state: &State| (state.share / unit) as usize;
    // The smallest and largest sums of the processors from each one on.
    let mut rest: Vec<(usize, usize)> = vec![(0, 0)];
    for mine in options.iter().rev() {
        let (least, most) = rest[rest.len() - 1];
        let (min, max) = (mine.iter().map(size).min().unwrap_or(0), mine.iter().map(size).max().unwrap_or(0));
        rest.push((least + min, most.saturating_add(max)));
    }
    rest.reverse();
    let mut layers = vec![vec![Vec::new(); blocks + 1]];
    layers[0][0].push(State { seconds: 0.0, joules: 0.0, share: 0, before: 0 });
    for (i, mine) in options.iter().enumerate() {
        // Sums that the remaining processors can complete; the last one's is the whole.
        let (least, most) = rest[i + 1];
        let wanted = blocks.saturating_sub(most)..=blocks.saturating_sub(least);
        let mut next = vec![Vec::new(); blocks + 1];
        for sum in wanted.filter(|_| least <= blocks) {
            if sum % 256 == 255 {
                progress(256, total);
            }
            let mut states = Vec::new();
            for option in mine {
                let Some(rest) = sum.checked_sub((option.share / unit) as usize) else { continue };
                states.extend(layers[i][rest].iter().enumerate().map(|(before, s)| State {
                    seconds: s.seconds.max(option.seconds),
                    joules: s.joules + option.joules,
                    share: option.share,
                    before,
                }));
            }
            next[sum] = undominated(states);
        }
        layers.push(next);
    }
    layers
}

/// The states that no other state beats in both time and energy, fastest first.
fn undominated(mut states: Vec<State>) -> Vec<State> {
    states.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.joules.total_cmp(&b.joules)));
    let mut least = f64::INFINITY;
    states.retain(|s| {
        let better = s.joules < least;
        least = least.min(s.joules);
        better
    });
    states
}

fn trace_back(layers: &[Vec<Vec<State>>], end: &State, blocks: usize, unit: u64) -> Tradeoff {
    let mut shares = vec![0; layers.len() - 1];
    let (mut state, mut sum) = (*end, blocks);
    for (i, share) in shares.iter_mut().enumerate().rev() {
        *share = state.share;
        sum -= (state.share / unit) as usize;
        state = layers[i][sum][state.before];
    }
    Tradeoff { seconds: end.seconds, joules: end.joules, shares }
}

fn no_energy(model: &Model, size: f64) -> Error {
    Error::input(
        format!("model of \"{}\": energy", model.processor()),
        format!("the point of size {size} has no energy"),
        "measure energy too, or optimise time alone",
    )
}

#[cfg(test)]
mod tests {
    use super::super::compositions;
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    #[test]
    fn energy_must_be_measured() {
        let model = Model::piecewise("p", vec![Point::new(1.0, 1.0)], None).unwrap();
        let error = pareto(&[model], 1, &[]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("energy"), "{error}");
    }

    proptest! {
        #[test]
        fn agrees_with_trying_everything(
            raw in prop::collection::vec(prop::collection::btree_map(1u32..12, (1u32..12, 1u32..12), 1..8), 1..4),
            n in 0u64..20,
        ) {
            let models: Vec<Model> = raw
                .iter()
                .map(|points| points
                    .iter()
                    .map(|(&x, &(t, e))| Point::new(f64::from(x), f64::from(t)).with_energy(f64::from(e)))
                    .collect())
                .map(|points| Model::piecewise("p", points, None).unwrap())
                .collect();
            let cost = |shares: &[u64]| -> Option<(u32, u32)> {
                let mut total = (0, 0);
                for (&share, points) in shares.iter().zip(&raw).filter(|(share, _)| **share > 0) {
                    let (t, e) = points.get(&u32::try_from(share).unwrap())?;
                    total = (total.0.max(*t), total.1 + e);
                }
                Some(total)
            };
            let all: Vec<(u32, u32)> = compositions(n, raw.len()).iter().filter_map(|c| cost(c)).collect();
            let mut front: Vec<(u32, u32)> = all
                .iter()
                .copied()
                .filter(|a| !all.iter().any(|b| b != a && b.0 <= a.0 && b.1 <= a.1))
                .collect();
            front.sort_unstable();
            front.dedup();
            match pareto(&models, n, &[]) {
                Ok(ours) => {
                    for t in &ours {
                        prop_assert_eq!(t.shares.iter().sum::<u64>(), n);
                        let (seconds, joules) = cost(&t.shares).unwrap();
                        prop_assert_eq!((f64::from(seconds), f64::from(joules)), (t.seconds, t.joules));
                    }
                    let ours: Vec<(u32, u32)> = ours.iter().map(|t| (t.seconds as u32, t.joules as u32)).collect();
                    prop_assert_eq!(ours, front);
                }
                Err(error) => {
                    prop_assert_eq!(error.exit_code(), 1);
                    prop_assert!(front.is_empty());
                }
            }
        }
    }
}

//! Repartitioning with partial models: divide, measure, divide again, until all processors finish together.
//!
//! Source: DFPA (Lastovetsky and Reddy, "Distributed data partitioning for heterogeneous processors based on
//! partial estimation of their functional performance models", HeteroPar 2009). Added: a cap on rounds, reuse
//! of near points, the best shares so far, and processors that become slower or faster during the search.

use super::{even, fpm};
use crate::error::{Error, Result};
use crate::model::{Model, Point};

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All processors with units finish within the tolerance of each other: keep the shares.
    Balanced,
    /// Measure another round with the new shares.
    Again,
    /// The shares are the best seen: no rounds are left, or the estimate offers nothing new (a single unit
    /// more or less may be the only possible change).
    GaveUp,
}

/// A search for balance, driven by measured times; it measures nothing itself.
///
/// # Example
/// ```
/// use apportion::{platform::Emulated, plan::shares::{Dfpa, Step}};
/// let processors: Vec<Emulated> = vec!["peak 9e3".parse()?, "peak 3e3, cliff 2e3 0.1".parse()?];
/// let mut dfpa = Dfpa::new(12_000, 2, 0.02)?;
/// let step = loop {
///     let seconds: Vec<f64> = processors.iter().zip(dfpa.shares()).map(|(p, &x)| p.seconds(x as f64)).collect();
///     match dfpa.observe(&seconds)? {
///         Step::Again => continue,
///         end => break end,
///     }
/// };
/// assert_eq!(step, Step::Balanced);
/// # Ok::<(), apportion::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dfpa {
    n: u64,
    tolerance: f64,
    most_rounds: u32,
    /// Points of each processor, ascending by size.
    known: Vec<Vec<Point>>,
    /// The maximum share of each processor, if known.
    caps: Vec<Option<f64>>,
    /// Speed functions from an earlier measurement, used until the first round has measured the current
    /// speeds.
    believed: Vec<Model>,
    shares: Vec<u64>,
    rounds: u32,
    /// Shares of this search with their longest time, since a processor last changed.
    tried: Vec<(Vec<u64>, f64)>,
}

impl Dfpa {
    /// A search for shares of `n` units, starting from equal ones; `tolerance` is the largest relative
    /// difference of two times that counts as balanced. At most 20 rounds.
    ///
    /// # Errors
    /// No processors, no units, or a tolerance that is not positive.
    pub fn new(n: u64, processors: usize, tolerance: f64) -> Result<Self> {
        if processors == 0 || n == 0 {
            return Err(Error::input(
                "units",
                format!("{n} units on {processors} processors leave nothing to balance"),
                "give at least one of each",
            ));
        }
        if !(tolerance.is_finite() && tolerance > 0.0) {
            return Err(Error::input(
                "tolerance",
                format!("{tolerance} is not a positive fraction"),
                "0.05 is usual",
            ));
        }
        Ok(Self {
            n,
            tolerance,
            most_rounds: 20,
            known: vec![Vec::new(); processors],
            caps: vec![None; processors],
            believed: Vec::new(),
            shares: even(n, processors),
            rounds: 0,
            tried: Vec::new(),
        })
    }

    /// The same search with another cap on rounds.
    pub fn with_rounds(self, most_rounds: u32) -> Self {
        Self { most_rounds, ..self }
    }

    /// The same search, starting from known speed functions instead of equal shares; their caps hold
    /// throughout. After the first round each function is scaled by the time measured on its processor: the
    /// search relies on its shape, not on its height.
    ///
    /// # Errors
    /// Not one model per processor; caps that leave too little room (exit code 1).
    pub fn with_models(self, models: &[Model]) -> Result<Self> {
        if models.len() != self.known.len() {
            let what = format!("{} models for {} processors", models.len(), self.known.len());
            return Err(Error::input("models", what, "give one per processor"));
        }
        Ok(Self {
            shares: fpm(models, self.n)?,
            known: models.iter().map(|m| m.points().to_vec()).collect(),
            caps: models.iter().map(Model::max_size).collect(),
            believed: models.to_vec(),
            ..self
        })
    }

    /// The shares to use next, or to keep.
    pub fn shares(&self) -> &[u64] {
        &self.shares
    }

    /// Number of rounds observed since the search began or last ended.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The speed functions as far as they are known, one per processor. A processor that never worked is
    /// assumed to be as fast as the fastest.
    ///
    /// # Errors
    /// Nothing has been observed yet.
    pub fn models(&self) -> Result<Vec<Model>> {
        let fastest = self.known.iter().flatten().map(Point::speed).fold(0.0, f64::max);
        self.known
            .iter()
            .zip(&self.caps)
            .enumerate()
            .map(|(i, (points, cap))| match points.is_empty() {
                true => Model::constant(format!("p{i}"), fastest),
                false => Model::piecewise(format!("p{i}"), points.clone(), *cap),
            })
            .collect()
    }

    /// Takes the times that the processors needed for their [`Dfpa::shares`] (ignored for shares of 0) and
    /// returns the next step. After the search has ended, further observations start another search from the
    /// known points.
    ///
    /// # Errors
    /// Not one time per processor, or a time that is not positive.
    pub fn observe(&mut self, seconds: &[f64]) -> Result<Step> {
        self.check(seconds)?;
        for (i, model) in std::mem::take(&mut self.believed).iter().enumerate() {
            let share = self.shares[i] as f64;
            if share > 0.0 {
                let slower = seconds[i] / model.seconds(share);
                self.known[i].iter_mut().for_each(|p| p.seconds *= slower);
            }
        }
        for (i, &time) in seconds.iter().enumerate().filter(|(i, _)| self.shares[*i] > 0) {
            if learn(&mut self.known[i], Point::new(self.shares[i] as f64, time), self.tolerance) {
                // The processor has changed: shares tried before are no longer meaningful.
                self.tried.clear();
            }
        }
        let working = || seconds.iter().zip(&self.shares).filter(|(_, share)| **share > 0).map(|(t, _)| *t);
        let (least, longest) = working().fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        self.rounds += 1;
        self.tried.push((self.shares.clone(), longest));
        if longest - least <= self.tolerance * least {
            self.end_search();
            return Ok(Step::Balanced);
        }
        let next = fpm(&self.models()?, self.n)?;
        if self.rounds >= self.most_rounds || self.tried.iter().any(|(shares, _)| *shares == next) {
            let best = self.tried.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            self.shares = best.map_or(next, |(shares, _)| shares.clone());
            self.end_search();
            return Ok(Step::GaveUp);
        }
        self.shares = next;
        Ok(Step::Again)
    }

    fn end_search(&mut self) {
        self.rounds = 0;
        self.tried.clear();
    }

    fn check(&self, seconds: &[f64]) -> Result<()> {
        if seconds.len() != self.shares.len() {
            return Err(Error::input(
                "times",
                format!("there are {} for {} processors", seconds.len(), self.shares.len()),
                "give one per processor",
            ));
        }
        let bad = |(i, t): &(usize, &f64)| self.shares[*i] > 0 && !(t.is_finite() && **t > 0.0);
        match seconds.iter().enumerate().find(bad) {
            Some((i, t)) => Err(Error::input(
                format!("time of processor {i}"),
                format!("{t} is not a positive number of seconds"),
                "measure larger shares, or with a finer clock",
            )),
            None => Ok(()),
        }
    }
}

/// Adds a point and replaces those of nearly the same size. If the speed at this size was very different, the
/// processor itself has changed: all its points are then scaled by the same factor, and the result is true.
fn learn(points: &mut Vec<Point>, new: Point, tolerance: f64) -> bool {
    let within = |p: &Point, fraction: f64| (p.size - new.size).abs() <= fraction * new.size;
    let slower = points.iter().find(|p| within(p, 1e-3)).map_or(1.0, |old| old.speed() / new.speed());
    let changed = slower.max(1.0 / slower) > 1.0 + f64::max(0.25, 4.0 * tolerance);
    points.retain(|p| !within(p, f64::max(1e-3, 0.1 * tolerance)));
    if changed {
        points.iter_mut().for_each(|p| p.seconds *= slower);
    }
    let place = points.partition_point(|p| p.size < new.size);
    points.insert(place, new);
    changed
}

#[cfg(test)]
mod tests {
    use super::super::makespan;
    use super::*;
    use crate::platform::Emulated;

    fn processors() -> Vec<Emulated> {
        [
            "peak 2e6, knee 1e5 0.8, cliff 4e6 0.05",
            "peak 1e6, cliff 6e5 0.02",
            "peak 4e5, ramp 2e3",
            "peak 3e5",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect()
    }

    /// Shapes from files, heights measured: one round is enough, whereas equal shares need several.
    #[test]
    fn known_models_save_rounds_even_if_all_are_slower_today() {
        let processors = processors();
        let names = ["a", "b", "c", "d"];
        let models: Vec<Model> =
            processors.iter().zip(names).map(|(p, name)| p.sweep(name, 1e3, 5e6, 2000).unwrap()).collect();
        let rounds = |mut dfpa: Dfpa, factor: fn(usize) -> f64| loop {
            let rounds = dfpa.rounds() + 1;
            let seconds = times(&processors, dfpa.shares(), factor);
            match dfpa.observe(&seconds).unwrap() {
                Step::Again => {}
                step => {
                    assert_eq!(step, Step::Balanced);
                    break rounds;
                }
            }
        };
        let fresh = Dfpa::new(3_000_000, 4, 0.05).unwrap();
        let seeded = fresh.clone().with_models(&models).unwrap();
        assert_eq!(rounds(seeded.clone(), |_| 1.0), 1);
        let uneven: fn(usize) -> f64 = |i| [3.0, 1.5, 1.0, 1.0][i];
        let (slow, unseeded) = (rounds(seeded, uneven), rounds(fresh.clone(), uneven));
        assert!(slow <= 3 && slow < unseeded, "{slow} rounds against {unseeded}");
        let capped: Vec<Model> = models.iter().map(|m| m.clone().with_cap(1e5).unwrap()).collect();
        assert_eq!(fresh.clone().with_models(&capped).unwrap_err().exit_code(), 1);
        assert_eq!(fresh.with_models(&models[..2]).unwrap_err().exit_code(), 2);
    }

    fn times(processors: &[Emulated], shares: &[u64], factor: impl Fn(usize) -> f64) -> Vec<f64> {
        processors
            .iter()
            .zip(shares)
            .enumerate()
            .map(|(i, (p, &x))| p.seconds(x as f64) * factor(i))
            .collect()
    }

    fn search(dfpa: &mut Dfpa, processors: &[Emulated], factor: impl Fn(usize) -> f64) -> (Step, usize) {
        for round in 1.. {
            let seconds = times(processors, dfpa.shares(), &factor);
            let step = dfpa.observe(&seconds).unwrap();
            if step != Step::Again {
                return (step, round);
            }
        }
        unreachable!()
    }

    #[test]
    fn balance_is_found_without_models() {
        let processors = processors();
        for n in [10_000, 300_000, 2_000_000, 8_000_000] {
            let mut dfpa = Dfpa::new(n, 4, 0.03).unwrap();
            let (step, rounds) = search(&mut dfpa, &processors, |_| 1.0);
            assert_eq!(step, Step::Balanced, "{n}");
            assert!(rounds <= 15, "{n}: {rounds}");
            assert_eq!(dfpa.shares().iter().sum::<u64>(), n);
            let full: Vec<Model> =
                processors.iter().map(|p| p.sweep("p", 1.0, n as f64, 20_000).unwrap()).collect();
            let ideal = makespan(&full, &fpm(&full, n).unwrap());
            let ours = times(&processors, dfpa.shares(), |_| 1.0).into_iter().fold(0.0, f64::max);
            assert!(ours <= 1.03 * ideal, "{n}: {ours} against {ideal}");
        }
    }

    #[test]
    fn a_processor_that_slows_down_is_followed() {
        let processors = processors();
        let mut dfpa = Dfpa::new(2_000_000, 4, 0.03).unwrap();
        assert_eq!(search(&mut dfpa, &processors, |_| 1.0).0, Step::Balanced);
        let before = dfpa.shares()[0];
        let slow = |i| if i == 0 { 3.0 } else { 1.0 };
        let (step, rounds) = search(&mut dfpa, &processors, slow);
        assert_eq!(step, Step::Balanced);
        assert!(rounds <= 6, "{rounds}");
        assert!(dfpa.shares()[0] < before);
    }

    #[test]
    fn noise_ends_by_the_cap_with_the_best_seen() {
        let processors = processors();
        let mut dfpa = Dfpa::new(2_000_000, 4, 0.001).unwrap().with_rounds(8);
        let mut best = f64::INFINITY;
        let mut step = Step::Again;
        let mut rounds = 0;
        while step == Step::Again {
            rounds += 1;
            let noise = |i: usize| 1.0 + 0.05 * ((7 * i + 5 * rounds) % 11) as f64 / 11.0;
            let seconds = times(&processors, dfpa.shares(), noise);
            best = seconds.iter().copied().fold(0.0, f64::max).min(best);
            step = dfpa.observe(&seconds).unwrap();
        }
        assert_eq!(step, Step::GaveUp);
        let kept = times(&processors, dfpa.shares(), |_| 1.0).into_iter().fold(0.0, f64::max);
        assert!(kept <= best * 1.05);
    }

    #[test]
    fn awkward_input() {
        assert!(
            Dfpa::new(0, 2, 0.1).is_err() && Dfpa::new(2, 0, 0.1).is_err() && Dfpa::new(2, 2, 0.0).is_err()
        );
        let mut dfpa = Dfpa::new(2, 3, 0.1).unwrap();
        assert_eq!(dfpa.shares(), [1, 1, 0]);
        assert_eq!(dfpa.observe(&[1.0]).unwrap_err().exit_code(), 2);
        assert_eq!(dfpa.observe(&[1.0, 0.0, 0.0]).unwrap_err().exit_code(), 2);
        // The third is tried in place of the slow one; a unit cannot be split further.
        assert_eq!(dfpa.observe(&[1.0, 9.0, 0.0]).unwrap(), Step::Again);
        assert_eq!(dfpa.shares(), [1, 0, 1]);
        assert_eq!(dfpa.observe(&[1.0, 0.0, 1.5]).unwrap(), Step::GaveUp);
        assert_eq!(dfpa.shares(), [1, 0, 1]);
    }
}

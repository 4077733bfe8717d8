//! The decision after a round, and what moving costs.

use super::{Balancer, check_times};
use crate::error::{Error, Result};
use crate::plan::shares::noise::{UNKNOWN_NOISE, doubt};
use crate::plan::shares::{fpm_within, makespan};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why shares change or stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The new shares are faster: the only reason that changes shares.
    Faster,
    /// All processors with units finish within the tolerance of each other.
    Balanced,
    /// The round is one of the first after the start or a change, which are not used.
    WarmingUp,
    /// Other shares look faster, by less than the noise of the rounds so far can explain.
    Uncertain,
    /// Other shares are faster, by less than the hysteresis.
    SmallGain,
    /// Other shares are faster, but moving to them costs more than it saves.
    MovingCost,
    /// No other shares within the limits are faster.
    NothingBetter,
}

impl Reason {
    /// The name in files and other languages: `faster`, `balanced`, `warming-up`, `uncertain`, `small-gain`,
    /// `moving-cost` or `nothing-better`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Balanced => "balanced",
            Self::WarmingUp => "warming-up",
            Self::Uncertain => "uncertain",
            Self::SmallGain => "small-gain",
            Self::MovingCost => "moving-cost",
            Self::NothingBetter => "nothing-better",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faster => "the new shares are faster",
            Self::Balanced => "the times are within the tolerance of each other",
            Self::WarmingUp => "the first round after a change is not used",
            Self::Uncertain => "the difference may be noise",
            Self::SmallGain => "the saving is below the hysteresis",
            Self::MovingCost => "moving costs more than it saves",
            Self::NothingBetter => "no other shares are faster",
        })
    }
}

/// The answer to a round.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// Why the shares change or stay.
    pub reason: Reason,
    /// The shares to use in the next round, by rank; the same as before unless [`Decision::is_move`].
    pub shares: Vec<u64>,
    /// The first unit of each processor, and the number of units.
    pub offsets: Vec<u64>,
    /// (longest - shortest) / shortest time of the round, of processors with units.
    pub spread: f64,
    /// The processor that took longest in the round; the first of equal ones.
    pub slowest: usize,
    /// Predicted saving per round, in seconds, of the best shares found; 0 if none was looked for or found.
    pub gain: f64,
    /// Predicted seconds of moving to them.
    pub cost: f64,
    /// Number of units that change their owner by this decision.
    pub moved: u64,
}

impl Decision {
    /// True if the shares change.
    pub fn is_move(&self) -> bool {
        self.reason == Reason::Faster
    }
}

/// What a change of shares costs: `per_change` plus `per_unit` for each unit that the busiest processor sends
/// or receives. Processors hold contiguous ranges of units, in the order of their ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovingCost {
    /// Seconds of any change.
    pub per_change: f64,
    /// Seconds for each unit that one processor sends or receives.
    pub per_unit: f64,
    /// Number of rounds in which a change must earn its cost.
    pub rounds: f64,
}

impl Default for MovingCost {
    /// Moving costs nothing, and its cost may be earned at any time.
    fn default() -> Self {
        Self { per_change: 0.0, per_unit: 0.0, rounds: f64::MAX }
    }
}

impl MovingCost {
    pub(super) fn checked(self) -> Result<Self> {
        let is_time = |x: f64| x.is_finite() && x >= 0.0;
        if !is_time(self.per_change) || !is_time(self.per_unit) {
            let what =
                format!("{} s a change and {} s a unit are not both times", self.per_change, self.per_unit);
            return Err(Error::input("cost of moving", what, "give seconds, at least 0"));
        }
        if self.rounds.is_nan() || self.rounds <= 0.0 {
            let what = format!("it cannot be earned in {} rounds", self.rounds);
            return Err(Error::input("cost of moving", what, "give at least one round"));
        }
        Ok(Self { rounds: self.rounds.min(f64::MAX), ..self })
    }

    /// Seconds of the change from one division to another.
    fn seconds(self, busiest: u64) -> f64 {
        self.per_change + self.per_unit * busiest as f64
    }
}

/// The first unit of each share, and the sum.
pub(crate) fn offsets(shares: &[u64]) -> Vec<u64> {
    let mut all = Vec::with_capacity(shares.len() + 1);
    all.push(0);
    for share in shares {
        all.push(all[all.len() - 1] + share);
    }
    all
}

/// Units that change their owner, and the most that one processor sends or receives, if all hold contiguous
/// ranges.
fn moves(old: &[u64], new: &[u64]) -> (u64, u64) {
    let (from, to) = (offsets(old), offsets(new));
    let (mut moved, mut busiest) = (0, 0);
    for i in 0..old.len() {
        let stays = from[i + 1].min(to[i + 1]).saturating_sub(from[i].max(to[i]));
        let (sent, received) = (old[i] - stays, new[i] - stays);
        moved += received;
        busiest = busiest.max(sent).max(received);
    }
    (moved, busiest)
}

/// Standard deviations beyond the largest that p processors show by chance that a gain must have.
const DEVIATIONS: f64 = 2.5;

/// Shares to decide on, with their predictions.
struct Proposal {
    shares: Vec<u64>,
    /// Predicted longest time of the present shares.
    stay: f64,
    /// Predicted saving.
    pub gain: f64,
    moved: u64,
    pub cost: f64,
}

/// How even the times of a round were.
#[derive(Debug, Clone, Copy)]
struct Round {
    spread: f64,
    slowest: usize,
}

impl Round {
    fn of(seconds: &[f64], shares: &[u64]) -> Self {
        let (mut least, mut longest, mut slowest) = (f64::INFINITY, 0.0, 0);
        for (rank, (&time, _)) in seconds.iter().zip(shares).enumerate().filter(|(_, (_, share))| **share > 0)
        {
            least = time.min(least);
            if time > longest {
                (longest, slowest) = (time, rank);
            }
        }
        Self { spread: (longest - least) / least, slowest }
    }
}

impl Balancer {
    /// Takes the times in seconds that the processors needed for their [`Balancer::shares`] (ignored for
    /// shares of 0), and decides on the shares of the next round. O(p log units log rounds).
    ///
    /// Equal balancers that observe equal times return equal decisions, bit for bit.
    ///
    /// # Errors
    /// Not one time per processor, or a time that is not a positive number; nothing is then remembered.
    pub fn observe(&mut self, seconds: &[f64]) -> Result<Decision> {
        check_times(seconds, &self.shares)?;
        let round = Round::of(seconds, &self.shares);
        self.rounds = self.rounds.saturating_add(1);
        if self.unused > 0 {
            self.unused -= 1;
            return Ok(self.stay(Reason::WarmingUp, round, None));
        }
        let first = self.processors.iter().all(|observed| observed.rounds() == 0) && !self.from_models;
        self.learn(seconds)?;
        let proposal = self.proposal()?;
        let memory = self.memory();
        // One of two rounds was disturbed, or the processor has changed: the third will tell.
        let contradictory = self.processors.iter().any(|observed| observed.is_contradictory(&memory));
        let reason = match &proposal {
            None => Reason::Balanced,
            Some(p) if p.gain <= 0.0 => Reason::NothingBetter,
            Some(_) if contradictory => Reason::Uncertain,
            Some(p) if !first && p.gain <= self.doubt() * (p.stay - p.gain) => Reason::Uncertain,
            Some(p) if p.gain <= self.hysteresis * p.stay => Reason::SmallGain,
            Some(p) if p.gain * self.cost.rounds <= p.cost => Reason::MovingCost,
            Some(_) => Reason::Faster,
        };
        match (reason, proposal) {
            (Reason::Faster, Some(proposal)) => Ok(self.go(proposal, round)),
            (_, proposal) => Ok(self.stay(reason, round, proposal.as_ref())),
        }
    }

    /// Remembers a round.
    fn learn(&mut self, seconds: &[f64]) -> Result<()> {
        let memory = self.memory();
        self.scale_ratios(seconds)?;
        for ((observed, &share), &time) in self.processors.iter_mut().zip(&self.shares).zip(seconds) {
            if share > 0 {
                observed.learn(share, time, &memory)?;
            }
        }
        Ok(())
    }

    /// Turns ratios of speeds into times: the first round shows their unit. A processor without units is
    /// assumed to deviate from its ratio as the others do, by the median.
    fn scale_ratios(&mut self, seconds: &[f64]) -> Result<()> {
        if !self.processors.iter().any(|observed| observed.is_ratio()) {
            return Ok(());
        }
        let models = self.models()?;
        let mut factors: Vec<f64> = (models.iter().zip(&self.shares).zip(seconds))
            .filter(|((_, share), _)| **share > 0)
            .map(|((model, &share), time)| time / model.seconds(share as f64))
            .collect();
        factors.sort_by(f64::total_cmp);
        let middle = factors[(factors.len() - 1) / 2];
        self.processors.iter_mut().filter(|l| l.is_ratio()).for_each(|l| l.scale_ratio(middle));
        Ok(())
    }

    /// Better shares, if the present ones are not balanced by what is known.
    fn proposal(&self) -> Result<Option<Proposal>> {
        let models = self.models()?;
        let times = models.iter().zip(&self.shares).filter(|(_, share)| **share > 0);
        let (least, longest) = times
            .map(|(model, &share)| model.seconds(share as f64))
            .fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        if longest - least <= self.tolerance * least && !self.shares.contains(&0) {
            return Ok(None);
        }
        self.best().map(Some)
    }

    /// The best shares by what is known.
    fn best(&self) -> Result<Proposal> {
        let models = self.models()?;
        let shares = fpm_within(&models, self.units, &self.limits)?;
        let stay = makespan(&models, &self.shares);
        let (moved, busiest) = moves(&self.shares, &shares);
        let gain = if moved == 0 { 0.0 } else { stay - makespan(&models, &shares) };
        let cost = if moved == 0 { 0.0 } else { self.cost.seconds(busiest) };
        Ok(Proposal { shares, stay, gain, moved, cost })
    }

    /// The gain, as a fraction of the time without it, that noise alone could suggest.
    fn doubt(&self) -> f64 {
        let rounds = self.processors.iter().map(|l| l.rounds()).filter(|&r| r > 0).min().unwrap_or(1);
        doubt(DEVIATIONS, self.processors.len(), self.noise().unwrap_or(UNKNOWN_NOISE), rounds)
    }

    fn stay(&self, reason: Reason, round: Round, other: Option<&Proposal>) -> Decision {
        Decision {
            reason,
            shares: self.shares.clone(),
            offsets: self.offsets(),
            spread: round.spread,
            slowest: round.slowest,
            gain: other.map_or(0.0, |p| p.gain.max(0.0)),
            cost: other.map_or(0.0, |p| p.cost),
            moved: 0,
        }
    }

    fn go(&mut self, proposal: Proposal, round: Round) -> Decision {
        self.shares = proposal.shares;
        self.unused = self.warm_up;
        Decision {
            reason: Reason::Faster,
            shares: self.shares.clone(),
            offsets: self.offsets(),
            spread: round.spread,
            slowest: round.slowest,
            gain: proposal.gain.max(0.0),
            cost: proposal.cost,
            moved: proposal.moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_counted_as_unit_by_unit() {
        let owner = |shares: &[u64], unit: u64| {
            let ends = offsets(shares);
            (0..shares.len()).find(|&i| (ends[i]..ends[i + 1]).contains(&unit)).unwrap()
        };
        let cases: [(&[u64], &[u64]); 4] =
            [(&[3, 0, 5], &[0, 6, 2]), (&[4], &[4]), (&[1, 2, 3, 4], &[4, 3, 2, 1]), (&[0, 9], &[9, 0])];
        for (old, new) in cases {
            let units: u64 = old.iter().sum();
            let pairs: Vec<(usize, usize)> = (0..units).map(|u| (owner(old, u), owner(new, u))).collect();
            let moved = pairs.iter().filter(|(a, b)| a != b).count() as u64;
            let busy = |i: usize| {
                let sent = pairs.iter().filter(|(a, b)| *a == i && *b != i).count();
                let received = pairs.iter().filter(|(a, b)| *a != i && *b == i).count();
                sent.max(received) as u64
            };
            assert_eq!(moves(old, new), (moved, (0..old.len()).map(busy).max().unwrap()), "{old:?} {new:?}");
        }
    }

    #[test]
    fn costs_are_times() {
        let cost = MovingCost { per_change: 2.0, per_unit: 0.5, rounds: f64::INFINITY };
        assert_eq!(cost.checked().unwrap().seconds(10), 7.0);
        for bad in [
            MovingCost { per_unit: -1.0, ..cost },
            MovingCost { per_change: f64::NAN, ..cost },
            MovingCost { rounds: 0.0, ..cost },
        ] {
            assert_eq!(bad.checked().unwrap_err().exit_code(), 2);
        }
    }
}

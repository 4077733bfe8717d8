//! The decision after a round.

use super::decision::moves;
use super::{Balancer, Decision, Reason};
use crate::error::{Error, Result};
use crate::input::extreme;
use crate::plan::shares::noise::{UNKNOWN_NOISE, doubt};
use crate::plan::shares::{fpm_within, makespan};

/// Standard deviations beyond the largest that p processors show by chance that a gain must have.
const DEVIATIONS: f64 = 2.5;

/// Shares to decide on, with their predictions.
struct Proposal {
    shares: Vec<u64>,
    /// Predicted longest time of the present shares.
    stay: f64,
    /// Predicted saving.
    gain: f64,
    moved: u64,
    cost: f64,
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
        self.check_times(seconds)?;
        let working = || seconds.iter().zip(&self.shares).filter(|(_, share)| **share > 0).map(|(t, _)| *t);
        let (least, longest) = working().fold((f64::INFINITY, 0.0_f64), |(l, h), t| (l.min(t), h.max(t)));
        let spread = (longest - least) / least;
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= u64::from(self.warm_up) {
            return Ok(self.stay(Reason::WarmingUp, spread, None));
        }
        let first = self.processors.iter().all(|learnt| learnt.rounds() == 0) && !self.from_models;
        if self.learn(seconds)? {
            // Shares tried before are no longer meaningful.
            self.tried.clear();
        }
        if self.searching {
            return self.search(spread);
        }
        let proposal = self.proposal()?;
        let memory = self.memory();
        // One of two rounds was disturbed, or the processor has changed: the third will tell.
        let contradictory = self.processors.iter().any(|learnt| learnt.is_contradictory(&memory));
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
            (Reason::Faster, Some(proposal)) => Ok(self.go(proposal, spread)),
            (_, proposal) => Ok(self.stay(reason, spread, proposal.as_ref())),
        }
    }

    /// A round of a search: every share that promises a shorter time is tried once.
    fn search(&mut self, spread: f64) -> Result<Decision> {
        self.tried.push(self.shares.clone());
        if spread <= self.tolerance {
            self.tried.clear();
            return Ok(self.stay(Reason::Balanced, spread, None));
        }
        let proposal = self.best()?;
        if self.tried.contains(&proposal.shares) {
            self.tried.clear();
            return Ok(self.stay(Reason::NothingBetter, spread, Some(&proposal)));
        }
        Ok(self.go(proposal, spread))
    }

    /// Remembers a round; true if a processor has changed.
    fn learn(&mut self, seconds: &[f64]) -> Result<bool> {
        let memory = self.memory();
        self.settle_ratios(seconds)?;
        let mut changed = false;
        for ((learnt, &share), &time) in self.processors.iter_mut().zip(&self.shares).zip(seconds) {
            if share > 0 {
                changed |= learnt.learn(share, time, &memory)?;
            }
        }
        Ok(changed)
    }

    /// Turns ratios of speeds into times: the first round shows their unit. A processor without units is
    /// assumed to deviate from its ratio as the others do, by the median.
    fn settle_ratios(&mut self, seconds: &[f64]) -> Result<()> {
        if !self.processors.iter().any(|learnt| learnt.is_ratio()) {
            return Ok(());
        }
        let models = self.models()?;
        let mut factors: Vec<f64> = (models.iter().zip(&self.shares).zip(seconds))
            .filter(|((_, share), _)| **share > 0)
            .map(|((model, &share), time)| time / model.seconds(share as f64))
            .collect();
        factors.sort_by(f64::total_cmp);
        let middle = factors[(factors.len() - 1) / 2];
        self.processors.iter_mut().filter(|l| l.is_ratio()).for_each(|l| l.settle_ratio(middle));
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

    fn stay(&self, reason: Reason, spread: f64, other: Option<&Proposal>) -> Decision {
        Decision {
            reason,
            shares: self.shares.clone(),
            offsets: self.offsets(),
            spread,
            gain: other.map_or(0.0, |p| p.gain.max(0.0)),
            cost: other.map_or(0.0, |p| p.cost),
            moved: 0,
        }
    }

    fn go(&mut self, proposal: Proposal, spread: f64) -> Decision {
        self.shares = proposal.shares;
        Decision {
            reason: Reason::Faster,
            shares: self.shares.clone(),
            offsets: self.offsets(),
            spread,
            gain: proposal.gain.max(0.0),
            cost: proposal.cost,
            moved: proposal.moved,
        }
    }

    fn check_times(&self, seconds: &[f64]) -> Result<()> {
        if seconds.len() != self.shares.len() {
            return Err(Error::input(
                "times",
                format!("there are {} for {} processors", seconds.len(), self.shares.len()),
                "give one per processor",
            ));
        }
        let defect = |(i, t): (usize, &f64)| {
            let what = extreme(*t).filter(|_| self.shares[i] > 0)?;
            Some((i, what))
        };
        match seconds.iter().enumerate().find_map(defect) {
            None => Ok(()),
            Some((i, what)) => Err(Error::input(
                format!("time of processor {i}"),
                format!("{what} of seconds"),
                "measure larger shares, or with a finer clock",
            )),
        }
    }
}

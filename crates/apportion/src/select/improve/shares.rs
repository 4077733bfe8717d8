//! Shares that consider communication: all processors end computation and communication together.
//!
//! The start is the weights of Ballard, Demmel and Gearhart (SPAA 2011): the time of a processor per element
//! counts its computation and its communication, here of a part of s elements with 2 sqrt(s) rows and
//! columns. From there, and from shares in proportion to the speeds, each processor's weight follows its time
//! in the forecast; then single weights, and all at random, are changed while the forecast falls. Becker's
//! squares for overlap (2010, section 6.1.4) are one case.

use super::mapping::LAYOUT_WORK;
use super::trials::Trials;
use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::shapes::MethodOptions;
use crate::plan::{Forecast, Layout};
use crate::platform::Platform;
use crate::random::Random;
use crate::select::candidates::laid_out;
use crate::select::{Choice, MemoryPolicy, PlanOptions, check_caps};

/// Number of candidates whose shares are changed: the best ones.
const MOST_CANDIDATES: usize = 4;
/// Candidates that are slower than the best by more than this fraction are not changed.
pub(super) const HOPELESS: f64 = 0.3;
/// Rounds in which all weights follow the forecast.
const ROUNDS: usize = 12;
/// Relative changes of single weights, one size after the other.
const STEPS: [f64; 6] = [0.3, 0.15, 0.08, 0.04, 0.02, 0.01];
/// Sizes of random changes of all weights.
const SPREADS: [f64; 5] = [0.3, 0.15, 0.08, 0.04, 0.02];
/// Random changes of each size.
const DRAWS: usize = 40;
/// Repetitions of all changes while they gain.
const PASSES: usize = 3;

/// The best candidate with other shares, if it beats the best of `choices`.
pub(super) fn search(trials: &mut Trials<'_>, choices: &[Choice]) -> Result<Option<Choice>> {
    let mut found: Option<Choice> = None;
    let first = trials.best;
    let near = |c: &&Choice| c.rank.is_some_and(|rank| rank <= first * (1.0 + HOPELESS));
    let candidates: Vec<&Choice> = choices.iter().filter(near).take(MOST_CANDIDATES).collect();
    for (i, choice) in candidates.iter().enumerate() {
        let others = (candidates.len() - 1 - i) as f64;
        let aside = trials.set_aside(others / (others + 1.0));
        let improved = Resizing::of(trials, choice).map_or(Ok(None), Resizing::improved)?;
        trials.put_back(aside);
        let Some((layout, forecast)) = improved.filter(|(_, f)| f.seconds < trials.best) else { continue };
        trials.best = forecast.seconds;
        let resized = choice.rank.map(|rank| rank - forecast.seconds);
        let plan = trials.field.choice(&choice.plan.method, &layout, choice.order, Some(forecast))?;
        found =
            Some(Choice { narrowed: choice.narrowed, left_out: choice.left_out.clone(), resized, ..plan });
    }
    Ok(found)
}

/// A candidate whose shares change.
struct Resizing<'t, 'a> {
    trials: &'t mut Trials<'a>,
    choice: &'t Choice,
    /// The processors with a share, ascending.
    active: Vec<usize>,
    /// Only these, and the options for them.
    platform: Platform,
    wishes: PlanOptions,
    /// The best so far; no layout is the one given.
    layout: Option<Layout>,
    forecast: Forecast,
    weights: Vec<f64>,
}

impl<'t, 'a> Resizing<'t, 'a> {
    /// `None` if there is nothing to divide.
    fn of(trials: &'t mut Trials<'a>, choice: &'t Choice) -> Option<Self> {
        let (field, shares) = (trials.field, &choice.plan.shares);
        let active: Vec<usize> = (0..shares.len()).filter(|&i| shares[i] > 0).collect();
        let forecast = choice.plan.forecast.clone().filter(|_| active.len() > 1)?;
        let names: Vec<String> = active.iter().map(|&i| field.platform.processors[i].name.clone()).collect();
        let centre = field.wishes.terms.centre.and_then(|c| active.iter().position(|&i| i == c));
        let terms = MethodOptions { centre, ..field.wishes.terms.clone() };
        Some(Self {
            choice,
            platform: field.platform.select(&names),
            wishes: PlanOptions { terms, ..field.wishes.clone() },
            layout: None,
            forecast,
            weights: active.iter().map(|&i| shares[i] as f64).collect(),
            active,
            trials,
        })
    }

    /// The best layout found and its forecast, if it is better than the one given.
    fn improved(mut self) -> Result<Option<(Layout, Forecast)>> {
        for overlapped in [false, true] {
            let weights = self.ballard(overlapped);
            self.attempt(weights)?;
        }
        self.follow()?;
        for pass in 0..PASSES as u64 {
            let before = self.forecast.seconds;
            self.change_one_by_one()?;
            self.change_at_random(pass)?;
            if self.forecast.seconds >= before || !self.trials.may_go_on() {
                break;
            }
        }
        let forecast = self.forecast;
        Ok(self.layout.map(|layout| (layout, forecast)))
    }

    /// Tries these weights; true if they are better.
    fn attempt(&mut self, weights: Vec<f64>) -> Result<bool> {
        let usable = weights.iter().all(|w| w.is_finite() && *w > 0.0);
        if !usable || !self.trials.may_go_on() {
            return Ok(false);
        }
        if !self.trials.spend(LAYOUT_WORK * self.active.len() as f64) {
            return Ok(false);
        }
        let (shape, method) = (self.trials.shape, &self.choice.plan.method);
        // A method may not support these weights, as squares that would overlap.
        let Ok(layout) = laid_out(method, shape, &self.platform, &weights, &self.wishes) else {
            return Ok(false);
        };
        let field = self.trials.field;
        let layout = layout.among(&self.active, field.platform.len())?;
        let order = self.choice.order;
        let fits = match self.wishes.fit {
            MemoryPolicy::Unchecked => true,
            MemoryPolicy::AsAsked(path) | MemoryPolicy::SmallerBlocks(path) => {
                check_caps(&layout, order, field.platform, (self.wishes.element, path)).is_ok()
            }
        };
        if !fits || field.models.iter().zip(layout.shares()).any(|(m, s)| m.speed(s as f64) <= 0.0 && s > 0) {
            return Ok(false);
        }
        let Some(forecast) = self.trials.faster_than(self.forecast.seconds, &layout, order)? else {
            return Ok(false);
        };
        (self.layout, self.forecast, self.weights) = (Some(layout), forecast, weights);
        Ok(true)
    }

    /// Weights with which all end together if a part of s elements takes a s + 2 b sqrt(s): a for computation
    /// at the present speeds, b for rows and columns on a mean link; `overlapped` takes the larger of both.
    fn ballard(&self, overlapped: bool) -> Vec<f64> {
        let field = self.trials.field;
        let k = self.trials.shape.k as f64;
        let all = self.trials.shape.elements() as f64;
        let link = |to: usize| {
            let others = self.active.iter().filter(|&&from| from != to);
            let each = others.map(|&from| {
                let link = field.platform.network.link(Rank(from), Rank(to));
                0.5 * (1.0 / link.horizontal + 1.0 / link.vertical)
            });
            each.sum::<f64>() / (self.active.len() - 1) as f64
        };
        let costs: Vec<[f64; 2]> = self
            .active
            .iter()
            .map(|&i| {
                let share = self.choice.plan.shares[i] as f64;
                let rate = field.models[i].speed(share) * field.models_block as f64;
                [k / rate, link(i) * k * field.wishes.element as f64]
            })
            .collect();
        let share = |&[a, b]: &[f64; 2], seconds: f64| {
            let by_work = seconds / a;
            let root = match (overlapped, b > 0.0) {
                (_, false) => return by_work,
                (true, true) => seconds / (2.0 * b),
                (false, true) => ((b * b + a * seconds).sqrt() - b) / a,
            };
            by_work.min(root * root)
        };
        let (mut low, mut high) =
            (0.0, costs.iter().map(|c| c[0] * all + 2.0 * c[1] * all).fold(0.0, f64::max));
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            let done: f64 = costs.iter().map(|cost| share(cost, middle)).sum();
            if done < all { low = middle } else { high = middle }
        }
        costs.iter().map(|cost| share(cost, high)).collect()
    }

    /// All weights follow the forecast: who is busy for longer than the mean gets less.
    fn follow(&mut self) -> Result<()> {
        let mut power: f64 = 1.0;
        for _ in 0..ROUNDS {
            let busy: Vec<f64> = self
                .active
                .iter()
                .map(|&i| self.forecast.compute[i] + self.forecast.communicate[i])
                .collect();
            let mean = busy.iter().sum::<f64>() / busy.len() as f64;
            let next = self.weights.iter().zip(&busy).map(|(w, b)| w * (mean / b).powf(power)).collect();
            if !self.attempt(next)? {
                power *= 0.5;
            }
            if power < 0.1 {
                break;
            }
        }
        Ok(())
    }

    /// One weight after the other becomes larger or smaller while that is better.
    fn change_one_by_one(&mut self) -> Result<()> {
        for step in STEPS {
            for i in 0..self.weights.len() {
                for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                    loop {
                        let mut next = self.weights.clone();
                        next[i] *= factor;
                        if !self.attempt(next)? {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// All weights change at random, in ever smaller steps.
    fn change_at_random(&mut self, seed: u64) -> Result<()> {
        let mut random = Random::new(seed);
        for spread in SPREADS {
            for _ in 0..DRAWS {
                let change = |w: &f64| w * (spread * (2.0 * random.unit() - 1.0)).exp();
                let next = self.weights.iter().map(change).collect();
                self.attempt(next)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;

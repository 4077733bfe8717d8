//! Shares that consider communication: all processors end computation and communication together.
//!
//! The start is the weights of Ballard, Demmel and Gearhart (SPAA 2011): the time of a processor per element
//! counts its computation and its communication, here of a part of s elements with 2 sqrt(s) rows and
//! columns. From there, and from shares in proportion to the speeds, each processor's weight follows its time
//! in the forecast; then single weights, and all at random, are changed while the forecast falls. Becker's
//! squares for overlap (2010, section 6.1.4) are one case.

use super::FEW_PROCESSORS;
use super::trials::Trials;
use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::shapes::MethodOptions;
use crate::plan::{Forecast, Layout};
use crate::platform::Platform;
use crate::random::Random;
use crate::schedule::ScheduleOptions;
use crate::select::budget::{FEWEST, laying_out};
use crate::select::candidates::lay_out;
use crate::select::{Choice, PlanOptions};
use std::cmp::Ordering;

/// Numbers of candidates that take the first steps, that are then changed widely, and that are refined.
const CANDIDATES: [usize; 3] = [4, 1, 1];
/// The same for few processors, whose forecasts cost little.
const CANDIDATES_OF_FEW: [usize; 3] = [96, 6, 4];
/// Part of the budget for the first steps where there are few processors; a half otherwise.
const FIRST_OF_FEW: f64 = 0.3;
/// Part of the rest that refining has.
const FOR_FINE: f64 = 0.4;
/// Candidates that are slower than the best after the first steps by more than this fraction are not changed
/// widely or refined.
const BEHIND: f64 = 0.3;
/// Candidates that are slower than the best by more than this fraction are not changed.
pub(in crate::select) const HOPELESS: f64 = 0.3;
/// The same for few processors: where messages are slow, other shares halve the time of some layouts.
pub(in crate::select) const HOPELESS_OF_FEW: f64 = 3.0;
/// Rounds in which all weights follow the forecast.
const ROUNDS: usize = 12;
/// Relative changes of single weights, one size after the other.
const STEPS: [f64; 6] = [0.3, 0.15, 0.08, 0.04, 0.02, 0.01];
/// Sizes of random changes of all weights.
const SPREADS: [f64; 5] = [0.3, 0.15, 0.08, 0.04, 0.02];
/// The same around the shares that are given.
const WIDE_SPREADS: [f64; 5] = [0.8, 0.4, 0.2, 0.1, 0.05];
/// Speeds, or weights, whose logarithms differ by less are alike.
const ALIKE: f64 = 0.05;
/// Random changes of each size.
const DRAWS: usize = 40;
/// Part of the budget for thorough layouts.
const FOR_THOROUGH: f64 = 0.4;
/// The weight of a processor that gets no share, relative to the sum of all.
const NOTHING: f64 = 1e-12;
/// Repetitions of all changes while they gain.
const PASSES: usize = 3;

/// The best candidate with other shares, if it beats the best of `choices`. The candidates take the first
/// steps with a part of the budget; the best of each method then are changed widely, and the best of these are
/// refined, with equal parts, of which quick methods leave some to the others.
pub(super) fn search(trials: &mut Trials<'_>, choices: &[Choice]) -> Result<Option<Choice>> {
    let first = trials.best();
    let few = trials.appraiser.machine.processors() <= FEW_PROCESSORS;
    let [_, most_widely, most_refined] = if few { CANDIDATES_OF_FEW } else { CANDIDATES };
    let mut states: Vec<(&Choice, Sizes)> = Vec::new();
    let aside = trials.set_aside(if few { 1.0 - FIRST_OF_FEW } else { 0.5 });
    for choice in candidates(choices, first, few) {
        if !trials.may_go_on() {
            break;
        }
        let Some(new) = Resizing::of(trials, choice, None) else { continue };
        states.push((choice, new.first_steps()?));
    }
    trials.put_back(aside);
    for (most, steps) in [(most_widely, Steps::Wide), (most_refined, Steps::Fine)] {
        states.sort_by(|(_, a), (_, b)| a.order_of(b));
        // The best of each method, whose other orders have been tried for the same shares, and of those that
        // have come to the same layout.
        let mut known: Vec<(String, Option<Layout>)> = Vec::new();
        states.retain(|(choice, state)| {
            let method = &choice.plan.method;
            let new = known.iter().all(|(name, layout)| name != method && *layout != state.layout);
            if new {
                known.push((method.clone(), state.layout.clone()));
            }
            new
        });
        states.truncate(most);
        let limit = states.first().map_or(0.0, |(_, best)| best.seconds() * (1.0 + BEHIND));
        states.retain(|(_, state)| state.seconds() <= limit);
        // What quick methods leave of their parts goes to the others.
        let work = |choice: &Choice| laying_out(&choice.plan.method, 1, false);
        states.sort_by(|(a, _), (b, _)| work(a).total_cmp(&work(b)));
        let count = states.len();
        let for_later = trials.set_aside(if steps == Steps::Wide { FOR_FINE } else { 0.0 });
        for (i, (choice, state)) in states.iter_mut().enumerate() {
            let aside = trials.set_aside(1.0 - 1.0 / (count - i) as f64);
            if let Some(resizing) = Resizing::of(trials, choice, Some(state.clone())) {
                *state = match steps {
                    Steps::Wide => resizing.change_widely()?,
                    Steps::Fine => resizing.refine()?,
                };
            }
            trials.put_back(aside);
        }
        trials.put_back(for_later);
    }
    let best = states.into_iter().min_by(|(_, a), (_, b)| a.order_of(b));
    let Some((choice, state)) = best else { return Ok(None) };
    let Sizes { layout: Some(layout), forecast, order, .. } = state else { return Ok(None) };
    if forecast.seconds >= first {
        return Ok(None);
    }
    trials.lower(forecast.seconds);
    // Relative to the same method, processors and order in proportion, if that was simulated to its end.
    let same = |other: &&Choice| other.order == order && other.plan.method == choice.plan.method;
    let plain = choices.iter().filter(same).find(|other| other.left_out == choice.left_out);
    let sizing_gain = plain.and_then(|plain| plain.rank).or(choice.rank).map(|rank| rank - forecast.seconds);
    let plan = trials.appraiser.choice(&choice.plan.method, &layout, order, Some(forecast))?;
    Ok(Some(Choice {
        memory_overrun: choice.memory_overrun,
        left_out: choice.left_out.clone(),
        sizing_gain,
        ..plan
    }))
}

/// How a candidate's shares are changed after the first steps.
#[derive(Clone, Copy, PartialEq)]
enum Steps {
    Wide,
    Fine,
}

/// The candidates near the best whose shares may change, at most `most`, in order of preference. Among few
/// processors the best order of each layout comes first, then the second of each, and so on, since other
/// orders are tried for the shares that are found. Last come those that have the layout and order of another
/// one: most of them have the same layout for other shares, too.
fn candidates(choices: &[Choice], first: f64, few: bool) -> Vec<&Choice> {
    let limit = first * (1.0 + if few { HOPELESS_OF_FEW } else { HOPELESS });
    let near = choices.iter().filter(|choice| choice.rank.is_some_and(|rank| rank <= limit));
    if !few {
        return near.take(CANDIDATES[0]).collect();
    }
    let mut found: Vec<(usize, &Choice)> = Vec::new();
    for choice in near {
        let layout = choice.plan.layout().ok();
        let is_alike = |other: &Choice| {
            let one_form = has_one_form(&choice.plan.method) && has_one_form(&other.plan.method);
            other.left_out == choice.left_out
                && other.plan.layout().ok() == layout
                && (one_form || other.plan.method == choice.plan.method)
        };
        let alike: Vec<&Choice> =
            found.iter().map(|(_, other)| *other).filter(|other| is_alike(other)).collect();
        let repeated = alike.iter().any(|other| other.order == choice.order);
        found.push((if repeated { usize::MAX } else { alike.len() }, choice));
    }
    found.sort_by_key(|(round, _)| *round);
    found.truncate(CANDIDATES_OF_FEW[0]);
    found.into_iter().map(|(_, choice)| choice).collect()
}

/// False for the methods that may choose another form for other shares, as corners in place of strips.
fn has_one_form(method: &str) -> bool {
    !["recursive", "boxes", "hybrid"].contains(&method)
}

/// The best shares so far.
#[derive(Clone)]
struct Sizes {
    /// No layout is the one given.
    layout: Option<Layout>,
    forecast: Forecast,
    order: ScheduleOptions,
    weights: Vec<f64>,
    /// The best state with the fastest processors alone, which no small change of the weights reaches.
    alone: Option<Box<Sizes>>,
}

impl Sizes {
    /// The forecast of the better one.
    fn seconds(&self) -> f64 {
        self.alone.as_ref().map_or(f64::INFINITY, |alone| alone.seconds()).min(self.forecast.seconds)
    }

    /// The better one first. Where both are best with the same processors alone, their other layouts decide.
    fn order_of(&self, other: &Self) -> Ordering {
        let own = self.seconds().total_cmp(&other.seconds());
        own.then(self.forecast.seconds.total_cmp(&other.forecast.seconds))
    }
}

/// A candidate whose shares change.
struct Resizing<'t, 'a> {
    trials: &'t mut Trials<'a>,
    choice: &'t Choice,
    /// The processors with a share, ascending.
    active: Vec<usize>,
    /// Only these, and the options for them.
    platform: Platform,
    options: PlanOptions,
    /// The best so far.
    state: Sizes,
}

impl<'t, 'a> Resizing<'t, 'a> {
    /// From a state, or from the beginning. `None` if there is nothing to divide.
    fn of(trials: &'t mut Trials<'a>, choice: &'t Choice, state: Option<Sizes>) -> Option<Self> {
        let (appraiser, shares) = (trials.appraiser, &choice.plan.shares);
        let active: Vec<usize> = (0..shares.len()).filter(|&i| shares[i] > 0).collect();
        let forecast = choice.plan.forecast.clone().filter(|_| active.len() > 1)?;
        let names: Vec<String> =
            active.iter().map(|&i| appraiser.machine.platform.processors[i].name.clone()).collect();
        let centre =
            appraiser.options.method_options.centre.and_then(|c| active.iter().position(|&i| i == c));
        let method_options = MethodOptions {
            centre,
            quick: active.len() > FEWEST,
            ..appraiser.options.method_options.clone()
        };
        Some(Self {
            choice,
            platform: appraiser.machine.platform.select(&names),
            options: PlanOptions { method_options, ..appraiser.options.clone() },
            state: state.unwrap_or_else(|| Sizes {
                layout: None,
                forecast,
                order: choice.order,
                alone: None,
                weights: active.iter().map(|&i| shares[i] as f64).collect(),
            }),
            active,
            trials,
        })
    }

    /// After the first steps.
    fn first_steps(mut self) -> Result<Sizes> {
        let given = self.state.weights.clone();
        for overlapped in [false, true] {
            let weights = self.ballard(overlapped);
            self.attempt(weights)?;
        }
        self.follow()?;
        let order = self.state.order;
        self.reorder()?;
        if self.state.order != order {
            self.follow()?;
        }
        let alone = if self.options.method.is_some() { self.fastest_alone(&given)? } else { None };
        self.state.alone = alone.map(Box::new);
        Ok(self.state)
    }

    /// After random changes all around the given shares.
    fn change_widely(mut self) -> Result<Sizes> {
        let shares = &self.choice.plan.shares;
        let given: Vec<f64> = self.active.iter().map(|&i| shares[i] as f64).collect();
        self.exchange()?;
        let mut random = Random::new(0);
        for spread in WIDE_SPREADS {
            for _ in 0..DRAWS {
                self.attempt(perturb(&given, spread, &mut random))?;
            }
        }
        Ok(self.state)
    }

    /// After changes of single weights and of all, and with thorough layouts in the end.
    fn refine(mut self) -> Result<Sizes> {
        let aside = self.trials.set_aside(FOR_THOROUGH);
        self.change()?;
        self.trials.put_back(aside);
        if self.options.method_options.quick && self.choice.plan.method.contains("recursive") {
            self.options.method_options.quick = false;
            let weights = self.state.weights.clone();
            self.attempt(weights)?;
            self.follow()?;
        }
        self.change()?;
        if let Some(alone) = self.state.alone.take().filter(|a| a.seconds() < self.state.forecast.seconds) {
            self.state = *alone;
        }
        self.reorder()?;
        Ok(self.state)
    }

    /// The state with all work on the fastest 1, 2, 4, … processors, if one of these is better. A named
    /// method has no [subsets](super::subsets), and no small change of the weights reaches these states.
    fn fastest_alone(&mut self, given: &[f64]) -> Result<Option<Sizes>> {
        let before = self.state.clone();
        let mut fastest: Vec<usize> = (0..given.len()).collect();
        fastest.sort_by(|&i, &j| given[j].total_cmp(&given[i]));
        let nothing = NOTHING * given.iter().sum::<f64>();
        let counts = std::iter::successors(Some(1), |count| Some(2 * count));
        let mut gained = false;
        for count in counts.take_while(|&count| count < given.len()) {
            let mut next = vec![nothing; given.len()];
            fastest[..count].iter().for_each(|&i| next[i] = given[i]);
            gained |= self.attempt(next)?;
        }
        Ok(gained.then(|| std::mem::replace(&mut self.state, before)))
    }

    /// Tries the layout with every other open order: one that was slower for the first shares may be faster
    /// now.
    fn reorder(&mut self) -> Result<()> {
        let Some(layout) = self.state.layout.clone() else { return Ok(()) };
        for order in self.options.orders() {
            let order = order.with_block(self.state.order.block);
            if order == self.state.order || !self.trials.may_go_on() || !self.fits(&layout, order) {
                continue;
            }
            if let Some(forecast) = self.trials.faster_than(self.state.forecast.seconds, &layout, order)? {
                (self.state.forecast, self.state.order) = (forecast, order);
            }
        }
        Ok(())
    }

    /// True if all processors can hold their parts, and each has one if all must.
    fn fits(&self, layout: &Layout, order: ScheduleOptions) -> bool {
        let appraiser = self.trials.appraiser;
        let shares = layout.shares();
        appraiser.fits(layout, order)
            && appraiser.machine.models.iter().zip(&shares).all(|(m, &s)| s == 0 || m.speed(s as f64) > 0.0)
            && !(self.options.keep_all && self.active.iter().any(|&i| shares[i] == 0))
    }

    /// Changes single weights and all while that gains.
    fn change(&mut self) -> Result<()> {
        for pass in 0..PASSES as u64 {
            let before = self.state.forecast.seconds;
            self.exchange()?;
            self.change_one_by_one()?;
            self.change_at_random(pass)?;
            if self.state.forecast.seconds >= before || !self.trials.may_go_on() {
                break;
            }
        }
        Ok(())
    }

    /// Tries these weights; true if they are better.
    fn attempt(&mut self, weights: Vec<f64>) -> Result<bool> {
        let usable = weights.iter().all(|w| w.is_finite() && *w > 0.0);
        if !usable || !self.trials.may_go_on() {
            return Ok(false);
        }
        let (shape, method) = (self.trials.shape, &self.choice.plan.method);
        if !self.trials.spend(
            laying_out(method, self.active.len(), self.options.method_options.quick)
                * self.active.len() as f64,
        ) {
            return Ok(false);
        }
        // A method may not support these weights, as squares that would overlap.
        let Ok(layout) = lay_out(method, shape, &self.platform, &weights, &self.options) else {
            return Ok(false);
        };
        let appraiser = self.trials.appraiser;
        let layout = layout.among(&self.active, appraiser.machine.platform.len())?;
        let order = self.state.order;
        if !self.fits(&layout, order) {
            return Ok(false);
        }
        let Some(forecast) = self.trials.faster_than(self.state.forecast.seconds, &layout, order)? else {
            return Ok(false);
        };
        self.state = Sizes { layout: Some(layout), forecast, order, weights, alone: self.state.alone.take() };
        Ok(true)
    }

    /// Weights with which all end together if a part of s elements takes a s + 2 b sqrt(s): a for computation
    /// at the present speeds, b for rows and columns on a mean link; `overlapped` takes the larger of both.
    fn ballard(&self, overlapped: bool) -> Vec<f64> {
        let appraiser = self.trials.appraiser;
        let k = self.trials.shape.k as f64;
        let all = self.trials.shape.elements() as f64;
        let link = |to: usize| {
            let others = self.active.iter().filter(|&&from| from != to);
            let each = others.map(|&from| {
                let link = appraiser.machine.platform.network.link(Rank(from), Rank(to));
                0.5 * (1.0 / link.horizontal + 1.0 / link.vertical)
            });
            each.sum::<f64>() / (self.active.len() - 1) as f64
        };
        let costs: Vec<[f64; 2]> = self
            .active
            .iter()
            .map(|&i| {
                let share = self.choice.plan.shares[i] as f64;
                let rate = appraiser.machine.models[i].speed(share) * appraiser.machine.block as f64;
                [k / rate, link(i) * k * appraiser.options.element as f64]
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
                .map(|&i| self.state.forecast.compute[i] + self.state.forecast.communicate[i])
                .collect();
            let mean = busy.iter().sum::<f64>() / busy.len() as f64;
            let next =
                self.state.weights.iter().zip(&busy).map(|(w, b)| w * (mean / b).powf(power)).collect();
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
            for i in 0..self.state.weights.len() {
                for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                    loop {
                        let mut next = self.state.weights.clone();
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

    /// Two equally fast processors exchange their weights while that is better: they are not alike where links differ
    /// or a method places them by their weights, and no small change of the weights exchanges their places.
    fn exchange(&mut self) -> Result<()> {
        let models = &self.trials.appraiser.machine.models;
        let share = self.trials.shape.elements() as f64 / self.active.len() as f64;
        let speeds: Vec<f64> = self.active.iter().map(|&i| models[i].speed(share)).collect();
        let alike = |values: &[f64], i: usize, j: usize| (values[i] / values[j]).ln().abs() < ALIKE;
        let p = speeds.len();
        for (i, j) in (0..p).flat_map(|i| (i + 1..p).map(move |j| (i, j))) {
            if alike(&speeds, i, j) && !alike(&self.state.weights, i, j) {
                let mut next = self.state.weights.clone();
                next.swap(i, j);
                self.attempt(next)?;
            }
        }
        Ok(())
    }

    /// All weights change at random, in ever smaller steps.
    fn change_at_random(&mut self, seed: u64) -> Result<()> {
        let mut random = Random::new(seed);
        for spread in SPREADS {
            for _ in 0..DRAWS {
                self.attempt(perturb(&self.state.weights, spread, &mut random))?;
            }
        }
        Ok(())
    }
}

/// Weights that are all changed at random, by up to a factor of e^spread.
fn perturb(weights: &[f64], spread: f64, random: &mut Random) -> Vec<f64> {
    weights.iter().map(|w| w * (spread * (2.0 * random.unit() - 1.0)).exp()).collect()
}

//! Balances any user program by running it, without models or a sweep: by a [`Search`] (DFPA, Lastovetsky and Reddy
//! 2009).

use super::balance_row::{PARTS, Row, with_caps};
use crate::error::{Error, Result};
use crate::measure::command::{CommandRun, Failure as ProgramFailure, UserCommand};
use crate::measure::one_pass::AloneTime;
use crate::measure::programs::{RankFailure, all_seconds, run_programs};
use crate::measure::repetition::{Sampler, StoppingRule};
use crate::model::{Failure, Model, Models, median};
use crate::plan::shares::{Limits, Search, Step, TimeRange, even_among, makespan};
use crate::plan::{Baselines, FastestAlone, Forecast, Plan};
use crate::platform::Platform;
use crate::run::mailboxes::StopSignal;
use crate::run::{Monitor, World};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Fraction of a share within which the largest one that works is searched for.
const CAP_PRECISION: f64 = 0.002;

/// A round with equal shares that took so many times as long as later ones say was disturbed.
const MORE: f64 = 1.25;

/// Options of the search for balance.
#[derive(Debug, Clone, PartialEq)]
pub struct BalanceOptions {
    /// The largest relative difference of two processors' times that counts as balanced.
    pub tolerance: f64,
    /// Maximum number of rounds, those included in which a program failed.
    pub most_rounds: u32,
    /// Runs per round; their median time counts.
    pub repetitions: u32,
    /// By rank, limits on the shares; empty for none.
    pub limits: Vec<Limits>,
    /// By rank, models from which the first shares follow; without them, these are equal.
    pub models: Option<Vec<Model>>,
    /// Cost of each unit, as the sizes of models count it: parts are balanced by it. Limits are maxima of units.
    pub costs: Option<Vec<f64>>,
    /// Number of first rounds whose times are not believed; one of the rounds is, always.
    pub warm_up: u32,
}

impl Default for BalanceOptions {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            most_rounds: 20,
            repetitions: 1,
            limits: Vec::new(),
            models: None,
            costs: None,
            warm_up: 0,
        }
    }
}

/// One round: the share and the time of each processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Units, by rank.
    pub shares: Vec<u64>,
    /// Seconds, by rank; 0 for a processor without units.
    pub seconds: Vec<f64>,
    /// False for a round of warm-up, and for one that took so much longer than others say that it was run again.
    pub believed: bool,
}

impl Round {
    /// The longest time.
    pub fn longest(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    /// (longest - shortest) / shortest time of the processors with a share: the quantity that the tolerance
    /// limits.
    pub fn spread(&self) -> f64 {
        let working = self.seconds.iter().zip(&self.shares).filter(|(_, share)| **share > 0);
        let shortest = working.map(|(t, _)| *t).fold(f64::INFINITY, f64::min);
        (self.longest() - shortest) / shortest
    }

    /// Longest time over the time that all would need together at the speeds of this round; 1 if all end
    /// together.
    pub fn imbalance(&self) -> f64 {
        self.imbalance_by(&self.shares.iter().map(|share| *share as f64).collect::<Vec<_>>())
    }

    /// The same where the parts have these sizes, such as their costs.
    pub fn imbalance_by(&self, sizes: &[f64]) -> f64 {
        let working = self.seconds.iter().zip(sizes).filter(|(_, size)| **size > 0.0);
        let speed: f64 = working.map(|(t, size)| size / t).sum();
        self.longest() * speed / sizes.iter().sum::<f64>()
    }
}

/// The largest share that a processor's program was able to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareCap {
    /// The processor.
    pub rank: usize,
    /// The largest share that worked.
    pub works: u64,
    /// The smallest share that failed.
    pub fails: u64,
    /// How it failed: exit status, and the last line of the program's output.
    pub reason: String,
}

/// Result of a search for balance, or its state after a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    /// Every round, in order.
    pub rounds: Vec<Round>,
    /// True if the times of the kept round are within the tolerance of each other.
    pub balanced: bool,
    /// Index of the round to keep: the one whose longest time is the shortest. A balanced last round is kept
    /// also if its longest time is longer by no more than the tolerance. Of equal times the later is kept.
    pub best: usize,
    /// The known part of the speed functions, for all processors that had a share in any round. A cap is a
    /// model's `max_size`.
    pub models: Models,
    /// By rank, the processors whose program failed at a share larger than one that had worked.
    pub caps: Vec<ShareCap>,
    /// Seconds of all runs: the longest time of each.
    pub cost_seconds: f64,
    /// The time of all units on the fastest processor alone, by start-up and time per unit unless it was measured.
    pub alone: Option<AloneTime>,
    /// The time with equal shares, once a round is believed.
    pub even: Option<EvenTime>,
    /// The units, if they differ in cost.
    row: Option<Arc<Row>>,
}

/// The time of a job with equal shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvenTime {
    /// The longest time.
    pub seconds: f64,
    /// Whether it was measured, and not contradicted later.
    pub measured: bool,
}

impl Balance {
    /// The cost of each processor's units in a round, by rank, if units differ in cost.
    pub(crate) fn costs(&self, round: &Round) -> Option<Vec<f64>> {
        self.row.as_ref().map(|row| row.costs(&round.shares))
    }

    /// [`Round::imbalance`], by cost if units differ in it.
    pub fn imbalance(&self, round: &Round) -> f64 {
        self.costs(round).map_or_else(|| round.imbalance(), |costs| round.imbalance_by(&costs))
    }

    /// The round to keep.
    pub fn best_round(&self) -> &Round {
        &self.rounds[self.best]
    }

    /// The kept shares as a plan; its forecast is the time of that round.
    pub fn plan(&self, platform: &Platform) -> Plan {
        let best = self.best_round();
        let forecast = Forecast {
            seconds: best.longest(),
            compute: best.seconds.clone(),
            communicate: vec![0.0; best.seconds.len()],
        };
        let plan = Plan::of_units("dfpa", platform.names(), best.shares.clone(), self.imbalance(best));
        let baselines = (platform.len() > 1 && self.even.is_some()).then(|| Baselines {
            fastest_alone: self.alone.as_ref().map(|alone| FastestAlone {
                processor: alone.processor.clone(),
                seconds: alone.time.seconds,
            }),
            even_split: self.even.map(|even| even.seconds),
        });
        Plan { forecast: Some(forecast), baselines, costs: self.costs(best), ..plan }
    }

    /// Runs all units on the processor that is the fastest alone, to measure its time. Does nothing if no processor can
    /// do them.
    ///
    /// # Errors
    /// A program that cannot be started, fails, takes too long or prints no time; interrupted; a lost rank.
    pub fn measure_alone(
        &mut self,
        platform: &Platform,
        command: &UserCommand,
        repetitions: u32,
        world: &World,
    ) -> Result<()> {
        let Some(alone) = &mut self.alone else { return Ok(()) };
        let units = self.rounds[0].shares.iter().sum();
        let mut all = vec![0; platform.len()];
        let rank = platform.processors.iter().position(|p| p.name == alone.processor);
        let rank = rank.expect("the processor is of this platform");
        all[rank] = units;
        let run = || run_shares(platform, command, &all, world, world.monitor());
        let seconds = match measure_round(run, all.len(), repetitions) {
            Ok(seconds) => seconds[rank],
            Err(RoundError::Other(error) | RoundError::Share { error, .. }) => return Err(error),
        };
        alone.time = TimeRange { seconds, low: seconds, high: seconds };
        alone.measured = true;
        self.cost_seconds += seconds * f64::from(repetitions.max(1));
        Ok(())
    }

    /// The number of runs with the kept shares after which they have saved what the search has cost, against the better
    /// of the fastest processor alone and equal shares; `None` if that is never.
    pub fn pays_after_runs(&self) -> Option<u64> {
        let alone = self.alone.as_ref().map_or(f64::INFINITY, |alone| alone.time.seconds);
        let even = self.even.map_or(f64::INFINITY, |even| even.seconds);
        let runs = (self.cost_seconds / (alone.min(even) - self.best_round().longest())).ceil();
        (runs > 0.0 && runs.is_finite()).then_some(runs as u64)
    }
}

/// Runs `command` on all processors at once with their shares of `units`. The first shares are equal, or
/// follow the models of the options. After each round the units are repartitioned by the measured times: the start-up
/// and the time per unit of each processor are known after two rounds. A round that takes much longer than expected is
/// run again. The search ends when all times are within the tolerance of each other, nothing new can be tried, or the
/// rounds are used up. A processor without a share runs nothing. The `slowdown` of an emulated processor multiplies
/// its time.
///
/// A program that fails at a share larger than one that worked on the same processor has no memory for it, as
/// far as one can tell: the search goes on below that share, and halves the interval between the two until
/// the largest share that works is known.
///
/// In a world of several ranks, each runs the program of its own processor, and all get the same result.
///
/// `each` is called after every round and every such failure with the result so far: whoever keeps the last one loses
/// no round to an error.
///
/// # Errors
/// No units or processors; a tolerance that is not positive; known models or limits whose number is not that
/// of the processors, or that leave too little room; a program that cannot be started, fails at a share that
/// worked or in the first round, takes too long or prints no time; interrupted; a lost rank.
///
/// # Panics
/// If the number of several ranks is not that of the processors.
pub fn balance(
    platform: &Platform,
    command: &UserCommand,
    units: u64,
    options: &BalanceOptions,
    each: &mut dyn FnMut(&Balance),
    world: &World,
) -> Result<Balance> {
    let monitor = world.monitor();
    let row = match &options.costs {
        Some(costs) if costs.len() as u64 != units => {
            let what = format!("there are {} for {units} units", costs.len());
            return Err(Error::input("`costs`", what, "give one cost for each unit"));
        }
        Some(costs) => Some(Arc::new(Row::new(costs)?)),
        None => None,
    };
    let counted = if row.is_some() { PARTS } else { units };
    let mut search = Search::new(counted, platform.len())?
        .with_tolerance(options.tolerance)?
        .with_warm_up(options.warm_up.min(options.most_rounds.saturating_sub(1)));
    if let Some(models) = &options.models {
        search = match &row {
            Some(row) => search.with_models(&row.for_search(models)?)?,
            None => search.with_models(models)?,
        };
    }
    if !options.limits.is_empty() && row.is_none() {
        search = search.with_limits(&options.limits)?;
    }
    let (mut rounds, mut caps) = (Vec::<Round>::new(), Vec::<ShareCap>::new());
    // Nobody knows how many rounds it takes.
    monitor.begin(0);
    let limits = match (&row, &options.models) {
        (Some(_), Some(models)) => with_caps(&options.limits, models),
        _ => options.limits.clone(),
    };
    let mut shares = match &row {
        Some(row) => row.cut(&mut search, &limits)?,
        None => search.shares().to_vec(),
    };
    for attempt in 1.. {
        let mut step = Step::Next;
        let run = || run_shares(platform, command, &shares, world, monitor);
        match measure_round(run, shares.len(), options.repetitions) {
            Ok(seconds) => {
                step = search.observe(&seconds)?;
                rounds.push(Round { shares: shares.clone(), seconds, believed: step != Step::Again });
            }
            Err(RoundError::Other(error)) => return Err(error),
            Err(RoundError::Share { rank, reason, error }) => {
                let works = rounds.iter().map(|round| round.shares[rank]).max().unwrap_or(0);
                if works == 0 || shares[rank] <= works {
                    return Err(error);
                }
                caps.retain(|cap| cap.rank != rank);
                caps.push(ShareCap { rank, works, fails: shares[rank], reason });
                caps.sort_by_key(|cap| cap.rank);
            }
        }
        for cap in &mut caps {
            cap.works = rounds.iter().map(|round| round.shares[cap.rank]).max().unwrap_or(0);
        }
        let is_last = attempt >= options.most_rounds;
        let found = Found { search: &search, rounds: &rounds, caps: &caps, row: row.as_ref() };
        let so_far = found.summary(platform, command, options)?;
        each(&so_far);
        let next = match step {
            _ if is_last => None,
            Step::Again => continue,
            Step::Balanced | Step::NothingBetter if caps.is_empty() => None,
            Step::Next if caps.is_empty() && row.is_none() => Some(search.shares().to_vec()),
            // The caps may have moved. Where they leave no room, or nothing new to try, the best is known.
            _ => next_shares(&mut search, row.as_deref(), &capped(&limits, &caps, platform.len())),
        };
        // Without caps the search itself knows what is new.
        let is_tried = |next: &[u64]| rounds.iter().any(|round| round.believed && round.shares == next);
        let next = next.filter(|next| caps.is_empty() && row.is_none() || !is_tried(next));
        if let Some(next) = next {
            shares = next;
            continue;
        }
        return Ok(so_far);
    }
    unreachable!("the last attempt returns")
}

/// The shares of the next round within these limits; `None` if they leave no room.
fn next_shares(search: &mut Search, row: Option<&Row>, limits: &[Limits]) -> Option<Vec<u64>> {
    if let Some(row) = row {
        return row.cut(search, limits).ok();
    }
    *search = search.clone().with_limits(limits).ok()?;
    Some(search.shares().to_vec())
}

/// The state of a search.
struct Found<'a> {
    search: &'a Search,
    rounds: &'a [Round],
    caps: &'a [ShareCap],
    row: Option<&'a Arc<Row>>,
}

impl Found<'_> {
    /// What is known after a round.
    fn summary(
        &self,
        platform: &Platform,
        command: &UserCommand,
        options: &BalanceOptions,
    ) -> Result<Balance> {
        let rounds = self.rounds;
        let best = best_of(rounds, options.tolerance);
        let believed = rounds.iter().any(|round| round.believed);
        let limits = capped(&options.limits, self.caps, platform.len());
        let (alone, expected) = if believed { self.baselines(&limits)? } else { (None, f64::INFINITY) };
        // A first round that was cold or disturbed tells nothing of equal shares.
        let is_even = |round: &&Round| {
            round.shares.iter().max().zip(round.shares.iter().min()).is_some_and(|(a, b)| a - b <= 1)
        };
        let even = rounds.iter().filter(is_even).map(Round::longest).fold(f64::INFINITY, f64::min);
        let measured = even <= MORE * expected && even < f64::INFINITY;
        Ok(Balance {
            balanced: rounds[best].spread() <= options.tolerance,
            best,
            models: Models {
                kernel: format!("command: {}", command.text()),
                unit: if self.row.is_some() { "cost of the units" } else { "{size} of the command" }.into(),
                parameters: BTreeMap::new(),
                models: if believed { self.models(platform)? } else { Vec::new() },
            },
            rounds: rounds.to_vec(),
            caps: self.caps.to_vec(),
            cost_seconds: rounds.iter().map(Round::longest).sum::<f64>()
                * f64::from(options.repetitions.max(1)),
            alone: alone.map(|(rank, seconds)| AloneTime {
                processor: platform.processors[rank].name.clone(),
                time: TimeRange { seconds, low: seconds, high: seconds },
                measured: false,
            }),
            even: believed
                .then_some(EvenTime { seconds: if measured { even } else { expected.min(even) }, measured }),
            row: self.row.cloned(),
        })
    }

    /// The seconds of all units on the fastest processor that has worked and has room for them, and the longest time
    /// with equal shares: by start-up and time per unit.
    fn baselines(&self, limits: &[Limits]) -> Result<(Option<(usize, f64)>, f64)> {
        let models = self.search.functions()?;
        let units: u64 = self.rounds[0].shares.iter().sum();
        let even = even_among(&models, units);
        let (all, even) = match self.row {
            Some(row) => (PARTS, row.counted(&even)),
            None => (units, even),
        };
        let is_able = |rank: &usize| {
            limits[*rank].most.is_none_or(|most| most >= units)
                && models[*rank].max_size().is_none_or(|most| most >= all as f64)
                && self.rounds.iter().any(|round| round.believed && round.shares[*rank] > 0)
        };
        let alone = (0..models.len()).filter(is_able).map(|rank| (rank, models[rank].seconds(all as f64)));
        Ok((alone.min_by(|a, b| a.1.total_cmp(&b.1)), makespan(&models, &even)))
    }

    fn models(&self, platform: &Platform) -> Result<Vec<Model>> {
        let models = self.search.models()?.into_iter().enumerate();
        models
            .filter(|(rank, _)| self.rounds.iter().any(|round| round.shares[*rank] > 0))
            .map(|(rank, model)| {
                let name = &platform.processors[rank].name;
                let cap = self.caps.iter().find(|cap| cap.rank == rank);
                let failure = cap.map(|cap| Failure { size: cap.fails as f64, reason: cap.reason.clone() });
                let most = cap.map(|cap| cap.works as f64);
                let model = match self.row {
                    Some(row) => row.of_search(&model, name, most),
                    None => Model::new(name, model.interpolation(), model.points().to_vec(), most),
                };
                model?.with_failure(failure)
            })
            .collect()
    }
}

/// The limits of the next round: halfway between the largest share that works and the smallest that fails, or
/// the former where they are close.
fn capped(limits: &[Limits], caps: &[ShareCap], processors: usize) -> Vec<Limits> {
    let mut limits = if limits.is_empty() { vec![Limits::default(); processors] } else { limits.to_vec() };
    for cap in caps {
        let close = (CAP_PRECISION * cap.works as f64) as u64;
        let between = cap.fails - cap.works;
        let most = if between <= close.max(1) { cap.works } else { cap.works + between / 2 };
        let limit = &mut limits[cap.rank];
        limit.most = Some(limit.most.map_or(most, |own| own.min(most)));
    }
    limits
}

/// The round to keep ([`Balance::best`]).
fn best_of(rounds: &[Round], tolerance: f64) -> usize {
    let last = rounds.len() - 1;
    let shortest = (0..rounds.len())
        .rev()
        .min_by(|&a, &b| rounds[a].longest().total_cmp(&rounds[b].longest()))
        .expect("there is a round");
    let close = rounds[last].longest() <= (1.0 + tolerance) * rounds[shortest].longest();
    if close && rounds[last].spread() <= tolerance { last } else { shortest }
}

/// Why a round has no times.
enum RoundError {
    /// A program failed at its share, as it does when memory is full.
    Share {
        rank: usize,
        reason: String,
        error: Error,
    },
    Other(Error),
}

/// Medians of the seconds by rank of several runs.
fn measure_round(
    run: impl FnMut() -> std::result::Result<Vec<f64>, RoundError>,
    processors: usize,
    repetitions: u32,
) -> std::result::Result<Vec<f64>, RoundError> {
    let rule = StoppingRule::times(repetitions.max(1) as usize);
    let runs = Sampler::new(rule).run(|_| false, run)?;
    let seconds = |rank: usize| median(&runs.iter().map(|run| run[rank]).collect::<Vec<f64>>());
    Ok((0..processors).map(seconds).collect())
}

/// One run on every processor that has a share, all at once: seconds by rank. The first program that fails ends the
/// others.
fn run_shares(
    platform: &Platform,
    command: &UserCommand,
    shares: &[u64],
    world: &World,
    monitor: &Monitor,
) -> std::result::Result<Vec<f64>, RoundError> {
    let halt = StopSignal::new(monitor);
    let ranges = ranges(shares);
    let outcomes = run_programs(platform, shares, &halt, (world, command.patience()), |rank, processor| {
        let units = &ranges[rank];
        let run =
            CommandRun { processor, rank, piece: rank as u64, units: units.start as f64..units.end as f64 };
        command.seconds(&run, &halt).inspect_err(|_| halt.fail())
    });
    let outcomes = outcomes.map_err(RoundError::Other)?;
    all_seconds(outcomes).map_err(|RankFailure { rank, failure: ProgramFailure { error, reason } }| {
        match reason {
            Some(reason) if !monitor.is_stopped() => RoundError::Share { rank, reason, error },
            _ if monitor.is_stopped() => RoundError::Other(Error::Interrupted),
            _ => RoundError::Other(error),
        }
    })
}

/// The units of each processor as half-open ranges, one after the other.
pub(super) fn ranges(shares: &[u64]) -> Vec<Range<u64>> {
    let mut from = 0;
    shares
        .iter()
        .map(|share| {
            let range = from..from + share;
            from = range.end;
            range
        })
        .collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::command::SecondsFrom;
    use super::*;

    fn platform(slowdowns: &[f64]) -> Platform {
        let mut platform = Platform::from_speeds(&vec![1.0; slowdowns.len()]).unwrap();
        for (processor, &slowdown) in platform.processors.iter_mut().zip(slowdowns) {
            processor.slowdown = slowdown;
        }
        platform
    }

    fn run(slowdowns: &[f64], n: u64, text: &str, options: BalanceOptions) -> Result<Balance> {
        let command = UserCommand::parse(text, SecondsFrom::Stdout).unwrap();
        let world = World::solo(&Monitor::new());
        balance(&platform(slowdowns), &command, n, &options, &mut |_| (), &world)
    }

    #[test]
    fn constant_speeds_are_balanced_in_two_rounds() {
        let found = run(&[1.0, 3.0, 4.0], 1900, "echo {share}", BalanceOptions::default()).unwrap();
        assert!(found.balanced && found.rounds.len() == 2 && found.best == 1);
        assert_eq!(found.best_round().shares, [1200, 400, 300]);
        assert_eq!(found.best_round().seconds, [1200.0, 1200.0, 1200.0]);
        assert_eq!((found.best_round().imbalance(), found.best_round().spread()), (1.0, 0.0));
        assert_eq!(found.rounds[0].longest(), 633.0 * 4.0);
        let plan = found.plan(&platform(&[1.0, 3.0, 4.0]));
        assert_eq!(Plan::parse(&plan.to_value().to_string(), "p").unwrap(), plan);
    }

    /// By hand: rounds of 2,532 and 1,200 s, p0 alone 1,900. 3,732 s are saved after 3,732 / 700 = 5.3 runs, and with
    /// the 1,900 of p0 alone after 8.05.
    #[test]
    fn a_search_says_what_it_cost() {
        let platform = platform(&[1.0, 3.0, 4.0]);
        let command = UserCommand::parse("echo {share}", SecondsFrom::Stdout).unwrap();
        let (options, world) = (BalanceOptions::default(), World::solo(&Monitor::new()));
        let mut found = balance(&platform, &command, 1900, &options, &mut |_| (), &world).unwrap();
        assert_eq!(found.cost_seconds, 3732.0);
        let alone = found.alone.clone().unwrap();
        assert!((alone.time.seconds - 1900.0).abs() < 1e-9 && !alone.measured && alone.processor == "p0");
        assert_eq!(found.even, Some(EvenTime { seconds: 2532.0, measured: true }));
        assert_eq!(found.pays_after_runs(), Some(6));
        found.measure_alone(&platform, &command, 1, &world).unwrap();
        assert!(found.alone.as_ref().unwrap().measured);
        assert_eq!((found.cost_seconds, found.pays_after_runs()), (5632.0, Some(9)));
        assert!((found.plan(&platform).gain().unwrap() - 1900.0 / 1200.0).abs() < 1e-9);
    }

    /// 2 s to start; the second round pauses for 20 s, and is run again.
    #[test]
    fn start_ups_and_a_disturbed_round() {
        for pause in [0, 20_000] {
            let directory = tempfile::tempdir().unwrap();
            let runs = directory.path().join("runs");
            let text = format!(
                "sh -c 'echo x >>\"$0\"$APPORTION_RANK; n=$(wc -l <\"$0\"$APPORTION_RANK); \
                 test $n = 2 && p={pause} || p=0; \
                 echo $((2000 + {{share}} * (1 + 2 * APPORTION_RANK) + p))' '{}'",
                runs.display()
            );
            let found = run(&[1.0, 1.0], 4000, &text, BalanceOptions::default()).unwrap();
            assert!(found.balanced && found.rounds.len() <= 4, "{found:?}");
            assert!(found.best_round().shares[0].abs_diff(3000) <= 60, "{found:?}");
            let believed: Vec<bool> = found.rounds.iter().map(|round| round.believed).collect();
            assert_eq!(believed[1], pause == 0, "{believed:?}");
        }
    }

    #[test]
    fn what_cannot_be_balanced_ends_with_the_best() {
        let options = BalanceOptions::default();
        let found = run(&[1.0, 1.7], 3, "echo {share}", options).unwrap();
        assert!(!found.balanced);
        assert_eq!(found.best_round().shares, [2, 1]);
        let capped = BalanceOptions { most_rounds: 1, ..BalanceOptions::default() };
        let found = run(&[1.0, 9.0], 100, "echo {share}", capped).unwrap();
        assert!(!found.balanced && found.rounds.len() == 1);
        assert_eq!(found.best_round().shares, [50, 50]);
    }

    fn round(seconds: &[f64]) -> Round {
        Round { shares: vec![1; seconds.len()], seconds: seconds.to_vec(), believed: true }
    }

    #[test]
    fn the_round_with_the_shortest_longest_time_is_kept() {
        let first = [round(&[5.0, 1.0]), round(&[3.0, 2.0]), round(&[4.0, 1.0])];
        assert_eq!(best_of(&first, 0.05), 1);
        // Balanced, and longer by less than the tolerance.
        assert_eq!(best_of(&[round(&[3.0, 2.0]), round(&[3.1, 3.0])], 0.05), 1);
        // Balanced, but much longer: the time counts.
        assert_eq!(best_of(&[round(&[3.0, 2.0]), round(&[3.2, 3.2])], 0.05), 0);
        assert_eq!(best_of(&[round(&[3.0, 2.0]), round(&[2.0, 3.0])], 0.05), 1, "the later of equals");
    }

    /// Times that scatter by 30 %, by a formula: many rounds look like a processor that has changed.
    #[test]
    fn noise_does_not_exceed_the_rounds() {
        let noisy = "sh -c 'echo x >>\"$0\"; n=$(wc -l <\"$0\"); \
            echo $(({size} * (100 + (n * 7919 + APPORTION_RANK * 104729) % 47)))'";
        for most_rounds in [3, 8] {
            let directory = tempfile::tempdir().unwrap();
            let text = format!("{noisy} '{}'", directory.path().join("runs").display());
            let options = BalanceOptions { most_rounds, tolerance: 1e-6, ..BalanceOptions::default() };
            let mut states = Vec::new();
            let command = UserCommand::parse(&text, SecondsFrom::Stdout).unwrap();
            let slowdowns = [1.0, 1.0, 1.0, 1.0, 2.4, 2.4, 2.4, 2.4];
            let found = balance(
                &platform(&slowdowns),
                &command,
                248_000,
                &options,
                &mut |so_far| states.push(so_far.clone()),
                &World::solo(&Monitor::new()),
            )
            .unwrap();
            assert!(found.rounds.len() <= most_rounds as usize, "{}", found.rounds.len());
            let shortest = found.rounds.iter().map(Round::longest).fold(f64::INFINITY, f64::min);
            assert_eq!(found.best_round().longest(), shortest);
            assert_eq!(states.last(), Some(&found), "every round was passed on");
            assert_eq!(states.len(), found.rounds.len());
        }
    }

    #[test]
    fn ranges_follow_one_another() {
        assert_eq!(ranges(&[3, 0, 4]), [0..3, 3..3, 3..7]);
        let found = run(&[1.0, 1.0], 10, "sh -c 'echo $(({to} - {from}))'", BalanceOptions::default());
        assert_eq!(found.unwrap().best_round().seconds, [5.0, 5.0]);
    }

    /// Processor 0 is 20 times as fast, and its memory holds 60 of 100 units: the best is 60 and 40, as a
    /// search over all divisions finds.
    #[test]
    fn a_share_without_memory_is_a_cap() {
        for (holds, units) in [(60, 100), (51, 100), (777, 1000), (94, 100)] {
            let text = format!(
                "sh -c 'test $APPORTION_RANK = 0 && test {{share}} -gt {holds} && {{ echo MemoryError >&2; exit 137; }}; \
                 echo {{share}}'"
            );
            let found = run(&[1.0, 20.0], units, &text, BalanceOptions::default()).unwrap();
            let time = |x: u64| (x as f64).max(20.0 * (units - x) as f64);
            let best = (0..=holds).map(time).fold(f64::INFINITY, f64::min);
            assert!(found.best_round().longest() <= 1.003 * best, "{holds}: {found:?}");
            assert!(found.best_round().shares[0] <= holds);
            let [cap] = &found.caps[..] else { panic!("{found:?}") };
            assert!(cap.rank == 0 && cap.works <= holds && cap.fails > holds, "{cap:?}");
            assert!(cap.reason.contains("137") && cap.reason.contains("MemoryError"), "{cap:?}");
            assert_eq!(found.models.models[0].max_size(), Some(cap.works as f64));
        }
        // Both are too small together: what worked is the result.
        let full = "sh -c 'test {share} -gt 50 && kill -9 $$; echo {share}'";
        let found = run(&[1.0, 20.0], 100, full, BalanceOptions::default()).unwrap();
        assert_eq!((&found.best_round().shares[..], found.caps[0].works), (&[50, 50][..], 50));
    }

    #[test]
    fn limits_hold_in_every_round() {
        let limits =
            vec![Limits { most: Some(60), ..Limits::default() }, Limits { least: 10, ..Limits::default() }];
        let options = BalanceOptions { limits, ..BalanceOptions::default() };
        let found = run(&[1.0, 20.0], 100, "echo {share}", options).unwrap();
        assert_eq!(found.best_round().shares, [60, 40]);
        let alone = found.alone.as_ref().unwrap();
        assert_eq!((&alone.processor[..], alone.time.seconds.round()), ("p1", 2000.0), "p0 may not do all");
        assert!(found.caps.is_empty() && found.rounds.iter().all(|round| round.shares[0] <= 60));
        let limits = vec![Limits { most: Some(10), ..Limits::default() }; 2];
        let options = BalanceOptions { limits, ..BalanceOptions::default() };
        assert_eq!(run(&[1.0, 1.0], 100, "echo {share}", options).unwrap_err().exit_code(), 1);
    }

    #[test]
    fn a_processor_that_fails_fails_all() {
        let text = "sh -c 'test $APPORTION_RANK = 0 && exec sleep 3600; test {share} -lt 9 && echo 1'";
        let error = run(&[1.0, 1.0], 40, text, BalanceOptions::default()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("size 20 on processor \"p1\" failed"), "{error}");
    }
}

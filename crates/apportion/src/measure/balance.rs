//! Balances any user program by running it, without models or a sweep: a search with a [`Balancer`] (DFPA,
//! Lastovetsky and Reddy 2009).

use super::balance_row::{PARTS, Row, with_caps};
use crate::error::{Error, Result};
use crate::measure::command::{CommandRun, Failure as ProgramFailure, UserCommand};
use crate::measure::programs::{RankFailure, all_seconds, run_programs};
use crate::measure::repetition::{Sampler, StoppingRule};
use crate::model::{Failure, Model, Models, median};
use crate::plan::shares::{Balancer, Limits};
use crate::plan::{Baselines, Forecast, Plan};
use crate::platform::Platform;
use crate::run::mailboxes::StopSignal;
use crate::run::{Monitor, World};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Fraction of a share within which the largest one that works is searched for.
const CAP_PRECISION: f64 = 0.002;

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
    /// The units, if they differ in cost.
    row: Option<Arc<Row>>,
}

impl Balance {
    /// The cost of each processor's units in a round, by rank, if units differ in cost.
    pub fn costs(&self, round: &Round) -> Option<Vec<f64>> {
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

    /// The kept shares as a plan; its forecast is the time of that round. That of the even split was measured
    /// if the first round was one; that of the fastest processor alone follows from the models.
    pub fn plan(&self, platform: &Platform) -> Plan {
        let best = self.best_round();
        let forecast = Forecast {
            seconds: best.longest(),
            compute: best.seconds.clone(),
            communicate: vec![0.0; best.seconds.len()],
        };
        let plan = Plan::of_units("dfpa", platform.names(), best.shares.clone(), self.imbalance(best));
        let units = best.shares.iter().sum();
        let mut baselines = Baselines::of_units(&self.models.models, units);
        let first = &self.rounds[0];
        let is_even =
            first.shares.iter().max().zip(first.shares.iter().min()).is_some_and(|(a, b)| a - b <= 1);
        if let Some(baselines) = baselines.as_mut().filter(|_| is_even) {
            baselines.even_split = Some(first.longest());
        }
        if self.row.is_some() {
            // The models have sizes in cost.
            baselines = None;
        }
        Plan { forecast: Some(forecast), baselines, costs: self.costs(best), ..plan }
    }
}

/// Runs `command` on all processors at once with their shares of `units`. The first shares are equal, or
/// follow the models of the options. After each round the units are repartitioned by the measured times,
/// until all times are within the tolerance of each other, nothing new can be tried, or the rounds are used
/// up. A processor without a share runs nothing. The `slowdown` of an emulated processor multiplies its time.
///
/// A program that fails at a share larger than one that worked on the same processor has no memory for it, as
/// far as one can tell: the search goes on below that share, and halves the interval between the two until
/// the largest share that works is known.
///
/// In a world of several ranks, each runs the program of its own processor, and all get the same result.
///
/// `each` is called after every round and every such failure with the result so far: whoever keeps the last
/// one loses no round to an error. The world's monitor advances by one per round.
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
    let mut balancer = Balancer::new(counted, platform.len())?.with_tolerance(options.tolerance)?.searching();
    if let Some(models) = &options.models {
        balancer = match &row {
            Some(row) => balancer.with_models(&row.for_balancer(models)?)?,
            None => balancer.with_models(models)?,
        };
    }
    if !options.limits.is_empty() && row.is_none() {
        balancer = balancer.with_limits(&options.limits)?;
    }
    let (mut rounds, mut caps) = (Vec::<Round>::new(), Vec::<ShareCap>::new());
    monitor.begin(u64::from(options.most_rounds));
    let limits = match (&row, &options.models) {
        (Some(_), Some(models)) => with_caps(&options.limits, models),
        _ => options.limits.clone(),
    };
    let mut cut = row.as_ref().map(|row| row.cut(&mut balancer, &limits)).transpose()?;
    for attempt in 1.. {
        let shares = cut.take().unwrap_or_else(|| balancer.shares().to_vec());
        let mut is_done = false;
        let run = || run_shares(platform, command, &shares, world, monitor);
        match measure_round(run, shares.len(), options.repetitions) {
            Ok(seconds) => {
                let round = Round { shares, seconds };
                is_done = !balancer.observe(&round.seconds)?.is_move();
                rounds.push(round);
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
        let best = best_of(&rounds, options.tolerance);
        let so_far = Balance {
            balanced: rounds[best].spread() <= options.tolerance,
            best,
            models: models(&balancer, row.as_deref(), (&rounds, &caps), platform, command)?,
            rounds: rounds.clone(),
            caps: caps.clone(),
            row: row.clone(),
        };
        each(&so_far);
        monitor.advance(1);
        if attempt >= options.most_rounds {
            return Ok(so_far);
        }
        if caps.is_empty() && is_done {
            return Ok(so_far);
        }
        let tried = |shares: &[u64]| rounds.iter().any(|round| round.shares == shares);
        if let Some(row) = &row {
            match row.cut(&mut balancer, &capped(&limits, &caps, platform.len())) {
                Ok(next) if !tried(&next) => cut = Some(next),
                _ => return Ok(so_far),
            }
            continue;
        }
        if caps.is_empty() {
            continue;
        }
        // The caps have moved. Where they leave no room, or nothing new to try, the best is known.
        match balancer.clone().with_limits(&capped(&options.limits, &caps, platform.len())) {
            Ok(next) if !tried(next.shares()) => balancer = next,
            _ => return Ok(so_far),
        }
    }
    unreachable!("the last attempt returns")
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

fn models(
    balancer: &Balancer,
    row: Option<&Row>,
    (rounds, caps): (&[Round], &[ShareCap]),
    platform: &Platform,
    command: &UserCommand,
) -> Result<Models> {
    let models = balancer
        .models()?
        .into_iter()
        .enumerate()
        .filter(|(rank, _)| rounds.iter().any(|round| round.shares[*rank] > 0))
        .map(|(rank, model)| {
            let name = &platform.processors[rank].name;
            let cap = caps.iter().find(|cap| cap.rank == rank);
            let failure = cap.map(|cap| Failure { size: cap.fails as f64, reason: cap.reason.clone() });
            let most = cap.map(|cap| cap.works as f64);
            let model = match row {
                Some(row) => row.of_balancer(&model, name, most),
                None => Model::new(name, model.interpolation(), model.points().to_vec(), most),
            };
            model?.with_failure(failure)
        })
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: format!("command: {}", command.text()),
        unit: if row.is_some() { "cost of the units" } else { "{size} of the command" }.into(),
        parameters: BTreeMap::new(),
        models,
    })
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
        Round { shares: vec![1; seconds.len()], seconds: seconds.to_vec() }
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

//! Balances any user program by running it, without models or a sweep: a search with a [`Balancer`] (DFPA,
//! Lastovetsky and Reddy 2009).

use crate::error::Result;
use crate::measure::at_once::{all_fine, at_once};
use crate::measure::command::{Task, UserCommand};
use crate::model::{Model, Models, median};
use crate::plan::shares::Balancer;
use crate::plan::{Forecast, Plan};
use crate::platform::Platform;
use crate::run::Monitor;
use crate::run::mailboxes::StopSignal;
use std::collections::BTreeMap;
use std::ops::Range;

/// Options of the search for balance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BalanceOptions {
    /// The largest relative difference of two processors' times that counts as balanced.
    pub tolerance: f64,
    /// Maximum number of rounds.
    pub most_rounds: u32,
    /// Runs per round; their median time counts.
    pub repetitions: u32,
}

impl Default for BalanceOptions {
    fn default() -> Self {
        Self { tolerance: 0.05, most_rounds: 20, repetitions: 1 }
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
        let working = || self.seconds.iter().zip(&self.shares).filter(|(_, share)| **share > 0);
        let speed: f64 = working().map(|(t, share)| *share as f64 / t).sum();
        let units: u64 = self.shares.iter().sum();
        self.longest() * speed / units as f64
    }
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
    /// The known part of the speed functions, for all processors that had a share in any round.
    pub models: Models,
}

impl Balance {
    /// The round to keep.
    pub fn kept(&self) -> &Round {
        &self.rounds[self.best]
    }

    /// The longest times of the first and of the kept round, whose quotient is the gain.
    pub fn gain(&self) -> (f64, f64) {
        (self.rounds[0].longest(), self.kept().longest())
    }

    /// The kept shares as a plan; its forecast is the time of that round.
    pub fn plan(&self, platform: &Platform) -> Plan {
        let kept = self.kept();
        let forecast = Forecast {
            seconds: kept.longest(),
            compute: kept.seconds.clone(),
            communicate: vec![0.0; kept.seconds.len()],
        };
        let plan = Plan::of_units("dfpa", platform.names(), kept.shares.clone(), kept.imbalance());
        Plan { forecast: Some(forecast), ..plan }
    }
}

/// Runs `command` on all processors at once with their shares of `units`. The first shares are equal, or
/// follow the models `known` by rank. After each round the units are repartitioned by the measured times,
/// until all times are within the tolerance of each other, nothing new can be tried, or the rounds are used
/// up. A processor without a share runs nothing. The `slowdown` of an emulated processor multiplies its time.
///
/// `each` is called after every round with the result so far: whoever keeps the last one loses no round to an
/// error. The monitor advances by one per round.
///
/// # Errors
/// No units or processors; a tolerance that is not positive; known models whose number is not that of the
/// processors, or whose caps leave too little room; a program that cannot be started, fails, takes too long
/// or prints no time; interrupted.
pub fn balance(
    platform: &Platform,
    (command, units): (&UserCommand, u64),
    known: Option<&[Model]>,
    options: &BalanceOptions,
    each: &mut dyn FnMut(&Balance),
    monitor: &Monitor,
) -> Result<Balance> {
    let mut balancer = Balancer::new(units, platform.len())?.with_tolerance(options.tolerance)?.searching();
    if let Some(models) = known {
        balancer = balancer.with_models(models)?;
    }
    let mut rounds = Vec::new();
    monitor.begin(u64::from(options.most_rounds));
    loop {
        let shares = balancer.shares().to_vec();
        let mut runs = Vec::new();
        for _ in 0..options.repetitions.max(1) {
            runs.push(together(platform, command, &shares, monitor)?);
        }
        let seconds = (0..shares.len())
            .map(|rank| median(&runs.iter().map(|run| run[rank]).collect::<Vec<f64>>()))
            .collect();
        let round = Round { shares, seconds };
        let decision = balancer.observe(&round.seconds)?;
        rounds.push(round);
        let best = best_of(&rounds, options.tolerance);
        let so_far = Balance {
            balanced: rounds[best].spread() <= options.tolerance,
            best,
            models: models(&balancer, &rounds, platform, command)?,
            rounds,
        };
        each(&so_far);
        monitor.advance(1);
        if !decision.is_move() || so_far.rounds.len() >= options.most_rounds as usize {
            return Ok(so_far);
        }
        rounds = so_far.rounds;
    }
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

/// One run on every processor that has a share, all at once. Returns seconds by rank.
fn together(
    platform: &Platform,
    command: &UserCommand,
    shares: &[u64],
    monitor: &Monitor,
) -> Result<Vec<f64>> {
    let halt = StopSignal::new(monitor);
    let ranges = ranges(shares);
    let outcomes = at_once(platform, shares, &halt, |rank, processor| {
        let units = &ranges[rank];
        let task = Task { processor, rank, units: units.start as f64..units.end as f64 };
        command.seconds(&task, None, &halt).map_err(|failure| {
            halt.fail();
            failure.error
        })
    });
    all_fine(outcomes, 0.0)
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
    rounds: &[Round],
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
            Model::new(name, model.interpolation(), model.points().to_vec(), None)
        })
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: format!("command: {}", command.text()),
        unit: "{size} of the command".into(),
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
        balance(&platform(slowdowns), (&command, n), None, &options, &mut |_| (), &Monitor::new())
    }

    #[test]
    fn constant_speeds_are_balanced_in_two_rounds() {
        let found = run(&[1.0, 3.0, 4.0], 1900, "echo {share}", BalanceOptions::default()).unwrap();
        assert!(found.balanced && found.rounds.len() == 2 && found.best == 1);
        assert_eq!(found.kept().shares, [1200, 400, 300]);
        assert_eq!(found.kept().seconds, [1200.0, 1200.0, 1200.0]);
        assert_eq!((found.kept().imbalance(), found.kept().spread()), (1.0, 0.0));
        assert_eq!(found.rounds[0].longest(), 633.0 * 4.0);
        let plan = found.plan(&platform(&[1.0, 3.0, 4.0]));
        assert_eq!(Plan::parse(&plan.to_value().to_string(), "p").unwrap(), plan);
    }

    #[test]
    fn what_cannot_be_balanced_ends_with_the_best() {
        let options = BalanceOptions::default();
        let found = run(&[1.0, 1.7], 3, "echo {share}", options).unwrap();
        assert!(!found.balanced);
        assert_eq!(found.kept().shares, [2, 1]);
        let capped = BalanceOptions { most_rounds: 1, ..options };
        let found = run(&[1.0, 9.0], 100, "echo {share}", capped).unwrap();
        assert!(!found.balanced && found.rounds.len() == 1);
        assert_eq!(found.kept().shares, [50, 50]);
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
            let options = BalanceOptions { most_rounds, tolerance: 1e-6, repetitions: 1 };
            let mut states = Vec::new();
            let command = UserCommand::parse(&text, SecondsFrom::Stdout).unwrap();
            let slowdowns = [1.0, 1.0, 1.0, 1.0, 2.4, 2.4, 2.4, 2.4];
            let found = balance(
                &platform(&slowdowns),
                (&command, 248_000),
                None,
                &options,
                &mut |so_far| states.push(so_far.clone()),
                &Monitor::new(),
            )
            .unwrap();
            assert!(found.rounds.len() <= most_rounds as usize, "{}", found.rounds.len());
            let shortest = found.rounds.iter().map(Round::longest).fold(f64::INFINITY, f64::min);
            assert_eq!(found.kept().longest(), shortest);
            assert_eq!(found.gain(), (found.rounds[0].longest(), shortest));
            assert_eq!(states.last(), Some(&found), "every round was passed on");
            assert_eq!(states.len(), found.rounds.len());
        }
    }

    #[test]
    fn ranges_follow_one_another() {
        assert_eq!(ranges(&[3, 0, 4]), [0..3, 3..3, 3..7]);
        let found = run(&[1.0, 1.0], 10, "sh -c 'echo $(({to} - {from}))'", BalanceOptions::default());
        assert_eq!(found.unwrap().kept().seconds, [5.0, 5.0]);
    }

    #[test]
    fn a_processor_that_fails_fails_all() {
        let text = "sh -c 'test $APPORTION_RANK = 0 && exec sleep 3600; test {share} -lt 9 && echo 1'";
        let error = run(&[1.0, 1.0], 40, text, BalanceOptions::default()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("size 20 on processor \"p1\" failed"), "{error}");
    }
}

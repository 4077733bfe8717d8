//! Balances any user program by running it, without models or a sweep (DFPA, see [`Dfpa`]).

use crate::error::{Error, Result};
use crate::measure::command::UserCommand;
use crate::model::{Model, Models, median};
use crate::plan::shares::{Dfpa, Step};
use crate::plan::{Forecast, Plan};
use crate::platform::Platform;
use crate::run::Monitor;
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use std::collections::BTreeMap;
use std::sync::Barrier;

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

/// Result of a search for balance.
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    /// Every round, in order.
    pub rounds: Vec<Round>,
    /// True if the last round was within the tolerance.
    pub balanced: bool,
    /// Index of the round to keep: the last if balanced, otherwise the one with the smallest longest time.
    pub best: usize,
    /// The known part of the speed functions, for all processors that had a share in any round.
    pub models: Models,
}

impl Balance {
    /// The round to keep.
    pub fn kept(&self) -> &Round {
        &self.rounds[self.best]
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
/// until all times are within the tolerance of each other. `each` is called after every round; the monitor
/// advances by one per round. A processor without a share runs nothing. The `slowdown` of an emulated
/// processor multiplies its time.
///
/// # Errors
/// No units or processors; a tolerance that is not positive; known models whose number is not that of the
/// processors, or whose caps leave too little room; a program that cannot be started, fails or prints no
/// time; interrupted.
pub fn balance(
    platform: &Platform,
    (command, units): (&UserCommand, u64),
    known: Option<&[Model]>,
    options: &BalanceOptions,
    each: &mut dyn FnMut(&Round),
    monitor: &Monitor,
) -> Result<Balance> {
    if units > 1 << 53 {
        return Err(Error::input("`units`", format!("{units} is more than 2^53"), "give a smaller number"));
    }
    let mut dfpa = Dfpa::new(units, platform.len(), options.tolerance)?.with_rounds(options.most_rounds);
    if let Some(models) = known {
        dfpa = dfpa.with_models(models)?;
    }
    let mut rounds = Vec::new();
    monitor.begin(u64::from(options.most_rounds));
    loop {
        let shares = dfpa.shares().to_vec();
        let mut runs = Vec::new();
        for _ in 0..options.repetitions.max(1) {
            runs.push(together(platform, command, &shares, monitor)?);
        }
        let seconds = (0..shares.len())
            .map(|rank| median(&runs.iter().map(|run| run[rank]).collect::<Vec<f64>>()))
            .collect();
        let round = Round { shares, seconds };
        each(&round);
        monitor.advance(1);
        let step = dfpa.observe(&round.seconds)?;
        rounds.push(round);
        if step != Step::Again {
            // The same shares may have been tried before a processor changed: the last time counts.
            let best = rounds.iter().rposition(|round| round.shares == dfpa.shares());
            return Ok(Balance {
                balanced: step == Step::Balanced,
                best: best.expect("only shares that were tried are kept"),
                models: models(&dfpa, &rounds, platform, command)?,
                rounds,
            });
        }
    }
}

/// One run on every processor that has a share, all at once. Returns seconds by rank.
fn together(
    platform: &Platform,
    command: &UserCommand,
    shares: &[u64],
    monitor: &Monitor,
) -> Result<Vec<f64>> {
    let halt = StopSignal::new(monitor);
    let working = shares.iter().filter(|share| **share > 0).count();
    let barrier = Barrier::new(working);
    let outcomes: Vec<Result<f64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = platform
            .processors
            .iter()
            .zip(shares)
            .enumerate()
            .map(|(rank, (processor, &share))| {
                let (halt, barrier) = (&halt, &barrier);
                (share > 0).then(|| {
                    scope.spawn(move || {
                        clock::pin(&processor.cores);
                        barrier.wait();
                        let seconds = command.seconds(processor, rank, share as f64, halt);
                        if seconds.is_err() {
                            halt.fail();
                        }
                        seconds
                    })
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.map_or(Ok(0.0), |t| t.join().expect("running a program does not panic")))
            .collect()
    });
    // A failure interrupts the other runs: the error is that of the run that failed.
    let (failed, fine): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_err);
    let mut errors: Vec<Error> = failed.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| matches!(error, Error::Interrupted));
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => fine.into_iter().collect(),
    }
}

fn models(dfpa: &Dfpa, rounds: &[Round], platform: &Platform, command: &UserCommand) -> Result<Models> {
    let models = dfpa
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

    #[test]
    fn a_processor_that_fails_fails_all() {
        let text = "sh -c 'test $APPORTION_RANK = 0 && exec sleep 3600; test {share} -lt 9 && echo 1'";
        let error = run(&[1.0, 1.0], 40, text, BalanceOptions::default()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("size 20 on processor \"p1\" failed"), "{error}");
    }
}

//! A plan of units, carried out by a user's program.

use crate::error::{Error, Result};
use crate::measure::balance::Round;
use crate::measure::command::UserCommand;
use crate::measure::pieces::{Halt, PieceObserver, Pieces, PiecesRun, Queue, TextOrder};
use crate::measure::programs::RankOutcome;
use crate::plan::shares::Order;
use crate::plan::{Division, Plan};
use crate::platform::Platform;
use crate::run::World;
use std::ops::Range;
use std::sync::Arc;

/// What a program did with the share of one processor.
#[derive(Debug)]
pub struct UnitsRun {
    /// The processor.
    pub processor: String,
    /// Its units.
    pub units: Range<u64>,
    /// Seconds of its run, or why it did not end well; `None` if it had no units and was not started.
    pub outcome: Option<Result<f64>>,
}

/// The runs of a plan that ended well, as one round: their balance. `None` if there is none.
pub fn round_of(runs: &[UnitsRun]) -> Option<Round> {
    let fine = runs.iter().filter_map(|run| Some((run, *run.outcome.as_ref()?.as_ref().ok()?)));
    let (shares, seconds): (Vec<u64>, Vec<f64>) =
        fine.map(|(run, seconds)| (run.units.end - run.units.start, seconds)).unzip();
    (!shares.is_empty()).then_some(Round { shares, seconds, believed: true })
}

/// One piece for each processor, by rank; an empty range is none.
pub(super) struct OneEach(pub Vec<Range<u64>>);

impl Queue for OneEach {
    fn next(&mut self, rank: usize, _: f64) -> Order {
        let units = std::mem::take(&mut self.0[rank]);
        if units.is_empty() { Order::Leave } else { Order::Run(units) }
    }
}

/// The number of units of a plan of units for this platform.
///
/// # Errors
/// The plan is not one of units, has none, or more than 2^53, or its processors are not the platform's: exit code 2.
pub(super) fn units_of(plan: &Plan, platform: &Platform) -> Result<u64> {
    let Division::Units { n } = plan.division else {
        let remedy = "use a plan of `partition --units`, or multiply with `apportion matmul --plan`";
        let of = match plan.division {
            Division::Graph { .. } => "graph",
            Division::Factorisation { .. } => "factorisation",
            _ => "matrix product",
        };
        return Err(Error::input("`plan`", format!("is the plan of a {of}, not of units"), remedy));
    };
    if n == 0 || n > 1 << 53 {
        return Err(Error::input("`plan`", format!("has {n} units"), "use a plan of 1 to 2^53 units"));
    }
    if platform.names() != plan.processors {
        let what = "its processors are not those of the platform";
        return Err(Error::input("`plan`", what, "use the platform for which the plan was created"));
    }
    Ok(n)
}

/// Runs `command` once on each processor with its units of the plan, all at the same time
/// ([`Plan::ranges`]). A processor without units runs nothing. A program or a launcher
/// that fails leaves the others to their end. The `slowdown` of an emulated processor multiplies its time.
///
/// In a world of several ranks, each runs the program of its own processor, and all get the outcomes of all.
///
/// `line` gets the processor's name and each line that its program prints, from several threads. The world's monitor
/// advances by the units of each run that has ended.
///
/// # Errors
/// The plan is not one of units, has none, or more than 2^53, or its processors are not the platform's
/// (exit code 2); interrupted or a lost rank, in a world of several. The outcome of each program, and an interruption
/// of a single process, is in its [`UnitsRun`].
///
/// # Panics
/// If the number of several ranks is not that of the processors.
pub fn run_units(
    plan: &Plan,
    platform: &Platform,
    command: &UserCommand,
    line: impl Fn(&str, &str) + Send + Sync + 'static,
    world: &World,
) -> Result<Vec<UnitsRun>> {
    let n = units_of(plan, platform)?;
    let ranges = plan.ranges();
    world.monitor().begin(n);
    let observer: Arc<dyn PieceObserver> = Arc::new(line);
    let pieces = Pieces {
        platform,
        command,
        world,
        observer,
        order: TextOrder::Lines,
        retries: 0,
        halt: Halt::Never,
        together: true,
        first: 0,
    };
    let ran = pieces.run(&mut OneEach(ranges.clone()), None)?;
    let mut outcomes: Vec<Option<Result<f64>>> = ranges.iter().map(stopped).collect();
    if let Some(PiecesRun { pieces, lost, .. }) = ran {
        for piece in pieces {
            outcomes[piece.rank] = Some(piece.outcome);
        }
        for processor in lost {
            outcomes[processor.rank] = stopped(&ranges[processor.rank]).map(|_| Err(processor.error));
        }
    }
    if !world.is_solo() {
        let failed =
            |outcome: Option<Result<f64>>| RankOutcome::of(outcome.map(|one| one.map_err(Into::into)));
        let all = world.decide_on_root(|| Ok(outcomes.into_iter().map(failed).collect::<Vec<_>>()))?;
        let known = |outcome: RankOutcome| Some(outcome.into_outcome()?.map_err(|failure| failure.error));
        outcomes = all.into_iter().map(known).collect();
    }
    let runs = plan.processors.iter().zip(ranges).zip(outcomes);
    Ok(runs
        .map(|((processor, units), outcome)| UnitsRun { processor: processor.clone(), units, outcome })
        .collect())
}

/// The outcome of units that were not run, if there are any.
fn stopped(units: &Range<u64>) -> Option<Result<f64>> {
    (!units.is_empty()).then_some(Err(Error::Interrupted))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::measure::SecondsFrom;
    use crate::plan::shapes::{Method, MethodOptions};
    use crate::run::Monitor;
    use std::sync::Mutex;

    fn units(shares: &[u64]) -> (Plan, Platform) {
        let mut platform = Platform::from_speeds(&vec![1.0; shares.len()]).unwrap();
        platform.processors[0].slowdown = 2.0;
        (Plan::of_units("test", platform.names(), shares.to_vec(), 1.0), platform)
    }

    fn run(shares: &[u64], text: &str) -> (Vec<UnitsRun>, Vec<String>) {
        let (plan, platform) = units(shares);
        let command = UserCommand::parse(text, SecondsFrom::Stdout).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ours = Arc::clone(&heard);
        let line = move |name: &str, text: &str| ours.lock().unwrap().push(format!("{name}: {text}"));
        let runs = run_units(&plan, &platform, &command, line, &World::solo(&Monitor::new())).unwrap();
        let mut heard = heard.lock().unwrap().clone();
        heard.sort();
        (runs, heard)
    }

    #[test]
    fn each_processor_gets_its_range_once() {
        let (runs, heard) = run(&[3, 0, 4], "sh -c 'echo {from} {to} {rank}; echo {share}'");
        let outcome = |i: usize| runs[i].outcome.as_ref().map(|o| *o.as_ref().unwrap());
        assert_eq!([outcome(0), outcome(1), outcome(2)], [Some(6.0), None, Some(4.0)], "slowed, idle, plain");
        assert_eq!(heard, ["p0: 0 3 0", "p0: 3", "p2: 3 7 2", "p2: 4"]);
        let round = round_of(&runs).unwrap();
        assert_eq!((round.shares, round.seconds), (vec![3, 4], vec![6.0, 4.0]));
    }

    #[test]
    fn a_failure_leaves_the_others_to_their_end() {
        let (runs, _) = run(&[1, 1], "sh -c 'test {rank} = 1 && sleep 0.2 && exec echo {share}; exit 3'");
        let error = runs[0].outcome.as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.to_string().contains("\"p0\" failed: exit status: 3"), "{error}");
        assert_eq!(runs[1].outcome.as_ref().unwrap().as_ref().unwrap(), &1.0);
        assert_eq!(round_of(&runs).unwrap().shares, [1]);
        assert!(round_of(&run(&[1], "false {share}").0).is_none());
    }

    /// Also a launcher that is not there.
    #[test]
    fn a_launcher_that_fails_leaves_the_others_to_their_end() {
        let (plan, mut platform) = units(&[1, 2]);
        platform.processors[0].start = vec!["./no-launcher".into()];
        let command = UserCommand::parse("echo {share}", SecondsFrom::Stdout).unwrap();
        let world = World::solo(&Monitor::new());
        let runs = run_units(&plan, &platform, &command, |_, _| (), &world).unwrap();
        let error = runs[0].outcome.as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.to_string().contains("./no-launcher"), "{error}");
        assert_eq!(runs[1].outcome.as_ref().unwrap().as_ref().unwrap(), &2.0);
    }

    #[test]
    fn other_plans_are_refused() {
        let command = UserCommand::parse("true {share}", SecondsFrom::Wall).unwrap();
        let refused = |plan: &Plan, platform: &Platform| {
            let world = World::solo(&Monitor::new());
            let error = run_units(plan, platform, &command, |_, _| (), &world).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        let (plan, platform) = units(&[1, 2]);
        assert!(refused(&plan, &Platform::from_speeds(&[1.0]).unwrap()).contains("not those"));
        let (none, same) = units(&[0, 0]);
        assert!(refused(&none, &same).contains("0 units"));
        let shape = crate::plan::Shape::new(4, 4, 4, "shape").unwrap();
        let layout = Method::StraightLine.layout(shape, &[1.0, 1.0], &MethodOptions::default()).unwrap();
        let product = Plan::of_layout("rows", platform.names(), layout, 1.0);
        assert!(refused(&product, &platform).contains("matrix product"));
    }
}

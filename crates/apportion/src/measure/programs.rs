//! Users' programs on several processors that all start at the same moment: those of a single process, or those of the
//! ranks of a world.

use crate::error::{Error, Result};
use crate::measure::command::Failure;
use crate::measure::processor_threads::run_on_processors;
use crate::platform::{Platform, Processor};
use crate::run::mailboxes::StopSignal;
use crate::run::{World, clock};
use crate::threads;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time after which the ranks ask each other whose programs run, and whether to stop.
const SLICE: Duration = Duration::from_millis(50);

/// By rank, the seconds of each processor's program, or why there are none; `None` for a processor without a share.
pub(super) type Outcomes = Vec<Option<std::result::Result<f64, Failure>>>;

/// Does `work`, which runs a program, for each processor with a share, as [`run_on_processors`] does. In a world of
/// several ranks, each does that of its own processor, and all get the outcomes of all.
///
/// # Errors
/// Interrupted or a lost rank, in a world of several.
///
/// # Panics
/// If the number of several ranks is not that of the processors.
pub(super) fn run_programs(
    platform: &Platform,
    shares: &[u64],
    halt: &StopSignal<'_>,
    (world, patience): (&World, Option<Duration>),
    work: impl Fn(usize, &Processor) -> std::result::Result<f64, Failure> + Sync,
) -> Result<Outcomes> {
    match world.is_solo() {
        true => Ok(run_on_processors(platform, shares, halt, patience, work)),
        false => run_on_rank(platform, shares, halt, world, &work),
    }
}

/// This rank's part of [`run_programs`].
fn run_on_rank(
    platform: &Platform,
    shares: &[u64],
    halt: &StopSignal<'_>,
    world: &World,
    work: &(impl Fn(usize, &Processor) -> std::result::Result<f64, Failure> + Sync),
) -> Result<Outcomes> {
    let here = world.processors_here(platform.len()).start;
    let processor = &platform.processors[here];
    world.barrier()?;
    let mine = threads::scope(|scope| {
        let (give, ended) = channel();
        let run = move || {
            clock::pin(processor.cores_here());
            // Where the world is interrupted, nobody receives it.
            let _ = give.send(work(here, processor));
        };
        let (mut running, mut mine) = (shares[here] > 0, None);
        if running && let Err(refused) = threads::start(scope, run) {
            halt.fail();
            (running, mine) = (false, Some(Err(refused.into())));
        }
        loop {
            let states = [u64::from(running), u64::from(halt.check().is_err())];
            let states = world.all_reduce(&states, |a, b| a + b).inspect_err(|_| halt.fail())?;
            if states[0] == 0 {
                return Ok::<_, Error>(mine);
            }
            if states[1] > 0 {
                halt.fail();
            }
            match running.then(|| ended.recv_timeout(SLICE)) {
                None => std::thread::sleep(SLICE),
                Some(Ok(outcome)) => (running, mine) = (false, Some(outcome)),
                Some(Err(_)) => {}
            }
        }
    })?;
    let all = world.all_gather_values(&RankOutcome::of(mine))?;
    Ok(all.into_iter().map(RankOutcome::into_outcome).collect())
}

/// What a rank tells the others about its program.
#[derive(Serialize, Deserialize)]
pub(super) enum RankOutcome {
    Idle,
    Seconds(f64),
    Interrupted,
    Failed { text: String, code: u8, reason: Option<String> },
}

impl RankOutcome {
    pub(crate) fn of(outcome: Option<std::result::Result<f64, Failure>>) -> Self {
        match outcome {
            None => Self::Idle,
            Some(Ok(seconds)) => Self::Seconds(seconds),
            Some(Err(Failure { error: Error::Interrupted, .. })) => Self::Interrupted,
            Some(Err(Failure { error, reason })) => {
                Self::Failed { text: error.to_string(), code: error.exit_code(), reason }
            }
        }
    }

    pub(crate) fn into_outcome(self) -> Option<std::result::Result<f64, Failure>> {
        match self {
            Self::Idle => None,
            Self::Seconds(seconds) => Some(Ok(seconds)),
            Self::Interrupted => Some(Err(Error::Interrupted.into())),
            Self::Failed { text, code, reason } => {
                Some(Err(Failure { error: Error::Agreed { text, code }, reason }))
            }
        }
    }
}

/// The failure of a processor's program.
pub(super) struct RankFailure {
    pub rank: usize,
    pub failure: Failure,
}

/// All seconds by rank, 0 for processors without a share; or the failure that counts: that of a program before others,
/// and an interruption last, since a failure interrupts the other programs.
pub(super) fn all_seconds(outcomes: Outcomes) -> std::result::Result<Vec<f64>, RankFailure> {
    let weight = |failure: &Failure| match (&failure.reason, &failure.error) {
        (Some(_), _) => 2,
        (None, Error::Interrupted) => 0,
        (None, _) => 1,
    };
    let mut seconds = vec![0.0; outcomes.len()];
    let mut first: Option<RankFailure> = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            None => {}
            Some(Ok(time)) => seconds[rank] = time,
            Some(Err(failure)) => {
                let weighs_more = |first: &RankFailure| weight(&first.failure) < weight(&failure);
                if first.as_ref().is_none_or(weighs_more) {
                    first = Some(RankFailure { rank, failure });
                }
            }
        }
    }
    first.map_or(Ok(seconds), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    fn failed(reason: Option<&str>) -> Failure {
        Failure { error: Error::infeasible("no disk", "buy one"), reason: reason.map(Into::into) }
    }

    #[test]
    fn the_failure_counts_and_not_its_echo() {
        let interrupted = || Some(Err(Error::Interrupted.into()));
        let outcomes =
            vec![interrupted(), Some(Err(failed(None))), Some(Ok(1.0)), Some(Err(failed(Some("why"))))];
        let RankFailure { rank, failure } = all_seconds(outcomes).err().unwrap();
        assert_eq!((rank, failure.reason.as_deref()), (3, Some("why")));
        assert!(failure.error.to_string().contains("no disk"));
        let RankFailure { failure, .. } = all_seconds(vec![None, interrupted()]).err().unwrap();
        assert!(matches!(failure.error, Error::Interrupted));
        assert_eq!(all_seconds(vec![None, Some(Ok(2.0))]).ok().unwrap(), [0.0, 2.0]);
    }

    #[test]
    fn ranks_know_of_each_other() {
        let platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
        let all = World::threads(3, &Monitor::new(), |world| {
            let monitor = Monitor::new();
            let outcomes = run_programs(
                &platform,
                &[4, 0, 2],
                &StopSignal::new(&monitor),
                (world, None),
                |rank, processor| {
                    assert_eq!(processor.name, format!("p{rank}"));
                    Ok(rank as f64 + 1.0)
                },
            )?;
            Ok(all_seconds(outcomes).ok())
        });
        assert_eq!(all.unwrap(), vec![Some(vec![1.0, 0.0, 3.0]); 3]);
    }

    /// The program of one rank fails: the others are stopped, and all know why.
    #[test]
    fn a_rank_stops_the_others() {
        let platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
        let all = World::threads(3, &Monitor::new(), |world| {
            let monitor = Monitor::new();
            let halt = StopSignal::new(&monitor);
            let outcomes = run_programs(&platform, &[1, 1, 1], &halt, (world, None), |rank, _| {
                if rank == 1 {
                    halt.fail();
                    return Err(failed(Some("full")));
                }
                while halt.check().is_ok() {
                    std::thread::yield_now();
                }
                Err(Error::Interrupted.into())
            })?;
            let RankFailure { rank, failure } = all_seconds(outcomes).err().unwrap();
            Ok((rank, failure.error.to_string(), failure.reason))
        });
        let one = (1, "no disk (buy one)".to_owned(), Some("full".to_owned()));
        assert_eq!(all.unwrap(), vec![one; 3]);
    }
}

//! Work on several processors of a platform that all start at the same moment.

use crate::error::{Error, Result};
use crate::measure::remote;
use crate::platform::{Platform, Processor};
use crate::run::mailboxes::{StartBarrier, StopOnPanic, StopSignal};
use crate::run::{clock, first_failure};
use crate::threads::{self, Started};
use std::time::Duration;

/// Does `work` on each processor with a share, all at once, each on a thread pinned to its cores. Returns the
/// outcomes by rank; `None` for a processor without a share. `work` stops the others by `halt`, if it wants.
///
/// If a thread cannot be started, or the launcher of a processor fails, nothing is done: its outcome is the error,
/// those of the others are interruptions.
pub(super) fn run_on_processors<R: Send, E: From<Error> + Send>(
    platform: &Platform,
    shares: &[u64],
    halt: &StopSignal<'_>,
    patience: Option<Duration>,
    work: impl Fn(usize, &Processor) -> std::result::Result<R, E> + Sync,
) -> Vec<Option<std::result::Result<R, E>>> {
    let working = shares.iter().filter(|share| **share > 0).count();
    let (barrier, work) = (&StartBarrier::new(working), &work);
    threads::scope(|scope| {
        let start = |(rank, (processor, share)): (usize, (_, &u64))| {
            let run = move || {
                let _ends_all = StopOnPanic(halt);
                let processor: &Processor = processor;
                clock::pin(processor.cores_here());
                remote::prepare(processor, patience, halt).inspect_err(|_| halt.fail())?;
                barrier.pass(halt)?;
                work(rank, processor)
            };
            (*share > 0).then(|| threads::start(scope, run).inspect_err(|_| halt.fail()))
        };
        let started: Vec<_> = platform.processors.iter().zip(shares).enumerate().map(start).collect();
        let join = |thread: Result<Started<'_, _>>| thread?.join().expect("running a program does not panic");
        started.into_iter().map(|thread| thread.map(join)).collect()
    })
}

/// All values, `nothing` for processors without a share; or the error of the run that failed: a failure
/// interrupts the others.
pub(super) fn all_values<R: Copy>(outcomes: Vec<Option<Result<R>>>, nothing: R) -> Result<Vec<R>> {
    first_failure(outcomes.into_iter().map(|outcome| outcome.unwrap_or(Ok(nothing))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    #[test]
    fn processors_without_a_share_do_nothing() {
        let platform = Platform::from_speeds(&[1.0, 1.0, 1.0]).unwrap();
        let monitor = Monitor::new();
        let halt = StopSignal::new(&monitor);
        let outcomes = run_on_processors(&platform, &[4, 0, 2], &halt, None, |rank, processor| {
            assert_eq!(processor.name, format!("p{rank}"));
            Ok::<_, Error>(rank as f64 + 1.0)
        });
        assert!(outcomes[1].is_none());
        assert_eq!(all_values(outcomes, 0.0).unwrap(), [1.0, 0.0, 3.0]);
        monitor.stop();
        let outcomes = run_on_processors(&platform, &[4, 0, 2], &halt, None, |_, _| Ok::<_, Error>(1.0));
        assert!(matches!(all_values(outcomes, 0.0), Err(Error::Interrupted)));
    }

    #[test]
    fn the_failure_counts_and_not_its_echo() {
        let failed = || Err(Error::infeasible("no disk", "buy one"));
        let outcomes = vec![Some(Err(Error::Interrupted)), Some(failed()), Some(Ok(1.0))];
        assert!(all_values(outcomes, 0.0).unwrap_err().to_string().contains("no disk"));
    }
}

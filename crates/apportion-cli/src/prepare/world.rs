//! From processes that mpirun started to a world: joining, leaving, and which rank reports what.

use crate::args::EngineName;
use crate::console::{Console, exit_code, in_order, leave, monitor, say, say_of};
use apportion::error::{Error, Result};
use apportion::job::{Context, InputFiles, compare_inputs};
use apportion::run::{MpiLaunch, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Joins the world, checks that all ranks begin alike, does this process's part of the work, and leaves.
/// Rank 0 reports an error that all ranks
/// know. A rank reports an error that only it meets, and then ends all processes. Only rank 0's console
/// prints.
fn in_world(
    patience: Option<Duration>,
    inputs: &InputFiles<'_>,
    console: &Console,
    work: impl FnOnce(&World, &Console) -> Result<()>,
) -> Result<()> {
    let world = match World::mpi_within(monitor(), patience) {
        Ok(world) => world,
        Err(error) => {
            // Not all meet it: one of them is silent.
            if let (Error::WorkerLost { .. }, Some(MpiLaunch { rank, .. })) = (&error, MpiLaunch::detect())
                && rank > 0
            {
                say_of(rank, &error);
                leave(exit_code(&error))
            }
            return Err(error);
        }
    };
    let rank = world.rank();
    if world.size() > 1 {
        crate::allocator::name_rank(world.name_of(rank));
    }
    let console = &if rank == 0 { *console } else { Console::new(false, true, 0) };
    console.detail(format!("{} processes, {}", world.size(), world.library()));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let context = Context { world: &world, monitor: monitor(), observer: console };
        compare_inputs(words.collect(), Vec::new(), inputs, context)?;
        work(&world, console)
    }));
    let outcome = outcome.unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        let why = why.unwrap_or_else(|| "it panicked".into());
        Err(Error::WorkerLost { processor: format!("of {}", world.name_of(rank)), why })
    });
    match outcome {
        Ok(()) => world.finalize(),
        Err(error @ Error::Agreed { .. }) => {
            if rank == 0 {
                say(&error);
            }
            // No rank leaves before the error is printed: mpirun ends all processes once one has failed.
            let _ = world.barrier();
            world.finalize();
            leave(exit_code(&error));
        }
        Err(error) if world.size() == 1 => {
            world.finalize();
            return Err(error);
        }
        Err(error) => {
            if matches!(error, Error::Interrupted) {
                // All ranks are told of Ctrl-C, and the first to end ends all: the others print nothing.
                // A rank that is stopped alone has the time to say so.
                if rank > 0 {
                    std::thread::sleep(crate::console::LATER_RANKS);
                }
                if monitor().is_stopped() {
                    say_of(rank, &error);
                }
            } else {
                say_of(rank, &error);
            }
            world.abort(exit_code(&error));
        }
    }
    Ok(())
}

/// Does the work in a world: as a single process, or as one of the processes that a launcher started, which
/// compare what they read first.
///
/// # Errors
/// A longest wait for messages where there are none: exit code 2.
pub fn on_engine(
    (engine, patience): (EngineName, Option<f64>),
    inputs: &InputFiles<'_>,
    console: &Console,
    work: impl FnOnce(&World, &Console) -> Result<()>,
) -> Result<()> {
    match engine {
        EngineName::Threads if patience.is_some() => Err(Error::input(
            "--stall-timeout",
            "the threads of one process do not wait for other processes",
            "leave it out, or add --engine mpi",
        )),
        EngineName::Threads => work(&World::solo(monitor()), console),
        EngineName::Mpi => {
            let part = || in_world(patience.map(Duration::from_secs_f64), inputs, console, work);
            // A rank that ended at once would leave the others waiting.
            if MpiLaunch::detect().is_some() { in_order(part) } else { part() }
        }
    }
}

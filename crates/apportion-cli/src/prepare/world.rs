//! From processes that mpirun started to a world: joining, leaving, and which rank reports what.

use crate::args::EngineName;
use crate::console::{Console, exit_code, in_order, monitor, say, say_of};
use crate::prepare::agreement::{Inputs, agree};
use apportion::error::{Error, Result};
use apportion::platform::{Network, Platform, Processor};
use apportion::run::{MpiLaunch, World, absent_cores};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Joins the world, checks that all ranks begin alike, does this process's part of the work, and leaves.
/// Rank 0 reports an error that all ranks
/// know. A rank reports an error that only it meets, and then ends all processes. Only rank 0's console
/// prints.
fn in_world(
    patience: Option<Duration>,
    inputs: &Inputs<'_>,
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
                std::process::exit(exit_code(&error).into())
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
        agree(inputs, &world, console)?;
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
            std::process::exit(exit_code(&error).into());
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

/// The world's processes as a platform, each host a cluster; `None` for a single process, whose processors
/// are its cores.
pub fn processes(world: &World) -> Result<Option<Platform>> {
    if world.is_solo() {
        return Ok(None);
    }
    let hosts = world.hosts()?;
    let named = |(rank, host): (usize, &usize)| Processor {
        cluster: hosts.names[*host].clone(),
        ..Processor::named(format!("rank{rank}"))
    };
    let processors = hosts.of_rank.iter().enumerate().map(named).collect();
    Ok(Some(Platform { name: "mpi".into(), processors, network: Network::free() }))
}

/// Does the work in a world: as a single process, or as one of the processes that a launcher started, which
/// compare what they read first.
///
/// # Errors
/// A longest wait for messages where there are none: exit code 2.
pub fn on_engine(
    (engine, patience): (EngineName, Option<f64>),
    inputs: &Inputs<'_>,
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

/// Says which processors of this process run unpinned since their cores are not there.
pub fn note_absent_cores(platform: &Platform, world: &World, console: &Console) {
    if !world.is_solo() {
        return;
    }
    for processor in &platform.processors {
        let absent = absent_cores(&processor.cores);
        if !absent.is_empty() {
            let (name, cores) = (&processor.name, &processor.cores);
            let unpinned = if absent.len() == cores.len() { "; it runs unpinned" } else { "" };
            console.note(format!("{name}: cores = {cores:?}: {absent:?} cannot be used here{unpinned}"));
        }
    }
}

/// Rejects a world whose size differs from the number of processors.
pub fn fits(world: &World, processors: usize) -> Result<()> {
    if world.size() == processors {
        return Ok(());
    }
    let processes = if world.size() == 1 { "process" } else { "processes" };
    let are = if processors == 1 { "is 1 processor" } else { &format!("are {processors} processors") };
    Err(Error::input(
        "--engine mpi",
        format!("the world has {} {processes}, but there {are}", world.size()),
        format!("start one process for each: mpirun -n {processors} apportion …"),
    ))
}

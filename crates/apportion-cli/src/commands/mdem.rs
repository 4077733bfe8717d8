//! `apportion mdem`: simulate a workcell.

use crate::args::MdemArgs;
use crate::console::{Console, monitor};
use crate::output::mdem::{EventFiles, Selection};
use crate::output::provenance::add_command;
use crate::output::results::{Texts, commit, details};
use crate::prepare::mdem::Simulation;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{Context, InputFiles, Outcome, decide};
use apportion::kernels::Kernel;
use apportion::plan::Shape;
use apportion::run::{Session, World};
use apportion_events::{End, EventMatrices, EventRun, LocalLogic, SharedLogic, seconds, simulate_workcell};
use serde_json::Value;

pub fn run(args: &MdemArgs, console: &Console) -> Result<()> {
    if args.on_processors() {
        let files = [vec![args.workcell.as_path()], args.running.files()].concat();
        let inputs = InputFiles { files, ..InputFiles::default() };
        return on_engine(args.running.engine.patient(), &inputs, console, |world, console| {
            on_world(args, world, console)
        });
    }
    let simulation = args.simulation()?;
    let files = EventFiles::open(args)?;
    let matrices = EventMatrices::of(&simulation.workcell);
    let mut logic = LocalLogic::new(&matrices);
    monitor().begin(simulation.variants.len() as u64 * simulation.options.replications);
    let runs = console.watch("simulating", monitor(), || {
        simulate_workcell(&simulation.workcell, &simulation.options, &mut logic, monitor())
    })?;
    tell(args, &simulation, &matrices, &runs, files, console, || Ok(None))
}

/// The simulation with the logic step as a product on the processors of a world. Every process follows all
/// events; rank 0 reports them.
fn on_world(args: &MdemArgs, world: &World, console: &Console) -> Result<()> {
    let running = &args.running;
    let simulation = world.all_ok(args.simulation())?;
    // Tried before the work; under MPI they are opened again when there is something to write.
    let files = world.on_root(|| EventFiles::open(args))?;
    let texts = world.all_ok(Texts::open(running, world))?;
    let files = if world.is_solo() { files } else { None };
    let workcell = &simulation.workcell;
    let columns = simulation.variants.len() as u64 * simulation.options.replications;
    let shape = Shape::new(workcell.rules.len() as u64, workcell.places() as u64, columns, "logic step");
    let shape = world.all_ok(shape)?;
    let context = Context { world, monitor: monitor(), observer: console };
    let sources = world.all_ok(running.sources.load(running.plan.as_deref()))?;
    let options = world.all_ok(running.options())?;
    let decision = decide(Kernel::or_and(), shape, &sources, &options, Some("mdem"), context)?;
    let job = decision.job(Kernel::or_and(), running.seed);
    let platform = &decision.machine.platform;
    let session = Session::new(world, platform, monitor(), job.work() * steps(&simulation));
    let session = session.copying(options.copies());
    let matrices = EventMatrices::of(workcell);
    let mut logic = SharedLogic::new(&matrices, &job, &session)?;
    let runs = console.watch("simulating", monitor(), || {
        simulate_workcell(workcell, &simulation.options, &mut logic, monitor())
    })?;
    let outcome = Outcome::new(logic.report().clone(), decision.clone());
    let finish = || {
        let files = files.map_or_else(|| EventFiles::open(args), Ok)?;
        tell(args, &simulation, &matrices, &runs, files, console, || {
            let run = commit(&outcome, Vec::new(), texts, running, world, console)?;
            Ok(Some((run.to_value(), details(&outcome, &run))))
        })
    };
    world.on_root(finish).map(drop)
}

/// An estimate of the number of steps, for the progress bar.
fn steps(simulation: &Simulation) -> f64 {
    let parts: u64 = simulation
        .workcell
        .parts
        .iter()
        .map(|part| match &part.arrivals {
            apportion_events::Arrivals::AtStart(count) => *count,
            apportion_events::Arrivals::Every { count, .. } => count.unwrap_or(100),
            apportion_events::Arrivals::At(times) => times.len() as u64,
        })
        .sum();
    (parts.max(10) * simulation.workcell.rules.len() as u64) as f64
}

/// Writes the files and prints the result; a deadlock of the variant that is shown is an error, unless it is
/// allowed. `product` writes and returns the report on the processors, if there are any.
fn tell(
    args: &MdemArgs,
    simulation: &Simulation,
    matrices: &EventMatrices,
    runs: &[EventRun],
    files: EventFiles,
    console: &Console,
    product: impl FnOnce() -> Result<Option<(Value, String)>>,
) -> Result<()> {
    let mine = runs.iter().filter(|run| run.variant == simulation.shown);
    for run in mine {
        if let (End::Deadlocked(deadlock), false) = (&run.end, args.allow_deadlock) {
            let which = match simulation.options.replications {
                1 => String::new(),
                _ => format!(" in replication {}", run.replication),
            };
            // Nothing is done and nothing is held: only a job that is done at the start can begin.
            let empty = deadlock.circle.iter().all(|wait| wait.jobs.is_empty() && wait.held_by.is_empty());
            let what = match empty {
                true => format!("deadlock: a circuit on which no job is ever done{which}: {deadlock}"),
                false => format!("deadlock at {} s{which}: {deadlock}", seconds(run.makespan)),
            };
            let remedy = match empty {
                true => {
                    "let a job on the circuit be done at the start (`done = 1`); add --allow-deadlock to see the run"
                }
                false => {
                    "change the rules, the capacities or the dispatching; add --allow-deadlock to see the run"
                }
            };
            return Err(Error::infeasible(what, remedy));
        }
    }
    let shown = Selection::new(simulation, runs)?;
    if let (End::Starved(why), false) = (&shown.run.end, args.allow_deadlock) {
        console.note(format!("apportion: warning: work remains: {why}"));
    }
    files.keep(&shown, simulation, matrices)?;
    let product = product()?;
    console.result(
        || {
            let mut value = shown.to_value();
            add_command(&mut value);
            if let Some((run, _)) = &product {
                value["run"] = run.clone();
            }
            value
        },
        || {
            let more = product.as_ref().map_or_else(String::new, |(_, text)| format!("\n{text}"));
            shown.to_text() + &more
        },
    );
    Ok(())
}

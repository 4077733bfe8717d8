//! `apportion mdem`: simulate a workcell.

use crate::args::numbers::{self, within};
use crate::args::{EngineName, RunningArgs};
use crate::console::{Console, monitor};
use crate::output::mdem::{EventFiles, Selection};
use crate::output::provenance::add_command;
use crate::output::results::{Texts, commit, details};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{Context, InputFiles, Outcome, decide};
use apportion::kernels::{Kernel, Semiring};
use apportion::plan::Shape;
use apportion::run::{Session, World};
use apportion_events::{
    End, EventMatrices, EventOptions, EventRun, LocalLogic, SharedLogic, Workcell, read_workcell, seconds,
    simulate_workcell,
};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 for a deadlock, whose circular wait is printed; with --allow-deadlock it is a \
    result like others.\nThe logic step (rules x places x scenarios) runs on one core; with --speeds, --models, \
    --platform, --plan or under MPI it is a product on these processors.\n\
    Example: apportion mdem examples/mdem/tacconi-lewis.toml --gantt cell.svg -o events.csv"
)]
pub struct MdemArgs {
    /// The workcell: jobs, resources, parts, rules (docs/reference/workcell-file.md).
    #[arg(value_name = "WORKCELL")]
    pub workcell: PathBuf,
    /// End of the simulated time, such as 3600, "90 s" or "8 h" [default: until nothing more happens].
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = numbers::seconds,
        help_heading = "Simulation")]
    pub until: Option<f64>,
    /// Number of rule firings after which a simulation ends.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = within(1..=5_000_000),
        help_heading = "Simulation")]
    pub firings: u64,
    /// Simulations of the workcell and of each scenario, with random durations of their own (by --seed).
    #[arg(long, value_name = "N", default_value = "1", value_parser = within(1..=1_000_000),
        help_heading = "Simulation")]
    pub replications: u64,
    /// The scenario whose events, Gantt chart and max-plus system are printed and written [default: the
    /// workcell as written].
    #[arg(long, value_name = "NAME", help_heading = "Simulation")]
    pub scenario: Option<String>,
    /// Treat a deadlock as a result: exit code 0, and the files are written.
    #[arg(long, help_heading = "Simulation")]
    pub allow_deadlock: bool,
    /// Output file for the event list (.csv or .json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Output file for the Gantt chart (.svg).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub gantt: Option<PathBuf>,
    /// Directory for the matrices F_v, F_r, F_u, F_D, S_v, S_r, S_y (.npy of bool); it is created.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub matrices: Option<PathBuf>,
    /// Output file for the matrix A of the max-plus system x(k) = A x(k - 1), in seconds (.npy), where the
    /// workcell is a timed event graph.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub max_plus: Option<PathBuf>,
    #[command(flatten)]
    pub running: RunningArgs,
}

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

/// The most simulated seconds: about 285 years.
const LONGEST: f64 = 9e9;

/// What is simulated.
pub struct Simulation {
    /// The workcell and its scenarios.
    pub workcell: Workcell,
    /// The workcell as written, then each scenario.
    pub variants: Vec<Workcell>,
    /// The number of the variant that is shown.
    pub shown: usize,
    pub options: EventOptions,
}

impl MdemArgs {
    /// Reads the workcell and checks the flags.
    ///
    /// # Errors
    /// A bad file, an unknown scenario, a flag that would have no effect.
    pub fn simulation(&self) -> Result<Simulation> {
        self.running.blas.choice().check_unused(Semiring::OrAnd)?;
        self.refuse_unused()?;
        let workcell = read_workcell(&self.workcell)?;
        let shown = match &self.scenario {
            None => 0,
            Some(name) => 1 + self.scenario_of(&workcell, name)?,
        };
        if let Some(until) = self.until.filter(|until| *until > LONGEST) {
            return Err(Error::input("--until", format!("{until} s is more than {LONGEST} s"), "give less"));
        }
        let options = EventOptions {
            until: self.until.map(|seconds| (seconds * 1e9).round() as u64),
            firings: self.firings,
            replications: self.replications,
            seed: self.running.seed,
        };
        Ok(Simulation { variants: workcell.variants(), workcell, shown, options })
    }

    fn scenario_of(&self, workcell: &Workcell, name: &str) -> Result<usize> {
        workcell.scenarios.iter().position(|scenario| scenario.name == name).ok_or_else(|| {
            let names: Vec<&str> = workcell.scenarios.iter().map(|s| s.name.as_str()).collect();
            let remedy = match names.len() {
                0 => "the workcell has no [[scenario]]".to_owned(),
                _ => format!("choose one of {}", names.join(", ")),
            };
            Error::input("--scenario", format!("there is no scenario \"{name}\""), remedy)
        })
    }

    /// True if the logic step runs on given processors.
    pub fn on_processors(&self) -> bool {
        let running = &self.running;
        let sources = &running.sources;
        let given = sources.speeds.is_some() || sources.models.is_some() || sources.platform.is_some();
        given || running.plan.is_some() || running.engine.name() == EngineName::Mpi
    }

    /// Rejects flags of a product on processors where there is none.
    fn refuse_unused(&self) -> Result<()> {
        if self.running.explain.is_some() {
            let what = "explains one product, and a simulation runs many";
            return Err(Error::input("--explain", what, "remove it"));
        }
        if self.on_processors() {
            return Ok(());
        }
        let running = &self.running;
        let mut given = vec![
            ("--method", running.method != "auto"),
            ("--remeasure", running.remeasure),
            ("--copy", running.copy),
            ("--report", running.report.is_some()),
            ("--trace", running.trace.is_some()),
            ("--svg", running.svg.is_some()),
        ];
        given.extend(running.flow.flags());
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Error::input(
                *flag,
                "has no effect on one core",
                "add processors (--speeds 3:1, --platform, --plan), or remove it; the Gantt chart is --gantt",
            )),
        }
    }
}

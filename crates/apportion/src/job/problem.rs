//! A computation of any kind as a job: what is new about it is a [`Problem`], and a [`Job`] does the rest.

use super::{
    Context, InputFiles, Sources, SpeedSource, compare_inputs, measure_unknown_network, note_absent_cores,
    warn_of_another_kernel,
};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::measure::{
    Computation, ComputationTrial, Effort, QuickSpeeds, Sizes, Subject, Workload, measure_quickly,
};
use crate::model::{Machine, Model, WorkUnit, platform_models};
use crate::plan::Forecast;
use crate::platform::{Platform, Processor};
use crate::run::{Monitor, MpiLaunch, RunOutput, Session, World, run, trace_of_all};
use crate::schedule::{Application, Executable, Step, Work};
use crate::simulate::{CostModel, forecast};
use crate::trace::Trace;
use crate::units::show_seconds;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What is new about a computation. A [`Job`] measures it where speeds are unknown, forecasts its candidates, lets rank 0
/// decide for all, runs the best on threads or under MPI, and verifies the result.
pub trait Problem: Sync {
    /// A division of the work, with whatever else is decided about it.
    type Decision: Serialize + DeserializeOwned + Clone;
    /// What this process reads for a decision, before its steps; the default stands for data that are not there yet.
    type Data: Default;
    /// The steps of a decision, with the data of each processor.
    type Executable<'a>: Executable
    where
        Self: 'a;
    /// What a process gets in the end.
    type Output;

    /// The name of the computation, by which its speeds are known.
    fn name(&self) -> String;

    /// The processors as it uses them. Default: devices are refused.
    ///
    /// # Errors
    /// Processors that cannot compute it.
    fn processors(&self, platform: Platform) -> Result<Platform> {
        platform.refuse_devices(&format!("{}, which computes on cores", self.name())).map(|()| platform)
    }

    /// The files that it reads: under MPI they must be the same for all ranks. Default: none.
    fn inputs(&self) -> InputFiles<'_> {
        InputFiles::default()
    }

    /// Decisions for a single processor with a small, a middle and a large part of the work. The first work of each is
    /// timed where speeds are unknown; its [amount](Work::amount) is the size. Default: none, so that speeds must be
    /// given.
    ///
    /// # Errors
    /// The work cannot be divided so.
    fn samples(&self) -> Result<Vec<Self::Decision>> {
        Ok(Vec::new())
    }

    /// Measures the speeds of processors, as a function of their share. Default: by [`samples`](Self::samples).
    ///
    /// # Errors
    /// There are no samples; those of a measurement; known to all ranks.
    fn measure(&self, platform: &Platform, context: Context<'_>) -> Result<QuickSpeeds>
    where
        Self: Sized,
    {
        measure_samples(self, platform, context)
    }

    /// Decisions for the processors of a machine, of which the forecast chooses.
    ///
    /// # Errors
    /// The work cannot be divided among them.
    fn candidates(&self, machine: &Machine) -> Result<Vec<Self::Decision>>;

    /// The times of a decision on a machine. Default: its steps are simulated.
    ///
    /// # Errors
    /// Those of [`executable`](Self::executable) and of the simulation.
    fn forecast(&self, decision: &Self::Decision, machine: &Machine) -> Result<Forecast> {
        let data = Self::Data::default();
        let executable = self.executable(decision, &data)?;
        let rate = |(rank, model): (usize, &Model)| model.speed(executable.share(Rank(rank)).max(1.0));
        let rates: Vec<f64> = machine.models.iter().enumerate().map(rate).collect();
        let element = size_of::<<Self::Executable<'_> as Executable>::Element>() as u64;
        forecast(&executable, CostModel { rates: &rates, network: &machine.platform.network, element })
    }

    /// The seconds by which candidates are ranked. Default: those of the forecast.
    fn cost(&self, decision: &Self::Decision, forecast: &Forecast) -> f64 {
        let _ = decision;
        forecast.seconds
    }

    /// Reads what this process needs for a decision. Default: nothing.
    ///
    /// # Errors
    /// A file that cannot be read, or does not fit.
    fn read(&self, decision: &Self::Decision, world: &World) -> Result<Self::Data> {
        let _ = (decision, world);
        Ok(Self::Data::default())
    }

    /// The steps of a decision.
    ///
    /// # Errors
    /// A decision that is not of this problem.
    fn executable<'a>(
        &'a self,
        decision: &'a Self::Decision,
        data: &'a Self::Data,
    ) -> Result<Self::Executable<'a>>;

    /// Checks the data of this process's processors after the run, by rank, and makes the output of them.
    ///
    /// # Errors
    /// [`Error::WrongResult`](crate::Error::WrongResult); a lost rank.
    fn verify<'a, 'e>(
        &'a self,
        executable: &'e Self::Executable<'a>,
        held: Vec<<Self::Executable<'a> as Executable>::Local<'e>>,
        world: &World,
    ) -> Result<Self::Output>;
}

/// A decision with its forecast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Candidate<D> {
    /// The decision.
    pub decision: D,
    /// Its times; `None` where only the ratios of speeds are known.
    pub forecast: Option<Forecast>,
}

/// The processors of a job with their speeds.
#[derive(Debug)]
pub struct JobMachine {
    /// The processors with their speeds.
    pub machine: Machine,
    /// The speeds, if they were measured.
    pub measured: Option<QuickSpeeds>,
}

/// A problem with the processors that are to solve it.
#[derive(Debug)]
pub struct Job<'a, P> {
    problem: &'a P,
    sources: Cow<'a, Sources>,
    remeasure: bool,
}

impl<'a, P: Problem> Job<'a, P> {
    /// A job for the cores of this machine, or for the ranks of a world.
    pub fn new(problem: &'a P) -> Self {
        Self { problem, sources: Cow::default(), remeasure: false }
    }

    /// The same for these processors.
    #[must_use]
    pub fn with_sources(self, sources: &'a Sources) -> Self {
        Self { sources: Cow::Borrowed(sources), ..self }
    }

    /// The same, in which what earlier runs have measured is measured again.
    #[must_use]
    pub fn remeasuring(self, remeasure: bool) -> Self {
        Self { remeasure, ..self }
    }

    /// Finds processors and speeds: those given, or else measured. Every rank must call it.
    ///
    /// # Errors
    /// Sources that do not fit; those of the measurement; known to all ranks.
    pub fn machine(&self, context: Context<'_>) -> Result<JobMachine> {
        let (world, problem) = (context.world, self.problem);
        let platform = self.sources.processors_of_world(world)?;
        let platform = world.all_ok(problem.processors(platform))?;
        let platform = measure_unknown_network(platform, self.remeasure, context)?;
        note_absent_cores(&platform, context)?;
        let (models, measured) = match &self.sources.models {
            Some(models) => {
                warn_of_another_kernel(models, &problem.name(), context);
                (models.in_order(&platform.names()), None)
            }
            // A unit of work has no flop: speeds in units/s give times, ratios and flop/s only shares.
            None if platform.processors.iter().all(|p| p.emulated.is_some() || p.speed.is_some()) => {
                (platform_models(&platform, WorkUnit::Unit), None)
            }
            None => {
                let measured = problem.measure(&platform, context)?;
                (measured.now().and_then(|models| models.in_order(&platform.names())), Some(measured))
            }
        };
        let machine = Machine::new(platform, world.all_ok(models)?, 1);
        Ok(JobMachine { machine, measured })
    }

    /// The candidates for a machine with their forecasts, the best first; rank 0 decides, and the other ranks get only the
    /// best. Every rank must call it.
    ///
    /// # Errors
    /// Those of the problem; no candidate; known to all ranks.
    pub fn rank(&self, machine: &Machine, world: &World) -> Result<Vec<Candidate<P::Decision>>> {
        let rank = || {
            let mut ranked = Vec::new();
            for decision in self.problem.candidates(machine)? {
                let forecast = self.problem.forecast(&decision, machine)?;
                ranked.push((self.problem.cost(&decision, &forecast), decision, forecast));
            }
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let candidate = |(_, decision, forecast)| {
                // Ratios of speeds tell which is the best, but not its seconds.
                Candidate { decision, forecast: Some(forecast).filter(|_| !machine.only_ratios()) }
            };
            let ranked: Vec<_> = ranked.into_iter().map(candidate).collect();
            let none = || Error::infeasible("no division serves these processors", "use fewer processors");
            if ranked.is_empty() { Err(none()) } else { Ok(ranked) }
        };
        world.best_on_root(rank)
    }

    /// Carries out a decision on this process's data: runs its steps, and verifies. Every rank must call it.
    ///
    /// # Errors
    /// Those of the run and of the verification; known to all ranks.
    pub fn solve(
        &self,
        decision: &P::Decision,
        data: &P::Data,
        session: &Session<'_>,
    ) -> Result<Solved<P::Output>> {
        let world = session.world();
        let executable = world.all_ok(self.problem.executable(decision, data))?;
        let RunOutput { locals, lanes } = run(&executable, session)?;
        let trace = trace_of_all(lanes, world)?;
        let output = world.all_ok(self.problem.verify(&executable, locals, world))?;
        Ok(Solved { output, trace })
    }

    /// Compares what the ranks read, finds processors and speeds, decides, reads, runs and verifies. Every rank must call
    /// it.
    ///
    /// # Errors
    /// Ranks that differ; as [`machine`](Self::machine), [`rank`](Self::rank) and [`solve`](Self::solve).
    pub fn run(&self, context: Context<'_>) -> Result<JobOutcome<P::Output>> {
        let (world, problem) = (context.world, self.problem);
        compare_inputs(Vec::new(), Vec::new(), &problem.inputs(), context)?;
        let JobMachine { machine, measured } = self.machine(context)?;
        let Candidate { decision, forecast } = self.rank(&machine, world)?.remove(0);
        let data = world.all_ok(problem.read(&decision, world))?;
        let executable = world.all_ok(problem.executable(&decision, &data))?;
        let ranks = || (0..machine.processors()).map(Rank);
        let work = ranks().map(|rank| executable.work(rank)).sum();
        let shares = ranks().map(|rank| executable.share(rank)).collect();
        drop(executable);
        let session = Session::new(world, &machine.platform, context.monitor, work);
        let Solved { output, trace } =
            context.watch("computing", || self.solve(&decision, &data, &session))?;
        let source = if measured.is_some() { SpeedSource::Measured } else { SpeedSource::Given };
        let (name, engine, names) = (problem.name(), world.engine(), machine.platform.names());
        let report = JobReport { name, engine, source, names, shares, forecast, trace };
        Ok(JobOutcome { output, report })
    }
}

/// What a decision led to.
#[derive(Debug)]
pub struct Solved<T> {
    /// What the problem made of this process's data.
    pub output: T,
    /// Activities of all processors over time.
    pub trace: Trace,
}

/// A verified result, and how it came about.
#[derive(Debug)]
pub struct JobOutcome<T> {
    /// What the problem made of this process's data.
    pub output: T,
    /// What happened.
    pub report: JobReport,
}

/// What happened in a job. It is displayed as a table.
#[derive(Debug, Clone)]
pub struct JobReport {
    /// The name of the computation.
    pub name: String,
    /// `"threads"` or `"mpi"`.
    pub engine: &'static str,
    /// Where the speeds come from.
    pub source: SpeedSource,
    /// The processors.
    pub names: Vec<String>,
    /// The share of each processor.
    pub shares: Vec<f64>,
    /// The times that were predicted; `None` where only the ratios of speeds are known.
    pub forecast: Option<Forecast>,
    /// Activities of each processor over time.
    pub trace: Trace,
}

impl JobReport {
    /// Prints it, on rank 0.
    pub fn print(&self, world: &World) {
        if world.rank() == 0 {
            print!("{self}");
        }
    }
}

impl fmt::Display for JobReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, engine, source, names, shares, forecast, trace } = self;
        let predicted = |seconds: Option<f64>| seconds.map_or_else(|| "-".into(), show_seconds);
        writeln!(f, "{name}: {} processors on {engine}, speeds {source}", names.len())?;
        let [width, none] = [names.iter().map(String::len).fold(9, usize::max), 12];
        writeln!(
            f,
            "{:width$} {:>none$} {:>none$} {:>none$} {:>none$}",
            "processor", "share", "computing", "forecast", "waiting"
        )?;
        let (computing, waiting) = (trace.compute(), trace.communicate());
        for (rank, name) in names.iter().enumerate() {
            let seconds = predicted(forecast.as_ref().map(|times| times.compute[rank]));
            let [computing, waiting] = [computing[rank], waiting[rank]].map(show_seconds);
            let share = shares[rank];
            writeln!(f, "{name:width$} {share:>none$} {computing:>none$} {seconds:>none$} {waiting:>none$}")?;
        }
        let all = predicted(forecast.as_ref().map(|times| times.seconds));
        writeln!(f, "{} in all, forecast {all}; verified", show_seconds(trace.seconds()))
    }
}

/// Times the samples of a problem on all processors at once.
fn measure_samples<P: Problem>(
    problem: &P,
    platform: &Platform,
    context: Context<'_>,
) -> Result<QuickSpeeds> {
    let world = context.world;
    let (decisions, data) = (world.all_ok(problem.samples())?, P::Data::default());
    if decisions.is_empty() {
        let what = format!("those of {} are unknown, and it has no samples", problem.name());
        return Err(Error::input("`speeds`", what, "give speeds"));
    }
    let executables = decisions.iter().map(|decision| problem.executable(decision, &data)).collect();
    let samples = Samples { name: problem.name(), executables: world.all_ok(executables)? };
    let sizes: Vec<f64> = samples.executables.iter().filter_map(size_of_sample).collect();
    context.watch("measuring", || {
        measure_quickly(&samples, platform, &sizes, Effort::Thorough, world, context.monitor)
    })
}

/// The samples of a problem, as a workload.
struct Samples<E> {
    name: String,
    executables: Vec<E>,
}

/// The first work of a sample's processor.
fn first_work<E: Executable>(executable: &E) -> Option<E::Work> {
    executable.steps(Rank(0)).find_map(|step| if let Step::Compute(work) = step { Some(work) } else { None })
}

fn size_of_sample<E: Executable>(executable: &E) -> Option<f64> {
    first_work(executable).map(|work| work.amount())
}

impl<E: Executable> Workload for Samples<E> {
    type Trial<'a>
        = ComputationTrial<Sample<'a, E>>
    where
        E: 'a;

    fn subject<'a>(&'a self, platform: &'a Platform, _: &Sizes) -> Result<Subject<'a>> {
        Ok(Subject::new(platform, self.name.clone(), "units of work"))
    }

    fn trial<'a>(&'a self, processor: &'a Processor, _: Rank, size: f64) -> Self::Trial<'a> {
        let executable = self.executables.iter().find(|one| size_of_sample(*one) == Some(size));
        let executable = executable.expect("only the sizes of samples are measured");
        let work = first_work(executable).expect("it has a size");
        ComputationTrial::new(Sample { executable, held: executable.hold(Rank(0)), work }, processor)
    }
}

/// The first work of a sample, with the data of its processor.
struct Sample<'a, E: Executable + 'a> {
    executable: &'a E,
    held: E::Local<'a>,
    work: E::Work,
}

impl<E: Executable> Computation for Sample<'_, E> {
    fn compute(&mut self, threads: usize) -> Result<f64> {
        self.executable.compute(&mut self.held, &self.work, threads)
    }
}

/// Does the work of a program in the world that a launcher such as `mpirun` has started, or in this process alone, and
/// leaves it.
///
/// # Errors
/// Those of the work; a rank that meets an error by itself ends all processes.
pub fn in_world(work: impl FnOnce(Context<'_>) -> Result<()>) -> Result<()> {
    let monitor = Monitor::new();
    let world = if MpiLaunch::detect().is_some() { World::mpi(&monitor)? } else { World::solo(&monitor) };
    let outcome = work(Context::silent(&world, &monitor));
    if let Err(error) = &outcome
        && world.size() > 1
        && !matches!(error, Error::Agreed { .. })
    {
        eprintln!("error: {error}");
        world.abort(error.exit_code());
    }
    world.finalize();
    outcome
}

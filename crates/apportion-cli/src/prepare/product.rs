//! What `matmul`, `power` and `closure` share: the flags of a product on unequal processors, and the decisions before it.

pub use crate::args::EngineName;
use crate::args::{BlasArgs, FlowArgs, Sources};
use crate::console::Console;
use crate::output::chosen::given;
use crate::output::results::{Target, tell_and_keep};
use crate::prepare::processors::in_plan_order;
use crate::prepare::processors::{as_run, constant, method_at, quick_models, terms, this_machine};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::Semiring;
use apportion::matrix::{AnyMatrix, Element, Matrix, Scaling, read_matrix_with, write_npy, write_npy_bool};
use apportion::model::{Model, Models, read_models};
use apportion::output::OutputFile;
use apportion::plan::{Plan, Shape, read_plan};
use apportion::platform::{Platform, Processor, Speed};
use apportion::product::MatmulJob;
use apportion::report::RunReport;
use apportion::run::MpiLaunch;
use apportion::schedule::{Application, DataPath, MatmulSchedule};
use apportion::select::{Choice, MemoryPolicy, PlanOptions, plan_matmul};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
pub struct Running {
    #[command(flatten)]
    pub sources: Sources,
    /// Run this plan instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "method"])]
    pub plan: Option<PathBuf>,
    /// Layout method; default: auto, the least forecast time.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: String,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Measure again instead of using the cached speed functions.
    #[arg(long = "remeasure", alias = "fresh")]
    pub fresh: bool,
    /// What runs the schedule: threads, or mpi, under `mpirun -n P` with one process per processor.
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineName,
    #[command(flatten)]
    pub blas: BlasArgs,
    /// Seed of the verification's random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write what happened (run.json).
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write each processor's timeline: a picture (.svg) or a Chrome trace.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Running {
    /// What is done about the processors' memory.
    pub fn fit(&self) -> MemoryPolicy {
        self.flow.fit(match self.engine {
            EngineName::Threads => DataPath::Copied,
            EngineName::Mpi => DataPath::Packed,
        })
    }
}

/// A semiring by its name.
pub fn semiring(text: &str) -> std::result::Result<Semiring, String> {
    text.parse().map_err(|_| "choose plus-times, max-plus, min-plus or or-and".into())
}

/// Reads a matrix for a semiring, over which a sparse file's absent entries are the zero.
pub fn read_over(path: &Path, semiring: Semiring) -> Result<AnyMatrix> {
    read_matrix_with(path, semiring.zero())
}

/// A file's matrix as truth values, and whether a result is to be u8 instead of bool: any element but 0 is true. Numbers
/// are taken from Matrix Market files only, which have no truth values.
pub fn truth(matrix: AnyMatrix, path: &Path) -> Result<(Matrix<u8>, bool)> {
    match matrix {
        AnyMatrix::Bool(matrix) => Ok((matrix, false)),
        AnyMatrix::U8(matrix) => Ok((matrix, true)),
        AnyMatrix::F64(matrix) if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("mtx")) => {
            let truth = matrix.as_slice().iter().map(|x| u8::from(*x != 0.0)).collect();
            Ok((Matrix::new(matrix.rows(), matrix.cols(), truth), false))
        }
        AnyMatrix::F32(_) | AnyMatrix::F64(_) | AnyMatrix::I32(_) | AnyMatrix::I64(_) => Err(Error::input(
            path.display().to_string(),
            format!("holds {}, but or-and takes bool or u8", matrix.name()),
            "save it as numpy.bool_ or numpy.uint8",
        )),
    }
}

/// Refuses truth values where numbers are asked for, and whole numbers where real ones are.
pub fn not_numbers(matrix: &AnyMatrix, semiring: Semiring, path: &Path) -> Error {
    let (takes, remedy) = match matrix {
        AnyMatrix::Bool(_) | AnyMatrix::U8(_) if semiring != Semiring::PlusTimes => {
            ("f32, f64, i32 or i64", "choose --semiring or-and, or save it as numpy.float64")
        }
        AnyMatrix::Bool(_) | AnyMatrix::U8(_) => {
            ("f32 or f64", "choose --semiring or-and, or save it as numpy.float64")
        }
        _ => ("f32 or f64", "save it as numpy.float64"),
    };
    Error::input(
        path.display().to_string(),
        format!("holds {}, but {semiring} takes {takes}", matrix.name()),
        remedy,
    )
}

/// What is done with a plan: one product, or several. The result may be of other elements than the products.
pub type Job<'a, T, R = T> = &'a dyn Fn(&MatmulJob<'_, T>) -> Result<(Matrix<R>, RunReport)>;

/// Decides, does the job, writes its result and its report.
pub fn carry_out<T: Element, R: Element>(
    kernel: Kernel<T>,
    shape: Shape,
    args: &Running,
    target: Target,
    job: Job<'_, T, R>,
    console: &Console,
) -> Result<()> {
    alone()?;
    let prepared = prepare(kernel, shape, args, console)?;
    let what = prepared.multiplication(kernel, args.seed);
    let monitor = crate::console::monitor();
    let (c, mut report) = console.watch("computing", monitor, || job(&what))?;
    let begin = Instant::now();
    if let Some(mut file) = target.file {
        write(&mut file, &c, target.bool)?;
        if monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        file.commit()?;
    }
    report.io_seconds = target.read_seconds + begin.elapsed().as_secs_f64();
    if target.bool {
        report.element = "bool";
    }
    tell_and_keep(&report, &prepared, args, target.about, console)
}

fn write<T: Element>(file: &mut OutputFile, c: &Matrix<T>, bool: bool) -> Result<()> {
    if bool {
        let bytes = c.as_slice().iter().map(|x| u8::from(*x != T::ZERO)).collect();
        return write_npy_bool(file, &Matrix::new(c.rows(), c.cols(), bytes));
    }
    write_npy(file, c)
}

/// Refuses to do the same thing several times over.
fn alone() -> Result<()> {
    match MpiLaunch::detect() {
        Some(MpiLaunch { size, .. }) if size > 1 => Err(Error::input(
            "--engine",
            format!("mpirun started {size} processes, each of which would do the whole work on threads"),
            "add --engine mpi, or run it without mpirun",
        )),
        _ => Ok(()),
    }
}

/// Everything decided.
pub struct Prepared {
    pub platform: Platform,
    pub models: Vec<Model>,
    pub block: u64,
    /// The candidates, the best first.
    pub choices: Vec<Choice>,
    /// True if they were ranked by communication alone.
    pub relative: bool,
}

impl Prepared {
    /// The best candidate's steps.
    pub fn schedule(&self) -> Result<Schedule> {
        let Choice { plan, order, .. } = &self.choices[0];
        Ok(MatmulSchedule::new(plan.layout()?, *order))
    }

    /// The plain product by the best candidate.
    pub fn multiplication<T: Element>(&self, kernel: Kernel<T>, seed: u64) -> MatmulJob<'_, T> {
        MatmulJob {
            kernel,
            plan: &self.choices[0].plan,
            order: self.choices[0].order,
            platform: &self.platform,
            models: &self.models,
            models_block: self.block,
            scaling: Scaling::none(kernel.one()),
            adaptive: None,
            seed,
        }
    }
}

/// What the flags and files say.
#[derive(Clone)]
pub struct Given {
    pub platform: Platform,
    plan: Option<Plan>,
    models: Option<Models>,
}

impl Given {
    /// A word about models that were made for something else.
    pub fn warn_of_another_kernel<T: Element>(&self, kernel: Kernel<T>, console: &Console) {
        if let Some(models) = &self.models {
            warn_of_another_kernel(models, &kernel.name(), console);
        }
    }
}

/// Finds processors, speeds, a plan and an order.
pub fn prepare<T: Element>(
    kernel: Kernel<T>,
    shape: Shape,
    args: &Running,
    console: &Console,
) -> Result<Prepared> {
    let (given, models) = speeds(kernel, args, console)?;
    settled::<T>(given, models, shape, args, console)
}

/// Finds processors and their speeds, with the pivot block that these are of.
pub fn speeds<T: Element>(
    kernel: Kernel<T>,
    args: &Running,
    console: &Console,
) -> Result<(Given, (Vec<Model>, u64))> {
    let given = given_by(args, this_machine)?;
    let given = Given { platform: as_run(given.platform), ..given };
    given.warn_of_another_kernel(kernel, console);
    let models = match known_models(&given)? {
        Some(known) => known,
        None => {
            let models = quick_models(kernel, &given.platform, args.flow.block(), args.fresh, console)?;
            (models.in_order(&given.platform.names())?, args.flow.block())
        }
    };
    Ok((given, models))
}

/// Reads what the flags name; the processors are `here`'s if nothing names them.
pub fn given_by(args: &Running, here: impl FnOnce() -> Platform) -> Result<Given> {
    let plan = args.plan.as_deref().map(read_plan).transpose()?;
    let file = args.sources.models.as_deref().map(read_models).transpose()?;
    let named = args.sources.platform()?;
    let platform = match (named, &plan, &file) {
        (Some(platform), Some(plan), _) => in_plan_order(plan, platform)?,
        (Some(platform), None, _) => platform,
        (None, Some(plan), _) => Platform::from_names(&plan.processors),
        (None, None, Some(models)) => Platform::from_names(&models.names()),
        (None, None, None) => here(),
    };
    let given = Given { platform, plan, models: file };
    if given.platform.processors.iter().any(|p| p.emulated.is_some()) && known_models(&given)?.is_none() {
        let what = "emulated processors stand beside others whose speed would be measured";
        return Err(Error::input("platform", what, "give those emulated or speed too, or --models"));
    }
    Ok(given)
}

/// Speed functions that need no measuring, with their pivot block.
pub fn known_models(given: &Given) -> Result<Option<(Vec<Model>, u64)>> {
    let platform = &given.platform;
    Ok(match &given.models {
        Some(models) => Some((models.in_order(&platform.names())?, models.block().unwrap_or(1))),
        // Speeds in flop/s and given functions need no measuring; ratios alone tell no time.
        None if platform.processors.iter().all(given_speed) => {
            let processors = constant(platform.clone(), 2.0)?;
            Some((processors.models, processors.block))
        }
        None => None,
    })
}

/// True if nothing has to be measured.
fn given_speed(processor: &Processor) -> bool {
    processor.emulated.is_some() || matches!(processor.speed, Some(Speed::Flops(_)))
}

/// Decides what is left open.
pub fn settled<T: Element>(
    Given { platform, plan, .. }: Given,
    (models, block): (Vec<Model>, u64),
    shape: Shape,
    args: &Running,
    console: &Console,
) -> Result<Prepared> {
    let element = size_of::<T>() as u64;
    let (choices, relative) = match plan {
        Some(plan) => (given(plan, shape, args, (&platform, &models, block), element)?, false),
        None => made(shape, args, (&platform, &models, block), element, console)?,
    };
    Ok(Prepared { platform, models, block, choices, relative })
}

/// Speeds of another kernel may still be the best there is (f32 for f64, say), so they are used, but not in silence.
fn warn_of_another_kernel(models: &Models, kernel: &str, console: &Console) {
    if models.kernel != kernel {
        console.note(format!(
            "apportion: warning: the models are of \"{}\", but \"{kernel}\" will run: shares and forecast may be off \
             (measure --kernel {kernel})",
            models.kernel.replace(char::is_control, " ")
        ));
    }
}

/// A plan made on the spot, its rivals after it; true if they were ranked by communication alone.
fn made(
    shape: Shape,
    args: &Running,
    (platform, models, block): (&Platform, &[Model], u64),
    element: u64,
    console: &Console,
) -> Result<(Vec<Choice>, bool)> {
    let wishes = PlanOptions {
        method: method_at("--method", &args.method)?,
        flow: args.flow.flow.0,
        overlap: args.flow.overlaps(),
        look_ahead: args.flow.look_ahead()?,
        terms: terms(platform, None, None)?,
        fit: args.fit(),
        ..PlanOptions::open(args.flow.pivot(shape.k)?, element)
    };
    let ratios = |speeds: &[Speed]| speeds.iter().any(|s| matches!(s, Speed::Relative(_)));
    let relative = args.sources.models.is_none() && platform.speeds().is_some_and(|s| ratios(&s));
    // Ratios that the user gave decide the areas; the measured speeds still make the forecast.
    let choices = match platform.speeds() {
        Some(speeds) if relative => {
            let given: Vec<Model> = platform
                .processors
                .iter()
                .zip(&speeds)
                .map(|(p, s)| Model::constant(&p.name, s.value()))
                .collect::<Result<_>>()?;
            plan_matmul(shape, platform, &given, 1, &PlanOptions { relative: true, ..wishes })?
        }
        _ => plan_matmul(shape, platform, models, block, &wishes)?,
    };
    for (place, c) in choices.iter().enumerate() {
        let rank = c.rank.map_or_else(|| "-".into(), |r| format!("{r:.4} s"));
        let mark = if place == 0 { "chosen" } else { "against" };
        console.detail(format!("{mark}: {:14} {:24} {rank}", c.plan.method, c.order.to_string()));
    }
    Ok((choices, relative))
}

//! From the flags of `advect` to fields, Courant numbers, processors and a plan.

use crate::args::AdvectArgs;
use crate::console::{Console, monitor};
use apportion::error::{Error, Result};
use apportion::files::FileState;
use apportion::geometry::{Rect, Span};
use apportion::job::{
    Context, Sources, measure_unknown_network, note_absent_cores, parse_choice, warn_of_another_kernel,
};
use apportion::kernels::mpdata::{Advectable, Boundary, Place, Scheme};
use apportion::matrix::{LocalBlocks, NpyArray, NpyHeader, read_npy_array, read_tiles};
use apportion::measure::{Effort, MpdataStep, QuickSpeeds, measure_quickly};
use apportion::model::{Machine, Model, WorkUnit, only_ratios, platform_models};
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::process_memory::available_memory;
use apportion::run::World;
use apportion_advect::{
    AdvectChoice, AdvectOptions, AdvectOrder, AdvectProblem, AdvectSchedule, Courant, Plane, needed_faces,
    own_cells, plan_advection,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Sizes of the quick measurement: cells.
const SIZES: [f64; 3] = [65_536.0, 1_048_576.0, 4_194_304.0];

/// The smallest of them where memory is short.
const LEAST: f64 = 4096.0;

/// Arrays of a box that is measured, and what surrounds it.
const ARRAYS: u64 = 8;

/// A file whose header has been read.
pub struct ArrayFile {
    pub path: PathBuf,
    pub header: NpyHeader,
    /// The file as it was before its header was read.
    pub state: FileState,
}

/// Courant numbers along an axis.
pub enum CourantInput {
    Constant(f64),
    File(ArrayFile),
}

/// The files of an advection, whose sizes fit together.
pub struct Inputs {
    pub problem: AdvectProblem,
    pub field: ArrayFile,
    pub courant: Vec<CourantInput>,
}

fn show(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

/// The files among the Courant numbers of `--courant`.
pub fn courant_files(courant: &str) -> impl Iterator<Item = &Path> {
    courant.split(',').map(str::trim).filter(|text| text.parse::<f64>().is_err()).map(Path::new)
}

/// Opens the files and checks that they fit together.
///
/// # Errors
/// A file that cannot be read, elements of other types, sizes that do not fit, a scheme that is none.
pub fn inputs(args: &AdvectArgs) -> Result<Inputs> {
    let scheme = args.scheme.scheme()?;
    let state = FileState::of(&args.field)?;
    let NpyArray { header, sizes } = read_npy_array(&args.field)?;
    let place = |path: &Path| path.display().to_string();
    if header.dtype != "f64" && header.dtype != "f32" {
        let what = format!("holds {}, but a field is f32 or f64", header.dtype);
        return Err(Error::input(place(&args.field), what, "save it as numpy.float64"));
    }
    let axes = sizes.len();
    let boundary = args.scheme.ends(axes)?;
    let given: Vec<&str> = args.courant.split(',').map(str::trim).collect();
    if given.len() != axes {
        let what = format!("{} entries for a field of {axes} dimensions", given.len());
        return Err(Error::input("--courant", what, "give a number or a file for each axis"));
    }
    let mut courant = Vec::new();
    for (axis, text) in given.into_iter().enumerate() {
        if let Ok(constant) = text.parse::<f64>() {
            if !constant.is_finite() {
                let what = format!("{text} along axis {axis} is not finite");
                return Err(Error::input("--courant", what, "give a number such as 0.25"));
            }
            courant.push(CourantInput::Constant(constant));
            continue;
        }
        let path = PathBuf::from(text);
        let state = FileState::of(&path)?;
        let NpyArray { header: found, sizes: shape } = read_npy_array(&path)?;
        let mut wanted = sizes.clone();
        wanted[axis] += 1;
        if shape != wanted {
            return Err(Error::input(
                place(&path),
                format!(
                    "is {}, but Courant numbers along axis {axis} of a field of {} are on {} faces",
                    show(&shape),
                    show(&sizes),
                    show(&wanted)
                ),
                "save values on the faces: one more along their own axis",
            ));
        }
        if found.dtype != header.dtype {
            let what = format!("holds {}, but {} holds {}", found.dtype, place(&args.field), header.dtype);
            return Err(Error::input(place(&path), what, "convert one of them to the other's type"));
        }
        courant.push(CourantInput::File(ArrayFile { path, header: found, state }));
    }
    let field = ArrayFile { path: args.field.clone(), header, state };
    let inputs = Inputs { problem: AdvectProblem { sizes, boundary, scheme }, field, courant };
    Ok(inputs)
}

impl Inputs {
    /// Checks that the files are as they were when their headers were read.
    ///
    /// # Errors
    /// One has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        let courant = self.courant.iter().filter_map(|input| match input {
            CourantInput::File(file) => Some(file),
            CourantInput::Constant(_) => None,
        });
        courant.chain([&self.field]).try_for_each(|file| file.state.check(&file.path))
    }

    /// Checks that the first and the last faces of periodic axes are the same, a line of the files at a time.
    ///
    /// # Errors
    /// They differ; a file cannot be read.
    pub fn check_periodic<T: Advectable>(&self) -> Result<()> {
        let domain = self.problem.domain();
        let plane = Plane::of(&self.problem.sizes);
        for (number, input) in self.courant.iter().enumerate() {
            let CourantInput::File(file) = input else { continue };
            let (axis, n) = (domain.axes()[number], self.problem.sizes[number]);
            if self.problem.boundary[number] != Boundary::Periodic {
                continue;
            }
            let place = Place::Face(axis);
            let (rows, cols) = plane.matrix(place);
            let refuse = || {
                Err(Error::input(
                    file.path.display().to_string(),
                    format!("its first and last faces along axis {number} differ, but the axis is periodic"),
                    format!("make face {n} equal to face 0, or choose another --boundary"),
                ))
            };
            let read = |rect: Rect| -> Result<Vec<T>> {
                Ok(read_tiles::<T>(&file.path, &file.header, &[rect])?.remove(0).1)
            };
            let (all, row) = (Span::new(0, cols), |i: u64| Span::new(i, i + 1));
            if axis == 0 {
                if read(Rect::new(row(0), all))? != read(Rect::new(row(n as u64), all))? {
                    return refuse();
                }
                continue;
            }
            if axis == 2 && self.problem.sizes.len() < 3 {
                // Such a line may be all of the file.
                for i in 0..rows {
                    let one = |at: u64| Rect::new(row(i), Span::new(at, at + 1));
                    if read(one(0))? != read(one(n as u64))? {
                        return refuse();
                    }
                }
                continue;
            }
            // The distance between the first and the last face in a row of the matrix, and how often.
            let (apart, width, every) = if axis == 1 {
                let deep = cols / (n as u64 + 1);
                (n as u64 * deep, deep, cols)
            } else {
                (n as u64, 1, n as u64 + 1)
            };
            for i in 0..rows {
                let line = read(Rect::new(row(i), all))?;
                for start in (0..cols).step_by(every as usize) {
                    let part = |from: u64| &line[from as usize..(from + width) as usize];
                    if part(start) != part(start + apart) {
                        return refuse();
                    }
                }
            }
        }
        Ok(())
    }

    /// This process's cells of a field in a file of the problem's sizes.
    ///
    /// # Errors
    /// A value that is not finite or too large.
    pub fn read_field<T: Advectable>(
        &self,
        file: &ArrayFile,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<LocalBlocks<T>> {
        let blocks = read_tiles::<T>(&file.path, &file.header, &own_cells(schedule, world))?;
        blocks.iter().try_for_each(|block| self.check_values(&file.path, block))?;
        Ok(blocks)
    }

    /// Checks a block of a field.
    ///
    /// # Errors
    /// A value that is not finite or too large, with its place.
    pub fn check_values<T: Advectable>(&self, file: &Path, (rect, elements): &(Rect, Vec<T>)) -> Result<()> {
        let fits = |x: &T| x.to_f64().abs() <= T::LIMIT;
        let Some(bad) = elements.iter().position(|x| !fits(x)) else { return Ok(()) };
        let levels = if self.problem.sizes.len() == 3 { self.problem.sizes[2] as u64 } else { 1 };
        let (i, col) = (bad as u64 / rect.cols.len(), rect.cols.start + bad as u64 % rect.cols.len());
        let at = match self.problem.sizes.len() {
            1 => format!("({col})"),
            2 => format!("({}, {col})", rect.rows.start + i),
            _ => format!("({}, {}, {})", rect.rows.start + i, col / levels, col % levels),
        };
        Err(Error::input(
            format!("{}: element {at}", file.display()),
            format!("is {}, not a finite number of at most {:e}", elements[bad], T::LIMIT),
            "replace it, or rescale the field",
        ))
    }

    /// The faces that this process needs.
    pub fn read_courant<T: Advectable>(
        &self,
        schedule: &AdvectSchedule,
        world: &World,
    ) -> Result<Vec<LocalBlocks<T>>> {
        let one = |(number, input): (usize, &CourantInput)| match input {
            CourantInput::Constant(_) => Ok(LocalBlocks::new()),
            CourantInput::File(file) => {
                read_tiles::<T>(&file.path, &file.header, &needed_faces(schedule, number, world))
            }
        };
        self.courant.iter().enumerate().map(one).collect()
    }

    /// The Courant numbers, from the faces that were read.
    pub fn courant<'a, T: Advectable>(&self, faces: &'a [LocalBlocks<T>]) -> Vec<Courant<'a, T>> {
        let one = |(input, blocks): (&CourantInput, &'a LocalBlocks<T>)| match input {
            CourantInput::Constant(value) => Courant::Constant(T::from_f64(*value)),
            CourantInput::File(_) => Courant::Faces(blocks),
        };
        self.courant.iter().zip(faces).map(one).collect()
    }
}

/// Everything decided.
pub struct Prepared {
    pub platform: Platform,
    /// The candidates, the best first; on ranks other than 0 only the best.
    pub choices: Vec<AdvectChoice>,
    /// Seconds at the sum of the speeds, if they are known.
    pub ideal_seconds: Option<f64>,
    /// The speeds, if they were measured for this run.
    pub quick: Option<QuickSpeeds>,
}

/// Processors and their speeds.
pub struct AdvectMachine {
    pub platform: Platform,
    plan: Option<Plan>,
    /// In cells per second, by rank.
    pub models: Vec<Model>,
    /// False if only their ratios are known.
    pub timed: bool,
    /// The speeds, if they were measured for this run.
    pub quick: Option<QuickSpeeds>,
}

/// Finds processors, speeds, layout and order; the same on all ranks.
///
/// # Errors
/// A file that cannot be read or does not fit, no feasible plan; known to all ranks.
pub fn decide_advection<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    world: &World,
    console: &Console,
) -> Result<Prepared> {
    let problem = &inputs.problem;
    let known = find_machine::<T>(args, inputs, None, world, console)?;
    let orders = args.scheme.orders(args.overlap);
    let choices = choose::<T>(args, problem, &known, &orders, world)?;
    known.announce(args, problem, choices, console)
}

/// The layouts and orders, the best first; on ranks other than 0 only the best.
///
/// # Errors
/// No feasible plan; known to all ranks.
pub fn choose<T: Advectable>(
    args: &AdvectArgs,
    problem: &AdvectProblem,
    known: &AdvectMachine,
    orders: &[AdvectOrder],
    world: &World,
) -> Result<Vec<AdvectChoice>> {
    let AdvectMachine { platform, plan, models, timed, .. } = known;
    let choose = || {
        let options = AdvectOptions {
            method: parse_choice("--method", &args.method)?,
            orders,
            plan: plan.as_ref(),
            steps: args.steps,
            element: size_of::<T>() as u64,
        };
        let machine = Machine::new(platform.clone(), models.clone(), 1);
        plan_advection(problem, &machine, &options)
    };
    let mut choices = world.on_root(choose)?.unwrap_or_default();
    if !timed {
        choices.iter_mut().for_each(|choice| choice.plan.forecast = None);
    }
    let text = choices.first().map(|best| {
        json!({"plan": best.plan.to_value(), "order": best.order, "step": best.step_seconds}).to_string()
    });
    let text = world.broadcast(text.unwrap_or_default().as_bytes())?;
    if choices.is_empty() {
        let mut value: Value = serde_json::from_slice(&text).expect("rank 0 sent JSON");
        let order = serde_json::from_value(value["order"].take()).expect("rank 0 sent an order");
        let plan = Plan::parse(&value["plan"].to_string(), "rank 0's plan")?;
        choices.push(AdvectChoice { plan, order, step_seconds: value["step"].as_f64().unwrap_or(0.0) });
    }
    Ok(choices)
}

impl AdvectMachine {
    /// Everything decided; says what there was to choose from.
    pub fn announce(
        self,
        args: &AdvectArgs,
        problem: &AdvectProblem,
        choices: Vec<AdvectChoice>,
        console: &Console,
    ) -> Result<Prepared> {
        for (place, choice) in choices.iter().enumerate() {
            let mark = if place == 0 { "chosen" } else { "against" };
            let seconds =
                if self.timed { format!("{:.6} s a step", choice.step_seconds) } else { "-".into() };
            console.detail(format!(
                "{mark}: {:12} {:24} {seconds}",
                choice.plan.method,
                choice.order.to_string()
            ));
        }
        let ideal = problem.cells() as f64 * args.steps as f64 / self.rate(problem, &choices[0]);
        let Self { platform, timed, quick, .. } = self;
        Ok(Prepared { platform, choices, ideal_seconds: timed.then_some(ideal), quick })
    }

    /// The cells that all processors together advance by a step per second.
    pub fn rate(&self, problem: &AdvectProblem, choice: &AdvectChoice) -> f64 {
        let levels = Plane::of(&problem.sizes).levels();
        let shares = self.models.iter().zip(&choice.plan.shares);
        shares.map(|(model, share)| model.speed((share * levels).max(1) as f64)).sum()
    }
}

/// Finds processors and speeds; those that are not known are measured, within a limit of memory.
///
/// # Errors
/// A file that cannot be read or does not fit; known to all ranks.
pub fn find_machine<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    memory: Option<u64>,
    world: &World,
    console: &Console,
) -> Result<AdvectMachine> {
    let context = Context { world, monitor: monitor(), observer: console };
    let sources = world.all_ok(args.sources.load(args.plan.as_deref()))?;
    let platform = sources.processors_of_world(world)?;
    world.all_ok(platform.refuse_devices("an advection, which computes on cores"))?;
    let platform = measure_unknown_network(platform, args.remeasure, context)?;
    note_absent_cores(&platform, context)?;
    // All ranks measure the same sizes.
    let memory = memory.or(available_memory().filter(|_| world.is_solo()));
    let sizes = sizes(memory, platform.len() as u64 * size_of::<T>() as u64);
    // The loops for one Courant number on each face are slower than those for one along each axis.
    let faces = inputs.courant.iter().any(|input| matches!(input, CourantInput::File(_)));
    let scheme = (inputs.problem.scheme, faces);
    let (models, timed, quick) = speeds::<T>(&sources, &platform, scheme, &sizes, context)?;
    Ok(AdvectMachine { platform, plan: sources.plan, models, timed, quick })
}

/// Sizes of the quick measurement that take at most half of a memory on all processors together, of `element`
/// bytes.
fn sizes(memory: Option<u64>, element: u64) -> Vec<f64> {
    let most = memory.map_or(f64::INFINITY, |memory| (memory / 2 / (ARRAYS * element)) as f64);
    let mut sizes: Vec<f64> = SIZES.iter().map(|size| size.min(most).max(LEAST)).collect();
    sizes.dedup();
    sizes
}

/// Speed functions in cells per second, by rank; false if only their ratios are known; their origin, if they
/// were measured now.
fn speeds<T: Advectable>(
    sources: &Sources,
    platform: &Platform,
    scheme: (Scheme, bool),
    sizes: &[f64],
    context: Context<'_>,
) -> Result<(Vec<Model>, bool, Option<QuickSpeeds>)> {
    let step = MpdataStep::<T>::new(scheme.0, scheme.1);
    let (world, kernel) = (context.world, step.name());
    if let Some(models) = &sources.models {
        warn_of_another_kernel(models, &kernel, context);
        return Ok((world.all_ok(models.in_order(&platform.names()))?, true, None));
    }
    if platform.processors.iter().all(|p| p.speed.is_some() || p.emulated.is_some()) {
        // A cell is a unit: speeds in units/s give times, ratios and flop/s only shares.
        let models = world.all_ok(platform_models(platform, WorkUnit::Unit))?;
        let timed = !only_ratios(&models);
        return Ok((models, timed, None));
    }
    let speeds = context.watch("measuring", || {
        measure_quickly(&step, platform, sizes, Effort::Thorough, world, context.monitor)
    })?;
    let models = speeds.now().and_then(|models| models.in_order(&platform.names()));
    Ok((world.all_ok(models)?, true, Some(speeds)))
}

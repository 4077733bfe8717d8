//! The decisions before a product: processors, speeds, plan and order; the same on all ranks.

use crate::args::{RunningArgs, Sources};
use crate::console::Console;
use crate::prepare::chosen::given;
use crate::prepare::network::with_host_network;
use crate::prepare::processors::{as_run, constant, in_plan_order, method_at, terms, this_machine};
use crate::prepare::quick::{Quick, SpeedSource, quick};
use crate::prepare::sizes::sized;
use crate::prepare::task::Task;
use crate::prepare::world::{fits, note_absent_cores, processes};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::matrix::Element;
use apportion::model::{Model, Models, WorkUnit, only_ratios, platform_models, read_models};
use apportion::plan::shapes::Method;
use apportion::plan::{Plan, Shape, inner_cuts_refused, read_plan};
use apportion::platform::{Platform, Processor, Speed};
use apportion::product::MatmulJob;
use apportion::run::World;
use apportion::schedule::{DataPath, MatmulSchedule, ScheduleOptions};
use apportion::select::{Choice, MemoryPolicy, PlanOptions, plan_matmul};
use apportion::units;
use serde_json::{Value, json};
use std::path::Path;

/// Everything decided.
pub struct Prepared {
    pub platform: Platform,
    pub models: Vec<Model>,
    pub block: u64,
    /// The candidates, the best first; on ranks other than 0 only the best.
    pub choices: Vec<Choice>,
    /// True if they were ranked by communication alone.
    pub relative: bool,
    /// Where the speeds come from.
    pub source: SpeedSource,
}

impl Prepared {
    /// The best candidate's steps.
    pub fn schedule(&self) -> Result<MatmulSchedule> {
        Ok(MatmulSchedule::new(self.choices[0].plan.layout()?, self.choices[0].order))
    }

    /// The plain product by the best candidate, whose forecast it has.
    pub fn job<T: Element>(&self, kernel: Kernel<T>, seed: u64) -> MatmulJob<'_, T> {
        let best = &self.choices[0];
        MatmulJob::new(kernel, &best.plan, best.order, &self.models, self.block)
            .with_forecast(best.plan.forecast.clone())
            .with_seed(seed)
    }
}

/// The flags and files.
#[derive(Clone)]
pub struct Given {
    pub platform: Platform,
    pub plan: Option<Plan>,
    pub models: Option<Models>,
    /// What runs, if it cannot use a layout that cuts the inner dimension.
    pub uncut: Option<&'static str>,
}

/// Speeds by rank.
pub struct Speeds {
    pub models: Vec<Model>,
    /// The pivot block that they refer to.
    pub block: u64,
    /// Their origin, if they were measured quickly.
    pub quick: Option<Quick>,
}

impl Speeds {
    /// Where they come from.
    pub fn source(&self) -> SpeedSource {
        self.quick.as_ref().map_or(SpeedSource::Given, |quick| quick.source)
    }
}

/// Finds processors and their speeds, the same on all ranks.
///
/// # Errors
/// A file that cannot be read or does not fit, an engine that cannot run the platform; known to all ranks.
pub fn speeds<T: Element>(
    kernel: Kernel<T>,
    (args, shape): (&RunningArgs, Shape),
    world: &World,
    console: &Console,
) -> Result<(Given, Speeds)> {
    let given = given_in(args.plan.as_deref(), &args.sources, world)?;
    let platform = with_host_network(given.platform, args.remeasure, (world, console))?;
    let given = Given { platform, ..given };
    note_absent_cores(&given.platform, world, console);
    if let Some(models) = &given.models {
        warn_of_another_kernel(models, &kernel.name(), console);
    }
    let speeds = match world.all_ok(known_models(&given))? {
        Some(known) => known,
        None => {
            let block = args.flow.block();
            let work = shape.flops() / 2.0 / block as f64;
            let quick = quick(kernel, (&given.platform, block), work, args.remeasure, (world, console))?;
            let models = quick.models().and_then(|models| models.in_order(&given.platform.names()));
            Speeds { models: world.all_ok(models)?, block, quick: Some(quick) }
        }
    };
    Ok((given, speeds))
}

/// The files that the flags name, the same on all ranks, fit for this world.
///
/// # Errors
/// A file that cannot be read or does not fit, an engine that cannot run the platform; known to all ranks.
pub fn given_in(plan: Option<&Path>, sources: &Sources, world: &World) -> Result<Given> {
    let here = processes(world)?;
    world.all_ok(given_by(plan, sources, || here.unwrap_or_else(this_machine)).and_then(|given| {
        if world.is_solo() {
            return Ok(Given { platform: as_run(given.platform), ..given });
        }
        fitting(given, world)
    }))
}

/// Rejects inputs that an engine of several processes or this world cannot run.
fn fitting(given: Given, world: &World) -> Result<Given> {
    if given.platform.network.emulate {
        return Err(Error::input(
            format!("platform \"{}\": network.emulate", given.platform.name),
            "network emulation requires the threads engine; MPI uses the real network",
            "use --engine threads, or remove emulate",
        ));
    }
    fits(world, given.platform.len())?;
    Ok(given)
}

/// Reads the files that the flags name; by default the processors are those of `here`.
fn given_by(plan: Option<&Path>, sources: &Sources, here: impl FnOnce() -> Platform) -> Result<Given> {
    let plan = plan.map(read_plan).transpose()?;
    let file = sources.models.as_deref().map(read_models).transpose()?;
    let named = sources.platform()?;
    let platform = match (named, &plan, &file) {
        (Some(platform), Some(plan), _) => in_plan_order(plan, platform)?,
        (Some(platform), None, _) => platform,
        (None, Some(plan), _) => Platform::from_names(&plan.processors),
        (None, None, Some(models)) => Platform::from_names(&models.names()),
        (None, None, None) => here(),
    };
    let given = Given { platform, plan, models: file, uncut: None };
    if given.platform.processors.iter().any(|p| p.emulated.is_some()) && known_models(&given)?.is_none() {
        let what = "the platform mixes emulated processors with processors of unknown speed";
        return Err(Error::input("platform", what, "set emulated or speed for all, or pass --models"));
    }
    Ok(given)
}

/// Speed functions that need no measuring, with their pivot block.
fn known_models(given: &Given) -> Result<Option<Speeds>> {
    let platform = &given.platform;
    Ok(match &given.models {
        Some(models) => Some(Speeds {
            models: models.in_order(&platform.names())?,
            block: models.block().unwrap_or(1),
            quick: None,
        }),
        // Speeds in flop/s and given functions need no measuring; ratios alone give no time.
        None if platform.processors.iter().all(given_speed) => {
            let processors = constant(platform.clone(), WorkUnit::MultiplyAdd)?;
            Some(Speeds { models: processors.models, block: processors.block, quick: None })
        }
        None => None,
    })
}

/// True if nothing has to be measured.
fn given_speed(processor: &Processor) -> bool {
    processor.emulated.is_some() || matches!(processor.speed, Some(Speed::Flops(_)))
}

/// Whether threads must copy operands: by request, or because a number of messages is given that divides the
/// memory for them.
pub fn copies(args: &RunningArgs) -> bool {
    args.copy || args.flow.blocks.is_some()
}

/// How processors obtain the operands of others.
pub fn data_path(args: &RunningArgs, platform: &Platform, world: &World) -> DataPath {
    match (world.is_solo(), copies(args) || platform.has_memories_of_its_own()) {
        (false, _) => DataPath::Packed,
        (true, true) => DataPath::Copied,
        (true, false) => DataPath::InPlace,
    }
}

/// Makes the remaining decisions, on rank 0, for all ranks. `None` if no plan fits the processors' memory,
/// but panels may.
///
/// # Errors
/// No plan is possible; known to all ranks.
pub fn settled_on<T: Element>(
    task: &Task<'_>,
    with: (&Given, &Speeds),
    shape: Shape,
    world: &World,
    console: &Console,
) -> Result<Option<Prepared>> {
    decided_on::<T>((task.running, task.can_be_cut()), with, shape, world, console)
}

/// The same for a product that is no task of its own; it `can_be_cut` into panels or not.
pub fn decided_on<T: Element>(
    (running, can_be_cut): (&RunningArgs, bool),
    (given, speeds): (&Given, &Speeds),
    shape: Shape,
    world: &World,
    console: &Console,
) -> Result<Option<Prepared>> {
    let path = data_path(running, &given.platform, world);
    let settle = || match settled::<T>(given, speeds, shape, (running, path), console) {
        // Panels of C need less memory on each processor.
        Err(error @ Error::TooLittleMemory { .. }) if can_be_cut => {
            console.detail(format!("{}: cutting C into panels", crate::flags::told(&error)));
            Ok(None)
        }
        outcome => outcome.map(Some),
    };
    if world.is_solo() {
        return settle();
    }
    let mine = world.on_root(settle)?.flatten();
    let text = mine.as_ref().map(|prepared| decided(&prepared.choices[0])).unwrap_or_default();
    let text = world.broadcast(text.as_bytes())?;
    if mine.is_some() || text.is_empty() {
        return Ok(mine);
    }
    let (plan, order) = read_decided(&text)?;
    let choices = vec![Choice {
        plan,
        order,
        rank: None,
        at_least: None,
        narrowed: None,
        left_out: None,
        resized: None,
    }];
    let (platform, models, block) = (given.platform.clone(), speeds.models.clone(), speeds.block);
    Ok(Some(Prepared { platform, models, block, choices, relative: false, source: speeds.source() }))
}

/// A plan and its order, as rank 0 sends them.
fn decided(choice: &Choice) -> String {
    json!({"plan": choice.plan.to_value(), "order": choice.order}).to_string()
}

/// Parses the output of [`decided`].
fn read_decided(text: &[u8]) -> Result<(Plan, ScheduleOptions)> {
    let mut decided: Value = serde_json::from_slice(text).expect("rank 0 sent JSON");
    let order = serde_json::from_value(decided["order"].take()).expect("rank 0 sent an order");
    Ok((Plan::parse(&decided["plan"].to_string(), "rank 0's plan")?, order))
}

/// Makes the remaining decisions on this rank.
pub fn settled<T: Element>(
    given: &Given,
    speeds: &Speeds,
    shape: Shape,
    (args, path): (&RunningArgs, DataPath),
    console: &Console,
) -> Result<Prepared> {
    let (element, policy) = (size_of::<T>() as u64, args.flow.fit(path));
    let Given { platform, plan, uncut, .. } = given;
    let Speeds { models, block, .. } = speeds;
    if let Some(what) = uncut {
        plan.iter().try_for_each(|plan| plan.layout()?.refuse_boxes(what))?;
        if plan.is_none() && method_at("--method", &args.method)?.is_some_and(Method::cuts_inner) {
            return Err(inner_cuts_refused(what));
        }
    }
    let (choices, relative) = match plan {
        Some(plan) => {
            let choices = self::given(plan, shape, args, (platform, models, *block), (element, policy))?;
            (choices, false)
        }
        None => made(shape, (args, uncut.is_none()), (platform, models, *block), (element, policy), console)?,
    };
    Ok(Prepared {
        platform: platform.clone(),
        models: models.clone(),
        block: *block,
        choices,
        relative,
        source: speeds.source(),
    })
}

/// Speeds of another kernel may still be the best available (f32 for f64, say), so they are used, with a
/// note.
pub fn warn_of_another_kernel(models: &Models, kernel: &str, console: &Console) {
    if models.kernel != kernel {
        console.note(format!(
            "apportion: warning: the models are of \"{}\", but \"{kernel}\" will run: shares and forecast may be off \
             (measure --kernel {kernel})",
            models.kernel.replace(char::is_control, " ")
        ));
    }
}

/// A new plan, followed by its competitors; true if they were ranked by communication alone.
fn made(
    shape: Shape,
    (args, inner_cuts): (&RunningArgs, bool),
    (platform, models, block): (&Platform, &[Model], u64),
    (element, fit): (u64, MemoryPolicy),
    console: &Console,
) -> Result<(Vec<Choice>, bool)> {
    let method = method_at("--method", &args.method)?;
    if args.keep_all && args.method != "auto" {
        let what = format!("--method {} gives every processor a share anyway", args.method);
        return Err(Error::input("--keep-all", what, "leave one of the two out"));
    }
    let options = PlanOptions {
        method,
        flow: args.flow.flow.0,
        overlap: args.flow.overlaps(),
        look_ahead: args.flow.look_ahead()?,
        terms: terms(platform, None, None)?,
        fit,
        messages: args.flow.messages()?,
        inner_cuts,
        keep_all: args.keep_all,
        ..PlanOptions::open(args.flow.pivot(shape.k)?, element)
    };
    // Ratios given by the user decide the areas; the measured speeds still make the forecast of the run.
    let given = match platform.speeds() {
        Some(_) if args.sources.models.is_none() => Some(platform_models(platform, WorkUnit::MultiplyAdd)?),
        _ => None,
    };
    let given = given.filter(|given| only_ratios(given));
    let relative = given.is_some();
    let options = sized(options, args.shares, relative)?;
    let choices = match given {
        Some(given) => plan_matmul(shape, platform, &given, 1, &options)?,
        None => plan_matmul(shape, platform, models, block, &options)?,
    };
    for (place, c) in choices.iter().enumerate() {
        let of = if relative { " of communication" } else { "" };
        let rank = c.rank.map_or_else(|| "-".into(), |r| format!("{}{of}", units::show_seconds(r)));
        let mark = if place == 0 { "chosen" } else { "against" };
        console.detail(format!("{mark}: {:17} {:26} {rank}", c.plan.method, c.order.to_string()));
    }
    Ok((choices, relative))
}

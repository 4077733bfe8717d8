//! Sources of speeds: what a caller says of the processors, and what follows where nothing is said.

use super::Context;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::model::{Interpolation, Machine, Model, Models, Point, WorkUnit, only_ratios, platform_models};
use crate::plan::{Layout, Plan, Shape};
use crate::platform::{Grouping, Network, Platform, Processor, Speed, discover};
use crate::run::{World, absent_cores};
use std::collections::{BTreeMap, BTreeSet};

use super::devices::{open_devices, with_devices_found};
use super::network::measure_unknown_network;
use super::speeds::{MeasuredSpeeds, SpeedSource, measure_or_recall};

/// What a caller says of the processors. What is left out is discovered, remembered or measured.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Processors and network, with the speeds that the caller gives ([`with_speeds`]).
    pub platform: Option<Platform>,
    /// Speed functions.
    pub models: Option<Models>,
    /// A plan to run instead of a new one.
    pub plan: Option<Plan>,
    /// What errors call the plan: its file, or the parameter that holds it.
    pub plan_place: String,
}

/// The processors of a job with their speeds.
#[derive(Debug)]
pub(crate) struct KnownMachine {
    pub machine: Machine,
    /// Ratios that the caller gives beside measured speeds: they decide the shares, the speeds the forecast.
    pub ratios: Option<Vec<Model>>,
    /// The speeds, if they were measured or remembered.
    pub measured: Option<MeasuredSpeeds>,
}

impl KnownMachine {
    /// Whether some processors are devices.
    pub fn has_devices(&self) -> bool {
        !self.machine.platform.network.devices.is_empty()
    }

    /// Where the speeds come from.
    pub fn source(&self) -> SpeedSource {
        self.measured.as_ref().map_or(SpeedSource::Given, MeasuredSpeeds::source)
    }
}

impl Sources {
    /// The processes of a world, between which the caller has laid out a product. `place` is what errors call the
    /// layout. Every rank must call it.
    ///
    /// # Errors
    /// A layout for another number of processes; a lost rank.
    pub fn of_layout(layout: Layout, place: &str, world: &World) -> Result<Self> {
        let processors = layout.processors();
        let platform = world_platform(world)?.unwrap_or_else(|| numbered_platform(processors));
        check_world_size(world, processors)?;
        let plan = Plan::of_layout("given", platform.names(), layout, 1.0);
        Ok(Self { platform: Some(platform), models: None, plan: Some(plan), plan_place: place.into() })
    }

    /// The processors with the speeds that the caller gives, for work of this unit; in the order of the plan, if
    /// there is one. Nothing is measured.
    ///
    /// # Errors
    /// No speeds; a processor without one; a plan with other processors.
    pub fn given_machine(&self, work: WorkUnit) -> Result<Machine> {
        if self.platform.is_none() && self.models.is_none() {
            return Err(Error::input(
                "`speeds`",
                "no speeds are given",
                "give `speeds`, `models` or a `platform` that has speeds",
            ));
        }
        let platform = self.named_processors(|| numbered_platform(1))?;
        match &self.models {
            Some(models) => {
                let block = models.block().unwrap_or(1);
                let models = models.in_order(&platform.names())?;
                Ok(Machine::new(platform, models, block))
            }
            None => Machine::from_platform(platform, work),
        }
    }

    /// The processors that the caller names, or those of `default`.
    fn named_processors(&self, default: impl FnOnce() -> Platform) -> Result<Platform> {
        Ok(match (&self.platform, &self.plan, &self.models) {
            (Some(platform), Some(plan), _) => in_plan_order(plan, platform.clone())?,
            (Some(platform), None, _) => platform.clone(),
            (None, Some(plan), _) => Platform::from_names(&plan.processors),
            (None, None, Some(models)) => Platform::from_names(&models.names()),
            (None, None, None) => default(),
        })
    }

    /// The processors: those named, or those of the plan or the models, or by default those of `default`.
    ///
    /// # Errors
    /// A platform without processors of the plan; emulated processors beside others of unknown speed.
    pub fn processors(&self, default: impl FnOnce() -> Platform) -> Result<Platform> {
        let platform = self.named_processors(default)?;
        if platform.processors.iter().any(|p| p.emulated.is_some())
            && self.known_machine(&platform)?.is_none()
        {
            let what = "the platform mixes emulated processors with processors of unknown speed";
            return Err(Error::input("platform", what, "set emulated or speed for all, or pass --models"));
        }
        Ok(platform)
    }

    /// The processors of a world, the same on all ranks and fit for it.
    ///
    /// # Errors
    /// As [`Sources::processors`]; processors that are not as many as processes; an emulated network under MPI.
    /// Known to all ranks.
    pub fn processors_of_world(&self, world: &World) -> Result<Platform> {
        let here = world_platform(world)?;
        world.all_ok(self.processors(|| here.unwrap_or_else(discover_platform)).and_then(|platform| {
            if world.is_solo() {
                return Ok(without_real_network(platform));
            }
            if platform.network.emulate {
                return Err(Error::input(
                    format!("platform \"{}\": network.emulate", platform.name),
                    "network emulation requires the threads engine; MPI uses the real network",
                    "use --engine threads, or remove emulate",
                ));
            }
            check_world_size(world, platform.len())?;
            Ok(platform)
        }))
    }

    /// Speed functions that need no measuring.
    fn known_machine(&self, platform: &Platform) -> Result<Option<Machine>> {
        Ok(match &self.models {
            Some(models) => {
                let block = models.block().unwrap_or(1);
                Some(Machine::new(platform.clone(), models.in_order(&platform.names())?, block))
            }
            // Speeds in flop/s and given functions need no measuring; ratios alone give no time.
            None if platform.processors.iter().all(has_speed) => {
                Some(Machine::from_platform(platform.clone(), WorkUnit::MultiplyAdd)?)
            }
            None => None,
        })
    }

    /// The processors of a world with their network and their speeds for products by this kernel of about
    /// `shape`; `block` is the pivot block of what is measured.
    ///
    /// # Errors
    /// As [`Sources::processors_of_world`] and of the measurements; known to all ranks.
    pub(crate) fn machine<T: Element>(
        &self,
        kernel: Kernel<T>,
        shape: Shape,
        block: u64,
        remeasure: bool,
        context: Context<'_>,
    ) -> Result<KnownMachine> {
        let world = context.world;
        let platform = self.processors_of_world(world)?;
        let platform = measure_unknown_network(platform, remeasure, context)?;
        let named = self.platform.is_some() || self.models.is_some() || self.plan.is_some();
        let platform = match named || !world.is_solo() {
            true => platform,
            false => with_devices_found(platform, kernel, shape.flops() / 2.0, context),
        };
        let platform = open_devices::<T>(platform, kernel, remeasure, context)?;
        note_absent_cores(&platform, context);
        if let Some(models) = &self.models {
            warn_of_another_kernel(models, &kernel.name(), context);
        }
        let ratios = match platform.speeds() {
            Some(_) if self.models.is_none() => Some(platform_models(&platform, WorkUnit::MultiplyAdd)),
            _ => None,
        };
        let ratios = world.all_ok(ratios.transpose())?.filter(|given| only_ratios(given));
        let in_tiles = |machine: Machine| Ok(machine.with_device_tiles(size_of::<T>() as u64)?.into_owned());
        let known = self.known_machine(&platform).and_then(|known| known.map(in_tiles).transpose());
        if let Some(machine) = world.all_ok(known)? {
            return Ok(KnownMachine { machine, ratios, measured: None });
        }
        let work = shape.flops() / 2.0 / block as f64;
        let measured = measure_or_recall(kernel, &platform, block, work, remeasure, context)?;
        let models = measured.models().and_then(|models| models.in_order(&platform.names()));
        let machine =
            world.all_ok(models.and_then(|models| in_tiles(Machine::new(platform, models, block))))?;
        Ok(KnownMachine { machine, ratios, measured: Some(measured) })
    }
}

/// True if the processor's speed need not be measured.
fn has_speed(processor: &Processor) -> bool {
    processor.emulated.is_some() || matches!(processor.speed, Some(Speed::Flops(_)))
}

/// The platform's processors with these speeds instead of their own; without a platform, processors p0, p1, …
///
/// # Errors
/// Speeds that are not as many as the processors; negative ones; only speeds of 0.
pub fn with_speeds(platform: Option<Platform>, speeds: &[Speed]) -> Result<Platform> {
    let values: Vec<f64> = speeds.iter().map(|speed| speed.value()).collect();
    let numbered = Platform::from_speeds(&values)?;
    let mut platform = match platform {
        None => numbered,
        Some(platform) if platform.len() != speeds.len() => {
            return Err(Error::input(
                "`speeds`",
                format!("{} speeds for the platform's {} processors", speeds.len(), platform.len()),
                "pass one speed for each processor",
            ));
        }
        Some(platform) => platform,
    };
    for (processor, speed) in platform.processors.iter_mut().zip(speeds) {
        processor.speed = Some(*speed);
        processor.emulated = None;
    }
    Ok(platform)
}

/// Processors p0, p1, …
fn numbered_platform(processors: usize) -> Platform {
    Platform::from_names(&(0..processors).map(|i| format!("p{i}")).collect::<Vec<_>>())
}

/// The speed functions that measured times give: `points` holds the sizes with their seconds of each processor, by
/// rank. One point is a constant speed, several are interpolated; `max_sizes` are caps, by rank, or empty.
///
/// # Errors
/// Sizes or times that are not positive, or sizes that occur twice.
pub fn models_from_times(
    names: &[String],
    points: Vec<Vec<Point>>,
    max_sizes: &[Option<f64>],
) -> Result<Models> {
    let model = |(i, points): (usize, Vec<Point>)| {
        let kind = if points.len() == 1 { Interpolation::Constant } else { Interpolation::PiecewiseLinear };
        Model::new(&names[i], kind, points, max_sizes.get(i).copied().flatten())
    };
    let models = points.into_iter().enumerate().map(model).collect::<Result<_>>()?;
    Ok(Models { kernel: "seconds".into(), unit: "units".into(), parameters: BTreeMap::new(), models })
}

/// This machine as a platform for computations of this program: a processor for each kind of core, with a thread for
/// each core.
pub fn discover_platform() -> Platform {
    discover().platform(Grouping::Kind)
}

/// The platform as threads use it: with its network only if that is emulated, and its devices.
fn without_real_network(mut platform: Platform) -> Platform {
    if !platform.network.emulate {
        platform.network = platform.network.only_devices();
    }
    platform
}

/// The platform's processors in the order of the plan.
///
/// # Errors
/// A processor of the plan that the platform does not have.
pub fn in_plan_order(plan: &Plan, platform: Platform) -> Result<Platform> {
    let names = platform.names();
    let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let unknown: Vec<&String> =
        plan.processors.iter().filter(|name| !known.contains(name.as_str())).collect();
    let Some(first) = unknown.first() else { return Ok(platform.select(&plan.processors)) };
    let others = match unknown.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more of the plan's {} processors", plan.processors.len()),
    };
    Err(Error::input(
        "`platform`",
        format!("the platform \"{}\" lacks \"{first}\"{others}", platform.name),
        "use the platform for which the plan was created, or rename the processors",
    ))
}

/// The processes of a world as a platform, each host a cluster; `None` for a single process, whose processors
/// are its kinds of cores.
///
/// # Errors
/// A lost rank.
pub fn world_platform(world: &World) -> Result<Option<Platform>> {
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

/// Refuses a world whose size differs from the number of processors.
///
/// # Errors
/// It does: exit code 2.
pub fn check_world_size(world: &World, processors: usize) -> Result<()> {
    if world.size() == processors {
        return Ok(());
    }
    let processes = if world.size() == 1 { "process" } else { "processes" };
    let are = if processors == 1 { "is 1 processor" } else { &format!("are {processors} processors") };
    Err(Error::input(
        "`engine = mpi`",
        format!("the world has {} {processes}, but there {are}", world.size()),
        format!("start one process for each: mpirun -n {processors} apportion …"),
    ))
}

/// Notes the processors of this process that run unpinned since their cores are not there.
pub fn note_absent_cores(platform: &Platform, context: Context<'_>) {
    if !context.world.is_solo() {
        return;
    }
    for processor in &platform.processors {
        let absent = absent_cores(&processor.cores);
        if !absent.is_empty() {
            let (name, cores) = (&processor.name, &processor.cores);
            let unpinned = if absent.len() == cores.len() { "; it runs unpinned" } else { "" };
            context.note(format!("{name}: cores = {cores:?}: {absent:?} cannot be used here{unpinned}"));
        }
    }
}

/// Warns that models were measured with another kernel: they may still be the best available (f32 for f64,
/// say), so they are used.
pub fn warn_of_another_kernel(models: &Models, kernel: &str, context: Context<'_>) {
    if models.kernel != kernel {
        context.note(format!(
            "apportion: warning: the models are of \"{}\", but \"{kernel}\" will run: shares and forecast may be off \
             (measure --kernel {kernel})",
            models.kernel.replace(char::is_control, " ")
        ));
    }
}

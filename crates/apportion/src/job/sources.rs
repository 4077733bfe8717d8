//! Sources of speeds: what a caller says of the processors, and what follows where nothing is said.

use super::Context;
use crate::error::{Error, Result};
use crate::input::harmless;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::KernelUpdate;
use crate::model::{Interpolation, Machine, Model, Models, Point, WorkUnit, only_ratios, platform_models};
use crate::plan::{Layout, Plan, Shape};
use crate::platform::{Grouping, Host, Network, Platform, Processor, Speed, discover};
use crate::run::{Hosts, World, absent_cores, absent_cores_of, usable_threads};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use super::devices::{DevicePart, open_devices, with_devices_found};
use super::grouping::choose_grouping;
use super::network::measure_unknown_network;
use super::speeds::{MeasuredSpeeds, SpeedSource, measure_or_recall};

/// The most processors of a process, each a thread.
const MOST_WORKERS: usize = 2048;

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
    pub(crate) fn has_devices(&self) -> bool {
        !self.machine.platform.network.devices.is_empty()
    }

    /// Where the speeds come from.
    pub(crate) fn source(&self) -> SpeedSource {
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
        let default = || here.clone().unwrap_or_else(discover_platform);
        let platform = world.all_ok(self.processors(default).and_then(|platform| {
            if world.is_solo() {
                if platform.len() > MOST_WORKERS {
                    let what = format!(
                        "{} processors are more than the {MOST_WORKERS} threads of a run",
                        platform.len()
                    );
                    let place = format!("platform \"{}\"", platform.name);
                    return Err(Error::input(place, what, "group cores into pools, or use `engine = mpi`"));
                }
                platform.refuse_other_machines(
                    "remove start, or run `mpirun … apportion` with a rank on each machine",
                )?;
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
        }))?;
        if world.is_solo() {
            return Ok(platform);
        }
        let platform = match &here {
            // Names alone do not say on which cores the ranks are.
            Some(here) if self.platform.is_none() => on_cores_of(platform, here),
            _ => platform,
        };
        world.all_ok(in_rank_order(platform, self.plan.is_some(), world))
    }

    /// Ratios of speeds that the caller gives beside speeds that are measured: they decide the shares.
    ///
    /// # Errors
    /// Speeds of different kinds.
    pub fn ratios(&self, platform: &Platform) -> Result<Option<Vec<Model>>> {
        if self.models.is_some() || platform.speeds().is_none() {
            return Ok(None);
        }
        Ok(Some(platform_models(platform, WorkUnit::MultiplyAdd)?).filter(|given| only_ratios(given)))
    }

    /// A platform with speed functions in multiply-adds that need no measuring; `None` if there are none.
    ///
    /// # Errors
    /// Models that lack a processor; speeds of different kinds.
    pub fn known_machine(&self, platform: &Platform) -> Result<Option<Machine>> {
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
        let multiply_adds = shape.flops() / 2.0;
        let platform = match named || !world.is_solo() {
            true => platform,
            false => {
                let update = KernelUpdate { kernel, block };
                let platform = choose_grouping(platform, &update, multiply_adds, context)?;
                with_devices_found(platform, kernel, multiply_adds, context)
            }
        };
        let platform = open_devices::<T>(platform, kernel, DevicePart::Tiles, remeasure, context)?;
        note_absent_cores(&platform, context)?;
        if let Some(models) = &self.models {
            warn_of_another_kernel(models, &kernel.name(), context);
        }
        let ratios = world.all_ok(self.ratios(&platform))?;
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
pub(crate) fn discover_platform() -> Platform {
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
/// The ranks of a host that may use the same cores divide them ([`Host::divide`]): the only one is a pool of all. Ranks
/// that their launcher has bound to cores of their own have those. A host with more ranks than cores pins none.
///
/// Ranks of one host are `rank0`, `rank1`, …; those of several are named after their hosts, as `detect` names the
/// processors there.
///
/// # Errors
/// A lost rank.
pub fn world_platform(world: &World) -> Result<Option<Platform>> {
    if world.is_solo() {
        return Ok(None);
    }
    let hosts = world.hosts()?;
    let host = hosts.of_rank[world.rank()];
    let machine = Host { name: Some(hosts.names[host].clone()), ..discover() };
    let usable: Vec<usize> = machine.cores.iter().map(|core| core.cpu).collect();
    let all: Vec<Vec<usize>> = world.all_gather_values(&usable)?;
    let neighbours: Vec<usize> = (0..world.size()).filter(|rank| hosts.of_rank[*rank] == host).collect();
    let alike = neighbours.iter().all(|rank| all[*rank] == usable);
    let groups = if alike { machine.divide(neighbours.len()) } else { None };
    let place = neighbours.iter().position(|rank| *rank == world.rank()).unwrap_or_default();
    let mine = match groups {
        Some(groups) => {
            let group = &groups[place];
            RankPlace { name: group.name.clone(), cores: group.cores.iter().map(|core| core.cpu).collect() }
        }
        None => RankPlace {
            name: format!("{}-rank{}", hosts.names[host], world.rank()),
            cores: if alike { Vec::new() } else { usable },
        },
    };
    let places: Vec<RankPlace> = world.all_gather_values(&mine)?;
    let processor = |(rank, place): (usize, RankPlace)| Processor {
        cluster: hosts.names[hosts.of_rank[rank]].clone(),
        cores: place.cores,
        ..Processor::named(if hosts.names.len() == 1 { format!("rank{rank}") } else { place.name })
    };
    let processors = places.into_iter().enumerate().map(processor).collect();
    Ok(Some(Platform { name: "mpi".into(), processors, network: Network::free() }))
}

/// Processors of which only the names are known: cores or pools of this machine where it has all of these names
/// ([`Host::groups`]), and otherwise processors that are not pinned. Those of a world are on the cores of its ranks.
/// Every rank must call it.
///
/// # Errors
/// Names that are not as many as ranks, known to all; a lost rank.
pub fn processors_by_name(names: &[String], world: &World) -> Result<Platform> {
    if let Some(ranks) = world_platform(world)? {
        world.all_ok(check_world_size(world, names.len()))?;
        return Ok(on_cores_of(Platform::from_names(names), &ranks));
    }
    let machine = discover();
    let groupings = [Grouping::Core, Grouping::Kind, Grouping::Node, Grouping::Machine];
    let platforms = groupings.into_iter().map(|by| machine.platform(by));
    let known = |platform: &Platform| {
        let own = platform.names();
        names.iter().all(|name| own.contains(name))
    };
    let found = platforms.into_iter().find(known);
    Ok(found.map_or_else(|| Platform::from_names(names), |platform| platform.select(names)))
}

/// The processors with the cores and hosts of a world's ranks.
fn on_cores_of(mut platform: Platform, ranks: &Platform) -> Platform {
    for (processor, rank) in platform.processors.iter_mut().zip(&ranks.processors) {
        (processor.cores, processor.cluster) = (rank.cores.clone(), rank.cluster.clone());
    }
    platform
}

/// The cores of a rank, and the name of its processor among several hosts.
#[derive(Serialize, Deserialize)]
struct RankPlace {
    name: String,
    cores: Vec<usize>,
}

/// The platform in the order of a world's ranks. Where the clusters of all processors are hosts of the world, as
/// `detect` describes them, each rank gets a processor of its own host, in the order of the file; others stay as they
/// are. Every rank must call it, and one rank is there for each processor.
///
/// # Errors
/// The clusters of some processors are hosts of the world and those of others are not; a host has more or fewer ranks
/// than processors; `fixed`, the order of a plan, is not that of the ranks' hosts: exit
/// code 2.
pub fn in_rank_order(platform: Platform, fixed: bool, world: &World) -> Result<Platform> {
    if world.is_solo() {
        return Ok(platform);
    }
    let hosts = world.hosts()?;
    let Some(of_processor) = hosts_of_processors(&platform, &hosts)? else { return Ok(platform) };
    if of_processor == hosts.of_rank {
        return Ok(platform);
    }
    let count = |of: &[usize], host: usize| of.iter().filter(|one| **one == host).count();
    let needed = |hosts: &Hosts| {
        let slots = |(host, name): (usize, &String)| format!("{name}:{}", count(&of_processor, host));
        format!("--host {}", hosts.names.iter().enumerate().map(slots).collect::<Vec<_>>().join(","))
    };
    let place = || format!("platform \"{}\"", platform.name);
    for (host, name) in hosts.names.iter().enumerate() {
        let [ranks, processors] = [&hosts.of_rank, &of_processor].map(|of| count(of, host));
        if ranks != processors {
            let what =
                format!("{processors} of its processors and {ranks} of the world's ranks are on {name}");
            return Err(Error::input(place(), what, format!("start one rank for each: {}", needed(&hosts))));
        }
    }
    if fixed {
        let rank =
            (0..of_processor.len()).find(|rank| of_processor[*rank] != hosts.of_rank[*rank]).unwrap_or(0);
        let (name, here) = (&platform.processors[rank].name, &hosts.names[hosts.of_rank[rank]]);
        let what = format!("by the plan, processor \"{name}\" is rank {rank}, which is on {here}");
        return Err(Error::input(
            place(),
            what,
            "order the hosts of the launcher as the plan's processors are",
        ));
    }
    let mut left: Vec<Option<usize>> = (0..of_processor.len()).map(Some).collect();
    let names = hosts.of_rank.iter().map(|host| {
        let next = left.iter_mut().find(|one| one.is_some_and(|one| of_processor[one] == *host));
        let processor = next.and_then(Option::take).expect("each host has as many processors as ranks");
        platform.processors[processor].name.clone()
    });
    Ok(platform.select(&names.collect::<Vec<_>>()))
}

/// The index of each processor's host; `None` if no cluster is a host of the world: names then say nothing of hosts.
///
/// # Errors
/// Some are and others are not: the platform is that of another job, and its processors would run elsewhere.
fn hosts_of_processors(platform: &Platform, hosts: &Hosts) -> Result<Option<Vec<usize>>> {
    let host = |p: &Processor| hosts.names.iter().position(|host| host == p.outermost_cluster());
    let found: Vec<Option<usize>> = platform.processors.iter().map(host).collect();
    let Some(elsewhere) = found.iter().position(Option::is_none) else {
        return Ok(found.into_iter().collect());
    };
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    let processor = &platform.processors[elsewhere];
    let (name, host) = (&processor.name, processor.outermost_cluster());
    Err(Error::input(
        format!("platform \"{}\"", platform.name),
        format!("processor \"{name}\" is on {host}, and the ranks are on {}", hosts.names.join(", ")),
        "start the ranks on its hosts, or describe these: start `apportion detect -o FILE` as you start this",
    ))
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

/// Notes the processors whose cores are not there, or not all of them. Every rank must call it.
///
/// # Errors
/// A lost rank.
pub fn note_absent_cores(platform: &Platform, context: Context<'_>) -> Result<()> {
    let world = context.world;
    let here = &platform.processors[world.processors_here(platform.len())];
    let text = |processor: &Processor| {
        let what = absent_cores_of(processor)?;
        let none_is_left = absent_cores(&processor.cores).len() == processor.cores.len();
        let unpinned = if none_is_left { "; it runs unpinned" } else { "" };
        let fewer = match usable_threads(&processor.cores) {
            threads if threads == processor.cores.len() => String::new(),
            1 => ", on 1 thread".into(),
            threads => format!(", on {threads} threads"),
        };
        Some(format!("{}: {what}{unpinned}{fewer}", processor.name))
    };
    let here: Vec<String> = here.iter().filter_map(text).collect();
    let all = if world.is_solo() { vec![here] } else { world.all_gather_values(&here)? };
    all.iter().flatten().for_each(|note| context.note(note));
    Ok(())
}

/// Warns that models were measured with another kernel: they may still be the best available (f32 for f64,
/// say), so they are used.
pub fn warn_of_another_kernel(models: &Models, kernel: &str, context: Context<'_>) {
    if models.kernel != kernel {
        context.note(format!(
            "apportion: warning: the models are of \"{}\", but \"{kernel}\" will run: shares and forecast may be off \
             (measure --kernel {kernel})",
            harmless(&models.kernel)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A platform of two hosts, on a job of which one is another.
    #[test]
    fn a_platform_of_other_hosts_is_refused() {
        let mut platform =
            Platform::from_names(&["alpha-performance", "alpha-efficient", "beta"].map(String::from));
        platform.processors[0].cluster = "alpha/performance".into();
        platform.processors[1].cluster = "alpha/efficient".into();
        let found = |names: [&str; 2]| {
            let hosts = Hosts { names: names.map(String::from).to_vec(), of_rank: vec![0, 0, 1] };
            hosts_of_processors(&platform, &hosts)
        };
        assert_eq!(found(["beta", "alpha"]).unwrap(), Some(vec![1, 1, 0]));
        // Names that are no hosts: ranks take the processors in the order of the file.
        assert_eq!(found(["n1", "n2"]).unwrap(), None);
        let refused = found(["alpha", "gamma"]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        let line = refused.to_string();
        assert!(line.contains("\"beta\" is on beta") && line.contains("on alpha, gamma"), "{line}");
    }
}

//! The decisions before a product that the caller left open: processors, speeds, plan and order.

use crate::errors::refuse;
use crate::layouts::best;
use crate::machine::Machine;
use crate::product::Job;
use apportion::Result;
use apportion::kernels::Kernel;
use apportion::matrix::Element;
use apportion::measure::{Effort, KernelUpdate, measure_host_network, measure_quickly};
use apportion::model::{Model, Models, WorkUnit, only_ratios};
use apportion::plan::Plan;
use apportion::platform::{Network, Platform, discover};
use apportion::product::MatmulJob;
use apportion::run::{Monitor, World};
use apportion::schedule::ScheduleOptions;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Sizes of the quick measurement: elements of C.
const QUICK_SIZES: [f64; 4] = [4096.0, 65_536.0, 524_288.0, 2_097_152.0];

/// Speeds, plan and order of a run.
pub struct Settled {
    pub machine: Machine,
    pub plan: Plan,
    pub order: ScheduleOptions,
    /// True if the layout was made for ratios of speeds.
    pub ratios: bool,
}

impl Settled {
    pub fn job<T: Element>(&self, kernel: Kernel<T>, seed: u64) -> MatmulJob<'_, T> {
        MatmulJob::new(kernel, &self.plan, self.order, &self.machine.models, self.machine.block)
            .with_forecast(self.plan.forecast.clone())
            .with_seed(seed)
    }
}

/// The platform as the threads engine uses it: with its network only if that is to be emulated.
pub fn as_run(platform: &Platform) -> Platform {
    match platform.network.emulate {
        true => platform.clone(),
        false => Platform { network: Network::free(), ..platform.clone() },
    }
}

/// Makes the decisions that the caller left open.
pub fn settle<T: Element>(kernel: Kernel<T>, job: &Job, world: &World, monitor: &Monitor) -> Result<Settled> {
    let mut machine = world.all_ok(machine(kernel, job, (world, monitor)))?;
    let platform = match world.is_solo() {
        true => as_run(&machine.platform),
        false => {
            with_host_network(&mut machine.platform, world)?;
            machine.platform.clone()
        }
    };
    let options = job.order.options(&platform, size_of::<T>() as u64)?;
    let ratios = only_ratios(&machine.models);
    let (plan, order) = match &job.given {
        None => {
            let machine = Machine { platform, ..machine.clone() };
            let choice = best(job.shape, &machine, &options)?;
            (choice.plan, choice.order)
        }
        Some((plan, order, _)) => {
            let shape = plan.layout()?.shape();
            if shape != job.shape {
                let [of, is] = [shape, job.shape].map(|s| format!("{} x {} x {}", s.m, s.k, s.n));
                return Err(refuse(
                    "layout",
                    format!("is for a product of {of}, but this is {is}"),
                    "lay out this shape",
                ));
            }
            if plan.processors != machine.platform.names() {
                let what = "its processors are not those of this call, in the same order";
                return Err(refuse("layout", what, "pass the same speeds, or leave them out"));
            }
            let open =
                apportion::select::orders(options.flow, options.block, options.overlap, options.look_ahead);
            let order = match (&job.order.flow, order) {
                (None, Some(order)) => *order,
                _ => open[0],
            };
            (plan.clone(), order)
        }
    };
    Ok(Settled { machine, plan, order, ratios })
}

/// Processors and their speeds.
fn machine<T: Element>(
    kernel: Kernel<T>,
    job: &Job,
    (world, monitor): (&World, &Monitor),
) -> Result<Machine> {
    let machine = match (job.sources.known(WorkUnit::MultiplyAdd)?, &job.given) {
        (Some(machine), _) => machine,
        (None, Some((.., Some(machine)))) => machine.clone(),
        (None, given) => {
            let platform = match (job.sources.platform()?, given) {
                (Some(platform), _) => platform,
                (None, Some((plan, ..))) => Platform::from_names(&plan.processors),
                (None, None) if world.is_solo() => discover().platform(),
                (None, None) => {
                    Platform::from_names(&(0..world.size()).map(|i| format!("p{i}")).collect::<Vec<_>>())
                }
            };
            fits(world, &platform)?;
            undescribed(kernel, platform, job, (world, monitor))?
        }
    };
    fits(world, &machine.platform)?;
    Ok(machine)
}

/// Each rank of a world runs one processor.
fn fits(world: &World, platform: &Platform) -> Result<()> {
    if world.is_solo() || world.size() == platform.len() {
        return Ok(());
    }
    let what = format!("has {} processes, but there are {} processors", world.size(), platform.len());
    Err(refuse("comm", what, "describe one processor for each process"))
}

/// Gives a platform the network between its hosts, measured once in the life of this process.
fn with_host_network(platform: &mut Platform, world: &World) -> Result<()> {
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut key = None;
    measure_host_network(platform, world, |hosts| {
        key = Some(hosts.to_owned());
        known().get(hosts).cloned()
    })?;
    if let (Some(key), Some(found)) = (key, platform.network.hosts()) {
        known().insert(key, found.to_value().to_string());
    }
    Ok(())
}

/// Speeds of processors of which nothing is known: equal ratios if their cores are of one kind, otherwise
/// measured once in the life of this process.
fn undescribed<T: Element>(
    kernel: Kernel<T>,
    platform: Platform,
    job: &Job,
    (world, monitor): (&World, &Monitor),
) -> Result<Machine> {
    let pinned = platform.processors.iter().all(|p| p.cores.len() == 1);
    let clusters: Vec<&str> = platform.processors.iter().map(|p| p.cluster.as_str()).collect();
    let one_kind = pinned && clusters.iter().all(|cluster| *cluster == clusters[0]);
    if (one_kind || !world.is_solo()) && !(job.task.measure || job.task.remeasure) {
        let models =
            platform.names().into_iter().map(|name| Model::ratio(name, 1.0)).collect::<Result<_>>()?;
        return Ok(Machine { platform, models, block: 1 });
    }
    static KNOWN: Mutex<BTreeMap<String, Models>> = Mutex::new(BTreeMap::new());
    let block = job.order.block;
    let effort = Effort::worth(job.shape.flops() / 2.0);
    let key = format!("{} {block} {effort:?} {}", kernel.name(), platform.to_toml());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Ranks measure together, or none does.
    let found = known().get(&key).filter(|_| world.is_solo() && !job.task.remeasure).cloned();
    let models = match found {
        Some(models) => models,
        None => {
            let speeds = measure_quickly(
                &KernelUpdate { kernel, block },
                &platform,
                &QUICK_SIZES,
                effort,
                world,
                monitor,
            )?;
            let models = speeds.now()?;
            known().insert(key, models.clone());
            models
        }
    };
    Ok(Machine { models: models.in_order(&platform.names())?, block, platform })
}

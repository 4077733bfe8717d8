//! The processors of a factorisation and their speeds: given, remembered or measured.

use super::FactorTask;
use crate::parts::{fits_devices, measure_parts, measuring_bytes};
use apportion::error::Result;
use apportion::job::{
    Context, DevicePart, MeasuredSpeeds, measure_or_recall, measure_unknown_network, note_absent_cores,
    open_devices, warn_of_another_kernel,
};
use apportion::kernels::{Kernel, Real};
use apportion::model::Machine;
use apportion::platform::Platform;
use apportion::schedule::FactorTimes;
use apportion::select::Factorisation;
use std::sync::Arc;

/// Multiply-adds of work for which the parts of a factorisation are measured: a twentieth of a second on a fast core.
const WORTHWHILE: f64 = 5e8;

/// Processors with the speeds of the forecast.
pub(super) struct KnownMachine {
    pub machine: Machine,
    /// Ratios that the caller gives beside measured speeds: they decide the layout.
    pub ratios: Option<Machine>,
    /// The speeds, if they were measured or remembered.
    pub measured: Option<MeasuredSpeeds>,
    /// What panels and updates take, if the speeds were measured.
    pub times: Option<Arc<FactorTimes>>,
}

/// Finds the speeds of these processors for the products of a factorisation.
///
/// # Errors
/// Those of [`open_devices`]; models that lack a processor; those of a measurement; known to all ranks.
pub(super) fn find<T: Real>(
    task: &FactorTask,
    platform: Platform,
    kernel: Kernel<T>,
    problem: Factorisation,
    block: Option<u64>,
    context: Context<'_>,
) -> Result<KnownMachine> {
    let FactorTask { sources, remeasure, .. } = task;
    let remeasure = *remeasure;
    let world = context.world;
    let platform = measure_unknown_network(platform, remeasure, context)?;
    let platform = open_devices(platform, kernel, DevicePart::Whole, remeasure, context)?;
    note_absent_cores(&platform, context)?;
    if let Some(models) = &sources.models {
        warn_of_another_kernel(models, &kernel.name(), context);
    }
    if let Some(machine) = world.all_ok(sources.known_machine(&platform))? {
        return Ok(KnownMachine { machine, ratios: None, measured: None, times: None });
    }
    let ratios = world.all_ok(sources.ratios(&platform))?;
    let multiply_adds = problem.factors.multiply_adds(problem.n);
    let work = multiply_adds / problem.block as f64;
    let measured = measure_or_recall(kernel, &platform, problem.block, work, remeasure, context)?;
    // Several ranks measure at every start: one block must do.
    let block = block.or((!world.is_solo()).then_some(problem.block));
    let element = size_of::<T>() as u64;
    let bytes = measuring_bytes(platform.len(), element);
    let fits =
        task.slabs.memory.is_none_or(|memory| bytes <= memory) && fits_devices(&platform, block, element);
    let times = match multiply_adds >= WORTHWHILE && fits {
        true => {
            Some(measure_parts(problem.factors, block, kernel, &platform, &measured, remeasure, context)?)
        }
        false => None,
    };
    let models = measured.models().and_then(|models| models.in_order(&platform.names()));
    let machine = Machine::new(platform, world.all_ok(models)?, problem.block);
    let ratios = ratios.map(|given| machine.with_models(given));
    Ok(KnownMachine { machine, ratios, measured: Some(measured), times: times.map(Arc::new) })
}

//! From the flags of `simulate` to processors and their speeds.

use super::processors::{Processors, constant, in_plan_order};
use crate::args::SimulateArgs;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::model::read_models;
use apportion::plan::Plan;
use apportion::platform::{Processor, read_platform};

/// The platform's processors, in the order of the plan if there is one, with their speed functions.
pub fn processors(args: &SimulateArgs, plan: Option<&Plan>) -> Result<Processors> {
    let platform = read_platform(&args.platform)?;
    let platform = plan.map_or(Ok(platform.clone()), |plan| in_plan_order(plan, platform))?;
    let flops_per_unit = if plan.is_some_and(|p| p.layout().is_err()) { 1.0 } else { 2.0 };
    match &args.models {
        None => {
            let processors = constant(platform, flops_per_unit)?;
            let timed = |p: &Processor| p.speed.is_some() || p.emulated.is_some();
            if args.sweep.sweep.is_none() && !processors.platform.processors.iter().all(timed) {
                return Err(Error::input(
                    args.platform.display().to_string(),
                    "slowdowns give ratios of speeds, not times",
                    "add speeds to the file, or pass --models (created by `apportion measure`)",
                ));
            }
            Ok(processors)
        }
        Some(path) => {
            let models = read_models(path)?;
            let block = models.block().unwrap_or(1);
            let models = models.in_order(&platform.names())?;
            Ok(Processors { models, block, relative: false, sampled: false, platform })
        }
    }
}

/// The processor that a flag names.
pub fn rank_of(who: &str, names: &[String]) -> Result<Rank> {
    let number = || who.parse().ok().filter(|&i: &usize| i < names.len());
    names.iter().position(|n| n == who).or_else(number).map(Rank).ok_or_else(|| {
        let what = format!("there is no processor \"{who}\"");
        let shown: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
        let more = if names.len() > shown.len() { ", …" } else { "" };
        let list = format!("{}{more}", shown.join(", "));
        Error::input(
            "--explain",
            what,
            format!("choose one of {list}, or a number from 0 to {}", names.len().saturating_sub(1)),
        )
    })
}

/// Rejects flags that do not apply to units, which send no messages.
pub fn refuse_for_units(args: &SimulateArgs) -> Result<()> {
    let others = [
        ("--element", args.element.is_some()),
        ("--sharing", args.network.sharing.is_some()),
        ("--eager", args.network.eager.is_some()),
        ("--rate-tolerance", args.network.rate_tolerance.is_some()),
        ("--tcp", args.network.tcp.is_some()),
        ("--export-simgrid", args.export_simgrid.is_some()),
        ("--explain", args.explain.is_some()),
    ];
    match args.flow.given().into_iter().chain(others).find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(
            flag,
            "does not apply to a plan of units, which send no messages",
            "remove the flag, or use the plan of a matrix product",
        )),
    }
}

//! From the flags of `simulate` to processors and their speeds.

use crate::args::SimulateArgs;
use apportion::error::{Error, Result};
use apportion::job::Sources;
use apportion::model::{Machine, WorkUnit, read_models};
use apportion::plan::{Division, Plan};
use apportion::platform::{Speed, read_platform};
use apportion::select::check_has_times;

/// Checks that there is something to simulate.
///
/// # Errors
/// No plan, traces or shape; a shape without a sweep.
pub fn check(args: &SimulateArgs) -> Result<()> {
    let refuse = |place: &str, what: &str, remedy: &str| Err(Error::input(place, what, remedy));
    let given = args.plan.is_some() || args.traces.is_some() || args.grid.is_some() || args.kind.is_some();
    if args.sweep.methods.is_some() && args.sweep.sweep.is_none() && args.kind.is_none() {
        return refuse(
            "--methods",
            "are compared by sweeps and with --kind",
            "add one of them, or remove the flag",
        );
    }
    match (&args.sweep.sweep, given, &args.sweep.shape) {
        (None, false, Some(_)) => refuse(
            "--shape",
            "is laid out for sweeps and with --kind only",
            "add --sweep, or make a plan with `partition`",
        ),
        (None, false, None) => refuse(
            "simulate",
            "there is nothing to simulate",
            "pass --plan FILE, --grid MxNxL, --traces LIST, or --shape MxN with --sweep PARAMETER=FROM..TO or \
             --kind cholesky|lu|ldlt",
        ),
        (Some(_), false, None) => {
            refuse("--sweep", "there is nothing to lay out", "pass --shape MxN or --plan FILE")
        }
        _ => Ok(()),
    }
}

/// Whether an advection is simulated.
pub fn advects(args: &SimulateArgs, plan: Option<&Plan>) -> bool {
    args.grid.is_some() || plan.is_some_and(|plan| matches!(plan.division, Division::Grid(_)))
}

/// Rejects flags of products where an advection is simulated, and those of advections elsewhere.
pub fn refuse_of_others(args: &SimulateArgs, advects: bool) -> Result<()> {
    let (flags, what, remedy): (Vec<(&str, bool)>, _, _) = if advects {
        let flow = args.flow.flags().into_iter().filter(|(flag, _)| *flag != "--overlap");
        let simgrid = ("--export-simgrid", args.export_simgrid.is_some());
        (flow.chain([simgrid]).collect(), "does not apply to an advection", "remove the flag")
    } else {
        let scheme = args.scheme.flags().into_iter();
        let steps = ("--steps", args.steps.is_some());
        (scheme.chain([steps]).collect(), "applies to advections only", "add --grid, or remove the flag")
    };
    match flags.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(flag, what, remedy)),
    }
}

/// Rejects flags of the flow of a product for a factorisation, whose order is its own.
pub fn refuse_flow(args: &SimulateArgs) -> Result<()> {
    match args.flow.flags().into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(flag, "does not apply to a factorisation", "remove the flag")),
    }
}

/// The platform's processors, in the order of the plan if there is one, with their speed functions.
pub fn processors(args: &SimulateArgs, plan: Option<&Plan>) -> Result<Machine> {
    let sources = Sources {
        platform: Some(read_platform(&args.platform)?),
        models: args.models.as_deref().map(read_models).transpose()?,
        plan: plan.cloned(),
        ..Sources::default()
    };
    let units = plan.is_some_and(|p| p.rectangles().is_none());
    // A cell of a grid is a unit of work too.
    let product = !units && !advects(args, plan);
    let machine = sources.given_machine(if product { WorkUnit::MultiplyAdd } else { WorkUnit::Unit })?;
    if args.models.is_none() {
        refuse_ratios(args, &machine, units)?;
    }
    Ok(machine)
}

/// Rejects ratios of speeds where even communication has no time to forecast.
fn refuse_ratios(args: &SimulateArgs, processors: &Machine, units: bool) -> Result<()> {
    let refuse =
        |what: &str, remedy: &str| Err(Error::input(args.platform.display().to_string(), what, remedy));
    if !processors.only_ratios() {
        return Ok(());
    }
    if units {
        let in_flops =
            processors.platform.processors.iter().any(|p| matches!(p.speed, Some(Speed::Flops(_))));
        return refuse(
            if in_flops {
                "its speeds are in flop/s, which say nothing of units, and units send no messages: there is no \
                 time to forecast"
            } else {
                "its speeds are ratios, and units send no messages: there is no time to forecast"
            },
            "give speeds in units/s, or pass --models (created by `apportion measure`)",
        );
    }
    if args.export_simgrid.is_some() {
        return refuse(
            "its speeds are ratios, which SimGrid cannot replay",
            "give speeds in flop/s, or pass --models (created by `apportion measure`)",
        );
    }
    // A sweep may give the network its costs, and checks them itself.
    if args.sweep.sweep.is_some() {
        return Ok(());
    }
    check_has_times(&processors.models, &processors.platform.network)
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
    match args.flow.flags().into_iter().chain(others).find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Error::input(
            flag,
            "does not apply to a plan of units, which send no messages",
            "remove the flag, or use the plan of a matrix product",
        )),
    }
}

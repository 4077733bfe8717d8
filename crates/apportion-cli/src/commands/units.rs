//! `apportion partition --units`: shares of independent units.

use super::clusters::by_clusters;
use crate::args::UnitsArgs;
use crate::args::units::Objective;
use crate::console::{Console, monitor};
use crate::output::units::{Division, Extra};
use crate::prepare::processors::Processors;
use crate::prepare::units::check;
use apportion::error::{Error, Result};
use apportion::model::{Interpolation, Model};
use apportion::plan::shares::{Fall, LeftOver};
use apportion::plan::{Plan, shares};
use apportion::select::{forecast_units, imbalance, relative_times};
use apportion::units;

/// Divides `n` units according to the flags.
///
/// # Errors
/// Flags that exclude each other (exit code 2); limits or memory caps that cannot be met (exit code 1).
pub fn divide(
    n: u64,
    (method, left_over): (Option<&str>, Option<LeftOver>),
    args: &UnitsArgs,
    processors: &Processors,
    console: &Console,
) -> Result<Division> {
    if n > 1 << 53 {
        return Err(Error::input("--units", format!("{n} is more than 2^53"), "use a smaller number"));
    }
    let models = &processors.models;
    let limits = args.limits(models.len())?;
    let front = matches!(args.objective, Some(Objective::Energy | Objective::Both));
    let open = method.is_none() && left_over.is_none();
    let default = match (front, left_over) {
        (true, _) => "exact",
        (false, Some(_)) => "proportional",
        (false, None) => "fpm",
    };
    let method = method.unwrap_or(default);
    check(method, args, front, !limits.is_empty())?;
    if left_over.is_some() && method != "proportional" {
        let what = format!("cannot be used with --method {method}");
        return Err(Error::input("--left-over", what, "use --method proportional, or remove it"));
    }
    if left_over.is_some() && !limits.is_empty() {
        let what = "cannot be used with --min, --max or --multiple-of";
        return Err(Error::input("--left-over", what, "remove it, or the limits"));
    }
    if args.robust && processors.only_ratios() {
        return Err(Error::input(
            "--robust",
            "ratios of speeds have no bands",
            "pass --models with bands (low and high of points), or remove the flag",
        ));
    }
    let (name, shares, extra) = match method {
        "even" => (method, shares::even_among(models, n), Extra::None),
        "proportional" if left_over.is_some() => {
            (method, proportional(models, n, left_over.unwrap_or_default())?, Extra::None)
        }
        "proportional" | "largest-remainder" => {
            (method, shares::largest_remainder_within(models, n, &limits)?, Extra::None)
        }
        "fpm" if args.robust => {
            let found = shares::robust(models, n, &limits)?;
            let regret = shares::regret(models, &found.shares, &limits)?;
            let plain = shares::fpm_within(models, n, &limits)?;
            let plain_regret = shares::regret(models, &plain, &limits)?;
            ("robust", found.shares.clone(), Extra::Robust { found, regret, plain_regret })
        }
        "fpm" if args.hierarchical => {
            let (shares, clusters) = by_clusters(processors, n)?;
            ("hierarchical", shares, Extra::Clusters(clusters))
        }
        "fpm" if open => {
            let divided = shares::least_time(models, n, &limits)?;
            let reason = divided.fall.map(|fall| falling(models, fall));
            if let (Some(why), Some(reason)) = (&divided.unproven, &reason) {
                console.note(format!(
                    "apportion: warning: {reason}: the shares of fpm may not be the best, and exact cannot tell: \
                     {why}"
                ));
            }
            match (divided.exact, reason) {
                (true, Some(reason)) => ("exact", divided.shares, Extra::Exact(reason)),
                _ => (method, divided.shares, Extra::None),
            }
        }
        "fpm" => {
            if let Some(fall) = Fall::first_of(models, n) {
                let reason = falling(models, fall);
                console.note(format!(
                    "apportion: warning: {reason}, which fpm ignores (--method exact --any-size considers it)"
                ));
            }
            (method, shares::fpm_within(models, n, &limits)?, Extra::None)
        }
        "exact" if front => {
            let monitor = monitor();
            let mut progress = |done, total| {
                monitor.expect(total);
                monitor.advance(done);
            };
            let dividing = || shares::pareto_watched(models, n, &limits, &mut progress);
            let front = console.watch("dividing", monitor, dividing)?;
            let chosen = if args.objective == Some(Objective::Energy) { front.last() } else { front.first() };
            let shares = chosen.expect("a front has a fastest row").shares.clone();
            ("pareto", shares, Extra::Front(front))
        }
        "exact" if args.any_size || processors.sampled || models.iter().any(is_constant) => {
            (method, shares::exact_interpolated(models, n, &limits)?, Extra::None)
        }
        "exact" => (method, shares::exact_within(models, n, &limits)?, Extra::None),
        other => {
            return Err(Error::input(
                "--method",
                format!("unknown method \"{other}\" for --units"),
                "use even, proportional, largest-remainder, fpm or exact",
            ));
        }
    };
    Ok(Division { plan: plan(name, shares, processors)?, extra })
}

/// Where and how a model breaks the assumption of `fpm`, in words.
fn falling(models: &[Model], fall: Fall) -> String {
    let size = |x: f64| units::show_count(x as u128);
    format!(
        "time of {} falls between {} and {} units",
        models[fall.rank].processor(),
        size(fall.from),
        size(fall.to)
    )
}

fn is_constant(model: &Model) -> bool {
    model.interpolation() == Interpolation::Constant
}

/// The single-number model: each processor's speed at an equal share.
fn proportional(models: &[Model], n: u64, left_over: LeftOver) -> Result<Vec<u64>> {
    let size = (n as f64 / models.len() as f64).max(1.0);
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(size)).collect();
    if speeds.iter().all(|s| *s == 0.0) {
        return Err(Error::infeasible("no processor can hold an equal share", "use --method fpm"));
    }
    Ok(left_over.shares(n, &speeds))
}

fn plan(method: &str, shares: Vec<u64>, processors: &Processors) -> Result<Plan> {
    let models = &processors.models;
    let over = |(model, &share): (&Model, &u64)| model.seconds(share as f64).is_infinite();
    if let Some(i) = models.iter().zip(&shares).position(over) {
        let cap = models[i].max_size().map_or(0, |cap| cap as u64);
        return Err(Error::infeasible(
            format!(
                "{method} gives \"{}\" {} units, {} more than its max_size, {cap}",
                models[i].processor(),
                shares[i],
                shares[i] - cap
            ),
            "use --method fpm, which respects the caps",
        ));
    }
    let (forecast, relative_times) = (forecast_units(models, &shares), relative_times(models, &shares)?);
    let imbalance = imbalance(models, &shares)?;
    let bound = shares::ideal_seconds(models, shares.iter().sum())?;
    let plan = Plan::of_units(method, processors.platform.names(), shares, imbalance);
    let plan = Plan { forecast, relative_times, ..plan };
    Ok(plan.with_time_bound(Some(bound).filter(|bound| *bound > 0.0)))
}

//! From the flags of a sweep to the candidates that it compares.

use crate::args::SweepArgs;
use apportion::error::{Error, Result};
use apportion::explore::{Candidate, LayoutSource, Parameter};
use apportion::job::method_named;
use apportion::plan::Plan;
use apportion::plan::shapes::Method;
use apportion::schedule::ScheduleOptions;

/// The candidates: methods, each with all orders, or one layout with its orders.
///
/// # Errors
/// An unknown method, or a plan that cannot be laid out again.
pub fn candidates(
    args: &SweepArgs,
    plan: Option<&Plan>,
    orders: &[ScheduleOptions],
    parameter: Parameter,
) -> Result<Vec<Candidate>> {
    let by = |method: Method| (method.to_string(), LayoutSource::By(method));
    let mut ways = Vec::new();
    match (&args.methods, plan.and_then(|p| Some((p, p.layout().ok()?)))) {
        (Some(names), _) => {
            for name in names {
                match method_named("--methods", name)? {
                    Some(method) => ways.push(by(method)),
                    None => ways.extend(Method::candidates().map(by)),
                }
            }
        }
        (None, Some((plan, layout))) if parameter.is_of_the_network() => {
            ways.push((plan.method.clone(), LayoutSource::Given(Box::new(layout.clone()))));
        }
        (None, Some((plan, _))) => match plan.method.parse() {
            Ok(method) => ways.push(by(method)),
            Err(_) => {
                return Err(Error::input(
                    "--sweep",
                    format!(
                        "the plan's method \"{}\" cannot be used while the {parameter} varies",
                        plan.method
                    ),
                    "pass --methods",
                ));
            }
        },
        (None, None) => {
            ways.extend(Method::candidates().map(by));
            if parameter == Parameter::Processors {
                ways.push(("auto".into(), LayoutSource::Auto));
            }
        }
    }
    if let Some(names) = &args.levels {
        let methods = names.iter().map(|name| method_named("--levels", name)).collect::<Result<Vec<_>>>()?;
        ways.push((names.join("/"), LayoutSource::Levels(methods)));
    }
    ways.dedup_by(|a, b| a.0 == b.0);
    // With a single source of the layout, its flows compete.
    Ok(match &ways[..] {
        [(_, way)] => orders
            .iter()
            .map(|&order| Candidate { name: order.to_string(), way: way.clone(), orders: vec![order] })
            .collect(),
        _ => ways.into_iter().map(|(name, way)| Candidate { name, way, orders: orders.to_vec() }).collect(),
    })
}

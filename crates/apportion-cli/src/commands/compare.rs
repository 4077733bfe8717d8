//! `apportion partition --compare`: every method on one shape, one table.

use super::partition::PartitionArgs;
use super::partition::{minimise, plan_options};
use crate::output::compare::{Comparison, Cost, Row, relayed_volume};
use apportion::error::Result;
use apportion::model::Machine;
use apportion::plan::shapes::Method;
use apportion::plan::{Layout, LayoutConstraints, Metrics, Plan, message_steps};
use apportion::platform::Topology;
use apportion::select::{
    Minimise, PlanOptions, Sizing, affordable, areas, forecast, imbalance_of, plan_matmul,
};
use apportion::simulate::CostModel;
use apportion_report::gain_text;
use std::time::Instant;

/// Above this many processors message steps are left out.
const MOST_COUNTED: usize = 256;

/// Lays the plan's shape out by every method, with the areas that the plan was made for, or each with its own
/// shares of least forecast where auto sizes its candidates so; rows are sorted by the criterion.
pub fn compare(
    args: &PartitionArgs,
    plan: &Plan,
    line: Option<String>,
    processors: &Machine,
) -> Result<Comparison> {
    let shape = plan.layout()?.shape();
    let weights = areas(&processors.models, shape)?;
    let (terms, form) = (args.method_options(&processors.platform)?, args.constraints()?);
    let simulated = affordable(
        processors.platform.len(),
        shape,
        args.flow.options().pivot_block(shape.k)?,
        8 * Method::all().count(),
    );
    let network = &processors.platform.network;
    let options = plan_options(args, processors, shape)?;
    let timed = options.minimise == Minimise::Time && !processors.only_ratios();
    let sized = simulated && timed && !network.is_free() && options.sizing == Sizing::ByForecast;
    let by_plan = |method: Method| {
        let options = PlanOptions { method: Some(method), ..options.clone() };
        plan_matmul(shape, processors, &options).map(|mut choices| choices.swap_remove(0).plan)
    };
    let mut rows = Vec::new();
    for method in Method::all().filter(|&m| m != Method::ColumnGroups || terms.groups.is_some()) {
        let begin = Instant::now();
        let laid_out = match method {
            _ if sized => by_plan(method).and_then(|plan| {
                let seconds = plan.forecast.as_ref().map(|forecast| forecast.seconds);
                Ok((plan.layout()?.clone(), seconds))
            }),
            // Chosen among several, as `--method` alone does.
            _ if method.cuts_inner() && form == LayoutConstraints::default() => {
                by_plan(method).and_then(|plan| Ok((plan.layout()?.clone(), None)))
            }
            _ => form.layout(shape, |s| method.layout(s, &weights, &terms)).map(|layout| (layout, None)),
        };
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let outcome = match laid_out {
            Err(error) => Err(error.to_string()),
            Ok((layout, sized)) => {
                let seconds = match sized {
                    Some(seconds) => Some(seconds),
                    None if simulated => Some(seconds(args, &layout, processors)?),
                    None => None,
                };
                let (forecast, communication) =
                    if processors.only_ratios() { (None, seconds) } else { (seconds, None) };
                Ok(Box::new(Cost {
                    metrics: Metrics::of_layout(&layout, imbalance_of(&processors.models, &layout)?),
                    relayed: relayed_volume(&layout, network)?,
                    steps: (layout.processors() <= MOST_COUNTED && layout.boxes().is_none())
                        .then(|| message_steps(&layout)),
                    forecast,
                    communication: communication.filter(|_| !network.is_free()),
                    layout,
                }))
            }
        };
        rows.push(Row { method, outcome, milliseconds });
    }
    let star = matches!(network.topology, Topology::Star { .. });
    let baselines = plan.baselines.clone().filter(|_| simulated);
    let gain = baselines.as_ref().and_then(|_| gain_text(plan));
    let (chosen, minimise) = (plan.method.clone(), minimise(args));
    let comparison = Comparison { chosen, line, minimise, star, baselines, gain, rows };
    Ok(comparison.sorted(timed))
}

/// The forecast of a layout with the flow of the least; of communication alone where speeds are ratios.
fn seconds(args: &PartitionArgs, layout: &Layout, processors: &Machine) -> Result<f64> {
    let rates = processors.rates(&layout.sizes());
    let conditions = CostModel { rates: &rates, network: &processors.platform.network, element: 8 };
    let orders = args.flow.options().orders(layout.shape().k)?;
    let orders = orders.into_iter().filter(|order| order.check_layout(layout).is_ok());
    let all = orders.map(|order| forecast(layout, order, conditions).map(|f| f.seconds));
    Ok(all.collect::<Result<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min))
}

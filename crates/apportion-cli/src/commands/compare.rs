//! `apportion partition --compare`: every method on one shape, one table.

use crate::args::PartitionArgs;
use crate::output::compare::{Comparison, Cost, Row, relayed_volume};
use crate::prepare::partition::{minimise, wishes};
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::plan::shapes::Method;
use apportion::plan::{Layout, LayoutConstraints, Metrics, Plan, message_steps};
use apportion::platform::Topology;
use apportion::select::{PlanOptions, affordable, areas, forecast, imbalance_of, plan_matmul, rates};
use apportion::simulate::CostModel;
use std::time::Instant;

/// Above this many processors message steps are left out.
const MOST_COUNTED: usize = 256;

/// Lays the plan's shape out by every method, with the areas that the plan was made for; rows are sorted by
/// the criterion.
pub fn compare(
    args: &PartitionArgs,
    plan: &Plan,
    line: Option<String>,
    processors: &Processors,
) -> Result<Comparison> {
    let shape = plan.layout()?.shape();
    let weights = areas(&processors.models, shape)?;
    let (terms, form) = (args.terms(&processors.platform)?, args.form()?);
    let simulated =
        affordable(processors.platform.len(), shape, args.flow.pivot(shape.k)?, 8 * Method::all().count());
    let network = &processors.platform.network;
    let mut rows = Vec::new();
    for method in Method::all().filter(|&m| m != Method::ColumnGroups || terms.groups.is_some()) {
        let begin = Instant::now();
        let made = match method {
            // Chosen among several, as `--method` alone does.
            _ if method.cuts_inner() && form == LayoutConstraints::default() => {
                let wishes = PlanOptions { method: Some(method), ..wishes(args, processors, shape)? };
                let Processors { platform, models, block, .. } = processors;
                plan_matmul(shape, platform, models, *block, &wishes)
                    .and_then(|choices| choices[0].plan.layout().cloned())
            }
            _ => form.layout(shape, |s| method.layout(s, &weights, &terms)),
        };
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let outcome = match made {
            Err(error) => Err(error.to_string()),
            Ok(layout) => {
                let seconds = if simulated { Some(seconds(args, &layout, processors)?) } else { None };
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
    let comparison = Comparison { chosen: plan.method.clone(), line, minimise: minimise(args), star, rows };
    Ok(comparison.sorted())
}

/// The forecast of a layout with the flow of the least; of communication alone where speeds are ratios.
fn seconds(args: &PartitionArgs, layout: &Layout, processors: &Processors) -> Result<f64> {
    let rates = rates(&processors.models, &layout.sizes(), processors.block);
    let conditions = CostModel { rates: &rates, network: &processors.platform.network, element: 8 };
    let orders = args.flow.orders(layout.shape().k)?;
    let orders = orders.into_iter().filter(|order| order.check_layout(layout).is_ok());
    let all = orders.map(|order| forecast(layout, order, conditions).map(|f| f.seconds));
    Ok(all.collect::<Result<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min))
}

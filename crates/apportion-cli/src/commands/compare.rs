//! `apportion partition --compare`: every method on one shape, one table.

use crate::args::PartitionArgs;
use crate::output::compare::{Comparison, Cost, Row, relayed_volume};
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::plan::shapes::Method;
use apportion::plan::{Metrics, Plan, message_steps};
use apportion::platform::Topology;
use apportion::schedule::ScheduleOptions;
use apportion::select::{affordable, forecast, imbalance, rates};
use apportion::simulate::CostModel;
use std::time::Instant;

/// Above this many processors message steps are left out.
const MOST_COUNTED: usize = 256;

/// Lays the plan's shape out by every method, with the areas that the plan was made for.
pub fn compare(args: &PartitionArgs, plan: &Plan, processors: &Processors) -> Result<Comparison> {
    let layout = plan.layout()?;
    let shape = layout.shape();
    let areas = apportion::plan::shares::fpm(&processors.models, shape.elements())?;
    let weights: Vec<f64> = areas.iter().map(|&a| a as f64).collect();
    let (terms, form) = (args.terms(&processors.platform)?, args.form()?);
    let simulated =
        affordable(processors.platform.len(), shape, args.flow.pivot(shape.k)?, 8 * Method::all().count());
    let mut rows = Vec::new();
    for method in Method::all().filter(|&m| m != Method::ColumnGroups || terms.groups.is_some()) {
        let begin = Instant::now();
        let made = form.layout(shape, |s| method.layout(s, &weights, &terms));
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let outcome = match made {
            Err(error) => Err(error.to_string()),
            Ok(layout) => {
                let shares = layout.shares();
                let rates = rates(&processors.models, &shares, processors.block);
                let network = &processors.platform.network;
                let seconds = |order: ScheduleOptions| {
                    forecast(&layout, order, CostModel { rates: &rates, network, element: 8 })
                        .map(|f| f.seconds)
                };
                let best = || -> Result<f64> {
                    let orders = args.flow.orders(shape.k)?;
                    let all = orders.into_iter().map(seconds).collect::<Result<Vec<f64>>>()?;
                    Ok(all.into_iter().fold(f64::INFINITY, f64::min))
                };
                Ok(Cost {
                    metrics: Metrics::of_layout(&layout, imbalance(&processors.models, &shares)?),
                    relayed: relayed_volume(&layout, network)?,
                    steps: (layout.processors() <= MOST_COUNTED).then(|| message_steps(&layout)),
                    forecast: if simulated && !processors.only_ratios() { Some(best()?) } else { None },
                })
            }
        };
        rows.push(Row { method, outcome, milliseconds });
    }
    let star = matches!(processors.platform.network.topology, Topology::Star { .. });
    Ok(Comparison { chosen: plan.method.clone(), star, rows })
}

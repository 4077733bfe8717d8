//! A plan from a file.

use crate::args::RunningArgs;
use apportion::error::{Error, Result};
use apportion::model::Machine;
use apportion::plan::{Plan, Shape};
use apportion::select::{
    Choice, FittedOrder, MemoryPolicy, fit_order, forecast, in_order_of_preference, time_bound,
};
use apportion::simulate::CostModel;
use std::path::Path;

/// A plan from a file: only the flow is left to choose.
pub fn given(
    plan: &Plan,
    shape: Shape,
    args: &RunningArgs,
    machine: &Machine,
    (element, fit): (u64, MemoryPolicy),
) -> Result<Vec<Choice>> {
    let fitting = plan.layout().ok().filter(|layout| layout.shape() == shape);
    let Some(layout) = fitting else {
        let path = args.plan.as_deref().unwrap_or(Path::new("--plan"));
        let what =
            format!("is not a plan of {} x {} x {}, the sizes of the matrices", shape.m, shape.k, shape.n);
        return Err(Error::input(
            path.display().to_string(),
            what,
            "make one with `apportion partition --shape MxKxN`",
        ));
    };
    let rates = machine.rates(&plan.sizes());
    let conditions = CostModel { rates: &rates, network: &machine.platform.network, element };
    let bound = time_bound(shape, machine, element)?;
    let mut choices = Vec::new();
    let mut refusal = Ok(());
    for order in args.flow.orders(shape.k)? {
        match fit_order(layout, order, &machine.platform, element, fit) {
            Ok(FittedOrder { order, overrun }) => {
                let predicted = forecast(layout, order, conditions)?;
                let rank = Some(predicted.seconds);
                let plan = Plan { forecast: Some(predicted), ..plan.clone() }.with_time_bound(bound);
                choices.push(Choice { rank, memory_overrun: overrun, ..Choice::new(plan, order) });
            }
            Err(error) => refusal = refusal.and(Err(error)),
        }
    }
    if choices.is_empty() {
        refusal?;
    }
    Ok(in_order_of_preference(choices))
}

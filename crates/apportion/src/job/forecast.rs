//! Forecasts of a product whose layout is given: its orders of steps against a clock.

use super::FlowOptions;
use crate::error::{Error, Result};
use crate::model::Machine;
use crate::plan::Layout;
use crate::run::Monitor;
use crate::schedule::{DataPath, MatmulSchedule, ScheduleOptions};
use crate::select::{
    Cost, FittedOrder, MemoryOverrun, WORTHWHILE, check_has_times, fit_order, preferred, try_pivot_blocks,
};
use crate::simulate::CostModel;

/// What is forecast: the product of a layout on a machine.
#[derive(Debug, Clone, Copy)]
pub struct ForecastTask<'a> {
    /// Who computes what.
    pub layout: &'a Layout,
    /// The layout's processors, in its order.
    pub machine: &'a Machine,
    /// What is asked of the flow.
    pub flow: &'a FlowOptions,
    /// Bytes of an element.
    pub element: u64,
}

/// The fastest order of steps with its forecast.
#[derive(Debug, Clone)]
pub struct OrderForecast<F> {
    /// The order.
    pub order: ScheduleOptions,
    /// What the simulation of it found.
    pub forecast: F,
    /// The processor whose memory made the pivot blocks smaller than requested, if one did.
    pub overrun: Option<MemoryOverrun>,
}

/// Finds the order of steps with the least forecast time, and, unless one is given, the pivot block. Blocks become
/// smaller where a processor's memory requires it, as in a run. `simulate` simulates the schedule of an order, and `seconds` are those of what it
/// found; only the best is kept, since traces of many processors are large.
///
/// # Errors
/// Neither the speeds nor the network have times; options that the flow does not have; no order fits; errors of
/// `simulate`; [`Error::Interrupted`].
pub fn find_fastest_order<F>(
    task: ForecastTask<'_>,
    monitor: &Monitor,
    simulate: impl Fn(&MatmulSchedule, CostModel<'_>) -> Result<F>,
    seconds: impl Fn(&F) -> f64,
) -> Result<OrderForecast<F>> {
    let ForecastTask { layout, machine, flow, element } = task;
    let machine = machine.with_device_tiles(element)?;
    let network = &machine.platform.network;
    check_has_times(&machine.models, network)?;
    let rates = layout.rates(&machine.models, machine.block);
    let costs = CostModel { rates: &rates, network, element };
    let policy = flow.memory_policy(DataPath::Copied);
    let forecast = |order: ScheduleOptions| {
        let FittedOrder { order, overrun } = fit_order(layout, order, &machine.platform, element, policy)?;
        let schedule = MatmulSchedule::new(layout, order);
        schedule.check_size()?;
        Ok(OrderForecast { order, forecast: simulate(&schedule, costs)?, overrun })
    };
    let mut fastest: Option<OrderForecast<F>> = None;
    let mut refusal = None;
    for order in flow.orders(layout.shape().k)? {
        if monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        let found = match forecast(order) {
            Ok(found) => found,
            // Another flow may have fewer steps, or take less memory.
            Err(error @ (Error::Infeasible { .. } | Error::TooLittleMemory { .. })) => {
                refusal = refusal.or(Some(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        let cost = |found: &OrderForecast<F>| Some(Cost { value: seconds(&found.forecast), volume: 0 });
        let better = |best: &OrderForecast<F>| preferred(&[cost(best), cost(&found)], 0.0) == Some(1);
        if fastest.as_ref().is_none_or(better) {
            fastest = Some(found);
        }
    }
    let mut fastest = fastest.ok_or_else(|| refusal.expect("there is at least one order"))?;
    if flow.has_block() || layout.is_triangular() {
        return Ok(fastest);
    }
    let (mut least, limit) = (seconds(&fastest.forecast), seconds(&fastest.forecast) * (1.0 - WORTHWHILE));
    try_pivot_blocks(layout.shape().k, &machine, fastest.order, |order| {
        if monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        let found = match forecast(order) {
            Err(Error::Infeasible { .. } | Error::TooLittleMemory { .. }) => return Ok(false),
            found => found?,
        };
        let better = seconds(&found.forecast) < least;
        if better {
            least = seconds(&found.forecast);
        }
        if better && least < limit {
            fastest = found;
        }
        Ok(better)
    })?;
    Ok(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{RunOptions, lay_out_product};
    use crate::model::WorkUnit;
    use crate::plan::Shape;
    use crate::platform::parse_platform;
    use crate::schedule::Flow;
    use crate::simulate::forecast;

    fn fastest(network: &str, flow: FlowOptions) -> Result<OrderForecast<crate::plan::Forecast>> {
        let text = format!(
            "[[processor]]\nname = \"a\"\nspeed = 3\n[[processor]]\nname = \"b\"\nspeed = 1\n{network}"
        );
        let machine = Machine::from_platform(parse_platform(&text, "test")?, WorkUnit::MultiplyAdd)?;
        let shape = Shape::new(60, 600, 50, "test")?;
        let plan = lay_out_product(shape, 8, &RunOptions::default(), &machine)?.plan;
        let task = ForecastTask { layout: plan.layout()?, machine: &machine, flow: &flow, element: 8 };
        find_fastest_order(task, &Monitor::new(), forecast, |found| found.seconds)
    }

    #[test]
    fn the_fastest_flow_is_found_unless_one_is_named() {
        let network = "[network]\nlatency = \"1 ms\"\nbandwidth = \"1 GB/s\"\n";
        let open = fastest(network, FlowOptions::default()).unwrap();
        for flow in [Flow::OneToAll, Flow::Ring, Flow::Bulk] {
            let one = fastest(network, FlowOptions { flow: Some(flow), ..FlowOptions::default() }).unwrap();
            assert_eq!(one.order.flow, flow);
            assert!(open.forecast.seconds <= one.forecast.seconds * (1.0 + 1e-9), "{flow}");
        }
    }

    #[test]
    fn ratios_on_a_free_network_have_no_forecast() {
        let error = fastest("", FlowOptions::default()).unwrap_err();
        assert!(error.to_string().contains("nothing to forecast"), "{error}");
    }
}

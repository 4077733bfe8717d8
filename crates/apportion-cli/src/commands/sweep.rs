//! `apportion simulate --sweep`: forecasts along one parameter of the machine, and the winner at each value.

use crate::args::{LogName, SweepArgs};
use crate::console::{Console, monitor};
use crate::output::sweep::Table;
use crate::output::{appear, is_csv, open};
use crate::prepare::shape;
use crate::prepare::sharing::Rule;
use apportion::error::{Error, Result};
use apportion::explore::{SweepQuestion, SweepSetup, sweep, sweep_candidates};
use apportion::job::FlowOptions;
use apportion::model::Machine;
use apportion::plan::{Plan, Problem};
use apportion::units::show_count;

/// Sweeps, writes and prints.
pub fn run(
    args: &SweepArgs,
    (plan, processors): (Option<&Plan>, &Machine),
    (flow, element, rule): (&FlowOptions, u64, &Rule),
    console: &Console,
) -> Result<()> {
    let mut wanted = args.sweep.expect("the caller saw --sweep");
    wanted.points = args.sweep_points.map(|n| n as usize);
    wanted.margin = args.margin.unwrap_or(0.0);
    let csv = args.output.as_deref().map(is_csv).transpose()?;
    let files = [open(args.output.as_ref())?, open(args.svg.as_ref())?];
    let shape = match (&args.shape, plan.map(Plan::problem)) {
        (Some(text), _) => shape(text, "--shape")?,
        (None, Some(Problem::Matmul(shape))) => shape,
        _ => {
            return Err(Error::input(
                "--sweep",
                "a plan of units has no methods or flows to compare",
                "pass --shape or the plan of a matrix product",
            ));
        }
    };
    let candidates = sweep_candidates(SweepQuestion {
        parameter: wanted.parameter,
        methods: args.methods.as_deref(),
        levels: args.levels.as_deref(),
        plan,
        orders: &flow.orders(shape.k)?,
    })?;
    let setting = SweepSetup {
        shape,
        machine: processors,
        element,
        sharing: match rule {
            Rule::Fifo => None,
            Rule::Fluid(rules) => Some(rules),
        },
    };
    let monitor = monitor();
    let swept = console.watch("sweeping", monitor, || sweep(&setting, &candidates, &wanted, monitor))?;
    let [m, k, n] = [shape.m, shape.k, shape.n].map(|x| show_count(u128::from(x)));
    let subject = format!("C of {m} x {n}, k = {k}, on {}", processors.platform.name);
    let alone = processors.only_ratios();
    let table = Table { wanted, candidates: &candidates, swept: &swept, rule, alone, subject };
    let [output, svg] = files;
    let listed = || if csv == Some(true) { table.csv() } else { format!("{:#}\n", table.value()) };
    appear([(output, &listed), (svg, &|| table.picture(args.log.unwrap_or(LogName::Auto)))])?;
    console.result(|| table.value(), || table.text());
    Ok(())
}

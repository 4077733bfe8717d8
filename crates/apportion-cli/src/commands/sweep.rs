//! `apportion simulate --sweep`: forecasts along one parameter of the machine, and the winner at each value.

use super::layouts;
use crate::args::{LogName, SimulateArgs};
use crate::console::{Console, monitor};
use crate::output::sweep::Table;
use crate::output::{appear, is_csv, open};
use crate::prepare::shape;
use crate::prepare::sharing::Rule;
use apportion::error::{Error, Result};
use apportion::explore::{SweepQuestion, sweep, sweep_candidates};
use apportion::model::Machine;
use apportion::plan::{Plan, Problem};
use apportion::units::show_count;

/// Sweeps, writes and prints.
pub fn run(
    args: &SimulateArgs,
    plan: Option<&Plan>,
    processors: &Machine,
    rule: &Rule,
    console: &Console,
) -> Result<()> {
    let flags = &args.sweep;
    let mut wanted = flags.sweep.expect("the caller saw --sweep");
    wanted.points = flags.sweep_points.map(|n| n as usize);
    wanted.margin = flags.margin.unwrap_or(0.0);
    let csv = flags.output.as_deref().map(is_csv).transpose()?;
    let files = [open(flags.output.as_ref())?, open(flags.svg.as_ref())?];
    let shape = match (&flags.shape, plan.map(Plan::problem)) {
        _ if args.kind.is_some() => layouts::matrix(flags.shape.as_deref())?,
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
    let candidates = match args.kind {
        Some(kind) => layouts::candidates(args, kind, shape, processors)?,
        None => sweep_candidates(SweepQuestion {
            parameter: wanted.parameter,
            methods: flags.methods.as_deref(),
            levels: flags.levels.as_deref(),
            plan,
            orders: &args.flow.options().orders(shape.k)?,
            open_block: !args.flow.options().has_block(),
        })?,
    };
    let setting = layouts::setup(shape, processors, args.element(), rule);
    let monitor = monitor();
    let swept = console.watch("sweeping", monitor, || sweep(&setting, &candidates, &wanted, monitor))?;
    let [m, k, n] = [shape.m, shape.k, shape.n].map(|x| show_count(u128::from(x)));
    let platform = &processors.platform.name;
    let subject = match args.kind {
        Some(kind) => format!("{} of {n} x {n} on {platform}", kind.factors()),
        None => format!("C of {m} x {n}, k = {k}, on {platform}"),
    };
    let alone = processors.only_ratios();
    let table = Table { wanted, candidates: &candidates, swept: &swept, rule, alone, subject };
    let [output, svg] = files;
    let listed = || if csv == Some(true) { table.csv() } else { format!("{:#}\n", table.value()) };
    appear([(output, &listed), (svg, &|| table.picture(flags.log.unwrap_or(LogName::Auto)))])?;
    console.result(|| table.value(), || table.text());
    Ok(())
}

//! `apportion simulate --sweep`: forecasts along one parameter of the machine, and the winner at each value.

use super::layouts;
use super::simulate::SimulateArgs;
use crate::args::LogName;
use crate::args::numbers::{self, within};
use crate::args::pictures;
use crate::args::sharing::Rule;
use crate::console::{Console, monitor};
use crate::output::sweep::Table;
use crate::output::{appear, is_csv, open};
use crate::prepare::shape;
use apportion::error::{Error, Result};
use apportion::explore::{ParameterSweep, SweepQuestion, sweep, sweep_candidates};
use apportion::model::Machine;
use apportion::plan::{Plan, Problem};
use apportion::units::show_count;
use clap::Args;
use std::path::PathBuf;

// clap does not enforce `requires` where the required flag conflicts with a given one, hence the conflicts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Parameter sweep")]
pub struct SweepArgs {
    /// Vary a parameter and find where another method or flow wins:
    /// bandwidth=100Mbit/s..10Gbit/s (of the slowest link; the others keep their ratio to it),
    /// latency=1us..1ms (of the longest), ratio=1..25 (speed of the first processor relative to the others'
    /// average; the sum of the speeds stays), processors=2..64 (the platform's, repeated from the first).
    #[arg(long, value_name = "PARAMETER=FROM..TO",
        conflicts_with_all = ["trace", "explain", "export_simgrid"])]
    pub sweep: Option<ParameterSweep>,
    /// Number of values in a geometric progression [default: every whole ratio or number of processors if
    /// there are at most 25, else 13].
    #[arg(long, value_name = "N", requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"],
        value_parser = within(2..=1000), help_heading = "For experts")]
    pub sweep_points: Option<u64>,
    /// Instead of a plan, sizes of a product, MxN (k = n) or MxKxN, laid out again for each value; with --kind,
    /// of a matrix, NxN.
    #[arg(long, value_name = "MxN|MxKxN", conflicts_with_all = ["plan", "traces", "trace", "grid",
        "explain", "export_simgrid"])]
    pub shape: Option<String>,
    /// Fraction by which a candidate must be faster to win over one that moves less data, such as 1%
    /// [default: 0].
    #[arg(long, value_name = "PERCENT", requires = "sweep", value_parser = margin,
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub margin: Option<f64>,
    /// Methods to compare, each with its fastest flow; with a single method, its flows [default: the plan's
    /// own layout, or all methods that auto compares; with processors also auto itself, which leaves out
    /// those that are not worth their messages; with --kind all its layouts].
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',',
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub methods: Option<Vec<String>>,
    /// Methods for the levels of the platform's clusters, from the top, as one more candidate; auto at a
    /// level is the best method there.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub levels: Option<Vec<String>>,
    /// Write the table to this file (.csv or .json).
    #[arg(long, short, value_name = "FILE", requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"])]
    pub output: Option<PathBuf>,
    /// Draw the forecasts as curves.
    #[arg(long, value_name = "FILE", value_parser = pictures::picture, requires = "sweep",
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"])]
    pub svg: Option<PathBuf>,
    /// Logarithmic axes of the picture: auto (where values have a wide range), x, y, xy or none [default:
    /// auto].
    #[arg(long, value_name = "AXES", value_enum, requires = "sweep", hide_possible_values = true,
        conflicts_with_all = ["traces", "trace", "explain", "export_simgrid"], help_heading = "For experts")]
    pub log: Option<LogName>,
}

/// A percentage, or a fraction, from 0 to 1.
fn margin(text: &str) -> std::result::Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (text, 1.0),
    };
    let fraction = numbers::number(number).ok().map(|x| x * scale).filter(|x| (0.0..=1.0).contains(x));
    fraction.ok_or_else(|| format!("\"{text}\" is not a percentage from 0% to 100%"))
}

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

//! Factorisations by block columns without a matrix: `simulate --kind` and `partition --kind`.

use super::partition::PartitionArgs;
use super::simulate::SimulateArgs;
use super::simulate::{processors, refuse_of_others};
use crate::args::FactorKind;
use crate::args::sharing::Rule;
use crate::console::{Console, monitor};
use crate::output::layouts::{Comparison, LayoutForecast};
use crate::output::plan::text;
use crate::output::results::add_models;
use crate::output::{appear, open, picture};
use crate::prepare::shape;
use apportion::error::{Error, Result};
use apportion::explore::{Candidate, CandidateForecast, SweepSetup, factor_candidates, forecast_candidates};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::{Factors, Plan, Shape};
use apportion::select::{FactorOptions, candidate_blocks, plan_factorisation};

/// The most block columns whose steps are forecast.
const MOST_COLUMNS: u64 = 100_000;

/// Forecasts every layout on the platform of the flags, and prints them side by side.
pub fn run(args: &SimulateArgs, kind: FactorKind, console: &Console) -> Result<()> {
    refuse_of_others(args, false)?;
    let rule = args.network.rule(false)?;
    let processors = processors(args, None)?;
    let shape = matrix(args.sweep.shape.as_deref())?;
    let candidates = candidates(args, kind, shape, &processors)?;
    let setup = setup(shape, &processors, args.element(), &rule);
    let monitor = monitor();
    monitor.begin(0);
    let forecasts =
        console.watch("simulating", monitor, || forecast_candidates(&setup, &candidates, monitor))?;
    let row = |(candidate, forecast): (&Candidate, &Option<CandidateForecast>)| {
        let CandidateForecast { seconds, block, volume, .. } = (*forecast)?;
        Some(LayoutForecast { method: candidate.name.clone(), block, seconds, volume })
    };
    let factors = kind.factors();
    let comparison = Comparison {
        factors,
        n: shape.n,
        platform: processors.platform.name.clone(),
        rows: candidates.iter().zip(&forecasts).filter_map(row).collect(),
        ideal: (!processors.only_ratios()).then(|| ideal_seconds(factors, shape.n, &processors)),
        rule,
    };
    console.result(|| comparison.value(), || comparison.text());
    Ok(())
}

/// Seconds of all multiply-adds at the sum of the speeds.
fn ideal_seconds(factors: Factors, n: u64, machine: &Machine) -> f64 {
    let equal = (n as f64 * n as f64 / machine.processors() as f64).ceil() as u64;
    let rates = machine.rates(&vec![equal; machine.processors()]);
    factors.multiply_adds(n) / rates.iter().sum::<f64>()
}

/// The layouts that `simulate --kind` compares.
///
/// # Errors
/// An unknown layout.
pub fn candidates(
    args: &SimulateArgs,
    kind: FactorKind,
    shape: Shape,
    machine: &Machine,
) -> Result<Vec<Candidate>> {
    let blocks = blocks(args.flow.block, shape.n, machine.processors())?;
    factor_candidates(kind.factors(), args.sweep.methods.as_deref(), &blocks)
}

/// What they share.
pub fn setup<'a>(shape: Shape, machine: &'a Machine, element: u64, rule: &'a Rule) -> SweepSetup<'a> {
    let sharing = match rule {
        Rule::Fifo => None,
        Rule::Fluid(rules) => Some(rules),
    };
    SweepSetup { shape, machine, element, sharing }
}

/// The sizes of a square matrix, from `--shape`.
///
/// # Errors
/// Another shape.
pub fn matrix(text: Option<&str>) -> Result<Shape> {
    let shape = shape(text.unwrap_or_default(), "--shape")?;
    if shape.m == shape.n && shape.k == shape.n {
        return Ok(shape);
    }
    let what =
        format!("\"{}\" is not square, and only square matrices are factored", text.unwrap_or_default());
    Err(Error::input("--shape", what, "pass NxN, such as 20000x20000"))
}

/// Columns of a block among which the forecast chooses.
///
/// # Errors
/// There are more block columns than a plan can name.
fn blocks(given: Option<u64>, n: u64, processors: usize) -> Result<Vec<u64>> {
    let blocks = given.map_or_else(|| candidate_blocks(n, processors), |block| vec![block.min(n)]);
    match blocks.iter().map(|block| n.div_ceil(*block)).max() {
        Some(count) if count > MOST_COLUMNS => {
            let what = format!("is too small: {n} columns make {count} blocks, more than {MOST_COLUMNS}");
            Err(Error::input("--block", what, "pass larger blocks"))
        }
        _ => Ok(blocks),
    }
}

/// Makes the plan of a factorisation, and writes and prints it.
pub fn partition(args: &PartitionArgs, kind: FactorKind, console: &Console) -> Result<()> {
    let (svg, output) = (open(args.svg.as_ref())?, open(args.output.as_ref())?);
    let machine = args.sources.machine(WorkUnit::MultiplyAdd)?;
    let Shape { n, .. } = matrix(args.shape.as_deref())?;
    let layout = match args.method.as_deref() {
        None | Some("auto") => None,
        Some(name) => Some(name.parse()?),
    };
    let blocks = blocks(args.flow.block, n, machine.processors())?;
    let options = FactorOptions { layout, ..FactorOptions::new(&blocks, 8) };
    monitor().begin(0);
    let plan = || plan_factorisation(kind.factors(), n, &machine, options);
    let plans = console.watch("planning", monitor(), plan)?;
    let best = &plans[0];
    let value = || {
        let mut value = best.to_value();
        add_models(&mut value, &machine, Some("multiply-adds"));
        value
    };
    appear([(svg, &|| picture(best, &machine.platform)), (output, &|| format!("{:#}\n", value()))])?;
    let export = args.export.apply(best, &machine.platform, console)?;
    console.result(
        || {
            let mut value = value();
            if let Some(export) = &export {
                value["export"] = export.value.clone();
            }
            value
        },
        || match export.as_ref().and_then(|export| export.text.as_ref()) {
            Some(exported) => exported.clone(),
            None => {
                let block = best.blocks().map_or(0, |(_, columns)| columns.block());
                let more = vec![
                    ("factors", kind.factors().to_string()),
                    ("block", format!("{block} columns")),
                    ("against", against(&plans[1..])),
                ];
                let more = more.into_iter().filter(|(_, text)| !text.is_empty()).collect();
                text(best, best.method.clone(), &[], None, more, &machine.platform.network)
            }
        },
    );
    Ok(())
}

/// The other layouts and their forecasts.
fn against(plans: &[Plan]) -> String {
    let one = |plan: &Plan| {
        let seconds = plan.forecast.as_ref()?.seconds;
        Some(format!("{} {}", plan.method, apportion::units::show_seconds(seconds)))
    };
    plans.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

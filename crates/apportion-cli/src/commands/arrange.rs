//! `apportion arrange`.

use crate::args::ArrangeArgs;
use crate::args::arrange::OrderFormat;
use crate::console::Console;
use crate::output::{appear, distinct, open, picture};
use crate::prepare::processors::in_plan_order;
use crate::prepare::shape;
use apportion::error::{Error, Result};
use apportion::output::OutputFile;
use apportion::plan::arrange::{
    Arranged, Cost, Objective, arrange, arrange_grid, machinefile, places_in_order, rankfile, slurm_hostfile,
};
use apportion::plan::{Plan, read_plan};
use apportion::platform::{Platform, read_platform};
use apportion::report::pairs;
use apportion::units;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub fn run(args: &ArrangeArgs, console: &Console) -> Result<()> {
    args.check()?;
    let outputs = [&args.export_to, &args.svg, &args.output];
    let named = ["--export-to", "--svg", "-o"].into_iter().zip(outputs.map(Option::as_ref));
    distinct(&named.collect::<Vec<_>>(), &[Some(&args.platform)])?;
    let [order, svg, output] = outputs.map(|path| open(path.as_ref()));
    let outputs = [order?, svg?, output?];
    let (arranged, platform, milliseconds) = match (&args.grid, &args.plan) {
        (Some(domain), _) => of_grid(args, domain)?,
        (None, Some(plan)) => of_plan(args, plan)?,
        (None, None) => unreachable!("clap requires one of them"),
    };
    let (_, name) = args.objective();
    write_files(args, outputs, &arranged.plan, &platform)?;
    let (before, after) = (arranged.cost_before, arranged.cost_after);
    console.result(
        || {
            json!({"objective": name, "cost_before": value(before), "cost_after": value(after),
                   "evaluations": arranged.evaluations, "milliseconds": milliseconds})
        },
        || {
            let saved = if before.total > 0.0 { 100.0 * (1.0 - after.total / before.total) } else { 0.0 };
            pairs(&[
                ("objective", name.to_owned()),
                ("before", shown(before)),
                ("after", format!("{} ({saved:.1} % less)", shown(after))),
                ("evaluations", units::show_count(u128::from(arranged.evaluations))),
                ("time", units::show_seconds(milliseconds / 1e3)),
            ])
        },
    );
    Ok(())
}

/// The plan on its platform, rearranged, and the time in milliseconds.
fn of_plan(args: &ArrangeArgs, path: &Path) -> Result<(Arranged, Platform, f64)> {
    let plan = read_plan(path)?;
    if plan.layout().is_err() {
        return Err(Error::input(
            path.display().to_string(),
            "is a plan of units, which has no layout",
            "create one with `apportion partition --shape`",
        ));
    }
    let platform = in_plan_order(&plan, read_platform(&args.platform)?)?;
    // Mapped one to one if the plan's names are not the platform's.
    let plan = Plan { processors: platform.names(), ..plan };
    let begin = Instant::now();
    let arranged = arrange(&plan, &platform, args.objective().0, args.search(), args.seed.unwrap_or(1))?;
    Ok((arranged, platform, begin.elapsed().as_secs_f64() * 1e3))
}

/// A grid of equal parts, and the time in milliseconds.
fn of_grid(args: &ArrangeArgs, domain: &str) -> Result<(Arranged, Platform, f64)> {
    let shape = shape(domain, "--grid")?;
    let (Objective::Asymmetric(edges), _) = args.objective() else {
        return Err(Error::input(
            "--objective",
            "cannot be used with --grid, which minimises its halo exchange",
            "use asymmetric, or remove the flag",
        ));
    };
    let platform = read_platform(&args.platform)?;
    let begin = Instant::now();
    let arranged = arrange_grid(shape, &platform, edges, args.search(), args.seed.unwrap_or(1))?;
    Ok((arranged, platform, begin.elapsed().as_secs_f64() * 1e3))
}

fn write_files(
    args: &ArrangeArgs,
    [order, svg, output]: [Option<OutputFile>; 3],
    plan: &Plan,
    platform: &Platform,
) -> Result<()> {
    let places = plan.layout().map(places_in_order).unwrap_or_default();
    let launch = || match args.export {
        Some(OrderFormat::Rankfile) | None => rankfile(&places, platform),
        Some(OrderFormat::Machinefile) => machinefile(&places, platform),
        Some(OrderFormat::Slurm) => slurm_hostfile(&places, platform),
    };
    appear([(order, &launch), (svg, &|| picture(plan, platform)), (output, &|| plan.to_json())])
}

fn value(cost: Cost) -> Value {
    json!({"a": cost.a, "b": cost.b, "total": cost.total})
}

fn shown(cost: Cost) -> String {
    format!("{:.6} (A {:.6}, B {:.6})", cost.total, cost.a, cost.b)
}

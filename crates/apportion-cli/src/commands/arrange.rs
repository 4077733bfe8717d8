//! `apportion arrange`.

use crate::args::ArrangeArgs;
use crate::args::arrange::OrderFormat;
use crate::console::{Console, monitor};
use crate::output::{appear, arrangement, open, picture};
use crate::prepare::arrange::name;
use apportion::error::{Error, Result};
use apportion::job::in_plan_order;
use apportion::output::OutputFile;
use apportion::plan::arrange::{
    Arrangement, CostFunction, SearchOptions, arrange, arrange_grid, machinefile, places_in_order,
    rank_order, rankfile, slurm_hostfile,
};
use apportion::plan::{Division, Plan, read_plan};
use apportion::platform::{Platform, read_platform};
use std::path::Path;
use std::time::Instant;

pub fn run(args: &ArrangeArgs, console: &Console) -> Result<()> {
    let outputs = [&args.export_to, &args.svg, &args.output];
    let [order, svg, output] = outputs.map(|path| open(path.as_ref()));
    let outputs = [order?, svg?, output?];
    let (arranged, platform, objective, milliseconds) = match (&args.grid, &args.plan) {
        (Some(domain), _) => of_grid(args, domain, console)?,
        (None, Some(plan)) => of_plan(args, plan, console)?,
        (None, None) => unreachable!("clap requires one of them"),
    };
    let drawn = Plan { method: arrangement::title(&arranged, objective), ..arranged.plan.clone() };
    write_files(args, outputs, [&arranged.plan, &drawn], &platform, console)?;
    if let Some(hint) = arrangement::hint(&arranged, objective, &platform) {
        console.note(hint);
    }
    let name = name(objective);
    console.result(
        || arrangement::to_value(&arranged, name, milliseconds),
        || arrangement::to_text(&arranged, objective, name, milliseconds),
    );
    Ok(())
}

/// The rearranged plan, its platform, the objective, and the time in milliseconds.
type ArrangeOutcome = (Arrangement, Platform, CostFunction, f64);

/// The plan on its platform, rearranged.
fn of_plan(args: &ArrangeArgs, path: &Path, console: &Console) -> Result<ArrangeOutcome> {
    let plan = read_plan(path)?;
    if plan.rectangles().is_none() {
        return Err(Error::input(
            path.display().to_string(),
            "is a plan of units, which has no layout",
            "create one with `apportion partition --shape`",
        ));
    }
    let objective = args.objective(matches!(plan.division, Division::Grid(_)))?;
    let platform = in_plan_order(&plan, read_platform(&args.platform)?)?;
    let options = search_options(args);
    timed(platform, objective, console, |platform| arrange(&plan, platform, objective, options))
}

/// A grid of equal parts.
fn of_grid(args: &ArrangeArgs, domain: &str, console: &Console) -> Result<ArrangeOutcome> {
    let objective = args.objective(true)?;
    let domain = args.domain(domain, objective)?;
    let options = search_options(args);
    timed(read_platform(&args.platform)?, objective, console, |platform| {
        arrange_grid(domain, platform, options)
    })
}

fn search_options(args: &ArrangeArgs) -> SearchOptions<'static> {
    SearchOptions { watch: &watch, ..SearchOptions::new(args.search(), args.seed.unwrap_or(1)) }
}

/// Tells the monitor of evaluations; false once the search is to stop.
fn watch(evaluations: u64) -> bool {
    monitor().advance(evaluations);
    !monitor().is_stopped()
}

fn timed(
    platform: Platform,
    objective: CostFunction,
    console: &Console,
    search: impl FnOnce(&Platform) -> Result<Arrangement>,
) -> Result<ArrangeOutcome> {
    monitor().begin(0);
    let begin = Instant::now();
    let arranged = console.watch("arranging", monitor(), || search(&platform))?;
    Ok((arranged, platform, objective, begin.elapsed().as_secs_f64() * 1e3))
}

/// Writes the order of processes, the picture, and the plan.
fn write_files(
    args: &ArrangeArgs,
    [order, svg, output]: [Option<OutputFile>; 3],
    [plan, drawn]: [&Plan; 2],
    platform: &Platform,
    console: &Console,
) -> Result<()> {
    let places = plan.rectangles().map(places_in_order).unwrap_or_default();
    let export = args.export.map(|format| match format {
        OrderFormat::Rankfile => rankfile(&places, platform),
        OrderFormat::Machinefile => machinefile(&places, platform),
        OrderFormat::Slurm => slurm_hostfile(&places, platform),
        OrderFormat::Cray => Ok(rank_order(&places)),
    });
    let (text, warnings) =
        export.transpose()?.map_or_else(Default::default, |export| (export.text, export.warnings));
    warnings.iter().for_each(|warning| console.note(format!("apportion: warning: {warning}")));
    appear([(order, &|| text.clone()), (svg, &|| picture(drawn, platform)), (output, &|| plan.to_json())])
}

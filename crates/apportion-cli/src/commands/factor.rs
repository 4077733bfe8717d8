//! `apportion factor`: factorisations of matrices.

use crate::args::{EliminationArgs, FactorArgs, FactorKind};
use crate::console::{Console, monitor};
use crate::output::panels::factor_slabs;
use crate::output::provenance::provenance;
use crate::output::results::models_of;
use crate::output::{appear_with, open, picture, timeline_of};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{BlockedOptions, Context, InputFiles};
use apportion::output::try_output;
use apportion::record::{Detail, Lanes, SolutionRun};
use apportion::schedule::FactorSchedule;
use apportion::simulate::{CostModel, simulate};
use apportion::trace::Trace;
use apportion::units::show_seconds;
use apportion_factor::{FactorOutcome, FactorReport, FactorTask, MatrixSource, factor_matrix};
use apportion_report::{Timeline, run_text};
use std::path::Path;

pub fn run(args: &FactorArgs, console: &Console) -> Result<()> {
    let inputs =
        InputFiles { files: args.elimination.files().collect(), operands: vec![&args.a], checkpoint: None };
    on_engine(args.elimination.engine.patient(), &inputs, console, |world, console| {
        let context = Context { world, monitor: monitor(), observer: console };
        let task = world.all_ok(task(args))?;
        world.on_root(|| try_texts(&args.elimination))?;
        let mut outcome = factor_matrix(task, context)?;
        let measured = outcome.measured.take();
        world.on_root(|| print(outcome, None, &args.elimination, console))?;
        if let Some(mut measured) = measured.filter(|_| world.rank() == 0) {
            measured.warn(context);
        }
        Ok(())
    })
}

fn task(args: &FactorArgs) -> Result<FactorTask> {
    let task = elimination(args.kind, &args.a, &args.elimination)?;
    let FactorArgs { output, pivots, memory, checkpoint, resume, .. } = args;
    let slabs = BlockedOptions {
        memory: *memory,
        panels: None,
        checkpoint: checkpoint.clone(),
        resume: resume.clone(),
    };
    Ok(FactorTask { output: output.clone(), pivots: pivots.clone(), slabs, ..task })
}

/// The factorisation that the flags describe, whose result goes to no file.
pub fn elimination(kind: FactorKind, a: &Path, args: &EliminationArgs) -> Result<FactorTask> {
    Ok(FactorTask {
        layout: if args.method == "auto" { None } else { Some(args.method.parse()?) },
        block: args.block,
        sources: args.sources.load(args.plan.as_deref())?,
        remeasure: args.remeasure,
        copy: args.copy,
        seed: args.seed,
        ..FactorTask::new(kind.factors(), MatrixSource::from(a))
    })
}

/// Tries the files of the texts before the work.
pub fn try_texts(args: &EliminationArgs) -> Result<()> {
    [&args.report, &args.trace, &args.svg].into_iter().flatten().try_for_each(|path| try_output(path))
}

/// Prints the report of a factorisation and of what was solved by it, writes the files that were asked for, and makes
/// them and the result appear.
pub fn print(
    mut outcome: FactorOutcome,
    solution: Option<&SolutionRun>,
    args: &EliminationArgs,
    console: &Console,
) -> Result<()> {
    let files = std::mem::take(&mut outcome.files);
    let FactorOutcome { report, plans, machine, source, .. } = &outcome;
    for (place, plan) in plans.iter().enumerate() {
        let mark = if place == 0 { "chosen" } else { "against" };
        let seconds = plan.forecast.as_ref().map_or_else(|| "-".into(), |f| show_seconds(f.seconds));
        let block = plan.blocks()?.1.block();
        console
            .detail(format!("{mark}: {:8} in blocks of {block} {seconds}, by speeds {source}", plan.method));
    }
    let names = &report.plan.processors;
    let forecast = forecast_of(&outcome)?;
    let mut run = report.record_with(solution);
    run.timeline.forecast = forecast.as_ref().map(Lanes::new);
    if let Detail::Factorisation(factors) = &mut run.detail {
        factors.slabs = outcome.slabs.as_ref().map(factor_slabs);
    }
    run.models = models_of(machine, report.kernel["name"].as_str());
    run.provenance = Some(provenance());
    if monitor().is_stopped() {
        return Err(Error::Interrupted);
    }
    let trace = || {
        let title = titles(report);
        let timeline = Timeline {
            title: [&title[0], &title[1]],
            forecast: forecast.as_ref(),
            ..Timeline::new(&report.trace, names)
        };
        timeline_of(args.trace.as_ref(), &timeline)
    };
    let appeared = appear_with(
        files,
        [
            (open(args.report.as_ref())?, &|| format!("{:#}\n", run.to_value())),
            (open(args.trace.as_ref())?, &trace),
            (open(args.svg.as_ref())?, &|| picture(&report.plan, &machine.platform)),
        ],
    );
    appeared.map_err(|error| outcome.with_finished_panels(error))?;
    console.result(|| run.to_value(), || run_text(&run));
    Ok(())
}

/// What ran, and how the forecast compares.
fn titles(report: &FactorReport) -> [String; 2] {
    let processors = report.plan.processors.len();
    let plural = if processors == 1 { "" } else { "s" };
    let forecast = report
        .forecast_seconds
        .map_or_else(String::new, |seconds| format!(", forecast {}", show_seconds(seconds)));
    [
        format!("{}, {} layout, {processors} processor{plural}", report.problem.factors, report.plan.method),
        format!("measured {}{forecast}", show_seconds(report.seconds())),
    ]
}

/// The lanes of the forecast, if that is of one run.
fn forecast_of(outcome: &FactorOutcome) -> Result<Option<Trace>> {
    let FactorOutcome { report, machine, times, slabs, .. } = outcome;
    if report.forecast_seconds.is_none() || slabs.is_some() {
        return Ok(None);
    }
    let (factors, columns) = report.plan.blocks()?;
    let schedule = FactorSchedule::new(factors, columns).with_times(times.clone());
    let rates = schedule.rates(machine);
    let costs =
        CostModel { rates: &rates, network: &schedule.network(machine), element: report.element_bytes };
    simulate(&schedule, costs).map(Some)
}

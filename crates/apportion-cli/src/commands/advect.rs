//! `apportion advect`: MPDATA on unequal processors.

use crate::args::AdvectArgs;
use crate::console::{Console, monitor};
use crate::output::advect::Pictures;
use crate::output::provenance::provenance;
use crate::output::{appear, open, picture, timeline};
use crate::prepare::advect::courant_files;
use crate::prepare::world::on_engine;
use apportion::error::Result;
use apportion::job::{Context, InputFiles, warn_of_uncertainty};
use apportion_advect::{AdvectOutcome, Frames, advect_field};
use apportion_report::run_text;

pub fn run(args: &AdvectArgs, console: &Console) -> Result<()> {
    let named = [Some(args.field.as_path()), args.plan.as_deref()];
    let named = named.into_iter().chain(args.sources.files()).flatten();
    let compared = InputFiles {
        files: named.chain(courant_files(&args.courant)).collect(),
        checkpoint: args.resume.as_deref(),
        ..InputFiles::default()
    };
    let pictures = args.frames.as_deref().map(Pictures);
    on_engine(args.engine.patient(), &compared, console, |world, console| {
        let context = Context { world, monitor: monitor(), observer: console };
        let frames = pictures.as_ref().map(|pictures| pictures as &dyn Frames);
        let task = world.all_ok(args.task(frames))?;
        let outcome = advect_field(&task, context)?;
        world.on_root(|| tell(args, &outcome, context, console)).map(drop)
    })
}

/// Prints the report, and writes the files about the run.
fn tell(args: &AdvectArgs, outcome: &AdvectOutcome, context: Context<'_>, console: &Console) -> Result<()> {
    let AdvectOutcome { report, platform, measured, .. } = outcome;
    let mut run = outcome.record();
    run.provenance = Some(provenance());
    appear([
        (open(args.report.as_ref())?, &|| format!("{:#}\n", run.to_value())),
        (open(args.trace.as_ref())?, &|| {
            timeline(args.trace.as_ref(), &report.trace, &report.plan.processors)
        }),
        (open(args.svg.as_ref())?, &|| picture(&report.plan, platform)),
    ])?;
    console.result(|| run.to_value(), || run_text(&run));
    if let Some(measured) = measured {
        warn_of_uncertainty(measured, "they are measured at each start", context);
    }
    Ok(())
}

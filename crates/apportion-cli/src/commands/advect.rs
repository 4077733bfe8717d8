//! `apportion advect`: MPDATA on unequal processors.

use crate::args::AdvectArgs;
use crate::console::{Console, monitor};
use crate::output::advect::{Pictures, slabs_text, slabs_value};
use crate::output::provenance::add_machine;
use crate::output::{appear, open, picture, timeline};
use crate::prepare::advect::courant_files;
use crate::prepare::world::on_engine;
use apportion::error::Result;
use apportion::job::{Context, InputFiles, warn_of_uncertainty};
use apportion_advect::{AdvectOutcome, Frames, advect_field};
use apportion_report::Report;
use serde_json::json;

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
    let AdvectOutcome { report, largest_courant_sum: largest, choices, platform, measured, slabs, .. } =
        outcome;
    let mut value = report.to_value();
    value["largest_courant_sum"] = json!(largest);
    if let Some(hosts) = platform.network.hosts() {
        value["network"] = hosts.to_value();
    }
    let candidates = choices.iter().map(|choice| {
        let forecast = choice.plan.forecast.as_ref().map(|forecast| forecast.seconds);
        json!({"method": choice.plan.method, "exchange": choice.order.exchange,
            "overlap": choice.order.overlap, "forecast_seconds": forecast})
    });
    value["candidates"] = candidates.collect();
    if let Some(slabs) = slabs {
        value["slabs"] = slabs_value(slabs);
    }
    add_machine(&mut value);
    appear([
        (open(args.report.as_ref())?, &|| format!("{value:#}\n")),
        (open(args.trace.as_ref())?, &|| {
            timeline(args.trace.as_ref(), &report.trace, &report.plan.processors)
        }),
        (open(args.svg.as_ref())?, &|| picture(&report.plan, platform)),
    ])?;
    console.result(
        || value.clone(),
        || {
            let sum = format!("Courant numbers add up to at most {largest:.4} in a cell\n");
            report.to_text() + &sum + &slabs.as_ref().map_or_else(String::new, slabs_text)
        },
    );
    if let Some(measured) = measured {
        warn_of_uncertainty(measured, "they are measured at each start", context);
    }
    Ok(())
}

//! The texts about a run of products: report, timeline, picture, and what is printed.

use crate::args::RunningArgs;
use crate::console::{Console, monitor};
use crate::output::panels::{panels_text, panels_value};
use crate::output::provenance::add_machine;
use crate::output::ranking::Ranking;
use crate::output::{appear_with, explain, open, picture, timeline_of};
use apportion::error::{Error, Result};
use apportion::job::{Context, Outcome, forecast_run};
use apportion::model::{Machine, Models};
use apportion::output::{OutputFile, try_output};
use apportion::product::RunReport;
use apportion::run::World;
use apportion::simulate::Outcome as Simulated;
use apportion::units::show_seconds;
use apportion_report::{
    Report, Timeline, adaptation_lines, forecast_text, lanes_value, messages_text, pairs, run_summary,
};
use serde_json::Value;

/// The files of the texts about a run.
#[derive(Default)]
pub struct Texts {
    report: Option<OutputFile>,
    trace: Option<OutputFile>,
    svg: Option<OutputFile>,
}

impl Texts {
    /// Opens the files before the work, on rank 0. Where the end of another rank could leave them half written,
    /// they are only tried, and opened when there is something to write.
    pub fn open(running: &RunningArgs, world: &World) -> Result<Self> {
        if world.is_solo() {
            return Self::create(running);
        }
        if world.rank() == 0 {
            let paths = [&running.report, &running.trace, &running.svg];
            paths.into_iter().flatten().try_for_each(|path| try_output(path))?;
        }
        Ok(Self::default())
    }

    fn create(running: &RunningArgs) -> Result<Self> {
        Ok(Self {
            report: open(running.report.as_ref())?,
            trace: open(running.trace.as_ref())?,
            svg: open(running.svg.as_ref())?,
        })
    }
}

/// What ran, and how the forecast compares.
pub fn titles(report: &RunReport) -> [String; 2] {
    let processors = report.plan.processors.len();
    let plural = if processors == 1 { "" } else { "s" };
    let seconds = report.seconds();
    [
        format!("{}, {} flow, {processors} processor{plural}", report.plan.method, report.order),
        format!("measured {}, forecast {}", show_seconds(seconds), forecast_text(report)),
    ]
}

/// Prints the run's report and choices, writes them to the requested files, and makes these and the result
/// appear; on rank 0. Then checks remembered speeds by the run.
pub fn print_and_commit(
    mut outcome: Outcome,
    texts: Texts,
    running: &RunningArgs,
    context: Context<'_>,
    console: &Console,
) -> Result<()> {
    let (world, files) = (context.world, std::mem::take(&mut outcome.files));
    let print = || {
        let name = files.first().map_or_else(|| "C".into(), |file| file.path().display().to_string());
        let (value, details) = commit(&outcome, files, texts, running, world, console)?;
        let summary = || run_summary(&outcome.report, &name) + &necessary(&outcome);
        let text = || if console.is_verbose() { format!("{}\n{details}", summary()) } else { summary() };
        console.detail(messages_text(&outcome.report));
        console.result(|| value, text);
        Ok(())
    };
    world.on_root(print)?;
    outcome.check_speeds(context);
    Ok(())
}

/// The lines that a reader of a summary needs, too: who was left out, how the product was cut, and what was
/// asked for.
fn necessary(outcome: &Outcome) -> String {
    let Outcome { report, decision, panels, .. } = outcome;
    let mut text = String::new();
    if let Some(decision) = decision {
        text += &Ranking::of(decision).exceptions(&outcome.machine.platform);
    }
    text += &pairs(&adaptation_lines(report));
    if let Some(panels) = panels {
        text += &panels_text(panels);
    }
    if let Some(explanation) = &outcome.explanation {
        let (history, rank, names) = (&explanation.history, explanation.rank, &report.plan.processors);
        let waits = explain::text(history, rank, names, Some(report.element_bytes));
        text += &format!("\nThe forecast explained:\n{waits}");
    }
    text
}

/// Writes the run's report and choices to the requested files, which appear together with those of the result,
/// and returns them as JSON and as text; only on rank 0.
pub fn commit(
    outcome: &Outcome,
    files: Vec<OutputFile>,
    texts: Texts,
    running: &RunningArgs,
    world: &World,
    console: &Console,
) -> Result<(Value, String)> {
    let texts = if world.is_solo() { texts } else { Texts::create(running)? };
    let Outcome { report, decision, panels, .. } = outcome;
    let (platform, names) = (&outcome.machine.platform, &report.plan.processors);
    let mut value = report.to_value();
    let mut text = report.to_text();
    if let Some(decision) = decision {
        let chosen = Ranking::of(decision);
        chosen.add_to(&mut value, platform);
        text += &chosen.text(platform, decision.source, report);
    }
    if let Some(panels) = panels {
        value["panels"] = panels_value(panels);
    }
    if let Some(explanation) = &outcome.explanation {
        value["explain"] = explain::json(&explanation.history, explanation.rank, names);
    }
    let plain = panels.is_none();
    let read = running.trace.is_some() || running.report.is_some() || console.is_json();
    let forecast = match decision.as_ref().filter(|_| plain && read) {
        Some(decision) => forecast_run(report, decision)?,
        None => None,
    };
    if let Some(Simulated { trace, history }) = &forecast {
        value["timeline"]["forecast"] = lanes_value(trace);
        value["critical_path"] = history.as_ref().map_or(Value::Null, |h| explain::critical_path(h, names));
    }
    add_models(&mut value, &outcome.machine, report.kernel["name"].as_str());
    add_machine(&mut value);
    if monitor().is_stopped() {
        return Err(Error::Interrupted);
    }
    let trace = || {
        let title = titles(report);
        let title = if plain { [title[0].as_str(), title[1].as_str()] } else { [""; 2] };
        let forecast = forecast.as_ref().map(|forecast| &forecast.trace);
        let timeline = Timeline { title, forecast, ..Timeline::new(&report.trace, names) };
        timeline_of(running.trace.as_ref(), &timeline)
    };
    let appeared = appear_with(
        files,
        [
            (texts.report, &|| format!("{value:#}\n")),
            (texts.trace, &trace),
            (texts.svg, &|| picture(&report.plan, platform)),
        ],
    );
    appeared.map_err(|error| outcome.with_finished_panels(error))?;
    Ok((value, text))
}

/// Adds the speed functions that a plan was made for, as a models file, unless they are constants or ratios.
pub fn add_models(value: &mut Value, machine: &Machine, kernel: Option<&str>) {
    let constant = machine.models.iter().all(|model| model.points().len() < 2);
    if constant || machine.only_ratios() {
        return;
    }
    let of_c = "C elements updated by one pivot block";
    let models = Models {
        kernel: kernel.unwrap_or("units").to_owned(),
        unit: if kernel.is_some() { of_c } else { "units" }.to_owned(),
        parameters: kernel.map(|_| ("block".to_owned(), machine.block as f64)).into_iter().collect(),
        models: machine.models.clone(),
    };
    value["models"] = models.to_value();
}

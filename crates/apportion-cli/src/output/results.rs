//! The texts about a run of products: report, timeline, picture, and what is printed.

use crate::args::RunningArgs;
use crate::console::{Console, monitor};
use crate::output::panels::panels_run;
use crate::output::provenance::provenance;
use crate::output::ranking::Ranking;
use crate::output::{appear_with, explain, open, picture, timeline_of};
use apportion::error::{Error, Result};
use apportion::job::{Context, Outcome, forecast_run};
use apportion::model::{Machine, Models};
use apportion::output::{OutputFile, try_output};
use apportion::product::RunReport;
use apportion::record::{CriticalPath, Detail, Lanes, ProductRun, Run};
use apportion::run::World;
use apportion::simulate::Outcome as Simulated;
use apportion::units::show_seconds;
use apportion_report::{
    Timeline, adaptation_lines, forecast_text, messages_text, pairs, panels_text, run_summary, run_text,
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
    let run = Run::from(report);
    let processors = run.processors.len();
    let plural = if processors == 1 { "" } else { "s" };
    [
        format!("{}, {} flow, {processors} processor{plural}", run.plan.method, report.order),
        format!("measured {}, forecast {}", show_seconds(run.seconds), forecast_text(&run)),
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
        let run = commit(&outcome, files, texts, running, world, console)?;
        let summary = || run_summary(&run, &name) + &necessary(&outcome, &run);
        let text = || match console.is_verbose() {
            true => format!("{}\n{}", summary(), details(&outcome, &run)),
            false => summary(),
        };
        console.detail(messages_text(&run));
        console.result(|| run.to_value(), text);
        Ok(())
    };
    world.on_root(print)?;
    outcome.check_speeds(context);
    Ok(())
}

/// All about a run and its choice.
pub fn details(outcome: &Outcome, run: &Run) -> String {
    let decision = outcome.decision.as_ref();
    let chosen =
        decision.map(|decision| Ranking::of(decision).text(&outcome.machine.platform, decision.source, run));
    run_text(run) + &chosen.unwrap_or_default()
}

/// The lines that a reader of a summary needs, too: who was left out, how the product was cut, and what was
/// asked for.
fn necessary(outcome: &Outcome, run: &Run) -> String {
    let Outcome { report, decision, .. } = outcome;
    let mut text = String::new();
    if let Some(decision) = decision {
        text += &Ranking::of(decision).exceptions(&outcome.machine.platform);
    }
    text += &pairs(&adaptation_lines(run));
    if let Detail::Product(ProductRun { panels: Some(panels), .. }) = &run.detail {
        text += &panels_text(panels);
    }
    if let Some(explanation) = &outcome.explanation {
        let (history, rank, names) = (&explanation.history, explanation.rank, &report.plan.processors);
        let waits = explain::text(history, rank, names, Some(report.element_bytes));
        text += &format!("\nThe forecast explained:\n{waits}");
    }
    text
}

/// Writes the run's record to the requested files, which appear together with those of the result, and returns it; only
/// on rank 0.
pub fn commit(
    outcome: &Outcome,
    files: Vec<OutputFile>,
    texts: Texts,
    running: &RunningArgs,
    world: &World,
    console: &Console,
) -> Result<Run> {
    let texts = if world.is_solo() { texts } else { Texts::create(running)? };
    let Outcome { report, decision, panels, .. } = outcome;
    let (platform, names) = (&outcome.machine.platform, &report.plan.processors);
    let plain = panels.is_none();
    let read = running.trace.is_some() || running.report.is_some() || console.is_json();
    let forecast = match decision.as_ref().filter(|_| plain && read) {
        Some(decision) => forecast_run(report, decision)?,
        None => None,
    };
    let mut run = Run::from(report);
    if let Some(decision) = decision {
        let chosen = Ranking::of(decision);
        (run.choice, run.memory_fit) = (chosen.record(), chosen.memory_fit(platform));
    }
    if let Detail::Product(product) = &mut run.detail {
        product.panels = panels.as_ref().map(|cuts| Box::new(panels_run(cuts)));
        let explanation = outcome.explanation.as_ref();
        product.explain = explanation.map(|one| explain::json(&one.history, one.rank, names));
    }
    if let Some(Simulated { trace, history }) = &forecast {
        run.timeline.forecast = Some(Lanes::new(trace));
        run.critical_path = history.as_ref().map(|history| CriticalPath::new(history, names));
    }
    run.models = models_of(&outcome.machine, report.kernel["name"].as_str());
    run.provenance = Some(provenance());
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
            (texts.report, &|| format!("{:#}\n", run.to_value())),
            (texts.trace, &trace),
            (texts.svg, &|| picture(&report.plan, platform)),
        ],
    );
    appeared.map_err(|error| outcome.with_finished_panels(error))?;
    Ok(run)
}

/// The speed functions that a plan was made for, unless they are constants or ratios.
pub fn models_of(machine: &Machine, kernel: Option<&str>) -> Option<Models> {
    let constant = machine.models.iter().all(|model| model.points().len() < 2);
    if constant || machine.only_ratios() {
        return None;
    }
    let of_c = "C elements updated by one pivot block";
    Some(Models {
        kernel: kernel.unwrap_or("units").to_owned(),
        unit: if kernel.is_some() { of_c } else { "units" }.to_owned(),
        parameters: kernel.map(|_| ("block".to_owned(), machine.block as f64)).into_iter().collect(),
        models: machine.models.clone(),
    })
}

/// Adds them, as a models file.
pub fn add_models(value: &mut Value, machine: &Machine, kernel: Option<&str>) {
    if let Some(models) = models_of(machine, kernel) {
        value["models"] = models.to_value();
    }
}

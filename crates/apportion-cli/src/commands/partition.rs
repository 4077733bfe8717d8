//! `apportion partition`.

use super::compare::compare;
use super::layouts;
use crate::args::PartitionArgs;
use crate::console::{Console, monitor};
use crate::output::plan::{relayed, text};
use crate::output::ranking::Ranking;
use crate::output::results::add_models;
use crate::output::units::ShowDivision;
use crate::output::{appear, open, picture};
use crate::prepare::partition::{check, minimise, plan_options};
use crate::prepare::sections::{sections, surfaces};
use crate::prepare::shape;
use crate::prepare::sources::UnitProcessors;
use crate::prepare::units::{units_of, with_memory};
use apportion::error::Result;
use apportion::job::{Context, divide_units};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::{Communication, Hybrid};
use apportion::plan::{Plan, Shape, read_plan};
use apportion::platform::Platform;
use apportion::run::World;
use apportion::select::{Choice, areas, plan_fpm_br, plan_matmul};
use serde_json::json;
use std::path::Path;

pub fn run(args: &PartitionArgs, console: &Console) -> Result<()> {
    check(args)?;
    if let Some(path) = &args.plan {
        return saved(args, path, console);
    }
    if let Some(kind) = args.kind {
        return layouts::partition(args, kind, console);
    }
    let (svg, output) = (open(args.svg.as_ref())?, open(args.output.as_ref())?);
    let mut division = None;
    let (plan, processors, others) = match &args.shape {
        None => {
            let units = units_of(args.units, args.of_units.costs.as_deref())?;
            let count = units.count;
            let UnitProcessors { machine, second } = match &args.surfaces {
                Some(path) => {
                    let machine = sections(path, &args.at, args.sources.platform()?)?;
                    UnitProcessors { machine, second: Vec::new() }
                }
                None => args.sources.for_units(args.of_units.mix, &units)?,
            };
            let machine = with_memory(machine, &args.of_units, console)?;
            let processors = UnitProcessors { machine, second };
            let options = args.unit_options(units, &processors)?;
            let processors = processors.machine;
            let context = Context { world: &World::solo(monitor()), monitor: monitor(), observer: console };
            let divided = divide_units(count, &options, &processors, context)?;
            let divided = division.insert(divided);
            (divided.plan.clone(), processors, Vec::new())
        }
        Some(sizes) => {
            let shape = shape(sizes, "--shape")?;
            let (processors, mut choices) = match &args.surfaces {
                Some(path) => by_surfaces(shape, args, path)?,
                None => {
                    let processors = args.sources.machine(WorkUnit::MultiplyAdd)?;
                    let options = plan_options(args, &processors, shape)?;
                    monitor().begin(0);
                    let plan = || plan_matmul(shape, &processors, &options);
                    let choices = console.watch("planning", monitor(), plan)?;
                    (processors, choices)
                }
            };
            let best = choices.remove(0);
            (best.plan.clone(), processors, std::iter::once(best).chain(choices).collect())
        }
    };
    let candidates = ranking(args, &processors, &others);
    let choice = candidates.as_ref().and_then(Ranking::record);
    let taken = hybrid_choice(args, &plan, &processors)?;
    let value_of_plan = || {
        let mut value = plan.to_value();
        if let Some(choice) = &choice {
            value["choice"] = json!(choice);
        }
        add_models(&mut value, &processors, plan.layout().is_ok().then_some("multiply-adds"));
        value
    };
    let line = || candidates.as_ref().and_then(Ranking::line);
    let compared = args.compare.then(|| compare(args, &plan, line(), &processors)).transpose()?;
    let drawn = || match &compared {
        Some(compared) => compared.picture(&processors.platform),
        None => picture(&plan, &processors.platform),
    };
    appear([(svg, &drawn), (output, &|| format!("{:#}\n", value_of_plan()))])?;
    let export = args.export.apply(&plan, &processors.platform, console)?;
    if let Some(idle) = idle(&plan, &processors) {
        console.note(idle);
    }
    console.result(
        || {
            let mut value = compared.as_ref().map_or_else(value_of_plan, |c| c.to_value());
            if let Some(division) = &division {
                division.extend(&mut value);
            }
            if let Some((layout, communication)) = &taken {
                value["hybrid"] = json!({"layout": layout, "communication": communication});
            }
            if let Some(relayed) = relayed(&plan, &processors.platform.network) {
                value["relayed"] = relayed.into();
            }
            if let Some(export) = &export {
                value["export"] = export.value.clone();
            }
            value
        },
        || match (export.as_ref().and_then(|e| e.text.as_ref()), &compared) {
            (Some(exported), _) => exported.clone(),
            (None, Some(compared)) => compared.to_text(),
            (None, None) => {
                let beside = division.as_ref().map_or_else(String::new, |d| d.text());
                let method = division.as_ref().map_or_else(|| plan.method.clone(), |d| d.method());
                let more = taken
                    .as_ref()
                    .map(|(layout, how)| ("hybrid", format!("{layout}, for {how} communication")));
                let more = more.into_iter().collect();
                let network = &processors.platform.network;
                text(&plan, method, &others, candidates.as_ref(), more, network) + &beside
            }
        },
    );
    Ok(())
}

/// Exports and draws a plan from a file.
fn saved(args: &PartitionArgs, path: &Path, console: &Console) -> Result<()> {
    let plan = read_plan(path)?;
    let svg = open(args.svg.as_ref())?;
    let named = || Platform::from_names(&plan.processors);
    appear([(svg, &|| picture(&plan, &named()))])?;
    let platform = args.sources.platform()?.unwrap_or_else(named);
    let export = args.export.apply(&plan, &platform, console)?;
    console.result(
        || json!({"plan": path.display().to_string(), "export": export.as_ref().map(|e| &e.value)}),
        || export.as_ref().and_then(|e| e.text.clone()).unwrap_or_default(),
    );
    Ok(())
}

/// Which layout `hybrid` took, and for which communication.
fn hybrid_choice(
    args: &PartitionArgs,
    plan: &Plan,
    processors: &Machine,
) -> Result<Option<(String, &'static str)>> {
    let (Ok(layout), "hybrid") = (plan.layout(), plan.method.as_str()) else { return Ok(None) };
    if processors.models.is_empty() {
        return Ok(None);
    }
    let terms = args.method_options(&processors.platform)?;
    let weights = areas(&processors.models, layout.shape())?;
    let mut taken = None;
    args.constraints()?.layout(layout.shape(), |shape| {
        let hybrid = Hybrid { communication: terms.communication, centre: terms.centre };
        let found = hybrid.choose(shape, &weights)?;
        taken = Some(found.method);
        Ok(found.layout)
    })?;
    let communication = match terms.communication {
        Communication::Serial => "serial",
        Communication::Parallel => "parallel",
    };
    Ok(taken.map(|name| (name, communication)))
}

/// A note about processors that a repeated block leaves without work.
fn idle(plan: &Plan, processors: &Machine) -> Option<String> {
    let block = plan.layout().ok()?.block()?.shape();
    let idle = plan.idle_processors();
    let (first, more) = (idle.first()?, idle.len() - 1);
    let who = if more == 0 { format!("{first} gets") } else { format!("{first} and {more} more get") };
    Some(format!(
        "apportion: note: {who} nothing: the repeated block of {} x {} elements is too small for {} \
         processors (repeat a larger one)",
        block.m,
        block.n,
        processors.platform.len()
    ))
}

/// Areas in proportion to the speeds at the parts' own shapes (FPM-BR).
fn by_surfaces(shape: Shape, args: &PartitionArgs, path: &Path) -> Result<(Machine, Vec<Choice>)> {
    let (platform, surfaces) = surfaces(path, args.sources.platform()?)?;
    let block = args.flow.options().block_size();
    let processors = Machine { platform, models: Vec::new(), block };
    let options = plan_options(args, &processors, shape)?;
    let choices = plan_fpm_br(shape, &processors.platform, &surfaces, block, &options)?;
    Ok((processors, choices))
}

/// The choice and its competitors, if there is a layout.
fn ranking<'a>(args: &PartitionArgs, processors: &Machine, choices: &'a [Choice]) -> Option<Ranking<'a>> {
    // A plan has no flow: each method counts with its best one.
    let mut seen = std::collections::BTreeSet::new();
    let choices: Vec<&Choice> = choices.iter().filter(|c| seen.insert(&c.plan.method)).collect();
    let (minimise, relative) = (minimise(args), processors.only_ratios());
    (choices.len() > 1).then_some(Ranking { choices, minimise, relative })
}

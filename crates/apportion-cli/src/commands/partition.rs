//! `apportion partition`.

use super::compare::{compare, relayed_volume};
use crate::output::chosen::Chosen;
use crate::output::export::ExportArgs;

use super::units::{UnitsArgs, divide};
use crate::args::{FlowArgs, Sources};
use crate::console::Console;
use crate::output::{appear, open, picture};
use crate::prepare::processors::{Processors, method_at, terms};
use crate::prepare::sections::sections;
use apportion::error::{Error, Result};
use apportion::model::{Surface, Surfaces};
use apportion::plan::shapes::{Communication, MethodOptions};
use apportion::plan::{Layout, LayoutConstraints, Plan, Shape};
use apportion::platform::{Network, Platform, Topology};
use apportion::report::{pairs, table};
use apportion::schedule::DataPath;
use apportion::select::{Choice, Minimise, PlanOptions, plan_fpm_br, plan_matmul};
use apportion::units;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Whether links carry one transfer at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CommunicationName {
    Serial,
    Parallel,
}

/// What auto chooses for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MinimiseName {
    /// Forecast seconds.
    Time,
    /// The sum of half-perimeters.
    Sum,
    /// The largest half-perimeter.
    Largest,
    /// Elements moved (on a star, relayed ones twice).
    Volume,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion partition --units 1000 --speeds 9,1\n  \
    apportion partition --shape 1000x1000 --speeds 9,1 --method square-corner --svg plan.svg\n  \
    apportion partition --shape 4000x4000 --platform clusters.toml --levels square-corner,columns\n  \
    apportion partition --shape 4000x4000 --speeds 1,1,1,1 --method grid --repeat 128x128\n\
    Methods for --units: even, proportional, fpm, exact. For --shape: rows, straight-line, columns, square-corner,\n  \
    square-rectangle, block-rectangle, recursive, grid, cartesian, column-groups, nagamochi-abe, hybrid, auto.")]
pub struct Arguments {
    /// Divide this many independent units.
    #[arg(long, value_name = "N", required_unless_present = "shape", conflicts_with = "shape")]
    pub units: Option<u64>,
    /// Lay out a matrix product: MxN (then k = n) or MxKxN.
    #[arg(long, value_name = "MxN|MxKxN")]
    pub shape: Option<String>,
    #[command(flatten)]
    pub sources: Sources,
    /// Speeds over rows and columns (surfaces.json; seconds of an update by a pivot block of --block indices) or over
    /// rows, k and columns: areas follow the speed at each part's own shape. With --units, over any parameters: see --at.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speeds", "models", "compare"])]
    pub surfaces: Option<PathBuf>,
    /// With --units and --surfaces: cut the surfaces where all parameters but one are fixed, and divide along that one.
    #[arg(
        long,
        value_name = "NAME=X,…",
        value_delimiter = ',',
        requires = "surfaces",
        conflicts_with = "shape"
    )]
    pub at: Vec<String>,
    /// The method; default: fpm for units, auto (least forecast time) for a shape.
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// For hybrid: one transfer at a time, or both directions at once; default: as the platform's links.
    #[arg(long, value_enum)]
    pub communication: Option<CommunicationName>,
    /// For column-groups: the processors of each column, from the left: p0,p1;p2,p3.
    #[arg(long, value_name = "P,P;P,P")]
    pub groups: Option<String>,
    /// What auto chooses for.
    #[arg(long, value_enum, default_value = "time")]
    pub minimise: MinimiseName,
    /// Methods of a hierarchy's levels, from the top: among the platform's clusters ("site/node"), then among their
    /// members; the last serves all levels below. At a level named auto every method is tried.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', requires = "shape", conflicts_with_all = ["method", "compare"])]
    pub levels: Option<Vec<String>>,
    /// Cut at multiples of this many rows and columns only (whole pivot blocks).
    #[arg(long, value_name = "B", requires = "shape", value_parser = clap::value_parser!(u64).range(1..))]
    pub granularity: Option<u64>,
    /// Lay out one generalised block of R x C elements and repeat it cyclically (block-cyclic).
    #[arg(long, value_name = "RxC", requires = "shape")]
    pub repeat: Option<String>,
    /// Run every method on a shape and print one table.
    #[arg(long, requires = "shape", conflicts_with = "method")]
    pub compare: bool,
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Write the plan (plan.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw the plan.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub export: ExportArgs,
    #[command(flatten)]
    pub of_units: UnitsArgs,
}

impl Arguments {
    /// What the methods need to know.
    pub fn terms(&self, platform: &Platform) -> Result<MethodOptions> {
        let communication = self.communication.map(|name| match name {
            CommunicationName::Serial => Communication::Serial,
            CommunicationName::Parallel => Communication::Parallel,
        });
        terms(platform, communication, self.groups.as_deref())
    }

    /// What the layout's cuts must keep to.
    pub fn form(&self) -> Result<LayoutConstraints> {
        let methods = |names: &Vec<String>| names.iter().map(|name| method_at("--levels", name)).collect();
        Ok(LayoutConstraints {
            granularity: self.granularity.unwrap_or(1),
            repeat: self.repeat.as_deref().map(block_size).transpose()?,
            levels: self.levels.as_ref().map(methods).transpose()?,
        })
    }
}

/// Reads the size of a generalised block, `RxC`.
fn block_size(text: &str) -> Result<[u64; 2]> {
    let sizes: Vec<Option<u64>> = text.split(['x', 'X', '×']).map(|t| t.trim().parse().ok()).collect();
    match sizes[..] {
        [Some(rows), Some(cols)] if rows > 0 && cols > 0 => Ok([rows, cols]),
        _ => Err(Error::input(
            "--repeat",
            format!("\"{text}\" is not the size of a block"),
            "write its rows and columns, such as 256x256",
        )),
    }
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let (svg, output) = (open(args.svg.as_ref())?, open(args.output.as_ref())?);
    let mut division = None;
    let (plan, processors, others) = match (&args.units, &args.shape) {
        (Some(n), _) => {
            let processors = match &args.surfaces {
                None if !args.at.is_empty() => {
                    let what = "there are no surfaces to cut";
                    return Err(Error::input("--at", what, "name them with --surfaces"));
                }
                Some(path) => sections(path, &args.at, args.sources.platform()?)?,
                None => args.sources.processors(1.0)?,
            };
            let divided = division.insert(divide(*n, args.method.as_deref(), &args.of_units, &processors)?);
            (divided.plan.clone(), processors, Vec::new())
        }
        (None, Some(shape)) => {
            let shape = Shape::parse(shape, "--shape")?;
            let (processors, mut choices) = match &args.surfaces {
                Some(path) => by_surfaces(shape, args, path)?,
                None => {
                    let processors = args.sources.processors(2.0)?;
                    let wishes = wishes(args, &processors, shape)?;
                    let Processors { platform, models, block, .. } = &processors;
                    let choices = plan_matmul(shape, platform, models, *block, &wishes)?;
                    (processors, choices)
                }
            };
            let best = choices.remove(0);
            (best.plan.clone(), processors, std::iter::once(best).chain(choices).collect())
        }
        (None, None) => unreachable!("clap asks for one of the two"),
    };
    let choice = chosen(args, &processors, &others).and_then(|c| c.value());
    let told = || {
        let mut value = plan.to_value();
        if let Some(choice) = &choice {
            value["choice"] = choice.clone();
        }
        value
    };
    appear([(svg, &|| picture(&plan, &processors.platform)), (output, &|| format!("{:#}\n", told()))])?;
    let export = args.export.apply(&plan, console)?;
    let compared = args.compare.then(|| compare(args, &plan, &processors)).transpose()?;
    console.result(
        || {
            let mut value = compared.as_ref().map_or_else(told, |c| c.to_value());
            if let Some(division) = &division {
                division.extend(&mut value);
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
                let line = chosen(args, &processors, &others).and_then(|c| c.line());
                let relative = processors.relative && plan.layout().is_ok();
                text(&plan, (&others, line), &processors.platform.network, relative) + &beside
            }
        },
    );
    Ok(())
}

/// Areas that follow speeds at the parts' own shapes (FPM-BR).
fn by_surfaces(shape: Shape, args: &Arguments, path: &Path) -> Result<(Processors, Vec<Choice>)> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "read", e))?;
    let file = Surfaces::parse(&text, &place)?;
    let names: Vec<String> = file.surfaces.iter().map(|s| s.processor().to_owned()).collect();
    let platform = args.sources.platform()?.unwrap_or_else(|| Platform::from_names(&names));
    let find = |name: &String| {
        file.surfaces.iter().find(|s| s.processor() == name).cloned().ok_or_else(|| {
            Error::input(
                &place,
                format!("has no surface of processor \"{name}\""),
                "measure every processor of the platform",
            )
        })
    };
    let surfaces: Vec<Surface> = platform.names().iter().map(find).collect::<Result<_>>()?;
    let processors = Processors {
        platform,
        models: Vec::new(),
        block: args.flow.block(),
        relative: false,
        sampled: false,
    };
    let wishes = wishes(args, &processors, shape)?;
    let choices = plan_fpm_br(shape, &processors.platform, &surfaces, args.flow.block(), &wishes)?;
    Ok((processors, choices))
}

fn wishes(args: &Arguments, processors: &Processors, shape: Shape) -> Result<PlanOptions> {
    Ok(PlanOptions {
        method: method_at("--method", args.method.as_deref().unwrap_or("auto"))?,
        flow: args.flow.flow.0,
        block: args.flow.pivot(shape.k)?,
        overlap: args.flow.overlaps(),
        look_ahead: args.flow.look_ahead()?,
        terms: args.terms(&processors.platform)?,
        form: args.form()?,
        minimise: minimise(args),
        element: 8,
        relative: processors.relative,
        fit: args.flow.fit(DataPath::Copied),
    })
}

/// What was chosen against what, where there is a layout.
fn chosen<'a>(args: &Arguments, processors: &Processors, choices: &'a [Choice]) -> Option<Chosen<'a>> {
    // The flow is not the plan's: each method counts with its best one.
    let mut seen = std::collections::BTreeSet::new();
    let choices: Vec<&Choice> = choices.iter().filter(|c| seen.insert(&c.plan.method)).collect();
    let (minimise, relative) = (minimise(args), processors.relative);
    (choices.len() > 1).then_some(Chosen { choices, minimise, relative })
}

fn minimise(args: &Arguments) -> Minimise {
    match args.minimise {
        MinimiseName::Time => Minimise::Time,
        MinimiseName::Sum => Minimise::Sum,
        MinimiseName::Largest => Minimise::Largest,
        MinimiseName::Volume => Minimise::Volume,
    }
}

fn text(
    plan: &Plan,
    (candidates, chosen): (&[Choice], Option<String>),
    network: &Network,
    relative: bool,
) -> String {
    let total = plan.shares.iter().sum::<u64>().max(1) as f64;
    // Where only ratios are known, times would be in no unit.
    let forecast = plan.forecast.as_ref().filter(|_| !relative);
    let rows = plan.processors.iter().enumerate().map(|(i, name)| {
        let mut row = vec![
            name.clone(),
            units::show_count(u128::from(plan.shares[i])),
            format!("{:.2} %", 100.0 * plan.shares[i] as f64 / total),
        ];
        row.extend(forecast.map(|f| units::show_seconds(f.compute[i])));
        row
    });
    let mut header = vec!["processor", "share", "of all"];
    header.extend(forecast.map(|_| "compute"));
    let mut out = table(&header, rows);
    let mut facts =
        vec![("method", plan.method.clone()), ("imbalance", format!("{:.4}", plan.metrics.imbalance))];
    if let Some(block) = plan.layout().ok().and_then(Layout::block) {
        let Shape { m, n, .. } = block.shape();
        facts.push(("repeated block", format!("{m} x {n}")));
    }
    let m = &plan.metrics;
    if let (Some(cost), Some(bound), Some(volume)) = (m.sum_half_perimeters, m.lower_bound, m.volume) {
        let ratio = cost / bound;
        facts.push((
            "half-perimeters",
            format!("{cost:.4} (lower bound {bound:.4}, cost / bound {ratio:.4})"),
        ));
        facts.push(("volume", format!("{} elements", units::show_count(u128::from(volume)))));
        let relayed = plan.layout().and_then(|l| relayed_volume(l, network)).ok().flatten();
        if let Some(relayed) = relayed.filter(|&r| r > volume) {
            facts.push(("relayed", format!("{} elements", units::show_count(u128::from(relayed - volume)))));
        }
    }
    if let Some(f) = forecast {
        facts.push(("forecast", units::show_seconds(f.seconds)));
    }
    facts.extend(chosen.map(|line| ("chosen", line)));
    out.push('\n');
    out.push_str(&pairs(&facts));
    out.push_str(&rivals(candidates, network, relative));
    out
}

/// Most candidates that are listed.
const MOST_RIVALS: usize = 12;

/// The methods that were compared, each with its best order of steps.
fn rivals(candidates: &[Choice], network: &Network, relative: bool) -> String {
    let mut seen = Vec::new();
    let best: Vec<&Choice> = candidates
        .iter()
        .filter(|c| {
            let new = !seen.contains(&&c.plan.method);
            seen.push(&c.plan.method);
            new
        })
        .collect();
    if best.len() < 2 {
        return String::new();
    }
    let rows = best.iter().map(|c| {
        let relayed = c.plan.layout().and_then(|l| relayed_volume(l, network)).ok().flatten();
        let volume =
            relayed.or(c.plan.metrics.volume).map_or_else(String::new, |v| units::show_count(u128::from(v)));
        let mut row = vec![c.plan.method.clone(), volume];
        if let Some(f) = c.plan.forecast.as_ref().filter(|_| !relative) {
            let flow = format!("{}{}", c.order.flow, if c.order.overlaps() { ", overlapped" } else { "" });
            row.extend([flow, units::show_seconds(f.seconds)]);
        }
        row
    });
    let star = matches!(network.topology, Topology::Star { .. });
    let volume = if star { "volume, relayed" } else { "volume" };
    let header: &[&str] =
        if relative { &["candidate", volume] } else { &["candidate", volume, "flow", "forecast"] };
    let more = match best.len().saturating_sub(MOST_RIVALS) {
        0 => String::new(),
        more => format!("and {more} more\n"),
    };
    format!("\n{}{more}", table(header, rows.take(MOST_RIVALS)))
}

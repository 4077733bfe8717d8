//! `apportion partition`.

use super::compare::compare;
use super::draw;
use crate::args::{FlowArgs, Sources};
use crate::console::Console;
use crate::inputs::{Processors, terms};
use apportion::shapes::{Communication, Terms};
use apportion::{
    Choice, Error, Forecast, Metrics, Minimise, Plan, Platform, Problem, Result, Shape, Wishes, imbalance,
    pairs, plan_matmul, shares, table, units, write_whole,
};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    apportion partition --shape 1000x1000 --speeds 9,1 --method square-corner --svg plan.svg\n\
    Methods for --units: even, proportional, fpm. For --shape: rows, straight-line, columns, square-corner,\n  \
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
}

impl Arguments {
    /// What the methods need to know.
    pub fn terms(&self, platform: &Platform) -> Result<Terms> {
        let communication = self.communication.map(|name| match name {
            CommunicationName::Serial => Communication::Serial,
            CommunicationName::Parallel => Communication::Parallel,
        });
        terms(platform, communication, self.groups.as_deref())
    }
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let (plan, processors, others) = match (&args.units, &args.shape) {
        (Some(n), _) => {
            let processors = args.sources.processors(1.0)?;
            (units_plan(*n, args.method.as_deref(), &processors)?, processors, Vec::new())
        }
        (None, Some(shape)) => {
            let shape = Shape::parse(shape, "--shape")?;
            let processors = args.sources.processors(2.0)?;
            let mut choices = shape_plans(shape, args, &processors)?;
            let best = choices.remove(0);
            (best.plan.clone(), processors, std::iter::once(best).chain(choices).collect())
        }
        (None, None) => unreachable!("clap asks for one of the two"),
    };
    if let Some(path) = &args.svg {
        draw(path, &plan, &processors.platform)?;
    }
    if let Some(path) = &args.output {
        write_whole(path, plan.to_json().as_bytes())?;
    }
    if args.compare {
        let compared = compare(args, &plan, &processors)?;
        console.result(|| compared.to_value(), || compared.to_text());
    } else {
        console.result(
            || plan.to_value(),
            || text(&plan, &others, processors.relative && plan.layout.is_some()),
        );
    }
    Ok(())
}

fn units_plan(n: u64, method: Option<&str>, processors: &Processors) -> Result<Plan> {
    let models = &processors.models;
    if n > 1 << 53 {
        return Err(Error::input("--units", format!("{n} is more than 2^53"), "give a smaller number"));
    }
    let method = method.unwrap_or("fpm");
    let shares = match method {
        "even" => shares::even(n, models.len()),
        "proportional" => {
            // The single-number model: each processor's speed at an equal share.
            let size = (n as f64 / models.len() as f64).max(1.0);
            let speeds: Vec<f64> = models.iter().map(|m| m.speed(size)).collect();
            if speeds.iter().all(|s| *s == 0.0) {
                return Err(Error::infeasible("no processor can hold an equal share", "use --method fpm"));
            }
            shares::proportional(n, &speeds)
        }
        "fpm" => shares::fpm(models, n)?,
        other => {
            return Err(Error::input(
                "--method",
                format!("unknown method \"{other}\" for --units"),
                "use even, proportional or fpm",
            ));
        }
    };
    let compute: Vec<f64> = models.iter().zip(&shares).map(|(m, &s)| m.seconds(s as f64)).collect();
    let seconds = compute.iter().copied().fold(0.0, f64::max);
    if seconds.is_infinite() {
        return Err(Error::infeasible(
            format!("{method} gives a processor more than its max_size"),
            "use --method fpm, which respects the caps",
        ));
    }
    Ok(Plan {
        method: method.into(),
        problem: Problem::Units { n },
        processors: processors.platform.names(),
        metrics: Metrics::of_units(imbalance(models, &shares)?),
        forecast: Some(Forecast { seconds, communicate: vec![0.0; compute.len()], compute }),
        shares,
        layout: None,
    })
}

fn shape_plans(shape: Shape, args: &Arguments, processors: &Processors) -> Result<Vec<Choice>> {
    let wishes = Wishes {
        method: super::product::method(args.method.as_deref().unwrap_or("auto"))?,
        flow: args.flow.flow.0,
        block: args.flow.block,
        overlap: args.flow.overlap,
        terms: args.terms(&processors.platform)?,
        minimise: match args.minimise {
            MinimiseName::Time => Minimise::Time,
            MinimiseName::Sum => Minimise::Sum,
            MinimiseName::Largest => Minimise::Largest,
            MinimiseName::Volume => Minimise::Volume,
        },
        element: 8,
        relative: processors.relative,
    };
    plan_matmul(shape, &processors.platform, &processors.models, processors.block, &wishes)
}

fn text(plan: &Plan, candidates: &[Choice], relative: bool) -> String {
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
    let m = &plan.metrics;
    if let (Some(cost), Some(bound), Some(volume)) = (m.sum_half_perimeters, m.lower_bound, m.volume) {
        let ratio = cost / bound;
        facts.push((
            "half-perimeters",
            format!("{cost:.4} (lower bound {bound:.4}, cost / bound {ratio:.4})"),
        ));
        facts.push(("volume", format!("{} elements", units::show_count(u128::from(volume)))));
    }
    if let Some(f) = forecast {
        facts.push(("forecast", units::show_seconds(f.seconds)));
    }
    out.push('\n');
    out.push_str(&pairs(&facts));
    out.push_str(&rivals(candidates, relative));
    out
}

/// The methods that were compared, each with its best order of steps.
fn rivals(candidates: &[Choice], relative: bool) -> String {
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
        let volume = c.plan.metrics.volume.map_or_else(String::new, |v| units::show_count(u128::from(v)));
        let mut row = vec![c.plan.method.clone(), volume];
        if let Some(f) = c.plan.forecast.as_ref().filter(|_| !relative) {
            let flow = format!("{}{}", c.order.flow, if c.order.overlap { ", overlapped" } else { "" });
            row.extend([flow, units::show_seconds(f.seconds)]);
        }
        row
    });
    let header: &[&str] =
        if relative { &["candidate", "volume"] } else { &["candidate", "volume", "flow", "forecast"] };
    format!("\n{}", table(header, rows))
}

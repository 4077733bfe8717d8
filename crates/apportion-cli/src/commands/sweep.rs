//! `apportion simulate --sweep`: forecasts along one parameter of the machine, and who wins where.

use crate::args::FlowArgs;
use crate::args::sharing::Rule;
use crate::console::{Console, monitor};
use crate::output::{appear, is_csv, open};
use crate::prepare::processors::{Processors, method_at};
use apportion::error::{Error, Result};
use apportion::explore::{
    Candidate, LayoutSource, Parameter, ParameterSweep, SweepResult, SweepSetup, sweep,
};
use apportion::plan::shapes::Method;
use apportion::plan::{Plan, Problem, Shape};
use apportion::report::{Plot, Series, pairs, plot_svg_on, table};
use apportion::schedule::ScheduleOptions;
use apportion::units;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(next_help_heading = "What if the machine were another")]
pub struct SweepArgs {
    /// Vary one parameter, and find where another method or flow starts to win: bandwidth=100Mbit/s..10Gbit/s (of the
    /// slowest link; the others keep their ratio to it), latency=1us..1ms (of the longest), ratio=1..25 (how many times as
    /// fast the first processor is as the others are on average; the sum of the speeds stays), processors=2..64 (the
    /// platform's, and again from the first).
    #[arg(long, value_name = "PARAMETER=FROM..TO", conflicts_with_all = ["trace", "explain", "export_simgrid"])]
    pub sweep: Option<ParameterSweep>,
    /// How many values, in equal ratios; default: each whole ratio or number of processors up to 25 of them, else 13.
    #[arg(long, value_name = "N", requires = "sweep", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub sweep_points: Option<u64>,
    /// Instead of a plan: the sizes of a product, MxN (then k = n) or MxKxN, laid out anew for each value.
    #[arg(long, value_name = "MxN|MxKxN", requires = "sweep", conflicts_with = "plan")]
    pub shape: Option<String>,
    /// The methods compared, each with its fastest flow; one method alone: its flows. Default: the plan's own layout, or
    /// all methods that auto compares.
    #[arg(long, value_name = "METHOD,METHOD", value_delimiter = ',', requires = "sweep")]
    pub methods: Option<Vec<String>>,
    /// Write the table: .csv, or .json.
    #[arg(long, short, value_name = "FILE", requires = "sweep")]
    pub output: Option<PathBuf>,
    /// Draw the forecasts as curves.
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub svg: Option<PathBuf>,
}

/// Sweeps, writes and prints.
pub fn run(
    args: &SweepArgs,
    (plan, processors): (Option<&Plan>, &Processors),
    (flow, element, rule): (&FlowArgs, u64, &Rule),
    console: &Console,
) -> Result<()> {
    let mut wanted = args.sweep.expect("only called where --sweep is given");
    wanted.points = args.sweep_points.map(|n| n as usize);
    let csv = args.output.as_deref().map(is_csv).transpose()?;
    let files = [open(args.output.as_ref())?, open(args.svg.as_ref())?];
    let shape = match (&args.shape, plan.map(Plan::problem)) {
        (Some(text), _) => Shape::parse(text, "--shape")?,
        (None, Some(Problem::Matmul(shape))) => shape,
        _ => {
            return Err(Error::input(
                "--sweep",
                "units have no method or flow to compare",
                "sweep a matrix product: --shape, or a plan of one",
            ));
        }
    };
    let contenders = contenders(args, plan, &flow.orders(shape.k)?, wanted.parameter)?;
    let setting = SweepSetup {
        shape,
        platform: &processors.platform,
        models: &processors.models,
        models_block: processors.block,
        element,
        relative: processors.relative,
        sharing: match rule {
            Rule::Fifo => None,
            Rule::Fluid(rules) => Some(rules),
        },
    };
    let monitor = monitor();
    let swept = console.watch("sweeping", monitor, || sweep(&setting, &contenders, &wanted, monitor))?;
    if processors.relative {
        console.note("speeds without a unit tell ratios only: forecasts are of communication alone");
    }
    let told = Told { wanted, contenders: &contenders, swept: &swept, rule };
    let sizes = format!("{} x {} x {} on {}", shape.m, shape.k, shape.n, processors.platform.name);
    let title = if *rule == Rule::Fifo { sizes } else { format!("{sizes}, links shared {rule}") };
    let [output, svg] = files;
    let listed = || if csv == Some(true) { told.csv() } else { format!("{:#}\n", told.value()) };
    appear([(output, &listed), (svg, &|| told.picture(&title))])?;
    console.result(|| told.value(), || told.text());
    Ok(())
}

fn contenders(
    args: &SweepArgs,
    plan: Option<&Plan>,
    orders: &[ScheduleOptions],
    parameter: Parameter,
) -> Result<Vec<Candidate>> {
    let by = |method: Method| (method.to_string(), LayoutSource::By(method));
    let mut ways = Vec::new();
    match (&args.methods, plan.and_then(|p| Some((p, p.layout().ok()?)))) {
        (Some(names), _) => {
            for name in names {
                match method_at("--methods", name)? {
                    Some(method) => ways.push(by(method)),
                    None => ways.extend(Method::candidates().map(by)),
                }
            }
        }
        (None, Some((plan, layout))) if parameter.is_of_the_network() => {
            ways.push((plan.method.clone(), LayoutSource::Given(Box::new(layout.clone()))));
        }
        (None, Some((plan, _))) => match plan.method.parse() {
            Ok(method) => ways.push(by(method)),
            Err(_) => {
                return Err(Error::input(
                    "--sweep",
                    format!(
                        "the plan's method \"{}\" cannot lay out anew as the {parameter} varies",
                        plan.method
                    ),
                    "name --methods",
                ));
            }
        },
        (None, None) => ways.extend(Method::candidates().map(by)),
    }
    ways.dedup_by(|a, b| a.0 == b.0);
    // One way alone competes with itself, by flow.
    Ok(match &ways[..] {
        [(_, way)] => orders
            .iter()
            .map(|&order| Candidate { name: order.to_string(), way: way.clone(), orders: vec![order] })
            .collect(),
        _ => ways.into_iter().map(|(name, way)| Candidate { name, way, orders: orders.to_vec() }).collect(),
    })
}

/// A sweep as text, JSON, CSV and picture.
struct Told<'a> {
    wanted: ParameterSweep,
    contenders: &'a [Candidate],
    swept: &'a SweepResult,
    rule: &'a Rule,
}

impl Told<'_> {
    fn value(&self) -> Value {
        let points = self.swept.points.iter().map(|point| {
            let seconds: Vec<Option<f64>> = point.forecasts.iter().map(|f| f.map(|f| f.0)).collect();
            let flows: Vec<Option<String>> =
                point.forecasts.iter().map(|f| f.map(|f| f.1.to_string())).collect();
            let winner = point.winner.map(|w| &self.contenders[w].name);
            json!({"value": point.value, "seconds": seconds, "flows": flows, "winner": winner})
        });
        let crossovers = self.swept.crossovers.iter().map(|c| {
            json!({"at": c.at, "from": self.contenders[c.from].name, "to": self.contenders[c.to].name, "seconds": c.seconds})
        });
        json!({
            "parameter": self.wanted.parameter.to_string(),
            "from": self.wanted.from,
            "to": self.wanted.to,
            "sharing": self.rule.to_string(),
            "contenders": self.contenders.iter().map(|c| &c.name).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
            "crossovers": crossovers.collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> String {
        let mut out = self.wanted.parameter.to_string();
        self.contenders.iter().for_each(|c| out += &format!(",{}", c.name));
        out += ",winner\n";
        for point in &self.swept.points {
            out += &point.value.to_string();
            for forecast in &point.forecasts {
                out += &forecast.map_or_else(|| ",".into(), |f| format!(",{}", f.0));
            }
            out += &format!(",{}\n", point.winner.map_or("", |w| &self.contenders[w].name));
        }
        out
    }

    fn text(&self) -> String {
        let parameter = self.wanted.parameter;
        let name = parameter.to_string();
        let mut header = vec![name.as_str()];
        header.extend(self.contenders.iter().map(|c| c.name.as_str()));
        header.push("winner");
        let rows = self.swept.points.iter().map(|point| {
            let mut row = vec![parameter.show(point.value)];
            row.extend(
                point.forecasts.iter().map(|f| f.map_or_else(|| "-".into(), |f| units::show_seconds(f.0))),
            );
            row.push(point.winner.map_or_else(String::new, |w| self.contenders[w].name.clone()));
            row
        });
        let mut out = table(&header, rows);
        out.push('\n');
        let mut facts: Vec<(&str, String)> = self
            .swept
            .crossovers
            .iter()
            .map(|c| {
                let (from, to) = (&self.contenders[c.from].name, &self.contenders[c.to].name);
                let at = parameter.show(c.at);
                ("crossover", format!("{at}: {to} instead of {from}, at {}", units::show_seconds(c.seconds)))
            })
            .collect();
        if facts.is_empty() {
            facts.push(("crossover", "none".into()));
        }
        if *self.rule != Rule::Fifo {
            facts.insert(0, ("sharing", self.rule.to_string()));
        }
        out + &pairs(&facts)
    }

    /// Curves, and for each crossover a dashed line up to it.
    fn picture(&self, title: &str) -> String {
        let parameter = self.wanted.parameter;
        let (axis, unit) = match parameter {
            Parameter::Bandwidth => ("bandwidth of the slowest link in Mbit/s", 8e-6),
            Parameter::Latency => ("longest latency in microseconds", 1e6),
            Parameter::Ratio => ("speed of the first processor to the others' average", 1.0),
            Parameter::Processors => ("processors", 1.0),
        };
        let all = || self.swept.points.iter().flat_map(|p| &p.forecasts).flatten().map(|f| f.0);
        let (least, most) = all().fold((f64::INFINITY, 0.0f64), |(a, b), s| (a.min(s), b.max(s)));
        let scales = [("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6)];
        let (name, scale) = scales.into_iter().find(|(_, f)| most * f >= 1.0).unwrap_or(scales[2]);
        let mut series: Vec<Series> = (0..self.contenders.len())
            .map(|i| Series {
                name: self.contenders[i].name.clone(),
                points: self
                    .swept
                    .points
                    .iter()
                    .map(|p| [p.value * unit, p.forecasts[i].map_or(f64::NAN, |f| f.0 * scale)])
                    .collect(),
                dashed: false,
                colour: i,
            })
            .collect();
        for c in &self.swept.crossovers {
            series.push(Series {
                name: format!("{} wins from {}", self.contenders[c.to].name, parameter.show(c.at)),
                points: vec![[c.at * unit, c.seconds * scale]],
                dashed: true,
                colour: c.to,
            });
        }
        let plot = Plot {
            title: [format!("Forecast as a function of {parameter}"), title.to_owned()],
            axes: [axis.into(), format!("forecast in {name}")],
            series,
            references: Vec::new(),
        };
        let wide = self.wanted.to / self.wanted.from > 30.0;
        plot_svg_on(&plot, [wide, least > 0.0 && most / least > 20.0])
    }
}

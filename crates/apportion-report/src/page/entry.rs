//! What a page shows of one result, read from its JSON.

use super::{Document, words};
use apportion::error::{Error, Result};
use apportion::model::Models;
use apportion::plan::{Plan, Problem};
use apportion::record::{
    Candidate, Choice, Detail, EventChart, HostFacts, Lanes, ProcessorRun, Provenance, Run, Timeline,
    Verification, read_record,
};
use apportion::trace::Trace;
use apportion::units::{show_bytes, show_count, show_figures, show_seconds};
use serde_json::{Map, Number, Value};

/// A number of the page's head.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

/// A number with a note, which may be empty.
fn tile(label: &'static str, value: impl Into<String>, note: impl Into<String>) -> Tile {
    Tile { label, value: value.into(), note: note.into() }
}

/// What is said of the ideal time.
const FULL_SPEED: &str = "all processors at full speed, no waiting";

/// The times of a processor, in seconds.
pub(super) struct Times {
    pub(super) name: String,
    pub(super) compute: f64,
    pub(super) communicate: f64,
    pub(super) idle: f64,
}

impl From<&ProcessorRun> for Times {
    fn from(processor: &ProcessorRun) -> Self {
        let ProcessorRun { name, compute, communicate, idle, .. } = processor;
        Self { name: name.clone(), compute: *compute, communicate: *communicate, idle: *idle }
    }
}

/// A table with a heading.
pub(super) struct Table {
    pub(super) heading: &'static str,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// One result.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) file: String,
    /// What it is the result of.
    pub(super) kind: &'static str,
    pub(super) title: String,
    pub(super) tiles: Vec<Tile>,
    /// Seconds: measured, by forecast, and at best.
    pub(super) measured: Option<f64>,
    pub(super) forecast: Option<f64>,
    pub(super) ideal: Option<f64>,
    pub(super) plan: Option<Plan>,
    pub(super) times: Vec<Times>,
    /// The lanes that were measured, and those that were forecast.
    pub(super) lanes: Option<Trace>,
    pub(super) forecast_lanes: Option<Trace>,
    pub(super) chart: Option<EventChart>,
    pub(super) models: Option<Models>,
    pub(super) tables: Vec<Table>,
    /// Where the time went, and what would make it faster.
    pub(super) reasons: Vec<String>,
    pub(super) remedies: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) machine: Vec<(&'static str, String)>,
    pub(super) command: Option<String>,
}

impl Entry {
    /// # Errors
    /// The document is of no known format, or lacks what its format has.
    pub(super) fn read(document: &Document) -> Result<Self> {
        let Document { name, value } = document;
        let read = match value["format"].as_str() {
            Some("apportion-run") => Self::of_run(value),
            Some("apportion-plan") => Self::of_plan(value, name),
            Some("apportion-models") => Self::of_models(value, name),
            Some("apportion-simulation") => Self::of_simulation(value, name),
            Some("apportion-layouts") => Self::of_layouts(value),
            Some("apportion-balance") => Self::of_balance(value, name),
            Some("apportion-events") => Self::of_events(value),
            Some(other) => {
                let what = format!("\"{}\" is a format that no report shows", super::name_text(other));
                return Err(Error::input(format!("{name}: format"), what, REMEDY));
            }
            None => return Err(Error::input(format!("{name}: format"), "is missing", REMEDY)),
        };
        let entry = read.map_err(|error| match error {
            Defect::Field(field) => {
                let what = "is missing or not what its format says";
                Error::input(format!("{name}: {field}"), what, "write the file again with this version")
            }
            Defect::Inner(error) => error,
        })?;
        let provenance: Provenance = read_record(&value["provenance"], &[]).unwrap_or_default();
        let machine = provenance.machine.as_ref().map_or_else(Vec::new, facts);
        let version = provenance.version.map(|version| ("apportion", version));
        let machine = machine.into_iter().chain(entry.machine).chain(version).collect();
        Ok(Self { file: name.clone(), command: provenance.command, machine, ..entry })
    }

    fn of_run(value: &Value) -> Read {
        let (plan, models) = (part_plan(&value["plan"], "plan")?, part_models(&value["models"])?);
        let run =
            read_record(value, &["seconds", "processors"]).map_err(|field| Defect::Field(field.into()))?;
        let run = Run { plan, models, ..run };
        if run.processors.iter().any(|processor| processor.name.is_empty()) {
            return Err(Defect::Field("processors".into()));
        }
        let mut tiles = vec![tile("Measured", show_seconds(run.seconds), "")];
        tiles.extend(run.forecast_seconds.map(|forecast| {
            let note = run.forecast_range().map_or_else(String::new, |[low, high]| {
                format!("{} to {} beside other programs", show_seconds(low), show_seconds(high))
            });
            tile("Forecast", show_seconds(forecast), note)
        }));
        tiles.extend(run.ideal_seconds.map(|ideal| tile("Ideal", show_seconds(ideal), FULL_SPEED)));
        if let Some(volume) = run.volume {
            let bound = match &run.detail {
                Detail::Product(product) => product.volume_lower_bound,
                _ => None,
            };
            let note = bound.map_or_else(String::new, |bound| format!("at least {}", count(bound)));
            tiles.push(tile("Elements moved", count(volume), note));
        }
        let (kind, how) = match &run.detail {
            Detail::Product(product) => {
                if product.verified == Some(true) {
                    let note = match product.verification {
                        None => "",
                        Some(Verification::Freivalds { .. }) => "16 random checks of the whole product",
                        Some(Verification::Sampled { .. }) => "elements computed again",
                    };
                    tiles.push(tile("Verified", "yes", note));
                }
                let kind = match (&product.algorithm, product.products) {
                    (Some(_), _) => "Closure",
                    (None, 2..) => "Matrix power",
                    (None, _) => "Matrix product",
                };
                let flow = if product.flow.is_empty() { "unknown" } else { &product.flow };
                let overlap = if product.overlap == Some(true) { " with overlap" } else { "" };
                (kind, format!("{flow} flow{overlap}"))
            }
            Detail::Factorisation(factors) => {
                if factors.verified == Some(true) {
                    let residual = format!("{:.3}", factors.residual.unwrap_or(f64::NAN));
                    tiles.push(tile("Residual", residual, "times n ||A|| eps; correct up to 30"));
                }
                ("Factorisation", format!("blocks of {}", count(factors.block)))
            }
            Detail::Advection(advection) => {
                let speed = advection.million_cells_per_second.map(|speed| format!("{speed:.1} M"));
                tiles.extend(speed.map(|speed| tile("Cells per second", speed, "")));
                ("Advection", format!("{} steps of MPDATA", count(advection.steps)))
            }
            Detail::Sparse(sparse) => {
                let speed = sparse.flops_per_second.map(|speed| format!("{:.2} G", speed / 1e9));
                tiles.extend(speed.map(|speed| tile("Flop per second", speed, "")));
                let residual = sparse.solution.map(|solution| format!("{:.1e}", solution.residual));
                tiles.extend(residual.map(|residual| tile("Residual", residual, "of the right-hand side")));
                ("Sparse matrix", format!("{} steps of {}", count(sparse.steps), sparse.problem))
            }
        };
        let lanes = |lanes: &Option<Lanes>| lanes.as_ref().and_then(Lanes::to_trace);
        let entry = Self {
            kind,
            title: format!("{}, {how}", title(&run.plan)),
            tiles,
            measured: Some(run.seconds),
            forecast: run.forecast_seconds,
            ideal: run.ideal_seconds,
            times: run.processors.iter().map(Times::from).collect(),
            lanes: lanes(&run.timeline.measured),
            forecast_lanes: lanes(&run.timeline.forecast),
            models: run.models.clone(),
            notes: run.notes.clone(),
            tables: run.choice.as_ref().map(candidates).into_iter().collect(),
            ..Self::default()
        };
        let (reasons, remedies) = (words::of_run(&run, &entry), words::remedies_of_run(&run, &entry));
        let mut machine = Vec::new();
        machine.extend(run.kernel["name"].as_str().map(|name| ("Kernel", name.to_owned())));
        machine.extend(Some(run.engine).filter(|name| !name.is_empty()).map(|name| ("Engine", name)));
        machine.extend(run.network.map(|network| ("Hosts", network.hosts.join(", "))));
        Ok(Self { reasons, remedies, machine, plan: Some(run.plan), ..entry })
    }

    fn of_plan(value: &Value, name: &str) -> Read {
        let plan = part_plan(value, name)?;
        let (forecast, metrics) = (plan.forecast.as_ref(), &plan.metrics);
        let mut tiles = Vec::new();
        if let Some(forecast) = forecast {
            let bound =
                metrics.time_bound.map(|bound| format!("no plan takes less than {}", show_seconds(bound)));
            tiles.push(tile("Forecast", show_seconds(forecast.seconds), bound.unwrap_or_default()));
        }
        tiles.push(tile("Imbalance", format!("{:.4}", metrics.imbalance), "longest computation / ideal"));
        tiles.extend(metrics.volume.map(|volume| tile("Elements to move", count(volume), "")));
        if let (Some(cost), Some(bound)) = (metrics.sum_half_perimeters, metrics.lower_bound) {
            tiles.push(tile("Half-perimeters", format!("{cost:.3}"), format!("lower bound {bound:.3}")));
        }
        let entry = Self {
            kind: "Plan",
            title: title(&plan),
            tiles,
            forecast: forecast.map(|forecast| forecast.seconds),
            times: forecast.map_or_else(Vec::new, |forecast| planned(&plan.processors, forecast)),
            models: part_models(&value["models"])?,
            tables: choice(value).as_ref().map(candidates).into_iter().collect(),
            plan: Some(plan),
            ..Self::default()
        };
        let (reasons, remedies) = (words::of_plan(value, &entry), words::remedies_of_plan(value, &entry));
        Ok(Self { reasons, remedies, ..entry })
    }

    fn of_models(value: &Value, name: &str) -> Read {
        let models = part_models(value)?.ok_or_else(|| Defect::Field(name.to_owned()))?;
        let points = || models.models.iter().flat_map(|model| model.points());
        let repetitions: u64 = points().map(|point| point.repetitions).sum();
        let measured = match repetitions {
            0 => "computed, not measured".into(),
            _ => format!("{} measurements", count(repetitions)),
        };
        let tiles = vec![
            tile("Processors", count(models.models.len() as u64), ""),
            tile("Points", count(points().count() as u64), measured),
        ];
        let rows = models.models.iter().flat_map(|model| {
            model.points().iter().map(move |point| {
                vec![
                    model.processor().to_owned(),
                    count(point.size.round() as u64),
                    show_seconds(point.seconds),
                    point.ci.map_or("-".into(), |ci| format!("{:.1} %", 100.0 * ci / point.seconds)),
                    match point.speed() {
                        speed if (0.1..1e6).contains(&speed) => show_figures(speed, 1),
                        speed => format!("{speed:.3e}"),
                    },
                ]
            })
        });
        let table = Table {
            heading: "Points",
            header: vec!["processor", "size", "time", "±", "units per second"],
            rows: rows.collect(),
        };
        Ok(Self {
            kind: "Speed functions",
            title: format!("Speeds of {}", super::name_text(&models.kernel)),
            tiles,
            reasons: words::of_models(&models),
            remedies: words::remedies_of_models(&models),
            tables: vec![table],
            models: Some(models),
            ..Self::default()
        })
    }

    fn of_simulation(value: &Value, name: &str) -> Read {
        let seconds = number(value, "seconds")?;
        let plan = match &value["plan"] {
            Value::Null => None,
            plan => Some(part_plan(plan, name)?),
        };
        let alone = value["communication_only"] == true;
        let mut tiles = vec![match alone {
            true => {
                tile("Communication", show_seconds(seconds), "speeds are ratios: computation has no seconds")
            }
            false => tile("Forecast", show_seconds(seconds), ""),
        }];
        let volume = plan.as_ref().and_then(|plan| plan.metrics.volume);
        tiles.extend(volume.map(|volume| tile("Elements to move", count(volume), "")));
        let flow = value["flow"].as_str().map(|flow| {
            format!(", {flow} flow{}", if value["overlap"] == true { " with overlap" } else { "" })
        });
        let times = times(&value["processors"])?;
        let timeline: Timeline = read_record(&value["timeline"], &[]).unwrap_or_default();
        let what = plan.as_ref().map_or_else(|| format!("{} processors", times.len()), title);
        let entry = Self {
            kind: "Simulation",
            title: what + &flow.unwrap_or_default(),
            tiles,
            forecast: Some(seconds),
            times,
            forecast_lanes: timeline.forecast.as_ref().and_then(Lanes::to_trace),
            plan,
            ..Self::default()
        };
        let (reasons, remedies) = (words::of_simulation(value, &entry), words::remedies_of_simulation(value));
        Ok(Self { reasons, remedies, ..entry })
    }

    /// The layouts of a factorisation.
    fn of_layouts(value: &Value) -> Read {
        let layouts = value["layouts"].as_array().ok_or_else(|| Defect::Field("layouts".into()))?;
        let seconds: Vec<f64> =
            layouts.iter().map(|row| number(row, "seconds")).collect::<std::result::Result<_, Defect>>()?;
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let ideal = value["ideal_seconds"].as_f64();
        let text = |row: &Value, field: &str| super::name_text(row[field].as_str().unwrap_or("unknown"));
        let fastest = text(value, "fastest");
        let mut tiles = vec![tile("Fastest", fastest, show_seconds(least))];
        tiles.extend(ideal.map(|ideal| tile("Ideal", show_seconds(ideal), FULL_SPEED)));
        let row = |(row, seconds): (&Value, &f64)| {
            let whole = |field: &str| row[field].as_u64().map_or("-".into(), count);
            vec![
                text(row, "method"),
                whole("block"),
                show_seconds(*seconds),
                ideal.map_or("-".into(), |ideal| format!("{:.1} %", 100.0 * ideal / seconds)),
                whole("volume"),
            ]
        };
        let table = Table {
            heading: "Layouts",
            header: vec!["layout", "block", "forecast", "of ideal", "elements moved"],
            rows: layouts.iter().zip(&seconds).map(row).collect(),
        };
        let n = count(value["n"].as_u64().ok_or_else(|| Defect::Field("n".into()))?);
        Ok(Self {
            kind: "Factorisation on a cluster",
            title: format!("{} of {n} × {n}", text(value, "factors")),
            tiles,
            forecast: least.is_finite().then_some(least),
            ideal,
            tables: vec![table],
            ..Self::default()
        })
    }

    fn of_balance(value: &Value, name: &str) -> Read {
        let plan = part_plan(&value["plan"], name)?;
        let rounds = value["rounds"].as_array().ok_or_else(|| Defect::Field("rounds".into()))?;
        let best = value["best"].as_u64().unwrap_or(0) as usize;
        let longest = |round: &Value| {
            let seconds = round["seconds"].as_array().into_iter().flatten();
            seconds.filter_map(Value::as_f64).fold(0.0, f64::max)
        };
        let row = |(i, round): (usize, &Value)| {
            let shares = round["shares"].as_array().into_iter().flatten().filter_map(Value::as_u64);
            let mut row = vec![
                format!("{}{}", i + 1, if i == best { " (kept)" } else { "" }),
                show_seconds(longest(round)),
                round["spread"].as_f64().map_or("-".into(), |x| format!("{:.1} %", 100.0 * x)),
            ];
            row.push(shares.map(count).collect::<Vec<_>>().join(" / "));
            row
        };
        let kept = rounds.get(best).ok_or_else(|| Defect::Field("best".into()))?;
        let (first, seconds) = (longest(&rounds[0]), longest(kept));
        let against = value["gain"]["against"].as_str().map(|what| format!("the {what}"));
        let spread = kept["spread"].as_f64().map(|x| format!("times differ by {:.1} %", 100.0 * x));
        let round = format!("round {} of {}", best + 1, rounds.len());
        let balanced = if value["balanced"] == true { "yes" } else { "no" };
        let tiles = vec![
            tile("Time of the round kept", show_seconds(seconds), round),
            tile("First round", show_seconds(first), against.unwrap_or_default()),
            tile("Gain", format!("{:.2} ×", first / seconds), "as fast as the first round"),
            tile("Balanced", balanced, spread.unwrap_or_default()),
        ];
        let took = kept["seconds"].as_array().into_iter().flatten().map(|x| x.as_f64().unwrap_or(0.0));
        let times = plan.processors.iter().zip(took).map(|(name, compute)| Times {
            name: name.clone(),
            compute,
            communicate: 0.0,
            idle: seconds - compute,
        });
        let table = Table {
            heading: "Rounds",
            header: vec!["round", "longest time", "times differ by", "shares"],
            rows: rounds.iter().enumerate().map(row).collect(),
        };
        let entry = Self {
            kind: "Balance",
            title: title(&plan),
            tiles,
            measured: Some(seconds),
            times: times.collect(),
            models: part_models(&value["models"])?,
            tables: vec![table],
            plan: Some(plan),
            ..Self::default()
        };
        let (reasons, remedies) = (words::of_balance(value, &entry), words::remedies_of_balance(value));
        Ok(Self { reasons, remedies, ..entry })
    }

    fn of_events(value: &Value) -> Read {
        let seconds = number(value, "seconds")?;
        let chart: EventChart =
            serde_json::from_value(value["chart"].clone()).map_err(|_| Defect::Field("chart".into()))?;
        if !chart.is_sound() {
            return Err(Defect::Field("chart.lanes".into()));
        }
        let products = value["products"].as_object().into_iter().flatten();
        let products: Vec<String> =
            products.filter_map(|(name, n)| Some(format!("{} {name}", n.as_u64()?))).collect();
        let products = if products.is_empty() { "none".into() } else { products.join(", ") };
        let tiles = vec![
            tile("Makespan", show_seconds(seconds), ""),
            tile("End", value["end"].as_str().unwrap_or("unknown"), ""),
            tile("Products", products, ""),
        ];
        let rows = value["resources"].as_array().into_iter().flatten().map(|resource| {
            let time = |field: &str| resource[field].as_f64().map_or("-".into(), show_seconds);
            vec![
                resource["name"].as_str().unwrap_or_default().to_owned(),
                resource["capacity"].to_string(),
                resource["utilisation"].as_f64().map_or("-".into(), |x| format!("{:.1} %", 100.0 * x)),
                time("working_seconds"),
                time("waiting_seconds"),
            ]
        });
        let resources = Table {
            heading: "Resources",
            header: vec!["resource", "units", "utilisation", "working", "held, waiting"],
            rows: rows.collect(),
        };
        let scenarios = value["scenarios"].as_array().into_iter().flatten().map(|line| {
            let time = |field: &str| line[field].as_f64().map_or("-".into(), show_seconds);
            vec![
                line["name"].as_str().unwrap_or_default().to_owned(),
                time("mean_seconds"),
                time("least_seconds"),
                time("most_seconds"),
                line["products"].to_string(),
            ]
        });
        let scenarios: Vec<Vec<String>> = scenarios.collect();
        let mut tables = vec![resources];
        if scenarios.len() > 1 {
            let header = vec!["scenario", "makespan", "least", "most", "products"];
            tables.push(Table { heading: "Scenarios", header, rows: scenarios });
        }
        Ok(Self {
            kind: "Workcell",
            title: value["workcell"].as_str().unwrap_or_default().to_owned(),
            tiles,
            forecast: Some(seconds),
            chart: Some(chart),
            tables,
            reasons: words::of_events(value),
            remedies: words::remedies_of_events(value),
            ..Self::default()
        })
    }

    /// The seconds that a comparison of results is about.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.measured.or(self.forecast)
    }
}

/// What is wrong with a document.
pub(super) enum Defect {
    /// A field.
    Field(String),
    /// What a part of it, such as its plan, says.
    Inner(Error),
}

type Read = std::result::Result<Entry, Defect>;

const REMEDY: &str = "name files that --report, -o or --json wrote: run.json, plan.json, models.json, or the JSON \
                      of simulate, balance or mdem";

/// The fields of a plan file; `--json` has more.
const PLAN_FIELDS: [&str; 11] = [
    "format",
    "version",
    "method",
    "problem",
    "processors",
    "shares",
    "layout",
    "repeat",
    "metrics",
    "forecast",
    "relative_times",
];

fn part_plan(value: &Value, place: &str) -> std::result::Result<Plan, Defect> {
    let Some(object) = value.as_object() else { return Err(Defect::Field("plan".into())) };
    let fields = object.iter().filter(|(field, _)| PLAN_FIELDS.contains(&field.as_str()));
    let plan: Map<String, Value> = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    Plan::parse(&Value::from(plan).to_string(), place).map_err(Defect::Inner)
}

fn part_models(value: &Value) -> std::result::Result<Option<Models>, Defect> {
    match value {
        Value::Null => Ok(None),
        value => Models::parse(&value.to_string(), "models").map(Some).map_err(Defect::Inner),
    }
}

fn number(value: &Value, field: &str) -> std::result::Result<f64, Defect> {
    let number = value[field].as_f64().filter(|x| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| Defect::Field(field.into()))
}

fn times(processors: &Value) -> std::result::Result<Vec<Times>, Defect> {
    let processors: Vec<ProcessorRun> =
        serde_json::from_value(processors.clone()).map_err(|_| Defect::Field("processors".into()))?;
    Ok(processors.iter().map(Times::from).collect())
}

/// The times of a plan's forecast.
fn planned(names: &[String], forecast: &apportion::plan::Forecast) -> Vec<Times> {
    let all = names.iter().zip(&forecast.compute).zip(&forecast.communicate);
    all.map(|((name, &compute), &communicate)| Times {
        name: name.clone(),
        compute,
        communicate,
        idle: (forecast.seconds - compute - communicate).max(0.0),
    })
    .collect()
}

/// `C of 1,500 x 1,500 by square-corner on 2 processors`.
fn title(plan: &Plan) -> String {
    let what = match plan.problem() {
        Problem::Matmul(s) if s.k == s.n => format!("C of {} × {}", count(s.m), count(s.n)),
        Problem::Matmul(s) => format!("C of {} × {}, k = {}", count(s.m), count(s.n), count(s.k)),
        Problem::Syrk { n, k } => format!("lower triangle of {} × {}, k = {}", count(n), count(n), count(k)),
        Problem::Grid { m, n } => format!("{} × {} cells", count(m), count(n)),
        Problem::Factorisation { factors, n, .. } => format!("{factors} of {} × {}", count(n), count(n)),
        Problem::Units { n } => format!("{} units", count(n)),
        Problem::Graph { n, edges } => format!("graph of {} vertices, {} edges", count(n), count(edges)),
    };
    let p = plan.processors.len();
    let plural = if p == 1 { "" } else { "s" };
    format!("{what} by {} on {} processor{plural}", plan.method, count(p as u64))
}

/// The choice of a plan, if the document has one.
fn choice(value: &Value) -> Option<Choice> {
    serde_json::from_value(value["choice"].clone()).ok()
}

/// The candidates that a choice was made from, the best first.
fn candidates(choice: &Choice) -> Table {
    let timed = matches!(choice.by.as_str(), "forecast" | "communication alone");
    let show = |value: f64| match timed {
        true => show_seconds(value),
        false if choice.by == "volume" => count(value as u64),
        false => format!("{value:.4}"),
    };
    let row = |candidate: &Candidate| {
        let overlap = if candidate.overlap { " with overlap" } else { "" };
        let value = match (candidate.value, candidate.at_least) {
            (Some(value), _) => show(value),
            (None, Some(least)) => format!("at least {}", show_seconds(least)),
            (None, None) => "-".into(),
        };
        let excess = candidate.excess.as_ref().and_then(Value::as_f64);
        vec![
            candidate.method.clone(),
            format!("{}{overlap}", candidate.flow),
            value,
            excess.map_or_else(String::new, |x| format!("+{:.1} %", 100.0 * x)),
        ]
    };
    let against = choice.against.iter().take(MOST_CANDIDATES);
    let rows = std::iter::once(&choice.chosen).chain(against).map(row).collect();
    let header = vec!["candidate", "flow", if timed { "forecast" } else { "cost" }, "more than the chosen"];
    Table { heading: "What else was considered", header, rows }
}

/// The number of candidates shown besides the chosen one.
const MOST_CANDIDATES: usize = 11;

fn facts(machine: &HostFacts) -> Vec<(&'static str, String)> {
    let bytes = |bytes: &Option<Number>| bytes.as_ref().and_then(Number::as_f64).map(show_bytes);
    let facts = [
        ("Host", machine.host.clone()),
        ("Processor", machine.model.clone()),
        ("Cores", machine.cores.map(count)),
        ("CPU quota", machine.quota_cores.map(|quota| format!("{quota:.2} cores"))),
        ("Memory", bytes(&machine.memory_bytes)),
        ("Memory limit", bytes(&machine.memory_limit_bytes)),
        ("Instructions", machine.instructions.clone()),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

pub(super) fn count(n: u64) -> String {
    show_count(u128::from(n))
}

//! What a page shows of one result, read from its JSON.

use super::{Document, words};
use crate::events::EventChart;
use crate::lanes::read_lanes;
use apportion::error::{Error, Result};
use apportion::model::Models;
use apportion::plan::{Plan, Problem};
use apportion::trace::Trace;
use apportion::units::{show_bytes, show_count, show_figures, show_seconds};
use serde_json::{Map, Value};

/// A number of the page's head.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

/// The times of a processor, in seconds.
pub(super) struct Times {
    pub(super) name: String,
    pub(super) compute: f64,
    pub(super) communicate: f64,
    pub(super) idle: f64,
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
        let provenance = &value["provenance"];
        Ok(Self {
            file: name.clone(),
            command: provenance["command"].as_str().map(str::to_owned),
            machine: machine(value),
            ..entry
        })
    }

    fn of_run(value: &Value) -> Read {
        let plan = part_plan(&value["plan"], "plan")?;
        let seconds = number(value, "seconds")?;
        let advects = value["application"] == "mpdata";
        let factors = value["application"] == "factorisation";
        let forecast = value["forecast_seconds"].as_f64();
        let mut tiles = vec![Tile { label: "Measured", value: show_seconds(seconds), note: String::new() }];
        tiles.extend(forecast.map(|forecast| {
            let range = value["forecast_range"].as_array().filter(|range| range.len() == 2);
            let range = range.and_then(|range| range[0].as_f64().zip(range[1].as_f64()));
            let note = range.map_or_else(String::new, |(low, high)| {
                format!("{} to {} beside other programs", show_seconds(low), show_seconds(high))
            });
            Tile { label: "Forecast", value: show_seconds(forecast), note }
        }));
        let ideal = value["ideal_seconds"].as_f64();
        tiles.extend(ideal.map(|ideal| Tile {
            label: "Ideal",
            value: show_seconds(ideal),
            note: "all processors at full speed, no waiting".into(),
        }));
        if let Some(volume) = value["volume"].as_u64() {
            let bound = value["volume_lower_bound"].as_u64();
            let note = bound.map_or_else(String::new, |bound| format!("at least {}", count(bound)));
            tiles.push(Tile { label: "Elements moved", value: count(volume), note });
        }
        match (advects, value["verified"].as_bool()) {
            (true, _) => {
                if let Some(speed) = value["million_cells_per_second"].as_f64() {
                    let value = format!("{speed:.1} M");
                    tiles.push(Tile { label: "Cells per second", value, note: String::new() });
                }
            }
            (false, Some(true)) if factors => tiles.push(Tile {
                label: "Residual",
                value: format!("{:.3}", value["residual"].as_f64().unwrap_or(f64::NAN)),
                note: "times n ||A|| eps; correct up to 30".into(),
            }),
            (false, Some(true)) => tiles.push(Tile {
                label: "Verified",
                value: "yes".into(),
                note: value["verification"]["method"].as_str().map_or_else(
                    String::new,
                    |method| match method {
                        "freivalds" => "16 random checks of the whole product".into(),
                        _ => "elements computed again".into(),
                    },
                ),
            }),
            (false, _) => {}
        }
        let how = if advects {
            format!("{} steps of MPDATA", count(value["steps"].as_u64().unwrap_or(0)))
        } else if factors {
            format!("blocks of {}", count(value["block"].as_u64().unwrap_or(0)))
        } else {
            let overlap = if value["overlap"] == true { " with overlap" } else { "" };
            format!("{} flow{overlap}", value["flow"].as_str().unwrap_or("unknown"))
        };
        let lanes = &value["timeline"];
        let entry = Self {
            kind: match (advects, value["products"].as_u64(), &value["algorithm"]) {
                (true, ..) => "Advection",
                _ if factors => "Factorisation",
                (_, Some(2..), Value::Null) => "Matrix power",
                (.., Value::String(_)) => "Closure",
                _ => "Matrix product",
            },
            title: format!("{}, {how}", title(&plan)),
            tiles,
            measured: Some(seconds),
            forecast,
            ideal,
            times: times(&value["processors"])?,
            lanes: read_lanes(&lanes["measured"]),
            forecast_lanes: read_lanes(&lanes["forecast"]),
            models: part_models(&value["models"])?,
            notes: texts(&value["notes"]),
            plan: Some(plan),
            ..Self::default()
        };
        let (reasons, remedies) = (words::of_run(value, &entry), words::remedies_of_run(value, &entry));
        Ok(Self {
            reasons,
            remedies,
            tables: vec![candidates(&value["choice"])].into_iter().flatten().collect(),
            ..entry
        })
    }

    fn of_plan(value: &Value, name: &str) -> Read {
        let plan = part_plan(value, name)?;
        let mut tiles = vec![Tile {
            label: "Imbalance",
            value: format!("{:.4}", plan.metrics.imbalance),
            note: "longest computation / ideal".into(),
        }];
        let forecast = plan.forecast.as_ref();
        if let Some(forecast) = forecast {
            let first = Tile {
                label: "Forecast",
                value: show_seconds(forecast.seconds),
                note: plan.metrics.time_bound.map_or_else(String::new, |bound| {
                    format!("no plan takes less than {}", show_seconds(bound))
                }),
            };
            tiles.insert(0, first);
        }
        if let Some(volume) = plan.metrics.volume {
            tiles.push(Tile { label: "Elements to move", value: count(volume), note: String::new() });
        }
        let metrics = &plan.metrics;
        if let (Some(cost), Some(bound)) = (metrics.sum_half_perimeters, metrics.lower_bound) {
            let note = format!("lower bound {bound:.3}");
            tiles.push(Tile { label: "Half-perimeters", value: format!("{cost:.3}"), note });
        }
        let entry = Self {
            kind: "Plan",
            title: title(&plan),
            tiles,
            forecast: forecast.map(|forecast| forecast.seconds),
            times: forecast.map_or_else(Vec::new, |forecast| planned(&plan.processors, forecast)),
            models: part_models(&value["models"])?,
            tables: candidates(&value["choice"]).into_iter().collect(),
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
        let tiles = vec![
            Tile { label: "Processors", value: count(models.models.len() as u64), note: String::new() },
            Tile {
                label: "Points",
                value: count(points().count() as u64),
                note: match repetitions {
                    0 => "computed, not measured".into(),
                    _ => format!("{} measurements", count(repetitions)),
                },
            },
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
        let mut tiles = vec![Tile {
            label: if alone { "Communication" } else { "Forecast" },
            value: show_seconds(seconds),
            note: if alone { "speeds are ratios: computation has no seconds".into() } else { String::new() },
        }];
        if let Some(volume) = plan.as_ref().and_then(|plan| plan.metrics.volume) {
            tiles.push(Tile { label: "Elements to move", value: count(volume), note: String::new() });
        }
        let flow = value["flow"].as_str().map(|flow| {
            format!(", {flow} flow{}", if value["overlap"] == true { " with overlap" } else { "" })
        });
        let times = times(&value["processors"])?;
        let what = plan.as_ref().map_or_else(|| format!("{} processors", times.len()), title);
        let entry = Self {
            kind: "Simulation",
            title: what + &flow.unwrap_or_default(),
            tiles,
            forecast: Some(seconds),
            times,
            forecast_lanes: read_lanes(&value["timeline"]["forecast"]),
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
        let mut tiles = vec![Tile { label: "Fastest", value: fastest, note: show_seconds(least) }];
        tiles.extend(ideal.map(|ideal| Tile {
            label: "Ideal",
            value: show_seconds(ideal),
            note: "all processors at full speed, no waiting".into(),
        }));
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
        let tiles = vec![
            Tile {
                label: "Time of the round kept",
                value: show_seconds(seconds),
                note: format!("round {} of {}", best + 1, rounds.len()),
            },
            Tile {
                label: "First round",
                value: show_seconds(first),
                note: value["gain"]["against"]
                    .as_str()
                    .map_or_else(String::new, |what| format!("the {what}")),
            },
            Tile {
                label: "Gain",
                value: format!("{:.2} ×", first / seconds),
                note: "as fast as the first round".into(),
            },
            Tile {
                label: "Balanced",
                value: if value["balanced"] == true { "yes" } else { "no" }.into(),
                note: kept["spread"]
                    .as_f64()
                    .map_or_else(String::new, |x| format!("times differ by {:.1} %", 100.0 * x)),
            },
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
        let sound =
            |bar: &crate::EventBar| bar.job < chart.jobs.len() && bar.from.is_finite() && bar.to.is_finite();
        if !chart.lanes.iter().all(|lane| lane.bars.iter().all(sound)) {
            return Err(Defect::Field("chart.lanes".into()));
        }
        let products = value["products"].as_object().into_iter().flatten();
        let products: Vec<String> =
            products.filter_map(|(name, n)| Some(format!("{} {name}", n.as_u64()?))).collect();
        let tiles = vec![
            Tile { label: "Makespan", value: show_seconds(seconds), note: String::new() },
            Tile {
                label: "End",
                value: value["end"].as_str().unwrap_or("unknown").to_owned(),
                note: String::new(),
            },
            Tile {
                label: "Products",
                value: if products.is_empty() { "none".into() } else { products.join(", ") },
                note: String::new(),
            },
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
    let defect = || Defect::Field("processors".into());
    let one = |processor: &Value| {
        // Where speeds are ratios there is no time of computing.
        let time = |field: &str| match &processor[field] {
            Value::Null => Some(0.0),
            time => time.as_f64().filter(|x| x.is_finite() && *x >= 0.0),
        };
        Some(Times {
            name: processor["name"].as_str()?.to_owned(),
            compute: time("compute")?,
            communicate: time("communicate")?,
            idle: time("idle")?,
        })
    };
    processors.as_array().ok_or_else(defect)?.iter().map(|p| one(p).ok_or_else(defect)).collect()
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
    };
    let p = plan.processors.len();
    let plural = if p == 1 { "" } else { "s" };
    format!("{what} by {} on {} processor{plural}", plan.method, count(p as u64))
}

/// The candidates that a choice was made from, the best first.
fn candidates(choice: &Value) -> Option<Table> {
    let (chosen, against) = (choice.get("chosen")?, choice["against"].as_array()?);
    let timed = matches!(choice["by"].as_str(), Some("forecast" | "communication alone"));
    let show = |value: f64| match timed {
        true => show_seconds(value),
        false if choice["by"] == "volume" => count(value as u64),
        false => format!("{value:.4}"),
    };
    let row = |candidate: &Value| {
        let overlap = if candidate["overlap"] == true { " with overlap" } else { "" };
        let value = match (candidate["value"].as_f64(), candidate["at_least"].as_f64()) {
            (Some(value), _) => show(value),
            (None, Some(least)) => format!("at least {}", show_seconds(least)),
            (None, None) => "-".into(),
        };
        vec![
            candidate["method"].as_str().unwrap_or_default().to_owned(),
            format!("{}{overlap}", candidate["flow"].as_str().unwrap_or_default()),
            value,
            candidate["excess"].as_f64().map_or_else(String::new, |x| format!("+{:.1} %", 100.0 * x)),
        ]
    };
    let rows = std::iter::once(chosen).chain(against.iter().take(MOST_CANDIDATES)).map(row).collect();
    let header = vec!["candidate", "flow", if timed { "forecast" } else { "cost" }, "more than the chosen"];
    Some(Table { heading: "What else was considered", header, rows })
}

/// The number of candidates shown besides the chosen one.
const MOST_CANDIDATES: usize = 11;

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn machine(value: &Value) -> Vec<(&'static str, String)> {
    let machine = &value["provenance"]["machine"];
    let mut facts = Vec::new();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    facts.extend(text(&machine["host"]).map(|host| ("Host", host)));
    facts.extend(text(&machine["model"]).map(|model| ("Processor", model)));
    facts.extend(machine["cores"].as_u64().map(|cores| ("Cores", count(cores))));
    if let Some(quota) = machine["quota_cores"].as_f64() {
        facts.push(("CPU quota", format!("{quota:.2} cores")));
    }
    facts.extend(machine["memory_bytes"].as_f64().map(|bytes| ("Memory", show_bytes(bytes))));
    facts.extend(machine["memory_limit_bytes"].as_f64().map(|bytes| ("Memory limit", show_bytes(bytes))));
    facts.extend(text(&machine["instructions"]).map(|name| ("Instructions", name)));
    facts.extend(text(&value["kernel"]["name"]).map(|name| ("Kernel", name)));
    facts.extend(text(&value["engine"]).map(|name| ("Engine", name)));
    if let Some(hosts) = value["network"]["hosts"].as_array() {
        let hosts: Vec<&str> = hosts.iter().filter_map(Value::as_str).collect();
        facts.push(("Hosts", hosts.join(", ")));
    }
    facts.extend(text(&value["provenance"]["version"]).map(|version| ("apportion", version)));
    facts
}

pub(super) fn count(n: u64) -> String {
    show_count(u128::from(n))
}

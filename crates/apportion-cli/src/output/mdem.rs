//! What `mdem` prints and writes.

use crate::commands::mdem::MdemArgs;
use crate::commands::mdem::Simulation;
use crate::output::{appear, is_csv, linear::Linear, open};
use apportion::error::{Error, Result};
use apportion::matrix::{Matrix, write_npy, write_npy_bool};
use apportion::output::OutputFile;
use apportion_events::{End, EventMatrices, EventRun, SharedPlace, Workcell, seconds, shared_places};
use apportion_report::{events_svg, pairs, table};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Conflicts, rules of one conflict, and resources that the text lists.
const MOST_SHARED: usize = 12;
const MOST_NAMES: usize = 8;
const MOST_RESOURCES: usize = 40;

/// The files that were asked for.
pub struct EventFiles {
    events: Option<(OutputFile, bool)>,
    gantt: Option<OutputFile>,
    /// The directory of the matrices.
    matrices: Option<PathBuf>,
    max_plus: Option<OutputFile>,
}

impl EventFiles {
    /// Starts them, so that one that cannot be written is reported before the work.
    pub fn open(args: &MdemArgs) -> Result<Self> {
        let csv = args.output.as_deref().map(is_csv).transpose()?;
        if let Some(directory) = &args.matrices {
            let taken = directory.exists() && !directory.is_dir();
            let parent =
                directory.parent().is_none_or(|above| above.as_os_str().is_empty() || above.is_dir());
            if taken || !parent {
                let place = directory.display().to_string();
                let what = if taken { "is not a directory" } else { "its parent directory does not exist" };
                return Err(Error::input(place, what, "name a directory, or create its parent"));
            }
        }
        Ok(Self {
            events: open(args.output.as_ref())?.zip(csv),
            gantt: open(args.gantt.as_ref())?,
            matrices: args.matrices.clone(),
            max_plus: open(args.max_plus.as_ref())?,
        })
    }

    /// Fills them; they appear only when all are full.
    pub fn keep(
        self,
        shown: &Selection<'_>,
        simulation: &Simulation,
        matrices: &EventMatrices,
    ) -> Result<()> {
        let max_plus = match self.max_plus {
            Some(mut file) => {
                write_npy(&mut file, &shown.linear.matrix()?)?;
                Some(file)
            }
            None => None,
        };
        let mut written = Vec::new();
        if let Some(directory) = &self.matrices {
            std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
            for (name, bytes, [rows, cols]) in matrices.by_name(&simulation.workcell) {
                let mut file = OutputFile::create(directory.join(format!("{name}.npy")))?;
                write_npy_bool(&mut file, &Matrix::new(rows, cols, bytes))?;
                written.push(file);
            }
        }
        let csv = self.events.as_ref().is_some_and(|(_, csv)| *csv);
        appear([
            (self.events.map(|(file, _)| file), &|| shown.event_list(csv)),
            (self.gantt, &|| events_svg(&shown.run.chart(shown.workcell))),
        ])?;
        written.into_iter().chain(max_plus).try_for_each(OutputFile::commit)
    }
}

/// The variant that is shown, and a line about each.
pub struct Selection<'a> {
    pub workcell: &'a Workcell,
    pub run: &'a EventRun,
    resources: Vec<ResourceUse<'a>>,
    shared: Vec<SharedPlace>,
    linear: Linear,
    scenarios: Vec<Scenario<'a>>,
}

/// The use of a resource.
#[derive(Serialize)]
struct ResourceUse<'a> {
    name: &'a str,
    capacity: u64,
    working_seconds: f64,
    waiting_seconds: f64,
    utilisation: f64,
}

/// All replications of a variant.
#[derive(Serialize)]
struct Scenario<'a> {
    name: &'a str,
    replications: usize,
    /// The ends that came up, each with its number.
    ends: Map<String, Value>,
    mean_seconds: f64,
    least_seconds: f64,
    most_seconds: f64,
    /// The mean number of products.
    products: f64,
    /// The mean utilisation of each resource.
    utilisation: Vec<f64>,
    #[serde(skip)]
    busiest: String,
}

impl<'a> Selection<'a> {
    pub fn new(simulation: &'a Simulation, runs: &'a [EventRun]) -> Result<Self> {
        let workcell = &simulation.variants[simulation.shown];
        let of = |variant: usize| runs.iter().filter(move |run| run.variant == variant);
        let run = of(simulation.shown).next().expect("at least one replication");
        let scenarios = simulation.variants.iter().enumerate().map(|(variant, workcell)| {
            let name = if variant == 0 { "as written" } else { &workcell.name };
            Scenario::new(name, workcell, &of(variant).collect::<Vec<_>>())
        });
        let resources = workcell.resources.iter().zip(run.usage(workcell));
        let resources = resources.map(|(resource, usage)| ResourceUse {
            name: &resource.name,
            capacity: resource.capacity,
            working_seconds: seconds(usage.working),
            waiting_seconds: seconds(usage.waiting),
            utilisation: usage.utilisation,
        });
        Ok(Self {
            workcell,
            run,
            resources: resources.collect(),
            shared: shared_places(workcell),
            linear: Linear::of(workcell, run, &simulation.options),
            scenarios: scenarios.collect(),
        })
    }

    /// The events, as CSV or JSON.
    fn event_list(&self, csv: bool) -> String {
        if !csv {
            return format!("{:#}\n", self.events());
        }
        let mut out = String::from("seconds,event,name,number\n");
        for record in &self.run.records {
            let name = record.name(self.workcell);
            let quoted = name.contains([',', '"', '\n']);
            let name = if quoted { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() };
            let _ = writeln!(out, "{},{},{name},{}", seconds(record.time), record.what.word(), record.number);
        }
        out
    }

    fn events(&self) -> Value {
        let record = |record: &apportion_events::Record| {
            json!({"seconds": seconds(record.time), "event": record.what.word(),
                   "name": record.name(self.workcell), "number": record.number})
        };
        self.run.records.iter().map(record).collect()
    }

    fn rule_names(&self, rules: &[usize]) -> Vec<&str> {
        rules.iter().map(|&rule| self.workcell.rules[rule].name.as_str()).collect()
    }

    pub fn to_value(&self) -> Value {
        let (workcell, run) = (self.workcell, self.run);
        let products: Map<String, Value> =
            workcell.products.iter().zip(&run.products).map(|(name, n)| (name.clone(), json!(n))).collect();
        let firings: Map<String, Value> =
            workcell.rules.iter().zip(&run.firings).map(|(rule, n)| (rule.name.clone(), json!(n))).collect();
        let shared = self.shared.iter().map(|shared| {
            json!({"place": workcell.name_of(shared.place), "rules": self.rule_names(&shared.rules)})
        });
        let conflicts = run.conflicts.iter().map(|conflict| {
            json!({"place": workcell.name_of(conflict.place), "rules": self.rule_names(&conflict.rules),
                   "times": conflict.times, "first_seconds": seconds(conflict.first)})
        });
        let deadlock = match &run.end {
            End::Deadlocked(deadlock) => {
                let waits = deadlock.circle.iter().map(|wait| {
                    json!({"rule": wait.rule, "jobs": wait.jobs, "waits_for": wait.waits_for,
                           "held_by": wait.held_by})
                });
                json!({"text": deadlock.to_string(), "circle": waits.collect::<Vec<_>>()})
            }
            _ => Value::Null,
        };
        json!({
            "format": "apportion-events", "version": 1,
            "workcell": workcell.name, "end": run.end.word(), "seconds": seconds(run.makespan),
            "simulated_seconds": seconds(run.ended), "products": products, "firings": firings,
            "resources": self.resources, "shared": shared.collect::<Vec<_>>(),
            "conflicts": conflicts.collect::<Vec<_>>(), "deadlock": deadlock,
            "starved": match &run.end { End::Starved(why) => Value::from(why.as_str()), _ => Value::Null },
            "max_plus": self.linear.to_value(workcell),
            "scenarios": self.scenarios,
            "events": self.events(),
            "chart": run.chart(workcell),
        })
    }

    pub fn to_text(&self) -> String {
        let (workcell, run) = (self.workcell, self.run);
        let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let made = workcell.products.iter().zip(&run.products).map(|(name, n)| format!("{n} {name}"));
        let mut about = vec![
            ("workcell", workcell.name.clone()),
            (
                "size",
                [
                    count(workcell.rules.len(), "rule"),
                    count(workcell.jobs.len(), "job"),
                    count(workcell.resources.len(), "resource"),
                ]
                .join(", "),
            ),
            ("end", ended(run)),
            ("makespan", time_text(seconds(run.makespan))),
            ("products", made.collect::<Vec<_>>().join(", ")),
            ("events", run.records.len().to_string()),
        ];
        for shared in self.shared.iter().take(MOST_SHARED) {
            let met: u64 =
                run.conflicts.iter().filter(|conflict| conflict.place == shared.place).map(|c| c.times).sum();
            about.push((
                "conflict",
                format!(
                    "{} is taken by {}; dispatching chose {met} times",
                    workcell.name_of(shared.place),
                    few(&self.rule_names(&shared.rules))
                ),
            ));
        }
        if let Some(more) = self.shared.len().checked_sub(MOST_SHARED).filter(|&more| more > 0) {
            about.push(("", format!("and {more} more (--json)")));
        }
        about.extend(self.linear.lines(workcell));
        let mut out = pairs(&about);
        if !self.resources.is_empty() {
            let rows = self.resources.iter().take(MOST_RESOURCES).map(|resource| {
                vec![
                    resource.name.to_owned(),
                    resource.capacity.to_string(),
                    format!("{:.1} %", 100.0 * resource.utilisation),
                    time_text(resource.working_seconds),
                    time_text(resource.waiting_seconds),
                ]
            });
            out += "\n";
            out += &table(&["resource", "units", "utilisation", "working", "held, waiting"], rows);
            if let Some(more) = workcell.resources.len().checked_sub(MOST_RESOURCES).filter(|&more| more > 0)
            {
                let _ = writeln!(out, "and {more} more (--json)");
            }
        }
        let replicated = self.scenarios[0].replications > 1;
        if self.scenarios.len() > 1 || replicated {
            out += "\n";
            let mut header = vec!["scenario", "end", "makespan", "products", "busiest"];
            if replicated {
                header.extend(["runs", "least", "most"]);
            }
            out += &table(&header, self.scenarios.iter().map(Scenario::row));
        }
        out
    }
}

/// The first few names, and the number of the others.
fn few(names: &[&str]) -> String {
    let first = names[..names.len().min(MOST_NAMES)].join(", ");
    if names.len() > MOST_NAMES { format!("{first} and {} more", names.len() - MOST_NAMES) } else { first }
}

/// A time to the millisecond, without needless zeros.
pub fn time_text(seconds: f64) -> String {
    format!("{} s", number_text(seconds))
}

fn number_text(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ended(run: &EventRun) -> String {
    match &run.end {
        End::Finished if run.products.iter().all(|made| *made == 0) => {
            "finished: no part went through".into()
        }
        End::Finished => "finished: all parts are through".into(),
        End::Until => format!("the time limit of {}", time_text(seconds(run.ended))),
        End::Limit => "the limit of --firings".into(),
        End::Starved(why) => format!("work remains: {why}"),
        End::Deadlocked(deadlock) => format!("deadlock: {deadlock}"),
    }
}

impl<'a> Scenario<'a> {
    fn new(name: &'a str, workcell: &Workcell, runs: &[&EventRun]) -> Self {
        let count = runs.len() as f64;
        let makespans = || runs.iter().map(|run| seconds(run.makespan));
        let mut ends = Map::new();
        for run in runs {
            let end = ends.entry(run.end.word()).or_insert(json!(0));
            *end = json!(end.as_u64().unwrap_or(0) + 1);
        }
        let mut sums = vec![0.0; workcell.resources.len()];
        for run in runs {
            let usage = run.usage(workcell);
            sums.iter_mut().zip(usage).for_each(|(sum, usage)| *sum += usage.utilisation);
        }
        let utilisation: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
        let busiest = utilisation.iter().zip(&workcell.resources).max_by(|a, b| a.0.total_cmp(b.0));
        let busiest = busiest.map(|(part, resource)| format!("{} {:.1} %", resource.name, 100.0 * part));
        Self {
            name,
            replications: runs.len(),
            ends,
            mean_seconds: makespans().sum::<f64>() / count,
            least_seconds: makespans().fold(f64::INFINITY, f64::min),
            most_seconds: makespans().fold(0.0, f64::max),
            products: runs.iter().flat_map(|run| &run.products).sum::<u64>() as f64 / count,
            utilisation,
            busiest: busiest.unwrap_or_default(),
        }
    }

    fn row(&self) -> Vec<String> {
        let ends: Vec<String> = match self.ends.len() {
            1 => self.ends.keys().cloned().collect(),
            _ => self.ends.iter().map(|(word, n)| format!("{word} {n}")).collect(),
        };
        let (makespan, products) = (time_text(self.mean_seconds), number_text(self.products));
        let mut row = vec![self.name.to_owned(), ends.join(", "), makespan, products, self.busiest.clone()];
        if self.replications > 1 {
            let [least, most] = [self.least_seconds, self.most_seconds].map(time_text);
            row.extend([self.replications.to_string(), least, most]);
        }
        row
    }
}

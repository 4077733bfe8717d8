//! Reproductions of the source documents: published numbers beside computed and measured ones.
//!
//! `cargo run --release -p literature -- list` names the experiments, `run ID …` runs some, `run all` all
//! of them. Exit code 1 means that something published is not met for no known reason.

mod becker;
mod catalogue;
mod experiment;
mod index;
mod laboratory;
mod lastovetsky;
mod malik;
mod output;
mod record;
mod tinetti;

use apportion::error::{Error, Result};
use apportion::run::Monitor;
use apportion_report::set_text_width;
use clap::{Parser, Subcommand};
use experiment::{Context, Experiment, Kind, Verdict};
use output::Done;
use record::Record;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Reproduces figures and tables of the source documents.
#[derive(Debug, Parser)]
#[command(name = "literature", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 everything published is met, or known not to be; 1 something is not \
    met, or a run failed; 2 bad usage.")]
struct Arguments {
    /// Print exactly one JSON object to stdout.
    #[arg(long, global = true)]
    json: bool,
    /// Print no progress to stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the experiments and how many items of each document they show, or the items of documents.
    ///
    /// Of experiments: name, computed or emulated, about how long it takes, source, what it shows. Of items,
    /// in the order of the document: number, what it says, experiment, verdict.
    List {
        /// Names of documents (becker, fpm, slides, malik, tinetti): their items instead of the experiments.
        #[arg(value_name = "DOCUMENT")]
        documents: Vec<String>,
    },
    /// Run experiments, and compare them with what is published.
    Run {
        /// Names of experiments, figures or tables (see `list`), or `all`.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Only those that are computed, with fewer draws: seconds instead of minutes.
        #[arg(long)]
        quick: bool,
        /// Write a page with pictures for each experiment into a directory, and the indexes of experiments
        /// and documents.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    set_text_width(output::WIDTH);
    match carry_out(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("literature: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn carry_out(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::List { documents } => {
            let chosen = index::find(documents)?;
            let record = Record::of_repository()?;
            let text = || match documents.is_empty() {
                true => format!("{}\n{}", catalogue::text(), index::summary(&record)),
                false => chosen.iter().map(|document| document.text(&record)).collect(),
            };
            let value = || {
                let documents: Vec<Value> = chosen.iter().map(|document| document.json(&record)).collect();
                json!({"experiments": catalogue::json(), "documents": documents})
            };
            show(arguments.json, value, text);
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { ids, quick, dir } => {
            let mut wanted = catalogue::find(ids)?;
            if *quick {
                wanted.retain(|experiment| experiment.about().kind == Kind::Computed);
            }
            if wanted.is_empty() {
                return Err(Error::input(
                    "`--quick`",
                    format!("{} is emulated", ids.join(", ")),
                    "leave --quick out, or name computed experiments (see list)",
                ));
            }
            if let Some(dir) = dir {
                output::directory(dir)?;
            }
            let monitor = Monitor::new();
            let stop = monitor.clone();
            // Without a handler, Ctrl-C ends the process at once, which loses nothing that was printed.
            let _ = ctrlc::set_handler(move || stop.stop());
            let context = Context { quick: *quick, monitor: &monitor };
            let mut done = Vec::new();
            for experiment in wanted {
                done.push(one(experiment, &context, arguments)?);
                if let (Some(dir), Some(last)) = (dir, done.last()) {
                    last.write(dir)?;
                }
            }
            if let Some(dir) = dir {
                output::write_record(&done, dir)?;
            }
            let missed = done.iter().filter(|d| d.verdict() == Verdict::Missed).count();
            if arguments.json {
                let experiments: Vec<Value> = done.iter().map(Done::json).collect();
                let object = json!({"format": "apportion-literature", "version": 1, "missed": missed,
                    "experiments": experiments});
                show(true, || object, String::new);
            } else {
                show(false, || Value::Null, || summary(&done));
            }
            Ok(if missed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
    }
}

/// Runs an experiment and prints its report as text.
fn one(experiment: &dyn Experiment, context: &Context<'_>, arguments: &Arguments) -> Result<Done> {
    let about = experiment.about();
    if !arguments.quiet {
        eprintln!("{} (about {} s) …", about.id(), about.seconds);
    }
    let begin = Instant::now();
    let report = experiment.run(context)?;
    let done = Done { about, report, seconds: begin.elapsed().as_secs_f64() };
    if !arguments.json {
        show(false, || Value::Null, || format!("{}\n", done.text()));
    }
    Ok(done)
}

fn summary(done: &[Done]) -> String {
    let seconds: f64 = done.iter().map(|d| d.seconds).sum();
    let count = |verdict| {
        let checks = done.iter().flat_map(|d| &d.report.checks);
        checks.filter(|check| check.verdict() == verdict).count()
    };
    let missed: Vec<&str> =
        done.iter().filter(|d| d.verdict() == Verdict::Missed).map(|d| d.about.id()).collect();
    let counts: Vec<String> =
        Verdict::ALL.into_iter().map(|verdict| format!("{} {}", count(verdict), verdict.name())).collect();
    let missed = if missed.is_empty() { String::new() } else { format!(" ({})", missed.join(", ")) };
    format!("{} experiments in {seconds:.0} s: {}{missed}\n", done.len(), counts.join(", "))
}

/// Prints the result. A reader that has closed the pipe is not an error.
fn show(as_json: bool, value: impl FnOnce() -> Value, text: impl FnOnce() -> String) {
    let out = if as_json { format!("{:#}\n", value()) } else { text() };
    let _ = std::io::stdout().write_all(out.as_bytes());
}

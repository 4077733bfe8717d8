//! A run of units that were divided meanwhile: what it took, and what it would have taken.

use apportion::measure::UnitsReport;
use apportion::plan::shares::TimeRange;
use apportion::units::{self, show_seconds};
use apportion_report::{gain_clause, pairs};
use serde_json::{Value, json};
use std::path::Path;

/// The JSON for programs.
pub fn value(report: &UnitsReport) -> Value {
    let processors: Vec<Value> = report
        .processors
        .iter()
        .map(|processor| {
            let line = processor.estimate.map(|known| known.line);
            json!({
                "name": processor.name, "units": processor.units, "pieces": processor.pieces,
                "busy": processor.busy, "start_up": line.map(|line| line.start_up),
                "per_unit": line.map(|line| line.per_unit),
            })
        })
        .collect();
    json!({
        "seconds": report.seconds, "pieces": report.pieces, "units": report.done,
        "processors": processors,
        "alone": report.alone.as_ref().map(|alone| json!({
            "processor": alone.processor, "seconds": alone.time.seconds, "measured": alone.measured,
        })),
        "even": report.even.map(|even| json!({"seconds": even.seconds, "measured": false})),
        "learning_seconds": report.learning_seconds(),
        "failed": report.failed.iter().map(|failed| failed.piece).collect::<Vec<_>>(),
    })
}

/// The summary for readers, of a run that has done all. `saved`: where the plan is.
pub fn text(report: &UnitsReport, saved: Option<&Path>) -> String {
    let count = |n: u64| units::show_count(u128::from(n));
    let pieces =
        if report.pieces == 1 { "1 piece".into() } else { format!("{} pieces", count(report.pieces)) };
    let busy = report.processors.iter().filter(|processor| processor.pieces > 0).count();
    let processors = if busy == 1 { "1 processor".into() } else { format!("{busy} processors") };
    let time = format!(
        "{} for {} units in {pieces} on {processors}",
        show_seconds(report.seconds),
        count(report.done)
    );
    let mut facts = vec![("time", time)];
    if report.processors.len() > 1 {
        facts.extend(without(report).map(|text| ("without", text)));
        facts.extend(report.learning_seconds().map(|seconds| {
            let starts = show_seconds(report.start_up_seconds());
            (
                "cost",
                format!(
                    "about {} for learning; starting {pieces} took {starts} in all",
                    show_seconds(seconds)
                ),
            )
        }));
    }
    facts.extend(next_run(report, saved).map(|text| ("plan", text)));
    pairs(&facts)
}

/// What the fastest alone and an even split would have taken.
fn without(report: &UnitsReport) -> Option<String> {
    let about = |time: &TimeRange| {
        let [seconds, low, high] = [time.seconds, time.low, time.high].map(show_seconds);
        format!("about {seconds} ({low} to {high})")
    };
    let alone = report.alone.as_ref().map(|alone| {
        let time = match alone.measured {
            true => format!("{}, measured", show_seconds(alone.time.seconds)),
            false => about(&alone.time),
        };
        format!("{} alone {time}", alone.processor)
    });
    let even = report.even.as_ref().map(|even| format!("even split {}", about(even)));
    let both: Vec<String> = alone.into_iter().chain(even).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// What the plan promises.
fn next_run(report: &UnitsReport, saved: Option<&Path>) -> Option<String> {
    let plan = report.plan.as_ref()?;
    let seconds = show_seconds(plan.forecast.as_ref()?.seconds);
    let place = match saved {
        Some(path) => format!("{}: ", path.display()),
        None => "not saved (-o FILE): ".into(),
    };
    let gain = gain_clause(plan).map_or_else(String::new, |gain| format!(", {gain}"));
    let pays = match report.pays_after_runs() {
        _ if plan.baselines.is_none() => String::new(),
        Some(1) => "; it has paid in this run".into(),
        Some(run) => format!("; it pays from run {run} on"),
        None => "; it does not pay".into(),
    };
    Some(format!("{place}the next run takes about {seconds}{gain}{pays}"))
}

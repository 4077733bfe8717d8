//! The programs of a plan of units: forecast beside measurement.

use apportion::measure::{UnitsRun, round_of};
use apportion::plan::Plan;
use apportion::units;
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// The longest time, if all programs ended well.
fn seconds(runs: &[UnitsRun]) -> Option<f64> {
    let fine = runs.iter().all(|run| !matches!(run.outcome, Some(Err(_))));
    fine.then(|| round_of(runs)).flatten().map(|round| round.longest())
}

/// The imbalance of programs that ended well, by cost if the plan knows it.
fn imbalance(plan: &Plan, runs: &[UnitsRun]) -> Option<f64> {
    let round = round_of(runs).filter(|_| seconds(runs).is_some())?;
    let Some(costs) = &plan.costs else { return Some(round.imbalance()) };
    let ran = runs.iter().zip(costs).filter(|(run, _)| run.outcome.is_some());
    Some(round.imbalance_by(&ran.map(|(_, cost)| *cost).collect::<Vec<_>>()))
}

fn forecast(plan: &Plan, i: usize) -> Option<f64> {
    plan.forecast.as_ref().map(|forecast| forecast.compute[i])
}

/// The JSON for programs.
pub fn value(plan: &Plan, runs: &[UnitsRun]) -> Value {
    let processors: Vec<Value> = runs
        .iter()
        .enumerate()
        .map(|(i, run)| {
            let mut value = json!({
                "name": run.processor, "from": run.units.start, "to": run.units.end,
                "share": run.units.end - run.units.start, "started": run.outcome.is_some(),
                "forecast_seconds": forecast(plan, i),
                "seconds": run.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok()),
            });
            if let Some(Err(error)) = &run.outcome {
                value["error"] = crate::flags::error_line(error).into();
            }
            value
        })
        .collect();
    json!({
        "seconds": seconds(runs),
        "forecast_seconds": plan.forecast.as_ref().map(|f| f.seconds),
        "imbalance": imbalance(plan, runs),
        "forecast_imbalance": plan.metrics.imbalance,
        "processors": processors,
    })
}

/// The text for readers.
pub fn text(plan: &Plan, runs: &[UnitsRun]) -> String {
    let show = |t: Option<f64>| t.map_or("-".into(), units::show_seconds);
    let count = |n: u64| units::show_count(u128::from(n));
    let known = plan.forecast.is_some();
    let rows = runs.iter().enumerate().map(|(i, run)| {
        let mut row = vec![run.processor.clone()];
        match run.outcome {
            Some(_) => row.extend([count(run.units.start), count(run.units.end)]),
            None => row.extend(["-".into(), "-".into()]),
        }
        row.push(count(run.units.end - run.units.start));
        row.extend(known.then(|| show(forecast(plan, i))));
        row.push(match &run.outcome {
            None => "not started".into(),
            Some(Ok(seconds)) => units::show_seconds(*seconds),
            Some(Err(_)) => "failed".into(),
        });
        row
    });
    let mut header = vec!["processor", "from", "to", "share"];
    header.extend(known.then_some("forecast"));
    header.push("measured");
    let mut out = table(&header, rows);
    let Some((measured, imbalance)) = seconds(runs).zip(imbalance(plan, runs)) else { return out };
    let mut facts =
        vec![("imbalance", format!("forecast {:.4}, measured {:.4}", plan.metrics.imbalance, imbalance))];
    facts.push((
        "time",
        match &plan.forecast {
            None => units::show_seconds(measured),
            Some(f) => {
                let off = 100.0 * (f.seconds / measured - 1.0);
                let side = if off < 0.0 { "low" } else { "high" };
                let (told, took) = (units::show_seconds(f.seconds), units::show_seconds(measured));
                format!("forecast {told}, measured {took} ({:.1} % too {side})", off.abs())
            }
        },
    ));
    out += &format!("\n{}", pairs(&facts));
    out
}

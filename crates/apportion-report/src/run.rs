//! The report of a run: `run.json` and the table, with measured and predicted values.

use super::text::{Meaning, paint, text_bar};
use super::{Report, baselines_text, lanes_value, run_gain_text, table};
use apportion::plan::Plan;
use apportion::product::{ClosureMethod, RunForecasts, RunReport};
use apportion::trace::Trace;
use apportion::units::{show_bytes, show_count, show_seconds};
use apportion::verify::WRONG_FRACTION;
use serde_json::{Value, json};

impl Report for RunReport {
    /// The `run.json` object.
    fn to_value(&self) -> Value {
        let mut processors = processor_values(&self.plan, &self.trace);
        for (value, kind) in processors.iter_mut().zip(&self.kinds) {
            value["kind"] = kind.to_string().into();
        }
        let mut value = json!({
            "format": "apportion-run",
            "version": 1,
            "engine": self.engine,
            "semiring": self.semiring.name(),
            "kernel": self.kernel,
            "element": self.element,
            "flow": self.order.flow.to_string(),
            "block": self.order.block,
            "overlap": self.order.overlaps(),
            "look_ahead": self.order.overlaps().then_some(self.order.look_ahead),
            "seconds": self.seconds(),
            "forecast_seconds": self.forecast_seconds,
            "forecast_range": self.forecast_range,
            "ideal_seconds": self.ideal_seconds,
            "io_seconds": self.io_seconds,
            "verify_seconds": self.verify_seconds,
            // Null if this run computed nothing.
            "verified": self.error_probability.map(|_| true),
            "error_probability": self.error_probability,
            // The name of earlier versions.
            "odds_of_a_miss": self.error_probability,
            "verification": verification(self),
            "products": self.products,
            "algorithm": self.closure.map(|method| method.to_string()),
            "volume": self.volume(),
            "carried": self.trace.lanes.iter().map(|l| l.carried).sum::<u64>(),
            "volume_lower_bound": volume_lower_bound(self),
            "predicted_memory_bytes": self.predicted_memory,
            "peak_memory_bytes": self.trace.lanes.iter().map(|l| l.peak_bytes).collect::<Vec<_>>(),
            "processors": processors,
            "pairs": traffic(self).map(|[from, to, messages, elements, bytes]| {
                json!({"from": from, "to": to, "messages": messages, "elements": elements, "bytes": bytes})
            }).collect::<Vec<_>>(),
            "plan": self.plan.to_value(),
            "timeline": {"measured": lanes_value(&self.trace)},
        });
        if !self.notes.is_empty() {
            value["notes"] = json!(self.notes);
        }
        if let Some(RunForecasts { without_plan, seconds, .. }) = self.forecasts() {
            value["gain"] = json!(without_plan.gain_of_run(self.seconds(), seconds));
        }
        if let Some(RunForecasts { seconds, without_plan, links, .. }) = &self.corrected {
            value["corrected"] =
                json!({"forecast_seconds": seconds, "links": links, "baselines": without_plan});
        }
        if let Some(network) = &self.network {
            value["network"] = network.to_value();
        }
        if let Some(tail) = &self.tail {
            let carried_out = tail.carried_out(&self.plan.shares);
            value["tail"] = json!({
                "tiles": tail.tiles, "elements": tail.computed.iter().sum::<u64>(), "moved": tail.moved,
            });
            for (i, computed) in carried_out.into_iter().enumerate() {
                value["processors"][i]["computed"] = computed.into();
            }
        }
        if let Some(adaptation) = &self.adaptation {
            value["adaptive"] = adaptation.to_value();
        }
        value
    }

    /// The text for readers: one line per processor, then the totals.
    fn to_text(&self) -> String {
        let (compute, communicate, idle) =
            (self.trace.compute(), self.trace.communicate(), self.trace.idle());
        let total: u64 = self.plan.shares.iter().sum::<u64>().max(1);
        // As carried out.
        let shares = match &self.tail {
            Some(tail) => tail.carried_out(&self.plan.shares),
            None => self.plan.shares.clone(),
        };
        let rows = (0..self.plan.processors.len()).map(|i| {
            vec![
                self.plan.processors[i].clone(),
                show_count(u128::from(shares[i])),
                format!("{:.1} %", 100.0 * shares[i] as f64 / total as f64),
                show_seconds(compute[i]),
                show_seconds(communicate[i]),
                show_seconds(idle[i]),
                show_bytes(self.trace.lanes[i].peak_bytes as f64),
                show_bytes(self.predicted_memory[i] as f64),
            ]
        });
        let header =
            ["processor", "share", "of all", "compute", "communicate", "idle", "memory", "predicted"];
        let seconds = self.seconds();
        let volume = self.volume();
        let least = volume_lower_bound(self);
        let verified = verified(self);
        if self.products == 0 {
            return "nothing was left to compute\n".into();
        }
        let mut totals = vec![
            (
                "plan",
                format!(
                    "{}, {} flow{}{}{}",
                    self.plan.method,
                    self.order.flow,
                    if self.order.overlaps() { " with overlap" } else { "" },
                    if self.products > 1 { format!(", {} products", self.products) } else { String::new() },
                    self.closure.map_or_else(String::new, |method| format!(" by {method}"))
                ),
            ),
            ("time", show_seconds(seconds)),
            ("forecast", forecast_text(self)),
            (
                "ideal",
                match self.ideal_seconds {
                    ideal if ideal < COMPARABLE => show_seconds(ideal),
                    ideal => format!("{} (measured / ideal {:.3})", show_seconds(ideal), seconds / ideal),
                },
            ),
            (
                "volume",
                format!(
                    "{} elements{}",
                    show_count(u128::from(volume)),
                    least.map_or_else(String::new, |least| {
                        format!(" (lower bound {})", show_count(u128::from(least)))
                    })
                ),
            ),
            ("verified", verified),
        ];
        totals.splice(5..5, adaptation_lines(self));
        totals.extend(self.notes.iter().map(|note| ("note", note.clone())));
        format!("{}\n{}", table(&header, rows), super::pairs(&totals))
    }
}

/// Seconds below which a run shows how long it took only: starting the threads takes as long.
const WORTH_BARS: f64 = 1e-3;
/// The most processors that a summary shows.
const MOST_SHOWN: usize = 12;
/// Characters of a processor's bar.
const BAR: usize = 24;

/// A run in a few lines: what came out, its time beside the forecast, a bar for each processor, and what the
/// plan gained. `name` is what the result is called, such as its file.
pub fn run_summary(run: &RunReport, name: &str) -> String {
    if run.products == 0 {
        return "nothing was left to compute\n".into();
    }
    let size = run.plan.layout().map(|layout| layout.shape());
    let size = size.map_or_else(
        |_| String::new(),
        |s| format!("{} x {} ", show_count(u128::from(s.m)), show_count(u128::from(s.n))),
    );
    let products = if run.products > 1 { format!("{} products, ", run.products) } else { String::new() };
    let mut lines = vec![(name, format!("{size}{}, {products}{}", run.element, verified_in_a_word(run)))];
    let seconds = run.seconds();
    if seconds >= WORTH_BARS {
        lines.push(("time", format!("{} (forecast {})", show_seconds(seconds), forecast_text(run))));
        lines.extend(bars_of_run(&run.plan, &run.trace));
        if let Some(RunForecasts { without_plan, seconds: forecast, .. }) = run.forecasts()
            && let Some(gain) = run_gain_text(&without_plan, seconds, forecast)
        {
            let by = if run.corrected.is_some() { "at the speeds of this run" } else { "forecast" };
            lines.push(("gain", format!("{gain} ({by}: {})", baselines_text(&without_plan))));
        }
        let overlap = if run.order.overlaps() { " with overlap" } else { "" };
        let plan = format!("{} layout, {} flow{overlap}", run.plan.method, run.order.flow);
        lines.push(("plan", plan + &paint(Meaning::Aside, "; -v tells more")));
    }
    lines.extend(run.notes.iter().map(|note| ("note", note.clone())));
    super::pairs(&lines)
}

/// A line for each processor, up to [`MOST_SHOWN`]: its share, a bar of the time for which it computed, and its waits.
pub(crate) fn bars_of_run<'a>(plan: &'a Plan, trace: &Trace) -> Vec<(&'a str, String)> {
    let total = plan.shares.iter().sum::<u64>().max(1) as f64;
    let (seconds, compute) = (trace.seconds(), trace.compute());
    let line = |(i, processor): (usize, &'a String)| {
        let wait = (seconds - compute[i]).max(0.0);
        let text = format!(
            "{:5.1} %  {}  compute {:>8}  wait {:>8}",
            100.0 * plan.shares[i] as f64 / total,
            text_bar(compute[i] / seconds, BAR),
            show_seconds(compute[i]),
            show_seconds(wait)
        );
        (processor.as_str(), text)
    };
    let mut lines: Vec<(&str, String)> =
        plan.processors.iter().enumerate().take(MOST_SHOWN).map(line).collect();
    if let Some(more) = plan.processors.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        lines.push(("…", format!("and {more} more processors")));
    }
    lines
}

/// What a dynamic tail and an adaptive run did, as names and values.
pub fn adaptation_lines(run: &RunReport) -> Vec<(&'static str, String)> {
    let count = |n: u64| show_count(u128::from(n));
    let mut lines = Vec::new();
    if let Some(adaptation) = &run.adaptation {
        let what = match adaptation.repartitions.len() {
            0 => format!("none was needed in {} segments", adaptation.segments),
            times => format!(
                "{times} in {} segments, {} elements moved in {}",
                adaptation.segments,
                count(adaptation.moved_elements()),
                show_seconds(adaptation.moving_seconds())
            ),
        };
        lines.push(("repartitioned", what));
    }
    if let Some(tail) = &run.tail {
        let what = format!(
            "{} elements in {} tiles, {} of them computed by another processor than their owner",
            count(tail.computed.iter().sum()),
            count(tail.tiles),
            count(tail.moved)
        );
        lines.push(("tail", what));
    }
    lines
}

/// Whether the result was verified.
fn verified_in_a_word(run: &RunReport) -> String {
    match (run.error_probability, run.sampled) {
        (None, _) => "nothing was computed".into(),
        (Some(odds), Some(_)) if odds > 0.0 => paint(Meaning::Good, "verified by samples"),
        _ => paint(Meaning::Good, "verified"),
    }
}

/// The forecast, as a range where speeds were uncertain, and how far the measured time is from it.
pub fn forecast_text(run: &RunReport) -> String {
    let seconds = run.seconds();
    match run.forecast_range {
        Some([low, high]) => {
            let end = if seconds < low { low } else { high };
            let outside = if (low..=high).contains(&seconds) {
                String::new()
            } else {
                format!(", {}", off(end, seconds))
            };
            format!("{} to {}{outside}", show_seconds(low), show_seconds(high))
        }
        None if run.forecast_seconds < COMPARABLE => show_seconds(run.forecast_seconds),
        None => format!("{}, {}", show_seconds(run.forecast_seconds), off(run.forecast_seconds, seconds)),
    }
}

/// What each processor did in a run: its share, its times, and what it sent and received.
pub(crate) fn processor_values(plan: &Plan, trace: &Trace) -> Vec<Value> {
    let (compute, communicate, idle) = (trace.compute(), trace.communicate(), trace.idle());
    let value = |(i, name): (usize, &String)| {
        let lane = &trace.lanes[i];
        let mut value = json!({
            "name": name,
            "share": plan.shares[i],
            "compute": compute[i],
            "communicate": communicate[i],
            "idle": idle[i],
            "sent": lane.sent.iter().sum::<u64>(),
            "received": lane.received.iter().sum::<u64>(),
            "messages": lane.messages.iter().sum::<u64>(),
            "cpu_seconds": lane.cpu_seconds,
        });
        let [up, down] = lane.device_bytes;
        if up + down > 0 {
            (value["bytes_up"], value["bytes_down"]) = (up.into(), down.into());
        }
        value
    };
    plan.processors.iter().enumerate().map(value).collect()
}

/// `None` for an elimination, whose products are not those of the plan, for a symmetric product, and for a part of a
/// product.
fn volume_lower_bound(run: &RunReport) -> Option<u64> {
    if run.closure == Some(ClosureMethod::Elimination) || run.partial {
        return None;
    }
    let one = apportion::plan::volume_lower_bound(run.plan.layout().ok()?)?;
    Some(one * run.products)
}

fn verification(run: &RunReport) -> Value {
    if run.error_probability.is_none() {
        return Value::Null;
    }
    match run.sampled {
        Some(elements) => {
            let exact = run.rows.is_none_or(|rows| rows.exact);
            let fraction = run.rows.map_or(WRONG_FRACTION, |rows| rows.wrong_fraction);
            json!({"method": "sampled", "elements": elements, "rows": run.rows.map(|rows| rows.rows),
                   "all": run.error_probability == Some(0.0), "tolerance": if exact { "exact" } else { "rounding" },
                   "odds_hold_for_wrong_fraction": fraction})
        }
        None => {
            let mut value = json!({"method": "freivalds", "vectors": 16, "tolerance": "rounding"});
            if run.exceptional > 0 {
                value["recomputed"] = run.exceptional.into();
            }
            value
        }
    }
}

/// What verification found, and how sure it is.
fn verified(run: &RunReport) -> String {
    let Some(odds) = run.error_probability else { return "nothing was computed".into() };
    let (seconds, count) = (show_seconds(run.verify_seconds), |n: u64| show_count(u128::from(n)));
    if let (Some(rows), true) = (run.rows, odds > 0.0) {
        let (rows, fraction) = (count(rows.rows), 100.0 * rows.wrong_fraction);
        return format!(
            "by samples ({rows} rows checked against the matrix, probability of missing {fraction:.1} % wrong elements \
             {odds:.0e}, {seconds})"
        );
    }
    match run.sampled {
        Some(_) if odds == 0.0 && run.rows.is_some() => {
            format!("yes (every row checked against the matrix, {seconds})")
        }
        Some(_) if odds == 0.0 => format!("yes (every element recomputed, {seconds})"),
        Some(elements) => format!(
            "by samples ({} elements recomputed, probability of missing 0.1 % wrong ones {odds:.0e}, \
             {seconds})",
            count(elements)
        ),
        None if run.exceptional > 0 => format!(
            "yes (error probability {odds:.0e}; beside infinities by {} samples; {seconds})",
            count(run.exceptional)
        ),
        None => format!("yes (error probability {odds:.0e}, {seconds})"),
    }
}

/// The traffic of every pair that communicated: sender, receiver, messages, elements and bytes.
fn traffic(run: &RunReport) -> impl Iterator<Item = [u64; 5]> {
    let size = run.element_bytes;
    let ranks = 0..run.trace.lanes.len();
    ranks.clone().flat_map(move |from| ranks.clone().map(move |to| (from, to))).filter_map(
        move |(from, to)| {
            let lane = &run.trace.lanes[from];
            let (messages, elements) = (lane.messages[to], lane.sent[to]);
            (messages > 0).then_some([from as u64, to as u64, messages, elements, elements * size])
        },
    )
}

/// Messages, elements and bytes of every pair that communicated, as a table.
pub fn messages_text(run: &RunReport) -> String {
    let names = &run.plan.processors;
    let rows = traffic(run).map(|[from, to, messages, elements, bytes]| {
        let counts = [messages, elements, bytes].map(|count| show_count(u128::from(count)));
        let ends = [from, to].map(|rank| names[rank as usize].clone());
        ends.into_iter().chain(counts).collect::<Vec<String>>()
    });
    table(&["from", "to", "messages", "elements", "bytes"], rows)
}

/// Seconds below which starting the threads takes longer than the product.
const COMPARABLE: f64 = 1e-4;

/// The error of a forecast relative to the measurement, in words that cannot be misread.
pub fn off(forecast: f64, measured: f64) -> String {
    let percent = 100.0 * (forecast / measured - 1.0);
    match percent {
        _ if forecast < COMPARABLE => "too short to compare: starting takes longer".into(),
        p if !p.is_finite() => "nothing was measured".into(),
        p if p.abs() < 0.05 => "as measured".into(),
        p if p > 0.0 => format!("{p:.1} % too high"),
        p => format!("{:.1} % too low", -p),
    }
}

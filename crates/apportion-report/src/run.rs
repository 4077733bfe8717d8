//! Runs as text: for each problem what came out and what it took, by the record of the run alone.

use super::text::{Meaning, paint, text_bar, three_digits};
use super::{baselines_text, pairs, run_gain_text, table};
use apportion::kernels::mpdata::{Exchange, Scheme};
use apportion::plan::{Factors, Problem};
use apportion::record::{
    AdvectRun, AdvectSlabs, Detail, FactorRun, FactorSlabs, HeldMemory, PanelsRun, ProcessorRun, ProductRun,
    Run, SolutionRun, SparseRun, Verification,
};
use apportion::units::{show_bytes, show_seconds};

/// Seconds below which a run shows how long it took only: starting the threads takes as long.
const WORTH_BARS: f64 = 1e-3;
/// Seconds below which starting the threads takes longer than the product.
const COMPARABLE: f64 = 1e-4;
/// The most processors that a summary shows.
const MOST_SHOWN: usize = 12;
/// Characters of a processor's bar.
const BAR: usize = 24;
/// What is said of a run that found all done.
const NOTHING: &str = "nothing was left to compute\n";

fn count(n: u64) -> String {
    apportion::units::show_count(u128::from(n))
}

/// A number of things, in the plural where they are several.
fn number_of(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A run as text for readers.
pub fn run_text(run: &Run) -> String {
    match &run.detail {
        Detail::Product(product) => product_text(run, product),
        Detail::Factorisation(factors) => {
            let most = most_scaled(factors);
            let solution = factors.solution.as_ref().map_or_else(String::new, |one| solution_text(one, most));
            let slabs = factors.slabs.as_ref().map_or_else(String::new, factor_slabs_text);
            factors_text(run, factors) + &solution + &slabs
        }
        Detail::Advection(advection) => advection_text(run, advection),
        Detail::Sparse(sparse) => sparse_text(run, sparse),
    }
}

/// A line for each processor, and the totals.
fn product_text(run: &Run, product: &ProductRun) -> String {
    if product.products == 0 {
        return NOTHING.into();
    }
    let total = run.plan.shares.iter().sum::<u64>().max(1);
    let memory = run.peak_memory_bytes.iter().zip(&run.predicted_memory_bytes);
    let rows = run.processors.iter().zip(memory).map(|(processor, (peak, predicted))| {
        let done = processor.done();
        let memory = [peak, predicted].map(|bytes| show_bytes(*bytes as f64));
        let head = [processor.name.clone(), count(done), percent_of(done, total)];
        head.into_iter().chain(times_of(processor)).chain(memory).collect()
    });
    let header = ["processor", "share", "of all", "compute", "communicate", "idle", "memory", "predicted"];
    let processors = table(&header, rows);
    let overlap = if product.overlap == Some(true) { " with overlap" } else { "" };
    let times_over = match product.products {
        1 => String::new(),
        several => format!(", {several} products"),
    };
    let by = product.algorithm.as_ref().map_or_else(String::new, |method| format!(" by {method}"));
    let mut totals = vec![
        ("plan", format!("{}, {} flow{overlap}{times_over}{by}", run.plan.method, product.flow)),
        ("time", show_seconds(run.seconds)),
        ("forecast", forecast_text(run)),
    ];
    totals.extend(run.ideal_seconds.map(|ideal| {
        let over = match ideal < COMPARABLE {
            true => String::new(),
            false => format!(" (measured / ideal {:.3})", run.seconds / ideal),
        };
        ("ideal", show_seconds(ideal) + &over)
    }));
    let least = product.volume_lower_bound;
    let least = least.map_or_else(String::new, |least| format!(" (lower bound {})", count(least)));
    totals.push(("volume", format!("{} elements{least}", count(run.volume.unwrap_or(0)))));
    totals.extend(adaptation_lines(run));
    totals.push(("verified", verified(run, product)));
    totals.extend(run.notes.iter().map(|note| ("note", note.clone())));
    format!("{processors}\n{}", pairs(&totals))
}

/// Seconds of computation, of waits for data on the way, and the rest.
fn times_of(processor: &ProcessorRun) -> [String; 3] {
    [processor.compute, processor.communicate, processor.idle].map(show_seconds)
}

fn percent_of(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

/// A run of products in a few lines: what came out, its time beside the forecast, a bar for each processor, and what the
/// plan gained. `name` is what the result is called, such as its file.
pub fn run_summary(run: &Run, name: &str) -> String {
    let Detail::Product(product) = &run.detail else { return run_text(run) };
    if product.products == 0 {
        return NOTHING.into();
    }
    let size = match run.plan.problem() {
        Problem::Matmul(shape) => format!("{} x {} ", count(shape.m), count(shape.n)),
        Problem::Syrk { n, .. } => format!("{0} x {0} ", count(n)),
        _ => String::new(),
    };
    let products =
        if product.products > 1 { format!("{} products, ", product.products) } else { String::new() };
    let verified = match (product.error_probability, &product.verification) {
        (None, _) => "nothing was computed".into(),
        (_, Some(Verification::Sampled { all: false, .. })) => paint(Meaning::Good, "verified by samples"),
        _ => paint(Meaning::Good, "verified"),
    };
    let mut lines = vec![(name, format!("{size}{}, {products}{verified}", run.element))];
    if run.seconds >= WORTH_BARS {
        lines.push(("time", format!("{} (forecast {})", show_seconds(run.seconds), forecast_text(run))));
        lines.extend(bars_of_run(run));
        let by = if product.corrected.is_some() { "at the speeds of this run" } else { "forecast" };
        lines.extend(gain_line(run, by));
        let overlap = if product.overlap == Some(true) { " with overlap" } else { "" };
        let plan = format!("{} layout, {} flow{overlap}", run.plan.method, product.flow);
        lines.push(("plan", plan + &paint(Meaning::Aside, "; -v tells more")));
    }
    lines.extend(run.notes.iter().map(|note| ("note", note.clone())));
    pairs(&lines)
}

/// A line for each processor, up to [`MOST_SHOWN`]: its share, a bar of the time for which it computed, and its waits.
fn bars_of_run(run: &Run) -> Vec<(&str, String)> {
    let total = run.plan.shares.iter().sum::<u64>().max(1);
    let line = |processor: &'_ ProcessorRun| {
        format!(
            "{:>7}  {}  compute {:>8}  wait {:>8}",
            percent_of(processor.share, total),
            text_bar(processor.compute / run.seconds, BAR),
            show_seconds(processor.compute),
            show_seconds((run.seconds - processor.compute).max(0.0))
        )
    };
    let shown = run.processors.iter().take(MOST_SHOWN);
    let mut lines: Vec<(&str, String)> = shown.map(|one| (one.name.as_str(), line(one))).collect();
    if let Some(more) = run.processors.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        lines.push(("…", format!("and {more} more processors")));
    }
    lines
}

/// What the plan gained, by times of what is named `by`.
fn gain_line(run: &Run, by: &str) -> Option<(&'static str, String)> {
    let without = run.without_plan()?;
    let gain = run_gain_text(&without.baselines, run.seconds, without.forecast_seconds)?;
    Some(("gain", format!("{gain} ({by}: {})", baselines_text(&without.baselines))))
}

/// What a dynamic tail and an adaptive run did, as names and values.
pub fn adaptation_lines(run: &Run) -> Vec<(&'static str, String)> {
    let Detail::Product(product) = &run.detail else { return Vec::new() };
    let adaptive = product.adaptive.as_ref().map(|adaptive| {
        let segments = adaptive.segments;
        let what = match adaptive.repartitions.len() {
            0 => format!("none was needed in {segments} segments"),
            times => format!(
                "{times} in {segments} segments, {} elements moved in {}",
                count(adaptive.moved),
                show_seconds(adaptive.moving_seconds)
            ),
        };
        ("repartitioned", what)
    });
    let tail = product.tail.map(|tail| {
        let [elements, tiles, moved] = [tail.elements, tail.tiles, tail.moved].map(count);
        let what = format!(
            "{elements} elements in {tiles} tiles, {moved} of them computed by another processor than their owner"
        );
        ("tail", what)
    });
    adaptive.into_iter().chain(tail).collect()
}

/// The forecast, as a range where speeds were uncertain, and how far the measured time is from it.
pub fn forecast_text(run: &Run) -> String {
    let (seconds, forecast) = (run.seconds, run.forecast_seconds.unwrap_or(0.0));
    match run.forecast_range() {
        Some([low, high]) => {
            let end = if seconds < low { low } else { high };
            let outside = if (low..=high).contains(&seconds) {
                String::new()
            } else {
                format!(", {}", off(end, seconds))
            };
            format!("{} to {}{outside}", show_seconds(low), show_seconds(high))
        }
        None if forecast < COMPARABLE => show_seconds(forecast),
        None => format!("{}, {}", show_seconds(forecast), off(forecast, seconds)),
    }
}

/// What verification found, and how sure it is.
fn verified(run: &Run, product: &ProductRun) -> String {
    let Some(odds) = product.error_probability else { return "nothing was computed".into() };
    let seconds = show_seconds(run.verify_seconds.unwrap_or(0.0));
    match product.verification {
        Some(Verification::Sampled { all: true, rows: Some(_), .. }) => {
            format!("yes (every row checked against the matrix, {seconds})")
        }
        Some(Verification::Sampled { all: true, .. }) => format!("yes (every element recomputed, {seconds})"),
        Some(Verification::Sampled { rows: Some(rows), odds_hold_for_wrong_fraction: fraction, .. }) => {
            format!(
                "by samples ({} rows checked against the matrix, probability of missing {:.1} % wrong elements {odds:.0e}, \
             {seconds})",
                count(rows),
                100.0 * fraction
            )
        }
        Some(Verification::Sampled { elements, .. }) => format!(
            "by samples ({} elements recomputed, probability of missing 0.1 % wrong ones {odds:.0e}, {seconds})",
            count(elements)
        ),
        Some(Verification::Freivalds { recomputed: Some(recomputed), .. }) => format!(
            "yes (error probability {odds:.0e}; beside infinities by {} samples; {seconds})",
            count(recomputed)
        ),
        _ => format!("yes (error probability {odds:.0e}, {seconds})"),
    }
}

/// Messages, elements and bytes of every pair that communicated, as a table.
pub fn messages_text(run: &Run) -> String {
    let Detail::Product(product) = &run.detail else { return String::new() };
    let name =
        |rank: usize| run.processors.get(rank).map_or_else(|| rank.to_string(), |one| one.name.clone());
    let rows = product.pairs.iter().map(|pair| {
        let counts = [pair.messages, pair.elements, pair.bytes].map(count);
        [name(pair.from), name(pair.to)].into_iter().chain(counts).collect()
    });
    table(&["from", "to", "messages", "elements", "bytes"], rows)
}

/// The error of a forecast relative to the measurement, in words that cannot be misread.
pub(crate) fn off(forecast: f64, measured: f64) -> String {
    let percent = 100.0 * (forecast / measured - 1.0);
    match percent {
        _ if forecast < COMPARABLE => "too short to compare: starting takes longer".into(),
        p if !p.is_finite() => "nothing was measured".into(),
        p if p.abs() < 0.05 => "as measured".into(),
        p if p > 0.0 => format!("{p:.1} % too high"),
        p => format!("{:.1} % too low", -p),
    }
}

/// The lines about a product that was cut into panels.
pub fn panels_text(cut: &PanelsRun) -> String {
    let PanelsRun { count, rows, segment, decided_by, resumed, held } = cut;
    let cut = format!(
        "{count} of {rows} rows of C, inner segments of {segment}, by {decided_by}; {resumed} resumed"
    );
    pairs(&[("panels  ", cut), ("memory  ", memory_text(held))])
}

/// The lines about a factorisation that was cut into slabs.
fn factor_slabs_text(cut: &FactorSlabs) -> String {
    let FactorSlabs { count, columns, decided_by, blocks, resumed, held } = cut;
    let plural = if *count == 1 { "" } else { "s" };
    let cut = format!(
        "{count} slab{plural} of {columns} columns, by {decided_by}; {resumed} of {blocks} blocks resumed"
    );
    pairs(&[("slabs   ", cut), ("memory  ", memory_text(held))])
}

/// What the process was expected to hold, and what it held.
fn memory_text(held: &HeldMemory) -> String {
    let shown = |bytes: u64| show_bytes(bytes as f64);
    let peak = held.peak_resident_bytes.map_or_else(|| "unknown".into(), shown);
    format!("{} predicted for the whole process, {peak} held at most", shown(held.predicted_memory_bytes))
}

/// The verdict, the times, one line per processor, and what the plan gains.
fn factors_text(run: &Run, factors: &FactorRun) -> String {
    let names = match run.plan.problem() {
        Problem::Factorisation { factors: Factors::Cholesky, .. } => "A = L L^T",
        Problem::Factorisation { factors: Factors::Ldlt, .. } => "P A P^T = L D L^T",
        _ => "P A = L U",
    };
    let check = factors.verification.as_ref();
    let how = if check.is_some_and(|check| check.vectors.is_none()) { "exact" } else { "16 random vectors" };
    let most = most_scaled(factors);
    let scaled = factors.factors_residual.or(factors.residual).unwrap_or(f64::NAN);
    let residual = if scaled <= most {
        format!("{} of at most {most} n ||A|| eps ({how})", three_digits(scaled))
    } else {
        format!("{scaled:.0} n ||A|| eps ({how}): the factors are inaccurate, and the solution is refined")
    };
    let mut time = match factors.flops_per_second {
        Some(flops) => format!("{} ({:.1} Gflop/s", show_seconds(run.seconds), flops / 1e9),
        None => format!("{} (without what an earlier run did", show_seconds(run.seconds)),
    };
    if let Some(forecast) = run.forecast_seconds {
        time += &match factors.forecast_range {
            Some([low, high]) => format!("; forecast {} to {}", show_seconds(low), show_seconds(high)),
            None => format!("; forecast {}, {}", show_seconds(forecast), off(forecast, run.seconds)),
        };
    }
    if let Some(ideal) = run.ideal_seconds {
        time += &format!("; ideal {}", show_seconds(ideal));
    }
    let (n, block) = (count(factors.n), count(factors.block));
    let mut lines = vec![
        ("factors", format!("{names} of {n} x {n} {}, blocks of {block}", run.element)),
        ("residual", residual),
        ("time", time + ")"),
    ];
    lines.extend(bars_of_run(run));
    lines.extend(gain_line(run, "forecast"));
    if let Some(ratio) = run.plan.metrics.forecast_over_bound {
        lines.push(("bound", format!("forecast {ratio:.2} times the least that any division takes")));
    }
    let moved = count(run.volume.unwrap_or(0));
    let memory = show_bytes(run.peak_memory_bytes.iter().copied().max().unwrap_or(0) as f64);
    lines.push(("moved", format!("{moved} elements; at most {memory} in a processor")));
    let tiles = run.plan.blocks().is_ok_and(|(_, blocks)| !blocks.are_columns());
    let of = if tiles { "tiles" } else { "block columns" };
    lines.push(("plan", format!("{} layout of {of}", run.plan.method)));
    pairs(&lines)
}

/// The largest scaled residual that is taken for rounding.
fn most_scaled(factors: &FactorRun) -> f64 {
    factors.verification.as_ref().map_or(f64::INFINITY, |check| check.threshold)
}

fn solution_text(solution: &SolutionRun, most: f64) -> String {
    let sides = number_of(solution.right_hand_sides, "right-hand side");
    let [before, after] = [solution.residual_before_refinement, solution.residual].map(three_digits);
    let seconds = [solution.seconds, solution.substitution_seconds].map(show_seconds);
    let refined = match solution.refinement_steps {
        1 => format!(", {before} before refinement"),
        steps => format!(", {before} before {steps} steps of refinement"),
    };
    let mut lines = vec![
        ("solution", format!("of {sides} in {} (substitution: {})", seconds[0], seconds[1])),
        ("error", format!("||A x - b|| is {after} of at most {most} n ||A|| ||x|| eps{refined}")),
        ("condition", format!("about {:.1e} in the norm of column sums", solution.condition)),
    ];
    if let Some(mixed) = &solution.mixed {
        let text = match &mixed.why {
            None => format!("factors in f32, refined to f64 by {}", number_of(mixed.steps as u64, "step")),
            Some(why) => format!("fell back to f64: {why}"),
        };
        lines.insert(1, ("precision", text));
    }
    pairs(&lines)
}

/// One line per processor, then the totals.
fn advection_text(run: &Run, advection: &AdvectRun) -> String {
    let total = run.plan.shares.iter().sum::<u64>().max(1);
    let rows = run.processors.iter().map(|processor| {
        let head = [processor.name.clone(), percent_of(processor.share, total)];
        head.into_iter().chain(times_of(processor)).collect()
    });
    let mut text = table(&["processor", "share", "compute", "communicate", "wait"], rows);
    let AdvectRun { mass, least, most, .. } = advection;
    let sizes: Vec<String> = advection.sizes.iter().map(usize::to_string).collect();
    let scheme = advection.scheme.as_ref().map_or_else(String::new, Scheme::to_string);
    text +=
        &format!("{} cells of {}, {} steps of {scheme}\n", sizes.join(" x "), run.element, advection.steps);
    let halo = if advection.exchange == Some(Exchange::Narrow) { "narrow halo" } else { "wide halo" };
    let overlap = if advection.overlap == Some(true) { ", overlap" } else { "" };
    text += &format!("layout {}, {halo}{overlap}\n", run.plan.method);
    let speed = advection.million_cells_per_second.unwrap_or(0.0);
    text += &format!("measured {}, {speed:.1} million cells/s", show_seconds(run.seconds));
    for (name, seconds) in [("forecast", run.forecast_seconds), ("ideal", run.ideal_seconds)] {
        text += &seconds.map_or_else(String::new, |seconds| format!("; {name} {}", show_seconds(seconds)));
    }
    text += &format!("\nmoved {} elements\n", count(run.volume.unwrap_or(0)));
    let change = if mass.before == 0.0 { mass.after } else { (mass.after - mass.before) / mass.before };
    text += &format!("mass {:.9e} -> {:.9e} (change {change:.1e})\n", mass.before, mass.after);
    text += &format!("least {:.6e} -> {:.6e}\n", least.before, least.after);
    text += &format!("most  {:.6e} -> {:.6e}\n", most.before, most.after);
    if let Some(largest) = advection.largest_courant_sum {
        text += &format!("Courant numbers add up to at most {largest:.4} in a cell\n");
    }
    text + &advection.slabs.as_ref().map_or_else(String::new, advect_slabs_text)
}

/// A line for each processor, and what came of the steps.
fn sparse_text(run: &Run, sparse: &SparseRun) -> String {
    let total = run.plan.shares.iter().sum::<u64>().max(1);
    let rows = run.processors.iter().map(|processor| {
        let head = [processor.name.clone(), count(processor.share), percent_of(processor.share, total)];
        head.into_iter().chain(times_of(processor)).collect()
    });
    let processors = table(&["processor", "rows", "of all", "compute", "communicate", "idle"], rows);
    let steps = number_of(sparse.steps, "step");
    let mut lines = vec![(
        "matrix",
        format!(
            "{} rows, {} entries, {steps} of {}",
            count(sparse.rows),
            count(sparse.entries),
            sparse.problem
        ),
    )];
    if let Some(solution) = &sparse.solution {
        let of =
            format!("{} of b, at most {:.0e} wanted", three_digits(solution.residual), solution.tolerance);
        lines.push(("residual", of));
    }
    let speed = |per_second: Option<f64>| per_second.unwrap_or(0.0) / 1e9;
    let [flops, bytes] = [sparse.flops_per_second, sparse.bytes_per_second].map(speed);
    lines.push(("time", format!("{} ({flops:.2} Gflop/s, {bytes:.1} GB/s)", show_seconds(run.seconds))));
    lines.extend(run.forecast_seconds.map(|_| ("forecast", forecast_text(run))));
    lines.extend(gain_line(run, "forecast"));
    lines.push(("plan", format!("{}, imbalance {:.4}", run.plan.method, run.plan.metrics.imbalance)));
    lines.push(("moved", format!("{} elements", count(run.volume.unwrap_or(0)))));
    let verified = if sparse.verified { "yes (every product by sums with random factors)" } else { "no" };
    lines.push(("verified", verified.into()));
    format!("{processors}\n{}", pairs(&lines))
}

/// The lines about an advection that was cut into slabs.
fn advect_slabs_text(slabs: &AdvectSlabs) -> String {
    let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let cut = format!(
        "{} of {}, {} of {}; {:.1} % of the cells computed twice",
        plural(slabs.count, "slab"),
        plural(slabs.planes, "plane"),
        plural(slabs.sweeps, "sweep"),
        plural(slabs.steps_per_sweep, "step"),
        100.0 * slabs.computed_twice
    );
    let [read, written] = [slabs.bytes_read, slabs.bytes_written].map(|bytes| show_bytes(bytes as f64));
    let disk = format!("{read} read, {written} written, {}", show_seconds(slabs.disk_seconds));
    let all = format!(
        "{} with reading and writing, {:.1} million cells/s",
        show_seconds(slabs.seconds),
        slabs.million_cells_per_second
    );
    pairs(&[("slabs  ", cut), ("sweeps ", all), ("disk   ", disk), ("memory ", memory_text(&slabs.held))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::shapes::{LayoutMethod, SquareCorner};
    use apportion::plan::{Plan, Shape};
    use apportion::record::read_record;
    use serde_json::{Value, json};

    /// A run of a problem on two processors.
    fn run(detail: &Value) -> Value {
        let layout = SquareCorner.layout(Shape::new(100, 100, 100, "test").unwrap(), &[9.0, 1.0]).unwrap();
        let plan = Plan::of_layout("square-corner", vec!["a".into(), "b".into()], layout, 1.0);
        let processor = |name: &str, share: u64| {
            json!({"name": name, "share": share, "compute": 2.0, "communicate": 1.0, "idle": 1.0, "sent": 3200,
                   "received": 3200, "messages": 1, "cpu_seconds": 2.0, "kind": "core", "computed": 5000})
        };
        let mut value = json!({"format": "apportion-run", "version": 1, "engine": "threads", "element": "f64",
            "seconds": 4.0, "forecast_seconds": 3.0, "ideal_seconds": 2.0, "io_seconds": 0.1, "volume": 6400,
            "predicted_memory_bytes": [1000, 2000], "peak_memory_bytes": [900, 1800],
            "processors": [processor("a", 9000), processor("b", 1000)], "plan": plan.to_value(),
            "timeline": {"measured": [], "forecast": []}, "notes": ["not all is known"]});
        for (field, detail) in detail.as_object().unwrap() {
            value[field] = detail.clone();
        }
        value
    }

    fn closure() -> Value {
        run(
            &json!({"semiring": "min-plus", "kernel": {"name": "min-plus-f64", "library": null}, "flow": "bulk",
            "block": 10, "overlap": true, "look_ahead": 1, "forecast_range": [2.5, 3.5], "verified": true,
            "error_probability": 0.0, "odds_of_a_miss": 0.0, "verify_seconds": 0.5, "products": 2,
            "verification": {"method": "sampled", "elements": 9, "rows": 100, "all": true, "tolerance": "exact",
                             "odds_hold_for_wrong_fraction": 0.0},
            "algorithm": "squaring", "carried": 6400, "volume_lower_bound": 6000, "gain": null,
            "pairs": [{"from": 0, "to": 1, "messages": 1, "elements": 3200, "bytes": 25600}],
            "tail": {"tiles": 9, "elements": 90, "moved": 30},
            "adaptive": {"segments": 4, "moved": 0, "moving_seconds": 0.0, "repartitions": []},
            "choice": {"by": "forecast", "decided_by": "forecast",
                       "chosen": {"method": "grid", "flow": "bulk", "overlap": true, "value": 3.0},
                       "against": [{"method": "rows", "flow": "ring", "overlap": true, "value": null, "excess": null,
                                    "at_least": 9.0}]}}),
        )
    }

    /// What is written is read, and the text says it.
    #[test]
    fn records_are_read_as_they_were_written() {
        let held =
            json!({"memory_cap_bytes": null, "predicted_memory_bytes": 5000, "peak_resident_bytes": 4000});
        let mut slabs = json!({"count": 2, "planes": 30, "steps_per_sweep": 3, "sweeps": 2, "computed_twice": 0.1,
            "bytes_read": 1000, "bytes_written": 2000, "disk_seconds": 0.1, "seconds": 5.0,
            "million_cells_per_second": 1.5});
        slabs.as_object_mut().unwrap().extend(held.as_object().unwrap().clone());
        let system = json!({"application": "factorisation", "factors": "lu", "n": 100, "block": 32,
            "kernel": {"name": "gemm-f64", "library": null}, "forecast_range": null, "flops_per_second": 1e9,
            "gain": null, "verified": true, "verify_seconds": 0.1, "residual": 0.5, "factors_residual": 40.0,
            "verification": {"method": "random signs", "vectors": 16, "norm": "frobenius", "threshold": 30.0},
            "solution": {"right_hand_sides": 2, "residual": 0.5, "residual_before_refinement": null,
                "refinement_steps": 1, "condition": null, "seconds": 1.0, "substitution_seconds": 0.5,
                "mixed": {"steps": 1, "fell_back": true, "why": "it diverged"}}});
        let grid = json!({"application": "mpdata", "sizes": [60, 50], "boundary": ["zero", "periodic"],
            "scheme": {"passes": 2, "nonoscillatory": true, "infinite_gauge": false, "third_order": false},
            "exchange": "narrow", "overlap": true, "steps": 7, "million_cells_per_second": 1.5,
            "mass": {"before": 2.0, "after": 2.0}, "least": {"before": 0.0, "after": 0.5},
            "most": {"before": 9.0, "after": 8.0}, "largest_courant_sum": 0.3, "slabs": slabs, "candidates":
            [{"method": "columns", "exchange": "wide", "overlap": false, "forecast_seconds": null}]});
        let cases: [(Value, &[&str]); 3] = [
            (
                closure(),
                &[
                    "a          5,000  50.0 %",
                    "square-corner, bulk flow with overlap, 2 products by squaring",
                    "2.50 s to 3.50 s, 12.5 % too low",
                    "6,400 elements (lower bound 6,000)",
                    "none was needed in 4 segments",
                    "30 of them computed by another processor",
                    "every row checked against the matrix",
                    "not all is known",
                ],
            ),
            (
                run(&system),
                &[
                    "P A = L U of 100 x 100 f64",
                    "40 n ||A|| eps (16 random vectors): the factors are inaccurate",
                    "4.00 s (1.0 Gflop/s; forecast 3.00 s, 25.0 % too low; ideal 2.00 s)",
                    "of 2 right-hand sides in 1.00 s",
                    "fell back to f64: it diverged",
                ],
            ),
            (
                run(&grid),
                &[
                    "60 x 50 cells of f64, 7 steps of 2 passes, non-oscillatory",
                    "narrow halo, overlap",
                    "Courant numbers add up to at most 0.3000",
                    "2 slabs of 30 planes, 2 sweeps of 3 steps; 10.0 % of the cells",
                    "4.0 kB held at most",
                ],
            ),
        ];
        for (value, words) in cases {
            let read: Run = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(read.to_value(), value);
            let text = run_text(&read);
            words.iter().for_each(|words| assert!(text.contains(words), "{words}: {text}"));
        }
    }

    /// Fields of other versions do not matter; one that is not what it should be is missing, or refused by name.
    #[test]
    fn reading_is_tolerant() {
        let mut value = closure();
        value["unheard_of"] = json!({"a": 1});
        value["volume"] = json!("many");
        value["choice"]["chosen"] = json!(7);
        value.as_object_mut().unwrap().remove("verification");
        let read: Run = read_record(&value, &["seconds", "processors"]).unwrap();
        let Detail::Product(product) = &read.detail else { panic!() };
        assert_eq!((read.volume, read.choice.as_ref(), product.verification.as_ref()), (None, None, None));
        assert_eq!((product.products, read.processors.len()), (2, 2));
        for (field, odd) in
            [("seconds", json!(-1)), ("seconds", json!(null)), ("processors", json!([{"share": "x"}]))]
        {
            let mut damaged = closure();
            damaged[field] = odd;
            assert_eq!(read_record::<Run>(&damaged, &["seconds", "processors"]), Err(field));
        }
    }
}

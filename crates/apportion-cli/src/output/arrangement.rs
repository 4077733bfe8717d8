//! A rearranged plan.

use super::extended;
use apportion::plan::arrange::{Arrangement, Cost, CostFunction};
use apportion::platform::Platform;
use apportion::units;
use apportion_report::pairs;
use serde_json::{Value, json};

/// The JSON for programs.
pub fn to_value(arranged: &Arrangement, name: &str, milliseconds: f64) -> Value {
    extended(extended(json!({"objective": name}), arranged), json!({"milliseconds": milliseconds}))
}

/// The text for readers.
pub fn to_text(arranged: &Arrangement, objective: CostFunction, name: &str, milliseconds: f64) -> String {
    let (before, after) = (arranged.cost_before, arranged.cost_after);
    let unit = if hops(objective) { "elements x levels" } else { "time on the links" };
    let saved = if before.total > 0.0 { 100.0 * (1.0 - after.total / before.total) } else { 0.0 };
    let factor = match before.total / after.total {
        factor if factor.is_finite() && factor >= 1.005 => format!(", a factor of {factor:.2}"),
        _ => String::new(),
    };
    pairs(&[
        ("objective", format!("{name} ({unit})")),
        ("before", detailed(before, objective)),
        ("after", format!("{} ({saved:.1} % less{factor})", detailed(after, objective))),
        ("evaluations", units::show_count(u128::from(arranged.evaluations))),
        ("time", units::show_seconds(milliseconds / 1e3)),
    ])
}

/// The method of the plan with its costs, for the title of a picture.
pub fn title(arranged: &Arrangement, objective: CostFunction) -> String {
    let [before, after] =
        [arranged.cost_before, arranged.cost_after].map(|cost| cost_text(cost.total, objective));
    let cost = match objective {
        CostFunction::Hops(_) => "arranged by hops,",
        CostFunction::Bandwidth(_) => "arranged by bandwidth,",
        CostFunction::Asymmetric(_) => "halo exchange",
    };
    format!("{}, {cost} {after} (before {before})", arranged.plan.method)
}

/// Why the cost is zero, if it is.
pub fn hint(arranged: &Arrangement, objective: CostFunction, platform: &Platform) -> Option<&'static str> {
    if arranged.cost_before.total > 0.0 || platform.len() < 2 {
        return None;
    }
    Some(if hops(objective) {
        "nothing to gain: all data stay inside one cluster (set `cluster` in the platform file)"
    } else {
        "nothing to gain: the platform file limits no bandwidth (set `bandwidth` under [network], or use \
         --objective hops)"
    })
}

fn hops(objective: CostFunction) -> bool {
    matches!(objective, CostFunction::Hops(_))
}

fn detailed(cost: Cost, objective: CostFunction) -> String {
    let [total, a, b] = [cost.total, cost.a, cost.b].map(|x| cost_text(x, objective));
    format!("{total} (A {a}, B {b})")
}

/// A cost with its unit and four significant digits; hops in full.
fn cost_text(cost: f64, objective: CostFunction) -> String {
    if hops(objective) {
        let whole = units::show_count(cost.round() as u128);
        return format!("{whole} hops");
    }
    let (scale, unit) = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]
        .into_iter()
        .find(|(scale, _)| cost >= *scale)
        .unwrap_or(if cost > 0.0 { (1e-9, "ns") } else { (1.0, "s") });
    let value = cost / scale;
    let decimals = match value {
        v if v >= 1000.0 || v == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::arrange::Pivots;

    #[test]
    fn costs_have_units_and_four_digits() {
        let seconds = |cost| cost_text(cost, CostFunction::Bandwidth(Pivots::Ring));
        assert_eq!(
            [0.030_271, 1.5, 12_345.6, 3.604e-6, 2.15e-10, 0.0].map(seconds),
            ["30.27 ms", "1.500 s", "12346 s", "3.604 us", "0.215 ns", "0 s"]
        );
        assert_eq!(cost_text(2662.0, CostFunction::Hops(Pivots::Ring)), "2,662 hops");
    }
}

//! The rounds of a balancing run.

use apportion::measure::{Balance, Round, ShareCap};
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::units::{self, show_seconds};
use apportion_report::{About, gain_lines, pairs, table};
use serde_json::{Value, json};

/// The most shares that a line about a round names.
const MOST_SHARES: usize = 6;

/// One line about a round.
pub fn headline(number: usize, round: &Round) -> String {
    let total = round.shares.iter().sum::<u64>().max(1) as f64;
    let percent = |share: &u64| format!("{:.1}", 100.0 * *share as f64 / total);
    let shares = match round.shares.len() {
        few if few <= MOST_SHARES => {
            format!(", shares {} %", round.shares.iter().map(percent).collect::<Vec<_>>().join(" / "))
        }
        _ => String::new(),
    };
    let (longest, spread) = (show_seconds(round.longest()), 100.0 * round.spread());
    let doubt = if round.believed { "" } else { ", not believed" };
    format!("round {number}: {longest}, times differ by {spread:.1} %{shares}{doubt}")
}

/// The shares and times of a round.
fn round_table(round: &Round, platform: &Platform) -> String {
    let rows =
        platform.processors.iter().zip(&round.shares).zip(&round.seconds).map(|((p, &share), &t)| {
            vec![p.name.clone(), units::show_count(u128::from(share)), show_seconds(t)]
        });
    table(&["processor", "share", "time"], rows)
}

/// A share at which a program failed, and the largest that worked.
pub fn cap_text(cap: &ShareCap, platform: &Platform) -> String {
    let [works, fails] = [cap.works, cap.fails].map(|share| units::show_count(u128::from(share)));
    let name = &platform.processors[cap.rank].name;
    format!("{name} does {works} units and fails at {fails} ({})", cap.reason)
}

/// The JSON for programs. `even`: the first round was the even split.
pub fn value(found: &Balance, plan: &Plan, platform: &Platform, even: bool) -> Value {
    let caps = found.caps.iter().map(|cap| {
        json!({"processor": platform.processors[cap.rank].name, "works": cap.works, "fails": cap.fails,
               "reason": cap.reason})
    });
    let rounds: Vec<Value> = found
        .rounds
        .iter()
        .map(|round| {
            json!({
                "shares": round.shares,
                "seconds": round.seconds,
                "spread": round.spread(),
                "imbalance": found.imbalance(round),
                "believed": round.believed,
            })
        })
        .collect();
    let (first, kept) = (found.rounds[0].longest(), found.best_round().longest());
    let against = if even { "even split" } else { "first round" };
    let alone = found.alone.as_ref().map(|alone| {
        json!({"processor": alone.processor, "seconds": alone.time.seconds, "measured": alone.measured})
    });
    json!({
        "cost_seconds": found.cost_seconds, "pays_after_runs": found.pays_after_runs(), "alone": alone,
        "even": found.even.map(|even| json!({"seconds": even.seconds, "measured": even.measured})),
        "format": "apportion-balance", "version": 1,
        "processors": platform.names(),
        "balanced": found.balanced, "best": found.best, "rounds": rounds,
        "gain": {"against": against, "seconds": first, "kept_seconds": kept, "times": first / kept},
        "gain_over_baselines": plan.gain(),
        "caps": caps.collect::<Vec<_>>(), "plan": plan.to_value(), "models": found.models.to_value(),
    })
}

/// The text for readers: the kept round. The others had a line each when they ended.
pub fn text(found: &Balance, plan: &Plan, platform: &Platform) -> String {
    let kept = found.best_round();
    let balanced = match found.balanced {
        true => format!("yes, times differ by {:.1} %", 100.0 * kept.spread()),
        false => format!("no, times differ by {:.1} %", 100.0 * kept.spread()),
    };
    let mut facts = vec![
        (
            "time",
            format!("{} in round {} of {}", show_seconds(kept.longest()), found.best + 1, found.rounds.len()),
        ),
        ("balanced", balanced),
    ];
    let about = About {
        alone: found.alone.as_ref().is_some_and(|alone| !alone.measured),
        even: found.even.is_some_and(|even| !even.measured),
    };
    facts.extend(gain_lines(plan, about));
    let rounds = found.rounds.len();
    let plural = if rounds == 1 { "" } else { "s" };
    let pays = match found.pays_after_runs() {
        Some(1) => "; pays after 1 run".into(),
        Some(runs) => format!("; pays after {} runs", units::show_count(u128::from(runs))),
        None => String::new(),
    };
    facts.push((
        "cost",
        format!("found in {rounds} round{plural}, {}{pays}", show_seconds(found.cost_seconds)),
    ));
    facts.extend(found.caps.iter().map(|cap| ("cap", cap_text(cap, platform))));
    format!("{}\n{}", round_table(kept, platform), pairs(&facts))
}

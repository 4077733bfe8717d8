//! The rounds of a balancing run.

use apportion::measure::{Balance, Round, ShareCap};
use apportion::platform::Platform;
use apportion::units;
use apportion_report::{pairs, table};
use serde_json::{Value, json};

/// One line about a round.
pub fn headline(number: usize, round: &Round) -> String {
    format!(
        "round {number}: {}, times differ by {:.1} %, imbalance {:.4}",
        units::show_seconds(round.longest()),
        100.0 * round.spread(),
        round.imbalance()
    )
}

/// The shares and times of a round.
pub fn round_table(round: &Round, platform: &Platform) -> String {
    let rows = platform.processors.iter().zip(&round.shares).zip(&round.seconds).map(|((p, &share), &t)| {
        vec![p.name.clone(), units::show_count(u128::from(share)), units::show_seconds(t)]
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
pub fn value(found: &Balance, plan: Value, platform: &Platform, even: bool) -> Value {
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
                "imbalance": round.imbalance(),
            })
        })
        .collect();
    let (first, kept) = (found.rounds[0].longest(), found.best_round().longest());
    let against = if even { "even split" } else { "first round" };
    json!({
        "format": "apportion-balance", "version": 1,
        "processors": platform.names(),
        "balanced": found.balanced, "best": found.best, "rounds": rounds,
        "gain": {"against": against, "seconds": first, "kept_seconds": kept, "times": first / kept},
        "caps": caps.collect::<Vec<_>>(), "plan": plan, "models": found.models.to_value(),
    })
}

/// The text for readers: the kept round. The others were printed when they ended.
pub fn text(found: &Balance, platform: &Platform, even: bool) -> String {
    let (first, kept) = (found.rounds[0].longest(), found.best_round().longest());
    let against = if even { "the even split" } else { "the first round" };
    let mut facts = vec![
        ("balanced", if found.balanced { "yes" } else { "no" }.into()),
        ("kept", format!("round {} of {}", found.best + 1, found.rounds.len())),
        ("imbalance", format!("{:.4}", found.best_round().imbalance())),
        ("time", units::show_seconds(kept)),
        (
            "gain",
            format!(
                "{} -> {}, {:.2} times as fast as {against}",
                units::show_seconds(first),
                units::show_seconds(kept),
                first / kept
            ),
        ),
    ];
    facts.extend(found.caps.iter().map(|cap| ("cap", cap_text(cap, platform))));
    format!("{}\n{}", round_table(found.best_round(), platform), pairs(&facts))
}

//! The rounds of a balancing run.

use apportion::measure::{Balance, Round};
use apportion::platform::Platform;
use apportion::report::{pairs, table};
use apportion::units;
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

/// The JSON for programs.
pub fn value(found: &Balance, plan: Value) -> Value {
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
    json!({"balanced": found.balanced, "best": found.best, "rounds": rounds, "plan": plan})
}

/// The text for readers.
pub fn text(found: &Balance, platform: &Platform) -> String {
    let mut out = String::new();
    for (i, round) in found.rounds.iter().enumerate() {
        let rows =
            platform.processors.iter().zip(&round.shares).zip(&round.seconds).map(|((p, &share), &t)| {
                vec![p.name.clone(), units::show_count(u128::from(share)), units::show_seconds(t)]
            });
        out += &format!("{}\n{}\n", headline(i + 1, round), table(&["processor", "share", "time"], rows));
    }
    out + &pairs(&[
        ("balanced", if found.balanced { "yes" } else { "no" }.into()),
        ("kept", format!("round {}", found.best + 1)),
        ("imbalance", format!("{:.4}", found.kept().imbalance())),
        ("time", units::show_seconds(found.kept().longest())),
    ])
}

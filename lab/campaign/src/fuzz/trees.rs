//! Damage by structure: the text is read as JSON or TOML, a place of its tree is changed, and it is written
//! again, so that the damage gets past the grammar.

use super::Grammar;
use apportion::random::Random;
use serde_json::{Map, Number, Value, json};

/// The text with one to three places changed; `None` if it is not of its grammar.
pub fn damaged(grammar: Grammar, input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(input).ok()?;
    let mut tree = match grammar {
        Grammar::Json => serde_json::from_str(text).ok()?,
        Grammar::Toml => serde_json::to_value(toml::from_str::<toml::Value>(text).ok()?).ok()?,
        Grammar::Bytes => return None,
    };
    for _ in 0..=random.below(3) {
        let places = count(&tree);
        let mut at = random.below(places);
        change(&mut tree, &mut at, random);
    }
    Some(match grammar {
        Grammar::Toml => toml::to_string(&tree).ok()?.into_bytes(),
        _ => tree.to_string().into_bytes(),
    })
}

/// Number of places of a tree.
fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes place number `at`, counted from the root; false if it lies behind this tree.
fn change(tree: &mut Value, at: &mut usize, random: &mut Random) -> bool {
    if *at == 0 {
        *tree = changed(tree, random);
        return true;
    }
    *at -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().any(|item| change(item, at, random)),
        Value::Object(entries) => entries.values_mut().any(|entry| change(entry, at, random)),
        _ => false,
    }
}

/// Another value for a place, most often of the same kind.
fn changed(value: &Value, random: &mut Random) -> Value {
    if random.below(6) == 0 {
        return any(random);
    }
    match value {
        Value::Number(number) => changed_number(number, random),
        Value::String(text) => changed_text(text, random),
        Value::Array(items) => changed_list(items, random),
        Value::Object(entries) => changed_entries(entries, random),
        Value::Bool(value) => Value::Bool(!value),
        Value::Null => any(random),
    }
}

/// Values that fields seldom expect.
fn any(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => json!(""),
        4 => json!(random.below(2) == 0),
        5 => json!("1 GiB"),
        6 => json!([[0, 1], [1, 0]]),
        _ => json!(random.word()),
    }
}

fn changed_number(number: &Number, random: &mut Random) -> Value {
    let x = number.as_f64().unwrap_or(0.0);
    match random.below(12) {
        0 => json!(0),
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(i64::MIN),
        4 => json!(1u64 << random.below(64)),
        5 => json!(f64::MAX),
        6 => json!(f64::MIN_POSITIVE),
        7 => json!(-x),
        8 => json!(x + 1.0),
        9 => json!(x * 1e9),
        10 => json!(x / 3.0),
        _ => number.as_u64().map_or_else(|| json!(1e-300), |n| json!(n.wrapping_sub(1))),
    }
}

fn changed_text(text: &str, random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!(""),
        1 => json!(format!("{text}{text}")),
        2 => json!(format!("{text}\u{202e}\u{1b}[31m\n")),
        3 => json!("x".repeat(10_000)),
        4 => json!(["1e999 GiB/s", "-5 us", "0 bit/s", "1 parsec", "NaN s", "1e-320 B/s"][random.below(6)]),
        _ => json!(text.chars().rev().collect::<String>()),
    }
}

fn changed_list(items: &[Value], random: &mut Random) -> Value {
    let mut items = items.to_vec();
    let at = random.below(items.len().max(1));
    match random.below(5) {
        0 if !items.is_empty() => {
            items.remove(at);
        }
        1 if !items.is_empty() => items.push(items[at].clone()),
        2 if items.len() > 1 => items.swap(0, at),
        3 => items.push(any(random)),
        _ if !items.is_empty() && items.len() < 64 => items = [items.clone(), items].concat(),
        _ => items.clear(),
    }
    Value::Array(items)
}

fn changed_entries(entries: &Map<String, Value>, random: &mut Random) -> Value {
    let mut entries = entries.clone();
    let keys: Vec<String> = entries.keys().cloned().collect();
    let key = |random: &mut Random| keys[random.below(keys.len())].clone();
    match random.below(4) {
        0 if !keys.is_empty() => {
            let gone = key(random);
            entries.remove(&gone);
        }
        1 if keys.len() > 1 => {
            let (from, to) = (key(random), key(random));
            let value = entries[&from].clone();
            entries.insert(to, value);
        }
        2 if !keys.is_empty() => {
            let (old, value) = (key(random), any(random));
            entries.insert(format!("{old}s"), value);
        }
        _ => {
            entries.insert("surprise".into(), any(random));
        }
    }
    Value::Object(entries)
}

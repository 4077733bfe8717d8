//! Plain tables for other programs: CSV (RFC 4180) and JSON.

use super::Export;

pub(super) fn csv(names: &[String], shares: &[u64]) -> Export {
    let total: f64 = shares.iter().map(|&x| x as f64).sum();
    let mut text = String::from("processor,share,fraction\n");
    for (name, &share) in names.iter().zip(shares) {
        text += &format!("{},{share},{}\n", quoted(name), share as f64 / total);
    }
    Export { text, warnings: Vec::new() }
}

pub(super) fn json(names: &[String], shares: &[u64]) -> Export {
    let total: u64 = shares.iter().sum();
    let rows: Vec<serde_json::Value> = names
        .iter()
        .zip(shares)
        .map(|(name, &share)| {
            serde_json::json!({"processor": name, "share": share, "fraction": share as f64 / total as f64})
        })
        .collect();
    let whole = serde_json::json!({"total": total, "shares": rows});
    Export { text: format!("{whole:#}\n"), warnings: Vec::new() }
}

fn quoted(field: &str) -> String {
    let plain = !field.contains(['"', ',', '\n', '\r']);
    if plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}

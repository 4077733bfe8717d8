//! Graph partitioners: METIS, and weights for Scotch.

use super::{Export, without_zeros};
use crate::plan::shares::gcd;
use std::fmt::Write;

/// The largest weight below 1 in METIS's single precision, which refuses 1.
const MOST_METIS: f64 = 1.0 - f32::EPSILON as f64 / 2.0;
/// The imbalance that METIS allows by default (`-ufactor=30`), and the least that can be set (`-ufactor=1`).
const UFACTORS: [f64; 2] = [0.03, 0.001];

/// One line `part = fraction` per part, each above 0 and below 1 also in single precision.
pub(super) fn metis(names: &[String], shares: &[u64]) -> Export {
    let (parts, mut warnings) = without_zeros(names, shares, "METIS");
    if let [(only, _)] = parts[..] {
        warnings.push(format!("METIS divides among two parts or more, and {only} gets everything"));
    }
    let total: f64 = parts.iter().map(|(_, share)| *share as f64).sum();
    let mut text = String::new();
    for (i, (_, share)) in parts.iter().enumerate() {
        let weight = (*share as f64 / total).min(MOST_METIS);
        writeln!(text, "{i} = {weight}").expect("a string takes any text");
    }
    // What the others may exceed their weights by is all of such a part.
    let lost = |allowed: f64| {
        let small = parts.iter().filter(|(_, share)| *share as f64 <= allowed * (total - *share as f64));
        small.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let [by_default, at_least] = UFACTORS.map(lost);
    if !at_least.is_empty() {
        warnings.push(format!(
            "METIS may leave {} empty: parts may exceed their weights by 0.1 % at least; use Scotch",
            at_least.join(", ")
        ));
    } else if !by_default.is_empty() {
        warnings.push(format!(
            "METIS may leave {} empty: parts may exceed their weights by 3 %; add -ufactor=1",
            by_default.join(", ")
        ));
    }
    Export { text, warnings }
}

/// Whole numbers in proportion to the shares: reduced, and scaled if their sum would not fit into 31 bits.
pub(super) fn weights(parts: &[(&str, u64)]) -> Vec<u64> {
    let divisor = parts.iter().fold(0, |g, (_, share)| gcd(g, *share));
    let total: f64 = parts.iter().map(|(_, share)| (share / divisor) as f64).sum();
    let room = f64::from(i32::MAX / 2);
    let weight = |share: u64| match total <= room {
        true => share / divisor,
        false => ((share / divisor) as f64 * (room / total)).round().max(1.0) as u64,
    };
    parts.iter().map(|(_, share)| weight(*share)).collect()
}

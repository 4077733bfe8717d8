//! Graph partitioners: METIS and Scotch.

use super::{Exported, without_zeros};
use crate::plan::shares::gcd;
use std::fmt::Write;

/// One line `part = fraction` per part.
pub(super) fn metis(names: &[String], shares: &[u64]) -> Exported {
    let (parts, warnings) = without_zeros(names, shares, "METIS");
    let total: f64 = parts.iter().map(|(_, share)| *share as f64).sum();
    let mut text = String::new();
    for (i, (_, share)) in parts.iter().enumerate() {
        writeln!(text, "{i} = {}", *share as f64 / total).expect("a string takes any text");
    }
    Exported { text, warnings }
}

/// `cmpltw`, the number of processors, and their integer weights: reduced, and scaled if their sum would not
/// fit into 31 bits.
pub(super) fn scotch(names: &[String], shares: &[u64]) -> Exported {
    let (parts, warnings) = without_zeros(names, shares, "Scotch");
    let divisor = parts.iter().fold(0, |g, (_, share)| gcd(g, *share));
    let total: f64 = parts.iter().map(|(_, share)| (share / divisor) as f64).sum();
    let room = f64::from(i32::MAX / 2);
    let weight = |share: u64| match total <= room {
        true => share / divisor,
        false => ((share / divisor) as f64 * (room / total)).round().max(1.0) as u64,
    };
    let weights: Vec<String> = parts.iter().map(|(_, share)| weight(*share).to_string()).collect();
    Exported { text: format!("cmpltw {} {}\n", parts.len(), weights.join(" ")), warnings }
}

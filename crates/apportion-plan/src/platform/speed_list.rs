//! Lists of speeds as users write them.

use super::Speed;
use crate::units::{Dimension, number, parse};

/// Parses speeds, one per processor: `9,1` or `9:1`, in percent `90%,10%`, and with units `9 Gflop/s,1 Gflop/s` or
/// `9,1 Gflop/s`.
///
/// # Errors
/// Text that is no such list, or speeds of several units. The error is the text of the message.
pub fn parse_speeds(text: &str) -> Result<Vec<Speed>, String> {
    let mut pieces: Vec<&str> = text.split([',', ':']).map(str::trim).collect();
    // Parts of a hundred are ratios.
    if let Some(parts) = pieces.iter().map(|piece| piece.strip_suffix('%')).collect::<Option<Vec<&str>>>() {
        pieces = parts.into_iter().map(str::trim).collect();
    }
    let bare = pieces.iter().filter(|piece| number(piece).is_ok()).count();
    let last = pieces.last().copied().unwrap_or_default();
    // A unit that stands once, at the end, is that of all.
    let unit = last.trim_start_matches(|c: char| c.is_ascii_digit() || "+-._eE ".contains(c));
    let shared = if bare + 1 == pieces.len() && number(last).is_err() { unit } else { "" };
    let all = pieces.iter().map(|piece| match number(piece) {
        Ok(value) if shared.is_empty() => Ok(Speed::Relative(value)),
        Ok(_) => parse_speed(&format!("{piece} {shared}")),
        Err(error) if unit.is_empty() => Err(error),
        Err(_) => parse_speed(piece),
    });
    let all = all.collect::<Result<Vec<Speed>, _>>()?;
    match all.windows(2).all(|pair| std::mem::discriminant(&pair[0]) == std::mem::discriminant(&pair[1])) {
        true => Ok(all),
        false => Err("give every speed the same unit, as in \"9 Gflop/s,1 Gflop/s\"".into()),
    }
}

/// Parses a speed with its unit.
fn parse_speed(text: &str) -> Result<Speed, String> {
    let flops = parse(text, Dimension::Speed).map(Speed::Flops);
    flops.or_else(|error| parse(text, Dimension::Rate).map(Speed::Units).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_ratios() {
        let ratios =
            |text: &str| parse_speeds(text).map(|all| all.iter().map(|s| s.value()).collect::<Vec<_>>());
        assert_eq!(ratios("50%,30 %,20%"), Ok(vec![50.0, 30.0, 20.0]));
        assert_eq!(parse_speeds("62.5%:37.5%"), Ok(vec![Speed::Relative(62.5), Speed::Relative(37.5)]));
        for mixed in ["50%,3", "50,3%", "%,%", "50% Gflop/s,1"] {
            assert!(ratios(mixed).is_err(), "{mixed}");
        }
    }
}

//! Quantities with units: `"16 GiB"`, `"100 Mbit/s"`, `"50 us"`, `"2.5 Gflop/s"`, or a bare number in the
//! base unit.
//!
//! Base units: byte, byte per second, second, flop per second. Decimal prefixes k, M, G, T are powers of
//! 1000, binary prefixes Ki, Mi, Gi, Ti powers of 1024; `B` is a byte and `bit` an eighth of one.

mod number;

pub use number::{number, whole};

use crate::input::quoted;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;

/// The dimension of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Bytes: memory and message sizes.
    Bytes,
    /// Bytes per second: bandwidth.
    Bandwidth,
    /// Seconds: latency, time limits.
    Time,
    /// Floating-point operations per second: speed.
    Speed,
    /// Units of work per second: speed.
    Rate,
}

impl Dimension {
    fn example(self) -> &'static str {
        match self {
            Self::Bytes => "16 GiB",
            Self::Bandwidth => "100 Mbit/s",
            Self::Time => "50 us",
            Self::Speed => "2.5 Gflop/s",
            Self::Rate => "100 units/s",
        }
    }
}

/// A number as the user wrote it: bare, or text with a unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantity {
    /// A bare number, in the base unit.
    Number(f64),
    /// Text such as `"100 Mbit/s"`, not yet interpreted.
    Text(String),
}

impl Quantity {
    /// The value in the base unit of `dimension`.
    ///
    /// # Errors
    /// Not a number, an unknown unit, NaN, infinite or negative. The error is the text of the message.
    pub fn value(&self, dimension: Dimension) -> Result<f64, String> {
        match self {
            Self::Number(x) => check(*x, &crate::input::show_number(*x)),
            Self::Text(text) => parse(text, dimension),
        }
    }

    /// True if it was written with a unit.
    pub fn has_unit(&self) -> bool {
        matches!(self, Self::Text(text) if number(text).is_err())
    }
}

impl<'de> serde::Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl Visitor<'_> for ValueVisitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text with a unit, such as \"100 Mbit/s\"")
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Quantity, E> {
                Ok(Quantity::Number(v))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Quantity, E> {
                Ok(Quantity::Number(v as f64))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Quantity, E> {
                Ok(Quantity::Number(v as f64))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Quantity, E> {
                Ok(Quantity::Text(v.to_owned()))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Reads a text such as `"56.39 MB/s"`; a bare number is in the base unit.
///
/// # Errors
/// As [`Quantity::value`].
pub fn parse(text: &str, dimension: Dimension) -> Result<f64, String> {
    if let Ok(bare) = number(text) {
        return check(bare, &quoted(text));
    }
    let trimmed = text.trim();
    let split = number_end(trimmed);
    let (digits, unit) = (&trimmed[..split], trimmed[split..].trim());
    let value = number(digits)
        .map_err(|_| format!("{} is not a quantity such as \"{}\"", quoted(text), dimension.example()))?;
    let factor = factor(unit, dimension).ok_or_else(|| {
        let (unit, text, example) = (quoted(unit), quoted(text), dimension.example());
        format!("unknown unit {unit} in {text}, expected one as in \"{example}\"")
    })?;
    check(value * factor, &quoted(text))
}

/// Where the leading decimal number (with optional exponent) of `text` ends, in bytes.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        while digit(i) || (matches!(bytes.get(i), Some(b'_' | b',')) && digit(i + 1)) {
            i += 1;
        }
        i
    };
    let mut i = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    i = digits(i);
    if bytes.get(i) == Some(&b'.') {
        i = digits(i + 1);
    }
    if matches!(bytes.get(i), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(i + 1), Some(b'+' | b'-')));
        let end = digits(i + 1 + sign);
        if end > i + 1 + sign {
            i = end;
        }
    }
    i
}

fn check(value: f64, text: &str) -> Result<f64, String> {
    if value.is_nan() || value.is_infinite() {
        Err(format!("{text} is not a finite number"))
    } else if value < 0.0 {
        Err(format!("{text} is negative"))
    } else {
        Ok(value)
    }
}

fn factor(unit: &str, dimension: Dimension) -> Option<f64> {
    match dimension {
        Dimension::Bytes => bytes_factor(unit),
        // "bps" is always bits per second.
        Dimension::Bandwidth => match unit.strip_suffix("bps") {
            Some(rest) => prefix(rest).map(|p| p / 8.0),
            None => bytes_factor(per_second(unit)?),
        },
        Dimension::Speed => {
            let rest = unit
                .strip_suffix("flop/s")
                .or_else(|| unit.strip_suffix("flops"))
                .or_else(|| unit.strip_suffix("FLOPS"))?;
            prefix(rest)
        }
        Dimension::Rate => {
            prefix(unit.strip_suffix("units/s").or_else(|| unit.strip_suffix("unit/s"))?.trim_end())
        }
        Dimension::Time => match unit {
            "s" | "sec" => Some(1.0),
            "ms" => Some(1e-3),
            "us" | "µs" | "μs" => Some(1e-6),
            "ns" => Some(1e-9),
            "min" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        },
    }
}

fn per_second(unit: &str) -> Option<&str> {
    unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))
}

fn bytes_factor(unit: &str) -> Option<f64> {
    if let Some(rest) = unit.strip_suffix("bit") {
        return prefix(rest).map(|p| p / 8.0);
    }
    unit.strip_suffix('B').and_then(prefix)
}

fn prefix(text: &str) -> Option<f64> {
    Some(match text {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        _ => return None,
    })
}

/// A number of bytes as text with decimal prefixes, as `"12.3 MB"`.
pub fn show_bytes(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB"])
}

/// A time as text, as `"1.23 s"`, `"45.6 ms"` or `"5 h 27 min"`.
pub fn show_seconds(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    let whole = seconds.round();
    if seconds.is_nan() || seconds >= 1e5 * DAY {
        format!("{:.3e} days", seconds / DAY)
    } else if seconds >= 3.0 * DAY {
        format!("{:.1} days", seconds / DAY)
    } else if whole >= 7200.0 {
        let minutes = (seconds / 60.0).round();
        format!("{:.0} h {:02.0} min", (minutes / 60.0).floor(), minutes % 60.0)
    } else if whole >= 600.0 {
        format!("{:.0} min {:02.0} s", (whole / 60.0).floor(), whole % 60.0)
    } else if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds >= 1e-6 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds >= 1e-9 {
        format!("{:.0} ns", seconds * 1e9)
    } else if seconds > 0.0 {
        "< 1 ns".to_owned()
    } else {
        "0 s".to_owned()
    }
}

/// A count as text in groups of three digits, as `1,234,567`.
pub fn show_count(count: u128) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with a fixed number of decimals and its thousands in groups, as `12,345.60`.
pub fn show_figures(x: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", x.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if x < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) { "-" } else { "" };
    match whole.parse::<u128>() {
        Ok(whole) => format!("{sign}{}{rest}", show_count(whole)),
        Err(_) => format!("{sign}{text}"),
    }
}

fn scaled(value: f64, names: &[&str]) -> String {
    let mut value = value;
    let mut name = 0;
    while value >= 1000.0 && name + 1 < names.len() {
        value /= 1000.0;
        name += 1;
    }
    if name == 0 { format!("{value:.0} {}", names[0]) } else { format!("{value:.1} {}", names[name]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_bytes_and_prefixes_are_told_apart() {
        let bandwidth = |t| parse(t, Dimension::Bandwidth).unwrap();
        assert_eq!(bandwidth("100 Mbit/s"), 12.5e6);
        assert_eq!(bandwidth("56.39 MB/s"), 56.39e6);
        assert_eq!(bandwidth("1 Gbit/s"), 125e6);
        assert_eq!(bandwidth("1e9"), 1e9);
        assert_eq!(parse("16 GiB", Dimension::Bytes).unwrap(), 16.0 * 1024f64.powi(3));
        assert_eq!(parse("8 Kibit", Dimension::Bytes).unwrap(), 1024.0);
        assert_eq!(parse("50us", Dimension::Time).unwrap(), 50.0 * 1e-6);
        assert_eq!(parse("2.5 Gflop/s", Dimension::Speed).unwrap(), 2.5e9);
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for bad in ["", "fast", "nan", "inf", "-1 s", "1 parsec", "1e999 s", "10 MB/s"] {
            assert!(parse(bad, Dimension::Time).is_err(), "{bad}");
        }
        assert!(parse("10 Mb/s", Dimension::Bandwidth).is_err(), "b is neither bit nor byte");
        let long = parse(&"9".repeat(5000), Dimension::Time).unwrap_err();
        assert!(long.chars().count() < 140, "{long}");
    }

    #[test]
    fn units_and_numbers_are_read_as_people_write_them() {
        for (text, dimension, value) in [
            ("1 Gbps", Dimension::Bandwidth, 125e6),
            ("100 Mbps", Dimension::Bandwidth, 12.5e6),
            ("100 MBps", Dimension::Bandwidth, 100e6),
            ("1,000 Mbit/s", Dimension::Bandwidth, 125e6),
            ("1_000 us", Dimension::Time, 1000.0 * 1e-6),
            ("16Gi", Dimension::Bytes, 16.0 * 1024f64.powi(3)),
            ("100k", Dimension::Speed, 1e5),
            ("2 kunits/s", Dimension::Rate, 2000.0),
        ] {
            assert_eq!(parse(text, dimension), Ok(value), "{text}");
        }
        assert!(!Quantity::Text("100k".into()).has_unit() && Quantity::Text("1 flop/s".into()).has_unit());
    }

    #[test]
    fn times_are_shown_in_their_own_units() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (1e-300, "< 1 ns"),
            (2e-7, "200 ns"),
            (5e-5, "50 us"),
            (0.0456, "45.6 ms"),
            (599.0, "599.00 s"),
            (754.6, "12 min 35 s"),
            (7199.7, "2 h 00 min"),
            (19607.0, "5 h 27 min"),
            (1e6, "11.6 days"),
            (67502376000.02, "7.813e5 days"),
        ] {
            assert_eq!(show_seconds(seconds), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(show_count(0), "0");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(
            [show_figures(1234.5, 2), show_figures(-0.001, 1), show_figures(-12345.0, 0)],
            ["1,234.50", "0.0", "-12,345"]
        );
    }
}

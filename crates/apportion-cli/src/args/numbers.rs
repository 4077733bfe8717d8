//! Numbers as people write them: `1e6`, `100k`, `2.5M`, `64Ki`, `1_000_000`, and speeds such as `9:1`.

use apportion::platform::{Speed, parse_speeds};
use apportion::units::{Dimension, parse};
pub use apportion::units::{number, whole};
use std::ops::RangeInclusive;

/// The largest whole number below which every one is exact in double precision.
const MOST: u64 = 1 << 53;

/// Speeds, one per processor, all with the same unit or none.
#[derive(Debug, Clone)]
pub struct Speeds(pub Vec<Speed>);

/// Numbers with commas between them.
#[derive(Debug, Clone)]
pub struct Numbers(pub Vec<f64>);

/// Whole numbers with commas between them.
#[derive(Debug, Clone)]
pub struct Wholes(pub Vec<u64>);

/// A parser of whole numbers in a range.
pub fn within(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| match whole(text)? {
        x if range.contains(&x) => Ok(x),
        x if *range.end() == u64::MAX => Err(format!("{x} is less than {}", range.start())),
        x => Err(format!("{x} is not in {}..={}", range.start(), range.end())),
    }
}

/// The same for small numbers.
pub fn within_u32(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    let wide = within(u64::from(*range.start())..=u64::from(*range.end()));
    move |text| wide(text).map(|x| x as u32)
}

/// A limit of memory in bytes, such as `64MiB`.
pub fn memory(text: &str) -> Result<u64, String> {
    let bytes = parse(text, Dimension::Bytes)?;
    if bytes >= 1.0 { Ok(bytes as u64) } else { Err("give a size such as 64MiB".into()) }
}

/// Reads a size in bytes: `4096`, `64k`, `64 KiB`, `16 MB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    number(text).or_else(|_| parse(text, Dimension::Bytes)).and_then(|bytes| {
        let fits = bytes >= 0.0 && bytes <= MOST as f64;
        fits.then_some(bytes as u64).ok_or_else(|| format!("\"{text}\" is not a size such as 64 KiB"))
    })
}

/// Reads a part of at most a half: `10%` or `0.1`.
pub fn part(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent.trim_end()).map(|x| x / 100.0),
        None => number(text),
    };
    value.and_then(|part| match part {
        part if (0.0..=0.5).contains(&part) => Ok(part),
        _ => Err(format!("\"{text}\" is not a part of at most a half, such as 10% or 0.1")),
    })
}

/// Reads a time in seconds: `2`, `0.5`, `500 ms`, `1 min`.
pub fn seconds(text: &str) -> Result<f64, String> {
    parse(text, Dimension::Time)
}

/// Reads speeds: `9,1`, `9:1` or `90%,10%`, and with units `9 Gflop/s,1 Gflop/s` or `9,1 Gflop/s`.
pub fn speeds(text: &str) -> Result<Speeds, String> {
    parse_speeds(text).map(Speeds)
}

/// Reads numbers: `1k,10k,1e6`.
pub fn list(text: &str) -> Result<Numbers, String> {
    text.split(',').map(number).collect::<Result<_, _>>().map(Numbers)
}

/// Reads whole numbers: `100,2k`.
pub fn wholes(text: &str) -> Result<Wholes, String> {
    text.split(',').map(whole).collect::<Result<_, _>>().map(Wholes)
}

/// Reads sizes such as `1000x800`, each a whole number.
pub fn sides(text: &str) -> Result<Vec<u64>, String> {
    text.split(['x', 'X', '×']).map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_and_keep_their_range() {
        assert_eq!(whole("1e6"), Ok(1_000_000));
        assert_eq!(within(1..=4096)("4Ki"), Ok(4096));
        assert!(within(1..=4096)("0").unwrap_err().contains("1..=4096"));
        assert_eq!(sides("1kx2,000"), Ok(vec![1000, 2000]));
    }

    #[test]
    fn speeds_may_have_units() {
        for text in [
            "9 Gflop/s,1 Gflop/s",
            "9Gflop/s:1Gflop/s",
            "9e9,1e9 flop/s",
            " 9 Gflop/s , 1000 Mflop/s",
            "9,1 Gflops",
        ] {
            assert_eq!(speeds(text).unwrap().0, [9e9, 1e9].map(Speed::Flops), "{text}");
        }
        assert_eq!(speeds("100 units/s,50 units/s").unwrap().0, [100.0, 50.0].map(Speed::Units));
        for text in
            ["9 Gflop/s,1", "9 Gflop/s,1 units/s", "9 parsec,1 parsec", "9 Gflop/s,,1 Gflop/s", "9,1,Gflop/s"]
        {
            assert!(speeds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn speeds_are_parted_by_colons_or_commas() {
        assert_eq!(speeds("9:1").unwrap().0, [9.0, 1.0].map(Speed::Relative));
        assert_eq!(speeds("9,1,2.5k").unwrap().0, [9.0, 1.0, 2500.0].map(Speed::Relative));
        assert!(speeds("9,,1").is_err() && speeds("").is_err() && speeds("9,x").is_err());
        assert_eq!(wholes("1,000").unwrap().0, [1, 0], "in a list, commas part");
        assert_eq!((part("10%"), part("7.5 %"), part("0.1")), (Ok(0.1), Ok(0.075), Ok(0.1)));
        assert!(part("10").unwrap_err().contains("10%") && part("51%").is_err() && part("-1%").is_err());
        assert_eq!(bytes("64 KiB"), Ok(65536));
        assert_eq!(seconds("500 ms"), Ok(0.5));
    }
}

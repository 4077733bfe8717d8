//! Numbers as people write them: `1e6`, `100k`, `2.5M`, `64Ki`, `1_000_000`, and speeds such as `9:1`.

use apportion::units::{Dimension, parse};
use std::ops::RangeInclusive;

/// The largest whole number below which every one is exact in double precision.
const MOST: u64 = 1 << 53;

/// Relative speeds, one per processor.
#[derive(Debug, Clone)]
pub struct Speeds(pub Vec<f64>);

/// Numbers with commas between them.
#[derive(Debug, Clone)]
pub struct Numbers(pub Vec<f64>);

/// Whole numbers with commas between them.
#[derive(Debug, Clone)]
pub struct Wholes(pub Vec<u64>);

/// Reads a finite number, with or without a prefix.
pub fn number(text: &str) -> Result<f64, String> {
    let bare = text.trim().replace('_', "");
    let prefixes =
        [("Ki", "", 1024.0), ("Mi", "", 1_048_576.0), ("Gi", "", 1_073_741_824.0), ("k", "e3", 1.0)];
    let decimal = [("K", "e3", 1.0), ("M", "e6", 1.0), ("G", "e9", 1.0), ("T", "e12", 1.0)];
    let prefixed = prefixes.iter().chain(&decimal).find_map(|(prefix, exponent, factor)| {
        let mantissa = bare.strip_suffix(prefix)?.trim_end();
        // The decimal prefixes are read as exponents, so that 1.001M is 1,001,000 exactly.
        let value = format!("{mantissa}{exponent}").parse::<f64>().ok()? * factor;
        mantissa.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some(value)
    });
    prefixed
        .or_else(|| bare.parse().ok())
        .filter(|x| x.is_finite())
        .ok_or_else(|| format!("\"{text}\" is not a number such as 1000, 1e6, 100k or 2.5M"))
}

/// Reads a whole number from 0 to 2^53.
pub fn whole(text: &str) -> Result<u64, String> {
    if let Ok(whole) = text.trim().parse() {
        return Ok(whole);
    }
    let x = number(text)?;
    if x >= 0.0 && x <= MOST as f64 && x.fract() == 0.0 {
        return Ok(x as u64);
    }
    Err(format!("\"{text}\" is not a whole number such as 1000, 1e6, 100k or 2.5M"))
}

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

/// Reads a size in bytes: `4096`, `64k`, `64 KiB`, `16 MB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    number(text).or_else(|_| parse(text, Dimension::Bytes)).and_then(|bytes| {
        let fits = bytes >= 0.0 && bytes <= MOST as f64;
        fits.then_some(bytes as u64).ok_or_else(|| format!("\"{text}\" is not a size such as 64 KiB"))
    })
}

/// Reads a time in seconds: `2`, `0.5`, `500 ms`, `1 min`.
pub fn seconds(text: &str) -> Result<f64, String> {
    parse(text, Dimension::Time)
}

/// Reads speeds: `9,1` or `9:1`.
pub fn speeds(text: &str) -> Result<Speeds, String> {
    text.split([',', ':']).map(number).collect::<Result<_, _>>().map(Speeds)
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
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in [
            ("1e6", 1e6),
            ("100k", 1e5),
            ("2.5M", 2.5e6),
            ("1.001M", 1_001_000.0),
            ("64Ki", 65536.0),
            ("3 G", 3e9),
            ("1_000", 1e3),
            ("-2", -2.0),
        ] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for bad in ["", "k", "1e", "1kk", "inf", "nan", "1e3.5k", "ten", "1,000"] {
            assert!(number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_are_whole_and_keep_their_range() {
        assert_eq!(whole("1e6"), Ok(1_000_000));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX), "seeds use all 64 bits");
        assert!(whole("2.5").is_err() && whole("-1").is_err() && whole("1e16").is_err());
        assert_eq!(within(1..=4096)("4Ki"), Ok(4096));
        assert!(within(1..=4096)("0").unwrap_err().contains("1..=4096"));
        assert_eq!(sides("1kx2k"), Ok(vec![1000, 2000]));
    }

    #[test]
    fn speeds_are_parted_by_colons_or_commas() {
        assert_eq!(speeds("9:1").unwrap().0, [9.0, 1.0]);
        assert_eq!(speeds("9,1,2.5k").unwrap().0, [9.0, 1.0, 2500.0]);
        assert!(speeds("9,,1").is_err());
        assert_eq!(bytes("64 KiB"), Ok(65536));
        assert_eq!(seconds("500 ms"), Ok(0.5));
    }
}

//! Numbers as people write them: `1e6`, `100k`, `2.5M`, `64Ki`, `1_000_000`, `1,000,000`.

use crate::input::quoted;

/// The largest whole number below which every one is exact in double precision.
const MOST: u64 = 1 << 53;

/// Prefixes, each as an exponent of ten, so that 1.001M is 1,001,000 exactly, or as a factor.
const PREFIXES: [(&str, &str, f64); 8] = [
    ("Ki", "", 1024.0),
    ("Mi", "", 1_048_576.0),
    ("Gi", "", 1_073_741_824.0),
    ("k", "e3", 1.0),
    ("K", "e3", 1.0),
    ("M", "e6", 1.0),
    ("G", "e9", 1.0),
    ("T", "e12", 1.0),
];

/// Reads a finite number, with or without a prefix.
///
/// # Errors
/// Any other text. The error is the text of the message.
pub fn number(text: &str) -> Result<f64, String> {
    let bare = text.trim();
    let prefixed = PREFIXES.iter().find_map(|(prefix, exponent, factor)| {
        let mantissa = plain(bare.strip_suffix(prefix)?.trim_end())?;
        let ends = mantissa.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        Some(format!("{mantissa}{exponent}").parse::<f64>().ok()? * factor).filter(|_| ends)
    });
    prefixed
        .or_else(|| plain(bare)?.parse().ok())
        .filter(|x| x.is_finite())
        .ok_or_else(|| format!("{} is not a number such as 1000, 1e6, 100k or 2.5M", quoted(text)))
}

/// Reads a whole number from 0 to 2^53, or one of up to 64 bits in plain digits.
///
/// # Errors
/// Any other text. The error is the text of the message.
pub fn whole(text: &str) -> Result<u64, String> {
    if let Some(Ok(whole)) = plain(text.trim()).map(|digits| digits.parse()) {
        return Ok(whole);
    }
    let x = number(text)?;
    if x >= 0.0 && x <= MOST as f64 && x.fract() == 0.0 {
        return Ok(x as u64);
    }
    if x > MOST as f64 {
        return Err(format!("{} is more than 2^53, the largest whole number in this form", quoted(text)));
    }
    Err(format!("{} is not a whole number such as 1000, 1e6, 100k or 2.5M", quoted(text)))
}

/// The digits without their separators: underscores, or commas between groups of three.
pub(super) fn plain(text: &str) -> Option<String> {
    let bare = text.replace('_', "");
    if !bare.contains(',') {
        return Some(bare);
    }
    let (integer, rest) = bare.split_at(bare.find(['.', 'e', 'E']).unwrap_or(bare.len()));
    let mut groups = integer.trim_start_matches(['+', '-']).split(',');
    let first = groups.next()?;
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let grouped =
        (1..=3).contains(&first.len()) && digits(first) && groups.all(|g| g.len() == 3 && digits(g));
    (grouped && !rest.contains(',')).then(|| bare.replace(',', ""))
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
            ("1,000", 1e3),
            ("-12,345.5", -12345.5),
            ("1,000k", 1e6),
            ("-2", -2.0),
        ] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for bad in
            ["", "k", "1e", "1kk", "inf", "nan", "1e3.5k", "ten", "1,5", "1,00", "1,,000", ",100", "1.5,000"]
        {
            assert!(number(bad).is_err(), "{bad}");
        }
        let long = number(&"9x".repeat(5000)).unwrap_err();
        assert!(long.chars().count() < 140, "{long}");
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(whole("1e6"), Ok(1_000_000));
        assert_eq!(whole("1,000"), Ok(1000));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX), "seeds use all 64 bits");
        assert!(whole("2.5").is_err() && whole("-1").is_err() && whole("1e16").is_err());
    }
}

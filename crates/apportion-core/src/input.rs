//! What comes from outside: text files of bounded size, names, and quotations of them in messages.

use crate::error::{Error, Result, unprintable};
use crate::files::{contents, read_file};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;

/// Maximum size of a text file: models of some two million points.
const LARGEST_TEXT: u64 = 1 << 28;

/// Characters of the input that a message repeats.
const QUOTED: usize = 60;

/// Sizes, times and speeds lie between the inverse of this number and the number itself, so that products and
/// quotients of several of them stay within double precision.
pub const EXTREME: f64 = 1e100;

/// Reads a text file, or a stream.
///
/// # Errors
/// The file cannot be read, has more than 256 MiB, or is not UTF-8: exit code 2.
pub fn read_text(path: &Path) -> Result<String> {
    read_up_to(path, LARGEST_TEXT)
}

/// The same with another limit.
///
/// # Errors
/// The file cannot be read, has more than `most` bytes, or is not UTF-8: exit code 2.
pub fn read_up_to(path: &Path, most: u64) -> Result<String> {
    let failed = |e| Error::file(path, "read", e);
    let file = match contents(path, most)? {
        Some(file) => file,
        None => File::open(path).map_err(failed)?,
    };
    read_file(path, file, most)
}

/// A value that is written as an object. Derived readers take arrays of the fields' values too, which no
/// format here has.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// A field that is an object.
pub fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<T, D::Error> {
    Object::deserialize(deserializer).map(|object| object.0)
}

/// A field that is an object or null.
pub fn object_if_any<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<T>, D::Error> {
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|object| object.0))
}

/// A field that is an array of objects.
pub fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

/// A field that is an array of objects or null.
pub fn objects_if_any<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Vec<T>>, D::Error> {
    let objects = Option::<Vec<Object<T>>>::deserialize(deserializer)?;
    Ok(objects.map(|objects| objects.into_iter().map(|object| object.0).collect()))
}

/// Bytes of the longest name.
const LONGEST_NAME: usize = 255;

/// Why a name cannot be shown in one line of a table, if so.
pub fn name_defect(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("is empty".into());
    }
    if name.len() > LONGEST_NAME {
        return Some(format!("{} has {} bytes, more than {LONGEST_NAME}", quoted(name), name.len()));
    }
    let odd = name.chars().find(|&c| unprintable(c))?;
    Some(format!("{} has a control character, {}", quoted(name), odd.escape_default()))
}

/// Text from outside that terminals, tables and pages may show: one line, in which U+FFFD stands for characters that
/// command a terminal, change the direction of the text, or are not to be seen.
pub fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        c if unprintable(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// A text in quotation marks, shortened if it is long, with control characters shown.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let escaped = |c: char| if unprintable(c) { c.escape_default().to_string() } else { c.to_string() };
    format!("\"{}\"", shown.chars().map(escaped).collect::<String>())
}

/// A name of at most a number of characters.
pub fn shortened(name: &str, longest: usize) -> String {
    if name.chars().count() <= longest {
        return name.to_owned();
    }
    name.chars().take(longest - 1).chain(['…']).collect()
}

/// A number in few characters: `1e-320` rather than 320 zeros.
pub fn show_number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (1e-6..1e17).contains(&x.abs()) {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// Why a size, time or speed is out of range, if it is.
pub fn extreme(x: f64) -> Option<String> {
    if !(x.is_finite() && x > 0.0) {
        return Some(format!("{} is not a positive number", show_number(x)));
    }
    let inside = (1.0 / EXTREME..=EXTREME).contains(&x);
    (!inside).then(|| format!("{} is not between 1e-100 and 1e100", show_number(x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_short_and_one_line() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 63);
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(show_number(1e-320), "1e-320");
        assert_eq!(show_number(0.25), "0.25");
        assert!(extreme(1e-320).unwrap().contains("1e-320"));
        assert!(extreme(f64::NAN).is_some() && extreme(1e99).is_none() && extreme(-1.0).is_some());
    }

    #[test]
    fn names_must_fit_into_a_line() {
        for bad in ["", "a\nb", "\u{1b}[31mred", "a\u{202e}b", "tab\t", "a\u{2028}b", "a\u{200b}", "\u{9b}1m"]
        {
            assert!(name_defect(bad).is_some(), "{bad:?}");
            assert!(bad.is_empty() || !harmless(bad).contains(unprintable), "{bad:?}");
        }
        assert!(name_defect(&"x".repeat(256)).is_some() && name_defect(&"x".repeat(255)).is_none());
        for good in ["p0", "Größe", "節点", "node 1", "🚀"] {
            assert_eq!(name_defect(good), None);
            assert_eq!(harmless(good), good);
        }
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "ten bytes.").unwrap();
        assert_eq!(read_up_to(file.path(), 10).unwrap(), "ten bytes.");
        let error = read_up_to(file.path(), 9).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("more than"), "{error}");
    }
}

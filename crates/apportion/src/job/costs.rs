//! Files of numbers of units: what each costs, or how much memory it takes.

use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::input::{quoted, read_text, show_number};
use crate::matrix::{Element, NpyArray, NpyHeader, read_npy_array, read_tiles};
use crate::units::{self, Dimension};
use std::path::Path;

/// Reads the costs of units, by kind of work: a text with a line for each unit, which has a number for each kind, and
/// where `#` begins a comment; or a `.npy` file, 1-D, or 2-D with a column for each kind.
///
/// # Errors
/// The file cannot be read, is damaged or has no number; a number that is negative or not finite; lines of different
/// length: exit code 2, with the line.
pub fn read_unit_costs(path: &Path) -> Result<Vec<Vec<f64>>> {
    read(path, |line| {
        let words: Vec<&str> = match units::number(line) {
            Ok(number) => return checked(number).map(|number| vec![number]),
            Err(_) if line.contains(char::is_whitespace) => line.split_whitespace().collect(),
            Err(_) => line.split(',').collect(),
        };
        let number =
            |word: &str| units::number(word).map_err(|_| format!("{} is not a number", quoted(line)));
        words.into_iter().map(|word| number(word.trim_end_matches(',')).and_then(checked)).collect()
    })
}

/// Reads the bytes of each unit, as [`read_unit_costs`] does; a text may have units, such as `1.5 GiB`.
///
/// # Errors
/// As [`read_unit_costs`]; several columns.
pub fn read_unit_memory(path: &Path) -> Result<Vec<f64>> {
    let columns = read(path, |line| Ok(vec![units::parse(line, Dimension::Bytes).and_then(checked)?]))?;
    match <[Vec<f64>; 1]>::try_from(columns) {
        Ok([column]) => Ok(column),
        Err(columns) => {
            let (place, what) = (path.display().to_string(), format!("has {} columns", columns.len()));
            Err(Error::input(place, what, "give one size for each unit"))
        }
    }
}

/// The columns of a file.
fn read(path: &Path, line: impl Fn(&str) -> std::result::Result<Vec<f64>, String>) -> Result<Vec<Vec<f64>>> {
    let place = path.display().to_string();
    let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    let columns = match is_npy {
        true => of_npy(path)?,
        false => of_text(&read_text(path)?, &place, line)?,
    };
    if columns.is_empty() {
        return Err(Error::input(place, "has no number", "write one number a line, one for each unit"));
    }
    Ok(columns)
}

fn of_text(
    text: &str,
    place: &str,
    numbers_of: impl Fn(&str) -> std::result::Result<Vec<f64>, String>,
) -> Result<Vec<Vec<f64>>> {
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let refuse = |what: String| {
            let remedy = "write one number of at least 0 a line, one for each unit";
            Error::input(format!("{place}:{}", i + 1), what, remedy)
        };
        let numbers = numbers_of(line).map_err(refuse)?;
        if columns.is_empty() {
            columns = vec![Vec::new(); numbers.len()];
        }
        if numbers.len() != columns.len() {
            let what = format!("{} numbers, and {} in the lines above", numbers.len(), columns.len());
            return Err(refuse(what));
        }
        columns.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
    }
    Ok(columns)
}

fn of_npy(path: &Path) -> Result<Vec<Vec<f64>>> {
    let place = path.display().to_string();
    let NpyArray { header, sizes } = read_npy_array(path)?;
    let count = match sizes[..] {
        [_] => 1,
        [_, columns] => columns,
        _ => {
            let what = format!("is an array of {} dimensions, not of 1", sizes.len());
            return Err(Error::input(place, what, "save one number for each unit: array.ravel()"));
        }
    };
    let numbers = match header.dtype {
        "f32" => elements::<f32>(path, &header, f64::from),
        "f64" => elements::<f64>(path, &header, |x| x),
        "i32" => elements::<i32>(path, &header, f64::from),
        "i64" => elements::<i64>(path, &header, |x| x as f64),
        "u8" => elements::<u8>(path, &header, f64::from),
        other => Err(Error::input(place.clone(), format!("its elements are {other}"), "save numbers")),
    }?;
    for (i, number) in numbers.iter().enumerate() {
        checked(*number).map_err(|what| {
            Error::input(
                format!("{place}: unit {}", i / count),
                what,
                "give each unit a number of at least 0",
            )
        })?;
    }
    Ok((0..count).map(|column| numbers.iter().skip(column).step_by(count).copied().collect()).collect())
}

fn elements<T: Element>(path: &Path, header: &NpyHeader, number: impl Fn(T) -> f64) -> Result<Vec<f64>> {
    let whole = Rect::new(Span::new(0, header.rows as u64), Span::new(0, header.cols as u64));
    let blocks = read_tiles::<T>(path, header, &[whole])?;
    Ok(blocks.into_iter().flat_map(|(_, elements)| elements).map(number).collect())
}

fn checked(number: f64) -> std::result::Result<f64, String> {
    match number {
        number if !number.is_finite() => Err(format!("{} is not a finite number", show_number(number))),
        number if number < 0.0 => Err(format!("{} is negative", show_number(number))),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_number_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c");
        let costs = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_unit_costs(&path)
        };
        let text = "# layers\n4 # embedding\n\n  1\r\n2.5k\n0\n";
        assert_eq!(costs(text).unwrap(), [[4.0, 1.0, 2500.0, 0.0]]);
        assert_eq!(costs("1 2\n3\t4e2\n").unwrap(), [[1.0, 3.0], [2.0, 400.0]]);
        assert_eq!(costs("1,2\n3, 4\n").unwrap(), [[1.0, 3.0], [2.0, 4.0]]);
        std::fs::write(&path, "1.5 GiB\n2e3\n").unwrap();
        assert_eq!(read_unit_memory(&path).unwrap(), [1.5 * 1024.0 * 1024.0 * 1024.0, 2000.0]);
        for (text, said) in [
            ("1\n-2\n", "c:2: -2 is negative"),
            ("# one\nnan\n", "c:2: "),
            ("inf", "c:1: "),
            ("1\n1 2", "c:2: 2 numbers, and 1 in the lines above"),
            ("1 x", "c:1: \"1 x\" is not a number"),
            ("1e999", "c:1: "),
            ("# nothing\n", "c: has no number"),
        ] {
            let error = costs(text).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(said), "{error}");
        }
    }
}

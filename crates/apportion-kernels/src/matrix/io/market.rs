//! Matrix Market `.mtx` files, read as dense f64.
//!
//! Source: Boisvert, Pozo and Remington 1996, "The Matrix Market exchange formats" (NISTIR 5935).

use crate::error::{Error, Result};
use crate::matrix::{Matrix, allocate, open};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read, in bytes; the format allows 1024.
const LONGEST_LINE: u64 = 1 << 16;

/// Larger integers are not exact in a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The kind of numbers of a Matrix Market file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketField {
    /// Any.
    Real,
    /// Whole ones.
    Integer,
    /// None: entries are ones.
    Pattern,
}

/// Which entries of a Matrix Market file stand for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketSymmetry {
    /// None.
    General,
    /// Those below the diagonal, for the same above.
    Symmetric,
    /// Those below the diagonal, for the negated ones above.
    Skew,
}

use MarketField as Field;
use MarketSymmetry as Symmetry;

/// The first line of a Matrix Market file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketBanner {
    /// Whether it lists entries, and not all elements.
    pub coordinate: bool,
    /// Its numbers.
    pub field: MarketField,
    /// Its symmetry.
    pub symmetry: MarketSymmetry,
}

/// The lines of a file, with the context that an error message needs.
struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    number: usize,
    text: String,
}

impl Lines<'_> {
    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let mut bytes = Vec::new();
        let mut limited = self.reader.by_ref().take(LONGEST_LINE);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|e| Error::file(self.path, "read", e))?;
        self.number += 1;
        if read as u64 == LONGEST_LINE {
            return Err(self.refuse("is too long a line", "write one entry per line"));
        }
        self.text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return Err(self.refuse("is not UTF-8 text", "give a Matrix Market text file")),
        };
        Ok(read > 0)
    }

    /// Reads the next line that is neither empty nor a comment; false at the end.
    fn advance_to_data(&mut self) -> Result<bool> {
        while self.advance()? {
            let text = self.text.trim_start();
            if !text.is_empty() && !text.starts_with('%') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn refuse(&self, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(format!("{}:{}", self.path.display(), self.number), what, remedy)
    }

    /// A value of the field's kind.
    fn value(&self, word: &str, field: Field) -> Result<f64> {
        let named = || word.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
        match word.parse::<f64>() {
            Ok(x) if x.is_infinite() && !named() => Err(self.refuse(
                format!("{word} is beyond the largest f64, 1.8e308"),
                "scale the matrix, or write inf where infinity is meant",
            )),
            Ok(x) if field == Field::Real || (x.fract() == 0.0 && x.abs() <= LARGEST_EXACT) => Ok(x),
            Ok(_) => Err(self
                .refuse(format!("\"{word}\" is not a whole number up to 2^53"), "declare the matrix real")),
            Err(_) => Err(self.refuse(format!("\"{word}\" is not a number"), "fix the entry")),
        }
    }
}

/// Reads a Matrix Market file: coordinate or array; real, integer or pattern (ones); general, symmetric or
/// skew-symmetric. Duplicate entries are added up; entries that a coordinate file does not list become
/// `absent`. O(rows cols + entries).
pub(in crate::matrix) fn read(path: &Path, absent: f64) -> Result<Matrix<f64>> {
    let (file, length) = open(path)?;
    let mut lines = Lines { path, reader: BufReader::new(file), number: 0, text: String::new() };
    lines.advance()?;
    let banner = MarketBanner::parse(&lines.text);
    let MarketBanner { coordinate, field, symmetry } =
        banner.map_err(|[what, remedy]| lines.refuse(what, &remedy))?;
    let wanted = if coordinate { "rows, columns and entries" } else { "rows and columns" };
    let sizes: Option<Vec<usize>> = match lines.advance_to_data()? {
        true => lines.text.split_whitespace().map(|word| word.parse().ok()).collect(),
        false => None,
    };
    let (rows, cols, entries) = match (sizes.as_deref(), coordinate) {
        (Some(&[rows, cols, entries]), true) => (rows, cols, Some(entries)),
        (Some(&[rows, cols]), false) => (rows, cols, None),
        _ => return Err(lines.refuse(format!("{wanted} are missing"), "give them as whole numbers")),
    };
    if rows == 0 || cols == 0 {
        return Err(
            lines.refuse(format!("is an empty matrix of {rows} x {cols}"), "give at least one element")
        );
    }
    if symmetry != Symmetry::General && rows != cols {
        return Err(
            lines.refuse(format!("a symmetric matrix cannot be {rows} x {cols}"), "declare it general")
        );
    }
    // An entry takes at least "1 1\n" in a sparse file and "1\n" in a dense one, where a triangle may
    // suffice.
    let (count, least) = match entries {
        Some(entries) => (Some(entries), 4),
        None => (stored(rows, cols, symmetry), 2),
    };
    if count.is_none_or(|count| count as u64 > length / least + 1) {
        let what = format!("declares more entries than a file of {length} bytes can hold");
        return Err(lines.refuse(what, "copy the file again, or fix the sizes"));
    }
    let mut matrix = allocate(path, rows, cols)?;
    match entries {
        Some(entries) => {
            // -0 marks entries that are not given: a sum that starts at -0 is never -0 again, unless all its
            // terms are -0.
            matrix.as_mut_slice().fill(-0.0);
            coordinates(&mut lines, &mut matrix, entries, field, symmetry)?;
            let missing = |x: &&mut f64| **x == 0.0 && x.is_sign_negative();
            matrix.as_mut_slice().iter_mut().filter(missing).for_each(|x| *x = absent);
        }
        None => array(&mut lines, &mut matrix, field, symmetry)?,
    }
    Ok(matrix)
}

/// Number of values that a dense file stores.
fn stored(rows: usize, cols: usize, symmetry: Symmetry) -> Option<usize> {
    match symmetry {
        Symmetry::General => rows.checked_mul(cols),
        Symmetry::Symmetric => rows.checked_mul(rows.checked_add(1)?).map(|n| n / 2),
        Symmetry::Skew => rows.checked_mul(rows - 1).map(|n| n / 2),
    }
}

impl MarketBanner {
    /// Parses a line.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn parse(line: &str) -> std::result::Result<Self, [String; 2]> {
        let lower = line.to_ascii_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        // Networkrepository.com writes one % only.
        let &["%%matrixmarket" | "%matrixmarket", "matrix", format, field, symmetry] = words.as_slice()
        else {
            let remedy = "begin with %%MatrixMarket matrix coordinate real general";
            return Err(["does not begin like a Matrix Market file", remedy].map(str::to_owned));
        };
        let other = |word: &str, known: &str| {
            Err([format!("\"{word}\" matrices are not supported"), format!("use {known}")])
        };
        let coordinate = match format {
            "coordinate" => true,
            "array" => false,
            _ => return other(format, "coordinate or array"),
        };
        let field = match field {
            "real" | "double" => Field::Real,
            "integer" | "unsigned-integer" => Field::Integer,
            "pattern" if coordinate => Field::Pattern,
            _ => return other(field, "real, integer or (coordinate) pattern"),
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field != Field::Pattern => Symmetry::Skew,
            _ => return other(symmetry, "general, symmetric or skew-symmetric"),
        };
        Ok(Self { coordinate, field, symmetry })
    }
}

/// Reads `entries` lines of row, column (from 1) and value.
fn coordinates(
    lines: &mut Lines,
    matrix: &mut Matrix<f64>,
    entries: usize,
    field: Field,
    symmetry: Symmetry,
) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    for done in 0..entries {
        if !lines.advance_to_data()? {
            let what = format!("ends after {done} of {entries} entries");
            return Err(lines.refuse(what, "copy the file again, or fix the sizes"));
        }
        let words: Vec<&str> = lines.text.split_whitespace().collect();
        let (row, col, value) = match (words.as_slice(), field) {
            (&[row, col], Field::Pattern) => (row, col, 1.0),
            (&[row, col, value], Field::Real | Field::Integer) => (row, col, lines.value(value, field)?),
            _ => return Err(lines.refuse("is not an entry of the declared kind", "fix the entry")),
        };
        let index = |word: &str, size: usize| {
            word.parse().ok().filter(|i| (1..=size).contains(i)).map(|i: usize| i - 1).ok_or_else(|| {
                lines.refuse(format!("\"{word}\" is not an index from 1 to {size}"), "fix the entry")
            })
        };
        let (i, j) = (index(row, rows)?, index(col, cols)?);
        if symmetry != Symmetry::General && i < j {
            let negated = if symmetry == Symmetry::Skew { " and negate its value" } else { "" };
            return Err(lines.refuse(
                format!("entry ({row}, {col}) does not lie in the lower triangle"),
                &format!(
                    "if both triangles are listed, declare the matrix general; if only the upper one is, exchange \
                     row and column of each entry{negated}"
                ),
            ));
        }
        if symmetry == Symmetry::Skew && i == j && value != 0.0 {
            return Err(lines.refuse(
                format!("entry ({row}, {col}) = {value} lies on the diagonal of a skew-symmetric matrix, which is 0"),
                "write 0, or list the entries of both triangles and declare the matrix general",
            ));
        }
        // An entry given as -0 still counts as given.
        put(matrix, (i, j), value + 0.0, symmetry);
    }
    finish(lines)
}

/// Reads the values of the stored triangle or the whole, column by column.
fn array(lines: &mut Lines, matrix: &mut Matrix<f64>, field: Field, symmetry: Symmetry) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let first = |col: usize| match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => col,
        Symmetry::Skew => col + 1,
    };
    let mut places = (0..cols).flat_map(|j| (first(j)..rows).map(move |i| (i, j)));
    while lines.advance_to_data()? {
        let values = lines.text.split_whitespace().count();
        // In a single row or column their order is the same.
        if values > 1 && rows > 1 && cols > 1 {
            return Err(lines.refuse(
                format!("holds {values} values, and the values of an array file run down its columns"),
                "write one value on each line, column by column",
            ));
        }
        for word in lines.text.split_whitespace() {
            let Some(place) = places.next() else {
                return Err(lines.refuse("holds more values than declared", "fix the sizes"));
            };
            put(matrix, place, lines.value(word, field)?, symmetry);
        }
    }
    match places.next() {
        None => Ok(()),
        Some((i, j)) => {
            let what = format!("the value of ({}, {}) is missing", i + 1, j + 1);
            Err(lines.refuse(what, "copy the file again, or fix the sizes"))
        }
    }
}

/// Adds a value, and its mirror image if there is one.
fn put(matrix: &mut Matrix<f64>, (i, j): (usize, usize), value: f64, symmetry: Symmetry) {
    let cols = matrix.cols();
    let data = matrix.as_mut_slice();
    data[i * cols + j] += value;
    match symmetry {
        Symmetry::Symmetric if i != j => data[j * cols + i] += value,
        Symmetry::Skew => data[j * cols + i] += 0.0 - value,
        _ => {}
    }
}

/// Rejects data after the last entry.
fn finish(lines: &mut Lines) -> Result<()> {
    if lines.advance_to_data()? {
        return Err(lines.refuse("holds more entries than declared", "fix the sizes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: impl AsRef<[u8]>) -> Result<Matrix<f64>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.mtx");
        std::fs::write(&path, text).unwrap();
        read(&path, 0.0)
    }

    const SPARSE: &str = "%%MatrixMarket matrix coordinate real general\n% a comment\n\n 2 3 3 \n\
        1 1 1.5\n2 3 -2e3\n%\n1 1 1\n";

    #[test]
    fn every_kind_by_hand() {
        let (inf, zero) = (f64::INFINITY, 0.0);
        for (text, rows, data) in [
            (SPARSE, 2, vec![2.5, 0.0, 0.0, 0.0, 0.0, -2000.0]),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n-inf", 2, vec![1.0, 3.0, 2.0, -inf]),
            (
                "%%matrixmarket MATRIX array integer symmetric\r\n2 2\r\n1\r\n2\r\n3\r\n",
                2,
                vec![1.0, 2.0, 2.0, 3.0],
            ),
            ("%%MatrixMarket matrix array real skew-symmetric\n2 2\n7\n", 2, vec![zero, -7.0, 7.0, zero]),
            (
                "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n",
                2,
                vec![1.0, 1.0, 1.0, zero],
            ),
            (
                "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3",
                2,
                vec![zero, -3.0, 3.0, zero],
            ),
            ("%%MatrixMarket matrix coordinate real general\n1 1 0\n", 1, vec![zero]),
            (
                "%MatrixMarket matrix coordinate unsigned-integer general\n2 2 2\n1 1 255\n2 1 3\n",
                2,
                vec![255.0, zero, 3.0, zero],
            ),
            ("%MatrixMarket matrix array unsigned-integer general\n1 3\n1 2 3\n", 1, vec![1.0, 2.0, 3.0]),
            (
                "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 3\n1 1 0\n2 1 3\n2 2 -0.0",
                2,
                vec![zero, -3.0, 3.0, zero],
            ),
        ] {
            assert_eq!(parse(text).unwrap(), Matrix::new(rows, data.len() / rows, data), "{text}");
        }
    }

    #[test]
    fn what_a_sparse_file_does_not_list_is_absent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.mtx");
        let far = f64::INFINITY;
        for (kind, entries, data) in [
            ("coordinate real general", "2 2 3\n1 1 -0\n1 2 2\n1 2 -2\n", [0.0, 0.0, far, far]),
            ("coordinate real skew-symmetric", "2 2 1\n2 1 0\n", [far, 0.0, 0.0, far]),
            ("array real general", "2 2\n0\n1\n-0\n0\n", [0.0, 0.0, 1.0, 0.0]),
        ] {
            std::fs::write(&path, format!("%%MatrixMarket matrix {kind}\n{entries}")).unwrap();
            assert_eq!(read(&path, far).unwrap().as_slice(), data, "{kind}");
        }
    }

    #[test]
    fn defects_are_refused() {
        let head = "%%MatrixMarket matrix coordinate real general\n";
        for (text, word) in [
            (String::new(), "begin"),
            ("hello\n".into(), "begin"),
            ("%%MatrixMarket matrix array pattern general\n".into(), "pattern"),
            ("%%MatrixMarket matrix array complex general\n".into(), "complex"),
            ("%%MatrixMarket matrix array real hermitian\n".into(), "hermitian"),
            (head.into(), "missing"),
            (format!("{head}2 2\n"), "missing"),
            (format!("{head}-2 2 1\n"), "missing"),
            (format!("{head}0 2 0\n"), "empty"),
            (format!("{head}2 2 99999999999\n"), "more entries than"),
            (format!("{head}9999999999 9999999999 0\n"), "TB, more than is free"),
            (format!("{head}2 2 2\n1 1 1\n"), "1 of 2"),
            (format!("{head}2 2 1\n1 1 1\n1 2 1\n"), "more entries"),
            (format!("{head}2 2 1\n0 1 1\n"), ":3: \"0\""),
            (format!("{head}2 2 1\n1 3 1\n"), "\"3\""),
            (format!("{head}2 2 1\n1 1 x\n"), "not a number"),
            (format!("{head}2 2 1\n1 1\n"), "declared kind"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".into(), "lower"),
            (
                "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".into(),
                "exchange row and column",
            ),
            ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 2 1\n".into(), "negate"),
            ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n".into(), "diagonal"),
            ("%%MatrixMarket matrix array real general\n2 3\n1 3 5\n2 4 6\n".into(), "holds 3 values"),
            ("%%MatrixMarket matrix array real symmetric\n2 2\n1 3\n4\n".into(), "holds 2 values"),
            ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n".into(), "2 x 3"),
            ("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n".into(), "whole"),
            ("%%MatrixMarket matrix array real general\n2 1\n1\n".into(), "(2, 1) is missing"),
            ("%%MatrixMarket matrix array real general\n2 1\n1 2 3\n".into(), "more values"),
            ("%%MatrixMarket matrix array real general\n99999999999 99999999999\n".into(), "more entries"),
            ("9".repeat(1 << 17), "too long"),
        ] {
            let error = parse(&text).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(word), "{error}: {word}");
        }
        assert_eq!(parse([0xff, 0xfe]).unwrap_err().exit_code(), 2);
    }

    proptest! {
        /// A damaged file is read or rejected in one line, and never causes a panic.
        #[test]
        fn damage_is_refused(
            flips in prop::collection::vec((0..SPARSE.len(), any::<u8>()), 0..4), keep in 0..=SPARSE.len(),
        ) {
            let mut bytes = SPARSE.as_bytes().to_vec();
            for (at, value) in flips {
                bytes[at] = value;
            }
            bytes.truncate(keep);
            if let Err(error) = parse(&bytes) {
                prop_assert_eq!(error.exit_code(), 2);
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

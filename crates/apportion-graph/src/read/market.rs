//! Matrix Market `.mtx` files, read as sparse matrices.
//!
//! Source: Boisvert, Pozo and Remington 1996, "The Matrix Market exchange formats" (NISTIR 5935).

use crate::graph::MOST;
use crate::read::lines::Lines;
use crate::sparse::SparseMatrix;
use apportion::error::Result;
use apportion::matrix::{MarketBanner, MarketField as Field, MarketSymmetry as Symmetry};
use std::path::Path;

/// Larger integers are not exact in a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a Matrix Market file, which may be packed by gzip: coordinate; real, integer or pattern (ones); general,
/// symmetric or skew-symmetric. Duplicate entries are added up. O(entries log entries of a row).
///
/// # Errors
/// The file cannot be read or is damaged, or its matrix is complex or dense: exit code 2.
pub fn read_sparse(path: &Path) -> Result<SparseMatrix> {
    const LARGEST: u32 = MOST as u32;
    let mut lines = Lines::open(path, b"")?;
    lines.advance()?;
    let banner = MarketBanner::parse(&lines.text());
    let MarketBanner { coordinate, field, symmetry } =
        banner.map_err(|[what, remedy]| lines.refuse(what, &remedy))?;
    if !coordinate {
        let remedy = "list the entries of a coordinate matrix";
        return Err(lines.refuse("\"array\" matrices are not supported", remedy));
    }
    // The banner looks like a comment.
    lines.comments = b"%";
    if !lines.advance_to_data()? {
        return Err(lines.refuse("rows, columns and entries are missing", "give them as whole numbers"));
    }
    let rows = lines.need(0..=LARGEST, "the number of rows")?;
    let cols = lines.need(0..=LARGEST, "the number of columns")?;
    let entries = lines.need(0..=LARGEST, "the number of entries")?;
    lines.end()?;
    if symmetry != Symmetry::General && rows != cols {
        let what = format!("a symmetric matrix cannot be {rows} x {cols}");
        return Err(lines.refuse(what, "declare it general"));
    }
    // Triplets of 16 bytes become entries of 12, of which a symmetric matrix has two each.
    let copies = if symmetry == Symmetry::General { 1 } else { 2 };
    lines.require(4 * u64::from(entries), 8 * u64::from(rows) + (16 + 12 * copies) * u64::from(entries))?;
    let mut triplets = Triplets::default();
    triplets.places.reserve(entries as usize);
    triplets.values.reserve(entries as usize);
    for done in 0..entries {
        if !lines.advance_to_data()? {
            let what = format!("ends after {done} of {entries} entries");
            return Err(lines.refuse(what, "copy the file again, or fix the sizes"));
        }
        let row = lines.need(1..=rows, "the row")?;
        let col = lines.need(1..=cols, "the column")?;
        let value = match field {
            Field::Pattern => 1.0,
            Field::Real | Field::Integer => read_value(&mut lines, field)?,
        };
        lines.end()?;
        if symmetry != Symmetry::General && row < col {
            let negated = if symmetry == Symmetry::Skew { " and negate its value" } else { "" };
            let what = format!("entry ({row}, {col}) does not lie in the lower triangle");
            let remedy = format!(
                "if both triangles are listed, declare the matrix general; if only the upper one is, exchange row and \
                 column of each entry{negated}"
            );
            return Err(lines.refuse(what, &remedy));
        }
        if symmetry == Symmetry::Skew && row == col && value != 0.0 {
            let what = format!(
                "entry ({row}, {col}) = {value} lies on the diagonal of a skew-symmetric matrix, which is 0"
            );
            let remedy = "write 0, or list the entries of both triangles and declare the matrix general";
            return Err(lines.refuse(what, remedy));
        }
        triplets.places.push((row - 1, col - 1));
        triplets.values.push(value + 0.0);
    }
    lines.end_of_file("the last entry")?;
    triplets.into_matrix(rows as usize, cols as usize, symmetry, path)
}

/// The next value of the line.
fn read_value(lines: &mut Lines, field: Field) -> Result<f64> {
    match lines.real()? {
        None => {
            Err(lines.refuse("the value is missing", "complete the line, or declare the matrix a pattern"))
        }
        Some(value) if field == Field::Integer && (value.fract() != 0.0 || value.abs() > LARGEST_EXACT) => {
            Err(lines.refuse(format!("{value} is not a whole number up to 2^53"), "declare the matrix real"))
        }
        Some(value) => Ok(value),
    }
}

/// Entries in the order of the file.
#[derive(Default)]
struct Triplets {
    places: Vec<(u32, u32)>,
    values: Vec<f64>,
}

impl Triplets {
    /// The matrix, with the mirror images of entries if it has some.
    fn into_matrix(self, rows: usize, cols: usize, symmetry: Symmetry, path: &Path) -> Result<SparseMatrix> {
        let mirrored = |row: u32, col: u32| symmetry != Symmetry::General && row != col;
        let mut offsets = vec![0u32; rows + 1];
        for &(row, col) in &self.places {
            offsets[row as usize + 1] += 1;
            if mirrored(row, col) {
                offsets[col as usize + 1] += 1;
            }
        }
        (0..rows).for_each(|row| offsets[row + 1] += offsets[row]);
        let entries = offsets[rows] as usize;
        let (mut columns, mut values, mut next) = (vec![0; entries], vec![0.0; entries], offsets.clone());
        let mut put = |row: u32, col, value| {
            let place = &mut next[row as usize];
            (columns[*place as usize], values[*place as usize]) = (col, value);
            *place += 1;
        };
        for (&(row, col), &value) in self.places.iter().zip(&self.values) {
            put(row, col, value);
            if mirrored(row, col) {
                put(col, row, if symmetry == Symmetry::Skew { 0.0 - value } else { value });
            }
        }
        drop(self);
        let (mut of_row, mut from, mut end) = (Vec::new(), 0, 0);
        for row in 0..rows {
            let to = offsets[row + 1] as usize;
            of_row.clear();
            of_row.extend(columns[from..to].iter().copied().zip(values[from..to].iter().copied()));
            // Stable, so that duplicates are added up in the order of the file.
            of_row.sort_by_key(|(column, _)| *column);
            let first = end;
            for &(column, value) in &of_row {
                if end > first && columns[end - 1] == column {
                    values[end - 1] += value;
                } else {
                    (columns[end], values[end]) = (column, value);
                    end += 1;
                }
            }
            from = to;
            offsets[row + 1] = end as u32;
        }
        columns.truncate(end);
        values.truncate(end);
        SparseMatrix::new(cols, offsets, columns, values, &path.display().to_string())
    }
}

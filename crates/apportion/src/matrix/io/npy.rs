//! NumPy's `.npy` files: headers by the crate `npyz`, bodies in bulk.
//!
//! `npyz` trusts what it reads (a shape's product may overflow, nested brackets cost it exponential time), so
//! headers are vetted before it sees them.

use crate::error::{Error, Result};
use crate::matrix::{AnyMatrix, Element, Matrix, allocate, open};
use crate::output::OutputFile;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest header that is read, in bytes; NumPy writes 128 and refuses above 10,000.
const LONGEST_HEADER: usize = 10_000;

/// What an `.npy` file holds, and where: enough to map it. The file's length has been checked against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpyHeader {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Number of columns, at least 1.
    pub cols: usize,
    /// `"f32"`, `"f64"`, `"i32"`, `"i64"`, `"bool"` or `"u8"`.
    pub dtype: &'static str,
    /// True if the bytes of each number run from the most to the least significant.
    pub big_endian: bool,
    /// True if the body runs column by column.
    pub fortran: bool,
    /// Bytes before the first element.
    pub data_offset: u64,
}

impl NpyHeader {
    /// That of the transpose, read from the same bytes: rows in C order are columns in Fortran order.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.cols, cols: self.rows, fortran: !self.fortran, ..self }
    }
}

/// Reads and checks the header of an `.npy` file, and the file's length against it.
///
/// # Errors
/// Exit code 2: not a readable regular file, no or a damaged header, elements other than f32, f64, i32, i64, bool and u8, not
/// exactly two dimensions, a dimension of zero, bytes missing or left over.
pub fn read_npy_header(path: &Path) -> Result<NpyHeader> {
    open_npy(path).map(|(header, _)| header)
}

/// Reads the matrix of an `.npy` file.
pub(in crate::matrix) fn read(path: &Path) -> Result<AnyMatrix> {
    let (header, file) = open_npy(path)?;
    read_any(path, header, file)
}

/// Reads the transpose.
pub(in crate::matrix) fn read_transposed(path: &Path) -> Result<AnyMatrix> {
    let (header, file) = open_npy(path)?;
    read_any(path, header.transposed(), file)
}

fn read_any(path: &Path, header: NpyHeader, file: File) -> Result<AnyMatrix> {
    match header.dtype {
        "f32" => read_body(path, &header, file).map(AnyMatrix::F32),
        "f64" => read_body(path, &header, file).map(AnyMatrix::F64),
        "i32" => read_body(path, &header, file).map(AnyMatrix::I32),
        "i64" => read_body(path, &header, file).map(AnyMatrix::I64),
        "u8" => read_body(path, &header, file).map(AnyMatrix::U8),
        _ => {
            let mut truth: Matrix<u8> = read_body(path, &header, file)?;
            truth.as_mut_slice().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            Ok(AnyMatrix::Bool(truth))
        }
    }
}

/// The checked header, and the file placed behind it.
pub(in crate::matrix) fn open_npy(path: &Path) -> Result<(NpyHeader, File)> {
    let (mut file, length) = open(path)?;
    let damaged = |what: String| {
        Error::input(
            path.display().to_string(),
            what,
            "write it with numpy.save or `apportion`, or copy it again",
        )
    };
    let unreadable = |e| Error::file(path, "read", e);
    let mut head = Vec::new();
    (&mut file).take(12).read_to_end(&mut head).map_err(unreadable)?;
    if head.len() < 10 || !head.starts_with(b"\x93NUMPY") {
        return Err(damaged("does not begin like an .npy file".into()));
    }
    let (text_at, text_length) = match (head[6], head.len()) {
        (1, _) => (10, usize::from(u16::from_le_bytes([head[8], head[9]]))),
        (2 | 3, 12) => (12, u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize),
        _ => return Err(damaged(format!("is of the unknown .npy version {}.{}", head[6], head[7]))),
    };
    if text_length > LONGEST_HEADER {
        return Err(damaged(format!("its header of {text_length} bytes is longer than {LONGEST_HEADER}")));
    }
    let data_offset = text_at + text_length;
    (&mut file)
        .take(data_offset.saturating_sub(head.len()) as u64)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    if head.len() < data_offset {
        return Err(damaged(format!("{} bytes of its header are missing", data_offset - head.len())));
    }
    vet(&head[text_at..data_offset]).map_err(damaged)?;
    let parsed = npyz::NpyHeader::from_reader(&head[..data_offset])
        .map_err(|e| damaged(format!("its header cannot be understood: {e}")))?;
    let (dtype, big_endian) = element_type(path, &parsed.dtype())?;
    let &[rows, cols] = parsed.shape() else {
        return Err(Error::input(
            path.display().to_string(),
            format!("is an array of {} dimensions, not of 2", parsed.shape().len()),
            "save a matrix: reshape the array to rows x columns first",
        ));
    };
    if rows == 0 || cols == 0 {
        return Err(Error::input(
            path.display().to_string(),
            format!("is an empty matrix of {rows} x {cols}"),
            "give a matrix of at least one row and one column",
        ));
    }
    let size = match dtype {
        "f32" | "i32" => 4,
        "f64" | "i64" => 8,
        _ => 1,
    };
    let wanted = u128::from(rows) * u128::from(cols) * size;
    let there = u128::from(length).saturating_sub(data_offset as u128);
    if there != wanted {
        let (difference, verdict) =
            if there < wanted { (wanted - there, "missing") } else { (there - wanted, "left over") };
        return Err(damaged(format!(
            "{rows} x {cols} elements of {dtype} are {wanted} bytes, but {difference} are {verdict}"
        )));
    }
    // As many bytes are on the disk, so that either size fits.
    let header = NpyHeader {
        rows: rows as usize,
        cols: cols as usize,
        dtype,
        big_endian,
        fortran: parsed.order() == npyz::Order::Fortran,
        data_offset: data_offset as u64,
    };
    if head.len() > data_offset {
        use std::io::{Seek, SeekFrom};
        file.seek(SeekFrom::Start(header.data_offset)).map_err(unreadable)?;
    }
    Ok((header, file))
}

/// Refuses header texts that `npyz` would choke on: only what NumPy writes may pass, nested at most four deep, with
/// so few digits that no product of sizes overflows.
fn vet(text: &[u8]) -> std::result::Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|_| "its header is not UTF-8 text".to_owned())?;
    let mut quote = None;
    let (mut depth, mut digits) = (0, 0);
    for c in text.chars() {
        match (quote, c) {
            (_, '\\') => return Err("its header holds a backslash".into()),
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => depth -= 1,
            (None, '0'..='9') => digits += 1,
            (None, '-') => return Err("its header holds a negative size".into()),
            (None, ' ' | '\n' | ',' | ':' | 'T' | 'r' | 'u' | 'e' | 'F' | 'a' | 'l' | 's') => {}
            (None, other) => return Err(format!("its header holds {other:?} where NumPy writes none")),
        }
        if !(0..=4).contains(&depth) {
            return Err("the brackets of its header do not match".into());
        }
        if digits > 19 {
            return Err("the sizes in its header are too large".into());
        }
    }
    Ok(())
}

/// The element's name, and whether it is big-endian.
fn element_type(path: &Path, dtype: &npyz::DType) -> Result<(&'static str, bool)> {
    if let npyz::DType::Plain(plain) = dtype {
        let big = plain.endianness() == npyz::Endianness::Big;
        match (plain.type_char(), plain.size_field()) {
            (npyz::TypeChar::Float, 4) => return Ok((f32::NAME, big)),
            (npyz::TypeChar::Float, 8) => return Ok((f64::NAME, big)),
            (npyz::TypeChar::Int, 4) => return Ok((i32::NAME, big)),
            (npyz::TypeChar::Int, 8) => return Ok((i64::NAME, big)),
            (npyz::TypeChar::Bool, 1) => return Ok(("bool", false)),
            (npyz::TypeChar::Uint, 1) => return Ok((u8::NAME, false)),
            _ => {}
        }
    }
    Err(Error::input(
        path.display().to_string(),
        format!("its elements are {}, not f32 or f64, i32 or i64, bool or u8", dtype.descr()),
        "save it as numpy.float32 (f32) or numpy.float64 (f64), as numpy.int32 or numpy.int64 for max-plus and min-plus, or as numpy.bool_ or numpy.uint8 for or-and",
    ))
}

/// Reads the body in bulk, turned to this machine's byte order and to rows.
fn read_body<T: Element>(path: &Path, header: &NpyHeader, mut file: File) -> Result<Matrix<T>> {
    let mut fill = |elements: &mut [T]| {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
        file.read_exact(bytes).map_err(|e| Error::file(path, "read", e))?;
        if size_of::<T>() > 1 && header.big_endian != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
        }
        Ok(())
    };
    let NpyHeader { rows, cols, .. } = *header;
    let mut matrix = allocate(path, rows, cols)?;
    if !header.fortran || rows == 1 || cols == 1 {
        fill(matrix.as_mut_slice())?;
        return Ok(matrix);
    }
    // Panels of a few columns, so that no second copy of the matrix is held.
    const WIDE: usize = 16;
    let mut panel = allocate::<T>(path, WIDE.min(cols), rows)?;
    for first in (0..cols).step_by(WIDE) {
        let wide = WIDE.min(cols - first);
        let columns = &mut panel.as_mut_slice()[..wide * rows];
        fill(columns)?;
        transpose(columns, rows, matrix.as_mut_slice(), (cols, first));
    }
    Ok(matrix)
}

/// Copies whole columns into a row-major matrix of `stride` columns, from its column `first` on, in tiles of one
/// cache line.
pub(in crate::matrix) fn transpose<T: Element>(
    columns: &[T],
    rows: usize,
    matrix: &mut [T],
    (stride, first): (usize, usize),
) {
    const TILE: usize = 8;
    for top in (0..rows).step_by(TILE) {
        let bottom = rows.min(top + TILE);
        for (j, column) in columns.chunks_exact(rows).enumerate() {
            for (i, value) in column[top..bottom].iter().enumerate() {
                matrix[(top + i) * stride + first + j] = *value;
            }
        }
    }
}

/// The header that NumPy writes for a matrix in C order: version 1.0, little-endian, padded to 64 bytes and with
/// its room for growth.
pub fn npy_header<T: Element>(rows: usize, cols: usize) -> Vec<u8> {
    header_of(T::DESCR, rows, cols)
}

/// [`npy_header`] of truth values.
pub fn npy_header_bool(rows: usize, cols: usize) -> Vec<u8> {
    header_of("|b1", rows, cols)
}

pub(in crate::matrix) fn header_of(descr: &str, rows: usize, cols: usize) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let growth = 21 - rows.to_string().len();
    let length = (10 + dict.len() + growth + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(format!("{dict:<width$}\n", width = length - 1).bytes());
    header
}

/// Writes a matrix as `.npy`, byte for byte as NumPy does.
///
/// # Errors
/// The file cannot be written.
pub fn write_npy<T: Element>(out: &mut OutputFile, matrix: &Matrix<T>) -> Result<()> {
    out.put(&npy_header::<T>(matrix.rows(), matrix.cols()))?;
    write_npy_rows(out, matrix.as_slice())
}

/// Writes some rows of an `.npy` file in C order, without a header: their elements, row by row.
///
/// # Errors
/// The file cannot be written.
pub fn write_npy_rows<T: Element>(out: &mut OutputFile, elements: &[T]) -> Result<()> {
    if cfg!(target_endian = "little") {
        return out.put(bytemuck::cast_slice(elements));
    }
    for some in elements.chunks(1 << 16) {
        let mut bytes = bytemuck::cast_slice(some).to_vec();
        bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
        out.put(&bytes)?;
    }
    Ok(())
}

/// Writes a matrix of truth values as `.npy` of bool: any byte but 0 is true.
///
/// # Errors
/// The file cannot be written.
pub fn write_npy_bool(out: &mut OutputFile, matrix: &Matrix<u8>) -> Result<()> {
    out.put(&header_of("|b1", matrix.rows(), matrix.cols()))?;
    for i in 0..matrix.rows() {
        let truth: Vec<u8> = matrix.row(i).iter().map(|byte| u8::from(*byte != 0)).collect();
        out.put(&truth)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! NumPy's `.npy` files: their headers, and matrices written as NumPy writes them.

use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::matrix::io::rectangles::read_rectangle;
use crate::matrix::{AnyMatrix, Element, Matrix, open};
use crate::output::OutputFile;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest header that is read, in bytes; NumPy writes 128 and rejects more than 10,000.
const LONGEST_HEADER: usize = 10_000;

/// The contents of an `.npy` file and their location: enough to map it. The file's length has been checked
/// against them.
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
    pub(crate) data_offset: u64,
}

impl NpyHeader {
    /// The header of the transpose, read from the same bytes: rows in C order are columns in Fortran order.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.cols, cols: self.rows, fortran: !self.fortran, ..self }
    }
}

/// Reads and checks the header of an `.npy` file, and the file's length against it.
///
/// # Errors
/// Exit code 2: the file is not a readable regular file; the header is missing or damaged; the elements are
/// not f32, f64, i32, i64, bool or u8; there are not exactly two dimensions; a dimension is zero; bytes are
/// missing or left over.
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

/// The whole matrix is one rectangle.
fn read_any(path: &Path, header: NpyHeader, mut file: File) -> Result<AnyMatrix> {
    let whole = Rect::new(Span::new(0, header.rows as u64), Span::new(0, header.cols as u64));
    Ok(match header.dtype {
        "f32" => AnyMatrix::F32(read_rectangle(path, &mut file, &header, whole)?),
        "f64" => AnyMatrix::F64(read_rectangle(path, &mut file, &header, whole)?),
        "i32" => AnyMatrix::I32(read_rectangle(path, &mut file, &header, whole)?),
        "i64" => AnyMatrix::I64(read_rectangle(path, &mut file, &header, whole)?),
        "u8" => AnyMatrix::U8(read_rectangle(path, &mut file, &header, whole)?),
        _ => AnyMatrix::Bool(read_rectangle(path, &mut file, &header, whole)?),
    })
}

/// Reads and checks the header of an `.npy` file of one to three dimensions as that of a matrix: one row;
/// rows and columns; or rows of columns and levels. Returns the sizes of the array too.
///
/// # Errors
/// Those of [`read_npy_header`] but for the number of dimensions; three dimensions in Fortran order.
pub fn read_npy_array(path: &Path) -> Result<NpyArray> {
    open_npy_array(path).map(|(array, _)| array)
}

/// An array of one to three dimensions, and the matrix as which it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyArray {
    /// The header of the matrix.
    pub header: NpyHeader,
    /// The sizes of the array.
    pub sizes: Vec<usize>,
}

/// The same with the file.
pub(in crate::matrix) fn open_npy_array(path: &Path) -> Result<(NpyArray, File)> {
    let (header, file, sizes) = open_array(path, 1..=3)?;
    if sizes.len() == 3 && header.fortran {
        return Err(Error::input(
            path.display().to_string(),
            "is an array of three dimensions in Fortran order",
            "save it in C order: numpy.save(path, numpy.ascontiguousarray(a))",
        ));
    }
    Ok((NpyArray { header, sizes }, file))
}

/// The checked header of a matrix, and the file.
pub(in crate::matrix) fn open_npy(path: &Path) -> Result<(NpyHeader, File)> {
    open_array(path, 2..=2).map(|(header, file, _)| (header, file))
}

/// The checked header of an array, as that of a matrix; the file; the sizes.
fn open_array(
    path: &Path,
    dimensions: std::ops::RangeInclusive<usize>,
) -> Result<(NpyHeader, File, Vec<usize>)> {
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
    let text = parse(&head[text_at..data_offset]).map_err(damaged)?;
    let (dtype, big_endian) = element_type(text.descr).ok_or_else(|| {
        let what = text.descr.map_or("structures".into(), |descr| format!("{descr:?}"));
        Error::input(
            path.display().to_string(),
            format!("its elements are {what}, not f32 or f64, i32 or i64, bool or u8"),
            "save it as numpy.float32 (f32) or numpy.float64 (f64), as numpy.int32 or numpy.int64 for max-plus and \
             min-plus, or as numpy.bool_ or numpy.uint8 for or-and",
        )
    })?;
    let shape = text.shape.as_slice();
    if !dimensions.contains(&shape.len()) {
        let wanted = if dimensions == (2..=2) { "2" } else { "1 to 3" };
        return Err(Error::input(
            path.display().to_string(),
            format!("is an array of {} dimensions, not of {wanted}", shape.len()),
            if wanted == "2" {
                "save a matrix: reshape the array to rows x columns first"
            } else {
                "save an array of one to three dimensions"
            },
        ));
    }
    let (rows, cols) = match *shape {
        [n] => (1, n),
        [rows, cols] => (rows, cols),
        _ => (shape[0], shape[1].saturating_mul(shape[2])),
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
    let wanted = (u128::from(rows) * u128::from(cols))
        .checked_mul(size)
        .ok_or_else(|| damaged(format!("the sizes {rows} x {cols} in its header are too large")))?;
    let there = u128::from(length).saturating_sub(data_offset as u128);
    if there != wanted {
        let (difference, verdict) =
            if there < wanted { (wanted - there, "missing") } else { (there - wanted, "left over") };
        return Err(damaged(format!(
            "{rows} x {cols} elements of {dtype} are {wanted} bytes, but {difference} are {verdict}"
        )));
    }
    let place = |size: u64| {
        usize::try_from(size)
            .map_err(|_| damaged(format!("the size {size} exceeds this machine's address space")))
    };
    let header = NpyHeader {
        rows: place(rows)?,
        cols: place(cols)?,
        dtype,
        big_endian,
        fortran: text.fortran,
        data_offset: data_offset as u64,
    };
    let sizes = shape.iter().map(|size| place(*size)).collect::<Result<_>>()?;
    Ok((header, file, sizes))
}

/// The element's name, and whether it is big-endian, from NumPy's description or the plain name of a type,
/// which `numpy.dtype` takes too; `None` if no matrix of this crate has such elements.
fn element_type(descr: Option<&str>) -> Option<(&'static str, bool)> {
    let native = cfg!(target_endian = "big");
    let descr = descr?;
    let (big, kind) = match descr.as_bytes().first()? {
        b'<' => (false, &descr[1..]),
        b'>' => (true, &descr[1..]),
        b'=' | b'|' => (native, &descr[1..]),
        _ => (native, descr),
    };
    let plain = kind == descr;
    match kind {
        "f4" | "f" => Some((f32::NAME, big)),
        "f8" | "d" => Some((f64::NAME, big)),
        "i4" | "i" => Some((i32::NAME, big)),
        "i8" | "q" => Some((i64::NAME, big)),
        "b1" | "?" => Some(("bool", false)),
        "u1" | "B" => Some((u8::NAME, false)),
        "float32" | "single" if plain => Some((f32::NAME, big)),
        "float64" | "double" | "float" if plain => Some((f64::NAME, big)),
        "int32" if plain => Some((i32::NAME, big)),
        "int64" if plain => Some((i64::NAME, big)),
        "bool" | "bool_" if plain => Some(("bool", false)),
        "uint8" if plain => Some((u8::NAME, false)),
        _ => None,
    }
}

/// The header that NumPy writes for an array of one to three dimensions in C order, of elements T or of truth
/// values: version 1.0, little-endian, padded to 64 bytes, with NumPy's room for growth.
pub fn npy_header<T: Element>(sizes: &[usize], is_bool: bool) -> Vec<u8> {
    let descr = if is_bool { "|b1" } else { T::DESCR };
    let shape = match sizes {
        [n] => format!("({n},)"),
        _ => format!("({})", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let growth = 21 - sizes.first().unwrap_or(&0).to_string().len();
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
    out.put(&npy_header::<T>(&[matrix.rows(), matrix.cols()], false))?;
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
    out.put(&npy_header::<u8>(&[matrix.rows(), matrix.cols()], true))?;
    for i in 0..matrix.rows() {
        let truth: Vec<u8> = matrix.row(i).iter().map(|byte| u8::from(*byte != 0)).collect();
        out.put(&truth)?;
    }
    Ok(())
}

// The text of an `.npy` header: a Python dictionary of three entries.
//
// Source: NumPy's NEP 1, "A simple file format for NumPy arrays".

/// The fields of a header's text.
#[derive(Debug, PartialEq)]
struct HeaderText<'a> {
    /// The element type, such as `<f8`; `None` for a structure.
    pub(crate) descr: Option<&'a str>,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
}

/// Parses a header's text in one pass, and rejects anything that NumPy does not write. O(length).
fn parse(text: &[u8]) -> std::result::Result<HeaderText<'_>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its header is not UTF-8 text".to_owned())?;
    let mut cursor = Cursor { rest: text };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    cursor.expect('{')?;
    while !cursor.takes('}') {
        let key = cursor.quoted()?;
        cursor.expect(':')?;
        let first = match key {
            "descr" if cursor.comes('[') => {
                // Its names and types do not matter: structures are rejected.
                return Ok(HeaderText { descr: None, fortran: false, shape: Vec::new() });
            }
            "descr" => descr.replace(cursor.quoted()?).is_none(),
            "fortran_order" => fortran.replace(cursor.truth()?).is_none(),
            "shape" => shape.replace(cursor.sizes()?).is_none(),
            _ => return Err(format!("its header has the unknown entry {key:?}")),
        };
        if !first {
            return Err(format!("its header has two entries {key:?}"));
        }
        if !cursor.takes(',') && !cursor.comes('}') {
            return Err(cursor.unexpected("',' or '}'"));
        }
    }
    if !cursor.rest.trim().is_empty() {
        return Err(cursor.unexpected("its end"));
    }
    let missing = |name: &str| format!("its header has no entry '{name}'");
    Ok(HeaderText {
        descr: Some(descr.ok_or_else(|| missing("descr"))?),
        fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

/// The rest of the text.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// True if the next character, ignoring spaces, is this one.
    fn comes(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(c)
    }

    /// The same, and consumes it.
    fn takes(&mut self, c: char) -> bool {
        let comes = self.comes(c);
        if comes {
            self.rest = &self.rest[c.len_utf8()..];
        }
        comes
    }

    fn expect(&mut self, c: char) -> std::result::Result<(), String> {
        if self.takes(c) { Ok(()) } else { Err(self.unexpected(&format!("{c:?}"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.rest.trim_start().chars().next() {
            Some(found) => format!("its header holds {found:?} where {wanted} is expected"),
            None => format!("its header ends where {wanted} is expected"),
        }
    }

    /// A text in quotes, without escapes. Python 2 may write `u` before it.
    fn quoted(&mut self) -> std::result::Result<&'a str, String> {
        self.takes('u');
        let quote = if self.comes('"') { '"' } else { '\'' };
        self.expect(quote)?;
        let (text, rest) = self.rest.split_once(quote).ok_or("a text in its header does not end")?;
        if text.contains('\\') {
            return Err("its header holds a backslash".into());
        }
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> std::result::Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    /// A tuple of sizes.
    fn sizes(&mut self) -> std::result::Result<Vec<u64>, String> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.takes(')') {
            if self.comes('-') {
                return Err("its header holds a negative size".into());
            }
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            if digits.is_empty() {
                return Err(self.unexpected("a size"));
            }
            if digits.len() > 1 && digits.starts_with('0') {
                return Err(format!("the size {digits} in its header begins with a zero"));
            }
            sizes.push(digits.parse().map_err(|_| format!("the size {digits} in its header is too large"))?);
            // Python 2 ends long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.takes(',') && !self.comes(')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod header_text_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_order_and_either_quote() {
        let wanted = HeaderText { descr: Some("<f8"), fortran: true, shape: vec![2, 3] };
        for text in [
            "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }   \n",
            "{'shape':(2,3,),\"descr\":\"<f8\",'fortran_order':True}",
            "{u'descr': u'<f8', 'fortran_order': True, 'shape': (2L, 3L), }",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), wanted);
        }
        let shape = |text: &str| {
            parse(format!("{{'descr': '|b1', 'fortran_order': False, 'shape': {text}}}").as_bytes())
                .map(|header| header.shape)
        };
        assert_eq!((shape("()"), shape("(7,)")), (Ok(vec![]), Ok(vec![7])));
        for bad in [
            "(2 3)",
            "(,)",
            "(2",
            "2",
            "(0x2, 3)",
            "(18446744073709551616, 1)",
            "(-1, 2)",
            "(07, 5)",
            "(L, 5)",
            "(7LL, 5)",
            "(7l, 5)",
            "[7, 5]",
        ] {
            assert!(shape(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        /// Any text is parsed or rejected, in time proportional to its length.
        #[test]
        fn no_text_panics(text in r#"\{?('descr'|'shape'|'fortran_order'|[:,] ?|[\[\](){}]|True|False|'<f[48]'|"|[0-9]{1,21}|é|\\|\PC){0,40}\}?"#) {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn what_is_written_is_read(
            descr in "[<>|=][a-z][0-9]{1,2}", fortran: bool, shape in prop::collection::vec(any::<u64>(), 0..4),
        ) {
            let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
            let truth = if fortran { "True" } else { "False" };
            let text = format!("{{'descr': '{descr}', 'fortran_order': {truth}, 'shape': ({sizes}), }}\n");
            let wanted = HeaderText { descr: Some(&descr), fortran, shape };
            prop_assert_eq!(parse(text.as_bytes()).unwrap(), wanted);
        }
    }
}

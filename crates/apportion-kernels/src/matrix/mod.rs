//! Dense matrices in memory and on disk (`.npy`, Matrix Market), and the checks of a product.

mod conversions;
mod io;

use crate::error::{Error, Result};
use crate::files::{contents, open_regular};
use crate::memory;
use crate::process_memory::{available_memory, prefer_large_pages, require_memory};
use crate::units::show_bytes;
use bytemuck::Pod;
pub use io::{
    BlockViews, DistributedFile, LocalArray, LocalArrayFile, LocalBlocks, MarketBanner, MarketField,
    MarketSymmetry, NpyArray, NpyFile, NpyHeader, RandomKind, digest, layout_file_text, local_arrays,
    npy_header, read_npy_array, read_npy_header, read_tiles, views_of, write_npy, write_npy_bool,
    write_npy_rows, write_random, write_tiles,
};
use io::{market, npy, transpose};
use std::any::Any;
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A dense matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Element> Matrix<T> {
    /// A matrix from its elements, row by row.
    ///
    /// # Panics
    /// If there are not `rows * cols` elements.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(rows.checked_mul(cols), Some(data.len()), "a {rows} x {cols} matrix has as many elements");
        Self { rows, cols, data }
    }

    /// A matrix of zeros.
    ///
    /// # Panics
    /// If `rows * cols` overflows.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let elements = rows.checked_mul(cols).expect("a matrix's size fits the address space");
        let mut data = vec![T::ZERO; elements];
        prefer_large_pages(&mut data);
        Self { rows, cols, data }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All elements, row by row.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }

    /// All elements, row by row, as their vector.
    pub fn into_elements(self) -> Vec<T> {
        self.data
    }

    /// All elements, row by row.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }
}

impl<T: Element> Matrix<T> {
    /// A matrix from its elements, column by column: the transpose of the matrix that has them row by row.
    ///
    /// # Panics
    /// If there are not `rows * cols` elements.
    pub fn from_columns(rows: usize, cols: usize, columns: &[T]) -> Self {
        let mut turned = Self::zeros(rows, cols);
        assert_eq!(turned.data.len(), columns.len(), "a {rows} x {cols} matrix has as many elements");
        for first in (0..cols).step_by(16) {
            let some = &columns[first * rows..(first + 16).min(cols) * rows];
            transpose(some, rows, &mut turned.data, cols, first);
        }
        turned
    }

    /// The transpose, copied in tiles.
    pub fn transposed(&self) -> Self {
        Self::from_columns(self.cols, self.rows, &self.data)
    }
}

/// A matrix of any element type that a file can hold.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyMatrix {
    /// Single precision.
    F32(Matrix<f32>),
    /// Double precision.
    F64(Matrix<f64>),
    /// 32-bit integers.
    I32(Matrix<i32>),
    /// 64-bit integers.
    I64(Matrix<i64>),
    /// Truth values, as the bytes 0 and 1.
    Bool(Matrix<u8>),
    /// Bytes.
    U8(Matrix<u8>),
}

/// Does the same with the matrix of any element type.
macro_rules! of_any {
    ($any:expr, $matrix:ident => $result:expr) => {
        match $any {
            AnyMatrix::F32($matrix) => $result,
            AnyMatrix::F64($matrix) => $result,
            AnyMatrix::I32($matrix) => $result,
            AnyMatrix::I64($matrix) => $result,
            AnyMatrix::Bool($matrix) | AnyMatrix::U8($matrix) => $result,
        }
    };
}

impl AnyMatrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        of_any!(self, matrix => matrix.rows())
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        of_any!(self, matrix => matrix.cols())
    }

    /// The elements, row by row, if they are of this type; truth values are bytes.
    pub fn elements<T: Element>(&self) -> Option<&[T]> {
        let name = if let Self::Bool(_) = self { u8::NAME } else { self.name() };
        (name == T::NAME).then(|| of_any!(self, matrix => bytemuck::cast_slice(matrix.as_slice())))
    }

    /// `"f32"`, `"f64"`, `"i32"`, `"i64"`, `"bool"` or `"u8"`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::F32(_) => f32::NAME,
            Self::F64(_) => f64::NAME,
            Self::I32(_) => i32::NAME,
            Self::I64(_) => i64::NAME,
            Self::Bool(_) => "bool",
            Self::U8(_) => u8::NAME,
        }
    }
}

/// A matrix in memory of any element type, row by row without gaps.
#[derive(Debug, Clone, Copy)]
pub struct AnyView<'a> {
    rows: usize,
    cols: usize,
    name: &'static str,
    bytes: &'a [u8],
}

impl<'a> AnyView<'a> {
    /// The view of the elements of a matrix.
    ///
    /// # Panics
    /// If there are not `rows * cols` elements.
    pub fn new<T: Element>(rows: usize, cols: usize, elements: &'a [T]) -> Self {
        assert_eq!(rows.checked_mul(cols), Some(elements.len()), "{rows} x {cols} elements");
        Self { rows, cols, name: T::NAME, bytes: bytemuck::cast_slice(elements) }
    }

    /// The same bytes as truth values, 0 or 1.
    #[must_use]
    pub fn as_bool(self) -> Self {
        Self { name: "bool", ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// As [`AnyMatrix::name`].
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The memory of the elements.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, if they are of this type; truth values are bytes.
    pub fn elements<T: Element>(&self) -> Option<&'a [T]> {
        let name = if self.name == "bool" { u8::NAME } else { self.name };
        (name == T::NAME).then(|| bytemuck::cast_slice(self.bytes))
    }
}

/// This process's blocks of a matrix of any element type.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyBlocks {
    /// Single precision.
    F32(LocalBlocks<f32>),
    /// Double precision.
    F64(LocalBlocks<f64>),
    /// 32-bit integers.
    I32(LocalBlocks<i32>),
    /// 64-bit integers.
    I64(LocalBlocks<i64>),
    /// Truth values or bytes.
    U8(LocalBlocks<u8>),
}

impl AnyBlocks {
    /// Blocks of elements of this type.
    ///
    /// # Panics
    /// If no file can hold such elements.
    pub fn new<T: Element>(blocks: LocalBlocks<T>) -> Self {
        let blocks: Box<dyn Any> = Box::new(blocks);
        fn of<T: 'static>(blocks: Box<dyn Any>) -> LocalBlocks<T> {
            *blocks.downcast().expect("the type has this name")
        }
        match T::NAME {
            "f32" => Self::F32(of(blocks)),
            "f64" => Self::F64(of(blocks)),
            "i32" => Self::I32(of(blocks)),
            "i64" => Self::I64(of(blocks)),
            "u8" => Self::U8(of(blocks)),
            other => panic!("no file holds elements of {other}"),
        }
    }

    /// The blocks, if their elements are of this type.
    pub fn into_blocks<T: Element>(self) -> Option<LocalBlocks<T>> {
        let blocks: Box<dyn Any> = match self {
            Self::F32(blocks) => Box::new(blocks),
            Self::F64(blocks) => Box::new(blocks),
            Self::I32(blocks) => Box::new(blocks),
            Self::I64(blocks) => Box::new(blocks),
            Self::U8(blocks) => Box::new(blocks),
        };
        blocks.downcast().ok().map(|blocks| *blocks)
    }
}

/// Reads a matrix by its file's extension, or from a pipe by its first bytes if the process
/// [follows the conventions of command lines](crate::files::follow_command_line): `.npy` (f32, f64, i32, i64,
/// bool or u8, either byte order, C or Fortran order) or Matrix Market `.mtx` (as f64).
///
/// # Errors
/// The file does not exist, has another extension, is damaged, is of another type or dimension, is empty, or
/// is larger than the free memory: exit code 2. Sizes are checked before memory is allocated.
pub fn read_matrix(path: &Path) -> Result<AnyMatrix> {
    read_matrix_with(path, 0.0)
}

/// Like [`read_matrix`], but entries that a sparse Matrix Market file does not list become `absent`: over
/// max-plus and min-plus, the infinity that means "no edge".
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_with(path: &Path, absent: f64) -> Result<AnyMatrix> {
    match format_of(path)? {
        Some("npy") => npy::read(path),
        Some("mtx") => market::read(path, absent).map(AnyMatrix::F64),
        _ => Err(Error::input(
            path.display().to_string(),
            "is not called .npy or .mtx",
            match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
                true => "unpack it, or give it as a stream: <(zcat FILE)",
                false => "give a NumPy .npy or a Matrix Market .mtx file, named so",
            },
        )),
    }
}

/// The transpose of the matrix that [`read_matrix_with`] reads. The rows of an `.npy` file are read as
/// columns, without a second copy.
///
/// # Errors
/// As [`read_matrix`].
pub fn read_matrix_transposed(path: &Path, absent: f64) -> Result<AnyMatrix> {
    match format_of(path)? {
        Some("npy") => npy::read_transposed(path),
        _ => Ok(match read_matrix_with(path, absent)? {
            AnyMatrix::F32(m) => AnyMatrix::F32(m.transposed()),
            AnyMatrix::F64(m) => AnyMatrix::F64(m.transposed()),
            AnyMatrix::I32(m) => AnyMatrix::I32(m.transposed()),
            AnyMatrix::I64(m) => AnyMatrix::I64(m.transposed()),
            AnyMatrix::Bool(m) => AnyMatrix::Bool(m.transposed()),
            AnyMatrix::U8(m) => AnyMatrix::U8(m.transposed()),
        }),
    }
}

/// Opens a regular file, or a stream that can be read as one, for reading; returns it with its length in
/// bytes.
fn open(path: &Path) -> Result<(File, u64)> {
    let file = match contents(path, available_memory().unwrap_or(u64::MAX))? {
        Some(file) => file,
        None => open_regular(path)?,
    };
    let length = file.metadata().map_err(|e| Error::file(path, "read", e))?.len();
    Ok((file, length))
}

/// The format of a file: that of its name, or of the first bytes of a stream.
fn format_of(path: &Path) -> Result<Option<&'static str>> {
    if let Some(mut stream) = contents(path, available_memory().unwrap_or(u64::MAX))? {
        let mut first = [0; 2];
        let _ = stream.read(&mut first).map_err(|e| Error::file(path, "read", e))?;
        return Ok(Some(if first == *b"\x93N" { "npy" } else { "mtx" }));
    }
    let is = |ending: &&str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    Ok(["npy", "mtx"].into_iter().find(is))
}

/// A matrix of zeros, of a size given by a file.
fn allocate<T: Element>(path: &Path, rows: usize, cols: usize) -> Result<Matrix<T>> {
    let remedy = "use a smaller matrix or a machine with more memory";
    let (place, what) =
        (path.display().to_string(), format!("a matrix of {rows} x {cols} elements of {}", T::NAME));
    require_memory(&place, &what, rows as u128 * cols as u128 * size_of::<T>() as u128, remedy)?;
    let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(size_of::<T>()));
    let granted = |bytes: &usize| memory::ask(|| Vec::<u8>::new().try_reserve_exact(*bytes)).is_ok();
    if bytes.filter(granted).is_none() {
        let bytes = show_bytes(rows as f64 * cols as f64 * size_of::<T>() as f64);
        return Err(Error::input(place, format!("{what} needs {bytes}, more than is free"), remedy));
    }
    Ok(Matrix::zeros(rows, cols))
}

// Matrix elements: floating-point numbers, integers, or bytes that hold truth values.

/// A matrix element: `f32` or `f64`; `i32` or `i64` for max-plus and min-plus; `u8` for or-and, where any
/// value but 0 is true; or a [`PathElement`](crate::kernels::PathElement), a length together with the last
/// vertex passed.
pub trait Element: Pod + PartialEq + PartialOrd + Send + Sync + Debug + Display + 'static {
    /// `"f32"`, `"f64"`, `"i32"`, `"i64"` or `"u8"`, as in kernel names.
    const NAME: &'static str;
    /// NumPy's name of it, little-endian.
    const DESCR: &'static str;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;
    /// True for the types that plus-times takes, `f32` and `f64`.
    const REAL: bool = false;
    /// The smallest positive number with full precision; below it the rounding error is absolute.
    const TINY: f64;
    /// The largest finite number.
    const LARGEST: f64;
    /// Zero.
    const ZERO: Self;

    /// The value as a double: exact except for integers beyond 2^53.
    fn to_f64(self) -> f64;

    /// The nearest element to a double.
    fn from_f64(value: f64) -> Self;
}

macro_rules! element {
    ($number:ident, $descr:literal, $real:literal, $epsilon:expr, $tiny:expr, |$value:ident| $from:expr) => {
        impl Element for $number {
            const NAME: &'static str = stringify!($number);
            const DESCR: &'static str = $descr;
            const EPSILON: f64 = $epsilon;
            const REAL: bool = $real;
            const TINY: f64 = $tiny;
            const LARGEST: f64 = $number::MAX as f64;
            const ZERO: Self = 0 as $number;

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64($value: f64) -> Self {
                $from
            }
        }
    };
}

element!(f32, "<f4", true, f32::EPSILON as f64, f32::MIN_POSITIVE as f64, |value| value as f32);
element!(f64, "<f8", true, f64::EPSILON, f64::MIN_POSITIVE, |value| value);
element!(u8, "|u1", false, 1.0, 1.0, |value| value.round() as u8);
element!(i32, "<i4", false, 1.0, 1.0, |value| value.round() as i32);
element!(i64, "<i8", false, 1.0, 1.0, |value| value.round() as i64);

// The scalars around a product, as in BLAS: C = alpha A B + beta C0.

/// The two scalars of C = alpha A B + beta C0, over the product's semiring.
///
/// As in BLAS, the operand of a zero scalar is not read: its NaN and infinities do not reach C.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling<T> {
    /// The factor of the product.
    pub alpha: T,
    /// The factor of the initial matrix.
    pub beta: T,
}

impl<T: Element> Scaling<T> {
    /// C = A B + C0, where `one` is the semiring's one.
    pub fn none(one: T) -> Self {
        Self { alpha: one, beta: one }
    }

    /// Alpha and beta.
    pub fn scalars(&self) -> [T; 2] {
        [self.alpha, self.beta]
    }
}

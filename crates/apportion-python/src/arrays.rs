//! Matrices across the border, by Python's buffer protocol: arguments are read where they are, and results
//! are lent where the library made them. Only an argument whose rows are not consecutive is copied.

use crate::errors::{exception, refuse};
use crate::product::Block;
use apportion::Rect;
use apportion::matrix::{AnyBlocks, AnyMatrix, LocalBlocks};
use apportion::process_memory::MemoryLeft;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::borrow::Cow;
use std::ffi::{CStr, c_int, c_void};

/// The elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    F32,
    F64,
    I32,
    I64,
    Bool,
    U8,
}

impl Kind {
    const ALL: [(Self, &'static str, &'static CStr, usize); 6] = [
        (Self::F32, "float32", c"f", 4),
        (Self::F64, "float64", c"d", 8),
        (Self::I32, "int32", c"i", 4),
        (Self::I64, "int64", c"q", 8),
        (Self::Bool, "bool", c"?", 1),
        (Self::U8, "uint8", c"B", 1),
    ];

    /// The name that NumPy has for it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, ..)| name)
    }

    /// The kind of truth values: `bool`, or bytes.
    pub fn of_truth(bool: bool) -> Self {
        if bool { Self::Bool } else { Self::U8 }
    }

    fn format(self) -> (&'static CStr, usize) {
        Self::ALL
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or((c"B", 1), |(.., format, size)| (*format, *size))
    }

    /// The elements that a format of the `struct` module describes.
    fn of(format: &str, size: usize) -> Option<Self> {
        let foreign = if cfg!(target_endian = "little") { ['>', '!'] } else { ['<', '<'] };
        if size > 1 && format.starts_with(foreign) {
            return None;
        }
        match (format.trim_start_matches(['@', '=', '<', '>', '!']), size) {
            ("f", 4) => Some(Self::F32),
            ("d", 8) => Some(Self::F64),
            ("i" | "l" | "q" | "n", 4) => Some(Self::I32),
            ("i" | "l" | "q" | "n", 8) => Some(Self::I64),
            ("?", 1) => Some(Self::Bool),
            ("B", 1) => Some(Self::U8),
            _ => None,
        }
    }
}

/// A matrix of the caller's, in the memory of an object that exports a buffer. It must be dropped by a thread
/// that is attached to the interpreter.
pub struct Operand {
    view: Box<ffi::Py_buffer>,
    name: &'static str,
    /// True for arrays with a method `reshape`.
    reshapes: bool,
    pub kind: Kind,
    pub rows: usize,
    pub cols: usize,
    /// Bytes from a row to the next, and from an element to the next one of the row.
    strides: [isize; 2],
    /// True for an array of one dimension, which is a column.
    pub is_vector: bool,
}

impl Operand {
    /// The matrix of an object; `name` is the argument's name in errors.
    ///
    /// # Errors
    /// The object exports no buffer (`TypeError`), or one that is no matrix of a known kind (`ValueError`).
    pub fn of(object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Self> {
        let operand = Self::of_sides(object, name)?;
        if operand.is_vector { Err(operand.not_a_matrix(1)) } else { Ok(operand) }
    }

    /// The same for an object that may have one dimension: a column.
    ///
    /// # Errors
    /// As [`Operand::of`].
    pub fn of_sides(object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Self> {
        let py = object.py();
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the interpreter fills the view, which stays where it is until it is released.
        let refused = unsafe {
            ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT)
        };
        if refused != 0 {
            let error = PyErr::fetch(py);
            if !error.is_instance_of::<PyTypeError>(py) {
                let what = error.value(py).to_string();
                return Err(exception(refuse(name, what, "pass an array of numbers")));
            }
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "{name}: a '{kind}' is no array in memory (pass a NumPy array, a 2-D memoryview, or a \
                 tensor of the CPU)"
            )));
        }
        // From here on, `view` is released when it is dropped.
        let reshapes = object.hasattr("reshape")?;
        let (kind, strides) = (Kind::U8, [0; 2]);
        let mut operand = Self { view, name, reshapes, kind, rows: 0, cols: 0, strides, is_vector: false };
        operand.inspect()?;
        Ok(operand)
    }

    /// Finds sizes and kind.
    fn inspect(&mut self) -> PyResult<()> {
        let refused = |what: String, remedy: &str| Err(exception(refuse(self.name, what, remedy)));
        let size = self.view.itemsize.max(0) as usize;
        let format = match self.view.format.is_null() {
            true => "B",
            // SAFETY: the exporter's format is a string that lives as long as the view.
            false => unsafe { CStr::from_ptr(self.view.format) }.to_str().unwrap_or("?!"),
        };
        let Some(kind) = Kind::of(format, size) else {
            return refused(
                format!("elements of format '{format}', {size} bytes each, cannot be multiplied"),
                "convert them to float64, float32, int64, int32 or bool, in this machine's byte order",
            );
        };
        let dimensions = usize::try_from(self.view.ndim).unwrap_or(0);
        if dimensions == 0 || dimensions > 2 {
            return Err(self.not_a_matrix(self.view.ndim));
        }
        // SAFETY: a view that was asked for its strides has as many sizes and strides as dimensions, here one or two.
        let (sizes, strides) = unsafe {
            (
                std::slice::from_raw_parts(self.view.shape, dimensions),
                std::slice::from_raw_parts(self.view.strides, dimensions),
            )
        };
        let length = |n: isize| usize::try_from(n).unwrap_or(0);
        self.kind = kind;
        self.is_vector = dimensions == 1;
        self.rows = length(sizes[0]);
        self.cols = sizes.get(1).map_or(1, |n| length(*n));
        self.strides = [strides[0], strides.get(1).map_or(size as isize, |stride| *stride)];
        Ok(())
    }

    /// The error of an array that has another number of dimensions than 2.
    fn not_a_matrix(&self, dimensions: c_int) -> PyErr {
        let what = format!("has {dimensions} dimension{}, not 2", if dimensions == 1 { "" } else { "s" });
        let remedy = match (self.reshapes, dimensions) {
            (true, 1) => "pass a matrix: x.reshape(1, -1) is a row, x.reshape(-1, 1) a column",
            (true, _) => "pass a matrix, such as one of x.reshape(m, n)",
            _ => "pass a matrix; memoryview(x).cast('B').cast('d', [m, n]) makes one of an array.array",
        };
        exception(refuse(self.name, what, remedy))
    }

    /// `A: is 8 x 9, but …`
    pub fn misfit(&self, but: &str, remedy: &str) -> PyErr {
        exception(refuse(self.name, format!("is {} x {}{but}", self.rows, self.cols), remedy))
    }

    /// The argument's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The elements, row by row: the caller's memory, or a copy if the rows are not consecutive there.
    ///
    /// # Errors
    /// If there is no memory for the copy.
    ///
    /// # Panics
    /// If T has another size than the elements.
    pub fn elements<T: Copy>(&self) -> PyResult<Cow<'_, [T]>> {
        assert_eq!(size_of::<T>(), self.kind.format().1, "elements of another type");
        let strides = self.strides;
        if self.rows == 0 || self.cols == 0 {
            return Ok(Cow::Owned(Vec::new()));
        }
        let (start, size) = (self.view.buf.cast::<u8>(), size_of::<T>() as isize);
        let consecutive = (strides[1] == size || self.cols == 1)
            && (strides[0] == size * self.cols as isize || self.rows == 1);
        let aligned = (start as usize).is_multiple_of(align_of::<T>());
        if consecutive && aligned {
            // SAFETY: the exporter keeps rows x cols elements there until the view is released; all bit
            // patterns are values of the six kinds; aligned as was just checked. That no other thread writes
            // to them meanwhile is up to the caller, as with every library that releases the lock.
            return Ok(Cow::Borrowed(unsafe {
                std::slice::from_raw_parts(start.cast::<T>(), self.rows * self.cols)
            }));
        }
        // An array that repeats its elements, such as a broadcast one, can be larger than memory.
        let mut copy = Vec::new();
        let count = self.rows.checked_mul(self.cols).filter(|count| {
            let bytes = *count as u128 * size_of::<T>() as u128;
            MemoryLeft::now().is_none_or(|left| left.fits(bytes))
        });
        if count.is_none_or(|count| copy.try_reserve_exact(count).is_err()) {
            return Err(PyMemoryError::new_err(format!(
                "{}: its rows are not consecutive, and a copy of {} x {} elements does not fit into memory (pass a \
                 smaller matrix)",
                self.name, self.rows, self.cols
            )));
        }
        for i in 0..self.rows as isize {
            for j in 0..self.cols as isize {
                // SAFETY: element (i, j) is at this place by the exporter's strides, perhaps not aligned.
                copy.push(unsafe {
                    start.offset(i * strides[0] + j * strides[1]).cast::<T>().read_unaligned()
                });
            }
        }
        Ok(Cow::Owned(copy))
    }

    /// Numbers of any kind as doubles; doubles stay where they are.
    ///
    /// # Errors
    /// As [`Operand::elements`].
    pub fn doubles(&self) -> PyResult<Cow<'_, [f64]>> {
        Ok(match self.kind {
            Kind::F64 => self.elements()?,
            Kind::F32 => Cow::Owned(self.elements::<f32>()?.iter().map(|x| f64::from(*x)).collect()),
            Kind::I32 => Cow::Owned(self.elements::<i32>()?.iter().map(|x| f64::from(*x)).collect()),
            Kind::I64 => Cow::Owned(self.elements::<i64>()?.iter().map(|x| *x as f64).collect()),
            Kind::U8 | Kind::Bool => {
                Cow::Owned(self.elements::<u8>()?.iter().map(|x| f64::from(*x)).collect())
            }
        })
    }

    /// Whole numbers from 0 to 2^32 - 1.
    ///
    /// # Errors
    /// Other numbers; as [`Operand::elements`].
    pub fn whole_numbers(&self) -> PyResult<Vec<u32>> {
        let refused = |what: String| exception(refuse(self.name, what, "pass whole numbers from 0 on"));
        let narrow = |number: i64| u32::try_from(number).map_err(|_| refused(format!("has {number}")));
        match self.kind {
            Kind::I32 => self.elements::<i32>()?.iter().map(|x| narrow(i64::from(*x))).collect(),
            Kind::I64 => self.elements::<i64>()?.iter().map(|x| narrow(*x)).collect(),
            Kind::U8 | Kind::Bool => Ok(self.elements::<u8>()?.iter().map(|x| u32::from(*x)).collect()),
            Kind::F32 | Kind::F64 => Err(refused(format!("has elements of {}", self.kind.name()))),
        }
    }
}

impl Drop for Operand {
    fn drop(&mut self) {
        // SAFETY: the view was filled by the interpreter and is released once, by an attached thread.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}

/// The owner of a result's elements.
enum Elements {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Bytes(Vec<u8>),
}

/// A matrix that the library made. It exports its memory by the buffer protocol: `memoryview(array)`,
/// `numpy.asarray(array)`.
#[pyclass(frozen, module = "apportion._native")]
pub struct Array {
    /// Owns the memory; it is reached by `start` only.
    _elements: Elements,
    start: *mut c_void,
    kind: Kind,
    sizes: [ffi::Py_ssize_t; 2],
    strides: [ffi::Py_ssize_t; 2],
    /// 2, or 1 for a column that is lent as an array of one dimension.
    dimensions: usize,
}

// SAFETY: Rust code never reads or writes the elements after `new`; those who asked for the buffer share them
// by Python's rules.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// A matrix without elements.
    pub fn empty(kind: Kind, sizes: (usize, usize)) -> Self {
        let elements = match kind {
            Kind::F32 => Elements::F32(Vec::new()),
            Kind::F64 => Elements::F64(Vec::new()),
            Kind::I32 => Elements::I32(Vec::new()),
            Kind::I64 => Elements::I64(Vec::new()),
            Kind::Bool | Kind::U8 => Elements::Bytes(Vec::new()),
        };
        Self::new(elements, kind, sizes)
    }

    fn new(mut elements: Elements, kind: Kind, (rows, cols): (usize, usize)) -> Self {
        let (start, count): (*mut c_void, usize) = match &mut elements {
            Elements::F32(x) => (x.as_mut_ptr().cast(), x.len()),
            Elements::F64(x) => (x.as_mut_ptr().cast(), x.len()),
            Elements::I32(x) => (x.as_mut_ptr().cast(), x.len()),
            Elements::I64(x) => (x.as_mut_ptr().cast(), x.len()),
            Elements::Bytes(x) => (x.as_mut_ptr().cast(), x.len()),
        };
        // What is lent is read by others without a check.
        assert_eq!(Some(count), rows.checked_mul(cols), "elements of the whole matrix");
        let size = kind.format().1;
        let strides = [(cols * size) as ffi::Py_ssize_t, size as ffi::Py_ssize_t];
        Self {
            _elements: elements,
            start,
            kind,
            sizes: [rows as ffi::Py_ssize_t, cols as ffi::Py_ssize_t],
            strides,
            dimensions: 2,
        }
    }

    /// A whole matrix of numbers.
    pub fn of_matrix(matrix: AnyMatrix) -> Self {
        let sizes = (matrix.rows(), matrix.cols());
        match matrix {
            AnyMatrix::F32(x) => Self::new(Elements::F32(x.into_elements()), Kind::F32, sizes),
            AnyMatrix::F64(x) => Self::new(Elements::F64(x.into_elements()), Kind::F64, sizes),
            AnyMatrix::I32(x) => Self::new(Elements::I32(x.into_elements()), Kind::I32, sizes),
            AnyMatrix::I64(x) => Self::new(Elements::I64(x.into_elements()), Kind::I64, sizes),
            AnyMatrix::Bool(x) => Self::new(Elements::Bytes(x.into_elements()), Kind::Bool, sizes),
            AnyMatrix::U8(x) => Self::new(Elements::Bytes(x.into_elements()), Kind::U8, sizes),
        }
    }

    /// The same elements as an array of one dimension, if this is a column and it should be one.
    pub fn into_vector(self, is_vector: bool) -> Self {
        let dimensions = if is_vector && self.sizes[1] == 1 { 1 } else { 2 };
        Self { dimensions, ..self }
    }
}

impl Array {
    /// The blocks of a matrix as arrays; bytes are truth values if `truth`.
    pub fn lend_all(blocks: AnyBlocks, truth: bool) -> Vec<Block> {
        fn lend<T>(blocks: LocalBlocks<T>, kind: Kind, elements: impl Fn(Vec<T>) -> Elements) -> Vec<Block> {
            let lend = |(rect, block): (Rect, Vec<T>)| {
                let Rect { rows, cols } = rect;
                let sizes = (rows.len() as usize, cols.len() as usize);
                ((rows.start, rows.end), (cols.start, cols.end), Array::new(elements(block), kind, sizes))
            };
            blocks.into_iter().map(lend).collect()
        }
        match blocks {
            AnyBlocks::F32(x) => lend(x, Kind::F32, Elements::F32),
            AnyBlocks::F64(x) => lend(x, Kind::F64, Elements::F64),
            AnyBlocks::I32(x) => lend(x, Kind::I32, Elements::I32),
            AnyBlocks::I64(x) => lend(x, Kind::I64, Elements::I64),
            AnyBlocks::U8(x) => lend(x, Kind::of_truth(truth), Elements::Bytes),
        }
    }
}

#[pymethods]
impl Array {
    /// Rows and columns, or the length of a vector.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.sizes[..self.dimensions])
    }

    /// NumPy's name of the elements.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.kind.name()
    }

    fn __repr__(&self) -> String {
        let sizes: Vec<String> = self.sizes[..self.dimensions].iter().map(ToString::to_string).collect();
        format!("<apportion.Array of {} {}>", sizes.join(" x "), self.kind.name())
    }

    /// Lends the memory.
    ///
    /// # Safety
    /// The interpreter calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let this = slf.get();
        let asks = |for_: c_int| flags & for_ == for_;
        if asks(ffi::PyBUF_F_CONTIGUOUS)
            && !asks(ffi::PyBUF_ANY_CONTIGUOUS)
            && this.sizes[0] > 1
            && this.sizes[1] > 1
        {
            return Err(PyBufferError::new_err(
                "the elements are consecutive row by row, not column by column",
            ));
        }
        let (format, size) = this.kind.format();
        let null = std::ptr::null_mut::<c_void>();
        // SAFETY: the view is the interpreter's. Sizes and strides live in this object, which the view keeps
        // alive by its reference and which never moves.
        unsafe {
            (*view).buf = this.start;
            (*view).len = this.sizes[0] * this.sizes[1] * size as ffi::Py_ssize_t;
            (*view).readonly = 0;
            (*view).itemsize = size as ffi::Py_ssize_t;
            (*view).format = if asks(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { null.cast() };
            (*view).ndim = if asks(ffi::PyBUF_ND) { this.dimensions as c_int } else { 1 };
            (*view).shape = if asks(ffi::PyBUF_ND) { this.sizes.as_ptr().cast_mut() } else { null.cast() };
            (*view).strides =
                if asks(ffi::PyBUF_STRIDES) { this.strides.as_ptr().cast_mut() } else { null.cast() };
            (*view).suboffsets = null.cast();
            (*view).internal = null;
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}

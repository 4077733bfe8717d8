//! Rectangles of an `.npy` file, read and written separately; the whole matrix is one of them.

use crate::error::{Error, Result};
use crate::files::{FileState, open_regular};
use crate::geometry::{Rect, Span};
use crate::matrix::io::npy::{NpyArray, NpyHeader, open_npy, open_npy_array};
use crate::matrix::{Element, Matrix, allocate};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Rectangles of one matrix, each with its elements row by row.
pub type LocalBlocks<T> = Vec<(Rect, Vec<T>)>;

/// The same, borrowed: rectangles with their elements, row by row, in memory that others own.
pub type BlockViews<'a, T> = Vec<(Rect, &'a [T])>;

/// Borrows blocks.
pub fn views_of<T>(blocks: &LocalBlocks<T>) -> BlockViews<'_, T> {
    blocks.iter().map(|(rect, elements)| (*rect, &elements[..])).collect()
}

/// Columns of a file in Fortran order that are read together: two cache lines of a row of f64, at a small
/// cost in memory.
const WIDE: usize = 16;

/// Reads rectangles of the matrix in an `.npy` file whose header is known, in C or Fortran order and either
/// byte order; truth values become 0 and 1. Memory: that of the rectangles, and of sixteen more columns for
/// Fortran order.
///
/// # Errors
/// The file cannot be read, or a rectangle needs more memory than is free: exit code 2.
///
/// # Panics
/// If the header's element type is not T, or a rectangle reaches outside the matrix.
pub fn read_tiles<T: Element>(path: &Path, header: &NpyHeader, rects: &[Rect]) -> Result<LocalBlocks<T>> {
    let mut file = open_regular(path)?;
    let mut one = |rect: &Rect| Ok((*rect, read_rectangle(path, &mut file, header, *rect)?.data));
    rects.iter().map(&mut one).collect()
}

/// Reads one rectangle: the only reader of `.npy` bodies. A whole matrix is one rectangle.
///
/// # Errors
/// As [`read_tiles`].
///
/// # Panics
/// As [`read_tiles`].
pub(in crate::matrix) fn read_rectangle<T: Element>(
    path: &Path,
    file: &mut File,
    header: &NpyHeader,
    rect: Rect,
) -> Result<Matrix<T>> {
    read_rectangle_into(path, file, header, rect, Vec::new())
}

/// The same in the memory of a vector, if it has room.
pub(in crate::matrix) fn read_rectangle_into<T: Element>(
    path: &Path,
    file: &mut File,
    header: &NpyHeader,
    rect: Rect,
    mut memory: Vec<T>,
) -> Result<Matrix<T>> {
    let truth = header.dtype == "bool";
    assert!(header.dtype == T::NAME || (truth && size_of::<T>() == 1), "the file holds {}", header.dtype);
    assert!(
        rect.rows.end <= header.rows as u64 && rect.cols.end <= header.cols as u64,
        "{rect:?} reaches outside a matrix of {} x {}",
        header.rows,
        header.cols
    );
    let (rows, cols) = (rect.rows.len() as usize, rect.cols.len() as usize);
    let mut matrix = match rows.checked_mul(cols).filter(|n| *n <= memory.capacity()) {
        Some(elements) => {
            memory.resize(elements, T::ZERO);
            Matrix { rows, cols, data: memory }
        }
        None => {
            drop(memory);
            allocate::<T>(path, rows, cols)?
        }
    };
    let body = Body { header, size: size_of::<T>() as u64 };
    let read = if rect.is_empty() {
        Ok(())
    } else if header.fortran && header.rows > 1 && header.cols > 1 {
        read_columns(file, &body, rect, &mut matrix)
    } else {
        // A matrix of one row or one column is the same in either order.
        body.read_lines(file, [rect.rows, rect.cols], header.cols, &mut matrix.data)
    };
    read.map_err(|e| Error::file(path, "read", e))?;
    if truth {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut matrix.data);
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(matrix)
}

/// The elements of a file.
struct Body<'a> {
    header: &'a NpyHeader,
    /// Bytes of an element.
    size: u64,
}

impl Body<'_> {
    /// Reads parts of lines of `length` elements each (rows, or columns in Fortran order), one after the
    /// other, and whole lines at once.
    fn read_lines<T: Element>(
        &self,
        file: &mut File,
        [lines, along]: [Span; 2],
        length: usize,
        into: &mut [T],
    ) -> std::io::Result<()> {
        let whole = along.len() == length as u64;
        let part = if whole { into.len() } else { along.len() as usize };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        for (line, bytes) in (lines.start..).zip(bytes.chunks_exact_mut(part * self.size as usize)) {
            let first = line * length as u64 + along.start;
            fill(file, self.header.data_offset + first * self.size, bytes)?;
        }
        if self.size > 1 && self.header.big_endian != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(self.size as usize).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// Reads a rectangle of a body in Fortran order, a few columns at a time, without a second copy.
fn read_columns<T: Element>(
    file: &mut File,
    body: &Body<'_>,
    rect: Rect,
    matrix: &mut Matrix<T>,
) -> std::io::Result<()> {
    let (rows, cols) = (matrix.rows, matrix.cols);
    let mut panel = vec![T::ZERO; rows * WIDE.min(cols)];
    for left in (0..cols).step_by(WIDE) {
        let first = rect.cols.start + left as u64;
        let columns = Span::new(first, rect.cols.end.min(first + WIDE as u64));
        let panel = &mut panel[..rows * columns.len() as usize];
        body.read_lines(file, [columns, rect.rows], body.header.rows, panel)?;
        transpose(panel, rows, &mut matrix.data, cols, left);
    }
    Ok(())
}

/// Copies whole columns into a row-major matrix of `stride` columns, from its column `first` on, in tiles of
/// one cache line.
pub(in crate::matrix) fn transpose<T: Element>(
    columns: &[T],
    rows: usize,
    matrix: &mut [T],
    stride: usize,
    first: usize,
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

/// Writes rectangles of a matrix of `cols` columns, in C order, into a file that already has its header of
/// `header` bytes and its full length. The data are on disk when it returns. Other processes may write other
/// rectangles at the same time.
///
/// # Errors
/// The file cannot be written: exit code 2.
pub fn write_tiles<T: Element>(path: &Path, tiles: &LocalBlocks<T>, header: u64, cols: u64) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        for (rect, tile) in tiles {
            let width = rect.cols.len();
            // Whole rows are contiguous.
            let (step, rows) =
                if width == cols { (tile.len(), 1) } else { (width as usize, rect.rows.len()) };
            for (i, row) in (0..rows).zip(tile.chunks_exact(step.max(1))) {
                let first = (rect.rows.start + i) * cols + rect.cols.start;
                file.seek(SeekFrom::Start(header + first * size_of::<T>() as u64))?;
                let mut bytes = bytemuck::cast_slice(row).to_vec();
                if size_of::<T>() > 1 && cfg!(target_endian = "big") {
                    bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
                }
                file.write_all(&bytes)?;
            }
        }
        file.sync_all()
    };
    write().map_err(|e| Error::file(path, "write", e))
}

// Bytes of a file at a place, read by several threads where they are many: one core alone copies them from
// the system's cache more slowly than memory could take them.

/// Bytes that a thread reads at a time.
#[cfg(any(unix, test))]
const PART: usize = 8 << 20;
/// The most threads: more wait for the memory.
#[cfg(unix)]
const THREADS: usize = 4;

/// Fills `bytes` from the file's byte `place` on.
///
/// # Errors
/// The file is shorter, or another error of the operating system.
pub(super) fn fill(file: &mut File, place: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    #[cfg(unix)]
    if bytes.len() >= 2 * PART {
        return together(file, place, bytes);
    }
    alone(file, place, bytes)
}

fn alone(file: &mut File, place: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

/// The error is that of the first part that fails.
#[cfg(unix)]
fn together(file: &File, place: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    use std::sync::{Mutex, PoisonError};
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let failed = Mutex::new(None);
    let parts = bytes.chunks_mut(PART).enumerate().collect();
    crate::threads::share_out(parts, threads, |(i, part): (usize, &mut [u8])| {
        if let Err(error) = file.read_exact_at(part, place + (i * PART) as u64) {
            let mut first = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(known, _)| i < *known) {
                *first = Some((i, error));
            }
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

// A matrix that stays on disk: rectangles of an `.npy` file, read when they are needed.

/// An `.npy` file, or the transpose of its matrix, whose elements are read by rectangles.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    header: NpyHeader,
    file: File,
    state: FileState,
}

impl NpyFile {
    /// Opens a file and checks its header and its length.
    ///
    /// # Errors
    /// As [`read_npy_header`](super::read_npy_header).
    pub fn open(path: &Path, transposed: bool) -> Result<Self> {
        let (header, file) = open_npy(path)?;
        let header = if transposed { header.transposed() } else { header };
        let state = FileState::of_open(path, &file)?;
        Ok(Self { path: path.to_path_buf(), header, file, state })
    }

    /// Opens the file of an array of one to three dimensions as that of a matrix; see
    /// [`read_npy_array`](super::read_npy_array).
    ///
    /// # Errors
    /// As [`read_npy_array`](super::read_npy_array).
    pub fn open_array(path: &Path) -> Result<Self> {
        let (NpyArray { header, .. }, file) = open_npy_array(path)?;
        let state = FileState::of_open(path, &file)?;
        Ok(Self { path: path.to_path_buf(), header, file, state })
    }

    /// Sizes and element type, after any transposition.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks by its times that nothing has written to the file since it was opened. Its name may lead to another
    /// file by now: this one is read. Writing through a memory map may leave the times as they are.
    ///
    /// # Errors
    /// Something has written to the file: exit code 1.
    pub fn check_unchanged(&self) -> Result<()> {
        self.state.check_open(&self.path, &self.file)
    }

    /// Reads a rectangle; truth values become 0 and 1. Memory: the rectangle's, and that of sixteen more
    /// columns if the file is in Fortran order.
    ///
    /// # Errors
    /// The file cannot be read or has become shorter, or the rectangle needs more memory than is free.
    ///
    /// # Panics
    /// If the rectangle reaches outside the matrix, or T is not of the file's element type.
    pub fn read<T: Element>(&mut self, rect: Rect) -> Result<Matrix<T>> {
        read_rectangle(&self.path, &mut self.file, &self.header, rect)
    }

    /// The elements of a rectangle, row by row, in the memory of a vector if it has room.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// As [`read`](Self::read).
    pub fn read_into<T: Element>(&mut self, rect: Rect, memory: Vec<T>) -> Result<Vec<T>> {
        read_rectangle_into(&self.path, &mut self.file, &self.header, rect, memory).map(Matrix::into_elements)
    }

    /// Reads the matrix once, some of it at a time, and calls `see` with pieces of rows, each with its row and first
    /// column.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// If T is not of the file's element type.
    pub fn each_piece<T: Element>(&mut self, see: &mut dyn FnMut([u64; 2], &[T])) -> Result<()> {
        let [all_rows, all_cols] = [self.header.rows, self.header.cols].map(|size| Span::new(0, size as u64));
        let part = |along: Span| (TOGETHER / along.len()).max(1);
        let rects: Vec<Rect> = if self.header.fortran {
            all_cols.blocks(part(all_rows)).map(|cols| Rect::new(all_rows, cols)).collect()
        } else {
            all_rows.blocks(part(all_cols)).map(|rows| Rect::new(rows, all_cols)).collect()
        };
        let mut memory = Vec::new();
        for Rect { rows, cols } in rects {
            memory = self.read_into(Rect::new(rows, cols), memory)?;
            (rows.start..)
                .zip(memory.chunks_exact(cols.len() as usize))
                .for_each(|(i, row)| see([i, cols.start], row));
        }
        Ok(())
    }
}

/// Elements that are read together where all of a file is.
const TOGETHER: u64 = 1 << 18;

/// A digest of elements, of which the first is at `place` of its matrix. That of several pieces is the wrapping sum of
/// theirs, however they were cut. One changed element changes it for certain.
pub fn digest<T: Element>(place: u64, elements: &[T]) -> u64 {
    let mut sum = 0u64;
    for (place, element) in (place..).zip(elements) {
        for (number, part) in (0..).zip(bytemuck::bytes_of(element).chunks(8)) {
            let mut bits = [0; 8];
            bits[..part.len()].copy_from_slice(part);
            // Steele, Lea and Flood 2014, doi:10.1145/2714064.2660195: each word has an image of its own.
            let mut x = u64::from_le_bytes(bits) ^ (2 * place + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            sum = sum.wrapping_add(x ^ x >> 31);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Span;
    use crate::matrix::{AnyMatrix, npy_header, read_matrix, read_npy_header};
    use proptest::prelude::*;
    use std::io::{ErrorKind, Write};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Any rectangle, of either order and byte order, equals the same part of the whole.
        #[test]
        fn parts_are_parts_of_the_whole(
            rows in 1u64..40, cols in 1u64..40, top in 0.0f64..1.0, left in 0.0f64..1.0, fortran: bool, big: bool,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("m.npy");
            let order = if fortran { "True" } else { "False" };
            let sign = if big { '>' } else { '<' };
            let dict = format!("{{'descr': '{sign}f4', 'fortran_order': {order}, 'shape': ({rows}, {cols}), }}");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((dict.len() as u16 + 1).to_le_bytes());
            bytes.extend(dict.bytes().chain(*b"\n"));
            for i in 0..rows * cols {
                bytes.extend(if big { (i as f32).to_be_bytes() } else { (i as f32).to_le_bytes() });
            }
            std::fs::write(&path, bytes).unwrap();
            let AnyMatrix::F32(whole) = read_matrix(&path).unwrap() else { panic!("f32") };
            let (top, left) = ((top * rows as f64) as u64, (left * cols as f64) as u64);
            let rects = [
                Rect::new(Span::new(top, rows), Span::new(left, cols)),
                Rect::new(Span::new(0, top), Span::new(0, cols)),
            ];
            let header = read_npy_header(&path).unwrap();
            for (rect, tile) in read_tiles::<f32>(&path, &header, &rects).unwrap() {
                let wanted: Vec<f32> = (rect.rows.start..rect.rows.end)
                    .flat_map(|i| whole.row(i as usize)[rect.cols.start as usize..rect.cols.end as usize].to_vec())
                    .collect();
                prop_assert_eq!(tile, wanted);
            }
        }

        /// Rectangles written one by one produce the same file as one write.
        #[test]
        fn written_parts_make_the_whole(rows in 1u64..30, cols in 1u64..30, cut in 0.0f64..1.0, truth: bool) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("m.npy");
            let header = npy_header::<u8>(&[rows as usize, cols as usize], truth);
            let mut wanted = header.clone();
            std::fs::write(&path, &header).unwrap();
            OpenOptions::new().write(true).open(&path).unwrap().set_len(header.len() as u64 + rows * cols).unwrap();
            let cut = (cut * cols as f64) as u64;
            for span in [Span::new(0, cut), Span::new(cut, cols)] {
                let rect = Rect::new(Span::new(0, rows), span);
                let value = |i: u64, j: u64| ((i * cols + j) % 2) as u8;
                let tile = (0..rows).flat_map(|i| (span.start..span.end).map(move |j| value(i, j))).collect();
                write_tiles::<u8>(&path, &vec![(rect, tile)], header.len() as u64, cols).unwrap();
            }
            wanted.extend((0..rows * cols).map(|i| (i % 2) as u8));
            prop_assert_eq!(std::fs::read(&path).unwrap(), wanted);
        }
    }

    #[test]
    fn many_bytes_are_those_of_the_file_and_too_many_are_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..2 * PART + 1234).map(|i| (i % 251 + i / PART) as u8).collect();
        file.write_all(&content).unwrap();
        for (place, length) in [(0, 10), (77, 2 * PART), (5, 2 * PART + 1229), (2 * PART, 1234)] {
            let mut bytes = vec![0; length];
            fill(&mut file, place as u64, &mut bytes).unwrap();
            assert!(bytes == content[place..][..length], "{length} from {place}");
        }
        for (place, length) in [(6, 2 * PART + 1229), (2 * PART + 1230, 5)] {
            let error = fill(&mut file, place as u64, &mut vec![0; length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn every_rectangle_of_every_order_is_the_matrixs_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let values: Vec<f64> = (0..35).map(f64::from).collect();
        let plain = [npy_header::<f64>(&[5, 7], false), bytemuck::cast_slice(&values).to_vec()].concat();
        let swapped = String::from_utf8_lossy(&npy_header::<f64>(&[5, 7], false)).replace("False", "True ");
        for bytes in [plain.clone(), {
            let mut bytes = plain;
            // The header's first bytes are not text: only its dictionary is changed.
            bytes[10..128].copy_from_slice(&swapped.as_bytes()[swapped.len() - 118..]);
            bytes
        }] {
            std::fs::write(&path, &bytes).unwrap();
            let AnyMatrix::F64(whole) = read_matrix(&path).unwrap() else { panic!("it is f64") };
            for transposed in [false, true] {
                let mut file = NpyFile::open(&path, transposed).unwrap();
                let whole = if transposed { whole.transposed() } else { whole.clone() };
                let (rows, cols) = (whole.rows() as u64, whole.cols() as u64);
                for (top, bottom, left, right) in
                    [(0, rows, 0, cols), (1, 3, 0, cols), (0, rows, 2, 4), (2, 4, 1, 5), (2, 2, 1, 1)]
                {
                    let rect = Rect::new(Span::new(top, bottom), Span::new(left, right));
                    let block: Matrix<f64> = file.read(rect).unwrap();
                    for room in [0, 3, 100] {
                        let memory = vec![-1.0; room];
                        assert_eq!(file.read_into(rect, memory).unwrap(), block.as_slice());
                    }
                    for (i, row) in (top..bottom).enumerate() {
                        let wanted = &whole.row(row as usize)[left as usize..right as usize];
                        assert_eq!(block.row(i), wanted);
                    }
                }
            }
        }
    }
}

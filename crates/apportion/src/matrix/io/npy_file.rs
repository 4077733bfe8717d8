//! A matrix that stays on disk: rectangles of an `.npy` file, read when they are needed.

use crate::error::{Error, Result};
use crate::files::FileState;
use crate::geometry::Rect;
use crate::matrix::io::npy::{NpyHeader, open_npy, open_npy_array};
use crate::matrix::io::rectangles::{read_rectangle, read_rectangle_into};
use crate::matrix::{Element, Matrix};
use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use twox_hash::XxHash64;

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
        let (header, file, _) = open_npy_array(path)?;
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

    /// Checks that the file's contents are those that it had when it was opened. Its name may lead to another
    /// file by now: this one is read.
    ///
    /// # Errors
    /// Something has written to the file: exit code 2.
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
    pub fn read_into<T: Element>(&mut self, rect: Rect, spare: Vec<T>) -> Result<Vec<T>> {
        read_rectangle_into(&self.path, &mut self.file, &self.header, rect, spare).map(Matrix::into_elements)
    }

    /// A hash of the file's bytes (XXH64): it distinguishes files, but does not protect from forgery.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn fingerprint(&mut self) -> Result<u64> {
        let unreadable = |e| Error::file(&self.path, "read", e);
        self.file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut hash = XxHash64::with_seed(0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match self.file.read(&mut buffer).map_err(unreadable)? {
                0 => return Ok(hash.finish()),
                read => hash.write(&buffer[..read]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Span;
    use crate::matrix::AnyMatrix;
    use crate::matrix::{npy_header, read_matrix};

    #[test]
    fn every_rectangle_of_every_order_is_the_matrixs_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let values: Vec<f64> = (0..35).map(f64::from).collect();
        let plain = [npy_header::<f64>(5, 7), bytemuck::cast_slice(&values).to_vec()].concat();
        let swapped = String::from_utf8_lossy(&npy_header::<f64>(5, 7)).replace("False", "True ");
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
                        let spare = vec![-1.0; room];
                        assert_eq!(file.read_into(rect, spare).unwrap(), block.as_slice());
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

//! A matrix that stays on the disk: rectangles of an `.npy` file, read when they are needed.

use crate::error::{Error, Result};
use crate::geometry::Rect;
use crate::matrix::io::npy::{NpyHeader, open_npy};
use crate::matrix::{Element, Matrix};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An `.npy` file, or the transpose of what it holds, whose elements are read by rectangles.
#[derive(Debug)]
pub struct NpyFile {
    path: PathBuf,
    header: NpyHeader,
    file: File,
}

impl NpyFile {
    /// Opens a file and checks its header and its length.
    ///
    /// # Errors
    /// As [`read_npy_header`](super::read_npy_header).
    pub fn open(path: &Path, transposed: bool) -> Result<Self> {
        let (header, file) = open_npy(path)?;
        let header = if transposed { header.transposed() } else { header };
        Ok(Self { path: path.to_path_buf(), header, file })
    }

    /// Sizes and element type, as transposed.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a rectangle; memory is taken for it alone (twice if the file runs column by column). Truth values are
    /// any byte but 0.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    ///
    /// # Panics
    /// If the rectangle reaches outside the matrix, or T is not of the file's element type.
    pub fn read<T: Element>(&mut self, rect: Rect) -> Result<Matrix<T>> {
        let NpyHeader { rows, cols, fortran, .. } = self.header;
        assert!(
            rect.rows.end <= rows as u64 && rect.cols.end <= cols as u64,
            "a rectangle lies in its matrix"
        );
        assert_eq!(T::NAME, if self.header.dtype == "bool" { "u8" } else { self.header.dtype });
        let (lines, along, length) =
            if fortran { (rect.cols, rect.rows, rows) } else { (rect.rows, rect.cols, cols) };
        let size = size_of::<T>() as u64;
        let mut block = Matrix::<T>::zeros(lines.len() as usize, along.len() as usize);
        let unreadable = |e| Error::file(&self.path, "read", e);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(block.as_mut_slice());
        let at = |line: u64| self.header.data_offset + (line * length as u64 + along.start) * size;
        if along.len() == length as u64 {
            self.file.seek(SeekFrom::Start(at(lines.start))).map_err(unreadable)?;
            self.file.read_exact(bytes).map_err(unreadable)?;
        } else if !along.is_empty() {
            for (line, bytes) in (lines.start..).zip(bytes.chunks_exact_mut((along.len() * size) as usize)) {
                self.file.seek(SeekFrom::Start(at(line))).map_err(unreadable)?;
                self.file.read_exact(bytes).map_err(unreadable)?;
            }
        }
        if size > 1 && self.header.big_endian != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
        }
        Ok(if fortran { block.transposed() } else { block })
    }

    /// A hash of the file's bytes (Fowler, Noll and Vo's, over words): tells files apart, not forgeries.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn fingerprint(&mut self) -> Result<u64> {
        let unreadable = |e| Error::file(&self.path, "read", e);
        self.file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut buffer = vec![0; 1 << 20];
        let (mut hash, mut filled) = (hash_bytes(0, &[]), 0);
        loop {
            let read = self.file.read(&mut buffer[filled..]).map_err(unreadable)?;
            filled += read;
            if filled == buffer.len() || read == 0 {
                hash = hash_bytes(hash, &buffer[..filled]);
                filled = 0;
            }
            if read == 0 {
                return Ok(hash);
            }
        }
    }
}

/// Goes on hashing, eight bytes at a time; begin with 0.
pub(crate) fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x0100_0000_01b3_0001);
        mixed ^ (mixed >> 29)
    };
    let begin = if hash == 0 { 0xcbf2_9ce4_8422_2325 } else { hash };
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    let hash = words.fold(begin, |hash, word| {
        mix(hash, word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    });
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
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
            // The header's first bytes are no text: only its dictionary is changed.
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
                    for (i, row) in (top..bottom).enumerate() {
                        let wanted = &whole.row(row as usize)[left as usize..right as usize];
                        assert_eq!(block.row(i), wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_changes_the_hash() {
        let mut bytes: Vec<u8> = (0..=254).collect();
        let hash = hash_bytes(0, &bytes);
        for at in 0..bytes.len() * 8 {
            bytes[at / 8] ^= 1 << (at % 8);
            assert_ne!(hash_bytes(0, &bytes), hash);
            bytes[at / 8] ^= 1 << (at % 8);
        }
    }
}

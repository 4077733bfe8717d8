//! Parts of a matrix: rectangles of an `.npy` file, read and written where they lie, without the rest.

use crate::error::{Error, Result};
use crate::geometry::Rect;
use crate::matrix::io::npy::header_of;
use crate::matrix::{Element, NpyHeader, allocate};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Rectangles of one matrix, each with its elements row by row.
pub type LocalBlocks<T> = Vec<(Rect, Vec<T>)>;

/// Reads rectangles of the matrix in an `.npy` file whose header is known, in C or Fortran order and either byte order;
/// truth values become 0 and 1. Memory: the rectangles', and for Fortran order sixteen columns' more.
///
/// # Errors
/// The file cannot be read, or a rectangle needs more memory than is free: exit code 2.
///
/// # Panics
/// If the header's element type is not T, or a rectangle lies outside the matrix.
pub fn read_tiles<T: Element>(path: &Path, header: &NpyHeader, rects: &[Rect]) -> Result<LocalBlocks<T>> {
    let truth = header.dtype == "bool";
    assert!(header.dtype == T::NAME || (truth && size_of::<T>() == 1), "the elements are {}", T::NAME);
    let unreadable = |e| Error::file(path, "read", e);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut tiles = LocalBlocks::new();
    for rect in rects {
        assert!(rect.rows.end <= header.rows as u64 && rect.cols.end <= header.cols as u64);
        let (rows, cols) = (rect.rows.len() as usize, rect.cols.len() as usize);
        let mut tile = allocate::<T>(path, rows, cols)?.data;
        if rect.is_empty() {
            // Nothing to read.
        } else if header.fortran {
            read_columns(&mut file, header, *rect, &mut tile).map_err(unreadable)?;
        } else if cols == header.cols {
            read_at(&mut file, header, rect.rows.start * header.cols as u64, &mut tile)
                .map_err(unreadable)?;
        } else {
            for (i, row) in (rect.rows.start..rect.rows.end).zip(tile.chunks_exact_mut(cols.max(1))) {
                let first = i * header.cols as u64 + rect.cols.start;
                read_at(&mut file, header, first, row).map_err(unreadable)?;
            }
        }
        if truth {
            bytemuck::cast_slice_mut(&mut tile)
                .iter_mut()
                .for_each(|byte: &mut u8| *byte = u8::from(*byte != 0));
        }
        tiles.push((*rect, tile));
    }
    Ok(tiles)
}

/// Reads elements from number `first` of the body on.
fn read_at<T: Element>(
    file: &mut File,
    header: &NpyHeader,
    first: u64,
    into: &mut [T],
) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(header.data_offset + first * size_of::<T>() as u64))?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
    file.read_exact(bytes)?;
    if size_of::<T>() > 1 && header.big_endian != cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Ok(())
}

/// Reads a rectangle of a body in Fortran order, sixteen columns at a time.
fn read_columns<T: Element>(
    file: &mut File,
    header: &NpyHeader,
    rect: Rect,
    tile: &mut [T],
) -> std::io::Result<()> {
    const WIDE: usize = 16;
    let (rows, cols) = (rect.rows.len() as usize, rect.cols.len() as usize);
    let mut panel = vec![T::ZERO; rows * WIDE.min(cols)];
    for left in (0..cols).step_by(WIDE) {
        let wide = WIDE.min(cols - left);
        for (j, column) in panel.chunks_exact_mut(rows).take(wide).enumerate() {
            let first = (rect.cols.start + (left + j) as u64) * header.rows as u64 + rect.rows.start;
            read_at(file, header, first, column)?;
        }
        for (i, row) in tile.chunks_exact_mut(cols).enumerate() {
            for (j, value) in row[left..left + wide].iter_mut().enumerate() {
                *value = panel[j * rows + i];
            }
        }
    }
    Ok(())
}

/// The header of an `.npy` file for a matrix of T, or of truth values.
pub fn tiles_header<T: Element>(rows: usize, cols: usize, truth: bool) -> Vec<u8> {
    header_of(if truth { "|b1" } else { T::DESCR }, rows, cols)
}

/// Writes rectangles of a matrix of `cols` columns, in C order, into a file that has its header of `header` bytes and its
/// full length already; then they are on the disk. Others may write other rectangles meanwhile.
///
/// # Errors
/// The file cannot be written: exit code 2.
pub fn write_tiles<T: Element>(
    path: &Path,
    tiles: &LocalBlocks<T>,
    (header, cols): (u64, u64),
) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        for (rect, tile) in tiles {
            let width = rect.cols.len();
            // Whole rows lie together.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Span;
    use crate::matrix::{AnyMatrix, read_matrix, read_npy_header};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Any rectangle, of either order and byte order, is the same part of the whole.
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

        /// Rectangles written one by one make the file that is written at once.
        #[test]
        fn written_parts_make_the_whole(rows in 1u64..30, cols in 1u64..30, cut in 0.0f64..1.0, truth: bool) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("m.npy");
            let header = tiles_header::<u8>(rows as usize, cols as usize, truth);
            let mut wanted = header.clone();
            std::fs::write(&path, &header).unwrap();
            OpenOptions::new().write(true).open(&path).unwrap().set_len(header.len() as u64 + rows * cols).unwrap();
            let cut = (cut * cols as f64) as u64;
            for span in [Span::new(0, cut), Span::new(cut, cols)] {
                let rect = Rect::new(Span::new(0, rows), span);
                let value = |i: u64, j: u64| ((i * cols + j) % 2) as u8;
                let tile = (0..rows).flat_map(|i| (span.start..span.end).map(move |j| value(i, j))).collect();
                write_tiles::<u8>(&path, &vec![(rect, tile)], (header.len() as u64, cols)).unwrap();
            }
            wanted.extend((0..rows * cols).map(|i| (i % 2) as u8));
            prop_assert_eq!(std::fs::read(&path).unwrap(), wanted);
        }
    }
}

//! Rectangles of a distributed matrix, gathered from the files that hold them.

use super::DistributedFile;
use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::matrix::io::rectangles::read_rectangle;
use crate::matrix::{Element, LocalBlocks, Matrix, allocate};
use std::collections::BTreeMap;
use std::fs::File;

impl DistributedFile {
    /// Reads rectangles of the matrix: from each file only the elements that are in one of them. Truth values
    /// become 0 and 1. Memory: that of the rectangles, and of the largest part of one that is in one block.
    ///
    /// # Errors
    /// A file cannot be read, or a rectangle needs more memory than is free: exit code 2.
    ///
    /// # Panics
    /// If the element type of the files is not T, or a rectangle reaches outside the matrix.
    pub fn read<T: Element>(&self, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        let mut open: BTreeMap<usize, File> = BTreeMap::new();
        rects.iter().map(|&rect| Ok((rect, self.gather::<T>(rect, &mut open)?.into_elements()))).collect()
    }

    fn gather<T: Element>(&self, rect: Rect, open: &mut BTreeMap<usize, File>) -> Result<Matrix<T>> {
        let whole = Rect::new(Span::new(0, self.rows() as u64), Span::new(0, self.cols() as u64));
        assert!(rect.intersect(whole) == rect || rect.is_empty(), "{rect:?} reaches outside {whole:?}");
        let mut matrix = allocate::<T>(self.path(), rect.rows.len() as usize, rect.cols.len() as usize)?;
        let wide = matrix.cols();
        for block in &self.blocks {
            let common = block.rect.intersect(rect);
            if common.is_empty() {
                continue;
            }
            let (path, header) = &self.files[block.file];
            // Few files stay open at a time, however many there are.
            if open.len() >= MOST_OPEN && !open.contains_key(&block.file) {
                open.clear();
            }
            let file = match open.entry(block.file) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    new.insert(File::open(path).map_err(|e| Error::file(path, "read", e))?)
                }
            };
            let inside = common.relative_to(block.rect);
            let there = Rect::new(moved(inside.rows, block.at[0]), moved(inside.cols, block.at[1]));
            let part: Matrix<T> = read_rectangle(path, file, header, there)?;
            let here = common.relative_to(rect);
            let left = here.cols.start as usize;
            for (i, row) in (here.rows.start as usize..).zip(part.as_slice().chunks_exact(part.cols())) {
                matrix.as_mut_slice()[i * wide + left..][..row.len()].copy_from_slice(row);
            }
        }
        Ok(matrix)
    }
}

/// Files that are open at the same time.
const MOST_OPEN: usize = 64;

fn moved(span: Span, by: u64) -> Span {
    Span::new(span.start + by, span.end + by)
}

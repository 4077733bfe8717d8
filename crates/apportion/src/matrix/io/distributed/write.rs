//! The local arrays of a distributed matrix, and the text of its layout file.

use super::file::{FORMAT, RawBlock, RawFile};
use crate::geometry::{Rect, SpanSet};
use crate::matrix::{Element, LocalBlocks};

/// An array that one process keeps in one file: blocks of the matrix, and their places in the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalArray {
    /// Rows and columns.
    pub sizes: [u64; 2],
    /// Blocks of the matrix, each with the row and column of the array at which it begins.
    pub blocks: Vec<(Rect, [u64; 2])>,
}

/// The arrays of a process that has these disjoint rectangles: one array if they are all intersections of
/// some rows and some columns, as those of a block-cyclic distribution are (ScaLAPACK's local array); else
/// one for each rectangle.
pub fn local_arrays(rects: &[Rect]) -> Vec<LocalArray> {
    let rects: Vec<Rect> = rects.iter().copied().filter(|rect| !rect.is_empty()).collect();
    if rects.is_empty() {
        return Vec::new();
    }
    let rows = SpanSet::union(rects.iter().map(|rect| rect.rows));
    let cols = SpanSet::union(rects.iter().map(|rect| rect.cols));
    let area: u64 = rects.iter().map(|rect| rect.area()).sum();
    if area == rows.len() * cols.len() {
        let at = |rect: &Rect| {
            let position = |set: &SpanSet, index| set.position(index).expect("a rectangle is in the union");
            [position(&rows, rect.rows.start), position(&cols, rect.cols.start)]
        };
        let blocks = rects.iter().map(|rect| (*rect, at(rect))).collect();
        return vec![LocalArray { sizes: [rows.len(), cols.len()], blocks }];
    }
    let alone =
        |rect: Rect| LocalArray { sizes: [rect.rows.len(), rect.cols.len()], blocks: vec![(rect, [0, 0])] };
    rects.into_iter().map(alone).collect()
}

impl LocalArray {
    /// The array's elements, row by row, from the blocks of a matrix that this process holds.
    ///
    /// # Panics
    /// If a block of the array is not inside one of the held blocks.
    pub fn fill<T: Element>(&self, held: &LocalBlocks<T>) -> Vec<T> {
        let wide = self.sizes[1] as usize;
        let mut elements = vec![T::ZERO; self.sizes[0] as usize * wide];
        for (rect, [top, left]) in &self.blocks {
            let from = held.iter().find(|(outer, _)| outer.intersect(*rect) == *rect);
            let (outer, source) = from.expect("this process holds the blocks that it writes");
            let (there, stride) = (rect.relative_to(*outer), outer.cols.len() as usize);
            let length = rect.cols.len() as usize;
            for i in 0..rect.rows.len() as usize {
                let row = (there.rows.start as usize + i) * stride + there.cols.start as usize;
                let into = (*top as usize + i) * wide + *left as usize;
                elements[into..into + length].copy_from_slice(&source[row..row + length]);
            }
        }
        elements
    }
}

/// The text of a layout file for a matrix of `shape` in these arrays, each with the name of its file.
pub fn layout_file_text(shape: [u64; 2], arrays: &[(String, LocalArray)]) -> String {
    let block = |(file, array): &(String, LocalArray)| {
        let file = file.clone();
        let whole = array.blocks.len() == 1;
        let raw = move |(rect, at): &(Rect, [u64; 2])| RawBlock {
            rows: rect.rows,
            cols: rect.cols,
            file: file.clone(),
            at: (!whole).then_some(*at),
        };
        array.blocks.iter().map(raw).collect::<Vec<_>>()
    };
    let blocks = arrays.iter().flat_map(block).collect();
    let raw = RawFile { format: FORMAT.into(), version: 1, shape, blocks };
    let value = serde_json::to_value(&raw).expect("numbers and strings always serialise");
    format!("{value:#}\n")
}

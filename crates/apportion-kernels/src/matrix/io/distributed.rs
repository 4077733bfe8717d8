//! Matrices that are distributed over files: a layout file names the `.npy` files of the processes and says
//! which block of the matrix each of them holds.

use crate::error::{Error, Result};
use crate::files::open_regular;
use crate::geometry::{Rect, Span, SpanSet, first_overlap};
use crate::input::{Object, name_defect, objects, quoted, read_text};
use crate::matrix::io::rectangles::read_rectangle;
use crate::matrix::{Element, LocalBlocks, Matrix, NpyHeader, allocate, read_npy_header};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The largest number of blocks of a layout file.
const MOST_BLOCKS: usize = 1 << 16;

/// The largest number of elements: they are counted in double precision.
const MOST_ELEMENTS: u128 = 1 << 53;

/// A matrix whose blocks are in `.npy` files, by a layout file; or its transpose. Only headers have been
/// read.
///
/// # Example
/// ```
/// use apportion_kernels::matrix::{DistributedFile, npy_header};
/// let directory = tempfile::tempdir().unwrap();
/// for (name, rows) in [("a-0.npy", 2), ("a-1.npy", 1)] {
///     let body = vec![0u8; rows * 3 * 8];
///     std::fs::write(directory.path().join(name), [npy_header::<f64>(&[rows, 3], false), body].concat()).unwrap();
/// }
/// let path = directory.path().join("a.json");
/// std::fs::write(&path, r#"{"format": "apportion-blocks", "version": 1, "shape": [3, 3], "blocks": [
///     {"rows": [0, 2], "cols": [0, 3], "file": "a-0.npy"},
///     {"rows": [2, 3], "cols": [0, 3], "file": "a-1.npy"}]}"#).unwrap();
/// let matrix = DistributedFile::open(&path, false)?;
/// assert_eq!((matrix.rows(), matrix.cols(), matrix.dtype()), (3, 3, "f64"));
/// # Ok::<(), apportion_kernels::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DistributedFile {
    path: PathBuf,
    rows: u64,
    cols: u64,
    pub(super) files: Vec<(PathBuf, NpyHeader)>,
    pub(super) blocks: Vec<Block>,
}

/// A block of the matrix in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Its place in the matrix.
    pub(crate) rect: Rect,
    /// The file's number.
    pub(crate) file: usize,
    /// Row and column of the file's array at which the block begins.
    pub(crate) at: [u64; 2],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) shape: [u64; 2],
    #[serde(deserialize_with = "objects")]
    pub(crate) blocks: Vec<RawBlock>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBlock {
    pub(crate) rows: Span,
    pub(crate) cols: Span,
    pub(crate) file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<[u64; 2]>,
}

/// The name of the format in its files.
pub(super) const FORMAT: &str = "apportion-blocks";

impl DistributedFile {
    /// Reads a layout file and the headers of its `.npy` files, and checks that their blocks cover the
    /// matrix. Names of files are relative to the directory of the layout file.
    ///
    /// # Errors
    /// Exit code 2, by field: malformed JSON or another format; a shape without elements or with more than
    /// 2^53; a block that is empty, outside the matrix, or overlaps another one; elements in no block; a file
    /// that cannot be read, has other sizes than its block, or other element types than the first file.
    pub fn open(path: &Path, transposed: bool) -> Result<Self> {
        let place = path.display().to_string();
        let refuse = |field: &str, what: String, remedy: &str| {
            Err(Error::input(format!("{place}: {field}"), what, remedy))
        };
        let Object(raw): Object<RawFile> = serde_json::from_str(&read_text(path)?).map_err(|e| {
            let remedy = "see the layout file format in docs/reference/layout-file.md";
            Error::input(format!("{place}:{}", e.line()), e.to_string(), remedy)
        })?;
        if raw.format != FORMAT || raw.version != 1 {
            let what =
                format!("{} version {} is not \"{FORMAT}\" version 1", quoted(&raw.format), raw.version);
            return refuse("format", what, "give the layout file of a distributed matrix");
        }
        let [rows, cols] = raw.shape;
        let elements = u128::from(rows) * u128::from(cols);
        if elements == 0 || elements > MOST_ELEMENTS {
            let what = format!("a matrix of {rows} x {cols} has no elements, or more than 2^53");
            return refuse("shape", what, "write [rows, columns]");
        }
        if raw.blocks.is_empty() || raw.blocks.len() > MOST_BLOCKS {
            let what = format!("{} blocks are not 1 to {MOST_BLOCKS}", raw.blocks.len());
            return refuse("blocks", what, "list every block once");
        }
        let mut files = Files::new(path);
        let mut blocks = Vec::with_capacity(raw.blocks.len());
        for (number, raw) in raw.blocks.iter().enumerate() {
            let field = |name: &str| format!("blocks[{number}].{name}");
            for (name, span, end) in [("rows", raw.rows, rows), ("cols", raw.cols, cols)] {
                if span.start >= span.end || span.end > end {
                    let what = format!("[{}, {}] is no range within 0 to {end}", span.start, span.end);
                    return refuse(&field(name), what, "write [first, one past the last]");
                }
            }
            let (file, header) = files.open(&raw.file).map_err(|(what, remedy)| {
                Error::input(format!("{place}: {}", field("file")), what, remedy)
            })?;
            let rect = Rect::new(raw.rows, raw.cols);
            let (high, wide) = (header.rows as u64, header.cols as u64);
            let (block, at) = ([rect.rows.len(), rect.cols.len()], raw.at.unwrap_or_default());
            let fits =
                |at: u64, length: u64, end: u64| at.checked_add(length).is_some_and(|last| last <= end);
            if raw.at.is_none() && block != [high, wide] {
                let what = format!(
                    "{} is {high} x {wide}, but the block is {} x {}",
                    quoted(&raw.file),
                    block[0],
                    block[1]
                );
                return refuse(
                    &field("file"),
                    what,
                    "fix rows and cols, or say where in the file the block is: \"at\"",
                );
            }
            if !(fits(at[0], block[0], high) && fits(at[1], block[1], wide)) {
                let what = format!(
                    "a block of {} x {} at [{}, {}] reaches outside {}, which is {high} x {wide}",
                    block[0],
                    block[1],
                    at[0],
                    at[1],
                    quoted(&raw.file)
                );
                return refuse(
                    &field("at"),
                    what,
                    "write the [row, column] of the file at which the block begins",
                );
            }
            blocks.push(Block { rect, file, at });
        }
        let rects: Vec<Rect> = blocks.iter().map(|block| block.rect).collect();
        if let Some([one, other]) = first_overlap(&rects) {
            let common = rects[one].intersect(rects[other]);
            let what = format!(
                "element ({}, {}) is also in blocks[{}]",
                common.rows.start,
                common.cols.start,
                one.min(other)
            );
            return refuse(&format!("blocks[{}]", one.max(other)), what, "make the blocks disjoint");
        }
        let covered: u128 = rects.iter().map(|rect| u128::from(rect.area())).sum();
        if covered != elements {
            let what = format!("cover {covered} of {elements} elements");
            return refuse("blocks", what, "list the missing blocks, or fix the shape");
        }
        let matrix = Self { path: path.to_path_buf(), rows, cols, files: files.known, blocks };
        Ok(if transposed { matrix.transposed() } else { matrix })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// The common element type: `"f32"`, `"f64"`, `"i32"`, `"i64"`, `"bool"` or `"u8"`.
    pub fn dtype(&self) -> &'static str {
        self.files[0].1.dtype
    }

    /// The layout file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The `.npy` files, each once.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    fn transposed(self) -> Self {
        let turned =
            |b: Block| Block { rect: Rect::new(b.rect.cols, b.rect.rows), at: [b.at[1], b.at[0]], ..b };
        Self {
            rows: self.cols,
            cols: self.rows,
            files: self.files.into_iter().map(|(path, header)| (path, header.transposed())).collect(),
            blocks: self.blocks.into_iter().map(turned).collect(),
            path: self.path,
        }
    }
}

/// The files that were opened so far.
struct Files<'a> {
    layout: &'a Path,
    known: Vec<(PathBuf, NpyHeader)>,
    numbers: BTreeMap<String, usize>,
}

/// What is wrong, and how to fix it.
type Defect = (String, String);

impl<'a> Files<'a> {
    fn new(layout: &'a Path) -> Self {
        Self { layout, known: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The number and the header of a file.
    fn open(&mut self, name: &str) -> std::result::Result<(usize, NpyHeader), Defect> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok((number, self.known[number].1));
        }
        if let Some(what) =
            name.split('/').filter(|part| name.is_empty() || !part.is_empty()).find_map(name_defect)
        {
            return Err((what, "write the name of an .npy file".into()));
        }
        let path = self.layout.parent().unwrap_or(Path::new("")).join(name);
        // A pipe among them would be waited for.
        let header =
            open_regular(&path).and_then(|_| read_npy_header(&path)).map_err(|error| match error {
                Error::Input { place, what, remedy } => (format!("{place} {what}"), remedy),
                other => (other.to_string(), "names are relative to the directory of the layout file".into()),
            })?;
        if let Some((first, known)) = self.known.first().filter(|(_, known)| known.dtype != header.dtype) {
            let what = format!(
                "{} holds {}, but {} holds {}",
                quoted(name),
                header.dtype,
                first.display(),
                known.dtype
            );
            return Err((what, "convert one of them, so that all have the same element type".into()));
        }
        self.numbers.insert(name.to_owned(), self.known.len());
        self.known.push((path, header));
        Ok((self.known.len() - 1, header))
    }
}

// Rectangles of a distributed matrix, gathered from the files that hold them.

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
                std::collections::btree_map::Entry::Vacant(new) => new.insert(open_regular(path)?),
            };
            let inside = common.relative_to(block.rect);
            let there = Rect::new(shift(inside.rows, block.at[0]), shift(inside.cols, block.at[1]));
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

fn shift(span: Span, by: u64) -> Span {
    Span::new(span.start + by, span.end + by)
}

// The local arrays of a distributed matrix, and the text of its layout file.

/// An array that one process keeps in one file: blocks of the matrix, and their places in the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalArray {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Blocks of the matrix.
    pub(crate) blocks: Vec<ArrayBlock>,
}

/// A block of a matrix in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrayBlock {
    /// Its rectangle of the matrix.
    pub(crate) rect: Rect,
    /// The row of the array at which it begins.
    pub(crate) row: u64,
    /// The column of the array at which it begins.
    pub(crate) col: u64,
}

/// An array of a distributed matrix, and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalArrayFile {
    /// The name of the file, in the directory of the layout file.
    pub name: String,
    /// The array.
    pub array: LocalArray,
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
        let position = |set: &SpanSet, index| set.position(index).expect("a rectangle is in the union");
        let block = |rect: &Rect| ArrayBlock {
            rect: *rect,
            row: position(&rows, rect.rows.start),
            col: position(&cols, rect.cols.start),
        };
        let blocks = rects.iter().map(block).collect();
        return vec![LocalArray { rows: rows.len(), cols: cols.len(), blocks }];
    }
    let alone = |rect: Rect| LocalArray {
        rows: rect.rows.len(),
        cols: rect.cols.len(),
        blocks: vec![ArrayBlock { rect, row: 0, col: 0 }],
    };
    rects.into_iter().map(alone).collect()
}

impl LocalArray {
    /// The array's elements, row by row, from the blocks of a matrix that this process holds.
    ///
    /// # Panics
    /// If a block of the array is not inside one of the held blocks.
    pub fn fill<T: Element>(&self, held: &LocalBlocks<T>) -> Vec<T> {
        let wide = self.cols as usize;
        let mut elements = vec![T::ZERO; self.rows as usize * wide];
        for ArrayBlock { rect, row: top, col: left } in &self.blocks {
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

/// The text of a layout file for a matrix of `rows` x `cols` elements in these files.
pub fn layout_file_text(rows: u64, cols: u64, files: &[LocalArrayFile]) -> String {
    let blocks = |LocalArrayFile { name, array }: &LocalArrayFile| {
        let is_whole = array.blocks.len() == 1;
        let raw = |block: &ArrayBlock| RawBlock {
            rows: block.rect.rows,
            cols: block.rect.cols,
            file: name.clone(),
            at: (!is_whole).then_some([block.row, block.col]),
        };
        array.blocks.iter().map(raw).collect::<Vec<_>>()
    };
    let blocks = files.iter().flat_map(blocks).collect();
    let raw = RawFile { format: FORMAT.into(), version: 1, shape: [rows, cols], blocks };
    let value = serde_json::to_value(&raw).expect("numbers and strings always serialise");
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests;

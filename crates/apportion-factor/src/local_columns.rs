//! The block columns or tiles of a processor, and how they are read and written.

use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::{Real, View, ViewMut};
use apportion::matrix::{LocalBlocks, NpyFile, digest};
use apportion::plan::TileMap;
use std::ops::Range;

/// Elements that are read from a file at once.
const BAND: u64 = 1 << 20;

/// Block columns of one processor, side by side: all rows of the matrix, and as many columns as it owns; or its tiles, in
/// rows and columns that are together here.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalColumns<T> {
    /// The processor.
    rank: Rank,
    /// Rows and columns of the matrix.
    n: usize,
    /// Its rows of the matrix, ascending: all, or a span for each block row.
    heights: Vec<Span>,
    /// Its columns of the matrix, ascending, one span for each block column.
    spans: Vec<Span>,
    /// The first column here of each span, and the number of columns.
    starts: Vec<usize>,
    /// Only tiles that are not above the diagonal are its own; the others are zeros.
    triangle: bool,
    /// Row by row.
    elements: Vec<T>,
}

impl<T: Real> LocalColumns<T> {
    /// The block columns or tiles of a processor, with zeros; there may be none.
    ///
    /// # Errors
    /// There is no memory for them: exit code 1.
    pub(crate) fn zeros(tiles: &TileMap, rank: Rank) -> Result<Self> {
        let of = |places: &[usize]| places.iter().map(|&place| tiles.span(place)).collect::<Vec<Span>>();
        let heights = match tiles.are_columns() {
            true => vec![Span::new(0, tiles.n())],
            false => of(tiles.rows(rank)),
        };
        let spans = of(tiles.own(rank));
        let mut starts = vec![0];
        for span in &spans {
            starts.push(starts[starts.len() - 1] + span.len() as usize);
        }
        let rows = heights.iter().map(|span| span.len() as usize).sum::<usize>();
        let width = starts[spans.len()];
        let elements = apportion::memory::ask(|| {
            let mut elements: Vec<T> = Vec::new();
            elements.try_reserve_exact(rows.saturating_mul(width)).map(|()| elements)
        });
        let mut elements = elements.map_err(|_| Error::TooLittleMemory {
            what: format!("{rows} x {width} elements of {} do not fit into memory", T::NAME),
            remedy: "use a smaller matrix or a machine with more memory".into(),
        })?;
        elements.resize(rows * width, T::ZERO);
        let n = tiles.n() as usize;
        Ok(Self { rank, n, heights, spans, starts, triangle: tiles.is_triangle(), elements })
    }

    /// The processor.
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// Rows and columns of the matrix.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Number of rows that are here: of block columns, all of the matrix.
    pub(crate) fn rows(&self) -> usize {
        self.heights.iter().map(|span| span.len() as usize).sum()
    }

    /// The row of the matrix of each row here.
    pub(crate) fn matrix_rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.heights.iter().flat_map(|span| span.start..span.end)
    }

    /// Number of columns that are here.
    pub(crate) fn width(&self) -> usize {
        self.starts[self.spans.len()]
    }

    /// The first row here of the diagonal block of these columns, if it is here.
    pub(crate) fn diagonal(&self, columns: Span) -> Option<usize> {
        self.rows_in(columns).next().map(|(_, place)| place)
    }

    /// The columns of the matrix that are here, one span for each block column.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The same columns with elements of another type, multiplied by a factor.
    pub(crate) fn convert<F: Real>(&self, factor: f64) -> LocalColumns<F> {
        let elements = self.elements.iter().map(|x| F::from_f64(x.to_f64() * factor)).collect();
        LocalColumns {
            rank: self.rank,
            n: self.n,
            heights: self.heights.clone(),
            spans: self.spans.clone(),
            starts: self.starts.clone(),
            triangle: self.triangle,
            elements,
        }
    }

    /// Where the block columns in these places begin and end here.
    pub(crate) fn range(&self, places: Range<usize>) -> Range<usize> {
        self.starts[places.start]..self.starts[places.end]
    }

    /// The elements, row by row.
    pub(crate) fn elements(&self) -> &[T] {
        &self.elements
    }

    pub(crate) fn view(&self) -> View<'_, T> {
        View::dense(&self.elements, self.rows(), self.width())
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (rows, width) = (self.rows(), self.width());
        ViewMut::dense(&mut self.elements, rows, width)
    }

    /// The column of the matrix of each column here.
    pub(crate) fn columns(&self) -> impl Iterator<Item = u64> + '_ {
        self.spans.iter().flat_map(|span| span.start..span.end)
    }

    /// The columns here that are its own in a row of the matrix: without tiles above the diagonal, if it has none of these.
    fn own_spans(&self, row: u64) -> impl Iterator<Item = (Span, usize)> + '_ {
        let own = move |span: &&Span| !self.triangle || span.start <= row;
        self.spans.iter().take_while(own).copied().zip(self.starts.iter().copied())
    }

    /// The rows here, each with its place, of `rows` of the matrix.
    fn rows_in(&self, rows: Span) -> impl Iterator<Item = (u64, usize)> + use<T> {
        let (mut first, mut found) = (0, Vec::new());
        for span in &self.heights {
            let (start, end) = (span.start.max(rows.start), span.end.min(rows.end));
            if start < end {
                found.push((start..end, first + (start - span.start) as usize));
            }
            first += span.len() as usize;
        }
        found.into_iter().flat_map(|(rows, first)| rows.enumerate().map(move |(i, row)| (row, first + i)))
    }

    /// Copies its part of rows of the matrix, `band` being these columns, at least its own, of rows from `first` on.
    fn fill(&mut self, first: usize, columns: Span, band: &[T]) {
        let width = self.width();
        if width == 0 {
            return;
        }
        let across = columns.len() as usize;
        let end = first + band.len() / across;
        for (row, place) in self.rows_in(Span::new(first as u64, end as u64)) {
            let from = &band[(row as usize - first) * across..][..across];
            let spans: Vec<(Span, usize)> = self.own_spans(row).collect();
            let into = &mut self.elements[place * width..][..width];
            for (span, start) in spans {
                let part = &from[(span.start - columns.start) as usize..][..span.len() as usize];
                into[start..][..part.len()].copy_from_slice(part);
            }
        }
    }

    /// Copies its part of rows of a block column of the matrix, from row `first` on.
    pub(crate) fn fill_block(&mut self, place: usize, first: usize, block: &[T]) {
        let (columns, width, span) = (self.range(place..place + 1), self.width(), self.spans[place]);
        let end = first + block.len() / columns.len();
        for (row, place) in self.rows_in(Span::new(first as u64, end as u64)) {
            if !self.triangle || span.start <= row {
                let from = &block[(row as usize - first) * columns.len()..][..columns.len()];
                self.elements[place * width..][columns.clone()].copy_from_slice(from);
            }
        }
    }

    /// Rows of a block column, row by row.
    pub(crate) fn block_rows(&self, place: usize, rows: Range<usize>) -> impl Iterator<Item = &[T]> {
        let (columns, width) = (self.range(place..place + 1), self.width());
        self.elements[rows.start * width..rows.end * width]
            .chunks_exact(width)
            .map(move |row| &row[columns.clone()])
    }

    /// The digest of a block column of a matrix; of a symmetric one, of its part of the lower triangle.
    pub(crate) fn digest(&self, place: usize, symmetric: bool) -> u64 {
        let (span, n) = (self.spans[place], self.n as u64);
        let first = if symmetric { span.start } else { 0 };
        let rows = (first..n).zip(self.block_rows(place, first as usize..self.n));
        rows.fold(0, |sum: u64, (i, row)| {
            let end = if symmetric { (i + 1 - span.start).min(span.len()) } else { span.len() };
            sum.wrapping_add(digest(i * n + span.start, &row[..end as usize]))
        })
    }

    /// Copies its columns of a whole matrix, row by row.
    ///
    /// # Panics
    /// If there are not as many elements.
    pub(crate) fn fill_from(&mut self, whole: &[T]) {
        assert_eq!(whole.len(), self.n * self.n, "a square matrix");
        self.fill(0, Span::new(0, self.n as u64), whole);
    }

    /// Puts its part of the rows from `first` on into `band`, which has all columns of them.
    pub(crate) fn put(&self, first: usize, band: &mut [T]) {
        let width = self.width();
        if width == 0 {
            return;
        }
        let end = first + band.len() / self.n;
        for (row, place) in self.rows_in(Span::new(first as u64, end as u64)) {
            let from = &self.elements[place * width..][..width];
            let into = &mut band[(row as usize - first) * self.n..][..self.n];
            for (span, start) in self.own_spans(row) {
                let part = &mut into[span.start as usize..span.end as usize];
                part.copy_from_slice(&from[start..][..part.len()]);
            }
        }
    }

    /// Sets what is above the diagonal of the matrix to zero.
    pub(crate) fn clear_above(&mut self) {
        let (width, rows) = (self.width(), self.matrix_rows().collect::<Vec<u64>>());
        for (i, row) in rows.into_iter().zip(self.elements.chunks_exact_mut(width.max(1))) {
            let mut column = 0;
            for span in &self.spans {
                let first = (i + 1).clamp(span.start, span.end);
                row[column + (first - span.start) as usize..column + span.len() as usize].fill(T::ZERO);
                column += span.len() as usize;
            }
        }
    }

    /// Its parts, each a rectangle of the matrix: block columns; or tiles, with the zeros of their mirror images.
    pub(crate) fn blocks(&self) -> LocalBlocks<T> {
        let mut blocks = LocalBlocks::new();
        for (span, start) in self.spans.iter().zip(&self.starts) {
            let mut first = 0;
            for rows in &self.heights {
                let height = rows.len() as usize;
                let row = |i| &self.view().row(i)[*start..*start + span.len() as usize];
                if !self.triangle || span.start <= rows.start {
                    blocks.push((
                        Rect::new(*rows, *span),
                        (first..first + height).flat_map(row).copied().collect(),
                    ));
                }
                if self.triangle && span.end <= rows.start {
                    let zeros = vec![T::ZERO; height * span.len() as usize];
                    blocks.push((Rect::new(*span, *rows), zeros));
                }
                first += height;
            }
        }
        blocks
    }

    /// The first element, by row and column of the matrix, that is not finite; of the lower triangle only, if so
    /// asked.
    pub(crate) fn first_not_finite(&self, lower: bool) -> Option<([u64; 2], T)> {
        let columns: Vec<u64> = self.columns().collect();
        for (i, row) in self.matrix_rows().zip(self.elements.chunks_exact(self.width().max(1))) {
            let bad = |(x, j): (&T, &u64)| !x.to_f64().is_finite() && (!lower || *j <= i);
            if let Some(at) = row.iter().zip(&columns).position(bad) {
                return Some(([i, columns[at]], row[at]));
            }
        }
        None
    }
}

/// Elements of so many columns of a matrix of n rows that are read from a file at once.
pub(crate) fn band_elements(n: u64, width: u64) -> u64 {
    BAND.min(n * width / 8).max(width)
}

/// The parts of some processors from a file of the whole matrix: these rows of them, and zeros elsewhere.
///
/// # Errors
/// The file cannot be read; there is no memory.
pub(crate) fn read_columns<T: Real>(
    file: &mut NpyFile,
    tiles: &TileMap,
    rows: Span,
    ranks: Range<usize>,
) -> Result<Vec<LocalColumns<T>>> {
    let mut locals = all_zeros(tiles, ranks)?;
    let all = tiles.all();
    let mut memory = Vec::new();
    if file.header().fortran {
        for local in &mut locals {
            for place in 0..local.spans.len() {
                memory = file.read_into(Rect::new(rows, local.spans[place]), memory)?;
                local.fill_block(place, rows.start as usize, &memory);
            }
        }
    } else {
        for band in rows.blocks(band_elements(tiles.n(), all.len()) / all.len()) {
            memory = file.read_into(Rect::new(band, all), memory)?;
            locals.iter_mut().for_each(|local| local.fill(band.start as usize, all, &memory));
        }
    }
    file.check_unchanged()?;
    Ok(locals)
}

/// The digest of a matrix in a file, or of the lower triangle of a symmetric one: what a factorisation reads of it.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn digest_of_file<T: Real>(file: &mut NpyFile, symmetric: bool) -> Result<u64> {
    let (mut sum, n) = (0u64, file.header().cols as u64);
    file.each_piece::<T>(&mut |[row, col], piece| {
        let end = if symmetric { (row + 1).saturating_sub(col) } else { n };
        let piece = &piece[..(end as usize).min(piece.len())];
        sum = sum.wrapping_add(digest(row * n + col, piece));
    })?;
    Ok(sum)
}

/// The same from a whole matrix in memory, row by row.
pub(crate) fn cut_columns<T: Real>(
    matrix: &[T],
    tiles: &TileMap,
    ranks: Range<usize>,
) -> Result<Vec<LocalColumns<T>>> {
    let mut locals = all_zeros(tiles, ranks)?;
    locals.iter_mut().for_each(|local| local.fill_from(matrix));
    Ok(locals)
}

fn all_zeros<T: Real>(tiles: &TileMap, ranks: Range<usize>) -> Result<Vec<LocalColumns<T>>> {
    ranks.map(|rank| LocalColumns::zeros(tiles, Rank(rank))).collect()
}

/// Bands of all columns of the matrix, from the top to the bottom, from the block columns of all processors.
pub(crate) fn each_band<T: Real>(
    locals: &[LocalColumns<T>],
    n: usize,
    mut put: impl FnMut(&[T]) -> Result<()>,
) -> Result<()> {
    let height = (BAND as usize / n).max(1);
    let mut band = vec![T::ZERO; height.min(n) * n];
    for first in (0..n).step_by(height) {
        let band = &mut band[..height.min(n - first) * n];
        locals.iter().for_each(|local| local.put(first, band));
        put(band)?;
    }
    Ok(())
}

//! The block columns of a processor as one matrix, and how they are read and written.

use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::{Real, View, ViewMut};
use apportion::matrix::{LocalBlocks, NpyFile};
use apportion::plan::BlockColumns;
use std::ops::Range;

/// Elements that are read from a file at once.
const BAND: u64 = 1 << 20;

/// The block columns of one processor, side by side: all rows of the matrix, and as many columns as it owns.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalColumns<T> {
    /// The processor.
    rank: Rank,
    /// Its columns of the matrix, ascending, one span for each block column.
    spans: Vec<Span>,
    /// The first column here of each span, and the number of columns.
    starts: Vec<usize>,
    rows: usize,
    /// Row by row.
    elements: Vec<T>,
}

impl<T: Real> LocalColumns<T> {
    /// The block columns of a processor, with zeros.
    ///
    /// # Errors
    /// There is no memory for them: exit code 1.
    pub fn zeros(columns: &BlockColumns, rank: Rank) -> Result<Self> {
        let spans: Vec<Span> = columns.own(rank).iter().map(|&column| columns.span(column)).collect();
        let mut starts = vec![0];
        for span in &spans {
            starts.push(starts[starts.len() - 1] + span.len() as usize);
        }
        let (rows, width) = (columns.n() as usize, starts[spans.len()]);
        let elements = apportion::memory::ask(|| {
            let mut elements: Vec<T> = Vec::new();
            elements.try_reserve_exact(rows.saturating_mul(width)).map(|()| elements)
        });
        let mut elements = elements.map_err(|_| Error::TooLittleMemory {
            what: format!("{rows} x {width} elements of {} do not fit into memory", T::NAME),
            remedy: "use a smaller matrix or a machine with more memory".into(),
        })?;
        elements.resize(rows * width, T::ZERO);
        Ok(Self { rank, spans, starts, rows, elements })
    }

    /// The processor.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns that are here.
    pub fn width(&self) -> usize {
        self.starts[self.spans.len()]
    }

    /// The columns of the matrix that are here, one span for each block column.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The same columns with elements of another type, multiplied by a factor.
    pub(crate) fn convert<F: Real>(&self, factor: f64) -> LocalColumns<F> {
        let Self { rank, spans, starts, rows, elements } = self;
        let elements = elements.iter().map(|x| F::from_f64(x.to_f64() * factor)).collect();
        LocalColumns { rank: *rank, spans: spans.clone(), starts: starts.clone(), rows: *rows, elements }
    }

    /// Where the block columns in these places begin and end here.
    pub(crate) fn range(&self, places: Range<usize>) -> Range<usize> {
        self.starts[places.start]..self.starts[places.end]
    }

    /// The elements, row by row.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    pub(crate) fn view(&self) -> View<'_, T> {
        View::dense(&self.elements, self.rows, self.width())
    }

    pub(crate) fn view_mut(&mut self) -> ViewMut<'_, T> {
        let (rows, width) = (self.rows, self.width());
        ViewMut::dense(&mut self.elements, rows, width)
    }

    /// The column of the matrix of each column here.
    pub(crate) fn columns(&self) -> impl Iterator<Item = u64> + '_ {
        self.spans.iter().flat_map(|span| span.start..span.end)
    }

    /// Copies rows of the matrix, `band` being all columns of rows from `first` on.
    fn fill(&mut self, first: usize, band: &[T]) {
        let width = self.width();
        if width == 0 {
            return;
        }
        let into = self.elements[first * width..].chunks_exact_mut(width);
        for (into, from) in into.zip(band.chunks_exact(self.rows)) {
            for (span, start) in self.spans.iter().zip(&self.starts) {
                let part = &from[span.start as usize..span.end as usize];
                into[*start..][..part.len()].copy_from_slice(part);
            }
        }
    }

    /// Copies a block column.
    fn fill_block(&mut self, place: usize, block: &[T]) {
        let columns = self.range(place..place + 1);
        let mut tile = self.view_mut();
        for (i, from) in block.chunks_exact(columns.len()).enumerate() {
            tile.row(i)[columns.clone()].copy_from_slice(from);
        }
    }

    /// Copies its columns of a whole matrix, row by row.
    ///
    /// # Panics
    /// If there are not as many elements.
    pub fn fill_from(&mut self, whole: &[T]) {
        assert_eq!(whole.len(), self.rows * self.rows, "a square matrix");
        self.fill(0, whole);
    }

    /// Puts the rows from `first` on into `band`, which has all columns of them.
    pub(crate) fn put(&self, first: usize, band: &mut [T]) {
        let width = self.width();
        if width == 0 {
            return;
        }
        let from = self.elements[first * width..].chunks_exact(width);
        for (from, into) in from.zip(band.chunks_exact_mut(self.rows)) {
            for (span, start) in self.spans.iter().zip(&self.starts) {
                let part = &mut into[span.start as usize..span.end as usize];
                part.copy_from_slice(&from[*start..][..part.len()]);
            }
        }
    }

    /// Sets what is above the diagonal of the matrix to zero.
    pub(crate) fn clear_above(&mut self) {
        let width = self.width();
        for (i, row) in self.elements.chunks_exact_mut(width.max(1)).enumerate() {
            let mut column = 0;
            for span in &self.spans {
                let first = (i as u64 + 1).clamp(span.start, span.end);
                row[column + (first - span.start) as usize..column + span.len() as usize].fill(T::ZERO);
                column += span.len() as usize;
            }
        }
    }

    /// The block columns, each a rectangle of the matrix.
    pub(crate) fn blocks(&self) -> LocalBlocks<T> {
        let (view, rows) = (self.view(), Span::new(0, self.rows as u64));
        let block = |(span, start): (&Span, &usize)| {
            let row = |i| &view.row(i)[*start..*start + span.len() as usize];
            (Rect::new(rows, *span), (0..self.rows).flat_map(row).copied().collect())
        };
        self.spans.iter().zip(&self.starts).map(block).collect()
    }

    /// The first element, by row and column of the matrix, that is not finite; of the lower triangle only, if so
    /// asked.
    pub(crate) fn first_not_finite(&self, lower: bool) -> Option<([u64; 2], T)> {
        let columns: Vec<u64> = self.columns().collect();
        for (i, row) in self.elements.chunks_exact(self.width().max(1)).enumerate() {
            let bad = |(x, j): (&T, &u64)| !x.to_f64().is_finite() && (!lower || *j <= i as u64);
            if let Some(at) = row.iter().zip(&columns).position(bad) {
                return Some(([i as u64, columns[at]], row[at]));
            }
        }
        None
    }
}

/// The block columns of some processors from a file of the whole matrix.
///
/// # Errors
/// The file cannot be read; there is no memory.
pub(crate) fn read_columns<T: Real>(
    file: &mut NpyFile,
    columns: &BlockColumns,
    ranks: Range<usize>,
) -> Result<Vec<LocalColumns<T>>> {
    let mut locals: Vec<LocalColumns<T>> =
        ranks.map(|rank| LocalColumns::zeros(columns, Rank(rank))).collect::<Result<_>>()?;
    let n = columns.n();
    let whole = Span::new(0, n);
    let mut memory = Vec::new();
    if file.header().fortran {
        for local in &mut locals {
            for place in 0..local.spans.len() {
                memory = file.read_into(Rect::new(whole, local.spans[place]), memory)?;
                local.fill_block(place, &memory);
            }
        }
    } else {
        for rows in whole.blocks((BAND / n).max(1)) {
            memory = file.read_into(Rect::new(rows, whole), memory)?;
            locals.iter_mut().for_each(|local| local.fill(rows.start as usize, &memory));
        }
    }
    file.check_unchanged()?;
    Ok(locals)
}

/// The same from a whole matrix in memory, row by row.
pub(crate) fn cut_columns<T: Real>(
    matrix: &[T],
    columns: &BlockColumns,
    ranks: Range<usize>,
) -> Result<Vec<LocalColumns<T>>> {
    let one = |rank| {
        let mut local = LocalColumns::zeros(columns, Rank(rank))?;
        local.fill_from(matrix);
        Ok(local)
    };
    ranks.map(one).collect()
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

//! Finished panels in a temporary file, one after the other, so that a panel is read in one piece.

use crate::LocalColumns;
use crate::tile_kernels::numbers_with_panel;
use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Span};
use apportion::kernels::factor::exchange_rows;
use apportion::kernels::{Real, View, ViewMut};
use apportion::output::OutputFile;
use apportion::plan::{Factors, TileMap};
use apportion::schedule::Parcel;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a block column lies in the file: what others do not need, of L D L^T with its pivots first, and then the panel
/// as it travels, its marks first.
#[derive(Debug, Clone)]
pub(crate) struct RecordLayout {
    factors: Factors,
    columns: TileMap,
}

impl RecordLayout {
    pub(crate) fn new(factors: Factors, columns: TileMap) -> Self {
        Self { factors, columns }
    }

    fn width(&self, column: usize) -> u64 {
        self.columns.span(column).len()
    }

    fn marks(&self, column: usize) -> u64 {
        self.columns.panel_marks(self.factors, column)
    }

    /// Pivots that come first.
    fn pivots(&self, column: usize) -> u64 {
        if self.factors == Factors::Ldlt { self.width(column) } else { 0 }
    }

    /// Rows of the block column that do not travel: those above the panel of LU, or the diagonal block.
    fn still_rows(&self, column: usize) -> Span {
        let span = self.columns.span(column);
        if self.factors == Factors::Lu { Span::new(0, span.start) } else { span }
    }

    /// Elements before the panel as it travels.
    fn head(&self, column: usize) -> u64 {
        self.pivots(column) + self.still_rows(column).len() * self.width(column)
    }

    /// Elements of a record.
    pub(crate) fn elements(&self, column: usize) -> u64 {
        let rows = self.columns.panel_rows(self.factors, column).len();
        self.head(column) + self.marks(column) + rows * self.width(column)
    }

    /// Elements of all records.
    pub(crate) fn all_elements(&self) -> u64 {
        (0..self.columns.count()).map(|column| self.elements(column)).sum()
    }

    /// Rows of the matrix that are in a record, and the element of the record at which they begin.
    fn regions(&self, column: usize) -> [Region; 2] {
        let still = Region { rows: self.still_rows(column), at: self.pivots(column) };
        let rows = self.columns.panel_rows(self.factors, column);
        [still, Region { rows, at: self.head(column) + self.marks(column) }]
    }

    /// The record of a block column that has been factored; its pivots count from its first row.
    pub(crate) fn record<T: Real>(&self, local: &LocalColumns<T>, column: usize, pivots: &[i64]) -> Vec<T> {
        let (width, head) = (self.width(column) as usize, self.head(column) as usize);
        let here = self.columns.span(column);
        let place = local.spans().iter().position(|span| *span == here).expect("the block column is here");
        let mut record = vec![T::ZERO; self.elements(column) as usize];
        for Region { rows, at } in self.regions(column) {
            let into = record[at as usize..].chunks_exact_mut(width);
            let from = local.block_rows(place, rows.start as usize..rows.end as usize);
            from.zip(into).for_each(|(from, into)| into.copy_from_slice(from));
        }
        // Of LU, rows that do not matter.
        let rows = self.still_rows(column).len() as usize;
        let block = View::dense(&record[self.pivots(column) as usize..][..rows * width], rows, width);
        let numbers = numbers_with_panel(self.factors, block, pivots);
        // The first mark says that the panel did not fail.
        record[head + 1..][..numbers.len()].copy_from_slice(&numbers);
        if self.factors == Factors::Ldlt {
            record.iter_mut().zip(pivots).for_each(|(into, pivot)| *into = T::from_f64(*pivot as f64));
        }
        record
    }

    /// The pivots in a record, counted from the first row of its panel.
    pub(crate) fn pivots_of<T: Real>(&self, column: usize, record: &[T]) -> Vec<i64> {
        let first = match self.factors {
            Factors::Cholesky => return Vec::new(),
            Factors::Lu => self.head(column) as usize + 1,
            Factors::Ldlt => 0,
        };
        record[first..first + self.width(column) as usize].iter().map(|x| x.to_f64() as i64).collect()
    }
}

/// Rows that follow each other in a record.
#[derive(Debug, Clone, Copy)]
struct Region {
    rows: Span,
    /// The element of the record at which they begin.
    at: u64,
}

/// The records of all block columns in a temporary file, which is deleted in the end.
#[derive(Debug)]
pub(crate) struct PanelStore<T> {
    layout: RecordLayout,
    /// The elements before each record.
    places: Vec<u64>,
    file: Mutex<File>,
    temporary: OutputFile,
    elements: std::marker::PhantomData<T>,
}

impl<T: Real> PanelStore<T> {
    /// Takes the room for all records.
    ///
    /// # Errors
    /// The disk is full, or another error of the operating system.
    pub(crate) fn create(mut temporary: OutputFile, layout: RecordLayout) -> Result<Self> {
        let bytes = layout.all_elements() * size_of::<T>() as u64;
        temporary.reserve(bytes)?;
        let path: PathBuf = temporary.share(bytes)?;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|e| Error::file(temporary.path(), "open", e))?;
        let mut places = vec![0];
        for column in 0..layout.columns.count() {
            places.push(places[column] + layout.elements(column));
        }
        Ok(Self { layout, places, file: Mutex::new(file), temporary, elements: std::marker::PhantomData })
    }

    pub(crate) fn layout(&self) -> &RecordLayout {
        &self.layout
    }

    fn at(&self, column: usize, place: u64) -> std::io::Result<MutexGuard<'_, File>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let element = self.places[column] + place;
        file.seek(SeekFrom::Start(element * size_of::<T>() as u64))?;
        Ok(file)
    }

    fn read(&self, column: usize, place: u64, into: &mut [T]) -> Result<()> {
        let read =
            self.at(column, place).and_then(|mut file| file.read_exact(bytemuck::cast_slice_mut(into)));
        read.map_err(|e| Error::file(self.temporary.path(), "read", e))
    }

    fn write(&self, column: usize, place: u64, elements: &[T]) -> Result<()> {
        let written =
            self.at(column, place).and_then(|mut file| file.write_all(bytemuck::cast_slice(elements)));
        written.map_err(|e| Error::file(self.temporary.path(), "write", e))
    }

    /// Keeps the record of a block column.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, column: usize, record: &[T]) -> Result<()> {
        self.write(column, 0, record)
    }

    /// A panel as it travels.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn panel(&self, column: usize) -> Result<Parcel<T>> {
        let head = self.layout.head(column);
        let mut memory = vec![T::ZERO; (self.layout.elements(column) - head) as usize];
        self.read(column, head, &mut memory)?;
        Ok(Parcel::new(Arc::new(memory)))
    }

    /// Exchanges rows of a panel of LU as all later panels demand, whose pivots are given by block column and count
    /// from the first row of each panel.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn exchange(&self, column: usize, pivots: &[Vec<i64>]) -> Result<()> {
        let columns = &self.layout.columns;
        let [_, Region { rows, at }] = self.layout.regions(column);
        let (rows, width) = (rows.len() as usize, self.layout.width(column) as usize);
        let mut memory = vec![T::ZERO; rows * width];
        self.read(column, at, &mut memory)?;
        let mut panel = ViewMut::dense(&mut memory, rows, width);
        for (later, pivots) in pivots.iter().enumerate().skip(column + 1) {
            let below = (columns.n() - columns.span(later).start) as usize;
            exchange_rows(panel.tile(rows - below, 0, below, width), pivots);
        }
        self.write(column, at, &memory)
    }

    /// The block columns of a slab, of all processors.
    ///
    /// # Errors
    /// They cannot be read; there is no memory.
    pub(crate) fn slab(&self, range: Range<usize>) -> Result<Vec<LocalColumns<T>>> {
        let slab = self.layout.columns.slab(range);
        let one = |rank: usize| {
            let mut local = LocalColumns::zeros(&slab, Rank(rank))?;
            for (place, &column) in slab.own(Rank(rank)).iter().enumerate() {
                for Region { rows, at } in self.layout.regions(column) {
                    let mut memory = vec![T::ZERO; (rows.len() * self.layout.width(column)) as usize];
                    self.read(column, at, &mut memory)?;
                    local.fill_block(place, rows.start as usize, &memory);
                }
            }
            Ok(local)
        };
        (0..slab.processors()).map(one).collect()
    }

    /// Rows of the factors, all columns of them, row by row, into memory of zeros.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn rows(&self, wanted: Span, band: &mut [T]) -> Result<()> {
        let (columns, n) = (&self.layout.columns, self.layout.columns.n() as usize);
        let mut memory = Vec::new();
        for column in 0..columns.count() {
            let (span, width) = (columns.span(column), self.layout.width(column));
            for Region { rows, at } in self.layout.regions(column) {
                let (start, end) = (rows.start.max(wanted.start), rows.end.min(wanted.end));
                if start >= end {
                    continue;
                }
                memory.resize(((end - start) * width) as usize, T::ZERO);
                self.read(column, at + (start - rows.start) * width, &mut memory)?;
                let into = band[(start - wanted.start) as usize * n..].chunks_exact_mut(n);
                for (into, from) in into.zip(memory.chunks_exact(width as usize)) {
                    into[span.start as usize..span.end as usize].copy_from_slice(from);
                }
            }
        }
        Ok(())
    }
}

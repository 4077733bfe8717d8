//! Factorisations of matrices larger than memory, by slabs: some consecutive block columns at a time.
//!
//! The columns of a slab are read from the matrix, brought up to date with every panel left of it, in order, and
//! factored as a matrix in memory is. Each column receives the updates that it would receive in memory, by the same
//! kernels, so that its bytes are the same. Finished panels go to a temporary file, each in one piece (in the file of
//! the factors, which is row by row, a panel would lie in pieces of some hundred bytes); the file of the factors is
//! made of them in the end.
//!
//! For S slabs of a matrix of n x n elements, about S n^2 / 3 elements are read and n^2 written, half of that of a symmetric
//! one, besides reading the matrix twice and writing the factors.

mod reader;
mod run;
mod store;

pub(crate) use reader::{PanelReader, Reading};
pub(crate) use run::SlabRun;
pub(crate) use store::{PanelStore, RecordLayout};

use crate::local_columns::band_elements;
use crate::vectors::TOGETHER;
use apportion::geometry::{Rank, Span};
use apportion::plan::{Factors, TileMap};
use apportion::schedule::FactorSchedule;
use std::ops::Range;

/// Bytes that a process needs for any computation, most of it the program itself (18 MB of code in a debug build).
const BASE: u64 = 22 << 20;

/// Bytes that a thread keeps of what it has freed.
const THREAD: u64 = 2 << 20;

/// The most bytes that a thread packs at a time, of the panel and of the columns that it updates.
const PACKED: [u64; 2] = [4 << 20, 2 << 20];

/// How the block columns of a matrix are cut into slabs.
#[derive(Debug, Clone)]
pub(crate) struct Slabs {
    schedule: FactorSchedule,
    /// Block columns of a slab; the last may have fewer.
    width: usize,
}

/// Who computes, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computers {
    /// Threads of all processors.
    pub threads: u64,
    /// Processors copy the panels that they are sent.
    pub copies: bool,
    /// Bytes of an element.
    pub element: u64,
}

impl Slabs {
    /// Slabs of `width` block columns; of the number that these slabs are, they are the narrowest.
    pub(crate) fn new(schedule: &FactorSchedule, width: usize) -> Self {
        let count = schedule.blocks().count();
        let width = count.div_ceil(count.div_ceil(width.clamp(1, count)));
        Self { schedule: schedule.clone(), width }
    }

    /// The widest slabs that fit, if any do.
    pub(crate) fn widest(schedule: &FactorSchedule, fits: impl Fn(&Self) -> bool) -> Option<Self> {
        let (mut low, mut high) = (0, schedule.blocks().count());
        let of = |width| Self { schedule: schedule.clone(), width };
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(&of(middle)) { low = middle } else { high = middle - 1 }
        }
        // As many, but narrower: some processor may have more columns of one of them.
        let even = (low > 0).then(|| Self::new(schedule, low))?;
        Some(if fits(&even) { even } else { of(low) })
    }

    /// Block columns of the widest slab.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn factors(&self) -> Factors {
        self.schedule.factors()
    }

    pub(crate) fn columns(&self) -> &TileMap {
        self.schedule.blocks()
    }

    /// Number of slabs.
    pub(crate) fn count(&self) -> usize {
        self.columns().count().div_ceil(self.width)
    }

    /// Columns of the widest slab.
    pub(crate) fn column_count(&self) -> u64 {
        (self.width as u64 * self.columns().block()).min(self.columns().n())
    }

    /// The slabs from a block column on.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (count, width) = (self.columns().count(), self.width);
        (first..count).step_by(width).map(move |start| start..(start + width).min(count))
    }

    /// The schedule of a slab.
    pub(crate) fn schedule(&self, range: Range<usize>) -> FactorSchedule {
        FactorSchedule::new(self.factors(), self.columns().slab(range))
    }

    /// Rows of a slab that its factorisation needs.
    pub(crate) fn rows(&self, range: &Range<usize>) -> Span {
        let n = self.columns().n();
        let first = if self.factors() == Factors::Lu { 0 } else { self.columns().span(range.start).start };
        Span::new(first, n)
    }

    /// Bytes that each processor holds at most, by rank: its columns of a slab, and panels.
    pub(crate) fn processor_bytes(&self, element: u64) -> Vec<u64> {
        let mut most = vec![0; self.columns().processors()];
        for range in self.from(0) {
            let schedule = self.schedule(range);
            for (rank, most) in most.iter_mut().enumerate() {
                *most = (*most).max(schedule.memory(Rank(rank)) * element);
            }
        }
        most
    }

    /// Predicted peak memory of the process in bytes: the columns of a slab; and the larger of what its factorisation
    /// takes (panels that are read, that the slowest processor has not used yet, and that is factored, and what kernels
    /// pack) and what the verification takes (vectors, and the band or the panel that is read).
    pub(crate) fn process_bytes(&self, computers: Computers) -> u64 {
        let Computers { threads, copies, element } = computers;
        let (n, block) = (self.columns().n(), self.columns().block().min(self.columns().n()));
        let (wide, p) = (self.column_count(), self.columns().processors() as u64);
        let slab = n * wide * element;
        let record = (n + 3) * block * element;
        let vectors = (n + 2 * wide) * TOGETHER as u64 * 8;
        let band = band_elements(n, wide) * element;
        let packed = PACKED[0].min(n * block * element) + PACKED[1].min(block * wide * element);
        // Two are read, and a copy is factored.
        let panels = 3 + self.most_panels() * if copies { p } else { 1 };
        let running = 2 * vectors + panels * record + block * wide * element + threads * (packed + THREAD);
        let multiplying = (6 + 3 * p) * vectors + band.max(record);
        BASE + slab + running.max(multiplying) + 64 * n
    }

    /// The most panels of a slab that are in memory together: a processor that has just begun with one lets others go
    /// on up to its own next one.
    fn most_panels(&self) -> u64 {
        let of = |range: Range<usize>| {
            let columns = self.columns();
            let gaps = (0..columns.processors()).map(|rank| {
                let own = columns.own(Rank(rank)).iter().filter(|column| range.contains(column));
                let mut before = range.start;
                let gap = own.map(|&column| column + 1 - std::mem::replace(&mut before, column));
                gap.max().unwrap_or(0)
            });
            gaps.max().unwrap_or(0).min(range.len())
        };
        self.from(0).map(of).max().unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests;

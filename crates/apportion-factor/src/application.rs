//! A factorisation as an [`Executable`]: the block columns and panels of each processor, and what is computed with
//! them.

use crate::LocalColumns;
use crate::device_columns::{DeviceColumns, DevicePlace, Rectangle};
use crate::first_touch::{make_room, room_for, zeros};
use crate::slabs::{PanelReader, Reading};
use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::factor::{
    BlockDiagonal, Triangle, cholesky_panel, exchange_rows, ldlt_panel, lu_panel, solve_triangle,
};
use apportion::kernels::{Kernel, Real, View, ViewMut};
use apportion::plan::Factors;
use apportion::run::parallel;
use apportion::schedule::{
    Application, Executable, FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece, Parcel, StepOf,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The factorisation of this process's block columns.
pub(crate) struct Elimination<'a, T> {
    schedule: &'a FactorSchedule,
    kernel: Kernel<T>,
    /// By rank, until the processor takes them.
    columns: Vec<Mutex<Option<LocalColumns<T>>>>,
    /// By rank: the devices of processors; empty if there are none.
    devices: Vec<Option<DevicePlace>>,
    /// What the processors of this process pass on in place. None where panels are copied.
    shared: Option<Shared<T>>,
    /// Gives the panels left of a slab.
    earlier: Option<Arc<PanelReader<T>>>,
}

/// What travels between the processors of one process, by block column.
struct Shared<T> {
    panels: Vec<Mutex<Option<SharedPanel<T>>>>,
    /// The memory of the columns that are given away.
    columns: Vec<Mutex<Option<Vec<T>>>>,
}

/// A panel that is read in place.
struct SharedPanel<T> {
    parcel: Parcel<T>,
    /// What goes back to its owner, if it was taken over.
    back: Option<Parcel<T>>,
    /// The processors that have not taken it yet.
    readers: usize,
}

impl<'a, T: Real> Elimination<'a, T> {
    /// The factorisation of these block columns. `shares` says that the processors of this process read panels in
    /// place.
    pub(crate) fn new(
        schedule: &'a FactorSchedule,
        kernel: Kernel<T>,
        columns: Vec<LocalColumns<T>>,
        shares: bool,
    ) -> Self {
        let mut by_rank: Vec<Mutex<Option<LocalColumns<T>>>> =
            (0..schedule.processors()).map(|_| Mutex::new(None)).collect();
        for local in columns {
            let rank = local.rank().0;
            by_rank[rank] = Mutex::new(Some(local));
        }
        let count = schedule.columns().count();
        let shared = || Shared {
            panels: (0..count).map(|_| Mutex::new(None)).collect(),
            columns: (0..count).map(|_| Mutex::new(None)).collect(),
        };
        let devices = Vec::new();
        Self { schedule, kernel, columns: by_rank, devices, shared: shares.then(shared), earlier: None }
    }

    /// The same, some of whose processors are devices, by rank.
    pub(crate) fn on_devices(self, devices: Vec<Option<DevicePlace>>) -> Self {
        Self { devices, ..self }
    }

    /// The same for a slab, with the panels left of it.
    pub(crate) fn with_earlier(self, earlier: Arc<PanelReader<T>>) -> Self {
        Self { earlier: Some(earlier), ..self }
    }

    fn slot(&self, column: usize) -> MutexGuard<'_, Option<SharedPanel<T>>> {
        let shared = self.shared.as_ref().expect("processors read panels in place");
        shared.panels[column].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn column_slot(&self, column: usize) -> MutexGuard<'_, Option<Vec<T>>> {
        let shared = self.shared.as_ref().expect("processors pass columns on in place");
        shared.columns[column].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_lu(&self) -> bool {
        self.schedule.factors() == Factors::Lu
    }

    /// Number of rows of the matrix from the first row of a block column on, and its columns.
    fn panel_size(&self, column: usize) -> [usize; 2] {
        let span = self.schedule.columns().span(column);
        [(self.schedule.columns().n() - span.start) as usize, span.len() as usize]
    }

    /// Where the parts of a panel are in its memory.
    fn panel_memory(&self, column: usize) -> PanelMemory {
        let (columns, factors) = (self.schedule.columns(), self.schedule.factors());
        let ([rows, width], marks) = (self.panel_size(column), columns.panel_marks(factors, column) as usize);
        let back = match columns.is_taken_over(column) {
            true => columns.rows_given_back(factors, column).len() as usize * width,
            false => 0,
        };
        let above = if self.is_lu() { back } else { 0 };
        // The marks take the place of the last elements in front of the rows that travel, once those are copied.
        let in_front = if self.is_lu() { above } else { width * width };
        let room = marks.saturating_sub(in_front);
        let panel = room + above..room + above + rows * width;
        PanelMemory { marks: room + in_front - marks..room + in_front, back: room..room + back, panel }
    }

    /// The memory of the first panel that a processor makes room for, and of the next one, which is factored while others
    /// use the first. Slabs are small beside what they read.
    fn first_panels(&self, rank: Rank) -> BTreeMap<usize, Vec<T>> {
        let columns = self.schedule.columns();
        // Where panels are read in place, their owner gives the memory of those that are taken over.
        let gives = |column: usize| {
            if self.shared.is_some() { columns.owner(column) } else { columns.factorer(column) }
        };
        let mut given = (columns.first()..columns.count()).filter(|&column| gives(column) == rank);
        let first = given.next().filter(|_| self.earlier.is_none());
        let next = given.next().filter(|next| first.is_some_and(|first| first + 1 == *next));
        let with_memory = |column| (column, zeros(self.panel_memory(column).panel.end));
        first.into_iter().chain(next).map(with_memory).collect()
    }

    /// The memory of a panel.
    fn memory_of(&self, held: &mut ProcessorData<T>, column: usize) -> Vec<T> {
        let first = held.first_panels.remove(&column);
        first.unwrap_or_else(|| vec![T::ZERO; self.panel_memory(column).panel.end])
    }

    /// Factors a panel, in memory of its own, from which it travels: the marks, then its rows.
    fn factor_panel(&self, held: &mut ProcessorData<T>, column: usize, threads: usize) -> Result<Parcel<T>> {
        let [rows, width] = self.panel_size(column);
        let columns = self.schedule.columns();
        let PanelMemory { marks, back, panel: place } = self.panel_memory(column);
        let first = held.columns.rows() - rows;
        let taken = held.taken.remove(&column);
        let own = taken.is_none().then(|| {
            let place = columns.places(held.rank(), column..column + 1);
            Rectangle { row: first, cols: held.columns.range(place) }
        });
        let mut memory = taken.unwrap_or_else(|| self.memory_of(held, column));
        let mut numbers = Vec::new();
        if held.failed.is_none() {
            let panel = &mut memory[place];
            if let Some(own) = &own {
                if let Some(device) = &mut held.device {
                    device.fetch(&mut held.columns, own.clone())?;
                }
                held.copy(own, panel);
            }
            let mut pivots = vec![0; width];
            let failed = match self.schedule.factors() {
                Factors::Cholesky => cholesky_together(panel, width, threads)?,
                Factors::Lu => lu_panel(ViewMut::dense(panel, rows, width), &mut pivots),
                Factors::Ldlt => ldlt_panel(ViewMut::dense(panel, rows, width), &mut pivots).err(),
            };
            held.failed = failed.map(|j| columns.span(column).start + j as u64);
            if let Some(own) = &own {
                held.put(own.row, own.cols.clone(), panel);
            }
            let block = View::dense(panel, rows, width).tile(0, 0, width, width);
            numbers = numbers_with_panel(self.schedule.factors(), block, &pivots);
            held.pivots[column] = pivots;
        }
        if !back.is_empty() {
            held.back.insert(column, Parcel::new(Arc::new(memory[back].to_vec())));
        }
        memory[marks.start] = T::from_f64(held.failed.map_or(0.0, |j| (j + 1) as f64));
        memory[marks.start + 1..][..numbers.len()].copy_from_slice(&numbers);
        let end = memory.len();
        Ok(Parcel::new(Arc::new(memory)).part(marks.start..end))
    }

    /// Updates some block columns with a panel.
    fn update(
        &self,
        held: &mut ProcessorData<T>,
        panel: usize,
        columns: Range<usize>,
        threads: usize,
    ) -> Result<()> {
        let places = self.schedule.columns().places(held.rank(), columns.clone());
        let here = held.columns.range(places.clone());
        let taken = held.taken.contains_key(&columns.start);
        if held.failed.is_some() || here.is_empty() && !taken {
            return Ok(());
        }
        let rectangles = self.schedule.rectangles(held.rank(), columns.clone());
        let [rows, width] = self.panel_size(panel);
        let parcel = held.panels.get(&panel).expect("a panel is here when it is used").clone();
        if taken {
            return self.update_taken(held, columns.start, &parcel, threads);
        }
        let marks = self.schedule.columns().panel_marks(self.schedule.factors(), panel) as usize;
        let (marks, elements) = parcel.elements().split_at(marks);
        let ProcessorData { kernel, columns, device, pivots, factor, .. } = held;
        let first = columns.rows() - rows;
        if self.is_lu() {
            let l = View::dense(elements, rows, width);
            if let Some(device) = device {
                let (corner, part) =
                    ([first + width, here.start], Rectangle { row: first, cols: here.clone() });
                device.solve(columns, &part, &pivots[panel], |mut right, pivots| {
                    solve_rows(l, pivots, right.reborrow(), threads)?;
                    negate_rows(width, &mut right, factor);
                    Ok(())
                })?;
                let (below, u) =
                    (l.tile(width, 0, rows - width, width), View::dense(factor, width, here.len()));
                let part = Rectangle { row: first + width, ..part };
                return device.update(corner, below, u, std::iter::once(part));
            }
            let mut own = columns.view_mut();
            let right = own.tile(first, here.start, rows, here.len());
            return eliminate(*kernel, l, &pivots[panel], right, factor, threads);
        }
        let l = View::dense(elements, rows - width, width);
        let below = first + width;
        // The rows of the panel that are those of the columns here.
        let trapezoid = places.map(|place| {
            let (span, start) = (columns.spans()[place], columns.range(place..place + 1).start);
            Step { row: span.start as usize - below, col: start - here.start, width: span.len() as usize }
        });
        let steps: Vec<Step> = trapezoid.collect();
        let d = (self.schedule.factors() == Factors::Ldlt).then(|| BlockDiagonal::from_elements(&marks[1..]));
        turn_rows(l, d, &steps, factor);
        let u = View::dense(factor, width, here.len());
        if let Some(device) = device {
            let rectangle = |places: Range<usize>| Rectangle {
                row: columns.spans()[places.start].start as usize,
                cols: columns.range(places),
            };
            return device.update([below, here.start], l, u, rectangles.map(rectangle));
        }
        let mut own = columns.view_mut();
        let c = own.tile(below, here.start, rows - width, here.len());
        update_trapezoid(*kernel, [l, u], c, &steps, threads)
    }

    /// Updates a block column that was taken over with the panel left of it.
    fn update_taken(
        &self,
        held: &mut ProcessorData<T>,
        column: usize,
        parcel: &Parcel<T>,
        threads: usize,
    ) -> Result<()> {
        let (panel, [below, across]) = (column - 1, self.panel_size(column));
        let [rows, width] = self.panel_size(panel);
        let marks = self.schedule.columns().panel_marks(self.schedule.factors(), panel) as usize;
        let (marks, elements) = parcel.elements().split_at(marks);
        let places = self.panel_memory(column);
        let ProcessorData { kernel, taken, pivots, factor, .. } = held;
        let memory = taken.get_mut(&column).expect("it is updated once it is here");
        if self.is_lu() {
            let right = ViewMut::dense(&mut memory[places.back.start..], rows, across);
            return eliminate(
                *kernel,
                View::dense(elements, rows, width),
                &pivots[panel],
                right,
                factor,
                threads,
            );
        }
        let l = View::dense(elements, below, width);
        let steps = [Step { row: 0, col: 0, width: across }];
        let d = (self.schedule.factors() == Factors::Ldlt).then(|| BlockDiagonal::from_elements(&marks[1..]));
        turn_rows(l, d, &steps, factor);
        let (u, c) =
            (View::dense(factor, width, across), ViewMut::dense(&mut memory[places.panel], below, across));
        update_trapezoid(*kernel, [l, u], c, &steps, threads)
    }

    /// The rows of a processor's own block column that another one takes over.
    fn rows_taken_over(&self, held: &ProcessorData<T>, column: usize) -> Rectangle {
        let columns = self.schedule.columns();
        let place = columns.places(held.rank(), column..column + 1);
        let rows = columns.rows_taken_over(self.schedule.factors(), column);
        Rectangle { row: rows.start as usize, cols: held.columns.range(place) }
    }

    /// Copies an own block column for the processor that takes it over, or fetches it from the device.
    fn give_away(&self, held: &mut ProcessorData<T>, column: usize) -> Result<()> {
        let part = self.rows_taken_over(held, column);
        if let Some(device) = &mut held.device {
            device.fetch(&mut held.columns, part.clone())?;
        }
        // Where panels are copied, this is when the message is packed.
        if self.shared.is_some() {
            let mut memory = self.memory_of(held, column);
            held.copy(&part, &mut memory[self.panel_memory(column).back.start..]);
            *self.column_slot(column) = Some(memory);
        }
        Ok(())
    }

    /// Keeps the memory of a block column that it takes over.
    fn take_over(&self, held: &mut ProcessorData<T>, column: usize, memory: Vec<T>) {
        held.count(self.elements_of_taken(column));
        held.taken.insert(column, memory);
    }

    /// What counts of a block column that is taken over, as a panel too.
    fn elements_of_taken(&self, column: usize) -> usize {
        let PanelMemory { marks, back, panel } = self.panel_memory(column);
        if self.is_lu() { marks.len() + back.len() + panel.len() } else { marks.len() + panel.len() }
    }

    /// Puts what comes back of a block column besides the panel.
    fn put_back(&self, held: &mut ProcessorData<T>, column: usize, elements: &[T]) {
        let part = self.rows_taken_over(held, column);
        held.put(part.row, part.cols, elements);
    }

    /// Exchanges rows as all panels right of block columns demand; each thread in columns of its own.
    fn exchange(&self, held: &mut ProcessorData<T>, threads: usize) -> Result<()> {
        if held.failed.is_some() {
            return Ok(());
        }
        let (columns, rank) = (self.schedule.columns(), held.rank());
        let ProcessorData { columns: own, pivots, .. } = held;
        let (rows, width) = (own.rows(), own.width());
        // The columns here that are left of each panel.
        let left: Vec<usize> =
            (0..columns.count()).map(|panel| own.range(columns.places(rank, 0..panel)).len()).collect();
        let count = threads.min(width.div_ceil(64)).max(1);
        let cut = |t: usize| t * width / count;
        let rect =
            |t: usize| Rect::new(Span::new(0, rows as u64), Span::new(cut(t) as u64, cut(t + 1) as u64));
        let tiles = own.view_mut().into_tiles(&(0..count).map(rect).collect::<Vec<_>>());
        parallel::all(tiles.into_iter().enumerate().collect(), |(t, mut tile): (usize, ViewMut<T>)| {
            for (panel, pivots) in pivots.iter().enumerate() {
                let across = left[panel].clamp(cut(t), cut(t + 1)) - cut(t);
                if across > 0 {
                    let [rows_here, _] = self.panel_size(panel);
                    exchange_rows(tile.tile(rows - rows_here, 0, rows_here, across), pivots);
                }
            }
        })
    }

    /// Takes a panel from its file if it is left of this slab.
    fn take_earlier(&self, held: &mut ProcessorData<T>, column: usize) -> Result<()> {
        let Some(reading) = held.earlier.as_mut().filter(|_| column < self.schedule.columns().first()) else {
            return Ok(());
        };
        let parcel = reading.take(column)?;
        let marks = self.schedule.columns().panel_marks(self.schedule.factors(), column);
        let elements = parcel.elements().len() as u64 - marks;
        self.keep(held, &PanelPiece { column, part: PanelPart::Whole, marks, elements }, parcel);
        Ok(())
    }

    /// Takes the marks of a panel, and keeps it if it came whole.
    fn keep(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, parcel: Parcel<T>) {
        let marks = &parcel.elements()[..piece.marks as usize];
        let failed = marks[0].to_f64() as u64;
        if failed > 0 {
            held.failed = held.failed.or(Some(failed - 1));
        }
        if self.is_lu() {
            held.pivots[piece.column] = marks[1..].iter().map(|pivot| pivot.to_f64() as i64).collect();
        }
        if piece.elements > 0 {
            let columns = self.schedule.columns();
            if columns.owner(piece.column) == held.rank() && columns.is_taken_over(piece.column) {
                let rows = columns.panel_rows(self.schedule.factors(), piece.column);
                let place = columns.places(held.rank(), piece.column..piece.column + 1);
                let cols = held.columns.range(place);
                held.put(rows.start as usize, cols, &parcel.elements()[piece.marks as usize..]);
            }
            held.insert(piece.column, parcel);
        }
    }
}

/// Where the parts of a panel are in its memory.
struct PanelMemory {
    /// What travels in front of the rows of the panel.
    marks: Range<usize>,
    /// What goes back to the owner besides, until the marks are there: in front of the panel or the first of its rows.
    back: Range<usize>,
    /// Its rows from the diagonal block on.
    panel: Range<usize>,
}

/// The numbers that travel with a factored panel after the mark of failure: the pivots of LU, or D of L D L^T.
pub(crate) fn numbers_with_panel<T: Real>(factors: Factors, block: View<T>, pivots: &[i64]) -> Vec<T> {
    match factors {
        Factors::Cholesky => Vec::new(),
        Factors::Lu => pivots.iter().map(|pivot| T::from_f64(*pivot as f64)).collect(),
        Factors::Ldlt => BlockDiagonal::of_panel(block, pivots).into_elements(),
    }
}

/// Puts -D L^T of the rows of L that are those of some block columns side by side.
fn turn_rows<T: Real>(l: View<T>, d: Option<BlockDiagonal<T>>, steps: &[Step], factor: &mut Vec<T>) {
    let (width, across) = (l.cols(), steps.last().map_or(0, |last| last.col + last.width));
    factor.clear();
    factor.resize(width * across, T::ZERO);
    let mut product = vec![T::ZERO; width];
    for Step { row, col, width } in steps {
        for i in 0..*width {
            match &d {
                Some(d) => d.multiply(l.row(row + i), &mut product),
                None => product.copy_from_slice(l.row(row + i)),
            }
            for (p, x) in product.iter().enumerate() {
                factor[p * across + col + i] = -*x;
            }
        }
    }
}

/// C := C + L U for block columns from their diagonals on, whose rows are those of C.
pub(crate) fn update_trapezoid<T: Real>(
    kernel: Kernel<T>,
    [l, u]: [View<T>; 2],
    c: ViewMut<T>,
    steps: &[Step],
    threads: usize,
) -> Result<()> {
    let (mut rest, mut bands) = (c, Vec::new());
    for band in bands_of(steps, l.rows(), threads) {
        let (upper, lower) = rest.split_at_row(band.len());
        rest = lower;
        bands.push((band, upper));
    }
    parallel::all(bands, |(band, c)| {
        let top = band.start;
        Trapezoid { kernel, l, u, c, top }.update(steps, band);
    })
}

/// Factors a panel of `width` columns; returns the column that cannot be. Each thread factors the diagonal block, and
/// with it some of the rows below: the same bytes as on one.
pub(crate) fn cholesky_together<T: Real>(
    panel: &mut [T],
    width: usize,
    threads: usize,
) -> Result<Option<usize>> {
    let factor = |rows: &mut [T]| {
        let height = rows.len() / width;
        cholesky_panel(ViewMut::dense(rows, height, width)).err()
    };
    let below = panel.len() / width - width;
    let count = threads.min(below / (4 * width)).max(1);
    if count == 1 {
        return Ok(factor(panel));
    }
    let diagonal = panel[..width * width].to_vec();
    let (mine, rest) = panel.split_at_mut((width + below / count) * width);
    let mut failed = None;
    let mut parts = vec![(mine, Some(&mut failed))];
    let height = (below - below / count).div_ceil(count - 1);
    parts.extend(rest.chunks_mut(height * width).map(|rows| (rows, None)));
    parallel::all(parts, |(rows, failed): (&mut [T], Option<&mut Option<usize>>)| match failed {
        Some(failed) => *failed = factor(rows),
        None => {
            let mut whole = [&diagonal, &*rows].concat();
            // Where the diagonal block cannot be factored, the first thread says so.
            if factor(&mut whole).is_none() {
                rows.copy_from_slice(&whole[width * width..]);
            }
        }
    })?;
    Ok(failed)
}

/// Exchanges rows of the columns right of a panel, and solves for those of U.
pub(crate) fn solve_rows<T: Real>(
    l: View<T>,
    pivots: &[i64],
    right: ViewMut<T>,
    threads: usize,
) -> Result<()> {
    let (rows, width, across) = (right.rows(), l.cols(), right.cols());
    let count = threads.min(across.div_ceil(64)).max(1);
    let rect = |t: usize| {
        let cols = Span::new((t * across / count) as u64, ((t + 1) * across / count) as u64);
        Rect::new(Span::new(0, rows as u64), cols)
    };
    let tiles = right.into_tiles(&(0..count).map(rect).collect::<Vec<_>>());
    parallel::all(tiles, |mut tile: ViewMut<T>| {
        exchange_rows(tile.reborrow(), pivots);
        let (upper, _) = tile.split_at_row(width);
        solve_triangle(Triangle::UnitLower, l.tile(0, 0, width, width), upper);
    })
}

/// The first rows, negative.
pub(crate) fn negate_rows<T: Real>(count: usize, rows: &mut ViewMut<T>, negative: &mut Vec<T>) {
    negative.clear();
    (0..count).for_each(|i| negative.extend(rows.row(i).iter().map(|x| -*x)));
}

/// Exchanges rows of the columns right of a panel, solves for the rows of U, and updates those below.
fn eliminate<T: Real>(
    kernel: Kernel<T>,
    l: View<T>,
    pivots: &[i64],
    mut right: ViewMut<T>,
    factor: &mut Vec<T>,
    threads: usize,
) -> Result<()> {
    let (rows, width, across) = (l.rows(), l.cols(), right.cols());
    solve_rows(l, pivots, right.reborrow(), threads)?;
    negate_rows(width, &mut right, factor);
    let (_, lower) = right.split_at_row(width);
    let u = View::dense(factor, width, across);
    update_rows(kernel, l.tile(width, 0, rows - width, width), u, lower, threads)
}

/// C := C + L U; each thread in rows of its own.
pub(crate) fn update_rows<T: Real>(
    kernel: Kernel<T>,
    l: View<T>,
    u: View<T>,
    c: ViewMut<T>,
    threads: usize,
) -> Result<()> {
    let (rows, width) = (l.rows(), l.cols());
    let count = threads.min(rows).max(1);
    let (mut rest, mut parts) = (c, Vec::new());
    for t in 0..count {
        let (first, end) = (t * rows / count, (t + 1) * rows / count);
        let (mine, others) = rest.split_at_row(end - first);
        rest = others;
        parts.push((l.tile(first, 0, end - first, width), mine));
    }
    parallel::all(parts, |(l, c)| kernel.update(l, u, c))
}

/// A block column of the trapezoid below a panel of a symmetric matrix: its rows begin at the diagonal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// First row, below the panel's diagonal block.
    pub row: usize,
    /// First column here.
    pub col: usize,
    pub width: usize,
}

/// Bands of rows with about equal parts of a trapezoid.
pub(crate) fn bands_of(steps: &[Step], rows: usize, count: usize) -> Vec<Range<usize>> {
    let area = |end: usize| steps.iter().map(|step| end.saturating_sub(step.row) * step.width).sum::<usize>();
    let all = area(rows);
    let count = count.max(1);
    let cut = |t: usize| {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = usize::midpoint(low, high);
            if area(middle) * count < all * t { low = middle + 1 } else { high = middle }
        }
        low
    };
    let cuts: Vec<usize> = (0..=count).map(|t| if t == count { rows } else { cut(t) }).collect();
    cuts.windows(2).map(|two| two[0]..two[1]).collect()
}

/// C := C + L U for the elements of C from the diagonal of the matrix down.
pub(crate) struct Trapezoid<'a, 'c, T> {
    pub kernel: Kernel<T>,
    pub l: View<'a, T>,
    pub u: View<'a, T>,
    pub c: ViewMut<'c, T>,
    /// The row of the first row of C.
    pub top: usize,
}

impl<T: Real> Trapezoid<'_, '_, T> {
    /// Updates some block columns in these rows. What lies below the last of them is as wide as they all are: wide
    /// products, and narrow ones for the rest, which is cut in halves.
    pub fn update(&mut self, steps: &[Step], rows: Range<usize>) {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        if let [_] = steps {
            return self.rectangle(first, last, rows.start.max(first.row)..rows.end);
        }
        let (left, right) = steps.split_at(steps.len() / 2);
        let cut = right[0].row.clamp(rows.start, rows.end);
        self.update(left, rows.start..cut);
        self.rectangle(first, &left[left.len() - 1], cut..rows.end);
        self.update(right, cut..rows.end);
    }

    fn rectangle(&mut self, first: &Step, last: &Step, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let (cols, width) = (first.col..last.col + last.width, self.l.cols());
        let l = self.l.tile(rows.start, 0, rows.len(), width);
        let u = self.u.tile(0, cols.start, width, cols.len());
        self.kernel.update(l, u, self.c.tile(rows.start - self.top, cols.start, rows.len(), cols.len()));
    }
}

/// What one processor holds.
pub(crate) struct ProcessorData<T> {
    kernel: Kernel<T>,
    pub(crate) columns: LocalColumns<T>,
    /// The same on a device, if the processor is one; each becomes final on the host.
    pub(crate) device: Option<DeviceColumns<T>>,
    /// Panels in use, by block column.
    pub(crate) panels: BTreeMap<usize, Parcel<T>>,
    /// The memory of block columns that it has taken over, until they are factored.
    taken: BTreeMap<usize, Vec<T>>,
    /// What goes back of them to their owners, besides the panel.
    back: BTreeMap<usize, Parcel<T>>,
    /// By block column, of L D L^T the own ones only: with which row, counted from the panel's first, each of its rows
    /// was exchanged.
    pub(crate) pivots: Vec<Vec<i64>>,
    /// The column that cannot be factored, once it is known.
    pub(crate) failed: Option<u64>,
    /// Where it takes the panels left of its slab from.
    earlier: Option<Reading<T>>,
    /// The factor of an update that is computed from the panel.
    factor: Vec<T>,
    /// The memory of the first panels that it makes room for. Later ones are where earlier ones were.
    first_panels: BTreeMap<usize, Vec<T>>,
    panel_elements: usize,
    most_panel_elements: usize,
}

impl<T: Real> ProcessorData<T> {
    fn rank(&self) -> Rank {
        self.columns.rank()
    }

    fn count(&mut self, elements: usize) {
        self.panel_elements += elements;
        self.most_panel_elements = self.most_panel_elements.max(self.panel_elements);
    }

    pub(crate) fn insert(&mut self, column: usize, parcel: Parcel<T>) {
        self.count(parcel.elements().len());
        self.panels.insert(column, parcel);
    }

    pub(crate) fn drop_panel(&mut self, column: usize) {
        let parcels = [self.panels.remove(&column), self.back.remove(&column)];
        self.panel_elements -= parcels.iter().flatten().map(|parcel| parcel.elements().len()).sum::<usize>();
    }

    /// Copies some columns from a row on.
    fn copy(&self, part: &Rectangle, out: &mut [T]) {
        let view = self.columns.view();
        for (i, row) in out.chunks_exact_mut(part.cols.len()).enumerate() {
            row.copy_from_slice(&view.row(part.row + i)[part.cols.clone()]);
        }
    }

    /// Puts elements, row by row, into some columns from a row on.
    fn put(&mut self, first: usize, cols: Range<usize>, elements: &[T]) {
        let mut own = self.columns.view_mut();
        for (i, row) in elements.chunks_exact(cols.len()).enumerate() {
            own.row(first + i)[cols.clone()].copy_from_slice(row);
        }
    }
}

impl<T: Real> Application for Elimination<'_, T> {
    type Piece = PanelPiece;
    type Work = FactorWork;

    fn processors(&self) -> usize {
        self.schedule.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        self.schedule.steps(rank)
    }

    fn overlaps(&self) -> bool {
        self.schedule.overlaps()
    }

    fn share(&self, rank: Rank) -> f64 {
        self.schedule.share(rank)
    }
}

impl<T: Real> Executable for Elimination<'_, T> {
    type Element = T;
    type Local<'l>
        = ProcessorData<T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> ProcessorData<T> {
        let columns = self.columns[rank.0].lock().unwrap_or_else(PoisonError::into_inner).take();
        let columns = columns.expect("each processor takes its block columns once");
        let place = self.devices.get(rank.0).and_then(Option::as_ref).filter(|_| columns.width() > 0);
        let block = self.schedule.columns().span(0).len() as usize;
        let device = place.map(|place| DeviceColumns::new(place, &self.kernel, &columns, block));
        let kernel = self.kernel.on(rank);
        // Slabs are updated with the panels left of them too.
        let [rows, width] = self.panel_size(0);
        let panel = self.schedule.columns().factored(rank).next().map(|column| self.panel_size(column)[0]);
        let across = columns.width().max(panel.map_or(0, |_| width));
        make_room(self.schedule.factors(), kernel, [rows, width, across], panel);
        ProcessorData {
            kernel,
            columns,
            device,
            panels: BTreeMap::new(),
            taken: BTreeMap::new(),
            back: BTreeMap::new(),
            pivots: vec![Vec::new(); self.schedule.columns().count()],
            failed: None,
            earlier: self
                .earlier
                .as_ref()
                .filter(|_| !self.schedule.columns().own(rank).is_empty())
                .map(Reading::of),
            factor: room_for(width * across),
            first_panels: self.first_panels(rank),
            panel_elements: 0,
            most_panel_elements: 0,
        }
    }

    fn pack(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, out: &mut [T]) {
        let parcel = match piece.part {
            PanelPart::Column => return held.copy(&self.rows_taken_over(held, piece.column), out),
            PanelPart::Back => held.back.get(&piece.column),
            _ => held.panels.get(&piece.column),
        };
        let parcel = parcel.expect("a panel is sent when it was factored");
        out.copy_from_slice(&parcel.elements()[..out.len()]);
    }

    fn unpack(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, elements: &[T]) {
        match piece.part {
            PanelPart::Column => {
                let mut memory = self.memory_of(held, piece.column);
                memory[self.panel_memory(piece.column).back.start..].copy_from_slice(elements);
                self.take_over(held, piece.column, memory);
            }
            PanelPart::Back => self.put_back(held, piece.column, elements),
            _ => self.keep(held, piece, Parcel::new(Arc::new(elements.to_vec()))),
        }
    }

    fn accept(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, parcel: &Parcel<T>) {
        match piece.part {
            PanelPart::Column | PanelPart::Back => self.unpack(held, piece, parcel.elements()),
            _ => self.keep(held, piece, parcel.clone()),
        }
    }

    fn compute(&self, held: &mut ProcessorData<T>, work: &FactorWork, threads: usize) -> Result<f64> {
        match &work.task {
            FactorTask::Panel(column) => {
                let taken = self.schedule.columns().is_taken_over(*column);
                let parcel = self.factor_panel(held, *column, threads)?;
                if self.shared.is_some() {
                    let readers = self.schedule.messages(*column).len();
                    if readers > 0 {
                        let back = held.back.get(column).cloned();
                        *self.slot(*column) = Some(SharedPanel { parcel: parcel.clone(), back, readers });
                    }
                }
                if taken {
                    // It was counted when it came.
                    held.panels.insert(*column, parcel);
                } else {
                    held.insert(*column, parcel);
                }
            }
            FactorTask::Update { panel, columns } => {
                self.take_earlier(held, *panel)?;
                self.update(held, *panel, columns.clone(), threads)?;
            }
            FactorTask::GiveAway(column) => self.give_away(held, *column)?,
            FactorTask::Exchange => self.exchange(held, threads)?,
            FactorTask::Upper { .. } | FactorTask::ExchangeIn(_) => unreachable!("they are of tiles"),
        }
        Ok(held.device.as_mut().map_or(0.0, DeviceColumns::take_seconds))
    }

    fn free(&self, held: &mut ProcessorData<T>, piece: &PanelPiece) {
        held.drop_panel(piece.column);
    }

    fn device_bytes(&self, held: &ProcessorData<T>) -> [u64; 2] {
        held.device.as_ref().map_or([0; 2], DeviceColumns::moved)
    }

    fn peak_bytes(&self, held: &ProcessorData<T>) -> u64 {
        ((held.columns.elements().len() + held.most_panel_elements) * size_of::<T>()) as u64
    }

    fn shares_memory(&self) -> bool {
        self.shared.is_some()
    }

    fn take_shared(&self, held: &mut ProcessorData<T>, piece: &PanelPiece) {
        if piece.part == PanelPart::Column {
            let memory = self.column_slot(piece.column).take();
            return self.take_over(
                held,
                piece.column,
                memory.expect("a column is there before it is announced"),
            );
        }
        if piece.part == PanelPart::Back {
            let back = self.slot(piece.column).as_ref().and_then(|shared| shared.back.clone());
            let back = back.expect("a panel is there before it is announced");
            return self.put_back(held, piece.column, back.elements());
        }
        let parcel = {
            let mut slot = self.slot(piece.column);
            let shared = slot.as_mut().expect("a panel is there before it is announced");
            shared.readers -= 1;
            let parcel = shared.parcel.clone();
            if shared.readers == 0 {
                *slot = None;
            }
            parcel
        };
        self.keep(held, piece, parcel);
    }
}

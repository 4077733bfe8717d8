//! A factorisation as an [`Executable`]: the tiles and panels of each processor, and what is computed with them.
//!
//! Whole block columns are a special case: a panel comes in one parcel and is read where it is, also in the memory of another
//! processor of the process; a processor may be a device; and a slab takes panels left of it from a file.

use crate::LocalColumns;
use crate::device_columns::{DeviceColumns, DevicePlace, Rectangle};
use crate::first_touch::{make_room, room_for, zeros};
use crate::slabs::{PanelReader, Reading};
use crate::tile_kernels::{
    Step, factor_panel, negate_rows, numbers_with_panel, solve_rows, turn_rows, update_rows, update_trapezoid,
};
use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::factor::{BlockDiagonal, exchange_rows};
use apportion::kernels::{Kernel, Real, View, ViewMut};
use apportion::plan::{Factors, TileMap};
use apportion::run::parallel;
use apportion::schedule::{
    Application, Executable, FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece, Parcel, StepOf,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The factorisation of this process's block columns or tiles.
pub(crate) struct Elimination<'a, T> {
    schedule: &'a FactorSchedule,
    tiles: &'a TileMap,
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
    /// The factorisation of these block columns or tiles. `shares` says that the processors of this process read panels in
    /// place, if they are of whole block columns.
    pub(crate) fn new(
        schedule: &'a FactorSchedule,
        kernel: Kernel<T>,
        columns: Vec<LocalColumns<T>>,
        shares: bool,
    ) -> Self {
        let tiles = schedule.blocks();
        let mut by_rank: Vec<Mutex<Option<LocalColumns<T>>>> =
            (0..schedule.processors()).map(|_| Mutex::new(None)).collect();
        for local in columns {
            let rank = local.rank().0;
            by_rank[rank] = Mutex::new(Some(local));
        }
        let shared = || Shared {
            panels: (0..tiles.count()).map(|_| Mutex::new(None)).collect(),
            columns: (0..tiles.count()).map(|_| Mutex::new(None)).collect(),
        };
        let shared = (shares && tiles.are_columns()).then(shared);
        Self { schedule, tiles, kernel, columns: by_rank, devices: Vec::new(), shared, earlier: None }
    }

    /// The same, some of whose processors are devices, by rank, if they have whole block columns.
    pub(crate) fn on_devices(self, devices: Vec<Option<DevicePlace>>) -> Self {
        if self.tiles.are_columns() { Self { devices, ..self } } else { self }
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

    fn width(&self, column: usize) -> usize {
        self.tiles.span(column).len() as usize
    }

    fn marks(&self, column: usize) -> usize {
        self.tiles.panel_marks(self.schedule.factors(), column) as usize
    }

    /// The columns here of block columns in a range.
    fn across(&self, held: &ProcessorData<T>, columns: Range<usize>) -> Range<usize> {
        held.columns.range(self.tiles.places(held.rank(), columns))
    }

    /// Where the parts of a panel are in the memory of the processor that factors it.
    fn panel_memory(&self, rank: Rank, column: usize) -> PanelMemory {
        let (tiles, factors, marks, width) =
            (self.tiles, self.schedule.factors(), self.marks(column), self.width(column));
        let rows = tiles.length(&self.schedule.factored_rows(rank, column)) as usize;
        let back = match tiles.is_taken_over(column) {
            true => tiles.rows_given_back(factors, column).len() as usize * width,
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
        let tiles = self.tiles;
        // Where panels are read in place, their owner gives the memory of those that are taken over.
        let gives = |column: usize| {
            if self.shared.is_some() { tiles.panel_owner(column) } else { tiles.factorer(column) }
        };
        let mut given = (tiles.first()..tiles.count()).filter(|&column| gives(column) == rank);
        let first = given.next().filter(|_| self.earlier.is_none());
        let next = given.next().filter(|next| first.is_some_and(|first| first + 1 == *next));
        let with_memory = |column| (column, zeros(self.panel_memory(rank, column).panel.end));
        first.into_iter().chain(next).map(with_memory).collect()
    }

    /// The memory of a panel.
    fn memory_of(&self, held: &mut ProcessorData<T>, column: usize) -> Vec<T> {
        let first = held.first_panels.remove(&column);
        first.unwrap_or_else(|| vec![T::ZERO; self.panel_memory(held.rank(), column).panel.end])
    }

    /// Gives its own among some block rows of a block column: each row here, and where its elements are among those of all
    /// these rows.
    fn each_own(&self, rank: Rank, rows: &[usize], width: usize, mut give: impl FnMut(usize, Range<usize>)) {
        let mut before = 0;
        for &row in rows {
            let count = self.width(row);
            if self.tiles.rows(rank).binary_search(&row).is_ok() {
                let here = self.tiles.top(rank, row);
                (0..count).for_each(|i| give(here + i, (before + i) * width..(before + i + 1) * width));
            }
            before += count;
        }
    }

    /// Copies its own among some block rows of a block column, to their places among these.
    fn copy_own(&self, held: &ProcessorData<T>, column: usize, rows: &[usize], out: &mut [T]) {
        let (cols, view) = (self.across(held, column..column + 1), held.columns.view());
        if !cols.is_empty() {
            self.each_own(held.rank(), rows, cols.len(), |i, to| {
                out[to].copy_from_slice(&view.row(i)[cols.clone()]);
            });
        }
    }

    /// Puts its own among some block rows of a block column.
    fn put_own(&self, held: &mut ProcessorData<T>, column: usize, rows: &[usize], elements: &[T]) {
        let (cols, rank) = (self.across(held, column..column + 1), held.rank());
        if !cols.is_empty() {
            let mut view = held.columns.view_mut();
            self.each_own(rank, rows, cols.len(), |i, from| {
                view.row(i)[cols.clone()].copy_from_slice(&elements[from]);
            });
        }
    }

    /// Gives the elements of some block rows of a block column, all of which are among others: where they are in these and
    /// in those, block row by block row.
    fn among(
        &self,
        column: usize,
        all: &[usize],
        some: &[usize],
        mut copy: impl FnMut(Range<usize>, Range<usize>),
    ) {
        let (block, width) = (self.tiles.block() as usize, self.width(column));
        for (place, row) in some.iter().enumerate() {
            let within = all.binary_search(row).expect("block rows are among all");
            let elements = self.width(*row) * width;
            let [from, to] = [within, place].map(|place| place * block * width);
            copy(from..from + elements, to..to + elements);
        }
    }

    /// The elements of some block rows of a panel, if they are one below the other.
    fn neighbours<'p>(&self, panel: &'p Panel<T>, column: usize, rows: &[usize]) -> Option<&'p [T]> {
        let (marks, block, width) = (self.marks(column), self.tiles.block() as usize, self.width(column));
        let length = self.tiles.length(rows) as usize * width;
        panel.parts.iter().find_map(|part| {
            let place = part.rows.binary_search(rows.first()?).ok()?;
            let elements = &part.parcel.elements()[marks + place * block * width..];
            part.rows[place..].starts_with(rows).then(|| &elements[..length])
        })
    }

    /// The elements of a block row of a panel.
    fn panel_row<'p>(&self, panel: &'p Panel<T>, column: usize, row: usize) -> &'p [T] {
        self.neighbours(panel, column, &[row]).expect("rows of a panel are here when they are used")
    }

    /// The elements of some block rows of a panel, one below the other: where they are, or copied.
    fn panel_rows<'p>(
        &self,
        panel: &'p Panel<T>,
        column: usize,
        rows: &[usize],
        copied: &'p mut Vec<T>,
    ) -> &'p [T] {
        copied.clear();
        if let Some(elements) = self.neighbours(panel, column, rows) {
            return elements;
        }
        rows.iter().for_each(|&row| copied.extend_from_slice(self.panel_row(panel, column, row)));
        copied
    }

    /// The block rows below the diagonal tile of a block column.
    fn below(&self, column: usize) -> Vec<usize> {
        (column + 1..self.tiles.count()).collect()
    }

    /// Factors its part of a panel, in memory of its own, from which it travels: the marks, then its rows.
    fn factor(&self, held: &mut ProcessorData<T>, column: usize, threads: usize) -> Result<()> {
        let (factors, rank, width) = (self.schedule.factors(), held.rank(), self.width(column));
        let mut rows = self.schedule.factored_rows(rank, column).into_owned();
        let PanelMemory { marks, back, panel: place } = self.panel_memory(rank, column);
        let gathered = held.gathered.remove(&column);
        let counted = gathered.as_ref().map(|_| self.schedule.gathered_elements(rank, column) as usize);
        let mut memory = gathered.unwrap_or_else(|| self.memory_of(held, column));
        let mut numbers = Vec::new();
        if held.failed.is_none() {
            let panel = &mut memory[place];
            if let Some(device) = held.device.as_mut().filter(|_| counted.is_none()) {
                let cols = held.columns.range(self.tiles.places(rank, column..column + 1));
                device.fetch(&mut held.columns, Rectangle { row: self.tiles.top(rank, column), cols })?;
            }
            self.copy_own(held, column, &rows, panel);
            let mut pivots = vec![0; width];
            let failed = factor_panel(factors, panel, &mut pivots, threads)?;
            held.failed = failed.map(|j| self.tiles.span(column).start + j as u64);
            self.put_own(held, column, &rows, panel);
            numbers =
                numbers_with_panel(factors, View::dense(&panel[..width * width], width, width), &pivots);
            held.pivots[column] = pivots;
        }
        if !back.is_empty() {
            held.back.insert(column, Parcel::new(Arc::new(memory[back].to_vec())));
        }
        memory[marks.start] = T::from_f64(held.failed.map_or(0.0, |j| (j + 1) as f64));
        memory[marks.start + 1..][..numbers.len()].copy_from_slice(&numbers);
        let end = memory.len();
        let parcel = Parcel::new(Arc::new(memory)).part(marks.start..end);
        let readers = if self.shared.is_some() { self.schedule.readers(column) } else { 0 };
        if readers > 0 {
            let back = held.back.get(&column).cloned();
            *self.slot(column) = Some(SharedPanel { parcel: parcel.clone(), back, readers });
        }
        if !self.is_lu() {
            // The diagonal block does not travel.
            rows.remove(0);
        }
        let elements = counted.unwrap_or(parcel.elements().len());
        if counted.is_none() {
            held.count(elements);
        }
        held.panels.insert(column, Panel { parts: vec![PanelRows { rows, parcel }], elements });
        Ok(())
    }

    /// Updates some block columns with a panel; of LU in whole block columns, after it has exchanged rows and solved for
    /// those of U.
    fn update(
        &self,
        held: &mut ProcessorData<T>,
        panel: usize,
        columns: Range<usize>,
        threads: usize,
    ) -> Result<()> {
        let (tiles, rank, width) = (self.tiles, held.rank(), self.width(panel));
        let places = tiles.places(rank, columns.clone());
        let taken = tiles.is_taken_over(columns.start) && held.gathered.contains_key(&columns.start);
        let changed = if taken { vec![columns.start] } else { tiles.own(rank)[places.clone()].to_vec() };
        if held.failed.is_some() || changed.is_empty() {
            return Ok(());
        }
        let first = if self.is_lu() { panel + 1 } else { changed[0] };
        let (top, below) = (tiles.top(rank, panel), tiles.top(rank, first));
        let rows = tiles.rows_after(rank, first - 1);
        let (height, across) = (tiles.length(rows) as usize, tiles.length(&changed) as usize);
        let here = held.columns.range(places);
        let ProcessorData {
            kernel,
            columns: own,
            device,
            panels,
            gathered,
            pivots,
            lower,
            factor,
            upper,
            ..
        } = held;
        let source = panels.get(&panel).expect("a panel is here when it is used");
        let l = View::dense(self.panel_rows(source, panel, rows, lower), height, width);
        let mut taken_memory = gathered.get_mut(&columns.start).filter(|_| taken);
        let mut device = device.as_mut().filter(|_| !taken);
        // The block columns, or one that was taken over, from these rows on.
        let from = if self.is_lu() { top } else { below };
        if self.is_lu() && tiles.are_columns() {
            let diagonal = View::dense(self.panel_row(source, panel, panel), width, width);
            if let Some(device) = &mut device {
                let part = Rectangle { row: top, cols: here.clone() };
                device.solve(own, &part, &pivots[panel], |mut right, pivots| {
                    solve_rows(diagonal, pivots, right.reborrow(), threads)?;
                    negate_rows(width, &mut right, factor);
                    Ok(())
                })?;
                let part = Rectangle { row: below, ..part };
                let u = View::dense(factor, width, across);
                return device.update([below, here.start], l, u, std::iter::once(part));
            }
        }
        if !self.is_lu() {
            let d = (self.schedule.factors() == Factors::Ldlt).then(|| {
                let marks = &source.parts[0].parcel.elements()[..self.marks(panel)];
                BlockDiagonal::from_elements(&marks[1..])
            });
            let turned = changed.iter().flat_map(|&j| self.panel_row(source, panel, j).chunks_exact(width));
            turn_rows(turned, [width, across], d.as_ref(), factor);
        }
        if let Some(device) = device {
            let rectangles = self.schedule.rectangles(rank, columns);
            let rectangle = |places: Range<usize>| Rectangle {
                row: own.spans()[places.start].start as usize,
                cols: own.range(places),
            };
            let u = View::dense(factor, width, across);
            return device.update([below, here.start], l, u, rectangles.map(rectangle));
        }
        let mut whole = match &mut taken_memory {
            Some(memory) => {
                let PanelMemory { back, panel, .. } = self.panel_memory(rank, columns.start);
                let first = if self.is_lu() { back.start } else { panel.start };
                ViewMut::dense(&mut memory[first..], height + below - from, across)
            }
            None => own.view_mut(),
        };
        let [first, left] = if taken { [0, 0] } else { [from, here.start] };
        let mut c = whole.tile(first, left, height + below - from, across);
        if self.is_lu() {
            if tiles.are_columns() {
                let diagonal = View::dense(self.panel_row(source, panel, panel), width, width);
                solve_rows(diagonal, &pivots[panel], c.reborrow(), threads)?;
            }
            match upper {
                Some(upper) => {
                    factor.clear();
                    factor.extend(upper.elements()[..width * across].iter().map(|x| -*x));
                }
                None => negate_rows(width, &mut c, factor),
            }
            let (_, c) = c.split_at_row(below - from);
            return update_rows(*kernel, l, View::dense(factor, width, across), c, threads);
        }
        let mut col = 0;
        let step = |&column: &usize| {
            let (row, width) = (tiles.top(rank, column) - below, self.width(column));
            col += width;
            Step { row, col: col - width, width }
        };
        let steps: Vec<Step> = changed.iter().map(step).collect();
        update_trapezoid(*kernel, [l, View::dense(factor, width, across)], c, &steps, threads)
    }

    /// Copies an own block column for the processor that takes it over, or fetches it from the device.
    fn give_away(&self, held: &mut ProcessorData<T>, column: usize) -> Result<()> {
        let (rank, rows) = (held.rank(), self.schedule.unfactored_rows(held.rank(), column));
        if let Some(device) = &mut held.device {
            let cols = held.columns.range(self.tiles.places(rank, column..column + 1));
            device.fetch(&mut held.columns, Rectangle { row: self.tiles.top(rank, rows[0]), cols })?;
        }
        // Where panels are copied, this is when the message is packed.
        if self.shared.is_some() {
            let mut memory = self.memory_of(held, column);
            self.copy_own(held, column, &rows, &mut memory[self.panel_memory(rank, column).back.start..]);
            *self.column_slot(column) = Some(memory);
        }
        Ok(())
    }

    /// Keeps the memory of a block column that it takes over.
    fn take_over(&self, held: &mut ProcessorData<T>, column: usize, memory: Vec<T>) {
        held.count(self.schedule.gathered_elements(held.rank(), column) as usize);
        held.gathered.insert(column, memory);
    }

    /// Puts what comes back of a block column besides the panel.
    fn put_back(&self, held: &mut ProcessorData<T>, column: usize, elements: &[T]) {
        let row = if self.is_lu() { column - 1 } else { column };
        self.put_own(held, column, &[row], elements);
    }

    /// Exchanges rows as all panels right of whole block columns demand; each thread in columns of its own.
    fn exchange(&self, held: &mut ProcessorData<T>, threads: usize) -> Result<()> {
        if held.failed.is_some() {
            return Ok(());
        }
        let (tiles, rank) = (self.tiles, held.rank());
        let ProcessorData { columns: own, pivots, .. } = held;
        let (rows, width) = (own.rows(), own.width());
        // The columns here that are left of each panel.
        let left: Vec<usize> =
            (0..tiles.count()).map(|panel| own.range(tiles.places(rank, 0..panel)).len()).collect();
        let count = threads.min(width.div_ceil(64)).max(1);
        let cut = |t: usize| t * width / count;
        let rect =
            |t: usize| Rect::new(Span::new(0, rows as u64), Span::new(cut(t) as u64, cut(t + 1) as u64));
        let parts = own.view_mut().into_tiles(&(0..count).map(rect).collect::<Vec<_>>());
        parallel::all(parts.into_iter().enumerate().collect(), |(t, mut part): (usize, ViewMut<T>)| {
            for (panel, pivots) in pivots.iter().enumerate() {
                let across = left[panel].clamp(cut(t), cut(t + 1)) - cut(t);
                if across > 0 {
                    let first = tiles.span(panel).start as usize;
                    exchange_rows(part.tile(first, 0, rows - first, across), pivots);
                }
            }
        })
    }

    /// The places here of rows below the diagonal block that a panel exchanges, each with the row counted from the panel's
    /// first.
    fn own_exchanged(&self, rank: Rank, panel: usize, exchanged: &Exchanged) -> Vec<(usize, usize)> {
        let block = self.tiles.block() as usize;
        let own = |&row: &usize| {
            let place = panel + row / block;
            let is_own = self.tiles.rows(rank).binary_search(&place).is_ok();
            is_own.then(|| (self.tiles.top(rank, place) + row % block, row))
        };
        exchanged.below.keys().filter_map(own).collect()
    }

    /// By tiles, exchanges rows in block columns right of a panel, and computes those of U.
    fn solve(
        &self,
        held: &mut ProcessorData<T>,
        panel: usize,
        columns: Range<usize>,
        threads: usize,
    ) -> Result<()> {
        let (rank, width, here) = (held.rank(), self.width(panel), self.across(held, columns));
        let others = std::mem::take(&mut held.pivot_rows);
        let top = self.tiles.top(rank, panel);
        let rows = top..top + width;
        let replaced = held.copy_of(rows.clone(), here.clone());
        if !others.is_empty() {
            held.count(replaced.len());
        }
        if held.failed.is_none() {
            let exchanged = Exchanged::by(&held.pivots[panel]);
            // Rows that come into the diagonal block.
            let mut brought: BTreeMap<usize, Vec<T>> = BTreeMap::new();
            for (from, parcel) in &others {
                let theirs = self.own_exchanged(*from, panel, &exchanged).into_iter().map(|(_, row)| row);
                let elements = parcel.elements().chunks_exact(here.len()).map(<[T]>::to_vec);
                brought.extend(theirs.zip(elements));
            }
            let row_of = |row: usize| &replaced[row * here.len()..][..here.len()];
            let mut view = held.columns.view_mut();
            for (place, row) in self.own_exchanged(rank, panel, &exchanged) {
                let own = &mut view.row(place)[here.clone()];
                brought.insert(row, own.to_vec());
                own.copy_from_slice(row_of(exchanged.below[&row]));
            }
            for (i, from) in rows.zip(exchanged.diagonal) {
                let from = if from < width { row_of(from) } else { &brought[&from] };
                view.row(i)[here.clone()].copy_from_slice(from);
            }
            let source = held.panels.get(&panel).expect("a panel is here when it is used");
            let diagonal = View::dense(self.panel_row(source, panel, panel), width, width);
            solve_rows(diagonal, &[], view.tile(top, here.start, width, here.len()), threads)?;
        }
        if !others.is_empty() {
            held.replaced = replaced;
        }
        others.iter().for_each(|(_, parcel)| held.uncount(parcel.elements().len()));
        Ok(())
    }

    /// Memory for a block column below its diagonal tile, whose rows are exchanged here, with what has come of it.
    fn left_memory(&self, held: &mut ProcessorData<T>, column: usize) -> Vec<T> {
        held.left.take().unwrap_or_else(|| {
            let elements = (self.tiles.n() - self.tiles.span(column).end) as usize * self.width(column);
            held.count(elements);
            vec![T::ZERO; elements]
        })
    }

    /// By tiles, exchanges the rows of a block column, which have come, as all later panels demand.
    fn exchange_in(&self, held: &mut ProcessorData<T>, column: usize) {
        let (end, width) = (self.tiles.span(column).end, self.width(column));
        let mut memory = self.left_memory(held, column);
        if held.failed.is_none() {
            let rows = self.below(column);
            self.copy_own(held, column, &rows, &mut memory);
            let height = memory.len() / width;
            let mut whole = ViewMut::dense(&mut memory, height, width);
            for panel in column + 1..self.tiles.count() {
                let first = (self.tiles.span(panel).start - end) as usize;
                exchange_rows(whole.tile(first, 0, height - first, width), &held.pivots[panel]);
            }
            self.put_own(held, column, &rows, &memory);
        }
        held.left = Some(memory);
    }

    /// Takes a panel from its file if it is left of this slab.
    fn take_earlier(&self, held: &mut ProcessorData<T>, column: usize) -> Result<()> {
        let Some(reading) = held.earlier.as_mut().filter(|_| column < self.tiles.first()) else {
            return Ok(());
        };
        let parcel = reading.take(column)?;
        let marks = self.marks(column) as u64;
        let elements = parcel.elements().len() as u64 - marks;
        let part = PanelPart::Rows { from: self.tiles.panel_owner(column), to: held.rank() };
        self.keep(held, &PanelPiece { column, part, marks, elements }, parcel);
        Ok(())
    }

    /// Takes a part of a panel that has come.
    fn keep(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, parcel: Parcel<T>) {
        let (column, rank, elements) = (piece.column, held.rank(), parcel.elements());
        match piece.part {
            PanelPart::Rows { from, to } => {
                let (marks, below) = elements.split_at(piece.marks as usize);
                let failed = marks[0].to_f64() as u64;
                if failed > 0 {
                    held.failed = held.failed.or(Some(failed - 1));
                }
                if self.is_lu() {
                    held.pivots[column] = marks[1..].iter().map(|pivot| pivot.to_f64() as i64).collect();
                }
                if piece.elements > 0 {
                    let rows = self.schedule.sent_rows(column, from, to);
                    if !self.tiles.is_triangle() && held.failed.is_none() {
                        self.put_own(held, column, &rows, below);
                    }
                    held.count(elements.len());
                    let panel = held.panels.entry(column).or_insert(Panel { parts: Vec::new(), elements: 0 });
                    panel.elements += elements.len();
                    panel.parts.push(PanelRows { rows: rows.into_owned(), parcel });
                }
            }
            PanelPart::Unfactored { from } => {
                let PanelMemory { back, panel, .. } = self.panel_memory(rank, column);
                let mut memory = match held.gathered.remove(&column) {
                    Some(memory) => memory,
                    None => {
                        held.count(self.schedule.gathered_elements(rank, column) as usize);
                        self.memory_of(held, column)
                    }
                };
                if self.tiles.are_columns() {
                    memory[back.start..].copy_from_slice(elements);
                } else {
                    let all = self.schedule.factored_rows(rank, column);
                    let some = self.schedule.unfactored_rows(from, column);
                    let panel = &mut memory[panel];
                    self.among(column, &all, &some, |to, from| panel[to].copy_from_slice(&elements[from]));
                }
                held.gathered.insert(column, memory);
            }
            PanelPart::Back => self.put_back(held, column, elements),
            PanelPart::PivotRows { from, .. } => {
                held.count(elements.len());
                held.pivot_rows.push((from, parcel));
            }
            PanelPart::Upper { right, .. } => {
                held.count(elements.len());
                if held.failed.is_none() {
                    let here = self.across(held, self.schedule.right_of(column, right));
                    let replaced = &elements[self.width(column) * here.len()..];
                    let exchanged = Exchanged::by(&held.pivots[column]);
                    let mut view = held.columns.view_mut();
                    for (place, row) in self.own_exchanged(rank, column, &exchanged) {
                        let from = &replaced[exchanged.below[&row] * here.len()..][..here.len()];
                        view.row(place)[here.clone()].copy_from_slice(from);
                    }
                }
                held.upper = Some(parcel);
            }
            PanelPart::Left { of } if of == rank => {
                self.put_own(held, column, self.tiles.rows_after(rank, column), elements);
            }
            PanelPart::Left { of } => {
                let mut memory = self.left_memory(held, column);
                self.among(column, &self.below(column), self.tiles.rows_after(of, column), |to, from| {
                    memory[to].copy_from_slice(&elements[from]);
                });
                held.left = Some(memory);
            }
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

/// Where the rows of a matrix come from in the exchanges of a panel, counted from its first row.
struct Exchanged {
    /// For each row of the diagonal block, the row that it was.
    diagonal: Vec<usize>,
    /// For each row below the diagonal block that is exchanged, the row of that block that it was.
    below: BTreeMap<usize, usize>,
}

impl Exchanged {
    /// Row i is exchanged with row `pivots[i]`, one after the other: a row below the diagonal block only with rows that
    /// come from that block.
    fn by(pivots: &[i64]) -> Self {
        let mut diagonal: Vec<usize> = (0..pivots.len()).collect();
        let mut below = BTreeMap::new();
        for (i, pivot) in pivots.iter().map(|pivot| *pivot as usize).enumerate() {
            if pivot < diagonal.len() {
                diagonal.swap(i, pivot);
            } else {
                std::mem::swap(&mut diagonal[i], below.entry(pivot).or_insert(pivot));
            }
        }
        Self { diagonal, below }
    }
}

/// What a processor has of a factored panel.
struct Panel<T> {
    /// By who has factored them.
    parts: Vec<PanelRows<T>>,
    /// Elements of the memory that it takes.
    elements: usize,
}

struct PanelRows<T> {
    /// Block rows, ascending.
    rows: Vec<usize>,
    /// The marks, then the rows.
    parcel: Parcel<T>,
}

/// What one processor holds.
pub(crate) struct ProcessorData<T> {
    kernel: Kernel<T>,
    pub(crate) columns: LocalColumns<T>,
    /// The same on a device, if the processor is one; each becomes final on the host.
    pub(crate) device: Option<DeviceColumns<T>>,
    /// Panels in use, by block column.
    panels: BTreeMap<usize, Panel<T>>,
    /// The memory of block columns of which others have sent rows, until they are factored.
    gathered: BTreeMap<usize, Vec<T>>,
    /// What goes back of those taken over to their owners, besides the panel.
    back: BTreeMap<usize, Parcel<T>>,
    /// Rows that pivots bring into the diagonal block's, by who has them.
    pivot_rows: Vec<(Rank, Parcel<T>)>,
    /// The rows of the diagonal block that others have in their place, right of the panel.
    replaced: Vec<T>,
    /// The same with the rows of U before them, as they have come.
    upper: Option<Parcel<T>>,
    /// A block column whose rows are exchanged in the end.
    left: Option<Vec<T>>,
    /// By block column, of symmetric matrices those that it has factored only: with which row, counted from the panel's
    /// first, each of its rows was exchanged.
    pub(crate) pivots: Vec<Vec<i64>>,
    /// The column that cannot be factored, once it is known.
    pub(crate) failed: Option<u64>,
    /// Where it takes the panels left of its slab from.
    earlier: Option<Reading<T>>,
    /// The factors of an update, where they are not those of the panel.
    lower: Vec<T>,
    factor: Vec<T>,
    /// The memory of the first panels that it makes room for. Later ones are where earlier ones were.
    first_panels: BTreeMap<usize, Vec<T>>,
    /// Elements besides its columns, now and at most.
    elements: usize,
    most_elements: usize,
}

impl<T: Real> ProcessorData<T> {
    fn rank(&self) -> Rank {
        self.columns.rank()
    }

    fn count(&mut self, elements: usize) {
        self.elements += elements;
        self.most_elements = self.most_elements.max(self.elements);
    }

    fn uncount(&mut self, elements: usize) {
        self.elements -= elements;
    }

    /// The panel of a whole block column.
    pub(crate) fn panel(&self, column: usize) -> Option<&Parcel<T>> {
        self.panels.get(&column).map(|panel| &panel.parts[0].parcel)
    }

    /// Puts the same panel elsewhere.
    pub(crate) fn replace_panel(&mut self, column: usize, parcel: Parcel<T>) {
        if let Some(panel) = self.panels.get_mut(&column) {
            panel.parts[0].parcel = parcel;
        }
    }

    pub(crate) fn drop_panel(&mut self, column: usize) {
        self.back.remove(&column);
        let elements = self.panels.remove(&column).map_or(0, |panel| panel.elements);
        self.uncount(elements);
    }

    /// Elements here, row by row.
    fn copy_of(&self, rows: Range<usize>, columns: Range<usize>) -> Vec<T> {
        let mut elements = Vec::with_capacity(rows.len() * columns.len());
        rows.for_each(|i| elements.extend_from_slice(&self.columns.view().row(i)[columns.clone()]));
        elements
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
        let (tiles, width) = (self.tiles, self.width(0));
        let place = self.devices.get(rank.0).and_then(Option::as_ref).filter(|_| columns.width() > 0);
        let device = place.map(|place| DeviceColumns::new(place, &self.kernel, &columns, width));
        let kernel = self.kernel.on(rank);
        let panel = tiles.factored(rank).next().map(|column| (tiles.n() - tiles.span(column).start) as usize);
        let across = columns.width().max(panel.map_or(0, |_| width));
        // Slabs are updated with the panels left of them too.
        let rows = if tiles.are_columns() { tiles.n() as usize } else { columns.rows() };
        make_room(self.schedule.factors(), kernel, [rows, width, across], panel);
        let reads = self.earlier.as_ref().filter(|_| !tiles.own(rank).is_empty());
        ProcessorData {
            kernel,
            device,
            panels: BTreeMap::new(),
            gathered: BTreeMap::new(),
            back: BTreeMap::new(),
            pivot_rows: Vec::new(),
            replaced: Vec::new(),
            upper: None,
            left: None,
            pivots: vec![Vec::new(); tiles.count()],
            failed: None,
            earlier: reads.map(Reading::of),
            // The rows of whole block columns are read where they are.
            lower: room_for(if tiles.are_columns() { 0 } else { rows * width }),
            factor: room_for(width * across),
            first_panels: self.first_panels(rank),
            columns,
            elements: 0,
            most_elements: 0,
        }
    }

    fn pack(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, out: &mut [T]) {
        let (column, rank) = (piece.column, held.rank());
        match piece.part {
            PanelPart::Rows { from, to } => {
                let panel = held.panels.get(&column).expect("a panel is sent when it was factored");
                let PanelRows { rows, parcel } = &panel.parts[0];
                if out.len() == parcel.elements().len() {
                    return out.copy_from_slice(parcel.elements());
                }
                let (marks, below) = parcel.elements().split_at(self.marks(column));
                let (with, out) = out.split_at_mut(marks.len());
                with.copy_from_slice(marks);
                let sent = if piece.elements > 0 {
                    self.schedule.sent_rows(column, from, to)
                } else {
                    [][..].into()
                };
                self.among(column, rows, &sent, |from, to| out[to].copy_from_slice(&below[from]));
            }
            PanelPart::Back => {
                let back = held.back.get(&column).expect("a panel is sent when it was factored");
                out.copy_from_slice(back.elements());
            }
            PanelPart::Unfactored { .. } => {
                self.copy_own(held, column, &self.schedule.unfactored_rows(rank, column), out);
            }
            PanelPart::PivotRows { right, .. } => {
                out.fill(T::ZERO);
                if held.failed.is_none() {
                    let here = self.across(held, self.schedule.right_of(column, right));
                    let exchanged = Exchanged::by(&held.pivots[column]);
                    let own = self.own_exchanged(rank, column, &exchanged);
                    for (row, (place, _)) in out.chunks_exact_mut(here.len()).zip(own) {
                        row.copy_from_slice(&held.columns.view().row(place)[here.clone()]);
                    }
                }
            }
            PanelPart::Upper { right, .. } => {
                let (here, top) =
                    (self.across(held, self.schedule.right_of(column, right)), self.tiles.top(rank, column));
                let width = self.width(column);
                let (upper, replaced) = out.split_at_mut(width * here.len());
                upper.copy_from_slice(&held.copy_of(top..top + width, here));
                replaced.copy_from_slice(&held.replaced);
            }
            PanelPart::Left { of } if of == rank => {
                self.copy_own(held, column, self.tiles.rows_after(rank, column), out);
            }
            PanelPart::Left { of } => {
                let memory = held.left.as_ref().expect("a block column is sent when its rows were exchanged");
                self.among(column, &self.below(column), self.tiles.rows_after(of, column), |from, to| {
                    out[to].copy_from_slice(&memory[from]);
                });
            }
        }
    }

    fn unpack(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, elements: &[T]) {
        self.keep(held, piece, Parcel::new(Arc::new(elements.to_vec())));
    }

    fn accept(&self, held: &mut ProcessorData<T>, piece: &PanelPiece, parcel: &Parcel<T>) {
        self.keep(held, piece, parcel.clone());
    }

    fn compute(&self, held: &mut ProcessorData<T>, work: &FactorWork, threads: usize) -> Result<f64> {
        match &work.task {
            FactorTask::Panel(column) => self.factor(held, *column, threads)?,
            FactorTask::Update { panel, columns } => {
                self.take_earlier(held, *panel)?;
                self.update(held, *panel, columns.clone(), threads)?;
            }
            FactorTask::GiveAway(column) => self.give_away(held, *column)?,
            FactorTask::Exchange => self.exchange(held, threads)?,
            FactorTask::Upper { panel, columns } => self.solve(held, *panel, columns.clone(), threads)?,
            FactorTask::ExchangeIn(column) => self.exchange_in(held, *column),
        }
        Ok(held.device.as_mut().map_or(0.0, DeviceColumns::take_seconds))
    }

    fn free(&self, held: &mut ProcessorData<T>, piece: &PanelPiece) {
        let freed = match piece.part {
            PanelPart::Upper { .. } => {
                let upper = held.upper.take().map_or(0, |upper| upper.elements().len());
                upper + std::mem::take(&mut held.replaced).len()
            }
            PanelPart::Left { .. } => held.left.take().map_or(0, |left| left.len()),
            _ => return held.drop_panel(piece.column),
        };
        held.uncount(freed);
    }

    fn device_bytes(&self, held: &ProcessorData<T>) -> [u64; 2] {
        held.device.as_ref().map_or([0; 2], DeviceColumns::moved)
    }

    fn peak_bytes(&self, held: &ProcessorData<T>) -> u64 {
        ((held.columns.elements().len() + held.most_elements) * size_of::<T>()) as u64
    }

    fn shares_memory(&self) -> bool {
        self.shared.is_some()
    }

    fn take_shared(&self, held: &mut ProcessorData<T>, piece: &PanelPiece) {
        let column = piece.column;
        if let PanelPart::Unfactored { .. } = piece.part {
            let memory = self.column_slot(column).take();
            return self.take_over(held, column, memory.expect("a column is there before it is announced"));
        }
        if piece.part == PanelPart::Back {
            let back = self.slot(column).as_ref().and_then(|shared| shared.back.clone());
            let back = back.expect("a panel is there before it is announced");
            return self.put_back(held, column, back.elements());
        }
        let parcel = {
            let mut slot = self.slot(column);
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

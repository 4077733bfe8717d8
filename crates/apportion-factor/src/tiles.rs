//! A symmetric factorisation by tiles as an [`Executable`]: the tiles and parts of panels of each processor, and what is
//! computed with them.

use crate::LocalColumns;
use crate::application::{Step, cholesky_together, update_trapezoid};
use crate::first_touch::{make_room, room_for};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::kernels::factor::{BlockDiagonal, ldlt_panel};
use apportion::kernels::{Kernel, Real, View};
use apportion::plan::{BlockTiles, Factors};
use apportion::run::parallel;
use apportion::schedule::{
    Application, Executable, FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece, Parcel, StepOf,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The factorisation of this process's tiles.
pub(crate) struct TileElimination<'a, T> {
    schedule: &'a FactorSchedule,
    tiles: &'a BlockTiles,
    kernel: Kernel<T>,
    /// By rank, until the processor takes them.
    parts: Vec<Mutex<Vec<LocalColumns<T>>>>,
}

impl<'a, T: Real> TileElimination<'a, T> {
    /// The factorisation of these tiles: those below the diagonal and then the diagonal ones, of each processor.
    pub(crate) fn new(
        schedule: &'a FactorSchedule,
        tiles: &'a BlockTiles,
        kernel: Kernel<T>,
        parts: Vec<LocalColumns<T>>,
    ) -> Self {
        let mut by_rank: Vec<Vec<LocalColumns<T>>> = (0..tiles.processors()).map(|_| Vec::new()).collect();
        parts.into_iter().for_each(|part| by_rank[part.rank().0].push(part));
        Self { schedule, tiles, kernel, parts: by_rank.into_iter().map(Mutex::new).collect() }
    }

    fn marks(&self, column: usize) -> usize {
        self.tiles.panel_marks(self.schedule.factors(), column) as usize
    }

    /// The block rows and the elements of a panel that a processor sends to another.
    fn sent<'b>(&'b self, column: usize, from: Rank, to: Rank) -> impl Iterator<Item = (usize, usize)> + 'b {
        let width = self.tiles.span(column).len() as usize;
        let needed = self.tiles.below(from, column).filter(move |&row| self.tiles.needs(to, row, column));
        needed.map(move |row| (row, self.tiles.span(row).len() as usize * width))
    }

    /// Factors the diagonal tile and the own tiles below it.
    fn factor_part(&self, held: &mut TileData<T>, column: usize, threads: usize) -> Result<()> {
        let rank = held.rank;
        let (width, marks) = (self.tiles.span(column).len() as usize, self.marks(column));
        let rows: Vec<usize> = self.tiles.below(rank, column).collect();
        let own = self.tiles.owner(column, column) == rank;
        let diagonal = match held.diagonal.take() {
            Some(parcel) => parcel,
            None => Parcel::new(Arc::new(held.diagonal_tile(self.tiles, column).elements().to_vec())),
        };
        let mut memory = vec![T::ZERO; marks];
        memory.extend_from_slice(diagonal.elements());
        // It is sent as it is, also after this.
        held.diagonal = Some(diagonal);
        rows.iter().for_each(|&row| held.copy_tile(self.tiles, row, column, &mut memory));
        if held.failed.is_none() {
            let (numbers, panel) = memory.split_at_mut(marks);
            let height = panel.len() / width;
            let mut pivots = vec![0; width];
            let failed = if self.schedule.factors() == Factors::Cholesky {
                cholesky_together(panel, width, threads)?
            } else {
                ldlt_panel(apportion::kernels::ViewMut::dense(panel, height, width), &mut pivots).err()
            };
            held.failed = failed.map(|j| self.tiles.span(column).start + j as u64);
            if self.schedule.factors() == Factors::Ldlt {
                let block = View::dense(panel, height, width).tile(0, 0, width, width);
                numbers[1..].copy_from_slice(&BlockDiagonal::of_panel(block, &pivots).into_elements());
            }
            numbers[0] = mark_of(held.failed);
            let mut rest = &panel[..];
            if own {
                let (tile, others) = rest.split_at(width * width);
                held.put_diagonal(self.tiles, column, tile);
                held.pivots[column] = pivots;
                rest = others;
            } else {
                rest = &rest[width * width..];
            }
            for &row in &rows {
                let (tile, others) = rest.split_at(self.tiles.span(row).len() as usize * width);
                held.put_tile(self.tiles, row, column, tile);
                rest = others;
            }
        } else {
            memory[0] = mark_of(held.failed);
        }
        let mut start = marks + width * width;
        let parcel = Parcel::new(Arc::new(memory));
        let mut panel = PanelRows {
            elements: parcel.elements().len(),
            marks: Some(parcel.part(0..marks)),
            rows: BTreeMap::new(),
        };
        for row in rows {
            let end = start + self.tiles.span(row).len() as usize * width;
            panel.rows.insert(row, parcel.part(start..end));
            start = end;
        }
        held.count(panel.elements);
        held.panels.insert(column, panel);
        Ok(())
    }

    /// Takes the rows of a panel that another processor sent.
    fn keep(&self, held: &mut TileData<T>, piece: &PanelPiece, parcel: Parcel<T>) {
        let PanelPart::Rows { from, to } = piece.part else {
            held.count(parcel.elements().len());
            held.diagonal = Some(parcel);
            return;
        };
        let marks = self.marks(piece.column);
        let failed = parcel.elements()[0].to_f64() as u64;
        if failed > 0 {
            held.failed = held.failed.or(Some(failed - 1));
        }
        held.count(parcel.elements().len());
        let panel = held.panels.entry(piece.column).or_default();
        panel.elements += parcel.elements().len();
        let mut start = marks;
        for (row, elements) in self.sent(piece.column, from, to) {
            panel.rows.insert(row, parcel.part(start..start + elements));
            start += elements;
        }
        panel.marks.get_or_insert_with(|| parcel.part(0..marks));
    }

    /// Updates the tiles in some block columns with a panel.
    fn update(
        &self,
        held: &mut TileData<T>,
        column: usize,
        columns: &Range<usize>,
        threads: usize,
    ) -> Result<f64> {
        if held.failed.is_some() {
            return Ok(0.0);
        }
        let TileData { kernel, parts, panels, rank, scratch, .. } = held;
        let panel = panels.get(&column).expect("a panel is here when it is used");
        let width = self.tiles.span(column).len() as usize;
        let d = match self.schedule.factors() {
            Factors::Ldlt => {
                let marks = panel.marks.as_ref().expect("a part of a panel has marks");
                Some(BlockDiagonal::from_elements(&marks.elements()[1..]))
            }
            _ => None,
        };
        let update = PanelUpdate { tiles: self.tiles, kernel: *kernel, panel, width, d, threads };
        let (below, diagonal) = parts.split_at_mut(self.tiles.sets(*rank).len());
        for (set, part) in self.tiles.sets(*rank).iter().zip(below) {
            update.below(part, &set.rows, &set.columns, columns, scratch)?;
        }
        let places = self.tiles.diagonal(*rank).iter();
        let mut changed: Vec<(usize, &mut LocalColumns<T>)> =
            places.copied().zip(diagonal).filter(|(place, _)| columns.contains(place)).collect();
        let count = threads.clamp(1, changed.len().max(1));
        let each = changed.len().div_ceil(count).max(1);
        parallel::all(changed.chunks_mut(each).collect(), |some: &mut [(usize, &mut LocalColumns<T>)]| {
            some.iter_mut().for_each(|(place, part)| update.diagonal(*place, part));
        })?;
        Ok(0.0)
    }
}

/// What marks of a panel say first.
pub(crate) fn mark_of<T: Real>(failed: Option<u64>) -> T {
    T::from_f64(failed.map_or(0.0, |j| (j + 1) as f64))
}

/// An update with one panel.
struct PanelUpdate<'a, T> {
    tiles: &'a BlockTiles,
    kernel: Kernel<T>,
    panel: &'a PanelRows<T>,
    /// Columns of the panel.
    width: usize,
    d: Option<BlockDiagonal<T>>,
    threads: usize,
}

impl<T: Real> PanelUpdate<'_, T> {
    /// Puts L of some block rows one below the other.
    fn rows(&self, rows: &[usize], l: &mut Vec<T>) {
        l.clear();
        rows.iter().for_each(|&row| l.extend_from_slice(self.row(row)));
    }

    fn row(&self, row: usize) -> &[T] {
        self.panel.rows.get(&row).expect("rows of a panel are here when they are used").elements()
    }

    /// Puts -D L^T of some block rows side by side.
    fn factor(&self, rows: &[usize], factor: &mut Vec<T>) {
        let across = rows.iter().map(|&row| self.tiles.span(row).len() as usize).sum::<usize>();
        factor.clear();
        factor.resize(self.width * across, T::ZERO);
        let mut product = vec![T::ZERO; self.width];
        let l = rows.iter().flat_map(|&row| self.row(row).chunks_exact(self.width));
        for (j, row) in l.enumerate() {
            match &self.d {
                Some(d) => d.multiply(row, &mut product),
                None => product.copy_from_slice(row),
            }
            product.iter().enumerate().for_each(|(p, x)| factor[p * across + j] = -*x);
        }
    }

    /// Updates the tiles below the diagonal in these rows and columns.
    fn below(
        &self,
        part: &mut LocalColumns<T>,
        rows: &[usize],
        own: &[usize],
        columns: &Range<usize>,
        [l, u]: &mut [Vec<T>; 2],
    ) -> Result<()> {
        let places = own.partition_point(|&j| j < columns.start)..own.partition_point(|&j| j < columns.end);
        let across = &own[places.clone()];
        let Some(&first) = across.first() else { return Ok(()) };
        let height =
            |rows: &[usize]| rows.iter().map(|&row| self.tiles.span(row).len() as usize).sum::<usize>();
        let above = rows.partition_point(|&row| row <= first);
        let (top, rows) = (height(&rows[..above]), &rows[above..]);
        let here = part.range(places.clone());
        let steps: Vec<Step> = across
            .iter()
            .zip(places)
            .map(|(&column, place)| Step {
                row: height(&rows[..rows.partition_point(|&row| row <= column)]),
                col: part.range(place..place + 1).start - here.start,
                width: self.tiles.span(column).len() as usize,
            })
            .collect();
        self.rows(rows, l);
        self.factor(across, u);
        let high = height(rows);
        let (l, u) = (View::dense(l, high, self.width), View::dense(u, self.width, here.len()));
        let mut own = part.view_mut();
        let c = own.tile(top, here.start, high, here.len());
        update_trapezoid(self.kernel, [l, u], c, &steps, self.threads)
    }

    /// Updates a diagonal tile.
    fn diagonal(&self, place: usize, part: &mut LocalColumns<T>) {
        let (l, mut u) = (self.row(place), Vec::new());
        self.factor(&[place], &mut u);
        let rows = l.len() / self.width;
        self.kernel.update(
            View::dense(l, rows, self.width),
            View::dense(&u, self.width, rows),
            part.view_mut(),
        );
    }
}

/// The rows of a panel that a processor holds.
struct PanelRows<T> {
    /// A mark of failure, and of L D L^T the elements of D.
    marks: Option<Parcel<T>>,
    /// By block row.
    rows: BTreeMap<usize, Parcel<T>>,
    /// Elements of all that it holds of it.
    elements: usize,
}

impl<T> Default for PanelRows<T> {
    fn default() -> Self {
        Self { marks: None, rows: BTreeMap::new(), elements: 0 }
    }
}

/// What one processor holds.
pub(crate) struct TileData<T> {
    kernel: Kernel<T>,
    rank: Rank,
    /// Its tiles below the diagonal, set by set, and its diagonal tiles.
    pub(crate) parts: Vec<LocalColumns<T>>,
    /// The diagonal tile of the next panel before it is factored.
    diagonal: Option<Parcel<T>>,
    /// Panels in use, by block column.
    panels: BTreeMap<usize, PanelRows<T>>,
    /// By block column, of its own diagonal tiles.
    pub(crate) pivots: Vec<Vec<i64>>,
    /// The column that cannot be factored, once it is known.
    pub(crate) failed: Option<u64>,
    /// The factors of an update, as they are multiplied.
    scratch: [Vec<T>; 2],
    panel_elements: usize,
    most_panel_elements: usize,
}

impl<T: Real> TileData<T> {
    fn count(&mut self, more: usize) {
        self.panel_elements += more;
        self.most_panel_elements = self.most_panel_elements.max(self.panel_elements);
    }

    /// Where a tile below the diagonal is: its part, and its first row and columns there.
    fn place(&self, tiles: &BlockTiles, row: usize, column: usize) -> (usize, usize, Range<usize>) {
        let mut sets = tiles.sets(self.rank).iter().enumerate();
        let found = sets.find_map(|(number, set)| {
            Some((number, set.rows.binary_search(&row).ok()?, set.columns.binary_search(&column).ok()?))
        });
        let (number, above, place) = found.expect("a processor has its own tiles");
        let above = &tiles.sets(self.rank)[number].rows[..above];
        let top = above.iter().map(|&row| tiles.span(row).len() as usize).sum();
        (number, top, self.parts[number].range(place..place + 1))
    }

    /// Appends a tile below the diagonal, row by row.
    fn copy_tile(&self, tiles: &BlockTiles, row: usize, column: usize, into: &mut Vec<T>) {
        let (part, top, columns) = self.place(tiles, row, column);
        let view = self.parts[part].view();
        let rows = top..top + tiles.span(row).len() as usize;
        rows.for_each(|i| into.extend_from_slice(&view.row(i)[columns.clone()]));
    }

    fn put_tile(&mut self, tiles: &BlockTiles, row: usize, column: usize, tile: &[T]) {
        let (part, top, columns) = self.place(tiles, row, column);
        let mut view = self.parts[part].view_mut();
        for (i, from) in tile.chunks_exact(columns.len()).enumerate() {
            view.row(top + i)[columns.clone()].copy_from_slice(from);
        }
    }

    fn diagonal_place(&self, tiles: &BlockTiles, column: usize) -> usize {
        let place = tiles.diagonal(self.rank).binary_search(&column).expect("a processor has its own tiles");
        tiles.sets(self.rank).len() + place
    }

    fn diagonal_tile(&mut self, tiles: &BlockTiles, column: usize) -> &LocalColumns<T> {
        let elements = tiles.span(column).len().pow(2) as usize;
        self.count(elements);
        &self.parts[self.diagonal_place(tiles, column)]
    }

    fn put_diagonal(&mut self, tiles: &BlockTiles, column: usize, tile: &[T]) {
        let place = self.diagonal_place(tiles, column);
        let width = tiles.span(column).len() as usize;
        let mut view = self.parts[place].view_mut();
        for (i, from) in tile.chunks_exact(width).enumerate() {
            view.row(i).copy_from_slice(from);
        }
    }
}

impl<T: Real> Application for TileElimination<'_, T> {
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

impl<T: Real> Executable for TileElimination<'_, T> {
    type Element = T;
    type Local<'l>
        = TileData<T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> TileData<T> {
        let parts = std::mem::take(&mut *self.parts[rank.0].lock().unwrap_or_else(PoisonError::into_inner));
        assert!(!parts.is_empty(), "each processor takes its tiles once");
        let (kernel, width) = (self.kernel.on(rank), self.tiles.span(0).len() as usize);
        let most = |of: fn(&LocalColumns<T>) -> usize| parts.iter().map(of).max().unwrap_or(0);
        let (rows, across) = (most(LocalColumns::rows), most(LocalColumns::width));
        make_room(self.schedule.factors(), kernel, [rows, width, across], None);
        TileData {
            kernel,
            rank,
            parts,
            diagonal: None,
            panels: BTreeMap::new(),
            pivots: vec![Vec::new(); self.tiles.count()],
            failed: None,
            scratch: [rows, across].map(|length| room_for(length * width)),
            panel_elements: 0,
            most_panel_elements: 0,
        }
    }

    fn pack(&self, held: &mut TileData<T>, piece: &PanelPiece, out: &mut [T]) {
        let PanelPart::Rows { from, to } = piece.part else {
            if held.diagonal.is_none() {
                let tile = held.diagonal_tile(self.tiles, piece.column).elements().to_vec();
                held.diagonal = Some(Parcel::new(Arc::new(tile)));
            }
            let tile = held.diagonal.as_ref().expect("it is there now");
            return out.copy_from_slice(tile.elements());
        };
        let panel = held.panels.get(&piece.column).expect("a panel is sent when it was factored");
        let marks = panel.marks.as_ref().expect("a part of a panel has marks").elements();
        out[..marks.len()].copy_from_slice(marks);
        let mut start = marks.len();
        for (row, elements) in self.sent(piece.column, from, to) {
            let tile = panel.rows.get(&row).expect("rows are sent by who factored them");
            out[start..start + elements].copy_from_slice(tile.elements());
            start += elements;
        }
    }

    fn unpack(&self, held: &mut TileData<T>, piece: &PanelPiece, elements: &[T]) {
        self.keep(held, piece, Parcel::new(Arc::new(elements.to_vec())));
    }

    fn accept(&self, held: &mut TileData<T>, piece: &PanelPiece, parcel: &Parcel<T>) {
        self.keep(held, piece, parcel.clone());
    }

    fn compute(&self, held: &mut TileData<T>, work: &FactorWork, threads: usize) -> Result<f64> {
        match &work.task {
            FactorTask::Panel(column) => self.factor_part(held, *column, threads).map(|()| 0.0),
            FactorTask::Update { panel, columns } => self.update(held, *panel, columns, threads),
            FactorTask::GiveAway(_)
            | FactorTask::Exchange
            | FactorTask::Upper { .. }
            | FactorTask::ExchangeIn(_) => unreachable!("tiles of symmetric matrices stay where they are"),
        }
    }

    fn free(&self, held: &mut TileData<T>, piece: &PanelPiece) {
        let freed = match piece.part {
            PanelPart::Diagonal => held.diagonal.take().map(|tile| tile.elements().len()),
            _ => held.panels.remove(&piece.column).map(|panel| panel.elements),
        };
        held.panel_elements -= freed.unwrap_or(0);
    }

    fn peak_bytes(&self, held: &TileData<T>) -> u64 {
        let own: usize = held.parts.iter().map(|part| part.elements().len()).sum();
        ((own + held.most_panel_elements) * size_of::<T>()) as u64
    }
}

//! An LU factorisation by tiles of a grid as an [`Executable`]: the tiles and parts of panels of each processor, and what is
//! computed with them.

use crate::LocalColumns;
use crate::application::{negate_rows, numbers_with_panel, solve_rows, update_rows};
use crate::first_touch::{make_room, room_for};
use crate::tiles::mark_of;
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::kernels::factor::{exchange_rows, lu_panel};
use apportion::kernels::{Kernel, Real, View, ViewMut};
use apportion::plan::{Factors, GridTiles};
use apportion::schedule::{
    Application, Executable, FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece, Parcel, StepOf,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The factorisation of this process's tiles.
pub(crate) struct GridElimination<'a, T> {
    schedule: &'a FactorSchedule,
    tiles: &'a GridTiles,
    kernel: Kernel<T>,
    /// By rank, until the processor takes them.
    parts: Vec<Mutex<Option<LocalColumns<T>>>>,
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

impl<'a, T: Real> GridElimination<'a, T> {
    /// The factorisation of these tiles, one part of each processor.
    pub(crate) fn new(
        schedule: &'a FactorSchedule,
        tiles: &'a GridTiles,
        kernel: Kernel<T>,
        parts: Vec<LocalColumns<T>>,
    ) -> Self {
        let mut by_rank: Vec<_> = (0..tiles.processors()).map(|_| Mutex::new(None)).collect();
        for part in parts {
            let rank = part.rank().0;
            by_rank[rank] = Mutex::new(Some(part));
        }
        Self { schedule, tiles, kernel, parts: by_rank }
    }

    fn width(&self, column: usize) -> usize {
        self.tiles.span(column).len() as usize
    }

    fn marks(&self, column: usize) -> usize {
        self.tiles.panel_marks(column) as usize
    }

    /// The place of the first row here that is in a block row or a later one.
    fn top(&self, rank: Rank, row: usize) -> usize {
        self.tiles.rows(rank).iter().take_while(|own| **own < row).map(|&own| self.width(own)).sum()
    }

    /// The columns here of block columns in a range.
    fn across(&self, held: &GridData<T>, columns: Range<usize>) -> Range<usize> {
        held.part.range(self.tiles.places(held.rank(), columns))
    }

    /// The columns here of a part of the block columns right of a panel.
    fn right_of(&self, held: &GridData<T>, panel: usize, right: usize) -> Range<usize> {
        self.across(held, self.tiles.right_of(panel, right))
    }

    /// The places here of rows below the diagonal block that a panel exchanges, each with the row counted from the panel's
    /// first.
    fn own_exchanged(&self, rank: Rank, panel: usize, exchanged: &Exchanged) -> Vec<(usize, usize)> {
        let block = self.tiles.block() as usize;
        let own = |&row: &usize| {
            let place = panel + row / block;
            let is_own = self.tiles.rows(rank).binary_search(&place).is_ok();
            is_own.then(|| (self.top(rank, place) + row % block, row))
        };
        exchanged.below.keys().filter_map(own).collect()
    }

    /// Gives the rows of a processor below the diagonal tile of a block column one block row after the other: where its
    /// elements are among its own, and where the first of them is in the whole block column below that tile.
    fn spread(&self, rank: Rank, column: usize, mut copy: impl FnMut(Range<usize>, usize)) {
        let (first, width) = (self.tiles.span(column).end as usize, self.width(column));
        let mut from = 0;
        for &row in self.tiles.rows(rank).iter().filter(|row| **row > column) {
            let elements = self.width(row) * width;
            copy(from..from + elements, (self.tiles.span(row).start as usize - first) * width);
            from += elements;
        }
    }

    /// Copies the rows of a processor below the diagonal tile of a block column into the whole of that.
    fn gather(&self, rank: Rank, column: usize, own: &[T], whole: &mut [T]) {
        self.spread(rank, column, |from, to| whole[to..][..from.len()].copy_from_slice(&own[from]));
    }

    /// Copies the rows of a processor from the whole block column below its diagonal tile.
    fn scatter(&self, rank: Rank, column: usize, whole: &[T], own: &mut [T]) {
        self.spread(rank, column, |to, from| own[to.clone()].copy_from_slice(&whole[from..][..to.len()]));
    }

    /// The own rows of a block column below its diagonal tile.
    fn rows_below(&self, held: &GridData<T>, column: usize) -> Vec<T> {
        let rows = self.top(held.rank(), column + 1)..held.part.rows();
        held.copy_of(rows, self.across(held, column..column + 1))
    }

    /// Puts elements into rows of a block column here, from a place on.
    fn put_rows(&self, held: &mut GridData<T>, column: usize, first: usize, elements: &[T]) {
        let columns = self.across(held, column..column + 1);
        let mut view = held.part.view_mut();
        for (i, row) in elements.chunks_exact(columns.len().max(1)).enumerate() {
            view.row(first + i)[columns.clone()].copy_from_slice(row);
        }
    }

    /// Puts the own rows of a block column below its diagonal tile.
    fn put_below(&self, held: &mut GridData<T>, column: usize, elements: &[T]) {
        self.put_rows(held, column, self.top(held.rank(), column + 1), elements);
    }

    /// Memory for a panel that is factored here, with what has come of it.
    fn panel_memory(&self, held: &mut GridData<T>, column: usize) -> Vec<T> {
        held.gathered.take().unwrap_or_else(|| {
            let rows = (self.tiles.n() - self.tiles.span(column).start) as usize;
            let elements = self.marks(column) + rows * self.width(column);
            held.count(elements);
            vec![T::ZERO; elements]
        })
    }

    /// Memory for a block column below its diagonal tile, whose rows are exchanged here, with what has come of it.
    fn left_memory(&self, held: &mut GridData<T>, column: usize) -> Vec<T> {
        held.left.take().unwrap_or_else(|| {
            let rows = (self.tiles.n() - self.tiles.span(column).end) as usize;
            held.count(rows * self.width(column));
            vec![T::ZERO; rows * self.width(column)]
        })
    }

    /// Factors a panel, whose rows of other processors have come.
    fn factor_panel(&self, held: &mut GridData<T>, column: usize) {
        let (marks, width, rank) = (self.marks(column), self.width(column), held.rank());
        let mut memory = self.panel_memory(held, column);
        if held.failed.is_none() {
            let (numbers, panel) = memory.split_at_mut(marks);
            let (top, here) = (self.top(rank, column), self.across(held, column..column + 1));
            panel[..width * width].copy_from_slice(&held.copy_of(top..top + width, here));
            let mut own = self.rows_below(held, column);
            self.gather(rank, column, &own, &mut panel[width * width..]);
            let mut pivots = vec![0; width];
            let height = panel.len() / width;
            let failed = lu_panel(ViewMut::dense(panel, height, width), &mut pivots);
            held.failed = failed.map(|j| self.tiles.span(column).start + j as u64);
            let whole = View::dense(panel, height, width);
            numbers[1..].copy_from_slice(&numbers_with_panel(Factors::Lu, whole, &pivots));
            held.pivots[column] = pivots;
            let (diagonal, below) = panel.split_at(width * width);
            self.put_rows(held, column, top, diagonal);
            self.scatter(rank, column, below, &mut own);
            self.put_below(held, column, &own);
        }
        memory[0] = mark_of(held.failed);
        held.panels.insert(column, Parcel::new(Arc::new(memory)));
    }

    /// Exchanges rows in block columns right of a panel, and computes those of U.
    fn solve(
        &self,
        held: &mut GridData<T>,
        panel: usize,
        columns: Range<usize>,
        threads: usize,
    ) -> Result<()> {
        let (rank, width, here) = (held.rank(), self.width(panel), self.across(held, columns));
        let others = std::mem::take(&mut held.pivot_rows);
        let top = self.top(rank, panel);
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
            let mut view = held.part.view_mut();
            for (place, row) in self.own_exchanged(rank, panel, &exchanged) {
                let own = &mut view.row(place)[here.clone()];
                brought.insert(row, own.to_vec());
                own.copy_from_slice(row_of(exchanged.below[&row]));
            }
            for (i, from) in rows.zip(exchanged.diagonal) {
                let from = if from < width { row_of(from) } else { &brought[&from] };
                view.row(i)[here.clone()].copy_from_slice(from);
            }
            let parcel = held.panels.get(&panel).expect("a panel is here when it is used");
            let diagonal = &parcel.elements()[self.marks(panel)..][..width * width];
            let right = view.tile(top, here.start, width, here.len());
            solve_rows(View::dense(diagonal, width, width), &[], right, threads)?;
        }
        if !others.is_empty() {
            held.replaced = replaced;
        }
        others.iter().for_each(|(_, parcel)| held.uncount(parcel.elements().len()));
        Ok(())
    }

    /// Updates block columns right of a panel with the rows of U.
    fn update(
        &self,
        held: &mut GridData<T>,
        panel: usize,
        columns: Range<usize>,
        threads: usize,
    ) -> Result<()> {
        if held.failed.is_some() {
            return Ok(());
        }
        let (rank, width, here) = (held.rank(), self.width(panel), self.across(held, columns));
        let (top, first) = (self.top(rank, panel), self.top(rank, panel + 1));
        let below = held.part.rows() - first;
        let GridData { kernel, part, panels, upper, l, u, .. } = held;
        let parcel = panels.get(&panel).expect("a panel is here when it is used");
        let elements = &parcel.elements()[self.marks(panel)..];
        let l = if self.tiles.owner(panel, panel) == rank {
            l.resize(below * width, T::ZERO);
            self.scatter(rank, panel, &elements[width * width..], l);
            &l[..]
        } else {
            &elements[elements.len() - below * width..]
        };
        match upper {
            Some(upper) => {
                u.clear();
                u.extend(upper.elements()[..width * here.len()].iter().map(|x| -*x));
            }
            None => negate_rows(width, &mut part.view_mut().tile(top, here.start, width, here.len()), u),
        }
        let (l, u) = (View::dense(l, below, width), View::dense(u, width, here.len()));
        update_rows(*kernel, l, u, part.view_mut().tile(first, here.start, below, here.len()), threads)
    }

    /// Exchanges the rows of a block column, which have come, as all later panels demand.
    fn exchange(&self, held: &mut GridData<T>, column: usize) {
        let (end, width) = (self.tiles.span(column).end, self.width(column));
        let mut memory = self.left_memory(held, column);
        if held.failed.is_none() {
            let mut own = self.rows_below(held, column);
            self.gather(held.rank(), column, &own, &mut memory);
            let height = memory.len() / width;
            let mut whole = ViewMut::dense(&mut memory, height, width);
            for panel in column + 1..self.tiles.count() {
                let first = (self.tiles.span(panel).start - end) as usize;
                exchange_rows(whole.tile(first, 0, height - first, width), &held.pivots[panel]);
            }
            self.scatter(held.rank(), column, &memory, &mut own);
            self.put_below(held, column, &own);
        }
        held.left = Some(memory);
    }

    /// Takes a part of a panel that has come.
    fn keep(&self, held: &mut GridData<T>, piece: &PanelPiece, parcel: Parcel<T>) {
        let (column, elements) = (piece.column, parcel.elements());
        match piece.part {
            PanelPart::Rows { .. } => {
                let (marks, rows) = elements.split_at(self.marks(column));
                let failed = marks[0].to_f64() as u64;
                if failed > 0 {
                    held.failed = held.failed.or(Some(failed - 1));
                }
                held.pivots[column] = marks[1..].iter().map(|pivot| pivot.to_f64() as i64).collect();
                if self.tiles.group(held.rank()) == Some(self.tiles.group_of(column)) && failed == 0 {
                    self.put_below(held, column, rows);
                }
                held.count(elements.len());
                held.panels.insert(column, parcel);
            }
            PanelPart::Unfactored { from } => {
                let mut memory = self.panel_memory(held, column);
                let before = self.marks(column) + self.width(column).pow(2);
                self.gather(from, column, elements, &mut memory[before..]);
                held.gathered = Some(memory);
            }
            PanelPart::PivotRows { from, .. } => {
                held.count(elements.len());
                held.pivot_rows.push((from, parcel));
            }
            PanelPart::Upper { right, .. } => {
                held.count(elements.len());
                if held.failed.is_none() {
                    let here = self.right_of(held, column, right);
                    let replaced = &elements[self.width(column) * here.len()..];
                    let (rank, exchanged) = (held.rank(), Exchanged::by(&held.pivots[column]));
                    let mut view = held.part.view_mut();
                    for (place, row) in self.own_exchanged(rank, column, &exchanged) {
                        let from = &replaced[exchanged.below[&row] * here.len()..][..here.len()];
                        view.row(place)[here.clone()].copy_from_slice(from);
                    }
                }
                held.upper = Some(parcel);
            }
            PanelPart::Left { of } if of == held.rank() => self.put_below(held, column, elements),
            PanelPart::Left { of } => {
                let mut memory = self.left_memory(held, column);
                self.gather(of, column, elements, &mut memory);
                held.left = Some(memory);
            }
            PanelPart::Whole | PanelPart::Diagonal | PanelPart::Column | PanelPart::Back => {
                unreachable!("they are parts of other panels")
            }
        }
    }
}

/// What one processor holds.
pub(crate) struct GridData<T> {
    kernel: Kernel<T>,
    /// Its tiles.
    pub(crate) part: LocalColumns<T>,
    /// Panels in use, by block column, or what has come of them: the marks, the diagonal block where it is needed, and rows
    /// below it.
    panels: BTreeMap<usize, Parcel<T>>,
    /// The next panel, while rows of it come.
    gathered: Option<Vec<T>>,
    /// Rows that pivots bring into the diagonal block's, by who has them.
    pivot_rows: Vec<(Rank, Parcel<T>)>,
    /// The rows of the diagonal block that others have in their place, right of the panel.
    replaced: Vec<T>,
    /// The same with the rows of U before them, as they have come.
    upper: Option<Parcel<T>>,
    /// A block column whose rows are exchanged in the end.
    left: Option<Vec<T>>,
    /// By block column: with which row, counted from the panel's first, each of its rows was exchanged.
    pub(crate) pivots: Vec<Vec<i64>>,
    /// The column that cannot be factored, once it is known.
    pub(crate) failed: Option<u64>,
    /// The factors of an update, as they are multiplied.
    l: Vec<T>,
    u: Vec<T>,
    elements: usize,
    most_elements: usize,
}

impl<T: Real> GridData<T> {
    fn rank(&self) -> Rank {
        self.part.rank()
    }

    /// Elements here, row by row.
    fn copy_of(&self, rows: Range<usize>, columns: Range<usize>) -> Vec<T> {
        let mut elements = Vec::with_capacity(rows.len() * columns.len());
        rows.for_each(|i| elements.extend_from_slice(&self.part.view().row(i)[columns.clone()]));
        elements
    }

    fn count(&mut self, more: usize) {
        self.elements += more;
        self.most_elements = self.most_elements.max(self.elements);
    }

    fn uncount(&mut self, fewer: usize) {
        self.elements -= fewer;
    }
}

impl<T: Real> Application for GridElimination<'_, T> {
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

impl<T: Real> Executable for GridElimination<'_, T> {
    type Element = T;
    type Local<'l>
        = GridData<T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> GridData<T> {
        let part = self.parts[rank.0].lock().unwrap_or_else(PoisonError::into_inner).take();
        let part = part.expect("each processor takes its tiles once");
        let (kernel, width, below) = (self.kernel.on(rank), self.width(0), part.rows() - self.top(rank, 1));
        let mut factored = (0..self.tiles.count()).filter(|&column| self.tiles.owner(column, column) == rank);
        let panel = factored.next().map(|column| (self.tiles.n() - self.tiles.span(column).start) as usize);
        make_room(Factors::Lu, kernel, [below, width, part.width()], panel);
        GridData {
            kernel,
            panels: BTreeMap::new(),
            gathered: None,
            pivot_rows: Vec::new(),
            replaced: Vec::new(),
            upper: None,
            left: None,
            pivots: vec![Vec::new(); self.tiles.count()],
            failed: None,
            l: room_for(panel.map_or(0, |_| width * below)),
            u: room_for(width * part.width()),
            part,
            elements: 0,
            most_elements: 0,
        }
    }

    fn pack(&self, held: &mut GridData<T>, piece: &PanelPiece, out: &mut [T]) {
        let (column, rank) = (piece.column, held.rank());
        let width = self.width(column);
        match piece.part {
            PanelPart::Rows { to, .. } => {
                let parcel = held.panels.get(&column).expect("a panel is sent when it was factored");
                let (head, below) = parcel.elements().split_at(self.marks(column) + width * width);
                let with =
                    if self.tiles.needs_diagonal(to, column) { head.len() } else { self.marks(column) };
                out[..with].copy_from_slice(&head[..with]);
                if out.len() > with {
                    self.scatter(to, column, below, &mut out[with..]);
                }
            }
            PanelPart::Unfactored { .. } => out.copy_from_slice(&self.rows_below(held, column)),
            PanelPart::PivotRows { right, .. } => {
                out.fill(T::ZERO);
                if held.failed.is_none() {
                    let here = self.right_of(held, column, right);
                    let exchanged = Exchanged::by(&held.pivots[column]);
                    let own = self.own_exchanged(rank, column, &exchanged);
                    for (row, (place, _)) in out.chunks_exact_mut(here.len()).zip(own) {
                        row.copy_from_slice(&held.part.view().row(place)[here.clone()]);
                    }
                }
            }
            PanelPart::Upper { right, .. } => {
                let (here, top) = (self.right_of(held, column, right), self.top(rank, column));
                let (upper, replaced) = out.split_at_mut(width * here.len());
                upper.copy_from_slice(&held.copy_of(top..top + width, here));
                replaced.copy_from_slice(&held.replaced);
            }
            PanelPart::Left { of } if of == rank => out.copy_from_slice(&self.rows_below(held, column)),
            PanelPart::Left { of } => {
                let memory = held.left.as_ref().expect("a block column is sent when its rows were exchanged");
                self.scatter(of, column, memory, out);
            }
            PanelPart::Whole | PanelPart::Diagonal | PanelPart::Column | PanelPart::Back => {
                unreachable!("they are parts of other panels")
            }
        }
    }

    fn unpack(&self, held: &mut GridData<T>, piece: &PanelPiece, elements: &[T]) {
        self.keep(held, piece, Parcel::new(Arc::new(elements.to_vec())));
    }

    fn accept(&self, held: &mut GridData<T>, piece: &PanelPiece, parcel: &Parcel<T>) {
        self.keep(held, piece, parcel.clone());
    }

    fn compute(&self, held: &mut GridData<T>, work: &FactorWork, threads: usize) -> Result<f64> {
        match &work.task {
            FactorTask::Panel(column) => self.factor_panel(held, *column),
            FactorTask::Upper { panel, columns } => self.solve(held, *panel, columns.clone(), threads)?,
            FactorTask::Update { panel, columns } => self.update(held, *panel, columns.clone(), threads)?,
            FactorTask::ExchangeIn(column) => self.exchange(held, *column),
            FactorTask::GiveAway(_) | FactorTask::Exchange => unreachable!("of block columns"),
        }
        Ok(0.0)
    }

    fn free(&self, held: &mut GridData<T>, piece: &PanelPiece) {
        let freed = match piece.part {
            PanelPart::Upper { .. } => {
                let upper = held.upper.take().map_or(0, |upper| upper.elements().len());
                upper + std::mem::take(&mut held.replaced).len()
            }
            PanelPart::Left { .. } => held.left.take().map_or(0, |left| left.len()),
            _ => held.panels.remove(&piece.column).map_or(0, |panel| panel.elements().len()),
        };
        held.uncount(freed);
    }

    fn peak_bytes(&self, held: &GridData<T>) -> u64 {
        ((held.part.elements().len() + held.most_elements) * size_of::<T>()) as u64
    }
}

//! The steps of a Cholesky, LU or L D L^T factorisation, here by block columns; those of symmetric matrices by tiles are
//! in `tiles`, those of LU by tiles in `grid`.
//!
//! Each block column is a panel in its turn: its owner factors it and sends it to those who own later columns,
//! and everybody updates his later columns with it. The owner of the next panel updates and factors that first
//! (a look-ahead of one panel), so that it travels while everybody is busy with the last. Rows that LU exchanges in
//! columns left of a panel are exchanged at the end.
//!
//! Where a fast processor factors the block column of a slow one, that gives it away after all updates but the last, and
//! before its other updates with that panel; it comes back as a panel. So there is a whole step for it to arrive in.
//!
//! The schedule of a slab begins with the updates of its columns with all panels left of it, which others have factored
//! before; rows left of it are not exchanged.

mod grid;
mod tiles;
mod times;

use super::{Application, Broadcast, Message, Piece, Step, StepOf, Work};
use crate::geometry::Rank;
use crate::model::Machine;
#[cfg(doc)]
use crate::plan::GridTiles;
use crate::plan::{BlockColumns, Blocks, Factors};
use crate::platform::{DeviceUploads, Network};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
pub use times::{BlockTimes, FactorTimes};

/// Columns at whose width a panel takes the time of both parts of its [`Weight`].
const NARROW: f64 = 16.0;

/// Seconds of a part of the work in those of a multiply-add of a large product: those of its own products, and those of
/// what is done once for each element of a panel or a right-hand side, and so matters less the wider a block is: copies,
/// and the search of pivots. The latter are given for blocks of [`NARROW`] columns. Measured for f64 on one core of an
/// AMD EPYC (Zen 4) with AVX-512, for blocks of 32 to 256 columns and 500 to 2,000 rows: within an eighth of the times
/// there; for L D L^T, of up to 128 columns, within a quarter.
struct Weight {
    products: f64,
    elements: f64,
}

impl Weight {
    const LU: Self = Self { products: 1.2, elements: 3.3 };
    const CHOLESKY: Self = Self { products: 1.0, elements: 1.6 };
    const LDLT: Self = Self { products: 1.35, elements: 2.3 };
    const TRIANGLE: Self = Self { products: 1.0, elements: 1.55 };

    /// The amount of so many multiply-adds with a block of `width`.
    fn amount(&self, multiply_adds: f64, width: f64) -> f64 {
        multiply_adds * (self.products + self.elements * (NARROW / width).min(1.0))
    }
}

/// What the factorisation of a panel costs, in multiply-adds of large products.
pub(crate) fn panel_amount(factors: Factors, rows: f64, width: f64) -> f64 {
    let symmetric = width * width * (rows / 2.0 - width / 3.0);
    match factors {
        Factors::Lu => Weight::LU.amount(width * width * (rows / 2.0 - width / 6.0), width),
        Factors::Cholesky => Weight::CHOLESKY.amount(symmetric, width),
        Factors::Ldlt => Weight::LDLT.amount(symmetric, width),
    }
}

/// The same for the exchange of two elements.
const EXCHANGE: f64 = 25.0;

/// The most rectangles in which a device updates the trapezoid of a symmetric matrix: more would send up more of the
/// panel, fewer compute more above the diagonal.
const RECTANGLES: usize = 8;
/// Transfers between a device and its host for an update of LU, in pairs: rows to exchange come down and go up, then
/// those of U and the panel go up.
const PAIRS_OF_LU: u64 = 2;

/// What an update costs for each of its elements besides its products, in multiply-adds: C is read and written.
const PASS: f64 = 8.0;

/// What the copy of an element costs: both places are far from the caches.
const COPY: f64 = 25.0;

/// The part of the matrix that an update changes, below the rows of U.
struct Extent {
    elements: u64,
    /// Number of columns.
    across: u64,
}

/// What travels of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelPiece {
    /// The block column.
    pub column: usize,
    /// Which part of it.
    pub part: PanelPart,
    /// Number of elements of marks: whether it failed, and the pivots or the elements of D. They come first.
    pub marks: u64,
    /// Number of elements of the panel, row by row; 0 if only the marks travel.
    pub elements: u64,
}

/// A part of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelPart {
    /// Everything that others need.
    Whole,
    /// Its diagonal tile before it is factored.
    Diagonal,
    /// The block column before its last update, for the processor that takes it over.
    Column,
    /// The rows of a block column taken over that nobody but its owner needs.
    Back,
    /// The rows of one processor's tiles that another one needs.
    Rows {
        /// Whose they are.
        from: Rank,
        /// Who needs them.
        to: Rank,
    },
    /// The rows of one processor's tiles below the diagonal tile before they are factored, of LU.
    Unfactored {
        /// Whose they are.
        from: Rank,
    },
    /// Rows of one processor's tiles that the pivots of the panel bring into the diagonal block's rows, in block columns
    /// right of it: as many rows as the panel has columns, those that are not needed zero.
    PivotRows {
        /// Whose they are.
        from: Rank,
        /// In which of the [parts](GridTiles::right_of) of the block columns.
        right: usize,
    },
    /// The rows of U, and then those that the pivots replaced by others, in block columns right of the panel.
    Upper {
        /// Who needs them.
        to: Rank,
        /// In which of the [parts](GridTiles::right_of) of the block columns.
        right: usize,
    },
    /// The rows of one processor's tiles below the diagonal tile, which are exchanged as later panels demand.
    Left {
        /// Whose they are.
        of: Rank,
    },
}

impl Piece for PanelPiece {
    fn elements(&self) -> u64 {
        self.marks + self.elements
    }
}

/// What is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactorTask {
    /// A block column is factored as a panel; where the matrix is divided into tiles, the diagonal tile and the own ones
    /// below it are.
    Panel(usize),
    /// Own block columns in a range are updated with a panel.
    Update {
        /// The block column of the panel.
        panel: usize,
        /// The range.
        columns: Range<usize>,
    },
    /// An own block column is copied for the processor that takes it over.
    GiveAway(usize),
    /// The rows of own block columns are exchanged as all later panels demand.
    Exchange,
    /// By tiles, rows in a range of block columns are exchanged as the pivots of a panel demand, and those of U computed.
    Upper {
        /// The block column of the panel.
        panel: usize,
        /// The range.
        columns: Range<usize>,
    },
    /// By tiles, the rows of a block column are exchanged as all later panels demand.
    ExchangeIn(usize),
}

/// A task and its cost: in multiply-adds of large products, or in seconds where the schedule knows times.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorWork {
    /// The task.
    pub task: FactorTask,
    amount: f64,
    /// What crosses the link of a device for it: panels come down, and whatever an update needs goes up.
    crosses: DeviceUploads,
}

impl Work for FactorWork {
    fn amount(&self) -> f64 {
        self.amount
    }

    fn uploads(&self, _: Option<u64>, _: u64) -> DeviceUploads {
        self.crosses
    }

    fn fetches(&self) -> Option<u64> {
        match self.task {
            FactorTask::Panel(_) | FactorTask::GiveAway(_) | FactorTask::Exchange => {
                Some(self.crosses.elements)
            }
            // Devices have no tiles.
            FactorTask::Update { .. } | FactorTask::Upper { .. } | FactorTask::ExchangeIn(_) => None,
        }
    }
}

/// A factorisation by block columns or tiles.
#[derive(Debug, Clone)]
pub struct FactorSchedule {
    factors: Factors,
    blocks: Blocks,
    /// What the work costs, if it was measured.
    times: Option<Arc<FactorTimes>>,
}

impl FactorSchedule {
    /// A factorisation of these block columns or tiles.
    ///
    /// # Panics
    /// If there are tiles of a triangle and the factors are L and U, or those of a whole matrix, and they are others.
    pub fn new(factors: Factors, blocks: impl Into<Blocks>) -> Self {
        let blocks = blocks.into();
        let possible = match blocks {
            Blocks::Columns(_) => true,
            Blocks::Tiles(_) => factors.is_symmetric(),
            Blocks::Grid(_) => factors == Factors::Lu,
        };
        assert!(possible, "{factors} has other tiles");
        Self { factors, blocks, times: None }
    }

    /// The same with measured times: work is in seconds of the processor that does it.
    pub fn with_times(self, times: Option<Arc<FactorTimes>>) -> Self {
        Self { times, ..self }
    }

    /// What each processor does of its [work](Work::amount) in a second.
    pub fn rates(&self, machine: &Machine) -> Vec<f64> {
        match self.times {
            Some(_) => vec![1.0; self.processors()],
            None => machine.rates(&self.sizes()),
        }
    }

    /// The network as a forecast with the [rates](Self::rates) uses it: the columns of a device stay on it, and measured
    /// times include its transfers.
    pub fn network<'m>(&self, machine: &'m Machine) -> Cow<'m, Network> {
        let mut network = Cow::Borrowed(&machine.platform.network);
        if !network.devices.is_empty() {
            let devices = &mut network.to_mut().devices;
            devices.retain(|_, _| self.times.is_none());
            devices.values_mut().for_each(|memory| memory.resident = true);
        }
        network
    }

    /// The places of own block columns in a range that a device updates together, in rows from the first one's diagonal
    /// on: for LU, whose rows begin below the panel, all.
    pub fn rectangles(
        &self,
        rank: Rank,
        columns: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let places = self.columns().places(rank, columns);
        let most = if self.factors == Factors::Lu { 1 } else { RECTANGLES };
        let count = most.min(places.len());
        let cut = move |t: usize| places.start + t * places.len() / count.max(1);
        (0..count).map(move |t| cut(t)..cut(t + 1))
    }

    /// What crosses the link of a device for an update; devices have no tiles.
    fn crossings(&self, rank: Rank, panel: usize, columns: Range<usize>) -> DeviceUploads {
        if !self.blocks.are_columns() {
            return DeviceUploads::default();
        }
        let (n, own) = (self.columns().n(), self.columns().own(rank));
        let (width, below) = (self.columns().span(panel).len(), self.columns().span(panel).end);
        let mut all = DeviceUploads::default();
        for places in self.rectangles(rank, columns) {
            let across: u64 = own[places.clone()].iter().map(|&own| self.columns().span(own).len()).sum();
            let lu = self.factors == Factors::Lu;
            let first = if lu { below } else { self.columns().span(own[places.start]).start };
            // Up to as many rows as the panel has columns are exchanged with those of U: both come down, and go up.
            let exchanged = if lu { 4 * width * across } else { width * across };
            all.elements += (n - first) * width + exchanged;
            all.tiles += if lu { PAIRS_OF_LU } else { 1 };
        }
        all
    }

    /// Into which factors.
    pub fn factors(&self) -> Factors {
        self.factors
    }

    /// The parts of the processors.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The block columns.
    ///
    /// # Panics
    /// If it is by tiles.
    pub fn columns(&self) -> &BlockColumns {
        match &self.blocks {
            Blocks::Columns(columns) => columns,
            Blocks::Tiles(_) | Blocks::Grid(_) => {
                unreachable!("a factorisation by tiles has no block columns")
            }
        }
    }

    /// The sizes at which speed functions are evaluated, by rank: the [shares](Application::share), at least 1.
    pub fn sizes(&self) -> Vec<u64> {
        (0..self.processors()).map(|rank| self.share(Rank(rank)).ceil().max(1.0) as u64).collect()
    }

    /// Elements that a processor holds at most: its columns or tiles, and a panel; or two where it factors one while it
    /// still uses the last.
    pub fn memory(&self, rank: Rank) -> u64 {
        match &self.blocks {
            Blocks::Columns(_) => {}
            Blocks::Tiles(tiles) => return self.memory_of_tiles(tiles, rank),
            Blocks::Grid(tiles) => return grid::memory(tiles, rank),
        }
        let columns = self.columns();
        let factors = |column: usize| column >= columns.first() && columns.factorer(column) == rank;
        let held = |column: usize| match () {
            () if factors(column) && columns.is_taken_over(column) => {
                self.piece(column, true).elements() + self.back_piece(column).elements()
            }
            () if factors(column) => self.piece(column, true).elements(),
            () if columns.needs_panel(rank, column) => match self.piece(column, true) {
                // The last one of a symmetric matrix has nothing but its diagonal block.
                piece if piece.elements == 0 => 0,
                piece => piece.elements(),
            },
            () => 0,
        };
        let before = |column| if column > columns.first() { held(column - 1) } else { 0 };
        let two = columns.factored(rank).map(|column| held(column) + before(column));
        let width: u64 = columns.own(rank).iter().map(|&column| columns.span(column).len()).sum();
        columns.n() * width + (0..columns.count()).map(held).chain(two).max().unwrap_or(0)
    }

    /// The panel of a block column, as it travels; only its marks where others need no more.
    fn piece(&self, column: usize, whole: bool) -> PanelPiece {
        let rows = self.columns().panel_rows(self.factors, column).len();
        PanelPiece {
            column,
            part: PanelPart::Whole,
            marks: self.columns().panel_marks(self.factors, column),
            elements: if whole { rows * self.columns().span(column).len() } else { 0 },
        }
    }

    /// What of a block column taken over goes back to its owner besides the panel.
    fn back_piece(&self, column: usize) -> PanelPiece {
        let rows = self.columns().rows_given_back(self.factors, column).len();
        let elements = rows * self.columns().span(column).len();
        PanelPiece { column, part: PanelPart::Back, marks: 0, elements }
    }

    /// The message with a block column to the processor that takes it over.
    fn give_away(&self, column: usize) -> Option<Message<PanelPiece>> {
        let (columns, from, to) =
            (self.columns(), self.columns().owner(column), self.columns().factorer(column));
        let elements = columns.rows_taken_over(self.factors, column).len() * columns.span(column).len();
        let pieces = vec![PanelPiece { column, part: PanelPart::Column, marks: 0, elements }];
        (from != to).then_some(Message { from, to, tag: column as u64, pieces })
    }

    /// The message with a panel to a processor, if that needs it.
    fn message(&self, column: usize, to: Rank) -> Option<Message<PanelPiece>> {
        let (columns, from) = (self.columns(), self.columns().factorer(column));
        let whole = columns.needs_panel(to, column);
        if from == to || !whole && !columns.needs_pivots(self.factors, to, column) {
            return None;
        }
        let back = Some(self.back_piece(column));
        let back = back.filter(|back| columns.owner(column) == to && back.elements > 0);
        let pieces = back.into_iter().chain([self.piece(column, whole)]).collect();
        Some(Message { from, to, tag: column as u64, pieces })
    }

    /// The messages with a panel: first to those who factor the next ones.
    pub fn messages(&self, column: usize) -> Vec<Message<PanelPiece>> {
        let columns = self.columns();
        let mut next = vec![columns.count(); columns.processors()];
        (column + 1..columns.count()).rev().for_each(|later| next[columns.factorer(later).0] = later);
        let mut to: Vec<Rank> = (0..columns.processors()).map(Rank).collect();
        to.sort_by_key(|rank| next[rank.0]);
        to.into_iter().filter_map(|to| self.message(column, to)).collect()
    }

    /// The block columns in a range that a processor updates with a panel: its own but the next, which it has given away
    /// if it does not factor it, and the next one that it has taken over.
    fn updated(&self, rank: Rank, panel: usize, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let (columns, next) = (self.columns(), panel + 1);
        let own = columns.own(rank)[columns.places(rank, range.clone())].iter().copied();
        let is_here = move |&column: &usize| column != next || columns.factorer(next) == rank;
        let taken = range.contains(&next) && columns.factorer(next) == rank && columns.is_taken_over(next);
        own.filter(is_here).chain(taken.then_some(next))
    }

    /// The updates of some block columns of a processor with a panel.
    fn extent(&self, rank: Rank, panel: usize, columns: Range<usize>) -> Extent {
        match &self.blocks {
            Blocks::Columns(_) => {}
            Blocks::Tiles(tiles) => {
                let [elements, across] = tiles.extent(rank, columns);
                return Extent { elements, across };
            }
            Blocks::Grid(tiles) => {
                let across = tiles.group(rank).map_or(0, |group| tiles.columns_in(group, columns));
                return Extent { elements: tiles.rows_after(rank, panel) * across, across };
            }
        }
        let (n, end) = (self.columns().n(), self.columns().span(panel).end);
        let mut extent = Extent { elements: 0, across: 0 };
        for column in self.updated(rank, panel, columns) {
            let span = self.columns().span(column);
            let rows = if self.factors == Factors::Lu { n - end } else { n - span.start };
            extent.elements += rows * span.len();
            extent.across += span.len();
        }
        extent
    }

    fn update(&self, rank: Rank, panel: usize, columns: Range<usize>) -> StepOf<Self> {
        let width = self.blocks.span(panel).len() as f64;
        let Extent { elements, across } = self.extent(rank, panel, columns.clone());
        let (elements, across) = (elements as f64, across as f64);
        // Those of LU include the rows of U; by tiles these are apart.
        let with_upper = self.factors == Factors::Lu && self.blocks.are_columns();
        let amount = match &self.times {
            Some(times) => {
                let rows = if with_upper { width * across } else { 0.0 };
                times.update(rank, elements + rows, across, width)
            }
            None => {
                let products = elements * (width + PASS);
                if with_upper { products + upper_amount(across, width) } else { products }
            }
        };
        let crosses = self.crossings(rank, panel, columns.clone());
        Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, amount, crosses })
    }

    /// Factors a panel and sends it.
    fn panel(&self, column: usize) -> impl Iterator<Item = StepOf<Self>> + use<> {
        let span = self.columns().span(column);
        let mut work =
            self.panel_work(self.columns().factorer(column), column, self.columns().n() - span.start);
        if self.columns().is_taken_over(column) {
            // It came to the host.
            work.crosses = DeviceUploads::default();
        }
        let mut messages = self.messages(column);
        let send = match messages.len() {
            0 => None,
            1 => messages.pop().map(Step::Send),
            _ => Some(Step::Broadcast(Broadcast::of_largest(messages))),
        };
        std::iter::once(Step::Compute(work)).chain(send)
    }

    /// The factorisation of a panel, of so many rows with its diagonal block, by a processor.
    fn panel_work(&self, rank: Rank, column: usize, rows: u64) -> FactorWork {
        let crosses = DeviceUploads { elements: rows * self.blocks.span(column).len(), tiles: 0 };
        let (rows, width) = (rows as f64, self.blocks.span(column).len() as f64);
        let amount = match &self.times {
            Some(times) => times.panel(rank, rows, width),
            None => panel_amount(self.factors, rows, width),
        };
        FactorWork { task: FactorTask::Panel(column), amount, crosses }
    }

    /// What a processor does with a panel left of a slab.
    fn earlier(&self, rank: Rank, panel: usize) -> [StepOf<Self>; 2] {
        let columns = self.columns().first()..self.columns().count();
        [self.update(rank, panel, columns), Step::Free(self.piece(panel, true))]
    }

    /// Gives an own block column away.
    fn give(&self, message: Message<PanelPiece>, column: usize) -> [StepOf<Self>; 2] {
        let elements = message.elements() as f64;
        let amount = match &self.times {
            Some(times) => COPY * elements / times.fastest(message.from),
            None => COPY * elements,
        };
        let crosses = DeviceUploads { elements: message.elements(), tiles: 0 };
        let task = FactorTask::GiveAway(column);
        [Step::Compute(FactorWork { task, amount, crosses }), Step::Send(message)]
    }

    /// Waits for a block column, if it is taken over.
    fn take(&self, column: usize) -> Option<StepOf<Self>> {
        let message = self.give_away(column)?;
        Some(Step::WaitReceive { from: message.from, tag: message.tag })
    }

    /// What a processor does before the first panel comes.
    fn begin(&self, rank: Rank) -> Vec<StepOf<Self>> {
        let (columns, first) = (self.columns(), self.columns().first());
        let mut steps = Vec::new();
        // These are not updated before they are given away.
        for column in (first..columns.count()).take(2) {
            match self.give_away(column) {
                Some(message) if message.from == rank => steps.extend(self.give(message, column)),
                Some(message) if message.to == rank => steps.push(Step::PostReceive(message)),
                _ => {}
            }
        }
        steps.extend(self.message(first, rank).map(Step::PostReceive));
        if columns.factorer(first) == rank {
            steps.extend(self.take(first));
            steps.extend(self.panel(first));
        }
        steps
    }

    /// What a processor does with a panel.
    fn turn(&self, rank: Rank, panel: usize) -> Vec<StepOf<Self>> {
        let (columns, count, mut steps) = (self.columns(), self.columns().count(), Vec::new());
        let (next, mut rest) = (panel + 1, panel + 2);
        let incoming = |column| if column < count { self.message(column, rank) } else { None };
        let given = if rest < count { self.give_away(rest) } else { None };
        steps.extend(given.clone().filter(|message| message.to == rank).map(Step::PostReceive));
        steps.extend(incoming(next).map(Step::PostReceive));
        let arrival =
            |message: Message<PanelPiece>| Step::WaitReceive { from: message.from, tag: message.tag };
        steps.extend(incoming(panel).map(arrival));
        if next < count && columns.factorer(next) == rank {
            steps.extend(self.take(next));
            steps.push(self.update(rank, panel, next..rest));
            steps.extend(self.panel(next));
        }
        if let Some(message) = given.filter(|message| message.from == rank) {
            steps.push(self.update(rank, panel, rest..rest + 1));
            steps.extend(self.give(message, rest));
            rest += 1;
        }
        if columns.own(rank).last().is_some_and(|last| *last >= rest) {
            steps.push(self.update(rank, panel, rest..count));
        }
        if columns.factorer(panel) == rank || columns.needs_panel(rank, panel) {
            steps.push(Step::Free(self.piece(panel, true)));
        }
        steps
    }

    /// Exchanges of rows in so many elements.
    fn exchange_amount(&self, rank: Rank, elements: f64) -> f64 {
        match &self.times {
            Some(times) => times.exchange(rank, elements),
            None => EXCHANGE * elements,
        }
    }

    /// The exchanges of rows left of later panels.
    fn exchange(&self, rank: Rank) -> Option<StepOf<Self>> {
        let own = self.columns().own(rank);
        let width = |column: usize| self.columns().span(column).len() as f64;
        let later = |column: usize| (self.columns().n() - self.columns().span(column).end) as f64;
        let elements = own.iter().map(|&column| width(column) * later(column)).sum();
        let amount = self.exchange_amount(rank, elements);
        let needed = self.factors == Factors::Lu && !self.columns().is_slab() && amount > 0.0;
        let crosses = DeviceUploads::default();
        needed.then_some(Step::Compute(FactorWork { task: FactorTask::Exchange, amount, crosses }))
    }
}

/// The rows of U of so many columns, with the exchange of rows that comes before, in multiply-adds.
fn upper_amount(across: f64, width: f64) -> f64 {
    Weight::TRIANGLE.amount(across * width * width / 2.0, width) + EXCHANGE * across * width
}

impl Application for FactorSchedule {
    type Piece = PanelPiece;
    type Work = FactorWork;

    fn processors(&self) -> usize {
        self.blocks.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        match &self.blocks {
            Blocks::Columns(_) => {}
            Blocks::Tiles(tiles) => return self.steps_of_tiles(tiles, rank),
            Blocks::Grid(tiles) => return self.steps_of_grid(tiles, rank),
        }
        let columns = self.columns();
        if columns.own(rank).is_empty() && columns.factored(rank).next().is_none() {
            return Box::new(std::iter::empty());
        }
        let first = columns.first();
        let earlier = (0..first).flat_map(move |panel| self.earlier(rank, panel));
        let turns = (first..columns.count()).flat_map(move |panel| self.turn(rank, panel));
        Box::new(earlier.chain(self.begin(rank)).chain(turns).chain(self.exchange(rank)))
    }

    fn overlaps(&self) -> bool {
        true
    }

    /// Elements of the matrix that it updates with one column of a panel, on average over all columns.
    fn share(&self, rank: Rank) -> f64 {
        let count = self.blocks.count();
        let products = |panel: usize| {
            self.blocks.span(panel).len() as f64 * self.extent(rank, panel, panel + 1..count).elements as f64
        };
        (0..count).map(products).sum::<f64>() / self.blocks.n() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn columns(owners: &[usize], n: u64, block: u64, p: usize) -> BlockColumns {
        BlockColumns::new(n, block, p, owners.iter().copied().map(Rank).collect())
    }

    fn schedules() -> Vec<FactorSchedule> {
        let layouts = [
            columns(&[0], 1, 8, 1),
            columns(&[1], 5, 8, 3),
            columns(&[0, 1, 0, 1], 32, 8, 2),
            columns(&[2, 2, 0, 1, 0], 37, 8, 4),
            columns(&[0, 1, 2, 1, 1, 0, 0], 50, 8, 3),
        ];
        let all = |columns: &BlockColumns| {
            [Factors::Cholesky, Factors::Lu, Factors::Ldlt]
                .map(|factors| FactorSchedule::new(factors, columns.clone()))
        };
        let slabs =
            [layouts[2].slab(0..2), layouts[3].slab(2..4), layouts[4].slab(3..7), layouts[4].slab(1..2)];
        let panels = |columns: &BlockColumns, by: &[usize]| {
            columns.clone().factored_by(by.iter().copied().map(Rank).collect())
        };
        let taken_over = [
            panels(&layouts[1], &[2]),
            panels(&layouts[2], &[0; 4]),
            panels(&layouts[2], &[1, 0, 1, 0]),
            panels(&layouts[3], &[3, 2, 3, 1, 3]),
            panels(&layouts[4], &[0, 0, 0, 1, 0, 2, 1]),
        ];
        layouts.iter().chain(&slabs).chain(&taken_over).flat_map(all).collect()
    }

    /// Every panel is factored once, by its owner or by who takes it over, after all updates with earlier panels, and every
    /// block column is updated once with each earlier panel, after that was received.
    #[test]
    fn every_column_is_updated_with_every_earlier_panel_before_it_is_factored() {
        for schedule in schedules() {
            let columns = schedule.columns();
            let (first, count) = (columns.first(), columns.count());
            let mut factored = vec![0; count];
            for rank in (0..schedule.processors()).map(Rank) {
                let mut known = vec![false; count];
                // Those left of a slab are in a file.
                known[..first].fill(true);
                // With how many panels a block column that is here was updated.
                let own = |column| (columns.owner(column) == rank).then_some(0);
                let mut updated: Vec<Option<usize>> = (0..count).map(own).collect();
                for step in schedule.steps(rank) {
                    match step {
                        Step::WaitReceive { from, tag } => {
                            let column = tag as usize;
                            if columns.factorer(column) == rank {
                                assert_eq!((from, updated[column]), (columns.owner(column), None));
                                updated[column] = Some(column.saturating_sub(1));
                            } else {
                                assert_eq!(from, columns.factorer(column));
                                known[column] = true;
                            }
                        }
                        Step::Compute(FactorWork { task: FactorTask::GiveAway(column), .. }) => {
                            assert!(columns.is_taken_over(column));
                            assert_eq!(updated[column].take(), Some(column.saturating_sub(1)));
                        }
                        Step::Compute(FactorWork { task: FactorTask::Panel(column), .. }) => {
                            assert_eq!((columns.factorer(column), updated[column]), (rank, Some(column)));
                            factored[column] += 1;
                            known[column] = true;
                        }
                        Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, .. }) => {
                            assert!(known[panel]);
                            for updated in updated[columns].iter_mut().flatten() {
                                assert_eq!(*updated, panel, "updates are in order");
                                *updated += 1;
                            }
                        }
                        Step::Compute(FactorWork { task: FactorTask::Exchange, .. }) => {
                            assert!(!columns.is_slab());
                            let first = columns.own(rank)[0];
                            assert!(known[first..].iter().all(|known| *known));
                        }
                        _ => {}
                    }
                }
                let back = columns.own(rank).iter().filter(|&&column| columns.is_taken_over(column));
                assert!(back.into_iter().all(|&column| known[column]), "its panels come back");
            }
            assert!(factored[first..].iter().all(|times| *times == 1));
        }
    }

    /// What is sent is what is posted for, and what the formula counts.
    #[test]
    fn messages_have_two_ends_and_are_counted_by_the_formula() {
        schedules().iter().for_each(check_messages);
    }

    /// The same of one schedule.
    pub(super) fn check_messages(schedule: &FactorSchedule) {
        let steps = |rank| schedule.steps(Rank(rank)).collect::<Vec<_>>();
        let all: Vec<Vec<StepOf<FactorSchedule>>> = (0..schedule.processors()).map(steps).collect();
        let mut sent: Vec<&Message<PanelPiece>> = all.iter().flatten().flat_map(Step::sent).collect();
        let posted = all.iter().flatten().filter_map(|step| match step {
            Step::PostReceive(message) => Some(message),
            _ => None,
        });
        let mut posted: Vec<&Message<PanelPiece>> = posted.collect();
        let waits = all.iter().flatten().filter(|step| matches!(step, Step::WaitReceive { .. })).count();
        assert_eq!(waits, posted.len());
        for messages in [&mut sent, &mut posted] {
            messages.sort_by_key(|message| (message.from, message.to, message.tag));
            let keys: BTreeSet<_> = messages.iter().map(|m| (m.from, m.to, m.tag)).collect();
            assert_eq!(keys.len(), messages.len());
        }
        assert_eq!(sent, posted);
        assert!(sent.iter().flat_map(|message| &message.pieces).all(|piece| piece.elements() > 0));
        for rank in (0..schedule.processors()).map(Rank) {
            let counted: u64 = sent.iter().filter(|m| m.to == rank).map(|m| m.elements()).sum();
            let formula = schedule.blocks().received(schedule.factors(), rank);
            assert_eq!(counted, formula, "{schedule:?} {rank:?}");
        }
        // On a bus each element of a broadcast travels once: no message has more.
        for step in all.iter().flatten() {
            if let Step::Broadcast(broadcast) = step {
                let most = broadcast.messages.iter().map(Message::elements).max().unwrap();
                let sum: u64 = broadcast.messages.iter().map(Message::elements).sum();
                assert!((most..=sum).contains(&broadcast.elements()));
            }
        }
    }

    /// The multiply-adds of all products, panels and triangles without weights are those of the factorisation.
    #[test]
    fn products_are_most_of_the_work() {
        let columns = columns(&[0; 40], 1280, 32, 1);
        for (factors, wanted) in [(Factors::Cholesky, 6.0), (Factors::Lu, 3.0), (Factors::Ldlt, 6.0)] {
            let schedule = FactorSchedule::new(factors, columns.clone());
            let products = schedule.share(Rank(0)) * 1280.0;
            let part = products * wanted / 1280_f64.powi(3);
            // Diagonal blocks of symmetric matrices are updated whole.
            assert!((0.9..1.04).contains(&part), "{factors}: {part}");
            assert!(schedule.work(Rank(0)) > products);
        }
    }
}

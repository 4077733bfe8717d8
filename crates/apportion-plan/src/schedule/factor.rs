//! Cholesky, LU and L D L^T factorisations of a [`TileMap`]: what travels, what is computed, and what it costs. Their
//! order is in `steps`.

mod steps;
mod times;

use super::{Application, Piece, Step, StepOf, Work};
use crate::geometry::Rank;
use crate::model::Machine;
use crate::plan::{Factors, TileMap};
use crate::platform::{DeviceUploads, Network};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use steps::Turns;
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Extent {
    elements: u64,
    /// Number of columns.
    across: u64,
}

impl Extent {
    fn and(self, other: Self) -> Self {
        Self { elements: self.elements + other.elements, across: self.across + other.across }
    }

    fn less(self, other: Self) -> Self {
        Self { elements: self.elements - other.elements, across: self.across - other.across }
    }
}

/// What the steps of a factorisation add up to, by rank.
pub(crate) struct Totals {
    /// [Work](Application::work).
    pub work: Vec<f64>,
    /// [Received](FactorSchedule::received) elements.
    pub received: Vec<u64>,
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
    /// Its marks, and the rows of one processor's part of it that another one needs.
    Rows {
        /// Whose they are.
        from: Rank,
        /// Who needs them.
        to: Rank,
    },
    /// Rows before they are factored: of a block column taken over, before its last update; of LU in tiles, those of one
    /// processor below the diagonal tile; of a symmetric matrix in tiles, the diagonal tile.
    Unfactored {
        /// Whose they are.
        from: Rank,
    },
    /// The rows of a block column taken over that nobody but its owner needs.
    Back,
    /// Rows of one processor's tiles that the pivots of the panel bring into the diagonal block's rows, in block columns
    /// right of it: as many rows as the panel has columns, those that are not needed zero.
    PivotRows {
        /// Whose they are.
        from: Rank,
        /// In which of the [parts](FactorSchedule::right_of) of the block columns.
        right: usize,
    },
    /// The rows of U, and then those that the pivots replaced by others, in block columns right of the panel.
    Upper {
        /// Who needs them.
        to: Rank,
        /// In which of the [parts](FactorSchedule::right_of) of the block columns.
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
    /// A block column is factored as a panel; of a symmetric matrix in tiles, the diagonal tile and the own ones below it.
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
    tiles: TileMap,
    /// What the work costs, if it was measured.
    times: Option<Arc<FactorTimes>>,
    /// Of a symmetric matrix, the updates of the first own block columns of each processor, by their number.
    sums: Vec<Vec<Extent>>,
}

impl FactorSchedule {
    /// A factorisation of these block columns or tiles.
    ///
    /// # Panics
    /// If there are tiles of a triangle and the factors are L and U, or those of a whole matrix, and they are others.
    pub fn new(factors: Factors, tiles: TileMap) -> Self {
        let possible = tiles.are_columns() || tiles.is_triangle() == factors.is_symmetric();
        assert!(possible, "{factors} has other tiles");
        let mut schedule = Self { factors, tiles, times: None, sums: Vec::new() };
        schedule.sums = schedule.sums();
        schedule
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
        let places = self.tiles.places(rank, columns);
        let most = if self.factors == Factors::Lu { 1 } else { RECTANGLES };
        let count = most.min(places.len());
        let cut = move |t: usize| places.start + t * places.len() / count.max(1);
        (0..count).map(move |t| cut(t)..cut(t + 1))
    }

    /// What crosses the link of a device for an update; devices have no tiles.
    fn crossings(&self, rank: Rank, panel: usize, columns: Range<usize>) -> DeviceUploads {
        if !self.tiles.are_columns() {
            return DeviceUploads::default();
        }
        let (n, own) = (self.tiles.n(), self.tiles.own(rank));
        let (width, below) = (self.tiles.span(panel).len(), self.tiles.span(panel).end);
        let mut all = DeviceUploads::default();
        for places in self.rectangles(rank, columns) {
            let across = self.tiles.length(&own[places.clone()]);
            let lu = self.factors == Factors::Lu;
            let first = if lu { below } else { self.tiles.span(own[places.start]).start };
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
    pub fn blocks(&self) -> &TileMap {
        &self.tiles
    }

    /// The sizes at which speed functions are evaluated, by rank: the [shares](Application::share), at least 1.
    pub fn sizes(&self) -> Vec<u64> {
        (0..self.processors()).map(|rank| self.share(Rank(rank)).ceil().max(1.0) as u64).collect()
    }

    /// Number of elements that a processor receives, over all steps.
    pub fn received(&self) -> Vec<u64> {
        self.totals().received
    }

    /// What all steps add up to.
    pub(crate) fn totals(&self) -> Totals {
        let count = self.processors();
        let mut totals = Totals { work: vec![0.0; count], received: vec![0; count] };
        for rank in 0..count {
            for step in self.steps(Rank(rank)) {
                step.sent().iter().for_each(|message| totals.received[message.to.0] += message.elements());
                if let Step::Compute(work) = step {
                    totals.work[rank] += work.amount();
                }
            }
        }
        totals
    }

    /// Elements that a processor holds at most, over all steps: its columns or tiles, and what there is of panels.
    pub fn memory(&self, rank: Rank) -> u64 {
        let tiles = &self.tiles;
        let (mut held, mut posted) = (Held::default(), BTreeMap::new());
        for step in self.steps(rank) {
            match step {
                Step::PostReceive(message) => {
                    posted.insert((message.from, message.tag), message.pieces);
                }
                Step::WaitReceive { from, tag } => {
                    for piece in posted.remove(&(from, tag)).into_iter().flatten() {
                        let (column, elements) = (piece.column, piece.elements());
                        match piece.part {
                            PanelPart::Rows { .. } if piece.elements > 0 => {
                                held.add(column, Slot::Panel, elements)
                            }
                            PanelPart::Unfactored { .. } => {
                                held.ensure(column, Slot::Panel, self.gathered_elements(rank, column));
                            }
                            PanelPart::PivotRows { .. } => held.add(column, Slot::Pivots, elements),
                            PanelPart::Upper { .. } => held.add(column, Slot::Upper, elements),
                            PanelPart::Left { of } if of != rank => {
                                held.ensure(column, Slot::Left, self.left_elements(column));
                            }
                            _ => {}
                        }
                    }
                }
                Step::Compute(work) => match work.task {
                    FactorTask::Panel(column) => {
                        held.ensure(column, Slot::Panel, self.factored_elements(rank, column));
                    }
                    FactorTask::Update { panel, .. } if panel < tiles.first() => {
                        held.add(panel, Slot::Panel, self.factored_elements(rank, panel));
                    }
                    FactorTask::Upper { panel, columns } if held.has(panel, Slot::Pivots) => {
                        let width = tiles.span(panel).len();
                        let across = tiles.length(&tiles.own(rank)[tiles.places(rank, columns)]);
                        held.add(panel, Slot::Upper, width * across);
                        held.remove(panel, Slot::Pivots);
                    }
                    FactorTask::ExchangeIn(column) => {
                        held.ensure(column, Slot::Left, self.left_elements(column));
                    }
                    _ => {}
                },
                Step::Free(piece) => held.remove(
                    piece.column,
                    match piece.part {
                        PanelPart::Upper { .. } => Slot::Upper,
                        PanelPart::Left { .. } => Slot::Left,
                        _ => Slot::Panel,
                    },
                ),
                _ => {}
            }
        }
        let own = tiles.length(tiles.own(rank));
        let rows = if own > 0 { tiles.length(tiles.rows(rank)) } else { 0 };
        rows * own + held.most
    }

    /// Block rows of the panel of a block column that a processor factors, the diagonal one first.
    pub fn factored_rows(&self, rank: Rank, column: usize) -> Cow<'_, [usize]> {
        let tiles = &self.tiles;
        if tiles.are_columns() {
            return tiles.rows(rank)[column..].into();
        }
        match tiles.is_triangle() {
            true => std::iter::once(column).chain(tiles.rows_after(rank, column).iter().copied()).collect(),
            false => (column..tiles.count()).collect(),
        }
    }

    /// Block rows of a processor's part of a block column that travel before it is factored.
    pub fn unfactored_rows(&self, rank: Rank, column: usize) -> Cow<'_, [usize]> {
        let tiles = &self.tiles;
        match () {
            // Taken over with the rows that its last update changes, too.
            () if tiles.are_columns() && self.factors == Factors::Lu => {
                tiles.rows(rank)[column.saturating_sub(1)..].into()
            }
            () if tiles.are_columns() => tiles.rows(rank)[column..].into(),
            () if tiles.is_triangle() => vec![column].into(),
            () => tiles.rows_after(rank, column).into(),
        }
    }

    /// Block rows of a factored panel that travel from one processor to another.
    pub fn sent_rows(&self, column: usize, from: Rank, to: Rank) -> Cow<'_, [usize]> {
        let tiles = &self.tiles;
        if tiles.is_triangle() {
            let group = tiles.group_of(column);
            let needed = steps::needed_rows(tiles, to, column).into_iter();
            return needed.filter(|&row| tiles.owner_in(group, row) == from).collect();
        }
        if tiles.are_columns() {
            let rows = if steps::needs_panel(tiles, to, column) { tiles.rows(to) } else { &[] };
            let first = if self.factors == Factors::Lu { column } else { column + 1 };
            return rows.get(first..).unwrap_or_default().into();
        }
        let needs = |group| tiles.group_of(column) == group || steps::has_right(tiles, group, column);
        let below = if tiles.group(to).is_some_and(needs) { tiles.rows_after(to, column) } else { &[] };
        match steps::needs_diagonal(tiles, to, column) {
            true => std::iter::once(column).chain(below.iter().copied()).collect(),
            false => below.into(),
        }
    }

    /// Elements of a panel in the memory of the processor that factors it: the marks, and the rows that travel.
    fn factored_elements(&self, rank: Rank, column: usize) -> u64 {
        let (rows, width) = (self.factored_rows(rank, column), self.tiles.span(column).len());
        let stays = if self.factors == Factors::Lu { 0 } else { width };
        self.tiles.panel_marks(self.factors, column) + (self.tiles.length(&rows) - stays) * width
    }

    /// Elements of the memory to which rows of a panel come before it is factored: the marks, all rows, and those of a
    /// block column taken over that only its owner needs.
    pub fn gathered_elements(&self, rank: Rank, column: usize) -> u64 {
        let tiles = &self.tiles;
        let taken = tiles.is_taken_over(column) && self.factors == Factors::Lu;
        let back = if taken { tiles.rows_given_back(self.factors, column).len() } else { 0 };
        let rows = back + tiles.length(&self.factored_rows(rank, column));
        tiles.panel_marks(self.factors, column) + rows * tiles.span(column).len()
    }

    /// Elements of a block column below its diagonal tile.
    fn left_elements(&self, column: usize) -> u64 {
        let span = self.tiles.span(column);
        (self.tiles.n() - span.end) * span.len()
    }

    /// In how many parts the block columns right of a panel are updated.
    pub(crate) fn parts(&self) -> usize {
        if self.factors == Factors::Lu && !self.tiles.are_columns() { PARTS_OF_GRID } else { 2 }
    }

    /// The block columns right of a panel that are updated together: of part 0 the next one, and of each part after the
    /// first about twice as many as of the one before, so that the rows of U for it travel meanwhile.
    pub fn right_of(&self, panel: usize, part: usize) -> Range<usize> {
        let count = self.tiles.count();
        let (next, after) = ((panel + 1).min(count), (panel + 2).min(count));
        if part == 0 {
            return next..after;
        }
        let (all, last) = (count - after, self.parts() as u32 - 1);
        let cut = |part: u32| after + all * (2_usize.pow(part) - 1) / (2_usize.pow(last) - 1);
        cut(part as u32 - 1)..cut(part as u32)
    }

    /// Number of processors that receive a panel, if it is of whole block columns.
    pub fn readers(&self, column: usize) -> usize {
        Turns::new(self, self.tiles.factorer(column)).outgoing(column).0.len()
    }

    /// The updates of some block columns of a processor with a panel: of its own but the next, which it has given away if
    /// it does not factor it, and of the next one that it has taken over.
    fn extent(&self, rank: Rank, panel: usize, columns: Range<usize>) -> Extent {
        let (tiles, next) = (&self.tiles, panel + 1);
        let places = tiles.places(rank, columns.clone());
        let mut extent = match self.sums.get(rank.0) {
            Some(sums) => sums[places.end].less(sums[places.start]),
            None => {
                let across = tiles.length(&tiles.own(rank)[places]);
                Extent { elements: tiles.length(tiles.rows_after(rank, panel)) * across, across }
            }
        };
        if next < tiles.count() && columns.contains(&next) && tiles.is_taken_over(next) {
            let one = self.extent_of(rank, panel, next);
            if tiles.panel_owner(next) == rank {
                extent = extent.less(one);
            } else if tiles.factorer(next) == rank {
                extent = extent.and(one);
            }
        }
        extent
    }

    /// The update of one block column of a processor with a panel; of a symmetric matrix, with any.
    fn extent_of(&self, rank: Rank, panel: usize, column: usize) -> Extent {
        let (tiles, lu) = (&self.tiles, self.factors == Factors::Lu);
        let width = tiles.span(column).len();
        let below = tiles.length(tiles.rows_after(rank, if lu { panel } else { column }));
        let has_diagonal = tiles.are_columns() || tiles.panel_owner(column) == rank;
        let diagonal = if !lu && has_diagonal { width } else { 0 };
        let across = match tiles.is_triangle() {
            // A diagonal tile counts apart from those below it.
            true => width * (u64::from(below > 0) + u64::from(diagonal > 0)),
            false => width,
        };
        Extent { elements: (below + diagonal) * width, across }
    }

    /// Of a symmetric matrix, the updates of the first own block columns of each processor, by their number.
    fn sums(&self) -> Vec<Vec<Extent>> {
        if self.factors == Factors::Lu {
            return Vec::new();
        }
        let of_rank = |rank: usize| {
            let mut sums = vec![Extent::default()];
            for &column in self.tiles.own(Rank(rank)) {
                sums.push(sums[sums.len() - 1].and(self.extent_of(Rank(rank), 0, column)));
            }
            sums
        };
        (0..self.tiles.processors()).map(of_rank).collect()
    }

    /// The update of some block columns with a panel, if a processor has elements of them.
    fn update(&self, rank: Rank, panel: usize, columns: Range<usize>) -> Option<StepOf<Self>> {
        let Extent { elements, across } = self.extent(rank, panel, columns.clone());
        if elements == 0 {
            return None;
        }
        let width = self.tiles.span(panel).len() as f64;
        let (elements, across) = (elements as f64, across as f64);
        // Those of LU include the rows of U; by tiles these are apart.
        let with_upper = self.factors == Factors::Lu && self.tiles.are_columns();
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
        Some(Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, amount, crosses }))
    }

    /// The rows of U of a processor in some block columns.
    fn upper(&self, rank: Rank, panel: usize, columns: Range<usize>) -> FactorWork {
        let width = self.tiles.span(panel).len() as f64;
        let across =
            self.tiles.length(&self.tiles.own(rank)[self.tiles.places(rank, columns.clone())]) as f64;
        let amount = match &self.times {
            Some(times) => times.update(rank, width * across, across, width),
            None => upper_amount(across, width),
        };
        let task = FactorTask::Upper { panel, columns };
        FactorWork { task, amount, crosses: DeviceUploads::default() }
    }

    /// The factorisation of a processor's part of a panel.
    fn panel_work(&self, rank: Rank, column: usize) -> FactorWork {
        let (rows, width) =
            (self.tiles.length(&self.factored_rows(rank, column)), self.tiles.span(column).len());
        // A block column taken over came to the host.
        let elements = if self.tiles.is_taken_over(column) { 0 } else { rows * width };
        let (rows, width) = (rows as f64, width as f64);
        let amount = match &self.times {
            Some(times) => times.panel(rank, rows, width),
            None => panel_amount(self.factors, rows, width),
        };
        let crosses = DeviceUploads { elements, tiles: 0 };
        FactorWork { task: FactorTask::Panel(column), amount, crosses }
    }

    /// The copy of an own block column of so many elements, which another processor takes over.
    fn copy_work(&self, rank: Rank, column: usize, elements: u64) -> FactorWork {
        let amount = match &self.times {
            Some(times) => COPY * elements as f64 / times.fastest(rank),
            None => COPY * elements as f64,
        };
        let crosses = DeviceUploads { elements, tiles: 0 };
        FactorWork { task: FactorTask::GiveAway(column), amount, crosses }
    }

    /// Exchanges of rows in so many elements.
    fn exchange_amount(&self, rank: Rank, elements: f64) -> f64 {
        match &self.times {
            Some(times) => times.exchange(rank, elements),
            None => EXCHANGE * elements,
        }
    }

    /// The exchanges of rows left of later panels, in whole block columns.
    fn exchange(&self, rank: Rank) -> Option<StepOf<Self>> {
        let width = |column: usize| self.tiles.span(column).len() as f64;
        let later = |column: usize| (self.tiles.n() - self.tiles.span(column).end) as f64;
        let elements = self.tiles.own(rank).iter().map(|&column| width(column) * later(column)).sum();
        let amount = self.exchange_amount(rank, elements);
        let needed = self.factors == Factors::Lu && !self.tiles.is_slab() && amount > 0.0;
        let crosses = DeviceUploads::default();
        needed.then_some(Step::Compute(FactorWork { task: FactorTask::Exchange, amount, crosses }))
    }
}

/// The rows of U of so many columns, with the exchange of rows that comes before, in multiply-adds.
fn upper_amount(across: f64, width: f64) -> f64 {
    Weight::TRIANGLE.amount(across * width * width / 2.0, width) + EXCHANGE * across * width
}

/// In how many parts the block columns right of a panel of LU are updated by tiles.
const PARTS_OF_GRID: usize = 5;

/// What a processor holds besides its tiles.
#[derive(Default)]
struct Held {
    /// Elements by block column and kind.
    now: BTreeMap<(usize, Slot), u64>,
    most: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Panel,
    Pivots,
    Upper,
    Left,
}

impl Held {
    fn has(&self, column: usize, slot: Slot) -> bool {
        self.now.contains_key(&(column, slot))
    }

    fn add(&mut self, column: usize, slot: Slot, elements: u64) {
        *self.now.entry((column, slot)).or_default() += elements;
        self.most = self.most.max(self.now.values().sum());
    }

    /// Adds what comes to one place, once.
    fn ensure(&mut self, column: usize, slot: Slot, elements: u64) {
        if !self.has(column, slot) {
            self.add(column, slot, elements);
        }
    }

    fn remove(&mut self, column: usize, slot: Slot) {
        self.now.remove(&(column, slot));
    }
}

impl Application for FactorSchedule {
    type Piece = PanelPiece;
    type Work = FactorWork;

    fn processors(&self) -> usize {
        self.tiles.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        Turns::new(self, rank).steps()
    }

    fn overlaps(&self) -> bool {
        true
    }

    /// Elements of the matrix that it updates with one column of a panel, on average over all columns.
    fn share(&self, rank: Rank) -> f64 {
        let count = self.tiles.count();
        let products = |panel: usize| {
            self.tiles.span(panel).len() as f64 * self.extent(rank, panel, panel + 1..count).elements as f64
        };
        (0..count).map(products).sum::<f64>() / self.tiles.n() as f64
    }
}

#[cfg(test)]
mod tests;

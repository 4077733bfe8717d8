//! The steps of a Cholesky, LU or L D L^T factorisation, here by block columns; those of symmetric matrices by tiles are
//! in `tiles`.
//!
//! Each block column is a panel in its turn: its owner factors it and sends it to those who own later columns,
//! and everybody updates his later columns with it. The owner of the next panel updates and factors that first
//! (a look-ahead of one panel), so that it travels while everybody is busy with the last. Rows that LU exchanges in
//! columns left of a panel are exchanged at the end.
//!
//! The schedule of a slab begins with the updates of its columns with all panels left of it, which others have factored
//! before; rows left of it are not exchanged.

mod tiles;
mod times;

use super::{Application, Broadcast, Message, Piece, Step, StepOf, Work};
use crate::geometry::Rank;
use crate::model::Machine;
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
    /// The rows of one processor's tiles that another one needs.
    Rows {
        /// Whose they are.
        from: Rank,
        /// Who needs them.
        to: Rank,
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
    /// The rows of own block columns are exchanged as all later panels demand.
    Exchange,
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
            FactorTask::Update { .. } => None,
            FactorTask::Panel(_) | FactorTask::Exchange => Some(self.crosses.elements),
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
    /// A factorisation of these block columns, or of a symmetric matrix by these tiles.
    ///
    /// # Panics
    /// If there are tiles and the factors are L and U.
    pub fn new(factors: Factors, blocks: impl Into<Blocks>) -> Self {
        let blocks = blocks.into();
        let possible = factors.is_symmetric() || matches!(blocks, Blocks::Columns(_));
        assert!(possible, "{factors} is by block columns");
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
        if matches!(self.blocks, Blocks::Tiles(_)) {
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
            Blocks::Tiles(_) => unreachable!("a factorisation by tiles has no block columns"),
        }
    }

    /// The sizes at which speed functions are evaluated, by rank: the [shares](Application::share), at least 1.
    pub fn sizes(&self) -> Vec<u64> {
        (0..self.processors()).map(|rank| self.share(Rank(rank)).ceil().max(1.0) as u64).collect()
    }

    /// Elements that a processor holds at most: its columns or tiles, and a panel; or two where it factors one while it
    /// still uses the last.
    pub fn memory(&self, rank: Rank) -> u64 {
        if let Blocks::Tiles(tiles) = &self.blocks {
            return self.memory_of_tiles(tiles, rank);
        }
        let own = self.columns().own(rank);
        let Some(&last) = own.last() else { return 0 };
        let panel = |column| self.piece(column, true).elements();
        let before = |column| if column > self.columns().first() { panel(column - 1) } else { 0 };
        let two = own.iter().map(|&column| panel(column) + before(column));
        let most = (0..last).map(panel).chain(two).max();
        let width: u64 = own.iter().map(|&column| self.columns().span(column).len()).sum();
        self.columns().n() * width + most.unwrap_or(0)
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

    /// The message with a panel to a processor, if that needs it.
    fn message(&self, column: usize, to: Rank) -> Option<Message<PanelPiece>> {
        let (from, own) = (self.columns().owner(column), self.columns().own(to));
        if from == to {
            return None;
        }
        let whole = *own.last()? > column;
        let exchanges = self.factors == Factors::Lu && !self.columns().is_slab() && *own.first()? < column;
        let pieces = vec![self.piece(column, whole)];
        (whole || exchanges).then_some(Message { from, to, tag: column as u64, pieces })
    }

    /// The messages with a panel, to the owner of the next one first.
    pub fn messages(&self, column: usize) -> Vec<Message<PanelPiece>> {
        let p = self.columns().processors();
        let next = (column + 1).min(self.columns().count() - 1);
        let first = self.columns().owner(next).0;
        (0..p).filter_map(|i| self.message(column, Rank((first + i) % p))).collect()
    }

    /// The updates of some block columns of a processor with a panel.
    fn extent(&self, rank: Rank, panel: usize, columns: Range<usize>) -> Extent {
        if let Blocks::Tiles(tiles) = &self.blocks {
            let [elements, across] = tiles.extent(rank, columns);
            return Extent { elements, across };
        }
        let (n, end) = (self.columns().n(), self.columns().span(panel).end);
        let own = &self.columns().own(rank)[self.columns().places(rank, columns)];
        let mut extent = Extent { elements: 0, across: 0 };
        for &column in own {
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
        let amount = match &self.times {
            Some(times) => {
                // Those of LU include the rows of U.
                let rows = if self.factors == Factors::Lu { width * across } else { 0.0 };
                times.update(rank, elements + rows, across, width)
            }
            None => {
                let products = elements * (width + PASS);
                let lu =
                    Weight::TRIANGLE.amount(across * width * width / 2.0, width) + EXCHANGE * across * width;
                if self.factors == Factors::Lu { products + lu } else { products }
            }
        };
        let crosses = self.crossings(rank, panel, columns.clone());
        Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, amount, crosses })
    }

    /// Factors a panel and sends it.
    fn panel(&self, column: usize) -> impl Iterator<Item = StepOf<Self>> + use<> {
        let span = self.columns().span(column);
        let work = self.panel_work(self.columns().owner(column), column, self.columns().n() - span.start);
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
        let amount = match (&self.times, self.factors) {
            (Some(times), _) => times.panel(rank, rows, width),
            (None, Factors::Lu) => Weight::LU.amount(width * width * (rows / 2.0 - width / 6.0), width),
            (None, Factors::Cholesky) => {
                Weight::CHOLESKY.amount(width * width * (rows / 2.0 - width / 3.0), width)
            }
            (None, Factors::Ldlt) => Weight::LDLT.amount(width * width * (rows / 2.0 - width / 3.0), width),
        };
        FactorWork { task: FactorTask::Panel(column), amount, crosses }
    }

    /// What a processor does with a panel left of a slab.
    fn earlier(&self, rank: Rank, panel: usize) -> [StepOf<Self>; 2] {
        let columns = self.columns().first()..self.columns().count();
        [self.update(rank, panel, columns), Step::Free(self.piece(panel, true))]
    }

    /// What a processor does with a panel.
    fn turn(&self, rank: Rank, panel: usize) -> Vec<StepOf<Self>> {
        let (count, mut steps) = (self.columns().count(), Vec::new());
        let incoming = |column| if column < count { self.message(column, rank) } else { None };
        steps.extend(incoming(panel + 1).map(Step::PostReceive));
        let arrival =
            |message: Message<PanelPiece>| Step::WaitReceive { from: message.from, tag: message.tag };
        steps.extend(incoming(panel).map(arrival));
        let last = self.columns().own(rank).last().copied().unwrap_or(0);
        let free = Step::Free(self.piece(panel, true));
        if last <= panel {
            // The owner of its own last panel has sent it.
            steps.extend((self.columns().owner(panel) == rank).then_some(free));
            return steps;
        }
        let mut next = panel + 1;
        if self.columns().owner(next) == rank {
            steps.push(self.update(rank, panel, next..next + 1));
            steps.extend(self.panel(next));
            next += 1;
        }
        if last >= next {
            steps.push(self.update(rank, panel, next..count));
        }
        steps.push(free);
        steps
    }

    /// The exchanges of rows left of later panels.
    fn exchange(&self, rank: Rank) -> Option<StepOf<Self>> {
        let own = self.columns().own(rank);
        let width = |column: usize| self.columns().span(column).len() as f64;
        let later = |column: usize| (self.columns().n() - self.columns().span(column).end) as f64;
        let elements = own.iter().map(|&column| width(column) * later(column)).sum();
        let amount = match &self.times {
            Some(times) => times.exchange(rank, elements),
            None => EXCHANGE * elements,
        };
        let needed = self.factors == Factors::Lu && !self.columns().is_slab() && amount > 0.0;
        let crosses = DeviceUploads::default();
        needed.then_some(Step::Compute(FactorWork { task: FactorTask::Exchange, amount, crosses }))
    }
}

impl Application for FactorSchedule {
    type Piece = PanelPiece;
    type Work = FactorWork;

    fn processors(&self) -> usize {
        self.blocks.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        if let Blocks::Tiles(tiles) = &self.blocks {
            return self.steps_of_tiles(tiles, rank);
        }
        if self.columns().own(rank).is_empty() {
            return Box::new(std::iter::empty());
        }
        let first = self.columns().first();
        let earlier = (0..first).flat_map(move |panel| self.earlier(rank, panel));
        let begin: Vec<StepOf<Self>> = match self.columns().owner(first) == rank {
            true => self.panel(first).collect(),
            false => self.message(first, rank).map(Step::PostReceive).into_iter().collect(),
        };
        let turns = (first..self.columns().count()).flat_map(move |panel| self.turn(rank, panel));
        Box::new(earlier.chain(begin).chain(turns).chain(self.exchange(rank)))
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
        layouts.iter().chain(&slabs).flat_map(all).collect()
    }

    /// Every panel is factored once, by its owner, after all updates with earlier panels, and every block column
    /// is updated once with each earlier panel, after that was received.
    #[test]
    fn every_column_is_updated_with_every_earlier_panel_before_it_is_factored() {
        for schedule in schedules() {
            let (first, count) = (schedule.columns().first(), schedule.columns().count());
            let mut factored = vec![0; count];
            for rank in (0..schedule.processors()).map(Rank) {
                let (mut updated, mut known) = (vec![0; count], vec![false; count]);
                // Those left of a slab are in a file.
                known[..first].fill(true);
                for step in schedule.steps(rank) {
                    match step {
                        Step::WaitReceive { from, tag } => {
                            assert_eq!(from, schedule.columns().owner(tag as usize));
                            known[tag as usize] = true;
                        }
                        Step::Compute(FactorWork { task: FactorTask::Panel(column), .. }) => {
                            assert_eq!((schedule.columns().owner(column), updated[column]), (rank, column));
                            factored[column] += 1;
                            known[column] = true;
                        }
                        Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, .. }) => {
                            assert!(known[panel]);
                            let here = |column: &usize| schedule.columns().own(rank).contains(column);
                            for column in columns.filter(here) {
                                assert_eq!(updated[column], panel, "updates are in order");
                                updated[column] += 1;
                            }
                        }
                        Step::Compute(FactorWork { task: FactorTask::Exchange, .. }) => {
                            assert!(!schedule.columns().is_slab());
                            let first = schedule.columns().own(rank)[0];
                            assert!(known[first..].iter().all(|known| *known));
                        }
                        _ => {}
                    }
                }
            }
            assert!(factored[first..].iter().all(|times| *times == 1));
        }
    }

    /// What is sent is what is posted for, and what the formula counts.
    #[test]
    fn messages_have_two_ends_and_are_counted_by_the_formula() {
        for schedule in schedules() {
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
            }
            assert_eq!(sent, posted);
            for rank in (0..schedule.processors()).map(Rank) {
                let counted: u64 = sent.iter().filter(|m| m.to == rank).map(|m| m.elements()).sum();
                assert_eq!(
                    counted,
                    schedule.columns().received(schedule.factors, rank),
                    "{schedule:?} {rank:?}"
                );
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

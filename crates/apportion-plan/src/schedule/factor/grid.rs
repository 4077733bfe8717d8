//! The steps of an LU factorisation by tiles of a grid.
//!
//! Those who have tiles in a block column send them to the owner of its diagonal tile, which factors it whole: the pivots
//! are those of LAPACK, without a message for each. It sends the marks, and to each the rows that it needs. Right of the
//! panel, in the block columns of each group, the owner of the panel's block row computes the rows of U: the others send
//! it the rows that the pivots bring there, and get those of U and the replaced ones. Which rows these are is known
//! once there are pivots only, so messages have room for as many as there can be. Everybody does all that in the next
//! block column before the others, a look-ahead of one panel, and in these in some parts, so that rows of U travel while
//! tiles are updated. Rows left of a panel are exchanged in the end, in each block column by the processor that factored
//! it.

use super::{FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece, tiles::send, upper_amount};
use crate::geometry::Rank;
use crate::plan::GridTiles;
use crate::platform::DeviceUploads;
use crate::schedule::{Message, Piece, Step, StepOf};
use std::ops::Range;

impl FactorSchedule {
    pub(super) fn steps_of_grid<'a>(
        &'a self,
        tiles: &'a GridTiles,
        rank: Rank,
    ) -> Box<dyn Iterator<Item = StepOf<Self>> + 'a> {
        let Some(group) = tiles.group(rank) else { return Box::new(std::iter::empty()) };
        let steps = GridSteps { schedule: self, tiles, rank, group };
        let begin = std::iter::once_with(move || steps.begin()).flatten();
        let turns = (0..tiles.count()).flat_map(move |panel| steps.turn(panel));
        // So that all members of a group exchange rows at the same time.
        let some = tiles.columns_of(group).chunks(tiles.members(group).len());
        Box::new(begin.chain(turns).chain(some.flat_map(move |columns| steps.exchange(columns))))
    }

    /// The rows of U of a processor in some block columns.
    fn upper(&self, tiles: &GridTiles, rank: Rank, panel: usize, columns: Range<usize>) -> FactorWork {
        let width = tiles.span(panel).len() as f64;
        let across = tiles.group(rank).map_or(0, |group| tiles.columns_in(group, columns.clone())) as f64;
        let amount = match &self.times {
            Some(times) => times.update(rank, width * across, across, width),
            None => upper_amount(across, width),
        };
        let task = FactorTask::Upper { panel, columns };
        FactorWork { task, amount, crosses: DeviceUploads::default() }
    }
}

/// The [parts](GridTiles::right_of) of the block columns after the next one.
const AFTER: Range<usize> = 1..GridTiles::PARTS;

/// A part of a panel as it travels.
fn piece(tiles: &GridTiles, column: usize, part: PanelPart) -> PanelPiece {
    let width = tiles.span(column).len();
    let across = |rank: Rank, right: usize| {
        tiles.group(rank).map_or(0, |group| tiles.columns_in(group, tiles.right_of(column, right)))
    };
    let (marks, elements) = match part {
        PanelPart::Rows { to, .. } => (tiles.panel_marks(column), tiles.panel_elements(to, column)),
        PanelPart::Unfactored { from: rank } | PanelPart::Left { of: rank } => {
            (0, tiles.rows_after(rank, column) * width)
        }
        PanelPart::PivotRows { from, right } => (0, width * across(from, right)),
        PanelPart::Upper { to, right } => (0, 2 * width * across(to, right)),
        PanelPart::Whole | PanelPart::Diagonal | PanelPart::Column | PanelPart::Back => {
            unreachable!("they are parts of other panels")
        }
    };
    PanelPiece { column, part, marks, elements }
}

/// The tag of a message.
fn tag_of(column: usize, part: PanelPart) -> u64 {
    let kind = match part {
        PanelPart::Rows { .. } => 0,
        PanelPart::Unfactored { .. } => 1,
        PanelPart::Left { .. } => 2,
        PanelPart::PivotRows { right, .. } => 3 + right,
        PanelPart::Upper { right, .. } => 3 + GridTiles::PARTS + right,
        PanelPart::Whole | PanelPart::Diagonal | PanelPart::Column | PanelPart::Back => {
            unreachable!("they are parts of other panels")
        }
    };
    ((3 + 2 * GridTiles::PARTS) * column + kind) as u64
}

/// Elements that a processor holds at most: its tiles and, at a time, parts of a panel, those of the next one, and rows of
/// others in its block columns.
pub(super) fn memory(tiles: &GridTiles, rank: Rank) -> u64 {
    let Some(group) = tiles.group(rank) else { return 0 };
    let (n, count) = (tiles.n(), tiles.count());
    let own = tiles.rows(rank).iter().map(|&row| tiles.span(row).len()).sum::<u64>()
        * tiles.columns_in(group, 0..count);
    let width = |column: usize| tiles.span(column).len();
    let factors = |column: usize| tiles.owner(column, column) == rank;
    let panel = |column: usize| {
        let whole = (n - tiles.span(column).start) * width(column);
        let elements = if factors(column) { whole } else { tiles.panel_elements(rank, column) };
        tiles.panel_marks(column) + elements
    };
    // What comes for the rows of U, and goes.
    let upper = |column: usize, right: usize| {
        let rows = match tiles.others_below(rank, column).count() as u64 {
            others if tiles.owner_in(group, column) == rank => others + others.min(1),
            _ if tiles.rows_after(rank, column) > 0 => 2,
            _ => 0,
        };
        rows * width(column) * tiles.columns_in(group, tiles.right_of(column, right))
    };
    let turn = |column: usize| {
        let is_next = column + 1 < count && factors(column + 1);
        let next = if is_next { panel(column + 1) } else { 0 };
        let (first, rest) = (upper(column, 0), AFTER.map(|right| upper(column, right)).max().unwrap_or(0));
        // Who computes the rows of U does so before it factors the next panel.
        let together = if tiles.owner_in(group, column) == rank { rest.max(next) } else { rest + next };
        panel(column) + first.max(together)
    };
    let begin = if factors(0) { panel(0) } else { 0 };
    let left = |column: usize| if factors(column) { (n - tiles.span(column).end) * width(column) } else { 0 };
    own + (0..count).map(|column| turn(column).max(left(column))).fold(begin, u64::max)
}

/// The steps of one processor, which has tiles.
#[derive(Clone, Copy)]
struct GridSteps<'a> {
    schedule: &'a FactorSchedule,
    tiles: &'a GridTiles,
    rank: Rank,
    group: usize,
}

type Steps = Vec<StepOf<FactorSchedule>>;

impl GridSteps<'_> {
    fn message(&self, from: Rank, to: Rank, column: usize, part: PanelPart) -> Message<PanelPiece> {
        let pieces = vec![piece(self.tiles, column, part)];
        Message { from, to, tag: tag_of(column, part), pieces }
    }

    fn factors(&self, column: usize) -> bool {
        self.tiles.owner(column, column) == self.rank
    }

    /// True if it computes the rows of U right of a panel.
    fn solves(&self, panel: usize) -> bool {
        self.tiles.owner_in(self.group, panel) == self.rank
    }

    /// True if its group has block columns in a part of those right of a panel.
    fn has_right(&self, panel: usize, right: usize) -> bool {
        self.tiles.columns_in(self.group, self.tiles.right_of(panel, right)) > 0
    }

    fn has_below(&self, row: usize) -> bool {
        self.tiles.rows_after(self.rank, row) > 0
    }

    /// A panel, as it comes to this processor, or as it is freed.
    fn panel(&self, column: usize) -> Message<PanelPiece> {
        let (from, to) = (self.tiles.owner(column, column), self.rank);
        self.message(from, to, column, PanelPart::Rows { from, to })
    }

    /// What it receives of a panel.
    fn incoming(&self, column: usize) -> Vec<Message<PanelPiece>> {
        if !self.factors(column) {
            return vec![self.panel(column)];
        }
        let message = |from| self.message(from, self.rank, column, PanelPart::Unfactored { from });
        self.tiles.others_below(self.rank, column).map(message).collect()
    }

    /// What it receives for the rows of U.
    fn incoming_upper(&self, panel: usize, right: usize) -> Vec<Message<PanelPiece>> {
        if !self.has_right(panel, right) {
            return Vec::new();
        }
        if !self.solves(panel) {
            let (from, to) = (self.tiles.owner_in(self.group, panel), self.rank);
            let message = self.message(from, to, panel, PanelPart::Upper { to, right });
            return if self.has_below(panel) { vec![message] } else { Vec::new() };
        }
        let message = |from| self.message(from, self.rank, panel, PanelPart::PivotRows { from, right });
        self.tiles.others_below(self.rank, panel).map(message).collect()
    }

    /// Updates of the first block column, of which there are none, and its panel.
    fn begin(&self) -> Steps {
        let mut steps: Steps = self.incoming(0).into_iter().map(Step::PostReceive).collect();
        steps.extend(self.unfactored(0));
        steps.extend(self.factor(0));
        steps
    }

    /// Sends its tiles of a block column to the processor that factors it.
    fn unfactored(&self, column: usize) -> Option<StepOf<FactorSchedule>> {
        let sends =
            self.tiles.group_of(column) == self.group && !self.factors(column) && self.has_below(column);
        let (from, to) = (self.rank, self.tiles.owner(column, column));
        sends.then(|| Step::Send(self.message(from, to, column, PanelPart::Unfactored { from })))
    }

    /// Factors a panel, if that is its work, and sends it: first to the groups that have the next ones, and in each group
    /// to the processor that computes the rows of U.
    fn factor(&self, column: usize) -> Steps {
        if !self.factors(column) {
            return Vec::new();
        }
        let (tiles, from) = (self.tiles, self.rank);
        let mut steps: Steps = self.incoming(column).iter().map(wait).collect();
        let rows = tiles.n() - tiles.span(column).start;
        steps.push(Step::Compute(self.schedule.panel_work(from, column, rows)));
        let mut others: Vec<Rank> = (0..tiles.processors()).map(Rank).collect();
        others.retain(|&to| to != from && tiles.group(to).is_some());
        others.sort_by_key(|&to| {
            let own = tiles.columns(to);
            let next = own.get(tiles.places(to, 0..column + 1).end).copied().unwrap_or(tiles.count());
            (next, !tiles.needs_diagonal(to, column))
        });
        let others = others.into_iter();
        let messages: Vec<Message<PanelPiece>> =
            others.map(|to| self.message(from, to, column, PanelPart::Rows { from, to })).collect();
        // Each group that has block columns right of the panel has all rows between its members.
        let width = tiles.span(column).len();
        let diagonal =
            if messages.iter().any(|message| tiles.needs_diagonal(message.to, column)) { width } else { 0 };
        let rows = if diagonal > 0 { rows - width } else { rows - width - tiles.rows_after(from, column) };
        steps.extend(send(messages, tiles.panel_marks(column) + (diagonal + rows) * width));
        steps
    }

    /// Exchanges rows in block columns right of a panel, computes those of U, and sends them, if that is its work.
    fn solve(&self, panel: usize, right: usize) -> Steps {
        if !self.solves(panel) || !self.has_right(panel, right) {
            return Vec::new();
        }
        let mut steps: Steps = self.incoming_upper(panel, right).iter().map(wait).collect();
        let work = self.schedule.upper(self.tiles, self.rank, panel, self.tiles.right_of(panel, right));
        steps.push(Step::Compute(work));
        let message = |to| self.message(self.rank, to, panel, PanelPart::Upper { to, right });
        let messages: Vec<Message<PanelPiece>> =
            self.tiles.others_below(self.rank, panel).map(message).collect();
        if let Some(Message { pieces, .. }) = messages.first() {
            // All get the same.
            let (free, once) = (Step::Free(pieces[0]), pieces[0].elements());
            steps.extend(send(messages, once));
            steps.push(free);
        }
        steps
    }

    /// Updates block columns right of a panel with the rows of U, which come from another processor if it does not have
    /// them.
    fn update(&self, panel: usize, right: usize) -> Steps {
        if !self.has_below(panel) || !self.has_right(panel, right) {
            return Vec::new();
        }
        let work = self.schedule.update(self.rank, panel, self.tiles.right_of(panel, right));
        if self.solves(panel) {
            return vec![work];
        }
        let mut steps: Steps = self.incoming_upper(panel, right).iter().map(wait).collect();
        let upper = piece(self.tiles, panel, PanelPart::Upper { to: self.rank, right });
        steps.extend([work, Step::Free(upper)]);
        steps
    }

    /// What it does with a panel.
    fn turn(&self, panel: usize) -> Steps {
        let (tiles, next) = (self.tiles, panel + 1);
        let mut steps = Vec::new();
        let later = if next < tiles.count() { self.incoming(next) } else { Vec::new() };
        let upper = (0..GridTiles::PARTS).flat_map(|right| self.incoming_upper(panel, right));
        steps.extend(later.into_iter().chain(upper).map(Step::PostReceive));
        if !self.factors(panel) {
            steps.push(wait(&self.panel(panel)));
        }
        // Nobody waits for rows that are there.
        if !self.solves(panel) && self.has_below(panel) {
            let (from, to) = (self.rank, tiles.owner_in(self.group, panel));
            let rights = (0..GridTiles::PARTS).filter(|&right| self.has_right(panel, right));
            steps.extend(rights.map(|right| {
                Step::Send(self.message(from, to, panel, PanelPart::PivotRows { from, right }))
            }));
        }
        steps.extend(self.solve(panel, 0));
        steps.extend(self.update(panel, 0));
        if next < tiles.count() {
            steps.extend(self.unfactored(next));
        }
        // Before the next panel: others in the group wait for these rows.
        steps.extend(AFTER.flat_map(|right| self.solve(panel, right)));
        if next < tiles.count() {
            steps.extend(self.factor(next));
        }
        steps.extend(AFTER.flat_map(|right| self.update(panel, right)));
        steps.push(Step::Free(self.panel(panel).pieces[0]));
        steps
    }

    /// Exchanges rows of some block columns of its group as later panels demand.
    fn exchange(&self, columns: &[usize]) -> Steps {
        let (tiles, rank, mut steps) = (self.tiles, self.rank, Vec::new());
        let columns = columns.iter().copied().filter(|column| column + 1 < tiles.count());
        let message = |from: Rank, to: Rank, column: usize| {
            let of = if tiles.owner(column, column) == from { to } else { from };
            self.message(from, to, column, PanelPart::Left { of })
        };
        let gathered =
            |column: usize| tiles.others_below(rank, column).map(move |from| message(from, rank, column));
        let owner = |column: usize| tiles.owner(column, column);
        let sent = columns.clone().filter(|&column| !self.factors(column) && self.has_below(column));
        for column in columns.clone().filter(|&column| self.factors(column)) {
            steps.extend(gathered(column).map(Step::PostReceive));
        }
        for column in sent.clone() {
            steps.push(Step::PostReceive(message(owner(column), rank, column)));
            steps.push(Step::Send(message(rank, owner(column), column)));
        }
        for column in columns.filter(|&column| self.factors(column)) {
            steps.extend(gathered(column).map(|message| wait(&message)));
            let elements = (tiles.n() - tiles.span(column).end) * tiles.span(column).len();
            let amount = self.schedule.exchange_amount(rank, elements as f64);
            let (task, crosses) = (FactorTask::ExchangeIn(column), DeviceUploads::default());
            steps.push(Step::Compute(FactorWork { task, amount, crosses }));
            let others = tiles.others_below(rank, column);
            steps.extend(others.map(|to| Step::Send(message(rank, to, column))));
            steps.push(Step::Free(piece(tiles, column, PanelPart::Left { of: rank })));
        }
        steps.extend(sent.map(|column| wait(&message(owner(column), rank, column))));
        steps
    }
}

fn wait(message: &Message<PanelPiece>) -> StepOf<FactorSchedule> {
    Step::WaitReceive { from: message.from, tag: message.tag }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_messages;
    use super::*;
    use crate::plan::{BlockColumns, Factors};
    use crate::schedule::Application;
    use std::collections::BTreeSet;

    fn layouts() -> Vec<GridTiles> {
        let of = |n: u64, block: u64, p: usize, owner: &dyn Fn(usize, usize) -> usize| {
            GridTiles::new(n, block, p, |i, j| Rank(owner(i, j)))
        };
        vec![
            of(1, 8, 2, &|_, _| 1),
            of(37, 8, 3, &|_, _| 2),
            of(37, 8, 4, &|i, j| i % 2 * 2 + j % 2),
            of(50, 6, 4, &|i, _| i % 3),
            of(50, 6, 5, &|_, j| j % 4),
            of(64, 6, 7, &|i, j| if j % 3 == 1 { i * i % 5 } else { 5 + i * 3 / 7 % 2 }),
            of(53, 5, 9, &|i, j| j * j % 3 * 3 + [0, 2, 1, 1, 2][(i + j * j % 3) % 5]),
        ]
    }

    fn schedule(tiles: &GridTiles) -> FactorSchedule {
        FactorSchedule::new(Factors::Lu, tiles.clone())
    }

    /// Which part of the block columns right of a panel these are.
    fn right_part(tiles: &GridTiles, panel: usize, columns: &Range<usize>) -> usize {
        (0..GridTiles::PARTS).find(|&right| tiles.right_of(panel, right) == *columns).unwrap()
    }

    /// What a processor knows while it goes through its steps.
    struct Known<'a> {
        tiles: &'a GridTiles,
        rank: Rank,
        /// Tags that have come, with their senders.
        come: BTreeSet<(Rank, u64)>,
        factored: BTreeSet<usize>,
        /// The rows of U that it has computed.
        solved: BTreeSet<(usize, usize)>,
        /// By block column: the panels that its tiles were updated with.
        updated: Vec<usize>,
    }

    impl Known<'_> {
        fn has(&self, from: Rank, column: usize, part: PanelPart) -> bool {
            self.come.contains(&(from, tag_of(column, part)))
        }

        fn has_panel(&self, panel: usize) -> bool {
            let (from, to) = (self.tiles.owner(panel, panel), self.rank);
            self.factored.contains(&panel) || self.has(from, panel, PanelPart::Rows { from, to })
        }

        fn own(&self, columns: Range<usize>) -> Vec<usize> {
            columns.filter(|column| self.tiles.columns(self.rank).contains(column)).collect()
        }

        fn compute(&mut self, task: FactorTask) {
            let (tiles, rank) = (self.tiles, self.rank);
            let others = |column: usize| {
                let all = tiles.members(tiles.group(rank).unwrap()).iter().copied();
                all.filter(move |&one| one != rank && tiles.rows(one).iter().any(|row| *row > column))
            };
            match task {
                FactorTask::Panel(column) => {
                    assert_eq!((tiles.owner(column, column), self.updated[column]), (rank, column));
                    others(column)
                        .for_each(|from| assert!(self.has(from, column, PanelPart::Unfactored { from })));
                    assert!(self.factored.insert(column));
                }
                FactorTask::Upper { panel, columns } => {
                    assert!(self.has_panel(panel) && tiles.rows(rank).contains(&panel));
                    let right = right_part(tiles, panel, &columns);
                    others(panel).for_each(|from| {
                        assert!(self.has(from, panel, PanelPart::PivotRows { from, right }))
                    });
                    for column in self.own(columns) {
                        assert!(self.updated[column] == panel && self.solved.insert((panel, column)));
                    }
                }
                FactorTask::Update { panel, columns } => {
                    let from = tiles.owner_in(tiles.group(rank).unwrap(), panel);
                    let upper = PanelPart::Upper { to: rank, right: right_part(tiles, panel, &columns) };
                    assert!(self.has_panel(panel));
                    for column in self.own(columns) {
                        assert!(self.solved.contains(&(panel, column)) || self.has(from, panel, upper));
                        assert_eq!(self.updated[column], panel, "updates are in order");
                        self.updated[column] += 1;
                    }
                }
                FactorTask::ExchangeIn(column) => {
                    assert!(self.factored.contains(&column));
                    assert!((0..tiles.count()).all(|panel| self.has_panel(panel)));
                    others(column).for_each(|from| {
                        assert!(self.has(from, column, PanelPart::Left { of: from }));
                    });
                }
                FactorTask::GiveAway(_) | FactorTask::Exchange => panic!("of block columns"),
            }
        }
    }

    /// Every tile is updated with each earlier panel, once, in order, with rows that have come or are own; it is sent, or
    /// its panel factored, after that.
    #[test]
    fn every_tile_is_updated_with_every_earlier_panel_before_it_is_factored() {
        for tiles in layouts() {
            let (schedule, count) = (schedule(&tiles), tiles.count());
            let (mut factored, mut exchanged, mut solved) = (Vec::new(), Vec::new(), Vec::new());
            for rank in (0..tiles.processors()).map(Rank) {
                let mut known = Known {
                    tiles: &tiles,
                    rank,
                    come: BTreeSet::new(),
                    factored: BTreeSet::new(),
                    solved: BTreeSet::new(),
                    updated: vec![0; count],
                };
                for step in schedule.steps(rank) {
                    for PanelPiece { column, part, .. } in step.sent().iter().flat_map(|m| &m.pieces) {
                        match part {
                            PanelPart::Unfactored { .. } => assert_eq!(known.updated[*column], *column),
                            PanelPart::PivotRows { right, .. } => {
                                let columns = known.own(tiles.right_of(*column, *right));
                                assert!(columns.iter().all(|&j| known.updated[j] == *column));
                                assert!(known.has_panel(*column));
                            }
                            _ => {}
                        }
                    }
                    match step {
                        Step::WaitReceive { from, tag } => assert!(known.come.insert((from, tag))),
                        Step::Compute(FactorWork { task, .. }) => {
                            if let FactorTask::ExchangeIn(column) = task {
                                exchanged.push(column);
                            }
                            known.compute(task);
                        }
                        _ => {}
                    }
                }
                for &column in tiles.columns(rank) {
                    let last = tiles.rows(rank).iter().max().unwrap();
                    assert_eq!(known.updated[column].min(column), column.min(*last));
                }
                factored.extend(known.factored);
                solved.extend(known.solved);
            }
            factored.sort_unstable();
            exchanged.sort_unstable();
            assert_eq!(factored, (0..count).collect::<Vec<_>>());
            assert_eq!(exchanged, (0..count - 1).collect::<Vec<_>>());
            assert_eq!(solved.len(), count * (count - 1) / 2);
        }
    }

    /// What is sent is what is posted for, and what the formula counts.
    #[test]
    fn messages_have_two_ends_and_are_counted_by_the_formula() {
        layouts().iter().for_each(|tiles| check_messages(&schedule(tiles)));
    }

    /// By tiles as by columns, the products are those of the factorisation.
    #[test]
    fn products_are_those_of_block_columns() {
        for tiles in layouts() {
            let columns = BlockColumns::new(tiles.n(), tiles.block(), 1, vec![Rank(0); tiles.count()]);
            let alone = FactorSchedule::new(Factors::Lu, columns);
            let schedule = schedule(&tiles);
            let shares: f64 = (0..schedule.processors()).map(|rank| schedule.share(Rank(rank))).sum();
            assert!((shares - alone.share(Rank(0))).abs() <= 1e-9 * shares);
            let of = |schedule: &FactorSchedule| {
                (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum::<f64>()
            };
            assert!((of(&schedule) / of(&alone) - 1.0).abs() < 1e-9);
        }
    }

    /// What is held at most, by going through the steps.
    #[test]
    fn memory_is_that_of_the_steps() {
        for tiles in layouts() {
            let schedule = schedule(&tiles);
            for rank in (0..tiles.processors()).map(Rank) {
                let mut posted = std::collections::BTreeMap::new();
                let (mut held, mut most): (Vec<(PanelPiece, u64)>, u64) = (Vec::new(), 0);
                for step in schedule.steps(rank) {
                    match step {
                        Step::PostReceive(message) => {
                            posted.insert((message.from, message.tag), message.pieces[0]);
                        }
                        Step::WaitReceive { from, tag } => {
                            let piece = posted[&(from, tag)];
                            let is_kept =
                                !matches!(piece.part, PanelPart::Unfactored { .. } | PanelPart::Left { .. });
                            held.extend(is_kept.then_some((piece, piece.elements())));
                        }
                        Step::Compute(FactorWork { task: FactorTask::Panel(column), .. }) => {
                            let rows = tiles.n() - tiles.span(column).start;
                            let part = PanelPart::Rows { from: rank, to: rank };
                            let elements = tiles.panel_marks(column) + rows * tiles.span(column).len();
                            held.push((piece(&tiles, column, part), elements));
                        }
                        Step::Compute(FactorWork { task: FactorTask::Upper { panel, columns }, .. }) => {
                            let others: Vec<u64> = held
                                .iter()
                                .filter(|(piece, _)| matches!(piece.part, PanelPart::PivotRows { .. }))
                                .map(|(_, elements)| *elements)
                                .collect();
                            let sum = |held: &[(PanelPiece, u64)]| held.iter().map(|(_, x)| x).sum::<u64>();
                            if let Some(replaced) = others.first() {
                                let right = right_part(&tiles, panel, &columns);
                                let part = PanelPart::Upper { to: rank, right };
                                held.push((
                                    PanelPiece { column: panel, part, marks: 0, elements: 0 },
                                    *replaced,
                                ));
                                most = most.max(sum(&held));
                            }
                            held.retain(|(piece, _)| !matches!(piece.part, PanelPart::PivotRows { .. }));
                        }
                        Step::Compute(FactorWork { task: FactorTask::ExchangeIn(column), .. }) => {
                            let rows = tiles.n() - tiles.span(column).end;
                            let part = PanelPart::Left { of: rank };
                            held.push((piece(&tiles, column, part), rows * tiles.span(column).len()));
                        }
                        Step::Free(piece) => {
                            let kind = |part: &PanelPart| std::mem::discriminant(part);
                            held.retain(|(other, _)| {
                                (other.column, kind(&other.part)) != (piece.column, kind(&piece.part))
                            });
                        }
                        _ => {}
                    }
                    most = most.max(held.iter().map(|(_, elements)| elements).sum());
                }
                assert!(held.is_empty(), "{held:?}");
                let own = tiles.rows(rank).iter().map(|&i| tiles.span(i).len()).sum::<u64>()
                    * tiles.columns(rank).iter().map(|&j| tiles.span(j).len()).sum::<u64>();
                assert_eq!(memory(&tiles, rank), own + most, "{rank:?} of {tiles:?}");
            }
        }
    }
}

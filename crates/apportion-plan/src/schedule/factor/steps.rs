//! The order of steps of a factorisation.
//!
//! Each block column is a panel in its turn: it is factored and sent to those who update later columns with it, and
//! everybody updates his tiles. The next block column is updated and factored before the others (a look-ahead of one
//! panel), so that it travels while everybody is busy with the last. What differs is who factors a panel, and who needs
//! what of it:
//!
//! - A *whole block column* is factored by its owner, and goes whole to all who own later ones. Where a fast processor
//!   factors the block column of a slow one, that gives it away after all updates but the last, and before its other updates
//!   with that panel; it comes back as a panel. So there is a whole step for it to arrive in. The schedule of a slab begins
//!   with the updates of its columns with all panels left of it, which others have factored before.
//! - Of a *symmetric matrix in tiles*, the owner of a diagonal tile sends it, not yet factored, to those who have tiles
//!   below it; each of them factors it together with these, and sends their rows to those who update tiles in the same
//!   block rows or, by the mirror image, block columns.
//! - Of *LU in tiles*, those who have tiles in a block column send them to the owner of its diagonal tile, which factors it
//!   whole: the pivots are those of LAPACK, without a message for each. It sends the marks, and to each the rows that it
//!   needs. Right of the panel, in the block columns of each group, the owner of the panel's block row computes the rows
//!   of U: the others send it the rows that the pivots bring there, and get those of U and the replaced ones. Which rows
//!   these are is known once there are pivots only, so messages have room for as many as there can be. Block columns after
//!   the next one are updated in some parts, so that rows of U travel while tiles are updated.
//!
//! Rows that LU exchanges left of a panel are exchanged at the end: in whole block columns by their owners, in tiles by
//! the processor that factored the block column.
//!
//! Source: Beaumont, Duchon, Eyraud-Dubois, Langou, Verite, Symmetric block-cyclic distribution, SC22, section 3, for who
//! needs which tiles of a symmetric matrix.

use super::{FactorSchedule, FactorTask, FactorWork, PanelPart, PanelPiece};
use crate::geometry::Rank;
use crate::plan::{Factors, TileMap};
use crate::platform::DeviceUploads;
use crate::schedule::{Broadcast, Message, Piece, Step, StepOf};
use std::collections::BTreeMap;
use std::ops::Range;

type Steps = Vec<StepOf<FactorSchedule>>;
type Messages = Vec<Message<PanelPiece>>;

/// The steps of one processor.
#[derive(Clone, Copy)]
pub(super) struct Turns<'a> {
    schedule: &'a FactorSchedule,
    tiles: &'a TileMap,
    rank: Rank,
}

impl<'a> Turns<'a> {
    pub(super) fn new(schedule: &'a FactorSchedule, rank: Rank) -> Self {
        Self { schedule, tiles: &schedule.tiles, rank }
    }

    pub(super) fn steps(self) -> Box<dyn Iterator<Item = StepOf<FactorSchedule>> + 'a> {
        let Self { schedule, tiles, rank } = self;
        if tiles.own(rank).is_empty() && tiles.factored(rank).next().is_none() {
            return Box::new(std::iter::empty());
        }
        let first = tiles.first();
        let earlier = (0..first).flat_map(move |panel| {
            let update = schedule.update(rank, panel, first..tiles.count());
            update.into_iter().chain([Step::Free(self.own_panel(panel))])
        });
        let begin = std::iter::once_with(move || self.begin()).flatten();
        let turns = (first..tiles.count()).flat_map(move |panel| self.turn(panel));
        Box::new(earlier.chain(begin).chain(turns).chain(self.exchange()))
    }

    fn whole(&self) -> bool {
        self.tiles.are_columns()
    }

    fn lu(&self) -> bool {
        self.schedule.factors == Factors::Lu
    }

    fn factors(&self, column: usize) -> bool {
        self.tiles.factorer(column) == self.rank
    }

    /// True if it has tiles below a block row.
    fn has_below(&self, row: usize) -> bool {
        !self.tiles.rows_after(self.rank, row).is_empty()
    }

    /// True if it factors a block column, or a part of it.
    fn factors_part(&self, column: usize) -> bool {
        let shares =
            self.tiles.is_triangle() && self.tiles.group(self.rank) == Some(self.tiles.group_of(column));
        self.factors(column) || shares && self.has_below(column)
    }

    /// A message with one part of a panel.
    fn message(&self, from: Rank, to: Rank, column: usize, part: PanelPart) -> Message<PanelPiece> {
        let pieces = vec![self.piece(column, part)];
        Message { from, to, tag: self.tag(column, part), pieces }
    }

    fn tag(&self, column: usize, part: PanelPart) -> u64 {
        let parts = self.schedule.parts();
        let kind = match part {
            // Nobody gives a block column away to whom its panel comes from.
            _ if self.whole() => return column as u64,
            PanelPart::Rows { .. } | PanelPart::Back => 0,
            PanelPart::Unfactored { .. } => 1,
            PanelPart::Left { .. } => 2,
            PanelPart::PivotRows { right, .. } => 3 + right,
            PanelPart::Upper { right, .. } => 3 + parts + right,
        };
        ((3 + 2 * parts) * column + kind) as u64
    }

    /// A part of a panel as it travels.
    fn piece(&self, column: usize, part: PanelPart) -> PanelPiece {
        let (tiles, factors) = (self.tiles, self.schedule.factors);
        let width = tiles.span(column).len();
        let across = |rank: Rank, right: usize| {
            let columns = self.schedule.right_of(column, right);
            tiles.group(rank).map_or(0, |group| tiles.length(tiles.columns_in(group, columns)))
        };
        let (marks, rows) = match part {
            PanelPart::Rows { from, to } => {
                let rows = tiles.length(&self.schedule.sent_rows(column, from, to));
                (tiles.panel_marks(factors, column), rows)
            }
            PanelPart::Unfactored { from } => (0, tiles.length(&self.schedule.unfactored_rows(from, column))),
            PanelPart::Left { of } => (0, tiles.length(tiles.rows_after(of, column))),
            PanelPart::Back => (0, tiles.rows_given_back(factors, column).len()),
            PanelPart::PivotRows { from, right } => (0, across(from, right)),
            PanelPart::Upper { to, right } => (0, 2 * across(to, right)),
        };
        PanelPiece { column, part, marks, elements: rows * width }
    }

    /// What it has of a panel, when that is freed.
    fn own_panel(&self, column: usize) -> PanelPiece {
        PanelPiece { column, part: PanelPart::Rows { from: self.rank, to: self.rank }, marks: 0, elements: 0 }
    }

    /// The messages with rows of a block column before it is factored, of all processors.
    fn unfactored(&self, column: usize) -> Messages {
        let (tiles, owner) = (self.tiles, self.tiles.panel_owner(column));
        let others: Vec<(Rank, Rank)> = if self.whole() {
            tiles.is_taken_over(column).then(|| (owner, tiles.factorer(column))).into_iter().collect()
        } else if tiles.is_triangle() {
            tiles.others_below(owner, column).map(|to| (owner, to)).collect()
        } else {
            tiles.others_below(owner, column).map(|from| (from, owner)).collect()
        };
        let message = |(from, to)| self.message(from, to, column, PanelPart::Unfactored { from });
        others.into_iter().map(message).collect()
    }

    /// Those of them that it receives.
    fn incoming_unfactored(&self, column: usize) -> Messages {
        if column >= self.tiles.count() {
            return Vec::new();
        }
        let mut messages = self.unfactored(column);
        messages.retain(|message| message.to == self.rank);
        messages
    }

    /// Those of them that it sends.
    fn send_unfactored(&self, column: usize) -> Option<StepOf<FactorSchedule>> {
        let mut messages = self.unfactored(column);
        messages.retain(|message| message.from == self.rank);
        send(messages, self.tiles.span(column).len().pow(2))
    }

    /// The message with a panel, or with its marks alone, from the processor that factors it whole.
    fn panel_message(&self, column: usize, to: Rank) -> Option<Message<PanelPiece>> {
        let (tiles, from) = (self.tiles, self.tiles.factorer(column));
        let mut message = self.message(from, to, column, PanelPart::Rows { from, to });
        if self.whole() && !needs_panel(tiles, to, column) && !(self.lu() && needs_pivots(tiles, to, column))
        {
            return None;
        }
        let comes_back = self.whole() && tiles.panel_owner(column) == to;
        let back = comes_back.then(|| self.piece(column, PanelPart::Back)).filter(|back| back.elements > 0);
        message.pieces.splice(0..0, back);
        (from != to && (self.whole() || tiles.group(to).is_some())).then_some(message)
    }

    /// What it receives of a factored panel.
    fn incoming(&self, column: usize) -> Messages {
        let (tiles, to) = (self.tiles, self.rank);
        if column >= tiles.count() {
            return Vec::new();
        }
        if !tiles.is_triangle() {
            return self.panel_message(column, to).into_iter().collect();
        }
        let mut rows = BTreeMap::<Rank, Vec<usize>>::new();
        for row in needed_rows(tiles, to, column) {
            rows.entry(tiles.owner(row, column)).or_default().push(row);
        }
        rows.remove(&to);
        rows.into_iter().map(|(from, rows)| self.rows_message(from, to, column, &rows)).collect()
    }

    /// The message with these block rows of a panel of a symmetric matrix in tiles.
    fn rows_message(&self, from: Rank, to: Rank, column: usize, rows: &[usize]) -> Message<PanelPiece> {
        let (tiles, part) = (self.tiles, PanelPart::Rows { from, to });
        let marks = tiles.panel_marks(self.schedule.factors, column);
        let elements = tiles.length(rows) * tiles.span(column).len();
        Message {
            from,
            to,
            tag: self.tag(column, part),
            pieces: vec![PanelPiece { column, part, marks, elements }],
        }
    }

    /// The messages with its part of a factored panel, and the number of different elements in them: first to those who
    /// factor or have the next block columns, and in each group to the processor that computes the rows of U.
    pub(super) fn outgoing(&self, column: usize) -> (Messages, u64) {
        let (tiles, from) = (self.tiles, self.rank);
        if tiles.is_triangle() {
            return self.outgoing_of_triangle(column);
        }
        let mut to: Vec<Rank> = (0..tiles.processors()).map(Rank).collect();
        if self.whole() {
            let mut next = vec![tiles.count(); tiles.processors()];
            (column + 1..tiles.count()).rev().for_each(|later| next[tiles.factorer(later).0] = later);
            to.sort_by_key(|rank| next[rank.0]);
        } else {
            to.sort_by_key(|&to| {
                let right = tiles.own(to).get(tiles.places(to, 0..column + 1).end).copied();
                (right.unwrap_or(tiles.count()), !needs_diagonal(tiles, to, column))
            });
        }
        let messages: Messages = to.into_iter().filter_map(|to| self.panel_message(column, to)).collect();
        if self.whole() {
            let largest = messages.iter().map(Message::elements).max().unwrap_or(0);
            return (messages, largest);
        }
        // Each group that has block columns right of the panel has all rows between its members.
        let Self { schedule, .. } = self;
        let travels = messages.iter().any(|message| needs_diagonal(tiles, message.to, column));
        let all = tiles.length(&schedule.factored_rows(from, column));
        let kept = tiles.span(column).len() + tiles.length(tiles.rows_after(from, column));
        let rows = if travels { all } else { all - kept };
        (messages, tiles.panel_marks(schedule.factors, column) + rows * tiles.span(column).len())
    }

    /// The same of its part of a panel of a symmetric matrix: from the owner of the diagonal tile on, so that not all send
    /// to the first one at once.
    fn outgoing_of_triangle(&self, column: usize) -> (Messages, u64) {
        let (tiles, from) = (self.tiles, self.rank);
        let (mut rows, mut once) = (BTreeMap::<Rank, Vec<usize>>::new(), Vec::new());
        for &row in tiles.rows_after(from, column) {
            let right = |group: &usize| has_columns(tiles, *group, column + 1..row + 1);
            let beside = (0..tiles.groups()).filter(right).map(|group| tiles.owner_in(group, row));
            let above = tiles.members(tiles.group_of(row)).iter().copied();
            let above = above.filter(|&other| tiles.rows(other).last().is_some_and(|last| *last >= row));
            for to in beside.chain(above).filter(|&to| to != from) {
                let rows = rows.entry(to).or_default();
                if rows.last() != Some(&row) {
                    rows.push(row);
                }
                if once.last() != Some(&row) {
                    once.push(row);
                }
            }
        }
        let owner = tiles.panel_owner(column);
        let (before, after): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(to, _)| *to < owner);
        let message = |(to, rows): (Rank, Vec<usize>)| self.rows_message(from, to, column, &rows);
        let elements = tiles.length(&once) * tiles.span(column).len();
        let marks = tiles.panel_marks(self.schedule.factors, column);
        (after.into_iter().chain(before).map(message).collect(), marks + elements)
    }

    /// Factors its part of a panel, if it has one, and sends it.
    fn factor(&self, column: usize) -> Steps {
        if !self.factors_part(column) {
            return Vec::new();
        }
        let (messages, once) = self.outgoing(column);
        let work = Step::Compute(self.schedule.panel_work(self.rank, column));
        std::iter::once(work).chain(send(messages, once)).collect()
    }

    /// Gives an own block column away.
    fn give(&self, column: usize) -> Steps {
        let mut messages = self.unfactored(column);
        messages.retain(|message| message.from == self.rank);
        let give = |message: Message<PanelPiece>| {
            let work = self.schedule.copy_work(self.rank, column, message.elements());
            [Step::Compute(work), Step::Send(message)]
        };
        messages.into_iter().flat_map(give).collect()
    }

    /// True if it computes rows of U right of a panel.
    fn solves(&self, panel: usize, right: usize) -> bool {
        self.has_right(panel, right).is_some_and(|group| self.tiles.owner_in(group, panel) == self.rank)
    }

    /// Its group, for the rows of U of LU in tiles, if it has block columns in a part of those right of a panel.
    fn has_right(&self, panel: usize, right: usize) -> Option<usize> {
        let group = self.tiles.group(self.rank).filter(|_| self.lu() && !self.whole())?;
        has_columns(self.tiles, group, self.schedule.right_of(panel, right)).then_some(group)
    }

    /// What it receives for the rows of U.
    fn incoming_upper(&self, panel: usize, right: usize) -> Messages {
        let Some(group) = self.has_right(panel, right) else { return Vec::new() };
        let (tiles, rank, owner) = (self.tiles, self.rank, self.tiles.owner_in(group, panel));
        if owner != rank {
            let message = self.message(owner, rank, panel, PanelPart::Upper { to: rank, right });
            return if self.has_below(panel) { vec![message] } else { Vec::new() };
        }
        let message = |from| self.message(from, rank, panel, PanelPart::PivotRows { from, right });
        tiles.others_below(rank, panel).map(message).collect()
    }

    /// Sends rows that pivots may bring into the diagonal block's: nobody waits for rows that are there.
    fn send_pivot_rows(&self, panel: usize) -> Steps {
        let from = self.rank;
        let send = |right| {
            let owner = self.tiles.owner_in(self.has_right(panel, right)?, panel);
            let is_sent = owner != from && self.has_below(panel);
            is_sent
                .then(|| Step::Send(self.message(from, owner, panel, PanelPart::PivotRows { from, right })))
        };
        (0..self.schedule.parts()).filter_map(send).collect()
    }

    /// Exchanges rows in block columns right of a panel, computes those of U, and sends them, if that is its work.
    fn solve(&self, panel: usize, right: usize) -> Steps {
        if !self.solves(panel, right) {
            return Vec::new();
        }
        let mut steps: Steps = self.incoming_upper(panel, right).iter().map(wait).collect();
        let columns = self.schedule.right_of(panel, right);
        steps.push(Step::Compute(self.schedule.upper(self.rank, panel, columns)));
        let message = |to| self.message(self.rank, to, panel, PanelPart::Upper { to, right });
        let messages: Messages = self.tiles.others_below(self.rank, panel).map(message).collect();
        if let Some(Message { pieces, .. }) = messages.first() {
            // All get the same.
            let (free, once) = (Step::Free(pieces[0]), pieces[0].elements());
            steps.extend(send(messages, once));
            steps.push(free);
        }
        steps
    }

    /// Updates a part of the block columns right of a panel, from one on; of LU in tiles with the rows of U, which come
    /// from another processor if it does not have them.
    fn update(&self, panel: usize, right: usize, from: usize) -> Steps {
        let columns = self.schedule.right_of(panel, right);
        let columns = columns.start.max(from)..columns.end.max(from);
        let Some(work) = self.schedule.update(self.rank, panel, columns) else { return Vec::new() };
        if self.has_right(panel, right).is_none() || self.solves(panel, right) {
            return vec![work];
        }
        let mut steps: Steps = self.incoming_upper(panel, right).iter().map(wait).collect();
        let upper = self.piece(panel, PanelPart::Upper { to: self.rank, right });
        steps.extend([work, Step::Free(upper)]);
        steps
    }

    /// What it does before the first panel comes.
    fn begin(&self) -> Steps {
        let (tiles, first) = (self.tiles, self.tiles.first());
        let mut steps = Vec::new();
        // Block columns that are not updated before they are given away.
        let given = first..(first + if self.whole() { 2 } else { 1 }).min(tiles.count());
        for column in given {
            if self.whole() {
                steps.extend(self.give(column));
            }
            steps.extend(self.incoming_unfactored(column).into_iter().map(Step::PostReceive));
        }
        steps.extend(self.incoming(first).into_iter().map(Step::PostReceive));
        if !self.whole() {
            steps.extend(self.send_unfactored(first));
        }
        steps.extend(self.incoming_unfactored(first).iter().map(wait));
        steps.extend(self.factor(first));
        steps
    }

    /// What it does with a panel.
    fn turn(&self, panel: usize) -> Steps {
        let (next, mut rest, parts) = (panel + 1, panel + 2, self.schedule.parts());
        let is_last = next == self.tiles.count();
        let mut steps = Vec::new();
        // A block column taken over travels for a whole turn.
        let unfactored = self.incoming_unfactored(if self.whole() { rest } else { next });
        let upper = (0..parts).flat_map(|right| self.incoming_upper(panel, right));
        let posted = unfactored.into_iter().chain(self.incoming(next)).chain(upper);
        steps.extend(posted.map(Step::PostReceive));
        let incoming = self.incoming(panel);
        steps.extend(incoming.iter().map(wait));
        steps.extend(self.send_pivot_rows(panel));
        if self.whole() {
            steps.extend(self.incoming_unfactored(next).iter().map(wait));
        }
        steps.extend(self.solve(panel, 0));
        steps.extend(self.update(panel, 0, next));
        if !self.whole() && !is_last {
            steps.extend(self.send_unfactored(next));
        }
        // Before the next panel: others in the group wait for these rows.
        steps.extend((1..parts).flat_map(|right| self.solve(panel, right)));
        if !self.whole() {
            steps.extend(self.incoming_unfactored(next).iter().map(wait));
        }
        if !is_last {
            steps.extend(self.factor(next));
        }
        let given = if self.whole() && rest < self.tiles.count() { self.give(rest) } else { Vec::new() };
        if !given.is_empty() {
            steps.extend(self.schedule.update(self.rank, panel, rest..rest + 1));
            steps.extend(given);
            rest += 1;
        }
        steps.extend((1..parts).flat_map(|right| self.update(panel, right, rest)));
        let comes = incoming.iter().flat_map(|message| &message.pieces).any(|piece| piece.elements > 0);
        if comes || self.factors_part(panel) {
            steps.push(Step::Free(self.own_panel(panel)));
        }
        steps
    }

    /// The exchanges of rows left of later panels.
    fn exchange(self) -> Box<dyn Iterator<Item = StepOf<FactorSchedule>> + 'a> {
        let Self { schedule, tiles, rank } = self;
        match tiles.group(rank) {
            _ if self.whole() => Box::new(schedule.exchange(rank).into_iter()),
            Some(group) if self.lu() => {
                // So that all members of a group exchange rows at the same time.
                let some = tiles.columns_of(group).chunks(tiles.members(group).len());
                Box::new(some.flat_map(move |columns| self.exchange_in(columns)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Exchanges rows of some block columns of its group as later panels demand.
    fn exchange_in(&self, columns: &[usize]) -> Steps {
        let (tiles, rank, mut steps) = (self.tiles, self.rank, Vec::new());
        let columns = columns.iter().copied().filter(|column| column + 1 < tiles.count());
        let message = |from: Rank, to: Rank, column: usize| {
            let of = if tiles.panel_owner(column) == from { to } else { from };
            self.message(from, to, column, PanelPart::Left { of })
        };
        let gathered =
            |column: usize| tiles.others_below(rank, column).map(move |from| message(from, rank, column));
        let owner = |column: usize| tiles.panel_owner(column);
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
            let amount = self.schedule.exchange_amount(rank, self.schedule.left_elements(column) as f64);
            let (task, crosses) = (FactorTask::ExchangeIn(column), DeviceUploads::default());
            steps.push(Step::Compute(FactorWork { task, amount, crosses }));
            let others = tiles.others_below(rank, column);
            steps.extend(others.map(|to| Step::Send(message(rank, to, column))));
            steps.push(Step::Free(self.piece(column, PanelPart::Left { of: rank })));
        }
        steps.extend(sent.map(|column| wait(&message(owner(column), rank, column))));
        steps
    }
}

/// True if a group has block columns in a range.
fn has_columns(tiles: &TileMap, group: usize, columns: Range<usize>) -> bool {
    !tiles.columns_in(group, columns).is_empty()
}

/// True if a group has block columns right of one.
pub(super) fn has_right(tiles: &TileMap, group: usize, column: usize) -> bool {
    has_columns(tiles, group, column + 1..tiles.count())
}

/// True if another processor than the owner of a panel of LU needs its diagonal block: it solves for rows of U with it.
pub(super) fn needs_diagonal(tiles: &TileMap, rank: Rank, column: usize) -> bool {
    let needs = |group| {
        tiles.group_of(column) != group
            && has_right(tiles, group, column)
            && tiles.owner_in(group, column) == rank
    };
    tiles.group(rank).is_some_and(needs)
}

/// True if a processor needs the panel of a whole block column: for updates of others, or as its own.
pub(super) fn needs_panel(tiles: &TileMap, rank: Rank, column: usize) -> bool {
    let next = column + 1;
    // It gives away a block column before the last update.
    let updates = tiles.own(rank).last().is_some_and(|last| *last > next);
    let factors_next = next >= tiles.first() && next < tiles.count() && tiles.factorer(next) == rank;
    updates || factors_next || column >= tiles.first() && tiles.panel_owner(column) == rank
}

/// True if a processor that does not need a panel of LU needs its pivots, for rows of its own columns left of it.
fn needs_pivots(tiles: &TileMap, rank: Rank, column: usize) -> bool {
    !tiles.is_slab() && tiles.own(rank).first().is_some_and(|first| *first < column)
}

/// The block rows of a panel of a symmetric matrix with which a processor updates its tiles: those of tiles right of the
/// panel, and those that are the block columns of tiles.
pub(super) fn needed_rows(tiles: &TileMap, rank: Rank, column: usize) -> Vec<usize> {
    let columns = &tiles.own(rank)[tiles.places(rank, column + 1..tiles.count())];
    let Some(first) = columns.first() else { return Vec::new() };
    let rows = tiles.rows_after(rank, *first - 1);
    let mut needed = [rows, columns].concat();
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// Sends messages of one tag, which carry so many different elements.
fn send(mut messages: Messages, once: u64) -> Option<StepOf<FactorSchedule>> {
    if messages.len() < 2 {
        return messages.pop().map(Step::Send);
    }
    let from = messages[0].from;
    Some(Step::Broadcast(Broadcast { from, messages, horizontal_once: 0, vertical_once: once }))
}

fn wait(message: &Message<PanelPiece>) -> StepOf<FactorSchedule> {
    Step::WaitReceive { from: message.from, tag: message.tag }
}

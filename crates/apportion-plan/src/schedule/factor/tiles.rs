//! The steps of a symmetric factorisation by tiles.
//!
//! The owner of a diagonal tile sends it, not yet factored, to those who have tiles below it in its block column; each of
//! them factors it together with these, and sends their rows to those who update tiles in the same block rows or, by
//! the mirror image, block columns. Everybody updates the next block column and factors its part of that before it
//! updates the others: a look-ahead of one panel.
//!
//! Source: Beaumont, Duchon, Eyraud-Dubois, Langou, Verite, Symmetric block-cyclic distribution, SC22, section 3, for who
//! needs which tiles.

use super::{FactorSchedule, PanelPart, PanelPiece};
use crate::geometry::Rank;
use crate::plan::{BlockTiles, TileSet};
use crate::schedule::{Broadcast, Message, Step, StepOf};
use std::ops::Range;

impl FactorSchedule {
    pub(super) fn steps_of_tiles<'a>(
        &'a self,
        tiles: &'a BlockTiles,
        rank: Rank,
    ) -> Box<dyn Iterator<Item = StepOf<Self>> + 'a> {
        if !tiles.has_tiles(rank) {
            return Box::new(std::iter::empty());
        }
        let start = (0..tiles.count().min(1)).flat_map(move |first| {
            let incoming = self.incoming(tiles, first, rank).into_iter().map(Step::PostReceive);
            incoming.chain(self.part_of_panel(tiles, first, rank)).collect::<Vec<_>>()
        });
        Box::new(
            start.chain((0..tiles.count()).flat_map(move |panel| self.turn_of_tiles(tiles, panel, rank))),
        )
    }

    /// What a processor does with a panel, once it has its own part of it.
    fn turn_of_tiles(&self, tiles: &BlockTiles, panel: usize, rank: Rank) -> Vec<StepOf<Self>> {
        let (count, next) = (tiles.count(), panel + 1);
        let mut steps = Vec::new();
        if next < count {
            steps.extend(self.incoming(tiles, next, rank).into_iter().map(Step::PostReceive));
        }
        let senders = tiles.senders(rank, panel).iter();
        steps.extend(senders.map(|&(from, _)| Step::WaitReceive { from, tag: tag_of(panel, false) }));
        if next < count {
            let update = |columns: Range<usize>| {
                let [changes, _] = tiles.extent(rank, columns.clone());
                (changes > 0).then(|| self.update(rank, panel, columns))
            };
            steps.extend(update(next..next + 1));
            steps.extend(self.part_of_panel(tiles, next, rank));
            steps.extend(update(next + 1..count));
        }
        if self.held_of_panel(tiles, panel, rank) > 0 {
            steps.push(Step::Free(self.rows_piece(tiles, panel, rank, rank, 0)));
        }
        steps
    }

    /// Factors a processor's part of a panel, and sends it.
    fn part_of_panel(&self, tiles: &BlockTiles, column: usize, rank: Rank) -> Vec<StepOf<Self>> {
        let (owner, rows) = (tiles.owner(column, column), tiles.rows_below(rank, column));
        if rank != owner && rows == 0 {
            return Vec::new();
        }
        let (mut steps, width) = (Vec::new(), tiles.span(column).len());
        if rank == owner {
            let holders = tiles.holders(column).into_iter();
            let messages =
                holders.filter(|to| *to != rank).map(|to| Self::diagonal_message(tiles, column, to));
            steps.extend(send(messages.collect(), width * width));
        } else {
            steps.push(Step::WaitReceive { from: owner, tag: tag_of(column, true) });
        }
        steps.push(Step::Compute(self.panel_work(rank, column, rows + width)));
        steps.push(Step::Free(Self::diagonal_piece(tiles, column)));
        // From the owner of the diagonal tile on, so that not all send to the first one at once.
        let (before, after): (Vec<_>, Vec<_>) =
            tiles.receivers(rank, column).iter().copied().partition(|(to, _)| *to < owner);
        let message = |(to, rows)| self.rows_message(tiles, column, rank, to, rows);
        let messages = after.into_iter().chain(before).map(message).collect();
        let once = tiles.panel_marks(self.factors, column) + tiles.rows_sent(rank, column) * width;
        steps.extend(send(messages, once));
        steps
    }

    /// What a processor receives of a panel.
    fn incoming(&self, tiles: &BlockTiles, column: usize, rank: Rank) -> Vec<Message<PanelPiece>> {
        let is_sent = tiles.owner(column, column) != rank && tiles.rows_below(rank, column) > 0;
        let diagonal = is_sent.then(|| Self::diagonal_message(tiles, column, rank));
        let senders = tiles.senders(rank, column).iter();
        let rows = senders.map(|&(from, rows)| self.rows_message(tiles, column, from, rank, rows));
        diagonal.into_iter().chain(rows).collect()
    }

    fn diagonal_piece(tiles: &BlockTiles, column: usize) -> PanelPiece {
        let width = tiles.span(column).len();
        PanelPiece { column, part: PanelPart::Diagonal, marks: 0, elements: width * width }
    }

    /// The message with a diagonal tile to another processor.
    fn diagonal_message(tiles: &BlockTiles, column: usize, to: Rank) -> Message<PanelPiece> {
        let pieces = vec![Self::diagonal_piece(tiles, column)];
        Message { from: tiles.owner(column, column), to, tag: tag_of(column, true), pieces }
    }

    /// So many rows of a processor's part of a panel, which another one needs.
    fn rows_piece(&self, tiles: &BlockTiles, column: usize, from: Rank, to: Rank, rows: u64) -> PanelPiece {
        PanelPiece {
            column,
            part: PanelPart::Rows { from, to },
            marks: tiles.panel_marks(self.factors, column),
            elements: rows * tiles.span(column).len(),
        }
    }

    fn rows_message(
        &self,
        tiles: &BlockTiles,
        column: usize,
        from: Rank,
        to: Rank,
        rows: u64,
    ) -> Message<PanelPiece> {
        let pieces = vec![self.rows_piece(tiles, column, from, to, rows)];
        Message { from, to, tag: tag_of(column, false), pieces }
    }

    /// Elements of a panel that a processor holds while it updates with it: its own part, and what it has received, with
    /// their marks.
    fn held_of_panel(&self, tiles: &BlockTiles, column: usize, rank: Rank) -> u64 {
        let (width, marks) = (tiles.span(column).len(), tiles.panel_marks(self.factors, column));
        let received: u64 = tiles.senders(rank, column).iter().map(|(_, rows)| rows * width + marks).sum();
        self.own_of_panel(tiles, column, rank) + received
    }

    /// Elements of its own part of a panel with the diagonal tile, and their marks.
    fn own_of_panel(&self, tiles: &BlockTiles, column: usize, rank: Rank) -> u64 {
        let (rows, width) = (tiles.rows_below(rank, column), tiles.span(column).len());
        if rows == 0 && tiles.owner(column, column) != rank {
            return 0;
        }
        (width + rows) * width + tiles.panel_marks(self.factors, column)
    }

    /// Elements that a processor holds at most: its tiles with those above them, a panel, and its part of the next one
    /// with the diagonal tile.
    pub(super) fn memory_of_tiles(&self, tiles: &BlockTiles, rank: Rank) -> u64 {
        let length = |blocks: &[usize]| blocks.iter().map(|&place| tiles.span(place).len()).sum::<u64>();
        let sets = tiles.sets(rank).iter().map(|TileSet { rows, columns }| length(rows) * length(columns));
        let square = |&place: &usize| tiles.span(place).len().pow(2);
        let own = sets.sum::<u64>() + tiles.diagonal(rank).iter().map(square).sum::<u64>();
        let held = |panel: usize| self.held_of_panel(tiles, panel, rank);
        // The diagonal tile is there as it was, too, while it is factored.
        let part = |column: usize| match self.own_of_panel(tiles, column, rank) {
            0 => 0,
            elements => elements + square(&column),
        };
        let most = |next: usize| (held(next - 1) + part(next)).max(held(next));
        own + (1..tiles.count()).map(most).fold(part(0).max(held(0)), u64::max)
    }
}

/// The tag of the messages with a diagonal tile, or with rows below it.
fn tag_of(column: usize, diagonal: bool) -> u64 {
    2 * column as u64 + u64::from(!diagonal)
}

/// Sends messages of one tag, which carry so many different elements.
pub(super) fn send(mut messages: Vec<Message<PanelPiece>>, once: u64) -> Option<StepOf<FactorSchedule>> {
    if messages.len() < 2 {
        return messages.pop().map(Step::Send);
    }
    let from = messages[0].from;
    Some(Step::Broadcast(Broadcast { from, messages, horizontal_once: 0, vertical_once: once }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_messages;
    use super::*;
    use crate::plan::Factors;
    use crate::schedule::{Application, FactorTask, FactorWork};
    use std::collections::BTreeSet;

    fn schedules() -> Vec<FactorSchedule> {
        let of = |n: u64, block: u64, p: usize, owner: &dyn Fn(usize, usize) -> usize| {
            let tiles = BlockTiles::new(n, block, p, |i, j| Rank(owner(i, j)));
            [Factors::Cholesky, Factors::Ldlt].map(|factors| FactorSchedule::new(factors, tiles.clone()))
        };
        [
            of(1, 8, 2, &|_, _| 1),
            of(37, 8, 3, &|_, _| 2),
            of(37, 8, 4, &|i, j| i % 2 * 2 + j % 2),
            of(50, 6, 3, &|i, _| i % 3),
            of(50, 6, 5, &|_, j| j % 4),
            of(64, 6, 5, &|i, j| (i * 7 + j * j * 3) % 5),
        ]
        .concat()
    }

    fn tiles(schedule: &FactorSchedule) -> &BlockTiles {
        match schedule.blocks() {
            crate::plan::Blocks::Tiles(tiles) => tiles,
            _ => panic!("they are tiles of a triangle"),
        }
    }

    /// Every tile is updated with each earlier panel, once, in order, with rows that were received or are own, and
    /// factored after that.
    #[test]
    fn every_tile_is_updated_with_every_earlier_panel_before_it_is_factored() {
        for schedule in schedules() {
            let (tiles, count) = (tiles(&schedule), tiles(&schedule).count());
            let mut factored = BTreeSet::new();
            for rank in (0..schedule.processors()).map(Rank) {
                let own = |i: usize, j: usize| tiles.owner(i, j) == rank;
                let (mut known, mut updated) = (BTreeSet::new(), vec![0; count]);
                let mut diagonal = None;
                for step in schedule.steps(rank) {
                    match step {
                        Step::WaitReceive { from, tag } if tag % 2 == 0 => {
                            assert_eq!(from, tiles.owner(tag as usize / 2, tag as usize / 2));
                            diagonal = Some(tag as usize / 2);
                        }
                        Step::WaitReceive { from, tag } => {
                            let column = tag as usize / 2;
                            let rows =
                                tiles.below(from, column).filter(|&row| tiles.needs(rank, row, column));
                            known.extend(rows.map(|row| (row, column)));
                        }
                        Step::Compute(FactorWork { task: FactorTask::Panel(column), .. }) => {
                            assert_eq!(updated[column], column);
                            assert!(own(column, column) || diagonal.take() == Some(column));
                            let mine = (column..count).filter(|&row| own(row, column));
                            assert!(mine.map(|row| (row, column)).all(|tile| factored.insert(tile)));
                            known.extend(tiles.below(rank, column).map(|row| (row, column)));
                        }
                        Step::Compute(FactorWork { task: FactorTask::Update { panel, columns }, .. }) => {
                            for j in columns {
                                for i in (j..count).filter(|&i| own(i, j)) {
                                    assert!(known.contains(&(i, panel)) && known.contains(&(j, panel)));
                                }
                                assert_eq!(updated[j], panel, "updates are in order");
                                updated[j] += 1;
                            }
                        }
                        // Without tiles in a block column, its updates may be left out.
                        Step::Free(PanelPiece { column, part: PanelPart::Rows { .. }, .. }) => {
                            for (j, updated) in updated.iter_mut().enumerate().skip(column + 1) {
                                let none = (j..count).all(|i| !own(i, j));
                                assert!(*updated == column + 1 || none);
                                *updated = column + 1;
                            }
                        }
                        _ => {}
                    }
                }
            }
            assert_eq!(factored.len(), count * (count + 1) / 2);
        }
    }

    /// What is sent is what is posted for, and what the formula counts.
    #[test]
    fn messages_have_two_ends_and_are_counted_by_the_formula() {
        schedules().iter().for_each(check_messages);
    }

    /// By tiles as by columns, the products are those of the factorisation.
    #[test]
    fn products_are_those_of_block_columns() {
        for schedule in schedules() {
            let n = schedule.blocks().n();
            let columns = crate::plan::BlockColumns::new(
                n,
                schedule.blocks().block(),
                1,
                vec![Rank(0); schedule.blocks().count()],
            );
            let alone = FactorSchedule::new(schedule.factors(), columns);
            let shares: f64 = (0..schedule.processors()).map(|rank| schedule.share(Rank(rank))).sum();
            assert!((shares - alone.share(Rank(0))).abs() <= 1e-9 * shares);
        }
    }
}

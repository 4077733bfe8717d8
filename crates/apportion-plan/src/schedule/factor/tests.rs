use super::*;
use crate::schedule::Message;
use std::collections::BTreeSet;

fn ranks(ranks: &[usize]) -> Vec<Rank> {
    ranks.iter().copied().map(Rank).collect()
}

fn tiles(factors: Factors, n: u64, block: u64, p: usize, owner: impl Fn(usize, usize) -> usize) -> TileMap {
    TileMap::tiles(factors, n, block, p, |i, j| Rank(owner(i, j))).unwrap()
}

fn layouts(factors: Factors) -> Vec<TileMap> {
    let columns =
        |owners: &[usize], n: u64, block: u64, p: usize| TileMap::columns(n, block, p, ranks(owners));
    let whole = [
        columns(&[0], 1, 8, 1),
        columns(&[1], 5, 8, 3),
        columns(&[0, 1, 0, 1], 32, 8, 2),
        columns(&[2, 2, 0, 1, 0], 37, 8, 4),
        columns(&[0, 1, 2, 1, 1, 0, 0], 50, 8, 3),
    ];
    let slabs = [whole[2].slab(0..2), whole[3].slab(2..4), whole[4].slab(3..7), whole[4].slab(1..2)];
    let panels = |columns: &TileMap, by: &[usize]| columns.clone().factored_by(ranks(by)).unwrap();
    let taken_over = [
        panels(&whole[1], &[2]),
        panels(&whole[2], &[0; 4]),
        panels(&whole[2], &[1, 0, 1, 0]),
        panels(&whole[3], &[3, 2, 3, 1, 3]),
        panels(&whole[4], &[0, 0, 0, 1, 0, 2, 1]),
    ];
    let tiles = [
        tiles(factors, 1, 8, 2, |_, _| 1),
        tiles(factors, 37, 8, 3, |_, _| 2),
        tiles(factors, 37, 8, 4, |i, j| i % 2 * 2 + j % 2),
        tiles(factors, 50, 6, 4, |i, _| i % 3),
        tiles(factors, 50, 6, 5, |_, j| j % 4),
        tiles(factors, 64, 6, 7, |i, j| if j % 3 == 1 { i * i % 5 } else { 5 + i * 3 / 7 % 2 }),
        tiles(factors, 53, 5, 9, |i, j| j * j % 3 * 3 + [0, 2, 1, 1, 2][(i + j * j % 3) % 5]),
    ];
    whole.into_iter().chain(slabs).chain(taken_over).chain(tiles).collect()
}

fn schedules() -> Vec<FactorSchedule> {
    let of = |factors| layouts(factors).into_iter().map(move |tiles| FactorSchedule::new(factors, tiles));
    Factors::ALL.into_iter().flat_map(of).collect()
}

/// What a processor knows while it goes through its steps.
struct Known<'a> {
    schedule: &'a FactorSchedule,
    tiles: &'a TileMap,
    rank: Rank,
    posted: Vec<Message<PanelPiece>>,
    come: Vec<PanelPiece>,
    /// Panels whose marks it has.
    panels: BTreeSet<usize>,
    /// Rows of panels, by block row and panel.
    rows: BTreeSet<(usize, usize)>,
    /// Rows of U in tiles that it has computed, by panel and block column.
    solved: BTreeSet<(usize, usize)>,
    /// With how many panels a block column was updated; none if it is not here.
    updated: Vec<Option<usize>>,
    /// Its tiles of panels that it has factored, by block row and column.
    factored: Vec<(usize, usize)>,
    exchanged: Vec<usize>,
}

impl<'a> Known<'a> {
    fn new(schedule: &'a FactorSchedule, rank: Rank) -> Self {
        let tiles = schedule.blocks();
        let is_here = |column| (tiles.group(rank) == Some(tiles.group_of(column))).then_some(0);
        let mut known = Self {
            schedule,
            tiles,
            rank,
            posted: Vec::new(),
            come: Vec::new(),
            panels: BTreeSet::new(),
            rows: BTreeSet::new(),
            solved: BTreeSet::new(),
            updated: (0..tiles.count()).map(is_here).collect(),
            factored: Vec::new(),
            exchanged: Vec::new(),
        };
        // Those left of a slab are in a file.
        for panel in 0..tiles.first() {
            known.panels.insert(panel);
            known.rows.extend((panel..known.all_rows()).map(|row| (row, panel)));
        }
        known
    }

    fn all_rows(&self) -> usize {
        self.tiles.n().div_ceil(self.tiles.block()) as usize
    }

    fn has_come(&self, column: usize, part: PanelPart) -> bool {
        self.come.iter().any(|piece| (piece.column, piece.part) == (column, part))
    }

    fn step(&mut self, step: StepOf<FactorSchedule>) {
        for PanelPiece { column, part, .. } in step.sent().iter().flat_map(|message| &message.pieces) {
            match *part {
                PanelPart::Rows { from, to } => {
                    assert!(from == self.rank && self.panels.contains(column));
                    let rows = self.schedule.sent_rows(*column, from, to);
                    assert!(rows.iter().all(|row| self.rows.contains(&(*row, *column))));
                }
                PanelPart::Unfactored { .. } if !self.tiles.are_columns() => {
                    assert_eq!(self.updated[*column], Some(*column));
                }
                PanelPart::PivotRows { right, .. } => {
                    let mut columns = self.schedule.right_of(*column, right);
                    assert!(self.panels.contains(column));
                    assert!(columns.all(|j| self.updated[j].is_none_or(|panel| panel == *column)));
                }
                _ => {}
            }
        }
        match step {
            Step::PostReceive(message) => self.posted.push(message),
            Step::WaitReceive { from, tag } => {
                let place = self.posted.iter().position(|message| (message.from, message.tag) == (from, tag));
                for piece in self.posted.remove(place.unwrap()).pieces {
                    let column = piece.column;
                    match piece.part {
                        PanelPart::Rows { from, to } => {
                            let rows = self.schedule.sent_rows(column, from, to);
                            self.rows.extend(rows.iter().map(|row| (*row, column)));
                            self.panels.insert(column);
                        }
                        PanelPart::Unfactored { .. } if self.tiles.are_columns() => {
                            assert_eq!(self.updated[column], None);
                            self.updated[column] = Some(column.saturating_sub(1));
                        }
                        _ => {}
                    }
                    self.come.push(piece);
                }
            }
            Step::Compute(FactorWork { task, .. }) => self.compute(task),
            _ => {}
        }
    }

    fn compute(&mut self, task: FactorTask) {
        let (tiles, rank, lu) = (self.tiles, self.rank, self.schedule.factors() == Factors::Lu);
        let others = |column| tiles.others_below(rank, column);
        match task {
            FactorTask::Panel(column) => {
                assert_eq!(self.updated[column], Some(column));
                let all = self.schedule.factored_rows(rank, column);
                for &row in all.iter() {
                    let owner = tiles.owner(row, column);
                    assert!(owner == rank || self.has_come(column, PanelPart::Unfactored { from: owner }));
                    if !tiles.is_triangle() || owner == rank {
                        self.factored.push((row, column));
                    }
                }
                self.rows.extend(all.iter().map(|row| (*row, column)));
                self.panels.insert(column);
            }
            FactorTask::Update { panel, columns } => {
                assert!(self.panels.contains(&panel));
                for column in columns {
                    let rows = tiles.rows_after(rank, if lu { panel } else { column - 1 });
                    let Some(updated) = self.updated[column].filter(|_| !rows.is_empty()) else { continue };
                    assert_eq!(updated, panel, "updates are in order");
                    assert!(rows.iter().all(|&row| self.rows.contains(&(row, panel))));
                    if !lu {
                        assert!(self.rows.contains(&(column, panel)));
                    } else if !tiles.are_columns() {
                        let right = (0..self.schedule.parts())
                            .find(|&right| self.schedule.right_of(panel, right).contains(&column));
                        let upper = PanelPart::Upper { to: rank, right: right.unwrap() };
                        assert!(self.solved.contains(&(panel, column)) || self.has_come(panel, upper));
                    }
                    self.updated[column] = Some(panel + 1);
                }
            }
            FactorTask::GiveAway(column) => {
                assert!(tiles.is_taken_over(column));
                assert_eq!(self.updated[column].take(), Some(column.saturating_sub(1)));
            }
            FactorTask::Exchange => {
                assert!(!tiles.is_slab());
                assert!((tiles.own(rank)[0]..tiles.count()).all(|panel| self.panels.contains(&panel)));
            }
            FactorTask::Upper { panel, columns } => {
                assert!(tiles.rows(rank).contains(&panel) && self.rows.contains(&(panel, panel)));
                let mut parts = 0..self.schedule.parts();
                let right = parts.find(|&right| self.schedule.right_of(panel, right) == columns).unwrap();
                others(panel)
                    .for_each(|from| assert!(self.has_come(panel, PanelPart::PivotRows { from, right })));
                for column in columns.filter(|column| tiles.own(rank).contains(column)) {
                    assert_eq!(self.updated[column], Some(panel));
                    assert!(self.solved.insert((panel, column)));
                }
            }
            FactorTask::ExchangeIn(column) => {
                assert!(tiles.factorer(column) == rank && self.panels.len() == tiles.count());
                others(column).for_each(|of| assert!(self.has_come(column, PanelPart::Left { of })));
                self.exchanged.push(column);
            }
        }
    }
}

/// The updates of a range of block columns are those of each.
#[test]
fn updates_of_a_range_are_those_of_its_block_columns() {
    for schedule in schedules() {
        let (tiles, count) = (schedule.blocks(), schedule.blocks().count());
        for (rank, panel) in
            (0..schedule.processors()).flat_map(|rank| (0..count).map(move |panel| (rank, panel)))
        {
            let (rank, next) = (Rank(rank), panel + 1);
            let updates = |column: &usize| match *column == next && tiles.is_taken_over(next) {
                true => tiles.factorer(next) == rank,
                false => tiles.own(rank).contains(column),
            };
            for (from, to) in (0..=count).flat_map(|from| (from..=count).map(move |to| (from, to))) {
                let each = (from..to).filter(updates).map(|column| schedule.extent_of(rank, panel, column));
                let all = each.fold(Extent::default(), Extent::and);
                assert_eq!(schedule.extent(rank, panel, from..to), all, "{tiles:?}");
            }
        }
    }
}

/// Every tile is updated with each earlier panel, once, in order, with rows that have come or are own; it is sent, or its
/// panel factored, after that, once; and panels come back to those who gave them away.
#[test]
fn every_tile_is_updated_with_every_earlier_panel_before_it_is_factored() {
    for schedule in schedules() {
        let (tiles, count) = (schedule.blocks(), schedule.blocks().count());
        let (mut factored, mut exchanged, mut solved) = (Vec::new(), Vec::new(), Vec::new());
        for rank in (0..schedule.processors()).map(Rank) {
            let mut known = Known::new(&schedule, rank);
            schedule.steps(rank).for_each(|step| known.step(step));
            for &column in tiles.own(rank) {
                let last = tiles.rows(rank).last().copied().unwrap();
                let taken_over = tiles.is_taken_over(column);
                assert!(!taken_over || known.panels.contains(&column), "its panel comes back");
                assert!(taken_over || known.updated[column].unwrap() >= column.min(last));
            }
            factored.extend(known.factored);
            exchanged.extend(known.exchanged);
            solved.extend(known.solved);
        }
        factored.sort_unstable();
        let rows = tiles.n().div_ceil(tiles.block()) as usize;
        let all = (0..rows).flat_map(|i| (tiles.first()..count).map(move |j| (i, j))).filter(|(i, j)| j <= i);
        assert!(factored == all.collect::<Vec<_>>(), "{schedule:?}");
        let in_tiles = !tiles.are_columns() && !tiles.is_triangle();
        exchanged.sort_unstable();
        assert_eq!(exchanged, (0..if in_tiles { count - 1 } else { 0 }).collect::<Vec<_>>());
        assert_eq!(solved.len(), if in_tiles { count * (count - 1) / 2 } else { 0 });
    }
}

/// What is sent is what is posted for.
#[test]
fn messages_have_two_ends() {
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
            let keys: BTreeSet<_> = messages.iter().map(|m| (m.from, m.to, m.tag)).collect();
            assert_eq!(keys.len(), messages.len());
        }
        assert_eq!(sent, posted);
        assert!(sent.iter().flat_map(|message| &message.pieces).all(|piece| piece.elements() > 0));
        // On a bus each element of a broadcast travels once: no message has more.
        for step in all.iter().flatten() {
            if let Step::Broadcast(broadcast) = step {
                let most = broadcast.messages.iter().map(Message::elements).max().unwrap();
                let sum: u64 = broadcast.messages.iter().map(Message::elements).sum();
                assert!((most..=sum).contains(&broadcast.elements()));
            }
        }
    }
}

/// By hand.
#[test]
fn what_is_received_is_counted() {
    use Factors::{Cholesky, Ldlt, Lu};
    let columns = |owners: &[usize]| TileMap::columns(10, 3, 3, ranks(owners));
    let whole = columns(&[0, 1, 1, 0]);
    let fast = whole.clone().factored_by(ranks(&[0; 4])).unwrap();
    let last = columns(&[0, 1, 0, 0]).factored_by(ranks(&[0; 4])).unwrap();
    let grid = |factors| tiles(factors, 6, 2, 3, |i, _| usize::from(i != 1));
    for (factors, tiles, wanted) in [
        // Panels below their diagonal blocks have 7, 4, 1 and 0 rows of three elements, and a mark each.
        (Cholesky, whole.clone(), [(4 * 3 + 1) + (3 + 1), 7 * 3 + 1, 0]),
        // With their diagonal blocks 10, 7, 4 and 1 rows; four marks, and two for the last.
        (Lu, whole.clone(), [(7 * 3 + 4) + (4 * 3 + 4), (10 * 3 + 4) + 2, 0]),
        // As Cholesky's, with a mark and five numbers of D.
        (Ldlt, whole.clone(), [(4 * 3 + 6) + (3 + 6), 7 * 3 + 6, 0]),
        (Lu, whole.slab(2..4), [4 * 3 + 4, 0, 0]),
        // Two block columns from their diagonal on, of 7 and 4 rows; back come the panels and nine elements.
        (Cholesky, fast.clone(), [7 * 3 + 4 * 3, 7 * 3 + 1 + (4 * 3 + 1 + 9) + (3 + 1 + 9), 0]),
        // With three more rows each; all panels from their diagonal on, and the pivots of the last.
        (Lu, fast, [10 * 3 + 7 * 3, 10 * 3 + 4 + (7 * 3 + 4 + 9) + (4 * 3 + 4 + 9) + 2, 0]),
        // Block column 1 is taken over without an update: processor 1 needs no panel before it.
        (Cholesky, last, [7 * 3, 4 * 3 + 1 + 9, 0]),
        // 3 x 3 tiles of two rows; the first processor has block row 1, the second the others. The second factors panels 0
        // and 2. It gets block row 1 of panel 0, and as rows for U two of each of four columns; of panel 1 marks and its
        // rows, and as it does not solve for U, four rows of two columns; and block row 1 of column 0 in the end, and its
        // own of column 1. The first factors panel 1. It gets marks and its rows of panel 0, and four rows of four columns;
        // block row 2 of panel 1, and two rows of two columns; the marks of panel 2; its rows of column 0, and those of the
        // other of column 1.
        (Lu, grid(Lu), [(3 + 4) + 4 * 4 + 4 + 2 * 2 + 3 + 4 + 4, 4 + 2 * 4 + (3 + 4) + 4 * 2 + 4 + 4, 0]),
        // The same tiles of a triangle: each gets a diagonal tile, and the second with a mark the row of the first that is
        // the block column of its tile.
        (Cholesky, grid(Cholesky), [4, 4 + 1 + 4, 0]),
        (Ldlt, grid(Ldlt), [4, 4 + 4 + 4, 0]),
    ] {
        assert_eq!(FactorSchedule::new(factors, tiles.clone()).received(), wanted, "{factors} {tiles:?}");
    }
}

/// By hand, n x n elements and those of two panels, of which the second is factored while the first is used.
#[test]
fn what_is_held_is_counted() {
    let one = TileMap::columns(20, 10, 1, ranks(&[0; 2]));
    for (factors, panels) in [
        (Factors::Cholesky, (100 + 1) + 1),
        (Factors::Lu, (200 + 11) + (100 + 11)),
        (Factors::Ldlt, (100 + 20) + 20),
    ] {
        assert_eq!(FactorSchedule::new(factors, one.clone()).memory(Rank(0)), 400 + panels);
    }
}

/// The multiply-adds of all products, panels and triangles without weights are those of the factorisation.
#[test]
fn products_are_most_of_the_work() {
    let columns = TileMap::columns(1280, 32, 1, ranks(&[0; 40]));
    for (factors, wanted) in [(Factors::Cholesky, 6.0), (Factors::Lu, 3.0), (Factors::Ldlt, 6.0)] {
        let schedule = FactorSchedule::new(factors, columns.clone());
        let products = schedule.share(Rank(0)) * 1280.0;
        let part = products * wanted / 1280_f64.powi(3);
        // Diagonal blocks of symmetric matrices are updated whole.
        assert!((0.9..1.04).contains(&part), "{factors}: {part}");
        assert!(schedule.work(Rank(0)) > products);
    }
}

/// By tiles as by columns, the products are those of the factorisation, and of LU all the work.
#[test]
fn products_are_those_of_one_processor() {
    for schedule in schedules().into_iter().filter(|schedule| !schedule.blocks().are_columns()) {
        let (tiles, factors) = (schedule.blocks(), schedule.factors());
        let columns = TileMap::columns(tiles.n(), tiles.block(), 1, vec![Rank(0); tiles.count()]);
        let alone = FactorSchedule::new(factors, columns);
        let shares: f64 = (0..schedule.processors()).map(|rank| schedule.share(Rank(rank))).sum();
        assert!((shares - alone.share(Rank(0))).abs() <= 1e-9 * shares);
        let work: f64 = (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).sum();
        let same = (work / alone.work(Rank(0)) - 1.0).abs() < 1e-9;
        assert!(same || factors != Factors::Lu);
    }
}

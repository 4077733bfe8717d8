//! Tiles of the lower triangle of a symmetric matrix and their owners: how a symmetric factorisation is divided in two
//! dimensions.

use super::{Factors, Layout, Part, Shape};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};

/// The most block rows of a layout that is read: each has as many tiles.
const MOST: u64 = 4096;

/// The tiles of the lower triangle of an n x n matrix, each with its owner. The last block may have fewer rows and
/// columns. A tile above the diagonal belongs to the owner of its mirror image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockTiles {
    n: u64,
    block: u64,
    /// The tiles of the lower triangle, row by row.
    owners: Vec<Rank>,
    /// By rank.
    own: Vec<OwnTiles>,
    /// By block column.
    transfers: Vec<Transfers>,
}

/// What travels of the panel of a block column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Transfers {
    /// By receiver: from whom, ascending, and how many rows.
    received: Vec<Vec<(Rank, u64)>>,
    /// By sender: to whom, ascending, and how many rows.
    sent: Vec<Vec<(Rank, u64)>>,
    /// By sender: rows that anybody receives.
    once: Vec<u64>,
}

/// The tiles of one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnTiles {
    /// Tiles below the diagonal.
    sets: Vec<TileSet>,
    /// The block rows of its diagonal tiles, ascending.
    diagonal: Vec<usize>,
    /// By block row: the last block column with a tile of it in that row.
    last_in_row: Vec<Option<usize>>,
    /// By block column: true if it has a tile in that column.
    in_column: Vec<bool>,
    /// By block column: rows of its tiles below the diagonal.
    below: Vec<u64>,
    /// By block column: elements of its tiles in that column and all later ones, and the columns of these, those of a
    /// diagonal tile counted apart.
    later: Vec<[u64; 2]>,
}

/// Tiles below the diagonal: all those in some block rows and block columns, both ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileSet {
    /// Block rows.
    pub rows: Vec<usize>,
    /// Block columns.
    pub columns: Vec<usize>,
}

impl BlockTiles {
    /// Tiles of `block` rows and columns with these owners, by block row and block column, among `processors`.
    ///
    /// # Panics
    /// If a size is 0, or there is no such owner.
    pub fn new(n: u64, block: u64, processors: usize, owner: impl Fn(usize, usize) -> Rank) -> Self {
        assert!(n > 0 && block > 0, "{n} rows in blocks of {block}");
        let count = n.div_ceil(block) as usize;
        let owners: Vec<Rank> =
            (0..count).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| owner(i, j)).collect();
        let length = |place: usize| ((place as u64 + 1) * block).min(n) - place as u64 * block;
        let own = |rank| OwnTiles::new(count, |i, j| owners[place(i, j)] == Rank(rank), length);
        let own: Vec<OwnTiles> = (0..processors).map(own).collect();
        assert!(
            owners.iter().all(|owner| owner.0 < processors),
            "an owner is one of {processors} processors"
        );
        let mut tiles = Self { n, block, owners, own, transfers: Vec::new() };
        tiles.transfers = (0..count).map(|column| Transfers::new(&tiles, column)).collect();
        tiles
    }

    /// The tiles of a layout of n x n elements, by its lower triangle.
    ///
    /// # Errors
    /// The layout is not square, or not of whole tiles: exit code 2.
    pub fn of_layout(layout: &Layout, block: u64) -> Result<Self> {
        let owners = owners_of_tiles(layout, block)?;
        Ok(Self::new(layout.shape().n, block, layout.processors(), |i, j| owners[i][j]))
    }

    /// The layout: in each block row, a part for neighbouring tiles of one owner.
    pub fn layout(&self) -> Layout {
        layout_of_tiles(self.n, self.block, self.own.len(), |i, j| self.owner(i.max(j), i.min(j)))
    }

    /// Rows and columns of the matrix.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Rows and columns of a tile.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.own.len()
    }

    /// Number of block rows, and of block columns.
    pub fn count(&self) -> usize {
        self.n.div_ceil(self.block) as usize
    }

    /// The rows of a block row, or the columns of a block column.
    pub fn span(&self, place: usize) -> Span {
        let start = place as u64 * self.block;
        Span::new(start, (start + self.block).min(self.n))
    }

    /// The owner of a tile of the lower triangle.
    ///
    /// # Panics
    /// If the block column is greater than the block row.
    pub fn owner(&self, row: usize, column: usize) -> Rank {
        assert!(column <= row, "tile {row}, {column} is above the diagonal");
        self.owners[place(row, column)]
    }

    /// A processor's tiles below the diagonal: no tile is in two sets.
    pub fn sets(&self, rank: Rank) -> &[TileSet] {
        &self.own[rank.0].sets
    }

    /// The block rows of a processor's diagonal tiles, ascending.
    pub fn diagonal(&self, rank: Rank) -> &[usize] {
        &self.own[rank.0].diagonal
    }

    /// True if a processor has a tile.
    pub fn has_tiles(&self, rank: Rank) -> bool {
        self.own[rank.0].in_column.contains(&true)
    }

    /// The block rows below the diagonal of a processor's tiles in a block column, ascending.
    pub fn below(&self, rank: Rank, column: usize) -> impl Iterator<Item = usize> + '_ {
        (column + 1..self.count()).filter(move |&row| self.owner(row, column) == rank)
    }

    /// The rows below the diagonal of a processor's tiles in a block column.
    pub(crate) fn rows_below(&self, rank: Rank, column: usize) -> u64 {
        self.own[rank.0].below[column]
    }

    /// Elements of a processor's tiles in a range of block columns, and the number of columns of these, those of a
    /// diagonal tile counted apart.
    pub(crate) fn extent(&self, rank: Rank, columns: std::ops::Range<usize>) -> [u64; 2] {
        let later = &self.own[rank.0].later;
        let ([elements, across], [not, neither]) = (later[columns.start], later[columns.end]);
        [elements - not, across - neither]
    }

    /// From whom a processor receives rows of the panel of a block column, ascending, and how many.
    pub(crate) fn senders(&self, to: Rank, column: usize) -> &[(Rank, u64)] {
        &self.transfers[column].received[to.0]
    }

    /// To whom a processor sends rows of the panel of a block column, ascending, and how many.
    pub(crate) fn receivers(&self, from: Rank, column: usize) -> &[(Rank, u64)] {
        &self.transfers[column].sent[from.0]
    }

    /// The rows of the panel of a block column that a processor sends to anybody, each counted once.
    pub(crate) fn rows_sent(&self, from: Rank, column: usize) -> u64 {
        self.transfers[column].once[from.0]
    }

    /// True if a processor updates tiles with the part in a block row of the panel of a block column.
    pub fn needs(&self, rank: Rank, row: usize, column: usize) -> bool {
        let own = &self.own[rank.0];
        own.in_column[row] || own.last_in_row[row].is_some_and(|last| last > column)
    }

    /// The processors with tiles below the diagonal in a block column, ascending.
    pub(crate) fn holders(&self, column: usize) -> Vec<Rank> {
        let mut holds = vec![false; self.processors()];
        (column + 1..self.count()).for_each(|row| holds[self.owner(row, column).0] = true);
        (0..holds.len()).filter(|rank| holds[*rank]).map(Rank).collect()
    }

    /// Numbers that travel with a part of a panel: a mark of failure, and for L D L^T the diagonal of D and what is beside
    /// it.
    pub fn panel_marks(&self, factors: Factors, column: usize) -> u64 {
        let width = self.span(column).len();
        if factors == Factors::Ldlt { 2 * width } else { 1 }
    }

    /// Number of elements that a processor receives in a factorisation, by formula: of each block column in which it has
    /// tiles below the diagonal, the diagonal tile; of each panel, the rows that it updates with, and the marks of all
    /// who send them; its own tiles excepted.
    pub fn received(&self, factors: Factors, rank: Rank) -> u64 {
        let of = |column: usize| {
            let width = self.span(column).len();
            let is_sent = self.owner(column, column) != rank && self.rows_below(rank, column) > 0;
            let senders = self.senders(rank, column);
            let rows: u64 = senders.iter().map(|(_, rows)| rows).sum();
            let marks = senders.len() as u64 * self.panel_marks(factors, column);
            (if is_sent { width * width } else { 0 }) + rows * width + marks
        };
        (0..self.count()).map(of).sum()
    }
}

/// The owners of all tiles of a layout of n x n elements, by block row and block column.
///
/// # Errors
/// The layout is not square, or not of whole tiles: exit code 2.
pub(super) fn owners_of_tiles(layout: &Layout, block: u64) -> Result<Vec<Vec<Rank>>> {
    let Shape { m, n, .. } = layout.shape();
    let refuse = |what: String| {
        let remedy = "give a square matrix, and parts of whole blocks";
        Err(Error::input("layout", what, remedy))
    };
    if m != n {
        return refuse(format!("is of {m} x {n} elements, not square"));
    }
    let count = n.div_ceil(block);
    if count > MOST {
        return refuse(format!("has {count} block rows, more than {MOST}"));
    }
    let mut owners = vec![vec![Rank(0); count as usize]; count as usize];
    let is_whole =
        |span: &Span| span.start.is_multiple_of(block) && (span.end.is_multiple_of(block) || span.end == n);
    let places = |span: &Span| (span.start / block) as usize..span.end.div_ceil(block) as usize;
    for Part { owner, rows, cols } in layout.parts() {
        if !is_whole(rows) || !is_whole(cols) {
            return refuse(format!(
                "rows [{}, {}] cols [{}, {}] are not whole blocks of {block}",
                rows.start, rows.end, cols.start, cols.end
            ));
        }
        owners[places(rows)].iter_mut().for_each(|row| row[places(cols)].fill(*owner));
    }
    Ok(owners)
}

/// The layout of n x n elements in tiles with these owners: in each block row, a part for neighbouring tiles of one owner.
pub(super) fn layout_of_tiles(
    n: u64,
    block: u64,
    processors: usize,
    owner: impl Fn(usize, usize) -> Rank,
) -> Layout {
    let shape = Shape { m: n, k: 1, n };
    let count = n.div_ceil(block) as usize;
    let span = |from: usize, to: usize| Span::new(from as u64 * block, (to as u64 * block).min(n));
    let mut parts = Vec::new();
    for row in 0..count {
        let mut first = 0;
        for end in 1..=count {
            if end == count || owner(row, end) != owner(row, first) {
                let rect = Rect::new(span(row, row + 1), span(first, end));
                parts.push(Part::new(owner(row, first), rect));
                first = end;
            }
        }
    }
    Layout::new(shape, processors, parts).expect("tiles cover the matrix once")
}

/// Where a tile of the lower triangle is.
fn place(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

impl Transfers {
    fn new(tiles: &BlockTiles, column: usize) -> Self {
        let p = tiles.processors();
        let (mut rows, mut once) = (vec![0; p * p], vec![0; p]);
        for row in column + 1..tiles.count() {
            let (from, length) = (tiles.owner(row, column).0, tiles.span(row).len());
            let needs = |to: &usize| *to != from && tiles.needs(Rank(*to), row, column);
            let mut anybody = false;
            (0..p).filter(needs).for_each(|to| {
                rows[from * p + to] += length;
                anybody = true;
            });
            once[from] += if anybody { length } else { 0 };
        }
        let some = |i: usize, rows: u64| (rows > 0).then_some((Rank(i), rows));
        let received = |to: usize| (0..p).filter_map(|from| some(from, rows[from * p + to])).collect();
        let sent = |from: usize| (0..p).filter_map(|to| some(to, rows[from * p + to])).collect();
        Self { received: (0..p).map(received).collect(), sent: (0..p).map(sent).collect(), once }
    }
}

impl OwnTiles {
    fn new(count: usize, is_own: impl Fn(usize, usize) -> bool, length: impl Fn(usize) -> u64) -> Self {
        let diagonal: Vec<usize> = (0..count).filter(|&i| is_own(i, i)).collect();
        let mut sets: Vec<TileSet> = Vec::new();
        for column in 0..count {
            let rows: Vec<usize> = (column + 1..count).filter(|&row| is_own(row, column)).collect();
            if rows.is_empty() {
                continue;
            }
            // A later column of a set has those of its rows that are below the diagonal.
            let later = |set: &TileSet| set.rows[set.rows.partition_point(|row| *row <= column)..] == rows;
            match sets.iter_mut().find(|set| later(set)) {
                Some(set) => set.columns.push(column),
                None => sets.push(TileSet { rows, columns: vec![column] }),
            }
        }
        let last_in_row = (0..count).map(|i| (0..=i).rev().find(|&j| is_own(i, j))).collect();
        let in_column = (0..count).map(|j| (j..count).any(|i| is_own(i, j))).collect();
        let rows = |j: usize| (j + 1..count).filter(|&i| is_own(i, j)).map(&length).sum();
        let below: Vec<u64> = (0..count).map(rows).collect();
        let mut later = vec![[0; 2]; count + 1];
        for j in (0..count).rev() {
            let (width, [elements, across]) = (length(j), later[j + 1]);
            let diagonal = if is_own(j, j) { width } else { 0 };
            let beside = if below[j] > 0 { width } else { 0 };
            later[j] = [elements + width * (below[j] + diagonal), across + beside + diagonal];
        }
        Self { sets, diagonal, last_in_row, in_column, below, later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(n: u64, block: u64, p: usize, owner: impl Fn(usize, usize) -> usize) -> BlockTiles {
        BlockTiles::new(n, block, p, |i, j| Rank(owner(i, j)))
    }

    fn all() -> Vec<BlockTiles> {
        vec![
            of(1, 4, 2, |_, _| 1),
            of(10, 3, 1, |_, _| 0),
            of(23, 3, 4, |i, j| i % 2 * 2 + j % 2),
            of(23, 3, 3, |_, j| j % 3),
            of(23, 3, 3, |i, _| i % 3),
            of(40, 4, 5, |i, j| (i * 7 + j * j * 3) % 5),
        ]
    }

    #[test]
    fn tiles_are_those_of_their_layout() {
        for tiles in all() {
            assert_eq!(BlockTiles::of_layout(&tiles.layout(), tiles.block()).unwrap(), tiles);
            let error = BlockTiles::of_layout(&tiles.layout(), tiles.block() + 30).err();
            assert_eq!(error.is_some(), tiles.layout().parts().len() > 1, "{tiles:?}");
        }
    }

    /// Every tile is in one set of its owner, or on the diagonal.
    #[test]
    fn sets_divide_the_triangle() {
        for tiles in all() {
            let mut found = BTreeSet::new();
            for rank in (0..tiles.processors()).map(Rank) {
                tiles.diagonal(rank).iter().for_each(|&i| assert!(found.insert((i, i, rank))));
                for TileSet { rows, columns } in tiles.sets(rank) {
                    for &j in columns {
                        rows.iter().filter(|i| **i > j).for_each(|&i| assert!(found.insert((i, j, rank))));
                    }
                }
            }
            let count = tiles.count();
            assert_eq!(found.len(), count * (count + 1) / 2);
            assert!(found.iter().all(|&(i, j, rank)| tiles.owner(i, j) == rank));
        }
    }

    #[test]
    fn too_many_tiles_are_refused() {
        let halves = of(20_000, 10_000, 2, |i, _| i);
        let error = BlockTiles::of_layout(&halves.layout(), 1).unwrap_err();
        assert!(error.to_string().contains("20000 block rows"), "{error}");
    }

    /// A processor of a grid has one set, and needs the rows of its tiles' rows and columns.
    #[test]
    fn what_is_needed_is_what_updates_use() {
        for tiles in all() {
            for rank in (0..tiles.processors()).map(Rank) {
                for column in 0..tiles.count() {
                    for row in column + 1..tiles.count() {
                        let updates =
                            |i: usize, j: usize| tiles.owner(i, j) == rank && (i == row || j == row);
                        let wanted =
                            (column + 1..tiles.count()).any(|j| (j..tiles.count()).any(|i| updates(i, j)));
                        assert_eq!(
                            tiles.needs(rank, row, column),
                            wanted,
                            "{tiles:?} {rank:?} {row} {column}"
                        );
                    }
                }
            }
        }
        assert_eq!(all()[2].sets(Rank(3)).len(), 1);
    }

    /// By hand: 3 x 3 tiles of two rows, 2 processors, the second with tile (2, 1) only.
    #[test]
    fn what_is_received_is_counted() {
        let tiles = of(6, 2, 2, |i, j| usize::from((i, j) == (2, 1)));
        // It needs both rows of the first panel, with a mark, and the diagonal tile of the second; then nothing.
        assert_eq!(tiles.received(Factors::Cholesky, Rank(1)), 2 * 4 + 1 + 4);
        // The other needs its tile for the last diagonal tile.
        assert_eq!(tiles.received(Factors::Cholesky, Rank(0)), 4 + 1);
        assert_eq!(tiles.received(Factors::Ldlt, Rank(0)), 4 + 4);
    }
}

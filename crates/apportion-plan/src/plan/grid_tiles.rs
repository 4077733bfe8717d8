//! Tiles of a square matrix in a grid of processors: how an LU factorisation is divided in two dimensions.

use super::Layout;
use super::block_tiles::{layout_of_tiles, owners_of_tiles};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Span};
use std::ops::Range;

/// The tiles of an n x n matrix, each with its owner. The block columns are divided among groups of processors, and in all
/// block columns of a group each of its processors has the same block rows: a processor has the tiles that are in some
/// block rows and some block columns. The last block may have fewer rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridTiles {
    n: u64,
    block: u64,
    /// By block column.
    group_of: Vec<usize>,
    /// In the order of their first block columns.
    groups: Vec<Group>,
    /// By rank; none without tiles.
    own: Vec<Option<OwnRows>>,
}

/// Block columns whose block rows are divided alike.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Ascending.
    columns: Vec<usize>,
    /// By block row.
    owners: Vec<Rank>,
    /// The owners, ascending.
    members: Vec<Rank>,
    /// By block column: columns of the matrix in its block columns from this one on.
    from: Vec<u64>,
}

/// The block rows of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnRows {
    group: usize,
    /// Ascending.
    rows: Vec<usize>,
    /// By block row: rows of the matrix in its block rows from this one on.
    from: Vec<u64>,
}

impl GridTiles {
    /// Tiles of `block` rows and columns with these owners, by block row and block column, among `processors`.
    ///
    /// # Panics
    /// If a size is 0, there is no such owner, or a processor has different block rows in two of its block columns.
    pub fn new(n: u64, block: u64, processors: usize, owner: impl Fn(usize, usize) -> Rank) -> Self {
        assert!(n > 0 && block > 0, "{n} rows in blocks of {block}");
        Self::of_owners(n, block, processors, owner)
            .expect("a processor has the same rows in all its columns")
    }

    /// The same; none if a processor has different block rows in two of its block columns.
    fn of_owners(
        n: u64,
        block: u64,
        processors: usize,
        owner: impl Fn(usize, usize) -> Rank,
    ) -> Option<Self> {
        let count = n.div_ceil(block) as usize;
        let length = |place: usize| ((place as u64 + 1) * block).min(n) - place as u64 * block;
        // For each place, how much there is in it and all later ones of those in question.
        let suffixes = |places: &[usize]| {
            let mut from = vec![0; count + 1];
            places.iter().for_each(|&place| from[place] = length(place));
            (0..count).rev().for_each(|place| from[place] += from[place + 1]);
            from
        };
        let (mut groups, mut own): (Vec<Group>, Vec<Option<OwnRows>>) = (Vec::new(), vec![None; processors]);
        let mut group_of = Vec::new();
        for column in 0..count {
            let owners: Vec<Rank> = (0..count).map(|row| owner(row, column)).collect();
            if let Some(group) = groups.iter().position(|group| group.owners == owners) {
                groups[group].columns.push(column);
                group_of.push(group);
                continue;
            }
            let mut members = owners.clone();
            members.sort_unstable();
            members.dedup();
            for rank in &members {
                let rows: Vec<usize> = (0..count).filter(|&row| owners[row] == *rank).collect();
                let from = suffixes(&rows);
                let earlier = own[rank.0].replace(OwnRows { group: groups.len(), rows, from });
                if earlier.is_some() {
                    return None;
                }
            }
            group_of.push(groups.len());
            groups.push(Group { columns: vec![column], owners, members, from: Vec::new() });
        }
        groups.iter_mut().for_each(|group| group.from = suffixes(&group.columns));
        Some(Self { n, block, group_of, groups, own })
    }

    /// The tiles of a layout of n x n elements.
    ///
    /// # Errors
    /// The layout is not square or not of whole tiles, or a processor has different block rows in two of its block
    /// columns: exit code 2.
    pub fn of_layout(layout: &Layout, block: u64) -> Result<Self> {
        let owners = owners_of_tiles(layout, block)?;
        let (n, processors) = (layout.shape().n, layout.processors());
        Self::of_owners(n, block, processors, |row, column| owners[row][column]).ok_or_else(|| {
            let what =
                "gives a processor different block rows in two of its block columns, which LU has alike";
            let remedy = "give each processor all tiles that are in some block rows and some block columns";
            Error::input("layout", what, remedy)
        })
    }

    /// The layout: in each block row, a part for neighbouring tiles of one owner.
    pub fn layout(&self) -> Layout {
        layout_of_tiles(self.n, self.block, self.processors(), |row, column| self.owner(row, column))
    }

    /// True if each group has one processor: they are whole block columns.
    pub fn are_columns(&self) -> bool {
        self.groups.iter().all(|group| group.members.len() == 1)
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
        self.group_of.len()
    }

    /// The rows of a block row, or the columns of a block column.
    pub fn span(&self, place: usize) -> Span {
        let start = place as u64 * self.block;
        Span::new(start, (start + self.block).min(self.n))
    }

    /// The owner of a tile.
    pub fn owner(&self, row: usize, column: usize) -> Rank {
        self.owner_in(self.group_of(column), row)
    }

    /// The owner of a block row in the block columns of a group.
    pub fn owner_in(&self, group: usize, row: usize) -> Rank {
        self.groups[group].owners[row]
    }

    /// The group of a block column.
    pub fn group_of(&self, column: usize) -> usize {
        self.group_of[column]
    }

    /// The group of a processor; none if it has no tiles.
    pub fn group(&self, rank: Rank) -> Option<usize> {
        self.own[rank.0].as_ref().map(|own| own.group)
    }

    /// The processors of a group, ascending.
    pub fn members(&self, group: usize) -> &[Rank] {
        &self.groups[group].members
    }

    /// The block columns of a group, ascending.
    pub fn columns_of(&self, group: usize) -> &[usize] {
        &self.groups[group].columns
    }

    /// The block rows of a processor's tiles, ascending.
    pub fn rows(&self, rank: Rank) -> &[usize] {
        self.own[rank.0].as_ref().map_or(&[], |own| &own.rows)
    }

    /// The block columns of a processor's tiles, ascending.
    pub fn columns(&self, rank: Rank) -> &[usize] {
        self.group(rank).map_or(&[], |group| self.columns_of(group))
    }

    /// The places, in [`columns`](Self::columns), of the block columns of a processor that are in a range.
    pub fn places(&self, rank: Rank, range: Range<usize>) -> Range<usize> {
        let own = self.columns(rank);
        own.partition_point(|&column| column < range.start)..own.partition_point(|&column| column < range.end)
    }

    /// The rows of the matrix in a processor's block rows after one.
    pub fn rows_after(&self, rank: Rank, row: usize) -> u64 {
        self.own[rank.0].as_ref().map_or(0, |own| own.from[row + 1])
    }

    /// The columns of the matrix in those block columns of a group that are in a range.
    pub fn columns_in(&self, group: usize, range: Range<usize>) -> u64 {
        let from = &self.groups[group].from;
        from[range.start] - from[range.end.max(range.start)]
    }

    /// In how many parts the block columns right of a panel are updated.
    pub const PARTS: usize = 5;

    /// The block columns right of a panel that are updated together: of part 0 the next one, and of each part after the
    /// first about twice as many as of the one before, so that the rows of U for it travel meanwhile.
    pub fn right_of(&self, panel: usize, part: usize) -> Range<usize> {
        let (next, after) = ((panel + 1).min(self.count()), (panel + 2).min(self.count()));
        if part == 0 {
            return next..after;
        }
        let all = self.count() - after;
        let cut =
            |part: u32| after + all * (2_usize.pow(part) - 1) / (2_usize.pow(Self::PARTS as u32 - 1) - 1);
        cut(part as u32 - 1)..cut(part as u32)
    }

    /// The other processors in the group of a processor that have rows after a block row, ascending.
    pub fn others_below(&self, rank: Rank, row: usize) -> impl Iterator<Item = Rank> + '_ {
        let members = self.group(rank).map_or(&[][..], |group| self.members(group));
        members.iter().copied().filter(move |&other| other != rank && self.rows_after(other, row) > 0)
    }

    /// Numbers that travel with a panel: a mark of failure, and a pivot for each column.
    pub fn panel_marks(&self, column: usize) -> u64 {
        1 + self.span(column).len()
    }

    /// The rows of L in a panel that its owner sends to another processor: those in its block rows, if it updates with them
    /// or they are its own.
    pub(crate) fn panel_rows(&self, to: Rank, column: usize) -> u64 {
        let needs = |group| self.has_right(group, column) || self.group_of(column) == group;
        self.group(to).filter(|&group| needs(group)).map_or(0, |_| self.rows_after(to, column))
    }

    /// True if another processor than the owner of a panel needs its diagonal block: it solves for rows of U with it.
    pub fn needs_diagonal(&self, rank: Rank, column: usize) -> bool {
        let needs = |group| {
            self.group_of(column) != group
                && self.has_right(group, column)
                && self.owner_in(group, column) == rank
        };
        self.group(rank).is_some_and(needs)
    }

    /// True if a group has block columns right of one.
    fn has_right(&self, group: usize, column: usize) -> bool {
        self.columns_in(group, column + 1..self.count()) > 0
    }

    /// Elements of a factored panel, without its marks, that its owner sends to another processor: the diagonal block and
    /// rows of L that it needs.
    pub(crate) fn panel_elements(&self, to: Rank, column: usize) -> u64 {
        let width = self.span(column).len();
        let diagonal = if self.needs_diagonal(to, column) { width } else { 0 };
        (diagonal + self.panel_rows(to, column)) * width
    }

    /// Number of elements that a processor receives in an LU factorisation, by formula. Of each panel, its marks and the
    /// rows and diagonal block that it needs; where it factors the panel itself, the rows of others. In the block columns
    /// of its group right of a panel, where it computes the rows of U, as many rows as the panel is wide from each of the
    /// others with rows below; else, if it has rows below itself, twice as many. In the end, the rows below the diagonal
    /// blocks of its group's block columns: of those that it factored the rows of others, of the others its own.
    pub fn received(&self, rank: Rank) -> u64 {
        let Some(group) = self.group(rank) else { return 0 };
        let of = |column: usize| {
            let (Span { end, .. }, width) = (self.span(column), self.span(column).len());
            let (below, own) = (self.rows_after(rank, column), self.group_of(column) == group);
            let gathered = (self.n - end - below) * width;
            let factors = self.owner(column, column) == rank;
            let panel = match factors {
                true => gathered,
                false => self.panel_marks(column) + self.panel_elements(rank, column),
            };
            let times = match self.owner_in(group, column) == rank {
                true => self.others_below(rank, column).count() as u64,
                false if below > 0 => 2,
                false => 0,
            };
            let upper = times * width * self.columns_in(group, column + 1..self.count());
            let left = match own {
                true if factors => gathered,
                true => below * width,
                false => 0,
            };
            panel + upper + left
        };
        (0..self.count()).map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;
    use crate::plan::{BlockColumns, BlockTiles, Factors, Part, Shape};

    fn of(n: u64, block: u64, p: usize, owner: impl Fn(usize, usize) -> usize) -> GridTiles {
        GridTiles::new(n, block, p, |i, j| Rank(owner(i, j)))
    }

    fn all() -> Vec<GridTiles> {
        vec![
            of(1, 4, 2, |_, _| 1),
            of(10, 3, 1, |_, _| 0),
            of(23, 3, 4, |i, j| i % 2 * 2 + j % 2),
            of(23, 3, 3, |_, j| j % 3),
            of(23, 3, 4, |i, _| i % 3),
            of(40, 4, 7, |i, j| if j % 3 == 1 { i * i % 5 } else { 5 + i % 2 }),
        ]
    }

    #[test]
    fn grids_are_those_of_their_layout() {
        for tiles in all() {
            assert_eq!(GridTiles::of_layout(&tiles.layout(), tiles.block()).unwrap(), tiles);
            let error = GridTiles::of_layout(&tiles.layout(), tiles.block() + 30).err();
            assert_eq!(error.is_some(), tiles.layout().parts().len() > 1, "{tiles:?}");
            let shares: u64 = (0..tiles.processors())
                .map(|rank| {
                    let length = |places: &[usize]| places.iter().map(|&i| tiles.span(i).len()).sum::<u64>();
                    length(tiles.rows(Rank(rank))) * length(tiles.columns(Rank(rank)))
                })
                .sum();
            assert_eq!(shares, tiles.n() * tiles.n());
        }
    }

    #[test]
    fn owners_without_the_same_rows_in_all_columns_are_refused() {
        // The second processor has row 0 of column 0, and row 1 of column 1.
        let shape = Shape { m: 4, k: 1, n: 4 };
        let part = |owner, [row, column]: [u64; 2]| {
            let span = |place: u64| Span::new(2 * place, 2 * place + 2);
            Part::new(Rank(owner), Rect::new(span(row), span(column)))
        };
        let parts = [part(1, [0, 0]), part(0, [1, 0]), part(0, [0, 1]), part(1, [1, 1])];
        let layout = Layout::new(shape, 2, parts).unwrap();
        let error = GridTiles::of_layout(&layout, 2).unwrap_err();
        assert!(error.to_string().contains("different block rows"), "{error}");
        assert!(BlockTiles::of_layout(&layout, 2).is_ok());
    }

    #[test]
    fn sizes_are_those_of_the_tiles() {
        for tiles in all() {
            let count = tiles.count();
            for rank in (0..tiles.processors()).map(Rank) {
                let own = |i: usize, j: usize| tiles.owner(i, j) == rank;
                for k in 0..count {
                    let rows = (k + 1..count).filter(|&i| (0..count).any(|j| own(i, j)));
                    assert_eq!(tiles.rows_after(rank, k), rows.map(|i| tiles.span(i).len()).sum::<u64>());
                    if let Some(group) = tiles.group(rank) {
                        let columns = (k..count).filter(|&j| (0..count).any(|i| own(i, j)));
                        let wanted: u64 = columns.map(|j| tiles.span(j).len()).sum();
                        assert_eq!(tiles.columns_in(group, k..count), wanted);
                    }
                }
            }
        }
    }

    /// By hand: 3 x 3 tiles of two rows; the first processor has block row 1, the second the others.
    #[test]
    fn what_is_received_is_counted() {
        let tiles = of(6, 2, 3, |i, _| usize::from(i != 1));
        // The second factors panels 0 and 2. It gets block row 1 of panel 0, and as rows for U two of each of four
        // columns; of panel 1 marks and its rows, and as it does not solve for U, four rows of two columns; and block row 1
        // of column 0 in the end, and its own of column 1.
        assert_eq!(tiles.received(Rank(1)), 4 + 2 * 4 + (3 + 4) + 4 * 2 + 4 + 4);
        // The first factors panel 1. It gets marks and its rows of panel 0, and four rows of four columns; block row 2 of
        // panel 1, and two rows of two columns; the marks of panel 2; its rows of column 0, and those of the other of
        // column 1.
        assert_eq!(tiles.received(Rank(0)), (3 + 4) + 4 * 4 + 4 + 2 * 2 + 3 + 4 + 4);
        assert_eq!(tiles.received(Rank(2)), 0);
    }

    #[test]
    fn groups_of_one_receive_what_block_columns_do() {
        let owners = [0, 1, 2, 1, 0];
        let tiles = of(14, 3, 3, |_, j| owners[j]);
        let columns = BlockColumns::new(14, 3, 3, owners.map(Rank).to_vec());
        for rank in (0..3).map(Rank) {
            assert_eq!(tiles.received(rank), columns.received(Factors::Lu, rank), "{rank:?}");
        }
    }
}

//! Tiles of a square matrix and their owners: how a factorisation is divided.

use super::{Factors, Layout, Part, Shape};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use std::ops::Range;
use std::sync::Arc;

/// The most block rows of a layout by tiles that is read: each has as many tiles.
const MOST: u64 = 4096;

/// The tiles of an n x n matrix in blocks of rows and columns, each with its owner. The last block may have fewer.
///
/// The block columns are divided among groups of processors, and in all block columns of a group each of its processors
/// has the same block rows. So a processor has the tiles that are in some block rows and some block columns. Where every
/// group is one processor, these are whole block columns. Of a symmetric matrix in tiles only those of the lower
/// triangle are divided; one above the diagonal is of the owner of its mirror image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileMap {
    n: u64,
    block: u64,
    kind: Kind,
    /// By block column.
    group_of: Vec<usize>,
    /// In the order of their first block columns.
    groups: Vec<Group>,
    /// The group of each processor, by rank; none without tiles.
    group: Vec<Option<usize>>,
    /// The block rows of each processor, by rank, ascending; all where they are whole block columns.
    rows: Vec<Arc<Vec<usize>>>,
    /// Who factors each block column as a panel.
    factorers: Vec<Rank>,
    /// Number of the block columns left of a slab, if these are those of a slab.
    earlier: Option<usize>,
}

/// Block columns whose block rows are divided alike.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Ascending.
    columns: Vec<usize>,
    /// By block row; empty where one processor owns all.
    owners: Vec<Rank>,
    /// The owners, ascending.
    members: Vec<Rank>,
}

/// Which tiles there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All, in whole block columns.
    Columns,
    /// All.
    Grid,
    /// Those of the lower triangle.
    Triangle,
}

impl TileMap {
    /// Whole block columns of `block` columns with these owners among `processors`.
    ///
    /// # Panics
    /// If a size is 0, there is not an owner for each block column, or one that does not exist.
    pub fn columns(n: u64, block: u64, processors: usize, owners: Vec<Rank>) -> Self {
        assert!(n > 0 && block > 0, "{n} columns in blocks of {block}");
        assert_eq!(owners.len() as u64, n.div_ceil(block), "an owner for each block column");
        let all: Arc<Vec<usize>> = Arc::new((0..owners.len()).collect());
        let rows = vec![all; processors];
        let (mut groups, mut group, mut group_of) = (Vec::<Group>::new(), vec![None; processors], Vec::new());
        for (column, &owner) in owners.iter().enumerate() {
            let place = *group[owner.0].get_or_insert_with(|| {
                groups.push(Group { columns: Vec::new(), owners: Vec::new(), members: vec![owner] });
                groups.len() - 1
            });
            groups[place].columns.push(column);
            group_of.push(place);
        }
        Self {
            n,
            block,
            kind: Kind::Columns,
            group_of,
            groups,
            group,
            rows,
            factorers: owners,
            earlier: None,
        }
    }

    /// Tiles with these owners, by block row and block column, among `processors`; of a symmetric matrix only those of
    /// the lower triangle are asked for. None if a processor has different block rows in two of its block columns.
    ///
    /// # Panics
    /// If a size is 0, or there is no such owner.
    pub fn tiles(
        factors: Factors,
        n: u64,
        block: u64,
        processors: usize,
        owner: impl Fn(usize, usize) -> Rank,
    ) -> Option<Self> {
        assert!(n > 0 && block > 0, "{n} rows in blocks of {block}");
        let count = n.div_ceil(block) as usize;
        let (mut groups, mut group, mut group_of) = (Vec::<Group>::new(), vec![None; processors], Vec::new());
        let none: Arc<Vec<usize>> = Arc::default();
        let (mut rows, mut diagonal) = (vec![none; processors], Vec::new());
        for column in 0..count {
            let first = if factors.is_symmetric() { column } else { 0 };
            let owners: Vec<Rank> = (first..count).map(|row| owner(row, column)).collect();
            diagonal.push(owners[column - first]);
            if let Some(place) = group[owners[column - first].0] {
                let same: &mut Group = &mut groups[place];
                if same.owners[first..] != owners {
                    return None;
                }
                same.columns.push(column);
                group_of.push(place);
                continue;
            }
            let mut members = owners.clone();
            members.sort_unstable();
            members.dedup();
            for rank in &members {
                if group[rank.0].replace(groups.len()).is_some() {
                    return None;
                }
                rows[rank.0] = Arc::new((first..count).filter(|&row| owners[row - first] == *rank).collect());
            }
            group_of.push(groups.len());
            // Nobody has tiles above the first one on the diagonal.
            let owners = [vec![owners[0]; first], owners].concat();
            groups.push(Group { columns: vec![column], owners, members });
        }
        // A single processor has whole block columns also of a triangle.
        let divides = groups.iter().any(|group| group.members.len() > 1);
        if !divides && (groups.len() == 1 || !factors.is_symmetric()) {
            return Some(Self::columns(n, block, processors, diagonal));
        }
        let kind = if factors.is_symmetric() { Kind::Triangle } else { Kind::Grid };
        Some(Self { n, block, kind, group_of, groups, group, rows, factorers: diagonal, earlier: None })
    }

    /// The same block columns, each of which is factored as a panel by one of these, by block column: by its owner, or by a
    /// processor that takes it over before its last update and gives it back factored, since a slow owner would hold up
    /// all.
    ///
    /// # Errors
    /// They are tiles, whose panels have their owners; not as many processors as block columns, or one that does not
    /// exist: exit code 2.
    ///
    /// # Panics
    /// For a slab.
    pub fn factored_by(self, factorers: Vec<Rank>) -> Result<Self> {
        assert!(!self.is_slab(), "the owners of a slab factor it");
        let what = if !self.are_columns() {
            "is of block columns, and the layout is of tiles".into()
        } else if factorers.len() != self.count() {
            format!("has {} processors for {} block columns", factorers.len(), self.count())
        } else if factorers.iter().any(|rank| rank.0 >= self.processors()) {
            format!("has an index above {}, that of the last processor", self.processors() - 1)
        } else {
            return Ok(Self { factorers, ..self });
        };
        let remedy = "give the index of a processor for each block column, or remove the field";
        Err(Error::input("panels", what, remedy))
    }

    /// The same, whose panels are factored by the owners of the block columns.
    #[must_use]
    pub(crate) fn factored_by_owners(self) -> Self {
        let factorers = (0..self.count()).map(|column| self.panel_owner(column)).collect();
        Self { factorers, ..self }
    }

    /// Block columns in a range alone, under the numbers that they have: a slab, which is factored once all block columns
    /// left of it are, each by its owner.
    ///
    /// # Panics
    /// If the range is empty or there are not as many, or if they are tiles.
    #[must_use]
    pub fn slab(&self, range: Range<usize>) -> Self {
        assert!(!range.is_empty() && range.end <= self.count(), "slab {range:?} of {} columns", self.count());
        assert!(self.are_columns(), "a slab has whole block columns");
        let mut slab = self.clone();
        slab.groups.iter_mut().for_each(|group| group.columns.retain(|column| range.contains(column)));
        slab.group_of.truncate(range.end);
        let slab = Self { earlier: Some(range.start), ..slab };
        slab.factored_by_owners()
    }

    /// The tiles of a layout of n x n elements: whole block columns if they are, and else tiles.
    ///
    /// # Errors
    /// The layout is not square or not of whole blocks, or a processor has different block rows in two of its block columns:
    /// exit code 2.
    pub fn of_layout(factors: Factors, layout: &Layout, block: u64) -> Result<Self> {
        let Shape { m, n, .. } = layout.shape();
        let refuse = |what: String| {
            Err(Error::input("layout", what, "give a square matrix, and parts of whole blocks"))
        };
        if m != n {
            return refuse(format!("is of {m} x {n} elements, not square"));
        }
        let count = n.div_ceil(block);
        let whole = Span::new(0, n);
        let is_aligned = |span: &Span| {
            span.start.is_multiple_of(block) && (span.end.is_multiple_of(block) || span.end == n)
        };
        let places = |span: &Span| (span.start / block) as usize..span.end.div_ceil(block) as usize;
        if layout.parts().iter().all(|part| part.rows == whole && is_aligned(&part.cols)) {
            let mut owners = vec![Rank(0); count as usize];
            layout.parts().iter().for_each(|part| owners[places(&part.cols)].fill(part.owner));
            return Ok(Self::columns(n, block, layout.processors(), owners));
        }
        if count > MOST {
            return refuse(format!("has {count} block rows, more than {MOST}"));
        }
        let mut owners = vec![vec![Rank(0); count as usize]; count as usize];
        for Part { owner, rows, cols } in layout.parts() {
            if !is_aligned(rows) || !is_aligned(cols) {
                return refuse(format!(
                    "rows [{}, {}] cols [{}, {}] are not whole blocks of {block}",
                    rows.start, rows.end, cols.start, cols.end
                ));
            }
            owners[places(rows)].iter_mut().for_each(|row| row[places(cols)].fill(*owner));
        }
        Self::tiles(factors, n, block, layout.processors(), |row, column| owners[row][column]).ok_or_else(|| {
            let what = "gives a processor different block rows in two of its block columns, which have them alike";
            let remedy = "give each processor all tiles that are in some block rows and some block columns";
            Error::input("layout", what, remedy)
        })
    }

    /// The layout: a part for each block column; of tiles, in each block row one for neighbours of one owner. A slab
    /// has none.
    pub fn layout(&self) -> Layout {
        let shape = Shape { m: self.n, k: 1, n: self.n };
        let mut parts = Vec::new();
        if self.are_columns() {
            let part = |column| {
                Part::new(self.panel_owner(column), Rect::new(Span::new(0, self.n), self.span(column)))
            };
            parts.extend((0..self.count()).map(part));
        } else {
            let (count, block) = (self.count(), self.block);
            let owner = |i: usize, j: usize| match self.kind {
                Kind::Triangle => self.owner(i.max(j), i.min(j)),
                Kind::Columns | Kind::Grid => self.owner(i, j),
            };
            for row in 0..count {
                let mut first = 0;
                for end in 1..=count {
                    if end == count || owner(row, end) != owner(row, first) {
                        let cols = Span::new(first as u64 * block, (end as u64 * block).min(self.n));
                        parts.push(Part::new(owner(row, first), Rect::new(self.span(row), cols)));
                        first = end;
                    }
                }
            }
        }
        Layout::new(shape, self.processors(), parts).expect("tiles cover the matrix once")
    }

    /// True if they are whole block columns.
    pub fn are_columns(&self) -> bool {
        self.kind == Kind::Columns
    }

    /// True if only tiles of the lower triangle are there.
    pub fn is_triangle(&self) -> bool {
        self.kind == Kind::Triangle
    }

    /// Rows and columns of the matrix.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.group.len()
    }

    /// Number of block columns; of a slab, with those left of it.
    pub fn count(&self) -> usize {
        self.group_of.len()
    }

    /// True for a slab.
    pub(crate) fn is_slab(&self) -> bool {
        self.earlier.is_some()
    }

    /// The first block column: 0, but of a slab.
    pub fn first(&self) -> usize {
        self.earlier.unwrap_or(0)
    }

    /// The rows of a block row, or the columns of a block column.
    pub fn span(&self, place: usize) -> Span {
        let start = place as u64 * self.block;
        Span::new(start, (start + self.block).min(self.n))
    }

    /// The columns of all block columns.
    pub fn all(&self) -> Span {
        Span::new(self.span(self.first()).start, self.span(self.count() - 1).end)
    }

    /// Number of rows or columns in these blocks, which ascend: only the last of all is shorter.
    pub fn length(&self, places: &[usize]) -> u64 {
        let Some(last) = places.last() else { return 0 };
        (places.len() as u64 - 1) * self.block + self.span(*last).len()
    }

    /// The owner of a tile; of a symmetric matrix in tiles, of one in the lower triangle.
    pub fn owner(&self, row: usize, column: usize) -> Rank {
        self.owner_in(self.group_of[column], row)
    }

    /// The owner of a block row in the block columns of a group.
    pub(crate) fn owner_in(&self, group: usize, row: usize) -> Rank {
        let Group { owners, members, .. } = &self.groups[group];
        owners.get(row).copied().unwrap_or(members[0])
    }

    /// The owner of the diagonal tile of a block column.
    pub fn panel_owner(&self, column: usize) -> Rank {
        self.owner(column, column)
    }

    /// The group of a block column.
    pub(crate) fn group_of(&self, column: usize) -> usize {
        self.group_of[column]
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The group of a processor; none if it has no tiles.
    pub(crate) fn group(&self, rank: Rank) -> Option<usize> {
        self.group[rank.0]
    }

    /// The processors of a group, ascending.
    pub(crate) fn members(&self, group: usize) -> &[Rank] {
        &self.groups[group].members
    }

    /// The block columns of a group, ascending.
    pub(crate) fn columns_of(&self, group: usize) -> &[usize] {
        &self.groups[group].columns
    }

    /// The block columns of a processor's tiles, ascending; of a triangle, up to its last block row.
    pub fn own(&self, rank: Rank) -> &[usize] {
        let columns = self.group(rank).map_or(&[][..], |group| self.columns_of(group));
        match self.rows(rank).last().filter(|_| self.is_triangle()) {
            Some(last) => &columns[..columns.partition_point(|column| column <= last)],
            None => columns,
        }
    }

    /// The places, in [`own`](Self::own), of the block columns of a processor that are in a range.
    pub fn places(&self, rank: Rank, range: Range<usize>) -> Range<usize> {
        let own = self.own(rank);
        own.partition_point(|&column| column < range.start)..own.partition_point(|&column| column < range.end)
    }

    /// Those of these columns of a group that are in a range.
    pub(crate) fn columns_in(&self, group: usize, range: Range<usize>) -> &[usize] {
        let own = self.columns_of(group);
        let end = own.partition_point(|&column| column < range.end);
        &own[own.partition_point(|&column| column < range.start).min(end)..end]
    }

    /// The block rows of a processor's tiles, ascending. Where they are whole block columns, everybody has all rows.
    pub fn rows(&self, rank: Rank) -> &[usize] {
        &self.rows[rank.0]
    }

    /// Those of its block rows that come after one.
    pub fn rows_after(&self, rank: Rank, row: usize) -> &[usize] {
        let rows = self.rows(rank);
        &rows[rows.partition_point(|&own| own <= row)..]
    }

    /// The row, among those of a processor one below the other, of the first one in a block row or a later one.
    pub fn top(&self, rank: Rank, row: usize) -> usize {
        let before = self.rows(rank).partition_point(|&own| own < row);
        self.length(&self.rows(rank)[..before]) as usize
    }

    /// The other processors in the group of a processor that have rows after a block row, ascending.
    pub(crate) fn others_below(&self, rank: Rank, row: usize) -> impl Iterator<Item = Rank> + '_ {
        let members = self.group(rank).map_or(&[][..], |group| self.members(group));
        members.iter().copied().filter(move |&other| other != rank && !self.rows_after(other, row).is_empty())
    }

    /// The processor that factors a block column as a panel; of a triangle, that of its diagonal tile.
    pub fn factorer(&self, column: usize) -> Rank {
        self.factorers[column]
    }

    /// The processors that factor the block columns, by block column, if these are not always their owners.
    pub(crate) fn panels(&self) -> Option<&[Rank]> {
        (0..self.count()).any(|column| self.is_taken_over(column)).then_some(&self.factorers[..])
    }

    /// True if another processor than its owner factors a block column.
    pub fn is_taken_over(&self, column: usize) -> bool {
        self.panel_owner(column) != self.factorer(column)
    }

    /// The block columns that a processor factors, ascending.
    pub fn factored(&self, rank: Rank) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (self.first()..self.count()).filter(move |&column| self.factorer(column) == rank)
    }

    /// The rows of the panel of a block column that travel: those below its diagonal block, and of an LU factorisation also
    /// those of that block.
    pub fn panel_rows(&self, factors: Factors, column: usize) -> Span {
        let Span { start, end } = self.span(column);
        Span::new(if factors == Factors::Lu { start } else { end }, self.n)
    }

    /// Numbers that travel with a panel: a mark of failure, for LU a pivot for each column, and for L D L^T the diagonal
    /// of D and what is beside it.
    pub fn panel_marks(&self, factors: Factors, column: usize) -> u64 {
        let width = self.span(column).len();
        1 + match factors {
            Factors::Cholesky => 0,
            Factors::Lu => width,
            Factors::Ldlt => 2 * width - 1,
        }
    }

    /// The rows of a block column taken over that go back to its owner only: of symmetric matrices those of the diagonal
    /// block, of LU those of U above it, which its last update changes.
    pub fn rows_given_back(&self, factors: Factors, column: usize) -> Span {
        let first = if factors == Factors::Lu { column.saturating_sub(1) } else { column };
        Span::new(self.span(first).start, self.panel_rows(factors, column).start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(factors: Factors, n: u64, block: u64, p: usize, owner: impl Fn(usize, usize) -> usize) -> TileMap {
        TileMap::tiles(factors, n, block, p, |i, j| Rank(owner(i, j))).unwrap()
    }

    fn columns(owners: &[usize], n: u64, block: u64) -> TileMap {
        TileMap::columns(n, block, 3, owners.iter().copied().map(Rank).collect())
    }

    fn all(factors: Factors) -> Vec<TileMap> {
        vec![
            columns(&[0, 1, 1, 0], 10, 3),
            of(factors, 1, 4, 2, |_, _| 1),
            of(factors, 10, 3, 1, |_, _| 0),
            of(factors, 23, 3, 4, |i, j| i % 2 * 2 + j % 2),
            of(factors, 23, 3, 3, |_, j| j % 3),
            of(factors, 23, 3, 4, |i, _| i % 3),
            of(factors, 40, 4, 7, |i, j| if j % 3 == 1 { i * i % 5 } else { 5 + i % 2 }),
        ]
    }

    #[test]
    fn tiles_are_those_of_their_layout() {
        for factors in [Factors::Lu, Factors::Cholesky] {
            for tiles in all(factors) {
                assert_eq!(TileMap::of_layout(factors, &tiles.layout(), tiles.block()).unwrap(), tiles);
                let error = TileMap::of_layout(factors, &tiles.layout(), tiles.block() + 30).err();
                assert_eq!(error.is_some(), tiles.layout().parts().len() > 1, "{tiles:?}");
                let own = |rank| tiles.length(tiles.rows(rank)) * tiles.length(tiles.own(rank));
                let shares: u64 = (0..tiles.processors()).map(|rank| own(Rank(rank))).sum();
                assert!(tiles.is_triangle() || shares == tiles.n() * tiles.n(), "{tiles:?}");
            }
        }
        // In a triangle, columns of one owner are tiles: one above the diagonal is of another.
        assert!(!all(Factors::Cholesky)[4].are_columns() && all(Factors::Lu)[4].are_columns());
        assert_eq!(all(Factors::Lu)[4], TileMap::columns(23, 3, 3, (0..8).map(|j| Rank(j % 3)).collect()));
    }

    /// The tiles of a processor are all those in its block rows and block columns.
    #[test]
    fn every_tile_has_one_owner() {
        for factors in [Factors::Lu, Factors::Cholesky] {
            for tiles in all(factors) {
                for rank in (0..tiles.processors()).map(Rank) {
                    for (i, j) in (0..tiles.count()).flat_map(|i| (0..tiles.count()).map(move |j| (i, j))) {
                        let there = !tiles.is_triangle() || j <= i;
                        let own = tiles.rows(rank).contains(&i) && tiles.own(rank).contains(&j);
                        assert!(!there || own == (tiles.owner(i, j) == rank), "{tiles:?} {rank:?} {i} {j}");
                    }
                    let above = |row: usize| {
                        tiles
                            .rows(rank)
                            .iter()
                            .filter(move |own| **own < row)
                            .map(|&own| tiles.span(own).len())
                    };
                    assert!(
                        (0..tiles.count()).all(|row| tiles.top(rank, row) as u64 == above(row).sum::<u64>())
                    );
                }
            }
        }
    }

    #[test]
    fn a_slab_has_the_columns_of_its_range() {
        let whole = columns(&[0, 1, 1, 0], 10, 3);
        let slab = whole.slab(1..3);
        assert_eq!((slab.own(Rank(0)), slab.own(Rank(1))), (&[][..], &[1, 2][..]));
        assert_eq!((slab.first(), slab.count(), slab.all()), (1, 3, Span::new(3, 9)));
        assert_eq!((slab.places(Rank(1), 2..3), slab.panel_owner(2)), (1..2, Rank(1)));
        assert!(slab.is_slab() && !whole.is_slab());
    }

    #[test]
    fn layouts_that_are_in_no_grid_are_refused() {
        // The second processor has row 0 of column 0, and row 1 of column 1.
        let shape = Shape { m: 4, k: 1, n: 4 };
        let part = |owner, [row, column]: [u64; 2]| {
            let span = |place: u64| Span::new(2 * place, 2 * place + 2);
            Part::new(Rank(owner), Rect::new(span(row), span(column)))
        };
        let parts = [part(1, [0, 0]), part(0, [1, 0]), part(0, [0, 1]), part(1, [1, 1])];
        let layout = Layout::new(shape, 2, parts).unwrap();
        for factors in Factors::ALL {
            let error = TileMap::of_layout(factors, &layout, 2).unwrap_err();
            assert!(error.to_string().contains("different block rows"), "{error}");
        }
        let halves = of(Factors::Cholesky, 20_000, 10_000, 2, |i, _| i);
        let error = TileMap::of_layout(Factors::Cholesky, &halves.layout(), 1).unwrap_err();
        assert!(error.to_string().contains("20000 block rows"), "{error}");
        let panels = |owners: &[usize]| owners.iter().copied().map(Rank).collect::<Vec<_>>();
        assert!(halves.factored_by(panels(&[0, 0])).is_err());
        let whole = columns(&[0, 1, 1, 0], 10, 3);
        assert!(whole.clone().factored_by(panels(&[0, 0])).is_err());
        assert!(whole.clone().factored_by(panels(&[0, 0, 3, 0])).is_err());
        let taken = whole.clone().factored_by(panels(&[0; 4])).unwrap();
        assert!(taken.is_taken_over(1) && !taken.is_taken_over(3) && taken.panels().is_some());
        assert_eq!((taken.clone().factored_by_owners(), whole.panels()), (whole.clone(), None));
        assert_eq!(taken.factored(Rank(0)).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}

//! Block columns of a square matrix and their owners: how a factorisation is divided.

use super::{Factors, Layout, Part, Shape};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use std::ops::Range;

/// The block columns of an n x n matrix, each with its owner. The last block may have fewer columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockColumns {
    n: u64,
    block: u64,
    owners: Vec<Rank>,
    /// The block columns of each processor, by rank, ascending.
    own: Vec<Vec<usize>>,
    /// Who factors each block column as a panel, by block column.
    factorers: Vec<Rank>,
    /// Number of the block columns left of a slab, if these are those of a slab.
    earlier: Option<usize>,
}

impl BlockColumns {
    /// Blocks of `block` columns with these owners among `processors`.
    ///
    /// # Panics
    /// If a size is 0, there is not an owner for each block column, or one that does not exist.
    pub fn new(n: u64, block: u64, processors: usize, owners: Vec<Rank>) -> Self {
        assert!(n > 0 && block > 0, "{n} columns in blocks of {block}");
        assert_eq!(owners.len() as u64, n.div_ceil(block), "an owner for each block column");
        let mut own = vec![Vec::new(); processors];
        owners.iter().enumerate().for_each(|(column, owner)| own[owner.0].push(column));
        let factorers = owners.clone();
        Self { n, block, owners, own, factorers, earlier: None }
    }

    /// The same, each of which is factored as a panel by one of these, by block column: by its owner, or by a processor
    /// that takes it over before its last update and gives it back factored, since a slow owner would hold up all.
    ///
    /// # Panics
    /// If there is not one for each block column, or one that does not exist; for a slab.
    #[must_use]
    pub fn factored_by(self, factorers: Vec<Rank>) -> Self {
        assert!(!self.is_slab(), "the owners of a slab factor it");
        assert_eq!(factorers.len(), self.count(), "a processor for each panel");
        assert!(factorers.iter().all(|rank| rank.0 < self.processors()), "a processor for each panel");
        Self { factorers, ..self }
    }

    /// Those in a range alone, under the numbers that they have: a slab, which is factored once all block columns left
    /// of it are, each by its owner.
    ///
    /// # Panics
    /// If the range is empty or there are not as many.
    #[must_use]
    pub fn slab(&self, range: Range<usize>) -> Self {
        assert!(!range.is_empty() && range.end <= self.count(), "slab {range:?} of {} columns", self.count());
        let own = self.own.iter().map(|own| own.iter().copied().filter(|c| range.contains(c)).collect());
        let (own, owners) = (own.collect(), self.owners[..range.end].to_vec());
        let (factorers, earlier) = (owners.clone(), Some(range.start));
        Self { n: self.n, block: self.block, owners, own, factorers, earlier }
    }

    /// True for a slab.
    pub fn is_slab(&self) -> bool {
        self.earlier.is_some()
    }

    /// The first block column: 0, but of a slab.
    pub fn first(&self) -> usize {
        self.earlier.unwrap_or(0)
    }

    /// The columns of all block columns.
    pub fn all(&self) -> Span {
        Span::new(self.span(self.first()).start, self.span(self.count() - 1).end)
    }

    /// The block columns of a layout of n x n elements.
    ///
    /// # Errors
    /// The layout is not square, or not of whole block columns: exit code 2.
    pub fn of_layout(layout: &Layout, block: u64) -> Result<Self> {
        let Shape { m, n, .. } = layout.shape();
        let refuse = |what: String| {
            let remedy = "give every part all rows, and whole blocks of columns";
            Err(Error::input("layout", what, remedy))
        };
        if m != n {
            return refuse(format!("is of {m} x {n} elements, not square"));
        }
        let mut owners = vec![Rank(0); n.div_ceil(block) as usize];
        for Part { owner, rows, cols } in layout.parts() {
            let whole = cols.start.is_multiple_of(block) && (cols.end.is_multiple_of(block) || cols.end == n);
            if *rows != Span::new(0, n) || !whole {
                return refuse(format!(
                    "rows [{}, {}] cols [{}, {}] are not whole columns in blocks of {block}",
                    rows.start, rows.end, cols.start, cols.end
                ));
            }
            owners[(cols.start / block) as usize..cols.end.div_ceil(block) as usize].fill(*owner);
        }
        Ok(Self::new(n, block, layout.processors(), owners))
    }

    /// The layout: a part for each block column. A slab has none.
    pub fn layout(&self) -> Layout {
        let shape = Shape { m: self.n, k: 1, n: self.n };
        let part = |(column, owner): (usize, &Rank)| {
            Part::new(*owner, Rect::new(Span::new(0, self.n), self.span(column)))
        };
        let parts = self.owners.iter().enumerate().map(part);
        Layout::new(shape, self.own.len(), parts).expect("block columns cover the matrix once")
    }

    /// Rows and columns of the matrix.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Columns of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.own.len()
    }

    /// Number of block columns; of a slab, with those left of it.
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// The owner of a block column.
    pub fn owner(&self, column: usize) -> Rank {
        self.owners[column]
    }

    /// The owners, by block column.
    pub fn owners(&self) -> &[Rank] {
        &self.owners
    }

    /// The processor that factors a block column as a panel.
    pub fn factorer(&self, column: usize) -> Rank {
        self.factorers[column]
    }

    /// The processors that factor the block columns, by block column.
    pub fn factorers(&self) -> &[Rank] {
        &self.factorers
    }

    /// True if another processor than its owner factors a block column.
    pub fn is_taken_over(&self, column: usize) -> bool {
        self.owner(column) != self.factorer(column)
    }

    /// The block columns that a processor factors, ascending.
    pub fn factored(&self, rank: Rank) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (self.first()..self.count()).filter(move |&column| self.factorer(column) == rank)
    }

    /// The columns of a block column.
    pub fn span(&self, column: usize) -> Span {
        let start = column as u64 * self.block;
        Span::new(start, (start + self.block).min(self.n))
    }

    /// The block columns of a processor, ascending.
    pub fn own(&self, rank: Rank) -> &[usize] {
        &self.own[rank.0]
    }

    /// The places, in [`own`](Self::own), of the block columns of a processor that are in a range.
    pub fn places(&self, rank: Rank, range: Range<usize>) -> Range<usize> {
        let own = self.own(rank);
        own.partition_point(|&column| column < range.start)..own.partition_point(|&column| column < range.end)
    }

    /// The rows of the panel of a block column that other processors need: those below its diagonal block, and of
    /// an LU factorisation also those of that block.
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

    /// The rows of a block column that another processor takes over: those that its last update and its panel change.
    pub fn rows_taken_over(&self, factors: Factors, column: usize) -> Span {
        let first = if factors == Factors::Lu { column.saturating_sub(1) } else { column };
        Span::new(self.span(first).start, self.n)
    }

    /// The first of these rows, which go back to the owner only: of symmetric matrices those of the diagonal block, of LU
    /// those of U above it.
    pub fn rows_given_back(&self, factors: Factors, column: usize) -> Span {
        Span::new(self.rows_taken_over(factors, column).start, self.panel_rows(factors, column).start)
    }

    /// True if a processor needs the panel of a block column: for updates of others, or as its own.
    pub fn needs_panel(&self, rank: Rank, column: usize) -> bool {
        let next = column + 1;
        // It gives away a block column before the last update.
        let updates = self.own(rank).last().is_some_and(|last| *last > next);
        let factors_next = next >= self.first() && self.factorers.get(next) == Some(&rank);
        updates || factors_next || column >= self.first() && self.owner(column) == rank
    }

    /// True if a processor that does not need a panel needs its pivots, for rows of its own columns left of it.
    pub fn needs_pivots(&self, factors: Factors, rank: Rank, column: usize) -> bool {
        factors == Factors::Lu
            && !self.is_slab()
            && self.own(rank).first().is_some_and(|first| *first < column)
    }

    /// Number of elements that a processor receives in a factorisation, by formula: the panels that it needs, or their
    /// marks, with what comes back to their owner; and the block columns that it takes over. Of a slab, the panels of the
    /// slab alone.
    pub fn received(&self, factors: Factors, rank: Rank) -> u64 {
        let of = |column: usize| {
            let (width, marks) = (self.span(column).len(), self.panel_marks(factors, column));
            let panel = self.panel_rows(factors, column).len() * width + marks;
            if self.factorer(column) == rank {
                let rows = self.rows_taken_over(factors, column).len();
                return if self.is_taken_over(column) { rows * width } else { 0 };
            }
            if self.owner(column) == rank {
                return panel + self.rows_given_back(factors, column).len() * width;
            }
            match self.needs_panel(rank, column) {
                true => panel,
                false if self.needs_pivots(factors, rank, column) => marks,
                false => 0,
            }
        };
        (self.first()..self.count()).map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(owners: &[usize], n: u64, block: u64) -> BlockColumns {
        BlockColumns::new(n, block, 3, owners.iter().copied().map(Rank).collect())
    }

    #[test]
    fn block_columns_are_those_of_their_layout() {
        let columns = of(&[0, 1, 1, 0], 10, 3);
        assert_eq!(columns.layout().shares(), [40, 60, 0]);
        assert_eq!(BlockColumns::of_layout(&columns.layout(), 3).unwrap(), columns);
        assert_eq!((columns.span(3), columns.own(Rank(1))), (Span::new(9, 10), &[1, 2][..]));
        assert_eq!((columns.places(Rank(0), 1..4), columns.places(Rank(2), 0..4)), (1..2, 0..0));
        let error = BlockColumns::of_layout(&columns.layout(), 4).unwrap_err();
        assert!(error.to_string().contains("blocks of 4"), "{error}");
    }

    #[test]
    fn a_slab_has_the_columns_of_its_range() {
        let slab = of(&[0, 1, 1, 0], 10, 3).slab(1..3);
        assert_eq!((slab.own(Rank(0)), slab.own(Rank(1))), (&[][..], &[1, 2][..]));
        assert_eq!((slab.first(), slab.count(), slab.all()), (1, 3, Span::new(3, 9)));
        assert_eq!((slab.places(Rank(1), 2..3), slab.owner(2)), (1..2, Rank(1)));
        assert!(slab.is_slab() && !of(&[0, 1, 1, 0], 10, 3).is_slab());
        assert_eq!(of(&[0, 1, 1, 0], 10, 3).slab(2..4).received(Factors::Lu, Rank(0)), 4 * 3 + 4);
    }

    /// By hand: 10 columns in blocks of 3.
    #[test]
    fn what_is_received_is_counted() {
        let columns = of(&[0, 1, 1, 0], 10, 3);
        // Panels below their diagonal blocks have 7, 4, 1 and 0 rows of three elements, and a mark each.
        assert_eq!(columns.received(Factors::Cholesky, Rank(0)), (4 * 3 + 1) + (3 + 1));
        assert_eq!(columns.received(Factors::Cholesky, Rank(1)), 7 * 3 + 1);
        // With their diagonal blocks 10, 7, 4 and 1 rows; four marks, and two for the last.
        assert_eq!(columns.received(Factors::Lu, Rank(0)), (7 * 3 + 4) + (4 * 3 + 4));
        assert_eq!(columns.received(Factors::Lu, Rank(1)), (10 * 3 + 4) + 2);
        assert_eq!(columns.received(Factors::Lu, Rank(2)), 0);
        // As Cholesky's, with a mark and five numbers of D.
        assert_eq!(columns.received(Factors::Ldlt, Rank(0)), (4 * 3 + 6) + (3 + 6));
        assert_eq!(columns.received(Factors::Ldlt, Rank(1)), 7 * 3 + 6);
    }

    /// The same, where processor 0 factors all.
    #[test]
    fn what_is_taken_over_is_counted() {
        let columns = of(&[0, 1, 1, 0], 10, 3).factored_by(vec![Rank(0); 4]);
        // Two block columns from their diagonal on, of 7 and 4 rows; back come the panels and nine elements.
        assert_eq!(columns.received(Factors::Cholesky, Rank(0)), 7 * 3 + 4 * 3);
        let back = (4 * 3 + 1 + 9) + (3 + 1 + 9);
        assert_eq!(columns.received(Factors::Cholesky, Rank(1)), 7 * 3 + 1 + back);
        // With three more rows each; all panels from their diagonal on, and the pivots of the last.
        assert_eq!(columns.received(Factors::Lu, Rank(0)), 10 * 3 + 7 * 3);
        let back = (7 * 3 + 4 + 9) + (4 * 3 + 4 + 9);
        assert_eq!(columns.received(Factors::Lu, Rank(1)), 10 * 3 + 4 + back + 2);
        // Block column 1 is taken over without an update: processor 1 needs no panel before those of 1 and 2.
        let columns = of(&[0, 1, 0, 0], 10, 3).factored_by(vec![Rank(0); 4]);
        assert_eq!(columns.received(Factors::Cholesky, Rank(1)), 4 * 3 + 1 + 9);
        assert_eq!(columns.factored(Rank(0)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(columns.is_taken_over(1) && !columns.is_taken_over(2));
    }
}

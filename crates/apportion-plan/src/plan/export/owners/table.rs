//! A matrix as a grid of blocks with owners.

use crate::error::{Error, Result};
use crate::geometry::Span;
use crate::plan::Part;
use serde_json::{Value, json};

/// The largest number of blocks of a table.
const MOST_BLOCKS: usize = 1 << 20;

/// A matrix cut into blocks by lines from edge to edge, each block with one owner.
///
/// No two neighbouring rows or columns of blocks have the same owners: the table is the coarsest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnerTable {
    /// First row of each row of blocks, and the number of rows at the end.
    pub(crate) row_splits: Vec<u64>,
    /// The same for columns.
    pub(crate) col_splits: Vec<u64>,
    /// Owner of each block, row by row.
    pub(crate) owners: Vec<usize>,
}

impl OwnerTable {
    /// The table of a matrix of `rows` x `cols` from disjoint parts that cover it.
    ///
    /// # Errors
    /// More than 2^20 blocks: exit code 1.
    pub(crate) fn new([rows, cols]: [u64; 2], parts: &[Part]) -> Result<Self> {
        let row_splits = splits(rows, parts.iter().map(|p| p.rows));
        let col_splits = splits(cols, parts.iter().map(|p| p.cols));
        let (high, wide) = (row_splits.len() - 1, col_splits.len() - 1);
        if high.saturating_mul(wide) > MOST_BLOCKS {
            return Err(Error::infeasible(
                format!("the table of owners would have {high} x {wide} blocks, more than {MOST_BLOCKS}"),
                "repeat a larger block, or use a method with fewer cuts",
            ));
        }
        let mut owners = vec![usize::MAX; high * wide];
        for part in parts {
            let lines = |splits: &[u64], span: Span| {
                splits.partition_point(|&s| s < span.start)..splits.partition_point(|&s| s < span.end)
            };
            let across = lines(&col_splits, part.cols);
            for i in lines(&row_splits, part.rows) {
                owners[i * wide + across.start..i * wide + across.end].fill(part.owner.0);
            }
        }
        assert!(!owners.contains(&usize::MAX), "the parts of a layout cover its matrix");
        Ok(Self { row_splits, col_splits, owners }.coarsest())
    }

    /// Number of rows of blocks.
    pub(crate) fn high(&self) -> usize {
        self.row_splits.len() - 1
    }

    /// Number of columns of blocks.
    pub(crate) fn wide(&self) -> usize {
        self.col_splits.len() - 1
    }

    /// The owner of a block.
    pub(crate) fn owner(&self, i: usize, j: usize) -> usize {
        self.owners[i * self.wide() + j]
    }

    /// Number of rows and of columns of the matrix.
    pub(crate) fn sizes(&self) -> [u64; 2] {
        [&self.row_splits, &self.col_splits].map(|splits| splits[splits.len() - 1])
    }

    /// Drops the lines that separate no owners.
    fn coarsest(self) -> Self {
        let (high, wide) = (self.high(), self.wide());
        let rows: Vec<usize> = (0..high)
            .filter(|&i| i == 0 || (0..wide).any(|j| self.owner(i, j) != self.owner(i - 1, j)))
            .collect();
        let cols: Vec<usize> = (0..wide)
            .filter(|&j| j == 0 || (0..high).any(|i| self.owner(i, j) != self.owner(i, j - 1)))
            .collect();
        let [m, n] = self.sizes();
        let kept = |splits: &[u64], lines: &[usize], end: u64| {
            lines.iter().map(|&line| splits[line]).chain([end]).collect::<Vec<_>>()
        };
        Self {
            row_splits: kept(&self.row_splits, &rows, m),
            col_splits: kept(&self.col_splits, &cols, n),
            owners: rows
                .iter()
                .flat_map(|&i| cols.iter().map(move |&j| (i, j)))
                .map(|(i, j)| self.owner(i, j))
                .collect(),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        let [rows, cols] = self.sizes();
        let owners: Vec<&[usize]> = self.owners.chunks_exact(self.wide()).collect();
        json!({
            "rows": rows,
            "cols": cols,
            "row_splits": self.row_splits,
            "col_splits": self.col_splits,
            "owners": owners,
        })
    }
}

/// Both ends of the axis and of all spans, ascending, each once.
fn splits(size: u64, spans: impl Iterator<Item = Span>) -> Vec<u64> {
    let mut splits: Vec<u64> = spans.flat_map(|span| [span.start, span.end]).chain([0, size]).collect();
    splits.sort_unstable();
    splits.dedup();
    splits
}

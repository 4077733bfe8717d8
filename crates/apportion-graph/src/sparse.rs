//! Sparse matrices by rows, and their graphs.

use crate::graph::{Defect, Graph, RawGraph};
use apportion::error::{Error, Result};

/// What the graph of a matrix has as weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weights {
    /// Of a vertex, the number of entries in its row, which is the work of a product with a vector; of edges, 1.
    #[default]
    Rows,
    /// The same, and of an edge the larger magnitude of its two entries: as they are if all entries are whole numbers up
    /// to a million, else in thousandths of the largest one, and at least 1.
    Values,
}

/// A sparse matrix of doubles by rows (CSR): the entries of a row ascend by column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SparseMatrix {
    cols: usize,
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl SparseMatrix {
    /// A matrix of rows whose columns ascend. `place` is what errors call it.
    ///
    /// # Errors
    /// Offsets that do not ascend to the number of entries; a column beyond the last, or not after the one before.
    pub fn new(
        cols: usize,
        offsets: Vec<u32>,
        columns: Vec<u32>,
        values: Vec<f64>,
        place: &str,
    ) -> Result<Self> {
        let refuse = |what: String, remedy: &str| Err(Error::input(place, what, remedy));
        let rows = offsets.len().saturating_sub(1);
        let ascends = offsets.is_sorted() && offsets.first() == Some(&0);
        if !ascends || offsets.last().map(|end| *end as usize) != Some(columns.len()) {
            let what = format!("the offsets of {rows} rows do not ascend from 0 to {}", columns.len());
            return refuse(what, "give one more offset than there are rows");
        }
        if rows == 0 || cols == 0 {
            return refuse(
                format!("is an empty matrix of {rows} x {cols}"),
                "give at least one row and column",
            );
        }
        if values.len() != columns.len() {
            return refuse(format!("{} values for {} columns", values.len(), columns.len()), "give as many");
        }
        for row in 0..rows {
            let of_row = &columns[offsets[row] as usize..offsets[row + 1] as usize];
            if !of_row.is_sorted_by(|a, b| a < b) {
                return refuse(
                    format!("the columns of row {row} do not ascend"),
                    "sort rows, and add duplicates up",
                );
            }
            if let Some(last) = of_row.last().filter(|last| **last as usize >= cols) {
                return refuse(format!("row {row} has column {last} of {cols}"), "number columns from 0");
            }
        }
        Ok(Self { cols, offsets, columns, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Columns and values of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The graph of a square matrix: an edge between i and j where a_ij or a_ji is an entry, i and j different.
    ///
    /// # Errors
    /// Not square, or too large for a graph.
    pub fn graph(&self, weights: Weights) -> std::result::Result<Graph, Defect> {
        let n = self.rows();
        if n != self.cols {
            let what = format!("a matrix of {n} x {} has no graph", self.cols);
            return Err(Defect { vertex: None, what, remedy: "give a square matrix" });
        }
        let transposed = self.transposed();
        let scale = self.scale();
        let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
        for row in 0..n {
            let ([of_row, of_column], mut at) = ([self.row(row), transposed.row(row)], [0, 0]);
            loop {
                let columns = [of_row.0.get(at[0]), of_column.0.get(at[1])];
                let Some(&least) = columns.into_iter().flatten().min() else { break };
                let mut weight = 0.0f64;
                for (side, (_, values)) in [of_row, of_column].into_iter().enumerate() {
                    if columns[side] == Some(&least) {
                        weight = weight.max(values[at[side]].abs());
                        at[side] += 1;
                    }
                }
                if least as usize == row {
                    continue;
                }
                raw.neighbours.push(least);
                if weights == Weights::Values {
                    raw.edge_weights.push((weight * scale).round().max(1.0) as u32);
                }
            }
            raw.offsets.push(raw.neighbours.len() as u32);
            raw.vertex_weights.push(of_row.0.len() as u32);
        }
        Graph::new(raw, 0)
    }

    /// By what magnitudes are multiplied to be weights.
    fn scale(&self) -> f64 {
        let largest = self.values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let whole = self.values.iter().all(|value| value.fract() == 0.0);
        match largest {
            largest if whole && largest <= 1e6 => 1.0,
            largest if largest.is_finite() && largest > 0.0 => 1000.0 / largest,
            _ => 0.0,
        }
    }

    /// Whether it is its transposed matrix, but for zeros that are entries.
    pub(crate) fn is_symmetric(&self) -> bool {
        let transposed = self.transposed();
        let entries = |matrix: &Self, row: usize| -> Vec<(u32, u64)> {
            let (columns, values) = matrix.row(row);
            let all = columns.iter().zip(values).filter(|(_, value)| **value != 0.0);
            all.map(|(column, value)| (*column, value.to_bits())).collect()
        };
        self.rows() == self.cols && (0..self.cols).all(|row| entries(self, row) == entries(&transposed, row))
    }

    /// The transposed matrix. O(entries + rows + columns).
    pub fn transposed(&self) -> Self {
        let mut offsets = vec![0u32; self.cols + 1];
        self.columns.iter().for_each(|column| offsets[*column as usize + 1] += 1);
        (0..self.cols).for_each(|column| offsets[column + 1] += offsets[column]);
        let mut next = offsets.clone();
        let (mut columns, mut values) = (vec![0; self.entries()], vec![0.0; self.entries()]);
        for row in 0..self.rows() {
            let (of_row, entries) = self.row(row);
            for (column, value) in of_row.iter().zip(entries) {
                let place = &mut next[*column as usize];
                (columns[*place as usize], values[*place as usize]) = (row as u32, *value);
                *place += 1;
            }
        }
        Self { cols: self.rows(), offsets, columns, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [[2, -3, 0], [0, 1, 0], [7, 0, 0]]
    fn matrix() -> SparseMatrix {
        SparseMatrix::new(3, vec![0, 2, 3, 4], vec![0, 1, 1, 0], vec![2.0, -3.0, 1.0, 7.0], "a").unwrap()
    }

    #[test]
    fn the_graph_has_an_edge_for_either_entry() {
        let graph = matrix().graph(Weights::Values).unwrap();
        assert_eq!(graph.neighbours(0), [1, 2]);
        assert_eq!(graph.weights_of_edges(0).collect::<Vec<_>>(), [3, 7]);
        assert_eq!([0, 1, 2].map(|vertex| graph.weight(vertex, 0)), [2, 1, 1]);
        let (cols, transposed) = (matrix().cols(), matrix().transposed());
        assert_eq!((cols, transposed.row(0)), (3, (&[0, 2][..], &[2.0, 7.0][..])));
        assert_eq!(transposed.transposed(), matrix());
    }

    #[test]
    fn rows_that_are_none_are_refused() {
        let refused = |cols, offsets: &[u32], columns: &[u32]| {
            let values = vec![1.0; columns.len()];
            SparseMatrix::new(cols, offsets.to_vec(), columns.to_vec(), values, "a").unwrap_err().to_string()
        };
        assert!(refused(2, &[0, 2], &[1, 0]).contains("columns of row 0 do not ascend"));
        assert!(refused(2, &[0, 1], &[2]).contains("row 0 has column 2 of 2"));
        assert!(refused(2, &[0, 2], &[0]).contains("do not ascend from 0 to 1"));
        assert!(refused(2, &[0], &[]).contains("empty matrix of 0 x 2"));
        let wide = SparseMatrix::new(2, vec![0, 1], vec![1], vec![1.0], "a").unwrap();
        assert!(wide.graph(Weights::Rows).unwrap_err().what.contains("1 x 2"));
    }
}

//! A processor's rows of a sparse matrix, and where their columns are.

use crate::sparse::SparseMatrix;
use apportion::Rank;
use apportion::kernels::{SparseRows, check_sums};
use std::ops::Range;

/// Some rows of a square matrix, with columns numbered as the processor holds the vector: its own elements first, then
/// those of others, by rank and by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct MatrixPart {
    /// The numbers of its rows, ascending.
    pub rows: Vec<u32>,
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// Where the elements of others are in the vector.
    received: Vec<(Rank, Range<usize>)>,
    /// The places of the elements that others need.
    sent: Vec<(Rank, Vec<u32>)>,
    /// Length of the vector.
    pub length: usize,
    /// By row: the element of the diagonal, its factor, and the sum of its column over all rows, each with its factor.
    pub diagonal: Vec<f64>,
    factors: Vec<f32>,
    column_sums: Vec<f64>,
}

/// What all parts share: sums of columns, and the owners of the rows.
pub(crate) struct Whole<'a> {
    matrix: &'a SparseMatrix,
    parts: &'a [u32],
    column_sums: Vec<f64>,
    /// The largest sum of the magnitudes of a column.
    pub norm: f64,
}

/// A random factor of a row, between 1 and 2 with either sign: SplitMix64's mixture of its number.
fn factor(row: u32) -> f32 {
    let mut bits = u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ SEED;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^= bits >> 27;
    f32::from_bits((bits >> 41) as u32 | 0x3f80_0000 | (bits as u32) << 31)
}

/// Changes all factors.
const SEED: u64 = 0x1357_9bdf_0246_8ace;

impl<'a> Whole<'a> {
    pub(crate) fn new(matrix: &'a SparseMatrix, parts: &'a [u32]) -> Self {
        let (mut column_sums, mut magnitudes) = (vec![0.0; matrix.cols()], vec![0.0f64; matrix.cols()]);
        for row in 0..matrix.rows() {
            let (columns, values) = matrix.row(row);
            let factor = f64::from(factor(row as u32));
            for (column, value) in columns.iter().zip(values) {
                column_sums[*column as usize] += factor * value;
                magnitudes[*column as usize] += value.abs();
            }
        }
        let norm = magnitudes.into_iter().fold(0.0, f64::max);
        Self { matrix, parts, column_sums, norm }
    }

    /// The part of a processor.
    pub(crate) fn part(&self, rank: Rank) -> MatrixPart {
        let own = |row: &u32| self.parts[*row as usize] as usize == rank.0;
        let rows: Vec<u32> = (0..self.matrix.rows() as u32).filter(own).collect();
        let mut place = vec![u32::MAX; self.matrix.cols()];
        rows.iter().enumerate().for_each(|(number, row)| place[*row as usize] = number as u32);
        // By owner and number: what the rows need of others; and which of the own elements others need.
        let mut needed: Vec<(u32, u32)> = Vec::new();
        for row in &rows {
            for column in self.matrix.row(*row as usize).0 {
                if std::mem::replace(&mut place[*column as usize], 0) == u32::MAX {
                    needed.push((self.parts[*column as usize], *column));
                }
            }
        }
        needed.sort_unstable();
        let mut part =
            MatrixPart { length: rows.len() + needed.len(), offsets: vec![0], ..MatrixPart::default() };
        rows.iter().enumerate().for_each(|(number, row)| place[*row as usize] = number as u32);
        for (number, (owner, column)) in needed.iter().enumerate() {
            let at = rows.len() + number;
            place[*column as usize] = at as u32;
            match part.received.last_mut() {
                Some((from, range)) if from.0 == *owner as usize => range.end = at + 1,
                _ => part.received.push((Rank(*owner as usize), at..at + 1)),
            }
        }
        for row in &rows {
            let (columns, values) = self.matrix.row(*row as usize);
            part.columns.extend(columns.iter().map(|column| place[*column as usize]));
            part.values.extend(values);
            part.offsets.push(part.columns.len() as u32);
            part.diagonal.push(columns.binary_search(row).map_or(0.0, |entry| values[entry]));
            part.factors.push(factor(*row));
            part.column_sums.push(self.column_sums[*row as usize]);
        }
        part.sent = self.sent(rank, &rows);
        part.rows = rows;
        part
    }

    /// The places of a processor's elements that each other one needs.
    fn sent(&self, rank: Rank, rows: &[u32]) -> Vec<(Rank, Vec<u32>)> {
        let processors = self.parts.iter().max().map_or(0, |most| *most as usize + 1);
        let mut by_receiver: Vec<Vec<u32>> = vec![Vec::new(); processors];
        for (row, owner) in self.parts.iter().enumerate().filter(|(_, owner)| **owner as usize != rank.0) {
            let columns = self.matrix.row(row).0.iter();
            let needed = columns.filter(|column| self.parts[**column as usize] as usize == rank.0);
            by_receiver[*owner as usize].extend(needed);
        }
        let sent = by_receiver.into_iter().enumerate().filter(|(_, numbers)| !numbers.is_empty());
        let place = |row: u32| rows.binary_search(&row).map_or(u32::MAX, |place| place as u32);
        sent.map(|(to, mut numbers)| {
            numbers.sort_unstable();
            numbers.dedup();
            (Rank(to), numbers.into_iter().map(place).collect())
        })
        .collect()
    }
}

/// Sums by which a product is checked: over the elements of the result with the factors of their rows, of the vector with the
/// sums of its columns, and of the vector's magnitudes. The first two are equal but for rounding.
pub(crate) type Check = [f64; 3];

/// Rows between two sums of checks, which are added in two levels.
pub(crate) const BLOCK: usize = 512;

impl MatrixPart {
    /// The rows of a range.
    fn matrix(&self, rows: Range<usize>) -> SparseRows<'_> {
        SparseRows {
            offsets: &self.offsets[rows.start..rows.end + 1],
            columns: &self.columns,
            values: &self.values,
        }
    }

    /// Entries of the rows before one.
    pub(crate) fn entries_before(&self, row: usize) -> u32 {
        self.offsets[row]
    }

    /// y = A x for the rows of a range, with the sums of its check. Blocks of rows are checked while they are in cache.
    pub(crate) fn times(&self, rows: Range<usize>, x: &[f64], y: &mut [f64]) -> Check {
        let mut check = [0.0; 3];
        for (number, y) in y.chunks_mut(BLOCK).enumerate() {
            let first = rows.start + number * BLOCK;
            let block = first..first + y.len();
            self.matrix(block.clone()).times(x, y);
            let (factors, weights) = (&self.factors[block.clone()], &self.column_sums[block.clone()]);
            let sums = check_sums(y, factors, &x[block], weights);
            check.iter_mut().zip(sums).for_each(|(all, one)| *all += one);
        }
        check
    }

    /// Where the elements of a processor are.
    pub(crate) fn from(&self, rank: Rank) -> Range<usize> {
        let found = self.received.iter().find(|(from, _)| *from == rank);
        found.map_or(0..0, |(_, range)| range.clone())
    }

    /// The places of the elements that a processor needs.
    pub(crate) fn to(&self, rank: Rank) -> &[u32] {
        self.sent.iter().find(|(to, _)| *to == rank).map_or(&[], |(_, places)| places)
    }

    /// Makes an entry another one.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.values[0] += 1.0;
    }

    /// Who needs how many of its elements.
    #[cfg(test)]
    pub(crate) fn receivers(&self) -> impl Iterator<Item = (Rank, usize)> + '_ {
        self.sent.iter().map(|(to, places)| (*to, places.len()))
    }

    /// Bytes of its arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let sent: usize = self.sent.iter().map(|(_, places)| places.len()).sum();
        (4 * (self.rows.len() + self.factors.len() + self.offsets.len() + self.columns.len() + sent)
            + 8 * (self.values.len() + self.diagonal.len() + self.column_sums.len())) as u64
    }
}

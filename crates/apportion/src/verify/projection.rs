//! Rows of a matrix times the random vectors of Freivalds' check: its hot loop.

use super::exponents::{NO_NOTE, Note, RowNote};
use super::parts::{Pass, WIDE};
use super::scale::Scale;
use crate::matrix::Element;

/// Number of random vectors, and of elements recomputed in each row and column that infinities or NaN reach.
pub(super) const LANES: usize = 16;

/// Of a row of a matrix of numbers: the sums with each random vector, the sum of the absolute values, and an
/// upper bound of the largest of them.
pub(super) type Sums = [f64; LANES + 2];
pub(super) const SIZE: usize = LANES;
pub(super) const LARGEST: usize = LANES + 1;

/// Partial sums of absolute values, so that they fill a register.
const PARTIAL: usize = 8;

/// Sums of many rows, apart, so that each kind fills registers.
pub(super) struct Projection {
    vectors: Vec<[f64; LANES]>,
    sizes: Vec<f64>,
    largest: Vec<f64>,
}

impl Projection {
    pub fn of(sums: &[Sums]) -> Self {
        Self {
            vectors: sums.iter().map(|sums| std::array::from_fn(|t| sums[t])).collect(),
            sizes: sums.iter().map(|sums| sums[SIZE]).collect(),
            largest: sums.iter().map(|sums| sums[LARGEST]).collect(),
        }
    }

    /// The pass that multiplies rows by the vectors, where `of` scales a row, and keeps the largest absolute
    /// value.
    pub fn largest_of<F: Fn(usize) -> Scale>(&self, of: F) -> Project<'_, F, true> {
        Project { projection: self, of }
    }

    /// The same, but with the sum of the largest absolute values.
    pub fn sum_of<F: Fn(usize) -> Scale>(&self, of: F) -> Project<'_, F, false> {
        Project { projection: self, of }
    }
}

/// A pass over a matrix; see [`Projection`].
pub(super) struct Project<'a, F, const MAX: bool> {
    projection: &'a Projection,
    of: F,
}

impl<T: Element, F: Fn(usize) -> Scale + Sync, const MAX: bool> Pass<T, Sums> for Project<'_, F, MAX> {
    /// Adds the products with each vector to the row's sums, and the same for absolute values. Where the
    /// vectors are 0, the row may hold infinities.
    #[inline(always)]
    fn add(&self, i: usize, from: usize, row: &[T], sums: &mut Sums) {
        let scale = (self.of)(i);
        let Projection { vectors, sizes, largest } = self.projection;
        let greater = |x: f64, y: f64| {
            if !MAX {
                x + y
            } else if x > y {
                x
            } else {
                y
            }
        };
        let (sizes, largest) = (&sizes[from..][..row.len()], &largest[from..][..row.len()]);
        let mut values = [0.0; WIDE];
        let values = &mut values[..row.len()];
        for ((value, x), size) in values.iter_mut().zip(row).zip(sizes) {
            let x = scale.of(x.to_f64());
            *value = if *size == 0.0 { 0.0 } else { x };
        }
        let mut partial = [[0.0; PARTIAL]; 2];
        let ((values8, rest), (sizes8, _), (largest8, _)) =
            (values.as_chunks::<PARTIAL>(), sizes.as_chunks::<PARTIAL>(), largest.as_chunks::<PARTIAL>());
        for ((values, sizes), largest) in values8.iter().zip(sizes8).zip(largest8) {
            for t in 0..PARTIAL {
                partial[0][t] += values[t].abs() * sizes[t];
                partial[1][t] = greater(partial[1][t], values[t].abs() * largest[t]);
            }
        }
        let done = values.len() - rest.len();
        for ((x, size), largest) in rest.iter().zip(&sizes[done..]).zip(&largest[done..]) {
            partial[0][0] += x.abs() * size;
            partial[1][0] = greater(partial[1][0], x.abs() * largest);
        }
        sums[SIZE] += partial[0].iter().sum::<f64>();
        sums[LARGEST] = partial[1].iter().fold(sums[LARGEST], |most, x| greater(most, *x));
        // Two sets of sums: each waits for its last addition while the other adds.
        let mut own = [[0.0; LANES]; 2];
        let vectors = &vectors[from..][..row.len()];
        let ((pairs, rest), (vectors, last)) = (values.as_chunks::<2>(), vectors.as_chunks::<2>());
        for (values, vectors) in pairs.iter().zip(vectors) {
            for half in 0..2 {
                for t in 0..LANES {
                    own[half][t] += values[half] * vectors[half][t];
                }
            }
        }
        for (x, vector) in rest.iter().zip(last) {
            for t in 0..LANES {
                own[0][t] += x * vector[t];
            }
        }
        for (t, sum) in sums[..LANES].iter_mut().enumerate() {
            *sum += own[0][t] + own[1][t];
        }
    }
}

/// A row's sums and its exponent, found in one pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    pub sums: Sums,
    pub note: RowNote,
}

impl Noted {
    pub const NOTHING: Self = Self { sums: [0.0; LANES + 2], note: NO_NOTE };
}

/// A pass that also notes exponents.
pub(super) struct Noting<P>(pub P);

impl<T: Element, P: Pass<T, Sums>> Pass<T, Noted> for Noting<P> {
    #[inline(always)]
    fn add(&self, i: usize, from: usize, row: &[T], found: &mut Noted) {
        self.0.add(i, from, row, &mut found.sums);
        Note.add(i, from, row, &mut found.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_multiplied_by_each_vector() {
        let sums = |j: usize| -> Sums { std::array::from_fn(|t| if j == 3 { 0.0 } else { (j * t) as f64 }) };
        let projection = Projection::of(&(0..40).map(sums).collect::<Vec<_>>());
        let mut row: Vec<f64> = (0..35).map(|i| f64::from(i) - 17.0).collect();
        row[1] = f64::INFINITY;
        let mut found = [1.0; LANES + 2];
        projection.largest_of(|_| Scale::down(-1)).add(7, 2, &row, &mut found);
        for (t, found) in found.into_iter().enumerate() {
            let terms = (0..35).filter(|&i| i != 1).map(|i| 2.0 * row[i] * ((i + 2) * t) as f64);
            let wanted = match t {
                LARGEST => terms.map(f64::abs).fold(1.0, f64::max),
                SIZE => 1.0 + terms.map(f64::abs).sum::<f64>(),
                _ => 1.0 + terms.sum::<f64>(),
            };
            // Whole numbers: exact.
            assert_eq!(found, wanted, "{t}");
        }
    }
}

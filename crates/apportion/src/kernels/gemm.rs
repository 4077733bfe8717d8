//! Plus-times products by the `gemm` crate (run-time dispatch to AVX-512, AVX2, NEON), in tiles of a size at
//! which it is at its best.
#![allow(unsafe_code)]

use crate::kernels::{Blas, Tropical};
use crate::matrix::Element;

/// An element type of plus-times: `f32` and `f64`, which are numbers of every semiring of numbers.
pub trait Real: Element + Tropical {
    /// C += A B by a library, on this thread.
    fn by_blas(blas: &Blas, tile: GemmUpdate<'_, Self>);
}

impl Real for f64 {
    fn by_blas(blas: &Blas, tile: GemmUpdate<'_, Self>) {
        blas.dgemm(tile);
    }
}

impl Real for f32 {
    fn by_blas(blas: &Blas, tile: GemmUpdate<'_, Self>) {
        blas.sgemm(tile);
    }
}

/// Largest side of a tile of C. Measured: at 512 x 512 x 256 the crate reaches 127 Gflop/s in f64 where one call
/// for 3000 x 3000 x 256 reaches 110 (one Zen 5 core).
const TILE: usize = 512;

/// One update's operands and result, all row by row.
#[derive(Debug)]
pub struct GemmUpdate<'a, T> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
    /// A, m x k, and the distance between its rows.
    pub a: (&'a [T], usize),
    /// B, k x n, and the distance between its rows.
    pub b: (&'a [T], usize),
    /// C, m x n, and the distance between its rows.
    pub c: (&'a mut [T], usize),
}

impl<T> GemmUpdate<'_, T> {
    /// # Panics
    /// If a slice is shorter than its sizes and stride ask for, or a stride is shorter than a row.
    pub(super) fn check(&self) {
        let fits = |length: usize, rows: usize, cols: usize, stride: usize| {
            rows == 0 || cols == 0 || (stride >= cols && length >= (rows - 1) * stride + cols)
        };
        let Self { m, k, n, a, b, c } = self;
        assert!(
            fits(a.0.len(), *m, *k, a.1) && fits(b.0.len(), *k, *n, b.1) && fits(c.0.len(), *m, *n, c.1),
            "the slices hold tiles of {m} x {k}, {k} x {n} and {m} x {n}"
        );
    }
}

/// C += A B on one thread.
///
/// # Panics
/// If a slice is shorter than its sizes and stride ask for, or a stride is shorter than a row.
pub fn gemm<T: Real>(tile: GemmUpdate<'_, T>) {
    tile.check();
    let GemmUpdate { m, k, n, a: (a, lda), b: (b, ldb), c: (c, ldc) } = tile;
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    for (row, rows) in pieces(m) {
        for (col, cols) in pieces(n) {
            // SAFETY: the tile's rows [row, row + rows) and columns [col, col + cols) lie within m x n, and the
            // check above keeps every address that the strides reach inside the three slices; C is borrowed
            // mutably and so overlaps neither A nor B.
            unsafe {
                gemm::gemm(
                    rows,
                    cols,
                    k,
                    c.as_mut_ptr().add(row * ldc + col),
                    1,
                    ldc as isize,
                    true,
                    a.as_ptr().add(row * lda),
                    1,
                    lda as isize,
                    b.as_ptr().add(col),
                    1,
                    ldb as isize,
                    T::from_f64(1.0),
                    T::from_f64(1.0),
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    }
}

/// Divides a length into the fewest nearly equal pieces of at most [`TILE`], as (start, length).
fn pieces(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = length.div_ceil(TILE);
    (0..count).map(move |i| {
        let (start, end) = (i * length / count, (i + 1) * length / count);
        (start, end - start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Real>(m: usize, k: usize, n: usize) {
        let (lda, ldb, ldc) = (k + 3, n + 1, n + 2);
        let value = |i: usize| T::from_f64((i % 7) as f64 - 3.0);
        let a: Vec<T> = (0..m * lda).map(value).collect();
        let b: Vec<T> = (0..k * ldb).map(|i| value(i + 5)).collect();
        let mut c: Vec<T> = (0..m * ldc).map(|i| value(i + 2)).collect();
        let before = c.clone();
        gemm(GemmUpdate { m, k, n, a: (&a, lda), b: (&b, ldb), c: (&mut c, ldc) });
        for i in 0..m {
            for j in 0..ldc {
                let mut expected = before[i * ldc + j].to_f64();
                if j < n {
                    expected +=
                        (0..k).map(|x| a[i * lda + x].to_f64() * b[x * ldb + j].to_f64()).sum::<f64>();
                }
                // Small whole numbers: exact in both types.
                assert_eq!(c[i * ldc + j].to_f64(), expected, "({i}, {j})");
            }
        }
    }

    #[test]
    fn agrees_with_three_loops() {
        for (m, k, n) in
            [(1, 1, 1), (2, 3, 5), (17, 13, 19), (513, 7, 3), (3, 2, 1030), (64, 64, 64), (0, 3, 3)]
        {
            check::<f64>(m, k, n);
            check::<f32>(m, k, n);
        }
    }
}

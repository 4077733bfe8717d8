//! Plus-times products by the `gemm` crate, which selects AVX-512, AVX2 or NEON at run time. Products are cut
//! into tiles of the size at which the crate is fastest.
#![allow(unsafe_code)]

use crate::kernels::view::check_shapes;
use crate::kernels::{Blas, Tropical, View, ViewMut};
use crate::matrix::Element;
use std::ops::{Add, Mul};

/// An element type of plus-times: `f32` or `f64`. Both are also elements of max-plus and min-plus.
pub trait Real: Element + Tropical + Add<Output = Self> + Mul<Output = Self> {
    /// C += A B by a library, on this thread.
    ///
    /// # Panics
    /// As [`Blas::dgemm`].
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>);
}

impl Real for f64 {
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>) {
        blas.dgemm(a, b, c);
    }
}

impl Real for f32 {
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>) {
        blas.sgemm(a, b, c);
    }
}

/// Largest side of a tile of C. Measured in f64 on one Zen 5 core: with tiles of 512 x 512 x 256 the crate
/// reaches 127 Gflop/s, with one call for 3000 x 3000 x 256 it reaches 110.
const TILE: usize = 512;

/// C += A B on one thread.
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
pub fn gemm<T: Real>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    if n == 1 {
        return column(a, b, c);
    }
    for (row, rows) in pieces(m) {
        for (col, cols) in pieces(n) {
            let (a, b, mut c) =
                (a.tile(row, 0, rows, k), b.tile(0, col, k, cols), c.tile(row, col, rows, cols));
            // SAFETY: the views' constructors keep every address within their sizes and strides inside their
            // memory, and the shapes fit; C is borrowed mutably and so overlaps neither A nor B.
            unsafe {
                gemm::gemm(
                    rows,
                    cols,
                    k,
                    c.as_mut_ptr(),
                    1,
                    c.stride() as isize,
                    true,
                    a.as_ptr(),
                    1,
                    a.stride() as isize,
                    b.as_ptr(),
                    1,
                    b.stride() as isize,
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

/// Sums of which a product by a single column is made.
const LANES: usize = 8;

/// C += A B for a B of one column. The crate would add in an order that depends on the strides, and so on where
/// the column is kept: the same part would differ between threads and MPI.
fn column<T: Real>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    let b: Vec<T> = (0..b.rows()).map(|x| b.row(x)[0]).collect();
    let (whole, rest) = b.as_chunks::<LANES>();
    for i in 0..a.rows() {
        let (row, end) = a.row(i).as_chunks::<LANES>();
        let mut sums = [T::ZERO; LANES];
        for (row, b) in row.iter().zip(whole) {
            sums = std::array::from_fn(|lane| sums[lane] + row[lane] * b[lane]);
        }
        for (lane, (x, b)) in end.iter().zip(rest).enumerate() {
            sums[lane] = sums[lane] + *x * *b;
        }
        let c = &mut c.row(i)[0];
        *c = sums.into_iter().fold(*c, |sum, x| sum + x);
    }
}

/// Divides a length into the fewest nearly equal pieces of at most [`TILE`], as (start, length).
fn pieces(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = length.div_ceil(TILE);
    let (least, longer) = (length / count, length % count);
    (0..count).map(move |i| (i * least + i.min(longer), least + usize::from(i < longer)))
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
        gemm(View::new(&a, m, k, lda), View::new(&b, k, n, ldb), ViewMut::new(&mut c, m, n, ldc));
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

    /// The same bits, however far apart the elements of B and C are.
    #[test]
    fn a_column_has_the_same_bits_at_any_stride() {
        for (m, k) in [(3, 77), (300, 50), (1, 9)] {
            let a: Vec<f64> = (0..m * k).map(|i| (i as f64).sin()).collect();
            let run = |stride: usize| {
                let b: Vec<f64> = (0..k * stride).map(|i| ((i / stride) as f64).cos()).collect();
                let mut c = vec![1.0; m * stride];
                gemm(View::dense(&a, m, k), View::new(&b, k, 1, stride), ViewMut::new(&mut c, m, 1, stride));
                c.into_iter().step_by(stride).map(f64::to_bits).collect::<Vec<_>>()
            };
            assert_eq!(run(1), run(7), "{m} x {k}");
        }
    }

    #[test]
    fn pieces_cover_a_length_once() {
        for length in [1, 511, 512, 513, 1025, 5000] {
            let mut end = 0;
            for (start, piece) in pieces(length) {
                assert!(start == end && (1..=TILE).contains(&piece), "{length}");
                end += piece;
            }
            assert_eq!(end, length);
        }
        assert_eq!(pieces(usize::MAX).next(), Some((0, TILE)));
    }

    #[test]
    #[should_panic(expected = "do not fit: 1 x 2 times 1 x 2 into 1 x 2")]
    fn shapes_that_do_not_fit_are_refused() {
        let factor = View::dense(&[0.0; 2], 1, 2);
        gemm(factor, factor, ViewMut::dense(&mut [0.0; 2], 1, 2));
    }
}

//! Plus-times products in the registers that the processor has.

#![allow(unsafe_code)]

use crate::kernels::packed::{
    MicroKernel, PlusTimes, Substitution, product_together, substitutions_of, tiles,
};
use crate::kernels::view::check_shapes;
use crate::kernels::{Alone, Blas, Team, Tropical, View, ViewMut};
use crate::matrix::Element;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An element type of plus-times: `f32` or `f64`. Both are also elements of max-plus and min-plus.
pub trait Real:
    Element
    + Tropical
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// C += A B by a library, on this thread.
    ///
    /// # Panics
    /// As [`Blas::dgemm`].
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>);

    /// [`gemm`] by the threads of a team: the same bits. It is compiled with this crate.
    #[doc(hidden)]
    fn gemm_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team);

    /// The innermost loops that this processor can run, best first; the last is the portable one.
    #[doc(hidden)]
    fn fused_tiles() -> Vec<MicroKernel<Self>>;

    /// The kernels of substitution that this processor can run, best first; the last is the portable one.
    #[doc(hidden)]
    fn substitutions() -> Vec<Substitution<Self>>;

    /// The square root, rounded once.
    #[must_use]
    fn square_root(self) -> Self;
}

impl Real for f64 {
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>) {
        blas.dgemm(a, b, c);
    }

    fn gemm_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team) {
        by_fused_tiles(a, b, c, team);
    }

    fn fused_tiles() -> Vec<MicroKernel<Self>> {
        tiles!(F64, 4, PlusTimes)
    }

    fn substitutions() -> Vec<Substitution<Self>> {
        substitutions_of!(F64, 4)
    }

    #[inline(always)]
    fn square_root(self) -> Self {
        self.sqrt()
    }
}

impl Real for f32 {
    fn by_blas(blas: &Blas, a: View<Self>, b: View<Self>, c: ViewMut<Self>) {
        blas.sgemm(a, b, c);
    }

    fn gemm_together(a: View<Self>, b: View<Self>, c: ViewMut<Self>, team: &dyn Team) {
        by_fused_tiles(a, b, c, team);
    }

    fn fused_tiles() -> Vec<MicroKernel<Self>> {
        tiles!(F32, 8, PlusTimes)
    }

    fn substitutions() -> Vec<Substitution<Self>> {
        substitutions_of!(F32, 8)
    }

    #[inline(always)]
    fn square_root(self) -> Self {
        self.sqrt()
    }
}

/// C += A B on one thread. 2 m n k operations; each thread keeps memory for two packed blocks (4 MiB, and an
/// eighth of the second-level cache but at least 128 KiB).
///
/// The bits of an element of C depend on its row of A, its column of B, and its value before: not on its
/// place, on the strides, or on the processor, if that has fused multiply-add (AVX2, AVX-512, NEON).
///
/// # Panics
/// If the shapes do not fit: A is m x k, B k x n, C m x n.
pub fn gemm<T: Real>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    T::gemm_together(a, b, c, &Alone);
}

fn by_fused_tiles<T: Real>(a: View<T>, b: View<T>, c: ViewMut<T>, team: &dyn Team) {
    check_shapes(&a, &b, &c);
    let tile = &T::fused_tiles()[0];
    // SAFETY: only tiles that the processor supports are offered.
    let done = unsafe { product_together(tile, a, b, c, team) };
    debug_assert!(done, "real numbers are never too large");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Real>(m: usize, k: usize, n: usize) {
        let (lda, ldb, ldc) = (k + 3, n + 1, n + 2);
        let value = |i: usize| T::from_f64((i % 7) as f64 - 3.0);
        let a: Vec<T> = (0..m * lda).map(value).collect();
        let b: Vec<T> = (0..k * ldb).map(|i| value(i + 5)).collect();
        let before: Vec<T> = (0..m * ldc).map(|i| value(i + 2)).collect();
        let views = (View::new(&a, m, k, lda), View::new(&b, k, n, ldb));
        let mut c = before.clone();
        gemm(views.0, views.1, ViewMut::new(&mut c, m, n, ldc));
        for tile in T::fused_tiles() {
            let mut by_tile = before.clone();
            // SAFETY: the tile is one of those that the processor supports.
            assert!(unsafe { tile.product(views.0, views.1, ViewMut::new(&mut by_tile, m, n, ldc)) });
            assert!(c == by_tile, "{m} x {k} x {n} by {}", tile.name());
        }
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
        let large = [(513, 7, 3), (3, 2, 1030), (64, 64, 64)];
        // Under Miri, a multiply-add takes a millisecond.
        let large = if cfg!(miri) { [(33, 2, 3), (3, 2, 70), (9, 10, 11)] } else { large };
        for (m, k, n) in [(1, 1, 1), (2, 3, 5), (17, 13, 19), (0, 3, 3), (9, 0, 5)].into_iter().chain(large) {
            check::<f64>(m, k, n);
            check::<f32>(m, k, n);
        }
    }

    /// A product by one micro-kernel, of fractions with full mantissas, with C at a place and strides of its
    /// own.
    fn bits<T: Real>(tile: &MicroKernel<T>, [m, k, n]: [usize; 3], slack: usize) -> Vec<u64> {
        let (lda, ldb, ldc) = (k + slack, n + 2 * slack, n + slack);
        // Not sines, whose last bits Miri chooses at random.
        let value = |x: usize| T::from_f64((x as f64 * 0.618_033_988_749_894_9).fract() - 0.5);
        let a: Vec<T> = (0..m * lda).map(|i| value(i / lda * 31 + i % lda)).collect();
        let b: Vec<T> = (0..k * ldb).map(|i| value(i / ldb * 17 + i % ldb + 5)).collect();
        let mut c = vec![T::from_f64(0.3); m * ldc];
        let (a, b) = (View::new(&a, m, k, lda), View::new(&b, k, n, ldb));
        // SAFETY: the tile is one of those that the processor supports.
        assert!(unsafe { tile.product(a, b, ViewMut::new(&mut c, m, n, ldc)) });
        (0..m).flat_map(|i| c[i * ldc..][..n].iter().map(|x| x.to_f64().to_bits())).collect()
    }

    /// The same bits at any stride, in any part of a product, and on any instruction set with fused
    /// multiply-add.
    fn bits_depend_on_operands_alone<T: Real>() {
        let tiles = T::fused_tiles();
        let fused = &tiles[..tiles.len() - 1];
        let large = [[3, 77, 1], [300, 50, 1], [19, 1000, 29], [1, 9, 70], [13, 385, 100]];
        let small = [[3, 7, 1], [30, 3, 1], [9, 5, 14], [1, 4, 35], [7, 3, 20]];
        for shape @ [m, k, n] in if cfg!(miri) { small } else { large } {
            for tile in &tiles {
                let whole = bits(tile, shape, 0);
                assert_eq!(whole, bits(tile, shape, 5), "{shape:?} by {}", tile.name());
                let part = bits(tile, [m.div_ceil(2), k, n.div_ceil(3)], 3);
                let corner = whole.chunks(n).take(m.div_ceil(2)).flat_map(|row| &row[..n.div_ceil(3)]);
                assert!(part.iter().eq(corner), "part of {shape:?} by {}", tile.name());
            }
            assert!(fused.windows(2).all(|two| bits(&two[0], shape, 0) == bits(&two[1], shape, 0)));
        }
    }

    #[test]
    fn bits_do_not_depend_on_place_stride_or_registers() {
        bits_depend_on_operands_alone::<f64>();
        bits_depend_on_operands_alone::<f32>();
    }

    #[test]
    #[should_panic(expected = "do not fit: 1 x 2 times 1 x 2 into 1 x 2")]
    fn shapes_that_do_not_fit_are_refused() {
        let factor = View::dense(&[0.0; 2], 1, 2);
        gemm(factor, factor, ViewMut::dense(&mut [0.0; 2], 1, 2));
    }
}

//! The innermost loop: a tile of C held in registers while one column of A and one row of B pass by.

#![allow(unsafe_code)]

use crate::kernels::cache::prefetch;
use crate::kernels::packed::operation::Operation;
use crate::kernels::packed::vector::Vector;
use crate::kernels::{View, ViewMut};

/// A tile of one shape, and the function that updates it: C := C + A B over the semiring, A being `depth`
/// packed columns of `rows` elements, B `depth` packed rows of `cols`, C `rows` x `cols` elements with rows
/// `stride` apart.
#[derive(Clone, Copy)]
pub struct MicroKernel<T> {
    /// The instruction set.
    pub(super) name: &'static str,
    /// Rows of C.
    pub(super) rows: usize,
    /// Columns of C.
    pub(super) cols: usize,
    /// (depth, a, b, c, stride)
    pub(super) update: unsafe fn(usize, *const T, *const T, *mut T, usize),
    /// Copies the first columns, a multiple of eight, of the tile's rows, column after column.
    pub(super) interleave: Option<unsafe fn(usize, &[*const T], *mut T)>,
    /// [`block::product`](super::block::product), compiled for the same registers.
    pub(super) product: unsafe fn(&Self, View<T>, View<T>, ViewMut<T>) -> bool,
}

impl<T> MicroKernel<T> {
    /// The instruction set: "AVX-512", "AVX2", "NEON" or "portable".
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// C := C + A B over the semiring. False, with C updated by only some of the sums, if an integer is too
    /// large for plain sums.
    ///
    /// # Safety
    /// The processor has the instruction set.
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, C m x n.
    pub(in crate::kernels) unsafe fn product(&self, a: View<T>, b: View<T>, c: ViewMut<T>) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.product)(self, a, b, c) }
    }
}

/// The body of [`MicroKernel::update`], to be compiled for the features of `V`.
///
/// # Safety
/// The processor has the features of `V`; `a`, `b` and `c` are good for what [`MicroKernel`] says of them.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, O: Operation<V>, const ROWS: usize, const WIDE: usize>(
    depth: usize,
    mut a: *const V::Element,
    mut b: *const V::Element,
    c: *mut V::Element,
    stride: usize,
) {
    // SAFETY: every address is within the packed blocks and the tile of C, as the caller guarantees.
    unsafe {
        let place = |i: usize, j: usize| c.wrapping_add(i * stride + j * V::LANES);
        let mut sums = [[V::splat(O::zero()); WIDE]; ROWS];
        for i in 0..ROWS {
            for j in 0..WIDE {
                prefetch(place(i, j));
            }
        }
        for _ in 0..depth {
            let mut row = [sums[0][0]; WIDE];
            for (j, part) in row.iter_mut().enumerate() {
                *part = V::load(b.add(j * V::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = V::splat(*a.add(i));
                for (sum, part) in sums.iter_mut().zip(row) {
                    *sum = O::step(x, part, *sum);
                }
            }
            a = a.add(ROWS);
            b = b.add(WIDE * V::LANES);
        }
        for (i, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                O::settled(sum, V::load(place(i, j))).store(place(i, j));
            }
        }
    }
}

//! The innermost loop: a tile of C held in registers while one column of A and one row of B pass by.

#![allow(unsafe_code)]

use crate::kernels::cache::prefetch;
use crate::kernels::tropical::element::Element;
use crate::kernels::tropical::vector::Vector;
use crate::kernels::{View, ViewMut};

/// A tile of one shape, and the function that updates it: C := C over A x B, A being `depth` packed columns
/// of `rows` elements, B `depth` packed rows of `cols`, C `rows` x `cols` elements with rows `stride` apart.
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
    /// Where tiles have eight rows: copies the first columns, a multiple of eight, of eight rows, column
    /// after column.
    pub(super) interleave: Option<unsafe fn(usize, [*const T; 8], *mut T)>,
    /// [`block::product`](super::block::product), compiled for the same registers.
    pub(super) product: unsafe fn(&Self, View<T>, View<T>, ViewMut<T>) -> bool,
}

/// The body of [`MicroKernel::update`], to be compiled for the features of `V`.
///
/// # Safety
/// The processor has the features of `V`; `a`, `b` and `c` are good for what [`MicroKernel`] says of them.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const ROWS: usize, const WIDE: usize, const MIN: bool>(
    depth: usize,
    mut a: *const V::Element,
    mut b: *const V::Element,
    c: *mut V::Element,
    stride: usize,
) {
    // SAFETY: every address is within the packed blocks and the tile of C, as the caller guarantees.
    unsafe {
        let place = |i: usize, j: usize| c.wrapping_add(i * stride + j * V::LANES);
        let mut best = [[V::splat(V::Element::zero::<MIN>()); WIDE]; ROWS];
        for i in 0..ROWS {
            for j in 0..WIDE {
                prefetch(place(i, j));
            }
        }
        for _ in 0..depth {
            let mut row = [best[0][0]; WIDE];
            for (j, part) in row.iter_mut().enumerate() {
                *part = V::load(b.add(j * V::LANES));
            }
            for (i, best) in best.iter_mut().enumerate() {
                let x = V::splat(*a.add(i));
                for (best, part) in best.iter_mut().zip(row) {
                    *best = x.plus(part).over::<MIN>(*best);
                }
            }
            a = a.add(ROWS);
            b = b.add(WIDE * V::LANES);
        }
        for (i, best) in best.into_iter().enumerate() {
            for (j, best) in best.into_iter().enumerate() {
                best.settled_over::<MIN>(V::load(place(i, j))).store(place(i, j));
            }
        }
    }
}

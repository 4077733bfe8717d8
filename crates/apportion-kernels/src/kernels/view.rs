//! Matrices, and rectangular tiles of them, as borrowed memory.
//!
//! The fields are private, and every constructor checks its sizes with arithmetic that cannot wrap. The
//! `unsafe` code of the kernels relies on this: the holder of a view may access every element within its
//! sizes and stride.

#![allow(unsafe_code)]

use crate::geometry::{Rect, Span};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A read-only tile of `rows` x `cols` elements; row `i` starts at `data[i * stride]`.
#[derive(Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// A writable tile of `rows` x `cols` elements; row `i` starts `i * stride` elements after row 0.
///
/// It has exclusive access to its elements only, not to those between its rows: several threads can write to
/// disjoint tiles of one matrix ([`ViewMut::into_tiles`]).
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    first: NonNull<T>,
    rows: usize,
    cols: usize,
    stride: usize,
    lives: PhantomData<&'a mut [T]>,
}

// SAFETY: a view is the only access to its elements, as `&mut [T]` is.
unsafe impl<T: Send> Send for ViewMut<'_, T> {}
// SAFETY: a shared view gives access to its elements only by `part`, whose callers guarantee that no two threads
// have the same.
unsafe impl<T: Send + Sync> Sync for ViewMut<'_, T> {}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

/// The number of elements from the first of a tile to its last; `None` if it exceeds the address space.
fn extent(rows: usize, cols: usize, stride: usize) -> Option<usize> {
    if rows == 0 || cols == 0 {
        return Some(0);
    }
    (rows - 1).checked_mul(stride)?.checked_add(cols)
}

/// Panics unless a tile fits its data and its rows do not overlap; returns its stride. A single row has no
/// meaningful stride: it becomes the row's length, since libraries reject shorter ones.
fn checked_stride(length: usize, rows: usize, cols: usize, stride: usize) -> usize {
    let stride = if rows <= 1 { cols } else { stride };
    assert!(cols <= stride, "rows of {cols} elements overlap at stride {stride}");
    assert!(
        extent(rows, cols, stride).is_some_and(|extent| extent <= length),
        "a tile of {rows} x {cols} with stride {stride} does not fit into {length} elements"
    );
    stride
}

/// The offset of the tile of `rows` x `cols` elements at (`i`, `j`) in one of `size` elements.
fn offset([i, j]: [usize; 2], [rows, cols]: [usize; 2], size: [usize; 2], stride: usize) -> usize {
    let fits =
        |from: usize, length: usize, all: usize| all.checked_sub(from).is_some_and(|left| length <= left);
    assert!(
        fits(i, rows, size[0]) && fits(j, cols, size[1]),
        "a tile of {rows} x {cols} at ({i}, {j}) reaches outside a matrix of {} x {}",
        size[0],
        size[1]
    );
    // An empty tile may begin beyond the last element.
    if rows == 0 || cols == 0 { 0 } else { i * stride + j }
}

impl<'a, T> View<'a, T> {
    /// A tile of `rows` x `cols` elements whose rows start `stride` elements apart.
    ///
    /// # Panics
    /// If rows overlap (`stride < cols`), or the tile reaches past the end of `data`.
    pub fn new(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        let stride = checked_stride(data.len(), rows, cols, stride);
        Self { data, rows, cols, stride }
    }

    /// A whole matrix, one row directly after the other.
    ///
    /// # Panics
    /// If `data` is shorter than `rows * cols`.
    pub fn dense(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self::new(data, rows, cols, cols)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of elements from the start of one row to the start of the next; of a single row, its length.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &'a [T] {
        assert!(i < self.rows, "row {i} of a tile of {} rows", self.rows);
        if self.cols == 0 { &[] } else { &self.data[i * self.stride..][..self.cols] }
    }

    /// The tile of `rows` x `cols` elements whose upper left corner is element (`i`, `j`).
    ///
    /// # Panics
    /// If it reaches outside this tile.
    pub fn tile(&self, i: usize, j: usize, rows: usize, cols: usize) -> Self {
        let start = offset([i, j], [rows, cols], [self.rows, self.cols], self.stride);
        Self { data: &self.data[start..], rows, cols, stride: self.stride }
    }

    /// The address of the first element.
    pub(crate) fn as_ptr(&self) -> *const T {
        self.data.as_ptr()
    }
}

impl<'a, T> ViewMut<'a, T> {
    /// A tile of `rows` x `cols` elements whose rows start `stride` elements apart.
    ///
    /// # Panics
    /// If rows overlap (`stride < cols`), or the tile reaches past the end of `data`.
    pub fn new(data: &'a mut [T], rows: usize, cols: usize, stride: usize) -> Self {
        let stride = checked_stride(data.len(), rows, cols, stride);
        // A slice's address is never null.
        let first = NonNull::from(data).cast();
        Self { first, rows, cols, stride, lives: PhantomData }
    }

    /// A whole matrix, one row directly after the other.
    ///
    /// # Panics
    /// If `data` is shorter than `rows * cols`.
    pub fn dense(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        Self::new(data, rows, cols, cols)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of elements from the start of one row to the start of the next; of a single row, its length.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.rows, "row {i} of a tile of {} rows", self.rows);
        // SAFETY: the constructors keep rows x cols elements at this stride inside memory that only this view
        // may access.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr().add(i * self.used_stride()), self.cols) }
    }

    /// The stride if there are elements; 0 if no row's address is ever used.
    fn used_stride(&self) -> usize {
        if self.cols == 0 { 0 } else { self.stride }
    }

    /// The same view of a tile inside.
    fn at(&self, start: usize, rows: usize, cols: usize) -> ViewMut<'a, T> {
        // SAFETY: `start` is the place of a tile inside this one, or 0.
        let first = unsafe { self.first.add(start) };
        ViewMut { first, rows, cols, stride: self.stride, lives: PhantomData }
    }

    /// The tile of `rows` x `cols` elements whose upper left corner is element (`i`, `j`).
    ///
    /// # Panics
    /// If it reaches outside this tile.
    pub fn tile(&mut self, i: usize, j: usize, rows: usize, cols: usize) -> ViewMut<'_, T> {
        let start = offset([i, j], [rows, cols], [self.rows, self.cols], self.stride);
        self.at(start, rows, cols)
    }

    /// The tile of `rows` x `cols` elements whose upper left corner is element (`i`, `j`), of a view that several
    /// threads share.
    ///
    /// # Safety
    /// Nobody else accesses any of its elements while it lives.
    ///
    /// # Panics
    /// If it reaches outside this tile.
    #[inline(always)]
    pub(super) unsafe fn part(&self, i: usize, j: usize, rows: usize, cols: usize) -> ViewMut<'_, T> {
        self.at(offset([i, j], [rows, cols], [self.rows, self.cols], self.stride), rows, cols)
    }

    /// Disjoint tiles, one for each pair of row and column ranges, for simultaneous use. O(t log t) for t
    /// tiles.
    ///
    /// # Panics
    /// If a tile reaches outside this one, or two of them overlap.
    pub fn into_tiles(self, tiles: &[Rect]) -> Vec<ViewMut<'a, T>> {
        assert!(
            are_disjoint(tiles),
            "some of {} tiles overlap: they cannot be written to at the same time",
            tiles.len()
        );
        let size = |span: Span| usize::try_from(span.len()).expect("a tile fits the address space");
        let place = |start: u64| usize::try_from(start).expect("a tile fits the address space");
        let one = |tile: &Rect| {
            let (rows, cols) = (size(tile.rows), size(tile.cols));
            let corner = [place(tile.rows.start), place(tile.cols.start)];
            self.at(offset(corner, [rows, cols], [self.rows, self.cols], self.stride), rows, cols)
        };
        tiles.iter().map(one).collect()
    }

    /// Splits into the first `rows` rows and the remaining ones.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn split_at_row(self, rows: usize) -> (Self, Self) {
        let all = self.rows;
        assert!(rows <= all, "{rows} rows of a tile of {all}");
        let start = if rows == all { 0 } else { rows * self.used_stride() };
        (self.at(0, rows, self.cols), self.at(start, all - rows, self.cols))
    }

    /// The same tile, borrowed for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        self.at(0, self.rows, self.cols)
    }

    /// The address of the first element.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.first.as_ptr()
    }
}

/// True if no two rectangles share an element. Sweeps along the rows and keeps the column spans that are
/// open.
fn are_disjoint(tiles: &[Rect]) -> bool {
    let mut events: Vec<(u64, bool, Span)> = Vec::new();
    for tile in tiles.iter().filter(|tile| !tile.is_empty()) {
        events.extend([(tile.rows.start, true, tile.cols), (tile.rows.end, false, tile.cols)]);
    }
    // At equal rows, tiles end before others begin.
    events.sort_unstable();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    events.into_iter().all(|(_, begins, Span { start, end })| {
        if !begins {
            return open.remove(&start).is_some();
        }
        let before = open.range(..end).next_back().is_none_or(|(_, &last)| last <= start);
        before && open.insert(start, end).is_none()
    })
}

/// # Panics
/// Unless A is m x k, B k x n and C m x n.
pub(super) fn check_shapes<T>(a: &View<T>, b: &View<T>, c: &ViewMut<T>) {
    assert!(
        a.cols == b.rows && c.rows == a.rows && c.cols == b.cols,
        "the shapes do not fit: {} x {} times {} x {} into {} x {}",
        a.rows,
        a.cols,
        b.rows,
        b.cols,
        c.rows,
        c.cols
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// The panic message, worded here instead of by the overflow check of a debug build.
    fn refusal<R>(work: impl FnOnce() -> R) -> String {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            work();
        }))
        .expect_err("the tile is refused");
        *panic.downcast::<String>().expect("a message with numbers")
    }

    /// Tiles of one matrix, written by several threads at the same time.
    #[test]
    fn disjoint_tiles_are_written_at_once() {
        let rect = |a, b, c, d| Rect::new(Span::new(a, b), Span::new(c, d));
        let tiles =
            [rect(0, 2, 0, 3), rect(0, 2, 3, 4), rect(2, 5, 1, 4), rect(2, 5, 0, 1), rect(5, 5, 0, 4)];
        let mut data = vec![0; 20];
        let views = ViewMut::dense(&mut data, 5, 4).into_tiles(&tiles);
        std::thread::scope(|scope| {
            for (number, mut view) in views.into_iter().enumerate() {
                scope.spawn(move || (0..view.rows()).for_each(|i| view.row(i).fill(number + 1)));
            }
        });
        assert_eq!(data, [1, 1, 1, 2, 1, 1, 1, 2, 4, 3, 3, 3, 4, 3, 3, 3, 4, 3, 3, 3]);
    }

    #[test]
    fn overlapping_tiles_are_refused() {
        let rect = |a, b, c, d| Rect::new(Span::new(a, b), Span::new(c, d));
        for other in
            [rect(1, 3, 1, 3), rect(0, 9, 2, 3), rect(1, 2, 0, 9), rect(0, 2, 0, 2), rect(1, 2, 1, 2)]
        {
            let mut data = vec![0; 81];
            let tiles = [rect(4, 9, 0, 1), rect(0, 2, 0, 2), rect(0, 4, 2, 3), other];
            let refused = refusal(|| ViewMut::dense(&mut data, 9, 9).into_tiles(&tiles).len());
            assert!(refused.contains("overlap"), "{refused}");
        }
    }

    #[test]
    fn rows_start_a_stride_apart() {
        let data: Vec<u32> = (0..11).collect();
        let view = View::new(&data, 3, 3, 4);
        assert_eq!(view.row(0), [0, 1, 2]);
        assert_eq!(view.row(2), [8, 9, 10]);
        assert_eq!(view.tile(1, 1, 2, 2).row(1), [9, 10]);
        assert_eq!(View::new(&data, 0, 9, 4).rows(), 0);
        assert!(View::new(&data[..0], 5, 0, 7).row(4).is_empty());
        assert!(view.tile(3, 3, 0, 0).rows() == 0 && view.tile(3, 0, 0, 3).cols() == 3);
    }

    #[test]
    fn tiles_nest_and_split() {
        let mut data: Vec<u32> = (0..11).collect();
        let mut view = ViewMut::new(&mut data, 3, 3, 4);
        view.tile(1, 1, 2, 2).row(1)[1] = 99;
        let (mut upper, mut lower) = view.reborrow().split_at_row(1);
        assert_eq!((upper.rows(), lower.rows()), (1, 2));
        (upper.row(0)[0], lower.row(0)[0]) = (50, 54);
        let (all, mut none) = view.split_at_row(3);
        assert_eq!((all.rows(), none.rows(), none.tile(0, 3, 0, 0).rows()), (3, 0, 0));
        assert_eq!(data, [50, 1, 2, 3, 54, 5, 6, 7, 8, 9, 99]);
        let (first, others) = ViewMut::<u32>::new(&mut [], usize::MAX, 0, 7).split_at_row(usize::MAX - 1);
        assert_eq!((first.rows(), others.rows()), (usize::MAX - 1, 1));
    }

    #[test]
    fn sizes_that_wrap_are_refused() {
        let (mut one, large) = ([0.0_f32], (1 << 32) + 1);
        // (2^32 + 1 - 1) * 2^32 is 0 modulo 2^64.
        for text in [
            refusal(|| View::new(&one, large, 1, 1 << 32)),
            refusal(|| View::dense(&one, 1 << 32, 1 << 32)),
            refusal(|| View::new(&[0.0; 10], 3, 3, 4)),
            refusal(|| ViewMut::new(&mut one.clone(), large, 1, 1 << 32).rows()),
            refusal(|| ViewMut::new(&mut one.clone(), 2, usize::MAX, usize::MAX).rows()),
        ] {
            assert!(text.contains("does not fit into"), "{text}");
        }
        let view = View::dense(&one, 1, 1);
        for text in [
            refusal(|| view.tile(usize::MAX, 0, 2, 1)),
            refusal(|| view.tile(0, usize::MAX, 1, 2)),
            refusal(|| view.tile(1, 0, usize::MAX, 1)),
            refusal(|| ViewMut::dense(&mut one, 1, 1).tile(usize::MAX, 0, 2, 1).rows()),
            refusal(|| ViewMut::dense(&mut one, 1, 1).tile(0, usize::MAX, 1, 2).rows()),
        ] {
            assert!(text.contains("reaches outside"), "{text}");
        }
        let text = refusal(|| View::new(&[0.0; 10], 2, 3, 2));
        assert!(text.contains("overlap"), "{text}");
    }
}

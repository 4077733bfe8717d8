//! Substitution in registers: a tile of unknowns stays there while the unknowns before it pass by.
//!
//! Unknowns are rows, and right-hand sides columns. An unknown is its right-hand side with its products with the
//! unknowns before it added one after the other, the first one first, each rounded once, and then multiplied by the
//! reciprocal of the element on the diagonal. So its bits depend neither on the tiles nor, if there is fused
//! multiply-add, on the registers.

#![allow(unsafe_code)]

use crate::kernels::packed::block::Interleave;
use crate::kernels::packed::vector::{Fused, Vector};
use crate::kernels::{Real, ViewMut};

/// The most rows of a square that [`Squares`] transpose.
const MOST_SQUARE: usize = 8;

/// Kernels for tiles of unknowns, `rows` x `lanes`. `rows` is 4 or 8, and `lanes` a multiple of it.
///
/// A tile is given by a block of coefficients, column after column of `rows` elements: the negative factors of the
/// unknowns before the tile, then a square of the tile's own: reciprocals on its diagonal, negative factors below it.
#[derive(Clone, Copy)]
pub struct Substitution<T> {
    pub(super) rows: usize,
    pub(super) lanes: usize,
    /// [`substitute`], compiled for the instruction set.
    pub(super) substitute: unsafe fn(*const T, Pointers<T>, bool),
    /// [`factor`], compiled for the instruction set.
    pub(super) factor: unsafe fn(*mut T, Pointers<T>, [usize; 2]) -> bool,
    pub(super) squares: Option<Squares<T>>,
}

/// Transposes squares in registers.
#[derive(Clone, Copy)]
pub(super) struct Squares<T> {
    /// Rows and columns of a square.
    pub size: usize,
    /// For `size` rows, and a multiple of as many columns.
    pub transpose: Interleave<T>,
}

/// Rows of unknowns in memory, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Pointers<T> {
    /// The first of the `depth` rows that are known.
    known: *const T,
    depth: usize,
    /// The first row of the tile.
    tile: *mut T,
    stride: usize,
}

/// Where a tile of unknowns is in memory: by the places of its first element and of that of the known rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct TilePlace {
    /// The first of the known rows.
    pub known: usize,
    /// Number of known rows.
    pub depth: usize,
    /// The tile.
    pub tile: usize,
    /// From each row to the next.
    pub stride: usize,
}

impl<T: Real> Substitution<T> {
    /// The best for this processor.
    pub(in crate::kernels) fn best() -> Self {
        T::substitutions()[0]
    }

    /// Rows of a tile.
    pub(in crate::kernels) fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a tile.
    pub(in crate::kernels) fn lanes(&self) -> usize {
        self.lanes
    }

    /// The pointers of a tile.
    ///
    /// # Panics
    /// If it reaches outside `x`, or there are fewer than so many columns in the block.
    fn pointers(&self, block: &[T], x: &mut [T], place: TilePlace, columns: usize) -> Pointers<T> {
        let TilePlace { known, depth, tile, stride } = place;
        let end = |first: usize, rows: usize| first + rows.saturating_sub(1) * stride + self.lanes;
        assert!(
            end(known, depth) <= x.len() && end(tile, self.rows) <= x.len(),
            "{place:?} in {} elements",
            x.len()
        );
        assert!(block.len() >= columns * self.rows, "{} elements for {columns} columns", block.len());
        let first = x.as_mut_ptr();
        Pointers { known: first.wrapping_add(known), depth, tile: first.wrapping_add(tile), stride }
    }

    /// Adds the products of the known rows to a tile, without solving for it.
    ///
    /// # Panics
    /// If the tile reaches outside `x`, or the block is too short.
    pub(in crate::kernels) fn add_products(&self, block: &[T], x: &mut [T], place: TilePlace) {
        let pointers = self.pointers(block, x, place, place.depth);
        // SAFETY: as in `solve`.
        unsafe { (self.substitute)(block.as_ptr(), pointers, false) }
    }

    /// Solves for a tile.
    ///
    /// # Panics
    /// If the tile reaches outside `x`, or the block is too short.
    pub(in crate::kernels) fn solve(&self, block: &[T], x: &mut [T], place: TilePlace) {
        let pointers = self.pointers(block, x, place, place.depth + self.rows);
        // SAFETY: the pointers were just checked; only kernels that the processor supports are offered.
        unsafe { (self.substitute)(block.as_ptr(), pointers, true) }
    }

    /// Solves for a tile in whose columns from `lane` on is the lower triangle, transposed, of a symmetric matrix of
    /// `order` rows: the square of its Cholesky factor is appended to the block. False if the matrix is not positive
    /// definite: the diagonal, of the tile, is as it is up to the first element that is not positive.
    ///
    /// # Panics
    /// If the tile reaches outside `x`, or the block is too short, or the triangle does not fit the tile.
    pub(in crate::kernels) fn factor(
        &self,
        block: &mut [T],
        x: &mut [T],
        place: TilePlace,
        [lane, order]: [usize; 2],
    ) -> bool {
        assert!(order <= self.rows && lane + self.rows <= self.lanes, "{order} rows from column {lane} on");
        let pointers = self.pointers(block, x, place, place.depth + self.rows);
        // SAFETY: as in `solve`, and the triangle was just checked.
        unsafe { (self.factor)(block.as_mut_ptr(), pointers, [lane, order]) }
    }

    /// Copies element (i, j) of a tile to `to[j * stride + i]`.
    ///
    /// # Panics
    /// If that is too short, or the columns overlap.
    pub(in crate::kernels) fn transpose_from(&self, from: &mut ViewMut<T>, to: &mut [T], stride: usize) {
        let size = [from.rows(), from.cols()];
        if size.contains(&0) {
            return;
        }
        let [rows, cols] = size;
        assert!(rows <= stride && (cols - 1) * stride + rows <= to.len(), "{size:?} into {}", to.len());
        // SAFETY: the elements of the view, and as was just checked.
        unsafe { self.transpose(from.as_mut_ptr(), from.stride(), size, to.as_mut_ptr(), stride) }
    }

    /// Copies `from[j * stride + i]` to element (i, j) of a tile.
    ///
    /// # Panics
    /// If that is too short, or its columns overlap.
    pub(in crate::kernels) fn transpose_to(&self, from: &[T], stride: usize, to: &mut ViewMut<T>) {
        let size = [to.cols(), to.rows()];
        if size.contains(&0) {
            return;
        }
        let [cols, rows] = size;
        assert!(rows <= stride && (cols - 1) * stride + rows <= from.len(), "{size:?} from {}", from.len());
        let stride_of_tile = to.stride();
        // SAFETY: as was just checked, and the elements of the view.
        unsafe { self.transpose(from.as_ptr(), stride, size, to.as_mut_ptr(), stride_of_tile) }
    }

    /// Copies element (i, j) of `from` to element (j, i) of `to`.
    ///
    /// # Safety
    /// Both are good for their elements; the processor has the instruction set.
    unsafe fn transpose(
        &self,
        from: *const T,
        from_stride: usize,
        [rows, cols]: [usize; 2],
        to: *mut T,
        stride: usize,
    ) {
        let [mut whole_rows, mut whole_cols] = [0; 2];
        if let Some(Squares { size, transpose }) = self.squares {
            [whole_rows, whole_cols] = [rows, cols].map(|length| length / size * size);
            for i in (0..whole_rows).step_by(size) {
                let mut group = [std::ptr::null(); MOST_SQUARE];
                for (k, row) in group[..size].iter_mut().enumerate() {
                    *row = from.wrapping_add((i + k) * from_stride);
                }
                // SAFETY: there are `size` rows of at least so many columns, and room for them.
                unsafe { transpose(whole_cols, &group[..size], to.wrapping_add(i), stride) }
            }
        }
        for i in 0..rows {
            for j in if i < whole_rows { whole_cols } else { 0 }..cols {
                // SAFETY: an element of each.
                unsafe { *to.add(j * stride + i) = *from.add(i * from_stride + j) }
            }
        }
    }
}

/// A tile with the products of the known rows added.
///
/// # Safety
/// The processor has the features of `V`; the rows are good for `WIDE` vectors; `a` for `ROWS` elements for each known
/// row.
#[inline(always)]
unsafe fn with_products<V: Fused, const ROWS: usize, const WIDE: usize>(
    mut a: *const V::Element,
    Pointers { mut known, depth, tile, stride }: Pointers<V::Element>,
) -> [[V; WIDE]; ROWS] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [[V::splat(V::Element::default()); WIDE]; ROWS];
        for (i, sums) in sums.iter_mut().enumerate() {
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(tile.add(i * stride + j * V::LANES));
            }
        }
        for _ in 0..depth {
            let mut row = [sums[0][0]; WIDE];
            for (j, part) in row.iter_mut().enumerate() {
                *part = V::load(known.add(j * V::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = V::splat(*a.add(i));
                for (sum, part) in sums.iter_mut().zip(row) {
                    *sum = x.times_plus(part, *sum);
                }
            }
            a = a.add(ROWS);
            known = known.wrapping_add(stride);
        }
        sums
    }
}

/// Does the same for each column of a tile, with its number as a constant: a loop over it would not be unrolled, and
/// the tile then not be kept in registers.
macro_rules! for_each_column {
    ($column:ident of $rows:expr => $body:block) => {
        for_each_column!($column of $rows => $body; 0 1 2 3 4 5 6 7)
    };
    ($column:ident of $rows:expr => $body:block; $($number:literal)+) => {
        $({
            const $column: usize = $number;
            if $column < $rows $body
        })+
    };
}

/// Solves for a tile, or only adds products to it.
///
/// # Safety
/// The processor has the features of `V`; the rows are good for `WIDE` vectors; `a` for the coefficients.
#[inline(always)]
pub(super) unsafe fn substitute<V: Fused, const ROWS: usize, const WIDE: usize>(
    a: *const V::Element,
    pointers: Pointers<V::Element>,
    solves: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = with_products::<V, ROWS, WIDE>(a, pointers);
        if solves {
            let square = a.add(pointers.depth * ROWS);
            let zero = V::splat(V::Element::default());
            for_each_column!(P of ROWS => {
                let column = square.add(P * ROWS + P);
                let (solved, rest) = sums[P..].split_at_mut(1);
                for x in &mut solved[0] {
                    *x = x.times_plus(V::splat(*column), zero);
                }
                for (i, sums) in rest.iter_mut().enumerate() {
                    let factor = V::splat(*column.add(i + 1));
                    for (sum, x) in sums.iter_mut().zip(solved[0]) {
                        *sum = factor.times_plus(x, *sum);
                    }
                }
            });
        }
        for (i, sums) in sums.into_iter().enumerate() {
            store_row(sums, pointers.tile.add(i * pointers.stride));
        }
    }
}

/// Writes a row of a tile.
///
/// # Safety
/// As [`substitute`].
#[inline(always)]
unsafe fn store_row<V: Vector, const WIDE: usize>(row: [V; WIDE], to: *mut V::Element) {
    for (j, x) in row.into_iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { x.store(to.add(j * V::LANES)) }
    }
}

/// Solves for a tile that contains the triangle that it is solved with: see [`Substitution::factor`].
///
/// # Safety
/// As [`substitute`]; the triangle is within the tile.
#[inline(always)]
pub(super) unsafe fn factor<V: Fused<Element: Real>, const ROWS: usize, const WIDE: usize>(
    a: *mut V::Element,
    pointers: Pointers<V::Element>,
    [lane, order]: [usize; 2],
) -> bool {
    let Pointers { depth, tile, stride, .. } = pointers;
    let (nought, one) = (V::Element::default(), <V::Element as crate::matrix::Element>::from_f64(1.0));
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = with_products::<V, ROWS, WIDE>(a, pointers);
        let square = a.add(depth * ROWS);
        let zero = V::splat(nought);
        for_each_column!(P of ROWS => {
            let (row, column) = (tile.add(P * stride), square.add(P * ROWS + P));
            let (solved, rest) = sums[P..].split_at_mut(1);
            store_row(solved[0], row);
            let diagonal = row.add(lane + P);
            let (pivot, is_own) = (*diagonal, P < order);
            let is_positive = pivot > nought;
            if is_own && !is_positive {
                return false;
            }
            let root = pivot.square_root();
            *column = if is_own { one / root } else { one };
            for x in &mut solved[0] {
                *x = x.times_plus(V::splat(*column), zero);
            }
            store_row(solved[0], row);
            if is_own {
                *diagonal = root;
            }
            for (i, sums) in rest.iter_mut().enumerate() {
                let is_own = P + 1 + i < order;
                let factor = if is_own { -*diagonal.add(i + 1) } else { nought };
                *column.add(i + 1) = factor;
                for (sum, x) in sums.iter_mut().zip(solved[0]) {
                    *sum = V::splat(factor).times_plus(x, *sum);
                }
            }
        });
        true
    }
}

/// A register with kernels of substitution.
pub(in crate::kernels) trait Substituted: Fused {
    /// The kernels, if this processor has the registers.
    fn substitution() -> Option<Substitution<Self::Element>>;
}

/// The kernels of an instruction set: [`Substituted`] for some of its vectors, with functions compiled for the feature.
/// A tile has `$rows` rows of `$wide` vectors.
macro_rules! substitutions {
    ($feature:literal if $detected:expr, $rows:literal x $wide:literal of $($vector:ident),+;
     $squares:expr) => {
        $(impl Substituted for $vector {
            fn substitution() -> Option<Substitution<Self::Element>> {
                /// # Safety
                /// As [`substitution::substitute`], on a processor that has the feature.
                #[target_feature(enable = $feature)]
                unsafe fn substitute<V: Fused>(
                    a: *const V::Element,
                    pointers: Pointers<V::Element>,
                    solves: bool,
                ) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { substitution::substitute::<V, $rows, $wide>(a, pointers, solves) }
                }

                /// # Safety
                /// As [`substitution::factor`], on a processor that has the feature.
                #[target_feature(enable = $feature)]
                unsafe fn factor<V: Fused<Element: Real>>(
                    a: *mut V::Element,
                    pointers: Pointers<V::Element>,
                    triangle: [usize; 2],
                ) -> bool {
                    // SAFETY: guaranteed by the caller.
                    unsafe { substitution::factor::<V, $rows, $wide>(a, pointers, triangle) }
                }

                $detected.then_some(Substitution {
                    rows: $rows,
                    lanes: $wide * Self::LANES,
                    substitute: substitute::<Self>,
                    factor: factor::<Self>,
                    squares: $squares,
                })
            }
        })+
    };
}
pub(super) use substitutions;

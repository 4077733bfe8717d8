//! The L D L^T factorisation of a panel of a symmetric matrix, whose pivots are in its diagonal block.
//!
//! Sources: Bunch and Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems, 1977
//! (DOI 10.1090/S0025-5718-1977-0428694-0), as LAPACK's `lasyf` blocks it; Schenk and Gaertner, On fast factorization
//! pivoting methods for sparse symmetric indefinite systems, ETNA 23, 2006, for the pivots of a block.

use super::lu::largest;
use super::strips::{Strips, with_strips};
use super::{FOUR, Triangle, divide, magnitude, solve_triangle, subtract};
use crate::kernels::packed::{PackedMemory, Substitution, TilePlace};
use crate::kernels::{Loop, Real, View, ViewMut, widest};

/// (1 + sqrt 17) / 8: an element of the diagonal that is at least so large, relative to the others of its column, is
/// a pivot. Elements grow least in two steps then.
const ALPHA: f64 = 0.640_388_203_202_207_6;
/// The most columns of a block that plain loops factor, before the rest is updated with them.
const NARROW: usize = 16;

/// Factors the first columns of a symmetric matrix: of a panel of m x n, n <= m, the first n rows, of which the lower
/// triangle is read, become those of L D L^T in the form of LAPACK's `sytrf`, and the others X D^-1, where X L^T is
/// what they were with their columns exchanged. D has blocks of one and two rows on its diagonal; the element beside
/// the diagonal of a block of two takes the place of a zero of L. m n^2 - (2/3) n^3 operations.
///
/// Row and column k were exchanged with row and column `pivots[k]` if that is not negative; in a block of two rows, k
/// and k + 1, both pivots are -(r + 1), and row and column k + 1 were exchanged with r. Exchanges are not applied to
/// columns of L on the left of them. They remain within the first n rows, whatever the others are: elements of L are
/// then not bounded below the block.
///
/// # Errors
/// The first column whose remaining elements in the block are all exactly zero; the panel is then unspecified.
///
/// # Panics
/// If there are more columns than rows, or not as many pivots as columns.
pub fn ldlt_panel<T: Real>(mut panel: ViewMut<T>, pivots: &mut [i64]) -> Result<(), usize> {
    let (m, n) = (panel.rows(), panel.cols());
    assert!(n <= m, "a panel of {m} x {n} has no square part of {n} rows");
    assert_eq!(pivots.len(), n, "a pivot for each column");
    factor_block(Substitution::best(), panel.tile(0, 0, n, n), pivots)?;
    let (mut block, below) = panel.split_at_row(n);
    if below.rows() > 0 {
        let mut elements = Vec::with_capacity(n * n);
        (0..n).for_each(|i| elements.extend_from_slice(block.row(i)));
        let factors = BlockFactors::new(View::dense(&elements, n, n), pivots);
        with_strips(n, |strips| widest(Below { factors: &factors, below, strips }));
    }
    Ok(())
}

/// Factors the diagonal block of a panel by some kernels, on a copy by columns, along which pivots are sought and rows
/// eliminated.
pub(super) fn factor_block<T: Real>(
    kernel: Substitution<T>,
    mut block: ViewMut<T>,
    pivots: &mut [i64],
) -> Result<(), usize> {
    let n = pivots.len();
    let (rows, lanes) = (kernel.rows(), kernel.lanes());
    // With room for tiles that begin in the block.
    let stride = n + lanes;
    let mut memory = PackedMemory::of_thread();
    let [columns, products, factors] = memory.blocks([(n + rows) * stride, NARROW * stride, NARROW * rows]);
    columns.fill(T::ZERO);
    products.fill(T::ZERO);
    kernel.transpose_from(&mut block, columns, stride);
    let (mut first, mut zero) = (0, None);
    while first < n && zero.is_none() {
        let mut end = first;
        let strip = Strip { n, stride, first, columns, products, pivots, end: &mut end, zero: &mut zero };
        widest(strip);
        // The rest, some columns at a time.
        for start in (end..n).step_by(rows) {
            let factors = &mut factors[..(end - first) * rows];
            for (to, product) in factors.chunks_exact_mut(rows).zip(products.chunks_exact(stride)) {
                to.iter_mut().zip(&product[start..]).for_each(|(to, from)| *to = -*from);
            }
            for lane in (start..n).step_by(lanes) {
                let (known, depth, tile) = (first * stride + lane, end - first, start * stride + lane);
                kernel.add_products(factors, columns, TilePlace { known, depth, tile, stride });
            }
        }
        // In the end, columns on the left of an exchange are as they were before it.
        for Exchange { column, rows: [one, other] } in exchanges(&pivots[..end]).into_iter().rev() {
            (first..column).for_each(|j| columns.swap(j * stride + one, j * stride + other));
        }
        first = end;
    }
    for i in 0..n {
        block.row(i)[..=i].iter_mut().enumerate().for_each(|(j, x)| *x = columns[j * stride + i]);
    }
    memory.keep();
    zero.map_or(Ok(()), Err)
}

/// An exchange of two rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exchange {
    /// The first column of the pivot: those before it were factored already.
    column: usize,
    rows: [usize; 2],
}

/// The exchanges that pivots are, in their order.
fn exchanges(pivots: &[i64]) -> Vec<Exchange> {
    let (mut all, mut column) = (Vec::with_capacity(pivots.len()), 0);
    while column < pivots.len() {
        let pivot = pivots[column];
        let (with, width) = if pivot < 0 { (!pivot, 2) } else { (pivot, 1) };
        all.push(Exchange { column, rows: [column + width - 1, with as usize] });
        column += width;
    }
    all
}

/// A symmetric matrix with blocks of one and two rows on its diagonal, as D in L D L^T.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockDiagonal<T> {
    /// The n elements of the diagonal, and the n - 1 beside it, of which those between blocks are zero.
    elements: Vec<T>,
}

impl<T: Real> BlockDiagonal<T> {
    /// D of a diagonal block that [`ldlt_panel`] has factored.
    pub fn of_panel(block: View<T>, pivots: &[i64]) -> Self {
        let n = pivots.len();
        let mut elements = vec![T::ZERO; (2 * n).saturating_sub(1)];
        (0..n).for_each(|i| elements[i] = block.row(i)[i]);
        for Exchange { column, rows } in exchanges(pivots) {
            if rows[0] > column {
                elements[n + column] = block.row(column + 1)[column];
            }
        }
        Self { elements }
    }

    /// The matrix with these [elements](Self::into_elements).
    ///
    /// # Panics
    /// If their number is even.
    pub fn from_elements(elements: &[T]) -> Self {
        assert!(
            elements.len() % 2 == 1,
            "{} elements: one more of the diagonal than beside it",
            elements.len()
        );
        Self { elements: elements.to_vec() }
    }

    /// The n elements of the diagonal, and the n - 1 beside it, of which those between blocks are zero.
    pub fn into_elements(self) -> Vec<T> {
        self.elements
    }

    fn parts(&self) -> [&[T]; 2] {
        let (diagonal, beside) = self.elements.split_at(self.elements.len().div_ceil(2));
        [diagonal, beside]
    }

    /// The inverse matrix, with the same blocks.
    #[must_use]
    pub(crate) fn inverse(&self) -> Self {
        let [diagonal, beside] = self.parts();
        let (n, one) = (diagonal.len(), T::from_f64(1.0));
        let mut inverse = Self { elements: vec![T::ZERO; self.elements.len()] };
        let mut i = 0;
        while i < n {
            if i + 1 < n && beside[i] != T::ZERO {
                let Pair { scale, own } = Pair::new([diagonal[i], diagonal[i + 1]], beside[i]);
                inverse.elements[i] = scale * own[0];
                inverse.elements[i + 1] = scale * own[1];
                inverse.elements[n + i] = -scale;
                i += 2;
            } else {
                inverse.elements[i] = one / diagonal[i];
                i += 1;
            }
        }
        inverse
    }

    /// y := D x.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline(always)]
    pub fn multiply(&self, x: &[T], y: &mut [T]) {
        let [diagonal, beside] = self.parts();
        assert!(x.len() == diagonal.len() && y.len() == x.len(), "{} and {} elements", x.len(), y.len());
        for ((y, x), d) in y.iter_mut().zip(x).zip(diagonal) {
            *y = *d * *x;
        }
        // A block of one row has zeros beside it.
        for ((y, x), d) in y.iter_mut().zip(x.get(1..).unwrap_or_default()).zip(beside) {
            *y = *y + *d * *x;
        }
        for ((y, x), d) in y.get_mut(1..).unwrap_or_default().iter_mut().zip(x).zip(beside) {
            *y = *y + *d * *x;
        }
    }

    /// X := D X, for rows of so many elements, one after the other.
    #[inline(always)]
    fn multiply_rows(&self, x: &mut [T], length: usize) {
        let [diagonal, beside] = self.parts();
        let beside = beside.iter().copied().chain([T::ZERO]);
        let mut rows = x.chunks_exact_mut(length).zip(diagonal).zip(beside);
        while let Some(((row, d), beside)) = rows.next() {
            if beside == T::ZERO {
                row.iter_mut().for_each(|x| *x = *d * *x);
            } else if let Some(((next, d_of_next), _)) = rows.next() {
                for (x, y) in row.iter_mut().zip(next) {
                    (*x, *y) = (*d * *x + beside * *y, *d_of_next * *y + beside * *x);
                }
            }
        }
    }
}

/// The inverse of a symmetric matrix of two rows, as LAPACK computes it: `scale` times `own` on its diagonal, and
/// times -1 beside it.
struct Pair<T> {
    scale: T,
    own: [T; 2],
}

impl<T: Real> Pair<T> {
    #[inline(always)]
    fn new(diagonal: [T; 2], beside: T) -> Self {
        let own = [diagonal[1] / beside, diagonal[0] / beside];
        let one = T::from_f64(1.0);
        Self { scale: one / (own[0] * own[1] - one) / beside, own }
    }
}

/// The factors of a diagonal block: P A P^T = L D L^T.
#[derive(Debug, Clone)]
pub struct BlockFactors<T> {
    /// Row by row, with ones on the diagonal.
    l: Vec<T>,
    d: BlockDiagonal<T>,
    exchanges: Vec<Exchange>,
}

impl<T: Real> BlockFactors<T> {
    /// Those of a block that [`ldlt_panel`] has factored, the first n rows of its panel.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn new(block: View<T>, pivots: &[i64]) -> Self {
        let n = block.rows();
        assert!(block.cols() == n && pivots.len() == n, "{n} x {}, {} pivots", block.cols(), pivots.len());
        let exchanges = exchanges(pivots);
        let mut l = vec![T::ZERO; n * n];
        for i in 0..n {
            l[i * n..i * n + i].copy_from_slice(&block.row(i)[..i]);
            l[i * n + i] = T::from_f64(1.0);
        }
        for Exchange { column, rows: [one, other] } in &exchanges {
            if one > column {
                l[one * n + column] = T::ZERO;
            }
            if other > one {
                let (upper, lower) = l.split_at_mut(other * n);
                upper[one * n..][..*column].swap_with_slice(&mut lower[..*column]);
            }
        }
        Self { l, d: BlockDiagonal::of_panel(block, pivots), exchanges }
    }

    fn l(&self) -> View<'_, T> {
        let n = self.d.parts()[0].len();
        View::dense(&self.l, n, n)
    }

    /// X := L^-1 P X.
    ///
    /// # Panics
    /// If there are not as many rows.
    pub fn solve_lower(&self, mut x: ViewMut<T>) {
        self.exchanges.iter().for_each(|exchange| swap_rows(&mut x, exchange.rows));
        solve_triangle(Triangle::UnitLower, self.l(), x);
    }

    /// X := D^-1 X.
    ///
    /// # Panics
    /// If there are not as many rows.
    pub fn solve_diagonal(&self, mut x: ViewMut<T>) {
        let [diagonal, beside] = self.d.parts();
        assert_eq!(x.rows(), diagonal.len(), "a row for each of D");
        for Exchange { column, rows } in &self.exchanges {
            if rows[0] == *column {
                divide(x.row(*column), diagonal[*column]);
                continue;
            }
            let Pair { scale, own } = Pair::new([diagonal[*column], diagonal[column + 1]], beside[*column]);
            let (mut upper, mut lower) = x.reborrow().split_at_row(column + 1);
            for (x, y) in upper.row(*column).iter_mut().zip(lower.row(0)) {
                (*x, *y) = (scale * (own[0] * *x - *y), scale * (own[1] * *y - *x));
            }
        }
    }

    /// X := P^T L^-T X.
    ///
    /// # Panics
    /// If there are not as many rows.
    pub fn solve_upper(&self, mut x: ViewMut<T>) {
        solve_triangle(Triangle::UnitLowerTransposed, self.l(), x.reborrow());
        self.exchanges.iter().rev().for_each(|exchange| swap_rows(&mut x, exchange.rows));
    }
}

fn swap_rows<T: Real>(x: &mut ViewMut<T>, [one, other]: [usize; 2]) {
    if other > one {
        let (mut upper, mut lower) = x.reborrow().split_at_row(other);
        upper.row(one).swap_with_slice(lower.row(0));
    }
}

/// Solves X D L^T = B for the rows below a block, whose columns are exchanged, by strips of rows.
struct Below<'a, 'm, T> {
    factors: &'a BlockFactors<T>,
    below: ViewMut<'a, T>,
    strips: Strips<'m, T>,
}

impl<T: Real> Loop for Below<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { factors, mut below, mut strips } = self;
        let (n, lanes, l, inverse) = (below.cols(), strips.lanes(), factors.l(), factors.d.inverse());
        // The reciprocals of ones are themselves.
        strips.pack(n, |i, j| l.row(i)[j]);
        for first in (0..below.rows()).step_by(lanes) {
            let mut part = below.tile(first, 0, lanes.min(below.rows() - first), n);
            strips.kernel.transpose_from(&mut part, strips.strip, lanes);
            let mut x = ViewMut::dense(&mut *strips.strip, n, lanes);
            factors.exchanges.iter().for_each(|exchange| swap_rows(&mut x, exchange.rows));
            strips.solve_all(n);
            inverse.multiply_rows(&mut strips.strip[..n * lanes], lanes);
            strips.kernel.transpose_to(strips.strip, lanes, &mut part);
        }
    }
}

/// Some columns of a block, which are factored by plain loops.
struct Strip<'a, T> {
    n: usize,
    /// From one column to the next.
    stride: usize,
    /// The first column.
    first: usize,
    /// The block's lower triangle, by columns.
    columns: &'a mut [T],
    /// L D of the columns from `first` on, by columns.
    products: &'a mut [T],
    pivots: &'a mut [i64],
    /// The column after the last.
    end: &'a mut usize,
    /// The column whose elements are all zero.
    zero: &'a mut Option<usize>,
}

impl<T: Real> Loop for Strip<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        let (n, first) = (self.n, self.first);
        // A pivot of two columns may be the last.
        let limit = if n - first <= NARROW { n } else { first + NARROW - 1 };
        let mut k = first;
        while k < limit {
            let Some(pivot) = self.choose(k) else {
                *self.zero = Some(k);
                return;
            };
            self.exchange(pivot);
            self.eliminate(pivot);
            k = pivot.rows[0] + 1;
        }
        *self.end = k;
    }
}

impl<T: Real> Strip<'_, T> {
    /// Finds the next pivot, of one or two columns, of which it leaves the updated elements in `products`. None if all
    /// are zero.
    #[inline(always)]
    fn choose(&mut self, k: usize) -> Option<Exchange> {
        let (n, stride, alpha) = (self.n, self.stride, T::from_f64(ALPHA));
        let place = (k - self.first) * stride;
        self.products[place + k..place + n].copy_from_slice(&self.columns[k * stride + k..k * stride + n]);
        self.update(k, k, k - self.first);
        let own = magnitude(self.products[place + k]);
        let others = &self.products[place + k + 1..place + n];
        let at = largest(others);
        let most = others.get(at).map_or(T::ZERO, |x| magnitude(*x));
        let other = k + 1 + at;
        if own == T::ZERO && most == T::ZERO {
            return None;
        }
        let alone = Some(Exchange { column: k, rows: [k, k] });
        // Not a number, if elements are too large, is let through.
        if others.is_empty() || own >= alpha * most {
            return alone;
        }
        let next = place + stride;
        (k..other).for_each(|j| self.products[next + j] = self.columns[j * stride + other]);
        self.products[next + other..next + n]
            .copy_from_slice(&self.columns[other * stride + other..other * stride + n]);
        self.update(k, other, k + 1 - self.first);
        let candidate = &self.products[next..next + n];
        let most_beside = |elements: &[T]| elements.iter().map(|x| magnitude(*x)).fold(T::ZERO, larger);
        let most_there = larger(most_beside(&candidate[k..other]), most_beside(&candidate[other + 1..]));
        if own >= alpha * most * (most / most_there) {
            return alone;
        }
        if magnitude(candidate[other]) >= alpha * most_there {
            let (to, from) = self.products[place..].split_at_mut(stride);
            to[k..n].copy_from_slice(&from[k..n]);
            return Some(Exchange { column: k, rows: [k, other] });
        }
        Some(Exchange { column: k, rows: [k + 1, other] })
    }

    /// Subtracts, from the elements below row `k` in a column of `products` that holds column `of` of the block, what
    /// the columns of this strip before it contribute.
    #[inline(always)]
    fn update(&mut self, k: usize, of: usize, column: usize) {
        let (n, stride, first) = (self.n, self.stride, self.first);
        let (known, rest) = self.products.split_at_mut(column * stride);
        let x = &mut rest[k..n];
        let count = k - first;
        let factor = |p: usize| known[p * stride + of];
        let l = |p: usize| &self.columns[(first + p) * stride + k..(first + p) * stride + n];
        let fours = count / FOUR * FOUR;
        for p in (0..fours).step_by(FOUR) {
            let places: [usize; FOUR] = std::array::from_fn(|i| p + i);
            subtract(x, places.map(factor), places.map(l));
        }
        (fours..count).for_each(|p| subtract(x, [factor(p)], [l(p)]));
    }

    /// Exchanges the rows and columns of a pivot, except in columns that were factored before the strip.
    #[inline(always)]
    fn exchange(&mut self, Exchange { column, rows: [one, other] }: Exchange) {
        let (n, stride, first) = (self.n, self.stride, self.first);
        let two = one > column;
        let pivot = if two { !(other as i64) } else { other as i64 };
        self.pivots[column..=one].fill(pivot);
        if other == one {
            return;
        }
        // The columns of the pivot itself are written by `eliminate`.
        self.columns[other * stride + other] = self.columns[one * stride + one];
        (one + 1..other).for_each(|j| self.columns[j * stride + other] = self.columns[one * stride + j]);
        self.columns.copy_within(one * stride + other + 1..one * stride + n, other * stride + other + 1);
        (first..column).for_each(|j| self.columns.swap(j * stride + one, j * stride + other));
        (0..=one - first).for_each(|p| self.products.swap(p * stride + one, p * stride + other));
    }

    /// Computes the columns of L of a pivot.
    #[inline(always)]
    fn eliminate(&mut self, Exchange { column: k, rows }: Exchange) {
        let (n, stride) = (self.n, self.stride);
        let place = (k - self.first) * stride;
        if rows[0] == k {
            let column = &mut self.columns[k * stride + k..k * stride + n];
            column.copy_from_slice(&self.products[place + k..place + n]);
            let (pivot, below) = column.split_at_mut(1);
            divide(below, pivot[0]);
            return;
        }
        let (one, other) = self.products[place..place + 2 * stride].split_at(stride);
        let Pair { scale, own } = Pair::new([one[k], other[k + 1]], one[k + 1]);
        let (one, other) = (&one[..n], &other[..n]);
        let (left, right) = self.columns[k * stride..(k + 2) * stride].split_at_mut(stride);
        left[k..k + 2].copy_from_slice(&one[k..k + 2]);
        right[k + 1] = other[k + 1];
        let below = left[k + 2..].iter_mut().zip(&mut right[k + 2..]);
        for ((left, right), (x, y)) in below.zip(one[k + 2..].iter().zip(&other[k + 2..])) {
            *left = scale * (own[0] * *x - *y);
            *right = scale * (own[1] * *y - *x);
        }
    }
}

#[inline(always)]
fn larger<T: Real>(x: T, y: T) -> T {
    if y > x { y } else { x }
}

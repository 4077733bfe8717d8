//! What is computed with tiles: panels are factored, rows of U solved for, and tiles updated, by several threads.

use apportion::error::Result;
use apportion::geometry::{Rect, Span};
use apportion::kernels::factor::{
    BlockDiagonal, Triangle, cholesky_panel, exchange_rows, ldlt_panel, lu_panel, solve_triangle,
};
use apportion::kernels::{Kernel, Real, View, ViewMut};
use apportion::plan::Factors;
use apportion::run::parallel;
use std::ops::Range;

/// Factors a panel of as many columns as there are pivots; returns the column that cannot be.
pub(crate) fn factor_panel<T: Real>(
    factors: Factors,
    panel: &mut [T],
    pivots: &mut [i64],
    threads: usize,
) -> Result<Option<usize>> {
    let width = pivots.len();
    let rows = panel.len() / width;
    match factors {
        Factors::Cholesky => cholesky_together(panel, width, threads),
        Factors::Lu => Ok(lu_panel(ViewMut::dense(panel, rows, width), pivots)),
        Factors::Ldlt => Ok(ldlt_panel(ViewMut::dense(panel, rows, width), pivots).err()),
    }
}

/// The numbers that travel with a factored panel after the mark of failure: the pivots of LU, or D of L D L^T.
pub(crate) fn numbers_with_panel<T: Real>(factors: Factors, block: View<T>, pivots: &[i64]) -> Vec<T> {
    match factors {
        Factors::Cholesky => Vec::new(),
        Factors::Lu => pivots.iter().map(|pivot| T::from_f64(*pivot as f64)).collect(),
        Factors::Ldlt => BlockDiagonal::of_panel(block, pivots).into_elements(),
    }
}

/// Puts -D L^T of some rows of L, of which there are `across`, side by side.
pub(crate) fn turn_rows<'a, T: Real>(
    rows: impl Iterator<Item = &'a [T]>,
    [width, across]: [usize; 2],
    d: Option<&BlockDiagonal<T>>,
    factor: &mut Vec<T>,
) {
    factor.clear();
    factor.resize(width * across, T::ZERO);
    let mut product = vec![T::ZERO; width];
    for (j, row) in rows.enumerate() {
        match d {
            Some(d) => d.multiply(row, &mut product),
            None => product.copy_from_slice(row),
        }
        for (p, x) in product.iter().enumerate() {
            factor[p * across + j] = -*x;
        }
    }
}

/// C := C + L U for block columns from their diagonals on, whose rows are those of C.
pub(crate) fn update_trapezoid<T: Real>(
    kernel: Kernel<T>,
    [l, u]: [View<T>; 2],
    c: ViewMut<T>,
    steps: &[Step],
    threads: usize,
) -> Result<()> {
    let (mut rest, mut bands) = (c, Vec::new());
    for band in bands_of(steps, l.rows(), threads) {
        let (upper, lower) = rest.split_at_row(band.len());
        rest = lower;
        bands.push((band, upper));
    }
    parallel::all(bands, |(band, c)| {
        let top = band.start;
        Trapezoid { kernel, l, u, c, top }.update(steps, band);
    })
}

/// Factors a panel of `width` columns; returns the column that cannot be. Each thread factors the diagonal block, and
/// with it some of the rows below: the same bytes as on one.
pub(crate) fn cholesky_together<T: Real>(
    panel: &mut [T],
    width: usize,
    threads: usize,
) -> Result<Option<usize>> {
    let factor = |rows: &mut [T]| {
        let height = rows.len() / width;
        cholesky_panel(ViewMut::dense(rows, height, width)).err()
    };
    let below = panel.len() / width - width;
    let count = threads.min(below / (4 * width)).max(1);
    if count == 1 {
        return Ok(factor(panel));
    }
    let diagonal = panel[..width * width].to_vec();
    let (mine, rest) = panel.split_at_mut((width + below / count) * width);
    let mut failed = None;
    let mut parts = vec![(mine, Some(&mut failed))];
    let height = (below - below / count).div_ceil(count - 1);
    parts.extend(rest.chunks_mut(height * width).map(|rows| (rows, None)));
    parallel::all(parts, |(rows, failed): (&mut [T], Option<&mut Option<usize>>)| match failed {
        Some(failed) => *failed = factor(rows),
        None => {
            let mut whole = [&diagonal, &*rows].concat();
            // Where the diagonal block cannot be factored, the first thread says so.
            if factor(&mut whole).is_none() {
                rows.copy_from_slice(&whole[width * width..]);
            }
        }
    })?;
    Ok(failed)
}

/// Exchanges rows of the columns right of a panel, and solves for those of U.
pub(crate) fn solve_rows<T: Real>(
    l: View<T>,
    pivots: &[i64],
    right: ViewMut<T>,
    threads: usize,
) -> Result<()> {
    let (rows, width, across) = (right.rows(), l.cols(), right.cols());
    let count = threads.min(across.div_ceil(64)).max(1);
    let rect = |t: usize| {
        let cols = Span::new((t * across / count) as u64, ((t + 1) * across / count) as u64);
        Rect::new(Span::new(0, rows as u64), cols)
    };
    let tiles = right.into_tiles(&(0..count).map(rect).collect::<Vec<_>>());
    parallel::all(tiles, |mut tile: ViewMut<T>| {
        exchange_rows(tile.reborrow(), pivots);
        let (upper, _) = tile.split_at_row(width);
        solve_triangle(Triangle::UnitLower, l.tile(0, 0, width, width), upper);
    })
}

/// The first rows, negative.
pub(crate) fn negate_rows<T: Real>(count: usize, rows: &mut ViewMut<T>, negative: &mut Vec<T>) {
    negative.clear();
    (0..count).for_each(|i| negative.extend(rows.row(i).iter().map(|x| -*x)));
}

/// C := C + L U; each thread in rows of its own.
pub(crate) fn update_rows<T: Real>(
    kernel: Kernel<T>,
    l: View<T>,
    u: View<T>,
    c: ViewMut<T>,
    threads: usize,
) -> Result<()> {
    let (rows, width) = (l.rows(), l.cols());
    let count = threads.min(rows).max(1);
    let (mut rest, mut parts) = (c, Vec::new());
    for t in 0..count {
        let (first, end) = (t * rows / count, (t + 1) * rows / count);
        let (mine, others) = rest.split_at_row(end - first);
        rest = others;
        parts.push((l.tile(first, 0, end - first, width), mine));
    }
    parallel::all(parts, |(l, c)| kernel.update(l, u, c))
}

/// A block column of the trapezoid below a panel of a symmetric matrix: its rows begin at the diagonal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// First row, below the panel's diagonal block.
    pub row: usize,
    /// First column here.
    pub col: usize,
    pub width: usize,
}

/// Bands of rows with about equal parts of a trapezoid.
pub(crate) fn bands_of(steps: &[Step], rows: usize, count: usize) -> Vec<Range<usize>> {
    let area = |end: usize| steps.iter().map(|step| end.saturating_sub(step.row) * step.width).sum::<usize>();
    let all = area(rows);
    let count = count.max(1);
    let cut = |t: usize| {
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = usize::midpoint(low, high);
            if area(middle) * count < all * t { low = middle + 1 } else { high = middle }
        }
        low
    };
    let cuts: Vec<usize> = (0..=count).map(|t| if t == count { rows } else { cut(t) }).collect();
    cuts.windows(2).map(|two| two[0]..two[1]).collect()
}

/// C := C + L U for the elements of C from the diagonal of the matrix down.
pub(crate) struct Trapezoid<'a, 'c, T> {
    pub kernel: Kernel<T>,
    pub l: View<'a, T>,
    pub u: View<'a, T>,
    pub c: ViewMut<'c, T>,
    /// The row of the first row of C.
    pub top: usize,
}

impl<T: Real> Trapezoid<'_, '_, T> {
    /// Updates some block columns in these rows. What lies below the last of them is as wide as they all are: wide
    /// products, and narrow ones for the rest, which is cut in halves.
    pub(crate) fn update(&mut self, steps: &[Step], rows: Range<usize>) {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        if let [_] = steps {
            return self.rectangle(first, last, rows.start.max(first.row)..rows.end);
        }
        let (left, right) = steps.split_at(steps.len() / 2);
        let cut = right[0].row.clamp(rows.start, rows.end);
        self.update(left, rows.start..cut);
        self.rectangle(first, &left[left.len() - 1], cut..rows.end);
        self.update(right, cut..rows.end);
    }

    fn rectangle(&mut self, first: &Step, last: &Step, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let (cols, width) = (first.col..last.col + last.width, self.l.cols());
        let l = self.l.tile(rows.start, 0, rows.len(), width);
        let u = self.u.tile(0, cols.start, width, cols.len());
        self.kernel.update(l, u, self.c.tile(rows.start - self.top, cols.start, rows.len(), cols.len()));
    }
}

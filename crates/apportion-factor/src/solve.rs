//! Linear systems by factors: substitution, a step of iterative refinement, and the condition of the matrix.
//!
//! A substitution has n^2 operations for a right-hand side and one step for each block column, in which the owner of
//! the column solves for its unknowns; what they contribute to later rows it sums itself, and sends the rows that are
//! solved next. All processes take part in every step.

use crate::factor::shift_pivot;
use crate::vectors::{TOGETHER, Vectors, frobenius, multiply, numbers_of, ordered_sum, scale_of};
use crate::{LocalColumns, MOST_SCALED};
use apportion::error::{Error, Result};
use apportion::kernels::factor::{BlockFactors, Triangle, solve_triangle};
use apportion::kernels::{Real, View, ViewMut, gemm};
use apportion::plan::{BlockColumns, Factors};
use apportion::run::World;
use std::ops::Range;

/// The factors of a matrix, by block columns of processors.
pub(crate) struct Factored<'a, T> {
    pub factors: Factors,
    pub blocks: &'a BlockColumns,
    /// This process's block columns, by rank.
    pub columns: &'a [LocalColumns<T>],
    pub pivots: &'a [i64],
    pub world: &'a World,
}

/// A system's solution, and how good it is.
#[derive(Debug, Clone)]
pub struct Solution<T> {
    /// X, n x r, row by row; on every process.
    pub x: Vec<T>,
    /// The largest of `||A x - b|| / (||A|| ||x|| n eps)` over all right-hand sides, in the Frobenius and Euclidean
    /// norms, before and after the step of refinement.
    pub residuals: [f64; 2],
    /// An estimate of the condition number `||A|| ||A^-1||` in the norm of column sums, from below.
    pub condition: f64,
}

/// Solves A X = B by the factors of A, refines X once, and checks it. `original` are the block columns of A, of which a
/// symmetric matrix's lower triangle stands for all; B is n x r, row by row, the same on every process.
///
/// # Errors
/// The residual is above [`MOST_SCALED`]: exit code 1; a lost rank. Known to all ranks.
pub(crate) fn solve<T: Real>(
    factored: &Factored<'_, T>,
    original: &[LocalColumns<T>],
    b: &[T],
) -> Result<Solution<T>> {
    let (n, world) = (factored.blocks.n() as usize, factored.world);
    let sides = b.len() / n;
    let symmetric = factored.factors.is_symmetric();
    let how = (symmetric, scale_of(original, world)?);
    let norm = frobenius(original, how, world)?;
    let mut x = b.to_vec();
    factored.solve(&mut x)?;
    let mut rest = remainder(original, how, &x, b, world)?;
    let before = scaled::<T>(&rest, &x, n, norm);
    let mut residuals = [before; 2];
    let mut step: Vec<T> = rest.iter().map(|r| T::from_f64(r / how.1)).collect();
    factored.solve(&mut step)?;
    let refined: Vec<T> = x.iter().zip(&step).map(|(x, d)| *x + *d).collect();
    rest = remainder(original, how, &refined, b, world)?;
    let after = scaled::<T>(&rest, &refined, n, norm);
    // A step may make a solution worse where the matrix is nearly singular.
    if after <= before || before.is_nan() {
        x = refined;
        residuals[1] = after;
    }
    let condition = factored.condition(column_sums(original, symmetric, n, world)?)?;
    let right = residuals[1] <= MOST_SCALED;
    world.all_ok(if right { Ok(()) } else { Err(wrong(residuals[1])) })?;
    debug_assert_eq!(x.len(), n * sides);
    Ok(Solution { x, residuals, condition })
}

fn wrong(residual: f64) -> Error {
    let what =
        format!("the residual of the solution is {residual:.3e} times n ||A|| ||x|| eps, more than 30");
    Error::WrongResult { what }
}

/// B - A X, scaled as A is, in double precision.
fn remainder<T: Real>(
    original: &[LocalColumns<T>],
    how: (bool, f64),
    x: &[T],
    b: &[T],
    world: &World,
) -> Result<Vec<f64>> {
    let mut rest: Vec<f64> = b.iter().map(|b| b.to_f64() * how.1).collect();
    let n = original[0].rows();
    let sides = b.len() / n;
    for first in (0..sides).step_by(TOGETHER) {
        let some = first..(first + TOGETHER).min(sides);
        let vectors: Vectors = (0..n)
            .map(|i| {
                let mut row = [0.0; TOGETHER];
                let from = x[i * sides..][some.clone()].iter();
                row.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64());
                row
            })
            .collect();
        let images = multiply(original, how, &vectors, world)?;
        for (i, image) in images.iter().enumerate() {
            let to = rest[i * sides..][some.clone()].iter_mut();
            to.zip(image).for_each(|(to, image)| *to -= image);
        }
    }
    Ok(rest)
}

/// The largest scaled residual of all right-hand sides.
fn scaled<T: Real>(rest: &[f64], x: &[T], n: usize, norm: f64) -> f64 {
    let sides = x.len() / n;
    let length = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    let one = |side: usize| {
        let residual = length(&mut rest.iter().skip(side).step_by(sides).copied());
        let solution = length(&mut x.iter().skip(side).step_by(sides).map(|x| x.to_f64()));
        // A right-hand side of zeros has a solution of zeros.
        if residual == 0.0 { 0.0 } else { residual / (norm * solution * n as f64 * T::EPSILON / 2.0) }
    };
    // The larger of a number and NaN is the number, which must not hide it.
    (0..sides).map(one).fold(0.0, |most, x| if x.is_nan() || x > most { x } else { most })
}

/// The largest sum of the magnitudes of a column.
fn column_sums<T: Real>(
    original: &[LocalColumns<T>],
    symmetric: bool,
    n: usize,
    world: &World,
) -> Result<f64> {
    let one = |local: &LocalColumns<T>| {
        let mut sums = vec![0.0; n];
        let columns: Vec<u64> = local.columns().collect();
        for (i, row) in local.elements().chunks_exact(local.width().max(1)).enumerate() {
            for (x, &j) in row.iter().zip(&columns) {
                if symmetric && j > i as u64 {
                    continue;
                }
                let x = x.to_f64().abs();
                sums[j as usize] += x;
                if symmetric && j < i as u64 {
                    sums[i] += x;
                }
            }
        }
        sums
    };
    let sums = ordered_sum(original.iter().map(one).collect(), world)?;
    Ok(sums.into_iter().fold(0.0, f64::max))
}

impl<T: Real> Factored<'_, T> {
    fn n(&self) -> usize {
        self.blocks.n() as usize
    }

    /// X := A^-1 X.
    fn solve(&self, x: &mut [T]) -> Result<()> {
        match self.factors {
            Factors::Cholesky => {
                self.by_columns(Triangle::Lower, x)?;
                self.by_rows(Triangle::LowerTransposed, x)
            }
            Factors::Ldlt => {
                self.by_columns(Triangle::UnitLower, x)?;
                self.by_rows(Triangle::UnitLowerTransposed, x)
            }
            Factors::Lu => {
                let sides = x.len() / self.n();
                for (i, &pivot) in self.pivots.iter().enumerate() {
                    exchange(x, sides, i, pivot as usize);
                }
                self.by_columns(Triangle::UnitLower, x)?;
                self.by_columns(Triangle::Upper, x)
            }
        }
    }

    /// X := A^-T X.
    fn solve_transposed(&self, x: &mut [T]) -> Result<()> {
        if self.factors.is_symmetric() {
            return self.solve(x);
        }
        self.by_rows(Triangle::UpperTransposed, x)?;
        self.by_rows(Triangle::UnitLowerTransposed, x)?;
        let sides = x.len() / self.n();
        for (i, &pivot) in self.pivots.iter().enumerate().rev() {
            exchange(x, sides, i, pivot as usize);
        }
        Ok(())
    }

    /// This process's block columns with one of them, if it owns that, and the place of the first column there.
    fn owned(&self, block: usize) -> Option<(usize, usize)> {
        let rank = self.blocks.owner(block);
        let at = self.columns.iter().position(|local| local.rank() == rank)?;
        let place = self.blocks.places(rank, block..block + 1);
        Some((at, self.columns[at].range(place).start))
    }

    fn rows(&self, block: usize) -> Range<usize> {
        let span = self.blocks.span(block);
        span.start as usize..span.end as usize
    }

    /// The factors of a diagonal block of L D L^T, whose rows were exchanged among themselves; None of others.
    fn block_factors(&self, diagonal: View<T>, rows: &Range<usize>) -> Option<BlockFactors<T>> {
        let inside = |pivot: &i64| shift_pivot(*pivot, -(rows.start as i64));
        let pivots = || self.pivots[rows.clone()].iter().map(inside).collect::<Vec<i64>>();
        (self.factors == Factors::Ldlt).then(|| BlockFactors::new(diagonal, &pivots()))
    }

    /// The block columns in the order in which a triangle's unknowns are solved.
    fn order(&self, forward: bool) -> Box<dyn Iterator<Item = usize>> {
        let all = 0..self.blocks.count();
        if forward { Box::new(all) } else { Box::new(all.rev()) }
    }

    /// Solves with a triangle that is stored by the columns of its unknowns, and with D of L D L^T at once.
    fn by_columns(&self, triangle: Triangle, x: &mut [T]) -> Result<()> {
        let (n, forward) = (self.n(), triangle != Triangle::Upper);
        let sides = x.len() / n;
        let mut sums = vec![vec![T::ZERO; x.len()]; self.columns.len()];
        for block in self.order(forward) {
            let rows = self.rows(block);
            let here = rows.start * sides..rows.end * sides;
            let parts = sums.iter().flat_map(|sums| &sums[here.clone()]).copied().collect();
            for part in self.of_all(parts)?.chunks_exact(here.len().max(1)) {
                x[here.clone()].iter_mut().zip(part).for_each(|(x, y)| *x = *x - *y);
            }
            let Some((at, column)) = self.owned(block) else { continue };
            let matrix = self.columns[at].view();
            let diagonal = matrix.tile(rows.start, column, rows.len(), rows.len());
            let unknowns = &mut x[here];
            let block = self.block_factors(diagonal, &rows);
            match &block {
                Some(block) => block.solve_lower(ViewMut::dense(unknowns, rows.len(), sides)),
                None => solve_triangle(triangle, diagonal, ViewMut::dense(unknowns, rows.len(), sides)),
            }
            let rest = if forward { rows.end..n } else { 0..rows.start };
            let beside = matrix.tile(rest.start, column, rest.len(), rows.len());
            let sums = &mut sums[at][rest.start * sides..rest.end * sides];
            gemm(beside, View::dense(unknowns, rows.len(), sides), ViewMut::dense(sums, rest.len(), sides));
            if let Some(block) = block {
                block.solve_diagonal(ViewMut::dense(unknowns, rows.len(), sides));
            }
        }
        self.share(x)
    }

    /// Solves with a triangle whose columns of unknowns are the rows of what is stored.
    fn by_rows(&self, triangle: Triangle, x: &mut [T]) -> Result<()> {
        let (n, forward) = (self.n(), triangle == Triangle::UpperTransposed);
        let sides = x.len() / n;
        for block in self.order(forward) {
            let rows = self.rows(block);
            if let Some((at, column)) = self.owned(block) {
                let matrix = self.columns[at].view();
                let solved = if forward { 0..rows.start } else { rows.end..n };
                let mut turned = vec![T::ZERO; rows.len() * solved.len()];
                for (p, i) in solved.clone().enumerate() {
                    let row = &matrix.row(i)[column..column + rows.len()];
                    row.iter().enumerate().for_each(|(j, y)| turned[j * solved.len() + p] = -*y);
                }
                let mut unknowns = x[rows.start * sides..rows.end * sides].to_vec();
                let known = View::dense(&x[solved.start * sides..solved.end * sides], solved.len(), sides);
                let turned = View::dense(&turned, rows.len(), solved.len());
                gemm(turned, known, ViewMut::dense(&mut unknowns, rows.len(), sides));
                let diagonal = matrix.tile(rows.start, column, rows.len(), rows.len());
                match self.block_factors(diagonal, &rows) {
                    Some(block) => block.solve_upper(ViewMut::dense(&mut unknowns, rows.len(), sides)),
                    None => {
                        solve_triangle(triangle, diagonal, ViewMut::dense(&mut unknowns, rows.len(), sides))
                    }
                }
                x[rows.start * sides..rows.end * sides].copy_from_slice(&unknowns);
            }
            self.share_block(x, block)?;
        }
        Ok(())
    }

    /// The numbers of all processes, by rank.
    fn of_all(&self, numbers: Vec<T>) -> Result<Vec<T>> {
        if self.world.is_solo() {
            return Ok(numbers);
        }
        let all = self.world.all_gather(bytemuck::cast_slice(&numbers))?;
        Ok(numbers_of(&all.concat()))
    }

    /// Gives every process the unknowns of a block, which its owner has.
    fn share_block(&self, x: &mut [T], block: usize) -> Result<()> {
        if self.world.is_solo() {
            return Ok(());
        }
        let (rows, sides) = (self.rows(block), x.len() / self.n());
        let here = rows.start * sides..rows.end * sides;
        let mine = if self.owned(block).is_some() { x[here.clone()].to_vec() } else { Vec::new() };
        x[here].copy_from_slice(&self.of_all(mine)?);
        Ok(())
    }

    /// Gives every process all unknowns, of which each owner has those of its block columns.
    fn share(&self, x: &mut [T]) -> Result<()> {
        (0..self.blocks.count()).try_for_each(|block| self.share_block(x, block))
    }

    /// An estimate of `||A|| ||A^-1||` from below, where `norm` is that of A.
    ///
    /// Source: Higham, FORTRAN codes for estimating the one-norm of a real or complex matrix, 1988 (DOI
    /// 10.1145/50063.214386), algorithm 2.4.
    fn condition(&self, norm: f64) -> Result<f64> {
        let n = self.n();
        let magnitudes = |x: &[T]| x.iter().map(|x| x.to_f64().abs()).sum::<f64>();
        let mut x = vec![T::from_f64(1.0 / n as f64); n];
        self.solve(&mut x)?;
        let mut inverse = magnitudes(&x);
        let mut last = None;
        for _ in 0..5 {
            let mut z: Vec<T> =
                x.iter().map(|x| T::from_f64(if *x < T::ZERO { -1.0 } else { 1.0 })).collect();
            self.solve_transposed(&mut z)?;
            let place =
                |best: usize, i: usize| if z[i].to_f64().abs() > z[best].to_f64().abs() { i } else { best };
            let largest = (0..n).fold(0, place);
            if last == Some(largest) {
                break;
            }
            last = Some(largest);
            let mut next = vec![T::ZERO; n];
            next[largest] = T::from_f64(1.0);
            self.solve(&mut next)?;
            let found = magnitudes(&next);
            if found <= inverse {
                break;
            }
            (inverse, x) = (found, next);
        }
        // A vector that grows and alternates finds what the search misses.
        let growing = |i: usize| {
            let sign = if i.is_multiple_of(2) { 1.0 } else { -1.0 };
            T::from_f64(sign * (1.0 + i as f64 / (n.max(2) - 1) as f64))
        };
        let mut alternating: Vec<T> = (0..n).map(growing).collect();
        self.solve(&mut alternating)?;
        let other = 2.0 * magnitudes(&alternating) / (3.0 * n as f64);
        Ok(norm * inverse.max(other))
    }
}

/// Exchanges two rows of `sides` elements.
fn exchange<T: Real>(x: &mut [T], sides: usize, i: usize, j: usize) {
    if i != j {
        let (upper, lower) = x.split_at_mut(j * sides);
        upper[i * sides..][..sides].swap_with_slice(&mut lower[..sides]);
    }
}

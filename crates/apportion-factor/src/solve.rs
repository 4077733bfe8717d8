//! Linear systems by factors: substitution, iterative refinement, and the condition of the matrix.
//!
//! A substitution has n^2 operations for a right-hand side and one step for each block column. With many right-hand
//! sides, each processor has some of them, in proportion to its part of the matrix, and block columns travel to all,
//! one after the other: (p - 1) n^2 elements, whatever the number of right-hand sides. With few, block columns stay where
//! they are: in each step the owner of one solves for its unknowns, sums what they contribute to later rows, and gives
//! the others the rows that are solved next: about 2 (p + 1) r n elements for each process. The processors of one
//! process read block columns in place; its threads divide rows and right-hand sides as they come.

use crate::bands::largest_column_sum;
use crate::factor::shift_pivot;
use crate::products::Products;
use crate::system::System;
use crate::vectors::numbers_of;
use crate::{LocalColumns, MOST_SCALED};
use apportion::error::{Error, Result};
use apportion::kernels::factor::{BlockFactors, Triangle};
use apportion::kernels::{Real, View, ViewMut};
use apportion::plan::{Factors, TileMap};
use apportion::run::World;
use std::ops::Range;
use std::time::Instant;

/// The factors of a matrix, by block columns of processors.
pub(crate) struct Factored<'a, T> {
    pub factors: Factors,
    pub blocks: &'a TileMap,
    /// This process's block columns, by rank.
    pub columns: &'a [LocalColumns<T>],
    pub pivots: &'a [i64],
    pub world: &'a World,
    /// Number of threads of this process.
    pub threads: usize,
    /// They are factors of the matrix times this.
    pub scale: f64,
    /// Part of the whole work of each processor, by rank: right-hand sides are divided so.
    pub work: &'a [f64],
}

/// A system's solution, and how good it is.
#[derive(Debug, Clone)]
pub(crate) struct Solution<T> {
    /// X, n x r, row by row; on every process.
    pub x: Vec<T>,
    /// The largest of `||A x - b|| / (||A|| ||x|| n eps)` over all right-hand sides, in the Frobenius and Euclidean
    /// norms, before and after refinement.
    pub residuals: [f64; 2],
    /// Number of steps of refinement.
    pub steps: usize,
    /// An estimate of the condition number `||A|| ||A^-1||` in the norm of column sums, from below.
    pub condition: f64,
    /// Seconds of the first substitution.
    pub substitution_seconds: f64,
}

/// Why factors of less precision than the matrix do not do.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub why: String,
    /// Steps of refinement until that was clear.
    pub steps: usize,
}

/// The most steps of refinement by factors of less precision, as in LAPACK's dsgesv.
const MOST_STEPS: usize = 30;

/// Solves A X = B by the factors of A, refines X, and checks it. `original` are the block columns of A, of which a
/// symmetric matrix's lower triangle stands for all; B is n x r, row by row, the same on every process.
///
/// Every solution takes one step of refinement, and keeps the result unless its backward error is worse. Factors of
/// less precision than A, and those by pivots from diagonal blocks, refine further the solutions whose backward errors
/// are above sqrt(n) eps. Factors of less precision are given up after [`MOST_STEPS`] steps, or once a step does not
/// halve the worst error.
///
/// Source: Langou, Langou, Luszczek, Kurzak, Buttari, Dongarra, Exploiting the performance of 32 bit floating point
/// arithmetic in obtaining 64 bit accuracy, 2006 (DOI 10.1145/1188455.1188573).
///
/// # Errors
/// The residual is above [`MOST_SCALED`]: exit code 1; interrupted; a lost rank. Known to all ranks.
pub(crate) fn solve<T: Real, F: Real>(
    factored: &Factored<'_, F>,
    original: &[LocalColumns<T>],
    b: &[T],
) -> Result<std::result::Result<Solution<T>, Failure>> {
    let (n, world) = (factored.n(), factored.world);
    let sides = b.len() / n;
    let symmetric = factored.factors.is_symmetric();
    let system = System::new(original, symmetric, n, factored.threads, world)?;
    let is_mixed = F::NAME != T::NAME;
    let begin = Instant::now();
    let mut x: Vec<T> = factored.solution(b.to_vec(), 1.0)?;
    let substitution_seconds = begin.elapsed().as_secs_f64();
    let mut rest = system.remainder(&x, b)?;
    let mut errors = system.errors(&rest, &x);
    let (before, bound) = (largest(&errors), 1.0 / (n as f64).sqrt());
    let most = if is_mixed || factored.factors == Factors::Ldlt { MOST_STEPS } else { 1 };
    let (mut steps, mut poor) = (0, (0..sides).collect::<Vec<usize>>());
    while !poor.is_empty() && steps < most {
        steps += 1;
        let worst = largest(&errors);
        let change: Vec<f64> = factored.solution(select(&rest, sides, &poor), system.scale)?;
        let refined: Vec<T> = select(&x, sides, &poor)
            .into_iter()
            .zip(change)
            .map(|(x, change)| T::from_f64(x.to_f64() + change))
            .collect();
        let left = system.remainder(&refined, &select(b, sides, &poor))?;
        let better = system.errors(&left, &refined);
        for (at, &side) in poor.iter().enumerate() {
            // A step may make a solution worse where the matrix is nearly singular.
            if better[at] <= errors[side] || errors[side].is_nan() {
                errors[side] = better[at];
                for i in 0..n {
                    x[i * sides + side] = refined[i * poor.len() + at];
                    rest[i * sides + side] = left[i * poor.len() + at];
                }
            }
        }
        poor = sides_above(&errors, bound);
        let halved = largest(&errors) <= worst / 2.0;
        if !halved {
            break;
        }
    }
    if is_mixed && !poor.is_empty() {
        let plural = if steps == 1 { "" } else { "s" };
        let why = format!("backward errors are above sqrt(n) eps after {steps} step{plural} of refinement");
        return Ok(Err(Failure { why, steps }));
    }
    let residuals = [before, largest(&errors)];
    let norm = largest_column_sum(original, symmetric, n, factored.threads, world)?;
    let InverseNorm { norm: inverse, image_of } = factored.inverse_norm()?;
    let inverse = match is_mixed {
        // The factors' inverse may be larger than that of the matrix.
        true => refined_ratio(factored, &system, &image_of)?,
        false => inverse * factored.scale,
    };
    let condition = norm * inverse;
    let right = residuals[1] <= MOST_SCALED;
    world.all_ok(if right { Ok(()) } else { Err(wrong(residuals[1])) })?;
    Ok(Ok(Solution { x, residuals, steps, condition, substitution_seconds }))
}

/// An estimate of the norm of an inverse from below, in the norm of column sums, and the vector that it multiplies by so
/// much.
struct InverseNorm<T> {
    norm: f64,
    image_of: Vec<T>,
}

/// `||A^-1 v|| / ||v||` in the sum of magnitudes, refined until factors of less precision than A matter no more.
fn refined_ratio<T: Real, F: Real>(
    factored: &Factored<'_, F>,
    system: &System<'_, T>,
    v: &[F],
) -> Result<f64> {
    let magnitudes = |x: &mut dyn Iterator<Item = f64>| x.map(f64::abs).sum::<f64>();
    let v: Vec<T> = v.iter().map(|x| T::from_f64(x.to_f64())).collect();
    let mut x: Vec<T> = factored.solution(v.clone(), 1.0)?;
    for _ in 0..MOST_STEPS {
        let change: Vec<f64> = factored.solution(system.remainder(&x, &v)?, system.scale)?;
        x.iter_mut().zip(&change).for_each(|(x, change)| *x = T::from_f64(x.to_f64() + change));
        let [size, changed] =
            [magnitudes(&mut x.iter().map(|x| x.to_f64())), magnitudes(&mut change.iter().copied())];
        if changed.is_nan() || changed <= 1e-6 * size {
            break;
        }
    }
    Ok(magnitudes(&mut x.iter().map(|x| x.to_f64())) / magnitudes(&mut v.iter().map(|x| x.to_f64())))
}

/// The sides whose error is above a bound, or no number.
fn sides_above(errors: &[f64], bound: f64) -> Vec<usize> {
    (0..errors.len()).filter(|side| errors[*side].is_nan() || errors[*side] > bound).collect()
}

/// Some columns of a matrix of `sides` columns.
fn select<T: Copy>(x: &[T], sides: usize, some: &[usize]) -> Vec<T> {
    x.chunks_exact(sides).flat_map(|row| some.iter().map(|side| row[*side])).collect()
}

/// The largest error; NaN if one is.
fn largest(errors: &[f64]) -> f64 {
    // The larger of a number and NaN is the number, which must not hide it.
    errors.iter().fold(0.0, |most, x| if x.is_nan() || *x > most { *x } else { most })
}

fn wrong(residual: f64) -> Error {
    let what =
        format!("the residual of the solution is {residual:.3e} times n ||A|| ||x|| eps, more than 30");
    Error::WrongResult { what }
}

impl<T: Real> Factored<'_, T> {
    fn n(&self) -> usize {
        self.blocks.n() as usize
    }

    /// The solution for right-hand sides of a system that was multiplied by `scale`, in their elements.
    fn solution<N: Real>(&self, b: Vec<N>, scale: f64) -> Result<Vec<N>> {
        if N::NAME == T::NAME && scale == self.scale {
            let mut x: Vec<T> = cast(b);
            self.solve(&mut x)?;
            return Ok(cast(x));
        }
        // By powers of two, so that no right-hand side is beyond the range of the factors' elements.
        let sides = b.len() / self.n();
        let mut sizes = vec![0.0_f64; sides];
        for row in b.chunks_exact(sides) {
            sizes.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.to_f64().abs()));
        }
        sizes.iter_mut().for_each(|size| *size = power_of_two(*size));
        let with_sizes = |of: &mut dyn FnMut(usize, f64)| {
            (0..self.n()).for_each(|i| (0..sides).for_each(|side| of(i * sides + side, sizes[side])));
        };
        let mut x = vec![T::ZERO; b.len()];
        with_sizes(&mut |at, size| x[at] = T::from_f64(b[at].to_f64() / size));
        self.solve(&mut x)?;
        let mut solution = b;
        let factor = self.scale / scale;
        with_sizes(&mut |at, size| {
            // Powers of two: together where their product is one, since x may be large where they are small.
            let (x, both) = (x[at].to_f64(), size * factor);
            solution[at] = N::from_f64(if both.is_normal() { x * both } else { x * size * factor });
        });
        Ok(solution)
    }

    /// X := A^-1 X.
    fn solve(&self, x: &mut [T]) -> Result<()> {
        self.divided(x, |x, flow| match self.factors {
            Factors::Cholesky => {
                self.by_columns(Triangle::Lower, x, flow)?;
                self.by_rows(Triangle::LowerTransposed, x, flow)
            }
            Factors::Ldlt => {
                self.by_columns(Triangle::UnitLower, x, flow)?;
                self.by_rows(Triangle::UnitLowerTransposed, x, flow)
            }
            Factors::Lu => {
                let pivots = self.pivots.iter().enumerate();
                self.exchange(x, flow, pivots)?;
                self.by_columns(Triangle::UnitLower, x, flow)?;
                self.by_columns(Triangle::Upper, x, flow)
            }
        })
    }

    /// X := A^-T X.
    fn solve_transposed(&self, x: &mut [T]) -> Result<()> {
        if self.factors.is_symmetric() {
            return self.solve(x);
        }
        self.divided(x, |x, flow| {
            self.by_rows(Triangle::UpperTransposed, x, flow)?;
            self.by_rows(Triangle::UnitLowerTransposed, x, flow)?;
            self.exchange(x, flow, self.pivots.iter().enumerate().rev())
        })
    }

    /// Does something with the columns of X: with all of them, or with this process's if block columns travel.
    fn divided(&self, x: &mut [T], work: impl Fn(&mut [T], Flow) -> Result<()>) -> Result<()> {
        let (n, p) = (self.n(), self.blocks.processors());
        let sides = x.len() / n;
        let flow = Flow {
            products: Products::new(self.threads, sides),
            sides,
            columns_travel: 2 * (p + 1) * sides > n,
        };
        if self.world.is_solo() || !flow.columns_travel {
            return work(x, flow);
        }
        let all = divide(sides, self.work);
        let own = &all[self.world.rank()];
        let mut mine: Vec<T> = x.chunks_exact(sides).flat_map(|row| &row[own.clone()]).copied().collect();
        work(&mut mine, Flow { sides: own.len(), ..flow })?;
        for (theirs, cols) in self.world.all_gather(bytemuck::cast_slice(&mine))?.iter().zip(&all) {
            let theirs: Vec<T> = numbers_of(theirs);
            let rows = x.chunks_exact_mut(sides).zip(theirs.chunks_exact(cols.len().max(1)));
            rows.for_each(|(row, part)| row[cols.clone()].copy_from_slice(part));
        }
        Ok(())
    }

    /// Exchanges rows, one pair after the other.
    fn exchange<'p>(
        &self,
        x: &mut [T],
        flow: Flow,
        pivots: impl Iterator<Item = (usize, &'p i64)>,
    ) -> Result<()> {
        let mut from: Vec<usize> = (0..self.n()).collect();
        pivots.for_each(|(i, pivot)| from.swap(i, *pivot as usize));
        let sides = flow.sides;
        if sides == 0 {
            return Ok(());
        }
        let before = x.to_vec();
        let rows = x.chunks_exact_mut(sides).zip(from);
        rows.for_each(|(row, from)| row.copy_from_slice(&before[from * sides..][..sides]));
        Ok(())
    }

    /// This process's block columns with one of them, if it owns that, and the place of the first column there.
    fn owned(&self, block: usize) -> Option<(usize, usize)> {
        let rank = self.blocks.panel_owner(block);
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

    /// These rows of a block column, where this process needs them: if it owns the block column, or if block columns
    /// travel.
    fn panel(&self, block: usize, rows: Range<usize>, flow: Flow) -> Result<Option<Panel<'_, T>>> {
        if self.world.is_solo() && self.world.monitor().is_stopped() {
            return Err(Error::Interrupted);
        }
        let width = self.rows(block).len();
        let owned = self.owned(block);
        let view =
            owned.map(|(at, column)| self.columns[at].view().tile(rows.start, column, rows.len(), width));
        let at = owned.map_or(0, |(at, _)| at);
        if self.world.is_solo() || !flow.columns_travel {
            return Ok(view.map(|view| Panel { at, elements: Elements::Here(view) }));
        }
        let mine =
            view.map_or_else(Vec::new, |view| (0..view.rows()).flat_map(|i| view.row(i)).copied().collect());
        let elements = self.of_all(mine)?;
        Ok(Some(Panel { at: 0, elements: Elements::Received { elements, width } }))
    }

    /// Solves with a triangle that is stored by the columns of its unknowns, and with D of L D L^T at once.
    fn by_columns(&self, triangle: Triangle, x: &mut [T], flow: Flow) -> Result<()> {
        let (n, forward, sides) = (self.n(), triangle != Triangle::Upper, flow.sides);
        // What the unknowns of each processor contribute to later rows, where their sum is taken later.
        let mut sums =
            if flow.columns_travel { Vec::new() } else { vec![vec![T::ZERO; x.len()]; self.columns.len()] };
        for block in self.order(forward) {
            let rows = self.rows(block);
            let here = rows.start * sides..rows.end * sides;
            if !flow.columns_travel {
                let parts = sums.iter().flat_map(|sums| &sums[here.clone()]).copied().collect();
                for part in self.of_all(parts)?.chunks_exact(here.len().max(1)) {
                    x[here.clone()].iter_mut().zip(part).for_each(|(x, y)| *x = *x + *y);
                }
            }
            let reach = if forward { rows.start..n } else { 0..rows.end };
            let Some(panel) = self.panel(block, reach, flow)? else { continue };
            let (diagonal, beside) = parts(panel.view(), forward);
            let unknowns = ViewMut::dense(&mut x[here.clone()], rows.len(), sides);
            let block = self.block_factors(diagonal, &rows);
            match &block {
                Some(block) => flow.products.each_part(unknowns, |x| block.solve_lower(x))?,
                None => flow.products.solve(triangle, diagonal, unknowns)?,
            }
            let known: Vec<T> = x[here.clone()].iter().map(|x| -*x).collect();
            if let Some(block) = &block {
                let unknowns = ViewMut::dense(&mut x[here], rows.len(), sides);
                flow.products.each_part(unknowns, |x| block.solve_diagonal(x))?;
            }
            let known = View::dense(&known, rows.len(), sides);
            let rest = if forward { rows.end..n } else { 0..rows.start };
            let into = if flow.columns_travel { &mut *x } else { &mut sums[panel.at][..] };
            let into = &mut into[rest.start * sides..rest.end * sides];
            flow.products.update(beside, known, ViewMut::dense(into, rest.len(), sides))?;
        }
        if flow.columns_travel { Ok(()) } else { self.share(x) }
    }

    /// Solves with a triangle whose columns of unknowns are the rows of what is stored.
    fn by_rows(&self, triangle: Triangle, x: &mut [T], flow: Flow) -> Result<()> {
        let (n, forward, sides) = (self.n(), triangle == Triangle::UpperTransposed, flow.sides);
        for block in self.order(forward) {
            let rows = self.rows(block);
            let reach = if forward { 0..rows.end } else { rows.start..n };
            if let Some(panel) = self.panel(block, reach, flow)? {
                let (diagonal, beside) = parts(panel.view(), !forward);
                let solved = if forward { 0..rows.start } else { rows.end..n };
                let (upper, lower) = x.split_at_mut(if forward { rows.start } else { rows.end } * sides);
                let (known, unknowns) = if forward {
                    (upper, &mut lower[..rows.len() * sides])
                } else {
                    (lower, &mut upper[rows.start * sides..])
                };
                let known = View::dense(known, solved.len(), sides);
                let mut unknowns = ViewMut::dense(unknowns, rows.len(), sides);
                flow.products.update_transposed(beside, known, unknowns.reborrow())?;
                let block = self.block_factors(diagonal, &rows);
                match &block {
                    Some(block) => flow.products.each_part(unknowns, |x| block.solve_upper(x))?,
                    None => flow.products.solve(triangle, diagonal, unknowns)?,
                }
            }
            if !flow.columns_travel {
                self.share_block(x, block)?;
            }
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

    /// An estimate of the norm of the inverse of the matrix that was factored.
    ///
    /// Source: Higham, FORTRAN codes for estimating the one-norm of a real or complex matrix, 1988 (DOI
    /// 10.1145/50063.214386), algorithm 2.4.
    fn inverse_norm(&self) -> Result<InverseNorm<T>> {
        let n = self.n();
        let magnitudes = |x: &[T]| x.iter().map(|x| x.to_f64().abs()).sum::<f64>();
        let mut image_of = vec![T::from_f64(1.0 / n as f64); n];
        let mut x = image_of.clone();
        self.solve(&mut x)?;
        let mut norm = magnitudes(&x);
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
            let unit = next.clone();
            self.solve(&mut next)?;
            let found = magnitudes(&next);
            if found <= norm {
                break;
            }
            (norm, x, image_of) = (found, next, unit);
        }
        // A vector that grows and alternates finds what the search misses.
        let growing = |i: usize| {
            let sign = if i.is_multiple_of(2) { 1.0 } else { -1.0 };
            T::from_f64(sign * (1.0 + i as f64 / (n.max(2) - 1) as f64))
        };
        let alternating: Vec<T> = (0..n).map(growing).collect();
        x.copy_from_slice(&alternating);
        self.solve(&mut x)?;
        let other = 2.0 * magnitudes(&x) / (3.0 * n as f64);
        if other > norm {
            (norm, image_of) = (other, alternating);
        }
        Ok(InverseNorm { norm, image_of })
    }
}

/// The same elements, whose type has two names.
fn cast<A: Real, B: Real>(x: Vec<A>) -> Vec<B> {
    let x: Box<dyn std::any::Any> = Box::new(x);
    *x.downcast().expect("both names are of the same type")
}

/// The largest power of two that is at most a number; 1 for 0 and what is not finite.
fn power_of_two(x: f64) -> f64 {
    if x > 0.0 && x.is_finite() { 2_f64.powi(x.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

/// How a substitution goes.
#[derive(Debug, Clone, Copy)]
struct Flow {
    products: Products,
    /// Number of right-hand sides of this process.
    sides: usize,
    /// Block columns travel to the right-hand sides, or are read where they are; otherwise they stay with their
    /// owners. The same on every engine: it decides in which order is summed.
    columns_travel: bool,
}

/// Rows of a block column.
struct Panel<'a, T> {
    /// Its owner's place among the processors of this process.
    at: usize,
    elements: Elements<'a, T>,
}

enum Elements<'a, T> {
    Here(View<'a, T>),
    Received { elements: Vec<T>, width: usize },
}

impl<T: Real> Panel<'_, T> {
    fn view(&self) -> View<'_, T> {
        match &self.elements {
            Elements::Here(view) => view.tile(0, 0, view.rows(), view.cols()),
            Elements::Received { elements, width } => {
                View::dense(elements, elements.len() / (*width).max(1), *width)
            }
        }
    }
}

/// The diagonal block of a block column, and what is beside it, below it or above it.
fn parts<T: Real>(panel: View<'_, T>, below: bool) -> (View<'_, T>, View<'_, T>) {
    let (rows, width) = (panel.rows(), panel.cols());
    let rest = rows - width;
    if below {
        (panel.tile(0, 0, width, width), panel.tile(width, 0, rest, width))
    } else {
        (panel.tile(rest, 0, width, width), panel.tile(0, 0, rest, width))
    }
}

/// Divides columns in proportion to weights: the first and the end of each.
fn divide(columns: usize, weights: &[f64]) -> Vec<Range<usize>> {
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let mut cut = |weight: &f64| {
        sum += weight;
        ((sum / total * columns as f64).round() as usize).min(columns)
    };
    let mut cuts: Vec<usize> = std::iter::once(0).chain(weights.iter().map(&mut cut)).collect();
    *cuts.last_mut().expect("there are processors") = columns;
    cuts.windows(2).map(|two| two[0]..two[1]).collect()
}

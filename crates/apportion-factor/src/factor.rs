//! A factorisation once everything is decided and read: run it, and verify it.

use crate::application::Elimination;
use crate::device_columns::DevicePlace;
use crate::residual::{EachSlab, Witness};
use crate::{LocalColumns, MOST_SCALED, Residual};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
#[cfg(doc)]
use apportion::kernels::factor::ldlt_panel;
use apportion::kernels::{Kernel, Real};
use apportion::plan::{Factors, TileMap};
use apportion::run::{Session, World, run, trace_of_all};
use apportion::schedule::FactorSchedule;
use apportion::trace::Trace;
use std::time::Instant;

/// Larger elements of L make L D L^T inaccurate. By pivots from the whole matrix they are below 3; some hundreds, as in
/// random matrices with pivots from diagonal blocks, do little harm.
const MOST_OF_L: f64 = 100.0;

/// The factors of a matrix.
#[derive(Debug)]
pub(crate) struct FactorOutput<T> {
    /// This process's block columns or tiles, by rank: L with zeros above it, L without its diagonal of ones and U, or L without
    /// its diagonal of ones and D, with zeros above them, as [`ldlt_panel`] leaves them.
    pub columns: Vec<LocalColumns<T>>,
    /// On every process. Of LU: row i was exchanged with row `pivots[i]`, one after the other. Of L D L^T: those of
    /// [`ldlt_panel`], counted from the first row of the matrix.
    pub pivots: Vec<i64>,
    /// Activities of all processors.
    pub trace: Trace,
    /// How well the factors give the matrix again.
    pub residual: Residual,
    /// Seconds that the residual took.
    pub verify_seconds: f64,
}

/// Factors a matrix on the session's world and finds its residual; [`FactorOutput::check`] refuses wrong factors. Every
/// rank must call it, with its block columns ([`LocalColumns`]); a single process has those of all processors, by rank.
/// Of symmetric matrices, for Cholesky and L D L^T, the lower triangle is read only.
///
/// The factors have the same bytes on every engine, for the same block columns and kernel.
///
/// # Errors
/// On all ranks: a leading minor that is not positive, or a pivot that is zero, by its index; those of [`run`].
pub(crate) fn compute<T: Real>(
    schedule: &FactorSchedule,
    kernel: Kernel<T>,
    columns: Vec<LocalColumns<T>>,
    seed: u64,
    session: &Session<'_>,
) -> Result<FactorOutput<T>> {
    let (world, factors) = (session.world(), schedule.factors());
    let n = schedule.blocks().n() as usize;
    let begin = Instant::now();
    let mut witness = Witness::new(factors, n, seed);
    witness.add(&columns, world)?;
    let before = begin.elapsed().as_secs_f64();
    let tiles = schedule.blocks();
    let platform = session.platform();
    let devices = (0..platform.len()).map(|rank| DevicePlace::of(platform, Rank(rank))).collect();
    let shares = world.is_solo() && !session.copies();
    let elimination = Elimination::new(schedule, kernel, columns, shares).on_devices(devices);
    let output = run(&elimination, session)?;
    let failed = output.locals.iter().filter_map(|held| held.failed).min();
    let (mut columns, mut own) = (Vec::new(), Vec::new());
    for mut held in output.locals {
        let factored = tiles.factored(held.columns.rank());
        own.extend(factored.map(|column| (column, std::mem::take(&mut held.pivots[column]))));
        columns.push(held.columns);
    }
    let failed = world.all_reduce(&[failed.unwrap_or(u64::MAX)], u64::min)?[0];
    let error = || not_factored(factors, tiles, failed);
    world.all_ok(if failed < u64::MAX { Err(error()) } else { Ok(()) })?;
    let pivots = all_pivots(schedule, own, world)?;
    if factors.is_symmetric() {
        columns.iter_mut().for_each(LocalColumns::clear_above);
    }
    let begin = Instant::now();
    let residual = witness.residual(&mut |take| take(&columns), &pivots, world)?;
    let verify_seconds = before + begin.elapsed().as_secs_f64();
    Ok(FactorOutput { columns, pivots, trace: trace_of_all(output.lanes, world)?, residual, verify_seconds })
}

impl<T: Real> FactorOutput<T> {
    /// Refuses factors that are wrong or inaccurate, on all ranks.
    pub(crate) fn check(&self, factors: Factors, world: &World) -> Result<()> {
        let each_slab = &mut |take: &mut dyn FnMut(&[LocalColumns<T>]) -> Result<()>| take(&self.columns);
        check_factors(self.residual, factors, each_slab, &self.pivots, world)
    }
}

/// The same for factors that come one slab after the other.
pub(crate) fn check_factors<T: Real>(
    residual: Residual,
    factors: Factors,
    each_slab: &mut EachSlab<'_, T>,
    pivots: &[i64],
    world: &World,
) -> Result<()> {
    let mut checked = residual.check();
    if checked.is_err() && factors == Factors::Ldlt {
        let mut largest = 0.0;
        each_slab(&mut |columns| {
            largest = larger(largest, largest_of_l(columns, pivots, world)?);
            Ok(())
        })?;
        checked = checked.map_err(|e| if largest <= MOST_OF_L { e } else { unstable(largest, residual) });
    }
    world.all_ok(checked)
}

/// The larger of two numbers; NaN if one is.
fn larger(most: f64, x: f64) -> f64 {
    if x > most || x.is_nan() { x } else { most }
}

/// The pivots of all rows, counted from the first row of the matrix, from those of each process's panels.
fn all_pivots(schedule: &FactorSchedule, own: Vec<(usize, Vec<i64>)>, world: &World) -> Result<Vec<i64>> {
    if schedule.factors() == Factors::Cholesky {
        return Ok(Vec::new());
    }
    let mut pivots = vec![0; schedule.blocks().n() as usize];
    for (column, panel) in own {
        let first = schedule.blocks().span(column).start;
        for (i, pivot) in panel.into_iter().enumerate() {
            pivots[first as usize + i] = shift_pivot(pivot, first as i64);
        }
    }
    // Every row belongs to one process; the others have 0.
    world.all_reduce(&pivots, |x, y| x + y)
}

/// A pivot, counted from a row that is `by` rows further up.
pub(crate) fn shift_pivot(pivot: i64, by: i64) -> i64 {
    // In a block of two rows it is -(r + 1), where r is the row.
    if pivot < 0 { pivot - by } else { pivot + by }
}

/// For each row, true if a block of two rows of D begins there.
pub(crate) fn pairs(pivots: &[i64]) -> Vec<bool> {
    let mut pairs = vec![false; pivots.len()];
    for i in 0..pivots.len() {
        pairs[i] = pivots[i] < 0 && (i == 0 || !pairs[i - 1]);
    }
    pairs
}

/// The largest magnitude of an element of L below its diagonal, where L D L^T is in the columns; NaN if there is one.
fn largest_of_l<T: Real>(columns: &[LocalColumns<T>], pivots: &[i64], world: &World) -> Result<f64> {
    let (mut largest, pairs) = (0.0, pairs(pivots));
    for local in columns {
        let places: Vec<u64> = local.columns().collect();
        for (i, row) in local.matrix_rows().zip(local.elements().chunks_exact(local.width().max(1))) {
            // Beside the diagonal, in a block of two rows, is an element of D.
            let of_l = |j: u64| j + 1 < i || j + 1 == i && !pairs[j as usize];
            let elements = row.iter().zip(&places).filter(|(_, j)| of_l(**j));
            largest = elements.map(|(x, _)| x.to_f64().abs()).fold(largest, larger);
        }
    }
    Ok(world.all_reduce(&[largest], larger)?[0])
}

/// The error of factors that are inaccurate because the pivots of a diagonal block are small beside what is below it.
fn unstable(largest: f64, residual: Residual) -> Error {
    let what = format!(
        "the pivots in the diagonal blocks are too small: L has elements up to {largest:.1e}, and the residual is {:.1e} \
         times n ||A|| eps, more than {MOST_SCALED}",
        residual.scaled
    );
    Error::infeasible(what, "factor it by `kind = lu`, or with a larger `block`")
}

/// The error of a matrix that has no such factors: `index` counts from 0.
pub(crate) fn not_factored(factors: Factors, columns: &TileMap, index: u64) -> Error {
    let info = index + 1;
    match factors {
        Factors::Cholesky => Error::infeasible(
            format!("the matrix is not positive definite: its leading minor of order {info} is not positive"),
            "factor it by `kind = ldlt` or `kind = lu`",
        ),
        Factors::Lu => Error::infeasible(
            format!(
                "the matrix is singular: U({index}, {index}), counted from 0, is exactly zero (info {info})"
            ),
            "remove rows or columns that depend on others",
        ),
        Factors::Ldlt => {
            let rows = columns.span((index / columns.block()) as usize);
            let zero = format!("D({index}, {index}), counted from 0, is exactly zero (info {info})");
            if rows.end == columns.n() {
                let what = format!("the matrix is singular: {zero}");
                return Error::infeasible(what, "remove rows and columns that depend on others");
            }
            let block = format!("its diagonal block of rows {} to {}", rows.start, rows.end - 1);
            let what = format!("the matrix is singular, or its pivots are not in {block}: {zero}");
            Error::infeasible(what, "factor it by `kind = lu`, or with a larger `block`")
        }
    }
}

//! A factorisation once everything is decided and read: run it, and verify it.

use crate::application::Elimination;
use crate::residual::Witness;
use crate::{LocalColumns, Residual};
use apportion::error::{Error, Result};
use apportion::kernels::{Kernel, Real};
use apportion::plan::Factors;
use apportion::run::{Session, World, run, trace_of_all};
use apportion::schedule::FactorSchedule;
use apportion::trace::Trace;
use std::time::Instant;

/// The factors of a matrix.
#[derive(Debug)]
pub struct FactorOutput<T> {
    /// This process's block columns, by rank: L with zeros above it, or L without its diagonal of ones and U.
    pub columns: Vec<LocalColumns<T>>,
    /// Of LU, on every process: row i was exchanged with row `pivots[i]`, one after the other.
    pub pivots: Vec<u64>,
    /// Activities of all processors.
    pub trace: Trace,
    /// How well the factors give the matrix again.
    pub residual: Residual,
    /// Seconds that the residual took.
    pub verify_seconds: f64,
}

/// Factors a matrix on the session's world and verifies the factors. Every rank must call it, with its block columns
/// ([`LocalColumns`]); a single process has those of all processors, by rank. Cholesky reads the lower triangle only.
///
/// The factors have the same bytes on every engine, for the same block columns and kernel.
///
/// # Errors
/// On all ranks: a leading minor that is not positive, or a pivot that is zero, by its index; factors that are wrong
/// (exit code 1); those of [`run`].
pub fn factor<T: Real>(
    schedule: &FactorSchedule,
    kernel: Kernel<T>,
    columns: Vec<LocalColumns<T>>,
    seed: u64,
    session: &Session<'_>,
) -> Result<FactorOutput<T>> {
    let (world, factors) = (session.world(), schedule.factors());
    let n = schedule.columns().n() as usize;
    let begin = Instant::now();
    let witness = Witness::new(factors, n, &columns, seed, world)?;
    let before = begin.elapsed().as_secs_f64();
    let shares = world.is_solo() && !session.copies();
    let elimination = Elimination::new(schedule, kernel, columns, shares);
    let output = run(&elimination, session)?;
    let failed = output.locals.iter().filter_map(|held| held.failed).min();
    let failed = world.all_reduce(&[failed.unwrap_or(u64::MAX)], u64::min)?[0];
    world.all_ok(if failed < u64::MAX { Err(not_factored(factors, failed)) } else { Ok(()) })?;
    let own: Vec<(usize, Vec<usize>)> = match factors {
        Factors::Cholesky => Vec::new(),
        Factors::Lu => {
            let owned = |held: &crate::application::ProcessorData<T>| {
                let columns = schedule.columns().own(held.columns.rank()).iter();
                columns.map(|&column| (column, held.pivots[column].clone())).collect::<Vec<_>>()
            };
            output.locals.iter().flat_map(owned).collect()
        }
    };
    let pivots = all_pivots(schedule, own, world)?;
    let mut columns: Vec<LocalColumns<T>> = output.locals.into_iter().map(|held| held.columns).collect();
    if factors == Factors::Cholesky {
        columns.iter_mut().for_each(LocalColumns::clear_above);
    }
    let begin = Instant::now();
    let residual = witness.residual(&columns, &pivots, world)?;
    let verify_seconds = before + begin.elapsed().as_secs_f64();
    world.all_ok(residual.check())?;
    Ok(FactorOutput { columns, pivots, trace: trace_of_all(output.lanes, world)?, residual, verify_seconds })
}

/// The pivots of all rows, counted from the first row of the matrix, from those of each process's panels.
fn all_pivots(schedule: &FactorSchedule, own: Vec<(usize, Vec<usize>)>, world: &World) -> Result<Vec<u64>> {
    if schedule.factors() == Factors::Cholesky {
        return Ok(Vec::new());
    }
    let mut pivots = vec![0; schedule.columns().n() as usize];
    for (column, panel) in own {
        let first = schedule.columns().span(column).start;
        for (i, pivot) in panel.into_iter().enumerate() {
            pivots[first as usize + i] = first + pivot as u64;
        }
    }
    // Every row belongs to one process; the others have 0.
    world.all_reduce(&pivots, u64::max)
}

/// The error of a matrix that has no such factors: `index` counts from 0.
fn not_factored(factors: Factors, index: u64) -> Error {
    let info = index + 1;
    match factors {
        Factors::Cholesky => Error::infeasible(
            format!("the matrix is not positive definite: its leading minor of order {info} is not positive"),
            "factor it by lu",
        ),
        Factors::Lu => Error::infeasible(
            format!(
                "the matrix is singular: U({index}, {index}), counted from 0, is exactly zero (info {info})"
            ),
            "remove rows or columns that depend on others",
        ),
    }
}

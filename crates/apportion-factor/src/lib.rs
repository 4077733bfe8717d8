//! Factorisations of dense matrices on unequal processors: Cholesky, LU with partial pivoting, and L D L^T of symmetric
//! matrices.
//!
//! The steps are a [`FactorSchedule`](apportion::schedule::FactorSchedule), which the engine of `apportion` runs and
//! its simulator forecasts. This crate holds the block columns of processors ([`LocalColumns`]), computes with them,
//! verifies the factors, and goes from files to files ([`FactorTask`]). It uses the public interface of `apportion` alone.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion::matrix::Matrix;
//! use apportion::plan::Factors;
//! use apportion::run::{Monitor, World};
//! use apportion_factor::{FactorTask, MatrixSource, factor_matrix};
//!
//! let a = Matrix::from([[4.0, 2.0], [2.0, 5.0]]);
//! let task = FactorTask::new(Factors::Cholesky, MatrixSource::whole("a", a));
//! let monitor = Monitor::new();
//! let world = World::solo(&monitor);
//! let outcome = factor_matrix(task, apportion::job::Context::silent(&world, &monitor))?;
//! let l = outcome.columns.into_whole::<f64>().unwrap();
//! assert_eq!(l, [2.0, 0.0, 1.0, 2.0]);
//! # Ok::<(), apportion::Error>(())
//! ```
#![warn(unreachable_pub)]

mod application;
mod bands;
mod device_columns;
mod factor;
mod first_touch;
mod local_columns;
mod parts;
mod products;
mod record;
mod residual;
mod slabs;
mod solve;
mod system;
mod task;
mod tile_kernels;
mod vectors;

pub(crate) use factor::FactorOutput;
pub use local_columns::LocalColumns;
pub(crate) use residual::{MOST_SCALED, Residual};
pub use task::{
    AnyColumns, FactorOutcome, FactorReport, FactorTask, MatrixSource, SlabOutcome, SolveOutcome, SolveTask,
    factor_matrix, solve_matrix,
};

#[cfg(test)]
mod tests;

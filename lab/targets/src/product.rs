//! Repeated runs of a product.

use crate::median;
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::Plan;
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::ScheduleOptions;

/// Runs of which the median is taken.
pub const RUNS: usize = 5;

/// The times of several runs.
pub struct Seconds {
    /// The forecast.
    pub forecast: f64,
    /// The median of the runs.
    pub measured: f64,
    /// The lower bound for any partition.
    pub ideal: f64,
}

/// Runs a product of f64 [`RUNS`] times; the models are of pivot blocks of `block`.
pub fn seconds(
    plan: &Plan,
    order: ScheduleOptions,
    (platform, models, block): (&Platform, &[Model], u64),
    (a, b): (&Matrix<f64>, &Matrix<f64>),
) -> Seconds {
    let job = MatmulJob::new(Kernel::plus_times(), plan, order, models, block);
    let (monitor, a, b) = (Monitor::new(), whole_block(a.clone()), whole_block(b.clone()));
    let world = World::solo(&monitor);
    let run = |_| {
        let session = Session::new(&world, platform, &monitor, job.work());
        multiply(Operands::new(&a, &b), &job, &session).expect("the run is never stopped").1
    };
    let reports: Vec<_> = (0..RUNS).map(run).collect();
    let seconds = reports.iter().map(|report| report.seconds());
    Seconds {
        forecast: reports[0].forecast_seconds,
        measured: median(seconds),
        ideal: reports[0].ideal_seconds,
    }
}

/// A square matrix of numbers between -1 and 1.02.
pub fn matrix(size: u64, seed: u64) -> Matrix<f64> {
    let elements = (0..size * size).map(|i| ((i * 31 + seed * 7) % 1009) as f64 / 500.0 - 1.0);
    Matrix::new(size as usize, size as usize, elements.collect())
}

/// A target and whether it was reached.
pub fn verdict(reached: bool) -> String {
    if reached { "reached" } else { "MISSED" }.to_owned()
}

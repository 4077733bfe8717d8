//! Shortcuts for the common cases, with everything left open.

use super::{
    Context, MatrixJob, MatrixOperand, Operation, ProductTask, RunOptions, UnitOptions, divide_units,
    lay_out_product,
};
use crate::error::Result;
use crate::kernels::Semiring;
use crate::matrix::{AnyView, Element, Matrix};
use crate::model::Machine;
use crate::plan::{Layout, Shape};
use crate::product::whole_matrix;
use crate::run::{Monitor, World};

/// Multiplies two matrices on the cores of this machine, and verifies the product. `f32` and `f64` elements are
/// multiplied as numbers, bytes as truth values. [`ProductTask`] has the options.
///
/// ```
/// use apportion::matrix::Matrix;
///
/// let a = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]);
/// let b = Matrix::new(2, 1, vec![1.0, 10.0]);
/// assert_eq!(apportion::matmul(&a, &b)?.as_slice(), [21.0, 43.0]);
/// # Ok::<(), apportion::Error>(())
/// ```
///
/// # Errors
/// Sizes that do not fit, elements without such a product, too little memory: exit code 2. A wrong result: 1.
pub fn matmul<T: Element>(a: &Matrix<T>, b: &Matrix<T>) -> Result<Matrix<T>> {
    let semiring = if T::NAME == u8::NAME { Semiring::OrAnd } else { Semiring::PlusTimes };
    let task = ProductTask {
        b: Some(operand("b", b)),
        ..ProductTask::new(Operation::Product, semiring, operand("a", a))
    };
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let outcome = MatrixJob::open(&task, Context::silent(&world, &monitor))?.run()?;
    let blocks = outcome.result.expect("no file takes the result");
    Ok(whole_matrix(blocks.into_blocks().expect("the result has the operands' elements")))
}

/// A matrix in memory as an operand.
fn operand<'a, T: Element>(name: &'static str, matrix: &'a Matrix<T>) -> MatrixOperand<'a> {
    MatrixOperand::Array { name, view: AnyView::new(matrix.rows(), matrix.cols(), matrix.as_slice()) }
}

/// Divides independent units of work among processors in proportion to their speeds, of which only the ratios
/// count. [`plan::shares`](crate::plan::shares) has speed functions, limits and energies.
///
/// ```
/// assert_eq!(apportion::shares(1000, &[9.0, 1.0])?, [900, 100]);
/// # Ok::<(), apportion::Error>(())
/// ```
///
/// # Errors
/// Negative speeds, or only speeds of 0: exit code 2.
pub fn shares(units: u64, speeds: &[f64]) -> Result<Vec<u64>> {
    let (monitor, machine) = (Monitor::new(), Machine::from_speeds(speeds)?);
    let world = World::solo(&monitor);
    let context = Context::silent(&world, &monitor);
    Ok(divide_units(units, &UnitOptions::default(), &machine, context)?.plan.shares)
}

/// Divides the product of two square matrices, or of an m x n and an n x n matrix, among processors of these
/// speeds, of which only the ratios count, with as little communication as possible on a network without costs of
/// its own. [`plan_matmul`](crate::select::plan_matmul) has machines, networks and all options.
///
/// ```
/// let layout = apportion::layout( 4000, 4000, &[9.0, 1.0])?;
/// assert_eq!(layout.shares().iter().sum::<u64>(), 16_000_000);
/// # Ok::<(), apportion::Error>(())
/// ```
///
/// # Errors
/// Sizes of 0; negative speeds, or only speeds of 0: exit code 2.
pub fn layout(rows: u64, cols: u64, speeds: &[f64]) -> Result<Layout> {
    let shape = Shape::new(rows, cols, cols, "shape")?;
    let machine = Machine::from_speeds(speeds)?;
    let best = lay_out_product(shape, 8, &RunOptions::default(), &machine)?;
    Ok(best.plan.layout()?.clone())
}

//! Layouts of products that are planned but not run.

use super::RunOptions;
use crate::error::Result;
use crate::model::Machine;
use crate::plan::Shape;
use crate::select::{Choice, plan_matmul};

/// Lays out a product of `shape` with elements of `element` bytes: the best plan and its order of steps. The
/// layout consists of rectangles of C and leaves the inner dimension whole.
///
/// # Errors
/// As [`plan_matmul`]; a method that cuts the inner dimension (exit code 1).
pub fn lay_out_product(
    shape: Shape,
    element: u64,
    options: &RunOptions,
    machine: &Machine,
) -> Result<Choice> {
    let options = options.plan_options(shape.k, element, machine)?;
    let best = plan_matmul(shape, machine, &options)?.swap_remove(0);
    best.plan.layout()?.refuse_boxes("a list of rectangles")?;
    Ok(best)
}

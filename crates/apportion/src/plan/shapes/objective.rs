//! What a method with a choice minimises.

use super::tiling::{Tiling, Total};
use crate::plan::{Layout, Shape};

/// The objective by which a layout is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// The sum of half-perimeters, r_i/m + c_i/n.
    Sum,
    /// The largest half-perimeter, r_i/m + c_i/n: the bottleneck of parallel communication.
    Largest,
    /// The elements moved, k sum(r_i + c_i) - m k - k n.
    #[default]
    Volume,
}

impl Objective {
    /// The sides of a rectangle in the unit of this objective, and how half-perimeters are combined. `shape`
    /// is a part of the matrix `whole`, or all of it: half-perimeters are relative to that matrix, volumes
    /// are not.
    pub(super) fn sides(self, shape: Shape, whole: Shape) -> (f64, f64, Total) {
        let relative = (shape.m as f64 / whole.m as f64, shape.n as f64 / whole.n as f64);
        match self {
            Self::Volume => (shape.m as f64, shape.n as f64, Total::Sum),
            Self::Sum => (relative.0, relative.1, Total::Sum),
            Self::Largest => (relative.0, relative.1, Total::Largest),
        }
    }
}

/// A tiling of a `high` x `wide` rectangle as a layout of `shape`.
pub(super) fn in_whole_numbers(
    tiling: &Tiling,
    (shape, weights): (Shape, &[f64]),
    (high, wide): (f64, f64),
) -> Layout {
    tiling.layout(shape, weights, (high / shape.m as f64) / (wide / shape.n as f64))
}

//! Verification of a result: whether C equals alpha A B + beta C0.
//!
//! * Plus-times: `freivalds`. Quadratic time; only vectors travel between ranks.
//! * Other semirings, which lack subtraction: `samples`. Elements are drawn, recomputed and compared exactly.
//!
//! Both work on the blocks that each rank holds (`parts`), and both recompute elements by `recompute`. Closures and powers,
//! in which a wrong element spreads, are checked once more against the matrix that they are made of (`walks`).

mod exact;
mod freivalds;
mod parts;
mod samples;
mod walks;

pub(crate) use parts::{Digests, Parts};
pub(crate) use samples::DRAWS;
pub(crate) use samples::WRONG_FRACTION;
pub(crate) use walks::RowsChecked;
pub(crate) use walks::Walks;

use crate::error::{Error, Result};
use crate::kernels::{Kernel, Semiring};
use crate::matrix::{Element, Matrix, Scaling};
use crate::plan::Shape;
use crate::run::{Monitor, World};
use parts::{Place, whole};

/// The meaning of a passed check.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// Upper bound of the probability that a wrong result passes. Over plus-times: a result whose errors
    /// exceed rounding. Over the other semirings: a result in which a fraction of [`WRONG_FRACTION`] of the
    /// elements is wrong.
    pub(crate) error_probability: f64,
    /// Number of elements recomputed by the check by samples; `None` for Freivalds' check.
    pub(crate) sampled: Option<u64>,
    /// Number of elements that Freivalds' check recomputed in rows and columns that infinities or NaN reach:
    /// all of them, or a sample, which `error_probability` does not cover.
    pub(crate) exceptional: u64,
}

/// Checks that C = A B on a single process, for A of m x k, B of k x n and C of m x n elements. The same seed
/// draws the same vectors and elements. Up to eight of its cores are used; the outcome does not depend on
/// their number.
///
/// ```
/// use apportion::kernels::Kernel;
/// use apportion::matrix::Matrix;
/// use apportion::verify::verify_product;
///
/// let a = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]);
/// let square = Matrix::new(2, 2, vec![7.0, 10.0, 15.0, 22.0]);
/// assert!(verify_product(Kernel::plus_times(), &a, &a, &square, 1).is_ok());
/// assert!(verify_product(Kernel::plus_times(), &a, &a, &a, 1).is_err());
/// ```
///
/// # Errors
/// [`Error::WrongResult`] names a wrong element with both values; [`Error::Input`] if the sizes do not fit.
pub fn verify_product<T: Element>(
    kernel: Kernel<T>,
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    seed: u64,
) -> Result<Verified> {
    let size = |m: &Matrix<T>| format!("{} x {}", m.rows(), m.cols());
    if (a.cols(), a.rows(), b.cols()) != (b.rows(), c.rows(), c.cols()) {
        let what = format!("the product of {} and {} is not of {}", size(a), size(b), size(c));
        return Err(Error::input("verification", what, "give the factors of this product"));
    }
    let shape = Shape::new(a.rows() as u64, a.cols() as u64, b.cols() as u64, "verification")?;
    let scaling = Scaling::none(kernel.one());
    let parts = Parts { a: whole(a), b: whole(b), c: whole(c), initial: None, scaling, shape };
    verify_parts(parts, kernel, DRAWS, seed, &World::solo(&Monitor::new()))
}

/// Checks that C = alpha A B + beta C0. Every rank calls it and gets the same answer. The operand of a zero
/// scalar is ignored.
///
/// Over plus-times it uses Freivalds' check with 16 random vectors: time O(16 elements) on each rank, and
/// O(16 (m + k + n)) numbers held and sent. Rows and columns that infinities or NaN reach are sampled; all
/// others are checked in full. The sample holds 16 elements of each such row and column, one of each kind
/// (infinity, minus infinity, NaN) in each row, and those among 11,085 drawn from all of C; or all elements
/// there, if they are at most 11,085. Over the other semirings a sample of `draws` elements is recomputed and
/// compared exactly.
///
/// # Errors
/// [`Error::WrongResult`] names a wrong element with both values (in a world of several ranks as
/// [`Error::Agreed`]); interrupted.
pub(crate) fn verify_parts<T: Element>(
    mut parts: Parts<'_, T>,
    kernel: Kernel<T>,
    draws: u64,
    seed: u64,
    world: &World,
) -> Result<Verified> {
    let [alpha, beta] = parts.scaling.scalars();
    if alpha == kernel.zero() {
        parts.a.clear();
        parts.b.clear();
    }
    parts.initial = parts.initial.filter(|_| beta != kernel.zero());
    world.all_ok(match kernel.semiring() {
        // Not compiled for the types that plus-times does not take.
        Semiring::PlusTimes if const { T::REAL } => freivalds::verify(&parts, seed, world),
        _ => samples::verify(&parts, kernel, draws, seed, world),
    })
}

/// The error for a wrong element.
fn wrong((i, j): Place, seen: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    let what = format!("element ({i}, {j}), counted from 0, is {seen} and should be {wanted}");
    Error::WrongResult { what }
}

#[cfg(test)]
mod tests;

//! Is C really alpha A B + beta C0? Checked on the real result, by whoever holds parts of it.

mod elements;
mod scale;
mod vectors;

pub(crate) use scale::{Scale, SplitMix64, exponent};

use crate::error::{Error, Result};
use crate::kernels::{Kernel, Semiring};
use crate::matrix::{Element, LocalBlocks, Scaling};
use crate::plan::Shape;
use crate::run::World;

/// Elements that are recomputed where Freivalds' check does not apply: [`WRONG_FRACTION`] of them wrong slips through
/// with probability 2^-16 at most.
pub(crate) const DRAWS: u64 = 11_085;

/// The fraction of wrong elements that the probability of a miss is stated for, over other semirings than plus-times.
pub const WRONG_FRACTION: f64 = 0.001;

/// The claim that C = alpha A B + beta C0: the blocks of each matrix that this process holds. Together the ranks of a world
/// hold each element once; a process alone holds whole matrices.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a, T> {
    /// The left factor.
    pub a: &'a LocalBlocks<T>,
    /// The right factor.
    pub b: &'a LocalBlocks<T>,
    /// The result.
    pub c: &'a LocalBlocks<T>,
    /// The initial C, if there is one.
    pub initial: Option<&'a LocalBlocks<T>>,
    /// Alpha and beta.
    pub scaling: Scaling<T>,
}

/// What a passed check means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verified {
    /// The probability, at most, that a wrong result passes: over plus-times one whose errors do not look like rounding;
    /// over the other semirings one in which a fraction of [`WRONG_FRACTION`] of the elements is wrong.
    pub error_probability: f64,
    /// Elements that were recomputed one by one, where that was the check.
    pub sampled: Option<u64>,
}

/// Checks a claim; every rank calls it and gets the same answer. Over plus-times by Freivalds' method where all numbers are
/// finite: time O(16 elements) on each rank. Else by recomputing a sample of elements, exactly, or up to rounding
/// over plus-times.
///
/// # Errors
/// [`Error::WrongResult`] names a wrong element with both values (in a world of several ranks as [`Error::Agreed`]); interrupted.
pub fn verify<T: Element>(
    claim: &Claim<'_, T>,
    shape: Shape,
    kernel: Kernel<T>,
    seed: u64,
    world: &World,
) -> Result<Verified> {
    // What zero is the factor of does not count.
    let (nothing, zero) = (LocalBlocks::new(), kernel.zero());
    let [alpha, beta] = claim.scaling.scalars();
    let (a, b) = if alpha == zero { (&nothing, &nothing) } else { (claim.a, claim.b) };
    let claim = Claim { a, b, initial: claim.initial.filter(|_| beta != zero), ..*claim };
    if kernel.semiring() == Semiring::PlusTimes && vectors::all_finite(&claim, world)? {
        let verdict = vectors::verify(claim, shape, seed, world)?;
        let error_probability = world.all_ok(verdict)?;
        return Ok(Verified { error_probability, sampled: None });
    }
    let verdict = elements::verify(claim, shape, kernel, (DRAWS, seed), world)?;
    let passed = world.all_ok(verdict)?;
    Ok(Verified {
        error_probability: passed.error_probability(WRONG_FRACTION),
        sampled: Some(passed.elements),
    })
}

/// The error for a wrong element.
fn wrong((i, j): (usize, usize), seen: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Error {
    let what = format!("element ({i}, {j}), counted from 0, is {seen} and should be {wanted}");
    Error::WrongResult { what }
}

#[cfg(test)]
mod tests;

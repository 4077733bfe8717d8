//! A sample of elements, recomputed and compared exactly, over semirings that have no subtraction.

use super::parts::{Parts, Place, elements_at};
use super::recompute::{Recipe, recompute};
use super::{Verified, wrong};
use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::random::Random;
use crate::run::World;

/// Number of elements drawn: a result in which [`WRONG_FRACTION`] of the elements is wrong passes with
/// probability 2^-16 at most.
pub(crate) const DRAWS: u64 = 11_085;

/// The fraction of wrong elements that [`Verified::error_probability`] refers to over semirings other than
/// plus-times.
pub const WRONG_FRACTION: f64 = 0.001;

/// The meaning of a passed check by samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampled {
    /// Number of elements recomputed; those drawn twice count twice.
    pub elements: u64,
    /// Number of them that were drawn independently and uniformly from all of C.
    pub drawn: u64,
    /// True if every element of C was recomputed: then no error was missed.
    pub all: bool,
}

impl Sampled {
    /// Upper bound of the probability that the check passes although a `fraction` of C's elements is wrong:
    /// `(1 - fraction)^drawn`, or 0 if all were recomputed. It does not cover fewer wrong elements: a single
    /// one among n is missed with probability `(1 - 1 / n)^drawn`.
    pub fn error_probability(&self, fraction: f64) -> f64 {
        if self.all { 0.0 } else { (1.0 - fraction.clamp(0.0, 1.0)).powf(self.drawn as f64) }
    }
}

/// Recomputes a sample of this many elements, besides one of every row and of every column.
///
/// # Errors
/// The first wrong element of the sample; interrupted.
pub(super) fn verify<T: Element>(
    parts: &Parts<'_, T>,
    kernel: Kernel<T>,
    (draws, seed): (u64, u64),
    world: &World,
) -> Result<Verified> {
    let passed = sample(parts, kernel, (draws, seed), world)?;
    Ok(Verified {
        error_probability: passed.error_probability(WRONG_FRACTION),
        sampled: Some(passed.elements),
        exceptional: 0,
    })
}

/// Recomputes `draws` elements drawn independently and uniformly, and one of every row and of every column,
/// so that a row or a column that is wrong throughout is certainly found; or all elements, if there are at
/// most `draws`. Exact in any order, since each candidate is a single sum. NaN equals NaN.
///
/// Time O((draws + m + n) k / p + k n); memory O(draws + m + n) and as much as a rank's part of A.
///
/// # Errors
/// The first wrong element of the sample; interrupted.
pub(super) fn sample<T: Element>(
    parts: &Parts<'_, T>,
    kernel: Kernel<T>,
    (draws, seed): (u64, u64),
    world: &World,
) -> Result<Sampled> {
    let shape = parts.shape;
    let (m, n) = (shape.m as usize, shape.n as usize);
    let all = shape.elements() <= draws;
    let places = if all { whole(m, n) } else { drawn((m, n), draws, seed) };
    let mut wanted = recompute(parts, &places, &kernel, world)?;
    let before = parts.initial.as_ref();
    let before = before.map(|blocks| elements_at(blocks, places.iter().copied(), world)).transpose()?;
    kernel.finish(parts.scaling.scalars(), &mut wanted, before.as_deref());
    let seen = elements_at(&parts.c, places.iter().copied(), world)?;
    let differ =
        |(seen, wanted): (&T, &T)| seen != wanted && !(seen.to_f64().is_nan() && wanted.to_f64().is_nan());
    if let Some(at) = seen.iter().zip(&wanted).position(differ) {
        return Err(wrong(places[at], seen[at], wanted[at]));
    }
    Ok(Sampled { elements: places.len() as u64, drawn: if all { 0 } else { draws }, all })
}

fn whole(m: usize, n: usize) -> Vec<Place> {
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).collect()
}

/// Places drawn from all of C, and one of every row and of every column; sorted.
pub(super) fn drawn((m, n): (usize, usize), draws: u64, seed: u64) -> Vec<Place> {
    let mut random = Random::new(seed);
    let mut places: Vec<_> = (0..draws).map(|_| (random.below(m), random.below(n))).collect();
    places.extend((0..m).map(|i| (i, random.below(n))));
    places.extend((0..n).map(|j| (random.below(m), j)));
    places.sort_unstable();
    places
}

/// The best of the candidates, which is the semiring's sum.
impl<T: Element> Recipe<T> for Kernel<T> {
    type Share = T;

    fn nothing(&self) -> T {
        self.zero()
    }

    fn add(&self, share: &mut T, _: usize, left: &[T], right: &[T]) {
        *share = self.join(*share, self.entry(left, right));
    }

    fn join(&self, x: T, y: T) -> T {
        self.entry(&[x, y], &[self.one(); 2])
    }
}

//! A sample of elements, recomputed and compared exactly, over semirings that have no subtraction.

use super::parts::{Blocks, Parts, Place, elements_at, threads};
use super::{Verified, wrong};
use crate::error::Result;
use crate::geometry::{Rect, Span, SpanSet};
use crate::kernels::Kernel;
use crate::matrix::{Element, LocalBlocks, views_of};
use crate::random::Random;
use crate::run::{World, redistribute};
use crate::threads::share_out;
use bytemuck::Pod;

/// Number of elements drawn: a result in which [`WRONG_FRACTION`] of the elements is wrong passes with
/// probability 2^-16 at most.
pub(crate) const DRAWS: u64 = 11_085;

/// The fraction of wrong elements that [`Verified::error_probability`] refers to over semirings other than
/// plus-times.
pub(crate) const WRONG_FRACTION: f64 = 0.001;

/// The meaning of a passed check by samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampled {
    /// Number of elements recomputed; those drawn twice count twice.
    pub(crate) elements: u64,
    /// Number of them that were drawn independently and uniformly from all of C.
    pub(crate) drawn: u64,
    /// True if every element of C was recomputed: then no error was missed.
    pub(crate) all: bool,
}

impl Sampled {
    /// Upper bound of the probability that the check passes although a `fraction` of C's elements is wrong:
    /// `(1 - fraction)^drawn`, or 0 if all were recomputed. It does not cover fewer wrong elements: a single
    /// one among n is missed with probability `(1 - 1 / n)^drawn`.
    pub(crate) fn error_probability(&self, fraction: f64) -> f64 {
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
    draws: u64,
    seed: u64,
    world: &World,
) -> Result<Verified> {
    let passed = sample(parts, kernel, draws, seed, world)?;
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
    draws: u64,
    seed: u64,
    world: &World,
) -> Result<Sampled> {
    let shape = parts.shape;
    let (m, n) = (shape.m as usize, shape.n as usize);
    let all = shape.elements() <= draws;
    let places = if all { whole(m, n) } else { drawn(m, n, draws, seed) };
    let mut wanted = recompute(parts, &places, &kernel, world)?;
    let before = parts.initial.as_ref();
    let before = before.map(|blocks| elements_at(blocks, places.iter().copied(), world)).transpose()?;
    kernel.finish(parts.scaling, &mut wanted, before.as_deref());
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
pub(super) fn drawn(m: usize, n: usize, draws: u64, seed: u64) -> Vec<Place> {
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

// Elements of A B by definition; each rank adds the contribution of its own part of A.

/// How an element is computed from contributions.
pub(super) trait Recipe<T>: Sync {
    /// The contribution of some of the pairs of factors.
    type Share: Pod + Send + Sync;

    /// The contribution of no pairs.
    fn nothing(&self) -> Self::Share;

    /// Adds pairs of an element of row `i`.
    fn add(&self, share: &mut Self::Share, i: usize, left: &[T], right: &[T]);

    /// The contribution of both together.
    fn join(&self, x: Self::Share, y: Self::Share) -> Self::Share;
}

/// Minimum number of rows of B that travel together.
const BLOCK: u64 = 64;
/// Elements of B that a single process transposes at a time: they fit a cache.
const CACHED: u64 = 1 << 19;

/// The elements of A B at these places, on every rank. A rank receives the rows of B that its own part of A
/// needs, each once, in chunks of the size of its own part, or of 64 rows. Time O(places k / p + k n).
///
/// # Errors
/// Interrupted, or another rank failed.
pub(super) fn recompute<T: Element, R: Recipe<T>>(
    parts: &Parts<'_, T>,
    places: &[Place],
    recipe: &R,
    world: &World,
) -> Result<Vec<R::Share>> {
    let Parts { a, b, shape, .. } = parts;
    let mut shares = vec![recipe.nothing(); places.len()];
    // Only rows and columns with a place on this rank count.
    let here = |i: usize| a.iter().any(|(rect, _)| contains(rect.rows, i));
    let columns = places.iter().filter(|(i, _)| here(*i)).map(|(_, j)| *j as u64);
    let (first, end) = columns.fold((u64::MAX, 0), |(first, end), j| (first.min(j), end.max(j + 1)));
    let columns = Span::new(first.min(end), end);
    let touched = |rect: &Rect| places.iter().any(|(i, _)| contains(rect.rows, *i));
    let needed = SpanSet::union(a.iter().filter(|(rect, _)| touched(rect)).map(|(rect, _)| rect.cols));
    let own: u64 = a.iter().map(|(rect, _)| rect.area()).sum();
    let most = world.all_reduce(&[if places.is_empty() { 0 } else { own }], u64::max)?[0];
    if most == 0 {
        return Ok(shares);
    }
    let chunk = if world.is_solo() { most.min(CACHED) } else { most } / shape.n;
    let threads = threads(world);
    for inner in Span::new(0, shape.k).blocks(chunk.max(BLOCK)) {
        world.check()?;
        let right = if world.size() == 1 {
            transposed(b, inner, columns, threads)
        } else {
            let wanted: Vec<Rect> = needed.intersect(inner).map(|rows| Rect::new(rows, columns)).collect();
            let came = redistribute(world, &rows_of(b, inner), &wanted)?;
            transposed(&views_of(&came), inner, columns, threads)
        };
        let length = inner.len() as usize;
        let add = |places: &[Place], shares: &mut [R::Share]| {
            for ((i, j), share) in places.iter().zip(shares) {
                for (rect, elements) in a.iter().filter(|(rect, _)| contains(rect.rows, *i)) {
                    let common = rect.cols.intersect(inner);
                    if common.is_empty() {
                        continue;
                    }
                    let row = (*i as u64 - rect.rows.start) * rect.cols.len();
                    let left = &elements[(row + common.start - rect.cols.start) as usize..];
                    let column = &right[(*j - columns.start as usize) * length..][..length];
                    let right = &column[(common.start - inner.start) as usize..][..common.len() as usize];
                    recipe.add(share, *i, &left[..right.len()], right);
                }
            }
        };
        let each = places.len().div_ceil(threads);
        let divided = places.chunks(each).zip(shares.chunks_mut(each)).collect();
        share_out(divided, threads, |(places, shares)| add(places, shares));
    }
    world.all_reduce(&shares, |x, y| recipe.join(x, y))
}

fn contains(span: Span, at: usize) -> bool {
    (span.start..span.end).contains(&(at as u64))
}

/// A rectangle of a matrix, column by column; zeros where no block is.
fn transposed<T: Element>(blocks: &Blocks<'_, T>, rows: Span, cols: Span, threads: usize) -> Vec<T> {
    let (height, width) = (rows.len() as usize, cols.len() as usize);
    let mut turned = vec![T::ZERO; height * width];
    let turn = |cols: Span, turned: &mut [T]| {
        for (rect, elements) in blocks {
            let common = rect.intersect(Rect::new(rows, cols));
            if common.is_empty() {
                continue;
            }
            for l in common.rows.start..common.rows.end {
                let from = (l - rect.rows.start) * rect.cols.len() + common.cols.start - rect.cols.start;
                let row = &elements[from as usize..][..common.cols.len() as usize];
                let to = (common.cols.start - cols.start) as usize * height + (l - rows.start) as usize;
                row.iter().zip(turned[to..].iter_mut().step_by(height)).for_each(|(x, t)| *t = *x);
            }
        }
    };
    let each = width.div_ceil(threads).max(1);
    let divided = cols.blocks(each as u64).zip(turned.chunks_mut(each * height)).collect();
    share_out(divided, threads, |(cols, turned)| turn(cols, turned));
    turned
}

/// Some rows of a matrix, as far as this rank holds them.
fn rows_of<T: Element>(blocks: &Blocks<'_, T>, rows: Span) -> LocalBlocks<T> {
    let common = blocks.iter().map(|(rect, elements)| (*rect, rect.rows.intersect(rows), elements));
    let cut = common.filter(|(rect, common, _)| !Rect::new(*common, rect.cols).is_empty());
    let copy = cut.map(|(rect, common, elements)| {
        let from = ((common.start - rect.rows.start) * rect.cols.len()) as usize;
        let cut = Rect::new(common, rect.cols);
        (cut, elements[from..from + cut.area() as usize].to_vec())
    });
    copy.collect()
}

//! The check by samples on parts: each rank recomputes, from its own part of A and the rows of B that go with it, its
//! share of each sampled element; only then are the shares put together and compared.

use super::freivalds::each_row;
use super::{Product, wrong};
use crate::error::Result;
use crate::matrix::{Element, Sampled, SplitMix64};
use crate::plan::Shape;
use crate::rect::{Rect, Span};
use crate::run::kernels::Semiring;
use crate::run::{Kernel, World};

/// Rows of B that travel together.
const BLOCK: u64 = 64;

/// As [`verify_sampled`](crate::verify_sampled), for a product that lies in parts on the ranks of a world, and with rounding allowed
/// for over plus-times. The outcome is rank 0's; the others' is a success, so that it is to be agreed on.
///
/// B goes once to each rank that has something of A, in blocks of 64 rows; memory O(64 n + draws + m + n).
///
/// # Errors
/// Outside: interrupted. Inside: the first wrong element found.
pub(super) fn verify<T: Element>(
    (a, b, c): Product<'_, T>,
    shape: Shape,
    kernel: Kernel<T>,
    (draws, seed): (u64, u64),
    world: &World,
) -> Result<Result<Sampled>> {
    let (m, n) = (shape.m as usize, shape.n as usize);
    let all = shape.elements() <= draws;
    let places = if all { whole(m, n) } else { drawn((m, n), draws, seed) };
    let mut shares = Shares::new(kernel, places.len());
    for block in Span::new(0, shape.k).blocks(BLOCK) {
        let rows = gathered(b, block, n, world)?;
        each_row(a, |i, rect, row| {
            let inner = rect.cols.intersect(block);
            if inner.is_empty() {
                return;
            }
            let left = &row[(inner.start - rect.cols.start) as usize..][..inner.len() as usize];
            // Places are sorted: those of a row lie together.
            let first = places.partition_point(|(row, _)| *row < i);
            for (at, (_, j)) in places.iter().enumerate().skip(first).take_while(|(_, (row, _))| *row == i) {
                let right = (inner.start - block.start..).take(left.len()).map(|l| rows[l as usize * n + j]);
                shares.add(at, left, right);
            }
        });
    }
    let seen = values(c, &places, world)?;
    let wanted = shares.together(shape.k, world)?;
    let passed = Sampled { elements: places.len() as u64, drawn: if all { 0 } else { draws }, all };
    if world.rank() > 0 {
        return Ok(Ok(passed));
    }
    let first_wrong =
        places.iter().zip(seen.iter().zip(&wanted)).find(|(_, (seen, wanted))| !wanted.allows(**seen));
    Ok(match first_wrong {
        None => Ok(passed),
        Some((place, (seen, wanted))) => Err(wrong(*place, T::from_f64(*seen), wanted.value)),
    })
}

fn whole(m: usize, n: usize) -> Vec<(usize, usize)> {
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).collect()
}

/// Places drawn from all of C, and one of every row and of every column; sorted.
fn drawn((m, n): (usize, usize), draws: u64, seed: u64) -> Vec<(usize, usize)> {
    let mut random = SplitMix64(seed);
    let mut places: Vec<_> = (0..draws).map(|_| (random.below(m), random.below(n))).collect();
    places.extend((0..m).map(|i| (i, random.below(n))));
    places.extend((0..n).map(|j| (random.below(m), j)));
    places.sort_unstable();
    places
}

/// Some rows of B, on every rank: each brings what it has.
fn gathered<T: Element>(b: &[(Rect, Vec<T>)], block: Span, n: usize, world: &World) -> Result<Vec<T>> {
    let mut mine: Vec<u8> = Vec::new();
    for (rect, tile) in b {
        let rows = rect.rows.intersect(block);
        if rows.is_empty() {
            continue;
        }
        let bounds = [rows.start, rows.end, rect.cols.start, rect.cols.end];
        let width = rect.cols.len() as usize;
        let first = (rows.start - rect.rows.start) as usize * width;
        mine.extend(bytemuck::cast_slice::<u64, u8>(&bounds));
        mine.extend(bytemuck::cast_slice::<T, u8>(&tile[first..first + rows.len() as usize * width]));
    }
    let mut all = vec![T::ZERO; block.len() as usize * n];
    let pieces = world.broadcast(&world.gather(&mine)?.concat())?;
    let mut rest = &pieces[..];
    while !rest.is_empty() {
        let bound = |i: usize| bytemuck::pod_read_unaligned::<u64>(&rest[8 * i..8 * i + 8]) as usize;
        let (top, bottom, left, right) = (bound(0), bound(1), bound(2), bound(3));
        let bytes = (bottom - top) * (right - left) * size_of::<T>();
        let (elements, others) = rest[32..].split_at(bytes);
        let rows = elements.chunks_exact((right - left) * size_of::<T>());
        for (i, row) in (top - block.start as usize..).zip(rows) {
            let target: &mut [u8] = bytemuck::cast_slice_mut(&mut all[i * n + left..i * n + right]);
            target.copy_from_slice(row);
        }
        rest = others;
    }
    Ok(all)
}

/// C's elements at these places, as doubles, which hold every element exactly. On rank 0.
fn values<T: Element>(c: &[(Rect, Vec<T>)], places: &[(usize, usize)], world: &World) -> Result<Vec<f64>> {
    let holds = |rect: &Rect, i: u64, j: u64| {
        (rect.rows.start..rect.rows.end).contains(&i) && (rect.cols.start..rect.cols.end).contains(&j)
    };
    // NaN is a value too: a second word says whose it is.
    let mut seen = vec![0.0; 2 * places.len()];
    for (at, &(i, j)) in places.iter().enumerate() {
        let (i, j) = (i as u64, j as u64);
        if let Some((rect, tile)) = c.iter().find(|(rect, _)| holds(rect, i, j)) {
            let place = (i - rect.rows.start) * rect.cols.len() + j - rect.cols.start;
            seen[2 * at] = tile[place as usize].to_f64();
            seen[2 * at + 1] = 1.0;
        }
    }
    let mut all = vec![f64::NAN; places.len()];
    for bytes in world.gather(bytemuck::cast_slice(&seen))? {
        for (value, pair) in all.iter_mut().zip(bytes.chunks_exact(16)) {
            let [x, here]: [f64; 2] = bytemuck::pod_read_unaligned(pair);
            if here == 1.0 {
                *value = x;
            }
        }
    }
    Ok(all)
}

/// Shares of sampled elements. Over plus-times: the sum and size of the finite products and the sum of the others, all in
/// double precision; else the best candidate, in the first word.
struct Shares<T> {
    kernel: Kernel<T>,
    sums: bool,
    words: Vec<[f64; 3]>,
    row: Vec<T>,
}

/// What a sampled element should be.
struct Wanted {
    value: f64,
    margin: f64,
}

impl<T: Element> Shares<T> {
    fn new(kernel: Kernel<T>, places: usize) -> Self {
        let sums = kernel.semiring() == Semiring::PlusTimes;
        let zero = if sums { 0.0 } else { kernel.zero().to_f64() };
        Self { kernel, sums, words: vec![[zero, 0.0, 0.0]; places], row: Vec::new() }
    }

    fn add(&mut self, at: usize, left: &[T], right: impl Iterator<Item = T>) {
        self.row.clear();
        self.row.extend(right);
        if !self.sums {
            let best = self.kernel.entry(left, &self.row);
            self.words[at][0] = self.better(self.words[at][0], best.to_f64());
            return;
        }
        let [sum, size, strange] = &mut self.words[at];
        for (x, y) in left.iter().zip(&self.row) {
            let (x, y) = (x.to_f64(), y.to_f64());
            if x.is_finite() && y.is_finite() {
                *sum += x * y;
                *size += (x * y).abs();
            } else {
                *strange += x * y;
            }
        }
    }

    /// The semiring's sum of two elements.
    fn better(&self, x: f64, y: f64) -> f64 {
        let one = self.kernel.one();
        self.kernel.entry(&[T::from_f64(x), T::from_f64(y)], &[one, one]).to_f64()
    }

    /// Everybody's shares as one, for products of `k` terms.
    fn together(&self, k: u64, world: &World) -> Result<Vec<Wanted>> {
        let add = |x: f64, y: f64| if self.sums { x + y } else { self.better(x, y) };
        let words: Vec<f64> = if self.sums {
            self.words.as_flattened().to_vec()
        } else {
            self.words.iter().map(|w| w[0]).collect()
        };
        let all = world.combine(&words, add)?;
        if !self.sums {
            return Ok(all.into_iter().map(|value| Wanted { value, margin: 0.0 }).collect());
        }
        let rounding = (k as f64 + 1.0) * (T::EPSILON + f64::EPSILON);
        let wanted = all.chunks_exact(3).map(|w| {
            let value = if w[2] == 0.0 { w[0] } else { w[2] };
            // Near the largest number, and beyond, the order of summation decides whether it overflows.
            let overflows = w[1] >= T::LARGEST / 2.0;
            Wanted {
                value,
                margin: if overflows { f64::INFINITY } else { rounding * w[1] + k as f64 * T::TINY },
            }
        });
        Ok(wanted.collect())
    }
}

impl Wanted {
    fn allows(&self, seen: f64) -> bool {
        seen == self.value
            || (seen.is_nan() && self.value.is_nan())
            || self.margin == f64::INFINITY
            || (seen - self.value).abs() <= self.margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many draws as asked for, and no row and no column without one.
    #[test]
    fn every_row_and_column_is_sampled() {
        let places = drawn((30, 7), 50, 3);
        assert_eq!(places.len(), 50 + 30 + 7);
        assert!((0..30).all(|i| places.iter().any(|p| p.0 == i)));
        assert!((0..7).all(|j| places.iter().any(|p| p.1 == j)));
        assert!(places.is_sorted());
    }

    #[test]
    fn margins_allow_rounding_and_nothing_else() {
        let wanted = Wanted { value: 1.0, margin: 1e-9 };
        assert!(wanted.allows(1.0 + 1e-10) && !wanted.allows(1.1) && !wanted.allows(f64::NAN));
        assert!(!wanted.allows(f64::INFINITY));
        assert!(Wanted { value: f64::NAN, margin: 0.0 }.allows(f64::NAN));
        assert!(!Wanted { value: f64::INFINITY, margin: 0.0 }.allows(1e300));
    }
}

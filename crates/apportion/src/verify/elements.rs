//! The check by samples on parts: each rank recomputes, from its own part of A and the rows of B that go with it, its
//! share of each sampled element; only then are the shares put together and compared.

use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::kernels::Kernel;
use crate::kernels::Semiring;
use crate::matrix::{Element, LocalBlocks};
use crate::plan::Shape;
use crate::run::World;
use crate::verify::vectors::each_row;
use crate::verify::{Claim, SplitMix64, wrong};

/// What a passed check by samples means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampled {
    /// Elements recomputed; those drawn twice count twice.
    pub elements: u64,
    /// Those of them that were drawn independently and uniformly from all of C.
    pub drawn: u64,
    /// True if every element of C was recomputed: then nothing was missed.
    pub all: bool,
}

impl Sampled {
    /// The chance, at most, that the check passes though a `fraction` of C's elements is wrong: (1 - fraction)^drawn,
    /// and 0 if all were recomputed. It says nothing of fewer wrong elements: a single one among n is missed with
    /// probability (1 - 1 / n)^drawn.
    pub fn error_probability(&self, fraction: f64) -> f64 {
        if self.all { 0.0 } else { (1.0 - fraction.clamp(0.0, 1.0)).powf(self.drawn as f64) }
    }
}

/// Rows of B that travel together.
const BLOCK: u64 = 64;

/// As [`verify_sampled`](crate::verify::verify_sampled), for a product that lies in parts on the ranks of a world, and with rounding allowed
/// for over plus-times. The outcome is rank 0's; the others' is a success, so that it is to be agreed on.
///
/// B goes once to each rank that has something of A, in blocks of 64 rows; memory O(64 n + draws + m + n).
///
/// # Errors
/// Outside: interrupted. Inside: the first wrong element found.
pub(super) fn verify<T: Element>(
    claim: Claim<'_, T>,
    shape: Shape,
    kernel: Kernel<T>,
    (draws, seed): (u64, u64),
    world: &World,
) -> Result<Result<Sampled>> {
    let Claim { a, b, c, initial, .. } = claim;
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
    let initial = initial.map(|tiles| values(tiles, &places, world)).transpose()?;
    shares.put_together(world)?;
    let passed = Sampled { elements: places.len() as u64, drawn: if all { 0 } else { draws }, all };
    if world.rank() > 0 {
        return Ok(Ok(passed));
    }
    for (at, (place, seen)) in places.iter().zip(seen).enumerate() {
        let wanted = shares.wanted(at, claim.scaling.scalars(), initial.as_ref().map(|all| all[at]), shape.k);
        if !wanted.allows(seen) {
            return Ok(Err(wrong(*place, seen, wanted.value)));
        }
    }
    Ok(Ok(passed))
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

/// A matrix's elements at these places, on rank 0.
fn values<T: Element>(tiles: &LocalBlocks<T>, places: &[(usize, usize)], world: &World) -> Result<Vec<T>> {
    let holds = |rect: &Rect, i: u64, j: u64| {
        (rect.rows.start..rect.rows.end).contains(&i) && (rect.cols.start..rect.cols.end).contains(&j)
    };
    // First whether each is here, then what it is.
    let (mut here, mut mine) = (vec![0u8; places.len()], vec![T::ZERO; places.len()]);
    for (at, &(i, j)) in places.iter().enumerate() {
        let (i, j) = (i as u64, j as u64);
        if let Some((rect, tile)) = tiles.iter().find(|(rect, _)| holds(rect, i, j)) {
            let place = (i - rect.rows.start) * rect.cols.len() + j - rect.cols.start;
            (here[at], mine[at]) = (1, tile[place as usize]);
        }
    }
    here.extend_from_slice(bytemuck::cast_slice(&mine));
    let mut all = vec![T::ZERO; places.len()];
    for bytes in world.gather(&here)? {
        let (here, values) = bytes.split_at(places.len());
        let values = values.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned);
        for ((value, x), _) in all.iter_mut().zip(values).zip(here).filter(|(_, here)| **here == 1) {
            *value = x;
        }
    }
    Ok(all)
}

/// Shares of sampled elements.
struct Shares<T> {
    kernel: Kernel<T>,
    of: Of<T>,
    row: Vec<T>,
}

enum Of<T> {
    /// Over plus-times: the sum and the size of the finite products and the sum of the others, in double precision.
    Sums(Vec<[f64; 3]>),
    /// Else the best candidates.
    Best(Vec<T>),
}

/// What a sampled element should be, and by how much it may be off.
struct Wanted<T> {
    value: T,
    exact: f64,
    margin: f64,
}

impl<T: Element> Shares<T> {
    fn new(kernel: Kernel<T>, places: usize) -> Self {
        let of = match kernel.semiring() {
            Semiring::PlusTimes => Of::Sums(vec![[0.0; 3]; places]),
            _ => Of::Best(vec![kernel.zero(); places]),
        };
        Self { kernel, of, row: Vec::new() }
    }

    fn add(&mut self, at: usize, left: &[T], right: impl Iterator<Item = T>) {
        self.row.clear();
        self.row.extend(right);
        match &mut self.of {
            Of::Best(all) => all[at] = better(self.kernel, all[at], self.kernel.entry(left, &self.row)),
            Of::Sums(all) => {
                let [sum, size, strange] = &mut all[at];
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
        }
    }

    /// Everybody's shares as one.
    fn put_together(&mut self, world: &World) -> Result<()> {
        self.of = match &self.of {
            Of::Sums(mine) => Of::Sums(world.all_reduce(mine, |x, y| std::array::from_fn(|i| x[i] + y[i]))?),
            Of::Best(mine) => Of::Best(world.all_reduce(mine, |x, y| better(self.kernel, x, y))?),
        };
        Ok(())
    }

    /// An element of alpha A B + beta C0 whose product has `k` terms, given that of C0, if it counts.
    fn wanted(&self, at: usize, scalars: [T; 2], initial: Option<T>, k: u64) -> Wanted<T> {
        let sums = match &self.of {
            Of::Sums(all) => all[at],
            Of::Best(all) => {
                let mut value = [all[at]];
                self.kernel.finish(scalars, &mut value, initial.as_ref().map(std::slice::from_ref));
                return Wanted { value: value[0], exact: value[0].to_f64(), margin: 0.0 };
            }
        };
        let [alpha, beta] = scalars.map(Element::to_f64);
        let ([sum, size, strange], before) = (sums, initial.map_or(0.0, |x| beta * x.to_f64()));
        let exact = alpha * if strange == 0.0 { sum } else { strange } + before;
        let most = alpha.abs() * size + if before.is_finite() { before.abs() } else { 0.0 };
        let tiny = T::TINY * alpha.abs().max(1.0);
        let rounding = (k as f64 + if alpha == 1.0 && initial.is_none() { 1.0 } else { 4.0 })
            * (T::EPSILON + f64::EPSILON);
        // Near the largest number, and beyond, the order of summation decides whether it overflows.
        let overflows = size.max(most) >= T::LARGEST / 2.0;
        let margin = if overflows { f64::INFINITY } else { rounding * most + k as f64 * tiny };
        Wanted { value: T::from_f64(exact), exact, margin }
    }
}

/// The semiring's sum of two elements.
fn better<T: Element>(kernel: Kernel<T>, x: T, y: T) -> T {
    let one = kernel.one();
    kernel.entry(&[x, y], &[one, one])
}

impl<T: Element> Wanted<T> {
    fn allows(&self, seen: T) -> bool {
        let number = seen.to_f64();
        seen == self.value
            || (number.is_nan() && self.exact.is_nan())
            || self.margin == f64::INFINITY
            // Without a margin only the same element will do: equal as doubles are large whole numbers that differ.
            || (self.margin > 0.0 && (number - self.exact).abs() <= self.margin)
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
        let wanted = Wanted { value: 1.0, exact: 1.0, margin: 1e-9 };
        assert!(wanted.allows(1.0 + 1e-10) && !wanted.allows(1.1) && !wanted.allows(f64::NAN));
        assert!(!wanted.allows(f64::INFINITY));
        let nan = Wanted { value: f64::NAN, exact: f64::NAN, margin: 0.0 };
        assert!(nan.allows(f64::NAN));
        let infinite = Wanted { value: f64::INFINITY, exact: f64::INFINITY, margin: 0.0 };
        assert!(!infinite.allows(1e300) && infinite.allows(f64::INFINITY));
        let large = Wanted { value: i64::MAX - 1, exact: i64::MAX as f64, margin: 0.0 };
        assert!(large.allows(i64::MAX - 1) && !large.allows(i64::MAX - 2));
    }
}

//! Rows of a closure or of a power over a semiring without subtraction, checked against the matrix itself: an element
//! that is wrong in one of the products of a chain spreads, and each later product by it is right.
//!
//! * A row of a closure needs no recomputation. No edge leads from a length in it to a better one, and each of its
//!   lengths is reached from the row's own vertex by edges that are exactly as long as the lengths that they connect
//!   differ: then the row has the lengths of the best paths. Cycles of length 0 make no exception.
//! * A row of a power is that of the identity times the matrix, as many times as the exponent says.
//!
//! Lengths are compared as doubles, with a sign by which shorter is better. Whole numbers are compared exactly; the
//! sums of others depend on their order, and are compared up to rounding.

use super::parts::threads;
use super::wrong;
use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::kernels::{Kernel, Loop, Semiring, widest};
use crate::matrix::{Element, LocalBlocks};
use crate::random::Random;
use crate::run::{World, redistribute};
use crate::threads::share_out;

/// Additions and comparisons that the check of a small matrix may take: a tenth of a second.
const FEW: u64 = 1 << 28;

/// Rows of a closure that are checked at least, if there are so many.
const FEWEST_ROWS: u64 = 64;

/// Part of the rows of a large closure that are checked at least: a fraction of the work of its products.
const PART_OF_ROWS: u64 = 64;

/// Elements that are looked at together for the few that matter.
const CHUNK: usize = 64;

/// A matrix, and its closure or a power of it, as this process holds them.
pub(crate) struct Walks<'a, T> {
    pub(crate) kernel: Kernel<T>,
    pub(crate) edges: &'a LocalBlocks<T>,
    pub(crate) result: &'a LocalBlocks<T>,
    /// Rows of the matrix.
    pub(crate) n: u64,
    pub(crate) seed: u64,
    pub(crate) world: &'a World,
}

/// The meaning of a passed check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowsChecked {
    /// Number of rows that were checked.
    pub rows: u64,
    /// The fraction of wrong elements that is missed with a probability of at most 2^-16; 0 if all rows were checked.
    pub wrong_fraction: f64,
    /// False if lengths were compared up to rounding.
    pub exact: bool,
}

/// A wrong element of a row: its column, and the length that it should have at most, if that is known.
type Found = Option<(usize, Option<f64>)>;

impl<T: Element> Walks<'_, T> {
    /// Checks rows of a closure, whose diagonal has at least the empty paths. Time O(n^2) for each row.
    ///
    /// # Errors
    /// The first wrong element of the first wrong row that was drawn, on all ranks; interrupted.
    pub(crate) fn verify_closure(&self) -> Result<RowsChecked> {
        let (n, world) = (self.n as usize, self.world);
        let rows = self.draw((FEW / (self.n * self.n)).max(self.n / PART_OF_ROWS).max(FEWEST_ROWS));
        let claims = self.claims(&rows)?;
        let (strip, first) = self.strip()?;
        let longest = world.all_reduce(&[self.largest(self.result)], f64::max)?[0];
        let (tolerance, exact) = self.tolerance(longest, self.n)?;
        let (kernel, monitor) = (self.kernel, world.monitor());
        let mut sources: Vec<Source<'_>> = rows
            .iter()
            .zip(&claims)
            .map(|(row, claims)| Source::new(*row as usize, claims, tolerance))
            .collect();
        loop {
            // Each rank follows its own edges as far as they lead.
            share_out(sources.iter_mut().collect(), threads(world), |source: &mut Source<'_>| {
                if monitor.is_stopped() {
                    return;
                }
                let mut edges = vec![0.0; n];
                while let Some(from) = source.open.pop() {
                    let Some(own) = from.checked_sub(first).and_then(|i| strip.get(i * n..(i + 1) * n))
                    else {
                        continue;
                    };
                    own.iter().zip(&mut edges).for_each(|(x, to)| *to = length(kernel, *x));
                    source.follow(from, &edges, |x| rounded(kernel, x));
                }
            });
            world.check()?;
            if world.is_solo() {
                break;
            }
            let mine: Vec<u8> = sources.iter().flat_map(|source| source.reached.iter().copied()).collect();
            let all = world.all_reduce(&mine, u8::max)?;
            for (source, all) in sources.iter_mut().zip(all.chunks_exact(n)) {
                let new = (0..n).filter(|to| all[*to] > source.reached[*to]).collect::<Vec<usize>>();
                new.into_iter().for_each(|to| source.reach(to));
            }
            let open = sources.iter().any(|source| !source.open.is_empty());
            if world.all_reduce(&[u8::from(open)], u8::max)?[0] == 0 {
                break;
            }
        }
        let found = sources.iter().map(Source::found).collect::<Vec<Found>>();
        self.agree(&rows, &claims, &found)?;
        Ok(self.checked(rows.len(), exact))
    }

    /// Checks rows of the power of this exponent, as many as take little time beside `products` products of the whole
    /// matrices. Time O(exponent n^2) for each row.
    ///
    /// # Errors
    /// As [`Walks::verify_closure`].
    pub(crate) fn verify_power(&self, exponent: u64, products: u64) -> Result<RowsChecked> {
        let (n, kernel, world) = (self.n as usize, self.kernel, self.world);
        let few = FEW / (self.n * self.n).saturating_mul(exponent);
        let rows = self.draw(few.max(self.n * products / exponent.saturating_mul(16)).max(1));
        let claims = self.claims(&rows)?;
        let (strip, first) = self.strip()?;
        let edge = world.all_reduce(&[self.largest(self.edges)], f64::max)?[0];
        let (tolerance, exact) = self.tolerance(edge * exponent as f64, exponent)?;
        let unit = |row: &u64| {
            (0..n).map(|j| if j as u64 == *row { 0.0 } else { f64::INFINITY }).collect::<Vec<f64>>()
        };
        let mut lengths: Vec<Vec<f64>> = rows.iter().map(unit).collect();
        for _ in 0..exponent {
            world.check()?;
            let mut next = vec![vec![f64::INFINITY; n]; rows.len()];
            let parts = lengths.iter().zip(&mut next).collect();
            share_out(parts, threads(world), |(from, to): (&Vec<f64>, &mut Vec<f64>)| {
                let mut edges = vec![0.0; n];
                for (own, far) in strip.chunks_exact(n).zip(&from[first..]).filter(|(_, x)| x.is_finite()) {
                    own.iter().zip(&mut edges).for_each(|(x, to)| *to = length(kernel, *x));
                    widest(Shorten { length: *far, edges: &edges, to: &mut to[..] });
                }
            });
            let best = world.all_reduce(&next.concat(), f64::min)?;
            let best = best.chunks_exact(n).map(|row| row.iter().map(|x| rounded(kernel, *x)).collect());
            let next: Vec<Vec<f64>> = best.collect();
            if next == lengths {
                // So are all later ones.
                break;
            }
            lengths = next;
        }
        let differ = |(claim, wanted): (&f64, &f64)| claim != wanted && (claim - wanted).abs() > tolerance;
        let found = |(claims, wanted): (&Vec<f64>, &Vec<f64>)| {
            let at = claims.iter().zip(wanted).position(differ)?;
            Some((at, Some(wanted[at])))
        };
        let found: Vec<Found> = claims.iter().zip(&lengths).map(found).collect();
        self.agree(&rows, &claims, &found)?;
        Ok(self.checked(rows.len(), exact))
    }

    /// So many rows, none twice, in their order: the same on all ranks.
    fn draw(&self, count: u64) -> Vec<u64> {
        let (n, mut random) = (self.n as usize, Random::new(self.seed));
        let mut rows: Vec<u64> = (0..self.n).collect();
        let count = count.min(self.n) as usize;
        (0..count).for_each(|i| rows.swap(i, i + random.below(n - i)));
        rows.truncate(count);
        rows.sort_unstable();
        rows
    }

    /// The lengths of some rows of the result, on all ranks.
    fn claims(&self, rows: &[u64]) -> Result<Vec<Vec<f64>>> {
        let wanted: Vec<Rect> =
            rows.iter().map(|i| Rect::new(Span::new(*i, i + 1), Span::new(0, self.n))).collect();
        let found = redistribute(self.world, self.result, &wanted)?;
        Ok(found.iter().map(|(_, row)| row.iter().map(|x| length(self.kernel, *x)).collect()).collect())
    }

    /// Whole rows of the matrix, each on one rank, and the number of the first that is here.
    fn strip(&self) -> Result<(std::borrow::Cow<'_, [T]>, usize)> {
        let all = Span::new(0, self.n);
        if let ([(rect, elements)], true) = (&self.edges[..], self.world.size() == 1)
            && *rect == Rect::new(all, all)
        {
            return Ok((elements.into(), 0));
        }
        let own = all.blocks(self.n.div_ceil(self.world.size() as u64)).nth(self.world.rank());
        let wanted: Vec<Rect> = own.iter().map(|rows| Rect::new(*rows, all)).collect();
        let found = redistribute(self.world, self.edges, &wanted)?.pop();
        Ok(found.map_or((Vec::new().into(), 0), |(rect, rows)| (rows.into(), rect.rows.start as usize)))
    }

    /// The largest magnitude of a length on this rank.
    fn largest(&self, blocks: &LocalBlocks<T>) -> f64 {
        let lengths = blocks.iter().flat_map(|(_, block)| block).map(|x| length(self.kernel, *x).abs());
        lengths.filter(|x| x.is_finite()).fold(0.0, f64::max)
    }

    /// By how much lengths of up to `count` edges, none longer than `longest`, may differ by the order of their sums,
    /// and whether that is 0 because all are whole numbers.
    fn tolerance(&self, longest: f64, count: u64) -> Result<(f64, bool)> {
        let epsilon = if T::EPSILON < 0.5 { T::EPSILON } else { f64::EPSILON };
        let whole = |x: &T| {
            let x = length(self.kernel, *x);
            x.is_infinite() || x.fract() == 0.0
        };
        let whole = longest <= 1.0 / epsilon && self.edges.iter().flat_map(|(_, block)| block).all(whole);
        let exact = self.world.all_reduce(&[u8::from(whole)], u8::min)?[0] == 1;
        Ok((if exact { 0.0 } else { 4.0 * count as f64 * epsilon * longest }, exact))
    }

    /// The error of the first wrong element that any rank has found.
    fn agree(&self, rows: &[u64], claims: &[Vec<f64>], found: &[Found]) -> Result<()> {
        let key = |found: &Found| {
            found.map_or([f64::MAX; 2], |(at, better)| [at as f64, better.unwrap_or(f64::NAN)])
        };
        let earlier = |x: [f64; 2], y: [f64; 2]| if y[0] < x[0] { y } else { x };
        let keys: Vec<[f64; 2]> = found.iter().map(key).collect();
        let keys = self.world.all_reduce(&keys, earlier)?;
        let Some(at) = keys.iter().position(|[at, _]| *at < f64::MAX) else { return Ok(()) };
        let (row, column, better) = (rows[at] as usize, keys[at][0] as usize, keys[at][1]);
        let say = |length: f64| match self.kernel.semiring() {
            Semiring::OrAnd => u8::from(length.is_finite()).to_string(),
            Semiring::MaxPlus if length.is_finite() => T::from_f64(-length).to_string(),
            _ if length.is_finite() => T::from_f64(length).to_string(),
            _ => self.kernel.zero().to_string(),
        };
        let seen = say(claims[at][column]);
        let wanted = match (better.is_nan(), self.kernel.semiring()) {
            (false, _) => say(better),
            (true, Semiring::OrAnd) => say(f64::INFINITY),
            (true, _) => "worse, since no path is so good".into(),
        };
        self.world.all_ok(Err(wrong((row, column), seen, wanted)))
    }

    fn checked(&self, rows: usize, exact: bool) -> RowsChecked {
        let all = rows as u64 == self.n;
        let wrong_fraction = if all { 0.0 } else { 1.0 - 0.5f64.powf(16.0 / rows as f64) };
        RowsChecked { rows: rows as u64, wrong_fraction, exact }
    }
}

/// The length that an element stands for, by which shorter is better; infinity where there is no path.
fn length<T: Element>(kernel: Kernel<T>, x: T) -> f64 {
    let (length, none) = (x.to_f64(), kernel.zero().to_f64());
    match kernel.semiring() {
        _ if length == none => f64::INFINITY,
        Semiring::OrAnd => 0.0,
        Semiring::MaxPlus => -length,
        _ => length,
    }
}

/// A length as an element can have it: a sum beyond the range of integers is no path.
fn rounded<T: Element>(kernel: Kernel<T>, x: f64) -> f64 {
    match kernel.semiring() {
        Semiring::MaxPlus if x.is_finite() => length(kernel, T::from_f64(-x)),
        Semiring::MinPlus if x.is_finite() => length(kernel, T::from_f64(x)),
        _ => x,
    }
}

/// The row of a closure, and what edges have been found to lead to.
struct Source<'a> {
    claims: &'a [f64],
    /// A length below this is shorter than the row says.
    low: Vec<f64>,
    /// A length up to this reaches a vertex that has not been reached.
    high: Vec<f64>,
    reached: Vec<u8>,
    /// Vertices that have been reached, and whose edges are to be followed.
    open: Vec<usize>,
    /// The first element with a shorter path.
    found: Found,
}

impl<'a> Source<'a> {
    fn new(row: usize, claims: &'a [f64], tolerance: f64) -> Self {
        let low = claims.iter().map(|x| if x.is_finite() { x - tolerance } else { *x }).collect();
        let high =
            claims.iter().map(|x| if x.is_finite() { x + tolerance } else { f64::NEG_INFINITY }).collect();
        let (reached, open) = (vec![0; claims.len()], Vec::new());
        let mut source = Self { claims, low, high, reached, open, found: None };
        source.take(row, 0.0);
        source
    }

    /// Takes a path of some length to a vertex.
    fn take(&mut self, to: usize, length: f64) {
        if length < self.low[to] && self.found.is_none_or(|(at, _)| to < at) {
            self.found = Some((to, Some(length)));
        }
        if length <= self.high[to] {
            self.reach(to);
        }
    }

    fn reach(&mut self, to: usize) {
        (self.reached[to], self.high[to]) = (1, f64::NEG_INFINITY);
        self.open.push(to);
    }

    /// Follows the edges of a vertex.
    fn follow(&mut self, from: usize, edges: &[f64], rounded: impl Fn(f64) -> f64) {
        let (length, mut found) = (self.claims[from], Vec::new());
        widest(Notable { length, edges, bounds: [&self.low, &self.high], found: &mut found });
        for first in found {
            for (to, edge) in edges.iter().enumerate().skip(first).take(CHUNK) {
                if edge.is_finite() {
                    self.take(to, rounded(length + edge));
                }
            }
        }
    }

    /// What is wrong in the row, as far as this rank knows: a shorter path, or a length that none has.
    fn found(&self) -> Found {
        let unreached = |j: &usize| self.reached[*j] == 0 && self.claims[*j].is_finite();
        self.found.or_else(|| (0..self.claims.len()).find(unreached).map(|at| (at, None)))
    }
}

/// Finds the chunks in which an edge leads to something better, or to a vertex that has not been reached.
struct Notable<'a> {
    length: f64,
    edges: &'a [f64],
    bounds: [&'a [f64]; 2],
    found: &'a mut Vec<usize>,
}

impl Loop for Notable<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { length, edges, bounds: [low, high], found } = self;
        let chunks = edges.chunks(CHUNK).zip(low.chunks(CHUNK)).zip(high.chunks(CHUNK));
        for (number, ((edges, low), high)) in chunks.enumerate() {
            let mut any = false;
            for ((edge, low), high) in edges.iter().zip(low).zip(high) {
                let sum = length + edge;
                any |= (sum < *low) | (sum <= *high);
            }
            if any {
                found.push(number * CHUNK);
            }
        }
    }
}

/// Shortens lengths by the edges of one vertex.
struct Shorten<'a> {
    length: f64,
    edges: &'a [f64],
    to: &'a mut [f64],
}

impl Loop for Shorten<'_> {
    #[inline(always)]
    fn run(self) {
        for (to, edge) in self.to.iter_mut().zip(self.edges) {
            let sum = self.length + edge;
            *to = if sum < *to { sum } else { *to };
        }
    }
}

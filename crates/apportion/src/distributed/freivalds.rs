//! Freivalds' check on parts: each rank multiplies its own parts of A, B and C by the same random signs, and only vectors
//! travel. Source: Freivalds 1979; the margin is that of [`verify_product`](crate::verify_product).

use super::{Product, wrong};
use crate::error::Result;
use crate::matrix::{Element, Scale, SplitMix64, Tiles, exponent};
use crate::plan::Shape;
use crate::rect::Rect;
use crate::run::World;

/// Random vectors.
const LANES: usize = 16;

/// Rows that rounding alone made suspicious before the margin is widened.
const FALSE_ALARMS: usize = 4;

/// True if no rank has an infinity or NaN.
pub(super) fn all_finite<T: Element>((a, b, c): Product<'_, T>, world: &World) -> Result<bool> {
    let finite = |tiles: &Tiles<T>| tiles.iter().flat_map(|(_, tile)| tile).all(|x| x.to_f64().is_finite());
    let strange = f64::from(u8::from(!(finite(a) && finite(b) && finite(c))));
    Ok(world.combine(&[strange], f64::max)?[0] == 0.0)
}

/// Checks that C = A B up to rounding, for finite parts: the odds of a miss, 2^-16. The outcome is rank 0's; the others' is a
/// success, so that it is to be agreed on.
///
/// Time O(16 elements) on each rank; O(16 (m + k + n)) numbers travel and are held.
///
/// # Errors
/// Outside: interrupted. Inside: the first wrong element found.
pub(super) fn verify<T: Element>(
    product: Product<'_, T>,
    shape: Shape,
    seed: u64,
    world: &World,
) -> Result<Result<f64>> {
    let mut check = Check::new(product, shape, seed, world)?;
    // Rank 0 sees all sums; it names the next row to be recomputed by all, until there is none.
    let mut after = 0;
    let mut verdict = Ok(0.5f64.powi(LANES as i32));
    loop {
        let next = if world.rank() == 0 && verdict.is_ok() { check.suspicious(after) } else { None };
        let told = world.broadcast(&next.unwrap_or(usize::MAX).to_ne_bytes())?;
        let row = usize::from_ne_bytes(told.try_into().expect("one number was sent"));
        if row == usize::MAX {
            return Ok(verdict);
        }
        verdict = check.confirm(row, world)?;
        check.false_alarms += 1;
        after = row + 1;
    }
}

struct Check<'a, T> {
    product: Product<'a, T>,
    shape: Shape,
    exponent_of_b: i32,
    /// Of each row of A.
    exponents: Vec<i32>,
    /// Of each row of C: sums with each vector, and those of A (B x).
    seen: Vec<f64>,
    wanted: Vec<f64>,
    /// Of each row of |A| |B|: the sum, and the largest element at most.
    sums: Vec<f64>,
    largest: Vec<f64>,
    false_alarms: usize,
}

impl<'a, T: Element> Check<'a, T> {
    fn new(product: Product<'a, T>, shape: Shape, seed: u64, world: &World) -> Result<Self> {
        let (a, b, c) = product;
        let (m, k) = (shape.m as usize, shape.k as usize);
        // Exponents: of B as a whole, and of every row of A.
        let none = -1000.0f64;
        let mut exponents = vec![none; 1 + m];
        let mut raise = |at: usize, values: &[T]| {
            if values.iter().any(|x| *x != T::ZERO) {
                exponents[at] = exponents[at].max(f64::from(exponent(values).0));
            }
        };
        b.iter().for_each(|(_, tile)| raise(0, tile));
        each_row(a, |i, _, row| raise(1 + i, row));
        let exponents: Vec<i32> = world.combine(&exponents, f64::max)?.iter().map(|e| *e as i32).collect();
        let (exponent_of_b, exponents) = (exponents[0], exponents[1..].to_vec());
        let mut random = SplitMix64(seed);
        let x: Vec<u64> = (0..shape.n).map(|_| random.next()).collect();
        // B x, and the sums and largest of |B|'s rows.
        let scale = Scale::down(exponent_of_b);
        let mut y = vec![0.0; k * (LANES + 1)];
        let mut largest_of_b = vec![0.0f64; k];
        each_row(b, |l, rect, row| {
            let sums = &mut y[l * (LANES + 1)..][..LANES + 1];
            project(row, scale, &x[rect.cols.start as usize..], sums);
            largest_of_b[l] = row.iter().fold(largest_of_b[l], |top, v| top.max(scale.of(v.to_f64()).abs()));
        });
        let y = world.combine(&y, |x, y| x + y)?;
        let largest_of_b = world.combine(&largest_of_b, f64::max)?;
        // A (B x), C x, and the same of |A| |B|.
        let (mut wanted, mut seen) = (vec![0.0; m * LANES], vec![0.0; m * (LANES + 1)]);
        let (mut sums, mut largest) = (vec![0.0; m], vec![0.0; m]);
        each_row(a, |i, rect, row| {
            let scale = Scale::down(exponents[i]);
            for (l, v) in (rect.cols.start as usize..).zip(row) {
                let v = scale.of(v.to_f64());
                let of_b = &y[l * (LANES + 1)..][..LANES + 1];
                wanted[i * LANES..][..LANES].iter_mut().zip(of_b).for_each(|(sum, y)| *sum += v * y);
                sums[i] += v.abs() * of_b[LANES];
                largest[i] += v.abs() * largest_of_b[l];
            }
        });
        each_row(c, |i, rect, row| {
            let scale = Scale::down(exponents[i] + exponent_of_b);
            project(row, scale, &x[rect.cols.start as usize..], &mut seen[i * (LANES + 1)..][..LANES + 1]);
        });
        let add = |x: f64, y: f64| x + y;
        Ok(Self {
            product,
            shape,
            exponent_of_b,
            exponents,
            seen: world.combine(&seen, add)?,
            wanted: world.combine(&wanted, add)?,
            sums: world.combine(&sums, add)?,
            largest: world.combine(&largest, add)?,
            false_alarms: 0,
        })
    }

    /// The first row from `from` on whose sums differ by more than rounding should.
    fn suspicious(&self, from: usize) -> Option<usize> {
        (from..self.shape.m as usize).find(|&i| {
            let seen = &self.seen[i * (LANES + 1)..][..LANES];
            let wanted = &self.wanted[i * LANES..][..LANES];
            let margin = self.margin(i);
            seen.iter().zip(wanted).any(|(s, w)| (s - w).abs() > margin || (s - w).is_nan())
        })
    }

    /// Errors of random sign add up like the norm of the row of |A| |B|, which is at most sqrt(sum * largest).
    fn margin(&self, i: usize) -> f64 {
        let (k, n) = (self.shape.k as f64, self.shape.n as f64);
        let usual = if self.false_alarms < FALSE_ALARMS { 4.0 * (k + 1.0).sqrt() } else { 2.0 * (k + 1.0) };
        let rounding = usual * T::EPSILON * (self.sums[i] * self.largest[i]).sqrt();
        rounding + (k + 2.0 * n) * f64::EPSILON * self.sums[i] + self.underflow(i) * n
    }

    fn underflow(&self, i: usize) -> f64 {
        let scale = Scale::down(self.exponents[i] + self.exponent_of_b);
        2.0 * (self.shape.k as f64 + 1.0) * (scale.of(T::TINY) + f64::MIN_POSITIVE)
    }

    /// Recomputes a row, together: its row of A goes to all, each multiplies what it has of B. Rank 0 judges.
    fn confirm(&self, i: usize, world: &World) -> Result<Result<f64>> {
        let (a, b, c) = self.product;
        let (k, n) = (self.shape.k as usize, self.shape.n as usize);
        let add = |x: f64, y: f64| x + y;
        let (scale_a, scale_b) = (Scale::down(self.exponents[i]), Scale::down(self.exponent_of_b));
        let mut row_of_a = vec![0.0; k];
        each_row(a, |at, rect, row| {
            if at == i {
                let target = &mut row_of_a[rect.cols.start as usize..];
                target.iter_mut().zip(row).for_each(|(x, v)| *x = scale_a.of(v.to_f64()));
            }
        });
        let row_of_a = world.combine(&row_of_a, add)?;
        // Sums, sizes and what C holds, column by column.
        let mut columns = vec![0.0; 3 * n];
        each_row(b, |l, rect, row| {
            for (j, v) in (rect.cols.start as usize..).zip(row) {
                let product = row_of_a[l] * scale_b.of(v.to_f64());
                columns[3 * j] += product;
                columns[3 * j + 1] += product.abs();
            }
        });
        each_row(c, |at, rect, row| {
            if at == i {
                for (j, v) in (rect.cols.start as usize..).zip(row) {
                    columns[3 * j + 2] = v.to_f64();
                }
            }
        });
        let columns = world.combine(&columns, add)?;
        let scale = Scale::down(self.exponents[i] + self.exponent_of_b);
        let rounding = (k as f64 + 1.0) * (T::EPSILON + f64::EPSILON);
        let off = columns
            .chunks_exact(3)
            .position(|x| (scale.of(x[2]) - x[0]).abs() > rounding * x[1] + self.underflow(i));
        Ok(match off {
            Some(j) if world.rank() == 0 => {
                let (seen, wanted) = (columns[3 * j + 2], scale.back(columns[3 * j]));
                Err(wrong((i, j), format!("{seen:e}"), format!("{wanted:e}")))
            }
            _ => Ok(0.5f64.powi(LANES as i32)),
        })
    }
}

/// Calls with each row of each tile: its number, its tile's rectangle, its elements.
pub(super) fn each_row<T>(tiles: &Tiles<T>, mut see: impl FnMut(usize, Rect, &[T])) {
    for (rect, tile) in tiles {
        let rows = tile.chunks_exact(rect.cols.len().max(1) as usize);
        (rect.rows.start as usize..).zip(rows).for_each(|(i, row)| see(i, *rect, row));
    }
}

/// Adds a row's sums with each vector, and last the sum of its absolute values.
fn project<T: Element>(row: &[T], scale: Scale, signs: &[u64], sums: &mut [f64]) {
    let (lanes, size) = sums.split_at_mut(LANES);
    for (v, signs) in row.iter().zip(signs) {
        let v = scale.of(v.to_f64());
        for (t, sum) in lanes.iter_mut().enumerate() {
            *sum += if signs >> t & 1 == 1 { -v } else { v };
        }
        size[0] += v.abs();
    }
}

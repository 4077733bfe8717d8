//! Freivalds' check on parts: each rank multiplies its own parts of A, B and C by the same random signs, and only vectors
//! travel. Source: Freivalds 1979; the margin is that of [`verify_product`](crate::verify::verify_product).

use crate::error::Result;
use crate::geometry::Rect;
use crate::matrix::{Element, LocalBlocks};
use crate::plan::Shape;
use crate::run::World;
use crate::verify::{Claim, Scale, SplitMix64, exponent, wrong};

/// Random vectors.
const LANES: usize = 16;

/// Rows that rounding alone made suspicious before the margin is widened.
const FALSE_ALARMS: usize = 4;

/// True if no rank has an infinity or NaN.
pub(super) fn all_finite<T: Element>(claim: &Claim<'_, T>, world: &World) -> Result<bool> {
    let finite =
        |tiles: &LocalBlocks<T>| tiles.iter().flat_map(|(_, tile)| tile).all(|x| x.to_f64().is_finite());
    let Claim { a, b, c, initial, scaling } = claim;
    let finite = finite(a)
        && finite(b)
        && finite(c)
        && initial.is_none_or(finite)
        && scaling.scalars().iter().all(|x| x.to_f64().is_finite());
    Ok(world.all_reduce(&[u8::from(!finite)], u8::max)?[0] == 0)
}

/// Checks that C = alpha A B + beta C0 up to rounding, for finite parts: the odds of a miss, 2^-16. The outcome is rank 0's; the others' is a
/// success, so that it is to be agreed on.
///
/// Time O(16 elements) on each rank; O(16 (m + k + n)) numbers travel and are held.
///
/// # Errors
/// Outside: interrupted. Inside: the first wrong element found.
pub(super) fn verify<T: Element>(
    claim: Claim<'_, T>,
    shape: Shape,
    seed: u64,
    world: &World,
) -> Result<Result<f64>> {
    let mut check = Check::new(claim, shape, seed, world)?;
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
    claim: Claim<'a, T>,
    shape: Shape,
    exponents: Exponents,
    /// Of each row of C: sums with each vector, and those of alpha A (B x) + beta C0 x.
    seen: Vec<f64>,
    wanted: Vec<f64>,
    /// Of each row of |alpha A| |B| + |beta C0|: the sum, and the largest element at most.
    sums: Vec<f64>,
    largest: Vec<f64>,
    false_alarms: usize,
}

impl<'a, T: Element> Check<'a, T> {
    fn new(claim: Claim<'a, T>, shape: Shape, seed: u64, world: &World) -> Result<Self> {
        let Claim { a, b, c, initial, .. } = claim;
        let (m, k) = (shape.m as usize, shape.k as usize);
        let exponents = Exponents::of(&claim, m, world)?;
        let mut random = SplitMix64(seed);
        let x: Vec<u64> = (0..shape.n).map(|_| random.next()).collect();
        // B x, and the sums and largest of |B|'s rows.
        let scale = Scale::down(exponents.of_b);
        let mut y = vec![0.0; k * (LANES + 1)];
        let mut largest_of_b = vec![0.0f64; k];
        each_row(b, |l, rect, row| {
            let sums = &mut y[l * (LANES + 1)..][..LANES + 1];
            largest_of_b[l] = largest_of_b[l].max(project(row, scale, &x[rect.cols.start as usize..], sums));
        });
        let add = |x: f64, y: f64| x + y;
        let y = world.all_reduce(&y, add)?;
        let largest_of_b = world.all_reduce(&largest_of_b, f64::max)?;
        // alpha A (B x) + beta C0 x, C x, and the same of absolute values.
        let (mut wanted, mut seen) = (vec![0.0; m * LANES], vec![0.0; m * (LANES + 1)]);
        let (mut sums, mut largest) = (vec![0.0; m], vec![0.0; m]);
        each_row(a, |i, rect, row| {
            let (scale, factor) = (Scale::down(exponents.of_a[i]), exponents.factor_of_product(i));
            for (l, v) in (rect.cols.start as usize..).zip(row) {
                let v = factor * scale.of(v.to_f64());
                let of_b = &y[l * (LANES + 1)..][..LANES + 1];
                wanted[i * LANES..][..LANES].iter_mut().zip(of_b).for_each(|(sum, y)| *sum += v * y);
                sums[i] += v.abs() * of_b[LANES];
                largest[i] += v.abs() * largest_of_b[l];
            }
        });
        initial.into_iter().for_each(|initial| {
            each_row(initial, |i, rect, row| {
                let (scale, factor) = (Scale::down(exponents.of_initial[i]), exponents.factor_of_initial(i));
                let mut own = [0.0; LANES + 1];
                let most = project(row, scale, &x[rect.cols.start as usize..], &mut own);
                wanted[i * LANES..][..LANES].iter_mut().zip(&own).for_each(|(sum, y)| *sum += factor * y);
                sums[i] += factor.abs() * own[LANES];
                largest[i] += factor.abs() * most;
            });
        });
        each_row(c, |i, rect, row| {
            let sums = &mut seen[i * (LANES + 1)..][..LANES + 1];
            project(row, exponents.scale_of_c(i), &x[rect.cols.start as usize..], sums);
        });
        Ok(Self {
            claim,
            shape,
            exponents,
            seen: world.all_reduce(&seen, add)?,
            wanted: world.all_reduce(&wanted, add)?,
            sums: world.all_reduce(&sums, add)?,
            largest: world.all_reduce(&largest, add)?,
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
        let (k, n, roundings) = (self.shape.k as f64, self.shape.n as f64, self.roundings());
        let usual = if self.false_alarms < FALSE_ALARMS { 4.0 * roundings.sqrt() } else { 2.0 * roundings };
        let rounding = usual * T::EPSILON * (self.sums[i] * self.largest[i]).sqrt();
        rounding + (k + 2.0 * n) * f64::EPSILON * self.sums[i] + self.underflow(i) * n
    }

    /// How often an element was rounded: each product and each sum, and the scaling.
    fn roundings(&self) -> f64 {
        let scaled = self.claim.scaling.scalars()[0].to_f64() != 1.0 || self.claim.initial.is_some();
        self.shape.k as f64 + if scaled { 4.0 } else { 1.0 }
    }

    fn underflow(&self, i: usize) -> f64 {
        let tiny = T::TINY * self.claim.scaling.scalars()[0].to_f64().abs().max(1.0);
        2.0 * self.roundings() * (self.exponents.scale_of_c(i).of(tiny) + f64::MIN_POSITIVE)
    }

    /// Recomputes a row, together: its row of A goes to all, each multiplies what it has of B. Rank 0 judges.
    fn confirm(&self, i: usize, world: &World) -> Result<Result<f64>> {
        let Claim { a, b, c, initial, .. } = self.claim;
        let (k, n) = (self.shape.k as usize, self.shape.n as usize);
        let add = |x: f64, y: f64| x + y;
        let exponents = &self.exponents;
        let (scale_a, scale_b) = (Scale::down(exponents.of_a[i]), Scale::down(exponents.of_b));
        let factor = exponents.factor_of_product(i);
        let mut row_of_a = vec![0.0; k];
        each_row(a, |at, rect, row| {
            if at == i {
                let target = &mut row_of_a[rect.cols.start as usize..];
                target.iter_mut().zip(row).for_each(|(x, v)| *x = factor * scale_a.of(v.to_f64()));
            }
        });
        let row_of_a = world.all_reduce(&row_of_a, add)?;
        // Sums, sizes and what C holds, column by column.
        let mut columns = vec![0.0; 3 * n];
        each_row(b, |l, rect, row| {
            for (j, v) in (rect.cols.start as usize..).zip(row) {
                let product = row_of_a[l] * scale_b.of(v.to_f64());
                columns[3 * j] += product;
                columns[3 * j + 1] += product.abs();
            }
        });
        let (scale_0, factor) = (Scale::down(exponents.of_initial[i]), exponents.factor_of_initial(i));
        initial.into_iter().for_each(|initial| {
            each_row(initial, |at, rect, row| {
                for (j, v) in (rect.cols.start as usize..).zip(row).filter(|_| at == i) {
                    let before = factor * scale_0.of(v.to_f64());
                    columns[3 * j] += before;
                    columns[3 * j + 1] += before.abs();
                }
            });
        });
        each_row(c, |at, rect, row| {
            if at == i {
                for (j, v) in (rect.cols.start as usize..).zip(row) {
                    columns[3 * j + 2] = v.to_f64();
                }
            }
        });
        let columns = world.all_reduce(&columns, add)?;
        let scale = exponents.scale_of_c(i);
        let rounding = self.roundings() * (T::EPSILON + f64::EPSILON);
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

/// Binary exponents by which B as a whole and each row of the others is scaled to about 1, so that no sum overflows; the
/// same on all ranks. Where there is nothing but zeros it does not matter by what.
struct Exponents {
    of_b: i32,
    of_a: Vec<i32>,
    of_initial: Vec<i32>,
    scalars: [f64; 2],
}

impl Exponents {
    fn of<T: Element>(claim: &Claim<'_, T>, m: usize, world: &World) -> Result<Self> {
        let mut own = vec![-1000; 1 + 2 * m];
        own[1 + m..].fill(-2000);
        let mut raise = |at: usize, values: &[T]| {
            if values.iter().any(|x| *x != T::ZERO) {
                own[at] = own[at].max(exponent(values).0);
            }
        };
        claim.b.iter().for_each(|(_, tile)| raise(0, tile));
        each_row(claim.a, |i, _, row| raise(1 + i, row));
        claim.initial.into_iter().for_each(|initial| each_row(initial, |i, _, row| raise(1 + m + i, row)));
        let all = world.all_reduce(&own, i32::max)?;
        let (of_a, of_initial) = (all[1..=m].to_vec(), all[1 + m..].to_vec());
        Ok(Self { of_b: all[0], of_a, of_initial, scalars: claim.scaling.scalars().map(Element::to_f64) })
    }

    /// Of row i of alpha A B, of beta C0, and of their sum.
    fn of_c(&self, i: usize) -> [i32; 3] {
        let [alpha, beta] = self.scalars.map(|x| exponent(&[x]).0);
        let (product, initial) = (self.of_a[i] + self.of_b + alpha, self.of_initial[i] + beta);
        [product, initial, product.max(initial).clamp(-2000, 2000)]
    }

    fn scale_of_c(&self, i: usize) -> Scale {
        Scale::down(self.of_c(i)[2])
    }

    /// Alpha, for sums in the scale of row i of A and of B to be in the scale of C.
    fn factor_of_product(&self, i: usize) -> f64 {
        let [product, _, c] = self.of_c(i);
        Scale::down(exponent(&[self.scalars[0]]).0).of(self.scalars[0]) * 2f64.powi(product - c)
    }

    /// Beta, for sums in the scale of row i of C0 to be in the scale of C.
    fn factor_of_initial(&self, i: usize) -> f64 {
        let [_, initial, c] = self.of_c(i);
        Scale::down(exponent(&[self.scalars[1]]).0).of(self.scalars[1]) * 2f64.powi(initial - c)
    }
}

/// Calls with each row of each tile: its number, its tile's rectangle, its elements.
pub(super) fn each_row<T>(tiles: &LocalBlocks<T>, mut see: impl FnMut(usize, Rect, &[T])) {
    for (rect, tile) in tiles {
        let rows = tile.chunks_exact(rect.cols.len().max(1) as usize);
        (rect.rows.start as usize..).zip(rows).for_each(|(i, row)| see(i, *rect, row));
    }
}

/// Adds a row's sums with each vector, and last the sum of its absolute values; the largest of them.
fn project<T: Element>(row: &[T], scale: Scale, signs: &[u64], sums: &mut [f64]) -> f64 {
    let (lanes, size) = sums.split_at_mut(LANES);
    let mut largest = 0.0f64;
    for (v, signs) in row.iter().zip(signs) {
        let v = scale.of(v.to_f64());
        for (t, sum) in lanes.iter_mut().enumerate() {
            *sum += if signs >> t & 1 == 1 { -v } else { v };
        }
        size[0] += v.abs();
        largest = largest.max(v.abs());
    }
    largest
}

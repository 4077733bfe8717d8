//! Is C really A times B? Answered in quadratic time.
//!
//! Source: Freivalds 1979, "Fast probabilistic algorithms": compare C x with A (B x) for random signs x.

use super::{Element, Matrix};
use crate::error::{Error, Result};
use std::ops::Range;

/// Random vectors that are tried together: eight cost little more than one, since each element is loaded once.
const LANES: usize = 8;

/// Rows that rounding alone made suspicious before the margin is widened.
const FALSE_ALARMS: usize = 4;

/// One value per random vector.
type Lanes = [f64; LANES];

/// What a passed check means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verified {
    /// Random vectors tried: as many as asked for, rounded up to a multiple of eight.
    pub trials: u32,
    /// The chance, at most, that errors which do not look like rounding went unseen: 2^-trials.
    pub odds_of_miss: f64,
    /// Elements that were recomputed one by one, as a sample, where infinities or NaN rule out sums.
    pub sampled: u64,
}

/// Checks that C = A B, for A of m x k, B of k x n and C of m x n elements, up to rounding of any order of summation.
///
/// Rounding never fails it: a row that looks wrong is recomputed, and is wrong only if an element is off by more than
/// (k + 1) ε |A| |B|. A single wrong element is seen for certain beyond that and 8 sqrt(k + 1) ε sqrt(sum * largest) of
/// its row of |A| |B| (with k + 1 for 2 sqrt(k + 1) once four rows were suspected in vain); several together are missed
/// with the odds returned. Where A, B or an overflow make infinities or NaN, elements are sampled and NaN equals NaN.
/// The same seed makes the same vectors.
///
/// Time O(trials (m k + k n + m n)), memory O(m + k + n).
///
/// # Errors
/// [`Error::WrongResult`] names the first wrong element of the first row found wrong, with both values;
/// [`Error::Input`] if the shapes do not fit.
pub fn verify_product<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    seed: u64,
    trials: u32,
) -> Result<Verified> {
    if (a.cols(), a.rows(), b.cols()) != (b.rows(), c.rows(), c.cols()) {
        let size = |m: &Matrix<T>| format!("{} x {}", m.rows(), m.cols());
        let what = format!("{} times {} is not of {}", size(a), size(b), size(c));
        return Err(Error::input("verification", what, "give the factors of this product"));
    }
    let mut check = Check::new(a, b, c, seed);
    let groups = trials.div_ceil(LANES as u32).max(1);
    for _ in 0..groups {
        check.rows()?;
        check.columns()?;
    }
    let trials = groups * LANES as u32;
    Ok(Verified { trials, odds_of_miss: 0.5f64.powf(f64::from(trials)), sampled: check.sampled })
}

/// A check under way. B as a whole and every row of A are scaled by powers of two to about 1, so that no sum overflows.
struct Check<'a, T> {
    a: &'a Matrix<T>,
    b: &'a Matrix<T>,
    c: &'a Matrix<T>,
    exponent_of_b: i32,
    /// Of each row of A: its exponent, and whether it is finite.
    rows_of_a: Vec<(i32, bool)>,
    /// Of each column of B: whether it is finite.
    finite: Vec<bool>,
    /// Of each row of B, its finite columns, scaled: the sum and the largest of the absolute values.
    sizes_of_b: Vec<[f64; 2]>,
    random: SplitMix64,
    false_alarms: usize,
    sampled: u64,
}

impl<'a, T: Element> Check<'a, T> {
    fn new(a: &'a Matrix<T>, b: &'a Matrix<T>, c: &'a Matrix<T>, seed: u64) -> Self {
        let (exponent_of_b, all_finite) = exponent(b.as_slice());
        let mut finite = vec![true; b.cols()];
        if !all_finite {
            for l in 0..b.rows() {
                for (flag, v) in finite.iter_mut().zip(b.row(l)) {
                    *flag &= v.to_f64().is_finite();
                }
            }
        }
        let scale = Scale::down(exponent_of_b);
        let sizes_of_b = (0..b.rows())
            .map(|l| {
                let kept = b.row(l).iter().zip(&finite).filter(|(_, finite)| **finite);
                kept.fold([0.0, 0.0], |[sum, largest]: [f64; 2], (v, _)| {
                    let size = scale.of(v.to_f64()).abs();
                    [sum + size, largest.max(size)]
                })
            })
            .collect();
        Self {
            a,
            b,
            c,
            exponent_of_b,
            rows_of_a: (0..a.rows()).map(|i| exponent(a.row(i))).collect(),
            finite,
            sizes_of_b,
            random: SplitMix64(seed),
            false_alarms: 0,
            sampled: 0,
        }
    }

    /// Tries one group of random vectors on every row.
    fn rows(&mut self) -> Result<()> {
        let random = &mut self.random;
        let x: Vec<Lanes> = self
            .finite
            .iter()
            .map(|&finite| {
                let bits = random.next();
                std::array::from_fn(|t| if finite { 1.0 - 2.0 * (bits >> t & 1) as f64 } else { 0.0 })
            })
            .collect();
        let scale = Scale::down(self.exponent_of_b);
        let y: Vec<Lanes> = (0..self.b.rows()).map(|l| project(self.b.row(l), scale, &x).0).collect();
        for i in 0..self.c.rows() {
            let (exponent, finite) = self.rows_of_a[i];
            if !finite {
                self.sample_row(i)?;
                continue;
            }
            let (seen, first_strange) = project(self.c.row(i), self.scale_of_c(i), &x);
            if let Some(j) = first_strange {
                // Infinity or NaN from finite numbers: an overflow, or wrong.
                self.confirm(i, j..j + 1)?;
                self.sample_row(i)?;
                continue;
            }
            let (wanted, _) = project(self.a.row(i), Scale::down(exponent), &y);
            let margin = self.margin(i);
            let off = |(s, w): (&f64, &f64)| (s - w).abs() > margin || (s - w).is_nan();
            if seen.iter().zip(&wanted).any(off) {
                self.confirm(i, 0..self.c.cols())?;
                self.false_alarms += 1;
            }
        }
        Ok(())
    }

    /// Recomputes a sample of every column of C that infinities or NaN in B reach.
    fn columns(&mut self) -> Result<()> {
        for j in (0..self.finite.len()).filter(|&j| !self.finite[j]).collect::<Vec<_>>() {
            for _ in 0..LANES {
                let i = self.random.below(self.c.rows());
                self.sampled += 1;
                self.confirm(i, j..j + 1)?;
            }
        }
        Ok(())
    }

    fn sample_row(&mut self, i: usize) -> Result<()> {
        for _ in 0..LANES {
            let j = self.random.below(self.c.cols());
            self.sampled += 1;
            self.confirm(i, j..j + 1)?;
        }
        Ok(())
    }

    /// By how much the two sums of row i may differ. Errors of random sign add up like the norm of
    /// the row of |A| |B|, which is at most sqrt(sum * largest).
    fn margin(&self, i: usize) -> f64 {
        let scale = Scale::down(self.rows_of_a[i].0);
        let [sum, largest] =
            self.a.row(i).iter().zip(&self.sizes_of_b).fold([0.0, 0.0], |[sum, largest], (v, size)| {
                let v = scale.of(v.to_f64()).abs();
                [sum + v * size[0], largest + v * size[1]]
            });
        let (k, n) = (self.b.rows() as f64, self.b.cols() as f64);
        let usual = if self.false_alarms < FALSE_ALARMS { 4.0 * (k + 1.0).sqrt() } else { 2.0 * (k + 1.0) };
        let product = usual * T::EPSILON * (sum * largest).sqrt();
        let projection = (k + 2.0 * n) * f64::EPSILON * sum;
        product + projection + self.underflow(i) * n
    }

    /// By how much one scaled element of row i may be off because products underflow.
    fn underflow(&self, i: usize) -> f64 {
        let k = self.b.rows() as f64;
        2.0 * (k + 1.0) * (self.scale_of_c(i).of(T::TINY) + f64::MIN_POSITIVE)
    }

    fn scale_of_c(&self, i: usize) -> Scale {
        Scale::down(self.rows_of_a[i].0 + self.exponent_of_b)
    }

    /// Recomputes some elements of row i and refuses the first that is wrong. O(k) each.
    fn confirm(&self, i: usize, cols: Range<usize>) -> Result<()> {
        let (scale_a, scale_b) = (Scale::down(self.rows_of_a[i].0), Scale::down(self.exponent_of_b));
        let mut exact = vec![Exact::default(); cols.len()];
        for (l, x) in self.a.row(i).iter().map(|x| x.to_f64()).enumerate() {
            for (element, y) in exact.iter_mut().zip(&self.b.row(l)[cols.clone()]) {
                let y = y.to_f64();
                if x.is_finite() && y.is_finite() {
                    element.add(scale_a.of(x) * scale_b.of(y));
                } else {
                    element.add_infinite(x * y);
                }
            }
        }
        let scale = self.scale_of_c(i);
        let rounding = (self.b.rows() as f64 + 1.0) * (T::EPSILON + f64::EPSILON);
        for (j, element) in cols.zip(&exact) {
            let seen = self.c.row(i)[j].to_f64();
            let margin = rounding * element.size + self.underflow(i);
            let overflows = scale.back(element.size) >= T::LARGEST / 2.0;
            if !element.allows(seen, scale.of(seen), margin, overflows) {
                let wanted = element.value(|sum| scale.back(sum));
                let what =
                    format!("element ({i}, {j}), counted from 0, is {seen:e} and should be {wanted:e}");
                return Err(Error::WrongResult { what });
            }
        }
        Ok(())
    }
}

/// The sum of the products that make one element: finite ones scaled, and which infinities are among the others.
#[derive(Clone, Copy, Default)]
struct Exact {
    sum: f64,
    size: f64,
    plus: bool,
    minus: bool,
    nan: bool,
}

impl Exact {
    fn add(&mut self, product: f64) {
        self.sum += product;
        self.size += product.abs();
    }

    fn add_infinite(&mut self, product: f64) {
        self.plus |= product == f64::INFINITY;
        self.minus |= product == f64::NEG_INFINITY;
        self.nan |= product.is_nan();
    }

    fn value(&self, back: impl Fn(f64) -> f64) -> f64 {
        match (self.nan, self.plus, self.minus) {
            (false, false, false) => back(self.sum),
            (false, true, false) => f64::INFINITY,
            (false, false, true) => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    fn allows(&self, seen: f64, scaled: f64, margin: f64, overflows: bool) -> bool {
        let wanted = self.value(|_| 0.0);
        if wanted.is_nan() {
            seen.is_nan()
        } else if wanted.is_infinite() {
            seen == wanted || (seen.is_nan() && overflows)
        } else if seen.is_finite() {
            (scaled - self.sum).abs() <= margin
        } else {
            overflows
        }
    }
}

/// The sums of a row with every vector, and the first element that is not finite though its column is.
fn project<T: Element>(row: &[T], scale: Scale, vectors: &[Lanes]) -> (Lanes, Option<usize>) {
    let mut sums = [0.0; LANES];
    let mut strange = None;
    for (j, (v, x)) in row.iter().zip(vectors).enumerate() {
        let v = v.to_f64();
        if v.is_finite() {
            let v = scale.of(v);
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum += v * x;
            }
        } else if x[0] != 0.0 && strange.is_none() {
            strange = Some(j);
        }
    }
    (sums, strange)
}

/// The binary exponent of the largest finite absolute value, within ±1000, and whether all are finite.
pub(crate) fn exponent<T: Element>(values: &[T]) -> (i32, bool) {
    let (mut largest, mut finite) = (0.0f64, true);
    for v in values.iter().map(|v| v.to_f64().abs()) {
        if v.is_finite() {
            largest = largest.max(v);
        } else {
            finite = false;
        }
    }
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    (if largest == 0.0 { 0 } else { exponent.clamp(-1000, 1000) }, finite)
}

/// Multiplication by a power of two, in two steps, since the power itself may not be a double.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    factors: [f64; 2],
    inverses: [f64; 2],
}

impl Scale {
    /// By 2^-exponent, for exponents within ±2000.
    pub(crate) fn down(exponent: i32) -> Self {
        let power = |e: i32| f64::from_bits(((1023 + e) as u64) << 52);
        let first = exponent / 2;
        let second = exponent - first;
        Self { factors: [power(-first), power(-second)], inverses: [power(first), power(second)] }
    }

    pub(crate) fn of(self, value: f64) -> f64 {
        value * self.factors[0] * self.factors[1]
    }

    pub(crate) fn back(self, value: f64) -> f64 {
        value * self.inverses[0] * self.inverses[1]
    }
}

/// A small generator of random words (Steele, Lea and Flood 2014).
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests;

//! Is C really A times B? Answered in quadratic time.
//!
//! Source: Freivalds 1979, "Fast probabilistic algorithms": compare C x with A (B x) for random signs x.

mod arithmetic;

use crate::error::{Error, Result};
use crate::matrix::{Element, Matrix, Scaling};
use arithmetic::{Exact, project};
pub(crate) use arithmetic::{Scale, exponent};
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
    pub error_probability: f64,
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
    verify_scaled((a, b, c), Scaling::none(T::from_f64(1.0)), seed, trials)
}

/// [`verify_product`] of C = alpha A B + beta C0, given A, B and C: the whole expression, up to rounding of any order of
/// summation in which alpha may multiply a factor or the product.
///
/// # Errors
/// As [`verify_product`].
pub fn verify_scaled<T: Element>(
    (a, b, c): (&Matrix<T>, &Matrix<T>, &Matrix<T>),
    scaling: Scaling<'_, T>,
    seed: u64,
    trials: u32,
) -> Result<Verified> {
    check_shapes(a, b, c, scaling.initial)?;
    let mut check = Check::new((a, b, c), scaling, seed);
    let groups = trials.div_ceil(LANES as u32).max(1);
    for _ in 0..groups {
        check.rows()?;
        check.columns()?;
    }
    let trials = groups * LANES as u32;
    Ok(Verified { trials, error_probability: 0.5f64.powf(f64::from(trials)), sampled: check.sampled })
}

/// Refuses matrices that are no product.
pub(super) fn check_shapes<T: Element>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &Matrix<T>,
    initial: Option<&Matrix<T>>,
) -> Result<()> {
    let size = |m: &Matrix<T>| format!("{} x {}", m.rows(), m.cols());
    let refuse = |what| Err(Error::input("verification", what, "give the factors of this product"));
    if (a.cols(), a.rows(), b.cols()) != (b.rows(), c.rows(), c.cols()) {
        return refuse(format!("{} times {} is not of {}", size(a), size(b), size(c)));
    }
    match initial.filter(|initial| size(initial) != size(c)) {
        Some(initial) => refuse(format!("the initial C is {}, not {}", size(initial), size(c))),
        None => Ok(()),
    }
}

/// A check under way. B as a whole and every row of A are scaled by powers of two to about 1, so that no sum overflows.
struct Check<'a, T> {
    a: &'a Matrix<T>,
    b: &'a Matrix<T>,
    c: &'a Matrix<T>,
    alpha: f64,
    beta: f64,
    /// The initial C, if it counts.
    initial: Option<&'a Matrix<T>>,
    exponent_of_b: i32,
    /// Of each row of A: its exponent, and whether it is finite.
    rows_of_a: Vec<(i32, bool)>,
    /// Of each row of the initial C: its exponent; `None` if it holds nothing but zeros.
    rows_of_initial: Vec<Option<i32>>,
    /// Of each column of B: whether it is finite.
    finite: Vec<bool>,
    /// Of each row of B, its finite columns, scaled: the sum and the largest of the absolute values.
    sizes_of_b: Vec<[f64; 2]>,
    random: SplitMix64,
    false_alarms: usize,
    sampled: u64,
}

impl<'a, T: Element> Check<'a, T> {
    fn new(
        (a, b, c): (&'a Matrix<T>, &'a Matrix<T>, &'a Matrix<T>),
        scaling: Scaling<'a, T>,
        seed: u64,
    ) -> Self {
        let (exponent_of_b, mut all_finite) = exponent(b.as_slice());
        let alpha = scaling.alpha.to_f64();
        // What alpha = 0 is the factor of does not count.
        all_finite |= alpha == 0.0;
        let initial = scaling.counted(T::ZERO);
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
            alpha,
            beta: scaling.beta.to_f64(),
            initial,
            exponent_of_b,
            rows_of_a: (0..a.rows())
                .map(|i| exponent(a.row(i)))
                .map(|(exponent, finite)| (exponent, finite || alpha == 0.0))
                .collect(),
            rows_of_initial: (0..c.rows())
                .map(|i| initial.map(|m| m.row(i)).filter(|row| row.iter().any(|x| *x != T::ZERO)))
                .map(|row| row.map(|row| exponent(row).0))
                .collect(),
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
            let (initial, strange_before) = self.project_initial(i, &x);
            if let Some(j) = first_strange.or(strange_before) {
                // Infinity or NaN from finite numbers: an overflow, or wrong.
                self.confirm(i, j..j + 1)?;
                self.sample_row(i)?;
                continue;
            }
            let (product, _) = project(self.a.row(i), Scale::down(exponent), &y);
            let (margin, factor) = (self.margin(i), self.factor_of_product(i));
            let off = |t: usize| {
                let error = seen[t] - (factor * product[t] + initial[t]);
                error.abs() > margin || error.is_nan()
            };
            if (0..LANES).any(off) {
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

    /// The sums of a row of beta C0, and its first element that is not finite though its column is.
    fn project_initial(&self, i: usize, x: &[Lanes]) -> (Lanes, Option<usize>) {
        match (self.initial, self.rows_of_initial[i]) {
            (Some(initial), Some(exponent)) => {
                let (sums, strange) = project(initial.row(i), Scale::down(exponent), x);
                (sums.map(|sum| sum * self.factor_of_initial(i, exponent)), strange)
            }
            _ => ([0.0; LANES], None),
        }
    }

    /// By how much the two sums of row i may differ. Errors of random sign add up like the norm of
    /// the row of |A| |B|, which is at most sqrt(sum * largest).
    fn margin(&self, i: usize) -> f64 {
        let scale = Scale::down(self.rows_of_a[i].0);
        let [mut sum, mut largest] =
            self.a.row(i).iter().zip(&self.sizes_of_b).fold([0.0, 0.0], |[sum, largest], (v, size)| {
                let v = scale.of(v.to_f64()).abs();
                [sum + v * size[0], largest + v * size[1]]
            });
        let factor = self.factor_of_product(i).abs();
        (sum, largest) = (factor * sum, factor * largest);
        if let (Some(initial), Some(exponent)) = (self.initial, self.rows_of_initial[i]) {
            let (scale, factor) = (Scale::down(exponent), self.factor_of_initial(i, exponent).abs());
            let sizes = initial.row(i).iter().map(|v| v.to_f64().abs()).filter(|v| v.is_finite());
            let [all, most] =
                sizes.fold([0.0, 0.0_f64], |[all, most], v| [all + scale.of(v), most.max(scale.of(v))]);
            (sum, largest) = (sum + factor * all, largest + factor * most);
        }
        let (roundings, n) = (self.roundings(), self.b.cols() as f64);
        let usual = if self.false_alarms < FALSE_ALARMS { 4.0 * roundings.sqrt() } else { 2.0 * roundings };
        let product = usual * T::EPSILON * (sum * largest).sqrt();
        let projection = (self.b.rows() as f64 + 2.0 * n) * f64::EPSILON * sum;
        product + projection + self.underflow(i) * n
    }

    /// How often an element was rounded: each product and each sum, and the scaling.
    fn roundings(&self) -> f64 {
        let scaled = self.alpha != 1.0 || self.initial.is_some();
        self.b.rows() as f64 + if scaled { 4.0 } else { 1.0 }
    }

    /// By how much one scaled element of row i may be off because products underflow.
    fn underflow(&self, i: usize) -> f64 {
        let tiny = T::TINY * self.alpha.abs().max(1.0);
        2.0 * self.roundings() * (self.scale_of_c(i).of(tiny) + f64::MIN_POSITIVE)
    }

    /// The exponent of row i of alpha A B, at most.
    fn exponent_of_product(&self, i: usize) -> i32 {
        self.rows_of_a[i].0 + self.exponent_of_b + exponent(&[self.alpha]).0
    }

    fn exponent_of_c(&self, i: usize) -> i32 {
        let initial = self.rows_of_initial[i].map(|e| e + exponent(&[self.beta]).0);
        initial.map_or(self.exponent_of_product(i), |e| e.max(self.exponent_of_product(i))).clamp(-2000, 2000)
    }

    fn scale_of_c(&self, i: usize) -> Scale {
        Scale::down(self.exponent_of_c(i))
    }

    /// Alpha, for sums in the scale of row i of A and of B, to be in the scale of C.
    fn factor_of_product(&self, i: usize) -> f64 {
        let own = exponent(&[self.alpha]).0;
        Scale::down(own).of(self.alpha) * 2f64.powi(self.exponent_of_product(i) - self.exponent_of_c(i))
    }

    /// Beta, for sums in the scale of `exponent` to be in the scale of C.
    fn factor_of_initial(&self, i: usize, exponent_of_row: i32) -> f64 {
        let own = exponent(&[self.beta]).0;
        Scale::down(own).of(self.beta) * 2f64.powi(exponent_of_row + own - self.exponent_of_c(i))
    }

    /// Recomputes some elements of row i and refuses the first that is wrong. O(k) each.
    fn confirm(&self, i: usize, cols: Range<usize>) -> Result<()> {
        let (scale_a, scale_b) = (Scale::down(self.rows_of_a[i].0), Scale::down(self.exponent_of_b));
        let mut exact = vec![Exact::default(); cols.len()];
        let counts = if self.alpha == 0.0 { 0 } else { self.a.cols() };
        for (l, x) in self.a.row(i)[..counts].iter().map(|x| x.to_f64()).enumerate() {
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
        let rounding = self.roundings() * (T::EPSILON + f64::EPSILON);
        let unscaled = Scale::down(self.rows_of_a[i].0 + self.exponent_of_b);
        for (j, element) in cols.zip(&mut exact) {
            let mut overflows = unscaled.back(element.size) >= T::LARGEST / 2.0;
            element.times(self.factor_of_product(i));
            if let (Some(initial), Some(exponent)) = (self.initial, self.rows_of_initial[i]) {
                let before = initial.row(i)[j].to_f64();
                if before.is_finite() {
                    element.add(Scale::down(exponent).of(before) * self.factor_of_initial(i, exponent));
                } else {
                    element.add_infinite(before * self.beta);
                }
            }
            let seen = self.c.row(i)[j].to_f64();
            let margin = rounding * element.size + self.underflow(i);
            overflows |= scale.back(element.size) >= T::LARGEST / 2.0;
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

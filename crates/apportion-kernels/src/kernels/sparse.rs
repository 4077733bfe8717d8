//! Sparse matrices by rows times vectors, sums that do not depend on an order, and sums by which products are checked.

use super::prefetch;

/// Rows of a sparse matrix (CSR): the entries of row i are those from `offsets[i]` to `offsets[i + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a> {
    /// One more than there are rows.
    pub offsets: &'a [u32],
    /// The column of each entry.
    pub columns: &'a [u32],
    /// Its value.
    pub values: &'a [f64],
}

/// Rows that are computed side by side: an addition waits for the one before in its row, and not for those of others.
const TOGETHER: usize = 4;

/// Entries between one that is used and one that is fetched: the hardware does not see two arrays end and begin with each
/// row.
const AHEAD: usize = 512;

impl SparseRows<'_> {
    /// y = A x. Each element is the sum of its row's products from left to right, so that its bits do not depend on which
    /// rows are computed together.
    ///
    /// # Panics
    /// If offsets or columns exceed the arrays, or `y` has not an element for each row.
    pub fn times(&self, x: &[f64], y: &mut [f64]) {
        assert_eq!(self.offsets.len(), y.len() + 1, "an element for each row");
        let row = |row: usize| self.offsets[row] as usize..self.offsets[row + 1] as usize;
        let mut groups = y.chunks_exact_mut(TOGETHER);
        let mut first = 0;
        for group in groups.by_ref() {
            let rows = [0, 1, 2, 3].map(|number| {
                let place = row(first + number);
                (&self.columns[place.clone()], &self.values[place])
            });
            let entries = self.offsets[first] as usize..self.offsets[first + TOGETHER] as usize;
            for entry in entries.step_by(8) {
                prefetch(self.values.as_ptr().wrapping_add(entry + AHEAD));
                prefetch(self.columns.as_ptr().wrapping_add(entry + AHEAD));
            }
            first += TOGETHER;
            let common = rows.iter().map(|(columns, _)| columns.len()).min().unwrap_or(0);
            let mut sums = [0.0; TOGETHER];
            let [a, b, c, d] = rows.map(|(columns, values)| columns[..common].iter().zip(&values[..common]));
            for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
                for (sum, (column, value)) in sums.iter_mut().zip([a, b, c, d]) {
                    *sum += value * x[*column as usize];
                }
            }
            for ((y, sum), (columns, values)) in group.iter_mut().zip(sums).zip(rows) {
                *y = rest(sum, &columns[common..], &values[common..], x);
            }
        }
        for (number, y) in groups.into_remainder().iter_mut().enumerate() {
            let place = row(first + number);
            *y = rest(0.0, &self.columns[place.clone()], &self.values[place], x);
        }
    }
}

fn rest(sum: f64, columns: &[u32], values: &[f64], x: &[f64]) -> f64 {
    columns.iter().zip(values).fold(sum, |sum, (column, value)| sum + value * x[*column as usize])
}

/// Three sums by which a product y = A x is checked: of the elements of y times `factors`, of those of x times `weights`, and
/// of the magnitudes of those.
///
/// # Panics
/// If the four are not as long as each other.
pub fn check_sums(y: &[f64], factors: &[f32], x: &[f64], weights: &[f64]) -> [f64; 3] {
    assert!([factors.len(), x.len(), weights.len()].iter().all(|length| *length == y.len()));
    let (ys, y_rest) = y.as_chunks::<SIDE>();
    let (fs, f_rest) = factors.as_chunks::<SIDE>();
    let (xs, x_rest) = x.as_chunks::<SIDE>();
    let (ws, w_rest) = weights.as_chunks::<SIDE>();
    let mut sums = [[0.0; SIDE]; 3];
    for ((y, factors), (x, weights)) in ys.iter().zip(fs).zip(xs.iter().zip(ws)) {
        for lane in 0..SIDE {
            sums[0][lane] += f64::from(factors[lane]) * y[lane];
            sums[1][lane] += weights[lane] * x[lane];
            sums[2][lane] += x[lane].abs();
        }
    }
    for ((y, factor), (x, weight)) in y_rest.iter().zip(f_rest).zip(x_rest.iter().zip(w_rest)) {
        sums[0][0] += f64::from(*factor) * y;
        sums[1][0] += weight * x;
        sums[2][0] += x.abs();
    }
    sums.map(|lanes| lanes.iter().sum())
}

/// Sums of a check that are added to side by side.
const SIDE: usize = 4;

/// Bits between the grids of two bins.
const WIDTH: i32 = 22;

/// Bins that are kept: 66 bits below the largest summand, and the room of one bin.
const BINS: usize = 4;

/// Elements that are looked through twice.
const CHUNK: usize = 1024;

/// Accumulators that a processor adds to at once.
const LANES: usize = 8;

/// A sum of up to 2^32 doubles whose bits do not depend on the order of its summands, nor on which are added first: each is
/// cut along grids that are the same for all, so that no sum of pieces is rounded.
///
/// Source: Demmel and Nguyen 2015, "Parallel reproducible summation" (IEEE Transactions on Computers 64(7)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadySum {
    /// The grid of the first bin is 2^(WIDTH top); that of each further one is finer by 2^WIDTH.
    top: i32,
    bins: [f64; BINS],
}

impl Default for SteadySum {
    fn default() -> Self {
        Self { top: i32::MIN, bins: [0.0; BINS] }
    }
}

impl SteadySum {
    /// Numbers that [`to_numbers`](Self::to_numbers) makes of a sum.
    pub const NUMBERS: usize = BINS + 1;

    /// Adds the products of two vectors element by element.
    pub fn add_products(&mut self, x: &[f64], y: &[f64]) {
        let mut products = [0.0; CHUNK];
        for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
            let products = &mut products[..x.len()];
            products.iter_mut().zip(x.iter().zip(y)).for_each(|(product, (x, y))| *product = x * y);
            self.merge(&Self::of(products));
        }
    }

    /// The sum of some numbers.
    fn of(numbers: &[f64]) -> Self {
        // A maximum would pass over what is no number.
        let mut largest = [0u64; LANES];
        let mut chunks = numbers.chunks_exact(LANES);
        for chunk in chunks.by_ref() {
            largest.iter_mut().zip(chunk).for_each(|(most, x)| *most = (*most).max(x.abs().to_bits()));
        }
        let last = chunks.remainder().iter().map(|x| x.abs().to_bits());
        let largest = f64::from_bits(largest.into_iter().chain(last).max().unwrap_or(0));
        if largest == 0.0 {
            return Self::default();
        }
        // largest < 2^(exponent + 1), which is at most half of the grid above the first bin's.
        let exponent = ((largest.to_bits() >> 52) as i32 - 1023).max(-1023);
        let top = (exponent + 2 + WIDTH - 1).div_euclid(WIDTH) - 1;
        if !largest.is_finite() || top * WIDTH > 960 {
            return Self { top, bins: [f64::NAN; BINS] };
        }
        let anchors = std::array::from_fn::<f64, BINS, _>(|bin| anchor(top - bin as i32));
        let mut sums = [[0.0; LANES]; BINS];
        let mut chunks = numbers.chunks_exact(LANES);
        let mut add = |chunk: &[f64; LANES]| {
            let mut left = *chunk;
            for (sums, anchor) in sums.iter_mut().zip(anchors) {
                for (left, sum) in left.iter_mut().zip(sums) {
                    let piece = (*left + anchor) - anchor;
                    *sum += piece;
                    *left -= piece;
                }
            }
        };
        for chunk in chunks.by_ref() {
            add(chunk.try_into().expect("it has this length"));
        }
        let mut last = [0.0; LANES];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        add(&last);
        Self { top, bins: sums.map(|lanes| lanes.iter().sum()) }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let (high, low) = if self.top >= other.top { (*self, other) } else { (*other, &*self) };
        let shift = i64::from(high.top) - i64::from(low.top);
        let mut bins = high.bins;
        for (bin, value) in bins.iter_mut().skip(shift.min(BINS as i64) as usize).zip(low.bins) {
            *bin += value;
        }
        if low.bins[0].is_nan() {
            bins = low.bins;
        }
        *self = Self { top: high.top, bins };
    }

    /// The sum, rounded; no number if a summand is none or beyond 2^960.
    pub fn value(&self) -> f64 {
        // Neumaier's sum: bins of either sign may cancel.
        let (mut sum, mut rest) = (0.0f64, 0.0);
        for bin in self.bins {
            let next = sum + bin;
            rest += if sum.abs() >= bin.abs() { (sum - next) + bin } else { (bin - next) + sum };
            sum = next;
        }
        sum + rest
    }

    /// As numbers that can travel.
    pub fn to_numbers(&self) -> [f64; Self::NUMBERS] {
        let [a, b, c, d] = self.bins;
        [f64::from(self.top), a, b, c, d]
    }

    /// From such numbers.
    pub fn of_numbers([top, a, b, c, d]: [f64; Self::NUMBERS]) -> Self {
        Self { top: top as i32, bins: [a, b, c, d] }
    }
}

/// What rounds to the grid of a bin when it is added and subtracted: 1.5 times 2^52 of its grid. Below the grid of all
/// doubles it is 0: what is left is kept, and its sum is not rounded.
fn anchor(bin: i32) -> f64 {
    let exponent = bin * WIDTH + 52;
    match exponent < -1022 {
        true => 0.0,
        false => 1.5 * f64::from_bits(((exponent + 1023) as u64) << 52),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// Rows of 0 to 20 entries against sums from left to right.
    #[test]
    fn rows_are_summed_from_left_to_right() {
        let mut random = Random::new(5);
        let (mut offsets, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::new());
        let x: Vec<f64> = (0..50).map(|_| random.unit() - 0.5).collect();
        for _ in 0..203 {
            for _ in 0..random.below(21) {
                columns.push(random.below(50) as u32);
                values.push(random.unit() - 0.5);
            }
            offsets.push(columns.len() as u32);
        }
        let mut y = vec![f64::NAN; 203];
        SparseRows { offsets: &offsets, columns: &columns, values: &values }.times(&x, &mut y);
        for (row, y) in y.iter().enumerate() {
            let mut sum = 0.0;
            for place in offsets[row] as usize..offsets[row + 1] as usize {
                sum += values[place] * x[columns[place] as usize];
            }
            assert_eq!(sum.to_bits(), y.to_bits(), "row {row}");
        }
    }

    #[test]
    fn check_sums_by_hand() {
        let (y, x): (Vec<f64>, Vec<f64>) = (0..19).map(|i| (f64::from(i), -1.0)).unzip();
        let (factors, weights) = (vec![2.0; 19], vec![3.0; 19]);
        assert_eq!(check_sums(&y, &factors, &x, &weights), [342.0, -57.0, 19.0]);
        assert_eq!(check_sums(&[], &[], &[], &[]), [0.0; 3]);
    }

    fn sum(numbers: &[f64]) -> SteadySum {
        let mut sum = SteadySum::default();
        sum.add_products(numbers, &vec![1.0; numbers.len()]);
        sum
    }

    #[test]
    fn sums_by_hand() {
        assert_eq!(sum(&[]).value(), 0.0);
        assert_eq!(sum(&[0.0, -0.0]).value(), 0.0);
        assert_eq!(sum(&[1.0, 2.0, 3.5]).value(), 6.5);
        // 1 + 2^-60 - 1: in one order a double loses the small one.
        assert_eq!(sum(&[1.0, 2f64.powi(-60), -1.0]).value(), 2f64.powi(-60));
        assert_eq!(sum(&[1e280, 1.0, -1e280]).value(), 0.0);
        assert!(sum(&[1.0, f64::INFINITY]).value().is_nan() && sum(&[f64::NAN, 1.0]).value().is_nan());
        assert!(sum(&[1e307, 1e-300]).value().is_nan());
        let tiny = f64::MIN_POSITIVE;
        assert!(sum(&[tiny, tiny]).value() <= 2.0 * tiny);
    }

    proptest! {
        /// Any order, any cut, any association: the same bits, within an ulp of the sum by integers.
        #[test]
        fn sums_do_not_depend_on_order(
            exponents in prop::collection::vec((-1e3f64..1e3, -40i32..40), 1..300),
            cut in 0usize..300,
            seed in 0u64..1000,
        ) {
            let mut numbers: Vec<f64> = exponents.iter().map(|(x, e)| x * 2f64.powi(*e)).collect();
            let whole = sum(&numbers);
            let mut random = Random::new(seed);
            (1..numbers.len()).rev().for_each(|i| numbers.swap(i, random.below(i + 1)));
            let (left, right) = numbers.split_at(cut.min(numbers.len()));
            let mut parts = sum(right);
            parts.merge(&SteadySum::of_numbers(sum(left).to_numbers()));
            prop_assert_eq!(parts.value().to_bits(), whole.value().to_bits());
            // The integers leave out what is below 2^-60.
            let exact: i128 = numbers.iter().map(|x| (x * 2f64.powi(60)) as i128).sum();
            let magnitude: f64 = numbers.iter().map(|x| x.abs()).fold(0.0, f64::max);
            let error = (whole.value() - exact as f64 * 2f64.powi(-60)).abs();
            prop_assert!(error <= whole.value().abs() * 1e-15 + magnitude * 2f64.powi(-60) + 300.0 * 2f64.powi(-60), "{error}");
        }
    }
}

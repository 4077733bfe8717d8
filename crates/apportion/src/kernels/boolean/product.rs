//! Two ways to multiply bits, and the choice between them.

#![allow(unsafe_code)]

use crate::kernels::boolean::BitMatrix;
use crate::kernels::boolean::matrix::Chunk;
use crate::kernels::boolean::rows::{is_narrow, listed, narrow};
use crate::kernels::boolean::tables::{GROUP, by_tables};
#[cfg(target_arch = "x86_64")]
use crate::kernels::has;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

impl BitMatrix {
    /// `self` or (A and B): element (i, j) also becomes 1 where some p has ones at (i, p) of A and (p, j) of
    /// B.
    ///
    /// Takes the method that is cheaper for the densities of A and B, which it estimates from an eighth of
    /// their bits: the plain one (ones of A x n / 512 steps) or the Four Russians' (at most k / 4 x (m + 16)
    /// x n / 512 steps).
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, `self` m x n.
    ///
    /// # Example
    /// ```
    /// use apportion::kernels::BitMatrix;
    /// let a = BitMatrix::from_bytes(&[0, 1, 0, 0], 2, 2);
    /// let mut c = BitMatrix::identity(2);
    /// c.or_product(&a, &BitMatrix::from_bytes(&[0, 0, 1, 1], 2, 2));
    /// assert_eq!(c.to_bytes(), [1, 1, 0, 1]);
    /// ```
    pub fn or_product(&mut self, a: &Self, b: &Self) {
        if by_rows_is_cheaper(a, b) {
            self.or_product_by_rows(a, b);
        } else {
            self.or_product_by_tables(a, b);
        }
    }

    /// [`BitMatrix::or_product`] row by row: each 1 of A adds a row of B. Best where A has few ones.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn or_product_by_rows(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt") {
            let by_rows = match (has!(Avx512: "avx512f"), has!(Avx2: "avx2"), is_narrow(b)) {
                (true, _, true) => Some(narrow_avx512 as Compiled),
                (true, _, false) => Some(listed_avx512 as Compiled),
                (_, true, true) => Some(narrow_avx2 as Compiled),
                (_, true, false) => Some(listed_avx2 as Compiled),
                _ => None,
            };
            if let Some(by_rows) = by_rows {
                // SAFETY: the features were just detected.
                return unsafe { by_rows(self, a, b) };
            }
        }
        portable_by_rows(self, a, b);
    }

    /// [`BitMatrix::or_product`] by tables of all unions of four rows of B. Best where A is dense.
    ///
    /// Within a strip of 512 columns, rows of C that have all ones of the rows of B still to come are skipped
    /// from then on: rows of a random dense product after about 64 of them, in O(m n / 512) steps for each.
    ///
    /// Source: Arlazarov, Dinic, Kronrod and Faradzhev 1970; tables that fit the cache as in Albrecht, Bard
    /// and Hart, Algorithm 898, 2010.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn or_product_by_tables(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        #[cfg(target_arch = "x86_64")]
        if has!(Avx512: "avx512f") {
            // SAFETY: the feature was just detected.
            return unsafe { by_tables_avx512(self, a, b) };
        } else if has!(Avx2: "avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { by_tables_avx2(self, a, b) };
        }
        // SAFETY: needs no processor feature.
        unsafe { by_tables::<Chunk>(self, a, b) }
    }

    fn check_shapes(&self, a: &Self, b: &Self) {
        assert!(
            a.cols() == b.rows() && self.rows() == a.rows() && self.cols() == b.cols(),
            "the shapes {} x {}, {} x {} and {} x {} fit",
            a.rows(),
            a.cols(),
            b.rows(),
            b.cols(),
            self.rows(),
            self.cols()
        );
    }
}

/// Whether A has too few ones for tables.
///
/// By tables a row of C is left when nothing that remains of B can add to it: with random bits after (ln n +
/// 0.58) / (density of A x density of B) rows of B, the mean of the greatest of n exponential variables. To
/// fetch it and to put it back takes as long as 16 tables. By rows, finding a 1 takes as long as 1.5 chunks
/// of one table, and adding a chunk an eighth of it. The constants fit sizes of 64 to 4,096 on Zen 4.
fn by_rows_is_cheaper(a: &BitMatrix, b: &BitMatrix) -> bool {
    let [m, k, n] = [a.rows(), a.cols(), b.cols()].map(|length| length as f64);
    let (ones, others) = (a.density(), b.density());
    let full = (n.clamp(1.0, 512.0).ln() + 0.58) / (ones * others);
    let by_tables = (k.min(full) / GROUP as f64 + 16.0) * (m + f64::from(1 << GROUP));
    m * k * ones * (1.5 + b.width().min(8) as f64 / 8.0) < by_tables
}

/// Any processor's way by rows.
fn portable_by_rows(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
    // SAFETY: plain chunks need no feature of the processor.
    unsafe { if is_narrow(b) { narrow::<Chunk>(c, a, b) } else { listed::<Chunk, 2>(c, a, b) } }
}

/// A body that needs features of the processor.
#[cfg(target_arch = "x86_64")]
type Compiled = unsafe fn(&mut BitMatrix, &BitMatrix, &BitMatrix);

/// The same body, compiled for wider registers, which only some processors have.
macro_rules! compiled_for {
    ($name:ident = $body:expr, $feature:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        fn $name(c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix) {
            // SAFETY: the feature is enabled here; callers guarantee that the processor has it.
            unsafe { $body(c, a, b) }
        }
    };
}

compiled_for!(narrow_avx512 = narrow::<__m512i>, "avx512f,bmi1,popcnt");
compiled_for!(narrow_avx2 = narrow::<[__m256i; 2]>, "avx2,bmi1,popcnt");
compiled_for!(listed_avx512 = listed::<__m512i, 8>, "avx512f,bmi1,popcnt");
compiled_for!(listed_avx2 = listed::<[__m256i; 2], 4>, "avx2,bmi1,popcnt");
compiled_for!(by_tables_avx512 = by_tables::<__m512i>, "avx512f");
compiled_for!(by_tables_avx2 = by_tables::<[__m256i; 2]>, "avx2");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// A matrix with about one in `rarity` bits set.
    fn sample(rows: usize, cols: usize, rarity: usize, seed: u64) -> BitMatrix {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..rows * cols).map(|_| u8::from(random.below(rarity) == 0)).collect();
        BitMatrix::from_bytes(&bytes, rows, cols)
    }

    /// The definition, element by element.
    fn by_definition(c: &BitMatrix, a: &BitMatrix, b: &BitMatrix) -> BitMatrix {
        let mut result = c.clone();
        for (i, j) in (0..c.rows()).flat_map(|i| (0..c.cols()).map(move |j| (i, j))) {
            if (0..a.cols()).any(|p| a.get(i, p) && b.get(p, j)) {
                result.set(i, j);
            }
        }
        result
    }

    fn check([m, n, k]: [usize; 3], rarity: usize, seed: u64) {
        let (a, b) = (sample(m, k, rarity, seed), sample(k, n, rarity, seed + 1));
        let before = sample(m, n, 9, seed + 2);
        let expected = by_definition(&before, &a, &b);
        let portable_tables = |c: &mut BitMatrix, a: &BitMatrix, b: &BitMatrix| {
            // SAFETY: plain chunks need no feature of the processor.
            unsafe { by_tables::<Chunk>(c, a, b) }
        };
        let ways = [
            BitMatrix::or_product,
            BitMatrix::or_product_by_rows,
            BitMatrix::or_product_by_tables,
            portable_by_rows,
            portable_tables,
        ];
        for (way, product) in ways.into_iter().enumerate() {
            let mut c = before.clone();
            product(&mut c, &a, &b);
            assert_eq!(c, expected, "{m} x {n} x {k}, one in {rarity}, way {way}");
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            let (mut by_rows, mut by_tables) = (before.clone(), before);
            // SAFETY: the feature was just detected.
            unsafe {
                if is_narrow(&b) {
                    narrow_avx2(&mut by_rows, &a, &b);
                } else {
                    listed_avx2(&mut by_rows, &a, &b);
                }
                by_tables_avx2(&mut by_tables, &a, &b);
            }
            assert_eq!((&by_rows, &by_tables), (&expected, &expected), "{m} x {n} x {k} by AVX2");
        }
    }

    /// Far from where the two ways take the same time.
    #[test]
    fn few_ones_go_by_rows_and_many_by_tables() {
        for n in [128, 512, 1024] {
            let (few, many) = (sample(n, n, 100, 1), sample(n, n, 2, 2));
            assert!(by_rows_is_cheaper(&few, &few) && by_rows_is_cheaper(&few, &many), "{n}");
            assert!(!by_rows_is_cheaper(&many, &many), "{n}");
        }
        let none = BitMatrix::zeros(64, 64);
        assert!(by_rows_is_cheaper(&none, &none) && by_rows_is_cheaper(&none, &sample(64, 64, 2, 3)));
    }

    #[test]
    fn awkward_sizes() {
        for shape in [
            [0, 3, 2],
            [3, 0, 2],
            [3, 2, 0],
            [1, 1, 1],
            [1, 7, 129],
            [7, 1, 8],
            [5, 513, 127],
            [3, 512, 128],
            [67, 61, 257],
            [2, 1100, 9],
            [300, 70, 640],
            [3, 7900, 70],
            [2, 40, 4200],
        ] {
            for rarity in [1, 2, 40] {
                check(shape, rarity, 5);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn equals_the_definition(
            shape in [1usize..40, 1usize..600, 1usize..300],
            rarity in 1usize..200,
            seed in 0u64..1 << 40,
        ) {
            check(shape, rarity, seed);
        }

        #[test]
        fn products_are_associative(shape in [1usize..70, 1usize..70, 1usize..70, 1usize..70], seed in 0u64..1 << 40) {
            let [m, k, l, n] = shape;
            let times = |x: &BitMatrix, y: &BitMatrix| {
                let mut z = BitMatrix::zeros(x.rows(), y.cols());
                z.or_product(x, y);
                z
            };
            let (a, b, c) = (sample(m, k, 8, seed), sample(k, l, 8, seed + 1), sample(l, n, 8, seed + 2));
            prop_assert_eq!(times(&times(&a, &b), &c), times(&a, &times(&b, &c)));
            prop_assert_eq!(times(&a, &BitMatrix::identity(k)), a);
        }
    }
}

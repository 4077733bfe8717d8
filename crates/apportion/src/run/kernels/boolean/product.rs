//! Two ways to multiply bits, and the choice between them.

use super::BitMatrix;
use super::matrix::CHUNK;

/// 512 columns of one row.
type Chunk = [u64; CHUNK];

/// Rows of B that one table covers.
const GROUP: usize = 8;
/// Tables that are built together: 256 KiB, within a second-level cache.
const TABLES: usize = 16;

impl BitMatrix {
    /// `self` or (A and B): element (i, j) also becomes 1 where some p has ones at (i, p) of A and (p, j) of B.
    ///
    /// Takes the cheaper, by the count of ones in A, of the plain method (ones of A x n / 512 steps) and of the
    /// Four Russians' (k / 8 x (m + 256) x n / 512 steps).
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
        // Measured: a step from a table and a step straight from B cost about the same.
        if a.ones() < a.cols().div_ceil(GROUP) * (a.rows() + (1 << GROUP)) {
            self.or_product_by_rows(a, b);
        } else {
            self.or_product_by_tables(a, b);
        }
    }

    /// [`BitMatrix::or_product`] row by row: each one of A adds a row of B. Best where A has few ones.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn or_product_by_rows(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        for i in 0..a.rows() {
            for p in a.ones_of(i, 0..a.words(i).len()) {
                for (c, b) in self.row_mut(i).iter_mut().zip(b.row(p)) {
                    *c = or(*c, b);
                }
            }
        }
    }

    /// [`BitMatrix::or_product`] by tables of all unions of eight rows of B. Best where A is dense.
    ///
    /// Rows of C that are full of ones within a strip of 512 columns drop out.
    ///
    /// Source: Arlazarov, Dinic, Kronrod and Faradzhev 1970; tables that fit the cache as in Albrecht, Bard and
    /// Hart, Algorithm 898, 2010.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn or_product_by_tables(&mut self, a: &Self, b: &Self) {
        self.check_shapes(a, b);
        let mut tables = vec![[[0; CHUNK]; 1 << GROUP]; TABLES.min(a.cols().div_ceil(GROUP))];
        for place in 0..b.width() {
            let full = b.full(place);
            let mut unfinished: Vec<usize> = (0..a.rows()).collect();
            for start in (0..a.cols()).step_by(TABLES * GROUP) {
                if unfinished.is_empty() {
                    break;
                }
                let depth = (a.cols() - start).min(TABLES * GROUP);
                for (t, table) in tables.iter_mut().enumerate().take(depth.div_ceil(GROUP)) {
                    let first = start + t * GROUP;
                    fill(table, (first..b.rows().min(first + GROUP)).map(|p| &b.row(p)[place]));
                }
                unfinished.retain(|&i| {
                    let c = &mut self.row_mut(i)[place];
                    let words = &a.words(i)[start / 64..][..TABLES * GROUP / 64];
                    let mut sum = *c;
                    for (word, tables) in words.iter().zip(tables.chunks(64 / GROUP)) {
                        for (table, group) in tables.iter().zip(word.to_le_bytes()) {
                            sum = or(sum, &table[group as usize]);
                        }
                    }
                    *c = sum;
                    sum != full
                });
            }
        }
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

#[inline(always)]
fn or(x: Chunk, y: &Chunk) -> Chunk {
    std::array::from_fn(|i| x[i] | y[i])
}

/// Entry x becomes the union of the rows whose bits are set in x; one union each, from the entry without the
/// highest bit.
fn fill<'a>(table: &mut [Chunk; 1 << GROUP], rows: impl Iterator<Item = &'a Chunk>) {
    table[0] = [0; CHUNK];
    for (bit, row) in rows.enumerate() {
        let (known, new) = table.split_at_mut(1 << bit);
        for (new, known) in new.iter_mut().zip(known) {
            *new = or(*known, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A matrix with about one in `rarity` bits set.
    fn sample(rows: usize, cols: usize, rarity: u64, seed: u64) -> BitMatrix {
        let mut state = seed;
        let bytes: Vec<u8> = (0..rows * cols)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                u8::from((state >> 33).is_multiple_of(rarity))
            })
            .collect();
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

    fn check([m, n, k]: [usize; 3], rarity: u64, seed: u64) {
        let (a, b) = (sample(m, k, rarity, seed), sample(k, n, rarity, seed + 1));
        let before = sample(m, n, 9, seed + 2);
        let expected = by_definition(&before, &a, &b);
        let ways = [BitMatrix::or_product, BitMatrix::or_product_by_rows, BitMatrix::or_product_by_tables];
        for (way, product) in ways.into_iter().enumerate() {
            let mut c = before.clone();
            product(&mut c, &a, &b);
            assert_eq!(c, expected, "{m} x {n} x {k}, one in {rarity}, way {way}");
        }
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
            rarity in 1u64..200,
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

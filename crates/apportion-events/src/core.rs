//! The core product of a large system, for measurements.

use apportion::kernels::BitMatrix;
use apportion::matrix::Matrix;
use apportion::random::Random;

/// The factors of the core product of a random system with `n` rules and `n` places in `n` states: the
/// conditions of each rule (one to five places), and what is missing in each state (nine in ten). They have
/// the sizes of section 7.5.2 of Becker 2010 for `n` of 7,000. Same seed, same factors. O(n^2) bytes.
///
/// # Panics
/// If `n` is 0.
pub fn core_factors(n: usize, seed: u64) -> [Matrix<u8>; 2] {
    assert!(n > 0, "a system has rules");
    let mut random = Random::new(seed);
    let mut conditions = BitMatrix::zeros(n, n);
    for rule in 0..n {
        for _ in 0..=random.below(5) {
            conditions.set(rule, random.below(n));
        }
    }
    let missing = (0..n * n).map(|_| u8::from(random.below(10) > 0)).collect();
    [Matrix::new(n, n, conditions.to_bytes()), Matrix::new(n, n, missing)]
}

//! The laws of the check by samples.

use super::super::samples::{Sampled, drawn};
use super::*;
use proptest::prelude::*;

fn factors(m: usize, k: usize, n: usize) -> [Matrix<f64>; 2] {
    let fill = |rows: usize, cols: usize, by: usize| {
        Matrix::new(rows, cols, (0..rows * cols).map(|i| (i * by % 101) as f64 / 7.0).collect())
    };
    [fill(m, k, 37), fill(k, n, 59)]
}

/// Over min-plus, by definition.
fn product([a, b]: &[Matrix<f64>; 2]) -> Matrix<f64> {
    let element = |at: usize| {
        let (i, j) = (at / b.cols(), at % b.cols());
        (0..a.cols()).map(|l| a.row(i)[l] + b.row(l)[j]).fold(f64::INFINITY, f64::min)
    };
    Matrix::new(a.rows(), b.cols(), (0..a.rows() * b.cols()).map(element).collect())
}

fn least([a, b]: &[Matrix<f64>; 2], seed: u64) -> Product<'_, f64> {
    Product { seed, ..Product::new(Kernel::min_plus(), a, b) }
}

/// As many draws as asked for, and no row and no column without one.
#[test]
fn every_row_and_column_is_sampled() {
    let places = drawn(30, 7, 50, 3);
    assert_eq!(places.len(), 50 + 30 + 7);
    assert!((0..30).all(|i| places.iter().any(|p| p.0 == i)));
    assert!((0..7).all(|j| places.iter().any(|p| p.1 == j)));
    assert!(places.is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// A small product is recomputed whole: one wrong element anywhere is found and named, by its last bit.
    #[test]
    fn every_single_error_in_a_small_product_is_found(
        m in 1usize..9, k in 1usize..9, n in 1usize..9, at in any::<prop::sample::Index>(), seed: u64,
    ) {
        let factors = factors(m, k, n);
        let c = product(&factors);
        let at = at.index(m * n);
        let wrong = with(&c, at, f64::from_bits(c.as_slice()[at].to_bits() ^ 1));
        on_each_world(|world| {
            let passed = least(&factors, seed).sample(&c, 64, world).unwrap();
            assert_eq!(passed, Sampled { elements: (m * n) as u64, drawn: 0, all: true });
            assert_eq!(passed.error_probability(1e-9), 0.0);
            let error = least(&factors, seed).sample(&wrong, 64, world).unwrap_err();
            assert!(error.to_string().contains(&format!("element ({}, {})", at / n, at % n)), "{error}");
        });
    }

    /// A wrong row or column is found without any luck.
    #[test]
    fn a_wrong_row_or_column_is_found_for_certain(line in 0usize..30, row: bool, seed: u64) {
        let factors = factors(30, 3, 30);
        let mut c = product(&factors);
        for x in 0..30 {
            let at = if row { line * 30 + x } else { x * 30 + line };
            c.as_mut_slice()[at] += 1.0;
        }
        on_each_world(|world| assert!(least(&factors, seed).sample(&c, 0, world).is_err()));
    }
}

/// Misses over many seeds are as rare as stated: with 30 of 900 elements wrong, 20 draws alone would miss
/// half.
#[test]
fn misses_are_no_more_frequent_than_stated() {
    let factors = factors(30, 2, 30);
    let mut c = product(&factors);
    (0..30).for_each(|i| c.as_mut_slice()[i * 31] += 1.0);
    let probability = Sampled { elements: 80, drawn: 20, all: false }.error_probability(30.0 / 900.0);
    assert!((probability - 0.5076).abs() < 1e-3);
    on_each_world(|world| {
        let missed = (0..400).filter(|&seed| least(&factors, seed).sample(&c, 20, world).is_ok()).count();
        assert!((missed as f64) < 400.0 * probability, "{missed} of 400");
    });
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let [a, b] = factors(2, 3, 4);
    let error = verify_product(Kernel::min_plus(), &a, &b, &Matrix::zeros(2, 5), 1).unwrap_err();
    assert_eq!(error.exit_code(), 2);
}

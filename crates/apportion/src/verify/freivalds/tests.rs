//! The laws of the check, against the product as written in textbooks.

use super::*;
use proptest::prelude::*;

fn random<T: Element>(rows: usize, cols: usize, seed: u64, size: f64) -> Matrix<T> {
    let mut random = SplitMix64(seed);
    let unit = |word: u64| (word >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    Matrix::new(rows, cols, (0..rows * cols).map(|_| T::from_f64(size * unit(random.next()))).collect())
}

/// The textbook's three loops, rounding after every step as the element type does.
fn naive<T: Element>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let mut data = Vec::new();
    for i in 0..a.rows() {
        for j in 0..b.cols() {
            data.push((0..a.cols()).fold(T::ZERO, |sum, l| {
                let product = T::from_f64(a.row(i)[l].to_f64() * b.row(l)[j].to_f64());
                T::from_f64(sum.to_f64() + product.to_f64())
            }));
        }
    }
    Matrix::new(a.rows(), b.cols(), data)
}

fn passes<T: Element>(m: usize, k: usize, n: usize, sizes: [f64; 2]) {
    let (a, b) = (random::<T>(m, k, 1, sizes[0]), random::<T>(k, n, 2, sizes[1]));
    let verified = verify_product(&a, &b, &naive(&a, &b), 7, 20).unwrap();
    assert_eq!((verified.trials, verified.error_probability, verified.sampled), (24, 2f64.powi(-24), 0));
}

#[test]
fn rounding_passes() {
    for (m, k, n) in
        [(1, 1, 1), (1, 5, 1), (7, 1, 5), (31, 37, 41), (2, 20_000, 3), (1, 3, 2_000), (300, 2, 1)]
    {
        for sizes in [[1.0, 1.0], [1e15, 1e18], [1e-10, 1e-8], [1e-25, 1e25]] {
            passes::<f32>(m, k, n, sizes);
        }
        for sizes in
            [[1.0, 1.0], [1e150, 1e150], [1e-150, 1e-150], [1e-290, 1e300], [1e308, 1e-308], [1e-320, 1.0]]
        {
            passes::<f64>(m, k, n, sizes);
        }
    }
}

/// Sums that drift, since every rounding goes the same way, are still rounding.
#[test]
fn drifting_sums_pass() {
    let k = 1_000_000;
    let (a, b) = (Matrix::new(6, k, vec![0.1f32; 6 * k]), Matrix::new(k, 4, vec![0.1f32; 4 * k]));
    let c = naive(&a, &b);
    assert!((c.as_slice()[0] - 1e4).abs() > 100.0);
    verify_product(&a, &b, &c, 0, 40).unwrap();
}

#[test]
fn one_flipped_bit_is_seen_anywhere() {
    for (m, k, n) in [(1, 1, 1), (5, 7, 11), (13, 2, 3), (2, 50, 17)] {
        let positive = |rows, cols, seed| {
            let values = random::<f64>(rows, cols, seed, 0.25);
            Matrix::new(rows, cols, values.as_slice().iter().map(|v| (v + 0.75) as f32).collect())
        };
        let (a, b) = (positive(m, k, 3), positive(k, n, 4));
        let c = naive(&a, &b);
        for at in 0..m * n {
            for bit in 16..32 {
                let mut wrong = c.clone();
                let value = &mut wrong.as_mut_slice()[at];
                *value = f32::from_bits(value.to_bits() ^ (1 << bit));
                let error = verify_product(&a, &b, &wrong, 5, 1).unwrap_err();
                let place = format!("the result is wrong: element ({}, {})", at / n, at % n);
                assert!(error.to_string().starts_with(&place), "bit {bit} of {at}: {error}");
                assert_eq!(error.exit_code(), 1);
            }
        }
    }
}

#[test]
fn both_values_are_told() {
    let (a, b) = (Matrix::new(1, 2, vec![1.0, 2.0]), Matrix::new(2, 1, vec![3.0, 4.0]));
    let error = verify_product(&a, &b, &Matrix::new(1, 1, vec![12.0]), 0, 1).unwrap_err();
    let text = "the result is wrong: element (0, 0), counted from 0, is 1.2e1 and should be 1.1e1 (nothing was written)";
    assert_eq!(error.to_string(), text);
    assert_eq!(verify_product(&a, &b, &Matrix::new(2, 1, vec![11.0, 0.0]), 0, 1).unwrap_err().exit_code(), 2);
}

#[test]
fn nan_and_infinities_where_none_belong_are_seen() {
    let (a, b) = (random::<f64>(9, 8, 1, 1.0), random::<f64>(8, 7, 2, 1.0));
    let c = naive(&a, &b);
    for at in 0..63 {
        for strange in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut wrong = c.clone();
            wrong.as_mut_slice()[at] = strange;
            let error = verify_product(&a, &b, &wrong, 5, 1).unwrap_err();
            assert!(error.to_string().contains(&format!("({}, {})", at / 7, at % 7)), "{error}");
        }
    }
}

#[test]
fn nan_infinities_and_overflow_where_they_belong_pass() {
    let (mut a, mut b) = (random::<f32>(9, 8, 1, 1.0), random::<f32>(8, 7, 2, 1.0));
    a.as_mut_slice()[8 * 3 + 2] = f32::INFINITY;
    a.as_mut_slice()[8 * 4 + 2] = f32::NAN;
    b.as_mut_slice()[7 * 2 + 5] = f32::NEG_INFINITY;
    let c = naive(&a, &b);
    assert!(verify_product(&a, &b, &c, 5, 20).unwrap().sampled > 0);
    // Rows and columns that are finite are still checked in full.
    let mut wrong = c.clone();
    wrong.as_mut_slice()[6] += 0.1;
    assert!(verify_product(&a, &b, &wrong, 5, 20).is_err());
    // All of row 3 is infinite or NaN: a sample finds a row of zeros.
    let mut wrong = c.clone();
    wrong.as_mut_slice()[21..28].fill(0.0);
    assert!(verify_product(&a, &b, &wrong, 5, 20).is_err());
    let (a, b) = (random::<f32>(5, 6, 1, 1e30), random::<f32>(6, 5, 2, 1e30));
    let c = naive(&a, &b);
    assert!(c.as_slice().iter().all(|v| !v.is_finite()));
    assert!(verify_product(&a, &b, &c, 5, 20).is_ok());
}

proptest! {
    /// A check by definition, element by element, agrees wherever the error is far from rounding.
    #[test]
    fn agrees_with_the_definition(
        m in 1usize..12, k in 1usize..12, n in 1usize..12, seed: u64,
        spoil in prop::option::of((any::<prop::sample::Index>(), -9.0f64..9.0)),
    ) {
        let (a, b) = (random::<f64>(m, k, seed, 1.0), random::<f64>(k, n, !seed, 1.0));
        let right = naive(&a, &b);
        let mut c = right.clone();
        if let Some((at, by)) = spoil {
            c.as_mut_slice()[at.index(m * n)] += by;
        }
        let far = c.as_slice().iter().zip(right.as_slice()).any(|(x, y)| (x - y).abs() > 1e-9);
        prop_assert_eq!(verify_product(&a, &b, &c, seed, 30).is_err(), far);
    }
}

/// alpha A B + beta C0 by the textbook, either factor or the product being scaled.
fn scaled<T: Element>(a: &Matrix<T>, b: &Matrix<T>, s: Scaling<'_, T>, factor_first: bool) -> Matrix<T> {
    let (alpha, beta) = (s.alpha.to_f64(), s.beta.to_f64());
    let times = |m: &Matrix<T>| {
        Matrix::new(
            m.rows(),
            m.cols(),
            m.as_slice().iter().map(|x| T::from_f64(alpha * x.to_f64())).collect(),
        )
    };
    let mut c = if factor_first { naive(&times(a), b) } else { times(&naive(a, b)) };
    if let Some(initial) = s.initial {
        for (x, before) in c.as_mut_slice().iter_mut().zip(initial.as_slice()) {
            let before = T::from_f64(beta * before.to_f64());
            *x = T::from_f64(x.to_f64() + before.to_f64());
        }
    }
    c
}

#[test]
fn rounding_of_the_whole_expression_passes_and_a_flipped_bit_does_not() {
    let mut caught = 0;
    for (m, k, n) in [(1, 1, 1), (7, 1, 5), (31, 37, 41), (2, 2_000, 3)] {
        for [alpha, beta] in
            [[1.0, 1.0], [-0.3, 2.5], [1e200, 1e-200], [1e-200, 1e200], [0.5, 0.0], [0.0, 3.0]]
        {
            for size in [1.0, 1e90, 1e-90] {
                let (a, b) = (random::<f64>(m, k, 1, 1.0), random::<f64>(k, n, 2, 1e3));
                let initial = random::<f64>(m, n, 3, size);
                let scaling = Scaling { alpha, beta, initial: Some(&initial) };
                for factor_first in [false, true] {
                    let c = scaled(&a, &b, scaling, factor_first);
                    verify_scaled((&a, &b, &c), scaling, 7, 16).unwrap();
                    for at in [0, m * n / 2, m * n - 1] {
                        let mut wrong = c.clone();
                        let bits = wrong.as_slice()[at].to_bits() ^ 1 << 40;
                        wrong.as_mut_slice()[at] = f64::from_bits(bits);
                        // A bit far below the rounding of what cancelled may pass for rounding.
                        let change = (wrong.as_slice()[at] - c.as_slice()[at]).abs();
                        if change > 1e-9 * (alpha.abs() * 1e3 * k as f64 + beta.abs() * size) {
                            let seen = verify_scaled((&a, &b, &wrong), scaling, 7, 16);
                            assert!(
                                matches!(seen, Err(Error::WrongResult { .. })),
                                "{m} {k} {n} {alpha} {beta} {size}"
                            );
                            caught += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(caught > 100, "{caught} wrong bits tried");
    let (a, b) = (random::<f32>(20, 30, 1, 1.0), random::<f32>(30, 10, 2, 1.0));
    let initial = random::<f32>(20, 10, 3, 10.0);
    let scaling = Scaling { alpha: 0.1, beta: -7.7, initial: Some(&initial) };
    let c = scaled(&a, &b, scaling, true);
    verify_scaled((&a, &b, &c), scaling, 1, 16).unwrap();
    // Each part of the expression counts.
    for other in [
        Scaling { alpha: 0.11, ..scaling },
        Scaling { beta: -7.6, ..scaling },
        Scaling { initial: None, ..scaling },
    ] {
        assert!(verify_scaled((&a, &b, &c), other, 1, 16).is_err());
    }
}

#[test]
fn infinities_in_the_initial_matrix_reach_the_result_and_nothing_else() {
    let (a, b) = (random::<f64>(6, 5, 1, 1.0), random::<f64>(5, 8, 2, 1.0));
    let mut initial = random::<f64>(6, 8, 3, 1.0);
    initial.as_mut_slice()[11] = f64::INFINITY;
    initial.as_mut_slice()[20] = f64::NAN;
    let scaling = Scaling { alpha: 2.0, beta: -1.0, initial: Some(&initial) };
    let c = scaled(&a, &b, scaling, false);
    assert_eq!(c.as_slice()[11], f64::NEG_INFINITY);
    verify_scaled((&a, &b, &c), scaling, 1, 16).unwrap();
    for (at, value) in [(11, 0.0), (11, f64::INFINITY), (20, 1.0), (12, f64::INFINITY)] {
        let mut wrong = c.clone();
        wrong.as_mut_slice()[at] = value;
        assert!(verify_scaled((&a, &b, &wrong), scaling, 1, 16).is_err(), "{at} {value}");
    }
    // Factors that alpha = 0 leaves unread.
    let nan = Matrix::new(6, 5, vec![f64::NAN; 30]);
    let scaling = Scaling { alpha: 0.0, beta: 1.0, initial: Some(&c) };
    let unread = verify_scaled((&nan, &b, &c), scaling, 1, 16);
    assert!(unread.is_ok());
}

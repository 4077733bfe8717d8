//! The laws of Freivalds' check, compared with the product as defined in textbooks.

use super::*;
use crate::kernels::Real;
use proptest::prelude::*;

fn plus<'a, T: Real>(a: &'a Matrix<T>, b: &'a Matrix<T>) -> Product<'a, T> {
    Product::new(Kernel::plus_times(), a, b)
}

fn passes<T: Real>(m: usize, k: usize, n: usize, sizes: [f64; 2], world: &World) {
    let (a, b) = (random::<T>(m, k, 1, sizes[0]), random::<T>(k, n, 2, sizes[1]));
    let verified = plus(&a, &b).verify(&naive(&a, &b), world).unwrap();
    let wanted = Verified { error_probability: 2f64.powi(-16), sampled: None, exceptional: 0 };
    assert_eq!(verified, wanted, "{m} {k} {n} {sizes:?}");
}

#[test]
fn rounding_passes() {
    let all = [[1.0, 1.0], [1e15, 1e18], [1e-10, 1e-8], [1e-25, 1e25]];
    let doubles =
        [[1.0, 1.0], [1e150, 1e150], [1e-150, 1e-150], [1e-290, 1e300], [1e308, 1e-308], [1e-320, 1.0]];
    on_each_world(|world| {
        for (m, k, n) in
            [(1, 1, 1), (1, 5, 1), (7, 1, 5), (31, 37, 41), (2, 20_000, 3), (1, 3, 2_000), (300, 2, 1)]
        {
            // Vectors of 20,000 travel slowly between threads.
            let some = if world.is_solo() || k < 20_000 { all.len() } else { 1 };
            all[..some].iter().for_each(|sizes| passes::<f32>(m, k, n, *sizes, world));
            doubles[..some].iter().for_each(|sizes| passes::<f64>(m, k, n, *sizes, world));
        }
    });
}

/// Sums that drift because every rounding has the same sign are still rounding.
#[test]
#[ignore = "slow"]
fn drifting_sums_pass() {
    on_each_world(|world| {
        let k = if world.is_solo() { 1_000_000 } else { 100_000 };
        let (a, b) = (Matrix::new(6, k, vec![0.1f32; 6 * k]), Matrix::new(k, 4, vec![0.1f32; 4 * k]));
        let c = naive(&a, &b);
        let exact = k as f32 / 100.0;
        assert!((c.as_slice()[0] - exact).abs() > 1e-4 * exact);
        for seed in 0..3 {
            Product { seed, ..plus(&a, &b) }.verify(&c, world).unwrap();
        }
    });
}

#[test]
fn one_flipped_bit_is_seen_anywhere() {
    on_each_world(|world| {
        for (m, k, n) in [(1, 1, 1), (5, 7, 11), (13, 2, 3), (2, 50, 17)] {
            let positive = |rows, cols, seed| {
                let values = random::<f64>(rows, cols, seed, 0.25);
                Matrix::new(rows, cols, values.as_slice().iter().map(|v| (v + 0.75) as f32).collect())
            };
            let (a, b) = (positive(m, k, 3), positive(k, n, 4));
            let c = naive(&a, &b);
            for at in 0..m * n {
                for bit in (16..32).step_by(if world.is_solo() { 1 } else { 5 }) {
                    let flipped = f32::from_bits(c.as_slice()[at].to_bits() ^ (1 << bit));
                    let error = plus(&a, &b).verify(&with(&c, at, flipped), world).unwrap_err();
                    let place = format!("the result is wrong: element ({}, {})", at / n, at % n);
                    assert!(error.to_string().starts_with(&place), "bit {bit} of {at}: {error}");
                    assert_eq!(error.exit_code(), 1);
                }
            }
        }
    });
}

#[test]
fn both_values_are_named() {
    let (a, b) = (Matrix::new(1, 2, vec![1.0, 2.0]), Matrix::new(2, 1, vec![3.0, 4.0]));
    let text = "the result is wrong: element (0, 0), counted from 0, is 1.2e1 and should be 1.1e1 \
                (nothing was written)";
    on_each_world(|world| {
        let error = plus(&a, &b).verify(&Matrix::new(1, 1, vec![12.0]), world).unwrap_err();
        assert_eq!(error.to_string(), text);
    });
    let kernel = Kernel::plus_times();
    let error = verify_product(kernel, &a, &b, &Matrix::new(1, 1, vec![12.0]), 0).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert!(verify_product(kernel, &a, &b, &Matrix::new(1, 1, vec![11.0]), 0).is_ok());
    let refused = verify_product(kernel, &a, &b, &Matrix::new(2, 1, vec![11.0, 0.0]), 0).unwrap_err();
    assert_eq!(refused.exit_code(), 2);
}

#[test]
fn nan_and_infinities_where_none_belong_are_seen() {
    let (a, b) = (random::<f64>(9, 8, 1, 1.0), random::<f64>(8, 7, 2, 1.0));
    let c = naive(&a, &b);
    on_each_world(|world| {
        for at in 0..63 {
            for strange in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let error = plus(&a, &b).verify(&with(&c, at, strange), world).unwrap_err();
                assert!(error.to_string().contains(&format!("({}, {})", at / 7, at % 7)), "{error}");
            }
        }
    });
}

#[test]
fn nan_infinities_and_overflow_where_they_belong_pass() {
    let (mut a, mut b) = (random::<f32>(9, 8, 1, 1.0), random::<f32>(8, 7, 2, 1.0));
    a.as_mut_slice()[8 * 3 + 2] = f32::INFINITY;
    a.as_mut_slice()[8 * 4 + 2] = f32::NAN;
    b.as_mut_slice()[7 * 2 + 5] = f32::NEG_INFINITY;
    let c = naive(&a, &b);
    let (large_a, large_b) = (random::<f32>(5, 6, 1, 1e30), random::<f32>(6, 5, 2, 1e30));
    let overflow = naive(&large_a, &large_b);
    assert!(overflow.as_slice().iter().all(|v| !v.is_finite()));
    on_each_world(|world| {
        let verified = plus(&a, &b).verify(&c, world).unwrap();
        assert_eq!(verified.exceptional, 2 * 7 + 7, "two rows, and a column of the other seven");
        // Every element is checked: by Freivalds where all is finite, otherwise by recomputing these few.
        for at in 0..63 {
            let value = if c.as_slice()[at].is_finite() { c.as_slice()[at] + 0.1 } else { 0.0 };
            let error = plus(&a, &b).verify(&with(&c, at, value), world).unwrap_err().to_string();
            assert!(error.contains(&format!("({}, {})", at / 7, at % 7)), "{error}");
        }
        assert!(plus(&large_a, &large_b).verify(&overflow, world).is_ok());
    });
}

/// A column of large numbers hides nothing: not the zeros that a faulty library leaves elsewhere, nor one
/// wrong element.
fn badly_scaled_columns<T: Real>(sizes: &[f64], smallest: f64, world: &World) {
    let (m, k, n) = (40, 50, 30);
    for &size in sizes {
        for column in [0, 17] {
            let (a, mut b) = (random::<T>(m, k, 1, 1.0), random::<T>(k, n, 2, 1.0));
            let large = |x: &mut T| *x = T::from_f64(x.to_f64() * size);
            b.as_mut_slice().iter_mut().skip(column).step_by(n).for_each(large);
            let c = naive(&a, &b);
            let mut initial = random::<T>(m, n, 3, 1.0);
            initial.as_mut_slice().iter_mut().skip(column).step_by(n).for_each(large);
            let scaling = Scaling { alpha: T::from_f64(-2.0), beta: T::from_f64(3.0) };
            let whole = scaled([&a, &b], scaling, Some(&initial), false);
            let plain = plus(&a, &b);
            let scaled = plus(&a, &b).with_scaling(scaling, Some(&initial));
            for (product, c) in [(plain, c), (scaled, whole)] {
                product.verify(&c, world).unwrap();
                let mut zeros = c.clone();
                let others = zeros.as_mut_slice().iter_mut().enumerate();
                others.filter(|(at, _)| at % n != column).for_each(|(_, x)| *x = T::ZERO);
                assert!(product.verify(&zeros, world).is_err(), "{size:e} {column}: zeros");
                for at in [1, m * n / 2 + 1, m * n - 1].into_iter().filter(|at| at % n != column) {
                    let wrong = T::from_f64(c.as_slice()[at].to_f64() + smallest);
                    assert!(product.verify(&with(&c, at, wrong), world).is_err(), "{size:e} {column} {at}");
                }
            }
        }
    }
}

#[test]
fn no_column_hides_another() {
    on_each_world(|world| {
        badly_scaled_columns::<f32>(&[1e3, 1e6, 1e12, 1e30], 1e-2, world);
        badly_scaled_columns::<f64>(&[1e3, 1e12, 1e14, 1e100, 1e300], 1e-9, world);
    });
}

/// A finite element among infinities is found for certain, and so is any error beside columns that overflow.
#[test]
fn no_infinity_hides_an_error() {
    let (m, k, n) = (120, 4, 150);
    let (mut a, mut b) = (random::<f64>(m, k, 1, 1.0), random::<f64>(k, n, 2, 1.0));
    on_each_world(|world| {
        let mut infinite = a.clone();
        (0..m).for_each(|i| infinite.as_mut_slice()[i * k + i % k] = f64::INFINITY);
        let c = naive(&infinite, &b);
        plus(&infinite, &b).verify(&c, world).unwrap();
        for at in [0, 77, m * n - 1] {
            assert!(plus(&infinite, &b).verify(&with(&c, at, 0.0), world).is_err(), "{at}");
        }
    });
    a.as_mut_slice().iter_mut().for_each(|x| *x = x.abs() + 1.0);
    b.as_mut_slice().iter_mut().for_each(|x| *x = x.abs() + 1.0);
    (0..k).for_each(|l| b.as_mut_slice()[l * n + 5] = 1.7e308);
    let c = naive(&a, &b);
    assert_eq!(c.row(9)[5], f64::INFINITY);
    on_each_world(|world| {
        plus(&a, &b).verify(&c, world).unwrap();
        for at in [0, 6, 77 * n + 4, m * n - 1] {
            let wrong = with(&c, at, c.as_slice()[at] * (1.0 + 1e-9));
            assert!(plus(&a, &b).verify(&wrong, world).is_err(), "{at}");
        }
    });
}

/// Many rows and columns with infinities are sampled; each finite element is still checked.
#[test]
fn finite_rows_and_columns_are_checked_in_full() {
    let (m, k, n) = (400, 3, 300);
    let (mut a, mut b) = (random::<f64>(m, k, 1, 1.0), random::<f64>(k, n, 2, 1.0));
    (0..m).step_by(2).for_each(|i| a.as_mut_slice()[i * k] = f64::INFINITY);
    (0..n).step_by(3).for_each(|j| b.as_mut_slice()[n + j] = f64::NAN);
    let c = naive(&a, &b);
    on_each_world(|world| {
        let verified = plus(&a, &b).verify(&c, world).unwrap();
        assert!(verified.exceptional > 11_085 / 2, "{verified:?}");
        for (i, j) in [(1, 1), (399, 299), (201, 2), (77, 100)] {
            let at = i * n + j;
            assert!(c.as_slice()[at].is_finite());
            let wrong = with(&c, at, c.as_slice()[at] + 1e-9);
            let error = plus(&a, &b).verify(&wrong, world).unwrap_err().to_string();
            assert!(error.contains(&format!("element ({i}, {j})")), "{error}");
        }
        // A sample finds a row of zeros, and a column.
        for line in [(0..n).collect::<Vec<_>>(), (0..m).map(|i| i * n + 3).collect()] {
            let mut wrong = c.clone();
            line.iter().for_each(|at| wrong.as_mut_slice()[*at] = 0.0);
            assert!(plus(&a, &b).verify(&wrong, world).is_err());
        }
    });
}

/// With an infinite scalar no number is right.
#[test]
fn infinite_scalars_leave_nothing_finite() {
    let (a, b) = (random::<f64>(6, 5, 1, 1.0), random::<f64>(5, 8, 2, 1.0));
    on_each_world(|world| {
        for alpha in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let scaling = Scaling { alpha, beta: 1.0 };
            let c = scaled([&a, &b], scaling, None, false);
            let product = plus(&a, &b).with_scaling(scaling, None);
            product.verify(&c, world).unwrap();
            assert!(product.verify(&with(&c, 17, 3.0), world).is_err());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
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
        on_each_world(|world| {
            assert_eq!(Product { seed, ..plus(&a, &b) }.verify(&c, world).is_err(), far);
        });
    }
}

#[test]
fn rounding_of_the_whole_expression_passes_and_a_flipped_bit_does_not() {
    on_each_world(|world| {
        let mut caught = 0;
        for (m, k, n) in [(1, 1, 1), (7, 1, 5), (31, 37, 41), (2, 2_000, 3)] {
            for [alpha, beta] in
                [[1.0, 1.0], [-0.3, 2.5], [1e200, 1e-200], [1e-200, 1e200], [0.5, 0.0], [0.0, 3.0]]
            {
                for size in [1.0, 1e90, 1e-90] {
                    let (a, b) = (random::<f64>(m, k, 1, 1.0), random::<f64>(k, n, 2, 1e3));
                    let initial = random::<f64>(m, n, 3, size);
                    let scaling = Scaling { alpha, beta };
                    let product = plus(&a, &b).with_scaling(scaling, Some(&initial));
                    for factor_first in [false, true] {
                        let c = scaled([&a, &b], scaling, Some(&initial), factor_first);
                        product.verify(&c, world).unwrap();
                        for at in [0, m * n / 2, m * n - 1] {
                            let flipped = f64::from_bits(c.as_slice()[at].to_bits() ^ 1 << 40);
                            // An error far below the rounding of cancelled terms may pass as rounding.
                            let change = (flipped - c.as_slice()[at]).abs();
                            if change > 1e-9 * (alpha.abs() * 1e3 * k as f64 + beta.abs() * size) {
                                let seen = product.verify(&with(&c, at, flipped), world);
                                let text = seen.expect_err("a wrong bit").to_string();
                                assert!(text.starts_with("the result is wrong"), "{alpha} {beta}: {text}");
                                caught += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(caught > 100, "{caught} wrong bits tried");
    });
}

#[test]
fn each_part_of_the_expression_counts() {
    let (a, b) = (random::<f32>(20, 30, 1, 1.0), random::<f32>(30, 10, 2, 1.0));
    let initial = random::<f32>(20, 10, 3, 10.0);
    let scaling = Scaling { alpha: 0.1, beta: -7.7 };
    let c = scaled([&a, &b], scaling, Some(&initial), true);
    on_each_world(|world| {
        let with = |scaling, initial| plus(&a, &b).with_scaling(scaling, initial).verify(&c, world);
        with(scaling, Some(&initial)).unwrap();
        assert!(with(Scaling { alpha: 0.11, ..scaling }, Some(&initial)).is_err());
        assert!(with(Scaling { beta: -7.6, ..scaling }, Some(&initial)).is_err());
        assert!(with(scaling, None).is_err());
    });
}

#[test]
fn infinities_in_the_initial_matrix_reach_the_result_and_nothing_else() {
    let (a, b) = (random::<f64>(6, 5, 1, 1.0), random::<f64>(5, 8, 2, 1.0));
    let mut initial = random::<f64>(6, 8, 3, 1.0);
    initial.as_mut_slice()[11] = f64::INFINITY;
    initial.as_mut_slice()[20] = f64::NAN;
    let scaling = Scaling { alpha: 2.0, beta: -1.0 };
    let c = scaled([&a, &b], scaling, Some(&initial), false);
    assert_eq!(c.as_slice()[11], f64::NEG_INFINITY);
    // Factors that alpha = 0 leaves unread.
    let nan = Matrix::new(6, 5, vec![f64::NAN; 30]);
    on_each_world(|world| {
        let product = plus(&a, &b).with_scaling(scaling, Some(&initial));
        product.verify(&c, world).unwrap();
        for (at, value) in [(11, 0.0), (11, f64::INFINITY), (20, 1.0), (12, f64::INFINITY), (12, 9.0)] {
            assert!(product.verify(&with(&c, at, value), world).is_err(), "{at} {value}");
        }
        let unread = plus(&nan, &b).with_scaling(Scaling { alpha: 0.0, beta: 1.0 }, Some(&c));
        assert!(unread.verify(&c, world).is_ok());
    });
}

/// Results near underflow are checked as all others: numbers below the smallest normal one are rounded to
/// multiples of the smallest of all, and no more than that is allowed.
fn small_results<T: Real>(sizes: [f64; 4], world: &World) {
    for (m, k, n) in [(21, 65, 17), (9, 211, 11)] {
        for size in sizes {
            let (a, b) = (random::<T>(m, k, 1, size), random::<T>(k, n, 2, size));
            let c = naive(&a, &b);
            let product = plus(&a, &b);
            product.verify(&c, world).unwrap();
            let zeros = Matrix::new(m, n, vec![T::ZERO; m * n]);
            assert!(product.verify(&zeros, world).is_err(), "{size:e}: zeros");
            let most = c.as_slice().iter().map(|x| x.to_f64().abs()).fold(0.0, f64::max);
            for at in [0, m * n / 2, m * n - 1] {
                let wrong = T::from_f64(c.as_slice()[at].to_f64() + 1e-3 * most);
                assert!(product.verify(&with(&c, at, wrong), world).is_err(), "{size:e}: one, {at}");
            }
        }
    }
}

#[test]
fn small_results_are_verified() {
    on_each_world(|world| {
        small_results::<f64>([1e-149, 1e-152, 1e-153, 1e-154], world);
        small_results::<f32>([1e-14, 1e-17, 1e-18, 1e-19], world);
    });
}

/// The wrong infinity, or NaN, where an element overflows, where infinities reach it, and where scalars are
/// infinite: one such element of a small result, and all of a large one.
#[test]
fn the_sign_of_what_is_not_finite_is_checked() {
    let (small, large) = ((12, 5, 9), (130, 5, 140));
    on_each_world(|world| {
        for (m, k, n) in [small, large] {
            let (mut a, mut b) = (random::<f64>(m, k, 1, 1.0), random::<f64>(k, n, 2, 1.0));
            a.as_mut_slice().iter_mut().for_each(|x| *x = x.abs() + 0.5);
            b.as_mut_slice().iter_mut().for_each(|x| *x = x.abs() + 0.5);
            let mut overflows = b.clone();
            (0..k).for_each(|l| overflows.as_mut_slice()[l * n + 5] = 1.7e308);
            (0..k).for_each(|l| overflows.as_mut_slice()[l * n + 7] = -1.7e308);
            let mut infinite = a.clone();
            infinite.as_mut_slice()[3 * k + 2] = f64::INFINITY;
            infinite.as_mut_slice()[4 * k + 2] = f64::NEG_INFINITY;
            infinite.as_mut_slice()[5 * k + 1] = f64::NAN;
            let none = Scaling::none(1.0);
            let minus = Scaling { alpha: -2.0, ..none };
            let beyond = Scaling { alpha: f64::NEG_INFINITY, ..none };
            for (a, b, scaling) in [
                (&a, &overflows, none),
                (&a, &overflows, minus),
                (&infinite, &b, none),
                (&infinite, &b, minus),
                (&infinite, &overflows, none),
                (&a, &b, beyond),
            ] {
                let c = scaled([a, b], scaling, None, false);
                let product = plus(a, b).with_scaling(scaling, None);
                product.verify(&c, world).unwrap();
                let lies: [fn(f64) -> f64; 3] = [
                    |x| if x.is_infinite() { -x } else { x },
                    |x| if x.is_infinite() { f64::NAN } else { x },
                    |x| if x.is_nan() { f64::INFINITY } else { x },
                ];
                for lie in lies {
                    let wrong = Matrix::new(m, n, c.as_slice().iter().map(|x| lie(*x)).collect());
                    let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
                    let differ = |at: &usize| !same(c.as_slice()[*at], wrong.as_slice()[*at]);
                    let places: Vec<usize> = (0..m * n).filter(differ).collect();
                    if places.is_empty() {
                        continue;
                    }
                    assert!(product.verify(&wrong, world).is_err(), "{m} {scaling:?}");
                    if (m, k, n) == small {
                        // There infinity meets an overflow to the other side: the order of the sum decides.
                        let either = a.row(4)[2].is_infinite() && b.row(0)[7].abs() > 1e300;
                        for at in places.into_iter().filter(|at| !either || *at != 4 * n + 7) {
                            let one = with(&c, at, wrong.as_slice()[at]);
                            assert!(product.verify(&one, world).is_err(), "{scaling:?} {at}");
                        }
                    }
                }
            }
        }
    });
}

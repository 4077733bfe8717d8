//! Every kernel: a right product passes, and one with any wrong element does not.

use super::*;

/// Elements by number, and a wrong value for a right one with a number.
type Values<T> = (fn(usize) -> T, fn(T, usize) -> T);

fn each_wrong_element_is_found<T: Element>(
    kernel: Kernel<T>,
    [alpha, beta]: [T; 2],
    with_initial: bool,
    world: &World,
    (value, off): Values<T>,
) {
    let (m, k, n) = (9, 7, 8);
    let fill = |rows, cols, by: usize| -> Matrix<T> {
        Matrix::new(rows, cols, (0..rows * cols).map(|i| value(i * by)).collect())
    };
    let (a, b, initial) = (fill(m, k, 3), fill(k, n, 5), fill(m, n, 1));
    let column = |j: usize| -> Vec<T> { (0..k).map(|l| b.row(l)[j]).collect() };
    let elements = (0..m * n).map(|at| {
        let mut element = [kernel.entry(a.row(at / n), &column(at % n))];
        kernel.finish(
            Scaling { alpha, beta },
            &mut element,
            with_initial.then(|| &initial.as_slice()[at..=at]),
        );
        element[0]
    });
    let c = Matrix::new(m, n, elements.collect());
    let initial = with_initial.then_some(&initial);
    let product = Product::new(kernel, &a, &b).with_scaling(Scaling { alpha, beta }, initial);
    let name = format!("{} {alpha} {beta} {with_initial}", kernel.name());
    product.verify(&c, world).unwrap_or_else(|e| panic!("{name}: {e}"));
    for at in 0..m * n {
        let wrong = with(&c, at, off(c.as_slice()[at], at));
        let error = product.verify(&wrong, world).expect_err(&name).to_string();
        assert!(error.contains(&format!("element ({}, {})", at / n, at % n)), "{name}: {error}");
    }
}

#[test]
fn wrong_elements_are_found_over_plus_times() {
    let real: Values<f64> = (|i| (i * 7 % 23) as f64 - 11.0, |x, i| x + 1e-6 * (1.0 + i as f64));
    let small: Values<f32> = (|i| ((i * 7 % 23) as f32 - 11.0) * 1e-3, |x, _| x + 1e-6);
    let large: Values<f64> = (real.0, |x, _| x * (1.0 + 1e-9) + 1e20);
    let strange: Values<f64> =
        (|i| if i == 6 { f64::INFINITY } else { i as f64 + 1.0 }, |x, _| if x > 9.0 { -1.5 } else { 1e9 });
    let plus = Kernel::<f64>::plus_times();
    on_each_world(|world| {
        for (alpha, beta, with_initial) in
            [(1.0, 1.0, false), (0.5, -3.0, true), (-2.0, 0.0, true), (0.0, 2.0, true)]
        {
            let single = [alpha as f32, beta as f32];
            each_wrong_element_is_found(plus, [alpha, beta], with_initial, world, real);
            each_wrong_element_is_found(plus, [alpha, beta], with_initial, world, strange);
            each_wrong_element_is_found(Kernel::<f32>::plus_times(), single, with_initial, world, small);
        }
        each_wrong_element_is_found(plus, [1e30, 1e-30], true, world, large);
    });
}

#[test]
fn wrong_elements_are_found_over_other_semirings() {
    let real: Values<f64> = (|i| (i * 7 % 23) as f64 - 11.0, |x, i| x + 1e-6 * (1.0 + i as f64));
    let whole: Values<i64> = (|i| i as i64 * 3 - (1 << 60), |x, _| x + 1);
    let truth: Values<u8> = (|i| u8::from(i % 3 == 0), |x, _| 1 - x);
    on_each_world(|world| {
        for with_initial in [false, true] {
            each_wrong_element_is_found(Kernel::max_plus(), [2.0, -3.0], with_initial, world, real);
            // Equal as doubles, not as whole numbers.
            each_wrong_element_is_found(Kernel::min_plus(), [1 << 60; 2], with_initial, world, whole);
            each_wrong_element_is_found(Kernel::or_and(), [1, 1], with_initial, world, truth);
        }
    });
}

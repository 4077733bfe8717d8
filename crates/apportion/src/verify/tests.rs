//! The checks in parts, in a world of one process that holds its matrices in several.

use super::*;
use crate::geometry::{Rect, Span};
use crate::kernels::Kernel;
use crate::matrix::{Matrix, Scaling};
use crate::plan::{Shape, shapes};
use crate::platform::Platform;
use crate::schedule::{Flow, ScheduleOptions};

/// In parts of at most 4 x 3.
fn cut<T: Element>(matrix: &Matrix<T>) -> LocalBlocks<T> {
    let spans = |length, by| Span::new(0, length as u64).blocks(by).collect::<Vec<_>>();
    let mut tiles = LocalBlocks::new();
    for rows in spans(matrix.rows(), 4) {
        for cols in spans(matrix.cols(), 3) {
            let row = |i: u64| &matrix.row(i as usize)[cols.start as usize..cols.end as usize];
            tiles.push((Rect::new(rows, cols), (rows.start..rows.end).flat_map(row).copied().collect()));
        }
    }
    tiles
}

/// Elements by number, and what a right one with a number is made into.
type Values<T> = (fn(usize) -> T, fn(T, usize) -> T);

/// A right product passes, and one with any element off by more than rounding does not.
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
        kernel.finish([alpha, beta], &mut element, with_initial.then(|| &initial.as_slice()[at..=at]));
        element[0]
    });
    let c: Vec<T> = elements.collect();
    let layout = shapes::rows(Shape::new(m as u64, k as u64, n as u64, "test").unwrap(), &[1.0]).unwrap();
    let plan = Plan::of_layout("rows", vec!["p0".into()], layout, 1.0);
    let what = MatmulJob {
        kernel,
        plan: &plan,
        order: ScheduleOptions::new(Flow::OneToAll, 8),
        platform: &Platform::from_speeds(&[1.0]).unwrap(),
        models: &[],
        models_block: 8,
        scaling: Scaling { alpha, beta, initial: None },
        adaptive: None,
        seed: 3,
    };
    let (a, b, initial) = (cut(&a), cut(&b), cut(&initial));
    let parts = (&a, &b, with_initial.then_some(&initial));
    let judged = |c: Vec<T>| verify(parts, &cut(&Matrix::new(m, n, c)), &what, world);
    let name = format!("{} {alpha} {beta} {with_initial}", kernel.name());
    judged(c.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
    for at in 0..m * n {
        let mut wrong = c.clone();
        wrong[at] = off(wrong[at], at);
        let error = judged(wrong).expect_err(&name).to_string();
        assert!(error.contains(&format!("element ({}, {})", at / n, at % n)), "{name}: {error}");
    }
}

/// One test, since a process joins MPI once.
#[test]
fn wrong_elements_are_found_in_parts() {
    let world = match World::join(&Monitor::new()) {
        Ok(world) => world,
        Err(why) => {
            apportion_testing::skip(apportion_testing::Need::Mpi, why);
            return;
        }
    };
    let real: Values<f64> = (|i| (i * 7 % 23) as f64 - 11.0, |x, i| x + 1e-6 * (1.0 + i as f64));
    let small: Values<f32> = (|i| ((i * 7 % 23) as f32 - 11.0) * 1e-3, |x, _| x + 1e-6);
    let large: Values<f64> = (real.0, |x, _| x * (1.0 + 1e-9) + 1e20);
    let strange: Values<f64> =
        (|i| if i == 6 { f64::INFINITY } else { i as f64 + 1.0 }, |x, _| if x > 9.0 { -1.5 } else { 1e9 });
    let whole: Values<i64> = (|i| i as i64 * 3 - (1 << 60), |x, _| x + 1);
    let truth: Values<u8> = (|i| u8::from(i % 3 == 0), |x, _| 1 - x);
    let plus = Kernel::<f64>::plus_times();
    for (alpha, beta, with_initial) in
        [(1.0, 1.0, false), (0.5, -3.0, true), (-2.0, 0.0, true), (0.0, 2.0, true)]
    {
        let single = [alpha as f32, beta as f32];
        each_wrong_element_is_found(plus, [alpha, beta], with_initial, &world, real);
        each_wrong_element_is_found(plus, [alpha, beta], with_initial, &world, strange);
        each_wrong_element_is_found(Kernel::<f32>::plus_times(), single, with_initial, &world, small);
    }
    each_wrong_element_is_found(plus, [1e30, 1e-30], true, &world, large);
    for with_initial in [false, true] {
        each_wrong_element_is_found(Kernel::<f64>::max_plus(), [2.0, -3.0], with_initial, &world, real);
        // Equal as doubles, not as whole numbers.
        let min_plus = Kernel::<i64>::tropical(Semiring::MinPlus).unwrap();
        each_wrong_element_is_found(min_plus, [1 << 60, 1 << 60], with_initial, &world, whole);
        each_wrong_element_is_found(Kernel::or_and(), [1, 1], with_initial, &world, truth);
    }
}

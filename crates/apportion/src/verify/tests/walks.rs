//! Rows of closures and powers: right ones pass on every world, and what has spread is found.

use super::super::walks::Walks;
use super::*;
use crate::kernels::{View, ViewMut};

/// A street grid of this many rows of 20 vertices, whose streets have lengths of up to two decimals.
fn streets<T: Element>(kernel: Kernel<T>, rows: usize, length: impl Fn(f64) -> T) -> Matrix<T> {
    let n = 20 * rows;
    let mut random = Random::new(3);
    let mut street = |at: usize| {
        let (i, j) = (at / n, at % n);
        let next = i.abs_diff(j) == 20 || i.abs_diff(j) == 1 && i.min(j) % 20 != 19;
        let drawn = (50.0 + 100.0 * random.unit()).round() / 8.0;
        if next { length(drawn) } else { kernel.zero() }
    };
    Matrix::new(n, n, (0..n * n).map(&mut street).collect())
}

/// By Floyd and Warshall's algorithm.
fn closed<T: Element>(kernel: Kernel<T>, a: &Matrix<T>) -> Matrix<T> {
    let n = a.rows();
    let mut d = a.as_slice().to_vec();
    let better = |x: T, y: T| kernel.entry(&[x, y], &[kernel.one(); 2]);
    d.iter_mut().step_by(n + 1).for_each(|x| *x = better(*x, kernel.one()));
    for via in 0..n {
        let (to, from): (Vec<T>, Vec<T>) = (0..n).map(|i| (d[i * n + via], d[via * n + i])).unzip();
        kernel.update(View::dense(&to, n, 1), View::dense(&from, 1, n), ViewMut::dense(&mut d, n, n));
    }
    Matrix::new(n, n, d)
}

fn check<T: Element>(
    kernel: Kernel<T>,
    [a, found]: [&Matrix<T>; 2],
    exponent: Option<u64>,
    world: &World,
) -> Result<RowsChecked> {
    let (edges, result) = (own(a, 1, world), own(found, 3, world));
    let walks = Walks { kernel, edges: &edges, result: &result, n: a.rows() as u64, seed: 9, world };
    exponent.map_or_else(|| walks.verify_closure(), |exponent| walks.verify_power(exponent, 3))
}

/// Lengths of whole numbers, of fractions, and the longest paths without cycles; and who reaches whom round cycles.
#[test]
fn right_closures_and_powers_pass_and_changed_ones_do_not() {
    fn each<T: Element>(kernel: Kernel<T>, a: &Matrix<T>, worse: T, exact: bool) {
        let right = closed(kernel, a);
        on_each_world(|world| {
            let checked = check(kernel, [a, &right], None, world).unwrap();
            assert_eq!((checked.rows, checked.wrong_fraction, checked.exact), (a.rows() as u64, 0.0, exact));
            for at in [0, 37, 800, a.rows() * a.rows() - 2] {
                for change in [worse, kernel.zero()] {
                    let mut elements = right.as_slice().to_vec();
                    if elements[at] == change {
                        continue;
                    }
                    elements[at] = change;
                    let wrong = Matrix::new(a.rows(), a.rows(), elements);
                    let said = check(kernel, [a, &wrong], None, world).unwrap_err().to_string();
                    let place = format!("element ({}, ", at / a.rows());
                    assert!(said.contains("the result is wrong") && said.contains(&place), "{at}: {said}");
                }
            }
        });
    }
    let whole = streets(Kernel::<i32>::min_plus(), 3, |x| (8.0 * x) as i32);
    each(Kernel::min_plus(), &whole, 7, true);
    let thirds = streets(Kernel::<f64>::min_plus(), 3, |x| x / 3.0);
    each(Kernel::min_plus(), &thirds, 1.0, false);
    let single = streets(Kernel::<f32>::min_plus(), 3, |x| x as f32 / 3.0);
    each(Kernel::min_plus(), &single, 2000.0, false);
    // Longest paths: streets to later vertices only.
    let mut ahead = streets(Kernel::<f64>::max_plus(), 3, |x| 8.0 * x).as_slice().to_vec();
    (0..60 * 60).filter(|at| at / 60 > at % 60).for_each(|at| ahead[at] = f64::NEG_INFINITY);
    each(Kernel::max_plus(), &Matrix::new(60, 60, ahead), 1e6, true);
    // Two rings, from the first of which a way leads to the second: 0 is no element of the way back.
    let ring = |at: usize| u8::from((at % 40 == (at / 40 + 1) % 20 + at / 40 / 20 * 20) || at == 7 * 40 + 33);
    let rings = Matrix::new(40, 40, (0..40 * 40).map(ring).collect());
    each(Kernel::or_and(), &rings, 1, true);
}

/// A closure that is one of another matrix: each of its products would be right.
#[test]
fn a_closure_of_other_edges_is_found() {
    let kernel = Kernel::<f64>::min_plus();
    let a = streets(kernel, 33, |x| 8.0 * x);
    let mut other = a.as_slice().to_vec();
    // One street is missing: a few per cent of the lengths differ, in rows that are a part of all.
    other[325 * 660 + 326] = f64::INFINITY;
    let wrong = closed(kernel, &Matrix::new(660, 660, other));
    let right = closed(kernel, &a);
    let differ = wrong.as_slice().iter().zip(right.as_slice()).filter(|(x, y)| x != y).count();
    assert!((100..660 * 660 / 10).contains(&differ), "{differ}");
    let world = World::solo(&Monitor::new());
    let checked = check(kernel, [&a, &right], None, &world).unwrap();
    assert!((64..660).contains(&checked.rows) && checked.wrong_fraction < 0.05, "{checked:?}");
    assert!(check(kernel, [&a, &wrong], None, &world).is_err());
}

#[test]
fn powers_are_those_of_their_matrix() {
    let kernel = Kernel::<f64>::min_plus();
    let a = streets(kernel, 3, |x| x);
    let times = |x: &Matrix<f64>, y: &Matrix<f64>| {
        let element =
            |at: usize| (0..60).map(|l| x.row(at / 60)[l] + y.row(l)[at % 60]).fold(f64::INFINITY, f64::min);
        Matrix::new(60, 60, (0..3600).map(element).collect())
    };
    let square = times(&a, &a);
    let fifth = times(&times(&square, &square), &a);
    on_each_world(|world| {
        assert_eq!(check(kernel, [&a, &fifth], Some(5), world).unwrap().rows, 60);
        let mut elements = fifth.as_slice().to_vec();
        elements[62] += 0.125;
        let said =
            check(kernel, [&a, &Matrix::new(60, 60, elements)], Some(5), world).unwrap_err().to_string();
        assert!(said.contains("element (1, 2)"), "{said}");
        assert!(check(kernel, [&a, &fifth], Some(7), world).is_err());
    });
    // Rows of a large power are few, and the odds say so.
    let large = streets(kernel, 20, |x| x);
    let unit = Matrix::new(
        400,
        400,
        (0..160_000).map(|at| if at % 401 == 0 { 0.0 } else { f64::INFINITY }).collect(),
    );
    let world = World::solo(&Monitor::new());
    let checked = check(kernel, [&unit, &unit], Some(100_000), &world).unwrap();
    assert!(checked.rows == 1 && checked.wrong_fraction > 0.99, "{checked:?}");
    assert!(check(kernel, [&large, &unit], Some(2), &world).is_err());
}

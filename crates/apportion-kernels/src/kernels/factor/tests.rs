//! The kernels against plain loops over awkward sizes.

use super::*;
use crate::matrix::Element;

/// Numbers in [-0.5, 0.5), the same on every machine.
fn value(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
}

fn elements<T: Element>(rows: usize, cols: usize, seed: usize) -> Vec<T> {
    (0..rows * cols).map(|i| T::from_f64(value(i * 7 + seed * 1013 + i / cols.max(1)))).collect()
}

/// Rows of `cols` elements in memory with longer rows, and what lies between them.
struct Strided<T> {
    data: Vec<T>,
    rows: usize,
    cols: usize,
    stride: usize,
}

const BETWEEN: f64 = 77.0;

impl<T: Real> Strided<T> {
    fn new(elements: &[T], rows: usize, cols: usize) -> Self {
        let stride = cols + 3;
        let mut data = vec![T::from_f64(BETWEEN); rows * stride];
        for i in 0..rows {
            data[i * stride..][..cols].copy_from_slice(&elements[i * cols..][..cols]);
        }
        Self { data, rows, cols, stride }
    }

    fn view(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(&mut self.data, self.rows, self.cols, self.stride)
    }

    /// The elements as doubles; those between the rows are as they were.
    fn elements(&self) -> Vec<f64> {
        let between = |row: &[T]| row[self.cols..].iter().all(|x| x.to_f64() == BETWEEN);
        assert!(self.data.chunks(self.stride).all(between), "elements between the rows are touched");
        let rows = self.data.chunks(self.stride);
        rows.flat_map(|row| &row[..self.cols]).map(|x| x.to_f64()).collect()
    }
}

const SIZES: [[usize; 2]; 12] = [
    [0, 0],
    [1, 1],
    [2, 1],
    [3, 2],
    [16, 16],
    [17, 16],
    [31, 17],
    [40, 33],
    [64, 64],
    [131, 67],
    [300, 48],
    [201, 129],
];

fn cases() -> &'static [[usize; 2]] {
    if cfg!(miri) { &SIZES[..8] } else { &SIZES }
}

fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let entry = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
    (0..m * n).map(|at| entry(at / n, at % n)).collect()
}

fn assert_near<T: Element>(found: &[f64], wanted: &[f64], bound: f64, what: &str) {
    assert_eq!(found.len(), wanted.len());
    for (i, (x, y)) in found.iter().zip(wanted).enumerate() {
        assert!((x - y).abs() <= bound * T::EPSILON, "{what}: element {i}: {x} instead of {y}");
    }
}

/// A panel whose square part is symmetric and positive definite, m x n.
fn positive<T: Real>(m: usize, n: usize) -> Vec<T> {
    let mut a: Vec<T> = elements(m, n, 3);
    for i in 0..n {
        for j in 0..i {
            a[j * n + i] = a[i * n + j];
        }
        a[i * n + i] = T::from_f64(n as f64);
    }
    a
}

fn check_cholesky<T: Real>([m, n]: [usize; 2]) {
    let a: Vec<T> = positive(m, n);
    let mut strided = Strided::new(&a, m, n);
    assert_eq!(cholesky_panel(strided.view()), Ok(()));
    let mut l = strided.elements();
    for i in 0..n {
        l[i * n + i + 1..(i + 1) * n].fill(0.0);
    }
    let turned: Vec<f64> = (0..n * n).map(|at| l[at % n * n + at / n]).collect();
    let again = product(&l, &turned, [m, n, n]);
    let wanted: Vec<f64> = a.iter().map(|x| x.to_f64()).collect();
    assert_near::<T>(&again, &wanted, 20.0 * (n + 1) as f64, &format!("{m} x {n}"));
}

#[test]
fn cholesky_factors_give_the_panel_again() {
    for size in cases() {
        check_cholesky::<f64>(*size);
        check_cholesky::<f32>(*size);
    }
}

/// Elements above the diagonal are not read.
#[test]
fn cholesky_reads_the_lower_triangle() {
    let (m, n) = (70, 50);
    let factor = |above: Option<f64>| {
        let mut a: Vec<f64> = positive(m, n);
        for i in 0..n {
            a[i * n + i + 1..(i + 1) * n].iter_mut().for_each(|x| *x = above.unwrap_or(*x));
        }
        assert_eq!(cholesky_panel(ViewMut::dense(&mut a, m, n)), Ok(()));
        let lower = |i: usize| a[i * n..][..n.min(i + 1)].to_vec();
        (0..m).flat_map(lower).map(f64::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(factor(None), factor(Some(f64::NAN)));
}

#[test]
fn the_first_minor_that_is_not_positive_is_named() {
    let n = 40;
    for at in [0, 1, 15, 16, 17, 39] {
        for bad in [-1.0, 0.0, f64::NAN] {
            let mut a: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
            a[at * n + at] = bad;
            assert_eq!(cholesky_panel(ViewMut::dense(&mut a, n, n)), Err(at), "{bad} at {at}");
        }
    }
}

/// Row i exchanged with row pivots[i], on rows of doubles.
fn permuted(a: &[f64], n: usize, pivots: &[usize]) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = a.chunks(n.max(1)).map(<[f64]>::to_vec).collect();
    pivots.iter().enumerate().for_each(|(i, pivot)| rows.swap(i, *pivot));
    rows.concat()
}

fn check_lu<T: Real>([m, n]: [usize; 2]) {
    let a: Vec<T> = elements(m, n, 5);
    let mut strided = Strided::new(&a, m, n);
    let mut pivots = vec![0; n];
    assert_eq!(lu_panel(strided.view(), &mut pivots), None);
    let found = strided.elements();
    let (mut l, mut u) = (found.clone(), vec![0.0; n * n]);
    for i in 0..n {
        u[i * n + i..(i + 1) * n].copy_from_slice(&found[i * n + i..(i + 1) * n]);
        l[i * n + i..(i + 1) * n].fill(0.0);
        l[i * n + i] = 1.0;
    }
    assert!(l.iter().all(|x| x.abs() <= 1.0), "{m} x {n}: the pivots are the largest");
    let a: Vec<f64> = a.iter().map(|x| x.to_f64()).collect();
    let again = product(&l, &u, [m, n, n]);
    assert_near::<T>(&again, &permuted(&a, n, &pivots), 20.0 * (n + 1) as f64, &format!("{m} x {n}"));
}

#[test]
fn lu_factors_give_the_panel_again() {
    for size in cases() {
        check_lu::<f64>(*size);
        check_lu::<f32>(*size);
    }
}

/// Elimination by the definition, column by column: the same pivots, of the largest magnitude, the first among
/// equals.
#[test]
fn pivots_are_those_of_the_definition() {
    let (m, n) = (90, 50);
    // Small whole numbers: ties are frequent, and the first columns are exact.
    let a: Vec<f64> = (0..m * n).map(|i| (7.0 * value(i + i / n)).round()).collect();
    let (mut found, mut pivots) = (a.clone(), vec![0; n]);
    let zero = lu_panel(ViewMut::dense(&mut found, m, n), &mut pivots);
    let mut rows: Vec<Vec<f64>> = a.chunks(n).map(<[f64]>::to_vec).collect();
    for j in 0..16 {
        let best = (j..m).rev().max_by(|x, y| rows[*x][j].abs().total_cmp(&rows[*y][j].abs()));
        let best = best.unwrap();
        assert_eq!(pivots[j], best, "column {j}");
        rows.swap(j, best);
        let pivot = rows[j].clone();
        for row in &mut rows[j + 1..] {
            let factor = row[j] / pivot[j];
            row.iter_mut().zip(&pivot).skip(j).for_each(|(x, y)| *x -= factor * y);
        }
    }
    assert_eq!(zero, None);
}

#[test]
fn the_first_pivot_of_zero_is_named_and_the_rest_goes_on() {
    let n = 40;
    for at in [0, 3, 16, 33] {
        // Column `at` depends on none before and is zero.
        let mut a: Vec<f64> = positive(n, n);
        (0..n).for_each(|i| a[i * n + at] = 0.0);
        let (mut lu, mut pivots) = (a.clone(), vec![0; n]);
        assert_eq!(lu_panel(ViewMut::dense(&mut lu, n, n), &mut pivots), Some(at));
        assert!(lu.iter().all(|x| x.is_finite()), "{at}");
    }
}

fn check_triangle<T: Real>(triangle: Triangle, [cols, n]: [usize; 2]) {
    let mut matrix: Vec<T> = elements(n, n, 11);
    for i in 0..n {
        let row = &mut matrix[i * n..(i + 1) * n];
        row.iter_mut().for_each(|x| *x = T::from_f64(x.to_f64() / (n + 1) as f64));
        row[i] = T::from_f64(1.5 + value(i));
    }
    let x: Vec<T> = elements(n, cols, 13);
    let entry = |i: usize, j: usize| {
        let (row, col) = if triangle.is_transposed() { (j, i) } else { (i, j) };
        let lower = !matches!(triangle, Triangle::Upper | Triangle::UpperTransposed);
        match row.cmp(&col) {
            std::cmp::Ordering::Equal if triangle.has_ones() => 1.0,
            std::cmp::Ordering::Less if lower => 0.0,
            std::cmp::Ordering::Greater if !lower => 0.0,
            _ => matrix[row * n + col].to_f64(),
        }
    };
    let whole: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
    let mut solved = Strided::new(&x, n, cols);
    solve_triangle(triangle, View::dense(&matrix, n, n), solved.view());
    let again = product(&whole, &solved.elements(), [n, n, cols]);
    let wanted: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
    assert_near::<T>(&again, &wanted, 20.0 * (n + 1) as f64, &format!("{triangle:?} {n} x {cols}"));
}

#[test]
fn triangles_times_their_solutions_are_the_right_hand_sides() {
    use Triangle::*;
    for triangle in [Lower, UnitLower, LowerTransposed, UnitLowerTransposed, Upper, UpperTransposed] {
        for size in cases() {
            check_triangle::<f64>(triangle, *size);
            check_triangle::<f32>(triangle, *size);
        }
    }
}

//! The kernels against plain loops over awkward sizes.

use super::cholesky::factor_by_strips;
use super::ldlt::factor_block;
use super::lu::{factor_with, largest};
use super::strips::Strips;
use super::*;
use crate::kernels::packed::Substitution;
use crate::kernels::{View, ViewMut};
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

/// Around the ends of tiles of 4 and 8 rows, and of strips of 4 to 48 columns.
const SIZES: [[usize; 2]; 18] = [
    [0, 0],
    [1, 1],
    [2, 1],
    [3, 2],
    [16, 16],
    [17, 16],
    [31, 17],
    [40, 33],
    [24, 24],
    [25, 25],
    [48, 7],
    [64, 64],
    [97, 96],
    [131, 67],
    [300, 48],
    [201, 129],
    [49, 49],
    [290, 260],
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
    for at in [0, 1, 3, 7, 8, 15, 16, 17, 23, 24, 38, 39] {
        for bad in [-1.0, 0.0, f64::NAN] {
            let mut a: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
            a[at * n + at] = bad;
            assert_eq!(cholesky_panel(ViewMut::dense(&mut a, n, n)), Err(at), "{bad} at {at}");
        }
    }
}

/// Factors of a nearly singular matrix, those of a smooth covariance, are as good as any.
#[test]
fn cholesky_of_an_ill_conditioned_panel_is_stable() {
    let (m, n) = if cfg!(miri) { (30, 20) } else { (150, 100) };
    let entry = |at: usize| {
        let (i, j) = (at / n, at % n);
        (-((i as f64 - j as f64) / 30.0).powi(2)).exp() + if i == j { 1e-11 } else { 0.0 }
    };
    let a: Vec<f64> = (0..m * n).map(entry).collect();
    let mut l = a.clone();
    assert_eq!(cholesky_panel(ViewMut::dense(&mut l, m, n)), Ok(()));
    (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(0.0));
    assert!(l[n * n - 1] < 1e-4, "it is ill-conditioned");
    let turned = transpose(&l[..n * n], n);
    assert_near::<f64>(&product(&l, &turned, [m, n, n]), &a, 4.0 * n as f64, "covariance");
}

/// The elements of some rows of a panel, each with all bits.
fn bits_of<T: Real>(panel: &[T], n: usize, rows: std::ops::Range<usize>) -> Vec<u64> {
    panel[rows.start * n..rows.end * n].iter().map(|x| x.to_f64().to_bits()).collect()
}

/// Rows below the block have the same bits whichever others are there, and at any stride.
fn check_rows<T: Real>(n: usize, factor: impl Fn(ViewMut<T>)) {
    let m = n + 61;
    let a: Vec<T> = positive(m, n);
    let mut whole = a.clone();
    factor(ViewMut::dense(&mut whole, m, n));
    let mut strided = Strided::new(&a, m, n);
    factor(strided.view());
    let strided: Vec<u64> = strided.elements().into_iter().map(f64::to_bits).collect();
    assert_eq!(bits_of(&whole, n, n..m), strided[n * n..], "{n} columns at another stride");
    for rows in [n..n + 1, n + 5..n + 30, n + 23..n + 49, m - 1..m] {
        let mut part = [&a[..n * n], &a[rows.start * n..rows.end * n]].concat();
        factor(ViewMut::dense(&mut part, n + rows.len(), n));
        let found = bits_of(&part, n, n..n + rows.len());
        assert_eq!(found, bits_of(&whole, n, rows.clone()), "{n} columns, rows {rows:?}");
    }
}

#[test]
fn rows_below_a_block_do_not_depend_on_each_other() {
    fn check<T: Real>(n: usize) {
        check_rows::<T>(n, |panel| cholesky_panel(panel).unwrap());
        check_rows::<T>(n, |panel| ldlt_panel(panel, &mut vec![0; n]).unwrap());
    }
    for n in if cfg!(miri) { vec![1, 9] } else { vec![1, 7, 8, 9, 24, 31, 48, 50, 64] } {
        check::<f64>(n);
        check::<f32>(n);
    }
}

/// All instruction sets with fused multiply-add give the same bits.
fn check_sets<T: Real>([m, n]: [usize; 2]) {
    let sets = T::substitutions();
    let (a, mixed): (Vec<T>, Vec<T>) = (positive(m, n), elements(m, n, 5));
    let by = |kernel: &Substitution<T>| {
        let [mut blocks, mut strip] = Strips::room(kernel, n).map(|length| vec![T::ZERO; length]);
        let (mut l, mut lu, mut pivots) = (a.clone(), mixed.clone(), vec![0; n]);
        let strips = Strips::new(*kernel, &mut blocks, &mut strip);
        assert_eq!(factor_by_strips(ViewMut::dense(&mut l, m, n), strips), Ok(()));
        factor_with(*kernel, ViewMut::dense(&mut lu, m, n), &mut pivots);
        for i in 0..n {
            l[i * n + i + 1..(i + 1) * n].fill(T::ZERO);
        }
        let (mut block, mut exchanges) = (symmetric::<T>(0, n, n), vec![0; n]);
        assert_eq!(factor_block(*kernel, ViewMut::dense(&mut block, n, n), &mut exchanges), Ok(()));
        pivots.extend(exchanges);
        (bits_of(&l, n, 0..m), [bits_of(&lu, n, 0..m), bits_of(&block, n, 0..n)], pivots)
    };
    let found: Vec<_> = sets[..sets.len() - 1].iter().map(by).collect();
    assert!(found.windows(2).all(|two| two[0] == two[1]), "{m} x {n}");
    // The portable one rounds twice.
    let (portable, first) = (by(&sets[sets.len() - 1]), by(&sets[0]));
    let number = |bits: &[u64]| bits.iter().map(|x| f64::from_bits(*x)).collect::<Vec<f64>>();
    let bound = 20.0 * (n + 1) as f64;
    assert_near::<T>(&number(&portable.0), &number(&first.0), bound, &format!("portable {m} x {n}"));
}

#[test]
fn factors_do_not_depend_on_registers() {
    for size in cases() {
        check_sets::<f64>(*size);
        check_sets::<f32>(*size);
    }
}

/// Row i exchanged with row pivots[i], on rows of doubles.
fn permuted(a: &[f64], n: usize, pivots: &[i64]) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = a.chunks(n.max(1)).map(<[f64]>::to_vec).collect();
    pivots.iter().enumerate().for_each(|(i, pivot)| rows.swap(i, *pivot as usize));
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
        assert_eq!(pivots[j], best as i64, "column {j}");
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
    for at in [0, 3, 4, 7, 8, 16, 33, 39] {
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

/// Right-hand sides have the same bits whichever others are solved for, and at any stride.
fn check_columns<T: Real>(triangle: Triangle, n: usize) {
    let cols = 70;
    let mut matrix: Vec<T> = elements(n, n, 11);
    (0..n).for_each(|i| matrix[i * n + i] = T::from_f64(1.5 + value(i)));
    let (matrix, x) = (View::dense(&matrix, n, n), elements::<T>(n, cols, 13));
    let mut whole = Strided::new(&x, n, cols);
    solve_triangle(triangle, matrix, whole.view());
    let whole = whole.elements();
    for part in [0..1, 3..27, 20..70, 0..70] {
        let mut some: Vec<T> = x.chunks(cols).flat_map(|row| row[part.clone()].to_vec()).collect();
        solve_triangle(triangle, matrix, ViewMut::dense(&mut some, n, part.len()));
        let wanted = whole.chunks(cols).flat_map(|row| &row[part.clone()]).map(|x| x.to_bits());
        assert!(some.iter().map(|x| x.to_f64().to_bits()).eq(wanted), "{triangle:?} of {n}, {part:?}");
    }
}

#[test]
fn right_hand_sides_do_not_depend_on_each_other() {
    use Triangle::*;
    for triangle in [Lower, UnitLower, LowerTransposed, UnitLowerTransposed, Upper, UpperTransposed] {
        for n in if cfg!(miri) { vec![9] } else { vec![1, 8, 9, 24, 50, 64] } {
            check_columns::<f64>(triangle, n);
            check_columns::<f32>(triangle, n);
        }
    }
}

/// Elements of the diagonal whose reciprocals are no normal numbers are divided by.
#[test]
fn tiny_and_huge_diagonals_are_divided_by() {
    let (tiny, huge) = (f64::MIN_POSITIVE / 16.0, f64::MAX);
    let matrix = [tiny, 0.0, 0.0, 1.0, huge, 0.0, 2.0, 1.0, 0.0];
    let mut x = [tiny * 4.0, tiny, 4.0 + huge, huge, 10.0, 1.0];
    solve_triangle(Triangle::Lower, View::dense(&matrix, 3, 3), ViewMut::dense(&mut x, 3, 2));
    assert_eq!(x, [4.0, 1.0, 1.0, 1.0, f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn the_largest_is_the_first_of_its_magnitude() {
    for length in [1, 31, 32, 33, 100] {
        for at in [0, length / 2, length - 1] {
            let mut elements = vec![0.5; length];
            elements[at..].fill(-2.0);
            elements[length - 1] = 2.0;
            assert_eq!(largest(&elements), at, "{length}");
            elements[0] = f64::NAN;
            assert_eq!(largest(&elements), if length == 1 { 0 } else { at.max(1) }, "{length}");
        }
        assert_eq!((largest(&vec![0.0; length]), largest(&vec![f64::NAN; length])), (0, 0));
    }
}

/// Symmetric matrices that need pivots of one and two columns, by a number.
const SYMMETRIC: usize = 5;

/// Numbers in [-0.5, 0.5) without a pattern: by a mixing function, as Steele, Lea and Flood's.
fn noise(i: usize) -> f64 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// A panel of m x n whose square part is symmetric; only its lower triangle is right.
fn symmetric<T: Real>(which: usize, m: usize, n: usize) -> Vec<T> {
    let mut a: Vec<T> = (0..m * n).map(|at| T::from_f64(noise(at * SYMMETRIC + which))).collect();
    for i in 0..n {
        let of = |x: f64| T::from_f64(x);
        match which {
            0 => {}
            // Zeros on the diagonal.
            1 => a[i * n + i] = of(if n == 1 { 1.0 } else { 0.0 }),
            // No pivot of one column, and those of two begin in even and then in odd columns.
            2 => {
                a[i * n..i * n + i].fill(T::ZERO);
                let middle = n / 2 / 2 * 2;
                a[i * n + i] = of(if i == middle { 3.0 } else { 0.0 });
                if i > middle && (i - middle).is_multiple_of(2) || i < middle && i % 2 == 1 {
                    a[i * n + i - 1] = of(2.0 + value(i));
                }
                if i + 1 == n && a[i * n..i * n + i].iter().all(|x| *x == T::ZERO) {
                    a[i * n + i] = of(1.0);
                }
            }
            // Indefinite, and dominated by its diagonal.
            3 => a[i * n + i] = of(if i % 3 == 0 { -(n as f64) } else { n as f64 }),
            // A saddle point: positive definite, with constraints.
            _ if i < n - n / 3 => a[i * n + i] = of(n as f64),
            _ => a[i * n + n - n / 3..i * n + i + 1].fill(T::ZERO),
        }
    }
    a
}

/// P^T L and D, by the definition of LAPACK's form: one exchange and column after the other, from the last.
fn whole_factors(block: &[f64], n: usize, pivots: &[i64]) -> [Vec<f64>; 2] {
    let (mut m, mut d) = (vec![0.0; n * n], vec![0.0; n * n]);
    (0..n).for_each(|i| m[i * n + i] = 1.0);
    let mut starts = Vec::new();
    let mut k = 0;
    while k < n {
        let width = if pivots[k] < 0 { 2 } else { 1 };
        for i in k..k + width {
            for j in k..k + width {
                d[i * n + j] = block[i.max(j) * n + i.min(j)];
            }
        }
        starts.push([k, width]);
        k += width;
    }
    for [k, width] in starts.into_iter().rev() {
        for j in k..k + width {
            for i in k + width..n {
                (0..n).for_each(|col| m[i * n + col] += block[i * n + j] * m[j * n + col]);
            }
        }
        let (row, with) = if width == 2 { (k + 1, -pivots[k] - 1) } else { (k, pivots[k]) };
        assert!(with as usize >= row && (width == 1 || pivots[k + 1] == pivots[k]));
        (0..n).for_each(|col| m.swap(row * n + col, with as usize * n + col));
    }
    [m, d]
}

fn transpose(a: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|at| a[at % n * n + at / n]).collect()
}

fn check_ldlt<T: Real>(which: usize, [m, n]: [usize; 2]) {
    let a: Vec<T> = symmetric(which, m, n);
    let mut strided = Strided::new(&a, m, n);
    let mut pivots = vec![0; n];
    assert_eq!(ldlt_panel(strided.view(), &mut pivots), Ok(()), "{which}: {m} x {n}");
    let found = strided.elements();
    let [pl, d] = whole_factors(&found, n, &pivots);
    let left = [&pl[..], &found[n * n..]].concat();
    let turned = transpose(&pl, n);
    let again = product(&product(&left, &d, [m, n, n]), &turned, [m, n, n]);
    // Pivots bound what each element of the products may be off by.
    let magnitudes = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<f64>>();
    let [left, d, turned] = [&left, &d, &turned].map(|x| magnitudes(x));
    let most = product(&product(&left, &d, [m, n, n]), &turned, [m, n, n]);
    for (i, j) in (0..m * n).map(|at| (at / n, at % n)).filter(|(i, j)| j <= i) {
        let (x, y) = (again[i * n + j], a[i * n + j].to_f64());
        let bound = 4.0 * (n + 1) as f64 * T::EPSILON * most[i * n + j].max(y.abs());
        assert!((x - y).abs() <= bound, "{which}: {m} x {n}: ({i}, {j}): {x} instead of {y}, {bound:e}");
    }
}

#[test]
fn ldlt_factors_give_the_panel_again() {
    for which in 0..SYMMETRIC {
        for size in cases() {
            check_ldlt::<f64>(which, *size);
            check_ldlt::<f32>(which, *size);
        }
    }
}

/// Bunch and Kaufman's pivots by the definition, on a whole matrix from which each pivot's rows and columns are
/// eliminated in turn.
fn pivots_by_definition(a: &[f64], n: usize) -> Vec<i64> {
    let mut a: Vec<f64> = (0..n * n).map(|at| a[(at / n).max(at % n) * n + (at / n).min(at % n)]).collect();
    let (mut pivots, mut k) = (vec![0; n], 0);
    let alpha = (1.0 + 17_f64.sqrt()) / 8.0;
    while k < n {
        let largest = |a: &[f64], j: usize| {
            let others = (k..n).filter(|&i| i != j).rev();
            others.map(|i| (a[i * n + j].abs(), i)).max_by(|x, y| x.0.total_cmp(&y.0)).unwrap_or((0.0, k))
        };
        let (most, other) = largest(&a, k);
        let (there, _) = largest(&a, other);
        let own = a[k * n + k].abs();
        let one = own >= alpha * most || own * there >= alpha * most * most;
        let exchanged = a[other * n + other].abs() >= alpha * there;
        let width = if one || exchanged { 1 } else { 2 };
        let with = if one { k } else { other };
        let row = k + width - 1;
        pivots[k..k + width].fill(if width == 2 { -(with as i64) - 1 } else { with as i64 });
        (0..n).for_each(|j| a.swap(row * n + j, with * n + j));
        (0..n).for_each(|i| a.swap(i * n + row, i * n + with));
        let before = a.clone();
        let at = |i: usize, j: usize| before[i * n + j];
        for (i, j) in (0..n * n).map(|at| (at / n, at % n)).filter(|(i, j)| *i.min(j) >= k + width) {
            a[i * n + j] -= if width == 1 {
                at(i, k) * at(k, j) / at(k, k)
            } else {
                let determinant = at(k, k) * at(k + 1, k + 1) - at(k + 1, k) * at(k + 1, k);
                let first = at(k + 1, k + 1) * at(k, j) - at(k + 1, k) * at(k + 1, j);
                let second = at(k, k) * at(k + 1, j) - at(k + 1, k) * at(k, j);
                (at(i, k) * first + at(i, k + 1) * second) / determinant
            };
        }
        k += width;
    }
    pivots
}

#[test]
fn ldlt_pivots_are_those_of_the_definition() {
    for n in if cfg!(miri) { vec![1, 2, 19] } else { vec![1, 2, 3, 15, 16, 17, 31, 50, 90] } {
        for which in 0..SYMMETRIC {
            let mut a: Vec<f64> = symmetric(which, n, n);
            let wanted = pivots_by_definition(&a, n);
            let mut pivots = vec![0; n];
            assert_eq!(ldlt_panel(ViewMut::dense(&mut a, n, n), &mut pivots), Ok(()));
            assert_eq!(pivots, wanted, "{which}: {n}");
            let twos = pivots.iter().filter(|pivot| **pivot < 0).count();
            assert!(n < 15 || (which >= 3) == (twos == 0), "{which}: {n}: {twos} rows in pivots of two");
        }
    }
    // By hand: rows 1 and 2 are exchanged, and 4 is beside the diagonal of the first block of D.
    let mut a = [0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 4.0, 0.0, 0.0];
    let mut pivots = [0; 3];
    assert_eq!(ldlt_panel(ViewMut::dense(&mut a, 3, 3), &mut pivots), Ok(()));
    assert_eq!((pivots, a), ([-3, -3, 2], [0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.25, 2.0]));
}

/// Elements above the diagonal are not read, and elements that are too large do no harm but to the result.
#[test]
fn ldlt_reads_the_lower_triangle() {
    let (m, n) = (70, 50);
    let factor = |above: f64, scale: f64| {
        let mut a: Vec<f64> = symmetric(1, m, n);
        a.iter_mut().for_each(|x| *x *= scale);
        (0..n).for_each(|i| a[i * n + i + 1..(i + 1) * n].fill(above));
        let mut pivots = vec![0; n];
        assert_eq!(ldlt_panel(ViewMut::dense(&mut a, m, n), &mut pivots), Ok(()));
        let lower = |i: usize| a[i * n..][..n.min(i + 1)].to_vec();
        (0..m).flat_map(lower).map(f64::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(factor(1.0, 1.0), factor(f64::NAN, 1.0));
    factor(0.0, f64::MAX);
}

#[test]
fn the_first_column_without_a_pivot_is_named() {
    for n in [1, 2, 40] {
        for at in [0, 1, 15, 16, 17, 39].into_iter().filter(|at| *at < n) {
            let mut a: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
            a[at * n + at] = 0.0;
            let mut panel = a.clone();
            // What is below the block is no pivot.
            panel.extend(vec![1.0; 3 * n]);
            assert_eq!(
                ldlt_panel(ViewMut::dense(&mut panel, n + 3, n), &mut vec![0; n]),
                Err(at),
                "{at} of {n}"
            );
        }
    }
}

fn check_block<T: Real>(which: usize, [cols, n]: [usize; 2]) {
    let a: Vec<T> = symmetric(which, n, n);
    let b: Vec<T> = elements(n, cols, 19);
    let (mut factored, mut pivots) = (a.clone(), vec![0; n]);
    ldlt_panel(ViewMut::dense(&mut factored, n, n), &mut pivots).unwrap();
    let block = BlockFactors::new(View::dense(&factored, n, n), &pivots);
    let mut x = Strided::new(&b, n, cols);
    block.solve_lower(x.view());
    block.solve_diagonal(x.view());
    block.solve_upper(x.view());
    let x = x.elements();
    let whole = |at: usize| a[(at / n).max(at % n) * n + (at / n).min(at % n)].to_f64();
    let whole: Vec<f64> = (0..n * n).map(whole).collect();
    let again = product(&whole, &x, [n, n, cols]);
    let wanted: Vec<f64> = b.iter().map(|x| x.to_f64()).collect();
    let largest = |x: &[f64]| x.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    let bound = 20.0 * (n + 1) as f64 * largest(&x) * largest(&whole);
    assert_near::<T>(&again, &wanted, bound, &format!("{which}: {n} x {cols}"));
}

#[test]
fn blocks_times_their_solutions_are_the_right_hand_sides() {
    for which in 0..SYMMETRIC {
        for size in &cases()[1..] {
            check_block::<f64>(which, *size);
            check_block::<f32>(which, *size);
        }
    }
}

#[test]
fn block_diagonals_times_their_inverses_are_ones() {
    // Blocks of one, two, two and one rows.
    let elements = [2.0, 0.0, 1.0, 5.0, -3.0, 0.5, 0.0, 4.0, 0.0, 1.0, 0.0];
    let d = BlockDiagonal::from_elements(&elements);
    let unit = |j: usize| (0..6).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    for j in 0..6 {
        let [mut y, mut x] = [vec![0.0; 6], vec![0.0; 6]];
        d.inverse().multiply(&unit(j), &mut y);
        d.multiply(&y, &mut x);
        assert_near::<f64>(&x, &unit(j), 4.0, "column");
    }
    assert_eq!(d.into_elements(), elements);
    let one = BlockDiagonal::from_elements(&[4.0_f32]);
    assert_eq!(one.inverse().into_elements(), [0.25]);
}

//! Norms of a matrix by block columns, and its products with one vector, in double precision: each a pass over the
//! matrix, whose time is that of reading it. Threads share bands of rows, whose results are added in the order of rows,
//! so that they are the same whatever the number of threads.

use crate::LocalColumns;
use crate::products::share;
use crate::vectors::{Part, by_rank, ordered_sum};
use apportion::error::Result;
use apportion::kernels::{Loop, Real, widest};
use apportion::run::World;
use std::ops::Range;

/// Rows of a band.
const BAND: usize = 128;
/// Elements that are added, each to a sum of its own.
const LANES: usize = 16;

/// The largest magnitude of an element.
///
/// # Errors
/// A thread is refused; a lost rank.
pub(crate) fn largest_of<T: Real>(columns: &[LocalColumns<T>], threads: usize, world: &World) -> Result<f64> {
    let bands = by_bands(columns, threads, |local, rows| {
        let mut largest = [0.0; LANES];
        let width = local.width();
        let x = &local.elements()[rows.start * width..rows.end * width];
        widest(Largest { x, largest: &mut largest });
        largest.into_iter().fold(0.0, f64::max)
    })?;
    let largest = bands.into_iter().flatten().fold(0.0, f64::max);
    Ok(world.all_reduce(&[largest], f64::max)?[0])
}

/// The square of the Frobenius norm of the scaled matrix; of a symmetric one, from its lower triangle.
///
/// # Errors
/// A thread is refused; a lost rank.
pub(crate) fn squares_of<T: Real>(
    columns: &[LocalColumns<T>],
    (symmetric, scale): (bool, f64),
    threads: usize,
    world: &World,
) -> Result<f64> {
    let bands = by_bands(columns, threads, |local, rows| {
        let [mut once, mut twice] = [[0.0; LANES]; 2];
        let add = |x: &[T], sums: &mut [f64; LANES]| widest(Squares { x, scale, sums });
        for (i, row) in band(local, rows) {
            if symmetric {
                let diagonal = Part::StrictLower.range(local, i).end;
                add(&row[..diagonal], &mut twice);
                add(&row[diagonal..Part::Lower.range(local, i).end], &mut once);
            } else {
                add(row, &mut once);
            }
        }
        once.into_iter().sum::<f64>() + 2.0 * twice.into_iter().sum::<f64>()
    })?;
    let sums = bands.into_iter().map(|bands| vec![bands.into_iter().sum::<f64>()]).collect();
    Ok(ordered_sum(by_rank(columns, sums), world)?[0])
}

/// The largest sum of the magnitudes of a column; of a symmetric matrix, whose lower triangle is given.
///
/// # Errors
/// A thread is refused; a lost rank.
pub(crate) fn largest_column_sum<T: Real>(
    columns: &[LocalColumns<T>],
    symmetric: bool,
    n: usize,
    threads: usize,
    world: &World,
) -> Result<f64> {
    let parts = if symmetric { SYMMETRIC } else { [None, Some(Part::All)] };
    let sums = image(columns, parts, f64::abs, &vec![1.0; n], threads, world)?;
    Ok(sums.into_iter().fold(0.0, f64::max))
}

/// What the matrix times `scale`, of which a symmetric one's lower triangle stands for all, does to a vector.
///
/// # Errors
/// A thread is refused; a lost rank.
pub(crate) fn multiply_one<T: Real>(
    columns: &[LocalColumns<T>],
    (symmetric, scale): (bool, f64),
    x: &[f64],
    threads: usize,
    world: &World,
) -> Result<Vec<f64>> {
    let parts = if symmetric { SYMMETRIC } else { [Some(Part::All), None] };
    image(columns, parts, |a| a * scale, x, threads, world)
}

/// The parts that are multiplied by rows, and by columns, for a symmetric matrix.
const SYMMETRIC: [Option<Part>; 2] = [Some(Part::Lower), Some(Part::StrictLower)];

/// The sum of what a part of the matrix, and the transpose of a part of it, do to a vector, after a function of each
/// element.
fn image<T: Real>(
    columns: &[LocalColumns<T>],
    [by_rows, by_columns]: [Option<Part>; 2],
    element: impl Fn(f64) -> f64 + Copy + Sync,
    x: &[f64],
    threads: usize,
    world: &World,
) -> Result<Vec<f64>> {
    let own: Vec<Vec<f64>> =
        columns.iter().map(|local| local.columns().map(|j| x[j as usize]).collect()).collect();
    let bands = by_bands(columns, threads, |local, rows| {
        let place = columns.iter().position(|other| std::ptr::eq(other, local)).expect("one of the columns");
        let mut turned = vec![0.0; if by_columns.is_some() { local.width() } else { 0 }];
        let mut product = Vec::with_capacity(rows.len());
        for (i, row) in band(local, rows) {
            let mut sums = [0.0; LANES];
            if let Some(here) = by_rows.map(|part| part.range(local, i)) {
                widest(Dot { a: &row[here.clone()], x: &own[place][here], element, sums: &mut sums });
            }
            product.push(sums.into_iter().sum());
            if let Some(here) = by_columns.map(|part| part.range(local, i)) {
                widest(Turned { a: &row[here.clone()], x: x[i], element, y: &mut turned[here] });
            }
        }
        [product, turned]
    })?;
    let mut parts = Vec::new();
    for (local, bands) in columns.iter().zip(bands) {
        let mut image = vec![0.0; x.len()];
        let mut rows = local.matrix_rows();
        for [product, turned] in bands {
            product.into_iter().zip(rows.by_ref()).for_each(|(y, i)| image[i as usize] += y);
            local.columns().zip(turned).for_each(|(j, y)| image[j as usize] += y);
        }
        parts.push(image);
    }
    ordered_sum(by_rank(columns, parts), world)
}

/// What is found in each band of rows of each processor's columns, by several threads.
fn by_bands<T: Real, R: Send>(
    columns: &[LocalColumns<T>],
    threads: usize,
    find: impl Fn(&LocalColumns<T>, Range<usize>) -> R + Sync,
) -> Result<Vec<Vec<R>>> {
    let bands = |local: &LocalColumns<T>| -> Vec<Range<usize>> {
        let rows = local.rows();
        (0..rows).step_by(BAND).map(|first| first..(first + BAND).min(rows)).collect()
    };
    let mut found: Vec<Vec<Option<R>>> =
        columns.iter().map(|local| bands(local).iter().map(|_| None).collect()).collect();
    let parts = columns.iter().zip(&mut found).flat_map(|(local, found)| {
        bands(local).into_iter().zip(found).map(move |(rows, found)| (local, rows, found))
    });
    share(threads, parts.collect(), |(local, rows, found)| *found = Some(find(local, rows)))?;
    Ok(found.into_iter().map(|bands| bands.into_iter().flatten().collect()).collect())
}

/// The rows of a band, each with its number in the matrix.
fn band<T: Real>(local: &LocalColumns<T>, rows: Range<usize>) -> impl Iterator<Item = (usize, &[T])> {
    let elements = local.elements().chunks_exact(local.width().max(1));
    let numbers = local.matrix_rows().map(|i| i as usize);
    numbers.zip(elements).skip(rows.start).take(rows.len())
}

/// The largest magnitudes of every [`LANES`]th element. Elements that are not read may be NaN, and are passed over.
struct Largest<'a, T> {
    x: &'a [T],
    largest: &'a mut [f64; LANES],
}

impl<T: Real> Loop for Largest<'_, T> {
    #[inline(always)]
    fn run(self) {
        let mut most = *self.largest;
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        for chunk in chunks.iter().map(|chunk| &chunk[..]).chain([rest]) {
            for (most, x) in most.iter_mut().zip(chunk) {
                let x = x.to_f64().abs();
                *most = if x > *most { x } else { *most };
            }
        }
        *self.largest = most;
    }
}

/// The squares of every [`LANES`]th scaled element are added.
struct Squares<'a, T> {
    x: &'a [T],
    scale: f64,
    sums: &'a mut [f64; LANES],
}

impl<T: Real> Loop for Squares<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { x, scale, sums } = self;
        let mut total = *sums;
        let (chunks, rest) = x.as_chunks::<LANES>();
        for chunk in chunks.iter().map(|chunk| &chunk[..]).chain([rest]) {
            for (sum, x) in total.iter_mut().zip(chunk) {
                let x = x.to_f64() * scale;
                *sum += x * x;
            }
        }
        *sums = total;
    }
}

/// The products of every [`LANES`]th element are added.
struct Dot<'a, T, F> {
    a: &'a [T],
    x: &'a [f64],
    element: F,
    sums: &'a mut [f64; LANES],
}

impl<T: Real, F: Fn(f64) -> f64 + Copy> Loop for Dot<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        let Self { a, x, element, sums } = self;
        let mut total = [0.0; LANES];
        let ((a, rest_a), (x, rest_x)) = (a.as_chunks::<LANES>(), x.as_chunks::<LANES>());
        for (a, x) in a.iter().zip(x) {
            for (sum, (a, x)) in total.iter_mut().zip(a.iter().zip(x)) {
                *sum += element(a.to_f64()) * x;
            }
        }
        for (sum, (a, x)) in total.iter_mut().zip(rest_a.iter().zip(rest_x)) {
            *sum += element(a.to_f64()) * x;
        }
        *sums = total;
    }
}

/// y += a x for a number x.
struct Turned<'a, T, F> {
    a: &'a [T],
    x: f64,
    element: F,
    y: &'a mut [f64],
}

impl<T: Real, F: Fn(f64) -> f64 + Copy> Loop for Turned<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        let Self { a, x, element, y } = self;
        y.iter_mut().zip(a).for_each(|(y, a)| *y += element(a.to_f64()) * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_columns::cut_columns;
    use apportion::geometry::Rank;
    use apportion::plan::TileMap;
    use apportion::run::Monitor;

    /// All are those of the definitions, to the same bits on any number of threads; what is above the diagonal of a
    /// symmetric matrix is not read.
    #[test]
    fn norms_and_products_are_those_of_the_definitions() {
        let (n, monitor) = (301, Monitor::new());
        let world = World::solo(&monitor);
        let element = |i: usize, j: usize| ((i * n + j) as f64 * 0.618_033_988_749_894_9).fract() - 0.5;
        let x: Vec<f64> = (0..n).map(|i| element(i, 3)).collect();
        let columns = TileMap::columns(n as u64, 20, 3, (0..16).map(|i| Rank(i * i % 3)).collect());
        for symmetric in [false, true] {
            let a = |i: usize, j: usize| if symmetric && j > i { element(j, i) } else { element(i, j) };
            let stored: Vec<f64> = (0..n * n)
                .map(|at| if symmetric && at % n > at / n { f64::NAN } else { element(at / n, at % n) })
                .collect();
            let locals = cut_columns(&stored, &columns, 0..3).unwrap();
            let on = |threads: usize| {
                let product = multiply_one(&locals, (symmetric, 2.0), &x, threads, &world).unwrap();
                let squares = squares_of(&locals, (symmetric, 2.0), threads, &world).unwrap();
                let sum = largest_column_sum(&locals, symmetric, n, threads, &world).unwrap();
                (product, [squares, sum, largest_of(&locals, threads, &world).unwrap()])
            };
            let (product, [squares, sum, largest]) = on(1);
            assert!((product.clone(), [squares, sum, largest]) == on(3));
            let all = || (0..n).flat_map(|i| (0..n).map(move |j| a(i, j)));
            for (i, found) in product.iter().enumerate() {
                let wanted: f64 = (0..n).map(|j| 2.0 * a(i, j) * x[j]).sum();
                assert!((found - wanted).abs() < 1e-12, "{symmetric} {i}: {found} {wanted}");
            }
            assert!((squares / all().map(|x| 4.0 * x * x).sum::<f64>() - 1.0).abs() < 1e-13);
            let wanted = (0..n).map(|j| (0..n).map(|i| a(i, j).abs()).sum::<f64>()).fold(0.0, f64::max);
            assert!((sum / wanted - 1.0).abs() < 1e-13, "{symmetric}: {sum} {wanted}");
            assert_eq!(largest, all().map(f64::abs).fold(0.0, f64::max));
        }
    }
}

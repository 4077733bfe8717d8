//! A linear system A X = B, and how well X solves it: the residual, in double precision.
//!
//! Residuals of few right-hand sides are computed by loops that share nothing with what solved the system. Those of many
//! are packed products, as fast as the substitution, and verified: the loops multiply them with vectors of random signs
//! (Freivalds 1979).

use crate::bands::{largest_of, multiply_one, squares_of};
use crate::products::{Products, share, transpose};
use crate::residual::random_signs;
use crate::vectors::{TOGETHER, Vectors, multiply, ordered_sum, scale_for};
use crate::{LocalColumns, MOST_SCALED};
use apportion::error::{Error, Result};
use apportion::kernels::{Loop, Real, View, ViewMut, widest};
use apportion::matrix::Element;
use apportion::run::World;

/// Right-hand sides whose images ranks add up at a time.
const GROUP: usize = 64;
/// Columns that are converted to double precision at a time.
const CONVERTED: usize = 512;

/// A matrix, by block columns of processors, and what is known of it.
pub(crate) struct System<'a, T> {
    /// This process's block columns, by rank.
    columns: &'a [LocalColumns<T>],
    /// The lower triangle stands for all.
    symmetric: bool,
    n: usize,
    /// The factor, a power of four, with which elements are multiplied so that none is large or small.
    pub scale: f64,
    /// The Frobenius norm of the scaled matrix.
    norm: f64,
    threads: usize,
    world: &'a World,
}

impl<'a, T: Real> System<'a, T> {
    /// # Errors
    /// A lost rank.
    pub(crate) fn new(
        columns: &'a [LocalColumns<T>],
        symmetric: bool,
        n: usize,
        threads: usize,
        world: &'a World,
    ) -> Result<Self> {
        let scale = scale_for(largest_of(columns, threads, world)?);
        // Elements of moderate size are read where they are.
        let scale = if (1e-60..1e60).contains(&scale) { 1.0 } else { scale };
        let norm = squares_of(columns, (symmetric, scale), threads, world)?.sqrt();
        Ok(Self { columns, symmetric, n, scale, norm, threads, world })
    }

    /// B - A X, scaled as A is.
    ///
    /// # Errors
    /// A product is wrong: exit code 1; a thread is refused; a lost rank.
    pub(crate) fn remainder(&self, x: &[T], b: &[T]) -> Result<Vec<f64>> {
        let sides = x.len() / self.n;
        let mut rest: Vec<f64> = b.iter().map(|b| b.to_f64() * self.scale).collect();
        if sides == 1 {
            let x: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
            let how = (self.symmetric, self.scale);
            let image = multiply_one(self.columns, how, &x, self.threads, self.world)?;
            rest.iter_mut().zip(&image).for_each(|(rest, image)| *rest -= image);
            return Ok(rest);
        }
        if sides <= TOGETHER {
            let images = multiply(self.columns, (self.symmetric, self.scale), &self.group(x), self.world)?;
            for (rest, image) in rest.chunks_exact_mut(sides).zip(&images) {
                rest.iter_mut().zip(image).for_each(|(rest, image)| *rest -= image);
            }
            return Ok(rest);
        }
        let group = if self.world.is_solo() { sides } else { GROUP };
        for first in (0..sides).step_by(group) {
            let some = first..(first + group).min(sides);
            let part: Vec<f64> =
                x.chunks_exact(sides).flat_map(|row| &row[some.clone()]).map(|x| x.to_f64()).collect();
            let mut total = Vec::new();
            for local in self.columns {
                let image = self.image(local, View::dense(&part, self.n, some.len()))?;
                if total.is_empty() {
                    total = image;
                } else {
                    total.iter_mut().zip(&image).for_each(|(x, y)| *x += y);
                }
            }
            let total = ordered_sum(vec![total], self.world)?;
            let images = total.chunks_exact(some.len());
            for (rest, image) in rest.chunks_exact_mut(sides).zip(images) {
                rest[some.clone()].iter_mut().zip(image).for_each(|(rest, image)| *rest -= image);
            }
        }
        self.verify(&rest, x, b)?;
        Ok(rest)
    }

    /// A group of vectors in double precision; those that are missing are zeros.
    fn group(&self, x: &[T]) -> Vectors {
        let row = |row: &[T]| std::array::from_fn(|side| row.get(side).map_or(0.0, |x| x.to_f64()));
        x.chunks_exact(x.len() / self.n).map(row).collect()
    }

    /// What a processor's block columns do to X.
    fn image(&self, local: &LocalColumns<T>, x: View<f64>) -> Result<Vec<f64>> {
        let (n, sides) = (self.n, x.cols());
        let mut image = vec![0.0; n * sides];
        let products = Products::new(self.threads, sides);
        // Doubles are read where they are.
        if let (Ok(elements), false, true) = (
            bytemuck::try_cast_slice(local.elements()),
            self.symmetric,
            self.scale == 1.0 && T::NAME == f64::NAME,
        ) {
            let own: Vec<f64> = local.columns().flat_map(|j| x.row(j as usize)).copied().collect();
            let own = View::dense(&own, local.width(), sides);
            let a = View::dense(elements, n, local.width());
            products.update(a, own, ViewMut::dense(&mut image, n, sides))?;
            return Ok(image);
        }
        let groups = if self.symmetric { local.spans().len() } else { local.width().div_ceil(CONVERTED) };
        for group in 0..groups {
            let here = match self.symmetric {
                true => local.range(group..group + 1),
                false => group * CONVERTED..((group + 1) * CONVERTED).min(local.width()),
            };
            let of: Vec<usize> =
                local.columns().skip(here.start).take(here.len()).map(|j| j as usize).collect();
            // Rows above a diagonal block stand for those left of it.
            let top = if self.symmetric { of[0] } else { 0 };
            let mut a = vec![0.0; (n - top) * of.len()];
            for (i, to) in a.chunks_exact_mut(of.len()).enumerate() {
                let from = &local.view().row(top + i)[here.clone()];
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_f64() * self.scale);
            }
            if self.symmetric {
                for i in 0..of.len() {
                    (i + 1..of.len()).for_each(|j| a[i * of.len() + j] = a[j * of.len() + i]);
                }
            }
            let own: Vec<f64> = of.iter().flat_map(|&j| x.row(j)).copied().collect();
            let own = View::dense(&own, of.len(), sides);
            let a = View::dense(&a, n - top, of.len());
            products.update(a, own, ViewMut::dense(&mut image[top * sides..], n - top, sides))?;
            if self.symmetric {
                let below = a.tile(of.len(), 0, n - top - of.len(), of.len());
                let turned = transpose(below);
                let turned = View::dense(&turned, of.len(), below.rows());
                let later = x.tile(top + of.len(), 0, below.rows(), sides);
                let rows = &mut image[top * sides..(top + of.len()) * sides];
                products.update(turned, later, ViewMut::dense(rows, of.len(), sides))?;
            }
        }
        Ok(image)
    }

    /// Compares what the residual and what the system do to vectors of random signs.
    fn verify(&self, rest: &[f64], x: &[T], b: &[T]) -> Result<()> {
        let sides = x.len() / self.n;
        let signs = random_signs(sides, 1);
        let sums = self.times(x, &signs)?;
        let wanted = multiply(self.columns, (self.symmetric, self.scale), &sums, self.world)?;
        let (given, rest) = (self.times(b, &signs)?, self.times(rest, &signs)?);
        let found = given.as_flattened().iter().zip(rest.as_flattened()).map(|(b, r)| b * self.scale - r);
        let off: Vec<f64> = found.zip(wanted.as_flattened()).map(|(x, y)| x - y).collect();
        let length = |x: &[T]| lengths(x, 1)[0];
        let size = self.norm * length(x) + self.scale * length(b);
        let most = MOST_SCALED * self.n.max(sides) as f64 * f64::EPSILON * (TOGETHER as f64).sqrt() * size;
        let right = lengths(&off, 1)[0] <= most;
        let what = "the residual of the solution is not that of the matrix: a product is wrong".into();
        self.world.all_ok(if right { Ok(()) } else { Err(Error::WrongResult { what }) })
    }

    /// The sums of the columns of a matrix, with these signs.
    fn times<N: Real>(&self, x: &[N], signs: &Vectors) -> Result<Vectors> {
        let sides = signs.len();
        let mut sums = vec![[0.0; TOGETHER]; self.n];
        let rows = self.n.div_ceil(self.threads);
        let parts = x.chunks(rows * sides).zip(sums.chunks_mut(rows)).collect();
        share(self.threads, parts, |(x, y)| widest(Signed { x, signs, y }))?;
        Ok(sums)
    }

    /// The largest `||b - A x|| / (||A|| ||x|| n eps)` of each side.
    pub(crate) fn errors(&self, rest: &[f64], x: &[T]) -> Vec<f64> {
        let sides = x.len() / self.n;
        let residuals = lengths(rest, sides);
        let solutions = lengths(x, sides);
        let eps = T::EPSILON / 2.0;
        let one = |(residual, solution): (&f64, &f64)| {
            // A right-hand side of zeros has a solution of zeros.
            if *residual == 0.0 { 0.0 } else { residual / (self.norm * solution * self.n as f64 * eps) }
        };
        residuals.iter().zip(&solutions).map(one).collect()
    }
}

/// The Euclidean lengths of the columns of a matrix.
fn lengths<T: Real>(x: &[T], columns: usize) -> Vec<f64> {
    let squares = |scales: Option<&[f64]>| {
        let mut sums = vec![0.0; columns];
        for row in x.chunks_exact(columns) {
            for (j, (sum, x)) in sums.iter_mut().zip(row).enumerate() {
                let x = x.to_f64() / scales.map_or(1.0, |scales| scales[j]);
                *sum += x * x;
            }
        }
        sums
    };
    let sums = squares(None);
    // Squares that cannot be represented are those of numbers that are scaled first.
    if sums.iter().all(|sum| (1e-200..1e200).contains(sum)) {
        return sums.into_iter().map(f64::sqrt).collect();
    }
    let mut largest = vec![0.0_f64; columns];
    for row in x.chunks_exact(columns) {
        largest.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(x.to_f64().abs()));
    }
    let scales: Vec<f64> = largest.iter().map(|most| if *most == 0.0 { 1.0 } else { *most }).collect();
    squares(Some(&scales)).iter().zip(&scales).map(|(sum, scale)| sum.sqrt() * scale).collect()
}

/// y += X w for vectors w of signs.
struct Signed<'a, T> {
    x: &'a [T],
    signs: &'a Vectors,
    y: &'a mut [[f64; TOGETHER]],
}

impl<T: Real> Loop for Signed<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { x, signs, y } = self;
        for (row, y) in x.chunks_exact(signs.len()).zip(y) {
            let mut sums = *y;
            for (x, signs) in row.iter().zip(signs) {
                let x = x.to_f64();
                sums.iter_mut().zip(signs).for_each(|(sum, sign)| *sum += x * sign);
            }
            *y = sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::geometry::Rank;
    use apportion::plan::TileMap;
    use apportion::run::Monitor;

    fn value(i: usize) -> f64 {
        (i as f64 * 0.618_033_988_749_894_9).fract() - 0.5
    }

    /// Residuals by products are those of the definition, for matrices of any size of elements, whole or symmetric;
    /// one that is altered is found.
    #[test]
    fn residuals_are_those_of_the_definition() {
        let (n, monitor) = (70, Monitor::new());
        let world = World::solo(&monitor);
        let columns = TileMap::columns(n as u64, 16, 2, [0, 1, 1, 0, 1].map(Rank).to_vec());
        let sizes = [(false, 1.0), (true, 1.0), (false, 1e200), (true, 1e-200)];
        for (symmetric, size, sides) in
            sizes.iter().flat_map(|(s, x)| [1, 5, 33].map(|sides| (*s, *x, sides)))
        {
            let whole = |i: usize, j: usize| size * value(i * n + j);
            let a = |i: usize, j: usize| if symmetric && j > i { whole(j, i) } else { whole(i, j) };
            // What is above the diagonal is not read.
            let stored: Vec<f64> = (0..n * n)
                .map(|at| if symmetric && at % n > at / n { f64::NAN } else { whole(at / n, at % n) })
                .collect();
            let locals = crate::local_columns::cut_columns(&stored, &columns, 0..2).unwrap();
            let system = System::new(&locals, symmetric, n, 3, &world).unwrap();
            let x: Vec<f64> = (0..n * sides).map(|i| value(i * 3 + 1)).collect();
            let b: Vec<f64> = (0..n * sides).map(|i| size * value(i * 5 + 2)).collect();
            let mut rest = system.remainder(&x, &b).unwrap();
            for (i, side) in (0..n).flat_map(|i| (0..sides).map(move |side| (i, side))) {
                let product: f64 = (0..n).map(|j| a(i, j) / size * x[j * sides + side]).sum();
                let wanted = b[i * sides + side] / size - product;
                let found = rest[i * sides + side] / system.scale / size;
                assert!((found - wanted).abs() < 1e-12, "{symmetric} {size} ({i}, {side}): {found} {wanted}");
            }
            system.verify(&rest, &x, &b).unwrap();
            rest[7 * sides + sides / 2] += 1e-6 * size * system.scale;
            assert!(system.verify(&rest, &x, &b).unwrap_err().to_string().contains("residual"));
        }
    }

    #[test]
    fn lengths_have_no_overflow() {
        let x = [3e200, 3.0, 0.0, 4e-250, 4e200, 4.0, 0.0, -3e-250];
        let found = lengths(&x, 4);
        for (found, wanted) in found.iter().zip([5e200, 5.0, 0.0, 5e-250]) {
            assert!((found - wanted).abs() <= 1e-15 * wanted, "{found} {wanted}");
        }
        assert!(lengths(&[1.0, f64::NAN], 1)[0].is_nan());
    }
}

//! How well factors give the matrix again, as LAPACK's tests measure it.
//!
//! The difference E between the matrix and the product of its factors is not computed: it is applied to vectors of
//! random signs, for which the mean of the squared lengths of E x is the square of the Frobenius norm of E, or to all
//! unit vectors of a small matrix, which give the norm itself. Freivalds 1979; Hutchinson 1990 (DOI
//! 10.1080/03610919008812866).

use crate::LocalColumns;
use crate::bands::{largest_of, squares_of};
use crate::factor::pairs;
use crate::vectors::{Columns, Part, Rows, TOGETHER, Vectors, add, add_all, multiply, scale_for, sum};
use apportion::error::{Error, Result};
use apportion::kernels::Real;
use apportion::plan::Factors;
use apportion::random::Random;
use apportion::run::World;
use std::ops::Range;

/// The largest scaled residual of correct factors, as in LAPACK's tests.
pub(crate) const MOST_SCALED: f64 = 30.0;
/// The most rows of a matrix whose residual is computed exactly.
const SMALL: usize = 128;
/// How much larger than A the factor U may be before that counts.
const GROWTH: f64 = 64.0;

/// The residual of a factorisation: `||A - L L^T||`, `||P A - L U||` or `||P A P^T - L D L^T||`, over `n ||A|| eps`, in
/// the Frobenius norm; eps is half the distance from 1 to the next larger number, as in LAPACK. Where U is more than 64
/// times as large as A, `||U|| / 64` stands for `||A||`: the rounding of the elimination, and of this measurement, grows
/// with U.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Residual {
    /// The scaled residual.
    pub scaled: f64,
    /// True if the norm was computed; false if it was estimated by 16 vectors of random signs.
    pub exact: bool,
}

impl Residual {
    /// Refuses factors that are wrong.
    ///
    /// # Errors
    /// The scaled residual is above [`MOST_SCALED`], or no number: exit code 1.
    pub(crate) fn check(&self) -> Result<()> {
        if self.scaled <= MOST_SCALED {
            return Ok(());
        }
        let what =
            format!("the residual of the factors is {:.3e} times n ||A|| eps, more than 30", self.scaled);
        Err(Error::WrongResult { what })
    }
}

/// What a matrix does to some vectors, kept while its factors take its place. Block columns of both may come one slab
/// after the other.
pub(crate) struct Witness {
    factors: Factors,
    n: usize,
    /// The vectors, in groups.
    vectors: Vec<Vectors>,
    /// What the scaled matrix does to them.
    images: Vec<Vectors>,
    /// The square of the Frobenius norm of the scaled matrix.
    squares: f64,
    /// The largest magnitude of an element.
    largest: f64,
    /// The factor, a power of four, with which elements are multiplied so that none is large or small.
    scale: f64,
    exact: bool,
}

/// Gives block columns of the factors to what is computed with them, one slab after the other.
pub(crate) type EachSlab<'a, T> =
    dyn FnMut(&mut dyn FnMut(&[LocalColumns<T>]) -> Result<()>) -> Result<()> + 'a;

impl Witness {
    /// Vectors for a matrix of n rows that is yet to [come](Self::add).
    pub(crate) fn new(factors: Factors, n: usize, seed: u64) -> Self {
        let exact = n <= SMALL;
        let vectors = if exact { unit_vectors(n) } else { vec![random_signs(n, seed)] };
        let images = vec![vec![[0.0; TOGETHER]; n]; vectors.len()];
        Self { factors, n, vectors, images, squares: 0.0, largest: 0.0, scale: 1.0, exact }
    }

    /// The same with vectors that see the first columns of the matrix and of its factors only.
    pub(crate) fn left_of(mut self, columns: usize) -> Self {
        self.vectors.iter_mut().for_each(|vectors| vectors[columns..].fill([0.0; TOGETHER]));
        self
    }

    /// Multiplies block columns of the matrix, of which a symmetric one's lower triangle stands for all, with the
    /// vectors.
    ///
    /// # Errors
    /// A thread is refused; a lost rank.
    pub(crate) fn add<T: Real>(&mut self, columns: &[LocalColumns<T>], world: &World) -> Result<()> {
        let largest = largest_of(columns, columns.len(), world)?;
        if largest > self.largest {
            let scale = scale_for(largest);
            // Smaller, or what is there is zero.
            let change = if self.largest > 0.0 { scale / self.scale } else { 1.0 };
            self.largest = largest;
            self.images.iter_mut().flatten().flatten().for_each(|x| *x *= change);
            self.squares *= change * change;
            self.scale = scale;
        }
        let how = (self.factors.is_symmetric(), self.scale);
        for (x, image) in self.vectors.iter().zip(&mut self.images) {
            add_all(image, &multiply(columns, how, x, world)?);
        }
        self.squares += squares_of(columns, how, columns.len(), world)?;
        Ok(())
    }

    /// Compares with what the factors do to the vectors. `pivots` are those of all rows of LU and L D L^T.
    ///
    /// # Errors
    /// A thread is refused; a lost rank; those of `each_slab`, which is called twice for LU.
    pub(crate) fn residual<T: Real>(
        &self,
        each_slab: &mut EachSlab<'_, T>,
        pivots: &[i64],
        world: &World,
    ) -> Result<Residual> {
        let [mut squares, mut of_upper] = [0.0; 2];
        for (x, image) in self.vectors.iter().zip(&self.images) {
            let mut product = vec![[0.0; TOGETHER]; self.n];
            if self.factors == Factors::Lu {
                let mut inner = product.clone();
                each_slab(&mut |columns| {
                    add_all(&mut inner, &self.by_upper(columns, x, world)?);
                    Ok(())
                })?;
                each_slab(&mut |columns| {
                    add_all(&mut product, &self.by_lower(columns, &inner, world)?);
                    Ok(())
                })?;
                add_all(&mut product, &inner);
                of_upper += inner.as_flattened().iter().map(|x| x * x).sum::<f64>();
            } else {
                each_slab(&mut |columns| {
                    let part = match self.factors {
                        Factors::Ldlt => self.by_ldlt(columns, pivots, x, world)?,
                        _ => self.by_cholesky(columns, x, world)?,
                    };
                    add_all(&mut product, &part);
                    Ok(())
                })?;
            }
            let mut image = image.clone();
            if self.factors == Factors::Lu {
                pivots.iter().enumerate().for_each(|(i, pivot)| image.swap(i, *pivot as usize));
            }
            for (found, wanted) in product.iter().zip(&image) {
                squares += found.iter().zip(wanted).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
            }
        }
        let norm = |squares: f64| if self.exact { squares } else { squares / TOGETHER as f64 }.sqrt();
        let size = self.squares.sqrt().max(norm(of_upper) / GROWTH);
        let scaled = norm(squares) / (self.n as f64 * size * T::EPSILON / 2.0);
        Ok(Residual { scaled, exact: self.exact })
    }

    /// L (L^T x).
    fn by_cholesky<T: Real>(
        &self,
        columns: &[LocalColumns<T>],
        x: &Vectors,
        world: &World,
    ) -> Result<Vectors> {
        let scale = self.scale.sqrt();
        let inner = |local: &LocalColumns<T>| self.turned(local, Part::Lower, scale, x);
        let inner = sum(columns, inner, world)?;
        let outer = |local: &LocalColumns<T>| self.straight(local, Part::Lower, scale, &inner);
        sum(columns, outer, world)
    }

    /// A^T x for a part of what a processor has.
    fn turned<T: Real>(&self, local: &LocalColumns<T>, part: Part, scale: f64, x: &Vectors) -> Vectors {
        let mut own = vec![[0.0; TOGETHER]; local.width()];
        Columns { local, part, scale, x, y: &mut own }.compute();
        let mut image = vec![[0.0; TOGETHER]; self.n];
        local.columns().zip(own).for_each(|(j, own)| image[j as usize] = own);
        image
    }

    /// A x for a part of what a processor has.
    fn straight<T: Real>(&self, local: &LocalColumns<T>, part: Part, scale: f64, x: &Vectors) -> Vectors {
        let own: Vectors = local.columns().map(|j| x[j as usize]).collect();
        let mut image = vec![[0.0; TOGETHER]; self.n];
        Rows { local, part, scale, x: &own, y: &mut image }.compute();
        image
    }

    /// U x.
    fn by_upper<T: Real>(&self, columns: &[LocalColumns<T>], x: &Vectors, world: &World) -> Result<Vectors> {
        sum(columns, |local: &LocalColumns<T>| self.straight(local, Part::Upper, self.scale, x), world)
    }

    /// L x without what its ones do.
    fn by_lower<T: Real>(&self, columns: &[LocalColumns<T>], x: &Vectors, world: &World) -> Result<Vectors> {
        sum(columns, |local: &LocalColumns<T>| self.straight(local, Part::StrictLower, 1.0, x), world)
    }

    /// P^T L (D (L^T P x)), where exchanges remain within block columns.
    fn by_ldlt<T: Real>(
        &self,
        columns: &[LocalColumns<T>],
        pivots: &[i64],
        x: &Vectors,
        world: &World,
    ) -> Result<Vectors> {
        let inner = |local: &LocalColumns<T>| {
            let mut image = self.turned(local, Part::Below, 1.0, x);
            for block in DiagonalBlock::all(local, pivots) {
                let mut own = x[block.rows.clone()].to_vec();
                block.multiply_upper(&mut own);
                image[block.rows.clone()].iter_mut().zip(&own).for_each(|(sum, x)| add(sum, x));
            }
            image
        };
        let mut inner = sum(columns, inner, world)?;
        let middle = |local: &LocalColumns<T>| {
            let mut image = vec![[0.0; TOGETHER]; self.n];
            for block in DiagonalBlock::all(local, pivots) {
                let own = &mut image[block.rows.clone()];
                own.copy_from_slice(&inner[block.rows.clone()]);
                block.multiply_diagonal(own, self.scale);
            }
            image
        };
        inner = sum(columns, middle, world)?;
        let outer = |local: &LocalColumns<T>| {
            let mut image = self.straight(local, Part::Below, 1.0, &inner);
            for block in DiagonalBlock::all(local, pivots) {
                let mut own = inner[block.rows.clone()].to_vec();
                block.multiply_lower(&mut own);
                image[block.rows.clone()].iter_mut().zip(&own).for_each(|(sum, x)| add(sum, x));
            }
            image
        };
        sum(columns, outer, world)
    }
}

/// A diagonal block of L D L^T.
struct DiagonalBlock<'a, T> {
    local: &'a LocalColumns<T>,
    /// In the matrix.
    rows: Range<usize>,
    /// The first of them here.
    first: usize,
    /// In the block columns of the processor.
    columns: Range<usize>,
    /// Those of its rows, counted from the first of the matrix.
    pivots: &'a [i64],
    /// For each row, true if a block of two rows of D begins there.
    pairs: Vec<bool>,
}

impl<'a, T: Real> DiagonalBlock<'a, T> {
    /// Those of some block columns, or of a diagonal tile.
    fn all(local: &'a LocalColumns<T>, pivots: &'a [i64]) -> impl Iterator<Item = Self> {
        local.spans().iter().enumerate().filter_map(move |(place, span)| {
            let rows = span.start as usize..span.end as usize;
            let (first, columns, pivots) =
                (local.diagonal(*span)?, local.range(place..place + 1), &pivots[rows.clone()]);
            Some(Self { local, rows, first, columns, pivots, pairs: pairs(pivots) })
        })
    }

    /// An element, by row and column of the block.
    fn element(&self, i: usize, j: usize) -> f64 {
        let width = self.local.width();
        self.local.elements()[(self.first + i) * width + self.columns.start + j].to_f64()
    }

    /// Exchanges the rows of the pivot that begins in row j, if one does.
    fn exchange(&self, x: &mut [[f64; TOGETHER]], j: usize) {
        let row = |pivot: i64| pivot as usize - self.rows.start;
        if self.pairs[j] {
            x.swap(j + 1, row(-self.pivots[j] - 1));
        } else if self.pivots[j] >= 0 {
            x.swap(j, row(self.pivots[j]));
        }
    }

    /// Elements of a column below its pivot, by their rows.
    fn below(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let first = j + 1 + usize::from(self.pairs[j]);
        (first..self.rows.len()).map(move |i| (i, self.element(i, j)))
    }

    /// X := L^T P X, one exchange and column after the other.
    fn multiply_upper(&self, x: &mut [[f64; TOGETHER]]) {
        for j in 0..x.len() {
            self.exchange(x, j);
            for (i, l) in self.below(j) {
                let from = x[i];
                x[j].iter_mut().zip(from).for_each(|(sum, x)| *sum += l * x);
            }
        }
    }

    /// X := `scale` D X.
    fn multiply_diagonal(&self, x: &mut [[f64; TOGETHER]], scale: f64) {
        for i in 0..x.len() {
            if self.pairs[i] {
                let [a, b, c] = [self.element(i, i), self.element(i + 1, i), self.element(i + 1, i + 1)];
                let (upper, lower) = x.split_at_mut(i + 1);
                for (y, z) in upper[i].iter_mut().zip(&mut lower[0]) {
                    (*y, *z) = (scale * (a * *y + b * *z), scale * (b * *y + c * *z));
                }
            } else if self.pivots[i] >= 0 {
                let d = self.element(i, i) * scale;
                x[i].iter_mut().for_each(|x| *x *= d);
            }
        }
    }

    /// X := P^T L X.
    fn multiply_lower(&self, x: &mut [[f64; TOGETHER]]) {
        for j in (0..x.len()).rev() {
            let from = x[j];
            for (i, l) in self.below(j) {
                x[i].iter_mut().zip(from).for_each(|(sum, x)| *sum += l * x);
            }
            self.exchange(x, j);
        }
    }
}

/// The unit vectors, and zeros up to a whole number of groups.
fn unit_vectors(n: usize) -> Vec<Vectors> {
    let group = |first: usize| {
        let row = |i: usize| std::array::from_fn(|v| f64::from(u8::from(first + v == i)));
        (0..n).map(row).collect()
    };
    (0..n).step_by(TOGETHER).map(group).collect()
}

/// Vectors of random signs.
pub(crate) fn random_signs(n: usize, seed: u64) -> Vectors {
    let mut random = Random::new(seed);
    let mut row = || {
        let word = random.word();
        std::array::from_fn(|v| if word >> v & 1 == 0 { 1.0 } else { -1.0 })
    };
    (0..n).map(|_| row()).collect()
}

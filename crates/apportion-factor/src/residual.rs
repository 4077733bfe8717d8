//! How well factors give the matrix again, as LAPACK's tests measure it.
//!
//! The difference E between the matrix and the product of its factors is not computed: it is applied to vectors of
//! random signs, for which the mean of the squared lengths of E x is the square of the Frobenius norm of E, or to all
//! unit vectors of a small matrix, which give the norm itself. Freivalds 1979; Hutchinson 1990 (DOI
//! 10.1080/03610919008812866).

use crate::LocalColumns;
use crate::vectors::{Columns, Part, Rows, TOGETHER, Vectors, add, frobenius, multiply, scale_of, sum};
use apportion::error::{Error, Result};
use apportion::kernels::Real;
use apportion::plan::Factors;
use apportion::random::Random;
use apportion::run::World;
use serde_json::{Value, json};

/// The largest scaled residual of correct factors, as in LAPACK's tests.
pub const MOST_SCALED: f64 = 30.0;
/// The most rows of a matrix whose residual is computed exactly.
const SMALL: usize = 128;

/// The residual of a factorisation: `||A - L L^T||` or `||P A - L U||`, over `n ||A|| eps`, in the Frobenius norm;
/// eps is half the distance from 1 to the next larger number, as in LAPACK.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
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
    pub fn check(&self) -> Result<()> {
        if self.scaled <= MOST_SCALED {
            return Ok(());
        }
        let what =
            format!("the residual of the factors is {:.3e} times n ||A|| eps, more than 30", self.scaled);
        Err(Error::WrongResult { what })
    }

    /// How it was measured, for `run.json`.
    pub fn to_value(self) -> Value {
        let vectors = (!self.exact).then_some(TOGETHER);
        json!({"method": if self.exact { "exact" } else { "random signs" }, "vectors": vectors,
               "norm": "frobenius", "threshold": MOST_SCALED})
    }
}

/// What a matrix does to some vectors, kept while its factors take its place.
pub(crate) struct Witness {
    factors: Factors,
    n: usize,
    /// The vectors, in groups.
    vectors: Vec<Vectors>,
    /// What the scaled matrix does to them.
    images: Vec<Vectors>,
    /// The Frobenius norm of the scaled matrix.
    norm: f64,
    /// The factor, a power of four, with which elements are multiplied so that none is large or small.
    scale: f64,
    exact: bool,
}

impl Witness {
    /// Multiplies the matrix, of which Cholesky's lower triangle stands for all, with vectors.
    ///
    /// # Errors
    /// A thread is refused; a lost rank.
    pub(crate) fn new<T: Real>(
        factors: Factors,
        n: usize,
        columns: &[LocalColumns<T>],
        seed: u64,
        world: &World,
    ) -> Result<Self> {
        let exact = n <= SMALL;
        let vectors = if exact { unit_vectors(n) } else { vec![random_signs(n, seed)] };
        let how = (factors == Factors::Cholesky, scale_of(columns, world)?);
        let images = vectors.iter().map(|x| multiply(columns, how, x, world)).collect::<Result<_>>()?;
        let norm = frobenius(columns, how, world)?;
        let scale = how.1;
        Ok(Self { factors, n, vectors, images, norm, scale, exact })
    }

    /// Compares with what the factors do to the vectors. `pivots` are those of all rows of LU.
    ///
    /// # Errors
    /// A thread is refused; a lost rank.
    pub(crate) fn residual<T: Real>(
        &self,
        columns: &[LocalColumns<T>],
        pivots: &[u64],
        world: &World,
    ) -> Result<Residual> {
        let mut squares = 0.0;
        for (x, image) in self.vectors.iter().zip(&self.images) {
            let product = match self.factors {
                Factors::Cholesky => self.by_cholesky(columns, x, world)?,
                Factors::Lu => self.by_lu(columns, x, world)?,
            };
            let mut image = image.clone();
            pivots.iter().enumerate().for_each(|(i, pivot)| image.swap(i, *pivot as usize));
            for (found, wanted) in product.iter().zip(&image) {
                squares += found.iter().zip(wanted).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
            }
        }
        let difference = if self.exact { squares } else { squares / TOGETHER as f64 }.sqrt();
        let scaled = difference / (self.n as f64 * self.norm * T::EPSILON / 2.0);
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
        let one = |local: &LocalColumns<T>| {
            let mut inner = vec![[0.0; TOGETHER]; local.width()];
            Columns { local, part: Part::Lower, scale, x, y: &mut inner }.compute();
            let mut outer = vec![[0.0; TOGETHER]; self.n];
            Rows { local, part: Part::Lower, scale, x: &inner, y: &mut outer }.compute();
            outer
        };
        sum(columns, one, world)
    }

    /// L (U x).
    fn by_lu<T: Real>(&self, columns: &[LocalColumns<T>], x: &Vectors, world: &World) -> Result<Vectors> {
        let upper = |local: &LocalColumns<T>| {
            let own: Vectors = local.columns().map(|j| x[j as usize]).collect();
            let mut image = vec![[0.0; TOGETHER]; self.n];
            Rows { local, part: Part::Upper, scale: self.scale, x: &own, y: &mut image }.compute();
            image
        };
        let inner = sum(columns, upper, world)?;
        let lower = |local: &LocalColumns<T>| {
            let own: Vectors = local.columns().map(|j| inner[j as usize]).collect();
            let mut image = vec![[0.0; TOGETHER]; self.n];
            Rows { local, part: Part::StrictLower, scale: 1.0, x: &own, y: &mut image }.compute();
            // Ones are on the diagonal.
            local.columns().zip(&own).for_each(|(j, x)| add(&mut image[j as usize], x));
            image
        };
        sum(columns, lower, world)
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

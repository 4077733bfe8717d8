//! The same test bodies on a single process, with whole matrices, and on ranks that hold unequal parts.

mod cost;
mod freivalds;
mod kernels;
mod samples;
mod walks;

use super::parts::Parts;
use super::*;
use crate::geometry::{Rect, Span};
use crate::matrix::{LocalBlocks, views_of};
use crate::random::Random;

/// Runs a test on every world.
fn on_each_world(test: impl Fn(&World) + Sync) {
    test(&World::solo(&Monitor::new()));
    for ranks in [1, 2, 3, 7] {
        World::threads(ranks, &Monitor::new(), |world| {
            test(world);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{ranks} ranks: {e}"));
    }
}

/// A product to be judged.
#[derive(Clone, Copy)]
struct Product<'a, T> {
    kernel: Kernel<T>,
    factors: [&'a Matrix<T>; 2],
    scaling: Scaling<T>,
    initial: Option<&'a Matrix<T>>,
    seed: u64,
}

impl<'a, T: Element> Product<'a, T> {
    fn new(kernel: Kernel<T>, a: &'a Matrix<T>, b: &'a Matrix<T>) -> Self {
        Self { kernel, factors: [a, b], scaling: Scaling::none(kernel.one()), initial: None, seed: 7 }
    }

    fn with_scaling(self, scaling: Scaling<T>, initial: Option<&'a Matrix<T>>) -> Self {
        Self { scaling, initial, ..self }
    }

    fn shape(&self) -> Shape {
        let [a, b] = self.factors;
        Shape::new(a.rows() as u64, a.cols() as u64, b.cols() as u64, "test").unwrap()
    }

    /// Verifies C, each rank with its own parts.
    fn verify(&self, c: &Matrix<T>, world: &World) -> Result<Verified> {
        let [a, b] = self.factors;
        let (a, b, c) = (own(a, 1, world), own(b, 2, world), own(c, 3, world));
        let initial = self.initial.map(|initial| own(initial, 4, world));
        let parts = Parts {
            a: views_of(&a),
            b: views_of(&b),
            c: views_of(&c),
            initial: initial.as_ref().map(views_of),
            scaling: self.scaling,
            shape: self.shape(),
        };
        verify_parts(parts, self.kernel, DRAWS, self.seed, world)
    }

    /// Verifies C by a sample.
    fn sample(&self, c: &Matrix<T>, draws: u64, world: &World) -> Result<super::samples::Sampled> {
        let [a, b] = self.factors;
        let (a, b, c) = (own(a, 1, world), own(b, 2, world), own(c, 3, world));
        let (a, b, c) = (views_of(&a), views_of(&b), views_of(&c));
        let parts = Parts { a, b, c, initial: None, scaling: self.scaling, shape: self.shape() };
        super::samples::sample(&parts, self.kernel, draws, self.seed, world)
    }
}

/// This rank's parts of a matrix: a single process holds all of it; otherwise some of nine unequal ones, if
/// any.
fn own<T: Element>(matrix: &Matrix<T>, salt: usize, world: &World) -> LocalBlocks<T> {
    let (rows, cols) = (matrix.rows() as u64, matrix.cols() as u64);
    if world.is_solo() {
        let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
        return vec![(whole, matrix.as_slice().to_vec())];
    }
    let mut blocks = LocalBlocks::new();
    let spans = |cuts: [u64; 4]| cuts.windows(2).map(|w| Span::new(w[0], w[1])).collect::<Vec<_>>();
    let columns = spans([0, cols / 3, cols - cols / 7, cols]);
    for (i, rows) in spans([0, rows / 5, rows / 2, rows]).into_iter().enumerate() {
        for (j, &cols) in columns.iter().enumerate() {
            let number = 3 * i + j;
            if (number * number + number / 2 + salt) % world.size() == world.rank() {
                let row = |i: u64| &matrix.row(i as usize)[cols.start as usize..cols.end as usize];
                let elements = (rows.start..rows.end).flat_map(row).copied().collect();
                blocks.push((Rect::new(rows, cols), elements));
            }
        }
    }
    blocks
}

fn random<T: Element>(rows: usize, cols: usize, seed: u64, size: f64) -> Matrix<T> {
    let mut random = Random::new(seed);
    let unit = |word: u64| (word >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    Matrix::new(rows, cols, (0..rows * cols).map(|_| T::from_f64(size * unit(random.word()))).collect())
}

/// The textbook's three loops, rounding after every step as the element type does.
fn naive<T: Element>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let mut data = Vec::new();
    for i in 0..a.rows() {
        for j in 0..b.cols() {
            data.push((0..a.cols()).fold(T::ZERO, |sum, l| {
                let product = T::from_f64(a.row(i)[l].to_f64() * b.row(l)[j].to_f64());
                T::from_f64(sum.to_f64() + product.to_f64())
            }));
        }
    }
    Matrix::new(a.rows(), b.cols(), data)
}

/// alpha A B + beta C0 by the textbook, either factor or the product being scaled.
fn scaled<T: Element>(
    [a, b]: [&Matrix<T>; 2],
    scaling: Scaling<T>,
    initial: Option<&Matrix<T>>,
    factor_first: bool,
) -> Matrix<T> {
    let (alpha, beta) = (scaling.alpha.to_f64(), scaling.beta.to_f64());
    let times = |m: &Matrix<T>| {
        let elements = m.as_slice().iter().map(|x| T::from_f64(alpha * x.to_f64()));
        Matrix::new(m.rows(), m.cols(), elements.collect())
    };
    let mut c = if factor_first { naive(&times(a), b) } else { times(&naive(a, b)) };
    if let Some(initial) = initial {
        for (x, before) in c.as_mut_slice().iter_mut().zip(initial.as_slice()) {
            let before = T::from_f64(beta * before.to_f64());
            *x = T::from_f64(x.to_f64() + before.to_f64());
        }
    }
    c
}

/// The same matrix with another element.
fn with<T: Element>(matrix: &Matrix<T>, at: usize, value: T) -> Matrix<T> {
    let mut changed = matrix.clone();
    changed.as_mut_slice()[at] = value;
    changed
}

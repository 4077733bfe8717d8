//! Matrices and platforms for the tests of the contract.

use apportion::matrix::{AnyMatrix, Element, Matrix, read_matrix, write_npy};
use apportion::output::OutputFile;
use std::ops::Deref;

/// A separate directory for each test, the binary run in it, and input matrices.
pub struct Bench(apportion_testing::Bench);

impl Deref for Bench {
    type Target = apportion_testing::Bench;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Bench {
    pub fn new() -> Self {
        Self(apportion_testing::Bench::new())
    }

    /// Writes a matrix in C order, by the library's own writer.
    pub fn matrix<T: Element>(&self, name: &str, matrix: &Matrix<T>) {
        let mut file = OutputFile::create(self.path(name)).unwrap();
        write_npy(&mut file, matrix).unwrap();
        file.commit().unwrap();
    }

    pub fn read(&self, name: &str) -> AnyMatrix {
        read_matrix(&self.path(name)).unwrap()
    }
}

/// Small integers of both signs: their products and sums are exact in either type.
pub fn whole<T: Element>(rows: usize, cols: usize, seed: usize) -> Matrix<T> {
    let data = (0..rows * cols).map(|i| T::from_f64(((i * 7 + i / cols * 3 + seed) % 11) as f64 - 5.0));
    Matrix::new(rows, cols, data.collect())
}

/// Three loops.
pub fn product(a: &Matrix<f64>, b: &Matrix<f64>) -> Matrix<f64> {
    let mut c = vec![0.0; a.rows() * b.cols()];
    for (i, line) in c.chunks_exact_mut(b.cols()).enumerate() {
        for (x, &left) in a.row(i).iter().enumerate() {
            for (sum, right) in line.iter_mut().zip(b.row(x)) {
                *sum += left * right;
            }
        }
    }
    Matrix::new(a.rows(), b.cols(), c)
}

/// Two processors of known speed in flop/s: nothing needs measuring.
pub const TWO: &str = "name = \"two\"\n\
    [[processor]]\nname = \"fast\"\nspeed = \"9 Gflop/s\"\n\
    [[processor]]\nname = \"slow\"\nspeed = \"1 Gflop/s\"\n";

/// Numbers whose sums depend on every rounding.
pub fn irrational<T: Element>(rows: usize, cols: usize, seed: f64) -> Matrix<T> {
    let data = (0..rows * cols).map(|i| T::from_f64((i as f64 * 0.731 + seed).sin())).collect();
    Matrix::new(rows, cols, data)
}

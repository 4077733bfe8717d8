//! Problems: what a plan divides.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The largest number of elements of one matrix: doubles represent all counts up to it exactly.
const MOST_ELEMENTS: u128 = 1 << 53;

/// The problem that a plan divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Problem {
    /// C (m x n) = A (m x k) B (k x n).
    Matmul(Shape),
    /// C (n x n) = A A^T, symmetric, where A is n x k: a rank-k update, of which the lower triangle is computed.
    Syrk {
        /// Rows of A, rows and columns of C.
        n: u64,
        /// Columns of A: the inner dimension.
        k: u64,
    },
    /// A domain of m x n cells, each of which exchanges data with its neighbours (a stencil).
    Grid {
        /// Rows.
        m: u64,
        /// Columns.
        n: u64,
    },
    /// n independent units of work.
    Units {
        /// Number of units.
        n: u64,
    },
    /// The vertices of a graph, each of which exchanges data with its neighbours.
    Graph {
        /// Number of vertices.
        n: u64,
        /// Number of edges.
        edges: u64,
    },
    /// The factorisation of a square matrix, by block columns.
    Factorisation {
        /// Into which factors.
        factors: Factors,
        /// Rows and columns.
        n: u64,
        /// Columns of a block; the last may have fewer.
        block: u64,
    },
}

/// The factors of a square matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Factors {
    /// A = L L^T, of a symmetric positive definite matrix.
    Cholesky,
    /// P A = L U, with partial pivoting.
    Lu,
    /// A = L D L^T, of a symmetric matrix, where D has blocks of one and two rows. Pivots are sought in diagonal blocks.
    Ldlt,
}

impl Factors {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cholesky, Self::Lu, Self::Ldlt];

    /// Multiply-adds of the factorisation of n rows: n^3 / 6 or n^3 / 3.
    pub fn multiply_adds(self, n: u64) -> f64 {
        let cube = (n as f64).powi(3);
        cube / if self.is_symmetric() { 6.0 } else { 3.0 }
    }

    /// True if the matrix is symmetric: its lower triangle stands for all.
    pub fn is_symmetric(self) -> bool {
        self != Self::Lu
    }
}

impl std::fmt::Display for Factors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cholesky => "cholesky",
            Self::Lu => "lu",
            Self::Ldlt => "ldlt",
        })
    }
}

impl std::str::FromStr for Factors {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|factors| factors.to_string() == text).ok_or_else(|| {
            let names = Self::ALL.map(|factors| factors.to_string()).join(", ");
            Error::input("`kind`", format!("\"{text}\" names no factors"), format!("choose {names}"))
        })
    }
}

/// The three sizes of a matrix product: A is m x k, B is k x n, C is m x n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of A, rows of B: the inner dimension.
    pub k: u64,
    /// Columns of B and C.
    pub n: u64,
}

impl Shape {
    /// The shape of a product; `place` names its source in errors.
    ///
    /// # Errors
    /// A size of 0, or a matrix of more than 2^53 elements: exit code 2.
    pub fn new(m: u64, k: u64, n: u64, place: &str) -> Result<Self> {
        for (name, size) in [("m", m), ("k", k), ("n", n)] {
            if size == 0 {
                return Err(Error::input(
                    place,
                    format!("{name} is zero"),
                    "give every size as a whole number of at least 1",
                ));
            }
        }
        for (name, a, b) in [("m x n", m, n), ("m x k", m, k), ("k x n", k, n)] {
            if u128::from(a) * u128::from(b) > MOST_ELEMENTS {
                return Err(Error::input(
                    place,
                    format!("a matrix of {a} x {b} ({name}) has more than 2^53 elements"),
                    "give smaller sizes",
                ));
            }
        }
        Ok(Self { m, k, n })
    }

    /// Number of elements of C.
    pub fn elements(&self) -> u64 {
        self.m * self.n
    }

    /// Floating-point operations of the whole product: 2 m k n.
    pub fn flops(&self) -> f64 {
        2.0 * self.m as f64 * self.k as f64 * self.n as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        assert_eq!(Shape::new(3, 4, 5, "s").unwrap(), Shape { m: 3, k: 4, n: 5 });
        for [m, k, n] in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [99_999_999_999; 3]] {
            assert_eq!(Shape::new(m, k, n, "s").unwrap_err().exit_code(), 2, "{m} {k} {n}");
        }
    }
}

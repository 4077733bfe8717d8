//! What surrounds a product, as in BLAS: C = alpha A B + beta C0.

use super::{Element, Matrix};

/// The two scalars and the initial matrix of C = alpha A B + beta C0, over the product's semiring.
///
/// As in BLAS, what a zero scalar is the factor of is not read: its NaN and infinities do not reach C.
#[derive(Debug, Clone, Copy)]
pub struct Scaling<'a, T> {
    /// The product's factor.
    pub alpha: T,
    /// The initial matrix's factor.
    pub beta: T,
    /// C0, of C's size; `None` for none, whatever beta is.
    pub initial: Option<&'a Matrix<T>>,
}

impl<'a, T: Element> Scaling<'a, T> {
    /// C = A B, where `one` is the semiring's.
    pub fn none(one: T) -> Self {
        Self { alpha: one, beta: one, initial: None }
    }

    /// Alpha and beta.
    pub fn scalars(&self) -> [T; 2] {
        [self.alpha, self.beta]
    }

    /// The initial matrix where it counts, given the semiring's zero.
    pub(crate) fn counted(&self, zero: T) -> Option<&'a Matrix<T>> {
        self.initial.filter(|_| self.beta != zero)
    }
}

//! The scalars around a product, as in BLAS: C = alpha A B + beta C0.

use super::Element;

/// The two scalars of C = alpha A B + beta C0, over the product's semiring.
///
/// As in BLAS, what a zero scalar is the factor of is not read: its NaN and infinities do not reach C.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling<T> {
    /// The product's factor.
    pub alpha: T,
    /// The initial matrix's factor.
    pub beta: T,
}

impl<T: Element> Scaling<T> {
    /// C = A B + C0, where `one` is the semiring's.
    pub fn none(one: T) -> Self {
        Self { alpha: one, beta: one }
    }

    /// Alpha and beta.
    pub fn scalars(&self) -> [T; 2] {
        [self.alpha, self.beta]
    }
}

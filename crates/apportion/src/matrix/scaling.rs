//! The scalars around a product, as in BLAS: C = alpha A B + beta C0.

use super::Element;

/// The two scalars of C = alpha A B + beta C0, over the product's semiring.
///
/// As in BLAS, the operand of a zero scalar is not read: its NaN and infinities do not reach C.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling<T> {
    /// The factor of the product.
    pub alpha: T,
    /// The factor of the initial matrix.
    pub beta: T,
}

impl<T: Element> Scaling<T> {
    /// C = A B + C0, where `one` is the semiring's one.
    pub fn none(one: T) -> Self {
        Self { alpha: one, beta: one }
    }

    /// Alpha and beta.
    pub fn scalars(&self) -> [T; 2] {
        [self.alpha, self.beta]
    }
}

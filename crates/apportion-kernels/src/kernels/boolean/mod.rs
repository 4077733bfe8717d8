//! Products of matrices of bits: C := C or A and B.

mod matrix;
mod product;

pub use matrix::BitMatrix;
pub(super) use matrix::{or_and, some_pair};

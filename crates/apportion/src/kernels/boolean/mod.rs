//! Products of matrices of bits: C := C or A and B.

mod bytes;
mod matrix;
mod product;
mod rows;
mod tables;
mod wide;

pub(super) use bytes::{or_and, some_pair};
pub use matrix::BitMatrix;

//! Products of matrices of bits: C := C or A and B.

mod matrix;
mod product;

pub use matrix::BitMatrix;

//! Products of matrices of bits: C := C or A and B.

mod matrix;
mod product;
mod wide;

pub use matrix::BitMatrix;

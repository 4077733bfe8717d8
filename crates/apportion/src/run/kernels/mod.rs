//! The hot loops: the only place, with MPI, where `unsafe` is allowed.

mod gemm;

pub use gemm::{Tile, gemm};

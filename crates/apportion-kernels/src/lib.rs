//! Matrices in memory and on disk, and the loops over them: products over plus-times, max-plus, min-plus and
//! or-and, paths with their predecessors, and the MPDATA stencil. Every kernel runs on one thread; the crate
//! `apportion` divides the work among processors.
//!
//! ```
//! use apportion_kernels::kernels::{Kernel, Semiring};
//! use apportion_kernels::matrix::Matrix;
//!
//! // Lengths of the shortest paths of at most two edges.
//! let absent = f64::INFINITY;
//! let a = Matrix::new(2, 2, vec![0.0, 3.0, absent, 0.0]);
//! let mut c = Matrix::new(2, 2, vec![absent; 4]);
//! Kernel::new(Semiring::MinPlus)?.multiply_add(a.view(), a.view(), c.view_mut());
//! assert_eq!(c.row(0), [0.0, 3.0]);
//! # Ok::<(), apportion_kernels::Error>(())
//! ```

pub mod kernels;
pub mod matrix;

pub use apportion_core::{Error, Rank, Rect, Result, Span, error, geometry};
use apportion_core::{files, input, memory, output, process_memory, random, threads, units};

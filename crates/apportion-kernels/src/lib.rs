//! Matrices in memory and on disk, and the loops over them: products over plus-times, max-plus, min-plus and
//! or-and, paths with their predecessors, and the MPDATA stencil. Every kernel runs on one thread, or on a
//! [device](mod@device); the crate `apportion` divides the work among processors.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion_kernels::kernels::{Kernel, View, ViewMut};
//!
//! // Lengths of the shortest paths of at most two edges.
//! let absent = f64::INFINITY;
//! let a = [0.0, 3.0, absent, 0.0];
//! let mut c = [absent; 4];
//! Kernel::min_plus().update(View::dense(&a, 2, 2), View::dense(&a, 2, 2), ViewMut::dense(&mut c, 2, 2));
//! assert_eq!(c, [0.0, 3.0, absent, 0.0]);
//! ```
#![warn(unreachable_pub)]

pub mod device;
pub mod kernels;
pub mod matrix;

#[cfg(unix)]
use apportion_core::threads;
pub use apportion_core::{Error, Result, error};
use apportion_core::{files, geometry, input, memory, output, process_memory, random, units};

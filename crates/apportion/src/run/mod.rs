//! Carrying a plan out.

pub mod kernels;

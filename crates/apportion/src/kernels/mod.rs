//! The hot loops: the only place, with MPI, where `unsafe` is allowed. Products over four semirings, on one
//! thread.
//!
//! [`gemm`] is plus-times, and [`Blas`] a library's in its place;
//! [`max_plus`] and [`min_plus`] are packed and blocked like a gemm; [`BitMatrix`] multiplies packed bits;
//! [`donor_cell`] advects. [`PathElement`] is a path: its length, its edges, its last vertex.

mod blas;
mod boolean;
mod donor_cell;
mod gemm;
mod kernel;
mod path_element;
mod scaling;
mod semiring;
mod tropical;
mod view;

pub use blas::Blas;
pub use boolean::BitMatrix;
pub use donor_cell::{Advectable, Advected, donor_cell};
pub use gemm::{Real, gemm};
pub use kernel::Kernel;
pub use path_element::PathElement;
use path_element::paths_product;
pub use semiring::Semiring;
pub use tropical::{Tropical, check_max_plus, check_min_plus, instruction_set, max_plus, min_plus};
pub use view::{View, ViewMut};

//! The hot loops: products over four semirings, on one thread or by the threads of a [`Team`]. With devices, MPI and
//! the threads of the engine, this is the only module that may use `unsafe`.
//!
//! [`gemm()`] computes plus-times, [`max_plus`] and [`min_plus`] the tropical products, all by one packed and
//! blocked body; [`Blas`] computes plus-times with an external library. [`BitMatrix`] multiplies packed bits,
//! [`factor`] factors panels, and [`mpdata`] advects. A [`PathElement`] is a path: its length, its number of
//! edges and its last vertex.

mod blas;
mod boolean;
mod donor_cell;
pub mod factor;
mod gemm;
mod instructions;
mod kernel;
pub mod mpdata;
mod packed;
mod path_element;
mod semiring;
mod sparse;
mod team;
mod tropical;
mod view;

pub use blas::Blas;
pub use boolean::BitMatrix;
pub use donor_cell::{Advected, donor_cell};
pub use gemm::{Real, gemm};
#[cfg(target_arch = "x86_64")]
use instructions::has;
pub use instructions::{Instructions, Loop, prefetch, widest};
pub use kernel::Kernel;
pub use packed::PackedMemory;
pub use path_element::PathElement;
use path_element::paths_product;
pub use semiring::Semiring;
pub use sparse::{SparseRows, SteadySum, check_sums};
pub use team::{Alone, Team, fill};
pub use tropical::{Tropical, instruction_set, max_plus, min_plus};
use tropical::{check_max_plus, check_min_plus};
pub use view::{View, ViewMut};

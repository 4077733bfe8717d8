//! The hot loops: the only place, with MPI, where `unsafe` is allowed. Products over four semirings, on one thread.
//!
//! [`gemm`] is plus-times, and [`Blas`] a library's in its place;
//! [`max_plus`] and [`min_plus`] are packed and blocked like a gemm; [`BitMatrix`] multiplies packed bits;
//! [`donor_cell`] advects; [`power`], [`closure`] and [`shortest_paths`] are built on them. [`Leg`] is an element that remembers
//! its path's last step.

mod blas;
mod boolean;
mod closure;
mod donor_cell;
mod gemm;
mod legs;
mod paths;
mod power;
mod semiring;
mod tropical;
mod view;

pub use blas::Blas;
pub use boolean::BitMatrix;
pub use closure::closure;
pub use donor_cell::{Advectable, Advected, donor_cell};
pub use gemm::{Real, Tile, gemm};
pub use legs::Leg;
pub(super) use legs::legs_product;
pub use paths::{NO_PREDECESSOR, Paths, shortest_paths};
pub use power::{Number, power};
pub use semiring::Semiring;
pub use tropical::{Tropical, check_max_plus, check_min_plus, instruction_set, max_plus, min_plus};
pub use view::{View, ViewMut};

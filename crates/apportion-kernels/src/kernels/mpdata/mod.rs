//! MPDATA on a box of cells of a grid of one to three dimensions: an upwind pass, and corrective passes that
//! carry back what it diffused.
//!
//! Sources: P. K. Smolarkiewicz, "A fully multidimensional positive definite advection transport algorithm
//! with small implicit diffusion", J. Comput. Phys. 54, 1984; the limiter of Smolarkiewicz and Grabowski, J.
//! Comput. Phys. 86, 1990; options and third-order terms of Smolarkiewicz and Margolin, J. Comput. Phys. 140,
//! 1998. In three dimensions both cross terms per axis are kept.

mod flat;
mod frame;
mod options;
mod step;
mod subdomain;
mod vectors;

pub use frame::{Cells, Domain, Place};
pub use options::{Advectable, Boundary, Scheme};
pub use subdomain::{Exchange, Part, Source, Stencil, Subdomain, sources};

#[cfg(test)]
mod tests;

//! Meshes, graphs and sparse matrices divided among unequal processors: read, divided by METIS or Scotch with the weights
//! that measured speeds give, placed on the network, forecast, and run as products of a sparse matrix with a vector.
//!
//! The crate uses the public interface of `apportion` alone. It promises nothing of its own: what is kept stable is
//! `apportion`, with what that re-exports.
//!
//! ```
//! use apportion::model::Machine;
//! use apportion_graph::{Family, GraphMethod, GraphOptions, divide_graph, generate};
//!
//! // A mesh of 30 x 30 vertices in consecutive parts for two processors, of which one is twice as fast.
//! let mesh = generate(Family::Mesh2, 900, 1)?;
//! let options = GraphOptions { methods: vec![GraphMethod::Contiguous], ..GraphOptions::default() };
//! let best = divide_graph(&mesh.graph, None, &Machine::from_speeds(&[2.0, 1.0])?, &options)?.remove(0);
//! assert_eq!(best.plan.shares, [600, 300]);
//! // Each sends the values of one row.
//! assert_eq!(best.plan.metrics.volume, Some(60));
//! # Ok::<(), apportion::Error>(())
//! ```
#![warn(unreachable_pub)]

mod coordinates;
mod divide;
mod generate;
mod graph;
mod partition;
mod parts;
mod raster;
mod read;
mod sparse;
mod spmv;
mod write;

pub use coordinates::{Coordinates, read_coordinates};
pub use divide::{GraphChoice, GraphOptions, divide_evenly, divide_graph};
pub use generate::{Family, Generated, generate, laplacian};
pub use graph::{Defect, Graph, RawGraph};
pub use partition::GraphMethod;
pub use raster::raster;
pub use read::{GraphFile, GraphFormat, ReadOptions, read_graph, read_sparse};
pub use sparse::{SparseMatrix, Weights};
pub use spmv::{SpmvMatrix, SpmvMethod, SpmvOutcome, SpmvTask, VectorSource, spmv};
pub use write::{parts_text, write_coordinates, write_market, write_metis};

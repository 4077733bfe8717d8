//! The native half of the Python package `apportion`: values and calls of the library as Python sees them.
//! The Python half (`python/apportion`) prepares arguments and chooses the array types of results.
//!
//! Every call that may take long runs without the interpreter's lock and listens to Ctrl-C ([`wait`]).

mod advection;
mod arrays;
mod balancer;
mod errors;
mod factor;
mod forecast;
mod graph;
mod layouts;
mod machine;
mod models;
mod pieces;
mod product;
mod report;
mod shares;
mod sweeps;
mod value;
mod wait;

use pyo3::prelude::*;

/// The native half of apportion.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::advection::advect;
    #[pymodule_export]
    use super::arrays::Array;
    #[pymodule_export]
    use super::balancer::{Balancer, Decision};
    #[pymodule_export]
    use super::factor::{factor, solve};
    #[pymodule_export]
    use super::forecast::{Forecast, simulate};
    #[pymodule_export]
    use super::graph::{GraphParts, graph, spmv};
    #[pymodule_export]
    use super::layouts::{Layout, layout};
    #[pymodule_export]
    use super::models::{Models, cores_are_alike, processors, summarise};
    #[pymodule_export]
    use super::pieces::Pieces;
    #[pymodule_export]
    use super::product::{product, product_on};
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::shares::{Shares, shares};
    #[pymodule_export]
    use super::sweeps::{Sweep, sweep};
    #[pymodule_export]
    use super::value::restore;
    #[pymodule_export]
    use super::wait::fail;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

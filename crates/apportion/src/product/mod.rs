//! The main job once everything is decided: forecast, run, verify; powers and closures, adaptive runs, panels from disk.

mod adaptive;
mod checkpoint;
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
mod distributed;
mod multiply;
mod panels;
mod powers;

pub(crate) use adaptive::Segments;
pub use adaptive::{Adaptation, Adaptive, Repartition};
pub use checkpoint::{Checkpoint, Fingerprint, Manifest};
#[cfg(all(unix, target_pointer_width = "64", target_endian = "little"))]
pub use distributed::{closure_mpi, measure_world, multiply_mpi, paths_mpi, power_mpi};
pub(crate) use multiply::WRONG_FRACTION;
pub use multiply::{MatmulJob, multiply};
pub use panels::{Files, PanelRun, Panels, check_panels};
pub use powers::{matrix_closure, matrix_paths, matrix_power};

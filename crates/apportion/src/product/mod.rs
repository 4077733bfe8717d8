//! The main jobs once everything is decided: forecast, run and verify products; powers and closures, adaptive
//! runs, panels from disk.

mod adaptive;
mod application;
mod checkpoint;
mod multiply;
mod operands;
mod outcome;
mod panels;
mod powers;
mod segments;

pub use adaptive::{Adaptation, Adaptive, Repartition};
pub(crate) use application::TailOutcome;
pub use checkpoint::{Checkpoint, Fingerprint, Manifest};
pub use multiply::{MatmulJob, multiply};
pub use operands::{OperandViews, Operands, OwnRects, whole_block, whole_matrix};
pub(crate) use outcome::RunForecasts;
pub use outcome::RunReport;
pub use panels::Panels;
pub(crate) use panels::{Carriers, Files, PanelRun, Watched, check_panels};
pub use powers::{ClosureMethod, matrix_closure};
pub(crate) use powers::{matrix_paths, matrix_power, products_of_power};

#[cfg(test)]
mod tests;

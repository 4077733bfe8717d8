//! Who does what: 1-D shares and 2-D layouts, with their metrics.

mod export;
mod file;
mod layout;
mod metrics;
mod problem;
pub mod shapes;
pub mod shares;

pub use export::{ExportFormat, Exported, export};
pub use file::{Forecast, Plan, read_plan};
pub use layout::{Layout, Part};
pub use metrics::{Metrics, communication_free, lower_bound};
pub use problem::{Problem, Shape};

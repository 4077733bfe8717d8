//! Who does what: 1-D shares and 2-D layouts, with their metrics.

pub mod arrange;
mod export;
mod file;
mod form;
mod granularity;
mod hierarchy;
mod layout;
mod messages;
mod metrics;
mod problem;
mod repeat;
pub mod shapes;
pub mod shares;

pub use export::{ExportFormat, Exported, export};
pub use file::{Forecast, Plan, read_plan};
pub use form::Form;
pub use granularity::in_blocks;
pub use hierarchy::Hierarchy;
pub use layout::{Layout, Part};
pub(crate) use messages::relayed;
pub use messages::{message_steps, star_volume};
pub use metrics::{Metrics, communication_free, interrupts, lower_bound, outlines};
pub use problem::{Problem, Shape};
pub use repeat::repeated;

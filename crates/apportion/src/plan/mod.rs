//! Who does what: 1-D shares and 2-D layouts, with their metrics.

pub mod arrange;
mod constraints;
mod export;
mod file;
mod layout;
mod messages;
mod metrics;
mod problem;
pub mod shapes;
pub mod shares;

pub(crate) use constraints::Member;
pub use constraints::{Hierarchy, LayoutConstraints, in_blocks, repeated};
pub use export::{ExportFormat, Exported, export};
pub use file::{Forecast, Plan, read_plan};
pub use layout::{Layout, Part};
pub(crate) use messages::relayed;
pub use messages::{message_steps, star_volume};
pub use metrics::{Metrics, communication_free, interrupts, lower_bound, outlines, volume_lower_bound};
pub use problem::{Problem, Shape};

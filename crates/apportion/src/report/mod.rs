//! What people and other programs read: tables, run reports, traces, pictures.

mod chrome;
mod run;
mod text;

pub use chrome::chrome_trace;
pub use run::RunReport;
pub use text::{pairs, table};

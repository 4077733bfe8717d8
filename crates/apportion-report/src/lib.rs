//! Results for people: tables, timelines, pictures and pages. Everything here is a pure function of a result, or of its
//! record (`apportion::record`), and knows no application.
//!
//! This crate promises nothing of its own: what is kept stable is `apportion`, with what that re-exports.
//!
//! ```
//! use apportion_report::table;
//!
//! let text = table(&["processor", "share"], [vec!["new".to_owned(), "900".to_owned()]]);
//! assert!(text.contains("new"));
//! ```
#![warn(unreachable_pub)]

mod bars;
mod baselines;
mod canvas;
mod chrome;
mod curves;
mod events;
mod field_png;
mod gantt;
mod legend;
mod markup;
mod page;
mod palette;
mod plot;
mod run;
mod sheet;
mod svg;
mod text;

pub use bars::bars;
pub use baselines::{About, gain_clause, gain_lines, gain_text};
pub(crate) use baselines::{baselines_text, run_gain_text};
pub use chrome::chrome_timeline;
pub use curves::SpeedPlot;
pub use events::events_svg;
pub use field_png::{field_png, field_png_spacing};
pub use gantt::{Timeline, timeline_svg};
pub use page::{Document, report_page};
use plot::spread;
pub use plot::{Plot, Series, plot_svg, plot_svg_on, wide_axes};
pub use run::{adaptation_lines, forecast_text, messages_text, panels_text, run_summary, run_text};
pub use sheet::{Candidate, sheet_svg};
pub use svg::{graph_svg, plan_svg};
pub use text::{pairs, set_text_look, set_text_width, table, wrap_text};

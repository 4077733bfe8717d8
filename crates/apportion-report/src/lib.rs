//! Results for people and other programs: tables, JSON, timelines and pictures. Everything here is a pure
//! function of a result.
//!
//! ```
//! use apportion_report::table;
//!
//! let text = table(&["processor", "share"], [vec!["new".to_owned(), "900".to_owned()]]);
//! assert!(text.contains("new"));
//! ```

mod advection;
mod bars;
mod baselines;
mod canvas;
mod chrome;
mod curves;
mod events;
mod factorisation;
mod field_png;
mod gantt;
mod lanes;
mod legend;
mod markup;
mod page;
mod palette;
mod plot;
mod run;
mod sheet;
mod solution;
mod svg;
mod text;

pub use bars::bars;
pub use baselines::{About, baselines_text, gain_clause, gain_lines, gain_text, run_gain_text};
pub use chrome::chrome_timeline;
pub use curves::SpeedPlot;
pub use events::{EventBar, EventChart, EventLane, events_svg};
pub use field_png::{field_png, field_png_spacing};
pub use gantt::{Timeline, timeline_svg};
pub use lanes::lanes_value;
pub use page::{Document, report_page};
use plot::spread;
pub use plot::{Plot, Series, plot_svg, plot_svg_on, wide_axes};
pub use run::{adaptation_lines, forecast_text, messages_text, off, run_summary};
pub use sheet::{Candidate, sheet_svg};
pub use solution::add_solution;
pub use svg::plan_svg;
pub use text::{pairs, set_text_look, set_text_width, table, wrap_text};

/// A result that people and other programs read.
pub trait Report {
    /// One JSON object.
    fn to_value(&self) -> serde_json::Value;

    /// A table and the totals.
    fn to_text(&self) -> String;
}

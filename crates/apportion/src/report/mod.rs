//! Output for people and other programs: tables, run reports, traces, pictures. Pure functions of results.

mod chrome;
mod gantt;
mod legend;
mod palette;
mod plot;
mod run;
mod svg;
mod text;

pub use chrome::chrome_trace;
pub use gantt::trace_svg;
pub use plot::{Plot, Series, plot_svg, plot_svg_on};
pub use run::off;
pub use svg::plan_svg;
pub use text::{pairs, table};

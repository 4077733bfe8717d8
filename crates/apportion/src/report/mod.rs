//! What is shown of plans and runs: pure functions of results.

mod legend;
mod palette;
mod svg;

pub use svg::plan_svg;

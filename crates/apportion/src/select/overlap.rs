//! Sizes of square corners for overlap, by forecast.

use crate::error::Result;
use crate::plan::shapes::{square_corner_for_overlap, square_corner_scaled};
use crate::plan::{Layout, Shape};

/// How the parts of a layout are sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizing {
    /// In proportion to the speeds.
    #[default]
    Proportional,
    /// From shares in proportion to the speeds, to those of least forecast (Becker 2010, section 6.1.4, for
    /// any layout).
    ByForecast,
    /// Smaller squares, so that a run that overlaps communication with computation ends sooner (Becker 2010,
    /// section 6.1.4).
    ForOverlap,
}

/// The seconds that a layout takes.
pub type ForecastOf<'a> = &'a dyn Fn(&Layout) -> Result<f64>;

/// The square corner of least forecast among squares with 20 to 100 % of the areas in proportion, and with
/// those of [`square_corner_for_overlap`], which alone remain if there is no forecast. Never worse than in
/// proportion. 82 forecasts.
///
/// # Errors
/// Squares that do not fit (exit code 1), and those of `forecast`.
pub fn corner_for_overlap(shape: Shape, weights: &[f64], forecast: Option<ForecastOf<'_>>) -> Result<Layout> {
    let thesis = square_corner_for_overlap(shape, weights)?;
    let Some(forecast) = forecast else { return Ok(thesis) };
    let mut best = (forecast(&thesis)?, thesis);
    for percent in (20..=100).rev() {
        let layout = square_corner_scaled(shape, weights, f64::sqrt(f64::from(percent) / 100.0))?;
        let seconds = forecast(&layout)?;
        if seconds < best.0 {
            best = (seconds, layout);
        }
    }
    Ok(best.1)
}

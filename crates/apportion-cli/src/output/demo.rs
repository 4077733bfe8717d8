//! The demo's runs side by side.

use apportion::product::RunReport;
use apportion::report::{off, table};
use apportion::units;

/// One row per run.
pub fn comparison(reports: &[RunReport]) -> String {
    let slowest = reports.iter().map(RunReport::seconds).fold(0.0, f64::max);
    let rows = reports.iter().map(|r| {
        let seconds = r.seconds();
        vec![
            r.plan.method.clone(),
            units::show_count(u128::from(r.volume())),
            units::show_seconds(r.forecast_seconds),
            units::show_seconds(seconds),
            off(r.forecast_seconds, seconds),
            format!("{:.2} x", slowest / seconds),
            if r.error_probability.is_some() { "yes" } else { "no" }.into(),
        ]
    });
    table(&["plan", "elements moved", "forecast", "measured", "forecast is", "speed-up", "verified"], rows)
}

//! Measured speed functions as a table.

use apportion::model::Models;
use apportion::report::table;

/// A table of all points; for a product, with its pivot block, in Gflop/s.
pub fn text(models: &Models, block: Option<u64>) -> String {
    let rows = models.models.iter().flat_map(|m| {
        m.points().iter().map(move |p| {
            vec![
                m.processor().to_owned(),
                format!("{:.0}", p.size),
                format!("{:.3e}", p.seconds),
                format!("{:.1} %", 100.0 * p.ci / p.seconds),
                p.repetitions.to_string(),
                match block {
                    Some(block) => format!("{:.2}", 2e-9 * p.speed() * block as f64),
                    None => format!("{:.4e}", p.speed()),
                },
            ]
        })
    });
    let speed = if block.is_some() { "Gflop/s" } else { "size/s" };
    table(&["processor", "size", "seconds", "+-", "times", speed], rows)
}

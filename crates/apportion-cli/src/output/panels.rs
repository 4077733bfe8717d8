//! How a product was cut into panels: a field for programs, lines for readers.

use apportion::platform::peak_memory;
use apportion::product::Panels;
use apportion::report::pairs;
use apportion::units;
use serde_json::{Value, json};

/// How a product was cut.
pub struct Cuts {
    pub count: usize,
    pub panels: Panels,
    /// The reason for this cut.
    pub because: &'static str,
    /// Number of panels that already existed.
    pub resumed: usize,
    /// The requested limit, in bytes.
    pub cap: Option<u64>,
    /// Maximum number of bytes that the process was expected to hold.
    pub predicted: u64,
}

/// The `panels` object of `run.json`.
pub fn cut_value(cuts: &Cuts) -> Value {
    json!({
        "count": cuts.count,
        "rows": cuts.panels.rows,
        "segment": cuts.panels.segment,
        "decided_by": cuts.because,
        "resumed": cuts.resumed,
        "memory_cap_bytes": cuts.cap,
        "predicted_memory_bytes": cuts.predicted,
        "peak_resident_bytes": peak_memory(),
    })
}

/// The lines below the table.
pub fn cut_text(cuts: &Cuts) -> String {
    let shown = |bytes: u64| units::show_bytes(bytes as f64);
    let Cuts { count, panels, because, resumed, predicted, .. } = cuts;
    let (rows, segment) = (panels.rows, panels.segment);
    let cut =
        format!("{count} of {rows} rows of C, inner segments of {segment}, by {because}; {resumed} resumed");
    let peak = peak_memory().map_or_else(|| "unknown".into(), shown);
    let memory = format!("{} predicted for the whole process, {peak} held at most", shown(*predicted));
    pairs(&[("panels  ", cut), ("memory  ", memory)])
}

//! How a product was cut into panels: a field for programs, lines for readers.

use apportion::job::{CutReason, PanelOutcome};
use apportion::process_memory::peak_memory;
use apportion::units;
use apportion_report::pairs;
use serde_json::{Value, json};

/// Why, in the terms of the command line.
fn reason(panels: &PanelOutcome) -> &'static str {
    match panels.reason {
        CutReason::Panels => "--panels",
        CutReason::Memory => "--memory",
        CutReason::ProcessorMemory => "the processors' memory",
        CutReason::Default => "default",
        CutReason::Resumed => "the run that began it",
    }
}

/// The `panels` object of `run.json`.
pub fn panels_value(cuts: &PanelOutcome) -> Value {
    json!({
        "count": cuts.count,
        "rows": cuts.panels.rows,
        "segment": cuts.panels.segment,
        "decided_by": reason(cuts),
        "resumed": cuts.resumed,
        "memory_cap_bytes": cuts.memory,
        "predicted_memory_bytes": cuts.predicted,
        "peak_resident_bytes": peak_memory(),
    })
}

/// The lines below the table.
pub fn panels_text(cuts: &PanelOutcome) -> String {
    let shown = |bytes: u64| units::show_bytes(bytes as f64);
    let PanelOutcome { count, panels, resumed, predicted, .. } = cuts;
    let because = reason(cuts);
    let (rows, segment) = (panels.rows, panels.segment);
    let cut =
        format!("{count} of {rows} rows of C, inner segments of {segment}, by {because}; {resumed} resumed");
    let peak = peak_memory().map_or_else(|| "unknown".into(), shown);
    let memory = format!("{} predicted for the whole process, {peak} held at most", shown(*predicted));
    pairs(&[("panels  ", cut), ("memory  ", memory)])
}

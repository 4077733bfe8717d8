//! How a product was cut into panels, and a factorisation into slabs: a field for programs, lines for readers.

use apportion::job::{CutReason, PanelOutcome};
use apportion::process_memory::peak_memory;
use apportion::units;
use apportion_factor::SlabOutcome;
use apportion_report::pairs;
use serde_json::{Value, json};

/// Why, in the terms of the command line.
fn reason(of: CutReason) -> &'static str {
    match of {
        CutReason::Panels => "--panels",
        CutReason::Memory => "--memory",
        CutReason::ProcessorMemory => "the processors' memory",
        CutReason::FreeMemory => "free memory",
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
        "decided_by": reason(cuts.reason),
        "resumed": cuts.resumed,
        "memory_cap_bytes": cuts.memory,
        "predicted_memory_bytes": cuts.predicted,
        "peak_resident_bytes": peak_memory(),
    })
}

/// The lines below the table.
pub fn panels_text(cuts: &PanelOutcome) -> String {
    let PanelOutcome { count, panels, resumed, predicted, .. } = cuts;
    let because = reason(cuts.reason);
    let (rows, segment) = (panels.rows, panels.segment);
    let cut =
        format!("{count} of {rows} rows of C, inner segments of {segment}, by {because}; {resumed} resumed");
    pairs(&[("panels  ", cut), ("memory  ", memory(*predicted))])
}

/// What the process was expected to hold, and what it held.
fn memory(predicted: u64) -> String {
    let shown = |bytes: u64| units::show_bytes(bytes as f64);
    let peak = peak_memory().map_or_else(|| "unknown".into(), shown);
    format!("{} predicted for the whole process, {peak} held at most", shown(predicted))
}

/// The `slabs` object of `run.json` of a factorisation.
pub fn factor_slabs_value(slabs: &SlabOutcome) -> Value {
    json!({
        "count": slabs.count,
        "columns": slabs.columns,
        "decided_by": reason(slabs.reason),
        "blocks": slabs.blocks,
        "resumed": slabs.resumed,
        "memory_cap_bytes": slabs.memory,
        "predicted_memory_bytes": slabs.predicted,
        "peak_resident_bytes": peak_memory(),
    })
}

/// The lines below the table.
pub fn factor_slabs_text(slabs: &SlabOutcome) -> String {
    let SlabOutcome { count, columns, blocks, resumed, predicted, .. } = slabs;
    let plural = if *count == 1 { "" } else { "s" };
    let because = reason(slabs.reason);
    let cut = format!(
        "{count} slab{plural} of {columns} columns, by {because}; {resumed} of {blocks} blocks resumed"
    );
    pairs(&[("slabs   ", cut), ("memory  ", memory(*predicted))])
}

//! How a product was cut into panels, and a factorisation into slabs.

use apportion::job::{CutReason, PanelOutcome};
use apportion::record::{FactorSlabs, HeldMemory, PanelsRun};
use apportion_factor::SlabOutcome;

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

/// The panels of a product.
pub fn panels_run(cuts: &PanelOutcome) -> PanelsRun {
    PanelsRun {
        count: cuts.count,
        rows: cuts.panels.rows,
        segment: cuts.panels.segment,
        decided_by: reason(cuts.reason).into(),
        resumed: cuts.resumed,
        held: HeldMemory::of_process(cuts.memory, cuts.predicted),
    }
}

/// The slabs of a factorisation.
pub fn factor_slabs(slabs: &SlabOutcome) -> FactorSlabs {
    FactorSlabs {
        count: slabs.count,
        columns: slabs.columns,
        decided_by: reason(slabs.reason).into(),
        blocks: slabs.blocks,
        resumed: slabs.resumed,
        held: HeldMemory::of_process(slabs.memory, slabs.predicted),
    }
}

//! Language-model servers that split layers or tensors over devices.

use super::{Exported, without_zeros};

/// Proportions by device; 0 is allowed and preserves the device numbers.
pub(super) fn llama_cpp(shares: &[u64]) -> Exported {
    Exported { text: format!("--tensor-split {}\n", list(shares.iter().copied())), warnings: Vec::new() }
}

/// Layers of each pipeline stage.
pub(super) fn vllm(names: &[String], shares: &[u64]) -> Exported {
    let (stages, warnings) = without_zeros(names, shares, "vLLM");
    let layers = list(stages.iter().map(|(_, share)| *share));
    Exported { text: format!("VLLM_PP_LAYER_PARTITION={layers}\n"), warnings }
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

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

/// llama.cpp's tensor parallelism (`--split-mode tensor`), with the same proportions.
pub(super) fn llama_cpp_tensor(shares: &[u64]) -> Exported {
    let text = format!("--split-mode tensor --tensor-split {}\n", list(shares.iter().copied()));
    Exported { text, warnings: Vec::new() }
}

/// Layers of each pipeline stage.
pub(super) fn sglang(names: &[String], shares: &[u64]) -> Exported {
    let (stages, warnings) = without_zeros(names, shares, "SGLang");
    let layers = list(stages.iter().map(|(_, share)| *share));
    Exported { text: format!("SGLANG_PP_LAYER_PARTITION={layers}\n"), warnings }
}

/// The pipeline layout of Megatron-LM: the embedding (E) is before the first stage's layers (t), the loss (L)
/// after the last one's. Stages without layers are allowed.
pub(super) fn megatron(shares: &[u64]) -> Exported {
    let stages: Vec<String> = (shares.iter().enumerate())
        .map(|(i, &layers)| {
            let embedding = if i == 0 { "E" } else { "" };
            let loss = if i + 1 == shares.len() { "L" } else { "" };
            let own = if layers == 0 { String::new() } else { format!("t*{layers}") };
            [embedding, &own, loss].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        })
        .collect();
    let text = format!(
        "--pipeline-model-parallel-size {} --pipeline-model-parallel-layout \"{}\"\n",
        shares.len(),
        stages.join("|")
    );
    Exported { text, warnings: Vec::new() }
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

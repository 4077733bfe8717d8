//! Language-model servers that split layers or tensors over devices.

use super::{Export, without_zeros};
use crate::error::{Error, Result};

/// More layers than any model has: below it, llama.cpp's single precision tells them apart.
const MOST_LAYERS: u64 = 1 << 20;

/// Numbers by device, from which llama.cpp places exactly these shares; 0 is allowed and preserves the device
/// numbers. llama.cpp gives position i of n layers and the output layer to the first device whose cumulated
/// part of the sum exceeds i / (n + 1) (`load_tensors` in its src/llama-model.cpp). The output layer is thus
/// one position more, on the last device with layers.
///
/// # Errors
/// More layers than 2^20: exit code 2.
pub(super) fn llama_cpp(shares: &[u64]) -> Result<Export> {
    let layers: u128 = shares.iter().map(|&share| u128::from(share)).sum();
    if layers > u128::from(MOST_LAYERS) {
        return Err(Error::input(
            "shares",
            format!("{layers} units are more layers than llama.cpp can tell apart ({MOST_LAYERS})"),
            "divide the layers of the model (`units = LAYERS`)",
        ));
    }
    let last = shares.iter().rposition(|&share| share > 0);
    let positions = shares.iter().enumerate().map(|(i, &share)| share + u64::from(Some(i) == last));
    Ok(Export { text: format!("--tensor-split {}\n", list(positions)), warnings: Vec::new() })
}

/// Layers of each pipeline stage.
pub(super) fn vllm(names: &[String], shares: &[u64]) -> Export {
    let (stages, warnings) = without_zeros(names, shares, "vLLM");
    let layers = list(stages.iter().map(|(_, share)| *share));
    Export { text: format!("VLLM_PP_LAYER_PARTITION={layers}\n"), warnings }
}

/// llama.cpp's tensor parallelism (`--split-mode tensor`), with the same proportions.
pub(super) fn llama_cpp_tensor(shares: &[u64]) -> Export {
    let text = format!("--split-mode tensor --tensor-split {}\n", list(shares.iter().copied()));
    Export { text, warnings: Vec::new() }
}

/// Layers of each pipeline stage.
pub(super) fn sglang(names: &[String], shares: &[u64]) -> Export {
    let (stages, warnings) = without_zeros(names, shares, "SGLang");
    let layers = list(stages.iter().map(|(_, share)| *share));
    Export { text: format!("SGLANG_PP_LAYER_PARTITION={layers}\n"), warnings }
}

/// The pipeline layout of Megatron-LM: the embedding (E) is before the first stage's layers (t), the loss (L)
/// after the last one's. Stages without layers are allowed.
pub(super) fn megatron(shares: &[u64]) -> Export {
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
    Export { text, warnings: Vec::new() }
}

fn list(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

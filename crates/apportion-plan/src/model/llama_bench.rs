//! Speeds of devices from the results of llama.cpp's `llama-bench -o json`.

use super::{Interpolation, Model, Point};
use crate::error::{Error, Result};
use crate::input::{name_defect, quoted, read_text};
use serde::Deserialize;
use std::path::Path;

/// How fast a device goes through a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct LlamaSpeeds {
    /// The device: the name of the file, or of several devices in one file that which llama.cpp has for it.
    pub processor: String,
    /// Seconds of a token of a prompt, if they were measured.
    pub prompt: Option<f64>,
    /// Seconds of a token of an answer, if they were measured.
    pub answer: Option<f64>,
}

/// A result of llama-bench, as far as it matters; the rest of its fields may be anything.
#[derive(Deserialize)]
struct Entry {
    n_prompt: u64,
    n_gen: u64,
    avg_ts: f64,
    #[serde(default)]
    model_filename: String,
    #[serde(default)]
    devices: String,
}

/// Reads a file of `llama-bench -o json`; `None` if the file has another form. Results of several sizes of prompts
/// count by their tokens; results of prompts and answers in one (`-pg`) do not count.
///
/// # Errors
/// The file cannot be read, or has results of several models, or none that counts: exit code 2.
pub fn read_llama_bench(path: &Path) -> Result<Option<Vec<LlamaSpeeds>>> {
    let text = read_text(path)?;
    let list = text.trim_start().strip_prefix('[').map(str::trim_start);
    if !list.is_some_and(|list| list.starts_with('{')) {
        return Ok(None);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&text, &path.display().to_string(), &stem).map(Some)
}

fn parse(text: &str, place: &str, stem: &str) -> Result<Vec<LlamaSpeeds>> {
    let remedy = "write it with llama-bench -o json";
    let refuse = |what: String| Err(Error::input(place, what, remedy));
    let entries: Vec<Entry> = match serde_json::from_str(text) {
        Ok(entries) => entries,
        Err(error) => {
            return Err(Error::input(format!("{place}:{}", error.line()), error.to_string(), remedy));
        }
    };
    if let Some(wrong) = entries.iter().find(|entry| !(entry.avg_ts.is_finite() && entry.avg_ts > 0.0)) {
        return refuse(format!("a speed of {} tokens/s", wrong.avg_ts));
    }
    if let Some(other) = entries.iter().find(|entry| entry.model_filename != entries[0].model_filename) {
        let [first, second] = [&entries[0].model_filename, &other.model_filename].map(|name| quoted(name));
        return refuse(format!("results of two models, {first} and {second}"));
    }
    let mut devices: Vec<&str> = Vec::new();
    for entry in &entries {
        if !devices.contains(&&entry.devices[..]) {
            devices.push(&entry.devices);
        }
    }
    let mut found = Vec::new();
    for &device in &devices {
        let processor = if devices.len() == 1 { stem } else { device }.to_owned();
        if let Some(what) = name_defect(&processor) {
            return refuse(format!("the name of a device {what}"));
        }
        let mean = |tokens: &dyn Fn(&Entry) -> u64, others: &dyn Fn(&Entry) -> u64| {
            let of_kind =
                || entries.iter().filter(|e| e.devices == device && tokens(e) > 0 && others(e) == 0);
            let seconds: f64 = of_kind().map(|entry| tokens(entry) as f64 / entry.avg_ts).sum();
            let all: f64 = of_kind().map(|entry| tokens(entry) as f64).sum();
            (all > 0.0).then(|| seconds / all)
        };
        let (prompt, answer) = (mean(&|e| e.n_prompt, &|e| e.n_gen), mean(&|e| e.n_gen, &|e| e.n_prompt));
        if prompt.is_none() && answer.is_none() {
            return refuse(format!("there is no result of prompts or answers of {}", quoted(&processor)));
        }
        found.push(LlamaSpeeds { processor, prompt, answer });
    }
    if found.is_empty() { refuse("there is no result".into()) } else { Ok(found) }
}

impl LlamaSpeeds {
    /// Speed functions of prompts, by device, where a token goes through a model of this size (its cost, or its number
    /// of layers).
    ///
    /// # Errors
    /// A device without results of prompts.
    pub fn of_prompts(all: &[Self], size: f64) -> Result<Vec<Model>> {
        all.iter().map(|device| device.model(device.prompt, "prompts", size)).collect()
    }

    /// The same of answers.
    ///
    /// # Errors
    /// A device without results of answers.
    pub fn of_answers(all: &[Self], size: f64) -> Result<Vec<Model>> {
        all.iter().map(|device| device.model(device.answer, "answers", size)).collect()
    }

    fn model(&self, seconds: Option<f64>, kind: &str, size: f64) -> Result<Model> {
        let Some(seconds) = seconds else {
            let what = format!("llama-bench has no result of {kind} of \"{}\"", self.processor);
            return Err(Error::input(
                "`models`",
                what,
                "run llama-bench -p 512 -n 128 -o json on each device",
            ));
        };
        Model::new(&self.processor, Interpolation::Constant, vec![Point::new(size, seconds)], None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(devices: &str, prompt: u64, answer: u64, speed: f64) -> String {
        format!(
            r#"{{"build_commit": "0", "model_filename": "m.gguf", "n_gpu_layers": 99, "devices": "{devices}",
            "n_prompt": {prompt}, "n_gen": {answer}, "avg_ns": 1, "avg_ts": {speed}, "samples_ns": [1]}}"#
        )
    }

    fn read(entries: &[String]) -> Result<Vec<LlamaSpeeds>> {
        parse(&format!("[{}]", entries.join(",")), "b.json", "large")
    }

    #[test]
    fn speeds_of_prompts_and_answers_are_told_apart() {
        let prompt = entry("CUDA0", 512, 0, 4000.0);
        let both = [prompt.clone(), entry("CUDA0", 0, 128, 50.0), entry("CUDA0", 512, 128, 7.0)];
        let found = read(&both).unwrap();
        let large = LlamaSpeeds { processor: "large".into(), prompt: Some(1.0 / 4000.0), answer: Some(0.02) };
        assert_eq!(found, [large]);
        assert_eq!(LlamaSpeeds::of_answers(&found, 32.0).unwrap()[0].seconds(16.0), 0.01);
        // Two devices of one file, and prompts of two lengths: 100 at 100 and 300 at 100 / 3 a second.
        let slow = [entry("CUDA1", 100, 0, 100.0), entry("CUDA1", 300, 0, 100.0 / 3.0), prompt];
        let found = read(&slow).unwrap();
        assert_eq!((&found[0].processor[..], &found[1].processor[..]), ("CUDA1", "CUDA0"));
        assert!((found[0].prompt.unwrap() - 10.0 / 400.0).abs() < 1e-15);
        assert_eq!(LlamaSpeeds::of_answers(&found, 32.0).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn other_lists_are_refused() {
        for (entries, said) in [
            (vec![], "no result"),
            (vec![entry("", 512, 0, 0.0)], "0 tokens/s"),
            (vec![entry("", 512, 128, 9.0)], "no result of prompts or answers"),
            (vec!["1".into()], "b.json:1"),
            (vec![entry("", 1, 0, 1.0), entry("", 1, 0, 1.0).replace("m.gguf", "n.gguf")], "two models"),
        ] {
            let error = read(&entries).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(said), "{error}");
        }
    }
}

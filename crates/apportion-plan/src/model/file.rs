//! The models file `models.json`. Reading is strict: unknown fields and inconsistent values are errors.

use super::{Failure, Interpolation, Model, Point};
use crate::error::{Error, Result};
use crate::input::{Object, name_defect, objects, quoted, read_text};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The speed functions of a set of processors for one kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Models {
    /// Kernel, e.g. `"gemm-f64"`.
    pub kernel: String,
    /// The meaning of one unit of size.
    pub unit: String,
    /// Parameters that the sizes depend on, e.g. `block`.
    pub parameters: BTreeMap<String, f64>,
    /// One model per processor, by rank.
    pub models: Vec<Model>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModels {
    format: String,
    version: u32,
    kernel: String,
    unit: String,
    #[serde(default)]
    parameters: BTreeMap<String, f64>,
    #[serde(deserialize_with = "objects")]
    models: Vec<RawModel>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    processor: String,
    #[serde(default)]
    interpolation: Interpolation,
    #[serde(default)]
    max_size: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(deserialize_with = "objects")]
    points: Vec<Point>,
}

impl Models {
    /// Reads the text of a models file; `place` names it in errors.
    ///
    /// # Errors
    /// Malformed JSON, unknown fields, another format or version, two models for one processor, or any defect
    /// of a model ([`Model::new`]).
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let Object(raw): Object<RawModels> = serde_json::from_str(text).map_err(|e| {
            Error::input(
                format!("{place}:{}", e.line()),
                e.to_string(),
                "write it with `apportion measure`, or see docs/reference/models-file.md",
            )
        })?;
        if raw.format != "apportion-models" || raw.version != 1 {
            return Err(Error::input(
                format!("{place}: format"),
                format!("\"{}\" version {} is not \"apportion-models\" version 1", raw.format, raw.version),
                "write it with this version of `apportion measure`",
            ));
        }
        if raw.models.is_empty() {
            return Err(Error::input(
                format!("{place}: models"),
                "there is no model",
                "give one per processor",
            ));
        }
        let mut seen = BTreeSet::new();
        let models = raw
            .models
            .into_iter()
            .map(|m| {
                let twice = || format!("{} has two models", quoted(&m.processor));
                let defect =
                    name_defect(&m.processor).or_else(|| (!seen.insert(m.processor.clone())).then(twice));
                if let Some(what) = defect {
                    let remedy = "give every processor one model and a name of its own";
                    return Err(Error::input(format!("{place}: processor"), what, remedy));
                }
                let model = Model::new(m.processor, m.interpolation, m.points, m.max_size);
                model.and_then(|model| model.with_failure(m.failure)).map_err(|e| match e {
                    Error::Input { place: field, what, remedy } => {
                        Error::input(format!("{place}: {field}"), what, remedy)
                    }
                    other => other,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { kernel: raw.kernel, unit: raw.unit, parameters: raw.parameters, models })
    }

    /// The text of the models file. Equal models give equal bytes.
    pub fn to_json(&self) -> String {
        format!("{:#}", self.to_value())
    }

    /// The models file as a JSON value.
    pub fn to_value(&self) -> serde_json::Value {
        let raw = RawModels {
            format: "apportion-models".into(),
            version: 1,
            kernel: self.kernel.clone(),
            unit: self.unit.clone(),
            parameters: self.parameters.clone(),
            models: self
                .models
                .iter()
                .map(|m| RawModel {
                    processor: m.processor().to_owned(),
                    interpolation: m.interpolation(),
                    max_size: m.max_size(),
                    failure: m.failure().cloned(),
                    points: m.points().to_vec(),
                })
                .collect(),
        };
        serde_json::to_value(&raw).expect("numbers and strings always serialise")
    }

    /// The processors' names, by rank.
    pub fn names(&self) -> Vec<String> {
        self.models.iter().map(|m| m.processor().to_owned()).collect()
    }

    /// The models in the order of `names`.
    ///
    /// # Errors
    /// A name has no model.
    pub fn in_order(&self, names: &[String]) -> Result<Vec<Model>> {
        let by_name: BTreeMap<&str, &Model> = self.models.iter().map(|m| (m.processor(), m)).collect();
        names
            .iter()
            .map(|name| {
                by_name.get(name.as_str()).map(|m| (*m).clone()).ok_or_else(|| {
                    Error::input(
                        "models",
                        format!("there is no model of processor \"{name}\""),
                        "measure that processor too, or use the names of the models file",
                    )
                })
            })
            .collect()
    }

    /// The pivot block size that the sizes refer to, if the file states it.
    pub fn block(&self) -> Option<u64> {
        self.parameters.get("block").copied().filter(|b| *b >= 1.0 && b.fract() == 0.0).map(|b| b as u64)
    }
}

impl Serialize for Models {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Models {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::parse(&value.to_string(), "models").map_err(D::Error::custom)
    }
}

/// Reads a models file.
///
/// # Errors
/// The file cannot be read, or [`Models::parse`] rejects it.
pub fn read_models(path: &Path) -> Result<Models> {
    let text = read_text(path)?;
    Models::parse(&text, &path.display().to_string())
}

impl Models {
    /// The same models with `host:` before each processor's name.
    ///
    /// # Errors
    /// The host has no name.
    pub fn with_host(self, host: &str) -> Result<Self> {
        if host.trim().is_empty() {
            return Err(Error::input("`prefix`", "a host has no name", "name each host, such as old,new"));
        }
        let models = self.models.into_iter().map(|model| {
            let name = format!("{host}:{}", model.processor());
            model.renamed(name)
        });
        Ok(Self { models: models.collect(), ..self })
    }
}

/// The models of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelsFile {
    /// The file's name, for errors.
    pub name: String,
    /// Its models.
    pub models: Models,
}

/// The models of all files, in their order.
///
/// # Errors
/// No file; different kernels, units or parameters; a processor's name in more than one file.
pub fn merge_models(files: Vec<ModelsFile>) -> Result<Models> {
    let mut files = files.into_iter();
    let Some(ModelsFile { name: first, models: mut all }) = files.next() else {
        return Err(Error::input("models", "there are none to merge", "name at least one file"));
    };
    let mut owners: BTreeMap<String, String> =
        all.models.iter().map(|model| (model.processor().to_owned(), first.clone())).collect();
    for ModelsFile { name: place, models: part } in files {
        let differs = |what: &str, theirs: String, ours: String| {
            let what = format!("its {what} is {theirs}, that of {first} is {ours}");
            Err(Error::input(place.clone(), what, "measure all hosts in the same way"))
        };
        if part.kernel != all.kernel {
            return differs("kernel", format!("\"{}\"", part.kernel), format!("\"{}\"", all.kernel));
        }
        if part.unit != all.unit {
            return differs("unit", format!("\"{}\"", part.unit), format!("\"{}\"", all.unit));
        }
        if part.parameters != all.parameters {
            return differs("parameters", listed(&part.parameters), listed(&all.parameters));
        }
        for model in part.models {
            if let Some(owner) = owners.insert(model.processor().to_owned(), place.clone()) {
                let what = format!("processor \"{}\" is in {owner} as well", model.processor());
                return Err(Error::input(place, what, "name the hosts, such as `prefix = old,new`"));
            }
            all.models.push(model);
        }
    }
    Ok(all)
}

fn listed(parameters: &BTreeMap<String, f64>) -> String {
    let each: Vec<String> = parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if each.is_empty() { "none".into() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"format": "apportion-models", "version": 1, "kernel": "gemm-f64", "unit": "u",
        "parameters": {"block": 64},
        "models": [{"processor": "p0", "interpolation": "piecewise-linear", "max_size": null,
        "points": [{"size": 4096, "seconds": 0.00123, "ci": 0.00002, "repetitions": 12}]}]}"#;

    #[test]
    fn the_contract_example_is_read_and_written_again() {
        let models = Models::parse(GOOD, "m.json").unwrap();
        assert_eq!(models.block(), Some(64));
        assert_eq!(models.models[0].points()[0].repetitions, 12);
        let again = Models::parse(&models.to_json(), "again").unwrap();
        assert_eq!(again, models);
        assert_eq!(again.to_json(), models.to_json());
    }

    #[test]
    fn bands_energies_and_splines_survive_the_file() {
        let text = GOOD.replacen("piecewise-linear", "akima", 1).replacen(
            "\"ci\": 0.00002",
            "\"low\": 0.001, \"high\": 0.002, \"energy\": 1.5",
            1,
        );
        let models = Models::parse(&text, "m.json").unwrap();
        let point = models.models[0].points()[0];
        assert_eq!((point.low, point.high, point.energy), (Some(0.001), Some(0.002), Some(1.5)));
        assert_eq!(models.models[0].interpolation(), Interpolation::Akima);
        assert_eq!(Models::parse(&models.to_json(), "again").unwrap(), models);
        // One measurement has no interval; a cap has a reason.
        let single = "\"ci\": null, \"precision_met\": false";
        let text = GOOD.replacen("\"ci\": 0.00002", single, 1).replacen(
            "\"max_size\": null",
            "\"max_size\": 5000, \"failure\": {\"size\": 5001, \"reason\": \"exit status: 1\"}",
            1,
        );
        let models = Models::parse(&text, "m.json").unwrap();
        let point = models.models[0].points()[0];
        assert_eq!((point.ci, point.precision_met), (None, Some(false)));
        assert_eq!(models.models[0].failure().unwrap().size, 5001.0);
        assert!(models.to_json().contains("\"ci\": null"));
        assert_eq!(Models::parse(&models.to_json(), "again").unwrap(), models);
        // A point without these fields is written as before.
        assert!(!Models::parse(GOOD, "m.json").unwrap().to_json().contains("energy"));
    }

    #[test]
    fn defects_are_refused_by_field() {
        let defects = [
            ("\"version\": 1", "\"version\": 2", "format"),
            ("\"unit\"", "\"unti\"", "unti"),
            ("\"size\": 4096", "\"size\": 0", "size"),
            ("\"size\": 4096", "\"size\": -3", "size"),
            ("\"seconds\": 0.00123", "\"seconds\": 0", "seconds"),
            ("\"seconds\": 0.00123", "\"seconds\": NaN", "m.json:4"),
            ("\"max_size\": null", "\"max_size\": -1", "max_size"),
            ("piecewise-linear", "cubic", "cubic"),
            ("\"ci\": 0.00002", "\"ci\": -1", "ci"),
            ("\"ci\": 0.00002", "\"low\": 0.002", "low"),
            ("\"ci\": 0.00002", "\"high\": 0.001", "high"),
            ("\"ci\": 0.00002", "\"energy\": -4", "energy"),
        ];
        for (from, to, expected) in defects {
            let error = Models::parse(&GOOD.replacen(from, to, 1), "m.json").unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(expected), "{error}");
            assert!(!error.to_string().contains('\n'));
        }
        assert!(Models::parse(&GOOD[..GOOD.len() / 2], "m.json").is_err());
    }

    fn models(names: &[&str], block: f64) -> Models {
        let model = |name: &&str| {
            Model::piecewise(*name, vec![Point::new(10.0, 2.0).with_band(1.0, 3.0)], Some(50.0)).unwrap()
        };
        Models {
            kernel: "gemm-f64".into(),
            unit: "u".into(),
            parameters: BTreeMap::from([("block".into(), block)]),
            models: names.iter().map(model).collect(),
        }
    }

    #[test]
    fn hosts_are_told_apart_by_their_names() {
        let part = |host: &str| ModelsFile {
            name: format!("{host}.json"),
            models: models(&["core0", "core1"], 64.0),
        };
        let refused = merge_models(vec![part("old"), part("new")]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        let line = refused.to_string();
        assert!(line.contains("new.json") && line.contains("core0") && line.contains("`prefix"), "{line}");
        let named =
            |host: &str| ModelsFile { name: host.into(), models: part(host).models.with_host(host).unwrap() };
        let all = merge_models(vec![named("old"), named("new")]).unwrap();
        assert_eq!(all.names(), ["old:core0", "old:core1", "new:core0", "new:core1"]);
        // Everything else stays.
        let plain = models(&["core1"], 64.0);
        assert_eq!(all.models[3].points(), plain.models[0].points());
        assert_eq!(all.models[3].max_size(), Some(50.0));
        assert_eq!(Models::parse(&all.to_json(), "again").unwrap(), all);
        assert!(models(&["a"], 1.0).with_host(" ").is_err());
    }

    #[test]
    fn other_measurements_are_refused() {
        let one = ModelsFile { name: "a.json".into(), models: models(&["a"], 64.0) };
        assert_eq!(merge_models(vec![one.clone()]).unwrap(), one.models);
        let others = [
            (models(&["b"], 32.0), "block = 32"),
            (Models { kernel: "or-and".into(), ..models(&["b"], 64.0) }, "or-and"),
            (Models { unit: "v".into(), ..models(&["b"], 64.0) }, "unit"),
        ];
        for (other, word) in others {
            let error = merge_models(vec![one.clone(), ModelsFile { name: "b.json".into(), models: other }])
                .unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(word), "{error}");
        }
        assert_eq!(merge_models(Vec::new()).unwrap_err().exit_code(), 2);
    }
}

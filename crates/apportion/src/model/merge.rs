//! The speed functions of several hosts as one set.

use super::Models;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

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

/// The models of all parts, in their order. Each part has a name for errors, such as its file.
///
/// # Errors
/// No part; parts of different kernels, units or parameters; a processor's name in more than one part.
pub fn merge(parts: Vec<(String, Models)>) -> Result<Models> {
    let mut parts = parts.into_iter();
    let Some((first, mut all)) = parts.next() else {
        return Err(Error::input("models", "there are none to merge", "name at least one file"));
    };
    let mut owners: BTreeMap<String, String> =
        all.models.iter().map(|model| (model.processor().to_owned(), first.clone())).collect();
    for (place, part) in parts {
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
    use crate::model::{Model, Point};

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
        let part = |host: &str| (format!("{host}.json"), models(&["core0", "core1"], 64.0));
        let refused = merge(vec![part("old"), part("new")]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        let line = refused.to_string();
        assert!(line.contains("new.json") && line.contains("core0") && line.contains("`prefix"), "{line}");
        let named = |host: &str| (host.to_owned(), part(host).1.with_host(host).unwrap());
        let all = merge(vec![named("old"), named("new")]).unwrap();
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
        let one = ("a.json".to_owned(), models(&["a"], 64.0));
        assert_eq!(merge(vec![one.clone()]).unwrap(), one.1);
        let others = [
            (models(&["b"], 32.0), "block = 32"),
            (Models { kernel: "or-and".into(), ..models(&["b"], 64.0) }, "or-and"),
            (Models { unit: "v".into(), ..models(&["b"], 64.0) }, "unit"),
        ];
        for (other, word) in others {
            let error = merge(vec![one.clone(), ("b.json".into(), other)]).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(word), "{error}");
        }
        assert_eq!(merge(Vec::new()).unwrap_err().exit_code(), 2);
    }
}

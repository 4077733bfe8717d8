//! Surfaces on disk: the counterpart of the models file for tasks of two or three size parameters.

use super::{Model, Surface, SurfacePoint};
use crate::error::{Error, Result};
use crate::input::{Object, name_defect, objects, quoted, read_text};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The surfaces of a set of processors for one kernel, over the same size parameters.
///
/// As a file: `{"format": "apportion-surfaces", "version": 1, "kernel": "gemm-f64", "axes": ["rows", "cols"],
/// "surfaces": [{"processor": "p0", "points": [{"at": [100, 200], "seconds": 0.01}]}]}`. An optional field
/// `"work": {"rows": 1, "cols": 2}` holds exponents other than 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Surfaces {
    /// Kernel, e.g. `"gemm-f64"`.
    pub(crate) kernel: String,
    /// Names of the size parameters, e.g. `rows` and `cols`.
    pub axes: Vec<String>,
    /// The exponent of each size parameter in the work of a task, in the order of `axes`.
    pub(crate) powers: Vec<f64>,
    /// One surface per processor, by rank.
    pub surfaces: Vec<Surface>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSurfaces {
    format: String,
    version: u32,
    kernel: String,
    axes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<BTreeMap<String, f64>>,
    #[serde(deserialize_with = "objects")]
    surfaces: Vec<RawSurface>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSurface {
    processor: String,
    #[serde(deserialize_with = "objects")]
    points: Vec<SurfacePoint>,
}

impl Surfaces {
    /// Reads the text of a surfaces file; `place` names it in errors.
    ///
    /// # Errors
    /// Malformed JSON, unknown fields, another format or version, no surface, or a defect of one
    /// ([`Surface::new`]).
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let remedy = "write it with this version of `apportion`, or fix the field";
        let Object(raw): Object<RawSurfaces> = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("{place}:{}", e.line()), e.to_string(), remedy))?;
        if raw.format != "apportion-surfaces" || raw.version != 1 || raw.surfaces.is_empty() {
            let what = format!(
                "\"{}\" version {} with {} surfaces is not \"apportion-surfaces\" version 1 with at least one",
                raw.format,
                raw.version,
                raw.surfaces.len()
            );
            return Err(Error::input(format!("{place}: format"), what, remedy));
        }
        let axes: Vec<&str> = raw.axes.iter().map(String::as_str).collect();
        let refuse = |field: &str, what: String| Err(Error::input(format!("{place}: {field}"), what, remedy));
        if let Some(twice) = axes.iter().enumerate().find_map(|(i, a)| axes[..i].contains(a).then_some(a)) {
            return refuse("axes", format!("{} is named twice", quoted(twice)));
        }
        let stated = raw.work.unwrap_or_default();
        if let Some(unknown) = stated.keys().find(|name| !axes.contains(&name.as_str())) {
            return refuse("work", format!("{} is not one of the axes", quoted(unknown)));
        }
        let power = |name: &String| stated.get(name).copied();
        // Without the field, work is the product of the axes; in it, an axis that is left out does not count.
        let default = if stated.is_empty() { 1.0 } else { 0.0 };
        let powers: Vec<f64> = raw.axes.iter().map(|name| power(name).unwrap_or(default)).collect();
        let mut seen = BTreeSet::new();
        for name in raw.surfaces.iter().map(|s| &s.processor) {
            let twice = || format!("{} has two surfaces", quoted(name));
            if let Some(what) = name_defect(name).or_else(|| (!seen.insert(name.clone())).then(twice)) {
                return refuse("processor", what);
            }
        }
        let surfaces = raw
            .surfaces
            .into_iter()
            .map(|s| {
                Surface::with_work(s.processor, &axes, &powers, &s.points).map_err(|e| match e {
                    Error::Input { place: field, what, remedy } => {
                        Error::input(format!("{place}: {field}"), what, remedy)
                    }
                    other => other,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { kernel: raw.kernel, axes: raw.axes, powers, surfaces })
    }

    /// The file's text; the same surfaces give the same bytes.
    pub fn to_json(&self) -> String {
        let surface = |s: &Surface| RawSurface { processor: s.processor().to_owned(), points: s.samples() };
        let raw = RawSurfaces {
            format: "apportion-surfaces".into(),
            version: 1,
            kernel: self.kernel.clone(),
            axes: self.axes.clone(),
            work: self
                .powers
                .iter()
                .any(|p| *p != 1.0)
                .then(|| self.axes.iter().cloned().zip(self.powers.iter().copied()).collect()),
            surfaces: self.surfaces.iter().map(surface).collect(),
        };
        serde_json::to_string_pretty(&raw).expect("numbers and strings always serialise")
    }

    /// Every processor's model with all size parameters fixed but one (`None`), as input for shares.
    ///
    /// # Errors
    /// As [`Surface::section`].
    pub fn section(&self, fixed: &[Option<f64>]) -> Result<Vec<Model>> {
        self.surfaces.iter().map(|s| s.section(fixed)).collect()
    }
}

/// Reads a surfaces file.
///
/// # Errors
/// The file cannot be read, or [`Surfaces::parse`] rejects it.
pub fn read_surfaces(path: &Path) -> Result<Surfaces> {
    Surfaces::parse(&read_text(path)?, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"format": "apportion-surfaces", "version": 1, "kernel": "gemm-f64", "axes": ["rows", "cols"],
        "surfaces": [{"processor": "p0", "points": [{"at": [10, 100], "seconds": 1.0}, {"at": [20, 100], "seconds": 2.5},
        {"at": [20, 300], "seconds": 8.0}, {"at": [10, 300], "seconds": 3.0}]}]}"#;

    #[test]
    fn a_file_is_read_cut_and_written_again() {
        let surfaces = Surfaces::parse(GOOD, "s.json").unwrap();
        let models = surfaces.section(&[None, Some(100.0)]).unwrap();
        assert_eq!(models[0].processor(), "p0");
        assert_eq!((models[0].seconds(10.0), models[0].seconds(20.0)), (1.0, 2.5));
        let again = Surfaces::parse(&surfaces.to_json(), "again").unwrap();
        assert_eq!(again.to_json(), surfaces.to_json());
        assert_eq!(again.surfaces[0].names(), ["rows", "cols"]);
        let stated = GOOD.replacen("\"surfaces\"", "\"work\": {\"rows\": 1, \"cols\": 2}, \"surfaces\"", 1);
        let powers = Surfaces::parse(&stated, "s.json").unwrap();
        assert_eq!(powers.powers, [1.0, 2.0]);
        assert_eq!(powers.surfaces[0].speed(&[10.0, 100.0]), 1e5);
        assert_eq!(Surfaces::parse(&powers.to_json(), "again").unwrap(), powers);
    }

    #[test]
    fn defects_are_refused_by_place() {
        for (from, to, part) in [
            ("\"version\": 1", "\"version\": 2", "format"),
            ("\"kernel\"", "\"kennel\"", "kennel"),
            ("[20, 100]", "[20, 300]", "twice"),
            ("[20, 100]", "[20]", "coordinates"),
            ("\"surfaces\"", "\"work\": {\"depth\": 1}, \"surfaces\"", "depth"),
            ("\"surfaces\"", "\"work\": {\"rows\": -1}, \"surfaces\"", "exponents"),
            ("\"p0\"", "\"p\\n0\"", "control"),
            ("\"cols\"]", "\"rows\"]", "twice"),
            ("2.5", "-2.5", "-2.5"),
            (", {\"at\": [10, 300], \"seconds\": 3.0}", "", "missing"),
        ] {
            let error = Surfaces::parse(&GOOD.replacen(from, to, 1), "s.json").unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part) && error.to_string().contains("s.json"), "{error}");
        }
    }
}

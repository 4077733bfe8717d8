//! Surfaces on disk: the counterpart of the models file for tasks of two or three size parameters.

use super::{Model, Surface};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The surfaces of a set of processors for one kernel, over the same size parameters.
///
/// As a file: `{"format": "apportion-surfaces", "version": 1, "kernel": "gemm-f64", "axes": ["rows", "cols"],
/// "surfaces": [{"processor": "p0", "points": [{"at": [100, 200], "seconds": 0.01}]}]}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Surfaces {
    /// Kernel, e.g. `"gemm-f64"`.
    pub kernel: String,
    /// Names of the size parameters, e.g. `rows` and `cols`.
    pub axes: Vec<String>,
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
    surfaces: Vec<RawSurface>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSurface {
    processor: String,
    points: Vec<RawPoint>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPoint {
    at: Vec<f64>,
    seconds: f64,
}

impl Surfaces {
    /// Reads the text of a surfaces file; `place` names it in errors.
    ///
    /// # Errors
    /// Malformed JSON, unknown fields, another format or version, no surface, or a defect of one
    /// ([`Surface::new`]).
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let remedy = "write it with this version of `apportion`, or fix the field";
        let raw: RawSurfaces = serde_json::from_str(text)
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
        let surfaces = raw
            .surfaces
            .into_iter()
            .map(|s| {
                let samples: Vec<(Vec<f64>, f64)> = s.points.into_iter().map(|p| (p.at, p.seconds)).collect();
                Surface::new(s.processor, &axes, &samples).map_err(|e| match e {
                    Error::Input { place: field, what, remedy } => {
                        Error::input(format!("{place}: {field}"), what, remedy)
                    }
                    other => other,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { kernel: raw.kernel, axes: raw.axes, surfaces })
    }

    /// The file's text; the same surfaces give the same bytes.
    pub fn to_json(&self) -> String {
        let surface = |s: &Surface| RawSurface {
            processor: s.processor().to_owned(),
            points: s.samples().into_iter().map(|(at, seconds)| RawPoint { at, seconds }).collect(),
        };
        let raw = RawSurfaces {
            format: "apportion-surfaces".into(),
            version: 1,
            kernel: self.kernel.clone(),
            axes: self.axes.clone(),
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
    }

    #[test]
    fn defects_are_refused_by_place() {
        for (from, to, part) in [
            ("\"version\": 1", "\"version\": 2", "format"),
            ("\"kernel\"", "\"kennel\"", "kennel"),
            ("[20, 100]", "[20, 300]", "twice"),
            ("[20, 100]", "[20]", "coordinates"),
            ("2.5", "-2.5", "-2.5"),
            (", {\"at\": [10, 300], \"seconds\": 3.0}", "", "missing"),
        ] {
            let error = Surfaces::parse(&GOOD.replacen(from, to, 1), "s.json").unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part) && error.to_string().contains("s.json"), "{error}");
        }
    }
}

//! `partition --units --surfaces --at`: surfaces cut where all parameters but one are known, then divided along that one.

use crate::prepare::processors::Processors;
use apportion::error::{Error, Result};
use apportion::model::{Model, Surfaces};
use apportion::platform::Platform;
use std::path::Path;

/// The sections of a file's surfaces at `fixed`, such as `n=5000`, as processors with speed functions.
///
/// # Errors
/// A file that cannot be read; not every parameter but one fixed, once, at a positive number; a processor without a surface.
pub fn sections(path: &Path, fixed: &[String], platform: Option<Platform>) -> Result<Processors> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "read", e))?;
    let file = Surfaces::parse(&text, &place)?;
    let models = file.section(&values(&file.axes, fixed)?)?;
    let names: Vec<String> = models.iter().map(|m| m.processor().to_owned()).collect();
    let platform = platform.unwrap_or_else(|| Platform::from_names(&names));
    let model = |name: &String| -> Result<Model> {
        models.iter().find(|m| m.processor() == name).cloned().ok_or_else(|| {
            let what = format!("has no surface of processor \"{name}\"");
            Error::input(&place, what, "measure every processor of the platform")
        })
    };
    let models = platform.names().iter().map(model).collect::<Result<_>>()?;
    Ok(Processors { platform, models, block: 1, relative: false, sampled: false })
}

/// By axis, the value that it is fixed at.
fn values(axes: &[String], fixed: &[String]) -> Result<Vec<Option<f64>>> {
    let refuse = |what: String| {
        let remedy = format!(
            "fix all of {} but the one to divide, such as --at {}=5000",
            axes.join(", "),
            axes[axes.len() - 1]
        );
        Err(Error::input("--at", what, remedy))
    };
    let mut values = vec![None; axes.len()];
    for text in fixed {
        let parts = text.split_once('=').and_then(|(name, value)| {
            let axis = axes.iter().position(|axis| axis == name.trim())?;
            Some((axis, value.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0)?))
        });
        match parts {
            Some((axis, _)) if values[axis].is_some() => {
                return refuse(format!("\"{}\" is fixed twice", axes[axis]));
            }
            Some((axis, value)) => values[axis] = Some(value),
            None => {
                return refuse(format!(
                    "\"{text}\" is not a parameter of the surfaces and a positive number"
                ));
            }
        }
    }
    match values.iter().filter(|v| v.is_none()).count() {
        1 => Ok(values),
        free => refuse(format!("{free} of the surfaces' parameters are free, not one")),
    }
}

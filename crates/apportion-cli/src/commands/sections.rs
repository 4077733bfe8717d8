//! From surfaces.json to speeds: whole surfaces, or their sections where all parameters but one are fixed.

use crate::args::numbers::number;
use apportion::error::{Error, Result};
use apportion::model::{Machine, Model, Surface, Surfaces, read_surfaces};
use apportion::platform::Platform;
use std::path::Path;

/// The sections of a file's surfaces at `fixed`, such as `n=5000`, as processors with speed functions.
///
/// # Errors
/// A file that cannot be read; not every parameter but one fixed, once, at a positive number; a processor
/// without a surface.
pub fn sections(path: &Path, fixed: &[String], platform: Option<Platform>) -> Result<Machine> {
    let (file, place) = read(path)?;
    let models = file.section(&values(&file.axes, fixed)?)?;
    let names: Vec<String> = models.iter().map(|m| m.processor().to_owned()).collect();
    let platform = platform.unwrap_or_else(|| Platform::from_names(&names));
    let model = |name: &String| -> Result<Model> {
        models.iter().find(|m| m.processor() == name).cloned().ok_or_else(|| missing(&place, name))
    };
    let models = platform.names().iter().map(model).collect::<Result<_>>()?;
    Ok(Machine::new(platform, models, 1))
}

/// The processors of a file's surfaces, or of the platform, with their surfaces by rank.
///
/// # Errors
/// A file that cannot be read; a processor without a surface.
pub fn surfaces(path: &Path, platform: Option<Platform>) -> Result<(Platform, Vec<Surface>)> {
    let (file, place) = read(path)?;
    let names: Vec<String> = file.surfaces.iter().map(|s| s.processor().to_owned()).collect();
    let platform = platform.unwrap_or_else(|| Platform::from_names(&names));
    let surface = |name: &String| -> Result<Surface> {
        file.surfaces.iter().find(|s| s.processor() == name).cloned().ok_or_else(|| missing(&place, name))
    };
    let surfaces = platform.names().iter().map(surface).collect::<Result<_>>()?;
    Ok((platform, surfaces))
}

/// The file, and its name for messages.
fn read(path: &Path) -> Result<(Surfaces, String)> {
    let place = path.display().to_string();
    Ok((read_surfaces(path)?, place))
}

fn missing(place: &str, name: &str) -> Error {
    Error::input(
        place,
        format!("has no surface of processor \"{name}\""),
        "measure every processor of the platform",
    )
}

/// The value at which each axis is fixed.
fn values(axes: &[String], fixed: &[String]) -> Result<Vec<Option<f64>>> {
    let refuse = |what: String| {
        let remedy =
            format!("fix all of {} but one, such as --at {}=5000", axes.join(", "), axes[axes.len() - 1]);
        Err(Error::input("--at", what, remedy))
    };
    let mut values = vec![None; axes.len()];
    for text in fixed {
        let parts = text.split_once('=').and_then(|(name, value)| {
            let axis = axes.iter().position(|axis| axis == name.trim())?;
            Some((axis, number(value).ok().filter(|x| *x > 0.0)?))
        });
        match parts {
            Some((axis, _)) if values[axis].is_some() => {
                return refuse(format!("\"{}\" is fixed twice", axes[axis]));
            }
            Some((axis, value)) => values[axis] = Some(value),
            None => {
                return refuse(format!(
                    "\"{text}\" does not fix a parameter of the surfaces at a positive number"
                ));
            }
        }
    }
    match values.iter().filter(|v| v.is_none()).count() {
        1 => Ok(values),
        free => refuse(format!("{free} of the surfaces' parameters are free instead of one")),
    }
}

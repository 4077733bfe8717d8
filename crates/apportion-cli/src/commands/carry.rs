//! `measure --carry-over`: speed functions of another element type, and the one size to measure.

use super::measure::{KernelName, MeasureArgs};
use apportion::error::{Error, Result};
use apportion::input::harmless;
use apportion::model::{Model, Models, Point, read_models};
use apportion::plan::shares::fpm;
use apportion::platform::Platform;
use clap::ValueEnum;

/// The functions to carry over.
pub struct CarryOver {
    /// By rank.
    models: Vec<Model>,
    /// Bytes of their elements over those of the kernel's.
    ratio: f64,
}

impl CarryOver {
    /// Reads the file of the flag, if it is given.
    ///
    /// # Errors
    /// A file that cannot be read, lacks a processor, or holds curves that are not of this kernel with any
    /// element type.
    pub fn of(args: &MeasureArgs, platform: &Platform) -> Result<Option<Self>> {
        let Some(path) = &args.carry_over else { return Ok(None) };
        let known = read_models(path)?;
        let ratio = ratio(&known, args.kernel).map_err(|what| {
            let remedy = "carry over the models of the same kernel with another element type";
            Error::input(format!("{}: kernel", path.display()), what, remedy)
        })?;
        Ok(Some(Self { models: known.in_order(&platform.names())?, ratio }))
    }

    /// The size to measure on each processor, by rank: its share of the units by the known curves, or the
    /// middle of its curve.
    ///
    /// # Errors
    /// Units that do not fit the processors' memory.
    pub fn sizes(&self, units: Option<u64>) -> Result<Vec<f64>> {
        // The curves of the new elements, but for a factor that is much the same for all.
        let alike = |model: &Model| {
            let middle = middle(model);
            model.for_element_type(
                Point::new(middle * self.ratio, middle * self.ratio / model.speed(middle)),
                self.ratio,
            )
        };
        let models = self.models.iter().map(alike).collect::<Result<Vec<_>>>()?;
        let size = |size: f64| size.round().max(1.0);
        match units {
            Some(units) => Ok(fpm(&models, units)?.into_iter().map(|share| size(share as f64)).collect()),
            None => Ok(models.iter().map(|model| size(middle(model))).collect()),
        }
    }

    /// The carried models of the processors that have been measured.
    ///
    /// # Errors
    /// As [`Model::for_element_type`].
    pub fn models(&self, measured: &Models) -> Result<Models> {
        let one = |model: &Model| {
            let known = self.models.iter().find(|known| known.processor() == model.processor());
            let point = *model.points().last().expect("a model has a point");
            known.expect("every processor has a curve").for_element_type(point, self.ratio)
        };
        let models = measured.models.iter().map(one).collect::<Result<_>>()?;
        Ok(Models { models, ..measured.clone() })
    }
}

/// The middle of a curve, in scale.
fn middle(model: &Model) -> f64 {
    let points = model.points();
    (points[0].size * points[points.len() - 1].size).sqrt()
}

/// Bytes of an element of the known curves over those of the kernel's elements.
fn ratio(known: &Models, kernel: KernelName) -> std::result::Result<f64, String> {
    // Emulated processors have elements of one kind only.
    if known.kernel == "emulated" {
        return Ok(1.0);
    }
    let name = kernel.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let shown = || harmless(&known.kernel);
    let (Some((family, old)), Some((wanted, new))) = (element(&known.kernel), element(&name)) else {
        return Err(format!("the element type of \"{}\" or of \"{name}\" is not known", shown()));
    };
    if family != wanted {
        return Err(format!("the curves are of \"{}\", not of \"{name}\"", shown()));
    }
    Ok(old / new)
}

/// A kernel's name without its element type, and the bytes of an element.
fn element(kernel: &str) -> Option<(&str, f64)> {
    [("-f64", 8.0), ("-f32", 4.0), ("-i64", 8.0), ("-i32", 4.0)]
        .into_iter()
        .find_map(|(mark, bytes)| Some((&kernel[..kernel.find(mark)?], bytes)))
}

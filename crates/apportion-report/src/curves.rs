//! Speed functions as curves: the contents of a plot.

use super::{Plot, Series};
use apportion::model::{Model, Point};
use apportion::plan::shares;
use apportion::units;

/// Number of sizes at which a curve is drawn.
const SAMPLES: u32 = 400;
/// The horizontal axis is logarithmic where the largest size exceeds the smallest by this factor.
const WIDE: f64 = 50.0;
/// A logarithmic axis starts no further below its end than this factor.
const DECADES: f64 = 1e5;
/// Number of curves drawn at all samples; of more, each has fewer.
const MANY: usize = 20;

/// What the plot of speed functions shows besides them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpeedPlot {
    /// The shares of units that are divided, by rank.
    pub shares: Option<Vec<u64>>,
    /// Sizes that are marked on the curves, by rank: such as the parts of a plan that is not of units.
    pub marked: Vec<u64>,
    /// The largest size shown, if it was given.
    pub to: Option<u64>,
    /// The source of the models.
    pub source: String,
    /// What a unit is, if it is known.
    pub unit: Option<String>,
    /// Only ratios of speeds are known.
    pub relative: bool,
    /// The models are samples of given functions: their points were not measured.
    pub sampled: bool,
}

impl SpeedPlot {
    /// Whether sizes suit a logarithmic axis: they are spaced by factors, and no line from the origin is
    /// drawn.
    pub fn is_wide(&self, models: &[Model]) -> bool {
        // A line through the origin is straight on plain axes only.
        self.shares.is_none() && self.widest(models) > WIDE * smallest(models)
    }

    /// Speeds as functions of size, sampled evenly on the axis, and the line through the origin on which a
    /// division of units finishes.
    pub fn plot(&self, models: &[Model], logarithmic: bool) -> Plot {
        let sizes = self.sizes(models, logarithmic);
        let mut series: Vec<Series> = models
            .iter()
            .enumerate()
            .map(|(colour, model)| self.curve(model, &sizes, logarithmic, colour))
            .collect();
        let mut title = "Speed as a function of size".to_owned();
        if let Some(shares) = &self.shares {
            series.push(self.finish(models, shares, &sizes, &series));
            let n: u64 = shares.iter().sum();
            title = format!("{} units divided by speed functions", units::show_count(u128::from(n)));
        }
        let mut marks: Vec<([f64; 2], String)> = models
            .iter()
            .zip(&self.marked)
            .filter(|(_, size)| **size > 0)
            .map(|(model, &size)| ([size as f64, model.speed(size as f64)], model.processor().to_owned()))
            .collect();
        marks.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        // Powers of ten need no names.
        let size = if logarithmic { "" } else { scaled(&mut series, &mut marks, 0) };
        let names = [size, scaled(&mut series, &mut marks, 1)];
        let speed = if self.relative {
            "relative speed".into()
        } else {
            format!("speed, {}units per second", names[1])
        };
        let unit = self.unit.as_ref().map_or_else(String::new, |unit| format!("; a unit: {unit}"));
        Plot {
            title: [title, format!("{}{unit}", self.source)],
            axes: [format!("size, {}units", names[0]), speed],
            series,
            marks,
            notes: self.notes(models),
            ..Plot::default()
        }
    }

    fn notes(&self, models: &[Model]) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.sampled && models.iter().any(|m| m.points().len() > 1) {
            notes.push("marks on the curves: points of the models".to_owned());
        }
        if self.shares.is_some() {
            notes.push("rings on the line through the origin: the shares".to_owned());
        }
        if !self.marked.is_empty() {
            notes.push("rings: the parts of the plan".to_owned());
        }
        if models.iter().any(Model::has_band) {
            notes.push("shaded: from the slowest to the fastest time of each size".to_owned());
        }
        if models.iter().any(|m| m.max_size().is_some()) {
            notes.push("speed 0: sizes beyond the processor's memory (max_size)".to_owned());
        }
        notes
    }

    /// The largest size to show.
    fn widest(&self, models: &[Model]) -> f64 {
        match (self.to, &self.shares) {
            (Some(to), _) => to as f64,
            (None, Some(shares)) => 1.5 * shares.iter().copied().max().unwrap_or(1).max(1) as f64,
            (None, None) => {
                let last =
                    models.iter().filter_map(|m| m.points().last()).map(|p| p.size).fold(1.0, f64::max);
                // A cap beyond the last point is shown, and a little of what follows.
                models
                    .iter()
                    .filter_map(Model::max_size)
                    .filter(|cap| *cap < 2.0 * last)
                    .fold(last, |a, cap| a.max(1.1 * cap))
                    .max(1.1 * self.marked.iter().copied().max().unwrap_or(0) as f64)
            }
        }
    }

    /// Speed over sizes, with a fall to zero at the cap, the points of the model, and its band.
    fn curve(&self, model: &Model, sizes: &[f64], logarithmic: bool, colour: usize) -> Series {
        let end = sizes.last().copied().unwrap_or(0.0);
        let start = if logarithmic { sizes[0] } else { 0.0 };
        let mut points: Vec<[f64; 2]> = Vec::new();
        match model.max_size().filter(|cap| *cap < end) {
            Some(cap) => {
                points.extend(sizes.iter().filter(|x| **x < cap).map(|&x| [x, model.speed(x)]));
                points.extend([[cap, model.speed(cap)], [cap, 0.0], [end, 0.0]]);
            }
            None => points.extend(sizes.iter().map(|&x| [x, model.speed(x)])),
        }
        let shown = |p: &&Point| {
            !self.sampled && model.points().len() > 1 && p.size <= end && p.size >= start * 0.999
        };
        let marked = model.points().iter().filter(shown).map(|p| [p.size, p.speed()]).collect();
        let band = if model.has_band() {
            let (slowest, fastest) = (model.slowest(), model.fastest());
            let within = sizes.iter().filter(|x| model.max_size().is_none_or(|cap| **x <= cap));
            within.map(|&x| [x, slowest.speed(x), fastest.speed(x)]).collect()
        } else {
            Vec::new()
        };
        Series {
            name: model.processor().to_owned(),
            points,
            dashed: false,
            colour,
            band,
            marked: Some(marked),
        }
    }

    fn sizes(&self, models: &[Model], logarithmic: bool) -> Vec<f64> {
        let to = self.widest(models);
        let samples = if models.len() > MANY { (SAMPLES / 4).max(2) } else { SAMPLES };
        let part = |i: u32| f64::from(i) / f64::from(samples);
        if logarithmic {
            let from = smallest(models).max(to / DECADES).min(0.5 * to);
            (0..=samples).map(|i| from * (to / from).powf(part(i))).collect()
        } else {
            (1..=samples).map(|i| to * part(i)).collect()
        }
    }

    /// The line on which all shares take the time of the slowest, no higher than the other curves.
    fn finish(&self, models: &[Model], shares: &[u64], sizes: &[f64], series: &[Series]) -> Series {
        let seconds = shares::makespan(models, shares);
        let fastest = series.iter().flat_map(|s| &s.points).map(|p| p[1]).fold(0.0, f64::max);
        let end = seconds * fastest;
        let at = |x: f64| [x, x / seconds];
        let mut points: Vec<[f64; 2]> = sizes.iter().filter(|x| **x < end).map(|x| at(*x)).collect();
        points.extend((end <= sizes.last().copied().unwrap_or(0.0)).then(|| at(end)));
        let rings = shares.iter().filter(|x| **x > 0).map(|x| at(*x as f64)).collect();
        let name = match self.relative {
            true => "all finish together".to_owned(),
            false => format!("all finish after {}", units::show_seconds(seconds)),
        };
        Series { name, points, dashed: true, colour: models.len(), marked: Some(rings), ..Series::default() }
    }
}

fn smallest(models: &[Model]) -> f64 {
    let first = models.iter().filter(|m| m.points().len() > 1).filter_map(|m| m.points().first());
    first.map(|p| p.size).fold(f64::INFINITY, f64::min)
}

/// Scales one axis to below about a thousand by a power of a thousand; returns the power's name.
fn scaled(series: &mut [Series], marks: &mut [([f64; 2], String)], axis: usize) -> &'static str {
    let most = series.iter().flat_map(|s| &s.points).map(|p| p[axis]).fold(0.0, f64::max);
    let names = [("", 1.0), ("thousand ", 1e3), ("million ", 1e6), ("billion ", 1e9), ("trillion ", 1e12)];
    let (name, factor) = names.into_iter().rev().find(|(_, f)| most >= 5.0 * f).unwrap_or(names[0]);
    marks.iter_mut().for_each(|(point, _)| point[axis] /= factor);
    for s in series {
        s.points.iter_mut().chain(s.marked.iter_mut().flatten()).for_each(|p| p[axis] /= factor);
        for band in &mut s.band {
            match axis {
                0 => band[0] /= factor,
                _ => band[1..].iter_mut().for_each(|y| *y /= factor),
            }
        }
    }
    name
}

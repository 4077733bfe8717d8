//! Candidates that cut the inner dimension, and the balance of their work.
//!
//! A processor with a box updates more elements of C by each pivot block than its share of the work suggests.
//! Its speed is that of a larger size, and shares follow these speeds.

use super::effort::FEW;
use super::{Minimise, PlanOptions, imbalance, relative_times};
use crate::error::{Error, Result};
use crate::model::{Interpolation, Model, only_ratios};
use crate::plan::shapes::{Boxes, Inner, LayoutMethod, Method};
use crate::plan::{Layout, LayoutConstraints, Shape};
use crate::platform::Platform;

/// Layouts by which weights follow speeds at the sizes of the layout before.
const MOST_ROUNDS: usize = 6;

/// The layouts of `auto` that cut the inner dimension, by name: slabs and boxes that move less than all
/// layouts of C in `others`. They hold more memory and add partial sums after everything else. If speeds are
/// ratios and time is the criterion, they are therefore considered only if the inner dimension is the
/// longest.
///
/// Where a forecast decides, what they move rules none out among few processors: others overlap better, avoid
/// slow links or are faster with other shares. Among more processors whose links differ, the slabs and the
/// boxes that move least are candidates in any case.
pub(super) fn candidates(
    shape: Shape,
    platform: &Platform,
    (weights, models): (&[f64], &[Model]),
    wishes: &PlanOptions,
    others: &[(String, Layout)],
) -> Vec<(String, Layout)> {
    let constrained = wishes.form != LayoutConstraints::default();
    let long = shape.k > shape.m.max(shape.n);
    let by_time = wishes.minimise == Minimise::Time;
    if !wishes.inner_cuts || constrained || (!long && by_time && only_ratios(models)) {
        return Vec::new();
    }
    let least = others.iter().map(|(_, layout)| layout.volume()).min().unwrap_or(u64::MAX);
    let network = &platform.network;
    let forecast = by_time && !only_ratios(models) && !network.is_free();
    let (unlike, few) = (forecast && !network.is_uniform(), forecast && platform.len() <= FEW);
    let mut found: Vec<(String, Layout)> = Vec::new();
    for method in [Method::Inner, Method::Boxes] {
        for (place, layout) in
            layouts(method, shape, weights, models).unwrap_or_default().into_iter().enumerate()
        {
            let new = found.iter().all(|(_, other)| *other != layout);
            let given = few || (unlike && place == 0) || wishes.minimise.half_perimeters();
            if new && layout.boxes().is_some() && (given || layout.volume() < least) {
                found.push((method.to_string(), layout));
            }
        }
    }
    found
}

/// The layouts of a method that cuts the inner dimension, the one that moves least first. `weights` are the
/// areas of C that finish together.
///
/// # Errors
/// Those of the method.
pub(super) fn layouts(
    method: Method,
    shape: Shape,
    weights: &[f64],
    models: &[Model],
) -> Result<Vec<Layout>> {
    let lay = |weights: &[f64]| -> Result<Vec<Layout>> {
        let mut all = match method {
            Method::Inner => vec![Inner.layout(shape, weights)?],
            _ => Boxes::all(shape, weights)?,
        };
        all.sort_by_key(Layout::volume);
        Ok(all)
    };
    let constant = models.iter().all(|model| model.interpolation() == Interpolation::Constant);
    let mut all = lay(weights)?;
    if constant {
        return held(all, models);
    }
    let mut now = weights.to_vec();
    let mut least = uneven(models, &all[0]);
    let mut holding = all.clone();
    for _ in 1..MOST_ROUNDS {
        let sizes = all[0].sizes();
        // In proportion to the speed at the size that is updated, relative to that at the size for which the
        // weight was made.
        now = models
            .iter()
            .zip(weights.iter().zip(&sizes))
            .map(|(model, (&weight, &size))| match size {
                0 => weight,
                _ => weight * model.speed(size as f64) / model.speed(weight),
            })
            .zip(&now)
            .map(|(towards, before)| 0.5 * (towards + before))
            .collect();
        let next = lay(&now)?;
        holding.extend(next.iter().cloned());
        let unevenness = uneven(models, &next[0]);
        if unevenness < least {
            (all, least) = (next, unevenness);
        }
    }
    // Another round's boxes may fit where the most even ones do not.
    held(all, models).or_else(|_| held(holding, models))
}

/// The layouts whose processors can hold what they update: a box has more elements of C than its share of the
/// work, and may exceed a model's cap.
///
/// # Errors
/// There is none: exit code 1.
fn held(layouts: Vec<Layout>, models: &[Model]) -> Result<Vec<Layout>> {
    let holds = |layout: &Layout| {
        let (work, sizes) = (layout.work(), layout.sizes());
        let each = models.iter().zip(work.iter().zip(sizes));
        each.into_iter().all(|(model, (work, size))| *work == 0 || model.speed(size as f64) > 0.0)
    };
    let kept: Vec<Layout> = layouts.into_iter().filter(holds).collect();
    if kept.is_empty() {
        return Err(Error::infeasible(
            "the processors' models end before the sizes that boxes of the inner dimension need",
            "use another method, or models without `max_size`",
        ));
    }
    Ok(kept)
}

/// Each processor's seconds for its work, for pivot blocks of one index of the models.
fn seconds(models: &[Model], layout: &Layout) -> Vec<f64> {
    let (work, sizes) = (layout.work(), layout.sizes());
    let each = models.iter().zip(work.iter().zip(sizes));
    each.map(|(model, (&work, size))| if work == 0 { 0.0 } else { work as f64 / model.speed(size as f64) })
        .collect()
}

/// The longest time over the time in which all would finish together, at the speeds at these sizes.
fn uneven(models: &[Model], layout: &Layout) -> f64 {
    let (seconds, sizes) = (seconds(models, layout), layout.sizes());
    let mean = layout.shares().iter().sum::<u64>() / models.len() as u64;
    let speed =
        |(model, &size): (&Model, &u64)| model.speed(if size == 0 { mean.max(1) } else { size } as f64);
    let all: f64 = models.iter().zip(&sizes).map(speed).sum();
    let ideal = layout.work().iter().map(|&work| work as f64).sum::<f64>() / all;
    (seconds.iter().copied().fold(0.0, f64::max) / ideal).max(1.0)
}

/// [`imbalance`] of a layout's work, whether or not it cuts the inner dimension.
///
/// # Errors
/// As [`imbalance`].
pub fn imbalance_of(models: &[Model], layout: &Layout) -> Result<f64> {
    match layout.boxes() {
        None => imbalance(models, &layout.shares()),
        Some(_) => Ok(uneven(models, layout)),
    }
}

/// [`relative_times`] of a layout's work, whether or not it cuts the inner dimension.
///
/// # Errors
/// As [`relative_times`].
pub fn relative_times_of(models: &[Model], layout: &Layout) -> Result<Option<Vec<f64>>> {
    if layout.boxes().is_none() || !only_ratios(models) {
        return relative_times(models, &layout.shares());
    }
    let seconds = seconds(models, layout);
    let ideal = seconds.iter().copied().fold(0.0, f64::max) / uneven(models, layout);
    Ok(Some(seconds.into_iter().map(|time| time / ideal).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;

    fn shape(m: u64, k: u64, n: u64) -> Shape {
        Shape::new(m, k, n, "test").unwrap()
    }

    /// The second processor is as fast as the first on small faces, and four times slower on all of C: slabs
    /// are 4:1, and the balance says so.
    #[test]
    fn slabs_follow_the_speed_on_all_of_c() {
        let curve = |name: &str, slow: f64| {
            let points = vec![Point::new(100.0, 1.0), Point::new(10_000.0, 100.0 * slow)];
            Model::new(name, Interpolation::PiecewiseLinear, points, None).unwrap()
        };
        let models = [curve("a", 1.0), curve("b", 4.0)];
        let s = shape(100, 5000, 100);
        let weights = super::super::areas(&models, s).unwrap();
        let layout = &layouts(Method::Inner, s, &weights, &models).unwrap()[0];
        let ratio = layout.work()[0] as f64 / layout.work()[1] as f64;
        assert!((ratio / 4.0 - 1.0).abs() < 0.1, "{ratio}");
        assert!(imbalance_of(&models, layout).unwrap() < 1.05);
        let flat = Inner.layout(s, &[1.0, 1.0]).unwrap();
        assert!((imbalance_of(&models, &flat).unwrap() - 2.5).abs() < 1e-9);
    }

    /// Ratios 3:1 on a long inner dimension: by hand.
    #[test]
    fn balance_of_ratios() {
        let models = [3.0, 1.0].map(|s| Model::ratio("p", s).unwrap());
        let layout = Inner.layout(shape(2, 8, 2), &[1.0, 1.0]).unwrap();
        // 16 multiply-adds each: 16 / 3 and 16 seconds, ideally 32 / 4.
        assert_eq!(imbalance_of(&models, &layout).unwrap(), 2.0);
        let times = relative_times_of(&models, &layout).unwrap().unwrap();
        assert!((times[0] - 2.0 / 3.0).abs() < 1e-12 && times[1] == 2.0);
    }

    /// Slabs of a long inner dimension need all of C on each processor, which these models cannot hold: auto
    /// takes another method, and the named one says why not.
    #[test]
    fn boxes_beyond_the_caps_are_no_candidates() {
        let s = shape(100, 6400, 100);
        let model = |name: &str| {
            let points = vec![Point::new(100.0, 1e-6), Point::new(7000.0, 7e-5)];
            Model::new(name, Interpolation::PiecewiseLinear, points, Some(7000.0)).unwrap()
        };
        let models = [model("a"), model("b")];
        let platform = Platform::from_names(&["a".into(), "b".into()]);
        let best = super::super::plan_matmul(s, &platform, &models, 1, &PlanOptions::open(64, 8)).unwrap();
        assert!(best[0].plan.layout().unwrap().boxes().is_none());
        let weights = super::super::areas(&models, s).unwrap();
        assert_eq!(layouts(Method::Inner, s, &weights, &models).unwrap_err().exit_code(), 1);
    }
}

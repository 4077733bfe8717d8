//! Areas if speed depends on a part's shape as well as its area: the functional two-dimensional partition
//! (FPM-BR).
//!
//! Source: Malik 2016, section 3.2.1 (areas from functional models, then the column-based layout); speeds as
//! surfaces over rows and columns: Lastovetsky and Reddy 2007, section 2.

use crate::error::{Error, Result};
use crate::model::{Machine, Model, Surface};
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Hierarchy, Layout, Shape};
use crate::platform::Platform;
use crate::schedule::ScheduleOptions;
use crate::select::candidates::Candidate;
use crate::select::{Appraiser, Choice, PlanOptions, affordable, rank_choices};
use std::rc::Rc;

/// Maximum number of layouts tried.
const MOST_ROUNDS: usize = 40;

/// The best layout found whose areas follow the speeds at the shapes of its own parts.
#[derive(Debug, Clone, PartialEq)]
struct Balanced {
    /// The layout.
    pub(crate) layout: Layout,
    /// Elements of C per second of each processor at its rows and columns; for a processor without a part, at
    /// the mean part.
    pub(crate) speeds: Vec<f64>,
    /// max_i time_i / ideal time at these speeds; 1.0 if all end together.
    pub(crate) imbalance: f64,
    /// Number of layouts tried.
    pub(crate) rounds: usize,
}

/// Iterates areas -> layout -> speeds at (rows, columns) of each part -> areas, starting from the speeds at
/// equal squares.
///
/// A part that is not a rectangle counts with the rows and columns that it touches. The iteration ends at a
/// fixed point (the same layout again) or after 40 layouts. Steps are halved whenever balance did not
/// improve, and the best layout of all is returned, so the result is never less even than the first. There is
/// no guarantee of the optimum: speeds need not be continuous. `lay` makes a layout from weights. Cost: at
/// most 40 layouts.
///
/// # Errors
/// Surfaces whose axes are not two (rows, columns) or three (rows, k, columns) (exit code 2); errors of
/// `lay`.
fn fpm_br(shape: Shape, surfaces: &[Surface], lay: impl Fn(&[f64]) -> Result<Layout>) -> Result<Balanced> {
    if let Some(odd) = surfaces.iter().find(|s| !(2..=3).contains(&s.names().len())) {
        return Err(Error::input(
            format!("surface of \"{}\"", odd.processor()),
            format!("has {} size parameters", odd.names().len()),
            "measure over rows and columns of C, or over rows, k and columns",
        ));
    }
    let part = 1.0 / (surfaces.len() as f64).sqrt();
    let mean = [shape.m as f64 * part, shape.n as f64 * part];
    let at = |i: usize, [rows, cols]: [f64; 2]| match surfaces[i].names().len() {
        2 => rows * cols / surfaces[i].seconds(&[rows, cols]),
        _ => rows * cols / surfaces[i].seconds(&[rows, shape.k as f64, cols]),
    };
    let mut weights = normalised((0..surfaces.len()).map(|i| at(i, mean)).collect());
    let mut best: Option<Balanced> = None;
    let mut before: Option<Layout> = None;
    let mut step = 1.0;
    for round in 1..=MOST_ROUNDS {
        let layout = lay(&weights)?;
        if before.as_ref() == Some(&layout) {
            break;
        }
        let touched = layout.rows_by_owner().into_iter().zip(layout.cols_by_owner());
        let speeds: Vec<f64> = touched
            .enumerate()
            .map(|(i, (rows, cols))| match rows.is_empty() {
                true => at(i, mean),
                false => at(i, [rows.len() as f64, cols.len() as f64]),
            })
            .collect();
        let imbalance = unevenness(&layout.shares(), &speeds);
        let improved = best.as_ref().is_none_or(|b| imbalance < b.imbalance);
        if !improved {
            step *= 0.5;
        }
        let towards = normalised(speeds.clone());
        weights = weights.iter().zip(&towards).map(|(w, t)| (1.0 - step) * w + step * t).collect();
        before = Some(layout.clone());
        if improved {
            best = Some(Balanced { layout, speeds, imbalance, rounds: round });
        } else if let Some(best) = &mut best {
            best.rounds = round;
        }
    }
    Ok(best.expect("the first layout is the best so far"))
}

/// Plans as [`plan_matmul`](crate::select::plan_matmul) does, with areas that balance the surfaces for each method.
/// Surfaces over (rows, columns) contain the seconds of one pivot block of `block` indices; surfaces over
/// (rows, k, columns) those of the whole product.
///
/// # Errors
/// Surfaces that cannot be balanced; the requested method is not applicable (exit code 1).
pub fn plan_fpm_br(
    shape: Shape,
    platform: &Platform,
    surfaces: &[Surface],
    block: u64,
    options: &PlanOptions,
) -> Result<Vec<Choice>> {
    let paths: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    let hierarchy = Hierarchy::of_paths(&paths);
    let method_options =
        MethodOptions { objective: options.minimise.objective(), ..options.method_options.clone() };
    let by = |method: Method| {
        let lay = |w: &[f64]| options.constraints.layout(shape, |s| method.layout(s, w, &method_options));
        fpm_br(shape, surfaces, lay).map(|balanced| (method.to_string(), balanced))
    };
    let found: Vec<(String, Balanced)> = match (&options.constraints.levels, options.method) {
        (Some(levels), _) => {
            let by = |w: &[f64]| options.constraints.by_levels(shape, w, &hierarchy, levels, &method_options);
            let name = by(&vec![1.0; surfaces.len()])?.method;
            vec![(name, fpm_br(shape, surfaces, |w| by(w).map(|found| found.layout))?)]
        }
        (None, Some(method)) => vec![by(method)?],
        (None, None) => {
            by(Method::Columns).map(|_| Method::candidates().filter_map(|m| by(m).ok()).collect())?
        }
    };
    let orders = options.orders();
    let simulated = affordable(platform.len(), shape, options.block, found.len() * orders.len());
    let mut choices = Vec::new();
    for (name, balanced) in found {
        // At this layout each processor has one speed.
        let models = surfaces
            .iter()
            .zip(&balanced.speeds)
            .map(|(s, &speed)| Model::constant(s.processor(), speed))
            .collect::<Result<Vec<Model>>>()?;
        let per_update = if surfaces[0].names().len() == 2 { block } else { shape.k };
        let machine = Machine::new(platform.clone(), models, per_update);
        let appraiser = Appraiser::new(&machine, options);
        let layout = Rc::new(balanced.layout);
        let candidate = |&order: &ScheduleOptions| {
            let (method, layout) = (name.clone(), Rc::clone(&layout));
            Candidate { method, layout, order, overrun: None }
        };
        choices.extend(appraiser.choices(orders.iter().map(candidate).collect(), simulated)?);
    }
    let mut choices = rank_choices(choices, options, false);
    choices[0].plan.fill_in();
    Ok(choices)
}

/// max_i (share_i / speed_i) over the time at which all would end together.
fn unevenness(shares: &[u64], speeds: &[f64]) -> f64 {
    let longest = shares.iter().zip(speeds).map(|(&x, s)| x as f64 / s).fold(0.0, f64::max);
    longest * speeds.iter().sum::<f64>() / shares.iter().sum::<u64>() as f64
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SurfacePoint;
    use crate::plan::shapes::{Columns, LayoutMethod, Rows};
    use proptest::prelude::*;

    fn shape(m: u64, n: u64) -> Shape {
        Shape::new(m, 50, n, "test").unwrap()
    }

    /// An emulated surface: seconds at every node of a grid from a speed in elements per second.
    fn surface(speed: impl Fn(f64, f64) -> f64) -> Surface {
        let nodes = [1.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0];
        let sample = |r, c| SurfacePoint { at: vec![r, c], seconds: r * c / speed(r, c) };
        let samples: Vec<SurfacePoint> = nodes.iter().flat_map(|&r| nodes.map(|c| sample(r, c))).collect();
        Surface::new("p", &["rows", "cols"], &samples).unwrap()
    }

    #[test]
    fn flat_surfaces_are_one_number() {
        let flat = [surface(|_, _| 3.0), surface(|_, _| 1.0)];
        let whole = shape(1000, 1000);
        let found = fpm_br(whole, &flat, |w| Columns::default().layout(whole, w)).unwrap();
        assert_eq!(found.layout, Columns::default().layout(whole, &[3.0, 1.0]).unwrap());
        assert!((found.imbalance - 1.0).abs() < 1e-9);
        assert_eq!(found.rounds, 1);
    }

    /// A processor that slows down on wide parts: in strips across the whole width it has a quarter of its
    /// speed on squares. Areas alone do not show this.
    #[test]
    fn speeds_that_depend_on_shape_are_followed() {
        let narrow = surface(|_, c| if c <= 700.0 { 4.0 } else { 1.0 });
        let steady = surface(|_, _| 1.0);
        let whole = shape(1000, 1000);
        let found =
            fpm_br(whole, &[narrow.clone(), steady.clone()], |w| Rows::default().layout(whole, w)).unwrap();
        assert_eq!(found.layout.shares(), [500_000, 500_000]);
        assert!((found.imbalance - 1.0).abs() < 1e-9);
        // The areas from speeds at squares: four fifths for the processor that has become slow.
        let blind = Rows::default().layout(whole, &[4.0, 1.0]).unwrap().shares();
        assert!(unevenness(&blind, &found.speeds) > 1.5);
    }

    /// Paging above some number of rows, so steep that plain iteration would oscillate forever: the best
    /// layout so far is kept.
    #[test]
    fn cliffs_do_not_make_it_worse_than_the_start() {
        let paging = surface(|r, _| if r <= 500.0 { 9.0 } else { 0.5 });
        let steady = surface(|_, _| 2.0);
        let whole = shape(1000, 1000);
        let lay = |w: &[f64]| Rows::default().layout(whole, w);
        let found = fpm_br(whole, &[paging.clone(), steady.clone()], lay).unwrap();
        let first = Rows::default().layout(whole, &[paging.speed(&[707.1, 707.1]), 2.0]).unwrap();
        let at = |l: &Layout, s: &Surface, i: usize| s.speed(&[l.rows_by_owner()[i].len() as f64, 1000.0]);
        let start = unevenness(&first.shares(), &[at(&first, &paging, 0), at(&first, &steady, 1)]);
        assert!(found.imbalance <= start + 1e-12 && found.rounds <= MOST_ROUNDS);
        let three = Surface::new("p", &["x"], &[SurfacePoint { at: vec![1.0], seconds: 1.0 }]).unwrap();
        assert_eq!(fpm_br(whole, &[three], lay).unwrap_err().exit_code(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Against every split of the rows between two processors whose time increases with their rows.
        #[test]
        fn near_the_best_of_all_splits(a in 1.0f64..8.0, b in 1.0f64..8.0, fall in 0.0f64..0.6, wide in 0.3f64..1.0) {
            let first = surface(|r, c| a * (1.0 - fall * r / 1000.0) * (1.0 - 0.4 * wide * c / 1000.0));
            let second = surface(|r, _| b * (1.0 - 0.3 * r / 1000.0));
            let whole = shape(1000, 800);
            let time = |at: u64| {
                let one = |s: &Surface, r: u64| if r == 0 { 0.0 } else { s.seconds(&[r as f64, 800.0]) };
                one(&first, at).max(one(&second, 1000 - at))
            };
            let best = (0..=1000).map(time).fold(f64::INFINITY, f64::min);
            let found = fpm_br(whole, &[first.clone(), second.clone()], |w| Rows::default().layout(whole, w)).unwrap();
            let ours = time(found.layout.rows_by_owner()[0].len());
            prop_assert!(ours <= best * 1.02, "{} against {}", ours, best);
        }
    }
}

//! Candidates of a plan: every applicable layout with every order of steps that fits into memory.

use crate::error::{Error, Result};
use crate::model::{Interpolation, Machine, Model};
use crate::plan::shapes::{
    Boxes, Inner, LayoutMethod, Method, MethodOptions, NamedLayout, square_corner_for_overlap,
    square_corner_scaled,
};
use crate::plan::{Hierarchy, Layout, LayoutConstraints, Shape};
use crate::platform::{Platform, Processor};
use crate::schedule::{Flow, ScheduleOptions};
use crate::select::balance::unevenness;
use crate::select::budget::FEW;
use crate::select::memory_fit::{FittedOrder, MemoryOverrun, MemoryPolicy, largest_fitting_order};
use crate::select::{Minimise, PlanOptions, Sizing, affordable, areas, forecast};
use crate::simulate::CostModel;
use crate::units::show_bytes;
use std::rc::Rc;

/// Maximum number of layouts of a hierarchy that are compared: enough for two open levels.
const MOST_LEVELS: usize = 200;

/// Fractions of its `memory` that a capped processor's own data may take, tried in this order. The first is
/// no cap: what a layout needs is less than its share suggests where A or B is cut in another way than C.
const ROOM: [f64; 6] = [f64::INFINITY, 1.0, 0.9, 0.75, 0.5, 0.25];

/// Smaller pivot blocks make kernels much slower.
pub(super) const SMALL_BLOCK: u64 = 32;

/// A layout with an order of steps that fits into memory.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The method's name.
    pub(crate) method: String,
    /// One for all orders of the layout.
    pub(crate) layout: Rc<Layout>,
    /// The order.
    pub(crate) order: ScheduleOptions,
    /// The processor that would exceed its cap with a larger block.
    pub(crate) overrun: Option<MemoryOverrun>,
}

/// The candidates. If `memory` caps leave too little room for data in flight beside the own parts, capped
/// processors get smaller shares, down to the last fraction in [`ROOM`]. Pivot blocks smaller than
/// [`SMALL_BLOCK`] are the last resort.
pub(super) fn candidates(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<Vec<Candidate>> {
    let platform = &machine.platform;
    let orders = options.orders();
    let every = |capped: &[Model]| layouts(shape, machine, &areas(capped, shape)?, options);
    let each = |layouts: Vec<(String, Layout)>| -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        let mut refusal = Ok(());
        for (name, layout) in layouts {
            let layout = Rc::new(layout);
            for &order in &orders {
                match order.check_layout(&layout) {
                    Ok(()) => {
                        let (method, layout) = (name.clone(), Rc::clone(&layout));
                        found.push(Candidate { method, layout, order, overrun: None });
                    }
                    refused => refusal = refusal.and(refused),
                }
            }
        }
        if found.is_empty() { refusal.map(|()| found) } else { Ok(found) }
    };
    let (path, smaller) = match options.memory {
        MemoryPolicy::Unchecked => (None, false),
        MemoryPolicy::AsAsked(path) => (Some(path), false),
        MemoryPolicy::SmallerBlocks(path) => (Some(path), true),
    };
    let Some(path) = path.filter(|_| platform.processors.iter().any(|p| p.memory_cap().is_some())) else {
        return each(every(&machine.models)?);
    };
    if let Some(error) = all_too_small(shape, platform, options.element) {
        return Err(error);
    }
    let mut least_excess: Option<MemoryOverrun> = None;
    let small = options.block.min(SMALL_BLOCK);
    for (least, room) in [small, 1].into_iter().flat_map(|least| ROOM.map(|room| (least, room))) {
        let least = if smaller { least } else { u64::MAX };
        let capped = capped(shape, machine, options.element, room)?;
        let layouts = match every(&capped) {
            Ok(layouts) => layouts,
            // With less room, the parts together do not fit.
            Err(_) if least_excess.is_some() => continue,
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for candidate in each(layouts)? {
            match largest_fitting_order(
                &candidate.layout,
                candidate.order,
                platform,
                options.element,
                path,
                least,
            ) {
                Ok(FittedOrder { order, overrun }) => {
                    found.push(Candidate { order, overrun, ..candidate });
                }
                Err(excess) => {
                    let more = |x: &MemoryOverrun| x.need - x.cap;
                    least_excess = least_excess.into_iter().chain([excess]).min_by_key(more);
                }
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(least_excess.expect("nothing fits: something exceeds").error(platform))
}

/// Models that give a processor at most the elements of C that fit into the fraction `room` of its `memory`
/// (from 0 to 1), each element with its part of A and B; `element` is the number of bytes per element.
///
/// # Errors
/// As [`Model::with_cap`].
pub(super) fn capped(shape: Shape, machine: &Machine, element: u64, room: f64) -> Result<Vec<Model>> {
    let per_element = per_element(shape, element);
    let with = |(model, processor): (&Model, &Processor)| match processor.memory_cap() {
        Some(bytes) if room.is_finite() => model.clone().with_cap(room * bytes as f64 / per_element),
        _ => Ok(model.clone()),
    };
    machine.models.iter().zip(&machine.platform.processors).map(with).collect()
}

/// Bytes per element of C: the element and its part of A and B.
fn per_element(shape: Shape, element: u64) -> f64 {
    element as f64 * (1.0 + shape.k as f64 / shape.n as f64 + shape.k as f64 / shape.m as f64)
}

/// The error if all memory together is too small for A, B and C.
fn all_too_small(shape: Shape, platform: &Platform, element: u64) -> Option<Error> {
    let caps: Option<Vec<u64>> = platform.processors.iter().map(Processor::memory_cap).collect();
    let (have, need) =
        (caps?.iter().map(|&c| c as f64).sum::<f64>(), per_element(shape, element) * shape.elements() as f64);
    (have < need).then(|| Error::TooLittleMemory {
        what: format!(
            "A, B and C take {}, more than the memory of all processors together, {}",
            show_bytes(need),
            show_bytes(have)
        ),
        remedy: "give more memory or processors, or cut C with `panels = N`".into(),
    })
}

/// The layouts to choose from, by name.
fn layouts(
    shape: Shape,
    machine: &Machine,
    weights: &[f64],
    options: &PlanOptions,
) -> Result<Vec<(String, Layout)>> {
    let platform = &machine.platform;
    let options = &PlanOptions {
        method_options: MethodOptions {
            objective: options.minimise.objective(),
            quick: options.method_options.quick || (options.method.is_none() && platform.len() > FEW),
            ..options.method_options.clone()
        },
        ..options.clone()
    };
    if let Some(levels) = &options.constraints.levels {
        return by_levels(shape, platform, weights, options, levels);
    }
    let by = |method: Method| {
        let layout =
            options.constraints.layout(shape, |s| method.layout(s, weights, &options.method_options));
        layout.map(|layout| (method.to_string(), layout))
    };
    let corner = |s: Shape| sized_for_overlap(s, machine, weights, options);
    let overlapped = || -> Result<(String, Layout)> {
        Ok((Method::SquareCorner.to_string(), options.constraints.layout(shape, corner)?))
    };
    match (options.method, options.sizing) {
        (Some(Method::SquareCorner), Sizing::ForOverlap) => Ok(vec![overlapped()?]),
        (Some(method), _) if method.cuts_inner() && !machine.platform.network.devices.is_empty() => {
            Err(Error::infeasible(
                format!(
                    "method {method} cuts the inner dimension, and a device computes whole elements of C"
                ),
                "use another method, or a platform without devices",
            ))
        }
        (Some(method), _) if method.cuts_inner() && options.constraints == LayoutConstraints::default() => {
            let all = inner_layouts(method, shape, weights, &machine.models)?.into_iter();
            Ok(all.map(|layout| (method.to_string(), layout)).collect())
        }
        (Some(method), _) => Ok(vec![by(method)?]),
        // Columns are applicable to every input: only the layout constraints can be refused.
        (None, sizing) => by(Method::Columns).map(|_| {
            let mut all: Vec<_> = Method::candidates().filter_map(|m| by(m).ok()).collect();
            if sizing == Sizing::ForOverlap {
                all.extend(overlapped().ok().filter(|found| !all.contains(found)));
            }
            for (name, layout) in Method::comparisons().filter_map(|method| by(method).ok()) {
                if all.iter().all(|(_, other)| *other != layout) {
                    all.push((name, layout));
                }
            }
            all.extend(inner_cuts(shape, machine, weights, options, &all));
            all
        }),
    }
}

/// The square corner for an overlapped bulk run: of least forecast, or the thesis's where speeds are ratios.
fn sized_for_overlap(
    shape: Shape,
    machine: &Machine,
    weights: &[f64],
    options: &PlanOptions,
) -> Result<Layout> {
    let order =
        ScheduleOptions::new(Flow::Bulk, options.block).with_look_ahead(1).with_messages(options.messages);
    let seconds = |layout: &Layout| {
        let rates = machine.rates(&layout.shares());
        let network = &machine.platform.network;
        let cost_model = CostModel { rates: &rates, network, element: options.element };
        forecast(layout, order, cost_model).map(|f| f.seconds)
    };
    let timed = !machine.only_ratios() && affordable(machine.processors(), shape, options.block, 82);
    corner_for_overlap(shape, weights, timed.then_some(&seconds as &dyn Fn(&Layout) -> Result<f64>))
}

/// The seconds that a layout takes.
type LayoutSeconds<'a> = &'a dyn Fn(&Layout) -> Result<f64>;

/// The square corner of least forecast among squares with 20 to 100 % of the areas in proportion, and with
/// those of [`square_corner_for_overlap`], which alone remain if there is no forecast. Never worse than in
/// proportion. 82 forecasts.
///
/// # Errors
/// Squares that do not fit (exit code 1), and those of `forecast`.
fn corner_for_overlap(shape: Shape, weights: &[f64], forecast: Option<LayoutSeconds<'_>>) -> Result<Layout> {
    let thesis = square_corner_for_overlap(shape, weights)?;
    let Some(forecast) = forecast else { return Ok(thesis) };
    let mut best = (forecast(&thesis)?, thesis);
    for percent in (20..=100).rev() {
        let layout = square_corner_scaled(shape, weights, f64::sqrt(f64::from(percent) / 100.0))?;
        let seconds = forecast(&layout)?;
        if seconds < best.0 {
            best = (seconds, layout);
        }
    }
    Ok(best.1)
}

/// The layout by a candidate's method, or methods of levels (`square-corner/columns`), for other weights.
///
/// # Errors
/// Those of the method.
pub(super) fn lay_out(
    name: &str,
    shape: Shape,
    platform: &Platform,
    weights: &[f64],
    options: &PlanOptions,
) -> Result<Layout> {
    let method_options =
        MethodOptions { objective: options.minimise.objective(), ..options.method_options.clone() };
    let methods: Vec<Option<Method>> = name.split('/').map(|name| name.parse().ok()).collect();
    match methods[..] {
        [Some(method)] => options.constraints.layout(shape, |s| method.layout(s, weights, &method_options)),
        _ => {
            let hierarchy = hierarchy_of(platform);
            options
                .constraints
                .by_levels(shape, weights, &hierarchy, &methods, &method_options)
                .map(|found| found.layout)
        }
    }
}

/// The tree of the platform's clusters.
fn hierarchy_of(platform: &Platform) -> Hierarchy {
    let paths: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    Hierarchy::of_paths(&paths)
}

/// The layouts of a hierarchy to choose from. Each open level takes the method that moves least, then every
/// method, in all combinations up to [`MOST_LEVELS`].
fn by_levels(
    shape: Shape,
    platform: &Platform,
    weights: &[f64],
    options: &PlanOptions,
    levels: &[Option<Method>],
) -> Result<Vec<(String, Layout)>> {
    let hierarchy = hierarchy_of(platform);
    // The default combination first: it is applicable to every input, so its errors are the user's to fix.
    let mut wanted = vec![levels.to_vec()];
    for level in (0..levels.len()).filter(|&level| levels[level].is_none()) {
        let with = |method| {
            wanted.iter().map(move |named| {
                let mut named: Vec<Option<Method>> = named.clone();
                named[level] = Some(method);
                named
            })
        };
        let more: Vec<_> = Method::candidates().flat_map(with).collect();
        if wanted.len() + more.len() > MOST_LEVELS {
            break;
        }
        wanted.extend(more);
    }
    let mut layouts: Vec<(String, Layout)> = Vec::new();
    for (i, methods) in wanted.iter().enumerate() {
        match options.constraints.by_levels(shape, weights, &hierarchy, methods, &options.method_options) {
            Ok(NamedLayout { method, layout }) if layouts.iter().all(|(_, other)| *other != layout) => {
                layouts.push((method, layout))
            }
            Err(error) if i == 0 => return Err(error),
            _ => {}
        }
    }
    Ok(layouts)
}

// Candidates that cut the inner dimension, and the balance of their work.
//
// A processor with a box updates more elements of C by each pivot block than its share of the work suggests.
// Its speed is that of a larger size, and shares follow these speeds.

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
fn inner_cuts(
    shape: Shape,
    machine: &Machine,
    weights: &[f64],
    options: &PlanOptions,
    others: &[(String, Layout)],
) -> Vec<(String, Layout)> {
    let constrained = options.constraints != LayoutConstraints::default();
    let long = shape.k > shape.m.max(shape.n);
    let by_time = options.minimise == Minimise::Time;
    let on_devices = !machine.platform.network.devices.is_empty();
    if !options.inner_cuts || on_devices || constrained || (!long && by_time && machine.only_ratios()) {
        return Vec::new();
    }
    let least = others.iter().map(|(_, layout)| layout.volume()).min().unwrap_or(u64::MAX);
    let network = &machine.platform.network;
    let forecast = by_time && !machine.only_ratios() && !network.is_free();
    let (unlike, few) = (forecast && !network.is_uniform(), forecast && machine.processors() <= FEW);
    let mut found: Vec<(String, Layout)> = Vec::new();
    for method in [Method::Inner, Method::Boxes] {
        for (place, layout) in
            inner_layouts(method, shape, weights, &machine.models).unwrap_or_default().into_iter().enumerate()
        {
            let new = found.iter().all(|(_, other)| *other != layout);
            let in_any_case = few || (unlike && place == 0) || options.minimise.half_perimeters();
            if new && layout.boxes().is_some() && (in_any_case || layout.volume() < least) {
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
fn inner_layouts(method: Method, shape: Shape, weights: &[f64], models: &[Model]) -> Result<Vec<Layout>> {
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
        return within_models(all, models);
    }
    let mut now = weights.to_vec();
    let mut least = unevenness(models, &all[0]);
    let mut candidates = all.clone();
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
        candidates.extend(next.iter().cloned());
        let next_unevenness = unevenness(models, &next[0]);
        if next_unevenness < least {
            (all, least) = (next, next_unevenness);
        }
    }
    // Another round's boxes may fit where the most even ones do not.
    within_models(all, models).or_else(|_| within_models(candidates, models))
}

/// The layouts whose processors can hold what they update: a box has more elements of C than its share of the
/// work, and may exceed a model's cap.
///
/// # Errors
/// There is none: exit code 1.
fn within_models(layouts: Vec<Layout>, models: &[Model]) -> Result<Vec<Layout>> {
    let holds = |layout: &Layout| {
        let (work, sizes) = (layout.work(), layout.sizes());
        let each = models.iter().zip(work.iter().zip(sizes));
        each.into_iter().all(|(model, (work, size))| *work == 0 || model.speed(size as f64) > 0.0)
    };
    let layouts: Vec<Layout> = layouts.into_iter().filter(holds).collect();
    if layouts.is_empty() {
        return Err(Error::infeasible(
            "the processors' models end before the sizes that boxes of the inner dimension need",
            "use another method, or models without `max_size`",
        ));
    }
    Ok(layouts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;
    use crate::platform::Platform;
    use crate::select::balance::{imbalance_of, relative_times_of};

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
        let weights = areas(&models, s).unwrap();
        let layout = &inner_layouts(Method::Inner, s, &weights, &models).unwrap()[0];
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
        let models = vec![model("a"), model("b")];
        let machine = Machine::new(Platform::from_names(&["a".into(), "b".into()]), models, 1);
        let best = crate::select::plan_matmul(s, &machine, &PlanOptions::open(64, 8)).unwrap();
        assert!(best[0].plan.layout().unwrap().boxes().is_none());
        let weights = areas(&machine.models, s).unwrap();
        assert_eq!(inner_layouts(Method::Inner, s, &weights, &machine.models).unwrap_err().exit_code(), 1);
    }
}

//! Candidates of a plan: every applicable layout with every order of steps that fits into memory.

use crate::error::{Error, Result};
use crate::model::{Model, only_ratios};
use crate::plan::shapes::{Method, MethodOptions, NamedLayout};
use crate::plan::{Hierarchy, Layout, LayoutConstraints, Shape};
use crate::platform::{Platform, Processor};
use crate::schedule::{Flow, ScheduleOptions};
use crate::select::effort::FEW;
use crate::select::{MemoryOverrun, MemoryPolicy, PlanOptions, Sizing, boxes, fitted};
use crate::select::{affordable, areas, corner_for_overlap, forecast, rates};
use crate::simulate::CostModel;
use crate::units::show_bytes;
use std::rc::Rc;

/// Maximum number of layouts of a hierarchy that are compared: enough for two open levels.
const MOST_LEVELS: usize = 200;

/// Fractions of its `memory` that a capped processor's own data may take, tried in this order. The first is
/// no cap: what a layout needs is less than its share suggests where A or B is cut in another way than C.
const ROOM: [f64; 6] = [f64::INFINITY, 1.0, 0.9, 0.75, 0.5, 0.25];

/// Smaller pivot blocks make kernels much slower.
const SMALL_BLOCK: u64 = 32;

/// The method's name, its layout (one for all of its orders), an order, and the processor that would exceed
/// its cap with a larger block.
pub(super) type Candidate = (String, Rc<Layout>, ScheduleOptions, Option<MemoryOverrun>);

/// The candidates. If `memory` caps leave too little room for data in flight beside the own parts, capped
/// processors get smaller shares, down to the last fraction in [`ROOM`]. Pivot blocks smaller than
/// [`SMALL_BLOCK`] are the last resort.
pub(super) fn candidates(
    shape: Shape,
    platform: &Platform,
    (models, models_block): (&[Model], u64),
    wishes: &PlanOptions,
) -> Result<Vec<Candidate>> {
    let orders = wishes.orders();
    let every =
        |capped: &[Model]| layouts(shape, platform, &areas(capped, shape)?, (models, models_block), wishes);
    let each = |layouts: Vec<(String, Layout)>| -> Result<Vec<(String, Rc<Layout>, ScheduleOptions)>> {
        let mut found = Vec::new();
        let mut refusal = Ok(());
        for (name, layout) in layouts {
            let layout = Rc::new(layout);
            for &order in &orders {
                match order.check_layout(&layout) {
                    Ok(()) => found.push((name.clone(), Rc::clone(&layout), order)),
                    refused => refusal = refusal.and(refused),
                }
            }
        }
        if found.is_empty() { refusal.map(|()| found) } else { Ok(found) }
    };
    let (path, smaller) = match wishes.fit {
        MemoryPolicy::Unchecked => (None, false),
        MemoryPolicy::AsAsked(path) => (Some(path), false),
        MemoryPolicy::SmallerBlocks(path) => (Some(path), true),
    };
    let Some(path) = path.filter(|_| platform.processors.iter().any(|p| p.memory.is_some())) else {
        let found = each(every(models)?)?.into_iter();
        return Ok(found.map(|(name, layout, order)| (name, layout, order, None)).collect());
    };
    if let Some(error) = all_too_small(shape, platform, wishes.element) {
        return Err(error);
    }
    let mut least_excess: Option<MemoryOverrun> = None;
    let small = wishes.block.min(SMALL_BLOCK);
    for (least, room) in [small, 1].into_iter().flat_map(|least| ROOM.map(|room| (least, room))) {
        let least = if smaller { least } else { u64::MAX };
        let capped = capped(shape, platform, models, (wishes.element, room))?;
        let layouts = match every(&capped) {
            Ok(layouts) => layouts,
            // With less room, the parts together do not fit.
            Err(_) if least_excess.is_some() => continue,
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for (name, layout, order) in each(layouts)? {
            match fitted(&layout, order, platform, (wishes.element, path), least) {
                Ok((order, narrowed)) => found.push((name, layout, order, narrowed)),
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
pub fn capped(
    shape: Shape,
    platform: &Platform,
    models: &[Model],
    (element, room): (u64, f64),
) -> Result<Vec<Model>> {
    let per_element = per_element(shape, element);
    let with = |(model, processor): (&Model, &Processor)| match processor.memory {
        Some(bytes) if room.is_finite() => model.clone().with_cap(room * bytes as f64 / per_element),
        _ => Ok(model.clone()),
    };
    models.iter().zip(&platform.processors).map(with).collect()
}

/// Bytes per element of C: the element and its part of A and B.
fn per_element(shape: Shape, element: u64) -> f64 {
    element as f64 * (1.0 + shape.k as f64 / shape.n as f64 + shape.k as f64 / shape.m as f64)
}

/// The error if all memory together is too small for A, B and C.
fn all_too_small(shape: Shape, platform: &Platform, element: u64) -> Option<Error> {
    let caps: Option<Vec<u64>> = platform.processors.iter().map(|p| p.memory).collect();
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
    platform: &Platform,
    weights: &[f64],
    models: (&[Model], u64),
    wishes: &PlanOptions,
) -> Result<Vec<(String, Layout)>> {
    let wishes = &PlanOptions {
        terms: MethodOptions {
            objective: wishes.minimise.objective(),
            quick: wishes.terms.quick || (wishes.method.is_none() && platform.len() > FEW),
            ..wishes.terms.clone()
        },
        ..wishes.clone()
    };
    if let Some(levels) = &wishes.form.levels {
        return by_levels(shape, platform, weights, wishes, levels);
    }
    let by = |method: Method| {
        let layout = wishes.form.layout(shape, |s| method.layout(s, weights, &wishes.terms));
        layout.map(|layout| (method.to_string(), layout))
    };
    let corner = |s: Shape| sized_for_overlap(s, platform, weights, models, wishes);
    let overlapped = || -> Result<(String, Layout)> {
        Ok((Method::SquareCorner.to_string(), wishes.form.layout(shape, corner)?))
    };
    match (wishes.method, wishes.sizing) {
        (Some(Method::SquareCorner), Sizing::ForOverlap) => Ok(vec![overlapped()?]),
        (Some(method), _) if method.cuts_inner() && wishes.form == LayoutConstraints::default() => {
            let all = boxes::layouts(method, shape, weights, models.0)?.into_iter();
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
            all.extend(boxes::candidates(shape, platform, (weights, models.0), wishes, &all));
            all
        }),
    }
}

/// The square corner for an overlapped bulk run: of least forecast, or the thesis's where speeds are ratios.
fn sized_for_overlap(
    shape: Shape,
    platform: &Platform,
    weights: &[f64],
    (models, models_block): (&[Model], u64),
    wishes: &PlanOptions,
) -> Result<Layout> {
    let order =
        ScheduleOptions::new(Flow::Bulk, wishes.block).with_look_ahead(1).with_messages(wishes.messages);
    let seconds = |layout: &Layout| {
        let rates = rates(models, &layout.shares(), models_block);
        let conditions = CostModel { rates: &rates, network: &platform.network, element: wishes.element };
        forecast(layout, order, conditions).map(|f| f.seconds)
    };
    let timed = !only_ratios(models) && affordable(platform.len(), shape, wishes.block, 82);
    corner_for_overlap(shape, weights, timed.then_some(&seconds as &dyn Fn(&Layout) -> Result<f64>))
}

/// The layout by a candidate's method, or methods of levels (`square-corner/columns`), for other weights.
///
/// # Errors
/// Those of the method.
pub(super) fn laid_out(
    name: &str,
    shape: Shape,
    platform: &Platform,
    weights: &[f64],
    wishes: &PlanOptions,
) -> Result<Layout> {
    let terms = MethodOptions { objective: wishes.minimise.objective(), ..wishes.terms.clone() };
    let methods: Vec<Option<Method>> = name.split('/').map(|name| name.parse().ok()).collect();
    match methods[..] {
        [Some(method)] => wishes.form.layout(shape, |s| method.layout(s, weights, &terms)),
        _ => {
            let hierarchy = hierarchy_of(platform);
            wishes.form.by_levels(shape, weights, &hierarchy, &methods, &terms).map(|found| found.layout)
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
    wishes: &PlanOptions,
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
        match wishes.form.by_levels(shape, weights, &hierarchy, methods, &wishes.terms) {
            Ok(NamedLayout { method, layout }) if layouts.iter().all(|(_, other)| *other != layout) => {
                layouts.push((method, layout))
            }
            Err(error) if i == 0 => return Err(error),
            _ => {}
        }
    }
    Ok(layouts)
}

//! How a product is cut into panels: as requested, or so that the process or its processors stay within their
//! memory.

use crate::args::MatmulArgs;
use crate::console::Console;
use crate::prepare::product::{Given, Prepared, Speeds, settled};
use apportion::error::{Error, Result};
use apportion::matrix::Element;
use apportion::plan::Shape;
use apportion::product::{Manifest, Panels, check_panels};
use apportion::schedule::{DataPath, Flow, ScheduleOptions};
use apportion::select::Choice;

/// The cut.
pub struct Cut {
    pub begun: Manifest,
    /// The choice for a panel.
    pub prepared: Prepared,
    /// The reason for the cut.
    pub because: &'static str,
}

/// Cuts C, and makes the plan of a panel. It takes the smallest number of panels that fits all processors;
/// the inner dimension is cut only if rows alone are not enough.
///
/// # Errors
/// The requested cut does not fit, or no cut does (exit code 1).
pub fn cut<T: Element>(
    (given, speeds): (&Given, &Speeds),
    shape: Shape,
    (args, path): (&MatmulArgs, DataPath),
    console: &Console,
) -> Result<Cut> {
    let (asked, flow, element) = (&args.panels, &args.running.flow, size_of::<T>() as u64);
    let kept = asked.checkpoint.is_some() || asked.resume.is_some();
    let (count, mut because) = match (asked.panels, asked.memory, kept) {
        (Some(count), ..) => (count, "--panels"),
        (None, Some(_), _) => (1, "--memory"),
        (None, None, kept) => (if kept { 16 } else { 1 }, "default"),
    };
    let mut block = flow.pivot(shape.k)?.min(shape.k);
    let mut panels = Panels { rows: shape.m.div_ceil(count), segment: shape.k };
    if let Some(memory) = asked.memory {
        (panels, block) =
            within::<T>(memory, panels, block, (shape, (given.platform.len() as u64, path)), args)?;
    }
    let settle = |panels: Panels, console: &Console| {
        let panel = Shape { m: panels.rows, k: panels.segment, ..shape };
        let mut prepared = settled::<T>(given, speeds, panel, (&args.running, path), console)?;
        let frugal = |choice: &Choice| choice.order.flow != Flow::Bulk;
        if asked.memory.is_some() && prepared.choices.iter().any(frugal) {
            // The flow that holds whole operands is unsuitable if memory is short.
            prepared.choices.retain(|choice| frugal(choice) || flow.flow.0.is_some());
        }
        let mut refusal = Ok(());
        prepared.choices.iter_mut().for_each(|choice| choice.order.block = choice.order.block.min(block));
        prepared.choices.retain(|Choice { plan, order, .. }| {
            let checked = check_panels(plan, *order, &given.platform, (shape, panels), (element, path));
            let fits = checked.is_ok();
            refusal = std::mem::replace(&mut refusal, Ok(())).and(checked);
            fits
        });
        if prepared.choices.is_empty() { refusal.map(|()| prepared) } else { Ok(prepared) }
    };
    let prepared = match settle(panels, console) {
        Err(Error::TooLittleMemory { .. }) if asked.panels.is_none() => {
            because = "the processors' memory";
            // A segment that the user's blocks do not fill would not match the request.
            let least = if flow.block.is_some() || flow.blocks.is_some() { block } else { 1 };
            panels = smaller(panels, shape, least, &|panels| settle(panels, &console.silenced()))?;
            settle(panels, console)?
        }
        settled => settled?,
    };
    let best = &prepared.choices[0];
    let begun = Manifest { plan: best.plan.clone(), order: best.order, panels };
    Ok(Cut { begun, prepared, because })
}

/// Panels and a pivot block with which the whole process stays within `memory`.
fn within<T: Element>(
    memory: u64,
    panels: Panels,
    block: u64,
    (shape, of): (Shape, (u64, DataPath)),
    args: &MatmulArgs,
) -> Result<(Panels, u64)> {
    let flow = &args.running.flow;
    let panel = Shape { m: panels.rows, ..shape };
    let with = |block| {
        let flow_then = flow.flow.0.unwrap_or(Flow::OneToAll);
        let order = ScheduleOptions::new(flow_then, block).with_look_ahead(if flow.overlaps() {
            flow.look_ahead()?
        } else {
            0
        });
        Panels::within(memory, panel, of, order, size_of::<T>() as u64).map(|panels| (panels, block))
    };
    let refused = match with(block) {
        Err(refused) if flow.block.is_none() && flow.blocks.is_none() => refused,
        outcome => return outcome,
    };
    // This block was not requested: a smaller one may fit.
    let smaller = std::iter::successors(Some(block), |&b| (b > 1).then(|| b.div_ceil(2))).skip(1);
    smaller.map(with).find(|outcome| outcome.is_ok()).unwrap_or(Err(refused))
}

/// The smallest number of panels that fits, at least that of `from`. The inner dimension is one segment if
/// possible, otherwise segments of a half, a quarter, …, down to `least` indices. O(log^2) trial fits.
fn smaller(
    from: Panels,
    shape: Shape,
    least: u64,
    settle: &dyn Fn(Panels) -> Result<Prepared>,
) -> Result<Panels> {
    let first = shape.m.div_ceil(from.rows);
    let (mut segment, mut refusal) = (from.segment, None);
    loop {
        let panels = |count: u64| Panels { rows: shape.m.div_ceil(count), segment };
        let mut fits = |count: u64| match settle(panels(count)) {
            Ok(_) => Ok(true),
            Err(error @ Error::TooLittleMemory { .. }) => {
                refusal = Some(error);
                Ok(false)
            }
            Err(error) => Err(error),
        };
        let doubled = std::iter::successors(Some(first), |&c| (c < shape.m).then(|| (2 * c).min(shape.m)));
        let mut low = first.saturating_sub(1);
        for count in doubled {
            if fits(count)? {
                let mut high = count;
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if fits(middle)? { high = middle } else { low = middle }
                }
                return Ok(panels(high));
            }
            low = count;
        }
        if segment <= least {
            let why = refusal.expect("nothing fitted").to_string();
            let what = why.split(" (").next().unwrap_or(&why);
            return Err(Error::infeasible(
                format!(
                    "no panels fit: with {} rows and {segment} inner indices {what}",
                    panels(shape.m).rows
                ),
                "give more memory, or use a method and a flow that need less",
            ));
        }
        segment = (segment / 2).next_multiple_of(least).min(segment - 1).max(least);
    }
}

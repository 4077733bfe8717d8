//! What planning may cost, and what its steps cost apart from simulations.

use crate::plan::Layout;
use crate::plan::shapes::Method;
use crate::schedule::MatmulSchedule;

/// Seconds that planning may always take.
const ALWAYS: f64 = 0.05;
/// Fraction of the forecast that planning may take.
const FRACTION: f64 = 0.01;

/// Seconds that planning may take if the product takes `best` seconds.
pub(super) fn allowed(best: f64) -> f64 {
    ALWAYS.max(FRACTION * best)
}

/// For more processors, layouts of `auto` are made quickly.
pub(super) const FEW: usize = 8;

/// Up to this number of processors, layouts for other shares are always thorough.
pub(super) const FEWEST: usize = 4;

/// Nanoseconds of laying out for each of some processors, by a method's name or those of two levels.
pub(super) fn laying_out(method: &str, processors: usize, quick: bool) -> f64 {
    let of = |name: &str| match name.parse() {
        Ok(Method::Recursive) if quick => 8_000.0,
        Ok(Method::Recursive) if processors <= FEWEST => 15_000.0,
        Ok(Method::Recursive) => 200_000.0,
        // Up to six processors, all arrangements are few.
        Ok(Method::Cartesian) if processors <= 6 => 2_000.0,
        Ok(Method::Cartesian) => 20_000.0,
        Ok(Method::Inner) => 2_000.0,
        Ok(Method::Boxes) => 35_000.0,
        _ => 300.0,
    };
    method.split('/').map(of).sum::<f64>() + 500.0
}

/// Nanoseconds of laying out by all methods of `auto`, for each of some processors.
pub(super) fn laying_out_by_all(processors: usize) -> f64 {
    if processors <= FEW { 130_000.0 } else { 60_000.0 }
}

/// Nanoseconds of a processor's lines and of what crosses the wires around it.
pub(super) const LINES: f64 = 150.0;

/// Nanoseconds of a schedule before its first step.
pub(super) fn setting_up(schedule: &MatmulSchedule) -> f64 {
    let layout: &Layout = schedule.layout();
    let (members, _) = schedule.members_and_exchanges();
    match layout.boxes() {
        Some(boxes) => 3_000.0 * boxes.len() as f64,
        None => 250.0 * layout.processors() as f64 + 50.0 * members as f64,
    }
}

//! Layouts that cut the inner dimension, on products whose inner dimension is long.

use crate::plan::shapes::{Boxes, LayoutMethod, LeastCost};
use crate::plan::{Shape, volume_bound};
use crate::random::Random;

/// Rows and columns of C.
const SIDE: u64 = 4096;

/// The largest ratio of the inner dimension to the others.
const DEEPEST: f64 = 64.0;

/// Volume over the least volume of any plan with these shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Depth {
    /// Of boxes.
    pub boxes: f64,
    /// Of the best layout of C alone.
    pub flat: f64,
}

/// Lays out a product of m : k : n = 1 : d : 1 on processors of these relative speeds; the logarithm of d is
/// uniform from 1 to 64.
pub(super) fn priced(speeds: &[f64], random: &mut Random) -> Depth {
    let depth = (SIDE as f64 * DEEPEST.powf(random.unit())).round() as u64;
    let shape = Shape { m: SIDE, k: depth, n: SIDE };
    let deep = Boxes.layout(shape, speeds).expect("boxes serve every shape");
    let flat = LeastCost::default().choose(shape, speeds).layout;
    let whole = shape.elements() as f64 * shape.k as f64;
    let bound = volume_bound(shape, deep.work().into_iter().map(|work| work as f64 / whole));
    // One processor alone moves nothing, and need not.
    let over = |volume: u64| if volume == 0 { 1.0 } else { volume as f64 / bound.max(1) as f64 };
    Depth { boxes: over(deep.volume()), flat: over(flat.volume()) }
}

//! Square and rectangle: three processors, one in a strip, one in a square, the fastest around it.
//!
//! Source: DeFlumere and Lastovetsky 2014.

use super::tiling::Tiling;
use super::{descending, serves};
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};

/// The second fastest processor has a strip across the shorter side, the slowest a square in a corner of the
/// rest, and the fastest the remainder. O(1).
///
/// On the unit square the sum of half-perimeters is 3 + 2 sqrt(a3). With fewer than three processors of
/// positive weight, the layout is the strip or the whole matrix.
///
/// # Errors
/// More than three processors, or a square that does not fit beside the strip (on the unit square:
/// sqrt(a3) > 1 - a2): exit code 1.
pub fn square_rectangle(shape: Shape, weights: &[f64]) -> Result<Layout> {
    serves("square-rectangle", weights.len(), 1, 3)?;
    let order = descending(weights);
    let total: f64 = weights.iter().sum();
    let (long, short) = (shape.m.max(shape.n) as f64, shape.m.min(shape.n) as f64);
    if let &[_, second, last] = order.as_slice() {
        let side = (weights[last] / total * long * short).sqrt();
        let room = (1.0 - weights[second] / total) * long;
        if side > room.min(short) * (1.0 + 1e-12) {
            return Err(Error::infeasible(
                format!("a square of side {side:.0} does not fit beside the strip into {room:.0} x {short}"),
                "use block-rectangle, straight-line or auto",
            ));
        }
    }
    let tiling = strip_and_square(&order);
    let tiling = if shape.m > shape.n { tiling.turned() } else { tiling };
    Ok(tiling.layout(shape, weights, 1.0))
}

/// The strip on the right, the square in the lower right corner of the rest.
pub(super) fn strip_and_square(order: &[usize]) -> Tiling {
    match *order {
        [first, second, last] => Tiling::Cols(vec![
            Tiling::Corners { owner: first, blocks: vec![(1.0, Tiling::Whole(last))] },
            Tiling::Whole(second),
        ]),
        _ => Tiling::Cols(order.iter().map(|&i| Tiling::Whole(i)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;

    #[test]
    fn costs_the_closed_form() {
        let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
        for weights in [[5.0, 4.0, 1.0], [1.0, 50.0, 13.0], [40.0, 35.0, 25.0]] {
            let total: f64 = weights.iter().sum();
            let last = weights.iter().copied().fold(f64::INFINITY, f64::min) / total;
            let metrics = Metrics::of_layout(&square_rectangle(shape, &weights).unwrap(), 1.0);
            assert!((metrics.sum_half_perimeters.unwrap() - (3.0 + 2.0 * last.sqrt())).abs() < 3e-3);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shape = Shape::new(10, 10, 10, "test").unwrap();
        // sqrt(1/4) + 3/8 < 1, sqrt(1/3) + 1/3 < 1: fits at any speeds on a square.
        assert!(square_rectangle(shape, &[1.0; 3]).is_ok());
        assert_eq!(square_rectangle(shape, &[1.0; 4]).unwrap_err().exit_code(), 1);
        let flat = Shape::new(4, 4, 100, "test").unwrap();
        assert_eq!(square_rectangle(flat, &[1.0; 3]).unwrap_err().exit_code(), 1);
        assert_eq!(square_rectangle(flat, &[1.0, 0.0, 3.0]).unwrap().shares(), [100, 0, 300]);
        let high = Shape::new(100, 4, 4, "test").unwrap();
        assert!(square_rectangle(high, &[90.0, 9.0, 1.0]).is_ok());
    }
}

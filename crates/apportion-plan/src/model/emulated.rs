//! Speed functions of emulated processors as models: sampled, or followed closely.

use super::{Model, Point};
use crate::error::Result;
use crate::platform::Emulated;

/// The largest size that a followed speed function reaches: beyond it doubles skip integers.
const LARGEST: f64 = (1_u64 << 53) as f64;
/// Largest relative error of speed between points, approximately.
const ACCURACY: f64 = 1e-4;

impl Emulated {
    /// The point that a measurement at `x` would give.
    pub fn point(&self, x: f64) -> Point {
        Point::new(x, self.seconds(x))
    }

    /// The model of a full sweep: `count` >= 2 sizes evenly spaced from `smallest` to `largest`.
    #[cfg(test)]
    pub(crate) fn sweep(&self, name: &str, smallest: f64, largest: f64, count: usize) -> Result<Model> {
        let step = (largest - smallest) / (count - 1) as f64;
        let points = (0..count).map(|i| self.point(smallest + step * i as f64)).collect();
        Model::piecewise(name, points, None)
    }

    /// The model that follows the function from 1 unit on, within about 10^-4 of the speed. Points are denser
    /// where the function bends.
    ///
    /// # Errors
    /// A speed so low that a time overflows.
    pub fn model(&self, name: &str) -> Result<Model> {
        let mut points = vec![self.point(1.0)];
        // Octaves still to be followed, the next one last.
        let mut ends: Vec<f64> = (1..=53).rev().map(|i| 2_f64.powi(i)).collect();
        let mut from = 1.0;
        while let Some(&to) = ends.last() {
            if to - from > 1e-3 * from && !self.is_straight(from, to) {
                ends.push((from * to).sqrt());
                continue;
            }
            points.push(self.point(to));
            from = to;
            ends.pop();
        }
        debug_assert!(from == LARGEST);
        Model::piecewise(name, points, None)
    }

    /// Whether speed is nearly linear between two sizes.
    fn is_straight(&self, from: f64, to: f64) -> bool {
        let (first, last) = (self.speed(from), self.speed(to));
        [0.25, 0.5, 0.75].iter().all(|part| {
            let speed = self.speed(from + part * (to - from));
            (first + part * (last - first) - speed).abs() <= ACCURACY * speed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_follows_the_function() {
        let emulated: Emulated = "peak 1000, ramp 50, knee 1e4 0.6, cliff 1e6 0.02".parse().unwrap();
        let model = emulated.model("p").unwrap();
        assert!(model.points().len() < 2000, "{}", model.points().len());
        for i in 0..20_000 {
            let x = 10_f64.powf(0.0007 * f64::from(i));
            let ratio = model.speed(x) / emulated.speed(x);
            assert!((ratio - 1.0).abs() < 3e-4, "{x}: {ratio}");
        }
    }
}

//! A speed function carried over from one element type to another by one measured point.
//!
//! Speed changes where a cache or the memory is full, and that is a matter of bytes. The function of elements
//! of another size is therefore the same function of the bytes, times one factor, which one point determines.

use super::{Model, Point};
use crate::error::{Error, Result};

impl Model {
    /// The model of another element type, of which one point was measured: the speed at x elements is
    /// `factor` times this model's at x / `ratio` elements, where `ratio` is the bytes of an element of this
    /// model over those of the other: 2 from f64 to f32. The factor is such that the curve goes through the
    /// point. Carried points count as not measured: they have no repetitions.
    ///
    /// # Errors
    /// A point or ratio that is not a positive number, or beyond the model's cap.
    ///
    /// # Example
    /// ```
    /// use apportion::model::{Model, Point};
    /// // Half speed from 100 elements of f64 on: from 200 elements of f32 on.
    /// let f64 = Model::piecewise("p", vec![Point::new(50.0, 5.0), Point::new(100.0, 20.0)], None)?;
    /// let f32 = f64.carried(Point::new(100.0, 5.0), 2.0)?;
    /// assert_eq!((f32.speed(100.0), f32.speed(200.0)), (20.0, 10.0));
    /// # Ok::<(), apportion::error::Error>(())
    /// ```
    pub fn carried(&self, point: Point, ratio: f64) -> Result<Self> {
        let speed = self.speed(point.size / ratio);
        if !(ratio > 0.0 && ratio.is_finite() && point.speed() > 0.0 && speed > 0.0) {
            return Err(Error::input(
                format!("model of \"{}\"", self.processor()),
                format!("has no speed at {} elements that could be carried over", point.size / ratio),
                "measure a size within the model's max_size",
            ));
        }
        let factor = point.speed() / speed;
        let mut points: Vec<Point> = self
            .points()
            .iter()
            .map(|p| Point::new(p.size * ratio, p.seconds * ratio / factor))
            .filter(|p| p.size != point.size)
            .collect();
        points.push(point);
        let cap = self.max_size().map(|cap| cap * ratio);
        Self::new(self.processor(), self.interpolation(), points, cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Interpolation;
    use crate::platform::Emulated;
    use crate::random::Random;

    /// Seeded functions of bytes: the knees of f32 are at twice as many elements, and it is up to twice as
    /// fast.
    #[test]
    fn one_point_gives_the_other_curve() {
        let mut random = Random::new(9);
        for _ in 0..50 {
            let (knee, cliff) = (1e4 * (1.0 + 9.0 * random.unit()), 1e6 * (1.0 + 9.0 * random.unit()));
            let faster = 1.0 + random.unit();
            let of = |peak: f64, scale: f64| -> Emulated {
                format!("peak {peak:e}, knee {:e} 0.7, cliff {:e} 0.1", knee * scale, cliff * scale)
                    .parse()
                    .unwrap()
            };
            let (double, single) = (of(1e9, 1.0), of(faster * 1e9, 2.0));
            let known = double.model("p").unwrap();
            let carried = known.carried(single.point(2e5 * (0.1 + random.unit())), 2.0).unwrap();
            for i in 0..60 {
                let size = 1e3 * 1.2_f64.powi(i);
                let (ours, truth) = (carried.speed(size), single.speed(size));
                assert!((ours / truth - 1.0).abs() < 2e-3, "{size}: {ours} against {truth}");
            }
        }
    }

    #[test]
    fn caps_move_and_measured_sizes_stay_once() {
        let known = Model::new(
            "p",
            Interpolation::Akima,
            [10.0, 20.0, 40.0].map(|x| Point::new(x, x / 5.0)).to_vec(),
            Some(40.0),
        )
        .unwrap();
        let carried = known.carried(Point::new(40.0, 2.0), 2.0).unwrap();
        assert_eq!(carried.max_size(), Some(80.0));
        assert_eq!(carried.interpolation(), Interpolation::Akima);
        let points: Vec<[f64; 2]> = carried.points().iter().map(|p| [p.size, p.seconds]).collect();
        assert_eq!(points, [[20.0, 1.0], [40.0, 2.0], [80.0, 4.0]]);
        assert_eq!(known.carried(Point::new(90.0, 2.0), 2.0).unwrap_err().exit_code(), 2);
        assert_eq!(known.carried(Point::new(9.0, 2.0), 0.0).unwrap_err().exit_code(), 2);
    }
}

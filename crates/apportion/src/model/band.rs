//! The two edges of a speed band, each a model of its own (Lastovetsky and Reddy 2007, section 2, Fig. 2).

use super::{Model, Point};
use crate::input::EXTREME;

impl Model {
    /// The lower edge of the speed band: each point at its longest time (`high`, else the mean plus its
    /// interval).
    pub fn slowest(&self) -> Self {
        self.with_times(|p| p.high.unwrap_or(p.seconds + p.ci))
    }

    /// The upper edge of the speed band: each point at its shortest time (`low`, else the mean minus its
    /// interval, of which at most nine tenths of the mean are used).
    pub fn fastest(&self) -> Self {
        self.with_times(|p| p.low.unwrap_or((p.seconds - p.ci).max(0.1 * p.seconds)))
    }

    /// True if the band of some point has a width.
    pub fn has_band(&self) -> bool {
        self.points().iter().any(|p| p.low.is_some() || p.high.is_some() || p.ci > 0.0)
    }

    fn with_times(&self, seconds: impl Fn(&Point) -> f64) -> Self {
        let inside = |t: f64| t.clamp(1.0 / EXTREME, EXTREME);
        let points = self.points().iter().map(|p| Point::new(p.size, inside(seconds(p)))).collect();
        Self::new(self.processor(), self.interpolation(), points, self.max_size())
            .expect("a valid band has valid edges")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_from_the_band_or_else_from_the_interval() {
        let noisy = Point { ci: 0.5, ..Point::new(10.0, 2.0) };
        let points = vec![noisy, Point::new(20.0, 5.0).with_band(4.0, 8.0), Point::new(30.0, 9.0)];
        let model = Model::piecewise("p", points, None).unwrap();
        let times = |m: Model| m.points().iter().map(|p| p.seconds).collect::<Vec<_>>();
        assert_eq!(times(model.slowest()), [2.5, 8.0, 9.0]);
        assert_eq!(times(model.fastest()), [1.5, 4.0, 9.0]);
        assert!(model.has_band() && !model.slowest().has_band());
        // At the ends of what may be measured, the edges stay inside.
        let long = Point { ci: 1e100, ..Point::new(1.0, 1e100) };
        let short = Point { ci: 1e-100, ..Point::new(2.0, 1e-100) };
        let model = Model::piecewise("p", vec![long, short], None).unwrap();
        assert_eq!(model.slowest().points()[0].seconds, 1e100);
        assert_eq!(model.fastest().points()[1].seconds, 1e-100);
    }
}

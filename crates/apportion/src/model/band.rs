//! The two edges of a speed band, each a model of its own (Lastovetsky and Reddy 2007, section 2, Fig. 2).

use super::{Model, Point};
use crate::input::EXTREME;

/// Relative half-width of the band of a size that was run once, if no other size has a band.
const SINGLE: f64 = 0.2;

impl Model {
    /// The lower edge of the speed band: each point at its longest time.
    ///
    /// That is `high`, or else the mean plus its interval. A size that was run once is the least certain:
    /// its band is relatively as wide as the widest of the model's other points, or 20 % if none has a band.
    /// Points that were not measured have no width.
    pub fn slowest(&self) -> Self {
        let (_, above) = self.widest();
        self.with_times(|p| edges(p).map_or(p.seconds * (1.0 + above), |(_, high)| high))
    }

    /// The upper edge of the speed band: each point at its shortest time, `low` or else the mean minus its
    /// interval, of which at most nine tenths of the mean are used; otherwise as [`Model::slowest`].
    pub fn fastest(&self) -> Self {
        let (below, _) = self.widest();
        self.with_times(|p| edges(p).map_or(p.seconds * (1.0 - below), |(low, _)| low))
    }

    /// True if the band of some point has a width.
    pub fn has_band(&self) -> bool {
        self.points().iter().any(|p| edges(p).is_none_or(|(low, high)| low < p.seconds || high > p.seconds))
    }

    /// The largest relative distances of a shortest time below, and of a longest above, its mean: the width
    /// for sizes that were run once.
    fn widest(&self) -> (f64, f64) {
        let widest = self.points().iter().fold((0.0_f64, 0.0_f64), |(below, above), p| {
            let (low, high) = edges(p).unwrap_or((p.seconds, p.seconds));
            (below.max(1.0 - low / p.seconds), above.max(high / p.seconds - 1.0))
        });
        if widest == (0.0, 0.0) { (SINGLE, SINGLE) } else { widest }
    }

    fn with_times(&self, seconds: impl Fn(&Point) -> f64) -> Self {
        let inside = |t: f64| t.clamp(1.0 / EXTREME, EXTREME);
        let points = self.points().iter().map(|p| Point::new(p.size, inside(seconds(p)))).collect();
        Self::new(self.processor(), self.interpolation(), points, self.max_size())
            .expect("a valid band has valid edges")
    }
}

/// The shortest and the longest time of a point; `None` if it was run once, so that nothing is known.
fn edges(point: &Point) -> Option<(f64, f64)> {
    if point.repetitions == 1 && point.low.is_none() && point.high.is_none() {
        return None;
    }
    let (mean, ci) = (point.seconds, point.ci.unwrap_or(0.0));
    Some((point.low.unwrap_or((mean - ci).max(0.1 * mean)), point.high.unwrap_or(mean + ci)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_from_the_band_or_else_from_the_interval() {
        let noisy = Point { ci: Some(0.5), ..Point::new(10.0, 2.0) };
        let points = vec![noisy, Point::new(20.0, 5.0).with_band(4.0, 8.0), Point::new(30.0, 9.0)];
        let model = Model::piecewise("p", points, None).unwrap();
        let times = |m: Model| m.points().iter().map(|p| p.seconds).collect::<Vec<_>>();
        assert_eq!(times(model.slowest()), [2.5, 8.0, 9.0]);
        assert_eq!(times(model.fastest()), [1.5, 4.0, 9.0]);
        assert!(model.has_band() && !model.slowest().has_band());
        // At the ends of what may be measured, the edges stay inside.
        let long = Point { ci: Some(1e100), ..Point::new(1.0, 1e100) };
        let short = Point { ci: Some(1e-100), ..Point::new(2.0, 1e-100) };
        let model = Model::piecewise("p", vec![long, short], None).unwrap();
        assert_eq!(model.slowest().points()[0].seconds, 1e100);
        assert_eq!(model.fastest().points()[1].seconds, 1e-100);
    }

    #[test]
    fn a_single_run_is_the_least_certain() {
        let once = |size, seconds| Point { repetitions: 1, ..Point::new(size, seconds) };
        let edges = |points: Vec<Point>| {
            let model = Model::piecewise("p", points, None).unwrap();
            assert!(model.has_band());
            let times = |m: Model| m.points().iter().map(|p| p.seconds).collect::<Vec<_>>();
            (times(model.fastest()), times(model.slowest()))
        };
        // The widest: 50 % above at the second, 25 % below at the first.
        let points = vec![
            Point::new(10.0, 4.0).with_band(3.0, 5.0),
            Point { ci: Some(1.0), ..Point::new(20.0, 8.0) }.with_band(7.0, 12.0),
            once(40.0, 16.0),
        ];
        assert_eq!(edges(points), (vec![3.0, 7.0, 12.0], vec![5.0, 12.0, 24.0]));
        // Nothing is known of any.
        assert_eq!(edges(vec![once(1.0, 10.0), once(2.0, 20.0)]), (vec![8.0, 16.0], vec![12.0, 24.0]));
    }

    #[test]
    fn a_band_that_no_speed_has_is_refused() {
        for point in [
            Point::new(1e10, 1.0).with_band(1e-320, 2.0),
            Point { ci: Some(1.7e308), ..Point::new(1.0, 1e308) },
            Point::new(1e-300, 1.0).with_band(0.5, 1e300),
        ] {
            assert_eq!(Model::piecewise("p", vec![point], None).unwrap_err().exit_code(), 2, "{point:?}");
        }
    }
}

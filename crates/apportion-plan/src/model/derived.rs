//! Speed functions derived from others: the two edges of a speed band (Lastovetsky and Reddy 2007, section 2, Fig.
//! 2), work of two kinds, and another element type.
//!
//! Speed changes where a cache or the memory is full, and that is a matter of bytes. The function of elements
//! of another size is therefore the same function of the bytes, times one factor, which one point determines.

use super::{Model, Point};
use crate::error::{Error, Result};
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

/// The speed functions of processors whose work is of two kinds, by rank:
/// `time = weight * first + (1 - weight) * second`. A layer of a language model, for example, reads prompts
/// and writes answers. Each function has the sizes of both, at which it is exact, and the smaller of their
/// caps.
///
/// # Errors
/// Not as many models of one kind as of the other, or of other processors; ratios of speeds, which have no
/// times to add; a weight that is not from 0 to 1.
///
/// # Example
/// ```
/// use apportion_plan::model::{Model, mix_models};
/// let prefill = [Model::constant("gpu", 100.0)?];
/// let decode = [Model::constant("gpu", 25.0)?];
/// // 0.3 / 100 + 0.7 / 25 seconds a unit.
/// let speed = mix_models(&prefill, &decode, 0.3)?[0].speed(10.0);
/// assert!((speed - 1.0 / 0.031).abs() < 1e-9);
/// # Ok::<(), apportion_plan::Error>(())
/// ```
pub fn mix_models(first: &[Model], second: &[Model], weight: f64) -> Result<Vec<Model>> {
    if !(0.0..=1.0).contains(&weight) {
        let what = format!("{weight} is not a fraction from 0 to 1");
        return Err(Error::input("`mix`", what, "0.3 means three tenths of the first kind"));
    }
    if first.len() != second.len() {
        let what = format!("{} models of the first kind and {} of the second", first.len(), second.len());
        return Err(Error::input("models", what, "measure the same processors for both"));
    }
    first.iter().zip(second).map(|(a, b)| of_one(a, b, weight)).collect()
}

fn of_one(a: &Model, b: &Model, weight: f64) -> Result<Model> {
    let place = || format!("model of \"{}\"", a.processor());
    if a.processor() != b.processor() {
        let what = format!("its second kind is that of \"{}\"", b.processor());
        return Err(Error::input(place(), what, "measure the same processors for both"));
    }
    if a.is_ratio() || b.is_ratio() {
        let what = "a speed without a unit has no time to add";
        return Err(Error::input(place(), what, "give both as times, or speeds with units"));
    }
    let cap = [a.max_size(), b.max_size()].into_iter().flatten().reduce(f64::min);
    let mut sizes: Vec<f64> = a.points().iter().chain(b.points()).map(|p| p.size).collect();
    sizes.retain(|size| cap.is_none_or(|cap| *size <= cap));
    sizes.extend(cap);
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let point = |size: f64| Point::new(size, weight * a.seconds(size) + (1.0 - weight) * b.seconds(size));
    Model::piecewise(a.processor(), sizes.into_iter().map(point).collect(), cap)
}

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
    /// use apportion_plan::model::{Model, Point};
    /// // Half speed from 100 elements of f64 on: from 200 elements of f32 on.
    /// let f64 = Model::piecewise("p", vec![Point::new(50.0, 5.0), Point::new(100.0, 20.0)], None)?;
    /// let f32 = f64.for_element_type(Point::new(100.0, 5.0), 2.0)?;
    /// assert_eq!((f32.speed(100.0), f32.speed(200.0)), (20.0, 10.0));
    /// # Ok::<(), apportion_plan::error::Error>(())
    /// ```
    pub fn for_element_type(&self, point: Point, ratio: f64) -> Result<Self> {
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

    #[test]
    fn times_add_up_at_the_sizes_of_both() {
        let a =
            Model::piecewise("p", vec![Point::new(10.0, 1.0), Point::new(20.0, 4.0)], Some(40.0)).unwrap();
        let b = Model::piecewise("p", vec![Point::new(15.0, 3.0), Point::new(50.0, 20.0)], None).unwrap();
        let both = mix_models(std::slice::from_ref(&a), std::slice::from_ref(&b), 0.25).unwrap().remove(0);
        assert_eq!(both.points().iter().map(|p| p.size).collect::<Vec<_>>(), [10.0, 15.0, 20.0, 40.0]);
        for size in [10.0, 15.0, 20.0, 40.0] {
            let expected = 0.25 * a.seconds(size) + 0.75 * b.seconds(size);
            assert!((both.seconds(size) - expected).abs() < 1e-12 * expected);
        }
        assert_eq!(both.max_size(), Some(40.0));
        // Only one kind: its own times.
        assert_eq!(
            mix_models(std::slice::from_ref(&a), &[b], 1.0).unwrap()[0].seconds(15.0),
            a.seconds(15.0)
        );
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        let timed = |name: &str| vec![Model::constant(name, 2.0).unwrap()];
        let ratio = vec![Model::ratio("p", 2.0).unwrap()];
        assert_eq!(mix_models(&timed("p"), &timed("q"), 0.5).unwrap_err().exit_code(), 2);
        assert_eq!(mix_models(&timed("p"), &ratio, 0.5).unwrap_err().exit_code(), 2);
        assert_eq!(mix_models(&timed("p"), &[], 0.5).unwrap_err().exit_code(), 2);
        for weight in [-0.1, 1.1, f64::NAN] {
            assert_eq!(mix_models(&timed("p"), &timed("p"), weight).unwrap_err().exit_code(), 2);
        }
    }

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
            let carried = known.for_element_type(single.point(2e5 * (0.1 + random.unit())), 2.0).unwrap();
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
        let carried = known.for_element_type(Point::new(40.0, 2.0), 2.0).unwrap();
        assert_eq!(carried.max_size(), Some(80.0));
        assert_eq!(carried.interpolation(), Interpolation::Akima);
        let points: Vec<[f64; 2]> = carried.points().iter().map(|p| [p.size, p.seconds]).collect();
        assert_eq!(points, [[20.0, 1.0], [40.0, 2.0], [80.0, 4.0]]);
        assert_eq!(known.for_element_type(Point::new(90.0, 2.0), 2.0).unwrap_err().exit_code(), 2);
        assert_eq!(known.for_element_type(Point::new(9.0, 2.0), 0.0).unwrap_err().exit_code(), 2);
    }
}

//! The quick measurement before a run: windows of the same work until two of them agree.
//!
//! A time has two causes: how fast the processor computes, and how much of its time other programs leave to
//! it. CPU time tells them apart. The first is worth remembering, the second holds for the moment.

use crate::error::Result;
use crate::input::EXTREME;
use crate::measure::repetition::{MeasureOptions, Sampler, StoppingRule};
use crate::measure::sweep::{gather_models, measure_speeds};
use crate::measure::{CpuShare, Workload};
use crate::model::{Model, Models, Point, median};
use crate::platform::{Network, Platform};
use crate::run::{Monitor, World};

/// Two windows agree if no speed differs by more than this fraction.
const AGREEMENT: f64 = 0.03;
/// Windows after which they no longer have to agree.
const MOST_WINDOWS: usize = 5;
/// Seconds on each size in a window.
const SECONDS: f64 = 0.15;
/// Seconds on each size of a rough measurement.
const ROUGH: f64 = 0.03;
/// Maximum of seconds on each size where several ranks measure together.
const RANKS_SECONDS: f64 = 0.25;
/// Multiply-adds of work that is worth more than a rough measurement: a twentieth of a second on a fast core.
const WORTHWHILE: f64 = 5e8;

/// How much a quick measurement is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// One short window: a tenth of a second for four sizes.
    Rough,
    /// Windows until two agree.
    Thorough,
}

impl Effort {
    /// What the speeds of a job of this many multiply-adds are worth.
    pub(crate) fn worth(multiply_adds: f64) -> Self {
        if multiply_adds < WORTHWHILE { Self::Rough } else { Self::Thorough }
    }
}

/// Speeds found by a quick measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct QuickSpeeds {
    /// Speeds without other programs: by CPU time where the system counts it.
    pub(crate) models: Models,
    /// By rank: what other programs left of the processor's time.
    pub(crate) shares: Vec<CpuShare>,
    /// By rank: the times of the windows relative to the models; both 1 once a run has confirmed or corrected
    /// the speed.
    pub(crate) spread: Vec<TimeRange>,
    /// Number of windows; one for a rough measurement.
    pub(crate) windows: usize,
}

/// The shortest and the longest of several times, as factors of a common one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeRange {
    /// The shortest.
    pub(crate) low: f64,
    /// The longest.
    pub(crate) high: f64,
}

impl QuickSpeeds {
    /// Whether they are good enough for work that is worth this effort.
    pub(crate) fn serves(&self, effort: Effort) -> bool {
        effort == Effort::Rough || self.windows > 1
    }

    /// The models of a run to which other programs leave the shares of the processors' time.
    ///
    /// # Errors
    /// Times beyond what a model may have.
    pub(crate) fn now(&self) -> Result<Models> {
        let stretched = |(model, share): (&Model, &CpuShare)| scaled(model, 1.0 / share.mean);
        let models = self.models.models.iter().zip(&self.shares).map(stretched).collect::<Result<_>>()?;
        Ok(Models { models, ..self.models.clone() })
    }

    /// The factors by which a run with these shares may be shorter and longer than its forecast, by what
    /// was observed: all processors at their best, and one at its worst.
    pub(crate) fn range(&self) -> TimeRange {
        let each = || self.spread.iter().zip(&self.shares);
        TimeRange {
            low: each().map(|(times, share)| times.low * share.mean / share.most).fold(0.0, f64::max),
            high: each().map(|(times, share)| times.high * share.mean / share.least).fold(0.0, f64::max),
        }
    }

    /// The same speeds after a run in which processor `rank` took `ratio` times as long as they said.
    ///
    /// All sizes move, as in DFPA when a processor has changed (Lastovetsky and Reddy 2009).
    ///
    /// # Errors
    /// Times beyond what a model may have.
    pub(crate) fn corrected(mut self, rank: usize, ratio: f64) -> Result<Self> {
        self.models.models[rank] = scaled(&self.models.models[rank], ratio)?;
        Ok(self)
    }
}

/// A model whose times are `factor` times as long.
fn scaled(model: &Model, factor: f64) -> Result<Model> {
    let inside = |t: f64| (t * factor).clamp(1.0 / EXTREME, EXTREME);
    let point = |p: &Point| Point {
        seconds: inside(p.seconds),
        ci: p.ci.map(|ci| (ci * factor).min(EXTREME)),
        low: p.low.map(inside),
        high: p.high.map(inside),
        cpu_seconds: None,
        cpu_share: None,
        ..*p
    };
    let points = model.points().iter().map(point).collect();
    Model::new(model.processor(), model.interpolation(), points, model.max_size())
}

/// Measures the speed of a workload on the platform's processors, all at once. A thorough measurement repeats
/// windows of the same sizes until two agree within 3 %, five at most: about a second and a half for four
/// sizes on a quiet machine. Every rank gets the same result.
///
/// The speeds are the means of the two windows that agree; if none do, the medians of all.
///
/// # Errors
/// Those of [`measure_speeds`], on all ranks; interrupted.
///
/// # Panics
/// If the world has several ranks and their number is not that of the processors.
pub fn measure_quickly<W: Workload>(
    workload: &W,
    platform: &Platform,
    sizes: &[f64],
    effort: Effort,
    world: &World,
    monitor: &Monitor,
) -> Result<QuickSpeeds> {
    measure_in_windows(workload, platform, sizes, effort, SECONDS, world, monitor)
}

/// [`measure_quickly`] of a workload with many sizes: a third of the time for each.
///
/// # Errors
/// As [`measure_quickly`].
pub(crate) fn measure_more<W: Workload>(
    workload: &W,
    platform: &Platform,
    sizes: &[f64],
    effort: Effort,
    world: &World,
    monitor: &Monitor,
) -> Result<QuickSpeeds> {
    measure_in_windows(workload, platform, sizes, effort, SECONDS / 3.0, world, monitor)
}

fn measure_in_windows<W: Workload>(
    workload: &W,
    platform: &Platform,
    sizes: &[f64],
    effort: Effort,
    seconds: f64,
    world: &World,
    monitor: &Monitor,
) -> Result<QuickSpeeds> {
    // A window is no shorter where repetitions agree early: they may all have met the same disturbance.
    let options = MeasureOptions::for_seconds(if effort == Effort::Rough { ROUGH } else { seconds });
    repeat_windows(effort, || measure_on_world(workload, platform, sizes, options, world, monitor))
}

/// Opens windows until two agree, or one if that is enough.
fn repeat_windows(effort: Effort, window: impl FnMut() -> Result<Models>) -> Result<QuickSpeeds> {
    let rule = match effort {
        Effort::Rough => StoppingRule::times(1),
        Effort::Thorough => StoppingRule { fewest: 2, ..StoppingRule::times(MOST_WINDOWS) },
    };
    let agree =
        |windows: &[Models]| matches!(windows, [.., first, second] if difference(first, second) <= AGREEMENT);
    let windows = Sampler::new(rule).run(agree, window)?;
    let steady = if agree(&windows) { &windows[windows.len() - 2..] } else { &windows[..] };
    combine_windows(steady, windows.len())
}

/// Measures each of the platform's processors in the process that runs it, all together, size by size. Every
/// rank gets the models of all processors. Among several ranks, only the time for each size is taken from the
/// options.
///
/// # Errors
/// Those of [`measure_speeds`], on all ranks; interrupted.
///
/// # Panics
/// If the world has several ranks and their number is not that of the processors.
pub(super) fn measure_on_world<W: Workload>(
    workload: &W,
    platform: &Platform,
    sizes: &[f64],
    options: MeasureOptions,
    world: &World,
    monitor: &Monitor,
) -> Result<Models> {
    if world.is_solo() {
        return measure_speeds(workload, platform, sizes, options, monitor);
    }
    let own = Platform {
        name: platform.name.clone(),
        processors: platform.processors[world.processors_here(platform.len())].to_vec(),
        network: Network::free(),
    };
    // Every rank measures for the same time, even if its figures are precise earlier: no rank measures while
    // the others are idle.
    let options = MeasureOptions::for_seconds(options.seconds_per_size.min(RANKS_SECONDS));
    let mut mine: Option<Models> = None;
    for &size in sizes {
        world.barrier()?;
        let measured = world.all_ok(measure_speeds(workload, &own, &[size], options, monitor))?;
        mine = Some(match mine.take() {
            None => measured,
            Some(so_far) => with_points(so_far, &measured)?,
        });
    }
    gather_models(mine.expect("there is a size"), world)
}

/// Adds the points of another sweep to one processor's models.
fn with_points(mut models: Models, more: &Models) -> Result<Models> {
    for (model, new) in models.models.iter_mut().zip(&more.models) {
        let mut points = [model.points(), new.points()].concat();
        points.dedup_by(|x, y| x.size == y.size);
        *model = Model::new(model.processor(), model.interpolation(), points, None)?;
    }
    Ok(models)
}

/// The time of a point without other programs.
fn own(point: &Point) -> f64 {
    point.cpu_seconds.unwrap_or(point.seconds)
}

/// The points that count: those of the smallest size, if there are others, are too short to be steady.
fn counted(model: &Model) -> &[Point] {
    let points = model.points();
    if points.len() > 1 { &points[1..] } else { points }
}

/// The largest relative difference of the times of two windows.
fn difference(first: &Models, second: &Models) -> f64 {
    let pairs = first.models.iter().zip(&second.models);
    let points = pairs.flat_map(|(x, y)| counted(x).iter().zip(counted(y)));
    points.map(|(x, y)| (own(x) / own(y)).max(own(y) / own(x)) - 1.0).fold(0.0, f64::max)
}

/// The speeds of these windows, of `count` in all.
fn combine_windows(windows: &[Models], count: usize) -> Result<QuickSpeeds> {
    let processors = windows[0].models.len();
    let (mut models, mut shares, mut spread) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..processors {
        let all: Vec<&Model> = windows.iter().map(|window| &window.models[rank]).collect();
        let middle = |i: usize| median(&all.iter().map(|m| own(&m.points()[i])).collect::<Vec<_>>());
        let points = all[0].points().iter().enumerate().map(|(i, p)| Point {
            repetitions: all.iter().map(|m| m.points()[i].repetitions).sum(),
            ..Point::new(p.size, middle(i))
        });
        let model = Model::new(all[0].processor(), all[0].interpolation(), points.collect(), None)?;
        let relative = |window: &&Model| {
            let ratios = counted(window).iter().zip(counted(&model)).map(|(x, y)| own(x) / y.seconds);
            ratios.sum::<f64>() / counted(window).len() as f64
        };
        let times: Vec<f64> = all.iter().map(relative).collect();
        shares.push(CpuShare::of(all.iter().flat_map(|m| m.points()).filter_map(|p| p.cpu_share)));
        spread.push(TimeRange {
            low: times.iter().copied().fold(f64::INFINITY, f64::min),
            high: times.iter().copied().fold(0.0, f64::max),
        });
        models.push(model);
    }
    Ok(QuickSpeeds { models: Models { models, ..windows[0].clone() }, shares, spread, windows: count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// One processor, measured at two sizes; the smaller takes whatever it takes.
    fn window(cpu: f64, share: f64) -> Models {
        let point = |size: f64, cpu: f64| Point {
            cpu_seconds: Some(cpu),
            cpu_share: Some(share),
            repetitions: 10,
            ..Point::new(size, cpu / share)
        };
        let points = vec![point(10.0, 0.1 * cpu.powi(2)), point(100.0, cpu)];
        Models {
            kernel: "test".into(),
            unit: "test".into(),
            parameters: BTreeMap::new(),
            models: vec![Model::piecewise("p0", points, None).unwrap()],
        }
    }

    fn measured(windows: &[(f64, f64)]) -> QuickSpeeds {
        let mut next = windows.iter();
        let effort = if windows.len() > 1 { Effort::Thorough } else { Effort::Rough };
        let next = || next.next().map(|(cpu, share)| Ok(window(*cpu, *share))).unwrap();
        let speeds = repeat_windows(effort, next).unwrap();
        assert_eq!(speeds.windows, windows.len(), "no more windows than needed");
        speeds
    }

    impl TimeRange {
        fn is_narrow(&self) -> bool {
            self.high - self.low <= AGREEMENT
        }
    }

    fn seconds(models: &Models) -> f64 {
        models.models[0].points()[1].seconds
    }

    #[test]
    fn windows_go_on_until_two_agree() {
        let quiet = measured(&[(2.0, 1.0), (2.04, 1.0)]);
        assert!((seconds(&quiet.models) - 2.02).abs() < 1e-12 && quiet.spread[0].is_narrow());
        assert_eq!(quiet.shares, [CpuShare::WHOLE]);
        let range = quiet.range();
        assert!(range.low > 0.98 && range.high < 1.02, "{range:?}");
        let slow_at_first = measured(&[(3.0, 1.0), (2.0, 1.0), (2.02, 1.0)]);
        assert!((seconds(&slow_at_first.models) - 2.01).abs() < 1e-12 && slow_at_first.spread[0].is_narrow());
        let restless = measured(&[(2.0, 1.0), (3.0, 1.0), (2.0, 1.0), (3.0, 1.0), (2.5, 1.0)]);
        assert_eq!(seconds(&restless.models), 2.5);
        assert!(!restless.spread[0].is_narrow());
        assert_eq!(restless.spread, [TimeRange { low: 0.8, high: 1.2 }]);
        let rough = measured(&[(2.0, 1.0)]);
        assert!(rough.serves(Effort::Rough) && !rough.serves(Effort::Thorough));
        assert!(quiet.serves(Effort::Rough) && quiet.serves(Effort::Thorough));
        assert_eq!([1e8, 1e9].map(Effort::worth), [Effort::Rough, Effort::Thorough]);
    }

    /// A neighbour that takes half of the time does not make the processor slower, only later.
    #[test]
    fn other_programs_are_told_from_slowness() {
        let busy = measured(&[(2.0, 0.5), (2.0, 0.6)]);
        assert_eq!(seconds(&busy.models), 2.0);
        let [share] = busy.shares[..] else { panic!("one processor") };
        assert!((share.mean - 0.55).abs() < 1e-12 && busy.spread[0].is_narrow());
        assert!((seconds(&busy.now().unwrap()) - 2.0 / 0.55).abs() < 1e-12);
        // At most 0.6 of the time was left, and at least 0.5.
        let TimeRange { low, high } = busy.range();
        assert!((low - 0.55 / 0.6).abs() < 1e-12 && (high - 0.55 / 0.5).abs() < 1e-12);
        let slower = busy.corrected(0, 1.5).unwrap();
        assert_eq!(seconds(&slower.models), 3.0);
        assert_eq!(slower.models.models[0].points()[0].seconds, 1.5 * 0.4);
    }
}

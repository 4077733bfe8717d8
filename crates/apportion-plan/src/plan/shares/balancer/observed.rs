//! What the balancer knows of one processor: its last rounds near the present share, and older points.

use crate::error::Result;
use crate::model::{Interpolation, Model, Point};
use crate::plan::shares::noise::{self, difference, push};
use serde::{Deserialize, Serialize};

/// How observations are remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// Maximum number of rounds whose median counts.
    pub(crate) window: usize,
    /// Shares that differ by no more than this fraction have the same seconds per unit.
    pub(crate) near: f64,
    /// Relative standard deviation of one round: measured, or assumed.
    pub(crate) noise: f64,
    /// Differences below this fraction are never taken for a change.
    pub(crate) tolerance: f64,
}

impl Memory {
    /// The relative difference of two times that noise does not explain.
    fn threshold(&self) -> f64 {
        self.tolerance.max(3.0 * self.noise)
    }
}

/// A processor has changed if its last rounds are all further from the earlier ones, on one side, than so
/// many standard deviations: run rules as in quality control (Western Electric 1956), with chances of
/// about one in a million for normal noise.
const RUNS: [(usize, f64); 3] = [(2, 3.0), (4, 2.0), (8, 1.0)];

/// Rounds after which a point is doubted.
const LIFE: u32 = 3;

/// Number of differences between successive rounds that are kept for the estimate of noise.
const DIFFERENCES: usize = 16;

/// One round of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Round {
    units: u64,
    pub seconds: f64,
}

impl Round {
    fn per_unit(self) -> f64 {
        self.seconds / self.units as f64
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observations {
    interpolation: Interpolation,
    /// Size and seconds, ascending by size: from models, or of shares that are no longer used.
    points: Vec<(f64, f64)>,
    /// For each point, the rounds since it was seen.
    ages: Vec<u32>,
    /// How often in a row it was slower with more units.
    failed: u32,
    cap: Option<f64>,
    /// True if the points are a model's: the rounds near the present share correct their height.
    believed: bool,
    /// True if the points are ratios of speeds.
    ratio: bool,
    /// The rounds near the present share, oldest first.
    recent: Vec<Round>,
    /// Relative differences of successive rounds with equal shares, oldest first.
    pub(crate) differences: Vec<f64>,
}

impl Observations {
    pub(crate) fn none() -> Self {
        Self {
            interpolation: Interpolation::PiecewiseLinear,
            points: Vec::new(),
            ages: Vec::new(),
            failed: 0,
            cap: None,
            believed: false,
            ratio: false,
            recent: Vec::new(),
            differences: Vec::new(),
        }
    }

    pub(crate) fn from_model(model: &Model) -> Self {
        Self {
            interpolation: model.interpolation(),
            points: model.points().iter().map(|p| (p.size, p.seconds)).collect(),
            ages: vec![0; model.points().len()],
            cap: model.max_size(),
            believed: true,
            ratio: model.is_ratio(),
            ..Self::none()
        }
    }

    /// Number of rounds near the present share.
    pub(crate) fn rounds(&self) -> usize {
        self.recent.len()
    }

    /// True if there are two rounds near the present share, and they contradict each other.
    pub(crate) fn is_contradictory(&self, memory: &Memory) -> bool {
        let [one, two] = self.recent[..] else { return false };
        !alike(one.per_unit(), two.per_unit(), memory.threshold())
    }

    pub(crate) fn is_ratio(&self) -> bool {
        self.ratio
    }

    /// Adds a round. True if the processor itself has become slower or faster, at all sizes.
    pub(crate) fn learn(&mut self, units: u64, seconds: f64, memory: &Memory) -> Result<bool> {
        let new = Round { units, seconds };
        if let Some(&last) = self.recent.last() {
            if last.units == units {
                push(&mut self.differences, difference(seconds, last.seconds), DIFFERENCES);
            }
            let moved = last.units != units;
            if units > last.units && memory.window > 1 {
                let slower = new.per_unit() > self.per_unit() * (1.0 + memory.threshold());
                self.failed = if slower { self.failed.saturating_add(1) } else { 0 };
            }
            let other =
                memory.window > 1 && moved && !alike(new.per_unit(), self.per_unit(), memory.threshold());
            if other || !is_near(self.recent[0].units as f64, units as f64, memory.near) {
                self.file(memory.near)?;
            }
        }
        // The present level, for comparison.
        let known = match self.recent.is_empty() {
            false => Some(self.per_unit()),
            true if self.believed => None,
            true => self.points.iter().find(|p| is_near(p.0, units as f64, 1e-3)).map(|p| p.1 / p.0),
        };
        let mut changed = false;
        if memory.window == 1 || self.recent.is_empty() {
            let slower = known.map_or(1.0, |known| new.per_unit() / known);
            changed = slower.max(1.0 / slower) > 1.0 + f64::max(0.25, 4.0 * memory.tolerance);
            if changed && !self.believed {
                self.scale(slower);
            }
        }
        if !self.believed {
            self.retain(|p, _| !is_near(p.0, units as f64, memory.near));
        }
        push(&mut self.recent, new, memory.window);
        self.ratio = false;
        changed |= self.follow(memory);
        self.doubt(memory);
        Ok(changed)
    }

    /// Drops the points that are old: whatever was seen once is doubted. A point at which the processor is slower than
    /// here is thus tried again, and ever more rarely where it is slow each time.
    fn doubt(&mut self, memory: &Memory) {
        self.ages.iter_mut().for_each(|age| *age = age.saturating_add(1));
        if self.believed || memory.window == 1 {
            return;
        }
        let slow = self.per_unit() * (1.0 + memory.threshold());
        let life = LIFE << (2 * self.failed.saturating_sub(1).min(12));
        self.retain(|p, age| age < if p.1 > slow * p.0 { life } else { LIFE });
    }

    fn retain(&mut self, keep: impl Fn(&(f64, f64), u32) -> bool) {
        let pairs = self.points.iter().copied().zip(self.ages.iter().copied());
        (self.points, self.ages) = pairs.filter(|(point, age)| keep(point, *age)).unzip();
    }

    /// Applies the run rules; true if the processor has changed. The earlier rounds are then forgotten.
    fn follow(&mut self, memory: &Memory) -> bool {
        for (run, deviations) in RUNS {
            let Some(before) = self.recent.len().checked_sub(run).filter(|before| *before > 0) else { break };
            let (old, new) = self.recent.split_at(before);
            let level = middle(old);
            let least = memory.tolerance.max(deviations * memory.noise);
            let beyond = |slower: bool| {
                new.iter().all(|r| {
                    let ratio = if slower { r.per_unit() / level } else { level / r.per_unit() };
                    ratio > 1.0 + least
                })
            };
            if beyond(true) || beyond(false) {
                let factor = middle(new) / level;
                // It changed at one and the same share: it has changed at all.
                let itself = old[before - 1].units == new[0].units;
                if itself && !self.believed {
                    self.scale(factor);
                }
                self.recent.drain(..before);
                return true;
            }
        }
        false
    }

    fn scale(&mut self, factor: f64) {
        self.points.iter_mut().for_each(|p| p.1 *= factor);
    }

    /// Moves the rounds near the present share to the points: another share follows.
    fn file(&mut self, near: f64) -> Result<()> {
        if self.believed {
            self.scale(self.correction()?);
            self.believed = false;
            if self.interpolation == Interpolation::Constant {
                self.points.clear();
                self.ages.clear();
            }
            self.interpolation = Interpolation::PiecewiseLinear;
        }
        let (size, seconds) = self.present();
        self.retain(|p, _| !is_near(p.0, size, near));
        let place = self.points.partition_point(|p| p.0 < size);
        self.points.insert(place, (size, seconds));
        self.ages.insert(place, 0);
        self.recent.clear();
        Ok(())
    }

    /// Seconds per unit near the present share: the median of its rounds.
    fn per_unit(&self) -> f64 {
        middle(&self.recent)
    }

    /// The mean of the shares of the recent rounds, and its seconds.
    fn present(&self) -> (f64, f64) {
        let size = self.recent.iter().map(|r| r.units as f64).sum::<f64>() / self.recent.len() as f64;
        (size, size * self.per_unit())
    }

    /// The factor by which a model's times are too short at the present share.
    fn correction(&self) -> Result<f64> {
        if self.recent.is_empty() || !self.believed {
            return Ok(1.0);
        }
        let (size, seconds) = self.present();
        Ok(seconds / self.of_points("", 1.0)?.seconds(size))
    }

    /// Takes ratios of speeds as times, multiplied by a factor.
    pub(crate) fn scale_ratio(&mut self, factor: f64) {
        self.scale(factor);
        self.ratio = false;
    }

    fn of_points(&self, name: &str, factor: f64) -> Result<Model> {
        let points = self.points.iter().map(|p| Point::new(p.0, p.1 * factor)).collect();
        Model::new(name, self.interpolation, points, None)
    }

    /// The speed function as far as it is known, if it is.
    pub(crate) fn model(&self, name: &str, near: f64) -> Result<Option<Model>> {
        let model = match (self.points.is_empty(), self.recent.is_empty()) {
            (true, true) => return Ok(None),
            (false, true) if self.ratio => Model::ratio(name, self.points[0].0 / self.points[0].1)?,
            _ if self.believed => self.of_points(name, self.correction()?)?,
            (_, recent_is_empty) => {
                let mut points: Vec<Point> = self.points.iter().map(|p| Point::new(p.0, p.1)).collect();
                if !recent_is_empty {
                    let (size, seconds) = self.present();
                    points.retain(|p| !is_near(p.size, size, near));
                    points.push(Point::new(size, seconds));
                }
                Model::piecewise(name, points, None)?
            }
        };
        Ok(Some(match self.cap {
            Some(cap) => model.with_cap(cap)?,
            None => model,
        }))
    }

    /// The first defect of a state that was read from a text.
    pub(crate) fn defect(&self) -> Option<&'static str> {
        let bad_round = |r: &Round| r.units == 0 || crate::input::extreme(r.seconds).is_some();
        let bad_difference = |d: &f64| !(0.0..=2.0).contains(d);
        if self.recent.iter().any(bad_round) {
            Some("a round is not a positive number of units and seconds")
        } else if self.differences.iter().any(bad_difference) {
            Some("a difference is not between 0 and 2")
        } else if self.ages.len() != self.points.len() {
            Some("points have no age")
        } else if self.believed && self.points.is_empty() || self.ratio && !self.believed {
            Some("a model has no point")
        } else {
            None
        }
    }
}

/// The lower median of seconds per unit.
fn middle(rounds: &[Round]) -> f64 {
    noise::middle(rounds.iter().map(|r| r.per_unit()))
}

fn is_near(size: f64, other: f64, fraction: f64) -> bool {
    (size - other).abs() <= fraction * other
}

fn alike(a: f64, b: f64, threshold: f64) -> bool {
    a.max(b) <= (1.0 + threshold) * a.min(b)
}

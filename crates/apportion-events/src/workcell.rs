//! A workcell: jobs, resources, parts, rules.

use super::Scenario;
use apportion::random::Random;
use std::fmt;
use std::str::FromStr;

/// A time or duration in nanoseconds. Whole numbers keep simultaneous events simultaneous.
pub type Nanos = u64;

/// Nanoseconds of a second.
pub(super) const SECOND: f64 = 1e9;

/// A time in seconds.
pub fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND
}

/// The time that a job takes, or that a resource needs after its release.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Duration {
    /// Always the same.
    Fixed(Nanos),
    /// Any time between two, equally likely.
    Uniform(Nanos, Nanos),
    /// Between the first and the last, most likely the second.
    Triangular(Nanos, Nanos, Nanos),
    /// Exponentially distributed with this mean.
    Exponential(Nanos),
}

impl Duration {
    /// The duration, if it is always the same.
    pub(crate) fn fixed(&self) -> Option<Nanos> {
        match *self {
            Self::Fixed(time) => Some(time),
            _ => None,
        }
    }

    /// The expected duration.
    pub(crate) fn mean(&self) -> Nanos {
        match *self {
            Self::Fixed(time) | Self::Exponential(time) => time,
            Self::Uniform(from, to) => from + (to - from) / 2,
            Self::Triangular(least, mode, most) => (least + mode + most) / 3,
        }
    }

    /// A duration by a number in [0, 1).
    fn at(&self, unit: f64) -> Nanos {
        match *self {
            Self::Fixed(time) => time,
            Self::Uniform(from, to) => from + ((to - from) as f64 * unit).round() as Nanos,
            Self::Triangular(least, mode, most) => {
                let [low, peak, high] = [least, mode, most].map(|x| x as f64);
                let width = high - low;
                let cut = if width > 0.0 { (peak - low) / width } else { 0.0 };
                let time = if unit < cut {
                    low + (unit * width * (peak - low)).sqrt()
                } else {
                    high - ((1.0 - unit) * width * (high - peak)).sqrt()
                };
                (time.round() as Nanos).clamp(least, most)
            }
            Self::Exponential(mean) => (-(1.0 - unit).ln() * mean as f64).round() as Nanos,
        }
    }

    /// The duration of one instance of a job: the same for the same seed, replication, job and instance, in
    /// whatever order jobs start.
    pub(super) fn draw(&self, seed: u64, [replication, job, instance]: [u64; 3]) -> Nanos {
        if let Self::Fixed(time) = *self {
            return time;
        }
        let mixed = [replication, job, instance]
            .iter()
            .fold(seed, |state, &part| Random::new(state ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).word());
        self.at(Random::new(mixed).unit())
    }
}

/// A job: something that takes time.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub(crate) name: String,
    /// How long it takes.
    pub(crate) duration: Duration,
    /// Instances that are done already at time 0.
    pub(crate) done: u64,
}

/// A resource: a machine, a robot, a track, the pallets, the places of a buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// Number of units.
    pub capacity: u64,
    /// Time between a release and the moment at which the unit is free again.
    pub(crate) reset: Nanos,
    /// How rules that compete for it are chosen; by default as everywhere in the workcell.
    pub(crate) dispatching: Option<Dispatching>,
}

/// When parts of a kind enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrivals {
    /// All at time 0.
    AtStart(u64),
    /// One every so often, from a first time on; without a number, forever.
    Every {
        /// The first arrival.
        first: Nanos,
        /// Time between arrivals.
        every: Nanos,
        /// Number of parts.
        count: Option<u64>,
    },
    /// At these times, ascending.
    At(Vec<Nanos>),
}

impl Arrivals {
    /// The time of the arrival with this number, from 0; `None` if there are fewer.
    pub(crate) fn time(&self, number: u64) -> Option<Nanos> {
        match self {
            Self::AtStart(count) => (number < *count).then_some(0),
            Self::Every { first, every, count } => {
                let exists = count.is_none_or(|count| number < count);
                exists.then(|| every.checked_mul(number)?.checked_add(*first)).flatten()
            }
            Self::At(times) => times.get(usize::try_from(number).ok()?).copied(),
        }
    }
}

/// A kind of parts, and when they enter.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSource {
    /// Its name.
    pub(crate) name: String,
    /// The times.
    pub arrivals: Arrivals,
}

/// A rule: if jobs are done, resources are free and parts wait, then start, release, produce. All are
/// indices; a name is in a list once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Jobs of which an instance must be done.
    pub(crate) done: Vec<usize>,
    /// Resources of which a unit must be free.
    pub(crate) free: Vec<usize>,
    /// Kinds of which a part must wait.
    pub(crate) parts: Vec<usize>,
    /// Jobs that start.
    pub(crate) start: Vec<usize>,
    /// Resources of which a unit is released.
    pub(crate) release: Vec<usize>,
    /// Products that are finished.
    pub(crate) produce: Vec<usize>,
    /// Preference where `priority` decides; larger numbers first.
    pub(crate) priority: i64,
}

/// Which rule fires first where several compete for the same resource, job or part. Ties: the rule that was
/// written first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Dispatching {
    /// The one whose jobs and parts have waited longest.
    #[default]
    Fifo,
    /// The one with the largest `priority`; among equals the one that has waited longest.
    Priority,
    /// The one whose jobs take the least time (shortest processing time).
    Shortest,
    /// The one whose jobs take the most time.
    Longest,
    /// The one that was written first (first buffer, first served).
    FirstBuffer,
    /// The one that was written last (last buffer, first served).
    LastBuffer,
}

impl Dispatching {
    /// Names in files.
    pub(crate) const NAMES: [(&'static str, Self); 6] = [
        ("fifo", Self::Fifo),
        ("priority", Self::Priority),
        ("shortest", Self::Shortest),
        ("longest", Self::Longest),
        ("first-buffer", Self::FirstBuffer),
        ("last-buffer", Self::LastBuffer),
    ];
}

impl FromStr for Dispatching {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, rule)| *rule).ok_or_else(|| format!("unknown dispatching rule \"{text}\""))
    }
}

impl fmt::Display for Dispatching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::NAMES.iter().find(|(_, rule)| rule == self);
        f.write_str(known.map_or("fifo", |(name, _)| name))
    }
}

/// A workcell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workcell {
    /// Its name, for reports.
    pub name: String,
    /// How conflicts are decided.
    pub(crate) dispatching: Dispatching,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The resources.
    pub resources: Vec<Resource>,
    /// The parts that enter.
    pub parts: Vec<PartSource>,
    /// The names of the products.
    pub products: Vec<String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Variants that are simulated beside it.
    pub scenarios: Vec<Scenario>,
}

/// What a rule waits for: a condition, that is a row of the vectors v, r and u.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An instance of a job that is done.
    Job(usize),
    /// A free unit of a resource.
    Resource(usize),
    /// A part that waits.
    Part(usize),
}

impl Workcell {
    /// Number of places: jobs, resources and kinds of parts.
    pub fn places(&self) -> usize {
        self.jobs.len() + self.resources.len() + self.parts.len()
    }

    /// A place's number: jobs first, then resources, then parts.
    pub(crate) fn number(&self, place: Place) -> usize {
        match place {
            Place::Job(job) => job,
            Place::Resource(resource) => self.jobs.len() + resource,
            Place::Part(part) => self.jobs.len() + self.resources.len() + part,
        }
    }

    /// The place with a number.
    pub(crate) fn place(&self, number: usize) -> Place {
        let (jobs, resources) = (self.jobs.len(), self.resources.len());
        if number < jobs {
            Place::Job(number)
        } else if number < jobs + resources {
            Place::Resource(number - jobs)
        } else {
            Place::Part(number - jobs - resources)
        }
    }

    /// The name of a place, as `job "mill"`.
    pub fn name_of(&self, place: Place) -> String {
        match place {
            Place::Job(job) => format!("job \"{}\"", self.jobs[job].name),
            Place::Resource(resource) => format!("resource \"{}\"", self.resources[resource].name),
            Place::Part(part) => format!("part \"{}\"", self.parts[part].name),
        }
    }

    /// The places that a rule takes from, by number.
    pub(crate) fn inputs(&self, rule: usize) -> impl Iterator<Item = usize> + '_ {
        let Rule { done, free, parts, .. } = &self.rules[rule];
        let resources = free.iter().map(|&i| self.number(Place::Resource(i)));
        let parts = parts.iter().map(|&i| self.number(Place::Part(i)));
        done.iter().copied().chain(resources).chain(parts)
    }

    /// The rules that take from each place.
    pub(crate) fn takers(&self) -> Vec<Vec<usize>> {
        let mut takers = vec![Vec::new(); self.places()];
        (0..self.rules.len()).for_each(|rule| self.inputs(rule).for_each(|place| takers[place].push(rule)));
        takers
    }

    /// The rules that put something into each place: that start a job or release a resource.
    pub(crate) fn givers(&self) -> Vec<Vec<usize>> {
        let mut givers = vec![Vec::new(); self.places()];
        for (number, rule) in self.rules.iter().enumerate() {
            rule.start.iter().for_each(|&job| givers[job].push(number));
            rule.release.iter().for_each(|&i| givers[self.number(Place::Resource(i))].push(number));
        }
        givers
    }
}

//! The sequence of sizes of one processor, and the search for the largest size that works.

use super::super::focus::FocusedSweep;
use super::{Found, Sizes, Subject, Sweep};
use crate::error::{Error, Result};
use crate::model::{AdaptiveSweep, Failure, Interpolation, Model, Models, Point};
use crate::platform::Processor;
use std::collections::BTreeMap;

/// The largest size that works is searched for up to this relative distance from one that fails …
const CAP_ACCURACY: f64 = 0.05;
/// … in at most this number of runs, if sizes are listed.
const CAP_TRIES: u32 = 20;
/// Sizes that a plan may begin with before a failure counts as the program's.
const FIRST_TRIES: u32 = 6;

/// Task of a processor in a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Task {
    /// Measures this size.
    Measure(f64),
    /// Has all its points, and keeps working so that the conditions of the other processors do not change.
    Accompany(f64),
}

/// The sequence of sizes of one processor.
#[derive(Debug)]
pub(super) struct Course {
    /// All points, ascending by size, including those of an earlier sweep.
    points: Vec<Point>,
    plan: Plan,
    rounded: fn(f64) -> f64,
    /// The largest size that fits into memory.
    largest: f64,
    /// A cap that was given.
    given: Option<f64>,
    /// The smallest size that failed.
    failure: Option<Failure>,
    tries: u32,
}

#[derive(Debug)]
enum Plan {
    Listed(Vec<f64>),
    Adaptive(AdaptiveSweep),
    /// The size that the plan needs next.
    Asked(Option<f64>),
}

impl Course {
    /// The size to measure next.
    fn next(&self) -> Option<f64> {
        match &self.plan {
            Plan::Listed(sizes) => {
                let open = |size: &f64| self.known(*size).is_none() && !self.fails(*size);
                sizes.iter().copied().find(open).or_else(|| self.between())
            }
            Plan::Adaptive(sweep) => sweep.next_size().map(self.rounded),
            Plan::Asked(size) => size.filter(|&size| self.known(size).is_none() && !self.fails(size)),
        }
    }

    /// A size between the largest that works and the smallest that fails.
    fn between(&self) -> Option<f64> {
        let (low, high) = (self.points.last()?.size, self.failure.as_ref()?.size);
        let middle = if high > 4.0 * low { (low * high).sqrt() } else { 0.5 * (low + high) };
        let middle = (self.rounded)(middle.round());
        let open = high > (1.0 + CAP_ACCURACY) * low && self.tries < CAP_TRIES;
        (open && middle > low && middle < high).then_some(middle)
    }

    pub fn task(&self) -> Option<Task> {
        let done = || self.points.last().map(|p| Task::Accompany(p.size));
        self.next().map(Task::Measure).or_else(done)
    }

    fn known(&self, size: f64) -> Option<Point> {
        self.points.iter().find(|p| p.size == size).copied()
    }

    /// True if this size, or a smaller one, has failed.
    fn fails(&self, size: f64) -> bool {
        self.failure.as_ref().is_some_and(|failure| size >= failure.size)
    }

    /// Takes what was found for a size; true if it is a point.
    ///
    /// # Errors
    /// The size failed, and it is not larger than all that worked: that is no lack of memory.
    pub fn take(&mut self, found: Found) -> Result<bool> {
        if self.failure.is_some() {
            self.tries += 1;
        }
        match found {
            Found::Point(point) => {
                let place = self.points.partition_point(|p| p.size < point.size);
                self.points.insert(place, point);
                self.skip();
                Ok(true)
            }
            Found::TooLarge { size, error, reason } => {
                // A plan that asks for the sizes that it needs may begin with one that is too large.
                let first = self.points.is_empty() && matches!(self.plan, Plan::Asked(_));
                let may_shrink = first && size > 1.0 && self.tries < FIRST_TRIES;
                if !may_shrink && self.points.last().is_none_or(|last| last.size >= size) {
                    return Err(error);
                }
                if !self.fails(size) {
                    self.failure = Some(Failure { size, reason });
                }
                self.skip();
                Ok(false)
            }
        }
    }

    /// Skips sizes whose outcome is known already.
    fn skip(&mut self) {
        while let Some(size) = self.next() {
            let (known, fails) = (self.known(size), self.fails(size));
            let (Plan::Adaptive(sweep), largest) = (&mut self.plan, self.largest) else { break };
            match known {
                Some(point) => sweep.add(point),
                None if size > largest || fails => sweep.refuse(size),
                None => break,
            }
        }
    }

    /// Number of remaining points; an estimate if the sweep is adaptive or searches for a cap.
    pub fn expected(&self) -> u64 {
        match &self.plan {
            Plan::Listed(sizes) => {
                let open = |size: &&f64| self.known(**size).is_none() && !self.fails(**size);
                sizes.iter().filter(open).count() as u64 + u64::from(self.between().is_some())
            }
            Plan::Adaptive(sweep) if self.next().is_some() => sweep.expected_more().max(1) as u64,
            Plan::Adaptive(_) => 0,
            Plan::Asked(_) => u64::from(self.next().is_some()),
        }
    }

    /// The largest size that a plan may use.
    fn cap(&self) -> Option<f64> {
        let found = match &self.plan {
            Plan::Listed(_) | Plan::Asked(_) => self.failure.as_ref().and(self.points.last()).map(|p| p.size),
            Plan::Adaptive(sweep) => sweep.cap(),
        };
        match (found, self.given) {
            (Some(found), Some(given)) => Some(found.min(given)),
            (found, given) => found.or(given),
        }
    }
}

/// The courses of all processors.
///
/// # Errors
/// Known points of another subject, or sizes that are no range.
pub(super) fn courses(subject: &Subject<'_>, sweep: &Sweep<'_>) -> Result<Vec<Course>> {
    if let Sizes::Each(sizes) = &sweep.sizes
        && sizes.len() != subject.platform.len()
    {
        let what = format!("{} sizes for {} processors", sizes.len(), subject.platform.len());
        return Err(Error::input("`sizes`", what, "give one size for each processor"));
    }
    let mut known = match &sweep.known {
        Some(models) => known_models(subject, models)?,
        None => BTreeMap::new(),
    };
    let rounded = subject.rounded;
    let course = |(rank, processor): (usize, &Processor)| {
        let known = known.remove(&processor.name);
        let largest = (subject.largest)(processor);
        // A cap without a failure, of a subject whose memory is unknown, was given to the earlier sweep.
        let earlier = known
            .as_ref()
            .filter(|m| m.failure().is_none() && largest.is_infinite())
            .and_then(Model::max_size);
        let given = match (sweep.max_size, earlier) {
            (Some(now), Some(earlier)) => Some(now.min(earlier)),
            (now, earlier) => now.or(earlier),
        };
        let allowed = |size: f64| given.is_none_or(|cap| size <= cap);
        let plan = match &sweep.sizes {
            Sizes::Focused { .. } => Plan::Asked(None),
            Sizes::Listed(sizes) | Sizes::Each(sizes) => {
                let each = matches!(sweep.sizes, Sizes::Each(_));
                let sizes = if each { &sizes[rank..=rank] } else { &sizes[..] };
                let sizes = sizes.iter().map(|&size| rounded(size));
                let mut sizes: Vec<f64> = sizes.filter(|&size| allowed(size)).collect();
                sizes.sort_by(f64::total_cmp);
                sizes.dedup();
                Plan::Listed(sizes)
            }
            &Sizes::Adaptive { smallest, largest, accuracy, most } => {
                let top = given.map_or(largest, |cap| largest.min(cap));
                let sweep = AdaptiveSweep::new(rounded(smallest), rounded(top), accuracy)?;
                Plan::Adaptive(sweep.with_most(most))
            }
        };
        let failure = known.as_ref().and_then(|m| m.failure().cloned());
        let points = known.map_or_else(Vec::new, |m| m.points().to_vec());
        let mut course = Course { points, plan, rounded, largest, given, failure, tries: 0 };
        course.skip();
        Ok(course)
    };
    subject.platform.processors.iter().enumerate().map(course).collect()
}

/// Asks each course for the size that the plan of a focused sweep needs next; only the costliest one if the
/// processors are measured one at a time. `models` has the points of all processors.
///
/// # Errors
/// As [`FocusedSweep::requests`].
pub(super) fn ask(
    subject: &Subject<'_>,
    courses: &mut [Course],
    models: &Models,
    sweep: &Sweep<'_>,
) -> Result<()> {
    let Sizes::Focused { units, accuracy, most } = sweep.sizes else { return Ok(()) };
    let focus = FocusedSweep::new(courses.len(), units, accuracy)?;
    let mut focus = focus.with_most(most).with_rounding(subject.rounded);
    for (rank, (course, processor)) in courses.iter().zip(&subject.platform.processors).enumerate() {
        let cap = course.given.map_or(course.largest, |given| given.min(course.largest));
        if cap.is_finite() {
            focus.cap(rank, cap);
        }
        let model = models.models.iter().find(|model| model.processor() == processor.name);
        for point in model.into_iter().flat_map(Model::points) {
            focus.add(rank, *point);
        }
        if let Some(failure) = &course.failure {
            focus.refuse(rank, failure.size);
        }
    }
    let mut requests = focus.requests()?;
    if sweep.options.alone {
        requests = focus.next()?.into_iter().collect();
    }
    for (rank, course) in courses.iter_mut().enumerate() {
        course.plan = Plan::Asked(requests.iter().find(|r| r.rank == rank).map(|r| r.size));
    }
    Ok(())
}

/// The models of an earlier sweep, by processor.
fn known_models(subject: &Subject<'_>, models: &Models) -> Result<BTreeMap<String, Model>> {
    let refuse =
        |what: String| Err(Error::input("`resume`", what, "measure into another file, or without `resume`"));
    if models.kernel != subject.kernel || models.parameters != subject.parameters {
        let of = |kernel: &str, parameters: &BTreeMap<String, f64>| {
            parameters.iter().fold(kernel.to_owned(), |text, (name, value)| format!("{text}, {name} {value}"))
        };
        return refuse(format!(
            "the file holds points of \"{}\", not of \"{}\"",
            of(&models.kernel, &models.parameters),
            of(&subject.kernel, &subject.parameters),
        ));
    }
    let names = subject.platform.names();
    if let Some(stranger) = models.names().iter().find(|name| !names.contains(name)) {
        return refuse(format!(
            "the file holds points of processor \"{stranger}\", which the platform does not have"
        ));
    }
    Ok(models.models.iter().map(|m| (m.processor().to_owned(), m.clone())).collect())
}

/// The models so far, of the processors that have a point.
pub(super) fn models(subject: &Subject<'_>, courses: &[Course]) -> Result<Models> {
    let models = courses
        .iter()
        .zip(&subject.platform.processors)
        .filter(|(course, _)| !course.points.is_empty())
        .map(|(course, processor)| model(course, processor))
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: subject.kernel.clone(),
        unit: subject.unit.clone(),
        parameters: subject.parameters.clone(),
        models,
    })
}

/// The model so far of a processor that has a point.
fn model(course: &Course, processor: &Processor) -> Result<Model> {
    let interpolation = match &course.plan {
        Plan::Listed(_) | Plan::Asked(_) => Interpolation::PiecewiseLinear,
        Plan::Adaptive(_) => Interpolation::Akima,
    };
    Model::new(&processor.name, interpolation, course.points.clone(), course.cap())?
        .with_failure(course.failure.clone())
}

#[cfg(test)]
mod tests;

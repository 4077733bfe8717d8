//! The sequence of sizes of one processor, and the search for the largest size that works.

use super::super::focus::FocusedSweep;
use super::{SizeOutcome, Sizes, Subject, Sweep};
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
pub(super) struct SizeSequence {
    /// All points, ascending by size, including those of an earlier sweep.
    points: Vec<Point>,
    choice: SizeChoice,
    rounded: fn(f64) -> f64,
    /// The largest size that fits into memory.
    largest: f64,
    /// The cap of the sweep, or of an earlier one.
    limit: Option<f64>,
    /// The smallest size that failed.
    failure: Option<Failure>,
    tries: u32,
}

#[derive(Debug)]
enum SizeChoice {
    Listed(Vec<f64>),
    Adaptive(AdaptiveSweep),
    /// The size that the plan needs next.
    Requested(Option<f64>),
}

impl SizeSequence {
    /// The size to measure next.
    fn next(&self) -> Option<f64> {
        match &self.choice {
            SizeChoice::Listed(sizes) => {
                let open = |size: &f64| self.point_at(*size).is_none() && !self.fails(*size);
                sizes.iter().copied().find(open).or_else(|| self.between())
            }
            SizeChoice::Adaptive(sweep) => sweep.next_size().map(self.rounded),
            SizeChoice::Requested(size) => {
                size.filter(|&size| self.point_at(size).is_none() && !self.fails(size))
            }
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

    pub(crate) fn task(&self) -> Option<Task> {
        let done = || self.points.last().map(|p| Task::Accompany(p.size));
        self.next().map(Task::Measure).or_else(done)
    }

    fn point_at(&self, size: f64) -> Option<Point> {
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
    pub(crate) fn take(&mut self, outcome: SizeOutcome) -> Result<bool> {
        if self.failure.is_some() {
            self.tries += 1;
        }
        match outcome {
            SizeOutcome::Point(point) => {
                let place = self.points.partition_point(|p| p.size < point.size);
                self.points.insert(place, point);
                self.skip();
                Ok(true)
            }
            SizeOutcome::TooLarge { size, error, reason } => {
                // A plan that asks for the sizes that it needs may begin with one that is too large.
                let first = self.points.is_empty() && matches!(self.choice, SizeChoice::Requested(_));
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
            let (known, fails) = (self.point_at(size), self.fails(size));
            let (SizeChoice::Adaptive(sweep), largest) = (&mut self.choice, self.largest) else { break };
            match known {
                Some(point) => sweep.add(point),
                None if size > largest || fails => sweep.refuse(size),
                None => break,
            }
        }
    }

    /// Number of remaining points; an estimate if the sweep is adaptive or searches for a cap.
    pub(crate) fn expected(&self) -> u64 {
        match &self.choice {
            SizeChoice::Listed(sizes) => {
                let open = |size: &&f64| self.point_at(**size).is_none() && !self.fails(**size);
                sizes.iter().filter(open).count() as u64 + u64::from(self.between().is_some())
            }
            SizeChoice::Adaptive(sweep) if self.next().is_some() => sweep.expected_more().max(1) as u64,
            SizeChoice::Adaptive(_) => 0,
            SizeChoice::Requested(_) => u64::from(self.next().is_some()),
        }
    }

    /// The largest size that a plan may use.
    fn cap(&self) -> Option<f64> {
        let found = match &self.choice {
            SizeChoice::Listed(_) | SizeChoice::Requested(_) => {
                self.failure.as_ref().and(self.points.last()).map(|p| p.size)
            }
            SizeChoice::Adaptive(sweep) => sweep.cap(),
        };
        match (found, self.limit) {
            (Some(found), Some(limit)) => Some(found.min(limit)),
            (found, limit) => found.or(limit),
        }
    }
}

/// The sequences of all processors.
///
/// # Errors
/// Known points of another subject, or sizes that are no range.
pub(super) fn size_sequences(subject: &Subject<'_>, sweep: &Sweep<'_>) -> Result<Vec<SizeSequence>> {
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
    let sequence = |(rank, processor): (usize, &Processor)| {
        let known = known.remove(&processor.name);
        let largest = (subject.largest)(processor);
        // A cap without a failure, of a subject whose memory is unknown, was given to the earlier sweep.
        let earlier = known
            .as_ref()
            .filter(|m| m.failure().is_none() && largest.is_infinite())
            .and_then(Model::max_size);
        let limit = match (sweep.max_size, earlier) {
            (Some(now), Some(earlier)) => Some(now.min(earlier)),
            (now, earlier) => now.or(earlier),
        };
        let allowed = |size: f64| limit.is_none_or(|cap| size <= cap);
        let choice = match &sweep.sizes {
            Sizes::Focused { .. } => SizeChoice::Requested(None),
            Sizes::Listed(sizes) | Sizes::Each(sizes) => {
                let each = matches!(sweep.sizes, Sizes::Each(_));
                let sizes = if each { &sizes[rank..=rank] } else { &sizes[..] };
                let sizes = sizes.iter().map(|&size| rounded(size));
                let mut sizes: Vec<f64> = sizes.filter(|&size| allowed(size)).collect();
                sizes.sort_by(f64::total_cmp);
                sizes.dedup();
                SizeChoice::Listed(sizes)
            }
            &Sizes::Adaptive { smallest, largest, accuracy, most } => {
                let top = limit.map_or(largest, |cap| largest.min(cap));
                let sweep = AdaptiveSweep::new(rounded(smallest), rounded(top), accuracy)?;
                SizeChoice::Adaptive(sweep.with_most(most))
            }
        };
        let failure = known.as_ref().and_then(|m| m.failure().cloned());
        let points = known.map_or_else(Vec::new, |m| m.points().to_vec());
        let mut sequence = SizeSequence { points, choice, rounded, largest, limit, failure, tries: 0 };
        sequence.skip();
        Ok(sequence)
    };
    subject.platform.processors.iter().enumerate().map(sequence).collect()
}

/// Asks each sequence for the size that the plan of a focused sweep needs next; only the costliest one if the
/// processors are measured one at a time. `models` has the points of all processors.
///
/// # Errors
/// As [`FocusedSweep::requests`].
pub(super) fn request_sizes(
    subject: &Subject<'_>,
    sequences: &mut [SizeSequence],
    models: &Models,
    sweep: &Sweep<'_>,
) -> Result<()> {
    let Sizes::Focused { units, accuracy, most } = sweep.sizes else { return Ok(()) };
    let focus = FocusedSweep::new(sequences.len(), units, accuracy)?;
    let mut focus = focus.with_most(most).with_rounding(subject.rounded);
    for (rank, (sequence, processor)) in sequences.iter().zip(&subject.platform.processors).enumerate() {
        let cap = sequence.limit.map_or(sequence.largest, |limit| limit.min(sequence.largest));
        if cap.is_finite() {
            focus.cap(rank, cap);
        }
        let model = models.models.iter().find(|model| model.processor() == processor.name);
        for point in model.into_iter().flat_map(Model::points) {
            focus.add(rank, *point);
        }
        if let Some(failure) = &sequence.failure {
            focus.refuse(rank, failure.size);
        }
    }
    let mut requests = focus.requests()?;
    if sweep.options.alone {
        requests = focus.next()?.into_iter().collect();
    }
    for (rank, sequence) in sequences.iter_mut().enumerate() {
        sequence.choice = SizeChoice::Requested(requests.iter().find(|r| r.rank == rank).map(|r| r.size));
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
pub(super) fn models(subject: &Subject<'_>, sequences: &[SizeSequence]) -> Result<Models> {
    let models = sequences
        .iter()
        .zip(&subject.platform.processors)
        .filter(|(sequence, _)| !sequence.points.is_empty())
        .map(|(sequence, processor)| model(sequence, processor))
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: subject.kernel.clone(),
        unit: subject.unit.clone(),
        parameters: subject.parameters.clone(),
        models,
    })
}

/// The model so far of a processor that has a point.
fn model(sequence: &SizeSequence, processor: &Processor) -> Result<Model> {
    let interpolation = match &sequence.choice {
        SizeChoice::Listed(_) | SizeChoice::Requested(_) => Interpolation::PiecewiseLinear,
        SizeChoice::Adaptive(_) => Interpolation::Akima,
    };
    Model::new(&processor.name, interpolation, sequence.points.clone(), sequence.cap())?
        .with_failure(sequence.failure.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::MeasureOptions;
    use crate::platform::Platform;

    fn subject(platform: &Platform) -> Subject<'_> {
        Subject {
            platform,
            kernel: "test".into(),
            unit: "test".into(),
            parameters: BTreeMap::new(),
            rounded: |size| size.round(),
            largest: Box::new(|_| f64::INFINITY),
        }
    }

    /// Measures until nothing is left to do; a size fails above `works`. Returns the model and the sizes run.
    fn swept(sweep: &Sweep<'_>, works: f64, most: usize) -> (Result<Models>, Vec<f64>) {
        let platform = Platform::from_speeds(&[1.0]).unwrap();
        let subject = subject(&platform);
        let mut sequences = size_sequences(&subject, sweep).unwrap();
        let mut run = Vec::new();
        while let Some(Task::Measure(size)) = sequences[0].task() {
            if run.len() == most {
                break;
            }
            run.push(size);
            let found = if size <= works {
                SizeOutcome::Point(Point::new(size, 0.01 * size))
            } else {
                SizeOutcome::TooLarge {
                    size,
                    error: Error::infeasible("it failed", "help it"),
                    reason: "full".into(),
                }
            };
            if let Err(error) = sequences[0].take(found) {
                return (Err(error), run);
            }
        }
        (models(&subject, &sequences), run)
    }

    fn listed(sizes: &[f64]) -> Sweep<'static> {
        Sweep::new(Sizes::Listed(sizes.to_vec()), MeasureOptions::default())
    }

    fn adaptive() -> Sweep<'static> {
        let sizes = Sizes::Adaptive { smallest: 100.0, largest: 20_000.0, accuracy: 0.05, most: 30 };
        Sweep::new(sizes, MeasureOptions::default())
    }

    /// The cap is at most 5 % below the truth, whatever it is, and never above; few runs find it.
    #[test]
    fn the_largest_size_that_works_is_found() {
        for works in [100.0, 101.0, 250.0, 999.0, 5000.0, 17_777.0, 19_999.0] {
            for sweep in [listed(&[100.0, 1000.0, 20_000.0, 40_000.0]), adaptive()] {
                let (models, run) = swept(&sweep, works, usize::MAX);
                let model = &models.unwrap().models[0];
                let cap = model.max_size().unwrap();
                let failure = model.failure().unwrap();
                assert!(
                    cap <= works && failure.size > works && failure.reason == "full",
                    "{works}: {model:?}"
                );
                assert!(failure.size <= 1.05 * cap + 1.0, "{works}: between {cap} and {}", failure.size);
                assert!(run.iter().filter(|&&size| size > works).count() <= 10, "{works}: {run:?}");
                assert!(run.len() <= 40, "{works}: {run:?}");
            }
        }
    }

    #[test]
    fn a_failure_at_the_smallest_size_or_below_one_that_worked_is_an_error() {
        for sweep in [listed(&[100.0, 1000.0]), adaptive()] {
            let (models, run) = swept(&sweep, 99.0, usize::MAX);
            assert!(models.unwrap_err().to_string().contains("it failed"));
            assert_eq!(run, [100.0]);
        }
        // A larger size is known to work.
        let known = swept(&listed(&[900.0]), 1e9, usize::MAX).0.unwrap();
        let sweep = Sweep { known: Some(known), ..listed(&[100.0, 900.0]) };
        assert!(swept(&sweep, 50.0, usize::MAX).0.is_err());
    }

    /// Wherever the first sweep was interrupted, the second ends with the same model and repeats no point.
    #[test]
    fn an_interrupted_search_is_continued() {
        for sweep in [listed(&[100.0, 1000.0, 20_000.0]), adaptive()] {
            let (whole, all) = swept(&sweep, 5000.0, usize::MAX);
            let whole = whole.unwrap();
            for most in 1..all.len() {
                let (part, before) = swept(&sweep, 5000.0, most);
                let again = Sweep { known: Some(part.unwrap()), ..sweep.clone() };
                let (models, after) = swept(&again, 5000.0, usize::MAX);
                let model = &models.unwrap().models[0];
                assert_eq!(model.max_size(), whole.models[0].max_size(), "{most}");
                assert!(
                    !after.iter().any(|size| *size <= 5000.0 && before.contains(size)),
                    "{before:?} {after:?}"
                );
            }
            let (same, run) = swept(&Sweep { known: Some(whole.clone()), ..sweep }, 5000.0, usize::MAX);
            assert_eq!((same.unwrap(), run), (whole, Vec::new()), "the cap is kept");
        }
    }

    #[test]
    fn a_given_cap_is_kept_and_not_exceeded() {
        for sweep in [listed(&[100.0, 1000.0, 20_000.0]), adaptive()] {
            let sweep = Sweep { max_size: Some(3000.0), ..sweep };
            let (models, run) = swept(&sweep, 1e9, usize::MAX);
            let models = models.unwrap();
            assert_eq!(models.models[0].max_size(), Some(3000.0));
            assert!(run.iter().all(|size| *size <= 3000.0), "{run:?}");
            // Also by a later sweep that does not know of it, and below a failure.
            let again = Sweep { known: Some(models), max_size: None, ..sweep.clone() };
            assert_eq!(swept(&again, 1e9, usize::MAX).0.unwrap().models[0].max_size(), Some(3000.0));
            let (found, run) = swept(&sweep, 900.0, usize::MAX);
            let cap = found.unwrap().models[0].max_size();
            assert!(cap.is_some_and(|cap| cap <= 900.0), "{cap:?} {run:?}");
        }
    }
}

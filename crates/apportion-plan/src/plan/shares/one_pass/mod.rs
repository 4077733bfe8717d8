//! Divides units of work among processors in one pass, while the work runs.
//!
//! Each processor runs pieces of the range of units, one after the other. The first are small. The times of
//! pieces show what a processor needs to start and for each unit, and with what spread; each further piece is as
//! large as these allow if all are to end together, so that a start-up is paid as seldom as possible.
//!
//! The policy is a value: it reads no clock, and what it decides follows from the times that it is given.
//!
//! Sources: Hummel, Schonberg and Flynn, "Factoring: a method for scheduling parallel loops", 1992 (a part of what is
//! left stays in reserve); Banicescu and Liu, "Adaptive factoring", 2000 (its size follows from measured means and
//! variances). Added: a line instead of a mean, so that start-up is told from work, and the choice of no reserve.

mod line;
mod profile;
mod rest;
#[cfg(test)]
mod simulator;
mod size;
#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests;

use crate::error::{Error, Result};
use line::{Fitted, Piece};
pub use profile::{TimedPiece, learnt_costs, whole_lines};
use rest::Rest;
use size::Outlook;
use std::ops::Range;
use std::sync::Arc;

/// What is known before the work starts.
#[derive(Debug, Clone, Default)]
pub struct OnePassOptions {
    /// Number of processors, at least 1.
    pub processors: usize,
    /// Relative speeds, one a processor.
    pub hints: Option<Vec<f64>>,
    /// Lines of processors from an earlier run; `None` for a processor that has none.
    pub lines: Option<Vec<Option<Line>>>,
    /// Costs of the units from unit 0 on.
    pub costs: Option<Arc<[f64]>>,
    /// Each processor runs one piece, by its line or its hint, and nothing is divided again.
    pub fixed: bool,
    /// About how many seconds a message takes to start a piece, where processors are processes that stay; `None` where
    /// each piece starts a program.
    ///
    /// The first piece of such a process is one unit, and a trial: it also imports, compiles and touches memory.
    pub message: Option<f64>,
}

/// The time of a piece: `start_up` + `per_unit` times its number of units, in seconds.
///
/// With costs, `per_unit` is the time of a unit of mean cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Seconds before the first unit.
    pub start_up: f64,
    /// Seconds for each unit.
    pub per_unit: f64,
}

/// What this run showed of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Its line.
    pub line: Line,
    /// Relative standard deviation of the time of a piece.
    pub(crate) spread: f64,
    /// Number of pieces that ended well.
    pub(crate) pieces: u64,
}

/// A time by the lines, with the range in which it lies with a probability of about nine in ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeRange {
    /// Expected seconds.
    pub seconds: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a processor that is free does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Run these units.
    Run(Range<u64>),
    /// Ask again when any piece has ended or failed, and at the latest at the time `until` (which may be infinite).
    Wait {
        /// Seconds since the start.
        until: f64,
    },
    /// Nothing is left, and nothing runs that could fail.
    Leave,
}

/// A piece that runs.
#[derive(Debug, Clone)]
struct Running {
    range: Range<u64>,
    work: f64,
    started: f64,
}

#[derive(Debug, Clone, Default)]
struct Processor {
    running: Option<Running>,
    /// The pieces that ended well, but for those without any work, which tell nothing of the time per unit, and for
    /// the trial once another has ended.
    ended: Vec<Piece>,
    trial: Option<Piece>,
    pieces: u64,
    /// Its line from an earlier run.
    known: Option<Line>,
    /// What is left of its part if nothing is divided again.
    quota: f64,
    /// It was told to wait since anything was handed out.
    waits: bool,
    lost: bool,
}

/// Hands out the units of a range, each exactly once unless its piece fails.
///
/// A processor that is free asks [`OnePass::next`]. When its piece ends, the caller says so with
/// [`OnePass::ended`] or [`OnePass::failed`]. Times are seconds since the start.
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::{OnePass, OnePassOptions, Order};
/// let options = OnePassOptions { processors: 2, ..OnePassOptions::default() };
/// let mut policy = OnePass::new(&[0..1000], options)?;
/// // The processors need 0.1 s for a piece, and 1 or 3 ms for each unit.
/// let seconds = |processor: usize, units: u64| 0.1 + [1e-3, 3e-3][processor] * units as f64;
/// let (mut asks, mut last) = ([0.0, 0.0], 0.0_f64);
/// while policy.remaining() > 0 {
///     let processor = if asks[0] <= asks[1] { 0 } else { 1 };
///     let now = asks[processor];
///     policy.ended(processor, now);
///     match policy.next(processor, now) {
///         Order::Run(units) => {
///             asks[processor] = now + seconds(processor, units.end - units.start);
///             last = last.max(asks[processor]);
///         }
///         Order::Wait { until } => asks[processor] = until.max(now + 0.01),
///         Order::Leave => asks[processor] = f64::INFINITY,
///     }
/// }
/// // One processor alone needs 1.1 s; with lines known before, both would end together after 0.85 s.
/// assert!(last < 1.1, "{last}");
/// # Ok::<(), apportion_plan::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OnePass {
    options: OnePassOptions,
    rest: Rest,
    /// Work of all units at the start.
    total: f64,
    processors: Vec<Processor>,
}

impl OnePass {
    /// Starts with the units of `remaining`: `0..n`, or what an earlier run left.
    ///
    /// # Errors
    /// If there is no processor, if ranges overlap, if a list has a wrong length, or if hints, lines or costs are
    /// not finite, negative or (but for start-up and costs) zero.
    pub fn new(remaining: &[Range<u64>], options: OnePassOptions) -> Result<Self> {
        check(&options)?;
        let rest = Rest::new(remaining, options.costs.as_ref())?;
        let total = rest.work();
        let known = |p: usize| options.lines.as_ref().and_then(|lines| lines[p]);
        let processors =
            (0..options.processors).map(|p| Processor { known: known(p), ..Processor::default() }).collect();
        let mut policy = Self { options, rest, total, processors };
        policy.set_quotas();
        Ok(policy)
    }

    /// What `processor`, which is free, does at the time `now`.
    ///
    /// A processor that has left may ask again, for instance after another was lost. As long as units are left
    /// and nothing runs, the processor that asks gets a piece, at the latest when it asks for the second time.
    pub fn next(&mut self, processor: usize, now: f64) -> Order {
        let busy = self.processors.iter().any(|p| p.running.is_some());
        let me = &self.processors[processor];
        if me.running.is_some() {
            return Order::Wait { until: f64::INFINITY };
        }
        if me.lost || self.rest.is_empty() {
            return if busy && !me.lost { Order::Wait { until: f64::INFINITY } } else { Order::Leave };
        }
        let mut work = self.size(processor, now);
        if work > 0.0 || self.rest.work() == 0.0 {
            // A piece of less than half a unit becomes one of a unit.
        } else if busy || !self.processors[processor].waits {
            self.processors[processor].waits = true;
            return Order::Wait { until: self.next_change(now) };
        } else {
            work = self.rest.work();
        }
        let Some(range) = self.rest.take(work) else { return Order::Leave };
        let work = self.rest.work_of(&range);
        self.processors.iter_mut().for_each(|p| p.waits = false);
        let me = &mut self.processors[processor];
        me.quota = (me.quota - work).max(0.0);
        me.running = Some(Running { range: range.clone(), work, started: now });
        Order::Run(range)
    }

    /// When a piece that runs is late, or later still: a processor that waits may be needed then.
    fn next_change(&self, now: f64) -> f64 {
        let Some(Outlook { free, .. }) = self.outlook(now) else { return f64::INFINITY };
        let late = |p: usize| {
            self.processors[p].running.as_ref().map(|piece| free[p].max(now + 0.1 * (now - piece.started)))
        };
        (0..free.len()).filter_map(late).reduce(f64::min).unwrap_or(now)
    }

    /// The piece of `processor` ended well at the time `now`.
    pub fn ended(&mut self, processor: usize, now: f64) {
        let processor = &mut self.processors[processor];
        let Some(running) = processor.running.take() else { return };
        processor.pieces += 1;
        if running.work > 0.0 {
            let seconds = (now - running.started).max(0.0);
            if self.options.message.is_some() && processor.trial.is_none() {
                processor.trial = processor.ended.pop();
            }
            processor.ended.push(Piece { work: running.work, seconds });
        }
    }

    /// The piece of `processor` failed at the time `now`. With `again` its units are the next to be handed out, to
    /// any processor; without, they are given up. How long it took tells nothing of other pieces.
    pub fn failed(&mut self, processor: usize, now: f64, again: bool) {
        let processor = &mut self.processors[processor];
        let Some(running) = processor.running.take() else { return };
        debug_assert!(now >= running.started, "the clock runs backwards");
        if again {
            processor.quota += running.work;
            self.rest.give_back(running.range);
        }
    }

    /// `processor` takes no further piece. If it was running one, call [`OnePass::failed`] first.
    pub fn lost(&mut self, processor: usize) {
        self.processors[processor].lost = true;
        self.set_quotas();
    }

    /// What this run has shown of `processor`; `None` before its first piece has ended.
    pub fn estimate(&self, processor: usize) -> Option<Estimate> {
        if self.processors[processor].ended.is_empty() {
            return None;
        }
        let line = self.line(processor)?;
        Some(Estimate {
            line: Line { start_up: line.start_up, per_unit: line.per_unit },
            spread: line.noise,
            pieces: self.processors[processor].pieces,
        })
    }

    /// The line of a processor without regard to pieces that run.
    fn line(&self, processor: usize) -> Option<Fitted> {
        let me = &self.processors[processor];
        let seen = !me.ended.is_empty() || me.known.is_some();
        self.outlook(f64::NEG_INFINITY).filter(|_| seen).map(|outlook| outlook.lines[processor])
    }

    /// The time at which all will have ended; `None` before anything is known.
    pub fn expected_end(&self, now: f64) -> Option<f64> {
        let outlook = self.outlook(now)?;
        let running = (0..outlook.free.len()).filter(|&p| self.processors[p].running.is_some());
        let end = running.map(|p| outlook.free[p]).fold(now, f64::max);
        match self.rest.is_empty() {
            true => Some(end),
            false => Some(end.max(line::end_together(&outlook.lines, &outlook.free, self.rest.work()))),
        }
    }

    /// Number of units that nobody has taken.
    pub fn remaining(&self) -> u64 {
        self.rest.units()
    }

    /// The time that `processor` alone would take for all units, in one piece; `None` if its line is unknown.
    pub fn alone(&self, processor: usize) -> Option<TimeRange> {
        self.line(processor).map(|line| time_range(line.seconds(self.total), line.deviation(self.total)))
    }

    /// The processor that would be the fastest alone, of those whose line is known.
    pub fn fastest_alone(&self) -> Option<usize> {
        let outlook = self.outlook(f64::NEG_INFINITY)?;
        let seen = |p: &usize| !self.processors[*p].ended.is_empty() || self.processors[*p].known.is_some();
        let seconds = |p: usize| outlook.lines[p].seconds(self.total);
        (0..self.processors.len()).filter(seen).min_by(|&p, &q| seconds(p).total_cmp(&seconds(q)))
    }

    /// The time that one equal piece for each processor would take; `None` if a line is unknown.
    pub fn even_split(&self) -> Option<TimeRange> {
        let part = self.total / self.processors.len() as f64;
        let all: Option<Vec<Fitted>> = (0..self.processors.len()).map(|p| self.line(p)).collect();
        let slowest = all?.into_iter().max_by(|one, two| one.seconds(part).total_cmp(&two.seconds(part)))?;
        Some(time_range(slowest.seconds(part), slowest.deviation(part)))
    }

    /// The least time for all units, had the lines of this run been known before: at most one piece for each
    /// processor, all ending together. What a run takes beyond it is the cost of learning, of further start-ups,
    /// and of an uneven end. `None` before anything is known.
    pub fn ideal(&self) -> Option<TimeRange> {
        let outlook = self.outlook(f64::NEG_INFINITY)?;
        let free = vec![0.0; self.processors.len()];
        let seconds = line::end_together(&outlook.lines, &free, self.total);
        let noise = outlook.lines.iter().map(|line| line.noise).fold(0.0, f64::max);
        Some(time_range(seconds, noise * seconds))
    }
}

/// The range of a time with this standard deviation: 1.645 on each side hold nine in ten of a normal distribution.
fn time_range(seconds: f64, deviation: f64) -> TimeRange {
    TimeRange { seconds, low: (seconds - 1.645 * deviation).max(0.0), high: seconds + 1.645 * deviation }
}

/// Refuses options that no run can follow.
fn check(options: &OnePassOptions) -> Result<()> {
    let refuse = |place: &str, what: String, remedy: &str| Err(Error::input(place, what, remedy));
    let length = |place: &str, length: usize| match length == options.processors {
        true => Ok(()),
        false => {
            let what = format!("{length} for {} processors", options.processors);
            refuse(place, what, "give one for each processor")
        }
    };
    if options.processors == 0 {
        return refuse("`processors`", "there is no processor".to_owned(), "give at least 1");
    }
    if let Some(hints) = &options.hints {
        length("`hints`", hints.len())?;
        if let Some(hint) = hints.iter().find(|hint| !(hint.is_finite() && **hint > 0.0)) {
            return refuse("`hints`", format!("a relative speed is {hint}"), "give numbers above 0");
        }
    }
    if let Some(lines) = &options.lines {
        length("`lines`", lines.len())?;
        let wrong = |line: &&Line| {
            let start_up = line.start_up.is_finite() && line.start_up >= 0.0;
            !(start_up && line.per_unit.is_finite() && line.per_unit > 0.0)
        };
        if let Some(Line { start_up, per_unit }) = lines.iter().flatten().find(wrong) {
            let what = format!("a piece takes {start_up} s and {per_unit} s for each unit");
            return refuse("`lines`", what, "give a start-up of at least 0 and a time per unit above 0");
        }
    }
    if let Some(message) = options.message.filter(|message| !(message.is_finite() && *message >= 0.0)) {
        return refuse("`message`", format!("a message takes {message} s"), "give seconds of at least 0");
    }
    Ok(())
}

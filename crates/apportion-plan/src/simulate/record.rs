//! What a simulation keeps of what the processors do: everything, or sums.
//!
//! With millions of messages, their events take more memory than the simulation, and are not
//! needed where only times are asked for. The sums are those of the events, merged and added in the same
//! order: bit for bit the same.

use super::Outcome;
use super::explain::{History, Wait};
use crate::geometry::Rank;
use crate::plan::Forecast;
use crate::schedule::{Message, Piece};
use crate::trace::{Activity, Lane, Trace};

/// A keeper of the processors' events.
pub(super) trait Record {
    /// What is kept of a message in flight besides its times.
    type Detail: Copy;
    /// True if it keeps counts of messages.
    const COUNTS: bool;

    /// The detail of a message of `bytes` bytes, posted at this time.
    fn detail(bytes: f64, posted: f64) -> Self::Detail;

    /// Adds an event, as [`Lane::push`].
    fn push(&mut self, rank: Rank, activity: Activity, start: f64, end: f64, peer: Option<Rank>);

    /// Adds the time of a message, as [`Lane::fly`].
    fn fly(&mut self, _from: Rank, _to: Rank, _start: f64, _end: f64) {}

    /// Counts messages that a processor posts at once; `once` are their elements, each counted once.
    fn sends<P: Piece>(&mut self, _rank: Rank, _messages: &[Message<P>], _once: impl FnOnce() -> u64) {}

    /// Counts a message whose receive is posted.
    fn expects<P: Piece>(&mut self, _message: &Message<P>) {}

    /// Adds a wait, given the bytes of its message and when it was posted.
    fn waits(&mut self, _rank: Rank, _detail: Self::Detail, _wait: impl FnOnce(f64, f64) -> Wait) {}

    /// A processor has done all its steps.
    fn ends(&mut self, _rank: Rank, _now: f64) {}
}

/// Every event, and every wait if they are to be explained.
#[derive(Debug)]
pub(super) struct Events {
    lanes: Vec<Lane>,
    history: Option<History>,
}

impl Events {
    pub(crate) fn new(processors: usize, explain: bool) -> Self {
        let history = explain.then(|| History::new(processors));
        Self { lanes: vec![Lane::default(); processors], history }
    }

    pub(crate) fn outcome(self) -> Outcome {
        Outcome { trace: Trace { lanes: self.lanes }, history: self.history }
    }
}

impl Record for Events {
    type Detail = (f64, f64);
    const COUNTS: bool = true;

    fn detail(bytes: f64, posted: f64) -> (f64, f64) {
        (bytes, posted)
    }

    fn push(&mut self, rank: Rank, activity: Activity, start: f64, end: f64, peer: Option<Rank>) {
        self.lanes[rank.0].push(activity, start, end, peer);
    }

    fn fly(&mut self, from: Rank, to: Rank, start: f64, end: f64) {
        self.lanes[to.0].fly(from, start, end);
    }

    fn sends<P: Piece>(&mut self, rank: Rank, messages: &[Message<P>], once: impl FnOnce() -> u64) {
        let lane = &mut self.lanes[rank.0];
        for message in messages {
            lane.sent[message.to.0] += message.elements();
            lane.messages[message.to.0] += 1;
        }
        lane.carried += once();
    }

    fn expects<P: Piece>(&mut self, message: &Message<P>) {
        self.lanes[message.to.0].received[message.from.0] += message.elements();
    }

    fn waits(&mut self, rank: Rank, (bytes, posted): (f64, f64), wait: impl FnOnce(f64, f64) -> Wait) {
        if let Some(history) = &mut self.history {
            let wait = wait(bytes, posted);
            if wait.until > wait.since {
                history.waits[rank.0].push(wait);
            }
        }
    }

    fn ends(&mut self, rank: Rank, now: f64) {
        if let Some(history) = &mut self.history {
            history.ends[rank.0] = now;
        }
    }
}

/// The sums of each processor's events.
#[derive(Debug)]
pub(super) struct Totals(Vec<Sums>);

impl Totals {
    pub(crate) fn new(processors: usize) -> Self {
        Self(vec![Sums::default(); processors])
    }

    /// The end of the last event.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.iter().map(|sums| sums.end).fold(0.0, f64::max)
    }

    pub(crate) fn forecast(mut self) -> Forecast {
        self.0.iter_mut().for_each(Sums::close);
        Forecast {
            seconds: self.seconds(),
            compute: self.0.iter().map(|sums| sums.compute).collect(),
            communicate: self.0.iter().map(|sums| sums.communicate).collect(),
        }
    }
}

impl Record for Totals {
    type Detail = ();
    const COUNTS: bool = false;

    fn detail(_bytes: f64, _posted: f64) {}

    fn push(&mut self, rank: Rank, activity: Activity, start: f64, end: f64, peer: Option<Rank>) {
        self.0[rank.0].push(activity, start, end, peer);
    }
}

/// Sums of the events of a [`Lane`].
#[derive(Debug, Clone, Default)]
struct Sums {
    last: Option<(Activity, Option<Rank>)>,
    start: f64,
    end: f64,
    compute: f64,
    communicate: f64,
}

impl Sums {
    fn push(&mut self, activity: Activity, start: f64, end: f64, peer: Option<Rank>) {
        if end <= start {
            return;
        }
        if self.last == Some((activity, peer)) && start <= self.end {
            self.end = end;
            return;
        }
        self.close();
        (self.last, self.start, self.end) = (Some((activity, peer)), start, end);
    }

    fn close(&mut self) {
        match self.last {
            Some((Activity::Compute, _)) => self.compute += self.end - self.start,
            Some((Activity::Communicate, _)) => self.communicate += self.end - self.start,
            _ => {}
        }
        self.last = None;
    }
}

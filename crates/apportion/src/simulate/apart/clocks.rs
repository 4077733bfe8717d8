//! The clocks of all processors, and what each has done so far.

use crate::geometry::{Rank, Rect};
use crate::plan::Forecast;
use crate::platform::Link;
use crate::schedule::{Application, MatmulSchedule};
use crate::simulate::effort::RECURRENCE;
use crate::simulate::record::{Record, Totals};
use crate::simulate::{CostModel, Effort};
use crate::trace::Activity;

/// A part of the rest of the work that is not counted on: rounding.
const ROUNDING: f64 = 1e-9;

/// A message on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub from: Rank,
    pub to: Rank,
    pub start: f64,
    pub arrival: f64,
}

/// The processors' clocks.
pub(super) struct Clocks<'a> {
    conditions: CostModel<'a>,
    limit: f64,
    now: Vec<f64>,
    /// By rank: when the last byte of all its messages has left.
    sent: Vec<f64>,
    /// By rank: seconds of the work that is not done yet.
    left: Vec<f64>,
    totals: Totals,
    effort: &'a Effort,
}

impl<'a> Clocks<'a> {
    pub fn new(schedule: &MatmulSchedule, conditions: CostModel<'a>, limit: f64, effort: &'a Effort) -> Self {
        let p = schedule.processors();
        let left = |rank: usize| match schedule.work(Rank(rank)) {
            work if work > 0.0 => work / conditions.rates[rank],
            _ => 0.0,
        };
        Self {
            conditions,
            limit,
            now: vec![0.0; p],
            sent: vec![0.0; p],
            left: (0..p).map(left).collect(),
            totals: Totals::new(p),
            effort,
        }
    }

    /// The costs of a pair's messages.
    pub fn link(&self, from: Rank, to: Rank) -> Link {
        self.conditions.network.link(from, to)
    }

    /// Posts a message of these elements of A and B on a wire that is free from a time on, which it advances.
    pub fn post(
        &mut self,
        (from, to): (Rank, Rank),
        [horizontal, vertical]: [u64; 2],
        link: &Link,
        free: &mut f64,
    ) -> Flight {
        let bytes = |elements: u64| (elements * self.conditions.element) as f64;
        let start = free.max(self.now[from.0]);
        let arrival = start + link.seconds(bytes(horizontal), bytes(vertical));
        *free = arrival;
        self.sent[from.0] = self.sent[from.0].max(arrival);
        self.effort.spend(RECURRENCE);
        Flight { from, to, start, arrival }
    }

    /// The receiver waits for a message.
    pub fn arrive(&mut self, flight: &Flight) {
        let &Flight { from, to, start, arrival } = flight;
        let now = &mut self.now[to.0];
        let (since, end) = (*now, now.max(arrival));
        self.totals.push(to, Activity::Idle, since, start, Some(from));
        self.totals.push(to, Activity::Communicate, since.max(start), end, Some(from));
        *now = end;
    }

    /// A processor waits until its messages have left.
    pub fn flush(&mut self, rank: Rank) {
        let now = &mut self.now[rank.0];
        let end = now.max(self.sent[rank.0]);
        self.totals.push(rank, Activity::Communicate, *now, end, None);
        *now = end;
    }

    /// A processor updates a rectangle of C by some inner indices.
    pub fn compute(&mut self, rank: Rank, rect: &Rect, inner: u64) {
        let seconds = rect.area() as f64 * inner as f64 / self.conditions.rates[rank.0];
        let now = &mut self.now[rank.0];
        let end = *now + seconds;
        self.totals.push(rank, Activity::Compute, *now, end, None);
        *now = end;
        self.left[rank.0] -= seconds;
        self.effort.spend(RECURRENCE);
    }

    /// True if a processor cannot end within the limit, or if the work is spent.
    pub fn is_late(&self) -> bool {
        if self.effort.is_spent() {
            return true;
        }
        let late = |(now, left): (&f64, &f64)| now + left * (1.0 - ROUNDING) > self.limit * (1.0 + ROUNDING);
        self.now.iter().zip(&self.left).any(late)
    }

    /// The forecast, if it is within the limit.
    pub fn forecast(self) -> Option<Forecast> {
        (self.totals.seconds() <= self.limit).then(|| self.totals.forecast())
    }
}

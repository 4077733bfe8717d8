//! Why a forecast is what it is: what each processor waited for, and the chain of causes that ends the run.

use crate::geometry::Rank;

/// A stretch of time that a processor spent waiting for a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// Which of the processor's steps waited, from 0.
    pub step: usize,
    /// The message's sender.
    pub from: Rank,
    /// The message's receiver.
    pub to: Rank,
    /// Its tag.
    pub tag: u64,
    /// Its bytes.
    pub bytes: f64,
    /// Waiting from, in seconds from the start of the run.
    pub since: f64,
    /// Waiting to.
    pub until: f64,
    /// When its sender posted it.
    pub sent: f64,
    /// When its receiver posted it; NaN if the rule does not ask for that.
    pub received: f64,
    /// When it set off.
    pub started: f64,
}

/// One link of the chain that ends the run, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cause {
    /// What took the time.
    pub what: Doing,
    /// From, in seconds from the start of the run.
    pub start: f64,
    /// To.
    pub end: f64,
}

/// What a link of the chain consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doing {
    /// A processor was at work (or idle at no one's fault).
    Work(Rank),
    /// A message waited for its wire to be free, for earlier messages.
    Queue(Wait),
    /// A message was under way.
    Transfer(Wait),
}

/// What every processor waited for, in the order of time, by rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// By rank.
    pub waits: Vec<Vec<Wait>>,
    /// When each rank ended.
    pub ends: Vec<f64>,
}

impl History {
    /// Nothing yet.
    pub(super) fn new(ranks: usize) -> Self {
        Self { waits: vec![Vec::new(); ranks], ends: vec![0.0; ranks] }
    }

    /// The chain of causes that leads to `rank`'s end, from the start of the run: its work back to the last
    /// message that it waited for, that message back to the end that posted it last, that processor's work,
    /// and so on. Nothing on the chain could be later without its end being later, and its links cover the
    /// time without a gap. O(waits log waits).
    pub fn chain(&self, rank: Rank) -> Vec<Cause> {
        let mut chain = Vec::new();
        let (mut at, mut time) = (rank, self.ends[rank.0]);
        let push = |chain: &mut Vec<Cause>, what, start: f64, end: f64| {
            if end > start {
                chain.push(Cause { what, start, end });
            }
        };
        // A wait is followed at most once: equal times could lead round in a circle.
        let mut used: Vec<usize> = self.waits.iter().map(Vec::len).collect();
        loop {
            let waits = &self.waits[at.0];
            let place = waits.partition_point(|w| w.until <= time).min(used[at.0]);
            let Some(wait) = place.checked_sub(1).map(|i| waits[i]) else {
                push(&mut chain, Doing::Work(at), 0.0, time);
                break;
            };
            used[at.0] = place - 1;
            push(&mut chain, Doing::Work(at), wait.until, time);
            push(&mut chain, Doing::Transfer(wait), wait.started, wait.until);
            // The end that posted last made it start.
            let posted = if wait.received > wait.sent && wait.started >= wait.received {
                (wait.to, wait.received)
            } else {
                (wait.from, wait.sent)
            };
            push(&mut chain, Doing::Queue(wait), posted.1, wait.started.min(wait.until));
            (at, time) = posted;
        }
        chain.reverse();
        chain
    }

    /// The rank that ends last (the lowest of several).
    pub fn last(&self) -> Rank {
        let latest = self.ends.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        Rank(latest.map_or(0, |(rank, _)| rank))
    }
}

//! Explanation of a forecast: the waits of each processor, and the chain of causes that determines the end of
//! the run.

use crate::geometry::Rank;

/// An interval in which a processor waited for a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// Index of the processor's step that waited, from 0.
    pub step: usize,
    /// The message's sender.
    pub from: Rank,
    /// The message's receiver.
    pub to: Rank,
    /// Its tag.
    pub tag: u64,
    /// Its bytes.
    pub bytes: f64,
    /// Start of the wait, in seconds from the start of the run.
    pub since: f64,
    /// End of the wait.
    pub until: f64,
    /// Time at which the sender posted it.
    pub sent: f64,
    /// Time at which the receiver posted it; NaN if the rule does not need it.
    pub received: f64,
    /// Time at which the transfer started.
    pub started: f64,
}

/// One link of the chain that determines the end of the run, in order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cause {
    /// Activity that took the time.
    pub what: Doing,
    /// Start, in seconds from the start of the run.
    pub start: f64,
    /// End.
    pub end: f64,
}

/// Activity of a link of the chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doing {
    /// A processor was computing (or idle for no cause outside it).
    Work(Rank),
    /// A message waited behind earlier messages for its link.
    Queue(Wait),
    /// A message was in flight.
    Transfer(Wait),
}

/// All waits of every processor, in order of time, by rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// By rank.
    pub waits: Vec<Vec<Wait>>,
    /// End time of each rank.
    pub ends: Vec<f64>,
}

impl History {
    /// An empty history.
    pub(super) fn new(ranks: usize) -> Self {
        Self { waits: vec![Vec::new(); ranks], ends: vec![0.0; ranks] }
    }

    /// The chain of causes that leads to `rank`'s end, from the start of the run: its work back to the last
    /// message that it waited for, that message back to the end that posted it last, the work of that
    /// processor, and so on. A delay of any link delays the end, and the links cover the time without a gap.
    /// O(waits log waits).
    pub fn chain(&self, rank: Rank) -> Vec<Cause> {
        let mut chain = Vec::new();
        let (mut at, mut time) = (rank, self.ends[rank.0]);
        let push = |chain: &mut Vec<Cause>, what, start: f64, end: f64| {
            if end > start {
                chain.push(Cause { what, start, end });
            }
        };
        // Each wait is followed at most once: equal times could form a cycle.
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
            // The message started when its later end posted it.
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

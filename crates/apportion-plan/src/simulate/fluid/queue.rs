//! The queue of future events, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A message's first byte arrives, and it begins to drain.
    Latency(u32),
    /// The soonest flow of a bundle has drained.
    Drained { bundle: u32, version: u32 },
    /// The soonest bundle of the bottlenecks has drained.
    Reached { version: u32 },
    /// A rank has finished its computation.
    Computed { rank: u32, version: u32 },
    /// A rank has slept.
    Awake(u32),
}

/// An event of flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Next {
    pub(crate) time: f64,
    pub(crate) what: What,
    /// True if an earlier event of the bundle or bottleneck is obsolete now.
    pub(crate) replaces: bool,
}

/// Events by time; at one moment by kind, number and version. An event is a single integer in this order: the
/// bits of its time (non-negative floats sort like their bits), 3 bits of its kind, 29 of its number, 32 of
/// its version.
#[derive(Debug, Default)]
pub(super) struct Queue {
    events: BinaryHeap<Reverse<u128>>,
}

/// Bits for the number of a message, flow or rank.
const NUMBER: u32 = 29;

fn packed(time: f64, what: What) -> u128 {
    assert!(time >= 0.0, "events are never at {time}");
    let (kind, number, version) = match what {
        What::Latency(message) => (0u64, message, 0),
        What::Drained { bundle, version } => (1, bundle, version),
        What::Reached { version } => (2, 0, version),
        What::Computed { rank, version } => (3, rank, version),
        What::Awake(rank) => (4, rank, 0),
    };
    assert!(number >> NUMBER == 0, "at most 2^29 of a kind");
    let time = (time + 0.0).to_bits(); // -0.0 becomes 0.0
    u128::from(time) << 64 | u128::from(kind << 61 | u64::from(number) << 32 | u64::from(version))
}

fn unpacked(event: u128) -> (f64, What) {
    let what = event as u64;
    let (number, version) = ((what >> 32) as u32 & ((1 << NUMBER) - 1), what as u32);
    let what = match what >> 61 {
        0 => What::Latency(number),
        1 => What::Drained { bundle: number, version },
        2 => What::Reached { version },
        3 => What::Computed { rank: number, version },
        _ => What::Awake(number),
    };
    (f64::from_bits((event >> 64) as u64), what)
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn push(&mut self, time: f64, what: What) {
        self.events.push(Reverse(packed(time, what)));
    }

    /// Adds the next event of a bundle or bottleneck, and counts the one that it replaces as obsolete.
    pub(crate) fn next(&mut self, Next { time, what, replaces }: Next, stale: &mut usize) {
        *stale += usize::from(replaces);
        self.push(time, what);
    }

    pub(crate) fn pop(&mut self) -> Option<(f64, What)> {
        self.events.pop().map(|event| unpacked(event.0))
    }

    /// The next event if it is at `now`.
    pub(crate) fn pop_at(&mut self, now: f64) -> Option<What> {
        let next = self.events.peek()?.0;
        ((next >> 64) as u64 == now.to_bits()).then(|| self.pop().map(|e| e.1))?
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(What) -> bool) {
        self.events.retain(|event| keep(unpacked(event.0).1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_kind_and_number() {
        let drained = |bundle| What::Drained { bundle, version: u32::MAX };
        let order = [
            (0.0, What::Latency(1)),
            (1e-300, drained(0)),
            (0.5, What::Latency(0)),
            (0.5, What::Latency((1 << NUMBER) - 1)),
            (0.5, drained(3)),
            (0.5, drained(4)),
            (0.5, What::Reached { version: 1 }),
            (0.5, What::Computed { rank: 0, version: 0 }),
            (0.5, What::Computed { rank: 0, version: 7 }),
            (0.5, What::Awake(2)),
            (1e300, What::Latency(2)),
            (f64::INFINITY, What::Latency(0)),
        ];
        let mut queue = Queue::default();
        order.iter().rev().for_each(|&(time, what)| queue.push(time, what));
        queue.retain(|what| what != drained(4));
        let mut now = 0.0;
        for (time, what) in order.into_iter().filter(|e| e.1 != drained(4)) {
            let next = queue.pop_at(now).or_else(|| queue.pop().inspect(|e| now = e.0).map(|e| e.1));
            assert_eq!((now, next), (time, Some(what)));
        }
        assert_eq!(queue.len(), 0);
    }
}

//! Flows that have the same rate at any moment, and drain together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The flow, and its version when it joined.
pub(super) type Member = (u32, u32);

/// The ends of all but the soonest flow.
type Later = BinaryHeap<Reverse<(u64, Member)>>;

/// Where flows end, the soonest first: that one is kept without memory of its own, since most bundles have no
/// other. Ends are not negative: they sort like their bits.
#[derive(Debug, Default)]
pub(super) struct Ends {
    first: Option<(u64, Member)>,
    more: Option<Box<Later>>,
}

impl Ends {
    pub fn push(&mut self, end: f64, member: Member) {
        debug_assert!(end >= 0.0, "a flow never ends at {end}");
        let mut later = ((end + 0.0).to_bits(), member);
        match &mut self.first {
            None => self.first = Some(later),
            Some(first) => {
                if later < *first {
                    std::mem::swap(first, &mut later);
                }
                self.more.get_or_insert_default().push(Reverse(later));
            }
        }
    }

    /// The soonest end, and its flow.
    pub fn first(&self) -> Option<(f64, Member)> {
        self.first.map(|(end, member)| (f64::from_bits(end), member))
    }

    /// Removes the soonest.
    pub fn pop(&mut self) {
        self.first = self.more.as_mut().and_then(|more| more.pop()).map(|later| later.0);
    }
}

/// Flows in progress that use the same links in the same way. Instead of what each has left, the bundle knows
/// how much every flow has drained that was there from the beginning, and each flow at which of these amounts
/// it ends: a change of the rate concerns the bundle only.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// The kind of its flows' paths.
    pub kind: u32,
    /// Flows on the path of each, if they share a wire of their own; otherwise 0.
    pub abreast: u32,
    /// Flows in it.
    pub count: u32,
    /// Incremented with every new event and every new user of this slot, so that obsolete events are
    /// recognised.
    pub version: u32,
    pub mark: u32,
    /// Distinguishes the successive users of this slot; 0 while it is free.
    pub birth: u32,
    /// Maximum rate of a flow.
    pub bound: f64,
    /// Units per second that each flow drains; negative until it is known.
    pub rate: f64,
    /// What each has drained at time `since`.
    drained: f64,
    since: f64,
    /// The end whose event is in the queue, NaN if that event is obsolete or there is none.
    queued: f64,
    /// True if the last event for this bundle has not happened.
    pub waits: bool,
    pub ends: Ends,
    /// Number of ends whose flows are in other bundles by now.
    pub gone: u32,
}

impl Bundle {
    /// An empty bundle in this slot, whose versions go on.
    pub fn begin(&mut self, (kind, abreast): (u32, u32), bound: f64, (birth, now): (u32, f64)) {
        let Self { version, waits, .. } = *self;
        let version = version.wrapping_add(1);
        *self = Self {
            kind,
            abreast,
            version,
            birth,
            bound,
            rate: -1.0,
            since: now,
            queued: f64::NAN,
            waits,
            ..Self::default()
        };
    }

    /// What each flow has drained by now.
    pub fn drained(&mut self, now: f64) -> f64 {
        if self.rate > 0.0 && now > self.since {
            self.drained += (now - self.since) * self.rate;
        }
        self.since = now;
        self.drained
    }

    /// Changes the rate from now on. Another rate makes the event in the queue obsolete.
    pub fn flow_at(&mut self, rate: f64, now: f64) {
        if rate != self.rate {
            self.drained(now);
            self.rate = rate;
            self.queued = f64::NAN;
            self.version = self.version.wrapping_add(1);
        }
    }

    /// Its soonest flow has drained.
    pub fn reach(&mut self, now: f64) -> f64 {
        (self.drained, self.since) = (self.queued, now);
        (self.queued, self.waits) = (f64::NAN, false);
        self.drained
    }

    /// When the flow that ends at `end` will have drained at the present rate, which is known.
    pub fn time_of(&self, end: f64) -> f64 {
        self.since + (end - self.drained).max(0.0) / self.rate
    }

    /// The time of its next event, if that is not in the queue: when the flow that ends at `end` has drained.
    pub fn next(&mut self, end: f64) -> Option<f64> {
        if end == self.queued || self.rate <= 0.0 {
            return None;
        }
        self.queued = end;
        self.version = self.version.wrapping_add(1);
        Some(self.time_of(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ends_come_in_order(ends in prop::collection::vec((0.0f64..9.0, any::<bool>()), 0..40)) {
            let (mut all, mut plain) = (Ends::default(), Vec::new());
            for (id, (end, leaves)) in (0..).zip(ends) {
                let end = end.floor();
                all.push(end, (id, 0));
                plain.push((end, (id, 0)));
                plain.sort_by(|a: &(f64, Member), b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                prop_assert_eq!(all.first(), plain.first().copied());
                if leaves {
                    all.pop();
                    plain.remove(0);
                    prop_assert_eq!(all.first(), plain.first().copied());
                }
            }
        }
    }

    /// 100 units at 10 per second, then at 40: worked by hand.
    #[test]
    fn a_new_rate_moves_the_next_end() {
        let mut bundle = Bundle::default();
        bundle.begin((0, 0), 100.0, (1, 2.0));
        bundle.ends.push(100.0, (0, 0));
        assert_eq!(bundle.next(100.0), None, "no rate is known");
        bundle.flow_at(10.0, 2.0);
        assert_eq!(bundle.next(100.0), Some(12.0));
        assert_eq!(bundle.next(100.0), None, "it is in the queue");
        bundle.flow_at(40.0, 8.0);
        assert_eq!(bundle.next(100.0), Some(9.0));
        assert_eq!(bundle.reach(9.0), 100.0);
        // One that joins then has its own 80 units before it.
        let end = bundle.drained(9.0) + 80.0;
        assert_eq!(bundle.next(end), Some(11.0));
    }
}

//! Clocks that advance at the levels of bottlenecks, and the ends of bundles by these clocks.

use super::{Bottlenecks, Held, NONE};
use crate::simulate::fluid::queue::{Next, What};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The integral of a level over time, and what ends when.
#[derive(Debug, Default)]
pub(super) struct Clock {
    reading: f64,
    since: f64,
    /// Readings at which bundles reach their soonest ends, with the version of each bundle. Readings are not
    /// negative: they sort like their bits.
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// The reading of the event in the queue of events.
    queued: f64,
    version: u32,
    waits: bool,
    /// True if its next event may be another than the one in the queue.
    pub changed: bool,
}

impl Clock {
    /// The reading at a moment.
    fn at(&self, level: f64, now: f64) -> f64 {
        if level > 0.0 && level.is_finite() && now > self.since {
            self.reading + level * (now - self.since)
        } else {
            self.reading
        }
    }

    /// Goes on from this moment, before the level changes.
    pub fn advance(&mut self, level: f64, now: f64) {
        (self.reading, self.since) = (self.at(level, now), now);
    }
}

impl Bottlenecks {
    /// What each flow of a bundle has drained by now.
    pub fn drained(&self, bundle: u32, now: f64) -> f64 {
        let held = &self.held[bundle as usize];
        if held.moved {
            return held.drained;
        }
        let bottleneck = &self.all[held.at as usize];
        let reading = bottleneck.clock.at(bottleneck.level, now);
        held.drained + (reading - held.start).max(0.0) / held.weight
    }

    /// Notes what a bundle has drained, before its bottleneck is another.
    pub(super) fn detach(&mut self, bundle: u32, now: f64) {
        if !self.held[bundle as usize].moved {
            let drained = self.drained(bundle, now);
            let held = &mut self.held[bundle as usize];
            (held.drained, held.moved, held.queued) = (drained, true, f64::NAN);
            self.moved.push(bundle);
        }
    }

    /// Lets bundles drain at their new bottlenecks, and takes their numbers, whose ends are to be renewed.
    pub fn attach(&mut self, now: f64, bundles: &mut Vec<u32>) {
        for bundle in self.moved.drain(..) {
            let held = &mut self.held[bundle as usize];
            if held.at == NONE || !held.moved {
                continue;
            }
            let bottleneck = &self.all[held.at as usize];
            held.start = bottleneck.clock.at(bottleneck.level, now);
            held.moved = false;
            bundles.push(bundle);
        }
    }

    /// Notes the soonest end of a bundle.
    pub fn renew(&mut self, bundle: u32, end: f64) {
        let held = &mut self.held[bundle as usize];
        if held.queued == end {
            return;
        }
        held.version = held.version.wrapping_add(1);
        held.queued = end;
        let reading = held.start + (end - held.drained).max(0.0) * held.weight;
        let entry = Reverse((reading.to_bits(), bundle, held.version));
        let at = held.at;
        self.all[at as usize].clock.ends.push(entry);
        self.change(at);
    }

    /// The next event of the bottleneck may be another.
    pub(super) fn change(&mut self, at: u32) {
        if !std::mem::replace(&mut self.all[at as usize].clock.changed, true) {
            self.changed.push(at);
        }
    }

    /// Reports the next event of each bottleneck where that is another now.
    pub fn report(&mut self, now: f64, next: &mut impl FnMut(Next)) {
        for at in std::mem::take(&mut self.changed) {
            self.soonest(at);
            let bottleneck = &mut self.all[at as usize];
            let clock = &mut bottleneck.clock;
            clock.changed = false;
            clock.advance(bottleneck.level, now);
            self.events = self.events.wrapping_add(1);
            clock.version = self.events;
            let Some(&Reverse((reading, ..))) = clock.ends.peek() else {
                if bottleneck.bundles.is_empty() {
                    clock.reading = 0.0;
                }
                continue;
            };
            clock.queued = f64::from_bits(reading);
            let time = clock.since + (clock.queued - clock.reading).max(0.0) / bottleneck.level;
            let replaces = std::mem::replace(&mut clock.waits, true);
            next(Next { time, what: What::Reached { bottleneck: at, version: clock.version }, replaces });
        }
    }

    /// True if an event with this version is not obsolete.
    pub fn current(&self, at: u32, version: u32) -> bool {
        self.all.get(at as usize).is_some_and(|bottleneck| bottleneck.clock.version == version)
    }

    /// The next event of a bottleneck happens now: takes the bundles that have reached their ends.
    pub fn reach(&mut self, at: u32, now: f64, bundles: &mut Vec<u32>) {
        let clock = &mut self.all[at as usize].clock;
        (clock.reading, clock.since, clock.waits) = (clock.queued, now, false);
        let level = clock.queued;
        self.change(at);
        while let Some((reading, bundle)) = self.soonest(at) {
            if reading > level {
                break;
            }
            self.all[at as usize].clock.ends.pop();
            let held = &mut self.held[bundle as usize];
            (held.drained, held.start, held.queued) = (held.queued, level, f64::NAN);
            bundles.push(bundle);
        }
    }

    /// The soonest reading at which a bundle of a bottleneck reaches an end.
    fn soonest(&mut self, at: u32) -> Option<(f64, u32)> {
        let (held, ends) = (&self.held, &mut self.all[at as usize].clock.ends);
        while let Some(&Reverse((reading, bundle, version))) = ends.peek() {
            let Held { at: known, version: last, queued, .. } = held[bundle as usize];
            if (known, last) == (at, version) && !queued.is_nan() {
                return Some((f64::from_bits(reading), bundle));
            }
            ends.pop();
        }
        None
    }
}

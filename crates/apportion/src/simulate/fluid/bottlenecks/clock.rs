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
    /// The soonest reading at which a bundle reaches an end, if that is known.
    soonest: Option<f64>,
    /// Readings at which bundles reach their soonest ends, with the version of each bundle. Readings are not
    /// negative: they sort like their bits.
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// True if its soonest bundle may reach its end at another time.
    changed: bool,
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

    /// A bundle has left, perhaps the soonest.
    pub fn forget(&mut self) {
        self.soonest = None;
    }
}

/// The event of the bottleneck that is next. Only this one is in the queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Event {
    time: f64,
    version: u32,
    waits: bool,
}

impl Bottlenecks {
    /// What each flow of a bundle has drained by now.
    pub fn drained(&self, bundle: u32, now: f64) -> f64 {
        let held = &self.held[bundle as usize];
        if held.moved {
            return held.drained;
        }
        let reading = self.all[held.at as usize].clock.at(self.level[held.at as usize], now);
        held.drained + (reading - held.start).max(0.0) / held.weight
    }

    /// Notes what a bundle has drained, before its bottleneck is another.
    pub(super) fn detach(&mut self, bundle: u32, now: f64) {
        if !self.held[bundle as usize].moved {
            let drained = self.drained(bundle, now);
            let held = &mut self.held[bundle as usize];
            (held.drained, held.moved, held.queued) = (drained, true, f64::NAN);
            let at = held.at;
            self.moved.push(bundle);
            self.all[at as usize].clock.forget();
            self.change(at);
        }
    }

    /// Lets bundles drain at their new bottlenecks, and takes their numbers, whose ends are to be renewed.
    pub fn attach(&mut self, now: f64, bundles: &mut Vec<u32>) {
        for bundle in self.moved.drain(..) {
            let held = &mut self.held[bundle as usize];
            if held.at == NONE || !held.moved {
                continue;
            }
            held.start = self.all[held.at as usize].clock.at(self.level[held.at as usize], now);
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
        let clock = &mut self.all[at as usize].clock;
        clock.ends.push(entry);
        clock.soonest = None;
        self.change(at);
    }

    /// The next event of the bottleneck may be another.
    pub(super) fn change(&mut self, at: u32) {
        if !std::mem::replace(&mut self.all[at as usize].clock.changed, true) {
            self.changed.push(at);
        }
    }

    /// Reports the next event, if that is another now.
    pub fn report(&mut self, now: f64, next: &mut impl FnMut(Next)) {
        let mut changed = std::mem::take(&mut self.changed);
        for at in changed.drain(..) {
            if self.all[at as usize].clock.soonest.is_none() {
                self.soonest(at);
            }
            let (bottleneck, level) = (&mut self.all[at as usize], self.level[at as usize]);
            let clock = &mut bottleneck.clock;
            clock.changed = false;
            clock.advance(level, now);
            self.times[at as usize] = match clock.soonest {
                Some(soonest) => now + (soonest - clock.reading).max(0.0) / level,
                None => f64::INFINITY,
            };
            if bottleneck.bundles.is_empty() {
                clock.reading = 0.0;
            }
        }
        self.changed = changed;
        let time = least(&self.times);
        let Event { time: known, version, waits } = &mut self.event;
        if *waits && time == *known {
            return;
        }
        *version = version.wrapping_add(1);
        *known = time;
        if time.is_finite() {
            let replaces = std::mem::replace(waits, true);
            next(Next { time, what: What::Reached { version: *version }, replaces });
        }
    }

    /// True if an event with this version is not obsolete.
    pub fn current(&self, version: u32) -> bool {
        self.event.version == version
    }

    /// The next event happens now: takes the bundles that have reached their ends, of all bottlenecks.
    pub fn reach(&mut self, now: f64, bundles: &mut Vec<u32>) {
        self.event.waits = false;
        for at in 0..self.times.len() as u32 {
            if self.times[at as usize] <= now {
                self.reach_at(at, now, bundles);
            }
        }
    }

    fn reach_at(&mut self, at: u32, now: f64, bundles: &mut Vec<u32>) {
        let clock = &mut self.all[at as usize].clock;
        let Some(level) = clock.soonest.take() else { return };
        (clock.reading, clock.since) = (level, now);
        self.times[at as usize] = f64::INFINITY;
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
        self.all[at as usize].clock.forget();
    }

    /// Finds the soonest reading at which a bundle of a bottleneck reaches an end.
    fn soonest(&mut self, at: u32) -> Option<(f64, u32)> {
        let (held, clock) = (&self.held, &mut self.all[at as usize].clock);
        clock.soonest = None;
        while let Some(&Reverse((reading, bundle, version))) = clock.ends.peek() {
            let Held { at: known, version: last, queued, .. } = held[bundle as usize];
            if (known, last) == (at, version) && !queued.is_nan() {
                clock.soonest = Some(f64::from_bits(reading));
                return Some((f64::from_bits(reading), bundle));
            }
            clock.ends.pop();
        }
        None
    }
}

/// The least of these times, by four partial minima, which a processor finds side by side.
fn least(times: &[f64]) -> f64 {
    let less = |x: f64, y: f64| if y < x { y } else { x };
    let (chunks, rest) = times.as_chunks::<4>();
    let four = chunks
        .iter()
        .fold([f64::INFINITY; 4], |known, chunk| std::array::from_fn(|i| less(known[i], chunk[i])));
    four.into_iter().chain(rest.iter().copied()).fold(f64::INFINITY, less)
}

//! The rates of many flows, by their bottlenecks.
//!
//! In a max-min fair sharing every flow has a bottleneck: a full link, or its own bound. The flows of a
//! bottleneck are at one level of weight x rate, and their other links have higher levels. So a level stands
//! for the rates of many bundles, and a few numbers change with each flow that starts or ends, where all
//! rates would be solved from scratch:
//!
//! - a link's level is what its other flows leave of its capacity, divided by the demand of the flows whose
//!   bottleneck it is. A new level changes what flows leave of links with higher levels, and so on upwards;
//! - bottlenecks are kept in order of their levels. Flows have the first of their links as bottleneck. When
//!   two change places, the flows that cross both change over;
//! - a clock for each bottleneck advances at its level, and bundles end at times of that clock, whatever its
//!   level will be.
//!
//! Levels in order with every flow at its first link are the optimality certificate of max-min fairness
//! (Bertsekas and Gallager 1992, section 6.5.2), so that the result is that of progressive filling. Where
//! much changes at once, [`Bottlenecks::rebuild`] fills progressively.
//!
//! Cost of a change: O(l + c r) for l links, c links that get another level, and r links that the flows of
//! each of them use as well, and O(b) for b bundles at a link that changes places with another that some of
//! them use; instead of O((u + f) log (l + f)) for f bundles that use u links.

use crate::simulate::fluid::fabric::Fabric;
use crate::simulate::fluid::flows::Bundle;
use crate::simulate::fluid::maxmin::Sharing;
use crate::simulate::fluid::queue::{Next, What};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// No bottleneck.
const NONE: u32 = u32::MAX;

/// What limits flows: a link, or a bound of their own.
#[derive(Debug)]
struct Bottleneck {
    /// Of a link; infinite for a bound.
    capacity: f64,
    /// The bundles that it limits.
    bundles: Vec<u32>,
    /// Number of bundles that use it.
    users: u32,
    clock: Clock,
}

/// A bundle, as far as it concerns bottlenecks.
#[derive(Debug, Clone, Copy)]
struct BundleState {
    /// Its bottleneck, or none if the bundle is not held, and the place among the bundles there.
    at: u32,
    spot: u32,
    /// Its links in `uses`.
    begin: u32,
    end: u32,
    /// Its bound, if it has one.
    bound: u32,
    /// Number of flows, by weight.
    amount: f64,
    weight: f64,
    /// What each flow had drained when the bottleneck's clock was at `start`.
    drained: f64,
    start: f64,
    /// The end that is in the bottleneck's list, or NaN.
    queued: f64,
    version: u32,
    /// True if its bottleneck is another than when rates were last known.
    moved: bool,
}

impl BundleState {
    const NOT: Self = Self {
        at: NONE,
        spot: 0,
        begin: 0,
        end: 0,
        bound: NONE,
        amount: 0.0,
        weight: 1.0,
        drained: 0.0,
        start: 0.0,
        queued: f64::NAN,
        version: 0,
        moved: false,
    };

    fn uses(&self) -> std::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// All bottlenecks of large components.
#[derive(Debug, Default)]
pub(super) struct Bottlenecks {
    all: Vec<Bottleneck>,
    /// By bottleneck: the weight x rate of its flows; infinite for a link that limits none.
    level: Vec<f64>,
    /// By bottleneck: the sum of count x share / weight of its flows.
    demand: Vec<f64>,
    /// By bottleneck: what flows that it does not limit leave of a link.
    rest: Vec<f64>,
    rows: Rows,
    /// By bottleneck: when its soonest bundle reaches an end; infinite without any.
    times: Vec<f64>,
    /// By bottleneck: its place in the order of levels.
    place: Vec<u32>,
    order: Vec<u32>,
    of_link: Vec<u32>,
    of_bound: BTreeMap<u64, u32>,
    /// Of all kinds of paths: the bottlenecks, and the bandwidth per unit of rate.
    uses: Vec<(u32, f64)>,
    of_kind: HashMap<u32, (u32, u32)>,
    /// By bundle.
    held: Vec<BundleState>,
    count: usize,
    /// Uses of all bundles that are held.
    used: usize,
    /// By bottleneck: true if its level may be another, and the place of the lowest of those.
    dirty: Vec<bool>,
    from: usize,
    /// Bundles with another bottleneck, and bottlenecks with another next event.
    moved: Vec<u32>,
    changed: Vec<u32>,
    event: Event,
    /// Number of changes since sums were last computed from scratch.
    updates: usize,
    // Scratch.
    captured: Vec<u32>,
}

impl Bottlenecks {
    /// True if the bundle is held here.
    pub(crate) fn holds(&self, bundle: u32) -> bool {
        self.held.get(bundle as usize).is_some_and(|held| held.at != NONE)
    }

    /// True if bundles that are held use the link.
    pub(crate) fn crowded(&self, link: u32) -> bool {
        match self.of_link.get(link as usize) {
            Some(&at) if at != NONE => self.all[at as usize].users > 0,
            _ => false,
        }
    }

    /// True if nothing has changed since rates were last computed.
    pub(crate) fn is_current(&self) -> bool {
        self.from >= self.order.len() && self.changed.is_empty()
    }

    /// A bottleneck may be at another level.
    fn mark(&mut self, at: u32) {
        self.dirty[at as usize] = true;
        self.from = self.from.min(self.place[at as usize] as usize);
    }
}

// Bundles that join, change their number of flows, and leave.

impl Bottlenecks {
    /// Holds a bundle from now on. Its flows have drained `drained` so far.
    pub(crate) fn join(&mut self, fabric: &Fabric<'_>, number: u32, bundle: &Bundle, drained: f64, now: f64) {
        let weight = fabric.kind(bundle.kind).weight;
        let (begin, end) = self.kind(fabric, bundle.kind);
        let bound = if bundle.bound.is_finite() { self.bound(bundle.bound * weight) } else { NONE };
        if self.held.len() <= number as usize {
            self.held.resize(number as usize + 1, BundleState::NOT);
        }
        let version = self.held[number as usize].version;
        let held =
            BundleState { begin, end, bound, weight, drained, version, moved: true, ..BundleState::NOT };
        let at = self.first(&held);
        self.held[number as usize] = held;
        self.moved.push(number);
        self.count += 1;
        self.used += held.uses().len();
        for place in held.uses() {
            let link = self.uses[place].0 as usize;
            self.all[link].users += 1;
        }
        if self.level[at as usize].is_infinite() {
            // So far the link limited no flow.
            let share = self.uses[held.uses()].iter().find(|used| used.0 == at).map_or(1.0, |used| used.1);
            let level = self.rest[at as usize].max(0.0) * weight / (share * f64::from(bundle.count.max(1)));
            self.all[at as usize].clock.advance(f64::INFINITY, now);
            self.level[at as usize] = level;
        }
        self.put(number, at);
        self.resize(number, bundle.count);
    }

    /// Another number of flows in a bundle, which leaves with its last.
    pub(crate) fn resize(&mut self, bundle: u32, count: u32) {
        let held = self.held[bundle as usize];
        let amount = f64::from(count) / held.weight;
        let by = amount - held.amount;
        let level = self.level[held.at as usize];
        self.held[bundle as usize].amount = amount;
        for place in held.uses() {
            let (link, share) = self.uses[place];
            if link == held.at {
                self.demand[link as usize] += by * share;
            } else {
                self.rest[link as usize] -= by * share * level;
                self.rows.add(held.at, link, by * share);
            }
            if count == 0 {
                self.all[link as usize].users -= 1;
            }
            self.mark(link);
        }
        self.updates += held.uses().len();
        if count == 0 {
            self.take(bundle);
            self.all[held.at as usize].clock.forget();
            self.change(held.at);
            self.held[bundle as usize] =
                BundleState { version: held.version.wrapping_add(1), ..BundleState::NOT };
            self.mark(held.at);
            self.count -= 1;
            self.used -= held.uses().len();
        }
    }

    /// Forgets all links once no bundle is left.
    fn forget(&mut self) {
        if self.count == 0 && !self.all.is_empty() {
            let (held, event) = (std::mem::take(&mut self.held), self.event);
            *self = Self { held, event, ..Self::default() };
        }
    }

    /// The first of the bottlenecks that a bundle may have.
    fn first(&self, held: &BundleState) -> u32 {
        let links = self.uses[held.uses()].iter().map(|used| used.0);
        let own = (held.bound != NONE).then_some(held.bound);
        links.chain(own).min_by_key(|&at| self.place[at as usize]).unwrap_or(NONE)
    }

    /// True if a bundle may have this bottleneck.
    fn may(&self, bundle: u32, at: u32) -> bool {
        let held = &self.held[bundle as usize];
        held.bound == at || self.uses[held.uses()].iter().any(|used| used.0 == at)
    }

    /// Puts a bundle at a bottleneck.
    fn put(&mut self, bundle: u32, at: u32) {
        let held = &mut self.held[bundle as usize];
        let bundles = &mut self.all[at as usize].bundles;
        (held.at, held.spot) = (at, bundles.len() as u32);
        bundles.push(bundle);
        self.count_in(bundle, true);
    }

    /// Takes a bundle away from its bottleneck.
    fn take(&mut self, bundle: u32) {
        self.count_in(bundle, false);
        let BundleState { at, spot, .. } = self.held[bundle as usize];
        let bottleneck = &mut self.all[at as usize];
        bottleneck.bundles.swap_remove(spot as usize);
        if let Some(&other) = bottleneck.bundles.get(spot as usize) {
            self.held[other as usize].spot = spot;
        }
        if bottleneck.bundles.is_empty() {
            self.demand[at as usize] = 0.0;
        }
    }

    /// Adds what the flows of a bundle take of other links than their bottleneck to the sums there, or
    /// removes it.
    fn count_in(&mut self, bundle: u32, joins: bool) {
        let held = &self.held[bundle as usize];
        for &(link, share) in &self.uses[held.uses()] {
            if link != held.at && joins {
                self.rows.join(held.at, link, held.amount * share);
            } else if link != held.at {
                self.rows.leave(held.at, link, held.amount * share);
            }
        }
    }

    /// The links of a kind of path, in `uses`.
    fn kind(&mut self, fabric: &Fabric<'_>, kind: u32) -> (u32, u32) {
        if let Some(&known) = self.of_kind.get(&kind) {
            return known;
        }
        let begin = self.uses.len() as u32;
        for &(link, share) in fabric.uses(kind) {
            let at = self.link(link, fabric.capacity(link));
            self.uses.push((at, share));
        }
        let slice = (begin, self.uses.len() as u32);
        self.of_kind.insert(kind, slice);
        slice
    }

    fn link(&mut self, link: u32, capacity: f64) -> u32 {
        if self.of_link.len() <= link as usize {
            self.of_link.resize(link as usize + 1, NONE);
        }
        if self.of_link[link as usize] == NONE {
            self.of_link[link as usize] = self.add(f64::INFINITY, capacity);
        }
        self.of_link[link as usize]
    }

    fn bound(&mut self, level: f64) -> u32 {
        if let Some(&known) = self.of_bound.get(&level.to_bits()) {
            return known;
        }
        let at = self.add(level, f64::INFINITY);
        self.of_bound.insert(level.to_bits(), at);
        // It goes to its place in the order.
        self.mark(at);
        at
    }

    fn add(&mut self, level: f64, capacity: f64) -> u32 {
        let at = self.all.len() as u32;
        let clock = Clock::default();
        self.all.push(Bottleneck { capacity, bundles: Vec::new(), users: 0, clock });
        self.level.push(level);
        self.demand.push(0.0);
        self.rest.push(capacity);
        self.rows.grow(self.all.len());
        self.times.push(f64::INFINITY);
        self.dirty.push(false);
        self.place.push(at);
        self.order.push(at);
        at
    }
}

// New levels after a change, from the lowest upwards.

/// Levels that differ by less than this fraction are equal: rounding alone does not make other levels of
/// them.
const EQUAL: f64 = 1e-13;

/// New levels per use of a link until sums are computed from scratch, so that rounding errors do not add up.
const FRESH: usize = 16;

impl Bottlenecks {
    /// Computes the levels that changed, from the lowest upwards. Returns false if that took more steps than
    /// solving for all rates would.
    pub(crate) fn update_levels(&mut self, now: f64) -> bool {
        self.forget();
        if self.updates > FRESH * self.used {
            self.recount();
            self.from = 0;
            self.dirty.fill(true);
        }
        let mut steps = 4 * self.used;
        while let Some(&at) = self.order.get(self.from) {
            self.from += 1;
            if !std::mem::take(&mut self.dirty[at as usize]) {
                continue;
            }
            let spent = self.process(at, now);
            if spent > steps {
                return false;
            }
            steps -= spent;
        }
        true
    }

    /// Brings a bottleneck to its level and to its place. Returns the number of steps.
    fn process(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 0;
        let mut level = self.target(at);
        if let Some(before) = self.place[at as usize].checked_sub(1) {
            let known = self.level[self.order[before as usize] as usize];
            if equal(level, known) && self.all[at as usize].capacity.is_finite() {
                level = known;
            }
        }
        if !equal(level, self.level[at as usize]) {
            spent += self.rise(at, level, now);
        }
        spent + self.forward(at, now) + self.backward(at, now)
    }

    /// The level of a link by what other flows leave of it. A link that limits no flow and has less than
    /// nothing left has to limit some: it goes to the front of the order until it finds them.
    fn target(&self, at: u32) -> f64 {
        let bottleneck = &self.all[at as usize];
        let rest = self.rest[at as usize];
        if bottleneck.capacity.is_infinite() {
            self.level[at as usize]
        } else if !bottleneck.bundles.is_empty() {
            rest / self.demand[at as usize]
        } else if rest < -EQUAL * bottleneck.capacity {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }
    }

    /// Changes a level, and what is left of other links.
    fn rise(&mut self, at: u32, level: f64, now: f64) -> usize {
        let bottleneck = &mut self.all[at as usize];
        let known = std::mem::replace(&mut self.level[at as usize], level);
        let by = level - known;
        bottleneck.clock.advance(known, now);
        self.updates += 1;
        self.change(at);
        let bundles = &self.all[at as usize].bundles;
        if bundles.is_empty() {
            return 1;
        }
        self.from = self.from.min(self.place[at as usize] as usize + 1);
        if let Some(links) = self.rows.subtract(at, by, &mut self.rest) {
            links.iter().for_each(|&link| self.dirty[link as usize] = true);
            return 1 + links.len() / 8;
        }
        for &bundle in bundles {
            let held = &self.held[bundle as usize];
            for &(link, share) in &self.uses[held.uses()] {
                if link != at {
                    self.rest[link as usize] -= held.amount * by * share;
                    self.dirty[link as usize] = true;
                }
            }
        }
        bundles.len()
    }

    /// Bundles change over from one bottleneck to another of their links or to their bound, which may be at
    /// another level then.
    fn capture(&mut self, from: u32, to: u32, bundles: &[u32], now: f64) -> usize {
        let known = self.level[from as usize];
        let (mut rest, mut demand) = (0.0, 0.0);
        for &bundle in bundles {
            self.detach(bundle, now);
            let held = &self.held[bundle as usize];
            if let Some(&(_, share)) = self.uses[held.uses()].iter().find(|used| used.0 == to) {
                rest += held.amount * share * known;
                demand += held.amount * share;
            }
        }
        self.rest[to as usize] += rest;
        self.demand[to as usize] += demand;
        let level = match self.all[to as usize].capacity {
            capacity if capacity.is_infinite() => self.level[to as usize],
            _ => self.rest[to as usize] / self.demand[to as usize],
        };
        let mut spent = bundles.len();
        if level != self.level[to as usize] {
            spent += self.rise(to, level, now);
        }
        for &bundle in bundles {
            self.take(bundle);
            let held = self.held[bundle as usize];
            for place in held.uses() {
                let (link, share) = self.uses[place];
                let used = held.amount * share;
                if link == from {
                    self.rest[link as usize] -= used * level;
                    if !self.all[link as usize].bundles.is_empty() {
                        self.demand[link as usize] -= used;
                    }
                } else if link != to {
                    self.rest[link as usize] -= used * (level - known);
                }
                if link != to {
                    self.mark(link);
                }
            }
            self.put(bundle, to);
        }
        self.updates += spent;
        spent
    }

    /// Computes all sums from scratch, by levels and bottlenecks.
    fn recount(&mut self) {
        self.updates = 0;
        self.demand.fill(0.0);
        self.rows.clear();
        self.rest.clear();
        self.rest.extend(self.all.iter().map(|bottleneck| bottleneck.capacity));
        for held in self.held.iter().filter(|held| held.at != NONE) {
            let level = self.level[held.at as usize];
            for place in held.uses() {
                let (link, share) = self.uses[place];
                if link == held.at {
                    self.demand[link as usize] += held.amount * share;
                } else {
                    self.rest[link as usize] -= held.amount * share * level;
                    self.rows.join(held.at, link, held.amount * share);
                }
            }
        }
    }
}

/// True if levels are equal but for rounding.
fn equal(x: f64, y: f64) -> bool {
    x == y || (x - y).abs() <= EQUAL * x.abs() && x.is_finite()
}

// The order of bottlenecks by level.

impl Bottlenecks {
    /// Moves a bottleneck before those with higher levels, whose bundles that use it change over to it.
    fn forward(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 0;
        while let Some(before) = self.place[at as usize].checked_sub(1) {
            let other = self.order[before as usize];
            if !self.above(other, at) {
                break;
            }
            self.swap(before);
            self.mark(other);
            spent += 1 + self.change_over(other, at, now);
        }
        spent
    }

    /// Moves a bottleneck after those with lower levels, to which its bundles that use them change over.
    fn backward(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 0;
        while let Some(&other) = self.order.get(self.place[at as usize] as usize + 1) {
            if !self.above(at, other) {
                break;
            }
            self.swap(self.place[at as usize]);
            self.mark(other);
            let bundles = self.change_over(at, other, now);
            spent += 1 + bundles;
            if bundles > self.all[at as usize].bundles.len() {
                self.mark(at);
                break;
            }
        }
        spent
    }

    /// True if a level is above another, and not by rounding only.
    fn above(&self, higher: u32, lower: u32) -> bool {
        let (x, y) = (self.level[higher as usize], self.level[lower as usize]);
        x > y && (x.is_infinite() || y.is_infinite() || x - y > EQUAL * x.abs())
    }

    /// The bottleneck at this place and the next change places.
    fn swap(&mut self, place: u32) {
        self.order.swap(place as usize, place as usize + 1);
        for place in [place, place + 1] {
            let at = self.order[place as usize];
            self.place[at as usize] = place;
        }
    }

    /// Bundles that may have another bottleneck change over to it. Returns the number of steps.
    fn change_over(&mut self, from: u32, to: u32, now: f64) -> usize {
        if self.all[to as usize].capacity.is_finite() && self.rows.is_disjoint(from, to) {
            return 0;
        }
        let mut captured = std::mem::take(&mut self.captured);
        captured.clear();
        captured
            .extend(self.all[from as usize].bundles.iter().copied().filter(|&bundle| self.may(bundle, to)));
        let mut spent = self.all[from as usize].bundles.len();
        if !captured.is_empty() {
            spent += self.capture(from, to, &captured, now);
            self.mark(from);
            self.mark(to);
        }
        self.captured = captured;
        spent
    }
}

// Clocks that advance at the levels of bottlenecks, and the ends of bundles by these clocks.

/// The integral of a level over time, and what ends when.
#[derive(Debug, Default)]
struct Clock {
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
    pub(crate) fn advance(&mut self, level: f64, now: f64) {
        (self.reading, self.since) = (self.at(level, now), now);
    }

    /// A bundle has left, perhaps the soonest.
    pub(crate) fn forget(&mut self) {
        self.soonest = None;
    }
}

/// The event of the bottleneck that is next. Only this one is in the queue.
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    time: f64,
    version: u32,
    waits: bool,
}

impl Bottlenecks {
    /// What each flow of a bundle has drained by now.
    pub(crate) fn drained(&self, bundle: u32, now: f64) -> f64 {
        let held = &self.held[bundle as usize];
        if held.moved {
            return held.drained;
        }
        let reading = self.all[held.at as usize].clock.at(self.level[held.at as usize], now);
        held.drained + (reading - held.start).max(0.0) / held.weight
    }

    /// Notes what a bundle has drained, before its bottleneck is another.
    fn detach(&mut self, bundle: u32, now: f64) {
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
    pub(crate) fn attach(&mut self, now: f64, bundles: &mut Vec<u32>) {
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
    pub(crate) fn renew(&mut self, bundle: u32, end: f64) {
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
    fn change(&mut self, at: u32) {
        if !std::mem::replace(&mut self.all[at as usize].clock.changed, true) {
            self.changed.push(at);
        }
    }

    /// Reports the next event, if that is another now.
    pub(crate) fn report(&mut self, now: f64, next: &mut impl FnMut(Next)) {
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
    pub(crate) fn current(&self, version: u32) -> bool {
        self.event.version == version
    }

    /// The next event happens now: takes the bundles that have reached their ends, of all bottlenecks.
    pub(crate) fn reach(&mut self, now: f64, bundles: &mut Vec<u32>) {
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
            let BundleState { at: known, version: last, queued, .. } = held[bundle as usize];
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

// What the flows of a bottleneck take of other links, summed up over bundles.

/// Most bottlenecks for which all pairs are kept, in 3 MiB.
const MOST: usize = 512;

/// For every pair of bottlenecks the sum of count x share / weight of the first's flows on the second. A new
/// level of the first changes what is left of all others by a multiple of its row, whatever the number of its
/// bundles. Pairs are not kept where there are many bottlenecks: then few bundles cross two of them.
#[derive(Debug, Default)]
struct Rows {
    sums: Vec<f64>,
    /// Bundles of each pair.
    counts: Vec<u32>,
    /// By bottleneck: the links that its bundles use as well.
    links: Vec<Vec<u32>>,
    /// Numbers in a row.
    wide: usize,
    off: bool,
}

impl Rows {
    /// Makes room for this many bottlenecks.
    pub(crate) fn grow(&mut self, bottlenecks: usize) {
        if bottlenecks <= self.wide || self.off {
            return;
        }
        if bottlenecks > MOST {
            *self = Self { off: true, ..Self::default() };
            return;
        }
        let wide = bottlenecks.next_power_of_two().max(16);
        (self.sums, self.counts) =
            (widened(&self.sums, self.wide, wide), widened(&self.counts, self.wide, wide));
        self.links.resize(wide, Vec::new());
        self.wide = wide;
    }

    /// The place of a pair, if it is kept.
    fn place(&self, at: u32, link: u32) -> Option<usize> {
        (!self.off).then_some(at as usize * self.wide + link as usize)
    }

    /// A bundle whose flows take this much of a link is at a bottleneck now.
    pub(crate) fn join(&mut self, at: u32, link: u32, amount: f64) {
        let Some(place) = self.place(at, link) else { return };
        self.sums[place] += amount;
        self.counts[place] += 1;
        if self.counts[place] == 1 {
            self.links[at as usize].push(link);
        }
    }

    /// A bundle leaves a bottleneck.
    pub(crate) fn leave(&mut self, at: u32, link: u32, amount: f64) {
        let Some(place) = self.place(at, link) else { return };
        self.sums[place] -= amount;
        self.counts[place] -= 1;
        if self.counts[place] == 0 {
            self.sums[place] = 0.0;
            let links = &mut self.links[at as usize];
            if let Some(known) = links.iter().position(|&other| other == link) {
                links.swap_remove(known);
            }
        }
    }

    /// The flows of a bundle take more of a link.
    pub(crate) fn add(&mut self, at: u32, link: u32, by: f64) {
        if let Some(place) = self.place(at, link) {
            self.sums[place] += by;
        }
    }

    /// Forgets all bundles.
    pub(crate) fn clear(&mut self) {
        self.sums.fill(0.0);
        self.counts.fill(0);
        self.links.iter_mut().for_each(Vec::clear);
    }

    /// True if it is known that no bundle of a bottleneck uses the link.
    pub(crate) fn is_disjoint(&self, at: u32, link: u32) -> bool {
        self.place(at, link).is_some_and(|place| self.counts[place] == 0)
    }

    /// Takes `by` times the row of a bottleneck from what is left of the others, and returns those that its
    /// bundles use; nothing if rows are not kept.
    pub(crate) fn subtract(&self, at: u32, by: f64, rest: &mut [f64]) -> Option<&[u32]> {
        let row = &self.sums[self.place(at, 0)?..];
        let links = &self.links[at as usize];
        if 4 * links.len() < rest.len() {
            links.iter().for_each(|&link| rest[link as usize] -= by * row[link as usize]);
        } else {
            // One pass over consecutive numbers.
            rest.iter_mut().zip(row).for_each(|(rest, sum)| *rest -= by * sum);
        }
        Some(links)
    }
}

/// A table with longer rows, and more of them.
fn widened<T: Copy + Default>(table: &[T], from: usize, to: usize) -> Vec<T> {
    let mut wide = vec![T::default(); to * to];
    for (new, old) in wide.chunks_exact_mut(to).zip(table.chunks_exact(from.max(1))) {
        new[..from].copy_from_slice(old);
    }
    wide
}

// All levels from scratch, by progressive filling.

impl Bottlenecks {
    /// Computes all levels and bottlenecks from scratch.
    pub(crate) fn rebuild(&mut self, sharing: &mut Sharing, now: f64) {
        let bundles: Vec<u32> = (0..self.held.len() as u32).filter(|&bundle| self.holds(bundle)).collect();
        sharing.clear();
        let mut local = vec![0; self.all.len()];
        for (at, bottleneck) in self.all.iter().enumerate().filter(|(_, b)| b.capacity.is_finite()) {
            local[at] = sharing.link(bottleneck.capacity);
        }
        for &bundle in &bundles {
            let held = &self.held[bundle as usize];
            let bound =
                self.level.get(held.bound as usize).map_or(f64::INFINITY, |bound| bound / held.weight);
            let uses = self.uses[held.uses()].iter().map(|&(link, share)| (local[link as usize], share));
            sharing.flows((held.amount * held.weight).round() as u32, held.weight, bound, uses);
        }
        sharing.solve(&mut Vec::new());
        for (at, &local) in local.iter().enumerate() {
            let bottleneck = &mut self.all[at];
            if bottleneck.capacity.is_finite() {
                let level = sharing.level(local);
                let known = std::mem::replace(&mut self.level[at], level);
                if level != known {
                    bottleneck.clock.advance(known, now);
                    self.change(at as u32);
                }
            }
        }
        self.sort();
        for &bundle in &bundles {
            let at = self.first(&self.held[bundle as usize]);
            if at != self.held[bundle as usize].at {
                self.detach(bundle, now);
                self.take(bundle);
                self.put(bundle, at);
            }
        }
        self.recount();
        self.from = self.order.len();
        self.dirty.fill(false);
    }

    /// Brings bottlenecks into the order of their levels.
    fn sort(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by(|&x, &y| self.level[x as usize].total_cmp(&self.level[y as usize]));
        for (place, &at) in order.iter().enumerate() {
            self.place[at as usize] = place as u32;
        }
        self.order = order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums outlast the growth of the table, and are nothing again once the last bundle has left; beyond the
    /// limit none are kept.
    #[test]
    fn sums_stay_while_the_table_grows() {
        let mut rows = Rows::default();
        rows.grow(2);
        rows.join(0, 1, 1.9);
        rows.add(0, 1, 0.1);
        rows.join(1, 0, 5.0);
        rows.grow(40);
        rows.join(0, 39, 3.0);
        let mut rest = vec![10.0; 40];
        assert_eq!(rows.subtract(0, 2.0, &mut rest), Some(&[1, 39][..]));
        assert_eq!((rest[0], rest[1], rest[39]), (10.0, 6.0, 4.0));
        rows.leave(0, 1, 0.3);
        assert!(rows.is_disjoint(0, 1) && !rows.is_disjoint(1, 0));
        assert_eq!(rows.subtract(0, 1.0, &mut rest), Some(&[39][..]));
        assert_eq!((rest[1], rest[39]), (6.0, 1.0));
        // Many links at once.
        (2..30).for_each(|link| rows.join(1, link, 0.5));
        assert_eq!(rows.subtract(1, 2.0, &mut rest).map(<[u32]>::len), Some(29));
        assert_eq!((rest[0], rest[1], rest[2], rest[39]), (0.0, 6.0, 9.0, 1.0));
        rows.grow(MOST + 1);
        rows.join(MOST as u32, 0, 1.0);
        assert!(rows.subtract(0, 1.0, &mut rest).is_none() && !rows.is_disjoint(0, 39));
    }
}

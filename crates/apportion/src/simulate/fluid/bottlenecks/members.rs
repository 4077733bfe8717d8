//! Bundles that join, change their number of flows, and leave.

use super::clock::Clock;
use super::{Bottleneck, Bottlenecks, Held, NONE};
use crate::simulate::fluid::bundle::Bundle;
use crate::simulate::fluid::fabric::Fabric;

impl Bottlenecks {
    /// Holds a bundle from now on. Its flows have drained `drained` so far.
    pub fn join(&mut self, fabric: &Fabric<'_>, number: u32, bundle: &Bundle, (drained, now): (f64, f64)) {
        let weight = fabric.kind(bundle.kind).weight;
        let (begin, end) = self.kind(fabric, bundle.kind);
        let bound = if bundle.bound.is_finite() { self.bound(bundle.bound * weight) } else { NONE };
        if self.held.len() <= number as usize {
            self.held.resize(number as usize + 1, Held::NOT);
        }
        let version = self.held[number as usize].version;
        let held = Held { begin, end, bound, weight, drained, version, moved: true, ..Held::NOT };
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
    pub fn resize(&mut self, bundle: u32, count: u32) {
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
            self.held[bundle as usize] = Held { version: held.version.wrapping_add(1), ..Held::NOT };
            self.mark(held.at);
            self.count -= 1;
            self.used -= held.uses().len();
        }
    }

    /// Forgets all links once no bundle is left.
    pub(super) fn forget(&mut self) {
        if self.count == 0 && !self.all.is_empty() {
            let (held, event) = (std::mem::take(&mut self.held), self.event);
            *self = Self { held, event, ..Self::default() };
        }
    }

    /// The first of the bottlenecks that a bundle may have.
    pub(super) fn first(&self, held: &Held) -> u32 {
        let links = self.uses[held.uses()].iter().map(|used| used.0);
        let own = (held.bound != NONE).then_some(held.bound);
        links.chain(own).min_by_key(|&at| self.place[at as usize]).unwrap_or(NONE)
    }

    /// True if a bundle may have this bottleneck.
    pub(super) fn may(&self, bundle: u32, at: u32) -> bool {
        let held = &self.held[bundle as usize];
        held.bound == at || self.uses[held.uses()].iter().any(|used| used.0 == at)
    }

    /// Puts a bundle at a bottleneck.
    pub(super) fn put(&mut self, bundle: u32, at: u32) {
        let held = &mut self.held[bundle as usize];
        let bundles = &mut self.all[at as usize].bundles;
        (held.at, held.spot) = (at, bundles.len() as u32);
        bundles.push(bundle);
        self.count_in(bundle, true);
    }

    /// Takes a bundle away from its bottleneck.
    pub(super) fn take(&mut self, bundle: u32) {
        self.count_in(bundle, false);
        let Held { at, spot, .. } = self.held[bundle as usize];
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
    pub(super) fn count_in(&mut self, bundle: u32, joins: bool) {
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

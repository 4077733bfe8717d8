//! New levels after a change, from the lowest upwards.

use super::{Bottlenecks, NONE};
use std::cmp::Reverse;

/// Levels that differ by less than this fraction are equal: rounding alone does not make other levels of them.
pub(super) const EQUAL: f64 = 1e-13;

/// Changes per use of a link until sums are computed from scratch, so that rounding errors do not add up.
const FRESH: usize = 64;

impl Bottlenecks {
    /// Computes the levels that changed, in O(b) for the b bundles there. Returns false if that took more steps than
    /// solving for all rates would.
    pub fn settle(&mut self, now: f64) -> bool {
        self.forget();
        if self.stale || self.dirty.len() > self.all.len() / 4 {
            return false;
        }
        if self.updates > FRESH * self.used {
            self.recount();
            (0..self.all.len() as u32).for_each(|at| self.mark(at));
        }
        let mut steps = 4 * self.used;
        while let Some(Reverse((place, at))) = self.dirty.pop() {
            if self.place[at as usize] != place || !self.is_dirty[at as usize] {
                continue;
            }
            self.is_dirty[at as usize] = false;
            let spent = self.process(at, now);
            if spent > steps {
                self.mark(at);
                return false;
            }
            steps -= spent;
        }
        true
    }

    /// Brings a bottleneck to its level and to its place. Returns the number of steps.
    fn process(&mut self, at: u32, now: f64) -> usize {
        let mut spent = 1;
        let mut level = self.target(at);
        if let Some(before) = self.place[at as usize].checked_sub(1) {
            let known = self.all[self.order[before as usize] as usize].level;
            if equal(level, known) && self.all[at as usize].capacity.is_finite() {
                level = known;
            }
        }
        if !equal(level, self.all[at as usize].level) {
            spent += self.rise(at, level, now);
        }
        spent + self.forward(at, now) + self.backward(at, now)
    }

    /// The level of a link by what other flows leave of it. A link that limits no flow and has less than nothing left
    /// has to limit some: it goes to the front of the order until it finds them.
    fn target(&self, at: u32) -> f64 {
        let bottleneck = &self.all[at as usize];
        let rest = self.rest[at as usize];
        if bottleneck.capacity.is_infinite() {
            bottleneck.level
        } else if !bottleneck.bundles.is_empty() {
            rest / bottleneck.demand
        } else if rest < -EQUAL * bottleneck.capacity {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }
    }

    /// Changes a level, and what is left of other links.
    fn rise(&mut self, at: u32, level: f64, now: f64) -> usize {
        let bottleneck = &mut self.all[at as usize];
        let by = level - bottleneck.level;
        bottleneck.clock.advance(bottleneck.level, now);
        bottleneck.level = level;
        let bundles = std::mem::take(&mut bottleneck.bundles);
        for &bundle in &bundles {
            let held = &self.held[bundle as usize];
            let change = held.amount * by;
            for place in held.uses() {
                let (link, share) = self.uses[place];
                if link != at {
                    self.rest[link as usize] -= change * share;
                    self.mark(link);
                }
            }
        }
        let steps = bundles.len();
        self.updates += steps;
        self.all[at as usize].bundles = bundles;
        self.change(at);
        steps
    }

    /// Bundles change over from one bottleneck to another of their links or to their bound, which may be at another
    /// level then.
    pub(super) fn capture(&mut self, from: u32, to: u32, bundles: &[u32], now: f64) -> usize {
        let known = self.all[from as usize].level;
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
        self.all[to as usize].demand += demand;
        let level = match self.all[to as usize].capacity {
            capacity if capacity.is_infinite() => self.all[to as usize].level,
            _ => self.rest[to as usize] / self.all[to as usize].demand,
        };
        let mut spent = bundles.len();
        if level != self.all[to as usize].level {
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
                        self.all[link as usize].demand -= used;
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
    pub(super) fn recount(&mut self) {
        self.updates = 0;
        for (bottleneck, rest) in self.all.iter_mut().zip(&mut self.rest) {
            (bottleneck.demand, *rest) = (0.0, bottleneck.capacity);
        }
        for held in self.held.iter().filter(|held| held.at != NONE) {
            let level = self.all[held.at as usize].level;
            for place in held.uses() {
                let (link, share) = self.uses[place];
                if link == held.at {
                    self.all[link as usize].demand += held.amount * share;
                } else {
                    self.rest[link as usize] -= held.amount * share * level;
                }
            }
        }
    }
}

/// True if levels are equal but for rounding.
fn equal(x: f64, y: f64) -> bool {
    x == y || (x - y).abs() <= EQUAL * x.abs() && x.is_finite()
}

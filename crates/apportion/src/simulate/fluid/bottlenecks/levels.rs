//! New levels after a change, from the lowest upwards.

use super::{Bottlenecks, NONE};

/// Levels that differ by less than this fraction are equal: rounding alone does not make other levels of
/// them.
pub(super) const EQUAL: f64 = 1e-13;

/// New levels per use of a link until sums are computed from scratch, so that rounding errors do not add up.
const FRESH: usize = 16;

impl Bottlenecks {
    /// Computes the levels that changed, from the lowest upwards. Returns false if that took more steps than
    /// solving for all rates would.
    pub fn settle(&mut self, now: f64) -> bool {
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
    pub(super) fn capture(&mut self, from: u32, to: u32, bundles: &[u32], now: f64) -> usize {
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
    pub(super) fn recount(&mut self) {
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

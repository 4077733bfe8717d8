//! All levels from scratch, by progressive filling.

use super::Bottlenecks;
use crate::simulate::fluid::maxmin::Sharing;

impl Bottlenecks {
    /// Computes all levels and bottlenecks from scratch.
    pub fn rebuild(&mut self, sharing: &mut Sharing, now: f64) {
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
            sharing.flows((held.amount * held.weight).round() as u32, (held.weight, bound), uses);
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

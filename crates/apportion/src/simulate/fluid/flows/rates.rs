//! New rates for the bundles that a change concerns, and their next events.

use super::Flows;
use crate::simulate::fluid::bundle::Bundle;
use crate::simulate::fluid::fabric::Fabric;
use crate::simulate::fluid::queue::Next;

impl Flows {
    /// Recomputes the rates that changed since the last call, and reports the next event of each bundle whose
    /// event is another now.
    pub fn share(&mut self, fabric: &Fabric<'_>, now: f64, mut next: impl FnMut(Next)) {
        if self.dirty.is_empty() && self.fresh.is_empty() && self.bottlenecks.settled() {
            return;
        }
        if (self.changes as f64) < self.coarse * self.count as f64 {
            return self.provide(fabric, now, next);
        }
        self.changes = 0;
        if self.round == u32::MAX {
            self.round = 0;
            self.links.iter_mut().for_each(|l| l.mark = 0);
            self.bundles.iter_mut().for_each(|b| b.mark = 0);
        }
        self.round += 1;
        for (number, birth) in std::mem::take(&mut self.newcomers) {
            let &Bundle { birth: last, kind, .. } = &self.bundles[number as usize];
            if birth != last || self.bottlenecks.holds(number) {
                continue;
            }
            // On crowded links, all bundles are held or newcomers.
            let uses = fabric.uses(kind);
            match uses.iter().find(|&&(link, _)| !self.bottlenecks.crowded(link)) {
                None => {
                    self.members.clear();
                    self.members.push(number);
                }
                Some(&(link, _)) if uses.iter().any(|&(link, _)| self.bottlenecks.crowded(link)) => {
                    self.component(fabric, link);
                }
                Some(_) => continue,
            }
            self.hold(fabric, now);
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for link in dirty.drain(..) {
            if self.links[link as usize].mark == self.round
                || self.bottlenecks.crowded(link)
                || !self.component(fabric, link)
            {
                continue;
            }
            if self.members.len() < self.large {
                self.divide(fabric);
                self.adopt(now, &mut next);
            } else {
                self.hold(fabric, now);
            }
        }
        self.dirty = dirty;
        self.level(now, &mut next);
        self.fresh.clear();
    }

    /// Holds the members by their bottlenecks from now on.
    fn hold(&mut self, fabric: &Fabric<'_>, now: f64) {
        for &number in &self.members {
            let bundle = &mut self.bundles[number as usize];
            let drained = bundle.drained(now);
            // Its event in the queue is obsolete.
            bundle.version = bundle.version.wrapping_add(1);
            self.bottlenecks.join(fabric, number, bundle, (drained, now));
        }
    }

    /// Brings bottlenecks to their levels, and reports their next events.
    fn level(&mut self, now: f64, next: &mut impl FnMut(Next)) {
        if !self.bottlenecks.settle(now) {
            self.bottlenecks.rebuild(&mut self.sharing, now);
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        self.bottlenecks.attach(now, &mut fresh);
        for number in fresh.drain(..) {
            if self.bottlenecks.holds(number)
                && let Some((end, _)) = self.first(number)
            {
                self.bottlenecks.renew(number, end);
            }
        }
        self.fresh = fresh;
        self.bottlenecks.report(now, next);
    }

    /// Gives flows that are alone in their bundles an even share of their links.
    fn provide(&mut self, fabric: &Fabric<'_>, now: f64, mut next: impl FnMut(Next)) {
        for number in std::mem::take(&mut self.fresh) {
            let bundle = &self.bundles[number as usize];
            if bundle.count == 0 {
                continue;
            }
            if bundle.rate <= 0.0 {
                let even = |&(link, share): &(u32, f64)| {
                    fabric.capacity(link) / (share * f64::from(self.links[link as usize].flows))
                };
                let rate = fabric.uses(bundle.kind).iter().map(even).fold(bundle.bound, f64::min);
                self.bundles[number as usize].flow_at(rate, now);
            }
            self.renew(number, &mut next);
        }
    }

    /// Collects the connected component of a link into `members` and `crossed`. Returns false if no flow uses
    /// the link.
    fn component(&mut self, fabric: &Fabric<'_>, link: u32) -> bool {
        self.members.clear();
        self.crossed.clear();
        self.crossed.push(link);
        self.links[link as usize].mark = self.round;
        let mut next = 0;
        while let Some(&link) = self.crossed.get(next) {
            self.local[link as usize] = next as u32;
            next += 1;
            for place in 0..self.links[link as usize].len() {
                let (number, birth) = self.links[link as usize].at(place);
                let bundle = &mut self.bundles[number as usize];
                if bundle.mark == self.round || bundle.birth != birth || self.bottlenecks.holds(number) {
                    continue;
                }
                bundle.mark = self.round;
                self.members.push(number);
                for &(other, _) in fabric.uses(bundle.kind) {
                    let on = &mut self.links[other as usize];
                    if on.mark != self.round {
                        on.mark = self.round;
                        self.crossed.push(other);
                    }
                }
            }
        }
        !self.members.is_empty()
    }

    /// Computes the rates of `members` into `rates`.
    fn divide(&mut self, fabric: &Fabric<'_>) {
        if let [alone] = self.members[..] {
            self.rates.clear();
            self.rates.push(self.rate_alone(fabric, alone));
            return;
        }
        self.sharing.clear();
        for &link in &self.crossed {
            self.sharing.link(fabric.capacity(link));
        }
        for &number in &self.members {
            let Bundle { kind, bound, count, .. } = self.bundles[number as usize];
            let uses = fabric.uses(kind).iter().map(|&(link, share)| (self.local[link as usize], share));
            self.sharing.flows(count, (fabric.kind(kind).weight, bound), uses);
        }
        self.sharing.solve(&mut self.rates);
    }

    /// Applies the new rates to the members. Whatever happens to one of them, all get new rates: unless rates
    /// are coarse, only the soonest of their events is of interest.
    fn adopt(&mut self, now: f64, next: &mut impl FnMut(Next)) {
        let (members, mut rates) = (std::mem::take(&mut self.members), std::mem::take(&mut self.rates));
        let mut soonest = f64::INFINITY;
        for (&number, rate) in members.iter().zip(&mut rates) {
            let end = self.first(number).map_or(f64::INFINITY, |(end, _)| end);
            let bundle = &mut self.bundles[number as usize];
            bundle.flow_at(*rate, now);
            // In place of the rate, the time.
            *rate = bundle.time_of(end);
            soonest = soonest.min(*rate);
        }
        for (&number, &time) in members.iter().zip(&rates) {
            if self.coarse > 0.0 || time <= soonest {
                self.renew(number, next);
            }
        }
        (self.members, self.rates) = (members, rates);
    }
}

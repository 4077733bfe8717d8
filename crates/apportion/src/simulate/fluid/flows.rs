//! Flows in progress. They drain at rates that change whenever a flow that shares their links starts or ends.

use super::fabric::Fabric;
use super::maxmin::Sharing;

/// A message on its links.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    path: u32,
    /// Units left to drain at time `since`.
    rest: f64,
    /// Share of its links, in units per second.
    rate: f64,
    /// Units drained per unit of rate.
    factor: f64,
    since: f64,
    /// Incremented with every new rate and every new user of this slot, so that obsolete events are
    /// recognised.
    pub version: u32,
    mark: u32,
    /// Distinguishes the successive users of this slot; 0 while it is free.
    birth: u32,
}

/// A link's flows, each with its birth number. Flows that ended stay in the list until they make up half of
/// it; their birth numbers no longer match.
///
/// Most links are a pair's own and carry one message at a time: it is kept without memory of its own, and the
/// list of others, of which millions of links have none, is one pointer.
#[derive(Debug, Default)]
struct OnLink {
    /// The oldest; its birth number is 0 if there is none.
    first: (u32, u32),
    #[expect(clippy::box_collection, reason = "a list in place is three words, and most links have none")]
    more: Option<Box<Vec<(u32, u32)>>>,
    ended: u32,
    mark: u32,
}

impl OnLink {
    /// Number of flows in the list.
    fn len(&self) -> usize {
        usize::from(self.first.1 != 0) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// Number of flows in progress.
    fn count(&self) -> usize {
        self.len() - self.ended as usize
    }

    /// The flow at a place of the list, in order of their starts.
    fn at(&self, place: usize) -> (u32, u32) {
        match (place, &self.more) {
            (0, _) => self.first,
            (_, Some(more)) => more[place - 1],
            (_, None) => unreachable!("the list has one flow"),
        }
    }

    fn push(&mut self, flow: (u32, u32)) {
        if self.first.1 == 0 {
            self.first = flow;
        } else {
            self.more.get_or_insert_default().push(flow);
        }
    }

    /// Keeps the flows in progress, in their order.
    fn retain(&mut self, lives: impl Fn((u32, u32)) -> bool) {
        if self.first.1 != 0 && !lives(self.first) {
            self.first = (0, 0);
        }
        if let Some(more) = &mut self.more {
            more.retain(|&flow| lives(flow));
            if self.first.1 == 0 && !more.is_empty() {
                self.first = more.remove(0);
            }
        }
        self.ended = 0;
    }
}

/// All flows. Rates are recomputed only where something changed: for the connected component of flows that
/// share links, directly or indirectly, with a changed link. With `coarse` = 0, this happens once for all
/// changes at one moment. With `coarse` > 0, it happens once this fraction of the flows in progress has
/// started or ended. Until then, new flows get an even share, and the bandwidth of ended flows stays unused.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    vacant: Vec<u32>,
    links: Vec<OnLink>,
    dirty: Vec<u32>,
    coarse: f64,
    /// Flows in progress, births so far, flows without a rate, and the number of flows that started or ended
    /// since rates were last computed.
    count: usize,
    births: u32,
    fresh: Vec<u32>,
    changes: usize,
    round: u32,
    sharing: Sharing,
    // Scratch.
    members: Vec<u32>,
    crossed: Vec<u32>,
    local: Vec<u32>,
    rates: Vec<f64>,
}

impl Flows {
    pub fn new(coarse: f64) -> Self {
        Self { coarse, ..Self::default() }
    }

    /// Starts a flow. Returns true if no other flow uses its links: then its rate is known at once, otherwise
    /// after [`Flows::share`].
    pub fn start(
        &mut self,
        fabric: &Fabric<'_>,
        path: u32,
        amount: f64,
        factor: f64,
        now: f64,
    ) -> (u32, bool) {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as u32 - 1
        });
        if self.links.len() < fabric.links() {
            self.links.resize_with(fabric.links(), OnLink::default);
            self.local.resize(fabric.links(), 0);
        }
        let uses = fabric.uses(path);
        let alone = uses.iter().all(|&(link, _)| self.links[link as usize].count() == 0);
        self.births = self.births.checked_add(1).unwrap_or(1);
        self.count += 1;
        for &(link, _) in uses {
            let on = &mut self.links[link as usize];
            on.push((id, self.births));
            if !alone {
                self.dirty.push(link);
            }
        }
        if !alone {
            self.fresh.push(id);
            self.changes += 1;
        }
        let rate = if alone { rate_alone(fabric, path) } else { -1.0 };
        let flow = &mut self.flows[id as usize];
        let version = flow.version.wrapping_add(1);
        *flow = Flow { path, rest: amount, rate, factor, since: now, version, mark: 0, birth: self.births };
        (id, alone)
    }

    /// Ends a flow that has drained.
    pub fn finish(&mut self, fabric: &Fabric<'_>, id: u32) {
        let flow = &mut self.flows[id as usize];
        flow.version = flow.version.wrapping_add(1);
        flow.birth = 0;
        let mut concerned = 0;
        for &(link, _) in fabric.uses(flow.path) {
            let on = &mut self.links[link as usize];
            on.ended += 1;
            if 2 * on.ended as usize > on.len() {
                let flows = &self.flows;
                on.retain(|(id, birth)| flows[id as usize].birth == birth);
            }
            if on.count() > 0 {
                self.dirty.push(link);
                concerned = 1;
            }
        }
        self.changes += concerned;
        self.count -= 1;
        self.vacant.push(id);
    }

    /// True if an event with this version is not obsolete.
    pub fn current(&self, id: u32, version: u32) -> bool {
        self.flows[id as usize].version == version
    }

    /// End time of a flow that shares no link.
    pub fn end_of(&self, id: u32) -> (f64, u32) {
        let flow = &self.flows[id as usize];
        (flow.since + flow.rest / (flow.rate * flow.factor), flow.version)
    }

    /// Recomputes the rates that changed since the last call, and reports each such flow with its new end and
    /// version.
    pub fn share(&mut self, fabric: &Fabric<'_>, now: f64, mut changed: impl FnMut(u32, f64, u32)) {
        if self.dirty.is_empty() {
            return;
        }
        if (self.changes as f64) < self.coarse * self.count as f64 {
            return self.provide(fabric, now, changed);
        }
        self.changes = 0;
        self.fresh.clear();
        if self.round == u32::MAX {
            self.round = 0;
            self.links.iter_mut().for_each(|l| l.mark = 0);
            self.flows.iter_mut().for_each(|f| f.mark = 0);
        }
        self.round += 1;
        let mut dirty = std::mem::take(&mut self.dirty);
        for link in dirty.drain(..) {
            if self.links[link as usize].mark != self.round && self.component(fabric, link) {
                self.divide(fabric);
                self.adopt(now, &mut changed);
            }
        }
        self.dirty = dirty;
    }

    /// Gives new flows an even share of their links.
    fn provide(&mut self, fabric: &Fabric<'_>, now: f64, mut changed: impl FnMut(u32, f64, u32)) {
        std::mem::swap(&mut self.members, &mut self.fresh);
        self.fresh.clear();
        self.rates.clear();
        for &id in &self.members {
            let path = self.flows[id as usize].path;
            let even = |&(link, share): &(u32, f64)| {
                fabric.capacity(link) / (share * self.links[link as usize].count() as f64)
            };
            self.rates.push(fabric.uses(path).iter().map(even).fold(fabric.path(path).bound, f64::min));
        }
        self.adopt(now, &mut changed);
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
                let (id, birth) = self.links[link as usize].at(place);
                let flow = &mut self.flows[id as usize];
                if flow.mark == self.round || flow.birth != birth {
                    continue;
                }
                flow.mark = self.round;
                self.members.push(id);
                for &(other, _) in fabric.uses(flow.path) {
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
            self.rates.push(rate_alone(fabric, self.flows[alone as usize].path));
            return;
        }
        self.sharing.clear();
        self.crossed.iter().for_each(|&link| self.sharing.link(fabric.capacity(link)));
        for &id in &self.members {
            let number = self.flows[id as usize].path;
            let path = fabric.path(number);
            let uses = fabric.uses(number).iter().map(|&(link, share)| (self.local[link as usize], share));
            self.sharing.flow(path.weight, path.bound, uses);
        }
        self.sharing.solve(&mut self.rates);
    }

    /// Applies the new rates to the members.
    fn adopt(&mut self, now: f64, changed: &mut impl FnMut(u32, f64, u32)) {
        for (&id, &rate) in self.members.iter().zip(&self.rates) {
            let flow = &mut self.flows[id as usize];
            if flow.rate == rate {
                continue;
            }
            if flow.rate > 0.0 {
                flow.rest = (flow.rest - (now - flow.since) * flow.rate * flow.factor).max(0.0);
            }
            flow.since = now;
            flow.rate = rate;
            flow.version = flow.version.wrapping_add(1);
            changed(id, now + flow.rest / (rate * flow.factor), flow.version);
        }
    }
}

/// The rate of a flow that shares no link.
fn rate_alone(fabric: &Fabric<'_>, path: u32) -> f64 {
    fabric
        .uses(path)
        .iter()
        .fold(fabric.path(path).bound, |rate, &(link, share)| rate.min(fabric.capacity(link) / share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(on: &OnLink) -> Vec<(u32, u32)> {
        (0..on.len()).map(|place| on.at(place)).collect()
    }

    proptest! {
        /// The same flows in the same order as in one plain list, on which rates depend to the last bit.
        #[test]
        fn a_link_lists_its_flows_in_order(changes in prop::collection::vec((any::<bool>(), 0_usize..8), 0..60)) {
            let (mut on, mut plain) = (OnLink::default(), Vec::new());
            for (birth, (starts, place)) in (1..).zip(changes) {
                if starts || plain.is_empty() {
                    on.push((birth % 5, birth));
                    plain.push((birth % 5, birth));
                } else {
                    let ended = plain.remove(place % plain.len());
                    on.retain(|flow| flow != ended);
                }
                prop_assert_eq!(listed(&on), plain.clone());
                prop_assert_eq!(on.count(), plain.len());
            }
        }
    }
}

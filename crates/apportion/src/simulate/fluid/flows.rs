//! Flows in progress. They drain at rates that change whenever a flow that shares their links starts or ends.

mod ends;
mod rates;

use super::bottlenecks::Bottlenecks;
use super::bundle::Bundle;
use super::fabric::Fabric;
use super::maxmin::Sharing;
use super::on_link::OnLink;
use super::queue::Next;
use std::collections::BTreeMap;

/// No flow, no bundle.
const NONE: u32 = u32::MAX;

/// Number of bundles from which on a component is large.
const LARGE: usize = 256;

/// A message on its links.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    bundle: u32,
    /// What its bundle will have drained when it ends.
    end: f64,
    /// Incremented whenever it joins a bundle, so that its places in others are recognised as obsolete.
    version: u32,
    path: u32,
    /// The next flow on the same path.
    next: u32,
}

/// The flows on a path: the first, and how many.
#[derive(Debug, Clone, Copy)]
struct OnPath {
    first: u32,
    count: u32,
}

/// All flows, in [bundles](Bundle): those of one kind of path that use shared links, with as many flows each
/// on the wire of their pair, drain at the same rate. Flows that share no link with another path make up a
/// bundle for each path.
///
/// Rates are recomputed only where something changed: for the connected component of bundles that share
/// links, directly or indirectly, with a changed link. Where a component is large, its bundles are held by
/// their [bottlenecks](Bottlenecks), and only levels that changed are computed. With `coarse` = 0, this
/// happens once for all changes at one moment. With `coarse` > 0, it happens once this fraction of the flows
/// in progress has started or ended. Until then, new flows get the rate of those that are alike, or else an
/// even share, and the bandwidth of ended flows stays unused.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    vacant: Vec<u32>,
    bundles: Vec<Bundle>,
    unused: Vec<u32>,
    /// Bundles in progress on shared links, by kind of path and flows abreast.
    shared: BTreeMap<(u32, u32), u32>,
    paths: Vec<OnPath>,
    links: Vec<OnLink>,
    dirty: Vec<u32>,
    coarse: f64,
    /// Flows in progress, births so far, bundles that changed, and the number of flows that started or ended
    /// since rates were last computed.
    count: usize,
    births: u32,
    fresh: Vec<u32>,
    changes: usize,
    round: u32,
    sharing: Sharing,
    /// Bundles of components with at least `large` of them are held here, unless rates are coarse.
    bottlenecks: Bottlenecks,
    large: usize,
    /// New bundles, with their births, that share links with some that are held.
    newcomers: Vec<(u32, u32)>,
    // Scratch.
    members: Vec<u32>,
    crossed: Vec<u32>,
    local: Vec<u32>,
    rates: Vec<f64>,
    reached: Vec<u32>,
}

impl Flows {
    pub fn new(coarse: f64) -> Self {
        Self { coarse, large: if coarse > 0.0 { usize::MAX } else { LARGE }, ..Self::default() }
    }

    /// Starts a flow of `amount` units, which drains `factor` times as fast as its share of the links. If no
    /// other flow uses its links, its end is known at once, otherwise after [`Flows::share`].
    pub fn start(
        &mut self,
        fabric: &Fabric<'_>,
        path: u32,
        (amount, factor): (f64, f64),
        now: f64,
        mut next: impl FnMut(Next),
    ) -> u32 {
        if self.links.len() < fabric.links() {
            self.links.resize_with(fabric.links(), OnLink::default);
            self.local.resize(fabric.links(), 0);
        }
        self.paths.resize(fabric.paths(), OnPath { first: NONE, count: 0 });
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as u32 - 1
        });
        self.count += 1;
        let kind = fabric.kind_of(path);
        let abreast = self.paths[path as usize].count + 1;
        if abreast > 1 && shares(fabric, kind) && fabric.kind(kind).own.is_finite() {
            self.regroup(fabric, path, abreast, now);
        }
        let on = &mut self.paths[path as usize];
        (self.flows[id as usize].path, self.flows[id as usize].next) = (path, on.first);
        *on = OnPath { first: id, count: abreast };
        let alone = fabric.uses(kind).iter().all(|&(link, _)| self.links[link as usize].flows == 0);
        self.put_in(fabric, id, (self.abreast(fabric, path), alone), amount / factor, now);
        if alone {
            let bundle = self.flows[id as usize].bundle;
            let rate = self.rate_alone(fabric, bundle);
            self.bundles[bundle as usize].flow_at(rate, now);
            self.renew(bundle, &mut next);
        } else {
            self.changes += 1;
        }
        id
    }

    /// Moves the flows of a path to the bundle of those with as many abreast.
    fn regroup(&mut self, fabric: &Fabric<'_>, path: u32, abreast: u32, now: f64) {
        let mut next = self.paths[path as usize].first;
        while next != NONE {
            let Flow { bundle, end, next: following, .. } = self.flows[next as usize];
            if self.bundles[bundle as usize].abreast != abreast {
                let rest = (end - self.drained(bundle, now)).max(0.0);
                self.bundles[bundle as usize].gone += 1;
                self.take_out(fabric, next);
                self.put_in(fabric, next, (abreast, false), rest, now);
            }
            next = following;
        }
    }

    /// The number of flows on a path, if that tells its bundle from others of its kind.
    fn abreast(&self, fabric: &Fabric<'_>, path: u32) -> u32 {
        let kind = fabric.kind_of(path);
        let matters = shares(fabric, kind) && fabric.kind(kind).own.is_finite();
        if matters { self.paths[path as usize].count } else { 0 }
    }

    /// Puts a flow, which is on its path already, into its bundle.
    fn put_in(&mut self, fabric: &Fabric<'_>, id: u32, (abreast, alone): (u32, bool), rest: f64, now: f64) {
        let Flow { path, next, .. } = self.flows[id as usize];
        let kind = fabric.kind_of(path);
        let shared = shares(fabric, kind);
        let known = if shared {
            self.shared.get(&(kind, abreast)).copied()
        } else {
            // The path's other flows have a bundle, and this one comes first.
            (next != NONE).then(|| self.flows[next as usize].bundle)
        };
        let bundle = known.unwrap_or_else(|| self.begin(fabric, (kind, abreast), now));
        let end = self.drained(bundle, now) + rest;
        let group = &mut self.bundles[bundle as usize];
        group.count += 1;
        if self.bottlenecks.holds(bundle) {
            self.bottlenecks.resize(bundle, group.count);
        }
        let flow = &mut self.flows[id as usize];
        flow.version = flow.version.wrapping_add(1);
        flow.bundle = bundle;
        flow.end = end;
        group.ends.push(flow.end, (id, flow.version));
        if shared && !alone {
            self.fresh.push(bundle);
        }
        for &(link, _) in fabric.uses(kind) {
            let on = &mut self.links[link as usize];
            on.flows += 1;
            if !alone {
                self.dirty.push(link);
            }
        }
    }

    /// A new bundle.
    fn begin(&mut self, fabric: &Fabric<'_>, (kind, abreast): (u32, u32), now: f64) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.bundles.push(Bundle::default());
            self.bundles.len() as u32 - 1
        });
        self.births = self.births.checked_add(1).unwrap_or(1);
        let &super::fabric::Kind { bound, own, .. } = fabric.kind(kind);
        let bound = if abreast > 1 { bound.min(own / f64::from(abreast)) } else { bound };
        self.bundles[number as usize].begin((kind, abreast), bound, (self.births, now));
        if shares(fabric, kind) {
            self.shared.insert((kind, abreast), number);
        }
        for &(link, _) in fabric.uses(kind) {
            self.links[link as usize].push((number, self.births));
        }
        if fabric.uses(kind).iter().any(|&(link, _)| self.bottlenecks.crowded(link)) {
            self.newcomers.push((number, self.births));
        }
        number
    }

    /// Takes a flow out of its bundle, which ends with its last.
    fn take_out(&mut self, fabric: &Fabric<'_>, id: u32) {
        let number = self.flows[id as usize].bundle;
        let bundle = &mut self.bundles[number as usize];
        let kind = bundle.kind;
        bundle.count -= 1;
        if self.bottlenecks.holds(number) {
            self.bottlenecks.resize(number, bundle.count);
        }
        let over = bundle.count == 0;
        if over {
            bundle.birth = 0;
            bundle.version = bundle.version.wrapping_add(1);
            bundle.ends = Default::default();
            if shares(fabric, kind) {
                self.shared.remove(&(kind, bundle.abreast));
            }
            self.unused.push(number);
        }
        let bundles = &self.bundles;
        for &(link, _) in fabric.uses(kind) {
            let on = &mut self.links[link as usize];
            on.flows -= 1;
            if over {
                on.end(|(number, birth)| bundles[number as usize].birth == birth);
            }
            if on.flows > 0 {
                self.dirty.push(link);
            }
        }
    }

    /// Takes a flow off the list of its path.
    fn unlink(&mut self, path: u32, id: u32) {
        let after = self.flows[id as usize].next;
        let on = &mut self.paths[path as usize];
        on.count -= 1;
        if on.first == id {
            on.first = after;
            return;
        }
        let mut at = on.first;
        while self.flows[at as usize].next != id {
            at = self.flows[at as usize].next;
        }
        self.flows[at as usize].next = after;
    }

    /// What each flow of a bundle has drained by now.
    fn drained(&mut self, bundle: u32, now: f64) -> f64 {
        if self.bottlenecks.holds(bundle) {
            self.bottlenecks.drained(bundle, now)
        } else {
            self.bundles[bundle as usize].drained(now)
        }
    }

    /// The rate of each flow of a bundle if no other path's flows are on its links.
    fn rate_alone(&self, fabric: &Fabric<'_>, number: u32) -> f64 {
        let bundle = &self.bundles[number as usize];
        let count = f64::from(bundle.count);
        // Flows on a wire of their pair share it, whether a bundle has been made for them or not.
        let bound = match fabric.uses(bundle.kind) {
            [] => bundle.bound.min(fabric.kind(bundle.kind).own / count),
            _ => bundle.bound,
        };
        fabric
            .uses(bundle.kind)
            .iter()
            .fold(bound, |rate, &(link, share)| rate.min(fabric.capacity(link) / (share * count)))
    }
}

/// True if flows of this kind share links with those of other paths.
fn shares(fabric: &Fabric<'_>, kind: u32) -> bool {
    !fabric.uses(kind).is_empty()
}

#[cfg(test)]
mod tests;

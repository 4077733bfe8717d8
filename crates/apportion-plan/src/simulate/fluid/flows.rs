//! Flows in progress. They drain at rates that change whenever a flow that shares their links starts or ends.

use crate::simulate::fluid::bottlenecks::Bottlenecks;
use crate::simulate::fluid::fabric::Fabric;
use crate::simulate::fluid::maxmin::Sharing;
use crate::simulate::fluid::queue::{Next, What};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

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
    pub(crate) fn new(coarse: f64) -> Self {
        Self { coarse, large: if coarse > 0.0 { usize::MAX } else { LARGE }, ..Self::default() }
    }

    /// Starts a flow of `amount` units, which drains `factor` times as fast as its share of the links. If no
    /// other flow uses its links, its end is known at once, otherwise after [`Flows::share`].
    pub(crate) fn start(
        &mut self,
        fabric: &Fabric<'_>,
        path: u32,
        amount: f64,
        factor: f64,
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
        self.put_in(fabric, id, self.abreast(fabric, path), alone, amount / factor, now);
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
                self.put_in(fabric, next, abreast, false, rest, now);
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
    fn put_in(&mut self, fabric: &Fabric<'_>, id: u32, abreast: u32, alone: bool, rest: f64, now: f64) {
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

// New rates for the bundles that a change concerns, and their next events.

impl Flows {
    /// Recomputes the rates that changed since the last call, and reports the next event of each bundle whose
    /// event is another now.
    pub(crate) fn share(&mut self, fabric: &Fabric<'_>, now: f64, mut next: impl FnMut(Next)) {
        if self.dirty.is_empty() && self.fresh.is_empty() && self.bottlenecks.is_current() {
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
            self.bottlenecks.join(fabric, number, bundle, drained, now);
        }
    }

    /// Brings bottlenecks to their levels, and reports their next events.
    fn level(&mut self, now: f64, next: &mut impl FnMut(Next)) {
        if !self.bottlenecks.update_levels(now) {
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
            self.sharing.flows(count, fabric.kind(kind).weight, bound, uses);
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

// Flows that end, and the next events.

impl Flows {
    /// Ends the flows that have drained by an event.
    pub(crate) fn finish(
        &mut self,
        fabric: &Fabric<'_>,
        what: What,
        now: f64,
        ended: &mut Vec<u32>,
        mut next: impl FnMut(Next),
    ) {
        ended.clear();
        match what {
            What::Drained { bundle, .. } => {
                let drained = self.bundles[bundle as usize].reach(now);
                self.end(fabric, bundle, drained, now, ended, &mut next);
            }
            What::Reached { .. } => {
                let mut reached = std::mem::take(&mut self.reached);
                reached.clear();
                self.bottlenecks.reach(now, &mut reached);
                for &bundle in &reached {
                    let drained = self.bottlenecks.drained(bundle, now);
                    self.end(fabric, bundle, drained, now, ended, &mut next);
                }
                self.reached = reached;
            }
            What::Latency(_) | What::Computed { .. } | What::Awake(_) => {
                unreachable!("flows have no such events")
            }
        }
    }

    /// Ends the flows of a bundle that end at what each has drained, or before.
    fn end(
        &mut self,
        fabric: &Fabric<'_>,
        bundle: u32,
        drained: f64,
        now: f64,
        ended: &mut Vec<u32>,
        next: &mut impl FnMut(Next),
    ) {
        let before = ended.len();
        while let Some((end, id)) = self.first(bundle) {
            if end > drained {
                break;
            }
            self.bundles[bundle as usize].ends.pop();
            ended.push(id);
        }
        let ended = &ended[before..];
        for &id in ended {
            let path = self.flows[id as usize].path;
            self.unlink(path, id);
            self.take_out(fabric, id);
            self.vacant.push(id);
        }
        self.count -= ended.len();
        let kind = self.bundles[bundle as usize].kind;
        if !shares(fabric, kind) {
            if self.bundles[bundle as usize].count > 0 {
                let rate = self.rate_alone(fabric, bundle);
                self.bundles[bundle as usize].flow_at(rate, now);
                self.renew(bundle, next);
            }
            return;
        }
        if fabric.uses(kind).iter().any(|&(link, _)| self.links[link as usize].flows > 0) {
            self.changes += ended.len();
        }
        if self.bundles[bundle as usize].count > 0 {
            self.fresh.push(bundle);
        }
        if fabric.kind(kind).own.is_finite() {
            for &id in ended {
                let path = self.flows[id as usize].path;
                let abreast = self.paths[path as usize].count;
                if abreast > 0 {
                    self.regroup(fabric, path, abreast, now);
                }
            }
        }
    }

    /// True if an event is not obsolete.
    pub(crate) fn current(&self, what: What) -> bool {
        match what {
            What::Drained { bundle, version } => self.bundles[bundle as usize].version == version,
            What::Reached { version } => self.bottlenecks.current(version),
            What::Latency(_) | What::Computed { .. } | What::Awake(_) => {
                unreachable!("flows have no such events")
            }
        }
    }

    /// The soonest end in a bundle, and its flow.
    fn first(&mut self, bundle: u32) -> Option<(f64, u32)> {
        let flows = &self.flows;
        let Bundle { ends, gone, .. } = &mut self.bundles[bundle as usize];
        let stays = |(id, version): Member| {
            let flow = &flows[id as usize];
            (flow.bundle, flow.version) == (bundle, version)
        };
        while let Some((end, member)) = ends.first() {
            if *gone == 0 || stays(member) {
                return Some((end, member.0));
            }
            ends.pop();
            *gone -= 1;
        }
        None
    }

    /// Reports the next event of a bundle, unless it is known.
    fn renew(&mut self, number: u32, next: &mut impl FnMut(Next)) {
        let Some((end, _)) = self.first(number) else { return };
        let bundle = &mut self.bundles[number as usize];
        if let Some(time) = bundle.next(end) {
            let replaces = std::mem::replace(&mut bundle.waits, true);
            next(Next { time, what: What::Drained { bundle: number, version: bundle.version }, replaces });
        }
    }
}

// Flows that have the same rate at any moment, and drain together.

/// The flow, and its version when it joined.
type Member = (u32, u32);

/// The ends of all but the soonest flow.
type Later = BinaryHeap<Reverse<(u64, Member)>>;

/// Where flows end, the soonest first: that one is kept without memory of its own, since most bundles have no
/// other. Ends are not negative: they sort like their bits.
#[derive(Debug, Default)]
struct Ends {
    first: Option<(u64, Member)>,
    more: Option<Box<Later>>,
}

impl Ends {
    pub(crate) fn push(&mut self, end: f64, member: Member) {
        debug_assert!(end >= 0.0, "a flow never ends at {end}");
        let mut later = ((end + 0.0).to_bits(), member);
        match &mut self.first {
            None => self.first = Some(later),
            Some(first) => {
                if later < *first {
                    std::mem::swap(first, &mut later);
                }
                self.more.get_or_insert_default().push(Reverse(later));
            }
        }
    }

    /// The soonest end, and its flow.
    pub(crate) fn first(&self) -> Option<(f64, Member)> {
        self.first.map(|(end, member)| (f64::from_bits(end), member))
    }

    /// Removes the soonest.
    pub(crate) fn pop(&mut self) {
        self.first = self.more.as_mut().and_then(|more| more.pop()).map(|later| later.0);
    }
}

/// Flows in progress that use the same links in the same way. Instead of what each has left, the bundle knows
/// how much every flow has drained that was there from the beginning, and each flow at which of these amounts
/// it ends: a change of the rate concerns the bundle only.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// The kind of its flows' paths.
    pub(crate) kind: u32,
    /// Flows on the path of each, if they share a wire of their own; otherwise 0.
    pub(crate) abreast: u32,
    /// Flows in it.
    pub(crate) count: u32,
    /// Incremented with every new event and every new user of this slot, so that obsolete events are
    /// recognised.
    pub(crate) version: u32,
    pub(crate) mark: u32,
    /// Distinguishes the successive users of this slot; 0 while it is free.
    pub(crate) birth: u32,
    /// Maximum rate of a flow.
    pub(crate) bound: f64,
    /// Units per second that each flow drains; negative until it is known.
    pub(crate) rate: f64,
    /// What each has drained at time `since`.
    drained: f64,
    since: f64,
    /// The end whose event is in the queue, NaN if that event is obsolete or there is none.
    queued: f64,
    /// True if the last event for this bundle has not happened.
    pub(crate) waits: bool,
    ends: Ends,
    /// Number of ends whose flows are in other bundles by now.
    pub(crate) gone: u32,
}

impl Bundle {
    /// An empty bundle in this slot, whose versions go on.
    pub(crate) fn begin(&mut self, (kind, abreast): (u32, u32), bound: f64, (birth, now): (u32, f64)) {
        let Self { version, waits, .. } = *self;
        let version = version.wrapping_add(1);
        *self = Self {
            kind,
            abreast,
            version,
            birth,
            bound,
            rate: -1.0,
            since: now,
            queued: f64::NAN,
            waits,
            ..Self::default()
        };
    }

    /// What each flow has drained by now.
    pub(crate) fn drained(&mut self, now: f64) -> f64 {
        if self.rate > 0.0 && now > self.since {
            self.drained += (now - self.since) * self.rate;
        }
        self.since = now;
        self.drained
    }

    /// Changes the rate from now on. Another rate makes the event in the queue obsolete.
    pub(crate) fn flow_at(&mut self, rate: f64, now: f64) {
        if rate != self.rate {
            self.drained(now);
            self.rate = rate;
            self.queued = f64::NAN;
            self.version = self.version.wrapping_add(1);
        }
    }

    /// Its soonest flow has drained.
    pub(crate) fn reach(&mut self, now: f64) -> f64 {
        (self.drained, self.since) = (self.queued, now);
        (self.queued, self.waits) = (f64::NAN, false);
        self.drained
    }

    /// When the flow that ends at `end` will have drained at the present rate, which is known.
    pub(crate) fn time_of(&self, end: f64) -> f64 {
        self.since + (end - self.drained).max(0.0) / self.rate
    }

    /// The time of its next event, if that is not in the queue: when the flow that ends at `end` has drained.
    pub(crate) fn next(&mut self, end: f64) -> Option<f64> {
        if end == self.queued || self.rate <= 0.0 {
            return None;
        }
        self.queued = end;
        self.version = self.version.wrapping_add(1);
        Some(self.time_of(end))
    }
}

// What is on a link: the bundles that use it.

/// A link's bundles, each with its birth number, and the number of flows in them. Bundles that ended stay in
/// the list until they make up half of it; their birth numbers no longer match.
///
/// Many links carry one bundle at a time: it is kept without memory of its own, and the list of others is one
/// pointer.
#[derive(Debug, Default)]
struct OnLink {
    /// The oldest; its birth number is 0 if there is none.
    first: (u32, u32),
    #[expect(clippy::box_collection, reason = "a list in place is three words, and many links have none")]
    more: Option<Box<Vec<(u32, u32)>>>,
    ended: u32,
    /// Flows in progress.
    pub(crate) flows: u32,
    pub(crate) mark: u32,
}

impl OnLink {
    /// Number of bundles in the list.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.1 != 0) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// The bundle at a place of the list, in order of their starts.
    pub(crate) fn at(&self, place: usize) -> (u32, u32) {
        match (place, &self.more) {
            (0, _) => self.first,
            (_, Some(more)) => more[place - 1],
            (_, None) => unreachable!("the list has one bundle"),
        }
    }

    pub(crate) fn push(&mut self, bundle: (u32, u32)) {
        if self.first.1 == 0 {
            self.first = bundle;
        } else {
            self.more.get_or_insert_default().push(bundle);
        }
    }

    /// Notes that a bundle has ended. Those that ended are dropped once they make up half of the list.
    pub(crate) fn end(&mut self, lives: impl Fn((u32, u32)) -> bool) {
        self.ended += 1;
        if 2 * self.ended as usize > self.len() {
            self.retain(lives);
        }
    }

    /// Keeps the bundles in progress, in their order.
    fn retain(&mut self, lives: impl Fn((u32, u32)) -> bool) {
        if self.first.1 != 0 && !lives(self.first) {
            self.first = (0, 0);
        }
        if let Some(more) = &mut self.more {
            more.retain(|&bundle| lives(bundle));
            if self.first.1 == 0 && !more.is_empty() {
                self.first = more.remove(0);
            }
        }
        self.ended = 0;
    }
}

#[cfg(test)]
mod tests;

//! Flows that end, and the next events.

use super::{Flows, shares};
use crate::simulate::fluid::bundle::{Bundle, Member};
use crate::simulate::fluid::fabric::Fabric;
use crate::simulate::fluid::queue::{Next, What};

impl Flows {
    /// Ends the flows that have drained by an event.
    pub fn finish(
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
                self.end(fabric, (bundle, drained), now, ended, &mut next);
            }
            What::Reached { .. } => {
                let mut reached = std::mem::take(&mut self.reached);
                reached.clear();
                self.bottlenecks.reach(now, &mut reached);
                for &bundle in &reached {
                    let drained = self.bottlenecks.drained(bundle, now);
                    self.end(fabric, (bundle, drained), now, ended, &mut next);
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
        (bundle, drained): (u32, f64),
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
    pub fn current(&self, what: What) -> bool {
        match what {
            What::Drained { bundle, version } => self.bundles[bundle as usize].version == version,
            What::Reached { version } => self.bottlenecks.current(version),
            What::Latency(_) | What::Computed { .. } | What::Awake(_) => {
                unreachable!("flows have no such events")
            }
        }
    }

    /// The soonest end in a bundle, and its flow.
    pub(super) fn first(&mut self, bundle: u32) -> Option<(f64, u32)> {
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
    pub(super) fn renew(&mut self, number: u32, next: &mut impl FnMut(Next)) {
        let Some((end, _)) = self.first(number) else { return };
        let bundle = &mut self.bundles[number as usize];
        if let Some(time) = bundle.next(end) {
            let replaces = std::mem::replace(&mut bundle.waits, true);
            next(Next { time, what: What::Drained { bundle: number, version: bundle.version }, replaces });
        }
    }
}

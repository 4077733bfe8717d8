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

mod clock;
mod levels;
mod members;
mod order;
mod rows;
mod solve;

use std::collections::{BTreeMap, HashMap};

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
    clock: clock::Clock,
}

/// A bundle, as far as it concerns bottlenecks.
#[derive(Debug, Clone, Copy)]
struct Held {
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

impl Held {
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
    rows: rows::Rows,
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
    held: Vec<Held>,
    count: usize,
    /// Uses of all bundles that are held.
    used: usize,
    /// By bottleneck: true if its level may be another, and the place of the lowest of those.
    dirty: Vec<bool>,
    from: usize,
    /// Bundles with another bottleneck, and bottlenecks with another next event.
    moved: Vec<u32>,
    changed: Vec<u32>,
    event: clock::Event,
    /// Number of changes since sums were last computed from scratch.
    updates: usize,
    // Scratch.
    captured: Vec<u32>,
}

impl Bottlenecks {
    /// True if the bundle is held here.
    pub fn holds(&self, bundle: u32) -> bool {
        self.held.get(bundle as usize).is_some_and(|held| held.at != NONE)
    }

    /// True if bundles that are held use the link.
    pub fn crowded(&self, link: u32) -> bool {
        match self.of_link.get(link as usize) {
            Some(&at) if at != NONE => self.all[at as usize].users > 0,
            _ => false,
        }
    }

    /// True if nothing has changed since rates were last computed.
    pub fn settled(&self) -> bool {
        self.from >= self.order.len() && self.changed.is_empty()
    }

    /// A bottleneck may be at another level.
    fn mark(&mut self, at: u32) {
        self.dirty[at as usize] = true;
        self.from = self.from.min(self.place[at as usize] as usize);
    }
}

//! How long a layout's messages occupy the wires: a lower bound of its time on networks whose wires are
//! shared.

use crate::geometry::Rank;
use crate::model::Machine;
use crate::plan::{Layout, Metrics};
use crate::platform::{Network, Topology, Wire};
use crate::schedule::{Flow, ScheduleOptions};
use std::collections::BTreeMap;

/// Up to this number of processors, wires are considered: the table of pairs is made once and read for each
/// layout.
const MOST_PROCESSORS: usize = 256;
/// Nanoseconds for each pair: of the table, and of reading it.
pub(super) const PAIR: f64 = 150.0;
pub(super) const READ: f64 = 40.0;
/// Rounding of sums in another order than the simulation's.
const ROUNDING: f64 = 1e-9;

/// One of the wires that a pair's messages cross.
#[derive(Debug, Clone, Copy)]
struct LinkCrossing {
    wire: u32,
    /// Of the message's whole hop.
    seconds_per_byte: f64,
    latency: f64,
}

/// The wires of all pairs of processors.
#[derive(Debug)]
pub(super) struct LinkTable {
    processors: usize,
    crossed: Vec<LinkCrossing>,
    /// Where the crossings of a pair begin, by sender and receiver.
    first: Vec<u32>,
    count: usize,
    topology: Topology,
}

/// Lower bounds of a layout's time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LowerBounds {
    /// The busiest processor computes.
    pub(crate) work: f64,
    /// The most occupied wire, where each message goes from its owner to its receiver.
    pub(crate) direct: f64,
    /// The same where the messages of a bus are broadcast.
    pub(crate) broadcast: f64,
}

impl LowerBounds {
    /// The bound for one order of steps.
    pub(crate) fn of(&self, order: ScheduleOptions, topology: Topology) -> f64 {
        let wires = match (order.flow, topology) {
            (Flow::Broadcast | Flow::OneToAll, Topology::Bus) => self.broadcast,
            // Columns of B may have other owners, and rings other paths, with as much on a bus.
            (Flow::Broadcast, _) => 0.0,
            (Flow::Ring, Topology::Bus) | (Flow::OneToAll | Flow::Bulk, _) => self.direct,
            (Flow::Ring, _) => 0.0,
        };
        self.work.max(wires)
    }
}

impl LinkTable {
    /// The wires of a network; `None` where no two messages compete, or for many processors.
    pub(crate) fn of(network: &Network, processors: usize) -> Option<Self> {
        if network.has_a_wire_for_each_pair() || network.is_free() || processors > MOST_PROCESSORS {
            return None;
        }
        let mut numbers: BTreeMap<Wire, u32> = BTreeMap::new();
        let (mut crossed, mut first) = (Vec::new(), Vec::with_capacity(processors * processors + 1));
        for (from, to) in (0..processors).flat_map(|from| (0..processors).map(move |to| (from, to))) {
            first.push(crossed.len() as u32);
            if from == to {
                continue;
            }
            for hop in network.route(Rank(from), Rank(to)) {
                // Data of A or of B, whichever are faster.
                let seconds_per_byte = 1.0 / hop.link.horizontal.max(hop.link.vertical);
                for crossing in &hop.crossings {
                    let next = numbers.len() as u32;
                    let wire = *numbers.entry(crossing.wire).or_insert(next);
                    crossed.push(LinkCrossing { wire, seconds_per_byte, latency: hop.link.latency });
                }
            }
        }
        first.push(crossed.len() as u32);
        Some(Self { processors, crossed, first, count: numbers.len(), topology: network.topology })
    }

    /// Seconds of the most occupied wire, for elements of `element` bytes: with a message from each owner to
    /// each processor that needs something, and with broadcasts. O(p^2 + p R) for R rectangles.
    fn occupied(&self, layout: &Layout, element: u64) -> [f64; 2] {
        let mut metrics = Metrics::of_units(0.0);
        metrics.fill_in(layout);
        let Some(table) = metrics.volume_matrix else { return [0.0; 2] };
        let mut taken = vec![0.0; self.count];
        for (to, line) in table.iter().enumerate() {
            for (from, &elements) in line.iter().enumerate().filter(|(_, elements)| **elements > 0) {
                let bytes = elements as f64 * element as f64;
                let pair = from * self.processors + to;
                for crossed in &self.crossed[self.first[pair] as usize..self.first[pair + 1] as usize] {
                    taken[crossed.wire as usize] += crossed.latency + bytes * crossed.seconds_per_byte;
                }
            }
        }
        let direct = taken.into_iter().fold(0.0, f64::max) * (1.0 - ROUNDING);
        let broadcast = match self.topology {
            Topology::Bus if layout.boxes().is_none() => {
                let bytes = layout.shared_lines() as f64 * layout.shape().k as f64 * element as f64;
                let fastest = self.crossed.iter().map(|c| c.seconds_per_byte).fold(f64::INFINITY, f64::min);
                bytes * fastest * (1.0 - ROUNDING)
            }
            _ => 0.0,
        };
        [direct, broadcast]
    }
}

/// The bounds of a layout; without wires, the work alone.
pub(super) fn bounds(
    links: Option<&LinkTable>,
    layout: &Layout,
    machine: &Machine,
    element: u64,
) -> LowerBounds {
    let rates = machine.rates(&layout.sizes());
    let seconds = |(work, rate): (u128, &f64)| match work > 0 && *rate > 0.0 {
        true => work as f64 / rate * (1.0 - ROUNDING),
        false => 0.0,
    };
    let work = layout.work().into_iter().zip(&rates).map(seconds).fold(0.0, f64::max);
    let [direct, broadcast] = links.map_or([0.0; 2], |links| links.occupied(layout, element));
    LowerBounds { work, direct, broadcast }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::plan::Shape;
    use crate::plan::shapes::{Method, MethodOptions};
    use crate::platform::{Platform, parse_platform};
    use crate::schedule::MatmulSchedule;
    use crate::simulate::{CostModel, simulate};
    use proptest::prelude::*;

    /// A bus, a star, half duplex, uplinks of two levels, or a shared link.
    fn network(kind: usize, processors: usize) -> Network {
        let mut text =
            String::from("[network]\nlatency = 1e-3\nbandwidth = { horizontal = 9e3, vertical = 2e4 }\n");
        text +=
            ["topology = \"bus\"\n", "topology = \"star\"\ncentre = \"p0\"\n", "duplex = false\n", "", ""]
                [kind];
        if kind == 3 {
            text += "[[network.uplink]]\nof = \"c0\"\nbandwidth = 3e4\n[[network.uplink]]\nof = \"p1\"\nbandwidth = 1e4\n";
        }
        if kind == 4 {
            text += "[[network.link]]\nbetween = [\"c0\", \"c1\"]\nshared = true\nbandwidth = 2e4\n";
        }
        for i in 0..processors {
            text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\n", i % 2);
        }
        parse_platform(&text, "test").unwrap().network
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        /// No simulation is faster than the bound, on networks of every kind, for every method and flow.
        #[test]
        fn nothing_is_faster(
            speeds in prop::collection::vec(0.05f64..1.0, 2..9), sides in (10u64..60, 1u64..60, 10u64..60),
            block in 1u64..30, ahead in 0u64..3, method in 0usize..9, kind in 0usize..5, rate in 3.0f64..8.0,
        ) {
            let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
            let method = [Method::Inner, Method::Boxes].into_iter().chain(Method::candidates()).nth(method);
            let Ok(layout) = method.unwrap().layout(shape, &speeds, &MethodOptions::default()) else { return Ok(()) };
            let network = network(kind, speeds.len());
            let links = LinkTable::of(&network, speeds.len());
            prop_assert!(links.is_some());
            let models = speeds.iter().map(|s| Model::constant("p", s * 10f64.powf(rate)).unwrap()).collect();
            let machine = Machine::new(Platform::from_speeds(&speeds).unwrap(), models, 1);
            let bounds = bounds(links.as_ref(), &layout, &machine, 8);
            let rates = machine.rates(&layout.sizes());
            for flow in Flow::ALL {
                let order = ScheduleOptions::new(flow, block).with_look_ahead(ahead);
                if order.check_layout(&layout).is_err() {
                    continue;
                }
                let cost_model = CostModel { rates: &rates, network: &network, element: 8 };
                let seconds = simulate(&MatmulSchedule::new(&layout, order), cost_model).unwrap().seconds();
                let bound = bounds.of(order, network.topology);
                prop_assert!(bound <= seconds, "{flow} {kind}: {bound} {seconds}");
            }
        }
    }

    /// Two strips of 2 x 4 on a bus, k = 3: each broadcasts its half of B, 6 elements; in bulk the same.
    #[test]
    fn a_bus_by_hand() {
        let shape = Shape::new(4, 3, 4, "test").unwrap();
        let layout = Method::Rows.layout(shape, &[1.0, 1.0], &MethodOptions::default()).unwrap();
        let mut network = Network::uniform(0.0, 2.0);
        network.topology = Topology::Bus;
        let links = LinkTable::of(&network, 2).unwrap();
        let found = links.occupied(&layout, 8);
        assert!(found.iter().all(|seconds| (seconds - 12.0 * 8.0 / 2.0).abs() < 1e-6), "{found:?}");
        assert!(LinkTable::of(&Network::uniform(0.0, 2.0), 2).is_none());
    }
}

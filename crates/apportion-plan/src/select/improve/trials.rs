//! Trials of layouts against the best time so far: cheap bounds first, then a simulation that ends as soon as
//! it is slower.

use crate::error::Result;
use crate::geometry::Rank;
use crate::plan::{Forecast, Layout, Shape, interrupts_by_owner};
use crate::platform::{Cut, Topology};
use crate::schedule::{MatmulSchedule, ScheduleOptions};
use crate::select::budget::{LINES, allowed};
use crate::select::time_bound::crossing_bound;
use crate::select::{Appraiser, Choice, forecast_within};
use crate::simulate::{CostModel, Effort};

/// Up to this number of processors, what crosses the wires around each rules layouts out.
const MOST_CUTS: usize = 64;
/// Nanoseconds of the wires between two processors.
const CUT: f64 = 400.0;
/// A layout must be faster by more than this fraction: less is rounding.
pub(super) const ROUNDING: f64 = 1e-9;

/// Quarters of all processors: if no more are present in a layout, the others are left out of the simulation.
const MOST_PRESENT: usize = 3;

/// The processors that have a part of a layout, and the centre of a star.
fn present(layout: &Layout, topology: Topology) -> Vec<Rank> {
    let mut has_part = vec![false; layout.processors()];
    layout.parts().iter().for_each(|part| has_part[part.owner.0] = true);
    layout.boxes().into_iter().flatten().for_each(|one| has_part[one.owner.0] = true);
    if let Topology::Star { centre } = topology {
        has_part[centre.0] = true;
    }
    (0..has_part.len()).filter(|&i| has_part[i]).map(Rank).collect()
}

/// Trials with a budget.
pub(in crate::select) struct Trials<'a> {
    pub(crate) appraiser: &'a Appraiser<'a>,
    pub(crate) shape: Shape,
    /// Seconds of the best so far.
    best: f64,
    /// Seconds of the product whose budget this is, and the part of it.
    known: f64,
    part: f64,
    /// The wires around each processor; empty for many processors.
    cuts: Vec<Cut>,
    effort: Effort,
}

impl<'a> Trials<'a> {
    /// Trials that are to beat `best` seconds, with this part of the budget of a product that takes `known`
    /// seconds.
    pub(crate) fn new(appraiser: &'a Appraiser<'a>, shape: Shape, best: f64, known: f64, part: f64) -> Self {
        let p = appraiser.machine.processors();
        let around = |i: usize| {
            let inside: Vec<bool> = (0..p).map(|j| i == j).collect();
            appraiser.machine.platform.network.cut(&inside)
        };
        let effort = Effort::new(part * allowed(known));
        let around_each = if p <= MOST_CUTS { p } else { 0 };
        effort.spend(CUT * (around_each * p) as f64);
        Self { appraiser, shape, best, known, part, cuts: (0..around_each).map(around).collect(), effort }
    }

    /// Seconds of the best so far.
    pub(crate) fn best(&self) -> f64 {
        self.best
    }

    /// The best takes fewer seconds now. The budget is what a product of that time allows.
    pub(crate) fn lower(&mut self, seconds: f64) {
        let known = seconds.min(self.known);
        self.effort.extend(self.part * (allowed(known) - allowed(self.known)) * 1e9);
        (self.best, self.known) = (seconds, known);
    }

    /// False once the budget is spent.
    pub(crate) fn may_go_on(&self) -> bool {
        !self.effort.is_spent()
    }

    /// True if a processor with this much of the work (multiply-adds) cannot exchange its data in the best
    /// time, in any layout.
    pub(crate) fn is_cut_off(&self, rank: usize, work: f64) -> bool {
        let Some(cut) = self.cuts.get(rank) else { return false };
        let elements = cut.bytes_within(self.best) / self.appraiser.options.element as f64;
        crossing_bound(self.shape, work) * (1.0 - ROUNDING) > elements
    }

    /// Spends nanoseconds on something else than simulations; false, and nothing is spent, if that is too
    /// much.
    pub(crate) fn spend(&mut self, nanoseconds: f64) -> bool {
        let enough = self.effort.remaining() >= nanoseconds;
        self.effort.spend(if enough { nanoseconds } else { 0.0 });
        enough
    }

    /// Sets this part of the remaining budget aside; [`Trials::put_back`] adds it again.
    pub(crate) fn set_aside(&mut self, part: f64) -> f64 {
        let aside = self.effort.remaining() * part;
        self.effort.extend(-aside);
        aside
    }

    /// Adds what was set aside.
    pub(crate) fn put_back(&mut self, aside: f64) {
        self.effort.extend(aside);
    }

    /// The forecast of a layout if it takes less than `seconds`, and if the flow serves it.
    pub(crate) fn faster_than(
        &mut self,
        seconds: f64,
        layout: &Layout,
        order: ScheduleOptions,
    ) -> Result<Option<Forecast>> {
        if order.check_layout(layout).is_err() {
            return Ok(None);
        }
        let limit = seconds * (1.0 - ROUNDING);
        let rates = self.appraiser.machine.rates(&layout.sizes());
        self.effort.spend(LINES * layout.processors() as f64);
        if self.is_too_slow(layout, &rates, limit) {
            return Ok(None);
        }
        let (network, element) = (&self.appraiser.machine.platform.network, self.appraiser.options.element);
        let present = present(layout, network.topology);
        if present.len() > MOST_PRESENT * layout.processors() / 4 {
            let cost_model = CostModel { rates: &rates, network, element };
            return forecast_within(&MatmulSchedule::new(layout, order), cost_model, limit, &self.effort);
        }
        // The others would only make the simulation longer.
        let rates: Vec<f64> = present.iter().map(|&rank| rates[rank.0]).collect();
        let cost_model = CostModel { rates: &rates, network: &network.select(&present), element };
        let mut number = vec![usize::MAX; layout.processors()];
        present.iter().enumerate().for_each(|(i, rank)| number[rank.0] = i);
        let schedule = MatmulSchedule::new(&layout.among(&number, present.len())?, order);
        let found = forecast_within(&schedule, cost_model, limit, &self.effort)?;
        Ok(found.map(|forecast| {
            let of_all = |times: Vec<f64>| {
                let mut all = vec![0.0; layout.processors()];
                present.iter().zip(times).for_each(|(rank, time)| all[rank.0] = time);
                all
            };
            let Forecast { seconds, compute, communicate } = forecast;
            Forecast { seconds, compute: of_all(compute), communicate: of_all(communicate) }
        }))
    }

    /// A layout as a candidate if it beats `self.best`, which then becomes its time.
    pub(crate) fn attempt(
        &mut self,
        method: &str,
        layout: &Layout,
        order: ScheduleOptions,
    ) -> Result<Option<Choice>> {
        let Some(forecast) = self.faster_than(self.best, layout, order)? else { return Ok(None) };
        self.lower(forecast.seconds);
        self.appraiser.choice(method, layout, order, Some(forecast)).map(Some)
    }

    /// True if one processor's work alone takes longer, or what crosses the wires around it.
    fn is_too_slow(&self, layout: &Layout, rates: &[f64], limit: f64) -> bool {
        let k = self.shape.k as f64;
        let busy = |(work, rate): (u128, &f64)| work > 0 && work as f64 / rate > limit;
        let bytes = |lines: u64| lines as f64 * k * self.appraiser.options.element as f64;
        if layout.work().into_iter().zip(rates).any(busy) {
            return true;
        }
        // With cuts of the inner dimension, partial sums cross in place of operands.
        layout.boxes().is_none()
            && interrupts_by_owner(layout)
                .into_iter()
                .zip(&self.cuts)
                .any(|(lines, cut)| lines > 0 && bytes(lines) * (1.0 - ROUNDING) > cut.bytes_within(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Machine, WorkUnit};
    use crate::plan::shapes::{Method, MethodOptions};
    use crate::platform::{Platform, parse_platform};
    use crate::schedule::Flow;
    use crate::select::{PlanOptions, forecast};
    use proptest::prelude::*;

    proptest! {
        /// Processors without a part change no bit of a forecast, on any network and by any flow.
        #[test]
        fn those_without_a_part_do_not_matter(
            network in 0usize..6, all in 5usize..14, taken in prop::collection::vec(1.0f64..9.0, 2..5),
            place in 0usize..9, flow in 0usize..4, ahead in 0u64..3, method in 0usize..9, cuts: bool,
        ) {
            let mut text = String::from("[network]\nlatency = 0.5\nbandwidth = 40\n");
            text += match network {
                0 => "duplex = false\n",
                1 => "topology = \"bus\"\n",
                2 => "topology = \"star\"\ncentre = \"p0\"\n",
                3 => "[[network.link]]\nbetween = [\"c0\", \"c1\"]\nbandwidth = 3\n",
                4 => "[[network.uplink]]\nof = \"c1\"\nbandwidth = 7\n",
                _ => "",
            };
            for i in 0..all {
                let (speed, cluster) = (1000 + 70 * i, i % 2);
                text += &format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} flop/s\"\ncluster = \"c{cluster}\"\n");
            }
            let platform = parse_platform(&text, "test").unwrap();
            let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
            let machine = Machine { block: 8, ..machine };
            let shape = Shape::new(40, 30, 50, "test").unwrap();
            let method = Method::candidates().nth(method).unwrap_or(Method::Boxes);
            let method = if cuts { Method::Boxes } else { method };
            let Ok(layout) = method.layout(shape, &taken, &MethodOptions::default()) else { return Ok(()) };
            let ranks: Vec<usize> = (0..taken.len()).map(|i| (place + 2 * i) % all).collect();
            prop_assume!(ranks.iter().collect::<std::collections::BTreeSet<_>>().len() == ranks.len());
            let layout = layout.among(&ranks, all).unwrap();
            let options = PlanOptions::open(8, 8);
            let appraiser = Appraiser::new(&machine, &options);
            let order = ScheduleOptions::new(Flow::ALL[flow], 8).with_look_ahead(ahead);
            prop_assume!(order.check_layout(&layout).is_ok());
            let mut trials = Trials::new(&appraiser, shape, 1e9, 1e9, 1.0);
            let found = trials.faster_than(f64::INFINITY, &layout, order).unwrap();
            let rates = machine.rates(&layout.sizes());
            let cost_model = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            prop_assert_eq!(found, Some(forecast(&layout, order, cost_model).unwrap()));
        }
    }

    /// Boxes of some shares do not cut the inner dimension, and those of others do: the flows that could not
    /// use these have no forecast of them.
    #[test]
    fn a_flow_has_forecasts_of_what_it_serves_only() {
        let platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
        let machine = Machine { block: 8, ..machine };
        let options = PlanOptions::open(8, 8);
        let appraiser = Appraiser::new(&machine, &options);
        let shape = Shape::new(40, 300, 40, "test").unwrap();
        let layout = Method::Boxes.layout(shape, &[1.0, 1.0], &MethodOptions::default()).unwrap();
        assert!(layout.boxes().is_some());
        let mut trials = Trials::new(&appraiser, shape, 1e9, 1e9, 1.0);
        for flow in Flow::ALL {
            let found = trials.faster_than(f64::INFINITY, &layout, ScheduleOptions::new(flow, 8)).unwrap();
            assert_eq!(found.is_some(), matches!(flow, Flow::OneToAll | Flow::Bulk), "{flow}");
        }
    }

    /// The budget is that of the best plan so far.
    #[test]
    fn a_faster_plan_takes_from_the_budget() {
        let platform = Platform::from_speeds(&[2.0, 1.0]).unwrap();
        let machine = Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap();
        let machine = Machine { block: 8, ..machine };
        let options = PlanOptions::open(8, 8);
        let appraiser = Appraiser::new(&machine, &options);
        let shape = Shape::new(40, 30, 50, "test").unwrap();
        // A hundredth of 100 s, of which a half; then of 40 s.
        let mut trials = Trials::new(&appraiser, shape, 100.0, 100.0, 0.5);
        let spent = trials.effort.spent();
        assert_eq!((trials.effort.remaining() + spent) * 1e-9, 0.5);
        trials.lower(40.0);
        assert!(((trials.effort.remaining() + spent) * 1e-9 - 0.2).abs() < 1e-12);
        assert_eq!(trials.best(), 40.0);
        // Another one is known to be faster: nothing is taken before that is beaten.
        let mut slower = Trials::new(&appraiser, shape, 100.0, 20.0, 0.5);
        slower.lower(50.0);
        assert!((slower.effort.remaining() * 1e-9 - 0.1).abs() < 1e-5);
        slower.lower(10.0);
        assert!((slower.effort.remaining() * 1e-9 - 0.05).abs() < 1e-5);
        assert!(!trials.spend(3e8) && trials.spend(1e8));
    }
}

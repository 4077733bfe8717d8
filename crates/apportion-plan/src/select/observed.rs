//! A machine as a run has shown it to be. What did not run, as one processor alone, is forecast on it again: what made
//! the run slower than its forecast would have made that slower, too.

use crate::error::Result;
use crate::model::Machine;
use crate::plan::Forecast;
use crate::select::rebalance::scaled;

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct RunTimes<'a> {
    /// Seconds from its first step to its last.
    pub seconds: f64,
    /// Seconds for which each processor computed, by rank.
    pub compute: &'a [f64],
}

/// A machine on which a run takes by forecast what it took.
#[derive(Debug, Clone)]
pub struct ObservedMachine {
    /// Its processors compute as fast as they did, and its messages take as long.
    pub machine: Machine,
    /// How many times as long messages take as by the links that were given.
    pub links: f64,
    /// Seconds of the run that the observed speeds alone do not account for; negative if it was faster.
    pub unexplained: f64,
    /// The forecast of the run on this machine.
    pub seconds: f64,
}

/// A run that is off by less than this fraction says nothing of the links.
const ACCOUNTED: f64 = 0.05;
/// Links that are faster or slower by more than this are not the reason.
const MOST: f64 = 1024.0;
/// Factors between two neighbours of which the links' is looked for.
const STEP: f64 = 4.0;
/// Halvings of that interval: to 0.2 %.
const HALVINGS: usize = 10;

impl ObservedMachine {
    /// Corrects each processor by the time for which it computed, and then all links by one factor, with which the
    /// forecast of the run is what it took. Processors without a part keep their speed. At most 16 forecasts.
    ///
    /// # Errors
    /// Those of `forecast`, which predicts the seconds of the run on a machine.
    pub fn of(
        machine: &Machine,
        predicted: &Forecast,
        run: RunTimes<'_>,
        forecast: impl Fn(&Machine) -> Result<f64>,
    ) -> Result<Self> {
        let ratio = |(predicted, took): (&f64, &f64)| match took / predicted {
            ratio if ratio > 0.0 && ratio.is_finite() => ratio,
            _ => 1.0,
        };
        let slower: Vec<f64> = predicted.compute.iter().zip(run.compute).map(ratio).collect();
        let machine = machine.with_models(scaled(&machine.models, &slower)?);
        let seconds = forecast(&machine)?;
        let unexplained = run.seconds - seconds;
        let network = &machine.platform.network;
        let with_links = |links: f64| {
            let mut machine = machine.clone();
            machine.platform.network = network.slower(links);
            machine
        };
        let same = Self { links: 1.0, unexplained, seconds, machine: machine.clone() };
        let free = network.is_free() && network.devices.is_empty();
        if free || unexplained.abs() <= ACCOUNTED * run.seconds {
            return Ok(same);
        }
        let is_beyond = |links: f64| -> Result<bool> {
            Ok((forecast(&with_links(links))? >= run.seconds) == (unexplained > 0.0))
        };
        let step = if unexplained > 0.0 { STEP } else { 1.0 / STEP };
        let (mut near, mut far) = (1.0, step);
        while !is_beyond(far)? {
            (near, far) = (far, far * step);
            if !(1.0 / MOST..=MOST).contains(&far) {
                return Ok(same);
            }
        }
        for _ in 0..HALVINGS {
            let middle = f64::sqrt(near * far);
            match is_beyond(middle)? {
                true => far = middle,
                false => near = middle,
            }
        }
        let machine = with_links(far);
        Ok(Self { links: far, unexplained, seconds: forecast(&machine)?, machine })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::plan::shapes::{Method, MethodOptions};
    use crate::plan::{Baselines, Shape};
    use crate::platform::{Network, Platform};
    use crate::schedule::{Flow, ScheduleOptions};
    use crate::select::{PlanOptions, forecast};
    use crate::simulate::CostModel;

    fn machine(speeds: &[f64], bandwidth: f64) -> Machine {
        let mut platform = Platform::from_speeds(speeds).unwrap();
        platform.network = Network::uniform(1e-4, bandwidth);
        let models = speeds.iter().zip(platform.names()).map(|(s, name)| Model::constant(name, *s).unwrap());
        Machine::new(platform.clone(), models.collect(), 1)
    }

    /// A run of equal rows was planned on a machine, and took what it takes on another one, whose second processor
    /// has 0.8 of its speed and whose links are 100 times as slow. The corrected machine is that one, and so are the
    /// times of what did not run.
    #[test]
    fn a_run_tells_speeds_and_links() {
        let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
        let layout = Method::Rows.layout(shape, &[1.0, 1.0], &MethodOptions::default()).unwrap();
        let order = ScheduleOptions::new(Flow::Bulk, 1000);
        let on = |machine: &Machine| {
            let rates = machine.rates(&layout.sizes());
            let costs = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
            forecast(&layout, order, costs)
        };
        let planned = machine(&[2e9, 1e9], 1e8);
        for (speed, links) in [(1e9, 1.0), (0.8e9, 1.0), (0.8e9, 100.0), (1e9, 100.0), (2e9, 0.2)] {
            let mut real = machine(&[2e9, speed], 1e8);
            real.platform.network = real.platform.network.slower(links);
            let took = on(&real).unwrap();
            let run = RunTimes { seconds: took.seconds, compute: &took.compute };
            let predicted = on(&planned).unwrap();
            let found = ObservedMachine::of(&planned, &predicted, run, |machine| Ok(on(machine)?.seconds));
            let found = found.unwrap();
            assert!((found.links / links - 1.0).abs() < 0.01, "{links}: {}", found.links);
            assert!((found.seconds / took.seconds - 1.0).abs() < 0.01);
            let options = PlanOptions::open(1000, 8);
            let of = |machine| Baselines::of_product(shape, machine, &options).unwrap().unwrap();
            let (corrected, right) = (of(&found.machine), of(&real));
            assert!((corrected.even_split.unwrap() / right.even_split.unwrap() - 1.0).abs() < 0.01);
            let alone = |baselines: Baselines| baselines.fastest_alone.unwrap().seconds;
            assert!((alone(corrected) / alone(right) - 1.0).abs() < 1e-9);
        }
    }

    /// Where nothing travels, links are not the reason why a run was late.
    #[test]
    fn links_that_carry_nothing_are_not_blamed() {
        let machine = machine(&[2e9, 1e9], 1e8);
        let predicted = Forecast { seconds: 0.5, compute: vec![0.5, 0.0], communicate: vec![0.0; 2] };
        let run = RunTimes { seconds: 3.0, compute: &[1.0, 0.0] };
        let seconds = |machine: &Machine| Ok(1e9 / machine.models[0].speed(1.0));
        let found = ObservedMachine::of(&machine, &predicted, run, seconds).unwrap();
        assert!(found.links == 1.0 && (found.unexplained - 2.0).abs() < 1e-9, "{found:?}");
    }
}

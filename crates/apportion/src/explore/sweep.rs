//! What if the machine were another: forecasts along one of its parameters, and the crossovers, where another
//! contender starts to win.

mod range;

pub use range::{Parameter, ParameterSweep};

use crate::error::{Error, Result};
use crate::model::Model;
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Layout, Shape, shares};
use crate::platform::{Platform, Topology};
use crate::run::Monitor;
use crate::schedule::{MatmulSchedule, ScheduleOptions};
use crate::select::{communication_of, forecast, rates};
use crate::simulate::{CostModel, Fluid, simulate_fluid};

/// A crossover is found to this part of its value.
const NEAR: f64 = 1e-4;

/// What all contenders have in common.
#[derive(Debug, Clone, Copy)]
pub struct SweepSetup<'a> {
    /// The product's sizes.
    pub shape: Shape,
    /// The machine, of which one parameter is varied.
    pub platform: &'a Platform,
    /// Speed functions, by rank; those of repeated processors are repeated.
    pub models: &'a [Model],
    /// The models' pivot block.
    pub models_block: u64,
    /// Bytes of one element.
    pub element: u64,
    /// True if speeds tell ratios only: contenders are compared by communication alone.
    pub relative: bool,
    /// How messages share links; `None`: one after the other, as [`forecast`] has it.
    pub sharing: Option<&'a Fluid>,
}

/// Where a contender's layout comes from.
#[derive(Debug, Clone)]
pub enum LayoutSource {
    /// This one throughout: only for parameters of the network.
    Given(Box<Layout>),
    /// Laid out anew for each value's speeds.
    By(Method),
}

/// One of those compared.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name in reports.
    pub name: String,
    /// Its layout.
    pub way: LayoutSource,
    /// The orders of steps that it may take; the fastest counts.
    pub orders: Vec<ScheduleOptions>,
}

/// The forecasts at one value.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// The parameter's value in base units.
    pub value: f64,
    /// Seconds of each contender with its fastest order; `None` where its method cannot serve.
    pub forecasts: Vec<Option<(f64, ScheduleOptions)>>,
    /// Who wins: the first of the fastest.
    pub winner: Option<usize>,
}

/// Where another contender starts to win.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossover {
    /// The parameter's value in base units: the least at which the new one wins, within a 10,000th.
    pub at: f64,
    /// Who wins below.
    pub from: usize,
    /// Who wins from there on.
    pub to: usize,
    /// The winner's seconds there.
    pub seconds: f64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepResult {
    /// By value, ascending.
    pub points: Vec<SweepPoint>,
    /// By value, ascending. Two within one step of the sweep that end with the same winner are missed.
    pub crossovers: Vec<Crossover>,
}

/// Forecasts of all contenders at each of the sweep's values; between neighbours with different winners the crossover
/// is found by bisection, or several if a third wins in between.
///
/// Ours; the crossovers that it finds for two processors are Becker's (2010, sections 5.2 to 5.4). O((values + 14
/// crossovers) x contenders x orders) forecasts.
///
/// # Errors
/// A layout given where processors or their speeds vary, one processor or speed functions where the ratio varies, a
/// network that costs nothing where speeds tell ratios only (exit code 2); no contender that can serve; those of a
/// forecast; stopped through the monitor.
pub fn sweep(
    setting: &SweepSetup<'_>,
    contenders: &[Candidate],
    sweep: &ParameterSweep,
    monitor: &Monitor,
) -> Result<SweepResult> {
    if setting.relative && !sweep.parameter.is_of_the_network() && setting.platform.network.is_free() {
        return Err(Error::input(
            "`sweep`",
            "nothing to compare: speeds without a unit tell ratios only, and this network costs nothing",
            "give the platform file speeds in flop/s, or a latency or bandwidth under [network]",
        ));
    }
    let race = Race { setting, contenders, parameter: sweep.parameter, monitor };
    let values = sweep.values();
    monitor.begin(values.len() as u64);
    let mut points = Vec::new();
    for value in values {
        points.push(race.point(value)?);
        monitor.advance(1);
    }
    if points.iter().all(|p| p.winner.is_none()) {
        return Err(Error::infeasible(
            "none of the methods can serve any value of the sweep",
            "choose other `methods`",
        ));
    }
    let mut crossovers = Vec::new();
    for pair in points.windows(2) {
        race.between(&pair[0], &pair[1], &mut crossovers)?;
    }
    Ok(SweepResult { points, crossovers })
}

struct Race<'a> {
    setting: &'a SweepSetup<'a>,
    contenders: &'a [Candidate],
    parameter: Parameter,
    monitor: &'a Monitor,
}

impl Race<'_> {
    /// The machine at a value.
    fn machine(&self, value: f64) -> Result<(Platform, Vec<Model>)> {
        let SweepSetup { platform, models, .. } = *self.setting;
        let network = match self.parameter {
            Parameter::Bandwidth => platform.network.at_bandwidth(value),
            Parameter::Latency => platform.network.at_latency(value),
            Parameter::Ratio => return Ok((platform.clone(), at_ratio(models, value)?)),
            Parameter::Processors => {
                let count = value as usize;
                let models = models.iter().cycle().take(count).cloned().collect();
                return Ok((platform.repeated(count), models));
            }
        };
        Ok((Platform { network, ..platform.clone() }, models.to_vec()))
    }

    fn point(&self, value: f64) -> Result<SweepPoint> {
        let (platform, models) = self.machine(value)?;
        let areas = shares::fpm(&models, self.setting.shape.elements())?;
        let weights: Vec<f64> = areas.iter().map(|&a| a as f64).collect();
        let mut forecasts = Vec::new();
        for contender in self.contenders {
            if self.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let layout = match &contender.way {
                LayoutSource::Given(_) if !self.parameter.is_of_the_network() => {
                    return Err(Error::input(
                        "`sweep`",
                        format!("a fixed layout cannot be used while the {} varies", self.parameter),
                        "name `methods`, so that each value gets a layout of its own",
                    ));
                }
                LayoutSource::Given(layout) => Some((**layout).clone()),
                LayoutSource::By(method) => self.laid_out(*method, &weights, &platform)?,
            };
            forecasts.push(layout.map(|l| self.fastest(&l, contender, &platform, &models)).transpose()?);
        }
        let best = forecasts.iter().flatten().map(|f| f.0).fold(f64::INFINITY, f64::min);
        // Equal but for rounding: the first counts.
        let wins = |f: &Option<(f64, ScheduleOptions)>| {
            f.is_some_and(|(seconds, _)| seconds <= best * (1.0 + 1e-12))
        };
        Ok(SweepPoint { value, winner: forecasts.iter().position(wins), forecasts })
    }

    /// The method's layout, if it can serve.
    fn laid_out(&self, method: Method, weights: &[f64], platform: &Platform) -> Result<Option<Layout>> {
        let centre = match platform.network.topology {
            Topology::Star { centre } => Some(centre.0),
            _ => None,
        };
        let terms =
            MethodOptions { communication: communication_of(&platform.network), centre, groups: None };
        match method.layout(self.setting.shape, weights, &terms) {
            Ok(layout) => Ok(Some(layout)),
            Err(error) if error.exit_code() == 1 => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fastest(
        &self,
        layout: &Layout,
        contender: &Candidate,
        platform: &Platform,
        models: &[Model],
    ) -> Result<(f64, ScheduleOptions)> {
        let rates = match self.setting.relative {
            true => vec![f64::MAX; models.len()],
            false => rates(models, &layout.shares(), self.setting.models_block),
        };
        let network = &platform.network;
        let conditions = CostModel { rates: &rates, network, element: self.setting.element };
        let mut best: Option<(f64, ScheduleOptions)> = None;
        for &order in &contender.orders {
            let seconds = match self.setting.sharing {
                None => forecast(layout, order, conditions)?.seconds,
                Some(rules) => {
                    let schedule = MatmulSchedule::new(layout, order);
                    simulate_fluid(&schedule, conditions, &platform.names(), rules, false)?.trace.seconds()
                }
            };
            if best.is_none_or(|(least, _)| seconds < least) {
                best = Some((seconds, order));
            }
        }
        Ok(best.expect("a contender has an order"))
    }

    /// Adds the crossovers between two values.
    fn between(&self, low: &SweepPoint, high: &SweepPoint, found: &mut Vec<Crossover>) -> Result<()> {
        let (Some(from), Some(to)) = (low.winner, high.winner) else { return Ok(()) };
        if from == to {
            return Ok(());
        }
        let Some(middle) = self.parameter.middle(low.value, high.value, NEAR) else {
            let seconds = high.forecasts[to].map_or(f64::NAN, |f| f.0);
            found.push(Crossover { at: high.value, from, to, seconds });
            return Ok(());
        };
        let middle = self.point(middle)?;
        self.between(low, &middle, found)?;
        self.between(&middle, high, found)
    }
}

/// The first processor `ratio` times as fast as the others are on average; the others keep their ratios, and all
/// together are as fast as before.
fn at_ratio(models: &[Model], ratio: f64) -> Result<Vec<Model>> {
    let refuse = |what: &str, remedy: &str| Err(Error::input("`sweep = ratio`", what, remedy));
    if models.len() < 2 {
        return refuse("one processor has no ratio to others", "use a platform of two or more");
    }
    if models.iter().any(|m| m.points().len() > 1 || m.max_size().is_some()) {
        return refuse("speeds that depend on the size have no one ratio", "use constant speeds");
    }
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(1.0)).collect();
    let others: f64 = speeds[1..].iter().sum();
    let all = others + speeds[0];
    let first = ratio * others / (speeds.len() - 1) as f64;
    let scale = all / (first + others);
    let scaled = speeds.iter().enumerate().map(|(i, &s)| scale * if i == 0 { first } else { s });
    models.iter().zip(scaled).map(|(model, speed)| Model::constant(model.processor(), speed)).collect()
}

#[cfg(test)]
mod tests;

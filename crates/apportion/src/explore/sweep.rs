//! Parameter sweeps: forecasts as a function of one platform parameter, and the crossovers, where another
//! candidate becomes the fastest.

use crate::error::{Error, Result};
use crate::job::network_options;
use crate::model::{Machine, Model, only_ratios};
use crate::plan::shapes::{Hierarchical, LayoutMethod, Method, MethodOptions};
use crate::plan::{Baselines, Factors, Hierarchy, Layout, Metrics, Shape};
use crate::platform::{Platform, Topology};
use crate::run::Monitor;
use crate::schedule::{DataPath, FactorSchedule, MatmulSchedule, ScheduleOptions};
use crate::select::{
    Cost, FactorLayout, FactorOptions, MemoryPolicy, PlanOptions, areas, check_has_times, communication_of,
    forecast, plan_matmul, plans_by_layout, preferred,
};
use crate::simulate::{self, CostModel, Fluid, forecast_fluid};
use crate::units;
use crate::units::Dimension;
use std::fmt;
use std::str::FromStr;

/// Relative accuracy of a crossover.
const NEAR: f64 = 1e-4;

/// The setup that all candidates of a sweep share.
#[derive(Debug, Clone, Copy)]
pub struct SweepSetup<'a> {
    /// The shape of the product; of a factorisation, that of the matrix and k = n.
    pub shape: Shape,
    /// The machine, one parameter of which varies. If the number of processors varies, their speed functions
    /// are repeated. With ratios of speeds, candidates are compared by communication alone.
    pub machine: &'a Machine,
    /// Bytes of one element.
    pub element: u64,
    /// How messages share links; `None` for one after the other, as in [`forecast`].
    pub sharing: Option<&'a Fluid>,
}

/// The source of a candidate's layout.
#[derive(Debug, Clone)]
pub(crate) enum LayoutSource {
    /// A fixed layout, for sweeps over parameters of the network only.
    Given(Box<Layout>),
    /// A method, which lays out the matrix for the speeds at each value.
    By(Method),
    /// Methods for the levels of the platform's clusters, from the top; `None` is the best method.
    Levels(Vec<Option<Method>>),
    /// The best plan by any method, for the processors that are worth their messages, as
    /// [`plan_matmul`] makes it. Beside methods it stands out of competition: it would win everywhere.
    Auto {
        /// Whether the forecast chooses the pivot block too.
        open_block: bool,
    },
    /// Block columns of a factorisation.
    Columns {
        /// Into which factors.
        factors: Factors,
        /// How they are given out.
        layout: FactorLayout,
        /// Columns of a block to try; the fastest counts.
        blocks: Vec<u64>,
    },
}

/// A candidate of a sweep.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The name in reports.
    pub name: String,
    /// The source of the layout.
    pub(crate) way: LayoutSource,
    /// The schedules of a product to try; the fastest one counts.
    pub orders: Vec<ScheduleOptions>,
}

/// The forecasts at one value of the parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// The parameter's value in base units.
    pub value: f64,
    /// The forecast of each candidate, in the order given; `None` if its method cannot lay out these
    /// processors.
    pub forecasts: Vec<Option<CandidateForecast>>,
    /// Index of the winner: of the candidates within the sweep's margin of the fastest, the first of those
    /// that move the least. Beside others [`LayoutSource::Auto`] does not win.
    pub winner: Option<usize>,
    /// Index of the best plan of all, if it stands beside methods.
    pub(crate) aside: Option<usize>,
    /// What the product takes without a plan; `None` where speeds are ratios, or links are shared by a rule.
    pub baselines: Option<Baselines>,
}

impl SweepPoint {
    /// Whether a candidate is faster than the better of the baselines; `None` if none has a forecast, or the baselines
    /// are unknown.
    pub fn pays(&self) -> Option<bool> {
        let best = self.forecasts.iter().flatten().map(|forecast| forecast.seconds).reduce(f64::min)?;
        Some(best < self.baselines.as_ref()?.best()?)
    }

    /// The fraction by which the fastest competitor of the winner takes longer than it; negative if
    /// that one is faster within the margin. `None` if there is no other.
    pub fn gain(&self) -> Option<f64> {
        let winner = self.winner?;
        let best = self.forecasts[winner]?.seconds;
        let competes = |i: usize| i != winner && Some(i) != self.aside;
        let others = self.forecasts.iter().enumerate().filter(|(i, _)| competes(*i));
        let second = others.filter_map(|(_, f)| Some(f.as_ref()?.seconds)).min_by(f64::total_cmp)?;
        (best > 0.0).then(|| second / best - 1.0)
    }
}

/// The forecast of one candidate with its fastest schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateForecast {
    /// Seconds from start to end.
    pub seconds: f64,
    /// Columns of a block of the fastest schedule.
    pub block: u64,
    /// The options of the fastest schedule of a product.
    pub order: Option<ScheduleOptions>,
    /// Elements moved.
    pub volume: u64,
}

impl CandidateForecast {
    fn cost(&self) -> Cost {
        Cost { value: self.seconds, volume: self.volume }
    }
}

/// A value at which another candidate becomes the fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossover {
    /// The smallest value at which the new candidate is the fastest, in base units, within a relative 1e-4.
    pub at: f64,
    /// Index of the fastest candidate below.
    pub from: usize,
    /// Index of the fastest candidate from there on.
    pub to: usize,
    /// Seconds of the fastest candidate there.
    pub seconds: f64,
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepResult {
    /// By value, ascending.
    pub points: Vec<SweepPoint>,
    /// By value, ascending. Two within one step of the sweep that end with the same winner are missed.
    pub crossovers: Vec<Crossover>,
}

/// Forecasts all candidates at each value of the sweep. Between neighbouring values with different winners,
/// bisection finds the crossover, or several if a third candidate wins in between.
///
/// The method is this project's own; the crossovers that it finds for two processors are Becker's (2010,
/// sections 5.2 to 5.4). O((values + 14 crossovers) x candidates x schedules) forecasts.
///
/// # Errors
/// Exit code 2: a fixed layout while processors or their speeds vary; one processor, or speed functions,
/// while the ratio varies; a network without costs while speeds are ratios only. Also: no candidate can lay
/// out the processors, a forecast fails, or the monitor stops the sweep.
pub fn sweep(
    setting: &SweepSetup<'_>,
    contenders: &[Candidate],
    sweep: &ParameterSweep,
    monitor: &Monitor,
) -> Result<SweepResult> {
    // A sweep of the network gives it costs.
    if !sweep.parameter.is_of_the_network() {
        check_has_times(&setting.machine.models, &setting.machine.platform.network)?;
    }
    let race = Race { setting, contenders, parameter: sweep.parameter, margin: sweep.margin, monitor };
    let values = sweep.values();
    monitor.begin(values.len() as u64);
    let mut points = Vec::new();
    for value in values {
        points.push(race.point(value, true)?);
        monitor.advance(1);
    }
    if points.iter().all(|p| p.winner.is_none()) {
        return Err(Error::infeasible("no method supports any value of the sweep", "choose other `methods`"));
    }
    let mut crossovers = Vec::new();
    for pair in points.windows(2) {
        race.between(&pair[0], &pair[1], &mut crossovers)?;
    }
    Ok(SweepResult { points, crossovers })
}

/// Forecasts all candidates on the machine as it is; `None` for one whose method cannot lay out its processors.
///
/// # Errors
/// A network without costs while speeds are ratios only; a forecast fails; the monitor stops it.
pub fn forecast_candidates(
    setting: &SweepSetup<'_>,
    contenders: &[Candidate],
    monitor: &Monitor,
) -> Result<Vec<Option<CandidateForecast>>> {
    check_has_times(&setting.machine.models, &setting.machine.platform.network)?;
    let race = Race { setting, contenders, parameter: Parameter::Processors, margin: 0.0, monitor };
    race.forecasts(setting.machine, true)
}

struct Race<'a> {
    setting: &'a SweepSetup<'a>,
    contenders: &'a [Candidate],
    parameter: Parameter,
    margin: f64,
    monitor: &'a Monitor,
}

impl Race<'_> {
    /// The machine at a value.
    fn machine(&self, value: f64) -> Result<Machine> {
        let machine = self.setting.machine;
        let Machine { platform, models, block } = machine;
        let network = match self.parameter {
            Parameter::Bandwidth => platform.network.at_bandwidth(value),
            Parameter::Latency => platform.network.at_latency(value),
            Parameter::Ratio => return Ok(machine.with_models(at_ratio(models, value)?)),
            Parameter::Processors => {
                let count = value as usize;
                let models = models.iter().cycle().take(count).cloned().collect();
                return Ok(Machine::new(platform.repeat(count), models, *block));
            }
        };
        Ok(Machine::new(Platform { network, ..platform.clone() }, models.clone(), *block))
    }

    /// The place of the best plan beside other candidates.
    fn aside(&self) -> Option<usize> {
        let auto = |candidate: &Candidate| matches!(candidate.way, LayoutSource::Auto { .. });
        self.contenders.iter().position(auto).filter(|_| self.contenders.len() > 1)
    }

    /// The options of a plan by any of these orders.
    fn plan_options(&self, orders: &[&ScheduleOptions], machine: &Machine) -> PlanOptions {
        let first = orders[0];
        let one = orders.iter().all(|order| order.flow == first.flow);
        PlanOptions {
            flow: one.then_some(first.flow),
            overlap: orders.iter().all(|order| order.overlaps()),
            look_ahead: first.look_ahead.max(1),
            messages: first.messages,
            method_options: network_options(&machine.platform),
            memory: MemoryPolicy::SmallerBlocks(DataPath::Copied),
            ..PlanOptions::open(first.block, self.setting.element)
        }
    }

    /// The forecasts at a value, with those that cannot win if they are wanted.
    fn point(&self, value: f64, all: bool) -> Result<SweepPoint> {
        let machine = self.machine(value)?;
        let SweepSetup { shape, sharing, .. } = *self.setting;
        let orders: Vec<&ScheduleOptions> = self.contenders.iter().flat_map(|one| &one.orders).collect();
        let baselines = match sharing {
            None if !orders.is_empty() => {
                Baselines::of_product(shape, &machine, &self.plan_options(&orders, &machine))?
            }
            _ => None,
        };
        let forecasts = self.forecasts(&machine, all)?;
        let aside = self.aside();
        let mut costs: Vec<Option<Cost>> =
            forecasts.iter().map(|one| one.as_ref().map(CandidateForecast::cost)).collect();
        if let Some(aside) = aside {
            costs[aside] = None;
        }
        let winner = preferred(&costs, self.margin);
        Ok(SweepPoint { value, winner, forecasts, aside, baselines })
    }

    /// The forecasts of all candidates on a machine, or of those that may win.
    fn forecasts(&self, machine: &Machine, all: bool) -> Result<Vec<Option<CandidateForecast>>> {
        let platform = &machine.platform;
        let weights = areas(&machine.models, self.setting.shape)?;
        let mut forecasts = Vec::new();
        for (place, contender) in self.contenders.iter().enumerate() {
            if self.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let layout = match &contender.way {
                LayoutSource::Columns { factors, layout, blocks } => {
                    forecasts.push(self.factorisation(*factors, *layout, blocks, machine)?);
                    continue;
                }
                LayoutSource::Given(_) if !self.parameter.is_of_the_network() => {
                    return Err(Error::input(
                        "`sweep`",
                        format!("a fixed layout cannot be used while the {} varies", self.parameter),
                        "name `methods`, so that each value gets a layout of its own",
                    ));
                }
                LayoutSource::Given(layout) => Some((**layout).clone()),
                LayoutSource::By(method) => self.laid_out(*method, &weights, platform)?,
                LayoutSource::Levels(methods) => self.by_levels(methods, &weights, platform)?,
                LayoutSource::Auto { open_block } if all || self.aside() != Some(place) => {
                    forecasts.push(Some(self.automatic(contender, *open_block, machine)?));
                    continue;
                }
                LayoutSource::Auto { .. } => None,
            };
            forecasts.push(layout.map(|l| self.fastest(&l, contender, machine)).transpose()?);
        }
        Ok(forecasts)
    }

    /// The method's layout, if it supports these processors.
    fn laid_out(&self, method: Method, weights: &[f64], platform: &Platform) -> Result<Option<Layout>> {
        let centre = match platform.network.topology {
            Topology::Star { centre } => Some(centre.0),
            _ => None,
        };
        let terms = MethodOptions {
            communication: communication_of(&platform.network),
            centre,
            ..MethodOptions::default()
        };
        if_supported(method.layout(self.setting.shape, weights, &terms))
    }

    /// The layout by methods of levels, if they support these processors.
    fn by_levels(
        &self,
        methods: &[Option<Method>],
        weights: &[f64],
        platform: &Platform,
    ) -> Result<Option<Layout>> {
        let paths: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
        let hierarchy = Hierarchy::of_paths(&paths);
        // Few processors may have fewer levels than the platform.
        let methods = &methods[..methods.len().min(hierarchy.levels())];
        let levels = Hierarchical { hierarchy: &hierarchy, methods, options: &MethodOptions::default() };
        if_supported(levels.layout(self.setting.shape, weights))
    }

    /// The best plan, with any of the candidate's orders.
    fn automatic(
        &self,
        contender: &Candidate,
        open_block: bool,
        machine: &Machine,
    ) -> Result<CandidateForecast> {
        let SweepSetup { shape, sharing, .. } = *self.setting;
        let orders: Vec<&ScheduleOptions> = contender.orders.iter().collect();
        let options = PlanOptions { open_block, ..self.plan_options(&orders, machine) };
        let best = plan_matmul(shape, machine, &options)?.swap_remove(0);
        match &best.plan.forecast {
            Some(forecast) if sharing.is_none() => Ok(CandidateForecast {
                seconds: forecast.seconds,
                block: best.order.block,
                order: Some(best.order),
                volume: best.volume(),
            }),
            _ => self.fastest(best.plan.layout()?, contender, machine),
        }
    }

    fn fastest(
        &self,
        layout: &Layout,
        contender: &Candidate,
        machine: &Machine,
    ) -> Result<CandidateForecast> {
        let rates = machine.rates(&layout.sizes());
        let Platform { network, .. } = &machine.platform;
        let costs = CostModel { rates: &rates, network, element: self.setting.element };
        let volume = Metrics::of_layout(layout, 1.0).volume.unwrap_or(u64::MAX);
        let mut all = Vec::new();
        let serve = |order: &&ScheduleOptions| order.check_layout(layout).is_ok();
        if let Some(refused) =
            contender.orders.first().filter(|_| !contender.orders.iter().any(|o| serve(&o)))
        {
            refused.check_layout(layout)?;
        }
        for &order in contender.orders.iter().filter(serve) {
            let seconds = match self.setting.sharing {
                None => forecast(layout, order, costs)?.seconds,
                Some(rules) => {
                    let schedule = MatmulSchedule::new(layout, order);
                    forecast_fluid(&schedule, costs, &machine.platform.names(), rules)?.seconds
                }
            };
            all.push(CandidateForecast { seconds, block: order.block, order: Some(order), volume });
        }
        let costs: Vec<_> = all.iter().map(|forecast| Some(forecast.cost())).collect();
        Ok(all[preferred(&costs, 0.0).expect("a contender has an order")])
    }

    /// The forecast of a factorisation with its fastest block, if the layout divides it.
    fn factorisation(
        &self,
        factors: Factors,
        layout: FactorLayout,
        blocks: &[u64],
        machine: &Machine,
    ) -> Result<Option<CandidateForecast>> {
        let (n, element) = (self.setting.shape.n, self.setting.element);
        let options = FactorOptions { layout: Some(layout), ..FactorOptions::new(blocks, element) };
        let mut best: Option<CandidateForecast> = None;
        for plan in plans_by_layout(factors, n, machine, layout, &options)? {
            let (_, blocks) = plan.blocks()?;
            let (block, volume) = (blocks.block(), plan.metrics.volume.unwrap_or(0));
            let seconds = match (self.setting.sharing, &plan.forecast) {
                (None, Some(forecast)) => forecast.seconds,
                (rules, _) => {
                    let schedule = FactorSchedule::new(factors, blocks.clone());
                    let rates = schedule.rates(machine);
                    let costs = CostModel { rates: &rates, network: &schedule.network(machine), element };
                    match rules {
                        None => simulate::forecast(&schedule, costs)?.seconds,
                        Some(rules) => {
                            forecast_fluid(&schedule, costs, &machine.platform.names(), rules)?.seconds
                        }
                    }
                }
            };
            if best.is_none_or(|best| seconds < best.seconds) {
                best = Some(CandidateForecast { seconds, block, order: None, volume });
            }
        }
        Ok(best)
    }

    /// Adds the crossovers between two values.
    fn between(&self, low: &SweepPoint, high: &SweepPoint, found: &mut Vec<Crossover>) -> Result<()> {
        let (Some(from), Some(to)) = (low.winner, high.winner) else { return Ok(()) };
        if from == to {
            return Ok(());
        }
        let Some(middle) = self.parameter.middle(low.value, high.value, NEAR) else {
            let seconds = high.forecasts[to].map_or(f64::NAN, |f| f.seconds);
            found.push(Crossover { at: high.value, from, to, seconds });
            return Ok(());
        };
        let middle = self.point(middle, false)?;
        self.between(low, &middle, found)?;
        self.between(&middle, high, found)
    }
}

/// A layout, unless its method does not support the processors.
fn if_supported(layout: Result<Layout>) -> Result<Option<Layout>> {
    match layout {
        Ok(layout) => Ok(Some(layout)),
        Err(error) if error.exit_code() == 1 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the first processor `ratio` times as fast as the others on average. The others keep their ratios,
/// and the total speed stays the same.
fn at_ratio(models: &[Model], ratio: f64) -> Result<Vec<Model>> {
    let refuse = |what: &str, remedy: &str| Err(Error::input("`sweep = ratio`", what, remedy));
    if models.len() < 2 {
        return refuse("the ratio needs at least two processors", "use a platform of two or more");
    }
    let capped = |m: &Model| m.max_size().is_some() && !m.is_stopped();
    if models.iter().any(|m| m.points().len() > 1 || capped(m)) {
        return refuse("the ratio needs constant speeds", "use constant speeds");
    }
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(1.0)).collect();
    let others: f64 = speeds[1..].iter().sum();
    let all = others + speeds[0];
    let first = ratio * others / (speeds.len() - 1) as f64;
    let scale = all / (first + others);
    let make = if only_ratios(models) { Model::ratio } else { Model::constant };
    let scaled = speeds.iter().enumerate().map(|(i, &s)| scale * if i == 0 { first } else { s });
    models.iter().zip(scaled).map(|(model, speed)| make(model.processor().to_owned(), speed)).collect()
}

// The parameter that a sweep varies, and its range.

/// Maximum number of values of a sweep.
const MOST_POINTS: usize = 1000;
/// Maximum number of processors of a sweep.
const MOST_PROCESSORS: f64 = 10_000.0;

/// The parameter that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Bytes per second of the slowest link; the others keep their ratio to it.
    Bandwidth,
    /// Seconds of the longest latency; the others keep their ratio to it.
    Latency,
    /// Speed of the first processor divided by the mean speed of the others.
    Ratio,
    /// Number of processors: those of the platform, repeated from the first.
    Processors,
}

impl Parameter {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Bandwidth, "bandwidth"),
        (Self::Latency, "latency"),
        (Self::Ratio, "ratio"),
        (Self::Processors, "processors"),
    ];

    /// True if processors and their speeds do not vary.
    pub(crate) fn is_of_the_network(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Latency)
    }

    /// The geometric mean of two values; `None` if there is none, or the two are within the fraction `near`
    /// of each other.
    fn middle(self, low: f64, high: f64, near: f64) -> Option<f64> {
        if self == Self::Processors {
            let middle = (low + (high - low) / 2.0).floor();
            return (middle > low).then_some(middle);
        }
        let middle = (low * high).sqrt();
        (high > low * (1.0 + near) && middle > low && middle < high).then_some(middle)
    }

    /// A value for readers: `100 Mbit/s`, `50 us`, `3.00`, `12`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Bandwidth => {
                let bits = 8.0 * value;
                let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
                let (prefix, size) =
                    prefixes.into_iter().find(|p| bits >= p.1 * 0.99995).unwrap_or(("", 1.0));
                format!("{} {prefix}bit/s", figures(bits / size))
            }
            Self::Latency => units::show_seconds(value),
            Self::Ratio => figures(value),
            Self::Processors => format!("{value:.0}"),
        }
    }
}

/// Four significant digits, without trailing zeros.
fn figures(x: f64) -> String {
    let decimals = if x >= 1000.0 { 0 } else { (3.0 - x.abs().max(1e-3).log10().floor()) as usize };
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(p, _)| p == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// A parameter's values from one to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterSweep {
    /// The parameter that is varied.
    pub parameter: Parameter,
    /// The smallest value, in base units; positive.
    pub from: f64,
    /// The largest value.
    pub to: f64,
    /// Number of values. `None`: every whole ratio or number of processors if there are at most 25, otherwise
    /// 13 values.
    pub points: Option<usize>,
    /// Fraction by which a candidate must be faster to win over one that moves less; 0 by default.
    pub margin: f64,
}

impl ParameterSweep {
    /// The values, ascending: both ends, and values in equal ratios between them. Numbers of processors are
    /// whole, and so are ratios if the number of values is not given and there are at most 25.
    pub(crate) fn values(&self) -> Vec<f64> {
        let whole = self.from.fract() == 0.0 && self.to.fract() == 0.0;
        let steps = self.to - self.from;
        if self.points.is_none() && !self.parameter.is_of_the_network() && whole && steps <= 24.0 {
            return (0..=steps as u64).map(|i| self.from + i as f64).collect();
        }
        let last = self.points.unwrap_or(13).clamp(2, MOST_POINTS) - 1;
        let at = |i: usize| match i {
            0 => self.from,
            i if i == last => self.to,
            i => self.from * (self.to / self.from).powf(i as f64 / last as f64),
        };
        let mut values: Vec<f64> = (0..=last).map(at).collect();
        if self.parameter == Parameter::Processors {
            values.iter_mut().for_each(|v| *v = v.round());
        }
        values.dedup();
        values
    }
}

impl FromStr for ParameterSweep {
    type Err = String;
    /// Parses `bandwidth=100Mbit/s..10Gbit/s`, `latency=1us..1ms`, `ratio=1..25` or `processors=2..64`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let example =
            "write bandwidth=100Mbit/s..10Gbit/s, latency=1us..1ms, ratio=1..25 or processors=2..64";
        let refuse = |what: &str| Err(format!("\"{text}\" {what}: {example}"));
        let Some((name, range)) = text.split_once('=') else { return refuse("names no range") };
        let Some(&(parameter, _)) = Parameter::ALL.iter().find(|(_, known)| *known == name.trim()) else {
            return refuse("names an unknown parameter");
        };
        let Some((from, to)) = range.split_once("..") else {
            return refuse("is not a range from one value to another");
        };
        if parameter.is_of_the_network() && [from, to].iter().any(|end| units::number(end).is_ok()) {
            return refuse("has a value without a unit");
        }
        let number = |end: &str| match parameter {
            Parameter::Bandwidth => units::parse(end, Dimension::Bandwidth),
            Parameter::Latency => units::parse(end, Dimension::Time),
            _ => units::number(end),
        };
        let (from, to) = (number(from)?, number(to)?);
        if !(from > 0.0 && to > from && to.is_finite()) {
            return refuse("is not a range from a positive number to a larger one");
        }
        let whole = from.fract() == 0.0 && to.fract() == 0.0 && to <= MOST_PROCESSORS;
        if parameter == Parameter::Processors && !whole {
            return refuse("needs whole numbers up to 10,000");
        }
        Ok(Self { parameter, from, to, points: None, margin: 0.0 })
    }
}

#[cfg(test)]
mod tests;

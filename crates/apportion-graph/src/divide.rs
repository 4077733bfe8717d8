//! Who gets which vertices: shares by speed, parts by the partitioners, places on the network, and their forecasts.

use crate::coordinates::Coordinates;
use crate::graph::Graph;
use crate::partition::{GraphMethod, partition};
use crate::parts::count_parts;
use apportion::error::{Error, Result};
use apportion::model::{Machine, Model};
use apportion::plan::arrange::{CostFunction, Edges, Pivots, arrange_borders};
use apportion::plan::shares::{Limits, fpm_within, ideal_seconds};
use apportion::plan::{Baselines, FastestAlone, Forecast, Plan};
use apportion::platform::Platform;
use apportion::schedule::GraphSchedule;
use apportion::select::{imbalance, relative_times};
use apportion::simulate::{CostModel, forecast};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of caps and limits that partitioners are given where they exceed them otherwise.
const ROOM: f64 = 0.97;

/// Imbalance up to which the volume decides where there are no seconds.
const EVEN: f64 = 1.03;

/// Bytes of a vertex's value in a message.
const VALUE: u64 = 8;

/// What a caller may ask of the division of a graph.
#[derive(Debug, Clone, Default)]
pub struct GraphOptions {
    /// The methods that are compared; if empty, those that this machine has.
    pub methods: Vec<GraphMethod>,
    /// Limits of the weight of each part, by rank; none if empty.
    pub limits: Vec<Limits>,
}

/// A division of a graph.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GraphChoice {
    /// What each processor gets, and when it is done.
    pub plan: Plan,
    /// The processor of each vertex.
    pub parts: Vec<u32>,
    /// The method, if it is one of ours.
    pub method: Option<GraphMethod>,
    /// Whether the network decided which processors are neighbours.
    pub mapped: bool,
}

impl GraphChoice {
    /// A division of which `parts` has the rank of each vertex, with its costs, by `method`.
    ///
    /// # Errors
    /// Those of speeds that cannot be compared.
    pub fn new(graph: &Graph, parts: Vec<u32>, machine: &Machine, method: String) -> Result<Self> {
        let counted = count_parts(graph, &parts, machine.processors());
        let weights: Vec<u64> = counted.weights.iter().map(|weight| *weight as u64).collect();
        let mut uneven = imbalance(&machine.models, &weights)?;
        for constraint in 1..graph.constraints() {
            let mut weights = vec![0; machine.processors()];
            for (vertex, part) in parts.iter().enumerate() {
                weights[*part as usize] += u64::from(graph.weight(vertex, constraint));
            }
            uneven = uneven.max(imbalance(&machine.models, &weights)?);
        }
        if !uneven.is_finite() {
            let able = |rank: &usize| machine.models[*rank].seconds(weights[*rank].max(1) as f64).is_finite();
            let who = (0..weights.len()).find(|rank| weights[*rank] > 0 && !able(rank)).unwrap_or(0);
            let name = &machine.platform.processors[who].name;
            let what = format!("{name} has vertices, but no speed for so many");
            return Err(Error::infeasible(what, "give them to others, or give it a speed"));
        }
        let mut plan = Plan::of_graph(method, machine.platform.names(), counted, uneven);
        plan.relative_times = relative_times(&machine.models, &weights)?;
        if !machine.only_ratios() {
            plan.forecast = Some(step_forecast(&plan, machine)?);
            plan = plan.with_time_bound(Some(ideal_seconds(&machine.models, weights.iter().sum())?));
        }
        Ok(Self { plan, parts, method: None, mapped: false })
    }

    /// The division of a method.
    fn of(
        graph: &Graph,
        parts: Vec<u32>,
        machine: &Machine,
        method: GraphMethod,
        mapped: bool,
    ) -> Result<Self> {
        let name = if mapped { format!("{}, placed", method.name()) } else { method.name().into() };
        Ok(Self { method: Some(method), mapped, ..Self::new(graph, parts, machine, name)? })
    }

    /// By what choices are ranked: seconds, or where there are none, evenness and volume.
    fn rank(&self) -> (f64, u64) {
        let volume = self.plan.metrics.volume.unwrap_or(0);
        match &self.plan.forecast {
            Some(forecast) => (alike(forecast.seconds), volume),
            None => (self.plan.metrics.imbalance.max(EVEN), volume),
        }
    }
}

/// A time of which others within about a percent have the same: what moves less is then the better one.
pub(crate) fn alike(seconds: f64) -> f64 {
    (seconds.max(f64::MIN_POSITIVE).ln() / 0.01).round()
}

/// The times of a step in which each vertex needs the values of its neighbours.
///
/// # Errors
/// Those of the simulation.
fn step_forecast(plan: &Plan, machine: &Machine) -> Result<Forecast> {
    let sizes: Vec<u64> = plan.costs.iter().flatten().map(|weight| *weight as u64).collect();
    let (rates, network) = (machine.rates(&sizes), &machine.platform.network);
    let schedule = GraphSchedule::of_plan(plan, 1)?;
    forecast(&schedule, CostModel { rates: &rates, network, element: VALUE })
}

/// Divisions of a graph for a machine, the best first. Where the network tells processors apart, those of one cluster
/// divide a part of their own, and processors of equal shares take the places where least crosses slow links; each is
/// forecast beside the division that does not know the network.
///
/// # Errors
/// Caps that cannot be met; a method that this machine lacks; what partitioners cannot do.
pub fn divide_graph(
    graph: &Graph,
    coordinates: Option<&Coordinates>,
    machine: &Machine,
    options: &GraphOptions,
) -> Result<Vec<GraphChoice>> {
    let methods = match &options.methods[..] {
        // One processor gets all by any method.
        [] if machine.processors() == 1 => vec![GraphMethod::Contiguous],
        [] => GraphMethod::available(graph, coordinates),
        given => given.to_vec(),
    };
    let mut choices: Vec<GraphChoice> = Vec::new();
    let (mut refused, mut full) = (None, None);
    // Partitioners may exceed a target: where a limit does not bear that, they are given less.
    for room in [1.0, ROOM] {
        let targets = match targets(graph, machine, &options.limits, room) {
            Err(_) if room < 1.0 => break,
            targets => targets?,
        };
        let divider = Divider { graph, coordinates, machine, targets: &targets };
        for method in &methods {
            match divider.by(*method) {
                Ok(found) => choices.extend(found),
                // A method that was asked for by the name of several may be missing.
                Err(error) => refused = Some(error),
            }
        }
        full =
            choices.iter().find_map(|choice| over_limit(choice, &machine.models, &options.limits)).or(full);
        choices.retain(|choice| over_limit(choice, &machine.models, &options.limits).is_none());
        if !choices.is_empty() {
            break;
        }
    }
    if let (Some(name), true) = (full, choices.is_empty()) {
        let what = format!("the part of {name} exceeds what its memory or a limit allows");
        return Err(Error::infeasible(what, "give it more room, or use more processors"));
    }
    choices.sort_by(|a, b| {
        let (a, b) = (a.rank(), b.rank());
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    match (choices.is_empty(), refused) {
        (true, Some(error)) => Err(error),
        (true, None) => {
            let what =
                "vertices have several weights, which METIS alone divides by, and it is not on this machine";
            Err(Error::input("`method`", what, "install METIS 5 (Debian: apt install libmetis5)"))
        }
        _ => {
            let baselines = Divider { graph, coordinates, machine, targets: &[] }.baselines(&choices)?;
            choices.iter_mut().for_each(|choice| choice.plan.baselines.clone_from(&baselines));
            Ok(choices)
        }
    }
}

/// The fraction of all weight of each processor, so that all end together with this part of their caps and limits.
fn targets(graph: &Graph, machine: &Machine, limits: &[Limits], room: f64) -> Result<Vec<f64>> {
    let total = graph.total(0);
    let model = |model: &Model| match model.max_size() {
        Some(most) => model.clone().with_cap(room * most),
        None => Ok(model.clone()),
    };
    let models: Vec<Model> = machine.models.iter().map(model).collect::<Result<_>>()?;
    let limit = |limit: &Limits| Limits {
        least: (limit.least as f64 / room).ceil() as u64,
        most: limit.most.map(|most| (most as f64 * room) as u64),
        ..*limit
    };
    let shares = fpm_within(&models, total, &limits.iter().map(limit).collect::<Vec<_>>())?;
    Ok(shares.into_iter().map(|share| share as f64 / total as f64).collect())
}

/// The processor whose part exceeds its cap or a limit, if there is one.
fn over_limit(choice: &GraphChoice, models: &[Model], limits: &[Limits]) -> Option<String> {
    let over = |(rank, weight): (usize, &f64)| {
        let capped = models[rank].max_size().is_some_and(|most| *weight > most);
        let limited = limits.get(rank).is_some_and(|limit| {
            *weight < limit.least as f64 || limit.most.is_some_and(|most| *weight > most as f64)
        });
        (capped || limited).then(|| choice.plan.processors[rank].clone())
    };
    choice.plan.costs.as_ref()?.iter().enumerate().find_map(over)
}

/// A graph and a machine.
struct Divider<'a> {
    graph: &'a Graph,
    coordinates: Option<&'a Coordinates>,
    machine: &'a Machine,
    targets: &'a [f64],
}

impl Divider<'_> {
    /// The divisions of a method, without and with regard to the network.
    fn by(&self, method: GraphMethod) -> Result<Vec<GraphChoice>> {
        let platform = &self.machine.platform;
        let choice = |parts, mapped| GraphChoice::of(self.graph, parts, self.machine, method, mapped);
        let mut found = vec![choice(partition(self.graph, self.coordinates, method, self.targets)?, false)?];
        // An order of vertices has no clusters.
        let ordered = matches!(method, GraphMethod::Contiguous | GraphMethod::Coordinates);
        if !ordered && has_clusters(platform) {
            let ranks: Vec<usize> = (0..platform.len()).collect();
            let mut parts = vec![0; self.graph.vertices()];
            let vertices: Vec<u32> = (0..self.graph.vertices() as u32).collect();
            self.by_clusters(method, &ranks, 0, &vertices, &mut parts)?;
            found.push(choice(parts, true)?);
        }
        if !platform.network.is_free() || has_clusters(platform) {
            let again: Vec<Vec<u32>> =
                found.iter().map(|one| self.arranged(one)).collect::<Result<Vec<_>>>()?.concat();
            for parts in again {
                if found.iter().all(|one| one.parts != parts) {
                    found.push(choice(parts, true)?);
                }
            }
        }
        Ok(found)
    }

    /// Divides vertices among clusters, level by level, and among the processors of each.
    fn by_clusters(
        &self,
        method: GraphMethod,
        ranks: &[usize],
        depth: usize,
        vertices: &[u32],
        parts: &mut [u32],
    ) -> Result<()> {
        let path = |rank: usize| self.machine.platform.processors[rank].cluster.split('/').nth(depth);
        let mut groups: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        ranks.iter().for_each(|rank| groups.entry(path(*rank)).or_default().push(*rank));
        let deeper = ranks.iter().any(|rank| path(*rank).is_some());
        let groups: Vec<Vec<usize>> = match deeper {
            true if groups.len() == 1 => return self.by_clusters(method, ranks, depth + 1, vertices, parts),
            true => groups.into_values().collect(),
            false => ranks.iter().map(|rank| vec![*rank]).collect(),
        };
        let of_group = |group: &Vec<usize>| group.iter().map(|rank| self.targets[*rank]).sum();
        let targets: Vec<f64> = groups.iter().map(of_group).collect();
        let graph = self.graph.induced(vertices);
        let found = partition(&graph, None, method, &targets)?;
        for (number, group) in groups.iter().enumerate() {
            let of_part = vertices.iter().zip(&found).filter(|(_, part)| **part as usize == number);
            let own: Vec<u32> = of_part.map(|(vertex, _)| *vertex).collect();
            match group[..] {
                [rank] => own.iter().for_each(|vertex| parts[*vertex as usize] = rank as u32),
                _ if own.is_empty() => {}
                _ => self.by_clusters(method, group, depth + 1, &own, parts)?,
            }
        }
        Ok(())
    }

    /// The same parts on other processors of equal shares, by each objective that finds other places.
    fn arranged(&self, choice: &GraphChoice) -> Result<Vec<Vec<u32>>> {
        let apportion::plan::Division::Graph { borders, .. } = &choice.plan.division else {
            return Ok(Vec::new());
        };
        let platform = &self.machine.platform;
        let alike = |a: usize, b: usize| (self.targets[a] - self.targets[b]).abs() <= 1e-9;
        let mut all = Vec::new();
        let objectives = [
            CostFunction::Hops(Pivots::OneToAll),
            CostFunction::Bandwidth(Pivots::OneToAll),
            CostFunction::Asymmetric(Edges::Open),
        ];
        for objective in objectives {
            let hops = matches!(objective, CostFunction::Hops(_));
            if !hops && platform.network.is_free() {
                continue;
            }
            let places = arrange_borders(borders, &choice.plan.processors, platform, objective, alike)?;
            if places.iter().enumerate().any(|(part, place)| part != *place) {
                all.push(choice.parts.iter().map(|part| places[*part as usize] as u32).collect());
            }
        }
        Ok(all)
    }

    /// The fastest processor alone, and parts of equal weight by the method that was chosen.
    fn baselines(&self, choices: &[GraphChoice]) -> Result<Option<Baselines>> {
        let (machine, total) = (self.machine, self.graph.total(0) as f64);
        if machine.processors() < 2 || machine.only_ratios() {
            return Ok(None);
        }
        let able = machine.models.iter().filter(|model| model.seconds(total).is_finite());
        let fastest = able.min_by(|a, b| a.seconds(total).total_cmp(&b.seconds(total)));
        let alone = |model: &Model| FastestAlone {
            processor: model.processor().to_owned(),
            seconds: model.seconds(total),
        };
        // Equal parts may be more than a processor holds.
        let even = choices.first().and_then(|best| self.even(best.method?).ok()?.plan.forecast);
        let even_split = even.map(|forecast| forecast.seconds).filter(|seconds| seconds.is_finite());
        Ok(Some(Baselines { fastest_alone: fastest.map(alone), even_split }))
    }

    /// Parts of equal weight.
    fn even(&self, method: GraphMethod) -> Result<GraphChoice> {
        let equal = vec![1.0; self.machine.processors()];
        let parts = partition(self.graph, self.coordinates, method, &equal)?;
        let name = format!("{}, equal parts", method.name());
        GraphChoice::new(self.graph, parts, self.machine, name)
    }
}

/// Parts of equal weight, as people divide who type no ratios.
///
/// # Errors
/// As [`divide_graph`].
pub fn divide_evenly(
    graph: &Graph,
    coordinates: Option<&Coordinates>,
    machine: &Machine,
    method: GraphMethod,
) -> Result<GraphChoice> {
    Divider { graph, coordinates, machine, targets: &[] }.even(method)
}

/// Whether some processors are in one cluster, and others in another one.
fn has_clusters(platform: &Platform) -> bool {
    let mut clusters: Vec<&str> = platform.processors.iter().map(|one| &one.cluster[..]).collect();
    clusters.sort_unstable();
    clusters.dedup();
    clusters.len() > 1 && clusters.len() < platform.len()
}

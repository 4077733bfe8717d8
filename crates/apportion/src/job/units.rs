//! Divisions of independent units of work.

use super::Context;
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::model::{Interpolation, Machine, Model};
use crate::plan::shares::{Chain, Fall, LeftOver, Limits, RobustShares, SecondKind, Tradeoff};
use crate::plan::{Baselines, Forecast, Plan, shares};

use crate::select::{forecast_units, imbalance, relative_times};
use crate::units;

/// What shares are chosen for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnitObjective {
    /// Shortest time of the slowest processor.
    #[default]
    Time,
    /// Least energy: the last row of the time-energy front.
    Energy,
    /// The whole time-energy front; the plan is its fastest row.
    Both,
    /// Shortest sum of the times of contiguous parts: what one user of a pipeline waits for.
    Latency,
}

/// What a caller may ask of a division; what is left open is decided.
#[derive(Debug, Clone, Default)]
pub struct UnitOptions {
    /// `even`, `proportional`, `largest-remainder`, `fpm` or `exact`; by default `fpm`, or `exact` where times fall
    /// with size.
    pub method: Option<String>,
    /// Who gets the units that are left over after rounding down, with `proportional`.
    pub left_over: Option<LeftOver>,
    /// Limits of the shares by rank; none if empty.
    pub limits: Vec<Limits>,
    /// Minimises the worst case over the models' bands.
    pub robust: bool,
    /// Divides among clusters first, then within each.
    pub hierarchical: bool,
    /// What is least.
    pub objective: UnitObjective,
    /// With `exact`, interpolates between the measured sizes.
    pub any_size: bool,
    /// Cost of each unit, as speeds and speed functions count size; if empty, 1 each.
    pub costs: Vec<f64>,
    /// A second kind of work on each unit.
    pub second: Option<SecondKind>,
    /// Bytes of each unit, which the memory of the processors caps; empty if they do not count.
    pub unit_memory: Vec<f64>,
    /// Lets the processors change places in the row of units.
    pub any_order: bool,
}

impl UnitOptions {
    /// True if it matters which units a processor has: parts are then contiguous.
    fn is_contiguous(&self) -> bool {
        let lists = !self.costs.is_empty() || !self.unit_memory.is_empty();
        lists || self.any_order || self.objective == UnitObjective::Latency
    }
}

/// A limit of shares as a caller states it.
#[derive(Debug, Clone, Default)]
pub enum ShareLimit {
    /// None.
    #[default]
    None,
    /// The same number for all processors.
    All(u64),
    /// A number for each processor, by rank; `None`: no limit.
    Each(Vec<Option<u64>>),
}

impl ShareLimit {
    /// The limit of each of `processors`, by rank.
    fn by_rank(&self, place: &str, processors: usize) -> Result<Vec<Option<u64>>> {
        match self {
            Self::None => Ok(vec![None; processors]),
            Self::All(number) => Ok(vec![Some(*number); processors]),
            Self::Each(numbers) if numbers.len() == processors => Ok(numbers.clone()),
            Self::Each(numbers) => Err(Error::input(
                place,
                format!("{} numbers for {processors} processors", numbers.len()),
                "pass one number for all, or one for each processor",
            )),
        }
    }
}

/// The limits of shares by rank; none if nothing is limited.
///
/// # Errors
/// A list that has not one number for each of `processors`.
pub fn limits_by_rank(
    min: &ShareLimit,
    max: &ShareLimit,
    multiple_of: &ShareLimit,
    processors: usize,
) -> Result<Vec<Limits>> {
    if [min, max, multiple_of].iter().all(|limit| matches!(limit, ShareLimit::None)) {
        return Ok(Vec::new());
    }
    let least = min.by_rank("`min`", processors)?;
    let most = max.by_rank("`max`", processors)?;
    let multiple = multiple_of.by_rank("`multiple_of`", processors)?;
    let limit = |rank: usize| Limits {
        least: least[rank].unwrap_or(0),
        most: most[rank],
        multiple_of: multiple[rank].unwrap_or(1),
    };
    Ok((0..processors).map(limit).collect())
}

/// Shares, and the additional results that were requested.
#[derive(Debug, Clone)]
pub struct Division {
    /// The shares as a plan.
    pub plan: Plan,
    /// What is known besides.
    pub detail: DivisionDetail,
}

/// Results of a division besides the plan.
#[derive(Debug, Clone)]
pub enum DivisionDetail {
    /// None.
    None,
    /// The reason why `exact` was taken in place of `fpm`.
    Exact(String),
    /// Shares for the worst case.
    Robust {
        /// The shares and their times.
        found: RobustShares,
        /// The largest loss against shares made for the speeds that occur.
        regret: f64,
        /// That of `fpm`.
        plain_regret: f64,
    },
    /// The time-energy front.
    Front(Vec<Tradeoff>),
    /// The units of each cluster.
    Clusters(Vec<ClusterUnits>),
}

/// Divides `n` units among the processors of a machine.
///
/// # Errors
/// Options that exclude each other (exit code 2); limits or memory caps that cannot be met (exit code 1).
pub fn divide_units(
    n: u64,
    options: &UnitOptions,
    machine: &Machine,
    context: Context<'_>,
) -> Result<Division> {
    if n > 1 << 53 {
        return Err(Error::input("`units`", format!("{n} is more than 2^53"), "use a smaller number"));
    }
    if options.is_contiguous() {
        return Ok(Division { plan: divide_in_row(n, options, machine)?, detail: DivisionDetail::None });
    }
    let UnitOptions { limits, left_over, .. } = options;
    let models = &machine.models;
    let front = options.objective != UnitObjective::Time;
    let open = options.method.is_none() && left_over.is_none();
    let default = match (front, left_over) {
        (true, _) => "exact",
        (false, Some(_)) => "proportional",
        (false, None) => "fpm",
    };
    let method = options.method.as_deref().unwrap_or(default);
    check_method(method, options)?;
    if options.robust && machine.only_ratios() {
        return Err(Error::input(
            "`robust`",
            "ratios of speeds have no bands",
            "pass `models` with bands (low and high of points), or remove it",
        ));
    }
    let (name, shares, detail) = match method {
        "even" => (method, shares::even_among(models, n), DivisionDetail::None),
        "proportional" if left_over.is_some() => {
            (method, divide_proportionally(models, n, left_over.unwrap_or_default())?, DivisionDetail::None)
        }
        "proportional" | "largest-remainder" => {
            (method, shares::largest_remainder_within(models, n, limits)?, DivisionDetail::None)
        }
        "fpm" if options.robust => {
            let found = shares::robust(models, n, limits)?;
            let regret = shares::regret(models, &found.shares, limits)?;
            let plain = shares::fpm_within(models, n, limits)?;
            let plain_regret = shares::regret(models, &plain, limits)?;
            ("robust", found.shares.clone(), DivisionDetail::Robust { found, regret, plain_regret })
        }
        "fpm" if options.hierarchical => {
            let (shares, clusters) = divide_by_clusters(machine, n)?;
            ("hierarchical", shares, DivisionDetail::Clusters(clusters))
        }
        "fpm" if open => {
            let divided = shares::least_time(models, n, limits)?;
            let reason = divided.fall.map(|fall| falling(models, fall));
            if let (Some(why), Some(reason)) = (&divided.unproven, &reason) {
                context.note(format!(
                    "apportion: warning: {reason}: the shares of fpm may not be the best, and exact cannot tell: \
                     {why}"
                ));
            }
            match (divided.exact, reason) {
                (true, Some(reason)) => ("exact", divided.shares, DivisionDetail::Exact(reason)),
                _ => (method, divided.shares, DivisionDetail::None),
            }
        }
        "fpm" => {
            if let Some(fall) = Fall::first_of(models, n) {
                let reason = falling(models, fall);
                context.note(format!(
                    "apportion: warning: {reason}, which fpm ignores (`method = exact` with `any_size` considers it)"
                ));
            }
            (method, shares::fpm_within(models, n, limits)?, DivisionDetail::None)
        }
        "exact" if front => {
            let mut progress = |done, total| {
                context.monitor.expect(total);
                context.monitor.advance(done);
            };
            let dividing = || shares::pareto_watched(models, n, limits, &mut progress);
            let front = context.watch("dividing", dividing)?;
            let chosen =
                if options.objective == UnitObjective::Energy { front.last() } else { front.first() };
            let shares = chosen.expect("a front has a fastest row").shares.clone();
            ("pareto", shares, DivisionDetail::Front(front))
        }
        "exact" if options.any_size || models.iter().any(is_constant) => {
            (method, shares::exact_interpolated(models, n, limits)?, DivisionDetail::None)
        }
        "exact" => (method, shares::exact_within(models, n, limits)?, DivisionDetail::None),
        other => {
            return Err(Error::input(
                "`method`",
                format!("unknown method \"{other}\" for `units`"),
                "use even, proportional, largest-remainder, fpm or exact",
            ));
        }
    };
    Ok(Division { plan: plan_of_units(name, shares, machine)?, detail })
}

/// Divides units whose costs, memory or places count into contiguous parts.
fn divide_in_row(n: u64, options: &UnitOptions, machine: &Machine) -> Result<Plan> {
    check_row(n, options, machine)?;
    let UnitOptions { limits, costs, second, unit_memory, any_order, .. } = options;
    let (models, names) = (&machine.models, machine.platform.names());
    let mut chain = match costs.is_empty() {
        true => Chain::new(&vec![1.0; n as usize])?,
        false => Chain::new(costs)?,
    };
    if let Some(kind) = second {
        chain = chain.with_second(kind)?;
    }
    let mut memory = Vec::new();
    if !unit_memory.is_empty() {
        chain = chain.with_memory(unit_memory)?;
        memory = machine.platform.processors.iter().map(|processor| processor.memory).collect();
    }
    let latency = options.objective == UnitObjective::Latency;
    let parts = match (latency, any_order) {
        (true, any_order) => chain.least_latency(models, limits, &memory, *any_order),
        (false, true) => chain.least_makespan_any_order(models, limits, &memory),
        (false, false) => chain.least_makespan(models, limits, &memory),
    }?;
    let seconds = chain.seconds(models, limits, &memory, &parts)?;
    let (longest, ideal) = (seconds.iter().copied().fold(0.0, f64::max), chain.ideal_seconds(models)?);
    let plan = Plan::of_units("contiguous", names, parts.shares, (longest / ideal).max(1.0));
    let plan = Plan {
        order: any_order.then(|| parts.order.into_iter().map(Rank).collect()),
        costs: (!costs.is_empty()).then_some(parts.costs),
        baselines: Baselines::of_chain(&chain, models, limits, &memory)?,
        ..plan
    };
    if machine.only_ratios() {
        let relative_times = Some(seconds.into_iter().map(|time| time / ideal).collect());
        return Ok(Plan { relative_times, ..plan });
    }
    let forecast = Forecast {
        seconds: if latency { seconds.iter().sum() } else { longest },
        communicate: vec![0.0; seconds.len()],
        compute: seconds,
    };
    Ok(Plan { forecast: Some(forecast), ..plan }
        .with_time_bound(Some(ideal).filter(|_| !latency && second.is_none())))
}

/// Rejects lists that do not fit the units, and options that contiguous parts would ignore.
fn check_row(n: u64, options: &UnitOptions, machine: &Machine) -> Result<()> {
    let UnitOptions { method, left_over, robust, hierarchical, any_size, .. } = options;
    for (place, numbers) in [("`costs`", &options.costs), ("`unit_memory`", &options.unit_memory)] {
        if !numbers.is_empty() && numbers.len() as u64 != n {
            let what = format!("there are {} numbers for {n} units", numbers.len());
            return Err(Error::input(place, what, "give one number for each unit"));
        }
    }
    if n == 0 || n > Chain::MOST_UNITS {
        let what = format!("{n} units cannot be put in a row");
        return Err(Error::input("`units`", what, format!("give 1 to {} units", Chain::MOST_UNITS)));
    }
    let energy = matches!(options.objective, UnitObjective::Energy | UnitObjective::Both);
    let given = [
        ("`method`", method.is_some()),
        ("`left_over`", left_over.is_some()),
        ("`robust`", *robust),
        ("`hierarchical`", *hierarchical),
        ("`any_size`", *any_size),
        ("`objective` of energy", energy),
    ];
    if let Some((place, _)) = given.iter().find(|(_, given)| *given) {
        let what = "cannot be used with `costs`, `unit_memory`, `any_order` or `objective = latency`";
        return Err(Error::input(*place, what, "parts are contiguous there: remove one of them"));
    }
    let has_memory = machine.platform.processors.iter().any(|processor| processor.memory.is_some());
    if !options.unit_memory.is_empty() && !has_memory {
        let remedy = "add memory to the platform's processors, or cap their units by `max`";
        return Err(Error::input("`unit_memory`", "no processor of the platform has a memory", remedy));
    }
    Ok(())
}

/// Where and how a model breaks the assumption of `fpm`, in words.
fn falling(models: &[Model], fall: Fall) -> String {
    let size = |x: f64| units::show_count(x as u128);
    format!(
        "time of {} falls between {} and {} units",
        models[fall.rank].processor(),
        size(fall.from),
        size(fall.to)
    )
}

fn is_constant(model: &Model) -> bool {
    model.interpolation() == Interpolation::Constant
}

/// The single-number model: each processor's speed at an equal share.
fn divide_proportionally(models: &[Model], n: u64, left_over: LeftOver) -> Result<Vec<u64>> {
    let size = (n as f64 / models.len() as f64).max(1.0);
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(size)).collect();
    if speeds.iter().all(|s| *s == 0.0) {
        return Err(Error::infeasible("no processor can hold an equal share", "use `method = fpm`"));
    }
    Ok(left_over.shares(n, &speeds))
}

fn plan_of_units(method: &str, shares: Vec<u64>, machine: &Machine) -> Result<Plan> {
    let models = &machine.models;
    let over = |(model, &share): (&Model, &u64)| model.seconds(share as f64).is_infinite();
    if let Some(i) = models.iter().zip(&shares).position(over) {
        let cap = models[i].max_size().map_or(0, |cap| cap as u64);
        return Err(Error::infeasible(
            format!(
                "{method} gives \"{}\" {} units, {} more than its max_size, {cap}",
                models[i].processor(),
                shares[i],
                shares[i] - cap
            ),
            "use `method = fpm`, which respects the caps",
        ));
    }
    let (forecast, relative_times) = (forecast_units(models, &shares), relative_times(models, &shares)?);
    let imbalance = imbalance(models, &shares)?;
    let bound = shares::ideal_seconds(models, shares.iter().sum())?;
    let plan = Plan::of_units(method, machine.platform.names(), shares, imbalance);
    let baselines = Baselines::of_units(models, plan.shares.iter().sum());
    let plan = Plan { forecast, relative_times, baselines, ..plan };
    Ok(plan.with_time_bound(Some(bound).filter(|bound| *bound > 0.0)))
}

/// Rejects options that the method would ignore.
fn check_method(method: &str, options: &UnitOptions) -> Result<()> {
    let UnitOptions { limits, left_over, robust, hierarchical, any_size, .. } = options;
    let front = options.objective != UnitObjective::Time;
    let refuse = |place: &str, methods: &str| {
        let what = format!("cannot be used with `method = {method}`");
        Err(Error::input(
            format!("`{place}`"),
            what,
            format!("use `method = {methods}`, or remove `{place}`"),
        ))
    };
    let plain = matches!(method, "even" | "proportional" | "largest-remainder");
    match method {
        "exact" if *robust => return refuse("robust", "fpm"),
        "exact" if *hierarchical => return refuse("hierarchical", "fpm"),
        "exact" => {}
        "fpm" if front => return refuse("objective", "exact"),
        _ if plain && front => return refuse("objective", "exact"),
        _ if plain && *robust => return refuse("robust", "fpm"),
        _ if plain && *hierarchical => return refuse("hierarchical", "fpm"),
        "even" if !limits.is_empty() => {
            return Err(Error::input(
                "`min`, `max` or `multiple_of`",
                format!("cannot be used with `method = {method}`"),
                "use `method = fpm`, exact, proportional or largest-remainder, or remove them",
            ));
        }
        _ if *any_size => return refuse("any_size", "exact"),
        _ => {}
    }
    if left_over.is_some() && method != "proportional" {
        let what = format!("cannot be used with `method = {method}`");
        return Err(Error::input("`left_over`", what, "use `method = proportional`, or remove it"));
    }
    if left_over.is_some() && !limits.is_empty() {
        let what = "cannot be used with `min`, `max` or `multiple_of`";
        return Err(Error::input("`left_over`", what, "remove it, or the limits"));
    }
    Ok(())
}

/// The units of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterUnits {
    /// The names of the clusters from the outermost to this one, with slashes.
    pub path: String,
    /// Number of processors.
    pub processors: usize,
    /// Units of all its processors.
    pub units: u64,
    /// Units that they have in a division without clusters.
    pub flat_units: u64,
    /// Seconds of the slowest processor, or its time over the ideal one where only ratios of speeds are known.
    pub longest: f64,
}

/// Shares by the platform's clusters, level by level, and each cluster's units beside those of the flat
/// division.
fn divide_by_clusters(machine: &Machine, n: u64) -> Result<(Vec<u64>, Vec<ClusterUnits>)> {
    let models = &machine.models;
    let paths: Vec<Vec<&str>> =
        machine.platform.processors.iter().map(|p| p.cluster.split('/').collect()).collect();
    let flat = shares::fpm(models, n)?;
    let mut found = vec![0; models.len()];
    let mut clusters = Vec::new();
    // Clusters still to be divided: their ranks, units and depth; the last is next.
    let mut places = vec![((0..models.len()).collect::<Vec<usize>>(), n, 0)];
    while let Some((ranks, units, depth)) = places.pop() {
        let groups = group_by_cluster(&paths, &ranks, depth);
        let members: Vec<Model> = ranks.iter().map(|&r| models[r].clone()).collect();
        let local: Vec<Vec<usize>> = groups
            .iter()
            .map(|g| {
                g.iter().map(|r| ranks.iter().position(|x| x == r).expect("a group's own rank")).collect()
            })
            .collect();
        for (&rank, share) in ranks.iter().zip(shares::hierarchical(&local, &members, units)?) {
            found[rank] = share;
        }
        for group in groups.into_iter().rev() {
            if paths[group[0]].len() > depth && group.len() < models.len() {
                let units = group.iter().map(|&r| found[r]).sum();
                places.push((group, units, depth + 1));
            }
        }
    }
    let times = match relative_times(models, &found)? {
        Some(times) => times,
        None => models.iter().zip(&found).map(|(m, &x)| m.seconds(x as f64)).collect(),
    };
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for path in &paths {
        for depth in 1..=path.len() {
            let place = path[..depth].to_vec();
            if seen.contains(&place) {
                continue;
            }
            let inside: Vec<usize> = (0..paths.len()).filter(|&r| paths[r].starts_with(&place)).collect();
            clusters.push(ClusterUnits {
                path: place.join("/"),
                processors: inside.len(),
                units: inside.iter().map(|&r| found[r]).sum(),
                flat_units: inside.iter().map(|&r| flat[r]).sum(),
                longest: inside.iter().map(|&r| times[r]).fold(0.0, f64::max),
            });
            seen.push(place);
        }
    }
    Ok((found, clusters))
}

/// Ranks that are in the same cluster at this depth, in the order of first appearance.
fn group_by_cluster(paths: &[Vec<&str>], ranks: &[usize], depth: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &rank in ranks {
        match groups.iter_mut().find(|g| paths[g[0]].get(depth) == paths[rank].get(depth)) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_for_all_or_for_each() {
        let each = ShareLimit::Each(vec![None, Some(4)]);
        let limits = limits_by_rank(&ShareLimit::All(1), &each, &ShareLimit::None, 2).unwrap();
        assert_eq!(limits[0], Limits { least: 1, most: None, multiple_of: 1 });
        assert_eq!(limits[1], Limits { least: 1, most: Some(4), multiple_of: 1 });
        assert!(
            limits_by_rank(&ShareLimit::None, &ShareLimit::None, &ShareLimit::None, 2).unwrap().is_empty()
        );
        let error = limits_by_rank(&ShareLimit::None, &each, &ShareLimit::None, 3).unwrap_err();
        assert!(error.to_string().starts_with("`max`: 2 numbers for 3 processors"), "{error}");
    }
}

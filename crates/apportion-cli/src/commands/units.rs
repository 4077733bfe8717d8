//! `apportion partition --units`: shares of independent units.

use crate::prepare::processors::Processors;
use apportion::error::{Error, Result};
use apportion::model::{Interpolation, Model};
use apportion::plan::shares::{Limits, Tradeoff};
use apportion::plan::{Forecast, Plan, shares};
use apportion::report::{pairs, table};
use apportion::select::imbalance;
use apportion::units;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// What shares are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Objective {
    /// The least longest time.
    Time,
    /// The least energy: the last row of the front of time against energy.
    Energy,
    /// The whole front; the plan is its fastest row.
    Both,
}

/// What only units can be asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Units")]
pub struct UnitsArgs {
    /// The least worst case over the models' bands, with its regret.
    #[arg(long, conflicts_with_all = ["shape", "hierarchical", "objective"])]
    pub robust: bool,
    /// What to choose for; energy and both need points that carry energy, and take measured sizes.
    #[arg(long, value_enum, conflicts_with = "shape")]
    pub objective: Option<Objective>,
    /// The least share: one number for all, or one per processor.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with = "shape")]
    pub least: Option<Vec<u64>>,
    /// The largest share: one number for all, or one per processor.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with = "shape")]
    pub most: Option<Vec<u64>>,
    /// Shares are multiples of this many units: one number for all, or one per processor.
    #[arg(long, value_name = "B,B,…", value_delimiter = ',', conflicts_with = "shape")]
    pub multiple_of: Option<Vec<u64>>,
    /// With exact: any whole share, interpolated between the measured sizes; always so where nothing was measured.
    #[arg(long, conflicts_with = "shape")]
    pub any_size: bool,
    /// Divide among the platform's clusters first, then inside each; printed beside the flat answer.
    #[arg(long, conflicts_with_all = ["shape", "objective", "least", "most", "multiple_of"])]
    pub hierarchical: bool,
}

/// Shares with whatever else was asked.
pub struct Division {
    pub plan: Plan,
    extra: Extra,
}

enum Extra {
    None,
    Robust { found: shares::Robust, regret: f64, plain_regret: f64 },
    Front(Vec<Tradeoff>),
    Clusters(Vec<Cluster>),
}

/// One place of the hierarchy.
struct Cluster {
    path: String,
    processors: usize,
    units: u64,
    flat_units: u64,
    seconds: f64,
}

/// Divides `n` units as the flags say.
///
/// # Errors
/// Flags that do not go together (exit code 2); limits or caps that cannot hold (exit code 1).
pub fn divide(n: u64, method: Option<&str>, args: &UnitsArgs, processors: &Processors) -> Result<Division> {
    if n > 1 << 53 {
        return Err(Error::input("--units", format!("{n} is more than 2^53"), "give a smaller number"));
    }
    let models = &processors.models;
    let limits = args.limits(models.len())?;
    let front = matches!(args.objective, Some(Objective::Energy | Objective::Both));
    let method = method.unwrap_or(if front { "exact" } else { "fpm" });
    check(method, args, front, !limits.is_empty())?;
    let (name, shares, extra) = match method {
        "even" => (method, shares::even(n, models.len()), Extra::None),
        "proportional" => (method, proportional(models, n)?, Extra::None),
        "fpm" if args.robust => {
            let found = shares::robust(models, n, &limits)?;
            let regret = shares::regret(models, &found.shares, &limits)?;
            let plain = shares::fpm_within(models, n, &limits)?;
            let plain_regret = shares::regret(models, &plain, &limits)?;
            ("robust", found.shares.clone(), Extra::Robust { found, regret, plain_regret })
        }
        "fpm" if args.hierarchical => {
            let (shares, clusters) = by_clusters(processors, n)?;
            ("hierarchical", shares, Extra::Clusters(clusters))
        }
        "fpm" => (method, shares::fpm_within(models, n, &limits)?, Extra::None),
        "exact" if front => {
            let front = shares::pareto(models, n, &limits)?;
            let chosen = if args.objective == Some(Objective::Energy) { front.last() } else { front.first() };
            let shares = chosen.expect("a front has a fastest row").shares.clone();
            ("pareto", shares, Extra::Front(front))
        }
        "exact" if args.any_size || processors.sampled || models.iter().any(is_constant) => {
            (method, shares::exact_interpolated(models, n, &limits)?, Extra::None)
        }
        "exact" => (method, shares::exact_within(models, n, &limits)?, Extra::None),
        other => {
            return Err(Error::input(
                "--method",
                format!("unknown method \"{other}\" for --units"),
                "use even, proportional, fpm or exact",
            ));
        }
    };
    Ok(Division { plan: plan(name, shares, processors)?, extra })
}

fn is_constant(model: &Model) -> bool {
    model.interpolation() == Interpolation::Constant
}

/// Refuses flags that the method would have to ignore.
fn check(method: &str, args: &UnitsArgs, front: bool, limited: bool) -> Result<()> {
    let refuse = |flag: &str, methods: &str| {
        let what = format!("does not go with --method {method}");
        Err(Error::input(flag, what, format!("use --method {methods}, or leave {flag} out")))
    };
    match method {
        "exact" if args.robust => refuse("--robust", "fpm"),
        "exact" if args.hierarchical => refuse("--hierarchical", "fpm"),
        "exact" => Ok(()),
        "fpm" if front => refuse("--objective", "exact"),
        "even" | "proportional" if front => refuse("--objective", "exact"),
        "even" | "proportional" if args.robust => refuse("--robust", "fpm"),
        "even" | "proportional" if args.hierarchical => refuse("--hierarchical", "fpm"),
        "even" | "proportional" if limited => refuse("--least, --most or --multiple-of", "fpm or exact"),
        _ if args.any_size => refuse("--any-size", "exact"),
        _ => Ok(()),
    }
}

impl UnitsArgs {
    /// Limits by rank; none where no flag asks for any.
    fn limits(&self, p: usize) -> Result<Vec<Limits>> {
        if self.least.is_none() && self.most.is_none() && self.multiple_of.is_none() {
            return Ok(Vec::new());
        }
        let least = spread("--least", self.least.as_deref(), p)?;
        let most = spread("--most", self.most.as_deref(), p)?;
        let multiple = spread("--multiple-of", self.multiple_of.as_deref(), p)?;
        let at = |i: usize| Limits {
            least: least.map_or(0, |x| x.at(i)),
            most: most.map(|x| x.at(i)),
            multiple_of: multiple.map_or(1, |x| x.at(i)),
        };
        Ok((0..p).map(at).collect())
    }
}

/// One number for all, or one each.
#[derive(Clone, Copy)]
struct Spread<'a>(&'a [u64]);

impl Spread<'_> {
    fn at(self, rank: usize) -> u64 {
        self.0[if self.0.len() == 1 { 0 } else { rank }]
    }
}

fn spread<'a>(flag: &str, numbers: Option<&'a [u64]>, p: usize) -> Result<Option<Spread<'a>>> {
    match numbers {
        Some(list) if list.len() != 1 && list.len() != p => Err(Error::input(
            flag,
            format!("{} numbers for {p} processors", list.len()),
            "give one for all, or one per processor",
        )),
        list => Ok(list.map(Spread)),
    }
}

/// The single-number model: each processor's speed at an equal share.
fn proportional(models: &[Model], n: u64) -> Result<Vec<u64>> {
    let size = (n as f64 / models.len() as f64).max(1.0);
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(size)).collect();
    if speeds.iter().all(|s| *s == 0.0) {
        return Err(Error::infeasible("no processor can hold an equal share", "use --method fpm"));
    }
    Ok(shares::proportional(n, &speeds))
}

fn plan(method: &str, shares: Vec<u64>, processors: &Processors) -> Result<Plan> {
    let models = &processors.models;
    let compute: Vec<f64> = models.iter().zip(&shares).map(|(m, &s)| m.seconds(s as f64)).collect();
    let seconds = compute.iter().copied().fold(0.0, f64::max);
    if let Some(i) = compute.iter().position(|t| t.is_infinite()) {
        let cap = models[i].max_size().map_or(0, |cap| cap as u64);
        return Err(Error::infeasible(
            format!(
                "{method} gives \"{}\" {} units but its max_size is {cap}: {} are missing",
                models[i].processor(),
                shares[i],
                shares[i] - cap
            ),
            "use --method fpm, which respects the caps",
        ));
    }
    let imbalance = imbalance(models, &shares)?;
    let forecast = Forecast { seconds, communicate: vec![0.0; compute.len()], compute };
    let plan = Plan::of_units(method, processors.platform.names(), shares, imbalance);
    Ok(Plan { forecast: Some(forecast), ..plan })
}

/// Shares by the platform's clusters, level by level, and each place's units beside those of the flat division.
fn by_clusters(processors: &Processors, n: u64) -> Result<(Vec<u64>, Vec<Cluster>)> {
    let models = &processors.models;
    let paths: Vec<Vec<&str>> =
        processors.platform.processors.iter().map(|p| p.cluster.split('/').collect()).collect();
    let flat = shares::fpm(models, n)?;
    let mut found = vec![0; models.len()];
    let mut clusters = Vec::new();
    // Places still to be divided: their ranks, units and depth; the last is next.
    let mut places = vec![((0..models.len()).collect::<Vec<usize>>(), n, 0)];
    while let Some((ranks, units, depth)) = places.pop() {
        let groups = groups(&paths, &ranks, depth);
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
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for path in &paths {
        for depth in 1..=path.len() {
            let place = path[..depth].to_vec();
            if seen.contains(&place) {
                continue;
            }
            let inside: Vec<usize> = (0..paths.len()).filter(|&r| paths[r].starts_with(&place)).collect();
            clusters.push(Cluster {
                path: place.join("/"),
                processors: inside.len(),
                units: inside.iter().map(|&r| found[r]).sum(),
                flat_units: inside.iter().map(|&r| flat[r]).sum(),
                seconds: inside.iter().map(|&r| models[r].seconds(found[r] as f64)).fold(0.0, f64::max),
            });
            seen.push(place);
        }
    }
    Ok((found, clusters))
}

/// Ranks that are in the same place at this depth, in the order of first appearance.
fn groups(paths: &[Vec<&str>], ranks: &[usize], depth: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &rank in ranks {
        match groups.iter_mut().find(|g| paths[g[0]].get(depth) == paths[rank].get(depth)) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

impl Division {
    /// Adds what was asked beside the plan to its JSON.
    pub fn extend(&self, value: &mut Value) {
        match &self.extra {
            Extra::None => {}
            Extra::Robust { found, regret, plain_regret } => {
                value["robust"] = json!({
                    "worst_seconds": found.worst_seconds, "expected_seconds": found.expected_seconds,
                    "regret": regret, "plain_worst_seconds": found.plain_worst_seconds,
                    "plain_expected_seconds": found.plain_expected_seconds, "plain_regret": plain_regret,
                });
            }
            Extra::Front(front) => {
                value["front"] = front
                    .iter()
                    .map(|t| json!({"seconds": t.seconds, "joules": t.joules, "shares": t.shares}))
                    .collect();
            }
            Extra::Clusters(clusters) => {
                value["clusters"] = clusters
                    .iter()
                    .map(|c| {
                        json!({"cluster": c.path, "processors": c.processors, "units": c.units,
                               "flat_units": c.flat_units, "seconds": c.seconds})
                    })
                    .collect();
            }
        }
    }

    /// The same for people: what stands below the plan.
    pub fn text(&self) -> String {
        match &self.extra {
            Extra::None => String::new(),
            Extra::Robust { found, regret, plain_regret } => {
                let row = |name: &str, expected, worst, regret: &f64| {
                    vec![
                        name.to_owned(),
                        units::show_seconds(expected),
                        units::show_seconds(worst),
                        format!("{regret:.4}"),
                    ]
                };
                let rows = [
                    row("robust", found.expected_seconds, found.worst_seconds, regret),
                    row("fpm", found.plain_expected_seconds, found.plain_worst_seconds, plain_regret),
                ];
                format!("\n{}", table(&["shares", "expected", "worst case", "regret"], rows.into_iter()))
            }
            Extra::Front(front) => {
                let rows = front.iter().map(|t| {
                    let shares: Vec<String> = t.shares.iter().map(u64::to_string).collect();
                    vec![units::show_seconds(t.seconds), format!("{:.6} J", t.joules), shares.join(" ")]
                });
                format!("\n{}", table(&["longest time", "energy", "shares"], rows))
            }
            Extra::Clusters(clusters) => {
                let rows = clusters.iter().map(|c| {
                    vec![
                        c.path.clone(),
                        c.processors.to_string(),
                        units::show_count(u128::from(c.units)),
                        units::show_count(u128::from(c.flat_units)),
                        units::show_seconds(c.seconds),
                    ]
                });
                let header = ["cluster", "processors", "units", "flat", "ends after"];
                let furthest = clusters.iter().map(|c| c.units.abs_diff(c.flat_units)).max().unwrap_or(0);
                let facts = [("furthest from flat", format!("{furthest} units"))];
                format!("\n{}\n{}", table(&header, rows), pairs(&facts))
            }
        }
    }
}

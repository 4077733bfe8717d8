//! Which block columns each processor of a factorisation owns.
//!
//! Sources: Boulet, Dongarra, Rastello, Robert, Vivien, Algorithmic issues on heterogeneous computing platforms,
//! Parallel Processing Letters 9(2), 1999; Beaumont, Boudet, Petitet, Rastello, Robert, A proposal for a heterogeneous
//! cluster ScaLAPACK, IEEE Transactions on Computers 50(10), 2001; Lastovetsky and Reddy, Data distribution for dense
//! factorization on computers with memory heterogeneity, Parallel Computing 33(12), 2007.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::model::Machine;
use crate::plan::{Baselines, BlockColumns, Factors, FastestAlone, Plan};
use crate::schedule::{Application, FactorSchedule};
use crate::simulate::{self, CostModel};

/// How block columns are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorLayout {
    /// From the last to the first, each to the processor that finishes its part of what remains first: whatever
    /// remains is balanced at any time.
    Greedy,
    /// The same, but towards the end only among those whose messages cost less time than their work saves.
    Dropout,
    /// In turn, as if all processors were equal.
    Cyclic,
    /// All to the fastest processor.
    Alone,
}

impl FactorLayout {
    /// Every layout, the simplest last.
    pub const ALL: [Self; 4] = [Self::Greedy, Self::Dropout, Self::Cyclic, Self::Alone];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Dropout => "dropout",
            Self::Cyclic => "cyclic",
            Self::Alone => "alone",
        }
    }
}

impl std::str::FromStr for FactorLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::input(
                "`method`",
                format!("\"{text}\" divides no factorisation"),
                format!("choose auto, {names}"),
            )
        })
    }
}

/// The factorisation of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factorisation {
    /// Into which factors.
    pub factors: Factors,
    /// Rows and columns.
    pub n: u64,
    /// Columns of a block.
    pub block: u64,
}

/// The plans of a factorisation by each layout, or by one of them, the fastest by forecast first; in the order of
/// [`FactorLayout::ALL`] where speeds are ratios. `weights` are speeds that decide the layouts instead of the
/// machine's; `element` is the bytes of an element.
///
/// # Errors
/// Every processor has speed 0, or those of a forecast.
pub fn plan_factorisation(
    problem: Factorisation,
    machine: &Machine,
    weights: Option<&Machine>,
    layout: Option<FactorLayout>,
    element: u64,
) -> Result<Vec<Plan>> {
    let decides = weights.unwrap_or(machine);
    let all = FactorLayout::ALL.map(|layout| columns(problem, layout, decides, element));
    let mut plans: Vec<(BlockColumns, Plan)> = Vec::new();
    let mut times: Vec<(FactorLayout, f64, BlockColumns)> = Vec::new();
    for (kind, columns) in FactorLayout::ALL.into_iter().zip(all) {
        let columns = columns?;
        let plan = appraise(problem, machine, kind.name(), &columns, element)?;
        if let Some(forecast) = &plan.forecast {
            times.push((kind, forecast.seconds, columns.clone()));
        }
        let wanted = layout.is_none_or(|layout| layout == kind);
        if wanted && plans.iter().all(|(other, _)| *other != columns) {
            plans.push((columns, plan));
        }
    }
    let baselines = (machine.processors() > 1 && !times.is_empty()).then(|| {
        let of = |wanted| times.iter().find(|(kind, ..)| *kind == wanted).expect("every layout is appraised");
        let (_, alone, columns) = of(FactorLayout::Alone);
        let processor = machine.platform.processors[columns.owner(0).0].name.clone();
        let even = of(FactorLayout::Cyclic).1;
        let even = Some(even).filter(|seconds| seconds.is_finite());
        Baselines { fastest_alone: Some(FastestAlone { processor, seconds: *alone }), even_split: even }
    });
    let mut plans: Vec<Plan> =
        plans.into_iter().map(|(_, plan)| Plan { baselines: baselines.clone(), ..plan }).collect();
    let seconds = |plan: &Plan| plan.forecast.as_ref().map_or(f64::INFINITY, |forecast| forecast.seconds);
    plans.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    Ok(plans)
}

/// The plan of these block columns with its forecast, its imbalance and the seconds that no plan can beat. Without
/// a forecast where speeds are ratios, or a processor with a part has speed 0.
///
/// # Errors
/// Those of a forecast.
pub fn appraise(
    problem: Factorisation,
    machine: &Machine,
    method: &str,
    columns: &BlockColumns,
    element: u64,
) -> Result<Plan> {
    let schedule = FactorSchedule::new(problem.factors, columns.clone());
    let sizes = schedule.sizes();
    let speed = |rank: usize| machine.models[rank].speed(sizes[rank] as f64);
    let work: Vec<f64> = (0..machine.processors()).map(|rank| schedule.work(Rank(rank))).collect();
    let seconds = |rank: usize| if work[rank] == 0.0 { 0.0 } else { work[rank] / speed(rank) };
    let longest = (0..work.len()).map(seconds).fold(0.0, f64::max);
    let ideal = work.iter().sum::<f64>() / (0..work.len()).map(speed).sum::<f64>();
    // JSON has no infinity: a processor of speed 0 never ends.
    let imbalance = if longest.is_finite() { (longest / ideal).max(1.0) } else { f64::NAN };
    let names = machine.platform.names();
    let mut plan = Plan::of_factorisation(method, names, problem.factors, columns, imbalance);
    if machine.only_ratios() {
        plan.relative_times =
            longest.is_finite().then(|| (0..work.len()).map(|i| seconds(i) / ideal).collect());
        return Ok(plan);
    }
    if !longest.is_finite() {
        return Ok(plan);
    }
    let rates = machine.rates(&sizes);
    let costs = CostModel { rates: &rates, network: &machine.platform.network, element };
    plan.forecast = Some(simulate::forecast(&schedule, costs)?);
    let bound = least_seconds(problem, machine);
    Ok(plan.with_time_bound(Some(bound)))
}

/// Seconds that no division by block columns can beat: all products at the highest speed of each processor, or the
/// panels one after the other on the fastest.
fn least_seconds(problem: Factorisation, machine: &Machine) -> f64 {
    let fastest = |model: &crate::model::Model| {
        let speeds = model.points().iter().map(|point| point.speed());
        speeds.fold(model.speed(1.0), f64::max) * machine.block as f64
    };
    let rates = machine.models.iter().map(fastest);
    let all = problem.factors.multiply_adds(problem.n) / rates.clone().sum::<f64>();
    let panels =
        problem.factors.multiply_adds(problem.n.min(problem.block)) / rates.fold(f64::MIN_POSITIVE, f64::max);
    all.max(panels)
}

/// The owners by a layout.
///
/// # Errors
/// Every processor has speed 0.
fn columns(
    problem: Factorisation,
    layout: FactorLayout,
    machine: &Machine,
    element: u64,
) -> Result<BlockColumns> {
    let Factorisation { n, block, .. } = problem;
    let (p, count) = (machine.processors(), n.div_ceil(block) as usize);
    // About what each would update at a time if all were equal.
    let size = (n as f64 * n as f64 / p as f64).max(1.0);
    let speed = |rank: usize| machine.models[rank].speed(size);
    let mut fastest_first: Vec<usize> = (0..p).filter(|rank| speed(*rank) > 0.0).collect();
    fastest_first.sort_by(|a, b| speed(*b).total_cmp(&speed(*a)));
    let Some(&fastest) = fastest_first.first() else {
        return Err(Error::infeasible("no processor has a speed above 0", "give one a speed"));
    };
    let owners = match layout {
        FactorLayout::Alone => vec![Rank(fastest); count],
        FactorLayout::Cyclic => (0..count).map(|column| Rank(column % p)).collect(),
        FactorLayout::Greedy => give_out(problem, machine, |_| &fastest_first),
        FactorLayout::Dropout => give_out(problem, machine, |rows| {
            &fastest_first[..worthwhile(problem, machine, &fastest_first, rows, element)]
        }),
    };
    Ok(BlockColumns::new(n, block, p, owners))
}

/// Gives out block columns from the last to the first, each to the processor among `takers` of the remaining rows
/// that would need the least time for its part of what remains. O(N p).
fn give_out<'a>(problem: Factorisation, machine: &Machine, takers: impl Fn(u64) -> &'a [usize]) -> Vec<Rank> {
    let Factorisation { factors, n, block } = problem;
    let count = n.div_ceil(block);
    let (mut owners, mut taken) = (vec![Rank(0); count as usize], vec![0.0; machine.processors()]);
    for column in (0..count).rev() {
        let (start, end) = (column * block, ((column + 1) * block).min(n));
        let (rows, width) = ((n - start) as f64, (end - start) as f64);
        // Columns of LU are as high as what remains; those of symmetric matrices begin at the diagonal.
        let (weight, height) = if factors == Factors::Lu { (width, rows) } else { (width * rows, 1.0) };
        let seconds = |rank: &usize| machine.models[*rank].seconds((taken[*rank] + weight) * height);
        let takers = takers(n - start);
        let taker = takers.iter().copied().min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let taker = taker.expect("there is at least one taker");
        taken[taker] += weight;
        owners[column as usize] = Rank(taker);
    }
    owners
}

/// How many of the processors, the fastest first, factor a remainder of so many rows in the least time, counting a
/// message with a panel to each of the others.
fn worthwhile(
    problem: Factorisation,
    machine: &Machine,
    fastest_first: &[usize],
    rows: u64,
    element: u64,
) -> usize {
    let Factorisation { factors, block, .. } = problem;
    let share = if factors == Factors::Lu { 1.0 } else { 0.5 };
    let (rows, block) = (rows as f64, block as f64);
    let (mut sum, mut messages, mut best) = (0.0, 0.0, (f64::INFINITY, 1));
    for (number, &rank) in fastest_first.iter().enumerate() {
        let model = &machine.models[rank];
        sum += model.speed((rows * rows * share / (number + 1) as f64).max(1.0)) * machine.block as f64;
        if number > 0 {
            let link = machine.platform.network.link(Rank(fastest_first[0]), Rank(rank));
            messages += link.latency + rows * block * element as f64 / link.vertical;
        }
        let seconds = rows * rows * block * share / sum + messages;
        if seconds < best.0 {
            best = (seconds, number + 1);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkUnit;
    use crate::platform::{Network, Platform, Speed};

    fn machine(gigaflops: &[f64], network: Network) -> Machine {
        let mut platform = Platform::from_speeds(gigaflops).unwrap();
        for (processor, speed) in platform.processors.iter_mut().zip(gigaflops) {
            processor.speed = Some(Speed::Flops(speed * 1e9));
        }
        platform.network = network;
        Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap()
    }

    const LU: Factorisation = Factorisation { factors: Factors::Lu, n: 2400, block: 100 };

    /// Every suffix is as balanced as whole columns allow: no other owner of its first column makes it shorter.
    #[test]
    fn every_suffix_is_balanced() {
        let speeds = [5.0, 3.0, 1.0];
        let machine = machine(&speeds, Network::free());
        for factors in [Factors::Lu, Factors::Cholesky, Factors::Ldlt] {
            let columns =
                columns(Factorisation { factors, ..LU }, FactorLayout::Greedy, &machine, 8).unwrap();
            for first in 0..columns.count() {
                let mut taken = [0.0; 3];
                for column in first..columns.count() {
                    let rows = if factors == Factors::Lu { 1.0 } else { (2400 - 100 * column) as f64 };
                    taken[columns.owner(column).0] += rows;
                }
                let longest = |taken: &[f64; 3]| (0..3).map(|i| taken[i] / speeds[i]).fold(0.0, f64::max);
                let total: f64 = taken.iter().sum();
                let most = if factors == Factors::Lu { 1.0 } else { (2400 - 100 * first) as f64 };
                // Graham's bound for uniform machines, with a unit of slack for each.
                assert!(longest(&taken) <= total / 9.0 + most / 1.0, "{factors} from {first}: {taken:?}");
            }
        }
    }

    /// The whole numbers of columns by hand: of the last nine, five, three and one.
    #[test]
    fn columns_are_in_proportion_to_speeds() {
        let machine = machine(&[5.0, 3.0, 1.0], Network::free());
        let columns = columns(LU, FactorLayout::Greedy, &machine, 8).unwrap();
        let last = &columns.owners()[columns.count() - 9..];
        let count = |rank| last.iter().filter(|owner| owner.0 == rank).count();
        assert_eq!([count(0), count(1), count(2)], [5, 3, 1]);
    }

    /// With dear messages, the slow processor has no column at the end by `dropout`; the forecast decides whether
    /// that pays.
    #[test]
    fn slow_processors_leave_early_where_messages_are_dear() {
        let machine = machine(&[8.0, 2.0], Network::uniform(2e-2, 1e9));
        let of = |layout| plan_factorisation(LU, &machine, None, layout, 8).unwrap().remove(0);
        let (greedy, dropout) = (of(Some(FactorLayout::Greedy)), of(Some(FactorLayout::Dropout)));
        let last = |plan: &Plan| *plan.block_columns().unwrap().1.own(Rank(1)).last().unwrap();
        assert!(last(&dropout) < last(&greedy));
        let seconds = |plan: &Plan| plan.forecast.as_ref().unwrap().seconds;
        let best = of(None);
        assert!(seconds(&best) <= seconds(&greedy).min(seconds(&dropout)));
        let baselines = best.baselines.unwrap();
        assert_eq!(baselines.fastest_alone.unwrap().processor, "p0");
    }

    #[test]
    fn the_fastest_forecast_is_first_and_above_the_bound() {
        for factors in [Factors::Lu, Factors::Cholesky, Factors::Ldlt] {
            let problem = Factorisation { factors, ..LU };
            let machine = machine(&[9.0, 1.0, 4.0], Network::uniform(1e-5, 1e9));
            let plans = plan_factorisation(problem, &machine, None, None, 8).unwrap();
            let seconds: Vec<f64> =
                plans.iter().map(|plan| plan.forecast.as_ref().unwrap().seconds).collect();
            assert!(seconds.is_sorted() && plans[0].method != "cyclic", "{seconds:?}");
            assert!(plans.iter().all(|plan| plan.metrics.forecast_over_bound.unwrap() >= 1.0));
        }
    }

    #[test]
    fn ratios_have_no_seconds_and_idle_processors_no_columns() {
        let machine = Machine::from_speeds(&[3.0, 0.0, 1.0]).unwrap();
        let plans = plan_factorisation(LU, &machine, None, None, 8).unwrap();
        assert_eq!((plans[0].method.as_str(), plans[0].shares[1]), ("greedy", 0));
        assert!(plans[0].forecast.is_none() && plans[0].relative_times.is_some());
        assert!("columns".parse::<FactorLayout>().is_err());
        assert_eq!("cyclic".parse::<FactorLayout>().unwrap(), FactorLayout::Cyclic);
    }
}

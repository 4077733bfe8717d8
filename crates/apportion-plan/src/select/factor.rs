//! Which block columns or tiles each processor of a factorisation owns.
//!
//! Sources: Boulet, Dongarra, Rastello, Robert, Vivien, Algorithmic issues on heterogeneous computing platforms,
//! Parallel Processing Letters 9(2), 1999; Beaumont, Boudet, Petitet, Rastello, Robert, A proposal for a heterogeneous
//! cluster ScaLAPACK, IEEE Transactions on Computers 50(10), 2001; Lastovetsky and Reddy, Data distribution for dense
//! factorization on computers with memory heterogeneity, Parallel Computing 33(12), 2007.

mod balance;
mod tiles;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::model::{Interpolation, Machine, Model, Point};
use crate::plan::{Baselines, Factors, FastestAlone, Plan, TileMap};
use crate::schedule::{FactorSchedule, FactorTimes, Totals, panel_amount};
use crate::simulate::{self, CostModel};
use std::borrow::Cow;
use std::sync::Arc;

/// How block columns or tiles are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorLayout {
    /// From the last to the first, each to the processor that finishes its part of what remains first: whatever
    /// remains is balanced at any time.
    Greedy,
    /// Tiles in a grid: block columns to groups of processors, and their block rows within a group, both by speed.
    Grid,
    /// In rounds, in each of which a processor gets as many as it is faster than the slowest one, rounded: a
    /// ratio as it is typed by hand, for HPL by `-f`.
    Ratio,
    /// In turn, as if all processors were equal.
    Cyclic,
    /// All to the fastest processor.
    Alone,
}

impl FactorLayout {
    /// Every layout, the simplest last.
    pub const ALL: [Self; 5] = [Self::Greedy, Self::Grid, Self::Ratio, Self::Cyclic, Self::Alone];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Grid => "grid",
            Self::Ratio => "ratio",
            Self::Cyclic => "cyclic",
            Self::Alone => "alone",
        }
    }

    /// True if it gives out whole block columns.
    pub fn has_columns(self) -> bool {
        self != Self::Grid
    }
}

impl std::fmt::Display for FactorLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

/// Columns of a block where there is no forecast: large enough that updates run at the speed of large products, small
/// enough that panels are a small part of the work.
const BLOCK: u64 = 128;
/// Fewer block columns for each processor are not balanced: blocks are smaller then.
const FEWEST: u64 = 4;
/// Narrower blocks are slow.
const NARROWEST: u64 = 16;
/// Columns of a block among which the forecast chooses.
const BLOCKS: [u64; 7] = [32, 48, 64, 96, 128, 192, 256];
/// Who needs more times as long as the fastest processor leaves panels to others, if that pays.
const SLOW: f64 = 1.5;
/// With more block columns a forecast takes long.
const MOST: u64 = 1024;

/// The blocks that are compared for n columns on so many processors; the first is for speeds without a forecast.
pub fn candidate_blocks(n: u64, processors: usize) -> Vec<u64> {
    let first = (n / (FEWEST * processors as u64)).clamp(NARROWEST, BLOCK).min(n);
    let fits = |block: &u64| *block != first && *block <= n && n.div_ceil(*block) <= MOST;
    std::iter::once(first).chain(BLOCKS.into_iter().filter(fits)).collect()
}

/// What is decided of a factorisation, and by what.
#[derive(Debug, Clone, Copy)]
pub struct FactorOptions<'a> {
    /// The only layout; by default every one.
    pub layout: Option<FactorLayout>,
    /// Only layouts of whole block columns.
    pub columns_only: bool,
    /// Columns of a block that are compared, at least one; the first is taken where there is no forecast.
    pub blocks: &'a [u64],
    /// Speeds that decide the layouts instead of the machine's.
    pub weights: Option<&'a Machine>,
    /// What panels and updates take, if it was measured.
    pub times: Option<&'a Arc<FactorTimes>>,
    /// Bytes of an element.
    pub element: u64,
}

impl<'a> FactorOptions<'a> {
    /// Every layout, with these blocks and elements of so many bytes, by the machine's speeds.
    pub fn new(blocks: &'a [u64], element: u64) -> Self {
        Self { layout: None, columns_only: false, blocks, weights: None, times: None, element }
    }
}

/// The plans of a factorisation of n rows, one for each layout with its fastest block, the fastest by forecast first;
/// in the order of [`FactorLayout::ALL`] where speeds are ratios.
///
/// # Errors
/// Every processor has speed 0; a layout by tiles where only block columns are wanted, or where there is none (exit
/// code 2); those of a forecast.
///
/// # Panics
/// If there are no blocks.
pub fn plan_factorisation(
    factors: Factors,
    n: u64,
    machine: &Machine,
    options: FactorOptions<'_>,
) -> Result<Vec<Plan>> {
    let FactorOptions { layout, columns_only, blocks, .. } = options;
    let blocks = if machine.only_ratios() { &blocks[..1] } else { blocks };
    assert!(!blocks.is_empty(), "a block is at least one column");
    let columns_only = columns_only || has_devices(machine);
    if let Some(layout) = layout.filter(|layout| columns_only && !layout.has_columns()) {
        let what = match has_devices(machine) {
            true => "but devices have block columns",
            false => "but a system is solved by block columns",
        };
        let what = format!("{layout} divides the matrix into tiles, {what}");
        return Err(Error::input("`method`", what, "choose auto, or a layout of block columns"));
    }
    let seconds = |plan: &Plan| plan.forecast.as_ref().map_or(f64::INFINITY, |forecast| forecast.seconds);
    let is_better = |plan: &Plan, other: &Plan| match machine.only_ratios() {
        true => plan.metrics.imbalance < other.metrics.imbalance,
        false => seconds(plan) < seconds(other),
    };
    let mut best: Vec<(FactorLayout, Plan)> = Vec::new();
    let options = FactorOptions { blocks, ..options };
    for kind in FactorLayout::ALL.into_iter().filter(|kind| kind.has_columns() || !columns_only) {
        let mut fastest: Option<Plan> = None;
        for plan in plans_by_layout(factors, n, machine, kind, &options)? {
            if fastest.as_ref().is_none_or(|other| is_better(&plan, other)) {
                fastest = Some(plan);
            }
        }
        best.extend(fastest.map(|fastest| (kind, fastest)));
    }
    if let Some(layout) = layout.filter(|layout| best.iter().all(|(kind, _)| kind != layout)) {
        let what = format!("{layout} divides no matrix of {n} rows among these processors");
        return Err(Error::input("`method`", what, "choose auto, larger blocks, or another layout"));
    }
    let of = |wanted| &best.iter().find(|(kind, _)| *kind == wanted).expect("every layout is appraised").1;
    let alone = of(FactorLayout::Alone);
    let baselines = (machine.processors() > 1 && alone.forecast.is_some()).then(|| {
        let fastest = alone.shares.iter().position(|share| *share > 0).expect("somebody has the matrix");
        let processor = machine.platform.processors[fastest].name.clone();
        let even = Some(seconds(of(FactorLayout::Cyclic))).filter(|seconds| seconds.is_finite());
        Baselines {
            fastest_alone: Some(FastestAlone { processor, seconds: seconds(alone) }),
            even_split: even,
        }
    });
    let mut plans: Vec<Plan> = Vec::new();
    for (kind, plan) in best {
        let wanted = layout.is_none_or(|layout| layout == kind);
        if wanted && plans.iter().all(|other| other.division != plan.division) {
            plans.push(Plan { baselines: baselines.clone(), ..plan });
        }
    }
    let cost = |plan: &Plan| (seconds(plan), plan.metrics.volume);
    plans.sort_by(|a, b| {
        let ((a, few), (b, others)) = (cost(a), cost(b));
        a.total_cmp(&b).then(if a.is_finite() { few.cmp(&others) } else { std::cmp::Ordering::Equal })
    });
    Ok(plans)
}

/// The plans by one layout among which a forecast chooses: with blocks of every width, and where the layout is by speed
/// also for speeds that forecasts have corrected, unless `options` name another layout.
///
/// # Errors
/// As [`lay_out`], and those of a forecast.
pub fn plans_by_layout(
    factors: Factors,
    n: u64,
    machine: &Machine,
    kind: FactorLayout,
    options: &FactorOptions<'_>,
) -> Result<Vec<Plan>> {
    let FactorOptions { layout, blocks, weights, times, element, .. } = *options;
    let corrects = kind == FactorLayout::Greedy && layout.is_none_or(|layout| layout == kind);
    let mut all = Vec::new();
    for &block in blocks {
        let problem = Factorisation { factors, n, block };
        let mut plans = Vec::new();
        for blocks in lay_out(problem, kind, weights.unwrap_or(machine), element)? {
            plans.push(appraise(problem, machine, times, kind.name(), &blocks, element)?);
        }
        if corrects {
            plans.extend(balance::corrected(problem, machine, kind, options, &plans)?);
        }
        all.extend(plans);
    }
    Ok(all)
}

/// The plan of these tiles with its forecast, its imbalance and the seconds that no plan can beat. Without
/// a forecast where speeds are ratios, or a processor with a part has speed 0.
///
/// # Errors
/// Those of a forecast.
pub fn appraise(
    problem: Factorisation,
    machine: &Machine,
    times: Option<&Arc<FactorTimes>>,
    method: &str,
    tiles: &TileMap,
    element: u64,
) -> Result<Plan> {
    let schedule = FactorSchedule::new(problem.factors, tiles.clone());
    let sizes = schedule.sizes();
    let speed = |rank: usize| machine.models[rank].speed(sizes[rank] as f64);
    let Totals { work, received } = schedule.totals();
    let seconds = |rank: usize| if work[rank] == 0.0 { 0.0 } else { work[rank] / speed(rank) };
    let longest = (0..work.len()).map(seconds).fold(0.0, f64::max);
    let ideal = work.iter().sum::<f64>() / (0..work.len()).map(speed).sum::<f64>();
    // JSON has no infinity: a processor of speed 0 never ends.
    let imbalance = if longest.is_finite() { (longest / ideal).max(1.0) } else { f64::NAN };
    let names = machine.platform.names();
    let volume = received.iter().sum();
    let mut plan = Plan::of_factorisation(method, names, &schedule, volume, imbalance);
    if machine.only_ratios() {
        plan.relative_times =
            longest.is_finite().then(|| (0..work.len()).map(|i| seconds(i) / ideal).collect());
        return Ok(plan);
    }
    if !longest.is_finite() {
        return Ok(plan);
    }
    let schedule = schedule.with_times(times.cloned());
    let rates = schedule.rates(machine);
    let costs = CostModel { rates: &rates, network: &schedule.network(machine), element };
    plan.forecast = Some(simulate::forecast(&schedule, costs)?);
    let bound = least_seconds(problem, machine, times.map(Arc::as_ref));
    Ok(plan.with_time_bound(Some(bound)))
}

/// Seconds that no division by block columns can beat: all products at the highest speed of each processor, or the
/// panels one after the other on the fastest.
fn least_seconds(problem: Factorisation, machine: &Machine, times: Option<&FactorTimes>) -> f64 {
    let fastest = |(rank, model): (usize, &Model)| {
        let speeds = model.points().iter().map(|point| point.speed());
        let products = speeds.fold(model.speed(1.0), f64::max) * machine.block as f64;
        times.map_or(products, |times| products.max(times.fastest(Rank(rank))))
    };
    let rates = machine.models.iter().enumerate().map(fastest);
    let all = problem.factors.multiply_adds(problem.n) / rates.clone().sum::<f64>();
    let panels =
        problem.factors.multiply_adds(problem.n.min(problem.block)) / rates.fold(f64::MIN_POSITIVE, f64::max);
    all.max(panels)
}

/// The divisions by a layout, for the speeds of a machine and elements of `element` bytes, among which a forecast chooses:
/// of block columns one, and where it is by speed the same whose slow owners leave their panels to fast processors; of
/// tiles several, or none for a single processor or too many tiles. Devices have block columns only.
///
/// # Errors
/// Every processor has speed 0; the processors are devices whose memories do not hold the matrix.
fn lay_out(
    problem: Factorisation,
    layout: FactorLayout,
    machine: &Machine,
    element: u64,
) -> Result<Vec<TileMap>> {
    if layout == FactorLayout::Grid {
        return if has_devices(machine) { Ok(Vec::new()) } else { tiles::grids(problem, machine) };
    }
    let columns = lay_out_columns(problem, layout, machine, element, &[])?;
    if layout == FactorLayout::Alone && has_devices(machine) {
        return Ok(each_alone(problem, machine, element, columns));
    }
    let by_speed = layout == FactorLayout::Greedy && !machine.only_ratios();
    let fast = if by_speed { fast_processors(problem, machine) } else { Vec::new() };
    if fast.is_empty() {
        return Ok(vec![columns]);
    }
    let others = lay_out_columns(problem, layout, machine, element, &fast)?;
    Ok(vec![columns, taken_over(others, &fast)?])
}

/// The processors who need at most [`SLOW`] times the least time for a panel; none if these are all, or if nobody is
/// known to be fast: panels of a device are factored by the core that drives it.
fn fast_processors(problem: Factorisation, machine: &Machine) -> Vec<usize> {
    let devices = &machine.platform.network.devices;
    let size = typical_size(problem, machine);
    let speed = |rank: usize| match devices.contains_key(&Rank(rank)) {
        true => 0.0,
        false => machine.models[rank].speed(size),
    };
    let most = (0..machine.processors()).map(speed).fold(0.0, f64::max);
    let fast: Vec<usize> =
        (0..machine.processors()).filter(|rank| speed(*rank) > 0.0 && speed(*rank) * SLOW >= most).collect();
    if fast.len() == machine.processors() { Vec::new() } else { fast }
}

/// All block columns on one processor: that which updates fastest, as given, the fastest one without a link, and each
/// device that has room for all.
fn each_alone(problem: Factorisation, machine: &Machine, element: u64, fastest: TileMap) -> Vec<TileMap> {
    let devices = &machine.platform.network.devices;
    let (size, count) = (typical_size(problem, machine), fastest.count());
    let speed = |rank: usize| machine.models[rank].speed(size);
    let cores = (0..machine.processors()).filter(|rank| !devices.contains_key(&Rank(*rank)));
    let core = cores.max_by(|a, b| speed(*a).total_cmp(&speed(*b))).map(Rank);
    let alone = |rank: Rank| {
        let owners = vec![rank; count];
        TileMap::columns(problem.n, problem.block, machine.processors(), owners)
    };
    let serves = |rank: &Rank| speed(rank.0) > 0.0 && room(problem, machine, *rank, element) >= count;
    let mut all = vec![fastest];
    for columns in core.into_iter().chain(devices.keys().copied()).filter(serves).map(alone) {
        if !all.contains(&columns) {
            all.push(columns);
        }
    }
    all
}

/// The same block columns, of which those of the others are factored by fast processors, in turn.
fn taken_over(columns: TileMap, fast: &[usize]) -> Result<TileMap> {
    let mut panels = vec![0; fast.len()];
    let factorers = (0..columns.count()).map(|column| {
        let owner = columns.panel_owner(column);
        let least = || (0..fast.len()).min_by_key(|place| panels[*place]).expect("somebody is fast");
        let place = fast.iter().position(|rank| *rank == owner.0).unwrap_or_else(least);
        panels[place] += 1;
        Rank(fast[place])
    });
    let factorers = factorers.collect();
    columns.factored_by(factorers)
}

/// What each would update at a time if all were equal, about.
fn typical_size(problem: Factorisation, machine: &Machine) -> f64 {
    (problem.n as f64 * problem.n as f64 / machine.processors() as f64).max(1.0)
}

/// The processors that have a speed above 0.
///
/// # Errors
/// There is none.
fn fastest_first(problem: Factorisation, machine: &Machine) -> Result<Vec<usize>> {
    let size = typical_size(problem, machine);
    let speed = |rank: usize| machine.models[rank].speed(size);
    let mut order: Vec<usize> = (0..machine.processors()).filter(|rank| speed(*rank) > 0.0).collect();
    order.sort_by(|a, b| speed(*b).total_cmp(&speed(*a)));
    if order.is_empty() {
        return Err(Error::infeasible("no processor has a speed above 0", "give one a speed"));
    }
    Ok(order)
}

/// The block columns by a layout of them, for devices with their speeds behind their links. A device has no more block
/// columns than its memory holds. The panels are work of the processors in `fast`, if there are some, and else do not
/// count.
fn lay_out_columns(
    problem: Factorisation,
    layout: FactorLayout,
    machine: &Machine,
    element: u64,
    fast: &[usize],
) -> Result<TileMap> {
    let Factorisation { factors, n, block } = problem;
    let machine = &*behind_links(problem, machine, element)?;
    let (p, count) = (machine.processors(), n.div_ceil(block) as usize);
    let fastest_first = fastest_first(problem, machine)?;
    let speed = |rank: usize| machine.models[rank].speed(typical_size(problem, machine));
    // In elements that are updated: those of the last update of a block column, and what its panel costs.
    let width = block.min(n) as f64;
    let panel = |rows: u64| width * rows as f64 + panel_amount(factors, rows as f64, width) / width;
    let seconds = |rank: usize, work: f64, rows: u64| {
        let panels = if fast.contains(&rank) { panel(rows) / fast.len() as f64 } else { 0.0 };
        machine.models[rank].seconds(work + panels)
    };
    let rooms: Vec<usize> = (0..p).map(|rank| room(problem, machine, Rank(rank), element)).collect();
    let room: usize = fastest_first.iter().map(|rank| rooms[*rank]).fold(0, usize::saturating_add);
    if room < count {
        return Err(Error::TooLittleMemory {
            what: format!(
                "the devices have memory for {room} of {count} block columns of a matrix of {n} rows"
            ),
            remedy: "raise their `memory`, add a processor of cores, or factor a smaller matrix".into(),
        });
    }
    let owners = match layout {
        FactorLayout::Alone => {
            // If no processor has room for all, the next one has the rest.
            let first = fastest_first.iter().position(|rank| rooms[*rank] >= count).unwrap_or(0);
            let order = fastest_first[first..].iter().chain(&fastest_first[..first]);
            in_turn(order.flat_map(|rank| std::iter::repeat_n(*rank, count)), rooms, count)
        }
        FactorLayout::Ratio => {
            let slowest = speed(*fastest_first.last().expect("there is a fastest one"));
            let times = |rank: usize| ((speed(rank) / slowest).round() as usize).min(count);
            // A round may be much longer than the matrix.
            let round = (0..p).flat_map(|rank| std::iter::repeat_n(rank, times(rank)));
            in_turn(round.cycle(), rooms, count)
        }
        FactorLayout::Cyclic => in_turn((0..p).cycle(), rooms, count),
        FactorLayout::Greedy => give_out(problem, rooms, seconds, &fastest_first),
        FactorLayout::Grid => unreachable!("tiles are no block columns"),
    };
    Ok(TileMap::columns(n, block, p, owners.into_iter().map(Rank).collect()))
}

/// True if some of the processors are devices.
fn has_devices(machine: &Machine) -> bool {
    !machine.platform.network.devices.is_empty()
}

/// The same machine, whose devices are as fast as they are with what goes over their links for an update of typical
/// size.
fn behind_links(problem: Factorisation, machine: &Machine, element: u64) -> Result<Cow<'_, Machine>> {
    /// Sides of a square that cross the link with each column of a panel, about: L, U and the rows that are exchanged,
    /// or more than once L.
    const SIDES: f64 = 6.0;
    const TRANSFERS: u64 = 4;
    let mut behind = Cow::Borrowed(machine);
    if machine.only_ratios() {
        return Ok(behind);
    }
    let size = typical_size(problem, machine);
    // Models count seconds of updates with panels of the machine's block.
    let elements = SIDES * size.sqrt() * machine.block as f64;
    for (rank, memory) in &machine.platform.network.devices {
        let model = &machine.models[rank.0];
        if memory.has_known_link() && model.speed(size) > 0.0 {
            let latencies = memory.seconds_up(TRANSFERS, 0.0) * machine.block as f64 / problem.block as f64;
            let seconds = model.seconds(size) + latencies + memory.seconds_up(0, elements * element as f64);
            let name = machine.platform.processors[rank.0].name.clone();
            behind.to_mut().models[rank.0] =
                Model::new(name, Interpolation::Constant, vec![Point::new(size, seconds)], None)?;
        }
    }
    Ok(behind)
}

/// Block columns that a processor has room for.
fn room(problem: Factorisation, machine: &Machine, rank: Rank, element: u64) -> usize {
    let Factorisation { n, block, .. } = problem;
    let memory = machine.platform.network.devices.get(&rank);
    match memory.map_or(u64::MAX, |memory| memory.most_columns(n, block.min(n), element)) {
        most if most >= n => n.div_ceil(block) as usize,
        most => (most / block) as usize,
    }
}

/// Gives out block columns from the first to the last, to those whose turn it is, and who have room.
fn in_turn(turns: impl Iterator<Item = usize>, mut rooms: Vec<usize>, count: usize) -> Vec<usize> {
    let takes = |rank: &usize| {
        let has_room = rooms[*rank] > 0;
        rooms[*rank] -= usize::from(has_room);
        has_room
    };
    turns.filter(takes).take(count).collect()
}

/// Gives out block columns from the last to the first, each to the one among `takers` with room that would need the least
/// time for its part of what remains, by `seconds` for so many elements, of so many remaining rows. O(N p).
fn give_out(
    problem: Factorisation,
    mut rooms: Vec<usize>,
    seconds: impl Fn(usize, f64, u64) -> f64,
    takers: &[usize],
) -> Vec<usize> {
    let Factorisation { factors, n, block } = problem;
    let count = n.div_ceil(block);
    let (mut owners, mut taken) = (vec![0; count as usize], vec![0.0; rooms.len()]);
    for column in (0..count).rev() {
        let (start, end) = (column * block, ((column + 1) * block).min(n));
        let (rows, width) = ((n - start) as f64, (end - start) as f64);
        // Columns of LU are as high as what remains; those of symmetric matrices begin at the diagonal.
        let (weight, height) = if factors == Factors::Lu { (width, rows) } else { (width * rows, 1.0) };
        let time = |taker: &usize| seconds(*taker, (taken[*taker] + weight) * height, n - start);
        let with_room = takers.iter().copied().filter(|rank| rooms[*rank] > 0);
        let taker = with_room.min_by(|a, b| time(a).total_cmp(&time(b))).expect("there is room for all");
        taken[taker] += weight;
        rooms[taker] -= 1;
        owners[column as usize] = taker;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkUnit;
    use crate::platform::{DeviceMemory, Network, Platform, Speed};
    use crate::schedule::{Application, BlockTimes};

    pub(super) fn machine(gigaflops: &[f64], network: Network) -> Machine {
        let mut platform = Platform::from_speeds(gigaflops).unwrap();
        for (processor, speed) in platform.processors.iter_mut().zip(gigaflops) {
            processor.speed = Some(Speed::Flops(speed * 1e9));
        }
        platform.network = network;
        Machine::from_platform(platform, WorkUnit::MultiplyAdd).unwrap()
    }

    fn columns_by(problem: Factorisation, layout: FactorLayout, machine: &Machine) -> Result<TileMap> {
        lay_out_columns(problem, layout, machine, 8, &[])
    }

    const LU: Factorisation = Factorisation { factors: Factors::Lu, n: 2400, block: 100 };

    fn plans(factors: Factors, machine: &Machine, layout: Option<FactorLayout>) -> Vec<Plan> {
        let options = FactorOptions { layout, ..FactorOptions::new(&[LU.block], 8) };
        plan_factorisation(factors, LU.n, machine, options).unwrap()
    }

    /// Every suffix is as balanced as whole columns allow: no other owner of its first column makes it shorter.
    #[test]
    fn every_suffix_is_balanced() {
        let speeds = [5.0, 3.0, 1.0];
        let machine = machine(&speeds, Network::free());
        for factors in [Factors::Lu, Factors::Cholesky, Factors::Ldlt] {
            let columns =
                columns_by(Factorisation { factors, ..LU }, FactorLayout::Greedy, &machine).unwrap();
            for first in 0..columns.count() {
                let mut taken = [0.0; 3];
                for column in first..columns.count() {
                    let rows = if factors == Factors::Lu { 1.0 } else { (2400 - 100 * column) as f64 };
                    taken[columns.panel_owner(column).0] += rows;
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
        let columns = columns_by(LU, FactorLayout::Greedy, &machine).unwrap();
        let last = columns.count() - 9..columns.count();
        let count = |rank| columns.places(Rank(rank), last.clone()).len();
        assert_eq!([count(0), count(1), count(2)], [5, 3, 1]);
    }

    /// A core, and a device of four times its speed behind links of any speed: alone is whoever takes less by forecast.
    #[test]
    fn alone_is_the_least_of_all_forecasts() {
        let mut by_core = 0;
        for bandwidth in [1e7, 3e7, 1e8, 3e8, 1e9, 1e10] {
            let machine = with_devices(&[1.0, 4.0], &[1], None, bandwidth);
            let count = LU.n.div_ceil(LU.block) as usize;
            let seconds = |rank: usize| {
                let columns = TileMap::columns(LU.n, LU.block, 2, vec![Rank(rank); count]);
                let plan = appraise(LU, &machine, None, "alone", &columns, 8).unwrap();
                plan.forecast.unwrap().seconds
            };
            let least = seconds(0).min(seconds(1));
            let baselines = plans(Factors::Lu, &machine, None).remove(0).baselines.unwrap();
            assert_eq!(baselines.fastest_alone.unwrap().seconds, least, "{bandwidth}");
            by_core += usize::from(seconds(0) == least);
        }
        assert!(by_core > 0 && by_core < 6, "{by_core}");
    }

    /// HPL's `-f 3`: in every round three columns to each fast processor and one to each slow one.
    #[test]
    fn a_ratio_gives_rounds() {
        let machine = machine(&[3.2, 3.2, 1.0], Network::free());
        let columns = columns_by(LU, FactorLayout::Ratio, &machine).unwrap();
        let owners: Vec<usize> = (0..columns.count()).map(|column| columns.panel_owner(column).0).collect();
        assert_eq!(owners[..8], [0, 0, 0, 1, 1, 1, 2, 0]);
        let halves = columns_by(LU, FactorLayout::Ratio, &Machine::from_speeds(&[0.0, 2.0]).unwrap());
        assert_eq!(halves.unwrap().own(Rank(1)).len(), 24);
        let far = columns_by(LU, FactorLayout::Ratio, &Machine::from_speeds(&[1e15, 1.0]).unwrap());
        assert_eq!(far.unwrap().own(Rank(0)).len(), 24, "a round longer than any memory");
    }

    #[test]
    fn the_fastest_forecast_is_first_and_above_the_bound() {
        for factors in [Factors::Lu, Factors::Cholesky, Factors::Ldlt] {
            let machine = machine(&[9.0, 1.0, 4.0], Network::uniform(1e-5, 1e9));
            let plans = plans(factors, &machine, None);
            let seconds: Vec<f64> =
                plans.iter().map(|plan| plan.forecast.as_ref().unwrap().seconds).collect();
            assert!(seconds.is_sorted() && plans[0].method != "cyclic", "{seconds:?}");
            assert!(plans.iter().all(|plan| plan.metrics.forecast_over_bound.unwrap() >= 1.0));
        }
    }

    /// Of several blocks each layout has the one that is fastest for it.
    #[test]
    fn the_forecast_chooses_the_block() {
        let machine = machine(&[9.0, 1.0, 4.0], Network::uniform(1e-4, 1e9));
        let by = |blocks: &[u64]| {
            plan_factorisation(Factors::Lu, LU.n, &machine, FactorOptions::new(blocks, 8)).unwrap()
        };
        let all = by(&[32, 64, 128, 256]);
        for plan in &all {
            let seconds = plan.forecast.as_ref().unwrap().seconds;
            for block in [32, 64, 128, 256] {
                let one = by(&[block]);
                let same = one.iter().find(|other| other.method == plan.method);
                let other = same.map_or(f64::INFINITY, |other| other.forecast.as_ref().unwrap().seconds);
                assert!(seconds <= other, "{} in blocks of {block}: {other} < {seconds}", plan.method);
            }
        }
        let ratios = Machine::from_speeds(&[3.0, 1.0]).unwrap();
        let plans = plan_factorisation(Factors::Lu, LU.n, &ratios, FactorOptions::new(&[64, 32], 8)).unwrap();
        assert_eq!(plans[0].blocks().unwrap().1.block(), 64, "nothing tells them apart");
    }

    /// Processors of which some are devices of so many bytes behind a link of so many bytes per second.
    pub(super) fn with_devices(
        gigaflops: &[f64],
        devices: &[usize],
        bytes: Option<u64>,
        bandwidth: f64,
    ) -> Machine {
        let mut machine = machine(gigaflops, Network::free());
        for &rank in devices {
            let memory = DeviceMemory::behind_unknown_link(bytes);
            let memory = DeviceMemory { latency: 0.0, up: bandwidth, down: bandwidth, ..memory };
            machine.platform.network.devices.insert(Rank(rank), memory);
        }
        machine
    }

    /// A device has no more block columns than its memory holds, by any layout.
    #[test]
    fn devices_have_as_many_columns_as_fit() {
        // About 600 columns of 2,400 rows.
        let machine = with_devices(&[1.0, 50.0, 2.0], &[1], Some(18_000_000), 1e12);
        let most = machine.platform.network.devices[&Rank(1)].most_columns(2400, 100, 8) / 100;
        assert!((4..8).contains(&most), "{most}");
        for layout in FactorLayout::ALL.into_iter().filter(|layout| layout.has_columns()) {
            for factors in Factors::ALL {
                let columns = columns_by(Factorisation { factors, ..LU }, layout, &machine).unwrap();
                let device = columns.own(Rank(1)).len() as u64;
                let wanted = if layout == FactorLayout::Alone { 0 } else { most };
                assert_eq!((device, columns.count()), (wanted, 24), "{layout:?} {factors}");
            }
        }
        let tiles = Factorisation { factors: Factors::Cholesky, ..LU };
        assert!(lay_out(tiles, FactorLayout::Grid, &machine, 8).unwrap().is_empty());
        let grid = Some(FactorLayout::Grid);
        let options = FactorOptions { layout: grid, ..FactorOptions::new(&[LU.block], 8) };
        let error = plan_factorisation(Factors::Cholesky, 2400, &machine, options).unwrap_err();
        assert!(error.to_string().contains("devices have block columns"), "{error}");
        // A round of a ratio ends where the device has no room.
        let far = with_devices(&[1e15, 1.0], &[0], Some(18_000_000), 1e30);
        let columns = columns_by(LU, FactorLayout::Ratio, &far).unwrap();
        assert_eq!(columns.own(Rank(0)).len() as u64, most);
        let too_small = with_devices(&[1.0, 1.0], &[0, 1], Some(18_000_000), 1e12);
        let error = columns_by(LU, FactorLayout::Greedy, &too_small).unwrap_err();
        assert!(error.to_string().contains("of 24 block columns") && error.exit_code() == 1, "{error}");
        // Two devices that hold it together.
        let both = with_devices(&[1.0, 2.0], &[0, 1], Some(50_000_000), 1e12);
        let columns = columns_by(LU, FactorLayout::Alone, &both).unwrap();
        assert!(columns.own(Rank(1)).len() > columns.own(Rank(0)).len() && !columns.own(Rank(0)).is_empty());
    }

    /// A device behind a slow link has less, and none behind one that makes it useless.
    #[test]
    fn links_of_devices_count() {
        let share = |bandwidth: f64| {
            let machine = with_devices(&[1.0, 1.0], &[1], None, bandwidth);
            plans(Factors::Lu, &machine, None)[0].shares[1]
        };
        let [fast, slow, useless] = [1e12, 1e8, 1e4].map(share);
        assert!(fast > slow && slow > 0 && useless == 0, "{fast} {slow} {useless}");
        let ratios = Machine::from_speeds(&[1.0, 1.0]).unwrap();
        let mut behind = ratios.clone();
        let memory = DeviceMemory { up: 1.0, down: 1.0, ..DeviceMemory::behind_unknown_link(None) };
        behind.platform.network.devices.insert(Rank(1), memory);
        assert_eq!(
            columns_by(LU, FactorLayout::Greedy, &behind).unwrap(),
            columns_by(LU, FactorLayout::Greedy, &ratios).unwrap(),
            "ratios have no seconds"
        );
    }

    /// LU of 20 columns in two blocks on a device, by hand: 200 elements of the first panel come down, 100 of L go up,
    /// 100 of U, and as many rows that are exchanged with them; both kinds of rows come down before; then come 100 of the
    /// second panel. Each takes a hundredth of a second.
    #[test]
    fn panels_come_down_and_updates_go_up() {
        let machine = with_devices(&[1.0], &[0], None, 100.0);
        let columns = TileMap::columns(20, 10, 1, vec![Rank(0); 2]);
        let schedule = FactorSchedule::new(Factors::Lu, columns);
        let seconds = |schedule: &FactorSchedule| {
            let rates = schedule.rates(&machine);
            let costs = CostModel { rates: &rates, network: &schedule.network(&machine), element: 1 };
            simulate::forecast(schedule, costs).unwrap().seconds - schedule.work(Rank(0)) / rates[0]
        };
        assert!((seconds(&schedule) - (2.0 + 1.0 + 4.0 + 1.0)).abs() < 1e-9);
        // Measured times are those of transfers as well.
        let model = |each: f64| vec![Model::constant("p0", each).unwrap()];
        let times = BlockTimes { block: 10, panel: model(1.0), column: model(2.0), square: model(3.0) };
        let times = FactorTimes::new(vec![times], model(4.0));
        assert!(seconds(&schedule.with_times(Some(Arc::new(times)))).abs() < 1e-9);
    }

    #[test]
    fn blocks_fit_the_matrix() {
        assert_eq!(candidate_blocks(1, 3), [1]);
        assert_eq!(candidate_blocks(100, 2), [16, 32, 48, 64, 96]);
        assert_eq!(candidate_blocks(4000, 2), [128, 32, 48, 64, 96, 192, 256]);
        assert_eq!(candidate_blocks(100_000, 20), [128, 192, 256]);
    }

    #[test]
    fn ratios_have_no_seconds_and_idle_processors_no_columns() {
        let machine = Machine::from_speeds(&[3.0, 0.0, 1.0]).unwrap();
        let plans = plans(Factors::Lu, &machine, None);
        assert_eq!((plans[0].method.as_str(), plans[0].shares[1]), ("greedy", 0));
        assert!(plans[0].forecast.is_none() && plans[0].relative_times.is_some());
        assert!("columns".parse::<FactorLayout>().is_err());
        assert_eq!("cyclic".parse::<FactorLayout>().unwrap(), FactorLayout::Cyclic);
    }
}

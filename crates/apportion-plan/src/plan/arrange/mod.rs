//! Mapping of a plan's parts to the processors of a network, so that few elements cross slow links. Shares
//! and volume stay the same.
//!
//! Source: Malik 2016, chapters 3 and 4.

mod columns;
mod costs;
mod distance;
mod exhaustive;
mod export;
mod graph;
mod grid;
mod heuristic;
mod labels;
mod local;
mod moves;
mod order;
mod rings;
#[cfg(test)]
mod thesis;

pub use export::{machinefile, places_in_order, rank_order, rankfile, slurm_hostfile};
pub use graph::arrange_borders;
pub use grid::{GridDomain, arrange_grid};

use crate::error::{Error, Result};
use crate::plan::{Division, Layout, Plan, repeat_block};
use crate::platform::Platform;
use columns::Columns;
use distance::Distances;
use labels::Labels;
use rings::Rings;
use serde::Serialize;

/// The cost function of an arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostFunction {
    /// Elements times levels of the platform's tree that they cross (Malik 2016, 3.3.1).
    Hops(Pivots),
    /// Seconds on the links, one after the other (Malik 2016, 3.3.2).
    Bandwidth(Pivots),
    /// Seconds of a halo exchange whose directions differ in bandwidth (Malik 2016, 4.4.1).
    Asymmetric(Edges),
}

/// The flow of a pivot row or column (Malik 2016, 3.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivots {
    /// From neighbour to neighbour: the flow of the source's cost functions.
    Ring,
    /// From its holder to all others.
    OneToAll,
}

/// The neighbours of a stencil's domain beyond its border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// The opposite border, as in the source's equations.
    Periodic,
    /// Nothing, as in the costs that the source prints.
    Open,
}

/// The search for a better arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMethod {
    /// Every arrangement: the optimum, for a few processors.
    Exhaustive,
    /// The source's Algorithms 1, 2 and 3 as printed: whole groups of a cluster, one column after the other,
    /// once.
    Published,
    /// The same repeatedly, until nothing changes; exchanges of owners if the layout has no columns. If there
    /// are no more than 20,000 arrangements of columns, or 5,000 of owners, all of them.
    Heuristic,
    /// Simulated annealing from the heuristic's result, with restarts up to 200 processors. Where the
    /// heuristic tries all arrangements, so does this.
    Local,
    /// [`SearchMethod::Local`] up to 200 processors, [`SearchMethod::Heuristic`] beyond.
    Auto,
}

/// Called during a search with the number of evaluations since the last call; returns false to stop.
pub(crate) type Watch<'a> = &'a dyn Fn(u64) -> bool;

/// How to search for an arrangement.
#[derive(Clone, Copy)]
pub struct SearchOptions<'w> {
    /// The search.
    pub method: SearchMethod,
    /// The seed of the random numbers of [`SearchMethod::Local`].
    pub seed: u64,
    /// Follows the search, and can stop it.
    pub watch: Watch<'w>,
}

impl SearchOptions<'_> {
    /// A search that nobody watches.
    pub fn new(method: SearchMethod, seed: u64) -> Self {
        Self { method, seed, watch: &|_| true }
    }
}

/// Up to this number of processors, [`SearchMethod::Auto`] anneals.
const MOST_ANNEALED: usize = 200;
/// Numbers of arrangements of columns, and of owners, up to which every search tries all of them.
const FEW_OF_COLUMNS: u64 = 20_000;
const FEW_OF_OWNERS: u64 = 5_000;

/// The cost of an arrangement: elements x hops, or seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// For the pieces of A, which travel along rows.
    pub a: f64,
    /// For the pieces of B, which travel along columns.
    pub b: f64,
    /// The sum of both.
    pub total: f64,
}

impl Cost {
    fn of(a: f64, b: f64) -> Self {
        // An empty sum is -0.0, which should not be printed.
        let (a, b) = (a + 0.0, b + 0.0);
        Self { a, b, total: a + b }
    }
}

/// A rearranged plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrangement {
    /// The plan: shares and volume as before.
    #[serde(skip)]
    pub plan: Plan,
    /// The cost of the given arrangement.
    pub cost_before: Cost,
    /// The cost of the new arrangement; never more.
    pub cost_after: Cost,
    /// Number of arrangements, or parts of one, that were evaluated.
    pub evaluations: u64,
}

/// Maps the parts of a plan to processors so that communication costs less. Shares and volume stay the same.
///
/// In a column-based layout, columns are permuted, and so are rectangles inside their column; widths and
/// heights move with their owners. Owners of equal shares are exchanged anywhere; other layouts allow only
/// these exchanges. If all repetitions of a repeated block are whole, the block is arranged; if some are cut
/// off, owners of equal shares of the whole matrix are exchanged. The same seed gives the same plan. The
/// forecast is dropped, since it belongs to the old mapping.
///
/// # Errors
/// A plan without a layout, or with processors that the platform lacks; [`SearchMethod::Exhaustive`] with more than
/// a million arrangements; [`SearchMethod::Published`] with a layout that is not column-based;
/// [`Error::Interrupted`].
pub fn arrange(
    plan: &Plan,
    platform: &Platform,
    objective: CostFunction,
    options: SearchOptions<'_>,
) -> Result<Arrangement> {
    if let Some(layout) = plan.rectangles() {
        layout.refuse_boxes("an arrangement")?;
    }
    let layout = arrangeable(plan)?;
    let distances = Distances::new(&plan.processors, platform, objective)?;
    let before = finite(cost_of(layout, &distances, objective))?;
    let method = options.method.of(layout.processors());
    let (found, evaluations) =
        rearranged(layout, &distances, objective, SearchOptions { method, ..options })?;
    if !(options.watch)(0) {
        return Err(Error::Interrupted);
    }
    let after = cost_of(&found, &distances, objective);
    let better = after.total < before.total;
    let (layout, cost_after) = if better { (found, after) } else { (layout.clone(), before) };
    Ok(Arrangement { plan: plan.laid_out(layout), cost_before: before, cost_after, evaluations })
}

impl SearchMethod {
    /// The search that this one means for a number of processors.
    fn of(self, processors: usize) -> Self {
        match self {
            Self::Auto if processors <= MOST_ANNEALED => Self::Local,
            Self::Auto => Self::Heuristic,
            other => other,
        }
    }
}

/// The rectangles of a plan, whose mapping can be changed.
fn arrangeable(plan: &Plan) -> Result<&Layout> {
    plan.rectangles().ok_or_else(|| match plan.division {
        Division::Graph { .. } => {
            let remedy = "give its platform to `partition --graph`, which places parts on the network";
            Error::input("plan", "divides a graph, whose parts are in a file of their own", remedy)
        }
        _ => Error::input("plan", "divides units, which have no layout", "use the plan of a matrix product"),
    })
}

/// A cost, unless bandwidths are so small that it exceeds the range of numbers.
fn finite(cost: Cost) -> Result<Cost> {
    if cost.total.is_finite() {
        return Ok(cost);
    }
    let what = format!("the cost of the arrangement is {} s", cost.total);
    Err(Error::input("platform: network.bandwidth", what, "raise the smallest bandwidth"))
}

/// The best arrangement found, which may be worse than the one given, and the number of evaluations.
fn rearranged(
    layout: &Layout,
    distances: &Distances<'_>,
    objective: CostFunction,
    options: SearchOptions<'_>,
) -> Result<(Layout, u64)> {
    let SearchOptions { method, seed, watch } = options;
    let shape = layout.shape();
    let columns = match layout.block() {
        Some(block) if shape.m.is_multiple_of(block.shape().m) && shape.n.is_multiple_of(block.shape().n) => {
            let (found, evaluations) = rearranged(block, distances, objective, options)?;
            return Ok((repeat_block(shape, &found)?, evaluations));
        }
        Some(_) => None,
        None if layout.is_triangular() => None,
        None => Columns::of(layout, distances, objective),
    };
    if let Some(columns) = columns {
        let (found, evaluations) = searched(&columns, method, seed, watch)?;
        let found = Layout::new(shape, layout.processors(), found.parts());
        return Ok((found.expect("moved rectangles cover the matrix exactly once"), evaluations));
    }
    let labels = Labels::of(layout, distances, objective);
    let (found, evaluations) = match method {
        SearchMethod::Exhaustive => exhaustive::labels(&labels, exhaustive::MOST, watch)?,
        SearchMethod::Heuristic => exhaustive::labels(&labels, labels.affordable(FEW_OF_OWNERS), watch)
            .unwrap_or_else(|_| labels::exchanged(&labels, watch)),
        SearchMethod::Local | SearchMethod::Auto => local::labels(&labels, seed, watch),
        SearchMethod::Published => {
            return Err(Error::infeasible(
                "the published algorithms move the rectangles of columns, and this layout is not column-based",
                "use `search = heuristic` or `search = local`",
            ));
        }
    };
    Ok((found.relabelled(layout)?, evaluations))
}

/// The best arrangement of columns that a search finds.
fn searched<'a>(
    columns: &Columns<'a>,
    search: SearchMethod,
    seed: u64,
    watch: Watch<'_>,
) -> Result<(Columns<'a>, u64)> {
    let every = |most| exhaustive::columns(columns, most, watch);
    Ok(match search {
        SearchMethod::Exhaustive => every(exhaustive::MOST)?,
        SearchMethod::Published => heuristic::published(columns, watch),
        SearchMethod::Heuristic => {
            every(FEW_OF_COLUMNS).unwrap_or_else(|_| heuristic::heuristic(columns, watch))
        }
        SearchMethod::Local | SearchMethod::Auto => {
            every(FEW_OF_COLUMNS).unwrap_or_else(|_| local::columns(columns, seed, watch))
        }
    })
}

/// The cost of a plan's mapping on a platform.
///
/// # Errors
/// A plan without a layout, or with processors that the platform does not have: exit code 2.
pub fn arrangement_cost(plan: &Plan, platform: &Platform, objective: CostFunction) -> Result<Cost> {
    let layout = arrangeable(plan)?;
    Ok(cost_of(layout, &Distances::new(&plan.processors, platform, objective)?, objective))
}

fn cost_of(layout: &Layout, distances: &Distances<'_>, objective: CostFunction) -> Cost {
    let owners: Vec<usize> = (0..layout.processors()).collect();
    arrangement_cost_of(&Rings::of(layout), distances, &owners, objective)
}

/// The cost of rings in which `owner[i]` takes the places of the layout's owner i.
fn arrangement_cost_of(
    rings: &Rings,
    distances: &Distances<'_>,
    owner: &[usize],
    objective: CostFunction,
) -> Cost {
    match objective {
        CostFunction::Hops(pivots) => costs::hops(rings, distances, owner, pivots),
        CostFunction::Bandwidth(pivots) => costs::bandwidth(rings, distances, owner, pivots),
        CostFunction::Asymmetric(edges) => costs::asymmetric(rings, distances, owner, edges),
    }
}

#[cfg(test)]
fn every_objective() -> [CostFunction; 6] {
    use CostFunction::{Asymmetric, Bandwidth, Hops};
    [
        Hops(Pivots::Ring),
        Hops(Pivots::OneToAll),
        Bandwidth(Pivots::Ring),
        Bandwidth(Pivots::OneToAll),
        Asymmetric(Edges::Periodic),
        Asymmetric(Edges::Open),
    ]
}

#[cfg(test)]
mod tests;

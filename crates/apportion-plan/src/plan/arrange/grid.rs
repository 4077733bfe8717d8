//! A grid of equal sub-domains for equal processors: its shape, and the mapping of processors to its cells.
//!
//! Source: Malik 2016, Algorithm 3 (section 4.4.2).

use super::columns::{Block, Column, Columns, Rule};
use super::distance::Distances;
use super::{
    Arrangement, CostFunction, Edges, MOST_ANNEALED, SearchMethod, SearchOptions, cost_of, finite, heuristic,
    searched,
};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect};
use crate::plan::shapes::{Mesh, consecutive};
use crate::plan::shares::even;
use crate::plan::{Layout, Part, Plan, Shape};
use crate::platform::Platform;

/// Maximum number of rounds of the search for a fixed point; each round costs less than the one before.
const MOST_ROUNDS: usize = 50;

/// A stencil's domain, to be cut into a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridDomain {
    /// Rows of cells.
    pub m: u64,
    /// Columns of cells.
    pub n: u64,
    /// What is beyond the border.
    pub edges: Edges,
    /// Rows and columns of the grid that the search starts from; by default the most nearly square.
    pub start: Option<Mesh>,
}

impl GridDomain {
    /// A domain of m x n cells with these borders.
    pub fn new(m: u64, n: u64, edges: Edges) -> Self {
        Self { m, n, edges, start: None }
    }
}

/// Cuts an m x n domain into an r x c grid, r c = p, with one equal sub-domain for each processor of the
/// platform, and maps the processors so that a halo exchange ([`CostFunction::Asymmetric`]) costs little.
///
/// [`SearchMethod::Published`] is Algorithm 3. It fills all shapes by rows and by columns in the current order of
/// processors and rearranges the cheapest by groups of a cluster. The resulting order is that of the next
/// round, until a round gains nothing. [`SearchMethod::Heuristic`] then also rearranges the last order in every
/// other shape, which escapes fixed points such as the source's own (Table 4.2). [`SearchMethod::Exhaustive`] and
/// [`SearchMethod::Local`] rearrange every shape separately; [`SearchMethod::Auto`] does as the heuristic, and up to 200
/// processors as the local search, too. `cost_before` is that of the domain's first grid, filled by columns
/// in the platform's order.
///
/// # Errors
/// A domain with fewer rows or columns than every shape needs; a first grid without a cell for each
/// processor; more than a million arrangements for the exhaustive search; [`Error::Interrupted`].
pub fn arrange_grid(
    domain: GridDomain,
    platform: &Platform,
    options: SearchOptions<'_>,
) -> Result<Arrangement> {
    let SearchOptions { method: search, seed, watch } = options;
    let edges = domain.edges;
    let shape = Shape::new(domain.m, 1, domain.n, "domain")?;
    let objective = CostFunction::Asymmetric(edges);
    let names = platform.names();
    let distances = Distances::new(&names, platform, objective)?;
    let p = names.len();
    let fits = |mesh: &Mesh| mesh.rows as u64 <= shape.m && mesh.cols as u64 <= shape.n;
    let meshes: Vec<Mesh> = Mesh::all_of(p).filter(fits).collect();
    if let Some(start) = domain.start.filter(|start| !meshes.contains(start)) {
        let Mesh { rows: r, cols: c } = start;
        let what = if fits(&start) {
            format!("{r} x {c} has {} cells for {p} processors", r.saturating_mul(c))
        } else {
            format!("{r} x {c} does not fit into {} x {} cells", shape.m, shape.n)
        };
        return Err(Error::input("grid shape", what, "give ROWSxCOLUMNS with one cell for each processor"));
    }
    let square = meshes.iter().min_by_key(|mesh| mesh.rows.abs_diff(mesh.cols)).copied();
    let Some(square) = domain.start.or(square) else {
        return Err(Error::infeasible(
            format!("no grid of {p} sub-domains fits into {} x {}", shape.m, shape.n),
            "use fewer processors or a larger domain",
        ));
    };
    let table = Placement { shape, edges, distances: &distances };
    let mut order: Vec<usize> = (0..p).collect();
    let before = table.layout(&table.seated(square, &order, true));
    // Processors of one cluster follow one another.
    order.sort_by_key(|&i| distances.cluster(i));
    let mut evaluations = 0;
    let mut candidates = vec![before.clone()];
    if search == SearchMethod::Published {
        let (found, weighed) =
            table.fixed_point(&meshes, order.clone(), &|grid| heuristic::published(grid, watch));
        evaluations += weighed;
        candidates.push(table.layout(&found));
    }
    if matches!(search, SearchMethod::Heuristic | SearchMethod::Auto) {
        let (found, weighed) =
            table.fixed_point(&meshes, order.clone(), &|grid| heuristic::heuristic(grid, watch));
        evaluations += weighed;
        let order: Vec<usize> = found.columns.iter().flat_map(|c| c.blocks.iter().map(|b| b.owner)).collect();
        candidates.push(table.layout(&found));
        for (mesh, by_columns) in meshes.iter().flat_map(|&mesh| [(mesh, true), (mesh, false)]) {
            let seated = table.seated(mesh, &order, by_columns);
            let (found, weighed) = searched(&seated, SearchMethod::Heuristic, seed, watch)?;
            evaluations += weighed;
            candidates.push(table.layout(&found));
        }
    }
    let anneals = search == SearchMethod::Auto && p <= MOST_ANNEALED;
    if matches!(search, SearchMethod::Exhaustive | SearchMethod::Local) || anneals {
        for &mesh in &meshes {
            let (found, weighed) = searched(&table.seated(mesh, &order, true), search, seed, watch)?;
            evaluations += weighed;
            candidates.push(table.layout(&found));
        }
    }
    if !watch(0) {
        return Err(Error::Interrupted);
    }
    let cost_before = finite(cost_of(&before, &distances, objective))?;
    let priced = candidates.into_iter().map(|l| (cost_of(&l, &distances, objective), l));
    let (cost_after, layout) =
        priced.min_by(|x, y| x.0.total.total_cmp(&y.0.total)).expect("there is at least the first candidate");
    let imbalance = p as f64 * largest(&layout) / shape.elements() as f64;
    let plan = Plan::of_grid("grid", names.clone(), layout, imbalance);
    Ok(Arrangement { plan, cost_before, cost_after, evaluations })
}

fn largest(layout: &Layout) -> f64 {
    layout.shares().into_iter().max().unwrap_or(0) as f64
}

/// The domain and the processors mapped to it.
struct Placement<'a> {
    shape: Shape,
    edges: Edges,
    distances: &'a Distances<'a>,
}

impl<'a> Placement<'a> {
    /// An r x c grid filled by columns or by rows. All cells are equal, in units that make them whole:
    /// heights in m/r, widths in n/c. The columns' costs are therefore those of a domain of m c x n r lines.
    fn seated(&self, Mesh { rows: r, cols: c }: Mesh, order: &[usize], by_columns: bool) -> Columns<'a> {
        let owner = |i: usize, j: usize| order[if by_columns { j * r + i } else { i * c + j }];
        let column = |j| Column {
            width: self.shape.n * r as u64,
            blocks: (0..r).map(|i| Block { owner: owner(i, j), height: self.shape.m * c as u64 }).collect(),
        };
        let columns = (0..c).map(column).collect();
        Columns { columns, rule: Rule::of(CostFunction::Asymmetric(self.edges)), distances: self.distances }
    }

    /// The layout of a grid: cells as equal as whole lines allow.
    fn layout(&self, grid: &Columns<'_>) -> Layout {
        let (c, r) = (grid.columns.len(), grid.columns[0].blocks.len());
        let (rows, cols) = (consecutive(&even(self.shape.m, r)), consecutive(&even(self.shape.n, c)));
        let parts = grid.columns.iter().zip(cols).flat_map(|(column, cols)| {
            let rows = &rows;
            column
                .blocks
                .iter()
                .zip(rows)
                .map(move |(b, &rows)| Part::new(Rank(b.owner), Rect::new(rows, cols)))
        });
        Layout::new(self.shape, self.distances.len(), parts).expect("a grid covers the domain exactly once")
    }

    /// Algorithm 3: shape and mapping in turn, until neither gains.
    fn fixed_point(
        &self,
        meshes: &[Mesh],
        mut order: Vec<usize>,
        rearrange: &dyn Fn(&Columns<'a>) -> (Columns<'a>, u64),
    ) -> (Columns<'a>, u64) {
        let mut evaluations = 0;
        let mut best: Option<(f64, Columns<'a>)> = None;
        for _ in 0..MOST_ROUNDS {
            let seatings =
                meshes.iter().flat_map(|&mesh| [true, false].map(|by| self.seated(mesh, &order, by)));
            let (_, first) = seatings
                .map(|grid| {
                    evaluations += 1;
                    (grid.cost().total, grid)
                })
                .min_by(|x, y| x.0.total_cmp(&y.0))
                .expect("there is at least one shape");
            let (rearranged, weighed) = rearrange(&first);
            evaluations += weighed;
            let round = [first, rearranged].into_iter().map(|g| (g.cost().total, g));
            let round = round.min_by(|x, y| x.0.total_cmp(&y.0)).expect("there are two");
            if best.as_ref().is_some_and(|b| round.0 >= b.0 * (1.0 - 1e-12)) {
                break;
            }
            order = round.1.columns.iter().flat_map(|c| c.blocks.iter().map(|b| b.owner)).collect();
            best = Some(round);
        }
        (best.expect("there is at least one round").1, evaluations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::columns::tests::three_clusters;

    /// Small enough for every arrangement of every shape, which the other searches are compared with.
    #[test]
    fn near_the_best_grid() {
        for (p, edges) in [(4, Edges::Open), (6, Edges::Open), (6, Edges::Periodic), (8, Edges::Open)] {
            let platform = three_clusters(p);
            let domain = GridDomain::new(24, 24, edges);
            let cost = |search| arrange_grid(domain, &platform, SearchOptions::new(search, 3)).unwrap();
            let best = cost(SearchMethod::Exhaustive);
            for (search, within) in [
                (SearchMethod::Heuristic, 1.1),
                (SearchMethod::Local, 1.0 + 1e-9),
                (SearchMethod::Auto, 1.0 + 1e-9),
            ] {
                let found = cost(search);
                assert!(
                    found.cost_after.total <= within * best.cost_after.total,
                    "{p} {edges:?} {search:?} {:?} {:?}",
                    found.cost_after,
                    best.cost_after
                );
                assert_eq!(found.plan.shares, vec![24 * 24 / p as u64; p]);
            }
            assert!(best.cost_after.total <= best.cost_before.total);
        }
    }

    #[test]
    fn a_domain_too_small_is_refused() {
        let platform = three_clusters(6);
        let domain = GridDomain::new(1, 5, Edges::Open);
        let error = arrange_grid(domain, &platform, SearchOptions::new(SearchMethod::Local, 0)).unwrap_err();
        assert_eq!(error.exit_code(), 1);
    }

    /// The first grid is that of the cost before; it must have a cell for each processor.
    #[test]
    fn the_first_grid_can_be_given() {
        let platform = three_clusters(6);
        let before = |start| {
            let domain = GridDomain { start, ..GridDomain::new(12, 12, Edges::Open) };
            arrange_grid(domain, &platform, SearchOptions::new(SearchMethod::Heuristic, 0))
                .map(|found| found.cost_before)
        };
        assert_eq!(before(None).unwrap(), before(Some(Mesh::new(2, 3))).unwrap());
        assert_ne!(before(Some(Mesh::new(6, 1))).unwrap(), before(Some(Mesh::new(2, 3))).unwrap());
        for start in [[2, 2], [0, 6], [13, 1]] {
            assert_eq!(before(Some(Mesh::new(start[0], start[1]))).unwrap_err().exit_code(), 2, "{start:?}");
        }
    }

    #[test]
    fn a_watch_stops_the_search() {
        let platform = three_clusters(8);
        let domain = GridDomain::new(64, 64, Edges::Open);
        for search in
            [SearchMethod::Published, SearchMethod::Heuristic, SearchMethod::Local, SearchMethod::Auto]
        {
            let stopped = arrange_grid(
                domain,
                &platform,
                SearchOptions { watch: &|_| false, ..SearchOptions::new(search, 0) },
            )
            .unwrap_err();
            assert!(matches!(stopped, Error::Interrupted), "{search:?}");
        }
    }
}

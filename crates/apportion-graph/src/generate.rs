//! Graphs of families, for tests and measurements.

use crate::coordinates::Coordinates;
use crate::graph::{Defect, Graph, MOST, RawGraph};
use crate::sparse::SparseMatrix;
use apportion::error::{Error, Result};
use apportion::process_memory::require_memory;
use apportion::random::Random;
use std::fmt;
use std::str::FromStr;

/// Edges of each new vertex of a power-law graph.
const ATTACHED: usize = 4;

/// Neighbours of a vertex of a band on either side.
const BAND: usize = 8;

/// The part of a mesh that its dense region takes.
const DENSE: f64 = 0.1;

/// What a generated graph looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A square grid: the five-point stencil.
    Mesh2,
    /// A cubic grid: the seven-point stencil.
    Mesh3,
    /// A square grid with the 25-point stencil in a disc of a tenth of its area, somewhere.
    DenseRegion,
    /// Few vertices have many neighbours: preferential attachment (Barabási and Albert 1999, DOI
    /// 10.1126/science.286.5439.509), four edges a vertex.
    PowerLaw,
    /// The eight vertices before and after each are its neighbours.
    Band,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 5] = [Self::Mesh2, Self::Mesh3, Self::DenseRegion, Self::PowerLaw, Self::Band];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mesh2 => "mesh-2d",
            Self::Mesh3 => "mesh-3d",
            Self::DenseRegion => "dense-region",
            Self::PowerLaw => "power-law",
            Self::Band => "band",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|family| family.name() == text).ok_or_else(|| {
            let remedy = format!("choose {}", Self::ALL.map(Self::name).join(", "));
            Error::input("`family`", format!("there is no family \"{text}\""), remedy)
        })
    }
}

/// A graph, and where its vertices are if they are somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The graph.
    pub graph: Graph,
    /// The points of a grid, whole numbers.
    pub coordinates: Option<Coordinates>,
}

/// Generates a connected graph of a number of vertices; the same seed gives the same graph. O(vertices + edges).
///
/// # Errors
/// No vertices, or too many for 31 bits or the free memory: exit code 2.
pub fn generate(family: Family, vertices: u64, seed: u64) -> Result<Generated> {
    // Entries of a vertex's list, on average, at most.
    let degree = match family {
        Family::Mesh2 => 4,
        Family::Mesh3 => 6,
        Family::DenseRegion => 8,
        Family::PowerLaw => 2 * ATTACHED as u64,
        Family::Band => 2 * BAND as u64,
    };
    if !(1..=MOST / degree).contains(&vertices) {
        let what = format!("{vertices} vertices are none or too many for {family}");
        return Err(Error::input("`vertices`", what, format!("ask for 1 to {}", MOST / degree)));
    }
    let bytes = u128::from(8 * (degree + 4) * vertices);
    require_memory("`vertices`", "the graph", bytes, "ask for fewer vertices")?;
    let (n, mut random) = (vertices as usize, Random::new(seed));
    let grid = match family {
        Family::Mesh2 | Family::DenseRegion => Some(Grid::new(n, 2)),
        Family::Mesh3 => Some(Grid::new(n, 3)),
        Family::PowerLaw | Family::Band => None,
    };
    let raw = match (&grid, family) {
        (Some(grid), Family::DenseRegion) => grid.dense_region(&mut random),
        (Some(grid), _) => from_lists(n, degree as usize, |vertex, list| grid.stencil(vertex, list)),
        (None, Family::PowerLaw) => power_law(n, &mut random),
        (None, _) => from_lists(n, degree as usize, |vertex, list| {
            list.extend(
                (vertex.saturating_sub(BAND)..(vertex + BAND + 1).min(n)).filter(|other| *other != vertex),
            );
        }),
    };
    let graph = Graph::new(raw, 0).map_err(|defect| defect.at_place(family.name()))?;
    let coordinates = grid.map(|grid| grid.coordinates()).transpose()?;
    Ok(Generated { graph, coordinates })
}

/// Adjacency lists, each filled by a function.
fn from_lists(n: usize, degree: usize, mut fill: impl FnMut(usize, &mut Vec<usize>)) -> RawGraph {
    let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
    raw.neighbours.reserve(n * degree);
    let mut list = Vec::new();
    for vertex in 0..n {
        list.clear();
        fill(vertex, &mut list);
        raw.neighbours.extend(list.iter().map(|other| *other as u32));
        raw.offsets.push(raw.neighbours.len() as u32);
    }
    raw
}

/// Points of a square or a cube row by row, of which the last row or layer may be incomplete.
struct Grid {
    n: usize,
    side: usize,
    axes: usize,
}

impl Grid {
    fn new(n: usize, axes: usize) -> Self {
        let side = (n as f64).powf(1.0 / axes as f64).round() as usize;
        Self { n, side: side.max(1), axes }
    }

    fn point(&self, vertex: usize) -> [usize; 3] {
        let (side, row) = (self.side, vertex / self.side);
        match self.axes {
            2 => [vertex % side, row, 0],
            _ => [vertex % side, row % side, row / side],
        }
    }

    /// The neighbours along the axes.
    fn stencil(&self, vertex: usize, list: &mut Vec<usize>) {
        let (point, mut stride) = (self.point(vertex), 1);
        for (axis, along) in point.iter().enumerate().take(self.axes) {
            let ends = axis + 1 == self.axes;
            if *along > 0 {
                list.push(vertex - stride);
            }
            if (ends || along + 1 < self.side) && vertex + stride < self.n {
                list.push(vertex + stride);
            }
            stride *= self.side;
        }
    }

    /// Neighbours along the axes, and of points in a disc all at most two rows and columns apart.
    fn dense_region(&self, random: &mut Random) -> RawGraph {
        let radius = (DENSE * self.n as f64 / std::f64::consts::PI).sqrt();
        let rows = self.n.div_ceil(self.side);
        let centre = [self.side, rows].map(|length| {
            let room = length as f64 - 2.0 * radius;
            radius + room * random.unit() - 0.5
        });
        let dense = |vertex: usize| {
            let [x, y, _] = self.point(vertex).map(|along| along as f64);
            (x - centre[0]).powi(2) + (y - centre[1]).powi(2) <= radius * radius
        };
        let near = |along: usize| along.saturating_sub(2)..along + 3;
        from_lists(self.n, 7, |vertex, list| {
            self.stencil(vertex, list);
            if !dense(vertex) {
                return;
            }
            let [x, y, _] = self.point(vertex);
            for row in near(y) {
                for column in near(x).filter(|column| *column < self.side) {
                    let other = row * self.side + column;
                    let along_axes = x.abs_diff(column) + y.abs_diff(row) <= 1;
                    if other < self.n && !along_axes && dense(other) {
                        list.push(other);
                    }
                }
            }
        })
    }

    fn coordinates(&self) -> Result<Coordinates> {
        let mut values = Vec::with_capacity(self.n * self.axes);
        for vertex in 0..self.n {
            values.extend(self.point(vertex).iter().take(self.axes).map(|along| *along as f64));
        }
        Coordinates::new(self.axes, values, "grid")
    }
}

/// Each vertex after the first five is joined to four others, drawn by their number of neighbours.
fn power_law(n: usize, random: &mut Random) -> RawGraph {
    // The ends of all edges, two by two: a vertex is among them as often as it has neighbours.
    let mut ends: Vec<u32> = Vec::with_capacity(2 * ATTACHED * n);
    for vertex in 0..n.min(ATTACHED + 1) as u32 {
        (0..vertex).for_each(|other| ends.extend([vertex, other]));
    }
    for vertex in ATTACHED + 1..n {
        let (drawn_from, mut others) = (ends.len(), [u32::MAX; ATTACHED]);
        for place in 0..ATTACHED {
            while others[place] == u32::MAX {
                let other = ends[random.below(drawn_from)];
                if !others.contains(&other) {
                    others[place] = other;
                }
            }
        }
        others.iter().for_each(|other| ends.extend([vertex as u32, *other]));
    }
    let mut offsets = vec![0; n + 1];
    ends.iter().for_each(|end| offsets[*end as usize + 1] += 1);
    (0..n).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
    let (mut next, mut neighbours) = (offsets.clone(), vec![0; ends.len()]);
    for edge in ends.chunks_exact(2) {
        for (from, to) in [(edge[0], edge[1]), (edge[1], edge[0])] {
            let place = &mut next[from as usize];
            neighbours[*place as usize] = to;
            *place += 1;
        }
    }
    RawGraph { offsets, neighbours, ..RawGraph::default() }
}

/// The Laplacian of a graph plus the identity: off the diagonal the negative weights of edges, on it their sum plus 1.
/// Symmetric, positive definite and strictly diagonally dominant. O(vertices + edges).
///
/// # Errors
/// More than 2^32 entries: exit code 2.
pub fn laplacian(graph: &Graph) -> Result<SparseMatrix> {
    let entries = 2 * graph.edges() as usize + graph.vertices();
    if u32::try_from(entries).is_err() {
        let what = format!("the matrix of the graph has {entries} entries");
        return Err(Defect { vertex: None, what, remedy: "use a smaller graph" }.at_place("laplacian"));
    }
    let (mut offsets, mut columns, mut values) =
        (vec![0], Vec::with_capacity(entries), Vec::with_capacity(entries));
    for vertex in 0..graph.vertices() {
        let neighbours = graph.neighbours(vertex);
        let before = neighbours.partition_point(|other| (*other as usize) < vertex);
        let first = values.len();
        columns.extend(neighbours);
        values.extend(graph.weights_of_edges(vertex).map(|weight| -f64::from(weight)));
        let sum: f64 = values[first..].iter().sum();
        columns.insert(first + before, vertex as u32);
        values.insert(first + before, 1.0 - sum);
        offsets.push(columns.len() as u32);
    }
    SparseMatrix::new(graph.vertices(), offsets, columns, values, "laplacian")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(family: Family, n: u64) -> Graph {
        generate(family, n, 7).unwrap().graph
    }

    #[test]
    fn every_family_is_connected_at_every_size_and_the_same_for_a_seed() {
        for family in Family::ALL {
            for n in (1..40).chain([100, 1000, 1001]) {
                let generated = generate(family, n, 3).unwrap();
                let graph = &generated.graph;
                assert_eq!((graph.vertices() as u64, graph.components()), (n, 1), "{family} {n}");
                assert_eq!(generate(family, n, 3).unwrap(), generated);
                let points = generated.coordinates.map(|points| points.points() as u64);
                assert!(points.is_none_or(|points| points == n));
            }
            assert_eq!(family.name().parse::<Family>().unwrap(), family);
        }
        let unknown = "ring".parse::<Family>().unwrap_err().to_string();
        assert!(unknown.contains("mesh-2d, mesh-3d, dense-region, power-law, band"), "{unknown}");
        assert!(generate(Family::Band, 0, 1).is_err() && generate(Family::Band, 1 << 30, 1).is_err());
    }

    #[test]
    fn edges_are_as_many_as_formulas_say() {
        assert_eq!(graph(Family::Mesh2, 30 * 30).edges(), 2 * 30 * 29);
        assert_eq!(graph(Family::Mesh2, 30 * 30 - 1).edges(), 2 * 30 * 29 - 2);
        assert_eq!(graph(Family::Mesh3, 10 * 10 * 10).edges(), 3 * 10 * 10 * 9);
        assert_eq!(graph(Family::PowerLaw, 100).edges(), 10 + 4 * 95);
        assert_eq!(graph(Family::Band, 100).edges(), (92 * 8) + (1..8).sum::<u64>());
        let far = |vertex: usize, other: u32| vertex.abs_diff(other as usize) > 8;
        let band = graph(Family::Band, 100);
        assert!((0..100).all(|vertex| !band.neighbours(vertex).iter().any(|other| far(vertex, *other))));
    }

    #[test]
    fn a_dense_region_is_a_tenth_and_has_24_neighbours_inside() {
        let graph = graph(Family::DenseRegion, 100 * 100);
        let degrees: Vec<usize> = (0..10_000).map(|vertex| graph.neighbours(vertex).len()).collect();
        assert_eq!(degrees.iter().max(), Some(&24));
        let dense = degrees.iter().filter(|degree| **degree > 4).count();
        assert!((950..=1050).contains(&dense), "{dense}");
        let elsewhere = generate(Family::DenseRegion, 10_000, 8).unwrap().graph;
        assert_ne!(elsewhere, graph);
    }

    #[test]
    fn a_power_law_graph_has_hubs() {
        let graph = graph(Family::PowerLaw, 10_000);
        let degrees = || (0..10_000).map(|vertex| graph.neighbours(vertex).len());
        assert!(degrees().min() == Some(4) && degrees().max() > Some(100));
    }

    #[test]
    fn the_matrix_is_symmetric_and_dominated_by_its_diagonal() {
        for family in Family::ALL {
            let matrix = laplacian(&graph(family, 50)).unwrap();
            assert_eq!(matrix.transposed(), matrix);
            for row in 0..50 {
                let (columns, values) = matrix.row(row);
                let at = columns.iter().position(|column| *column as usize == row).unwrap();
                assert_eq!(values.iter().sum::<f64>(), 1.0);
                assert!(values.iter().enumerate().all(|(place, value)| (place == at) == (*value > 0.0)));
            }
        }
    }
}

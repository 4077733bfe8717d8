//! Graphs as adjacency lists, and what a sound one is.

use apportion::error::Error;

/// Most vertices, and most entries of adjacency lists: partitioners count in 32 bits.
pub(crate) const MOST: u64 = i32::MAX as u64;

/// An undirected graph without loops: the adjacency lists of its vertices one after the other, each ascending.
///
/// Vertices are numbered from 0. Their weights say how much work they are, one number for each constraint; those of
/// edges, how much they carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    vertex_weights: Vec<u32>,
    constraints: usize,
    edge_weights: Vec<u32>,
}

/// Adjacency lists and weights as a caller has them.
#[derive(Debug, Clone, Default)]
pub struct RawGraph {
    /// Where the list of each vertex begins, and where the last one ends.
    pub offsets: Vec<u32>,
    /// The lists, one after the other.
    pub neighbours: Vec<u32>,
    /// The weights of each vertex, side by side; empty if they are all 1.
    pub vertex_weights: Vec<u32>,
    /// Number of weights of a vertex; at least 1.
    pub constraints: usize,
    /// The weight of each entry of the lists; empty if they are all 1.
    pub edge_weights: Vec<u32>,
}

/// What is wrong with a graph, and at which vertex (from 0), if it is at one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The vertex.
    pub vertex: Option<usize>,
    /// What is wrong. Vertices are numbered from the base that the caller counts from.
    pub what: String,
    /// How to mend it.
    pub remedy: &'static str,
}

impl Defect {
    fn at(vertex: usize, what: String, remedy: &'static str) -> Self {
        Self { vertex: Some(vertex), what, remedy }
    }

    fn of_all(what: impl Into<String>, remedy: &'static str) -> Self {
        Self { vertex: None, what: what.into(), remedy }
    }

    /// As an error at a place.
    pub fn at_place(self, place: impl Into<String>) -> Error {
        Error::input(place, self.what, self.remedy)
    }
}

impl Graph {
    /// A graph of adjacency lists, which are sorted. `base` is the number of the first vertex in what a [`Defect`] says.
    /// O(entries log degree).
    ///
    /// # Errors
    /// Offsets that do not ascend to the end of the lists; a neighbour that is no vertex; a loop; an edge that is listed
    /// twice, or on one side only, or with different weights; an edge of weight 0; only vertices of weight 0.
    pub fn new(raw: RawGraph, base: usize) -> Result<Self, Defect> {
        let mut graph = Self::sorted(raw, base)?;
        graph.check(base)?;
        if graph.vertex_weights.iter().all(|weight| *weight == 1) {
            graph.vertex_weights.clear();
            graph.constraints = 1;
        }
        Ok(graph)
    }

    /// The lists in ascending order.
    fn sorted(raw: RawGraph, base: usize) -> Result<Self, Defect> {
        let RawGraph { offsets, mut neighbours, vertex_weights, constraints, mut edge_weights } = raw;
        let constraints = constraints.max(1);
        let n = offsets.len().saturating_sub(1);
        let ascends = offsets.is_sorted() && offsets.first() == Some(&0);
        if !ascends || offsets.last().map(|end| *end as usize) != Some(neighbours.len()) {
            let what = format!("the offsets of {n} lists do not ascend from 0 to {}", neighbours.len());
            return Err(Defect::of_all(what, "give one more offset than there are vertices"));
        }
        if n == 0 {
            return Err(Defect::of_all("there is no vertex", "give at least one"));
        }
        if n as u64 > MOST || neighbours.len() as u64 > MOST {
            let what = format!("{n} vertices with {} neighbours are too many", neighbours.len());
            return Err(Defect::of_all(what, "divide a coarser graph, of less than 2^30 edges"));
        }
        for (what, given, wanted) in [
            ("weights of vertices", vertex_weights.len(), n * constraints),
            ("weights of edges", edge_weights.len(), neighbours.len()),
        ] {
            if given != 0 && given != wanted {
                let what = format!("there are {given} {what}, not {wanted}");
                return Err(Defect::of_all(what, "give as many as there are, or none"));
            }
        }
        let mut both = Vec::new();
        for vertex in 0..n {
            let list = offsets[vertex] as usize..offsets[vertex + 1] as usize;
            if let Some(other) = neighbours[list.clone()].iter().find(|other| **other as usize >= n) {
                let what = format!(
                    "vertex {} has the neighbour {}, but vertices are {base} to {}",
                    vertex + base,
                    *other as usize + base,
                    n - 1 + base
                );
                return Err(Defect::at(vertex, what, "number neighbours as the format does"));
            }
            if neighbours[list.clone()].is_sorted() {
                continue;
            }
            if edge_weights.is_empty() {
                neighbours[list].sort_unstable();
                continue;
            }
            both.clear();
            both.extend(list.clone().map(|place| (neighbours[place], edge_weights[place])));
            both.sort_unstable();
            for (place, (neighbour, weight)) in list.zip(&both) {
                (neighbours[place], edge_weights[place]) = (*neighbour, *weight);
            }
        }
        Ok(Self { offsets, neighbours, vertex_weights, constraints, edge_weights })
    }

    /// Follows each list from its beginning while the vertices that should be in it come in ascending order.
    fn check(&self, base: usize) -> Result<(), Defect> {
        let mut next: Vec<u32> = self.offsets[..self.vertices()].to_vec();
        let end = |vertex: usize| self.offsets[vertex + 1];
        let missing = |vertex: usize, other: usize| {
            let (vertex, other) = (vertex + base, other + base);
            let what = format!("vertex {other} has the neighbour {vertex}, but {vertex} lacks {other}");
            Defect::at(vertex - base, what, "list every edge at both of its ends")
        };
        for vertex in 0..self.vertices() {
            let list = self.list(vertex);
            for place in list.clone() {
                let other = self.neighbours[place] as usize;
                if other == vertex {
                    let what = format!("vertex {} is its own neighbour", vertex + base);
                    return Err(Defect::at(vertex, what, "remove the loop"));
                }
                if place > list.start && self.neighbours[place - 1] as usize == other {
                    let what = format!("vertex {} lists its neighbour {} twice", vertex + base, other + base);
                    return Err(Defect::at(vertex, what, "list every edge once at each end"));
                }
                let weight = self.edge_weight(place);
                if weight == 0 {
                    let what = format!("the edge from {} to {} has weight 0", vertex + base, other + base);
                    return Err(Defect::at(vertex, what, "give edges weights of 1 or more"));
                }
                // The list of the other end has come to this vertex, or lacks it; or to one that this list passed.
                let there = next[other];
                match (there < end(other)).then(|| self.neighbours[there as usize] as usize) {
                    Some(found) if found == vertex => {
                        let back = self.edge_weight(there as usize);
                        if back != weight {
                            let (from, to) = (vertex + base, other + base);
                            let what = format!("edge {from} to {to} has weight {weight}, but {back} back");
                            return Err(Defect::at(vertex, what, "give both directions the same weight"));
                        }
                        next[other] += 1;
                    }
                    Some(found) if found < vertex => return Err(missing(found, other)),
                    _ => return Err(missing(other, vertex)),
                }
            }
        }
        for (vertex, place) in next.iter().enumerate() {
            if *place < end(vertex) {
                return Err(missing(self.neighbours[*place as usize] as usize, vertex));
            }
        }
        for constraint in 0..self.constraints {
            if self.total(constraint) == 0 {
                let what = "the weights of all vertices are 0";
                return Err(Defect::of_all(what, "give vertices that are work weights of 1 or more"));
            }
        }
        Ok(())
    }

    fn edge_weight(&self, place: usize) -> u32 {
        self.edge_weights.get(place).copied().unwrap_or(1)
    }

    fn list(&self, vertex: usize) -> std::ops::Range<usize> {
        self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of edges.
    pub fn edges(&self) -> u64 {
        self.neighbours.len() as u64 / 2
    }

    /// The neighbours of a vertex, ascending.
    pub fn neighbours(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.list(vertex)]
    }

    /// The weights of the edges to the neighbours of a vertex.
    pub(crate) fn weights_of_edges(&self, vertex: usize) -> impl Iterator<Item = u32> + '_ {
        self.list(vertex).map(|place| self.edge_weight(place))
    }

    /// Number of weights of each vertex.
    pub fn constraints(&self) -> usize {
        self.constraints
    }

    /// A weight of a vertex.
    pub fn weight(&self, vertex: usize, constraint: usize) -> u32 {
        self.vertex_weights.get(vertex * self.constraints + constraint).copied().unwrap_or(1)
    }

    /// The sum of a weight over all vertices.
    pub fn total(&self, constraint: usize) -> u64 {
        (0..self.vertices()).map(|vertex| u64::from(self.weight(vertex, constraint))).sum()
    }

    /// The arrays as partitioners take them: offsets, neighbours, weights of vertices and of edges, the last two empty
    /// where they are all 1.
    pub(crate) fn arrays(&self) -> [&[u32]; 4] {
        [&self.offsets, &self.neighbours, &self.vertex_weights, &self.edge_weights]
    }

    /// The same graph with other weights of vertices, one each.
    ///
    /// # Errors
    /// Another number of weights; only zeros.
    pub fn with_weights(self, weights: Vec<u32>) -> Result<Self, Defect> {
        self.with_constraints(weights, 1)
    }

    /// The same graph with other weights of vertices, several of each side by side.
    ///
    /// # Errors
    /// As [`Graph::with_weights`], for any of the constraints.
    pub fn with_constraints(mut self, weights: Vec<u32>, constraints: usize) -> Result<Self, Defect> {
        if constraints == 0 || weights.len() != self.vertices() * constraints {
            let what = format!("there are {} weights for {} vertices", weights.len(), self.vertices());
            return Err(Defect::of_all(what, "give one for each"));
        }
        (self.vertex_weights, self.constraints) = (weights, constraints);
        match (0..constraints).any(|constraint| self.total(constraint) == 0) {
            true => Err(Defect::of_all("the weights of all vertices are 0", "give some of them work")),
            false => Ok(self),
        }
    }

    /// The graph of some vertices, ascending, and the edges between them. O(vertices + their edges).
    pub(crate) fn induced(&self, vertices: &[u32]) -> Self {
        let mut number = vec![u32::MAX; self.vertices()];
        vertices.iter().enumerate().for_each(|(new, old)| number[*old as usize] = new as u32);
        let mut graph = Self { constraints: self.constraints, ..Self::none() };
        for old in vertices.iter().map(|vertex| *vertex as usize) {
            for place in self.list(old).filter(|place| number[self.neighbours[*place] as usize] != u32::MAX) {
                graph.neighbours.push(number[self.neighbours[place] as usize]);
                graph.edge_weights.extend(self.edge_weights.get(place));
            }
            graph.offsets.push(graph.neighbours.len() as u32);
            let weights = old * self.constraints..(old + 1) * self.constraints;
            graph.vertex_weights.extend(self.vertex_weights.get(weights).into_iter().flatten());
        }
        graph
    }

    fn none() -> Self {
        let empty = Vec::new;
        Self {
            offsets: vec![0],
            neighbours: empty(),
            vertex_weights: empty(),
            constraints: 1,
            edge_weights: empty(),
        }
    }

    /// Number of parts of the graph that no edge connects. O(vertices + edges).
    pub fn components(&self) -> usize {
        let (mut seen, mut stack, mut count) = (vec![false; self.vertices()], Vec::new(), 0);
        for root in 0..self.vertices() {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            count += 1;
            stack.push(root as u32);
            while let Some(vertex) = stack.pop() {
                for other in self.neighbours(vertex as usize) {
                    if !std::mem::replace(&mut seen[*other as usize], true) {
                        stack.push(*other);
                    }
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of three vertices, the lists as given.
    fn raw(offsets: &[u32], neighbours: &[u32]) -> RawGraph {
        RawGraph { offsets: offsets.to_vec(), neighbours: neighbours.to_vec(), ..RawGraph::default() }
    }

    #[test]
    fn a_path_is_sound_in_any_order_of_its_lists() {
        let graph = Graph::new(raw(&[0, 1, 3, 4], &[1, 2, 0, 1]), 1).unwrap();
        assert_eq!((graph.vertices(), graph.edges(), graph.neighbours(1)), (3, 2, &[0, 2][..]));
        assert_eq!((graph.total(0), graph.components()), (3, 1));
        let weighted = RawGraph { edge_weights: vec![5, 7, 5, 7], ..raw(&[0, 1, 3, 4], &[1, 2, 0, 1]) };
        let graph = Graph::new(weighted, 0).unwrap();
        assert_eq!(graph.weights_of_edges(1).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(Graph::new(raw(&[0, 0, 1, 2], &[2, 1]), 0).unwrap().components(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_vertex() {
        let defect = |raw| {
            let Defect { vertex, what, .. } = Graph::new(raw, 1).unwrap_err();
            (vertex, what)
        };
        let said = |vertex: usize, what: &str| (Some(vertex), what.to_owned());
        let one_sided = "vertex 1 has the neighbour 2, but 2 lacks 1";
        assert_eq!(defect(raw(&[0, 1, 2, 3], &[1, 2, 1])), said(1, one_sided));
        assert_eq!(defect(raw(&[0, 1, 1, 1], &[1])), said(1, one_sided));
        assert_eq!(defect(raw(&[0, 0, 1, 1], &[0])), said(0, "vertex 2 has the neighbour 1, but 1 lacks 2"));
        assert_eq!(defect(raw(&[0, 1, 1], &[0])), said(0, "vertex 1 is its own neighbour"));
        assert_eq!(defect(raw(&[0, 2, 4], &[1, 1, 0, 0])), said(0, "vertex 1 lists its neighbour 2 twice"));
        let beyond = "vertex 1 has the neighbour 3, but vertices are 1 to 2";
        assert_eq!(defect(raw(&[0, 1, 1], &[2])), said(0, beyond));
        let zero = RawGraph { edge_weights: vec![0, 0], ..raw(&[0, 1, 2], &[1, 0]) };
        assert_eq!(defect(zero), said(0, "the edge from 1 to 2 has weight 0"));
        let unequal = RawGraph { edge_weights: vec![2, 3], ..raw(&[0, 1, 2], &[1, 0]) };
        assert_eq!(defect(unequal), said(0, "edge 1 to 2 has weight 2, but 3 back"));
        let idle = RawGraph { vertex_weights: vec![0, 0], ..raw(&[0, 1, 2], &[1, 0]) };
        assert_eq!(defect(idle), (None, "the weights of all vertices are 0".into()));
        assert_eq!(defect(raw(&[0], &[])), (None, "there is no vertex".into()));
    }
}

//! What a division of a graph costs: weights, cut and borders, counted.

use crate::graph::Graph;
use apportion::Rank;
use apportion::plan::{Border, GraphParts};
use std::collections::BTreeMap;

/// Counts a division among `processors`, of which `parts` has the one of each vertex. O(vertices + edges).
///
/// # Panics
/// If a part is no processor.
pub(crate) fn count_parts(graph: &Graph, parts: &[u32], processors: usize) -> GraphParts {
    let (mut vertices, mut weights) = (vec![0; processors], vec![0.0; processors]);
    let mut cut = 0;
    for (vertex, part) in parts.iter().enumerate() {
        vertices[*part as usize] += 1;
        weights[*part as usize] += f64::from(graph.weight(vertex, 0));
        let edges = graph.neighbours(vertex).iter().zip(graph.weights_of_edges(vertex));
        let across = edges.filter(|(other, _)| parts[**other as usize] != *part);
        cut += across.map(|(_, weight)| u64::from(weight)).sum::<u64>();
    }
    let borders = borders(|vertex| graph.neighbours(vertex), parts, processors);
    // Every edge was seen from both sides.
    GraphParts { edges: graph.edges(), edge_cut: Some(cut / 2), vertices, weights, borders }
}

/// What processors send to each other, of which `parts` has the one of each vertex, where `readers` are the vertices that
/// need the value of one. Each value is sent once to each processor.
pub(crate) fn borders<'a>(
    readers: impl Fn(usize) -> &'a [u32],
    parts: &[u32],
    processors: usize,
) -> Vec<Border> {
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    // The last vertex whose value each processor was sent.
    let mut last = vec![usize::MAX; processors];
    for (vertex, part) in parts.iter().enumerate() {
        for theirs in readers(vertex).iter().map(|other| parts[*other as usize]) {
            if theirs != *part && std::mem::replace(&mut last[theirs as usize], vertex) != vertex {
                *pairs.entry((*part, theirs)).or_default() += 1;
            }
        }
    }
    let border = |((from, to), vertices): ((u32, u32), u64)| Border {
        from: Rank(from as usize),
        to: Rank(to as usize),
        vertices,
    };
    pairs.into_iter().map(border).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RawGraph;

    /// A star of vertex 0 with 1, 2 and 3, and an edge from 2 to 3: two parts of which one has 0 and 1.
    #[test]
    fn each_value_is_sent_once_to_each_processor() {
        let raw = RawGraph {
            offsets: vec![0, 3, 4, 6, 8],
            neighbours: vec![1, 2, 3, 0, 0, 3, 0, 2],
            vertex_weights: vec![4, 1, 1, 2],
            edge_weights: vec![1, 5, 6, 1, 5, 9, 6, 9],
            constraints: 1,
        };
        let counted = count_parts(&Graph::new(raw, 0).unwrap(), &[2, 2, 0, 0], 3);
        assert_eq!((counted.edges, counted.edge_cut), (4, Some(11)));
        assert_eq!((counted.vertices, counted.weights), (vec![2, 0, 2], vec![3.0, 0.0, 5.0]));
        let border = |from, to, vertices| Border { from: Rank(from), to: Rank(to), vertices };
        assert_eq!(counted.borders, [border(0, 2, 2), border(2, 0, 1)]);
    }
}

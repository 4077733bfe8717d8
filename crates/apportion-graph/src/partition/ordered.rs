//! Cuts along an order: that of the vertices, or that of their places along an axis.

use crate::coordinates::Coordinates;
use crate::graph::Graph;

/// How many of these weights in a row come next to a fraction of their sum.
fn cut(weights: impl Iterator<Item = u32> + Clone, fraction: f64) -> usize {
    let all: u64 = weights.clone().map(u64::from).sum();
    let (wanted, mut sum, mut count) = (fraction * all as f64, 0.0, 0);
    for weight in weights {
        let weight = f64::from(weight);
        // The vertex across the cut goes where more than half of it is.
        if sum + weight / 2.0 > wanted {
            break;
        }
        sum += weight;
        count += 1;
    }
    count
}

/// Consecutive vertices for each part.
pub(super) fn contiguous(graph: &Graph, targets: &[f64]) -> Vec<u32> {
    let (all, sum) = (graph.total(0) as f64, targets.iter().sum::<f64>());
    let ends = targets.iter().scan(0.0, |so_far, target| {
        *so_far += target;
        Some(*so_far / sum * all)
    });
    let ends: Vec<f64> = ends.collect();
    let (mut before, mut part) = (0.0, 0);
    let one = |vertex: usize| {
        let weight = f64::from(graph.weight(vertex, 0));
        while part + 1 < ends.len() && before + weight / 2.0 > ends[part] {
            part += 1;
        }
        before += weight;
        part as u32
    };
    (0..graph.vertices()).map(one).collect()
}

/// Cuts across the longer side of a box around the vertices, between halves of the parts, until each has its own.
pub(super) fn bisected(graph: &Graph, coordinates: &Coordinates, targets: &[f64]) -> Vec<u32> {
    let mut parts = vec![0; graph.vertices()];
    let mut vertices: Vec<u32> = (0..graph.vertices() as u32).collect();
    bisect(graph, coordinates, targets, 0, &mut vertices, &mut parts);
    parts
}

fn bisect(
    graph: &Graph,
    coordinates: &Coordinates,
    targets: &[f64],
    first: u32,
    vertices: &mut [u32],
    parts: &mut [u32],
) {
    if targets.len() == 1 {
        vertices.iter().for_each(|vertex| parts[*vertex as usize] = first);
        return;
    }
    let (low, high) = targets.split_at(targets.len() / 2);
    let fraction = low.iter().sum::<f64>() / targets.iter().sum::<f64>();
    let at = |vertex: u32, axis: usize| coordinates.point(vertex as usize)[axis];
    let side = |axis: usize| {
        let places = || vertices.iter().map(|vertex| at(*vertex, axis));
        places().fold(f64::NEG_INFINITY, f64::max) - places().fold(f64::INFINITY, f64::min)
    };
    let axis = (0..coordinates.axes()).max_by(|a, b| side(*a).total_cmp(&side(*b))).unwrap_or(0);
    vertices.sort_unstable_by(|a, b| at(*a, axis).total_cmp(&at(*b, axis)).then(a.cmp(b)));
    let count = cut(vertices.iter().map(|vertex| graph.weight(*vertex as usize, 0)), fraction);
    let (left, right) = vertices.split_at_mut(count);
    bisect(graph, coordinates, low, first, left, parts);
    bisect(graph, coordinates, high, first + low.len() as u32, right, parts);
}

//! Predecessors as trees. Each length and its last step come from one path, but lengths are rounded, so that
//! where cycles have length 0 the steps of different paths may lead round such a cycle. Rows in which they do
//! are given a tree of best paths, whose lengths are those of the row up to rounding.
//!
//! Source: Dijkstra 1959, doi:10.1007/BF01386390, on the weights w(u, v) + d(u) - d(v) of Johnson 1977,
//! doi:10.1145/321992.321993, which are 0 on best paths and not negative elsewhere.

use super::cycles::exact_sum;
use crate::error::Result;
use crate::geometry::{Rect, Span};
use crate::kernels::{Kernel, PathElement, Tropical};
use crate::matrix::{Element, LocalBlocks};
use crate::run::{World, redistribute};

/// Makes the steps of each row a tree that begins at the row's own vertex. Every rank calls it.
///
/// # Errors
/// Interrupted, or another rank failed.
pub(super) fn grow_trees<T: Tropical>(
    kernel: Kernel<PathElement<T>>,
    edges: &LocalBlocks<PathElement<T>>,
    paths: &mut LocalBlocks<PathElement<T>>,
    vertices: u64,
    world: &World,
) -> Result<()>
where
    PathElement<T>: Element,
{
    let all = Span::new(0, vertices);
    let own = all.blocks(vertices.div_ceil(world.size() as u64)).nth(world.rank());
    let strip: Vec<Rect> = own.iter().map(|rows| Rect::new(*rows, all)).collect();
    let whole = world.size() == 1 && paths.len() == 1;
    let mut rows = if whole { std::mem::take(paths) } else { redistribute(world, paths, &strip)? };
    let n = vertices as usize;
    let mut broken: Vec<(usize, &mut [PathElement<T>])> = Vec::new();
    for (rect, elements) in &mut rows {
        let numbered = (rect.rows.start as usize..).zip(elements.chunks_exact_mut(n));
        broken.extend(numbered.filter(|(source, row)| !is_tree(*source, row)));
    }
    let any = world.all_reduce(&[u8::from(!broken.is_empty())], u8::max)?[0] == 1;
    if any {
        let edges = redistribute(world, edges, &[Rect::new(all, all)])?;
        for (source, row) in broken {
            world.check()?;
            grow_tree(kernel, source, &edges[0].1, row);
        }
    }
    if whole {
        *paths = rows;
    } else if any {
        let own: Vec<Rect> = paths.iter().map(|(rect, _)| *rect).collect();
        *paths = redistribute(world, &rows, &own)?;
    }
    Ok(())
}

/// Whether the steps back from each vertex end at `source`. Time O(n).
fn is_tree<T>(source: usize, row: &[PathElement<T>]) -> bool {
    const UNKNOWN: usize = usize::MAX;
    // The walk that has visited a vertex.
    let mut visited = vec![UNKNOWN; row.len()];
    for start in (0..row.len()).filter(|vertex| row[*vertex].edges > 0) {
        let mut at = start;
        while row[at].edges > 0 && visited[at] == UNKNOWN {
            visited[at] = start;
            at = row[at].last as usize;
        }
        let ends = if row[at].edges == 0 { at == source } else { visited[at] != start };
        if !ends {
            return false;
        }
    }
    true
}

/// Replaces the steps of a row by those of a tree of best paths: of least length, then of fewest edges, then
/// by the smaller vertex. Time O(n^2).
fn grow_tree<T: Tropical>(
    kernel: Kernel<PathElement<T>>,
    source: usize,
    edges: &[PathElement<T>],
    row: &mut [PathElement<T>],
) where
    PathElement<T>: Element,
{
    let n = row.len();
    let longest = kernel.semiring() == crate::kernels::Semiring::MaxPlus;
    // What a path is longer than the best, its edges, and the vertex before its end.
    let mut found = vec![(f64::INFINITY, u32::MAX, usize::MAX); n];
    let mut open: Vec<usize> = (0..n).filter(|vertex| row[*vertex] != kernel.zero()).collect();
    found[source] = (0.0, 0, source);
    while !open.is_empty() {
        let key = |vertex: usize| (found[vertex].0, found[vertex].1, vertex);
        let least = (0..open.len()).min_by(|x, y| key(open[*x]).partial_cmp(&key(open[*y])).expect("no NaN"));
        let from = open.swap_remove(least.expect("it is not empty"));
        let (excess, count, _) = found[from];
        if excess == f64::INFINITY {
            return;
        }
        let length = row[from].to_f64();
        for &to in &open {
            let edge = edges[from * n + to];
            if edge.edges == 0 {
                continue;
            }
            let (sum, error) = exact_sum(length, edge.to_f64());
            let more = sum - row[to].to_f64() + error;
            let more = if longest { -more } else { more };
            // Not below 0 but for rounding; NaN where lengths overflow.
            let path = (excess + more.max(0.0), count + 1, from);
            if path < found[to] {
                found[to] = path;
            }
        }
        if from != source {
            (row[from].edges, row[from].last) = (count, found[from].2 as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(length: f64, edges: u32, last: u32) -> PathElement<f64> {
        PathElement { length, edges, last }
    }

    #[test]
    fn loops_and_foreign_ends_are_no_trees() {
        let (one, none) = (path(0.0, 0, 0), path(f64::INFINITY, 0, 0));
        assert!(is_tree(0, &[one, path(1.0, 1, 0), path(2.0, 2, 1), none]));
        assert!(!is_tree(0, &[one, path(1.0, 2, 2), path(1.0, 2, 1), none]), "a loop");
        assert!(!is_tree(0, &[one, path(1.0, 1, 1), none, none]), "a loop of one");
        assert!(!is_tree(0, &[one, path(1.0, 2, 2), none, none]), "ends at a vertex without a path");
    }

    /// 0 -> 1 -> 2 -> 1 with a cycle of length 0, and a longer edge to 2.
    #[test]
    fn a_loop_becomes_a_tree_of_best_paths() {
        let none = path(f64::INFINITY, 0, 0);
        let edge = |from: u32, length: f64| path(length, 1, from);
        let edges = [none, edge(0, 1.0), edge(0, 9.0), none, none, edge(1, -2.0), none, edge(2, 2.0), none];
        let mut row = [path(0.0, 0, 0), path(1.0, 3, 2), path(-1.0, 2, 1)];
        grow_tree(Kernel::paths(crate::kernels::Semiring::MinPlus).unwrap(), 0, &edges, &mut row);
        assert_eq!(row, [path(0.0, 0, 0), path(1.0, 1, 0), path(-1.0, 2, 1)]);
    }
}

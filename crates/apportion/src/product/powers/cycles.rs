//! Cycles that improve a path each time it goes round: errors if their weights say so, and cycles of weight 0
//! if only the rounding of their weights does.
//!
//! Source: Bellman 1958, "On a routing problem", doi:10.1090/qam/102435, whose predecessors close a cycle as
//! soon as one improves (Cherkassky and Goldberg 1999, doi:10.1007/s101070050058).

use crate::error::{Error, Result};
use crate::kernels::{Kernel, Semiring};
use crate::matrix::Element;

/// A cycle has weight 0 if its weight differs from 0 by at most this many [`Element::EPSILON`] of the sum of
/// its edges' sizes. Each edge is rounded when it is written as a number, and often in a subtraction before.
const ROUNDINGS: f64 = 4.0;

/// Vertices of a cycle that a message shows.
const SHOWN: usize = 12;

/// Whether a path from a vertex to itself is better than the empty one.
pub(super) fn improves<T: Element>(kernel: Kernel<T>, length: T) -> bool {
    match kernel.semiring() {
        Semiring::MaxPlus => length > kernel.one(),
        Semiring::MinPlus => length < kernel.one(),
        _ => false,
    }
}

/// Decides about a graph in which a path from `vertex` to itself was found to be better than the empty one:
/// the note of a run that counts its cycles as 0, if they are so up to the rounding of their edges. `edges`
/// has the weights row by row, `check` is called now and then. Time O(n^2) for each edge on the longest of
/// the best paths.
///
/// # Errors
/// A cycle that improves forever, with its weight and vertices (exit code 1); what `check` returns.
pub(super) fn judge<T: Element>(
    kernel: Kernel<T>,
    edges: &[T],
    vertex: u64,
    check: &impl Fn() -> Result<()>,
) -> Result<String> {
    let graph = Graph::new(kernel, edges);
    let whole_numbers = T::EPSILON >= 0.5;
    let tolerance = if whole_numbers { 0.0 } else { ROUNDINGS * T::EPSILON };
    let (sign, kind) = if graph.sign < 0.0 { ("positive", "longest") } else { ("negative", "shortest") };
    if let Some(cycle) = graph.cycle_below(tolerance, check)? {
        let (weight, size) = graph.weight(&cycle);
        let close = !whole_numbers && weight.abs() <= T::EPSILON.sqrt() * size;
        return Err(Error::infeasible(
            format!(
                "a cycle of {sign} weight passes through vertex {}: {} weighs {}, so that no path is {kind}",
                if cycle.contains(&(vertex as usize)) { vertex } else { cycle[0] as u64 },
                show(&cycle, vertex as usize),
                show_weight::<T>(weight)
            ),
            if close {
                "change or remove one of its edges; its weight is close to rounding: if it should be 0, scale \
                 the weights to whole numbers"
            } else {
                "change or remove one of its edges"
            },
        ));
    }
    if whole_numbers {
        // The sums are exact, but not in double precision: one of huge numbers has overflowed.
        let what = format!("a cycle of {sign} weight passes through vertex {vertex}: no path is {kind}");
        return Err(Error::infeasible(what, "change or remove one of its edges"));
    }
    let which = match graph.cycle_below(0.0, check)? {
        None => format!("paths from vertex {vertex} to itself have length 0 up to rounding"),
        Some(cycle) => format!(
            "the cycle {} weighs {}, which is 0 up to the rounding of its edges",
            show(&cycle, vertex as usize),
            show_weight::<T>(graph.weight(&cycle).0)
        ),
    };
    Ok(format!("{which}: it counts as 0, and lengths are right up to rounding (exact with whole numbers)"))
}

/// The vertices in order, from `first` if it is among them, and back.
fn show(cycle: &[usize], first: usize) -> String {
    let at = cycle.iter().position(|vertex| *vertex == first).unwrap_or(0);
    let round: Vec<String> = (0..=cycle.len()).map(|i| cycle[(at + i) % cycle.len()].to_string()).collect();
    if round.len() <= SHOWN + 1 {
        return round.join(" -> ");
    }
    let (head, tail) = (&round[..SHOWN / 2], &round[round.len() - SHOWN / 2..]);
    let between = round.len() - SHOWN;
    format!("{} -> ({between} more) -> {}", head.join(" -> "), tail.join(" -> "))
}

/// As short as the element type shows it.
fn show_weight<T: Element>(weight: f64) -> String {
    let moderate = weight == 0.0 || (1e-4..1e15).contains(&weight.abs());
    match T::EPSILON == f64::from(f32::EPSILON) {
        true if moderate => (weight as f32).to_string(),
        true => format!("{:e}", weight as f32),
        false if moderate => weight.to_string(),
        false => format!("{weight:e}"),
    }
}

/// The edges of a graph, of which short paths are wanted.
struct Graph<'a, T> {
    edges: &'a [T],
    absent: T,
    vertices: usize,
    /// 1, or -1 if the best paths are the longest.
    sign: f64,
}

impl<'a, T: Element> Graph<'a, T> {
    fn new(kernel: Kernel<T>, edges: &'a [T]) -> Self {
        let sign = if kernel.semiring() == Semiring::MaxPlus { -1.0 } else { 1.0 };
        Self { edges, absent: kernel.zero(), vertices: edges.len().isqrt(), sign }
    }

    fn row(&self, from: usize) -> &[T] {
        &self.edges[from * self.vertices..][..self.vertices]
    }

    /// The weight of a cycle, and the sum of its edges' sizes.
    fn weight(&self, cycle: &[usize]) -> (f64, f64) {
        let next = cycle.iter().cycle().skip(1);
        let weights = cycle.iter().zip(next).map(|(from, to)| self.row(*from)[*to].to_f64());
        let (sum, size) =
            weights.fold((Twofold::ZERO, 0.0), |(sum, size), weight| (sum.plus(weight), size + weight.abs()));
        (sum.high, size)
    }

    /// A cycle whose weight is below 0 by more than `tolerance` times the sum of its edges' sizes; `None` if
    /// there is none. Lengths are sums of two doubles, so that their own rounding does not count.
    fn cycle_below(&self, tolerance: f64, check: &impl Fn() -> Result<()>) -> Result<Option<Vec<usize>>> {
        let n = self.vertices;
        // Paths begin anywhere.
        let mut lengths = vec![Twofold::ZERO; n];
        let mut before: Vec<Option<usize>> = vec![None; n];
        let mut shortened = vec![true; n];
        for _ in 0..=n {
            check()?;
            for from in 0..n {
                if !std::mem::replace(&mut shortened[from], false) {
                    continue;
                }
                for (to, edge) in self.row(from).iter().enumerate().filter(|(_, edge)| **edge != self.absent)
                {
                    let weight = self.sign * edge.to_f64();
                    let length = lengths[from].plus(weight).plus(tolerance * weight.abs());
                    if length.is_below(lengths[to]) {
                        (lengths[to], before[to], shortened[to]) = (length, Some(from), true);
                    }
                }
            }
            if !shortened.contains(&true) {
                return Ok(None);
            }
            if let Some(cycle) = cycle_in(&before) {
                return Ok(Some(cycle));
            }
        }
        Ok(None)
    }
}

/// A cycle among the vertices and those before them, in the direction of the edges.
fn cycle_in(before: &[Option<usize>]) -> Option<Vec<usize>> {
    // The walk that has visited a vertex.
    let mut visited = vec![usize::MAX; before.len()];
    for start in 0..before.len() {
        let mut at = Some(start);
        while let Some(vertex) = at.filter(|vertex| visited[*vertex] == usize::MAX) {
            visited[vertex] = start;
            at = before[vertex];
        }
        let Some(first) = at.filter(|vertex| visited[*vertex] == start) else { continue };
        let back = std::iter::successors(Some(first), |vertex| before[*vertex].filter(|v| *v != first));
        let mut cycle: Vec<usize> = back.collect();
        cycle.reverse();
        return Some(cycle);
    }
    None
}

/// The unevaluated sum of two doubles: about 32 digits.
#[derive(Debug, Clone, Copy)]
struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    const ZERO: Self = Self { high: 0.0, low: 0.0 };

    #[inline(always)]
    fn plus(self, x: f64) -> Self {
        let (sum, error) = exact_sum(self.high, x);
        let (high, low) = exact_sum(sum, self.low + error);
        Self { high, low }
    }

    #[inline(always)]
    fn is_below(self, other: Self) -> bool {
        self.high < other.high || (self.high == other.high && self.low < other.low)
    }
}

/// The rounded sum and its error. Source: Knuth, "The Art of Computer Programming", 4.2.2, theorem B.
#[inline(always)]
pub(super) fn exact_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let of_y = sum - x;
    (sum, (x - (sum - of_y)) + (y - of_y))
}

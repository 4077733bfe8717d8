//! The maximum cycle mean, which is the eigenvalue of a max-plus matrix: Howard's policy iteration.

/// An edge of a graph of events: `to` happens at least `time` after the event of `from` that was `tokens`
/// earlier in its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CycleEdge {
    /// The event before.
    pub(crate) from: usize,
    /// The event after.
    pub(crate) to: usize,
    /// The time between.
    pub(crate) time: u64,
    /// The delay in numbers of events.
    pub(crate) tokens: u64,
}

/// A cycle and its mean: time divided by tokens, exactly, in lowest terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// Time of the mean.
    pub(crate) time: u128,
    /// Tokens of the mean; 0 for a cycle without any, whose events can never happen.
    pub tokens: u128,
    /// Indices of the cycle's edges, in order.
    pub(crate) edges: Vec<usize>,
}

impl Cycle {
    /// Time per event.
    pub fn mean(&self) -> f64 {
        self.time as f64 / self.tokens as f64
    }

    fn new(edges: Vec<usize>, all: &[CycleEdge]) -> Self {
        let sum =
            |part: fn(&CycleEdge) -> u64| edges.iter().map(|&e| u128::from(part(&all[e]))).sum::<u128>();
        let (time, tokens) = (sum(|e| e.time), sum(|e| e.tokens));
        let divisor = divisor(time, tokens).max(1);
        Self { time: time / divisor, tokens: tokens / divisor, edges }
    }

    /// True if this mean is larger; a cycle without tokens is larger than any other.
    fn exceeds(&self, other: &Self) -> bool {
        match (self.tokens, other.tokens) {
            (_, 0) => false,
            (0, _) => true,
            _ => self.time * other.tokens > other.time * self.tokens,
        }
    }
}

fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The cycle with the largest mean of a graph with `nodes` nodes; `None` if there is no cycle. A cycle
/// without tokens comes before all others.
///
/// Howard's policy iteration on each strongly connected component, in whole numbers: exact. Every round is
/// O(nodes + edges); few are needed in practice.
///
/// Source: Cochet-Terrasson, Cohen, Gaubert, McGettrick and Quadrat, Numerical computation of spectral
/// elements in max-plus algebra, IFAC Conference on System Structure and Control, 1998.
///
/// # Panics
/// If an edge joins a node that is not below `nodes`.
pub(crate) fn maximum_cycle(nodes: usize, edges: &[CycleEdge]) -> Option<Cycle> {
    let components = components(nodes, edges);
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); components.iter().max().map_or(0, |last| last + 1)];
    for (number, edge) in edges.iter().enumerate() {
        if components[edge.from] == components[edge.to] {
            inside[components[edge.from]].push(number);
        }
    }
    let mut best: Option<Cycle> = None;
    for within in inside.into_iter().filter(|within| !within.is_empty()) {
        let cycle = tokenless(nodes, edges, &within).unwrap_or_else(|| howard(edges, &within));
        if best.as_ref().is_none_or(|best| cycle.exceeds(best)) {
            best = Some(cycle);
        }
    }
    best
}

/// A cycle of edges without tokens.
fn tokenless(nodes: usize, edges: &[CycleEdge], within: &[usize]) -> Option<Cycle> {
    let without: Vec<usize> = within.iter().copied().filter(|&e| edges[e].tokens == 0).collect();
    let some: Vec<CycleEdge> = without.iter().map(|&e| edges[e]).collect();
    if some.is_empty() {
        return None;
    }
    let components = components(nodes, &some);
    let closed = |e: &&usize| components[edges[**e].from] == components[edges[**e].to];
    let first = *without.iter().find(closed)?;
    // A way back from the edge's end to its start, within the component.
    let (start, end) = (edges[first].from, edges[first].to);
    let mut came = vec![None; nodes];
    let mut next = vec![end];
    let mut seen = vec![false; nodes];
    seen[end] = true;
    while let Some(node) = next.pop() {
        for &e in without.iter().filter(|&&e| edges[e].from == node) {
            if !std::mem::replace(&mut seen[edges[e].to], true) {
                came[edges[e].to] = Some(e);
                next.push(edges[e].to);
            }
        }
    }
    let mut cycle = vec![first];
    let mut node = start;
    let mut back = Vec::new();
    while node != end {
        let e = came[node].expect("the component is strongly connected");
        back.push(e);
        node = edges[e].from;
    }
    cycle.extend(back.into_iter().rev());
    Some(Cycle::new(cycle, edges))
}

/// Policy iteration in a strongly connected component that is given by its edges.
fn howard(edges: &[CycleEdge], within: &[usize]) -> Cycle {
    // Nodes of the component, renumbered.
    let mut nodes: Vec<usize> = within.iter().map(|&e| edges[e].from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let at = |node: usize| nodes.binary_search(&node).expect("a node of the component");
    let ends: Vec<(usize, usize)> = within.iter().map(|&e| (at(edges[e].from), at(edges[e].to))).collect();
    let mut entering: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut policy: Vec<usize> = vec![usize::MAX; nodes.len()];
    for (number, &(from, to)) in ends.iter().enumerate() {
        entering[to].push(number);
        let longer = |old: usize| edges[within[old]].time < edges[within[number]].time;
        if policy[from] == usize::MAX || longer(policy[from]) {
            policy[from] = number;
        }
    }
    loop {
        let cycle = best_cycle(&policy, &ends, edges, within);
        let mean = |number: usize| {
            let edge = &edges[within[number]];
            (u128::from(edge.time) * cycle.tokens) as i128 - (u128::from(edge.tokens) * cycle.time) as i128
        };
        // Values by the policy, from the cycle backwards; nodes that do not reach it are turned towards it.
        let start = at(edges[cycle.edges[0]].from);
        let mut value: Vec<Option<i128>> = vec![None; nodes.len()];
        value[start] = Some(0);
        for turn in [false, true] {
            let mut next: Vec<usize> = (0..nodes.len()).filter(|&node| value[node].is_some()).collect();
            while let Some(node) = next.pop() {
                let after = value[node].expect("it has a value");
                for &number in &entering[node] {
                    let from = ends[number].0;
                    if value[from].is_none() && (turn || policy[from] == number) {
                        policy[from] = number;
                        value[from] = Some(mean(number) + after);
                        next.push(from);
                    }
                }
            }
        }
        let value: Vec<i128> = value.into_iter().map(|v| v.expect("strongly connected")).collect();
        let mut better = value.clone();
        for (number, &(from, to)) in ends.iter().enumerate() {
            let other = mean(number) + value[to];
            if other > better[from] {
                (better[from], policy[from]) = (other, number);
            }
        }
        if better == value {
            return cycle;
        }
    }
}

/// The best of the cycles that a policy leads to.
fn best_cycle(policy: &[usize], ends: &[(usize, usize)], edges: &[CycleEdge], within: &[usize]) -> Cycle {
    let mut round = vec![0; policy.len()];
    let mut best: Option<Cycle> = None;
    for start in 0..policy.len() {
        let mut node = start;
        while round[node] == 0 {
            round[node] = start + 1;
            node = ends[policy[node]].1;
        }
        if round[node] != start + 1 {
            continue;
        }
        let (mut cycle, first) = (Vec::new(), node);
        loop {
            cycle.push(within[policy[node]]);
            node = ends[policy[node]].1;
            if node == first {
                break;
            }
        }
        let cycle = Cycle::new(cycle, edges);
        if best.as_ref().is_none_or(|best| cycle.exceeds(best)) {
            best = Some(cycle);
        }
    }
    best.expect("every policy leads to a cycle")
}

/// The strongly connected component of each node, by number (Tarjan 1972, without recursion).
fn components(nodes: usize, edges: &[CycleEdge]) -> Vec<usize> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    edges.iter().for_each(|edge| after[edge.from].push(edge.to));
    let mut component = vec![usize::MAX; nodes];
    let (mut index, mut low) = (vec![0; nodes], vec![0; nodes]);
    let (mut count, mut found, mut open) = (0, 0, Vec::new());
    for root in 0..nodes {
        if index[root] > 0 {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some((node, way)) = path.last_mut() {
            let node = *node;
            if *way == 0 {
                count += 1;
                (index[node], low[node]) = (count, count);
                open.push(node);
            }
            if let Some(&next) = after[node].get(*way) {
                *way += 1;
                if index[next] == 0 {
                    path.push((next, 0));
                } else if component[next] == usize::MAX {
                    low[node] = low[node].min(index[next]);
                }
                continue;
            }
            if low[node] == index[node] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[node]);
            }
        }
    }
    component
}

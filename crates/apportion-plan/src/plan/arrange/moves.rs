//! Small changes of a column-based arrangement; each evaluates only the columns that it touches.

use super::columns::{Column, Columns, Rule};
use super::local::Changing;
use crate::random::Random;
use std::collections::BTreeMap;

/// The state that a change replaced, to be restored in reverse order.
enum Old {
    Column(usize, Column),
    Inside(usize, f64),
    Beside(usize, f64),
    Home(usize, usize),
    Order(Vec<usize>),
}

/// An arrangement with the stored cost of every column and of every pair of neighbours.
pub(super) struct Moves<'a> {
    state: Columns<'a>,
    /// Place -> column.
    order: Vec<usize>,
    /// Cost of B's ring, by column.
    inside: Vec<f64>,
    /// Cost of A's pieces, by place x place.
    beside: Vec<f64>,
    /// Owner -> column.
    home: Vec<usize>,
    /// Owners of equal shares that occur in more than one column, by class.
    equals: Vec<Vec<usize>>,
    /// Columns with at least two blocks.
    movable: Vec<usize>,
    journal: Vec<Old>,
    best: (Vec<Column>, Vec<usize>),
}

impl<'a> Moves<'a> {
    /// Computes all costs once. O(p), for one-to-all O(c p).
    pub(super) fn of(state: Columns<'a>) -> Self {
        let n = state.columns.len();
        let mut home = vec![usize::MAX; state.distances.len()];
        let mut shares: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        for (id, column) in state.columns.iter().enumerate() {
            for block in &column.blocks {
                home[block.owner] = id;
                shares.entry(column.share(block.height)).or_default().push(block.owner);
            }
        }
        let equals = shares.into_values().filter(|c| c.iter().any(|&o| home[o] != home[c[0]])).collect();
        let movable = (0..n).filter(|&i| state.columns[i].blocks.len() > 1).collect();
        let inside = state.columns.iter().map(|c| state.inside(c)).collect();
        let best = (state.columns.clone(), (0..n).collect());
        let mut moves = Self {
            order: (0..n).collect(),
            inside,
            beside: vec![0.0; n * n],
            home,
            equals,
            movable,
            journal: Vec::new(),
            best,
            state,
        };
        (0..n).for_each(|place| moves.neighbours(place));
        moves.journal.clear();
        moves
    }

    /// False if nothing can be changed.
    pub(super) fn can_move(&self) -> bool {
        !self.movable.is_empty() || !self.equals.is_empty() || self.orders_matter()
    }

    /// The current cost, from the stored ones. O(c), for one-to-all O(c^2).
    pub(super) fn cost(&self) -> f64 {
        let n = self.order.len();
        self.state.rule.total(n, |i, j| self.beside[i * n + j]) + self.inside.iter().sum::<f64>()
    }

    /// The best arrangement kept.
    pub(super) fn best(self) -> Columns<'a> {
        let columns = self.best.1.iter().map(|&i| self.best.0[i].clone()).collect();
        Columns { columns, ..self.state }
    }

    fn orders_matter(&self) -> bool {
        match self.state.rule {
            Rule::OneToAll => false,
            Rule::Chain => self.order.len() > 2,
            Rule::Ring | Rule::AllButLeast => self.order.len() > 3,
        }
    }

    /// Recomputes the cost of a place beside its neighbours.
    fn neighbours(&mut self, place: usize) {
        let n = self.order.len();
        if n < 2 {
            return;
        }
        let pairs: Vec<(usize, usize)> = match self.state.rule {
            Rule::OneToAll => (0..n).filter(|&x| x != place).flat_map(|x| [(place, x), (x, place)]).collect(),
            _ => vec![((place + n - 1) % n, place), (place, (place + 1) % n)],
        };
        for (i, j) in pairs {
            let columns = &self.state.columns;
            let new = self.state.beside(&columns[self.order[i]], &columns[self.order[j]]);
            let old = std::mem::replace(&mut self.beside[i * n + j], new);
            self.journal.push(Old::Beside(i * n + j, old));
        }
    }

    fn replace(&mut self, id: usize, column: Column, same_owners: bool) {
        // If each sends to all others, the order in a column does not matter.
        if !(same_owners && self.state.rule == Rule::OneToAll) {
            let new = self.state.inside(&column);
            let old = std::mem::replace(&mut self.inside[id], new);
            self.journal.push(Old::Inside(id, old));
        }
        let old = std::mem::replace(&mut self.state.columns[id], column);
        self.journal.push(Old::Column(id, old));
    }

    fn place_of(&self, id: usize) -> usize {
        self.order.iter().position(|&x| x == id).expect("every column has a place")
    }

    /// Exchanges two blocks, reverses or moves a range of blocks, or reverses the whole column.
    fn inside_a_column(&mut self, random: &mut Random) {
        let id = self.movable[random.below(self.movable.len())];
        let mut column = self.state.columns[id].clone();
        let blocks = &mut column.blocks;
        let (x, y) = (random.below(blocks.len()), random.below(blocks.len()));
        let (x, y) = (x.min(y), x.max(y));
        match random.below(5) {
            0 | 1 => blocks.swap(x, y),
            2 => blocks[x..=y].reverse(),
            3 => {
                let by = 1 + random.below((y - x).max(1));
                blocks[x..=y].rotate_left(by.min(y - x));
            }
            _ => blocks.rotate_left(x),
        }
        self.replace(id, column, true);
        self.neighbours(self.place_of(id));
    }

    /// Exchanges owners of equal shares in different columns.
    fn across_columns(&mut self, random: &mut Random) {
        let class = &self.equals[random.below(self.equals.len())];
        let (a, b) = (class[random.below(class.len())], class[random.below(class.len())]);
        let (ca, cb) = (self.home[a], self.home[b]);
        if ca == cb {
            return;
        }
        for (id, from, to) in [(ca, a, b), (cb, b, a)] {
            let mut column = self.state.columns[id].clone();
            let block = column.blocks.iter_mut().find(|x| x.owner == from).expect("owners are at home");
            block.owner = to;
            self.replace(id, column, false);
            self.journal.push(Old::Home(to, self.home[to]));
            self.home[to] = id;
        }
        self.neighbours(self.place_of(ca));
        self.neighbours(self.place_of(cb));
    }

    /// Exchanges two columns, or moves one next to another.
    fn columns(&mut self, random: &mut Random) {
        let n = self.order.len();
        let (i, j) = (random.below(n), random.below(n));
        self.journal.push(Old::Order(self.order.clone()));
        if random.below(2) == 0 || i.abs_diff(j) > 4 {
            self.order.swap(i, j);
            self.neighbours(i);
            self.neighbours(j);
        } else {
            let (x, y) = (i.min(j), i.max(j));
            self.order[x..=y].rotate_left(1);
            (x..=y).for_each(|place| self.neighbours(place));
        }
    }
}

impl Changing for Moves<'_> {
    fn change(&mut self, random: &mut Random) -> f64 {
        self.journal.clear();
        let inside = if self.movable.is_empty() { 0 } else { 6 };
        let across = if self.equals.is_empty() { 0 } else { 3 };
        let order = usize::from(self.orders_matter());
        match random.below(inside + across + order) {
            x if x < inside => self.inside_a_column(random),
            x if x < inside + across => self.across_columns(random),
            _ => self.columns(random),
        }
        self.cost()
    }

    fn undo(&mut self) {
        while let Some(old) = self.journal.pop() {
            match old {
                Old::Column(id, column) => self.state.columns[id] = column,
                Old::Inside(id, cost) => self.inside[id] = cost,
                Old::Beside(pair, cost) => self.beside[pair] = cost,
                Old::Home(owner, id) => self.home[owner] = id,
                Old::Order(order) => self.order = order,
            }
        }
    }

    fn keep(&mut self) {
        self.best.0.clone_from(&self.state.columns);
        self.best.1.clone_from(&self.order);
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Block;
    use super::super::columns::tests::three_clusters;
    use super::super::distance::Distances;
    use super::super::every_objective;
    use super::*;

    /// After any changes, reverted or not, the stored costs equal those computed from scratch.
    #[test]
    fn the_incremental_cost_is_the_cost() {
        let platform = three_clusters(17);
        let heights: [&[u64]; 5] = [&[1, 3, 5], &[3, 1, 2, 3], &[9], &[4, 4, 1], &[1, 1, 1, 1, 2, 3]];
        let mut owners = 0..;
        let columns = heights.map(|heights| Column {
            width: 7,
            blocks: heights
                .iter()
                .zip(owners.by_ref())
                .map(|(&height, owner)| Block { owner, height })
                .collect(),
        });
        for objective in every_objective() {
            let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
            let state =
                Columns { columns: columns.to_vec(), rule: Rule::of(objective), distances: &distances };
            let mut moves = Moves::of(state);
            let mut random = Random::new(3);
            assert!(!moves.equals.is_empty());
            for step in 0..1_000 {
                let before = moves.cost();
                let cost = moves.change(&mut random);
                if step % 3 == 0 {
                    moves.undo();
                    assert_eq!(moves.cost(), before);
                    continue;
                }
                moves.keep();
                let columns = moves.best.1.iter().map(|&i| moves.best.0[i].clone()).collect();
                let whole = Columns { columns, ..moves.state.clone() }.cost();
                assert!((cost - whole.total).abs() <= 1e-9 * whole.total, "{objective:?} {cost} {whole:?}");
            }
        }
    }
}

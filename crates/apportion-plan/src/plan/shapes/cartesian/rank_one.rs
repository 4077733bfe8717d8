//! The arrangement of speeds that are products of row speeds and column speeds, in whatever order they are
//! given.
//!
//! The fastest processor is in the corner. The fastest that is not yet the product of a known row and column
//! begins a new row or a new column; either is tried, and every product that this implies must be there.

use super::Mesh;

/// Maximum number of trials before the search gives up.
const MOST_TRIALS: usize = 20_000;

/// The processors row by row, if their speeds have rank one on this grid within a fraction `equal`.
pub(super) fn arrangement(
    speeds: &[f64],
    sorted: &[usize],
    Mesh { rows, cols }: Mesh,
    equal: f64,
) -> Option<Vec<usize>> {
    let values: Vec<f64> = sorted.iter().map(|&i| speeds[i]).collect();
    let mut search = Search {
        taken: vec![false; values.len()],
        values,
        limits: [rows, cols],
        lines: [Vec::new(), Vec::new()],
        cells: vec![usize::MAX; rows * cols],
        // A product of three numbers, each right to a fraction `equal`.
        equal: 4.0 * equal,
        trials: 0,
    };
    search.taken[0] = true;
    search.cells[0] = 0;
    search.lines = [vec![search.values[0]], vec![search.values[0]]];
    search.extend().then(|| search.cells.iter().map(|&at| sorted[at]).collect())
}

struct Search {
    /// Descending.
    values: Vec<f64>,
    taken: Vec<bool>,
    /// Number of rows and of columns.
    limits: [usize; 2],
    /// The first column's speed in each known row, and the first row's in each known column.
    lines: [Vec<f64>; 2],
    /// Index into `values` of each cell.
    cells: Vec<usize>,
    equal: f64,
    trials: usize,
}

impl Search {
    /// Places everything that is left.
    fn extend(&mut self) -> bool {
        let Some(next) = self.taken.iter().position(|taken| !taken) else { return true };
        self.trials += 1;
        if self.trials > MOST_TRIALS {
            return false;
        }
        for axis in [0, 1] {
            if self.lines[axis].len() == self.limits[axis] {
                continue;
            }
            let line = self.lines[axis].len();
            let mut placed = Vec::new();
            if self.place_line(axis, line, next, &mut placed) {
                self.lines[axis].push(self.values[next]);
                if self.extend() {
                    return true;
                }
                self.lines[axis].pop();
            }
            placed.into_iter().for_each(|at: usize| self.taken[at] = false);
        }
        false
    }

    /// Takes a value for each cell of a new line; those taken are listed even if one is missing.
    fn place_line(&mut self, axis: usize, line: usize, first: usize, placed: &mut Vec<usize>) -> bool {
        let crossing = self.lines[1 - axis].clone();
        for (across, speed) in crossing.into_iter().enumerate() {
            let wanted = self.values[first] * (speed / self.values[0]);
            let found = if across == 0 { Some(first) } else { self.nearest(wanted) };
            let Some(at) = found else { return false };
            self.taken[at] = true;
            placed.push(at);
            let cell =
                if axis == 0 { line * self.limits[1] + across } else { across * self.limits[1] + line };
            self.cells[cell] = at;
        }
        true
    }

    /// The free value nearest to this one, if it is equal within the tolerance.
    fn nearest(&self, wanted: f64) -> Option<usize> {
        let middle = self.values.partition_point(|&v| v > wanted);
        let free = |at: &usize| !self.taken[*at];
        let near = |at: usize| (self.values[at] - wanted).abs() <= self.equal * wanted;
        let above = (0..middle).rev().take_while(|&at| near(at)).find(free);
        let below = (middle..self.values.len()).take_while(|&at| near(at)).find(free);
        let distance = |at: &usize| (self.values[*at] - wanted).abs();
        above.into_iter().chain(below).min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }
}

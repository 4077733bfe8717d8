//! The optimum for few processors: every arrangement that can be optimal, and every vertex of each.
//!
//! **Arrangements.** For given heights and widths the least longest time gives the larger area to the faster
//! processor. With heights and widths in descending order, areas fall along every row and every column;
//! hence some optimum has speeds that fall along both: a standard Young tableau of the grid. There are 462
//! for 3 x 4, 42 for 3 x 3, 5 for 2 x 3.
//!
//! **Heights and widths.** With x = log h and y = log w, the largest product of the sums of h and w under
//! h_i w_j <= s_ij is a convex function to be maximised over a polyhedron, so that a vertex is optimal: the
//! tight cells connect all rows and columns. Every spanning tree of cells is tried.

use super::{Arrangement, Mesh, alternate};

/// Up to this number of processors all arrangements are tried.
pub(super) const MOST_PROCESSORS: usize = 12;

/// A tight cell reaches a row or a column for the first time.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to_row: bool,
    row: usize,
    col: usize,
}

/// The best arrangement; among those equal within a fraction, the given order, then the first tableau.
pub(super) fn best(speeds: &[f64], given: &[usize], sorted: &[usize], mesh: Mesh, equal: f64) -> Arrangement {
    let trees = spanning_trees(mesh);
    let mut all = vec![given.to_vec()];
    tableaux(sorted, mesh, &mut all);
    let solved: Vec<Arrangement> = all.into_iter().map(|cells| solve(speeds, cells, mesh, &trees)).collect();
    let least = solved.iter().map(|a| a.time).fold(f64::INFINITY, f64::min);
    let first = solved.into_iter().find(|a| a.time <= least * (1.0 + equal));
    first.expect("one of them is the best")
}

/// Every tableau of the grid, row by row, with the processors in this order.
fn tableaux(order: &[usize], Mesh { rows, cols }: Mesh, out: &mut Vec<Vec<usize>>) {
    fn place(
        order: &[usize],
        next: usize,
        filled: &mut [usize],
        cells: &mut [usize],
        out: &mut Vec<Vec<usize>>,
    ) {
        if next == order.len() {
            out.push(cells.to_vec());
            return;
        }
        let cols = cells.len() / filled.len();
        for row in 0..filled.len() {
            let at = filled[row];
            if at < cols && (row == 0 || filled[row - 1] > at) {
                cells[row * cols + at] = order[next];
                filled[row] += 1;
                place(order, next + 1, filled, cells, out);
                filled[row] -= 1;
            }
        }
    }
    place(order, 0, &mut vec![0; rows], &mut vec![0; rows * cols], out);
}

/// Every set of rows + cols - 1 cells that connects all rows and columns, in an order that starts at row 0.
fn spanning_trees(Mesh { rows, cols }: Mesh) -> Vec<Vec<Edge>> {
    let cells: Vec<(usize, usize)> = (0..rows * cols).map(|at| (at / cols, at % cols)).collect();
    let count = rows + cols - 1;
    let masks = (0u32..1 << cells.len()).filter(|mask| mask.count_ones() as usize == count);
    let ordered = |mask: u32| {
        let mut left: Vec<(usize, usize)> =
            cells.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, &cell)| cell).collect();
        let (mut known_rows, mut known_cols) = (vec![false; rows], vec![false; cols]);
        known_rows[0] = true;
        let mut tree = Vec::with_capacity(count);
        while let Some(at) = left.iter().position(|&(row, col)| known_rows[row] != known_cols[col]) {
            let (row, col) = left.swap_remove(at);
            tree.push(Edge { to_row: known_cols[col], row, col });
            (known_rows[row], known_cols[col]) = (true, true);
        }
        (tree.len() == count).then_some(tree)
    };
    masks.filter_map(ordered).collect()
}

/// The best heights and widths of an arrangement.
fn solve(speeds: &[f64], cells: Vec<usize>, Mesh { rows, cols }: Mesh, trees: &[Vec<Edge>]) -> Arrangement {
    let speed = |row: usize, col: usize| speeds[cells[row * cols + col]];
    let (mut heights, mut widths) = (vec![1.0; rows], vec![1.0; cols]);
    let mut best: Option<(f64, &Vec<Edge>)> = None;
    let follow = |tree: &[Edge], heights: &mut [f64], widths: &mut [f64]| {
        heights[0] = 1.0;
        for &Edge { to_row, row, col } in tree {
            if to_row {
                heights[row] = speed(row, col) / widths[col];
            } else {
                widths[col] = speed(row, col) / heights[row];
            }
        }
    };
    for tree in trees {
        follow(tree, &mut heights, &mut widths);
        let fits =
            (0..rows).all(|i| (0..cols).all(|j| heights[i] * widths[j] <= speed(i, j) * (1.0 + 1e-12)));
        let size = heights.iter().sum::<f64>() * widths.iter().sum::<f64>();
        if fits && size.is_finite() && best.is_none_or(|(most, _)| size > most) {
            best = Some((size, tree));
        }
    }
    let Some((size, tree)) = best else {
        // Speeds so far apart that products leave the range of numbers.
        return alternate::arrangement_of(speeds, cells, cols, alternate::Depth::of(false));
    };
    follow(tree, &mut heights, &mut widths);
    let unit = |lengths: Vec<f64>| {
        let sum: f64 = lengths.iter().sum();
        lengths.into_iter().map(|x| x / sum).collect()
    };
    Arrangement { time: 1.0 / size, heights: unit(heights), widths: unit(widths), cells }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scoins: K(r, c) has r^(c-1) c^(r-1) spanning trees. Hook lengths: 1, 2, 5, 42, 462 tableaux.
    #[test]
    fn trees_and_tableaux_are_counted_right() {
        for (rows, cols, tableaux_of, trees) in
            [(1, 5, 1, 1), (2, 2, 2, 4), (2, 3, 5, 12), (2, 6, 132, 192), (3, 3, 42, 81), (3, 4, 462, 432)]
        {
            let (mesh, mut all) = (Mesh::new(rows, cols), Vec::new());
            tableaux(&(0..rows * cols).collect::<Vec<_>>(), mesh, &mut all);
            assert_eq!(all.len(), tableaux_of, "{rows} x {cols}");
            assert_eq!(spanning_trees(mesh).len(), trees, "{rows} x {cols}");
            for cells in all {
                let falls = |i: usize, j: usize| cells[i] < cells[j];
                assert!((0..rows * cols).all(|at| at % cols + 1 == cols || falls(at, at + 1)));
                assert!((cols..rows * cols).all(|at| falls(at - cols, at)));
            }
        }
    }
}

//! Columns whose members are given: the more restricted column-based layout.
//!
//! Source: Kalinov and Lastovetsky 2001 (Becker 2010, Algorithm 2.2; Lastovetsky's slides, Algorithm 1).

use super::tiling::Tiling;
use crate::error::{Error, Result};
use crate::plan::{Layout, Shape};

/// One column for each group, from the left, as wide as the group's sum of weights. Its members are placed
/// from the top in the given order, as high as their weights. O(p log p).
///
/// Loads balance as well as whole numbers allow; volume k (c m + sum of r_j w_j - m - n) for c columns of r_j
/// processors and width w_j.
///
/// # Errors
/// A processor that does not exist, that is in two groups, or that has a weight but no group: exit code 2.
pub fn column_groups(shape: Shape, weights: &[f64], groups: &[Vec<usize>]) -> Result<Layout> {
    let wrong = |what: String| Err(Error::input("column groups", what, "name every processor exactly once"));
    let mut seen = vec![false; weights.len()];
    for &processor in groups.iter().flatten() {
        match seen.get_mut(processor) {
            None => return wrong(format!("there is no processor {processor} among {}", weights.len())),
            Some(true) => return wrong(format!("processor {processor} is in the groups twice")),
            Some(place) => *place = true,
        }
    }
    if let Some(lost) = (0..weights.len()).find(|&i| weights[i] > 0.0 && !seen[i]) {
        return wrong(format!("processor {lost} is in no group"));
    }
    let working: Vec<Vec<usize>> = groups
        .iter()
        .map(|g| g.iter().copied().filter(|&i| weights[i] > 0.0).collect::<Vec<_>>())
        .filter(|g| !g.is_empty())
        .collect();
    Ok(Tiling::columns(working.iter().map(Vec::as_slice)).layout(shape, weights, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shapes::columns;
    use proptest::prelude::*;

    /// Figure 2.6's kind of example: a 3 x 3 grid of processors.
    #[test]
    fn three_columns_of_three() {
        let shape = Shape::new(120, 120, 120, "test").unwrap();
        let weights = [6.0, 3.0, 3.0, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0];
        let groups = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8]];
        let layout = column_groups(shape, &weights, &groups).unwrap();
        assert_eq!(layout.shares(), [3600, 1800, 1800, 600, 1200, 1800, 1200, 1200, 1200]);
        let spans: Vec<[u64; 2]> = layout.parts().iter().take(3).map(|p| p.cols.into()).collect();
        assert_eq!(spans, [[0, 60], [60, 90], [90, 120]]);
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(4 * 120 * 120));
    }

    #[test]
    fn wrong_groups_are_named() {
        let shape = Shape::new(4, 4, 4, "test").unwrap();
        for groups in [vec![vec![0, 1], vec![3]], vec![vec![0, 1], vec![1, 2]], vec![vec![0], vec![2]]] {
            assert_eq!(column_groups(shape, &[1.0; 3], &groups).unwrap_err().exit_code(), 2, "{groups:?}");
        }
        let idle = column_groups(shape, &[1.0, 0.0, 1.0], &[vec![0], vec![], vec![2]]).unwrap();
        assert_eq!(idle.shares(), [8, 0, 8]);
    }

    proptest! {
        /// No arrangement given beats the optimal columns (up to rounding).
        #[test]
        fn never_better_than_the_optimal_columns(
            weights in prop::collection::vec(0.1f64..10.0, 1..7), picks in prop::collection::vec(0usize..3, 7),
        ) {
            let shape = Shape::new(2000, 2000, 2000, "test").unwrap();
            let mut groups = vec![Vec::new(); 3];
            (0..weights.len()).for_each(|i| groups[picks[i]].push(i));
            let cost = |layout: &Layout| Metrics::of_layout(layout, 1.0).sum_half_perimeters.unwrap();
            let ours = cost(&column_groups(shape, &weights, &groups).unwrap());
            let best = cost(&columns(shape, &weights).unwrap());
            prop_assert!(ours >= best - weights.len() as f64 / 1000.0);
        }
    }
}

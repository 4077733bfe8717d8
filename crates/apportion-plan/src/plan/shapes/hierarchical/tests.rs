use super::*;
use crate::plan::Metrics;
use proptest::prelude::*;

fn shape(m: u64, n: u64) -> Shape {
    Shape::new(m, 100, n, "test").unwrap()
}

fn tree(paths: &[&str]) -> Hierarchy {
    Hierarchy::of_paths(&paths.iter().map(|&p| p.to_owned()).collect::<Vec<_>>())
}

fn by_levels(
    hierarchy: &Hierarchy,
    methods: &[Option<Method>],
    shape: Shape,
    weights: &[f64],
) -> Result<Layout> {
    Hierarchical { hierarchy, methods, options: &MethodOptions::default() }.layout(shape, weights)
}

/// Methods for any number of processors, in order of variety.
const UNIVERSAL: [Option<Method>; 7] = [
    Some(Method::Columns),
    Some(Method::Rows),
    Some(Method::Recursive),
    Some(Method::Grid),
    Some(Method::NagamochiAbe),
    Some(Method::Cartesian),
    None,
];

/// Paths "s", "s/c": up to three sites of up to two clusters.
fn paths() -> impl Strategy<Value = Vec<String>> {
    let one = (0..3usize, prop::option::of(0..2usize)).prop_map(|(site, cluster)| match cluster {
        None => format!("s{site}"),
        Some(cluster) => format!("s{site}/c{cluster}"),
    });
    prop::collection::vec(one, 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Covered once (`Layout::new` checks), on matrices of any size, idle processors idle.
    #[test]
    fn every_element_once(
        paths in paths(), m in 1u64..40, n in 1u64..40, top in 0..7usize, below in 0..7usize,
        weights in prop::collection::vec(prop_oneof![1 => Just(0.0), 5 => 0.1f64..10.0], 12),
    ) {
        let mut weights = weights[..paths.len()].to_vec();
        weights[0] += 1.0;
        let hierarchy = Hierarchy::of_paths(&paths);
        let methods = &[UNIVERSAL[top], UNIVERSAL[below]][..hierarchy.levels().min(2)];
        let layout = by_levels(&hierarchy, methods, shape(m, n), &weights).unwrap();
        prop_assert_eq!(layout.shares().iter().sum::<u64>(), m * n);
        prop_assert!(layout.shares().iter().zip(&weights).all(|(&s, &w)| w > 0.0 || s == 0));
    }

    /// Shares are those of a flat division but for rounding, L-shapes and many rectangles included.
    #[test]
    fn shares_as_flat(
        paths in paths(), below in 0..5usize, weights in prop::collection::vec(1.0f64..10.0, 12),
    ) {
        let weights = &weights[..paths.len()];
        let hierarchy = Hierarchy::of_paths(&paths);
        let total: f64 = weights.iter().sum();
        for top in [Some(Method::Recursive), Some(Method::SquareCorner), Some(Method::SquareRectangle)] {
            let methods = &[top, UNIVERSAL[below]][..hierarchy.levels().min(2)];
            let whole = shape(4001, 2999);
            let Ok(layout) = by_levels(&hierarchy, methods, whole, weights) else { continue };
            for (share, weight) in layout.shares().iter().zip(weights) {
                let ratio = *share as f64 / (weight / total * whole.elements() as f64);
                prop_assert!((ratio - 1.0).abs() < 0.03, "{:?}: {}", methods, ratio);
            }
        }
    }

    /// p members in R rectangles have at most p + R - 1 pieces (columns give each piece one rectangle).
    #[test]
    fn few_rectangles(
        weights in prop::collection::vec(1.0f64..10.0, 2..9), corners in prop::collection::vec(0.5f64..2.0, 1..4),
    ) {
        let mut all = weights.clone();
        // Squares on the diagonal, surrounded by the part of the other cluster.
        all.extend(corners.iter().map(|c| c * 0.02 * weights.iter().sum::<f64>()));
        let mut paths = vec!["around"; weights.len()];
        let names = ["x", "y", "z"];
        paths.extend(&names[..corners.len()]);
        let methods = [Some(Method::SquareCorner), Some(Method::Columns)];
        let whole = shape(3000, 3000);
        let layout = by_levels(&tree(&paths), &methods, whole, &all).unwrap();
        let pieces: usize = layout.rects_by_owner()[..weights.len()].iter().map(Vec::len).sum();
        prop_assert!(pieces <= weights.len() + 2 * corners.len(), "{} pieces", pieces);
    }
}

#[test]
fn one_cluster_is_the_flat_method() {
    let weights = [5.0, 3.0, 2.0, 2.0, 1.0];
    for method in UNIVERSAL.into_iter().flatten() {
        let flat = method.layout(shape(700, 500), &weights, &MethodOptions::default()).unwrap();
        for paths in [["a"; 5], ["a", "b", "c", "d", "e"], ["a/b"; 5]] {
            let ours = by_levels(&tree(&paths), &[Some(method)], shape(700, 500), &weights);
            assert_eq!(ours.unwrap(), flat, "{method}");
        }
    }
}

#[test]
fn a_cluster_of_one_has_the_whole_part() {
    let (paths, weights) = (["a", "a", "b", "c"], [5.0, 4.0, 6.0, 3.0]);
    let layout = |p: &[&str], w: &[f64], methods: &[Option<Method>]| {
        by_levels(&tree(p), methods, shape(900, 900), w).unwrap()
    };
    let ours = layout(&paths, &weights, &[Some(Method::Columns), Some(Method::Rows)]);
    let top = layout(&["a", "b", "c"], &[9.0, 6.0, 3.0], &[Some(Method::Columns)]);
    assert_eq!(ours.rects_by_owner()[2..], top.rects_by_owner()[1..]);
}

/// Three levels, by hand: halves, quarters, eighths.
#[test]
fn the_last_method_serves_all_levels_below() {
    let paths = ["s/c", "s/c", "s/d", "s/d", "t/c", "t/c", "t/d", "t/d"];
    let methods = [Some(Method::StraightLine), Some(Method::Rows)];
    let layout = by_levels(&tree(&paths), &methods, shape(80, 80), &[1.0; 8]).unwrap();
    for (i, rects) in layout.rects_by_owner().iter().enumerate() {
        let at = i as u64 % 4 * 20;
        let cols = if i < 4 { Span::new(0, 40) } else { Span::new(40, 80) };
        assert_eq!(rects[..], [Rect::new(Span::new(at, at + 20), cols)]);
    }
}

/// The L around a square corner: two equal members cut it with less wire than strips of the whole would.
#[test]
fn an_l_shape_is_cut_well() {
    let paths = ["a", "a", "b"];
    let methods = [Some(Method::SquareCorner), None];
    let layout = by_levels(&tree(&paths), &methods, shape(1000, 1000), &[45.0, 45.0, 10.0]).unwrap();
    let rects = layout.rects_by_owner();
    assert!(rects[0].len() + rects[1].len() <= 3);
    let metrics = Metrics::of_layout(&layout, 1.0);
    // By hand: 450 rows of 1,000 (1.45), 234 rows of 1,000 and 316 of 684 (1.55), a square of 316 (0.632).
    let cost = metrics.sum_half_perimeters.unwrap();
    assert!((cost - 3.632).abs() < 0.004, "{cost}");
    let even = layout.shares()[0] as f64 / layout.shares()[1] as f64;
    assert!((even - 1.0).abs() < 0.01);
}

#[test]
fn what_cannot_be_is_said() {
    let lay = |methods: &[Option<Method>], paths: &[&str]| {
        by_levels(&tree(paths), methods, shape(90, 90), &vec![1.0; paths.len()]).unwrap_err()
    };
    let columns = Some(Method::Columns);
    assert_eq!(lay(&[], &["a", "b"]).exit_code(), 2);
    let error = lay(&[columns; 2], &["a", "b"]);
    assert!(error.exit_code() == 2 && error.to_string().contains("names 2 methods"), "{error}");
    assert_eq!(lay(&[columns, Some(Method::ColumnGroups)], &["a", "a"]).exit_code(), 2);
    let error = lay(&[Some(Method::SquareCorner)], &["a", "a", "b", "b", "c", "c"]);
    assert!(error.exit_code() == 1 && error.to_string().contains("level 1"), "{error}");
}

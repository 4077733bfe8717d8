//! The source's figures and tables, rebuilt from the numbers in its text (Malik 2016, chapters 3 and 4).

use super::columns::Columns;
use super::distance::Distances;
use super::*;
use crate::geometry::{Rank, Rect, Span};
use crate::plan::shapes::Mesh;
use crate::plan::{Part, Shape};
use crate::platform::parse_platform;

/// Columns as (width, [(height, cluster)]).
type Figure<'a> = &'a [(u64, &'a [(u64, usize)])];

/// A plan with one processor per rectangle, numbered down the columns, and a platform of those clusters.
fn figure(columns: Figure<'_>, scale: u64, links: &str) -> (Plan, Platform) {
    let mut text = String::new();
    let mut parts = Vec::new();
    let (mut left, mut height) = (0, 0);
    for (width, blocks) in columns {
        let mut top = 0;
        for (rows, cluster) in *blocks {
            let owner = parts.len();
            text += &format!("[[processor]]\nname = \"p{owner}\"\ncluster = \"c{cluster}\"\n");
            let rect = Rect::new(
                Span::new(top * scale, (top + rows) * scale),
                Span::new(left * scale, (left + width) * scale),
            );
            parts.push(Part::new(Rank(owner), rect));
            top += rows;
        }
        (left, height) = (left + width, top);
    }
    let platform = parse_platform(&(text + links), "figure").unwrap();
    let shape = Shape::new(height * scale, height * scale, left * scale, "figure").unwrap();
    let layout = Layout::new(shape, parts.len(), parts).unwrap();
    let plan = Plan::of_layout("columns", platform.names(), layout, 1.0);
    (plan, platform)
}

fn band_heights(plan: &Plan) -> Vec<u64> {
    Rings::of(plan.layout().unwrap()).rows.iter().map(|r| r.width).collect()
}

const RING: CostFunction = CostFunction::Hops(Pivots::Ring);

/// Figures 3.6 and 3.7, the optimal case: column widths 12, 12, 9; two rectangles, three, four, of which the
/// last column's change clusters after the second (3.3.1); overlaps of 6, 8, 1, 9, 2, 6 rows. The text gives
/// neither heights nor clusters: these heights fit the overlaps of both figures in their printed order, and
/// these clusters fit the printed hops and the remark that the two topmost rings have one or two by the place
/// of the pivot column. A reconstruction, not the drawing.
const OPTIMAL: Figure<'_> =
    &[(12, &[(15, 1), (17, 0)]), (12, &[(14, 1), (10, 2), (8, 2)]), (9, &[(6, 0), (9, 0), (11, 2), (6, 2)])];

#[test]
fn figures_3_6_and_3_7_optimal() {
    let (plan, platform) = figure(OPTIMAL, 1, "");
    assert_eq!(band_heights(&plan), [6, 8, 1, 9, 2, 6]);
    assert_eq!(arrangement_cost(&plan, &platform, RING).unwrap(), Cost::of(50.0, 54.0));
}

/// Figures 3.6 and 3.7, the worst case: three hops in the last column, two in every ring of A, for overlaps
/// of 11, 3, 3, 3, 4, 2, 6 rows.
///
/// With the pivot column in the same place for all rings, no choice of clusters for these rectangles (all
/// were tried) gives all four printed numbers. A ring of three at its own worst place never has a single hop,
/// so that the printed 50 cannot count each ring separately, while 64 can. The worst case therefore uses
/// clusters of its own here, one choice of several that give the printed 63 and 64.
#[test]
fn figures_3_6_and_3_7_worst() {
    let worst: Figure<'_> = &[
        (12, &[(17, 0), (15, 1)]),
        (12, &[(14, 0), (10, 1), (8, 2)]),
        (9, &[(11, 1), (9, 2), (6, 0), (6, 0)]),
    ];
    let (plan, platform) = figure(worst, 1, "");
    assert_eq!(band_heights(&plan), [11, 3, 3, 3, 4, 2, 6]);
    assert_eq!(arrangement_cost(&plan, &platform, RING).unwrap(), Cost::of(64.0, 63.0));
}

/// The optimal figure's rectangles in the worst figure's order: 58 with one pivot column for all rings.
#[test]
fn the_worst_order_of_the_optimal_figure() {
    let order: Figure<'_> = &[
        (12, &[(17, 0), (15, 1)]),
        (12, &[(14, 1), (10, 2), (8, 2)]),
        (9, &[(11, 2), (9, 0), (6, 2), (6, 0)]),
    ];
    let (plan, platform) = figure(order, 1, "");
    assert_eq!(band_heights(&plan), [11, 3, 3, 3, 4, 2, 6]);
    assert_eq!(arrangement_cost(&plan, &platform, RING).unwrap(), Cost::of(58.0, 63.0));
    let found = arrange(&plan, &platform, RING, SearchOptions::new(SearchMethod::Exhaustive, 0)).unwrap();
    assert!(found.cost_after.total <= 104.0, "{found:?}");
    let other =
        |search| arrange(&plan, &platform, RING, SearchOptions::new(search, 1)).unwrap().cost_after.total;
    assert!(other(SearchMethod::Heuristic) <= 104.0);
    assert_eq!(other(SearchMethod::Local), found.cost_after.total);
}

/// Table 3.3, in MB/s.
const TABLE_3_3: &str = r#"
[network.matrix]
clusters = ["c0", "c1", "c2", "c3"]
bandwidth = [["891.20 MB/s", "55.01 MB/s", "249.53 MB/s", "56.39 MB/s"],
 ["55.01 MB/s", "893.13 MB/s", "68.96 MB/s", "90.88 MB/s"],
 ["249.53 MB/s", "68.96 MB/s", "6850.27 MB/s", "71.93 MB/s"],
 ["56.39 MB/s", "90.88 MB/s", "71.93 MB/s", "896.17 MB/s"]]
"#;

/// Figure 3.8, worst case: widths and links of Table 3.4, overlaps and links of Table 3.6.
const FIGURE_3_8_WORST: Figure<'_> = &[
    (54, &[(30, 0), (29, 0), (69, 2)]),
    (30, &[(37, 3), (45, 1), (46, 2)]),
    (29, &[(27, 1), (32, 2), (33, 2), (36, 3)]),
    (15, &[(15, 0), (15, 3), (16, 1), (20, 3), (28, 0), (34, 2)]),
];

/// Figure 3.8, optimal case, the same rectangles: Tables 3.5 and 3.7.
const FIGURE_3_8_OPTIMAL: Figure<'_> = &[
    (54, &[(69, 2), (29, 0), (30, 0)]),
    (30, &[(46, 2), (37, 3), (45, 1)]),
    (29, &[(33, 2), (32, 2), (36, 3), (27, 1)]),
    (15, &[(34, 2), (15, 0), (28, 0), (15, 3), (20, 3), (16, 1)]),
];

const SECONDS: CostFunction = CostFunction::Bandwidth(Pivots::Ring);

/// Tables 3.4-3.7. Each unit is a block of 64 elements, 512 bytes of a pivot row. The tables divide bytes by
/// MB/s, so their "seconds" are microseconds.
///
/// A's rows add up to 2854.46 and 1784.79, as printed (2854.13 and 1784.56) within the rounding of their
/// links. B's rows do not: they add up to 2051.08 and 1884.08, where 1948.15 and 1825.23 are printed. The
/// printed totals are right and three entries wrong. The second row of both tables has 56.39 (clusters 0 and
/// 3) for 71.93 (2 and 3): by Tables 3.6 and 3.7 that column holds clusters 1, 2 and 3. The last row of Table
/// 3.4 has 36.39 for 56.39, and lacks the link of 249.53 that closes its ring of six. With these corrections,
/// the rows give the printed totals.
#[test]
fn tables_3_4_to_3_7() {
    let cases = [
        (FIGURE_3_8_WORST, 2854.13, 1948.15, vec![15, 12, 3, 7, 9, 13, 7, 16, 10, 2, 34]),
        (FIGURE_3_8_OPTIMAL, 1784.56, 1825.23, vec![33, 1, 12, 3, 16, 4, 8, 6, 9, 6, 3, 11, 16]),
    ];
    for (columns, a, b, overlaps) in cases {
        let (plan, platform) = figure(columns, 64, TABLE_3_3);
        let heights: Vec<u64> = band_heights(&plan).iter().map(|h| h / 64).collect();
        assert_eq!(heights, overlaps);
        let cost = arrangement_cost(&plan, &platform, SECONDS).unwrap();
        assert!((cost.a * 1e6 - a).abs() < 0.02, "{cost:?}");
        assert!((cost.b * 1e6 - b).abs() < 0.02, "{cost:?}");
    }
}

/// The rows of Tables 3.4 and 3.5 as printed: they do not add up to the printed totals.
#[test]
fn the_printed_rows_of_b() {
    let sum = |rows: &[(f64, &[f64])]| -> f64 {
        rows.iter().map(|(width, links)| width * 512.0 * links.iter().map(|b| 1.0 / b).sum::<f64>()).sum()
    };
    let worst = sum(&[
        (54.0, &[249.53, 891.20, 249.53]),
        (30.0, &[68.96, 90.88, 56.39]),
        (29.0, &[71.93, 6850.27, 68.96, 90.88]),
        (15.0, &[249.53, 56.39, 90.88, 90.88, 36.39]),
    ]);
    let optimal = sum(&[
        (54.0, &[891.20, 249.53, 249.53]),
        (30.0, &[90.88, 56.39, 68.96]),
        (29.0, &[90.88, 71.93, 6850.27, 68.96]),
        (15.0, &[90.88, 896.17, 56.39, 891.20, 249.53, 68.96]),
    ]);
    assert!((worst - 2051.08).abs() < 0.01 && (optimal - 1884.08).abs() < 0.01);
}

/// The searches on figure 3.8's worst case: none worse than the source's optimal one.
#[test]
fn figure_3_8_is_found() {
    let (worst, platform) = figure(FIGURE_3_8_WORST, 64, TABLE_3_3);
    let printed = (1784.56 + 1825.23) * 1e-6;
    for search in [SearchMethod::Heuristic, SearchMethod::Local] {
        let found = arrange(&worst, &platform, SECONDS, SearchOptions::new(search, 7)).unwrap();
        assert!(found.cost_after.total < printed, "{search:?} {:?}", found.cost_after);
        assert_eq!(found.plan.shares, worst.shares);
        assert_eq!(found.plan.metrics.volume, worst.metrics.volume);
    }
}

/// Table 4.1's network, in its order of clusters.
fn table_4_1() -> Platform {
    parse_platform(include_str!("../../../../../platforms/grid5000-table-4-1.toml"), "table 4.1").unwrap()
}

/// The cost that Table 4.2 would print: elements over GB/s.
fn printed(cost: Cost) -> f64 {
    cost.total * 1e9 / 8.0
}

/// Table 4.2's non-optimal mapping: 2 x 6, filled by columns in the order of Table 4.1. Its cost is the
/// printed 22424946 to the digit, with 512 / 6 = 85 columns (a division in integers) and with no neighbours
/// across the borders, although equations (4.1) and (4.2) have them.
fn non_optimal(edges: Edges) -> Cost {
    let platform = table_4_1();
    let text: Vec<usize> = (0..12).collect();
    let parts = text.iter().map(|&i| {
        let (row, col) = ((i % 2) as u64, (i / 2) as u64);
        let rows = Span::new(256 * row, 256 * (row + 1));
        Part::new(Rank(i), Rect::new(rows, Span::new(85 * col, 85 * (col + 1))))
    });
    let shape = Shape::new(512, 1, 510, "t").unwrap();
    let layout = Layout::new(shape, 12, parts).unwrap();
    let objective = CostFunction::Asymmetric(edges);
    let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
    cost_of(&layout, &distances, objective)
}

#[test]
fn table_4_2() {
    assert_eq!(printed(non_optimal(Edges::Open)).floor(), 22_424_946.0);
    for edges in [Edges::Open, Edges::Periodic] {
        for search in [SearchMethod::Heuristic, SearchMethod::Local, SearchMethod::Auto] {
            let domain = GridDomain::new(512, 512, edges);
            let ours = arrange_grid(domain, &table_4_1(), SearchOptions::new(search, 1)).unwrap();
            let ratio = non_optimal(edges).total / ours.cost_after.total;
            assert!(ratio >= 10.46, "{edges:?} {search:?} {ratio}");
        }
    }
    let domain = GridDomain::new(512, 512, Edges::Open);
    let ours = arrange_grid(domain, &table_4_1(), SearchOptions::new(SearchMethod::Heuristic, 1)).unwrap();
    assert!(printed(ours.cost_after) <= 2_143_978.0);
    // From the source's grid, its algorithm gains its factor.
    let domain = GridDomain { start: Some(Mesh::new(2, 6)), ..domain };
    let published =
        arrange_grid(domain, &table_4_1(), SearchOptions::new(SearchMethod::Published, 1)).unwrap();
    let ratio = published.cost_before.total / published.cost_after.total;
    assert!((ratio - 10.46).abs() < 0.02, "{ratio}");
}

/// The source's ten initial mappings end at the same cost (4.5); so do those of this search, from all orders
/// of the clusters.
#[test]
#[ignore = "slow"]
fn every_initial_order_ends_alike() {
    let domain = GridDomain::new(512, 512, Edges::Open);
    let given = table_4_1();
    let mut costs = Vec::new();
    let mut clusters = vec!["nancy/grimoire", "rennes/parasilo", "nancy/grisou", "rennes/paravance"];
    order::permutations(&mut clusters, 0, &mut |clusters| {
        let mut processors: Vec<usize> = (0..12).collect();
        let rank = |i: usize| clusters.iter().position(|c| *c == given.processors[i].cluster);
        processors.sort_by_key(|&i| rank(i));
        let platform = reordered(&given, &processors);
        let found = arrange_grid(domain, &platform, SearchOptions::new(SearchMethod::Heuristic, 1)).unwrap();
        costs.push(printed(found.cost_after));
    });
    let (least, most) =
        (costs.iter().copied().fold(f64::MAX, f64::min), costs.iter().copied().fold(0.0, f64::max));
    assert!(costs.len() == 24 && most <= 1.001 * least, "{costs:?}");
}

/// The same machine with its processors in another order.
fn reordered(platform: &Platform, order: &[usize]) -> Platform {
    let text = include_str!("../../../../../platforms/grid5000-table-4-1.toml");
    let network = &text[text.find("[network]").unwrap()..];
    let processor = |&i: &usize| {
        let p = &platform.processors[i];
        format!("[[processor]]\nname = \"{}\"\ncluster = \"{}\"\n", p.name, p.cluster)
    };
    parse_platform(&(order.iter().map(processor).collect::<String>() + network), "reordered").unwrap()
}

/// On the source's own shape, 6 x 2 cells of 85 x 256, nothing costs less than 2143735.78: the printed
/// 2143978 is within 0.02 % of it, and this search reaches it.
#[test]
fn the_source_s_shape() {
    let platform = table_4_1();
    let shape = Shape::new(510, 1, 512, "t").unwrap();
    let objective = CostFunction::Asymmetric(Edges::Open);
    let parts = (0..12).map(|i| {
        let (row, col) = ((i % 6) as u64, (i / 6) as u64);
        let rows = Span::new(85 * row, 85 * (row + 1));
        Part::new(Rank(i), Rect::new(rows, Span::new(256 * col, 256 * (col + 1))))
    });
    let layout = Layout::new(shape, 12, parts).unwrap();
    let distances = Distances::new(&platform.names(), &platform, objective).unwrap();
    let columns = Columns::of(&layout, &distances, objective).unwrap();
    let (found, _) = local::columns(&columns, 5, &|_| true);
    let cost = printed(found.cost());
    assert!(cost <= 2_143_978.0 && (cost - 2_143_735.78).abs() < 0.01, "{cost}");
}

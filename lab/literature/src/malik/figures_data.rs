//! Figures 3.6 to 3.8 of the thesis, rebuilt from the numbers in its text: the drawings are not at hand.

use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::plan::{Layout, Part, Plan, Shape};
use apportion::platform::{Platform, parse_platform};

/// Columns as (width, [(height, cluster)]).
pub type Figure = &'static [(u64, &'static [(u64, usize)])];

/// Figures 3.6 and 3.7, the optimal case: widths 12, 12, 9 (3.3.1); heights and clusters fit the printed
/// overlaps and hops.
pub const OPTIMAL_3_6: Figure =
    &[(12, &[(15, 1), (17, 0)]), (12, &[(14, 1), (10, 2), (8, 2)]), (9, &[(6, 0), (9, 0), (11, 2), (6, 2)])];

/// Figures 3.6 and 3.7, the worst case: overlaps of 11, 3, 3, 3, 4, 2, 6 rows. No choice of clusters gives
/// all four printed numbers together with the optimal case; this one gives the worst case's 63 and 64.
pub const WORST_3_6: Figure =
    &[(12, &[(17, 0), (15, 1)]), (12, &[(14, 0), (10, 1), (8, 2)]), (9, &[(11, 1), (9, 2), (6, 0), (6, 0)])];

/// Figure 3.8, worst case: widths and links of Table 3.4, overlaps and links of Table 3.6.
pub const WORST_3_8: Figure = &[
    (54, &[(30, 0), (29, 0), (69, 2)]),
    (30, &[(37, 3), (45, 1), (46, 2)]),
    (29, &[(27, 1), (32, 2), (33, 2), (36, 3)]),
    (15, &[(15, 0), (15, 3), (16, 1), (20, 3), (28, 0), (34, 2)]),
];

/// Figure 3.8, optimal case, the same rectangles: Tables 3.5 and 3.7.
pub const OPTIMAL_3_8: Figure = &[
    (54, &[(69, 2), (29, 0), (30, 0)]),
    (30, &[(46, 2), (37, 3), (45, 1)]),
    (29, &[(33, 2), (32, 2), (36, 3), (27, 1)]),
    (15, &[(34, 2), (15, 0), (28, 0), (15, 3), (20, 3), (16, 1)]),
];

/// Table 3.3, in MB/s.
pub const TABLE_3_3: &str = r#"
[network.matrix]
clusters = ["c0", "c1", "c2", "c3"]
bandwidth = [["891.20 MB/s", "55.01 MB/s", "249.53 MB/s", "56.39 MB/s"],
 ["55.01 MB/s", "893.13 MB/s", "68.96 MB/s", "90.88 MB/s"],
 ["249.53 MB/s", "68.96 MB/s", "6850.27 MB/s", "71.93 MB/s"],
 ["56.39 MB/s", "90.88 MB/s", "71.93 MB/s", "896.17 MB/s"]]
"#;

/// A plan with one processor for each rectangle, numbered down the columns, and a platform of those clusters.
/// A unit of the figure is `scale` elements.
pub fn figure(columns: Figure, scale: u64, links: &str) -> Result<(Plan, Platform)> {
    let columns: Vec<Column> = columns.iter().map(|(width, blocks)| (*width, blocks.to_vec())).collect();
    figure_of(&columns, scale, links)
}

/// A column as (width, [(height, cluster)]).
pub type Column = (u64, Vec<(u64, usize)>);

/// The same of columns that are computed.
pub fn figure_of(columns: &[Column], scale: u64, links: &str) -> Result<(Plan, Platform)> {
    let mut text = String::new();
    let mut parts = Vec::new();
    let (mut left, mut height) = (0, 0);
    for (width, blocks) in columns {
        let mut top = 0;
        for (rows, cluster) in blocks {
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
    let platform = parse_platform(&(text + links), "figure")?;
    let shape = Shape::new(height * scale, height * scale, left * scale, "figure")?;
    let layout = Layout::new(shape, parts.len(), parts)?;
    Ok((Plan::of_layout("columns", platform.names(), layout, 1.0), platform))
}

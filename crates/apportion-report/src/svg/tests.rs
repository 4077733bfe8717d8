//! Pictures are XML, complete, and true to the layout.

use super::picture::borders;
use super::*;
use crate::markup::percent;
use apportion::geometry::{Rank, Rect, Span, SpanSet};
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Layout, Shape, shapes, shares};
use proptest::prelude::*;

fn plan(layout: Layout) -> Plan {
    Plan::of_layout("square-corner", (0..layout.processors()).map(|i| format!("p{i}")).collect(), layout, 1.0)
}

fn units(shares: Vec<u64>) -> Plan {
    let names = (0..shares.len()).map(|i| format!("p{i}")).collect();
    Plan::of_units("proportional", names, shares, f64::NAN)
}

fn columns(m: u64, n: u64, weights: &[f64]) -> Plan {
    plan(shapes::Columns::default().layout(Shape::new(m, n, n, "test").unwrap(), weights).unwrap())
}

/// Checks that tags nest, attributes are quoted, and `<` and `&` occur only as markup.
fn well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        let Some(end) = rest.find('>') else { return false };
        let text_is_clean = rest[..at]
            .split('&')
            .skip(1)
            .all(|e| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| e.starts_with(known)));
        let tag = &rest[at + 1..end];
        if !text_is_clean || tag.contains('<') || !tag.matches('"').count().is_multiple_of(2) {
            return false;
        }
        let name = tag.split_whitespace().next().unwrap_or("");
        if let Some(closed) = name.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    open.is_empty() && rest.trim().is_empty()
}

#[test]
fn the_check_of_xml_can_fail() {
    assert!(well_formed("<a b=\"c\"><d/>&amp;</a>\n"));
    for bad in ["<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a>x</a>y"] {
        assert!(!well_formed(bad), "{bad}");
    }
}

#[test]
fn names_are_escaped() {
    let mut plan = columns(10, 10, &[3.0, 1.0]);
    plan.processors[0] = "a<b&\"c\"\u{1}\n".into();
    plan.method = "<script>".into();
    let svg = plan_svg(&plan, &[]);
    assert!(well_formed(&svg), "{svg}");
    assert!(svg.contains("a&lt;b&amp;&quot;c&quot;\u{fffd} ") && !svg.contains("<script"));
}

/// The picture of an L and a square has one piece each: six sides of the L, two of them shared with the
/// square.
#[test]
fn an_l_is_one_piece() {
    let layout =
        shapes::SquareCorner.layout(Shape::new(1000, 1000, 1000, "test").unwrap(), &[9.0, 1.0]).unwrap();
    let rects = layout.rects_by_owner();
    assert!(rects[0].len() == 2, "the L is stored as two rectangles");
    let lengths = |axes: fn(&Rect) -> (Span, Span)| -> Vec<u64> {
        borders(&rects, axes).values().map(SpanSet::len).filter(|length| *length > 0).collect()
    };
    let mut across = lengths(|r| (r.rows, r.cols));
    across.sort_unstable();
    assert_eq!(across, [316, 1000, 1000]);
    assert_eq!(lengths(|r| (r.cols, r.rows)).len(), 3);
}

#[test]
fn a_tiny_plan_to_the_byte() {
    let layout = Layout::new(
        Shape::new(2, 3, 2, "test").unwrap(),
        2,
        [
            apportion::plan::Part::new(Rank(0), Rect::new(Span::new(0, 2), Span::new(0, 1))),
            apportion::plan::Part::new(Rank(1), Rect::new(Span::new(0, 2), Span::new(1, 2))),
        ],
    );
    let svg = plan_svg(&plan(layout.unwrap()), &["x".into(), "y".into()]);
    assert_eq!(svg, include_str!("tiny.svg"));
}

#[test]
fn many_processors_make_a_legend_of_clusters() {
    let weights: Vec<f64> = (0..200).map(|i| 1.0 + f64::from(i % 7)).collect();
    let clusters: Vec<String> = (0..200).map(|i| format!("site{}", i / 40)).collect();
    let svg = plan_svg(&columns(1000, 1000, &weights), &clusters);
    assert!(well_formed(&svg));
    assert!(svg.contains("site0 (40)") && svg.contains("site4 (40)"));
    let svg = plan_svg(&units(vec![1; 5000]), &[]);
    assert!(well_formed(&svg) && svg.contains("and 4,760 more") && svg.contains(">0.020</tspan>"));
}

/// Clusters have thicker borders and names; the sites of a tree decide the colours.
#[test]
fn clusters_are_named_and_bordered() {
    let plan = columns(1000, 1000, &[4.0, 3.0, 2.0, 1.0]);
    let names = |all: [&str; 4]| all.map(str::to_owned).to_vec();
    let svg = plan_svg(&plan, &names(["north", "south", "north", "south"]));
    assert!(svg.contains("class=\"cluster\"") && svg.contains(">north<") && svg.contains(">cluster</tspan>"));
    let widths = |svg: &str| svg.matches("stroke-linecap=\"square\"").count();
    assert_eq!(widths(&svg), 2, "borders of parts, and of clusters");
    let flat = plan_svg(&plan, &[]);
    assert!(widths(&flat) == 1 && !flat.contains("class=\"cluster\"") && !flat.contains(">cluster</tspan>"));
    let tree = plan_svg(&plan, &names(["s/a", "s/b", "s/a", "t/a"]));
    assert_eq!(widths(&tree), 3, "borders of parts, of clusters, and of sites");
    let one = plan_svg(&plan, &names(["s/a", "s/a", "t/b", "t/b"]));
    assert_eq!(widths(&one), 2, "each site is one cluster");
}

/// A part too small for its name has it beside the picture, with a line to it, and a ring if it is tiny. All
/// separate pieces are named.
#[test]
fn small_parts_are_named_beside_the_picture() {
    let svg = plan_svg(&columns(1000, 1000, &[900.0, 100.0, 1.0]), &[]);
    assert!(svg.contains("class=\"leader\"") && svg.contains(">p2, 0.090 %<"), "{svg}");
    let corner =
        shapes::SquareCorner.layout(Shape::new(1000, 1000, 1000, "test").unwrap(), &[1e5, 1.0]).unwrap();
    let svg = plan_svg(&plan(corner), &[]);
    assert!(svg.contains("r=\"7\"") && svg.contains(">p1, 0.00090 %<") && well_formed(&svg), "{svg}");
    let strips = [[0, 10], [10, 20], [20, 30]].map(|rows: [u64; 2]| Rect::new(rows.into(), Span::new(0, 30)));
    let parts = strips.iter().zip([0, 1, 0]).map(|(r, owner)| apportion::plan::Part::new(Rank(owner), *r));
    let apart = plan(Layout::new(Shape::new(30, 30, 30, "test").unwrap(), 2, parts).unwrap());
    let inside = plan_svg(&apart, &[]);
    assert_eq!(inside.matches(">p0</tspan>").count(), 3, "two pieces and the legend: {inside}");
    let many = plan_svg(&units(vec![1; 3000]), &[]);
    assert!(many.contains("too small for a name: 3,000 parts") && !many.contains("leader"), "{many}");
}

#[test]
fn sides_and_costs_are_in_words() {
    let svg = plan_svg(&columns(4000, 1000, &[2.0, 1.0]), &[]);
    for word in [">4,000 rows<", ">1,000 columns<", "% above", "imbalance 1.0000"] {
        assert!(svg.contains(word), "{word} in {svg}");
    }
    assert!(plan_svg(&columns(40_000, 100, &[1.0]), &[]).contains("columns (not to scale)"));
    assert!(titles(&columns(100, 100, &[1.0]))[1].contains("half-perimeters 2.000 sides, the lower bound"));
}

/// Members of one cluster that touch have different tints.
#[test]
fn neighbours_have_different_colours() {
    let plan = columns(1000, 1000, &[1.0; 16]);
    let picture = Picture::of(&plan, None, Canvas::File);
    let all = colours(&["c"; 16], &picture.neighbours());
    assert!(!picture.neighbours().is_empty());
    for (a, b) in picture.neighbours() {
        assert_ne!(all[a], all[b], "{a} and {b}");
    }
}

#[test]
fn numbers_are_readable() {
    let parts = [1_000_000, 333_333, 420, 99, 1, 0].map(|part| percent(part, 1_000_000));
    assert_eq!(parts, ["100.0", "33.3", "0.042", "0.0099", "0.00010", "0.0"]);
    assert_eq!([percent(1, 1 << 40), percent(0, 0)], ["9e-11", "0.0"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Every small plan is XML that names every processor; empty shares and any proportions included.
    #[test]
    fn every_picture_is_complete(
        weights in prop::collection::vec(0u64..50, 1..20), m in 1u64..5000, n in 1u64..5000,
    ) {
        prop_assume!(weights.iter().any(|w| *w > 0));
        let speeds: Vec<f64> = weights.iter().map(|w| *w as f64).collect();
        for plan in [columns(m, n, &speeds), units(shares::proportional(n, &speeds))] {
            let svg = plan_svg(&plan, &["a".into(), "b".into(), "a".into()]);
            prop_assert!(well_formed(&svg));
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
            for name in &plan.processors {
                let cell = format!(">{name}</tspan>");
                prop_assert!(svg.contains(&cell));
            }
        }
    }
}

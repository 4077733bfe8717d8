//! Pictures of curves are complete, and their curves can be distinguished.

use super::*;

fn plot(points: Vec<[f64; 2]>) -> String {
    plot_svg(&Plot {
        title: ["a < b".into(), "beneath".into()],
        axes: ["x".into(), "y & z".into()],
        series: vec![
            Series { name: "one".into(), points, ..Series::default() },
            Series { name: "none".into(), dashed: true, colour: 1, ..Series::default() },
        ],
        references: vec![(1.0, "bound".into())],
        ..Plot::default()
    })
}

fn lines(names: &[&str], height: impl Fn(usize, f64) -> f64) -> Plot {
    let series = |(i, name): (usize, &&str)| Series {
        name: (*name).to_owned(),
        points: (1..=10).map(f64::from).map(|x| [x, height(i, x)]).collect(),
        colour: i,
        ..Series::default()
    };
    Plot { series: names.iter().enumerate().map(series).collect(), ..Plot::default() }
}

/// Texts of the labels with their heights on the page.
fn labels(svg: &str) -> Vec<(String, f64)> {
    let label = |line: &str| {
        let (_, rest) = line.split_once("class=\"label\"")?;
        let y = rest.split(" y=\"").nth(1)?.split('"').next()?.parse().ok()?;
        Some((rest.split_once('>')?.1.split('<').next()?.to_owned(), y))
    };
    svg.lines().filter_map(label).collect()
}

#[test]
fn every_point_is_on_the_page_and_gaps_are_left() {
    let svg = plot(vec![[1.0, 1.02], [2.0, f64::NAN], [3.0, 1.1], [4.0, 1.05]]);
    assert_eq!(svg.matches("<polyline").count(), 1, "a lone point has a marker only");
    assert!(svg.contains("a &lt; b") && svg.contains("y &amp; z") && !svg.contains("NaN"));
    assert!(plot(Vec::new()).ends_with("</svg>\n"));
    let places = svg.split("points=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' '));
    for (x, y) in places.map(|p| p.split_once(',').unwrap()) {
        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
        assert!((AREA[0]..=AREA[2]).contains(&x) && (AREA[1]..=AREA[3]).contains(&y), "{x} {y}");
    }
}

/// A curve without a point is not listed; the others are, beside the area, in the order of their ends.
#[test]
fn labels_are_beside_the_ends() {
    let svg = plot(vec![[1.0, 2.0], [4.0, 9.0]]);
    let labels = labels(&svg);
    assert_eq!(labels.iter().map(|l| l.0.as_str()).collect::<Vec<_>>(), ["one", "bound"]);
    assert!(labels[0].1 < labels[1].1);
    for rest in svg.split("class=\"label\" x=\"").skip(1) {
        let x: f64 = rest.split('"').next().unwrap().parse().unwrap();
        assert!(x > AREA[2], "{x} is within the plotting area");
    }
}

#[test]
fn coinciding_curves_share_a_label_or_alternate() {
    let all = plot_svg(&lines(&["columns", "nagamochi-abe", "rows"], |i, x| if i < 2 { x } else { 2.0 * x }));
    let names: Vec<String> = labels(&all).into_iter().map(|l| l.0).collect();
    assert_eq!(names, ["rows", "columns =", "nagamochi-abe"]);
    // Curves 0 and 1 coincide up to x = 5: both colours are seen there.
    let part = plot_svg(&lines(&["a", "b"], |i, x| if x <= 5.0 || i == 0 { x } else { 10.0 }));
    assert_eq!(labels(&part).len(), 2);
    let shared: Vec<&str> =
        part.lines().filter(|l| l.starts_with("<polyline") && l.contains("dashoffset")).collect();
    assert_eq!(shared.len(), 2, "{part}");
    assert!(shared[0].contains("#0072b2") && shared[1].contains("#d55e00"), "{shared:?}");
    assert_eq!(part.lines().filter(|l| l.starts_with("<polyline")).count(), 4);
}

#[test]
fn wide_ranges_are_logarithmic_and_say_so() {
    let wide = lines(&["a"], |_, x| 10f64.powf(x));
    assert_eq!(wide_axes(&wide), [false, true]);
    assert!(plot_svg(&wide).contains("(log scale)"));
    assert!(!plot_svg_on(&wide, [false; 2]).contains("(log scale)"));
    assert_eq!(wide_axes(&lines(&["a"], |_, x| x - 3.0)), [false; 2]);
    // A speed that falls to zero beyond its memory is drawn at the foot of a logarithmic axis.
    let capped = lines(&["a"], |_, x| if x > 9.0 { 0.0 } else { 10f64.powf(x) });
    assert_eq!(wide_axes(&capped), [false, true]);
    assert!(!plot_svg(&capped).contains("inf"));
}

/// A vertical axis that hides most of its range says where it starts, and is broken.
#[test]
fn a_cut_axis_says_so() {
    let cut = plot_svg(&lines(&["a"], |_, x| 98.0 + x / 5.0));
    assert!(cut.contains("class=\"break\"") && cut.contains("the vertical axis starts at 98"), "{cut}");
    let whole = plot_svg(&lines(&["a"], |_, x| x));
    assert!(!whole.contains("class=\"break\"") && !whole.contains("starts at"));
}

#[test]
fn marks_bands_and_measured_points_are_drawn() {
    let mut plot = lines(&["a"], |_, x| x);
    plot.series[0].band = vec![[1.0, 0.5, 2.0], [10.0, 9.0, 12.0]];
    plot.series[0].marked = Some(vec![[2.0, 2.0], [4.0, 4.0]]);
    plot.marks = vec![([3.0, 3.0], "b wins from 3.0".into()), ([3.01, 3.0], "too near".into())];
    plot.notes = vec!["a remark".into()];
    let svg = plot_svg(&plot);
    let marks = svg.lines().find(|l| l.contains("class=\"marks\"")).unwrap();
    assert_eq!(marks.matches('z').count(), 2, "{marks}");
    assert!(svg.contains("class=\"band\"") && svg.contains("a remark") && svg.contains(">b wins from 3.0<"));
    assert!(!svg.contains("too near"), "texts of marks are not on each other");
    assert_eq!(svg.matches("<circle").count(), 2);
}

/// Ninety names are all on the page, none on another; of 10,000 curves a bounded number is drawn.
#[test]
fn many_curves_fit_and_stay_small() {
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("node-{i}")).collect();
        let mut plot =
            lines(&names.iter().map(String::as_str).collect::<Vec<_>>(), |i, x| (i + 1) as f64 * x);
        plot.series.iter_mut().for_each(|s| s.points = vec![s.points[0]; 5000]);
        plot_svg(&plot)
    };
    let svg = many(80);
    let height: f64 = svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    let labels = labels(&svg);
    assert_eq!(labels.len(), 80);
    assert!(labels.windows(2).all(|l| l[1].1 - l[0].1 > 9.0 && l[1].1 < height), "{labels:?}");
    let svg = many(10_000);
    assert!(svg.len() < 4_000_000 && svg.contains("100 of 10,000 curves are drawn"), "{}", svg.len());
}

//! Pictures of traces show each kind of time, and messages under way.

use super::shapes::{columns, events};
use super::*;
use apportion::geometry::Rank;
use apportion::trace::Activity;

fn trace_svg(trace: &Trace, names: &[String]) -> String {
    timeline_svg(&Timeline::new(trace, names))
}

fn lane(events: &[(Activity, f64, f64, Option<usize>)]) -> Lane {
    let mut lane = Lane::default();
    events.iter().for_each(|&(what, from, to, peer)| lane.push(what, from, to, peer.map(Rank)));
    lane
}

/// Widths of the rectangles of the first path of a class.
fn widths(svg: &str, class: &str) -> Vec<f64> {
    let path = svg.lines().find(|l| l.contains(&format!("class=\"{class}\""))).unwrap_or_default();
    let wide = path.split('h').filter_map(|rest| rest.split_once('v')).map(|(width, _)| width);
    wide.filter_map(|w| w.parse().ok()).collect()
}

#[test]
fn every_kind_has_its_colour_and_place() {
    let trace = Trace {
        lanes: vec![
            lane(&[(Activity::Compute, 0.0, 2.0, None), (Activity::Communicate, 2.0, 3.0, None)]),
            lane(&[(Activity::Idle, 0.0, 1.0, Some(0)), (Activity::Communicate, 1.0, 4.0, Some(0))]),
        ],
    };
    let svg = trace_svg(&trace, &["a<b".into(), "b".into()]);
    assert!(svg.contains("a&lt;b") && svg.contains(">4.0<") && svg.contains("2 processors, 4"));
    for (word, width) in [("compute", 450.0), ("send", 225.0), ("wait", 225.0), ("receive", 675.0)] {
        assert_eq!(widths(&svg, word), [width], "{word}");
    }
    assert_eq!(svg, trace_svg(&trace, &["a<b".into(), "b".into()]));
}

/// A message that travels while both ends compute is seen: outgoing, incoming, and as a line.
#[test]
fn messages_under_way_are_drawn() {
    let mut trace = Trace { lanes: vec![lane(&[(Activity::Compute, 0.0, 4.0, None)]); 2] };
    trace.lanes[1].fly(Rank(0), 1.0, 3.0);
    trace.lanes[1].fly(Rank(0), 2.5, 3.5);
    let svg = trace_svg(&trace, &[]);
    assert_eq!((widths(&svg, "outgoing"), widths(&svg, "incoming")), (vec![562.5], vec![562.5]));
    assert!(svg.contains("class=\"message\""));
    // Too many for lines: the strips remain.
    for i in 0..400 {
        trace.lanes[0].fly(Rank(1), f64::from(i) * 0.01, f64::from(i) * 0.01 + 0.002);
    }
    let svg = trace_svg(&trace, &[]);
    assert!(!svg.contains("class=\"message\"") && widths(&svg, "incoming").len() == 400);
}

#[test]
fn the_forecast_is_under_the_measured_lane() {
    let measured = Trace { lanes: vec![lane(&[(Activity::Compute, 0.0, 2.0, None)])] };
    let forecast = Trace { lanes: vec![lane(&[(Activity::Compute, 0.0, 4.0, None)])] };
    let names = ["p0".to_owned()];
    let title = ["columns, ring flow", "forecast 4.00 s, measured 2.00 s"];
    let svg =
        timeline_svg(&Timeline { title, forecast: Some(&forecast), ..Timeline::new(&measured, &names) });
    assert!(svg.contains(">columns, ring flow<") && svg.contains(">forecast 4.00 s, measured 2.00 s<"));
    let (first, second) = svg.split_once("class=\"forecast\"").unwrap();
    assert_eq!((widths(first, "compute"), widths(second, "compute")), (vec![450.0], vec![900.0]));
    assert!(!trace_svg(&measured, &names).contains("forecast"));
}

/// Columns and events cover the same time, kind by kind.
#[test]
fn many_events_take_the_same_area() {
    let mut many = Lane::default();
    for i in 0..4000 {
        let at = f64::from(i) / 1000.0;
        let what = if i % 4 == 0 { Activity::Idle } else { Activity::Compute };
        many.push(what, at, at + 0.001, Some(Rank(i as usize % 2)));
    }
    let scale = WIDTH / 4.0;
    let area = |path: &str| -> f64 {
        let sides = path.split('h').skip(1).step_by(2).map(|rest| {
            let (width, rest) = rest.split_once('v').unwrap();
            width.parse::<f64>().unwrap() * rest.parse::<f64>().unwrap_or(0.0)
        });
        sides.sum()
    };
    let (exact, coarse) =
        (events(&many.events, scale, [0.0, 20.0]), columns(&many.events, scale, [0.0, 20.0], WIDTH));
    for (kind, share) in [(0, 0.75), (3, 0.25)] {
        for path in [&exact[kind], &coarse[kind]] {
            assert!((area(path) / (WIDTH * 20.0) - share).abs() < 0.02, "{kind}: {}", area(path));
        }
    }
    assert!(coarse.iter().map(String::len).sum::<usize>() < 120_000);
}

/// Every event says what it is, up to a number; a page is as wide as asked, and its type is not too small.
#[test]
fn events_have_titles_and_pages_have_their_width() {
    let names = ["fast".to_owned(), "slow".to_owned()];
    let waits = lane(&[(Activity::Compute, 0.0, 2.0, None), (Activity::Idle, 2.0, 3.0, Some(1))]);
    let trace = Trace { lanes: vec![waits, Lane::default()] };
    let svg = trace_svg(&trace, &names);
    assert!(svg.contains("<title>fast computes: 2.00 s, from 0 s to 2.00 s</title>"), "{svg}");
    assert!(svg.contains("<title>fast waits for slow: 1.00 s, from 2.00 s to 3.00 s</title>"), "{svg}");
    let mut many = Lane::default();
    for i in 0..=MOST_TITLES {
        many.push(Activity::Compute, i as f64, i as f64 + 0.5, None);
    }
    assert!(!trace_svg(&Trace { lanes: vec![many] }, &names).contains(" computes: "));
    for width in [330.0, 900.0] {
        let svg = timeline_on(&Timeline::new(&trace, &names), Canvas::Page(width));
        assert!(svg.contains(&format!("width=\"{width}\"")) && !svg.contains("#ffffff"), "{svg}");
        let sizes = svg.split("font-size=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let sizes: Vec<f64> = sizes.map(|size| size.parse().unwrap()).collect();
        assert!(sizes.iter().all(|size| *size >= LEAST_TYPE), "{sizes:?}");
    }
}

#[test]
fn an_empty_trace_is_drawn_too() {
    assert!(trace_svg(&Trace::default(), &[]).ends_with("</svg>\n"));
    let svg = trace_svg(&Trace { lanes: vec![Lane::default()] }, &[]);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

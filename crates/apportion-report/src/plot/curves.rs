//! The curves: which are drawn, which coincide, and how.

use super::scale::Scale;
use super::style::Style;
use super::{MOST_POINTS, Series, finite};
use std::borrow::Cow;
use std::fmt::Write;

/// Series of at most this number of points have markers.
const MOST_MARKED: usize = 60;
/// Maximum number of coinciding curves with markers of their own.
const MOST_MARKERS: usize = 2;
/// Curves nearer than this number of pixels look the same.
const NEAR: f64 = 0.75;
/// Length of alternating dashes.
const DASH: f64 = 7.0;
/// Maximum number of curves that alternate; more share the first ones' places.
const MOST_SHARED: usize = 4;

/// At most so many series, which are drawn, with a bounded number of points, and the number of those that are not.
pub(super) fn limit_points(all: &[Series], most: usize) -> (Vec<Cow<'_, Series>>, usize) {
    let drawn = |s: &&Series| s.points.iter().any(finite);
    let mut series: Vec<&Series> = all.iter().filter(drawn).collect();
    let unseen = series.len().saturating_sub(most);
    if unseen > 0 {
        series.sort_by(|a, b| last_of(a)[1].total_cmp(&last_of(b)[1]));
        let last = series.len() - 1;
        series = (0..most).map(|i| series[i * last / (most - 1)]).collect();
    }
    (series.into_iter().map(thinned).collect(), unseen)
}

fn thinned(series: &Series) -> Cow<'_, Series> {
    let marks = series.marked.as_ref().map_or(0, Vec::len);
    if series.points.len().max(marks).max(series.band.len()) <= MOST_POINTS {
        return Cow::Borrowed(series);
    }
    Cow::Owned(Series {
        points: spread(&series.points),
        band: spread(&series.band),
        marked: series.marked.as_deref().map(spread),
        ..series.clone()
    })
}

/// At most [`MOST_POINTS`] of the points, the first and the last among them.
fn spread<T: Copy>(points: &[T]) -> Vec<T> {
    let last = points.len().saturating_sub(1);
    if last < MOST_POINTS {
        return points.to_vec();
    }
    (0..MOST_POINTS).map(|i| points[i * last / (MOST_POINTS - 1)]).collect()
}

/// The last finite point.
pub(super) fn last_of(series: &Series) -> [f64; 2] {
    series.points.iter().rev().copied().find(finite).unwrap_or([0.0; 2])
}

/// Groups of series that look the same everywhere, by index; the first of each group stands for it.
pub(super) fn merged(series: &[Cow<'_, Series>], scales: [&Scale; 2]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let places: Vec<Vec<[f64; 2]>> = series.iter().map(|s| placed(&s.points, scales)).collect();
    let same = |a: usize, b: usize| {
        let (one, other) = (&series[a], &series[b]);
        let plain = |s: &Series| !s.dashed && s.band.is_empty();
        plain(one)
            && plain(other)
            && places[a].len() == places[b].len()
            && places[a].iter().zip(&places[b]).all(|(p, q)| near(*p, *q))
    };
    for i in 0..series.len() {
        match groups.iter_mut().find(|g| same(g[0], i)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

fn placed(points: &[[f64; 2]], [xs, ys]: [&Scale; 2]) -> Vec<[f64; 2]> {
    points.iter().map(|p| if finite(p) { [xs.place(p[0]), ys.place(p[1])] } else { [f64::NAN; 2] }).collect()
}

fn near(a: [f64; 2], b: [f64; 2]) -> bool {
    let missing = |p: [f64; 2]| p[0].is_nan();
    if missing(a) || missing(b) { missing(a) == missing(b) } else { (a[0] - b[0]).hypot(a[1] - b[1]) < NEAR }
}

pub(super) fn draw(svg: &mut String, series: &[Cow<'_, Series>], groups: &[Vec<usize>], scales: [&Scale; 2]) {
    for s in series.iter().filter(|s| !s.band.is_empty()) {
        draw_band(svg, s, scales);
    }
    let places: Vec<Vec<[f64; 2]>> = series.iter().map(|s| placed(&s.points, scales)).collect();
    for (group, number) in groups.iter().zip(0..) {
        let leader = group[0];
        for (run, with) in runs(leader, number, groups, &places) {
            draw_run(svg, series, &places[leader][run], &with, leader);
        }
    }
    for group in groups {
        for (i, &member) in group.iter().enumerate().take(MOST_MARKERS) {
            draw_markers(svg, &series[member], scales, (group.len().min(MOST_MARKERS) - 1 - i) as f64);
        }
    }
}

/// A piece of a curve, and the series that it coincides with there, its own group among them.
type Run = (std::ops::Range<usize>, Vec<usize>);

/// Cuts a curve where other curves join or leave it. A gap ends a piece.
fn runs(leader: usize, number: usize, groups: &[Vec<usize>], places: &[Vec<[f64; 2]>]) -> Vec<Run> {
    let own = &places[leader];
    let shared = |k: usize| -> Vec<usize> {
        let there = |other: &Vec<[f64; 2]>| {
            other.len() == own.len() && near(other[k], own[k]) && near(other[k + 1], own[k + 1])
        };
        let joined = groups.iter().enumerate().filter(|(j, g)| *j == number || there(&places[g[0]]));
        joined.flat_map(|(_, g)| g.iter().copied()).take(MOST_SHARED).collect()
    };
    let mut runs: Vec<Run> = Vec::new();
    for k in 0..own.len().saturating_sub(1) {
        if own[k][0].is_nan() || own[k + 1][0].is_nan() {
            continue;
        }
        let with = shared(k);
        match runs.last_mut() {
            Some((run, same)) if run.end == k + 1 && *same == with => run.end = k + 2,
            _ => runs.push((k..k + 2, with)),
        }
    }
    runs
}

/// One piece in its own dashes, or in dashes that alternate with those of the curves beneath or above it.
fn draw_run(
    svg: &mut String,
    series: &[Cow<'_, Series>],
    places: &[[f64; 2]],
    with: &[usize],
    leader: usize,
) {
    let mut line = String::new();
    places.iter().for_each(|p| {
        let _ = write!(line, "{}{:.2},{:.2}", if line.is_empty() { "" } else { " " }, p[0], p[1]);
    });
    let mut put = |number: usize, dashes: String| {
        let style = Style::of(series[number].colour, series[number].dashed);
        let _ = writeln!(
            svg,
            "<polyline points=\"{line}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}/>",
            style.stroke()
        );
    };
    if with.len() == 1 {
        return put(leader, Style::of(series[leader].colour, series[leader].dashed).dashes());
    }
    // Each draws all members; the same piece of the others' draws the same.
    if with[0] == leader {
        with.iter().enumerate().for_each(|(i, &member)| put(member, alternating(i, with.len())));
    }
}

/// The `i`th of `of` dashes that alternate.
pub(super) fn alternating(i: usize, of: usize) -> String {
    let (gap, offset) = (DASH * (of - 1) as f64, DASH * (of - i) as f64);
    format!(" stroke-dasharray=\"{DASH} {gap}\" stroke-dashoffset=\"{offset}\"")
}

/// Markers; those of coinciding curves are larger beneath, so that all are seen.
fn draw_markers(svg: &mut String, series: &Series, scales: [&Scale; 2], beneath: f64) {
    let all = match &series.marked {
        Some(marked) => marked,
        None if series.points.len() <= MOST_MARKED => &series.points,
        None => return,
    };
    let style = Style::of(series.colour, series.dashed);
    let mut path = String::new();
    for place in placed(all, scales).into_iter().filter(|p| !p[0].is_nan()) {
        style.mark(&mut path, place, 3.0 + 1.8 * beneath);
    }
    if !path.is_empty() {
        let _ = writeln!(
            svg,
            "<path class=\"marks\" d=\"{path}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>",
            style.fill(),
            style.stroke()
        );
    }
}

fn draw_band(svg: &mut String, series: &Series, [xs, ys]: [&Scale; 2]) {
    let place = |x: f64, y: f64| format!("{:.2},{:.2}", xs.place(x), ys.place(y));
    let there = series.band.iter().map(|b| place(b[0], b[2]));
    let back = series.band.iter().rev().map(|b| place(b[0], b[1]));
    let edge: Vec<String> = there.chain(back).collect();
    let _ = writeln!(
        svg,
        "<polygon class=\"band\" points=\"{}\" fill=\"{}\" fill-opacity=\"0.2\"/>",
        edge.join(" "),
        Style::of(series.colour, false).stroke()
    );
}

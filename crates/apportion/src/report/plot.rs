//! A line plot: several series over one axis, as a self-contained picture.

use super::palette::lines;
use super::svg::{INK, escape};
use std::fmt::Write;

/// Size of the page.
const PAGE: [f64; 2] = [760.0, 470.0];
/// The plotting area: left, top, right, bottom.
const AREA: [f64; 4] = [76.0, 74.0, 736.0, 414.0];
/// The colour of the grid.
const GRID: &str = "#e3e3e3";
/// Series of at most this number of points have markers.
const MOST_MARKED: usize = 60;
/// Desired number of ticks on each axis.
const TICKS: f64 = 8.0;
/// Width of an average character, as a fraction of the font size.
const CHARACTER: f64 = 0.63;

/// The contents of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The heading, and a line beneath it.
    pub title: [String; 2],
    /// The labels of the horizontal and the vertical axis.
    pub axes: [String; 2],
    /// The curves, in the order of the legend.
    pub series: Vec<Series>,
    /// Heights of horizontal lines across the plot, with their names.
    pub references: Vec<(f64, String)>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points from left to right; those that are not finite leave a gap.
    pub points: Vec<[f64; 2]>,
    /// Drawn dashed with hollow marks, as for a bound or a minimum.
    pub dashed: bool,
    /// Series with the same number share a colour.
    pub colour: usize,
}

/// Draws a plot as a self-contained SVG 1.1 document with round ticks, a grid and a legend. The
/// same plot gives the same bytes.
pub fn plot_svg(plot: &Plot) -> String {
    plot_svg_on(plot, [false; 2])
}

/// As [`plot_svg`], with logarithmic axes where `logarithmic` (horizontal, vertical) is true: the values of
/// such an axis must be positive.
pub fn plot_svg_on(plot: &Plot, logarithmic: [bool; 2]) -> String {
    let points = || plot.series.iter().flat_map(|s| &s.points).filter(|p| finite(p));
    let on = |axis: usize, values: Vec<f64>, from, to, rounded| match logarithmic[axis] {
        true => Scale::of_ratios(values.into_iter().map(f64::log10), from, to),
        false => Scale::over(values.into_iter(), from, to, rounded),
    };
    let xs = on(0, points().map(|p| p[0]).collect(), AREA[0], AREA[2], false);
    let heights = points().map(|p| p[1]).chain(plot.references.iter().map(|r| r.0));
    let ys = on(1, heights.collect(), AREA[3], AREA[1], true);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\" role=\"img\">\n\
         <title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"24\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{2}</text>\n\
         <text x=\"24\" y=\"51\" font-size=\"13\">{3}</text>\n",
        PAGE[0],
        PAGE[1],
        escape(&plot.title[0]),
        escape(&plot.title[1]),
    );
    draw_axes(&mut svg, plot, &xs, &ys);
    for series in &plot.series {
        draw_series(&mut svg, series, &xs, &ys);
    }
    draw_legend(&mut svg, plot, &xs, &ys);
    svg.push_str("</svg>\n");
    svg
}

fn finite(point: &[f64; 2]) -> bool {
    point.iter().all(|x| x.is_finite())
}

/// From numbers to places on the page.
struct Scale {
    least: f64,
    most: f64,
    step: f64,
    from: f64,
    to: f64,
    /// The values are powers of ten.
    logarithmic: bool,
}

impl Scale {
    /// A scale that shows all values; if `rounded`, it begins and ends at a tick.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64, rounded: bool) -> Self {
        let (mut least, mut most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if most - least <= 1e-9 * most.abs().max(1e-9) {
            let room = if least == 0.0 { 1.0 } else { 0.1 * least.abs() };
            (least, most) = (least - room, most + room);
        }
        let step = step((most - least) / TICKS);
        if rounded {
            // A value on the border except for rounding errors stays on it.
            least = (least / step + 1e-4).floor() * step;
            most = (most / step - 1e-4).ceil() * step;
        }
        Self { least, most, step, from, to, logarithmic: false }
    }

    /// A scale that shows all values, given by their decimal logarithms.
    fn of_ratios(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        Self { logarithmic: true, ..Self::over(values, from, to, false) }
    }

    fn place(&self, x: f64) -> f64 {
        let x = if self.logarithmic { x.log10() } else { x };
        self.from + (x - self.least) / (self.most - self.least) * (self.to - self.from)
    }

    /// The ticks with their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        if self.logarithmic {
            return self.round_ratios();
        }
        let first = (self.least / self.step - 1e-6).ceil() as i64;
        let last = (self.most / self.step + 1e-6).floor() as i64;
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        // 0.25 needs one decimal more than its power of ten.
        let decimals =
            if (self.step * 10f64.powi(decimals as i32)).fract() > 0.01 { decimals + 1 } else { decimals };
        (first..=last)
            .map(|i| {
                let x = i as f64 * self.step;
                (x, format!("{x:.decimals$}"))
            })
            .collect()
    }
}

impl Scale {
    /// Powers of ten, with twice and five times them if there is room.
    fn round_ratios(&self) -> Vec<(f64, String)> {
        let decades = self.most - self.least;
        let factors: &[f64] = if decades > 4.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = self.least.floor() as i32..=self.most.ceil() as i32;
        let ticks = powers.flat_map(|power| factors.iter().map(move |f| (power, f * 10f64.powi(power))));
        let shown = |(_, x): &(i32, f64)| (self.least - 1e-9..=self.most + 1e-9).contains(&x.log10());
        let label = |power: i32, x: f64| format!("{x:.*}", usize::try_from(-power).unwrap_or(0));
        ticks.filter(shown).map(|(power, x)| (x, label(power, x))).collect()
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is no smaller than `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors.into_iter().find(|f| f * power >= least * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

fn draw_axes(svg: &mut String, plot: &Plot, xs: &Scale, ys: &Scale) {
    let [left, top, right, bottom] = AREA;
    let _ = writeln!(svg, "<g stroke=\"{GRID}\" stroke-width=\"1\">");
    for (y, _) in ys.ticks() {
        let y = ys.place(y);
        let _ = writeln!(svg, "<line x1=\"{left}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\"/>");
    }
    svg.push_str("</g>\n");
    for (y, label) in ys.ticks() {
        let (x, y) = (left - 10.0, ys.place(y) + 4.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.2}\" text-anchor=\"end\">{label}</text>");
    }
    for (x, label) in xs.ticks() {
        let x = xs.place(x);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"{INK}\"/>\
             <text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 5.0,
            bottom + 20.0,
        );
    }
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let _ = writeln!(
        svg,
        "<line x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" stroke=\"{INK}\"/>\n\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"13\">{}</text>\n\
         <text x=\"24\" y=\"{y}\" text-anchor=\"middle\" font-size=\"13\" transform=\"rotate(-90 24 {y})\">{}</text>",
        bottom + 42.0,
        escape(&plot.axes[0]),
        escape(&plot.axes[1]),
    );
    for (height, name) in &plot.references {
        let y = ys.place(*height);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\" stroke=\"{INK}\" stroke-width=\"1.2\"/>\
             <text x=\"{right}\" y=\"{:.2}\" text-anchor=\"end\" font-style=\"italic\">{}</text>",
            y - 6.0,
            escape(name),
        );
    }
}

fn draw_series(svg: &mut String, series: &Series, xs: &Scale, ys: &Scale) {
    let colour = lines(series.colour);
    let dash = if series.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
    for run in series.points.split(|p| !finite(p)).filter(|run| !run.is_empty()) {
        let places: Vec<String> =
            run.iter().map(|p| format!("{:.2},{:.2}", xs.place(p[0]), ys.place(p[1]))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-linejoin=\"round\"{dash}/>",
            places.join(" ")
        );
    }
    if series.points.len() <= MOST_MARKED {
        let fill = if series.dashed { "#ffffff" } else { &colour };
        let _ = writeln!(svg, "<g fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\">");
        for point in series.points.iter().filter(|p| finite(p)) {
            let (x, y) = (xs.place(point[0]), ys.place(point[1]));
            let _ = writeln!(svg, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"3\"/>");
        }
        svg.push_str("</g>\n");
    }
}

/// Names on white in the corner that hides the fewest points, preferably the upper right one.
fn draw_legend(svg: &mut String, plot: &Plot, xs: &Scale, ys: &Scale) {
    let longest = plot.series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let [width, height] = [46.0 + longest as f64 * 12.0 * CHARACTER, plot.series.len() as f64 * 19.0 + 10.0];
    let corners =
        [[AREA[2] - width, AREA[1]], [AREA[2] - width, AREA[3] - height - 8.0], [AREA[0] + 8.0, AREA[1]]];
    let hidden = |[x, y]: &[f64; 2]| {
        let inside = |p: &&[f64; 2]| {
            let [px, py] = [xs.place(p[0]) - x, ys.place(p[1]) - y];
            (-6.0..=width + 6.0).contains(&px) && (-6.0..=height + 6.0).contains(&py)
        };
        plot.series.iter().flat_map(|s| &s.points).filter(inside).count()
    };
    let [x, top] = corners.into_iter().min_by_key(hidden).unwrap_or(corners[0]);
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"#ffffff\" \
         fill-opacity=\"0.9\" stroke=\"{GRID}\"/>"
    );
    for (i, series) in plot.series.iter().enumerate() {
        let y = top + 14.5 + i as f64 * 19.0;
        let colour = lines(series.colour);
        let (dash, fill) =
            if series.dashed { (" stroke-dasharray=\"6 4\"", "#ffffff") } else { ("", colour.as_str()) };
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>\
             <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 8.0,
            x + 34.0,
            x + 21.0,
            x + 40.0,
            y + 4.0,
            escape(&series.name),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<[f64; 2]>) -> String {
        plot_svg(&Plot {
            title: ["a < b".into(), "beneath".into()],
            axes: ["x".into(), "y & z".into()],
            series: vec![
                Series { name: "one".into(), points, dashed: false, colour: 0 },
                Series { name: "none".into(), points: Vec::new(), dashed: true, colour: 1 },
            ],
            references: vec![(1.0, "bound".into())],
        })
    }

    #[test]
    fn steps_are_round() {
        for (least, round) in
            [(0.013, 0.02), (1.0, 1.0), (0.21, 0.25), (3.0, 5.0), (600.0, 1000.0), (0.02, 0.02)]
        {
            assert!((step(least) - round).abs() < 1e-12, "{least}: {}", step(least));
        }
    }

    #[test]
    fn ticks_span_the_values() {
        let labels = |values: [f64; 2]| -> Vec<String> {
            Scale::over(values.into_iter(), 0.0, 100.0, true).ticks().into_iter().map(|t| t.1).collect()
        };
        assert_eq!(labels([1.0, 1.105]), ["1.00", "1.02", "1.04", "1.06", "1.08", "1.10", "1.12"]);
        assert_eq!(labels([0.0, 2.0]).first().unwrap(), "0.00");
        assert_eq!(labels([0.0, 2.0])[1], "0.25");
        assert_eq!(labels([-40.0, 40.0])[0], "-40");
        let flat = Scale::over([3.0, 3.0].into_iter(), 0.0, 100.0, true);
        assert!(flat.least < 3.0 && flat.most > 3.0 && (0.0..=100.0).contains(&flat.place(3.0)));
    }

    #[test]
    fn ratios_have_ticks_of_their_own() {
        let scale = Scale::of_ratios([100f64, 10_000.0].into_iter().map(f64::log10), 0.0, 100.0);
        let labels: Vec<String> = scale.ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["100", "200", "500", "1000", "2000", "5000", "10000"]);
        assert!((scale.place(1000.0) - 50.0).abs() < 1e-9);
        let small = Scale::of_ratios([0.05f64, 0.5].into_iter().map(f64::log10), 0.0, 1.0);
        assert_eq!(small.ticks().into_iter().map(|t| t.1).collect::<Vec<_>>(), ["0.05", "0.1", "0.2", "0.5"]);
    }

    #[test]
    fn every_point_is_on_the_page_and_gaps_are_left() {
        let svg = plot(vec![[1.0, 1.02], [2.0, f64::NAN], [3.0, 1.1], [4.0, 1.05]]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        let places: Vec<f64> = svg
            .split(" cx=\"")
            .skip(1)
            .flat_map(|rest| rest.split(['"', '=']).step_by(2).take(2).map(|x| x.parse().unwrap_or(0.0)))
            .collect();
        assert!(places.iter().all(|x| (0.0..=PAGE[0]).contains(x)), "{places:?}");
        assert!(svg.contains("a &lt; b") && svg.contains("y &amp; z") && !svg.contains("NaN"));
        assert!(plot(Vec::new()).ends_with("</svg>\n"));
    }
}

//! The picture of a plan: the parts of C and their owners.

mod clusters;
mod labels;
mod picture;
mod slices;

use super::canvas::{Canvas, LEAST_TYPE};
use super::legend::Legend;
use super::markup::{INK, escape};
use super::palette::colours;
use super::text::wrapped;
use apportion::plan::{Layout, Plan, Problem};
use apportion::units::show_count;
use picture::Picture;
pub(super) use picture::outlines_of;
pub(super) use slices::slices;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Margin around everything.
const MARGIN: f64 = 24.0;
/// Left and top of the picture: room for the name of the rows, for the title and one line beneath it.
const CORNER: [f64; 2] = [44.0, 76.0];
/// Room beneath the picture for the name of the columns.
const FOOT: f64 = 24.0;
/// Longest side of the picture.
const SIDE: f64 = 600.0;
/// Longest side of a picture that is much wider than high: the legend goes beneath it.
const WIDE: f64 = 900.0;
/// Up to this number of processors a picture is small, with the legend beneath it: its text can be read where it is
/// 300 pixels wide.
const FEW: usize = 12;
/// The two sides of such a picture.
const SMALL: [f64; 2] = [400.0, 480.0];
/// Ratio of sides beyond which a picture is no longer to scale.
const LONGEST: f64 = 10.0;
/// Width of an average character of a sans-serif font, as a fraction of its size.
const CHARACTER: f64 = 0.58;

/// Draws a plan as a self-contained SVG 1.1 document: every processor's region in the colour of its cluster,
/// with its name and percentage, thicker borders and names where there are clusters, and a legend. Names of
/// regions that are too small stand beside the picture. 1-D shares are drawn as a bar.
///
/// `clusters` holds the cluster of each processor, by rank; a processor beyond its end is its own cluster.
/// Of clusters such as `site/node`, the sites have the colours and the thickest borders. The picture has the
/// matrix's proportions, up to 10:1. The same plan gives the same bytes. O(R log R) for R rectangles, O(R^2)
/// up to 700.
pub fn plan_svg(plan: &Plan, clusters: &[String]) -> String {
    Drawing::new(plan, clusters, None, Canvas::File).file(plan)
}

/// The same of a graph, where `raster` has who owns which cell of a picture of it.
pub fn graph_svg(plan: &Plan, clusters: &[String], raster: &Layout) -> String {
    Drawing::new(plan, clusters, Some(raster), Canvas::File).file(plan)
}

/// The picture of a plan in a page so many pixels wide: the regions, without legend and title. Names that do not
/// fit their regions are left out.
pub(super) fn plan_on(plan: &Plan, clusters: &[String], width: f64) -> String {
    Drawing::new(plan, clusters, None, Canvas::Page(width)).page(plan)
}

/// The colour of each processor in the picture of a plan.
pub(super) fn plan_colours(plan: &Plan, clusters: &[String]) -> Vec<String> {
    Drawing::new(plan, clusters, None, Canvas::File).colours
}

/// A picture of a plan and its colours.
struct Drawing<'a> {
    /// The cluster of each processor, and its site.
    clusters: Vec<&'a str>,
    sites: Vec<&'a str>,
    picture: Picture,
    colours: Vec<String>,
}

impl<'a> Drawing<'a> {
    fn new(plan: &'a Plan, clusters: &'a [String], raster: Option<&Layout>, canvas: Canvas) -> Self {
        let names = plan.processors.iter().enumerate();
        let clusters: Vec<&str> = names.map(|(i, name)| clusters.get(i).unwrap_or(name).as_str()).collect();
        let sites = sites(&clusters);
        let picture = Picture::of(plan, raster, canvas);
        let colours = colours(&sites, &picture.neighbours());
        Self { clusters, sites, picture, colours }
    }

    /// The regions with their names, and those of clusters.
    fn draw(&self, svg: &mut String, plan: &Plan, labels: &labels::Labels) {
        let Self { clusters, sites, picture, colours } = self;
        picture.draw(svg, plan, colours, [sites, clusters]);
        labels.draw(svg, picture.corner);
        clusters::draw_names(svg, picture, sites, false);
        if !alike(sites, clusters) {
            clusters::draw_names(svg, picture, clusters, true);
        }
        picture.draw_sides(svg, plan);
    }

    fn page(&self, plan: &Plan) -> String {
        let picture = &self.picture;
        let labels = labels::Labels::within(picture, plan, LEAST_TYPE);
        let [left, top] = picture.corner;
        let size = [left + picture.size[0] + 2.0, top + picture.size[1] + FOOT];
        let mut svg = Canvas::Page(size[0]).head(size, "", &escape(&titles(plan)[0]));
        self.draw(&mut svg, plan, &labels);
        svg.push_str("</svg>\n");
        svg
    }

    fn file(&self, plan: &Plan) -> String {
        let picture = &self.picture;
        let legend = Legend::new(plan, &self.clusters, &self.colours);
        let [width, height] = picture.size;
        let is_wide = width > 1.5 * height;
        let labels = labels::Labels::new(picture, plan, is_wide);
        let [left, top] = picture.corner;
        let (right, bottom) = match is_wide {
            true => (left + width, top + height + FOOT + labels.depth()),
            false => (left + width + labels.depth(), top + height + FOOT),
        };
        let beneath = is_wide || plan.processors.len() <= FEW;
        let (lines, mut place) = if beneath {
            let columns = (width / legend.column()) as usize;
            (legend.lines_for(columns), [left, bottom + 8.0])
        } else {
            (legend.lines_in(height.max(0.75 * SIDE)), [right + 24.0, top])
        };
        let table = legend.size(lines);
        let mut page =
            [(place[0] + table[0]).max(right) + MARGIN, (place[1] + table[1]).max(bottom) + MARGIN];
        let [title, costs] = titles(plan);
        let title = wrapped(&title, ((page[0] - 2.0 * MARGIN) / (18.0 * CHARACTER)) as usize);
        let costs = wrapped(&costs, ((page[0] - 2.0 * MARGIN) / (13.0 * CHARACTER)) as usize);
        let shift = 22.0 * (title.len() - 1) as f64 + 17.0 * costs.len().saturating_sub(1) as f64;
        page[1] += shift;
        let mut svg = Canvas::File.head(page.map(f64::ceil), "", &escape(&title.join(" ")));
        let mut y = 38.0;
        for (line, size) in title.iter().map(|l| (l, 18)).chain(costs.iter().map(|l| (l, 13))) {
            let weight = if size == 18 { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                svg,
                "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"{size}\"{weight} fill=\"{INK}\">{}</text>",
                escape(line)
            );
            y += if size == 18 { 22.0 } else { 17.0 };
        }
        let _ = writeln!(svg, "<g transform=\"translate(0 {shift})\">");
        self.draw(&mut svg, plan, &labels);
        place[1] -= if beneath { 0.0 } else { 4.0 };
        legend.draw(&mut svg, place, lines);
        svg.push_str("</g>\n</svg>\n");
        svg
    }
}

/// The part of each cluster's name that decides its colour: the site of `site/node` if there are several
/// sites.
fn sites<'a>(clusters: &[&'a str]) -> Vec<&'a str> {
    let heads: Vec<&str> = clusters.iter().map(|c| c.split('/').next().unwrap_or(c)).collect();
    if heads.iter().all(|head| *head == heads[0]) { clusters.to_vec() } else { heads }
}

/// Whether two names of every processor divide the processors into the same groups.
fn alike(one: &[&str], other: &[&str]) -> bool {
    let pairs: BTreeSet<(&str, &str)> = one.iter().copied().zip(other.iter().copied()).collect();
    let count = |names: &[&str]| names.iter().collect::<BTreeSet<_>>().len();
    pairs.len() == count(one) && pairs.len() == count(other)
}

/// The title lines: the subject and its costs.
fn titles(plan: &Plan) -> [String; 2] {
    let count = |n: u64| show_count(u128::from(n));
    let p = plan.processors.len();
    let processors =
        if p == 1 { "1 processor".to_owned() } else { format!("{} processors", count(p as u64)) };
    let what = match plan.problem() {
        Problem::Matmul(s) => format!("C of {} × {}, k = {}", count(s.m), count(s.n), count(s.k)),
        Problem::Syrk { n, k } => format!("lower triangle of {} × {}, k = {}", count(n), count(n), count(k)),
        Problem::Grid { m, n } => format!("domain of {} × {} cells", count(m), count(n)),
        Problem::Factorisation { factors, n, block } => {
            format!("{factors} of {} × {}, blocks of {}", count(n), count(n), count(block))
        }
        Problem::Units { n } => format!("{} units", count(n)),
        Problem::Graph { n, edges } => format!("graph of {} vertices, {} edges", count(n), count(edges)),
    };
    let metrics = &plan.metrics;
    let mut costs = Vec::new();
    if let Some(volume) = metrics.volume {
        let boxes = plan.rectangles().is_some_and(|layout| layout.boxes().is_some());
        let bound = metrics.volume_bound.filter(|_| boxes);
        let bound = bound.map_or_else(String::new, |bound| format!(" (bound {})", count(bound)));
        costs.push(format!("volume {} elements{bound}", count(volume)));
    }
    if let (Some(cost), Some(bound)) = (metrics.sum_half_perimeters, metrics.lower_bound) {
        let above = 100.0 * (cost / bound - 1.0);
        let above = if above < 0.05 {
            "the lower bound".into()
        } else {
            format!("{above:.1} % above the lower bound")
        };
        costs.push(format!("half-perimeters {cost:.3} sides, {above}"));
    }
    if metrics.imbalance.is_finite() {
        costs.push(format!("imbalance {:.4}", metrics.imbalance));
    }
    [format!("{}: {what}, {processors}", plan.method), costs.join(" · ")]
}

#[cfg(test)]
mod tests;

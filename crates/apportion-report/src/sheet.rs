//! Several layouts of one matrix side by side, each with its costs: small multiples of one scale.

use super::markup::{INK, escape, percent};
use super::palette::colours;
use super::svg::slices;
use apportion::plan::Plan;
use std::fmt::Write;

/// Longest side of a layout, in pixels.
const SIDE: f64 = 240.0;
/// Space between layouts, and around all of them.
const GAP: f64 = 28.0;
/// Height of the title of the sheet.
const TITLE: f64 = 44.0;
/// Layouts side by side: of few, two, whose text can be read where the picture is 300 pixels wide.
const COLUMNS: [usize; 2] = [2, 4];
/// Height of a line of text under a layout.
const LINE: f64 = 16.0;
/// Width of an average character of a sans-serif font, as a fraction of its size.
const CHARACTER: f64 = 0.6;
/// Ratio of sides beyond which a layout is no longer to scale.
const LONGEST: f64 = 5.0;
/// Smallest and largest font of a label.
const TYPE: [f64; 2] = [8.0, 15.0];

/// A layout of the sheet.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The plan of a matrix product.
    pub plan: &'a Plan,
    /// Lines beneath the name of its method, such as its costs.
    pub costs: &'a [String],
    /// True for the layout that was chosen: it has a thick frame.
    pub chosen: bool,
}

/// Draws layouts of the same matrix for the same processors in rows of four (two, of up to four layouts), each with
/// its method and costs beneath it, as a self-contained SVG document. `clusters` holds the cluster of each processor, by rank; a
/// processor beyond its end is its own cluster. Plans of units are left out. O(R) for R rectangles in all.
pub fn sheet_svg(title: &str, candidates: &[Candidate<'_>], clusters: &[String]) -> String {
    let drawn: Vec<&Candidate<'_>> = candidates.iter().filter(|c| c.plan.layout().is_ok()).collect();
    let names = drawn.first().map_or(&[][..], |c| &c.plan.processors);
    let groups: Vec<&str> =
        names.iter().enumerate().map(|(i, name)| clusters.get(i).unwrap_or(name).as_str()).collect();
    let colours = colours(&groups, &[]);
    let ratio = drawn
        .first()
        .and_then(|c| c.plan.layout().ok())
        .map_or(1.0, |l| (l.shape().n as f64 / l.shape().m as f64).clamp(1.0 / LONGEST, LONGEST));
    let [wide, high] = if ratio >= 1.0 { [SIDE, SIDE / ratio] } else { [SIDE * ratio, SIDE] };
    let longest = drawn.iter().flat_map(|c| c.costs).map(|l| l.chars().count()).max().unwrap_or(0);
    let cell = wide.max(longest as f64 * 12.0 * CHARACTER);
    let lines = 1 + drawn.iter().map(|c| c.costs.len()).max().unwrap_or(0);
    let [across, down] = [cell + GAP, high + lines as f64 * LINE + GAP];
    let most = COLUMNS[usize::from(drawn.len() > COLUMNS[1])];
    let columns = drawn.len().clamp(1, most);
    let page = [
        (GAP + columns as f64 * across).max(2.0 * GAP + title.chars().count() as f64 * 16.0 * CHARACTER),
        TITLE + GAP + drawn.len().div_ceil(columns) as f64 * down,
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0}\" height=\"{1:.0}\" viewBox=\"0 0 {0:.0} {1:.0}\" \
         font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n<title>{2}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{GAP}\" y=\"32\" font-size=\"16\" font-weight=\"bold\" fill=\"{INK}\">{2}</text>\n",
        page[0].ceil(),
        page[1].ceil(),
        escape(title),
    );
    for (at, candidate) in drawn.into_iter().enumerate() {
        let left = GAP + (at % columns) as f64 * across;
        let top = TITLE + GAP / 2.0 + (at / columns) as f64 * down;
        draw(&mut svg, candidate, &colours, [left, top, wide, high]);
    }
    svg.push_str("</svg>\n");
    svg
}

/// One layout at left, top, width and height.
fn draw(svg: &mut String, candidate: &Candidate<'_>, colours: &[String], place: [f64; 4]) {
    let [left, top, wide, high] = place;
    let Ok(layout) = candidate.plan.layout() else { return };
    let shape = layout.shape();
    let drawn = slices(layout);
    let x = |col: u64| left + wide * col as f64 / drawn.cols as f64;
    let y = |row: u64| top + high * row as f64 / shape.m as f64;
    for (owner, rects) in drawn.rects.iter().enumerate().filter(|(_, rects)| !rects.is_empty()) {
        let mut path = String::new();
        for r in rects {
            let [a, b] = [x(r.cols.start), x(r.cols.end)];
            let _ = write!(path, "M{a:.2} {:.2}H{b:.2}V{:.2}H{a:.2}Z", y(r.rows.start), y(r.rows.end));
        }
        let _ = writeln!(
            svg,
            "<path fill=\"{0}\" stroke=\"{0}\" stroke-width=\"0.4\" d=\"{path}\"/>",
            colours[owner]
        );
    }
    // The outline of every owner: edges that two rectangles of one owner share are not drawn.
    let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{INK}\" stroke-width=\"1\" d=\"{}\"/>", {
        let mut lines = String::new();
        for line in super::svg::outlines_of(&drawn.rects) {
            let [from, to] = line;
            let _ = write!(lines, "M{:.2} {:.2}L{:.2} {:.2}", x(from[1]), y(from[0]), x(to[1]), y(to[0]));
        }
        lines
    });
    let total: u64 = candidate.plan.shares.iter().sum();
    for (owner, rects) in drawn.rects.iter().enumerate() {
        let Some(r) = rects.iter().max_by_key(|r| (r.area(), std::cmp::Reverse(**r))) else { continue };
        let [a, b, c, d] = [x(r.cols.start), x(r.cols.end), y(r.rows.start), y(r.rows.end)];
        let name = &candidate.plan.processors[owner];
        let part = format!("{} %", percent(candidate.plan.shares[owner], total));
        let fit = |words: &[&str]| {
            let longest = words.iter().map(|w| w.chars().count()).max().unwrap_or(1) as f64;
            (0.9 * (b - a) / (longest * CHARACTER))
                .min(0.8 * (d - c) / (1.2 * words.len() as f64))
                .min(TYPE[1])
        };
        let both = [name.as_str(), &part];
        let words = if fit(&both) >= TYPE[0] { &both[..] } else { &both[..1] };
        let size = fit(words);
        if size < TYPE[0] {
            continue;
        }
        for (i, word) in words.iter().enumerate() {
            let base = (c + d) / 2.0 + size * (0.35 + 1.15 * (i as f64 - (words.len() - 1) as f64 / 2.0));
            let _ = writeln!(
                svg,
                "<text x=\"{:.2}\" y=\"{base:.2}\" font-size=\"{size:.1}\" text-anchor=\"middle\" \
                 fill=\"{INK}\">{}</text>",
                (a + b) / 2.0,
                escape(word)
            );
        }
    }
    let frame = if candidate.chosen { 4.0 } else { 1.0 };
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{wide:.2}\" height=\"{high:.2}\" fill=\"none\" \
         stroke=\"{INK}\" stroke-width=\"{frame}\"/>"
    );
    let name = format!("{}{}", candidate.plan.method, if candidate.chosen { " (chosen)" } else { "" });
    let lines = std::iter::once((&name, 14, " font-weight=\"bold\""))
        .chain(candidate.costs.iter().map(|line| (line, 12, "")));
    for (i, (line, size, weight)) in lines.enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{left:.2}\" y=\"{:.2}\" font-size=\"{size}\"{weight} fill=\"{INK}\">{}</text>",
            top + high + 4.0 + (i + 1) as f64 * LINE,
            escape(line)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::shapes::LayoutMethod;
    use apportion::plan::{Shape, shapes};

    #[test]
    fn every_layout_has_its_name_and_its_costs() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let names = || vec!["a<b".to_owned(), "c".to_owned()];
        let plan = |method: &str, layout| Plan::of_layout(method, names(), layout, 1.0);
        let plans = [
            plan("rows", shapes::Rows::default().layout(shape, &[9.0, 1.0]).unwrap()),
            plan("square-corner", shapes::SquareCorner.layout(shape, &[9.0, 1.0]).unwrap()),
        ];
        let costs = [vec!["volume 10,000".to_owned()], vec!["volume 6,400".to_owned()]];
        let all: Vec<Candidate<'_>> = plans
            .iter()
            .zip(&costs)
            .enumerate()
            .map(|(i, (plan, costs))| Candidate { plan, costs, chosen: i == 1 })
            .collect();
        let svg = sheet_svg("9:1", &all, &[]);
        for word in ["rows", "square-corner (chosen)", "volume 10,000", "volume 6,400", "a&lt;b", "90.0 %"] {
            assert!(svg.contains(word), "{word}");
        }
        assert_eq!(svg, sheet_svg("9:1", &all, &[]));
        // The L shape has an outline of six edges; the line between its two rectangles is not among them.
        let lines = super::super::svg::outlines_of(&plans[1].layout().unwrap().rects_by_owner());
        assert!(lines.iter().all(|[a, b]| a[0] != 68 || b[1] - a[1] <= 32), "{lines:?}");
        assert!(sheet_svg("nothing", &[], &[]).contains("nothing"));
    }
}

//! The cost of a layout: half-perimeters, elements moved, imbalance.
//!
//! Source: Becker 2010, sections 4.2.4 and 5.5 (half-perimeters, lower bound, interrupts).

use super::{Layout, Part, Shape, boxes, volume_bound};
use crate::geometry::{Rank, Rect, Span, SpanSet, union_length};
use serde::{Deserialize, Serialize};

/// The largest number of processors for which the p x p table of moved elements is made.
const LARGEST_TABLE: usize = 1024;

/// The metrics of a plan. 1-D shares have an imbalance only; the other fields are `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Sum over processors of r_i/m + c_i/n, where processor i owns elements in r_i rows and c_i columns of
    /// C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_half_perimeters: Option<f64>,
    /// 2 sum sqrt(share_i / (m n)), a lower bound of the sum of half-perimeters for these shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<f64>,
    /// The largest half-perimeter of one processor, r_i/m + c_i/n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_half_perimeter: Option<f64>,
    /// Elements that are sent from one processor to another: of A and B, k sum(r_i + c_i) - m k - k n, also where C is
    /// symmetric and A^T is B; of C,
    /// partial sums if the inner dimension is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<u64>,
    /// The least volume of any plan with these shares, whether or not it cuts the inner dimension
    /// ([`volume_bound()`]); `None` if C is symmetric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_bound: Option<u64>,
    /// Row and column interrupts ([`interrupts()`]); `None` for a layout that cuts the inner dimension or is that of
    /// a symmetric C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interrupts: Option<u64>,
    /// Elements sent, as `[receiver][sender]`. `None` for more than 1024 processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_matrix: Option<Vec<Vec<u64>>>,
    /// Of a graph: the weights of the edges between parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_cut: Option<u64>,
    /// Longest time over ideal time; 1.0 means that all processors finish together.
    pub imbalance: f64,
    /// Number of elements of C that each processor can compute without any message, by rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication_free: Option<Vec<u64>>,
    /// Seconds that no plan can beat on the platform by the models that the plan was made for; `None` where
    /// there is no forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_bound: Option<f64>,
    /// The forecast over `time_bound`; at least 1 for plans that this library makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast_over_bound: Option<f64>,
}

impl Metrics {
    /// Metrics of 1-D shares.
    pub(crate) fn of_units(imbalance: f64) -> Self {
        Self {
            sum_half_perimeters: None,
            lower_bound: None,
            largest_half_perimeter: None,
            volume: None,
            volume_bound: None,
            interrupts: None,
            volume_matrix: None,
            edge_cut: None,
            imbalance,
            communication_free: None,
            time_bound: None,
            forecast_over_bound: None,
        }
    }

    /// Metrics of a stencil's domain: half-perimeters, which its halo exchange grows with, and imbalance.
    pub(crate) fn of_grid(layout: &Layout, imbalance: f64) -> Self {
        let half_perimeters = half_perimeters(layout);
        Self {
            sum_half_perimeters: Some(half_perimeters.iter().sum()),
            lower_bound: Some(lower_bound(layout.shape(), &layout.shares())),
            largest_half_perimeter: Some(half_perimeters.iter().copied().fold(0.0, f64::max)),
            ..Self::of_units(imbalance)
        }
    }

    /// Metrics of a layout. O(p R) for the table of directions (p <= 1024), else O(R log R).
    pub fn of_layout(layout: &Layout, imbalance: f64) -> Self {
        let mut metrics = Self::without_table(layout, imbalance);
        metrics.fill_in(layout);
        metrics
    }

    /// Adds the interrupts, the elements that need no message, and the table of directions for up to 1024
    /// processors. O(p R).
    pub(crate) fn fill_in(&mut self, layout: &Layout) {
        let owned = communication_free(layout);
        let free = |(OwnedLines { rows, cols }, rects): (&OwnedLines, Vec<Rect>)| {
            rects.iter().map(|r| rows.count_in(r.rows) * cols.count_in(r.cols)).sum()
        };
        self.communication_free = Some(match layout.boxes() {
            None => owned.iter().zip(layout.rects_by_owner()).map(free).collect(),
            Some(boxes) => boxes::communication_free(layout.processors(), boxes, &owned),
        });
        self.interrupts = (layout.boxes().is_none() && !layout.is_triangular()).then(|| interrupts(layout));
        self.volume_matrix = (layout.processors() <= LARGEST_TABLE).then(|| match layout.boxes() {
            None => directions(layout, &layout.rows_by_owner(), &layout.cols_by_owner()),
            Some(boxes) => boxes::directions(layout, boxes),
        });
    }

    /// [`of_layout`](Self::of_layout) without the interrupts, the table of directions, p^2 numbers, and the
    /// elements that need no message: no choice among layouts needs them. O(R log R), with boxes O(R^2).
    pub(crate) fn without_table(layout: &Layout, imbalance: f64) -> Self {
        let touched = layout.row_and_column_counts();
        let half_perimeters = half_perimeters_of(layout.shape(), &touched);
        Self {
            sum_half_perimeters: Some(half_perimeters.iter().sum()),
            lower_bound: Some(lower_bound(layout.shape(), &layout.shares())),
            largest_half_perimeter: Some(half_perimeters.iter().copied().fold(0.0, f64::max)),
            volume: Some(match layout.boxes() {
                None => volume(layout.shape(), &touched),
                Some(boxes) => boxes::volume(layout, boxes),
            }),
            volume_bound: volume_lower_bound(layout),
            ..Self::of_units(imbalance)
        }
    }

    /// The largest number of elements that one processor sends to another: with all links working at once,
    /// this pair finishes last.
    pub fn largest_direction(&self) -> Option<u64> {
        self.volume_matrix.as_ref().map(|t| t.iter().flatten().copied().max().unwrap_or(0))
    }
}

/// r_i/m + c_i/n of every processor.
fn half_perimeters(layout: &Layout) -> Vec<f64> {
    half_perimeters_of(layout.shape(), &layout.row_and_column_counts())
}

/// The same of known numbers of rows and columns.
fn half_perimeters_of(Shape { m, n, .. }: Shape, touched: &[[u64; 2]]) -> Vec<f64> {
    touched.iter().map(|&[r, c]| r as f64 / m as f64 + c as f64 / n as f64).collect()
}

/// Lower bound of the sum of half-perimeters: 2 sum sqrt(share_i / (m n)) (Beaumont et al. 2001; Becker 2010,
/// equation 4.4).
pub fn lower_bound(shape: Shape, shares: &[u64]) -> f64 {
    let whole = shape.elements() as f64;
    2.0 * shares.iter().map(|&s| (s as f64 / whole).sqrt()).sum::<f64>()
}

impl Layout {
    /// Number of rows and columns of C that several processors share. Times k, these are the elements of A
    /// and B that some processor needs and another one owns.
    pub(crate) fn shared_lines(&self) -> u64 {
        let Shape { m, n, .. } = self.shape();
        let whole = |own: &Vec<Rect>| {
            fully_owned(own.iter().map(|r| (r.rows, r.cols.len())), n).len()
                + fully_owned(own.iter().map(|r| (r.cols, r.rows.len())), m).len()
        };
        m + n - self.rects_by_owner().iter().map(whole).sum::<u64>()
    }

    /// The numbers of rows and columns of C in which each processor computes elements, by rank. O(R log R).
    fn row_and_column_counts(&self) -> Vec<[u64; 2]> {
        let mut faces: Vec<(Rank, Rect)> = match self.boxes() {
            Some(boxes) => boxes.iter().map(|one| (one.owner, one.face())).collect(),
            None => self.parts().iter().map(|part| (part.owner, part.rect())).collect(),
        };
        faces.sort_by_key(|(owner, _)| owner.0);
        let mut touched = vec![[0; 2]; self.processors()];
        let mut room = Vec::new();
        for own in faces.chunk_by(|a, b| a.0 == b.0) {
            let mut length = |of: fn(&Rect) -> Span| {
                room.clear();
                room.extend(own.iter().map(|(_, rect)| of(rect)));
                union_length(&mut room)
            };
            touched[own[0].0.0] = [length(|rect| rect.rows), length(|rect| rect.cols)];
        }
        touched
    }

    /// Elements that travel: [`Metrics::volume`] alone. O(R log R), with boxes O(R^2).
    pub fn volume(&self) -> u64 {
        match self.boxes() {
            None => volume(self.shape(), &self.row_and_column_counts()),
            Some(boxes) => boxes::volume(self, boxes),
        }
    }
}

/// Lower bound of the volume of all plans with this layout's shares of the work, whether or not they cut the
/// inner dimension ([`volume_bound()`]). `None` if C is symmetric: there a row of A serves as a column of B too.
pub fn volume_lower_bound(layout: &Layout) -> Option<u64> {
    let shape = layout.shape();
    let whole = shape.flops() / 2.0;
    let bound = || volume_bound(shape, layout.work().into_iter().map(|work| work as f64 / whole));
    (!layout.is_triangular()).then(bound)
}

/// Row and column interrupts: the number of rows and columns of C of which a processor owns some elements but
/// not all, summed over processors (Becker 2010, equation 5.18). With two processors and n = k = m, each
/// interrupt moves n/2 elements.
///
/// With more processors, volume = k (interrupts - number of rows and columns shared by several processors).
pub fn interrupts(layout: &Layout) -> u64 {
    interrupts_by_owner(layout).iter().sum()
}

/// The [`interrupts`] of each processor, by rank. Times k, these are the elements of A and B that it and the
/// others have in common: what crosses the wires around it in both directions, in any flow.
pub(crate) fn interrupts_by_owner(layout: &Layout) -> Vec<u64> {
    let Shape { m, n, .. } = layout.shape();
    let rects = layout.rects_by_owner();
    rects
        .iter()
        .map(|own| {
            let rows = SpanSet::union(own.iter().map(|r| r.rows)).len();
            let cols = SpanSet::union(own.iter().map(|r| r.cols)).len();
            let whole_rows = fully_owned(own.iter().map(|r| (r.rows, r.cols.len())), n).len();
            let whole_cols = fully_owned(own.iter().map(|r| (r.cols, r.rows.len())), m).len();
            rows - whole_rows + cols - whole_cols
        })
        .collect()
}

/// Half the length of all outlines, including holes, on the unit square (Becker 2010, section 5.5.2). Equals
/// the sum of half-perimeters if the outline of every part is as long as that of its bounding rectangle.
/// O(sum of R_i^2) for R_i rectangles of processor i.
pub fn outlines(layout: &Layout) -> f64 {
    let Shape { m, n, .. } = layout.shape();
    // An edge between two rectangles of the same part is not part of an outline.
    let shared =
        |a: Span, b: Span, across: u64| if a.end == b.start || b.end == a.start { across } else { 0 };
    let (mut rows, mut cols) = (0, 0);
    for own in layout.rects_by_owner() {
        for (i, a) in own.iter().enumerate() {
            rows += a.rows.len();
            cols += a.cols.len();
            for b in &own[i + 1..] {
                rows -= shared(a.cols, b.cols, a.rows.intersect(b.rows).len());
                cols -= shared(a.rows, b.rows, a.cols.intersect(b.cols).len());
            }
        }
    }
    rows as f64 / m as f64 + cols as f64 / n as f64
}

/// The volume by formula: k sum(r_i + c_i) - m k - k n.
fn volume(shape: Shape, touched: &[[u64; 2]]) -> u64 {
    let Shape { m, k, n } = shape;
    let touched: u128 = touched.iter().flatten().map(|&lines| u128::from(lines)).sum();
    let moved = u128::from(k) * touched.saturating_sub(u128::from(m) + u128::from(n));
    u64::try_from(moved).unwrap_or(u64::MAX)
}

/// Elements of A and B as `[receiver][sender]`, counted on the rectangles.
fn directions(layout: &Layout, rows: &[SpanSet], cols: &[SpanSet]) -> Vec<Vec<u64>> {
    let p = layout.processors();
    let mut table = vec![vec![0; p]; p];
    let (a, b) = (layout.parts_of_a(), layout.parts_of_b());
    for (to, line) in table.iter_mut().enumerate() {
        for part in a.iter().filter(|part| part.owner.0 != to) {
            line[part.owner.0] += rows[to].count_in(part.rows) * part.cols.len();
        }
        for part in b.iter().filter(|part| part.owner.0 != to) {
            line[part.owner.0] += part.rows.len() * cols[to].count_in(part.cols);
        }
    }
    table
}

/// The lines that a processor owns completely. It computes the elements of C at their intersections without
/// any message (Becker 2010, section 5.5.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedLines {
    /// Rows of A.
    pub(crate) rows: SpanSet,
    /// Columns of B.
    pub(crate) cols: SpanSet,
}

/// The lines that each processor owns completely, by rank.
pub(crate) fn communication_free(layout: &Layout) -> Vec<OwnedLines> {
    let k = layout.shape().k;
    let p = layout.processors();
    let by_owner = |parts: Vec<Part>| {
        let mut out = vec![Vec::new(); p];
        for part in parts {
            out[part.owner.0].push(part);
        }
        out
    };
    let (a, b) = (by_owner(layout.parts_of_a()), by_owner(layout.parts_of_b()));
    (0..p)
        .map(|i| {
            let rows = fully_owned(a[i].iter().map(|q| (q.rows, q.cols.len())), k);
            let cols = fully_owned(b[i].iter().map(|q| (q.cols, q.rows.len())), k);
            OwnedLines { rows, cols }
        })
        .collect()
}

/// The lines whose pieces add up to `whole`, given disjoint pieces as (lines, length).
fn fully_owned(pieces: impl Iterator<Item = (Span, u64)>, whole: u64) -> SpanSet {
    let mut changes: Vec<(u64, i128)> = Vec::new();
    for (lines, length) in pieces {
        changes.push((lines.start, i128::from(length)));
        changes.push((lines.end, -i128::from(length)));
    }
    changes.sort_unstable();
    let mut owned = 0;
    let mut spans = Vec::new();
    for (i, &(at, change)) in changes.iter().enumerate() {
        owned += change;
        if let Some(&(next, _)) = changes.get(i + 1)
            && next > at
            && owned == i128::from(whole)
        {
            spans.push(Span::new(at, next));
        }
    }
    SpanSet::union(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::plan::shapes::{Grid, LayoutMethod};

    /// The layout of the plan file's example: a 316 x 316 square in the corner of 1000 x 1000.
    fn example() -> Layout {
        let part = |owner, rows: [u64; 2], cols: [u64; 2]| Part {
            owner: Rank(owner),
            rows: rows.into(),
            cols: cols.into(),
        };
        Layout::new(
            Shape::new(1000, 1000, 1000, "test").unwrap(),
            2,
            [part(0, [0, 684], [0, 1000]), part(0, [684, 1000], [0, 684]), part(1, [684, 1000], [684, 1000])],
        )
        .unwrap()
    }

    #[test]
    fn the_contract_example_by_hand() {
        let metrics = Metrics::of_layout(&example(), 1.0);
        assert_eq!(metrics.sum_half_perimeters, Some(2.632));
        assert!((metrics.lower_bound.unwrap() - 2.5295).abs() < 5e-5);
        assert_eq!(metrics.volume, Some(632_000));
        // 316 rows and 316 columns, each of both processors: TVC / I = N / 2.
        assert_eq!(metrics.interrupts, Some(4 * 316));
        assert_eq!(metrics.volume_matrix, Some(vec![vec![0, 199_712], vec![432_288, 0]]));
        assert_eq!(metrics.communication_free, Some(vec![467_856, 0]));
        assert_eq!(metrics.largest_direction(), Some(432_288));
    }

    #[test]
    fn one_processor_moves_nothing_and_is_free() {
        let shape = Shape::new(3, 5, 7, "test").unwrap();
        let whole = Part { owner: Rank(1), rows: [0, 3].into(), cols: [0, 7].into() };
        let metrics = Metrics::of_layout(&Layout::new(shape, 3, [whole]).unwrap(), 1.0);
        assert_eq!(metrics.volume, Some(0));
        assert_eq!(metrics.communication_free, Some(vec![0, 21, 0]));
        assert_eq!(metrics.sum_half_perimeters, Some(2.0));
    }

    /// Table 5.3: sum of half-perimeters over volume for grids of 4 to 36 equal squares, and for one straight
    /// cut.
    #[test]
    fn straight_lines_of_the_thesis() {
        let shape = Shape::new(60, 60, 60, "test").unwrap();
        for (p, ratio) in [(2, 3.0), (4, 2.0), (9, 1.5), (16, 4.0 / 3.0), (25, 1.25), (36, 1.2)] {
            let layout = Grid::default().layout(shape, &vec![1.0; p]).unwrap();
            let metrics = Metrics::of_layout(&layout, 1.0);
            let volume = metrics.volume.unwrap();
            let cost = metrics.sum_half_perimeters.unwrap();
            assert!((cost - ratio * volume as f64 / 3600.0).abs() < 1e-9, "{p}");
            assert!((outlines(&layout) - cost).abs() < 1e-9, "{p}");
            let lines = if p == 2 { 60 } else { 120 };
            assert_eq!(volume, 60 * (interrupts(&layout) - lines), "{p}");
        }
    }
}

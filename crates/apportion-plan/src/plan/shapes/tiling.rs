//! Real-valued layouts, what methods minimise on them, and the one place where they become whole numbers.
//!
//! A tiling says how a rectangle is divided, not how large the pieces are: sizes follow from the weights, so
//! that the same tiling can be priced in real arithmetic, changed, and at last rounded to a [`Layout`].

use crate::geometry::{Rank, Rect, Span};
use crate::plan::shares::proportional;
use crate::plan::{Layout, Part, Shape};

/// The division of a rectangle among processors, each with a positive weight and contained once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tiling {
    /// One processor owns the whole rectangle.
    Whole(usize),
    /// Pieces one below the other.
    Rows(Vec<Tiling>),
    /// Pieces side by side.
    Cols(Vec<Tiling>),
    /// `owner` has everything except the blocks. These are on the diagonal from the upper left corner to the
    /// lower right one and share no row and no column. A single block is in the lower right corner.
    Corners {
        /// The owner of the rest.
        owner: usize,
        /// Height over width of each block, and its division.
        blocks: Vec<(f64, Tiling)>,
    },
}

/// How the processors' half-perimeters are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    /// Their sum.
    Sum,
    /// The largest.
    Largest,
}

impl Total {
    /// Adds one more half-perimeter, or the total of several.
    pub(crate) fn of(self, total: f64, more: f64) -> f64 {
        match self {
            Self::Sum => total + more,
            Self::Largest => total.max(more),
        }
    }
}

/// The objective by which a layout is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// The sum of half-perimeters, r_i/m + c_i/n.
    Sum,
    /// The largest half-perimeter, r_i/m + c_i/n: the bottleneck of parallel communication.
    Largest,
    /// The elements moved, k sum(r_i + c_i) - m k - k n.
    #[default]
    Volume,
}

impl Objective {
    /// The rectangle to tile for this objective. `shape` is all of the matrix, or a part of `whole`:
    /// half-perimeters are relative to the whole matrix, volumes are not.
    pub(super) fn frame(self, shape: Shape, whole: Option<Shape>) -> Frame {
        let whole = whole.unwrap_or(shape);
        let relative = [shape.m as f64 / whole.m as f64, shape.n as f64 / whole.n as f64];
        let ([high, wide], total) = match self {
            Self::Volume => ([shape.m as f64, shape.n as f64], Total::Sum),
            Self::Sum => (relative, Total::Sum),
            Self::Largest => (relative, Total::Largest),
        };
        Frame { shape, high, wide, total }
    }
}

/// The rectangle to tile, with sides in the unit of an objective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    shape: Shape,
    pub(super) high: f64,
    pub(super) wide: f64,
    pub(super) total: Total,
}

impl Frame {
    /// The cost of a tiling.
    pub(super) fn cost(&self, tiling: &Tiling, weights: &[f64]) -> f64 {
        tiling.cost(weights, self.high, self.wide, self.total)
    }

    /// A tiling in whole numbers.
    pub(super) fn layout(&self, tiling: &Tiling, weights: &[f64]) -> Layout {
        let Self { shape, high, wide, .. } = self;
        tiling.layout(*shape, weights, (high / shape.m as f64) / (wide / shape.n as f64))
    }
}

impl Tiling {
    /// Columns of rectangles, each listed from the top.
    pub(crate) fn columns<'a>(groups: impl IntoIterator<Item = &'a [usize]>) -> Self {
        Self::Cols(
            groups.into_iter().map(|g| Self::Rows(g.iter().map(|&i| Self::Whole(i)).collect())).collect(),
        )
    }

    /// The tiling with rows and columns exchanged.
    pub(crate) fn turned(self) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(Self::turned).collect();
        match self {
            Self::Whole(owner) => Self::Whole(owner),
            Self::Rows(parts) => Self::Cols(all(parts)),
            Self::Cols(parts) => Self::Rows(all(parts)),
            Self::Corners { owner, blocks } => Self::Corners {
                owner,
                blocks: blocks.into_iter().map(|(ratio, inner)| (1.0 / ratio, inner.turned())).collect(),
            },
        }
    }

    /// The tiling with `who[i]` in processor i's place.
    pub(crate) fn renamed(self, who: &[usize]) -> Self {
        let all = |parts: Vec<Self>| parts.into_iter().map(|t| t.renamed(who)).collect();
        match self {
            Self::Whole(owner) => Self::Whole(who[owner]),
            Self::Rows(parts) => Self::Rows(all(parts)),
            Self::Cols(parts) => Self::Cols(all(parts)),
            Self::Corners { owner, blocks } => Self::Corners {
                owner: who[owner],
                blocks: blocks.into_iter().map(|(ratio, inner)| (ratio, inner.renamed(who))).collect(),
            },
        }
    }

    /// Every block's height over width.
    pub(crate) fn ratios(&mut self) -> Vec<&mut f64> {
        match self {
            Self::Whole(_) => Vec::new(),
            Self::Rows(parts) | Self::Cols(parts) => parts.iter_mut().flat_map(Self::ratios).collect(),
            Self::Corners { blocks, .. } => blocks
                .iter_mut()
                .flat_map(|(ratio, inner)| std::iter::once(ratio).chain(inner.ratios()))
                .collect(),
        }
    }

    /// Sum of the weights of the processors in it.
    pub(crate) fn weight(&self, weights: &[f64]) -> f64 {
        match self {
            Self::Whole(owner) => weights[*owner],
            Self::Rows(parts) | Self::Cols(parts) => parts.iter().map(|t| t.weight(weights)).sum(),
            Self::Corners { owner, blocks } => {
                weights[*owner] + blocks.iter().map(|(_, t)| t.weight(weights)).sum::<f64>()
            }
        }
    }

    /// Calls `visit` with every processor, and the height and width that it touches of a `high` x `wide`
    /// rectangle. They are infinite if a block does not fit. O(p).
    pub(crate) fn each(
        &self,
        weights: &[f64],
        high: f64,
        wide: f64,
        visit: &mut impl FnMut(usize, f64, f64),
    ) {
        let mut sums = Vec::new();
        self.add_up(weights, &mut sums);
        self.each_of(&mut &sums[..], high, wide, visit);
    }

    /// The weights of this tiling and of all in it, in the order in which [`each_of`](Self::each_of) needs
    /// them: before each tiling's own blocks, the sum of all of it. Returns that sum. O(p).
    fn add_up(&self, weights: &[f64], sums: &mut Vec<f64>) -> f64 {
        let place = sums.len();
        sums.push(0.0);
        let sum = match self {
            Self::Whole(owner) => weights[*owner],
            Self::Rows(parts) | Self::Cols(parts) => parts.iter().map(|t| t.add_up(weights, sums)).sum(),
            Self::Corners { owner, blocks } => {
                weights[*owner] + blocks.iter().map(|(_, t)| t.add_up(weights, sums)).sum::<f64>()
            }
        };
        sums[place] = sum;
        sum
    }

    /// [`each`](Self::each), given the sums of the weights.
    fn each_of(&self, sums: &mut &[f64], high: f64, wide: f64, visit: &mut impl FnMut(usize, f64, f64)) {
        let total = sums[0];
        *sums = &sums[1..];
        match self {
            Self::Whole(owner) => visit(*owner, high, wide),
            Self::Rows(parts) => {
                for part in parts {
                    let own = sums[0];
                    part.each_of(sums, high * (own / total), wide, visit);
                }
            }
            Self::Cols(parts) => {
                for part in parts {
                    let own = sums[0];
                    part.each_of(sums, high, wide * (own / total), visit);
                }
            }
            Self::Corners { owner, blocks } => {
                let (mut rows, mut cols) = (0.0, 0.0);
                for (ratio, inner) in blocks {
                    let area = high * wide * sums[0] / total;
                    let side = (area * ratio).sqrt();
                    rows += side;
                    cols += area / side;
                    inner.each_of(sums, side, area / side, visit);
                }
                // The tolerance lets squares meet at their corners (2:1:1) despite rounding.
                let fits = rows <= high * (1.0 + 1e-12) && cols <= wide * (1.0 + 1e-12);
                visit(*owner, if fits { high } else { f64::INFINITY }, wide);
            }
        }
    }

    /// The sum of the half-perimeters, or the largest, on a `high` x `wide` rectangle.
    pub(crate) fn cost(&self, weights: &[f64], high: f64, wide: f64, total: Total) -> f64 {
        let mut sum = 0.0;
        self.each(weights, high, wide, &mut |_, h, w| sum = total.of(sum, h + w));
        sum
    }

    /// The integer layout, on a matrix whose element is `stretch` times as high as wide in the tiling's unit
    /// (1 if ratios are meant in elements).
    ///
    /// Rounds from the outside in: every cut is placed where the loads of its two sides balance best given
    /// the cuts around it, so that rounding never accumulates; a block's sides are rounded up or down. A
    /// column's width takes into account the cost of rounding its heights (and a row's height likewise):
    /// columns of rectangles finish as early as any whole numbers allow. No element is lost or doubled, since
    /// each step divides one rectangle into disjoint ones. O(p depth).
    pub(crate) fn layout(&self, shape: Shape, weights: &[f64], stretch: f64) -> Layout {
        let mut parts = Vec::new();
        let whole = Rect::new(Span::new(0, shape.m), Span::new(0, shape.n));
        self.place(weights, whole, stretch, &mut parts);
        Layout::new(shape, weights.len(), parts).expect("a tiling covers the matrix exactly once")
    }

    /// The effective weight when a line of `length` elements is divided in whole numbers. It is less than the
    /// sum if processors one below the other (`rows`, else side by side) round badly, since the slowest of
    /// them determines the time.
    fn pace(&self, weights: &[f64], rows: bool, length: u64) -> f64 {
        let sum = self.weight(weights);
        let parts = match self {
            Self::Rows(parts) if rows => parts,
            Self::Cols(parts) if !rows => parts,
            _ => return sum,
        };
        let whole = |part: &Self| match part {
            Self::Whole(owner) => Some(weights[*owner]),
            _ => None,
        };
        let Some(own) = parts.iter().map(whole).collect::<Option<Vec<f64>>>() else {
            return sum;
        };
        let shares = proportional(length, &own);
        let seconds = shares.iter().zip(&own).map(|(&share, w)| share as f64 / w).fold(0.0, f64::max);
        length as f64 / seconds
    }

    fn place(&self, weights: &[f64], rect: Rect, stretch: f64, out: &mut Vec<Part>) {
        if rect.is_empty() {
            return;
        }
        match self {
            Self::Whole(owner) => out.push(Part::new(Rank(*owner), rect)),
            Self::Rows(parts) => {
                for (part, rows) in
                    parts.iter().zip(divide(rect.rows, parts, |t| t.pace(weights, false, rect.cols.len())))
                {
                    part.place(weights, Rect::new(rows, rect.cols), stretch, out);
                }
            }
            Self::Cols(parts) => {
                for (part, cols) in
                    parts.iter().zip(divide(rect.cols, parts, |t| t.pace(weights, true, rect.rows.len())))
                {
                    part.place(weights, Rect::new(rect.rows, cols), stretch, out);
                }
            }
            Self::Corners { owner, blocks } => {
                let sides = block_sides(weights[*owner], blocks, weights, rect, stretch);
                let last = blocks.len() - 1;
                let (mut row, mut col) = (rect.rows.start, rect.cols.start);
                let mut own =
                    |rows: Span, cols: Span| out.push(Part::new(Rank(*owner), Rect::new(rows, cols)));
                let mut placed = Vec::with_capacity(blocks.len());
                for (i, &(high, wide)) in sides.iter().enumerate() {
                    if i == last {
                        own(Span::new(row, rect.rows.end - high), rect.cols);
                        (row, col) = (rect.rows.end - high, rect.cols.end - wide);
                    }
                    let (rows, cols) = (Span::new(row, row + high), Span::new(col, col + wide));
                    own(rows, Span::new(rect.cols.start, col));
                    own(rows, Span::new(col + wide, rect.cols.end));
                    placed.push(Rect::new(rows, cols));
                    (row, col) = (row + high, col + wide);
                }
                for ((_, inner), block) in blocks.iter().zip(placed) {
                    inner.place(weights, block, stretch, out);
                }
            }
        }
    }
}

/// Cuts a span among pieces in proportion to their paces.
fn divide(span: Span, parts: &[Tiling], pace: impl Fn(&Tiling) -> f64) -> Vec<Span> {
    let paces: Vec<f64> = parts.iter().map(pace).collect();
    super::consecutive(&proportional(span.len(), &paces))
        .into_iter()
        .map(|s| Span::new(span.start + s.start, span.start + s.end))
        .collect()
}

/// Whole-numbered sides of each block: the pair next to the exact ones that finishes soonest.
fn block_sides(
    owner: f64,
    blocks: &[(f64, Tiling)],
    weights: &[f64],
    rect: Rect,
    stretch: f64,
) -> Vec<(u64, u64)> {
    let inner: Vec<f64> = blocks.iter().map(|(_, t)| t.weight(weights)).collect();
    let total = owner + inner.iter().sum::<f64>();
    let whole = rect.area() as f64;
    let (mut rows, mut cols) = (rect.rows.len(), rect.cols.len());
    let mut own = whole;
    let mut sides = Vec::with_capacity(blocks.len());
    for (i, (ratio, _)) in blocks.iter().enumerate() {
        let area = whole * (inner[i] / total);
        let later: f64 = inner[i + 1..].iter().map(|w| whole * w / total).sum();
        let exact_high = (area * ratio / stretch).sqrt().min(rows as f64);
        let exact_wide = if exact_high > 0.0 { (area / exact_high).min(cols as f64) } else { 0.0 };
        let time = |area: f64, weight: f64| if area <= 0.0 { 0.0 } else { area / weight };
        let near = |exact: f64, limit: u64| {
            // A side that is whole except for rounding stays as it is.
            let below = ((exact + 1e-9).floor() as u64).min(limit);
            [below, (below + 1).min(limit)]
        };
        let mut best = (f64::INFINITY, f64::INFINITY, (0, 0));
        for high in near(exact_high, rows) {
            for wide in near(exact_wide, cols) {
                let block = (high * wide) as f64;
                let finish = time(block, inner[i]).max(time(own - block - later, owner));
                let skew = (high as f64 - exact_high).abs() + (wide as f64 - exact_wide).abs();
                if finish.total_cmp(&best.0).then(skew.total_cmp(&best.1)).is_lt() {
                    best = (finish, skew, (high, wide));
                }
            }
        }
        let (high, wide) = best.2;
        own -= (high * wide) as f64;
        (rows, cols) = (rows - high, cols - wide);
        sides.push((high, wide));
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Metrics;
    use crate::plan::shares::compositions;
    use proptest::prelude::*;

    #[test]
    fn squares_on_the_diagonal_cost_what_the_closed_form_says() {
        let tiling = Tiling::Corners {
            owner: 0,
            blocks: vec![(1.0, Tiling::Whole(1)), (1.0, Tiling::Whole(2)), (1.0, Tiling::Whole(3))],
        };
        let weights = [88.0, 4.0, 4.0, 4.0];
        assert!((tiling.cost(&weights, 1.0, 1.0, Total::Sum) - (2.0 + 6.0 * 0.2)).abs() < 1e-12);
        assert!((tiling.cost(&weights, 1.0, 1.0, Total::Largest) - 2.0).abs() < 1e-12);
        let layout = tiling.layout(Shape::new(100, 100, 100, "test").unwrap(), &weights, 1.0);
        assert_eq!(layout.shares(), [8800, 400, 400, 400]);
        assert_eq!(Metrics::of_layout(&layout, 1.0).volume, Some(12_000));
        assert_eq!(tiling.cost(&[1.0; 4], 1.0, 1.0, Total::Sum), f64::INFINITY);
    }

    proptest! {
        /// Columns of rectangles in whole numbers: no widths and heights finish earlier.
        #[test]
        fn columns_are_rounded_best(
            weights in prop::collection::vec(0.1f64..5.0, 1..6), cut in 0usize..5, m in 1u64..9, n in 1u64..9,
        ) {
            let order: Vec<usize> = (0..weights.len()).collect();
            let (left, right) = order.split_at(cut.min(order.len() - 1));
            let groups: Vec<&[usize]> = [left, right].into_iter().filter(|g| !g.is_empty()).collect();
            let longest = |shares: &[u64], group: &[usize]| {
                shares.iter().zip(group).map(|(&s, &i)| s as f64 / weights[i]).fold(0.0, f64::max)
            };
            let least = |length: u64, group: &[usize]| {
                compositions(length, group.len()).iter().map(|heights| longest(heights, group)).fold(f64::INFINITY, f64::min)
            };
            let best = compositions(n, groups.len()).iter()
                .map(|widths| widths.iter().zip(&groups).map(|(&w, g)| w as f64 * least(m, g)).fold(0.0, f64::max))
                .fold(f64::INFINITY, f64::min);
            for turn in [false, true] {
                let tiling = Tiling::columns(groups.iter().copied());
                let (tiling, m, n) = if turn { (tiling.turned(), n, m) } else { (tiling, m, n) };
                let layout = tiling.layout(Shape { m, k: 1, n }, &weights, 1.0);
                let ours = longest(&layout.shares(), &order);
                prop_assert!(ours <= best * (1.0 + 1e-9), "{:?} {} {}", layout, ours, best);
            }
        }
    }

    #[test]
    fn turning_exchanges_rows_and_columns() {
        let weights = [5.0, 2.0, 1.0];
        let tiling = Tiling::Rows(vec![
            Tiling::Whole(2),
            Tiling::Corners { owner: 0, blocks: vec![(2.0, Tiling::Whole(1))] },
        ]);
        let cost = tiling.cost(&weights, 3.0, 2.0, Total::Sum);
        assert!((tiling.turned().cost(&weights, 2.0, 3.0, Total::Sum) - cost).abs() < 1e-12);
    }
}

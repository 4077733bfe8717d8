//! Layouts: disjoint rectangles with owners that cover the m x n matrix C exactly once, or the lower triangle of a
//! symmetric one, and boxes where the inner dimension is cut too.

use super::Shape;
use super::boxes::{self, Cuboid};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span, SpanSet, first_overlap};
use crate::model::{Model, only_ratios, rates};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rectangle of C and the processor that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The rank of the owner.
    pub owner: Rank,
    /// Its rows of C.
    pub rows: Span,
    /// Its columns of C.
    pub cols: Span,
}

impl Part {
    /// A part from its rectangle.
    pub fn new(owner: Rank, rect: Rect) -> Self {
        Self { owner, rows: rect.rows, cols: rect.cols }
    }

    /// The rectangle.
    pub fn rect(&self) -> Rect {
        Rect::new(self.rows, self.cols)
    }
}

/// A partition of the m x n matrix C. It also partitions A and B, which are cut in the same proportions.
///
/// If the inner dimension is cut ([`Layout::of_boxes`]), the parts say who owns C, and the boxes who
/// computes. If C is symmetric ([`Layout::of_triangle`]), the parts are those that are computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    processors: usize,
    parts: Vec<Part>,
    /// True if the parts cover the lower triangle, whose mirror image the rest is.
    triangular: bool,
    /// The block that the parts repeat, if they do.
    block: Option<Box<Layout>>,
    /// The boxes, if the inner dimension is cut.
    boxes: Option<Vec<Cuboid>>,
}

impl Layout {
    /// A layout from its rectangles. Empty rectangles are dropped; the others are sorted by row, then column.
    /// O(R log R) for R rectangles.
    ///
    /// # Errors
    /// A reversed range, a rectangle outside the matrix, an owner that does not exist, or an element that is
    /// covered twice or not at all: exit code 2.
    pub fn new(shape: Shape, processors: usize, parts: impl IntoIterator<Item = Part>) -> Result<Self> {
        let parts = checked_parts(shape, processors, parts)?;
        let layout = Self { shape, processors, parts, triangular: false, block: None, boxes: None };
        layout.check_cover()?;
        Ok(layout)
    }

    /// The layout of a symmetric C = A A^T (n x n), of which only the lower triangle is computed: every rectangle is
    /// a square on the diagonal, or below it. The owner of an element of the diagonal owns that row of A, and with it
    /// that column of B = A^T. Empty rectangles are dropped. O(R log R) for R rectangles.
    ///
    /// # Errors
    /// C is not square, a rectangle reaches above the diagonal without being a square on it, or those of
    /// [`Layout::new`]: exit code 2.
    pub(crate) fn of_triangle(
        shape: Shape,
        processors: usize,
        parts: impl IntoIterator<Item = Part>,
    ) -> Result<Self> {
        let refuse = |what: String, remedy: &str| Err(Error::input("layout", what, remedy));
        if shape.m != shape.n {
            let what = format!("a symmetric C has {} rows and {} columns", shape.m, shape.n);
            return refuse(what, "give as many rows as columns");
        }
        let parts = checked_parts(shape, processors, parts)?;
        if let Some(Part { rows, cols, .. }) =
            parts.iter().find(|part| part.rows != part.cols && part.cols.end > part.rows.start)
        {
            let what = format!(
                "rectangle rows [{}, {}] cols [{}, {}] reaches above the diagonal",
                rows.start, rows.end, cols.start, cols.end
            );
            return refuse(what, "give squares on the diagonal, and rectangles below it");
        }
        let rects: Vec<Rect> = parts.iter().map(Part::rect).collect();
        if let Some([_, second]) = first_overlap(&rects) {
            let Rect { rows, cols } = rects[second];
            let what = format!("element ({}, {}) or a neighbour is covered twice", rows.start, cols.start);
            return refuse(what, "make the rectangles disjoint");
        }
        let lower = |part: &Part| {
            let (area, side) = (u128::from(part.rect().area()), u128::from(part.rows.len()));
            if part.rows == part.cols { side * (side + 1) / 2 } else { area }
        };
        let (covered, n) = (parts.iter().map(lower).sum::<u128>(), u128::from(shape.n));
        let whole = n * (n + 1) / 2;
        if covered != whole {
            let what = format!("covers {covered} of {whole} elements of the lower triangle");
            return refuse(what, "cover every element of the lower triangle exactly once");
        }
        Ok(Self { shape, processors, parts, triangular: true, block: None, boxes: None })
    }

    /// A layout that may cut the inner dimension, from boxes that cover each row, column and inner index
    /// exactly once. Empty boxes are dropped. Each element of C belongs to the processor of the box that
    /// covers it at inner index 0. If no box ends before k, this is [`Layout::new`]. O(R^2) for R boxes.
    ///
    /// # Errors
    /// A reversed range, a box outside the product, an owner that does not exist, more than 4,096 boxes, or a
    /// multiply-add that is covered twice or not at all: exit code 2.
    pub fn of_boxes(
        shape: Shape,
        processors: usize,
        boxes: impl IntoIterator<Item = Cuboid>,
    ) -> Result<Self> {
        let all = boxes::checked(shape, processors, boxes)?;
        let first = all.iter().filter(|one| one.inner.start == 0);
        if all.iter().all(|one| one.inner == Span::new(0, shape.k)) {
            return Self::new(shape, processors, first.map(Cuboid::part));
        }
        boxes::check_cover(shape, &all)?;
        let layout = Self::new(shape, processors, first.map(Cuboid::part))?;
        Ok(Self { boxes: Some(all), ..layout })
    }

    /// The three sizes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of processors, including those without a part.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The rectangles, sorted by first row, then by first column.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// True if C is symmetric, and the parts cover its lower triangle.
    pub fn is_triangular(&self) -> bool {
        self.triangular
    }

    /// Multiply-adds of the product: m k n, or about half of them if C is symmetric.
    pub fn multiply_adds(&self) -> f64 {
        match self.triangular {
            false => self.shape.flops() / 2.0,
            true => {
                self.parts.iter().map(|part| part.rect().area()).sum::<u64>() as f64 * self.shape.k as f64
            }
        }
    }

    /// The generalised block that the parts repeat, if [`repeat_block`](super::repeat_block) made this layout.
    pub fn block(&self) -> Option<&Self> {
        self.block.as_deref()
    }

    /// The boxes by row, column and inner index, if the inner dimension is cut; `None` if every part of C is
    /// computed by its owner.
    pub fn boxes(&self) -> Option<&[Cuboid]> {
        self.boxes.as_deref()
    }

    /// The boxes, whether or not the inner dimension is cut: without cuts, the parts with all of it.
    pub fn cuboids(&self) -> Vec<Cuboid> {
        let whole = Span::new(0, self.shape.k);
        let all = || self.parts.iter().map(|part| Cuboid::new(part.owner, part.rect(), whole)).collect();
        self.boxes.clone().unwrap_or_else(all)
    }

    /// Refuses a layout that cuts the inner dimension on behalf of `what`, which cannot serve it.
    ///
    /// # Errors
    /// The inner dimension is cut: exit code 1.
    pub fn refuse_boxes(&self, what: &str) -> Result<()> {
        if self.boxes.is_none() { Ok(()) } else { Err(inner_cuts_refused(what)) }
    }

    /// The same layout, marked as a repetition of `block`.
    pub(super) fn with_block(self, block: Self) -> Self {
        Self { block: Some(Box::new(block)), ..self }
    }

    /// The same layout among more processors: its processor i becomes `ranks[i]` of `processors`, the others
    /// get no part.
    ///
    /// # Errors
    /// A rank that is not below `processors`, or missing for a processor with a part (exit code 2).
    pub fn among(&self, ranks: &[usize], processors: usize) -> Result<Self> {
        if let Some(block) = self.block() {
            return super::repeat_block(self.shape, &block.among(ranks, processors)?);
        }
        let rank = |owner: Rank| Rank(ranks.get(owner.0).copied().unwrap_or(usize::MAX));
        if let Some(boxes) = &self.boxes {
            let moved = boxes.iter().map(|one| Cuboid { owner: rank(one.owner), ..*one });
            return Self::of_boxes(self.shape, processors, moved);
        }
        let moved = self.parts.iter().map(|p| Part { owner: rank(p.owner), ..*p });
        match self.triangular {
            true => Self::of_triangle(self.shape, processors, moved),
            false => Self::new(self.shape, processors, moved),
        }
    }

    /// Number of elements of C of each processor, by rank. If the inner dimension is cut: each processor's
    /// multiply-adds divided by k, rounded so that they add up to m n.
    pub fn shares(&self) -> Vec<u64> {
        if let Some(boxes) = &self.boxes {
            return boxes::shares(self.shape, self.processors, boxes);
        }
        let mut shares = vec![0; self.processors];
        for part in &self.parts {
            shares[part.owner.0] += part.rect().area();
        }
        shares
    }

    /// Number of multiply-adds of each processor, by rank.
    pub fn work(&self) -> Vec<u128> {
        boxes::work(self.processors, &self.cuboids())
    }

    /// The sizes at which speed functions are evaluated, by rank: the elements of C that a processor updates
    /// by a pivot block. These are the shares, or multiply-adds over inner indices if those are cut.
    pub fn sizes(&self) -> Vec<u64> {
        let Some(boxes) = &self.boxes else { return self.shares() };
        let size = |(rank, work): (usize, u128)| {
            let own = boxes.iter().filter(|one| one.owner.0 == rank).map(|one| one.inner);
            work.div_ceil(u128::from(SpanSet::union(own).len().max(1))) as u64
        };
        self.work().into_iter().enumerate().map(size).collect()
    }

    /// Multiply-adds per second of each processor by this layout, whose models are for pivot blocks of `block` indices:
    /// those at its [size](Self::sizes). A triangle has many small rectangles, and kernels begin anew with each: their
    /// times are added up. As [`rates`], ratios of speeds have none.
    pub fn rates(&self, models: &[Model], block: u64) -> Vec<f64> {
        let mut rates = rates(models, &self.sizes(), block);
        if self.triangular && !only_ratios(models) {
            for ((rate, model), rects) in rates.iter_mut().zip(models).zip(self.rects_by_owner()) {
                let areas = || rects.iter().map(|rect| rect.area() as f64);
                let seconds: f64 = areas().map(|area| model.seconds(area)).sum();
                if seconds > 0.0 {
                    *rate = areas().sum::<f64>() * block as f64 / seconds;
                }
            }
        }
        rates
    }

    /// The rectangles of C that each processor owns, by rank.
    pub fn rects_by_owner(&self) -> Vec<Vec<Rect>> {
        let mut rects = vec![Vec::new(); self.processors];
        for part in &self.parts {
            rects[part.owner.0].push(part.rect());
        }
        rects
    }

    /// The rectangles of C that each processor computes, by rank: those that it owns, or the faces of its
    /// boxes, which may be equal or overlap.
    pub(crate) fn faces_by_owner(&self) -> Vec<Vec<Rect>> {
        let Some(boxes) = &self.boxes else { return self.rects_by_owner() };
        let mut faces = vec![Vec::new(); self.processors];
        boxes.iter().for_each(|one| faces[one.owner.0].push(one.face()));
        faces
    }

    /// The partition of C: the parts, and of a symmetric C also the mirror images of those below the diagonal.
    pub(crate) fn parts_of_c(&self) -> Vec<Part> {
        let below = self.parts.iter().filter(|part| self.triangular && part.rows != part.cols);
        let image = |part: &Part| Part { rows: part.cols, cols: part.rows, ..*part };
        self.parts.iter().copied().chain(below.map(image)).collect()
    }

    /// The rows of C that each processor computes elements of, by rank.
    pub fn rows_by_owner(&self) -> Vec<SpanSet> {
        self.faces_by_owner().iter().map(|rects| SpanSet::union(rects.iter().map(|r| r.rows))).collect()
    }

    /// The columns of C that each processor computes elements of, by rank.
    pub fn cols_by_owner(&self) -> Vec<SpanSet> {
        self.faces_by_owner().iter().map(|rects| SpanSet::union(rects.iter().map(|r| r.cols))).collect()
    }

    /// The partition of A (m x k): the rows of C, and the columns of C rescaled to k, within the inner
    /// indices of the box. Empty parts are dropped. Of a symmetric C: whole rows, by the owners of the diagonal.
    pub fn parts_of_a(&self) -> Vec<Part> {
        let Shape { k, n, .. } = self.shape;
        if self.triangular {
            return self.by_diagonal(|lines| Rect::new(lines, Span::new(0, k)));
        }
        self.cut(|one| Rect::new(one.rows, one.cols.rescale(n, k).intersect(one.inner)))
    }

    /// The partition of B (k x n): the rows of C rescaled to k, within the inner indices of the box, and the
    /// columns of C. Empty parts are dropped. Of a symmetric C: whole columns, by the owners of the diagonal.
    pub fn parts_of_b(&self) -> Vec<Part> {
        let Shape { m, k, .. } = self.shape;
        if self.triangular {
            return self.by_diagonal(|lines| Rect::new(Span::new(0, k), lines));
        }
        self.cut(|one| Rect::new(one.rows.rescale(m, k).intersect(one.inner), one.cols))
    }

    /// A part for the lines of every run of squares on the diagonal that have the same owner.
    fn by_diagonal(&self, rect: impl Fn(Span) -> Rect) -> Vec<Part> {
        let mut runs: Vec<(Rank, Span)> = Vec::new();
        // They are sorted by their first row.
        for part in self.parts.iter().filter(|part| part.rows == part.cols) {
            match runs.last_mut() {
                Some((owner, lines)) if *owner == part.owner => lines.end = part.rows.end,
                _ => runs.push((part.owner, part.rows)),
            }
        }
        runs.into_iter().map(|(owner, lines)| Part::new(owner, rect(lines))).collect()
    }

    fn cut(&self, rect: impl Fn(&Cuboid) -> Rect) -> Vec<Part> {
        let part = |one: &Cuboid| Part::new(one.owner, rect(one));
        self.cuboids().iter().map(part).filter(|part| !part.rect().is_empty()).collect()
    }

    /// Checks that every element is covered once: a sweep over the rows that keeps the rectangles of the
    /// current row sorted by column.
    fn check_cover(&self) -> Result<()> {
        let total: u128 = self.parts.iter().map(|p| u128::from(p.rect().area())).sum();
        let whole = u128::from(self.shape.elements());
        let mut by_end: Vec<&Part> = self.parts.iter().collect();
        by_end.sort_by_key(|p| p.rows.end);
        let mut ended = by_end.into_iter().peekable();
        let mut active: BTreeMap<u64, Span> = BTreeMap::new();
        for part in &self.parts {
            while let Some(done) = ended.next_if(|d| d.rows.end <= part.rows.start) {
                active.remove(&done.cols.start);
            }
            let left = active.range(..=part.cols.start).next_back();
            let right = active.range(part.cols.start..).next();
            let clash = left.is_some_and(|(_, s)| s.end > part.cols.start)
                || right.is_some_and(|(start, _)| *start < part.cols.end);
            if clash {
                return Err(Error::input(
                    "layout",
                    format!(
                        "element ({}, {}) or a neighbour is covered twice",
                        part.rows.start, part.cols.start
                    ),
                    "make the rectangles disjoint",
                ));
            }
            active.insert(part.cols.start, part.cols);
        }
        if total != whole {
            return Err(Error::input(
                "layout",
                format!("covers {total} of {whole} elements"),
                "cover every element of C exactly once",
            ));
        }
        Ok(())
    }
}

/// The parts that are not empty, sorted by row, then column.
fn checked_parts(
    shape: Shape,
    processors: usize,
    parts: impl IntoIterator<Item = Part>,
) -> Result<Vec<Part>> {
    let mut kept = Vec::new();
    for part in parts {
        let Part { owner, rows, cols } = part;
        let place = || {
            format!(
                "layout: rectangle rows [{}, {}] cols [{}, {}] of processor {}",
                rows.start, rows.end, cols.start, cols.end, owner.0
            )
        };
        if rows.start > rows.end || cols.start > cols.end {
            return Err(Error::input(
                place(),
                "a range ends before it starts",
                "write [first, one past the last]",
            ));
        }
        if rows.end > shape.m || cols.end > shape.n {
            return Err(Error::input(
                place(),
                format!("reaches outside the {} x {} matrix", shape.m, shape.n),
                "keep every rectangle within the matrix",
            ));
        }
        if owner.0 >= processors {
            return Err(Error::input(
                place(),
                format!("processor {} does not exist (there are {processors})", owner.0),
                "number owners from 0",
            ));
        }
        if !part.rect().is_empty() {
            kept.push(part);
        }
    }
    kept.sort_by_key(|p| (p.rows.start, p.cols.start, p.owner));
    Ok(kept)
}

/// The error of `what`, which cannot use a layout that cuts the inner dimension: exit code 1.
pub fn inner_cuts_refused(what: &str) -> Error {
    Error::infeasible(
        format!("{what} cannot use a layout that cuts the inner dimension"),
        "use a method other than inner and boxes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(owner: usize, rows: [u64; 2], cols: [u64; 2]) -> Part {
        Part { owner: Rank(owner), rows: rows.into(), cols: cols.into() }
    }

    fn shape(m: u64, k: u64, n: u64) -> Shape {
        Shape::new(m, k, n, "test").unwrap()
    }

    #[test]
    fn holes_overlaps_and_strays_are_refused() {
        let s = shape(4, 4, 4);
        let cover = |parts: Vec<Part>| Layout::new(s, 2, parts);
        assert!(cover(vec![part(0, [0, 4], [0, 2]), part(1, [0, 4], [2, 4])]).is_ok());
        for bad in [
            vec![],
            vec![part(0, [0, 4], [0, 2])],
            vec![part(0, [0, 4], [0, 3]), part(1, [0, 4], [2, 4])],
            vec![part(0, [0, 4], [0, 2]), part(1, [0, 4], [1, 3])],
            vec![part(0, [0, 4], [0, 2]), part(2, [0, 4], [2, 4])],
            vec![part(0, [0, 4], [0, 2]), part(1, [0, 4], [2, 5])],
            vec![part(0, [0, 4], [0, 2]), part(1, [4, 0], [2, 4])],
            vec![part(0, [0, 4], [0, 2]), part(1, [0, 2], [2, 4]), part(1, [0, 2], [2, 4])],
        ] {
            assert_eq!(cover(bad.clone()).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }

    proptest! {
        /// The sweep agrees with painting every element.
        #[test]
        fn cover_check_agrees_with_painting(
            rects in prop::collection::vec((0u64..4, 0u64..4, 1u64..4, 1u64..4), 1..7)
        ) {
            let s = shape(4, 4, 4);
            let parts: Vec<Part> = rects.iter()
                .map(|&(r, c, h, w)| part(0, [r, (r + h).min(4)], [c, (c + w).min(4)]))
                .collect();
            let mut painted = [[0; 4]; 4];
            for p in &parts {
                for r in p.rows.start..p.rows.end {
                    for c in p.cols.start..p.cols.end {
                        painted[r as usize][c as usize] += 1;
                    }
                }
            }
            let exact = painted.iter().flatten().all(|&x| x == 1);
            prop_assert_eq!(Layout::new(s, 1, parts).is_ok(), exact);
        }
    }

    #[test]
    fn a_triangle_is_covered_once() {
        let s = shape(5, 3, 5);
        let squares = || vec![part(1, [0, 2], [0, 2]), part(0, [2, 4], [2, 4]), part(0, [4, 5], [4, 5])];
        let with =
            |more: &[Part]| Layout::of_triangle(s, 2, squares().into_iter().chain(more.iter().copied()));
        let layout = with(&[part(0, [2, 4], [0, 2]), part(1, [4, 5], [0, 4])]).unwrap();
        assert!(layout.is_triangular());
        assert_eq!(layout.shares(), [4 + 1 + 4, 4 + 4]);
        assert_eq!(layout.multiply_adds(), 17.0 * 3.0);
        assert_eq!(layout.parts_of_a(), [part(1, [0, 2], [0, 3]), part(0, [2, 5], [0, 3])]);
        assert_eq!(layout.parts_of_b(), [part(1, [0, 3], [0, 2]), part(0, [0, 3], [2, 5])]);
        let above = [part(0, [0, 2], [2, 4]), part(1, [0, 4], [4, 5])];
        let whole = layout.parts_of_c();
        assert!(above.iter().all(|part| whole.contains(part)), "{whole:?}");
        assert_eq!(Layout::new(s, 2, whole).unwrap().shares(), [9 + 4, 8 + 4]);
        let moved = layout.among(&[2, 0], 3).unwrap();
        assert!(moved.is_triangular() && moved.shares() == [8, 0, 9]);
        for bad in [
            vec![],
            vec![part(0, [2, 4], [0, 2])],
            vec![part(0, [2, 5], [0, 2]), part(1, [4, 5], [0, 4])],
            vec![part(0, [2, 5], [0, 4])],
            vec![part(0, [2, 4], [0, 2]), part(1, [4, 5], [0, 4]), part(1, [0, 2], [2, 5])],
            vec![part(0, [2, 4], [0, 2]), part(2, [4, 5], [0, 4])],
        ] {
            assert_eq!(with(&bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
        assert_eq!(Layout::of_triangle(shape(5, 3, 4), 1, []).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_layout_of_some_processors_is_one_of_more() {
        let s = shape(4, 4, 4);
        let two = Layout::new(s, 2, [part(0, [0, 4], [0, 1]), part(1, [0, 4], [1, 4])]).unwrap();
        let five = two.among(&[3, 1], 5).unwrap();
        assert_eq!(five.shares(), [0, 12, 0, 4, 0]);
        assert_eq!(two.among(&[5, 1], 5).unwrap_err().exit_code(), 2);
        assert_eq!(two.among(&[1], 5).unwrap_err().exit_code(), 2);
        let large = crate::plan::repeat_block(shape(8, 4, 9), &two).unwrap().among(&[2, 0], 3).unwrap();
        assert_eq!(large.block().unwrap().shares(), [12, 0, 4]);
        assert_eq!(large.shares(), [8 * 6, 0, 8 * 3]);
    }

    #[test]
    fn a_and_b_are_cut_alike_and_covered_once() {
        let s = shape(6, 4, 10);
        let layout =
            Layout::new(s, 2, [part(0, [0, 6], [0, 7]), part(0, [0, 3], [7, 10]), part(1, [3, 6], [7, 10])])
                .unwrap();
        let area = |parts: Vec<Part>| parts.iter().map(|p| p.rect().area()).sum::<u64>();
        assert_eq!(area(layout.parts_of_a()), 24);
        assert_eq!(area(layout.parts_of_b()), 40);
        assert_eq!(layout.shares(), [51, 9]);
    }
}

//! Entries of `layout` in `plan.json`: rectangles, or boxes.

use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Cuboid, Layout, Part, Shape};
use serde::{Deserialize, Serialize};

/// An entry of the layout.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPart {
    owner: Rank,
    rows: Span,
    cols: Span,
    /// Absent: all of the inner dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<Span>,
}

impl RawPart {
    pub fn part(&self) -> Part {
        Part { owner: self.owner, rows: self.rows, cols: self.cols }
    }

    fn of(part: &Part) -> Self {
        Self { owner: part.owner, rows: part.rows, cols: part.cols, inner: None }
    }

    fn of_box(one: &Cuboid, whole: Span) -> Self {
        let inner = Some(one.inner).filter(|inner| *inner != whole);
        Self { owner: one.owner, rows: one.rows, cols: one.cols, inner }
    }
}

/// The layout of entries, some of which may have inner ranges.
pub(super) fn of_entries(shape: Shape, processors: usize, entries: Vec<RawPart>) -> Result<Layout> {
    if entries.iter().all(|entry| entry.inner.is_none()) {
        return Layout::new(shape, processors, entries.iter().map(RawPart::part));
    }
    let whole = Span::new(0, shape.k);
    let one = |entry: &RawPart| {
        Cuboid::new(entry.owner, Rect::new(entry.rows, entry.cols), entry.inner.unwrap_or(whole))
    };
    Layout::of_boxes(shape, processors, entries.iter().map(one))
}

/// The entries of a layout.
pub(super) fn entries(layout: &Layout) -> Vec<RawPart> {
    let whole = Span::new(0, layout.shape().k);
    match layout.boxes() {
        None => layout.parts().iter().map(RawPart::of).collect(),
        Some(boxes) => boxes.iter().map(|one| RawPart::of_box(one, whole)).collect(),
    }
}

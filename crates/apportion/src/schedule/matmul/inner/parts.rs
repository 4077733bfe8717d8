//! What a layout with boxes means for each processor: whom it talks to, and what it computes.

use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Cuboid, Layout, Segment, between, merged};

/// For each processor, the others that need something that it owns, and those that own something that it
/// needs, from the next rank on.
pub(super) fn talkers(layout: &Layout, segments: &[Vec<Segment>]) -> (Vec<Vec<Rank>>, Vec<Vec<Rank>>) {
    let p = layout.processors();
    let (mut receivers, mut senders) = (vec![Vec::new(); p], vec![Vec::new(); p]);
    let (a, b) = (layout.parts_of_a(), layout.parts_of_b());
    for (to, own) in segments.iter().enumerate() {
        for segment in own {
            let meets = |x: Span, y: Span| !x.intersect(y).is_empty();
            let of_a = a
                .iter()
                .filter(|part| meets(part.cols, segment.inner) && segment.rows.count_in(part.rows) > 0);
            let of_b = b
                .iter()
                .filter(|part| meets(part.rows, segment.inner) && segment.cols.count_in(part.cols) > 0);
            for part in of_a.chain(of_b).filter(|part| part.owner.0 != to) {
                receivers[part.owner.0].push(Rank(to));
                senders[to].push(part.owner);
            }
        }
    }
    for all in [&mut receivers, &mut senders] {
        for (rank, others) in all.iter_mut().enumerate() {
            others.sort_unstable_by_key(|other| (other.0 + p - rank) % p);
            others.dedup();
        }
    }
    (receivers, senders)
}

/// Disjoint rectangles that the faces of one processor's boxes consist of: the faces themselves, unless some
/// overlap.
pub(super) fn tiles<'a>(own: impl Iterator<Item = &'a Cuboid>) -> Vec<Rect> {
    let mut faces: Vec<Rect> = own.map(Cuboid::face).collect();
    faces.sort_unstable();
    faces.dedup();
    let area = |rects: &[Rect]| rects.iter().map(|rect| rect.area()).sum::<u64>();
    if area(&merged(&faces)) == area(&faces) {
        return faces;
    }
    let mut tiles = Vec::new();
    for rows in between(faces.iter().map(|face| face.rows)) {
        let here: Vec<&Rect> = faces.iter().filter(|face| face.rows.contains(rows)).collect();
        for cols in between(here.iter().map(|face| face.cols)) {
            if here.iter().any(|face| face.cols.contains(cols)) {
                tiles.push(Rect::new(rows, cols));
            }
        }
    }
    tiles
}

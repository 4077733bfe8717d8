//! Peak number of bytes of matrix data that each processor holds during a schedule, computed from the layout
//! by formula.
//!
//! A processor holds its own parts of A, B and C. In addition it holds the lines of the pivot blocks that are
//! in memory at the same time: its rows of A and columns of B, its own and received ones, for as many blocks
//! as the flow needs. With lines l = r + c, pivot block b and inner dimension k:
//!
//! | flow | in addition to own parts |
//! | --- | --- |
//! | one-to-all, broadcast | l b |
//! | ring | at most l b max(1, look-ahead): hops of later blocks arrive early |
//! | bulk | l k |
//! | broadcast on strips | b times the widest column block of B; A is read in place |
//! | any, with boxes | l times the inner indices of a turn, at most b (bulk: all of the box) |
//!
//! Broadcast on strips is Tinetti, section 3.4.4: N blocks mean b = k / N. With boxes, the own parts include
//! the faces of C of which a processor computes partial sums. In place, nothing is held in addition to
//! the own parts. If the processors of one process copy operands, look-ahead needs no further memory; between
//! processes the blocks of the look-ahead are held too; lines that a process uses where it owns them, or in
//! the memory of a message, count as if they were copied. Not counted are the kernel's packing buffers (a few
//! hundred KiB per thread), messages in flight, and the assembled product.

use super::broadcast::columns_of_b;
use super::inner::Boxes;
use crate::geometry::Rank;
use crate::plan::{Layout, Part};
use crate::schedule::{Flow, ScheduleOptions};

/// How processors access the operands of other processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    /// The processors of one process read A and B in place: nothing is held in addition to the own parts.
    InPlace,
    /// The processors of one process copy the pieces that are sent to them, as they would on a cluster.
    Copied,
    /// Messages between processes are packed, sent and unpacked.
    Packed,
}

/// Peak number of bytes that each processor holds, by rank; `element` is the number of bytes per element.
/// Exact in place, and for every path without look-ahead. With look-ahead it is exact for the bulk flow, and
/// for copies in all flows except the ring; otherwise it is an upper bound. O(R log R) for R rectangles.
pub fn predicted_memory(layout: &Layout, order: ScheduleOptions, element: u64, path: DataPath) -> Vec<u64> {
    let k = layout.shape().k;
    let block = order.block.clamp(1, k);
    if let Some(boxes) = Boxes::of(layout, ScheduleOptions { block, ..order }) {
        return with_boxes(layout, &boxes, element, path);
    }
    let strips = if order.flow == Flow::Broadcast { columns_of_b(layout) } else { None };
    let a = areas(layout, &layout.parts_of_a());
    let b = areas(layout, strips.as_deref().unwrap_or(&layout.parts_of_b()));
    let lines: Vec<u64> = match &strips {
        Some(parts) => {
            let widest = parts.iter().map(|part| part.cols.len()).max().unwrap_or(0);
            layout.shares().into_iter().map(|share| if share > 0 { widest } else { 0 }).collect()
        }
        None => {
            let (rows, cols) = (layout.rows_by_owner(), layout.cols_by_owner());
            rows.iter().zip(&cols).map(|(rows, cols)| rows.len() + cols.len()).collect()
        }
    };
    let ahead = order.ahead() as u64;
    let blocks = match (order.flow, path) {
        (_, DataPath::InPlace) => 0,
        (Flow::Bulk, _) => k,
        (_, DataPath::Packed) => ahead + 1,
        (Flow::Ring, _) => ahead.max(1),
        (Flow::OneToAll | Flow::Broadcast, _) => 1,
    };
    // On strips, the blocks in flight may belong to several column blocks.
    let groups = strips.as_ref().map_or(1, |parts| parts.len() as u64);
    let depth = block.saturating_mul(blocks).min(k.saturating_mul(groups));
    let held = |rank: usize| {
        let own = layout.shares()[rank] + a[rank] + b[rank];
        lines[rank].saturating_mul(depth).saturating_add(own).saturating_mul(element)
    };
    (0..layout.processors()).map(held).collect()
}

/// As [`predicted_memory`], for a layout that cuts the inner dimension: own parts of A and B, all elements of
/// C that a processor computes, and the operands of one turn.
fn with_boxes(layout: &Layout, boxes: &Boxes, element: u64, path: DataPath) -> Vec<u64> {
    let (a, b) = (areas(layout, &layout.parts_of_a()), areas(layout, &layout.parts_of_b()));
    let held = |rank: usize| {
        let faces: u64 = boxes.tiles(Rank(rank)).iter().map(|tile| tile.area()).sum();
        let turn = if path == DataPath::InPlace { 0 } else { boxes.most_operands(Rank(rank)) };
        (a[rank] + b[rank] + faces).saturating_add(turn).saturating_mul(element)
    };
    (0..layout.processors()).map(held).collect()
}

/// Elements of an operand that each processor owns.
fn areas(layout: &Layout, parts: &[Part]) -> Vec<u64> {
    let mut areas = vec![0; layout.processors()];
    parts.iter().for_each(|part| areas[part.owner.0] += part.rect().area());
    areas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shapes::LayoutMethod;
    use crate::plan::{Shape, shapes};

    fn of(layout: &Layout, flow: Flow, block: u64, look_ahead: u64) -> Vec<u64> {
        let overlap = look_ahead > 0;
        predicted_memory(
            layout,
            ScheduleOptions::new(flow, block).with_look_ahead(u64::from(overlap) * look_ahead),
            8,
            DataPath::Copied,
        )
    }

    /// Two processors at 3:1, 8 x 12 x 16 in strips: 6 and 2 rows, counted by hand.
    #[test]
    fn by_hand() {
        let layout =
            shapes::Rows::default().layout(Shape::new(8, 12, 16, "test").unwrap(), &[3.0, 1.0]).unwrap();
        // A's rows, B's 12 x 16 in the ratio of the rows (9 and 3 of 12), C's rows.
        let own = [6 * 12 + 9 * 16 + 6 * 16, 2 * 12 + 3 * 16 + 2 * 16].map(|x: u64| 8 * x);
        let with = |lines: [u64; 2], depth: u64| [0, 1].map(|i| own[i] + 8 * lines[i] * depth);
        assert_eq!(of(&layout, Flow::OneToAll, 4, 0), with([22, 18], 4));
        assert_eq!(of(&layout, Flow::OneToAll, 4, 3), with([22, 18], 4));
        assert_eq!(of(&layout, Flow::Ring, 4, 2), with([22, 18], 8));
        assert_eq!(of(&layout, Flow::Ring, 4, 9), with([22, 18], 12));
        assert_eq!(of(&layout, Flow::Bulk, 4, 0), with([22, 18], 12));
        // B in two column blocks of 8; four blocks of 3 rows: a quarter of 12 x 8 in addition to the own
        // parts.
        let own = [6 * 12 + 12 * 8 + 6 * 16, 2 * 12 + 12 * 8 + 2 * 16].map(|x: u64| 8 * x);
        assert_eq!(of(&layout, Flow::Broadcast, 12, 0), own.map(|own| own + 8 * 12 * 8));
        assert_eq!(of(&layout, Flow::Broadcast, 3, 1), own.map(|own| own + 8 * 3 * 8));
    }

    /// The same strips: only the own parts in place; between processes also the blocks of the look-ahead.
    #[test]
    fn by_the_way_to_the_operands() {
        let layout =
            shapes::Rows::default().layout(Shape::new(8, 12, 16, "test").unwrap(), &[3.0, 1.0]).unwrap();
        let own = [6 * 12 + 9 * 16 + 6 * 16, 2 * 12 + 3 * 16 + 2 * 16].map(|x: u64| 8 * x);
        for flow in [Flow::OneToAll, Flow::Ring, Flow::Bulk] {
            let of = |ahead, path| {
                predicted_memory(&layout, ScheduleOptions::new(flow, 4).with_look_ahead(ahead), 8, path)
            };
            assert_eq!(of(0, DataPath::InPlace), own, "{flow}");
            assert_eq!(of(2, DataPath::InPlace), own, "{flow}");
            let depth = if flow == Flow::Bulk { [12, 12] } else { [4, 8] };
            assert_eq!(
                of(0, DataPath::Packed),
                [0, 1].map(|i| own[i] + 8 * [22, 18][i] * depth[0]),
                "{flow}"
            );
            assert_eq!(
                of(1, DataPath::Packed),
                [0, 1].map(|i| own[i] + 8 * [22, 18][i] * depth[1]),
                "{flow}"
            );
        }
    }

    /// Two column blocks of 8, all 12 rows at once: one block is held in addition to the one in use.
    #[test]
    fn look_ahead_on_strips_holds_other_column_blocks() {
        let layout =
            shapes::Rows::default().layout(Shape::new(8, 12, 16, "test").unwrap(), &[3.0, 1.0]).unwrap();
        let own = [6 * 12 + 12 * 8 + 6 * 16, 2 * 12 + 12 * 8 + 2 * 16].map(|x: u64| 8 * x);
        for (ahead, blocks) in [(0, 1), (1, 2), (9, 2)] {
            let order = ScheduleOptions::new(Flow::Broadcast, 12).with_look_ahead(ahead);
            let held = predicted_memory(&layout, order, 8, DataPath::Packed);
            assert_eq!(held, own.map(|own| own + 8 * 12 * 8 * blocks), "{ahead}");
        }
    }

    #[test]
    fn no_share_no_memory() {
        let layout =
            shapes::Rows::default().layout(Shape::new(4, 4, 4, "test").unwrap(), &[1.0, 1e-9]).unwrap();
        for flow in Flow::ALL {
            assert_eq!(of(&layout, flow, 2, 0)[1], 0, "{flow}");
        }
    }
}

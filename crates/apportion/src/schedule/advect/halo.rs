//! What a processor needs of the surroundings of its boxes, and who owns it.

use super::{AdvectSchedule, places};
use crate::geometry::Rank;
use crate::kernels::mpdata::{Cells, Place, Source, Subdomain, sources};
use crate::platform::Direction;
use crate::schedule::Piece;

/// A part of the surroundings of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HaloPiece {
    /// The field, or the Courant numbers along an axis.
    pub place: Place,
    /// The pass that needs it, from 1.
    pub pass: usize,
    /// The box of the sender.
    pub from: usize,
    /// The box of the receiver.
    pub to: usize,
    /// Where it is around the receiver's box.
    pub here: Cells,
    /// What to add to reach it in the sender's box.
    pub shift: [isize; 3],
    direction: Direction,
}

impl HaloPiece {
    /// Where it is in the sender's box.
    pub fn there(&self) -> Cells {
        Source { here: self.here, shift: self.shift }.there()
    }
}

impl Piece for HaloPiece {
    fn elements(&self) -> u64 {
        self.here.count() as u64
    }

    /// Contiguous above and below a box, strided at its sides.
    fn direction(&self) -> Direction {
        self.direction
    }
}

/// The elements that a box owns of an array: a face between two boxes belongs to the upper one, the last face
/// of an axis with an end to the last box.
fn owned(schedule: &AdvectSchedule, cells: &Cells, place: Place) -> Cells {
    let mut owned = *cells;
    if let Place::Face(axis) = place
        && let Some((_, hi)) = schedule.domain().inside(place, axis)
        && owned.hi[axis] == hi - 1
    {
        owned.hi[axis] = hi;
    }
    owned
}

/// The pieces of a pass from one processor to another, or to itself, in the order of packing.
pub(super) fn pieces(schedule: &AdvectSchedule, from: Rank, to: Rank, pass: usize) -> Vec<HaloPiece> {
    let (domain, undivided) = (schedule.domain(), schedule.undivided());
    let mut found = Vec::new();
    for (number, cells) in schedule.boxes(to).iter().enumerate() {
        for place in places(domain, pass) {
            let needs = Subdomain::<f64>::needs(domain, schedule.with(), cells, undivided, (place, pass));
            for source in sources(domain, place, &needs, undivided[2]) {
                for (other, theirs) in schedule.boxes(from).iter().enumerate() {
                    let there = source.there().intersect(&owned(schedule, theirs, place));
                    let itself = from == to && other == number && source.shift == [0; 3];
                    if there.is_empty() || itself {
                        continue;
                    }
                    let here = Source { here: there, shift: source.shift.map(|s| -s) }.there();
                    // Rows of a plane are contiguous along the last divided axis.
                    let across = if domain.dimensions() == 3 { 1 } else { 2 };
                    let beside = here.hi[across] <= cells.lo[across] || here.lo[across] >= cells.hi[across];
                    let direction = if beside { Direction::Horizontal } else { Direction::Vertical };
                    let shift = source.shift;
                    found.push(HaloPiece { place, pass, from: other, to: number, here, shift, direction });
                }
            }
        }
    }
    found
}

/// By formula: the elements that a processor needs before a pass and does not own.
pub(super) fn received(schedule: &AdvectSchedule, to: Rank, pass: usize) -> u64 {
    let (domain, undivided) = (schedule.domain(), schedule.undivided());
    let mut count = 0;
    for cells in schedule.boxes(to) {
        for place in places(domain, pass) {
            let needs = Subdomain::<f64>::needs(domain, schedule.with(), cells, undivided, (place, pass));
            for source in sources(domain, place, &needs, undivided[2]) {
                let there = source.there();
                let own = |mine: &Cells| there.intersect(&owned(schedule, mine, place)).count() as u64;
                count += there.count() as u64 - schedule.boxes(to).iter().map(own).sum::<u64>();
            }
        }
    }
    count
}

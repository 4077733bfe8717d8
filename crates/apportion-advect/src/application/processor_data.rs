//! The boxes of one processor, and how they are filled from blocks of files.

use super::Courant;
use crate::{AdvectSchedule, Plane};
use apportion::geometry::{Rank, Rect};
use apportion::kernels::mpdata::{Advectable, Cells, Place, Source, Subdomain, sources};
use apportion::matrix::LocalBlocks;

/// The data of one processor.
#[derive(Debug)]
pub(crate) struct ProcessorData<T> {
    pub(crate) rank: Rank,
    pub(crate) boxes: Vec<Subdomain<T>>,
}

impl<T: Advectable> ProcessorData<T> {
    /// The boxes of a processor, with zeros.
    pub(crate) fn new(schedule: &AdvectSchedule, rank: Rank, signed: bool) -> Self {
        let (domain, with, undivided) = (*schedule.domain(), schedule.stencil(), schedule.undivided());
        let one = |cells| Subdomain::new(domain, with, cells, undivided, signed);
        Self { rank, boxes: schedule.boxes(rank).iter().copied().map(one).collect() }
    }

    /// Fills the boxes from blocks that have all that they need.
    pub(super) fn fill(
        &mut self,
        schedule: &AdvectSchedule,
        field: &LocalBlocks<T>,
        courant: &[Courant<'_, T>],
    ) {
        let domain = schedule.domain();
        for (place, courant) in places(schedule, courant) {
            let blocks = match courant {
                None => field,
                Some(Courant::Faces(blocks)) => *blocks,
                Some(Courant::Constant(value)) => {
                    let Place::Face(axis) = place else { unreachable!("Courant numbers are on faces") };
                    self.fill_constant(axis, *value);
                    continue;
                }
            };
            let every = (isize::MIN, isize::MAX);
            self.fill_planes(schedule, place, blocks, domain.axes()[0], every);
            if place != Place::Centre {
                self.close(place);
            }
        }
    }

    /// Sets the Courant numbers along an axis.
    pub(crate) fn fill_constant(&mut self, axis: usize, value: T) {
        self.boxes.iter_mut().for_each(|subdomain| subdomain.fill_courant(axis, value));
        self.close(Place::Face(axis));
    }

    /// Sets what is beyond the ends of the grid, once all of an array was filled.
    pub(crate) fn close(&mut self, place: Place) {
        self.boxes.iter_mut().for_each(|subdomain| subdomain.close(place, 1));
    }

    /// Copies what the boxes need of an array from blocks with the elements whose coordinates along `axis`
    /// are from `first` to before `end`.
    pub(crate) fn fill_planes(
        &mut self,
        schedule: &AdvectSchedule,
        place: Place,
        blocks: &LocalBlocks<T>,
        axis: usize,
        (first, end): (isize, isize),
    ) {
        let (domain, plane) = (schedule.domain(), Plane::of(&schedule.problem().sizes));
        for subdomain in &mut self.boxes {
            let cells = *subdomain.cells();
            let needed = match place {
                // What surrounds a box comes before every step.
                Place::Centre => vec![Source { here: cells, shift: [0; 3] }],
                Place::Face(_) => {
                    let room = Subdomain::<T>::room(domain, schedule.stencil(), &cells, schedule.undivided());
                    sources(domain, place, &room, false)
                }
            };
            for Source { mut here, shift } in needed {
                here.lo[axis] = here.lo[axis].max(first.saturating_sub(shift[axis]));
                here.hi[axis] = here.hi[axis].min(end.saturating_sub(shift[axis]));
                if !here.is_empty() {
                    copy(blocks, &plane, place, Source { here, shift }, subdomain);
                }
            }
        }
    }
}

/// The field, and the Courant numbers along each axis of the grid.
fn places<'c, C>(
    schedule: &AdvectSchedule,
    courant: &'c [C],
) -> impl Iterator<Item = (Place, Option<&'c C>)> {
    let faces = schedule.domain().axes().iter().map(|axis| Place::Face(*axis)).zip(courant.iter().map(Some));
    std::iter::once((Place::Centre, None)).chain(faces)
}

/// Copies elements from blocks into a box, row by row.
fn copy<T: Advectable>(
    blocks: &LocalBlocks<T>,
    plane: &Plane,
    place: Place,
    source: Source,
    subdomain: &mut Subdomain<T>,
) {
    let (here, there) = (&source.here, &source.there());
    let along = there.lengths()[2];
    for (to_i, i) in (here.lo[0]..here.hi[0]).zip(there.lo[0]..) {
        for (to_j, j) in (here.lo[1]..here.hi[1]).zip(there.lo[1]..) {
            let row = Cells { lo: [to_i, to_j, here.lo[2]], hi: [to_i + 1, to_j + 1, here.hi[2]] };
            subdomain.unpack(place, 1, &row, run_of(blocks, plane, place, [i, j, there.lo[2]], along));
        }
    }
}

/// `length` elements of a row, which are in one block.
pub(crate) fn run_of<'b, T>(
    blocks: &'b LocalBlocks<T>,
    plane: &Plane,
    place: Place,
    at: [isize; 3],
    length: usize,
) -> &'b [T] {
    let (row, col) = plane.position(place, at);
    let holds = |rect: &Rect| {
        (rect.rows.start..rect.rows.end).contains(&row)
            && rect.cols.start <= col
            && col + length as u64 <= rect.cols.end
    };
    let block = blocks.iter().find(|(rect, _)| holds(rect));
    let (rect, elements) = block.expect("a row of cells is in a block of this process");
    let first = (row - rect.rows.start) * rect.cols.len() + col - rect.cols.start;
    &elements[first as usize..first as usize + length]
}

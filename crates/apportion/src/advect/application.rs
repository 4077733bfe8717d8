//! An advection as an [`Executable`]: each processor's boxes, and how halos are packed and unpacked.

use crate::geometry::{Rank, Rect};
use crate::kernels::mpdata::{Advectable, Cells, Part, Place, Subdomain, sources};
use crate::matrix::LocalBlocks;
use crate::run::parallel;
use crate::schedule::{Advance, AdvectSchedule, Application, Executable, HaloPiece, Plane, Region, StepOf};

/// The Courant numbers along an axis, on the faces of the cells.
#[derive(Debug, Clone, Copy)]
pub enum Courant<'a, T> {
    /// The same everywhere.
    Constant(T),
    /// Rectangles of the matrix that [`Plane::matrix`] describes.
    Faces(&'a LocalBlocks<T>),
}

/// The advection of a field: this process's parts of it and of the Courant numbers.
#[derive(Debug)]
pub struct Advection<'a, T> {
    schedule: &'a AdvectSchedule,
    plane: Plane,
    field: &'a LocalBlocks<T>,
    courant: Vec<Courant<'a, T>>,
    signed: bool,
}

impl<'a, T: Advectable> Advection<'a, T> {
    /// An advection. `field` holds this process's cells, `courant` one entry per axis of the grid, each with
    /// the faces around those cells that the schedule needs. `signed` says that the field has values of both
    /// signs anywhere.
    pub fn new(
        schedule: &'a AdvectSchedule,
        field: &'a LocalBlocks<T>,
        courant: &[Courant<'a, T>],
        signed: bool,
    ) -> Self {
        let plane = Plane::of(&schedule.problem().sizes);
        Self { schedule, plane, field, courant: courant.to_vec(), signed }
    }

    /// The number of an axis among those of the grid.
    fn number(&self, axis: usize) -> usize {
        self.schedule.domain().axes().iter().position(|a| *a == axis).expect("the grid has the axis")
    }

    /// Copies elements from blocks into a box, plane by plane.
    fn fill(
        &self,
        blocks: &LocalBlocks<T>,
        place: Place,
        (here, there): (&Cells, &Cells),
        subdomain: &mut Subdomain<T>,
    ) {
        let along = there.lengths()[2];
        let mut plane = Vec::with_capacity(there.lengths()[1] * along);
        for i in there.lo[0]..there.hi[0] {
            plane.clear();
            for j in there.lo[1]..there.hi[1] {
                plane.extend_from_slice(run_of(blocks, &self.plane, place, [i, j, there.lo[2]], along));
            }
            let mut slice = *here;
            slice.lo[0] = here.lo[0] + (i - there.lo[0]);
            slice.hi[0] = slice.lo[0] + 1;
            subdomain.unpack(place, 1, &slice, &plane);
        }
    }

    fn subdomain(&self, cells: &Cells) -> Subdomain<T> {
        let (schedule, domain) = (self.schedule, *self.schedule.domain());
        let (with, undivided) = (schedule.with(), schedule.undivided());
        let mut subdomain = Subdomain::new(domain, with, *cells, undivided, self.signed);
        self.fill(self.field, Place::Centre, (cells, cells), &mut subdomain);
        let room = Subdomain::<T>::room(&domain, with, cells, undivided);
        for axis in domain.axes().iter().copied() {
            let place = Place::Face(axis);
            match self.courant[self.number(axis)] {
                Courant::Constant(value) => subdomain.fill_courant(axis, value),
                Courant::Faces(blocks) => {
                    for source in sources(&domain, place, &room, false) {
                        self.fill(blocks, place, (&source.here, &source.there()), &mut subdomain);
                    }
                }
            }
            subdomain.close(place, 1);
        }
        subdomain
    }

    /// The field in a processor's boxes after a run, as blocks of the matrix that files hold.
    pub fn result(&self, held: Held<T>) -> LocalBlocks<T> {
        let one = |mut subdomain: Subdomain<T>| {
            let cells = *subdomain.cells();
            let mut elements = vec![T::ZERO; cells.count()];
            subdomain.pack(Place::Centre, 1, &cells, &mut elements);
            (self.plane.rect(Place::Centre, &cells), elements)
        };
        held.boxes.into_iter().map(one).collect()
    }
}

/// `length` elements of a row, which are in one block.
pub(super) fn run_of<'b, T>(
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

/// The data of one processor.
#[derive(Debug)]
pub struct Held<T> {
    rank: Rank,
    boxes: Vec<Subdomain<T>>,
}

impl<T: Advectable> Application for Advection<'_, T> {
    type Piece = HaloPiece;
    type Work = Advance;

    fn processors(&self) -> usize {
        self.schedule.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        self.schedule.steps(rank)
    }

    fn overlaps(&self) -> bool {
        self.schedule.overlaps()
    }

    fn share(&self, rank: Rank) -> f64 {
        self.schedule.share(rank)
    }

    fn work(&self, rank: Rank) -> f64 {
        self.schedule.work(rank)
    }
}

impl<T: Advectable> Executable for Advection<'_, T> {
    type Element = T;
    type Local<'l>
        = Held<T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> Held<T> {
        let boxes = self.schedule.boxes(rank).iter().map(|cells| self.subdomain(cells)).collect();
        Held { rank, boxes }
    }

    fn pack(&self, held: &mut Held<T>, piece: &HaloPiece, out: &mut [T]) {
        held.boxes[piece.from].pack(piece.place, piece.pass, &piece.there(), out);
    }

    fn unpack(&self, held: &mut Held<T>, piece: &HaloPiece, elements: &[T]) {
        held.boxes[piece.to].unpack(piece.place, piece.pass, &piece.here, elements);
    }

    fn compute(&self, held: &mut Held<T>, work: &Advance, threads: usize) -> f64 {
        let schedule = self.schedule;
        if work.region != Region::Border {
            let mut elements = Vec::new();
            for piece in schedule.own_pieces(held.rank, work) {
                elements.resize(piece.here.count(), T::ZERO);
                self.pack(held, piece, &mut elements);
                self.unpack(held, piece, &elements);
            }
        }
        let axes = schedule.domain().axes().iter().filter(|_| work.pass > 2);
        for place in std::iter::once(Place::Centre).chain(axes.map(|axis| Place::Face(*axis))) {
            held.boxes.iter_mut().for_each(|subdomain| subdomain.close(place, work.pass.max(1)));
        }
        let mut seconds = 0.0;
        for (number, cells) in schedule.region(held.rank, work) {
            let parts = held.boxes[number].parts(&cells, work.pass, threads);
            seconds += parallel::all(parts, Part::compute);
        }
        if work.region != Region::Inside {
            held.boxes.iter_mut().for_each(|subdomain| subdomain.finish(work.pass));
        }
        seconds
    }

    fn peak_bytes(&self, held: &Held<T>) -> u64 {
        held.boxes.iter().map(Subdomain::bytes).sum()
    }
}

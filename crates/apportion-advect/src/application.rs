//! An advection as an [`Executable`]: each processor's boxes, and how halos are packed and unpacked.

mod processor_data;

pub(crate) use processor_data::ProcessorData;
pub(super) use processor_data::run_of;

use crate::{Advance, AdvectSchedule, HaloPiece, Plane, Region};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::kernels::mpdata::{Advectable, Part, Place, Subdomain};
use apportion::matrix::LocalBlocks;
use apportion::run::parallel;
use apportion::schedule::{Application, Executable, StepOf};
use std::sync::{Mutex, PoisonError};

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
pub(crate) struct Advection<'a, T> {
    schedule: AdvectSchedule,
    origin: Origin<'a, T>,
}

/// Where the boxes of the processors come from.
#[derive(Debug)]
enum Origin<'a, T> {
    /// Blocks of the field and of the Courant numbers, and whether the field has values of both signs.
    Blocks(&'a LocalBlocks<T>, Vec<Courant<'a, T>>, bool),
    /// They are there, by rank; each is taken once.
    Ready(Vec<Mutex<Option<ProcessorData<T>>>>),
}

impl<'a, T: Advectable> Advection<'a, T> {
    /// An advection. `field` holds this process's cells, `courant` one entry per axis of the grid, each with
    /// the faces around those cells that the schedule needs. `signed` says that the field has values of both
    /// signs anywhere.
    pub(crate) fn new(
        schedule: AdvectSchedule,
        field: &'a LocalBlocks<T>,
        courant: Vec<Courant<'a, T>>,
        signed: bool,
    ) -> Self {
        Self { schedule, origin: Origin::Blocks(field, courant, signed) }
    }

    /// An advection of boxes that hold the field and the Courant numbers, by rank. It can run once.
    pub(super) fn of(schedule: AdvectSchedule, held: Vec<ProcessorData<T>>) -> Self {
        Self {
            schedule,
            origin: Origin::Ready(held.into_iter().map(|held| Mutex::new(Some(held))).collect()),
        }
    }

    /// The field in a processor's boxes after a run, as blocks of the matrix that files hold.
    pub(crate) fn result(&self, mut held: ProcessorData<T>) -> LocalBlocks<T> {
        let plane = Plane::of(&self.schedule.problem().sizes);
        let mut one = |subdomain: &mut Subdomain<T>| {
            let cells = *subdomain.cells();
            let mut elements = vec![T::ZERO; cells.count()];
            subdomain.pack(Place::Centre, 1, &cells, &mut elements);
            (plane.rect(Place::Centre, &cells), elements)
        };
        held.boxes.iter_mut().map(&mut one).collect()
    }
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
        = ProcessorData<T>
    where
        Self: 'l;

    fn hold(&self, rank: Rank) -> ProcessorData<T> {
        match &self.origin {
            Origin::Blocks(field, courant, signed) => {
                let mut held = ProcessorData::new(&self.schedule, rank, *signed);
                held.fill(&self.schedule, field, courant);
                held
            }
            Origin::Ready(held) => {
                let mut held = held[rank.0].lock().unwrap_or_else(PoisonError::into_inner);
                held.take().expect("each processor's boxes are taken once")
            }
        }
    }

    fn pack(&self, held: &mut ProcessorData<T>, piece: &HaloPiece, out: &mut [T]) {
        held.boxes[piece.from].pack(piece.place, piece.pass, &piece.there(), out);
    }

    fn unpack(&self, held: &mut ProcessorData<T>, piece: &HaloPiece, elements: &[T]) {
        held.boxes[piece.to].unpack(piece.place, piece.pass, &piece.here, elements);
    }

    fn compute(&self, held: &mut ProcessorData<T>, work: &Advance, threads: usize) -> Result<f64> {
        let schedule = &self.schedule;
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
        for (number, cells) in schedule.region(held.rank, work) {
            parallel::all(held.boxes[number].parts(&cells, work.pass, threads), Part::compute)?;
        }
        if work.region != Region::Inside {
            held.boxes.iter_mut().for_each(|subdomain| subdomain.finish(work.pass));
        }
        Ok(0.0)
    }

    fn peak_bytes(&self, held: &ProcessorData<T>) -> u64 {
        held.boxes.iter().map(Subdomain::bytes).sum()
    }
}

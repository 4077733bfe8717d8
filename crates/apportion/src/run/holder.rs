//! A processor's part of an application, without the types of its elements and data: the engine is compiled
//! once for each kind of message and work, not again for each type of element.

use super::messages::Received;
use crate::geometry::Rank;
use crate::schedule::{Application, Executable, Parcel, Piece};
use std::any::Any;
use std::sync::Arc;

/// The order of an application with pieces `P` and work `W`.
pub(super) type Order<'a, P, W> = dyn Application<Piece = P, Work = W> + Sync + 'a;

/// What one processor holds, and what can be done with it. The methods are those of [`Executable`], for all
/// pieces of a message.
pub(super) trait Holder<P, W> {
    /// The senders of a turn on a bus.
    fn senders(&self, turn: u64) -> Option<Vec<Rank>>;
    /// Size of an element.
    fn element_bytes(&self) -> usize;
    /// Copies pieces to `room`, which has their length and is aligned as words are.
    fn pack(&mut self, pieces: &[P], room: &mut [u8]);
    /// Copies of pieces, for the holder that [unpacks](Self::unpack) them.
    fn packed(&mut self, pieces: &[P]) -> Box<dyn Any + Send>;
    /// Stores pieces that another holder of the application has packed.
    fn unpack(&mut self, pieces: &[P], packed: &(dyn Any + Send));
    /// Stores pieces that have arrived in this memory, or keeps it.
    fn accept(&mut self, pieces: &[P], memory: Arc<Received>);
    /// True if these pieces are read in place.
    fn is_shared(&self, pieces: &[P]) -> bool;
    /// Announces pieces that may be read in place from now on.
    fn take_shared(&mut self, pieces: &[P]);
    /// The amount of a step's work.
    fn amount(&self, work: &W) -> f64;
    /// Does a step's work on up to `threads` threads.
    fn compute(&mut self, work: &W, threads: usize) -> f64;
    /// Takes work from the queue of the process.
    fn take_left(&self) -> Option<W>;
    /// Does work from the queue.
    fn compute_left(&self, work: &W, threads: usize) -> f64;
    /// Frees what later steps do not need.
    fn free(&mut self, piece: &P);
    /// Peak number of bytes held so far.
    fn peak_bytes(&self) -> u64;
}

/// The part of one processor.
pub(super) struct Held<'a, E: Executable> {
    pub app: &'a E,
    pub rank: Rank,
    pub local: E::Local<'a>,
}

impl<'a, E: Executable> Held<'a, E> {
    /// Allocates the part of a processor.
    pub fn new(app: &'a E, rank: Rank) -> Self {
        Self { app, rank, local: app.hold(rank) }
    }

    fn pack_into(&mut self, pieces: &[E::Piece], mut rest: &mut [E::Element]) {
        for piece in pieces {
            let (out, others) = rest.split_at_mut(piece.elements() as usize);
            self.app.pack(&mut self.local, piece, out);
            rest = others;
        }
    }
}

impl<E: Executable> Holder<E::Piece, E::Work> for Held<'_, E> {
    fn senders(&self, turn: u64) -> Option<Vec<Rank>> {
        self.app.senders(turn)
    }

    fn element_bytes(&self) -> usize {
        size_of::<E::Element>()
    }

    fn pack(&mut self, pieces: &[E::Piece], room: &mut [u8]) {
        self.pack_into(pieces, bytemuck::cast_slice_mut(room));
    }

    fn packed(&mut self, pieces: &[E::Piece]) -> Box<dyn Any + Send> {
        let elements = pieces.iter().map(Piece::elements).sum::<u64>() as usize;
        let mut packed: Vec<E::Element> = vec![bytemuck::Zeroable::zeroed(); elements];
        self.pack_into(pieces, &mut packed);
        Box::new(packed)
    }

    fn unpack(&mut self, pieces: &[E::Piece], packed: &(dyn Any + Send)) {
        let mut rest: &[E::Element] =
            packed.downcast_ref::<Vec<E::Element>>().expect("all holders have the same elements");
        for piece in pieces {
            let (elements, others) = rest.split_at(piece.elements() as usize);
            self.app.unpack(&mut self.local, piece, elements);
            rest = others;
        }
    }

    fn accept(&mut self, pieces: &[E::Piece], memory: Arc<Received>) {
        let parcel = Parcel::new(memory);
        let mut first = 0;
        for piece in pieces {
            let end = first + piece.elements() as usize;
            self.app.accept(&mut self.local, piece, &parcel.part(first..end));
            first = end;
        }
    }

    fn is_shared(&self, pieces: &[E::Piece]) -> bool {
        pieces.iter().all(|piece| self.app.is_shared(piece))
    }

    fn take_shared(&mut self, pieces: &[E::Piece]) {
        pieces.iter().for_each(|piece| self.app.take_shared(&mut self.local, piece));
    }

    fn amount(&self, work: &E::Work) -> f64 {
        self.app.amount(&self.local, work)
    }

    fn compute(&mut self, work: &E::Work, threads: usize) -> f64 {
        self.app.compute(&mut self.local, work, threads)
    }

    fn take_left(&self) -> Option<E::Work> {
        self.app.take_left(self.rank)
    }

    fn compute_left(&self, work: &E::Work, threads: usize) -> f64 {
        self.app.compute_left(work, threads)
    }

    fn free(&mut self, piece: &E::Piece) {
        self.app.free(&mut self.local, piece);
    }

    fn peak_bytes(&self) -> u64 {
        self.app.peak_bytes(&self.local)
    }
}

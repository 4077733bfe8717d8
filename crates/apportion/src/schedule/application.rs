//! What a distributed computation is, apart from where it runs: the parameter of schedules, simulation and
//! engines.

use super::{Message, Step};
use crate::geometry::Rank;
use crate::platform::Direction;
use std::fmt::Debug;

/// A piece of an application's data, as a message carries it.
pub trait Piece: Clone + Debug {
    /// Number of elements.
    fn elements(&self) -> u64;

    /// How the elements are laid out in their owner's memory: [`Direction::Vertical`] for a contiguous piece,
    /// [`Direction::Horizontal`] for a strided one. Networks may price the two differently (Malik 2016,
    /// section 4.2).
    fn direction(&self) -> Direction {
        Direction::Vertical
    }
}

/// A unit of work of one processor.
pub trait Work: Clone + Debug {
    /// Its cost, in the units that speeds count per second.
    fn amount(&self) -> f64;
}

/// A computation on distributed data: which pieces travel, what is computed, in which order.
///
/// This is all that [`simulate`](crate::simulate::simulate) and the exports need. What an engine needs beside
/// it is in [`Executable`]. The matrix product is one implementation
/// ([`MatmulSchedule`](super::MatmulSchedule)); the example `own_application` has a complete second one.
///
/// # Guarantees to keep
/// * `(from, to, tag)` is unique among the messages of a run, and a message is posted by both its ends with
///   the same pieces.
/// * A processor posts a receive before it waits for it.
pub trait Application {
    /// What messages carry.
    type Piece: Piece;
    /// What processors compute.
    type Work: Work;

    /// Number of processors.
    fn processors(&self) -> usize;

    /// The steps of one processor, in order, made on demand.
    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_>;

    /// True if messages are under way while processors compute. Under MPI a second thread then moves them on.
    fn overlaps(&self) -> bool {
        false
    }

    /// The size of a processor's share, at which its speed function is read; in the models' unit of size. By
    /// default its [`work`](Self::work).
    fn share(&self, rank: Rank) -> f64 {
        self.work(rank)
    }

    /// The work of one processor, all its steps together, in the unit of [`Work::amount`]. By default the sum
    /// over the steps, which every process makes for every processor: override it where there is a formula.
    fn work(&self, rank: Rank) -> f64 {
        let amount = |step: StepOf<Self>| if let Step::Compute(work) = step { work.amount() } else { 0.0 };
        self.steps(rank).map(amount).sum()
    }
}

/// A step of an application.
pub type StepOf<A> = Step<<A as Application>::Piece, <A as Application>::Work>;
/// A message of an application.
pub type MessageOf<A> = Message<<A as Application>::Piece>;

/// An application that an engine can run: how pieces are packed, unpacked and computed with.
///
/// The engine calls [`hold`](Self::hold) once on each processor's own thread, then the other methods as the
/// steps say.
pub trait Executable: Application + Sync {
    /// What messages are made of.
    type Element: bytemuck::Pod + Send + Sync;
    /// What one processor holds.
    type Local<'a>: Send
    where
        Self: 'a;

    /// Takes the memory of one processor.
    fn hold(&self, rank: Rank) -> Self::Local<'_>;

    /// Copies a piece that this processor holds to `out`, which has as many elements as the piece.
    fn pack(&self, local: &mut Self::Local<'_>, piece: &Self::Piece, out: &mut [Self::Element]);

    /// Takes over a piece that has arrived.
    fn unpack(&self, local: &mut Self::Local<'_>, piece: &Self::Piece, elements: &[Self::Element]);

    /// Does a unit of work on up to `threads` threads. Returns the CPU seconds of the longest-running thread
    /// that it started, 0 if it started none.
    fn compute(&self, local: &mut Self::Local<'_>, work: &Self::Work, threads: usize) -> f64;

    /// Forgets data that later steps do not need. The piece is that of a [`Step::Free`].
    fn free(&self, local: &mut Self::Local<'_>, piece: &Self::Piece) {
        let _ = (local, piece);
    }

    /// Most bytes that this processor held at once so far.
    fn peak_bytes(&self, local: &Self::Local<'_>) -> u64;

    /// True if the processors of one process can read each other's pieces where they are. Messages between
    /// them then carry no data: [`take_shared`](Self::take_shared) is called instead of `pack` and `unpack`.
    fn shares_memory(&self) -> bool {
        false
    }

    /// A piece of another processor of this process may be read from now on.
    fn take_shared(&self, local: &mut Self::Local<'_>, piece: &Self::Piece) {
        let _ = (local, piece);
    }
}

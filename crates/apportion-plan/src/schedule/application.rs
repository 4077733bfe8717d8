//! Interface of a distributed computation, independent of where it runs. Schedules, the simulator and the
//! engines are generic over it.

use super::{Message, Parcel, Step};
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{DeviceUploads, Direction};
use std::fmt::Debug;

/// A piece of an application's data that a message carries.
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
    /// Cost, in the units that speeds count per second.
    fn amount(&self) -> f64;

    /// What goes up to a device for it, whose memory has this many bytes; `element` is the bytes of one element.
    /// Default: nothing.
    fn uploads(&self, memory: Option<u64>, element: u64) -> DeviceUploads {
        let _ = (memory, element);
        DeviceUploads::default()
    }

    /// Elements that come down from a device before the cores that drive it do this work, when the device has ended all
    /// that came before; `None` if the device does it. Default: `None`.
    fn fetches(&self) -> Option<u64> {
        None
    }
}

/// A computation on distributed data: the pieces that travel, the work, and their order.
///
/// [`simulate`](crate::simulate::simulate) and the exports need only this trait. Engines also need
/// [`Executable`]. The matrix product is one implementation ([`MatmulSchedule`](super::MatmulSchedule)); the
/// sweeps of a stencil, `Halo` in `apportion`, are a short one.
/// # Guarantees of an implementation
/// * `(from, to, tag)` is unique among the messages of a run. Both ends post a message with the same pieces.
/// * A processor posts a receive before it waits for it.
pub trait Application {
    /// What messages carry.
    type Piece: Piece;
    /// What processors compute.
    type Work: Work;

    /// Number of processors.
    fn processors(&self) -> usize;

    /// The steps of one processor, in order, generated on demand.
    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_>;

    /// The processors that send messages with this tag, if tags number turns; `None` after the last turn.
    ///
    /// On a bus, a message waits until all messages of the earlier turns have been posted, so that none of
    /// them is delayed by a later one. A processor sends at most one message or broadcast in a turn. The
    /// default, `None` for every tag, orders nothing.
    fn senders(&self, tag: u64) -> Option<Vec<Rank>> {
        let _ = tag;
        None
    }

    /// True if messages travel while processors compute. Under MPI, a second thread then drives their
    /// progress, unless the ranks are on one host and share memory.
    fn overlaps(&self) -> bool {
        false
    }

    /// The size of a processor's share, in the models' unit of size. Its speed function is evaluated there.
    /// Default: its [`work`](Self::work).
    fn share(&self, rank: Rank) -> f64 {
        self.work(rank)
    }

    /// Elements of results that come down from a device. Default: 0.
    fn results(&self, rank: Rank) -> u64 {
        let _ = rank;
        0
    }

    /// The total work of one processor over all its steps, in the unit of [`Work::amount`]. The default sums
    /// over the steps, and every process does so for every processor: override it if there is a formula.
    fn work(&self, rank: Rank) -> f64 {
        let amount = |step: StepOf<Self>| if let Step::Compute(work) = step { work.amount() } else { 0.0 };
        self.steps(rank).map(amount).sum()
    }
}

/// A step of an application.
pub type StepOf<A> = Step<<A as Application>::Piece, <A as Application>::Work>;
/// A message of an application.
pub type MessageOf<A> = Message<<A as Application>::Piece>;

/// An application that an engine can run. It defines how pieces are packed, unpacked and computed with.
///
/// The engine calls [`hold`](Self::hold) once on each processor's own thread, then the other methods in the
/// order of the steps.
pub trait Executable: Application + Sync {
    /// Type of the elements in messages.
    type Element: bytemuck::Pod + Send + Sync;
    /// Data of one processor.
    type Local<'a>: Send
    where
        Self: 'a;

    /// Allocates the data of one processor.
    fn hold(&self, rank: Rank) -> Self::Local<'_>;

    /// Copies a piece that this processor holds to `out`, whose length is the number of elements of the
    /// piece.
    fn pack(&self, local: &mut Self::Local<'_>, piece: &Self::Piece, out: &mut [Self::Element]);

    /// Stores a piece that has arrived.
    fn unpack(&self, local: &mut Self::Local<'_>, piece: &Self::Piece, elements: &[Self::Element]);

    /// Stores a piece that has arrived in memory which the processor may keep: it may compute with the
    /// elements where they are, and drops the parcel when it needs them no more. Default:
    /// [`unpack`](Self::unpack).
    fn accept(&self, local: &mut Self::Local<'_>, piece: &Self::Piece, parcel: &Parcel<Self::Element>) {
        self.unpack(local, piece, parcel.elements());
    }

    /// Computes a unit of work on up to `threads` threads. Returns the CPU seconds of the longest-running
    /// thread that it started, or 0 if it started none; where a device computes, the seconds for which it did
    /// since the last call.
    ///
    /// # Errors
    /// The system refuses a thread; the device fails.
    fn compute(&self, local: &mut Self::Local<'_>, work: &Self::Work, threads: usize) -> Result<f64>;

    /// The amount of a step's work, less what is left to the queue of [`take_left`](Self::take_left).
    /// Default: [`Work::amount`].
    fn amount(&self, local: &Self::Local<'_>, work: &Self::Work) -> f64 {
        let _ = local;
        work.amount()
    }

    /// Takes work from a queue, that of this processor or one that the processors of the process share, for a
    /// processor that has done all its steps; `None` when nothing is left. Default: there is no queue.
    fn take_left(&self, local: &mut Self::Local<'_>, rank: Rank) -> Option<Self::Work> {
        let _ = (local, rank);
        None
    }

    /// Computes work from the queue, as [`compute`](Self::compute) does that of a step.
    ///
    /// # Errors
    /// As [`compute`](Self::compute).
    fn compute_left(&self, local: &mut Self::Local<'_>, work: &Self::Work, threads: usize) -> Result<f64> {
        let _ = (local, work, threads);
        Ok(0.0)
    }

    /// Frees data that later steps do not need. The piece is that of a [`Step::Free`].
    fn free(&self, local: &mut Self::Local<'_>, piece: &Self::Piece) {
        let _ = (local, piece);
    }

    /// Bytes that went up to a device so far, and that came down. Default: none.
    fn device_bytes(&self, local: &Self::Local<'_>) -> [u64; 2] {
        let _ = local;
        [0; 2]
    }

    /// Peak number of bytes that this processor has held so far.
    fn peak_bytes(&self, local: &Self::Local<'_>) -> u64;

    /// True if the processors of one process can read each other's pieces in place. Messages between them
    /// then carry no data, and the engine calls [`take_shared`](Self::take_shared) instead of `pack` and
    /// `unpack`, except for pieces that are not [shared](Self::is_shared).
    fn shares_memory(&self) -> bool {
        false
    }

    /// True if this piece is among those that are read in place. The pieces of one message are all so, or
    /// none is. Default: all pieces if processors share memory.
    fn is_shared(&self, piece: &Self::Piece) -> bool {
        let _ = piece;
        self.shares_memory()
    }

    /// Announces that a piece of another processor of this process may be read from now on.
    fn take_shared(&self, local: &mut Self::Local<'_>, piece: &Self::Piece) {
        let _ = (local, piece);
    }
}

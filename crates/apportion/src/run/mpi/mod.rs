//! The MPI engine: one process per processor, which holds its own parts only; messages carry the data.

mod raw;
mod world;

pub use world::World;

use super::blocks::{Blocks, Parcel, Source, Spare};
use super::clock;
use super::mailboxes::StopSignal;
use super::monitor::Monitor;
use super::worker::{Courier, Worker, WorkerOutput, lost};
use crate::error::Result;
use crate::geometry::Rank;
use crate::kernels::Kernel;
use crate::matrix::{Element, LocalBlocks};
use crate::platform::Platform;
use crate::schedule::{Message, Operand, Piece, Schedule};
use crate::trace::Lane;
use raw::Transfer;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tags of a schedule's messages lie below. Two messages of a pair may share a tag: both ends handle them in the
/// schedule's order, which MPI keeps.
const TAGS: u64 = 0x7ff0;

/// Calls into the library that make it look at everything: Open MPI looks at sockets only every eighth time.
const SWEEP: u32 = 8;

/// How often messages are moved on during an update.
const NUDGE: Duration = Duration::from_millis(1);

/// Computes this rank's part of C = A B over the kernel's semiring as the schedule says, from its own parts of A and B.
/// Every rank of the world calls it; it returns this rank's rectangles of C, and what it did when.
///
/// Compute times follow the processor's `slowdown`; it is pinned to its `cores` and computes with as many threads.
/// With overlap a second thread moves messages on while this one computes, where the library allows it.
///
/// # Errors
/// [`Error::Interrupted`](crate::error::Error::Interrupted) if the monitor was stopped;
/// [`Error::WorkerLost`](crate::error::Error::WorkerLost) if the worker panicked. Then the other ranks wait for messages that will not come:
/// end them with [`World::abort`].
///
/// # Panics
/// If the world, the schedule and the platform are not of one size.
pub fn run_mpi<T: Element>(
    kernel: Kernel<T>,
    (a, b): (&LocalBlocks<T>, &LocalBlocks<T>),
    (schedule, world): (&Schedule, &World),
    platform: &Platform,
    monitor: &Monitor,
) -> Result<(LocalBlocks<T>, Lane)> {
    let p = schedule.processors();
    assert_eq!((world.size(), platform.len()), (p, p), "one rank for each of the schedule's processors");
    let rank = Rank(world.rank());
    let processor = &platform.processors[rank.0];
    monitor.begin((schedule.layout().shape().flops() / 2.0) as u64 / p as u64);
    let halt = StopSignal::new(monitor);
    let over = AtomicBool::new(false);
    let work = || -> Result<WorkerOutput<T>> {
        let worker = Worker::new(kernel, (schedule, rank), processor, OwnTiles { a, b }, &halt);
        world.barrier()?;
        let epoch = Instant::now();
        let (sending, receiving, spare) = (Vec::new(), BTreeMap::new(), Spare::default());
        let mut mail = Mail { world, rank, epoch, sending, receiving, spare };
        let output = worker.work(epoch, &mut mail)?;
        <Mail<'_> as Courier<T>>::flush(&mut mail)?;
        Ok(output)
    };
    let output = std::thread::scope(|scope| {
        if schedule.order().overlaps() && p > 1 && world.mpi().any_thread() {
            scope.spawn(|| {
                // On a core of its own worker's, not another's.
                clock::pin(&processor.cores);
                while !over.load(Ordering::Relaxed) {
                    (0..SWEEP).for_each(|_| world.mpi().progress());
                    std::thread::sleep(NUDGE);
                }
            });
        }
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|why| Err(lost(processor, why)));
        over.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok((output.tiles, output.lane))
}

/// A rank's own parts of both factors.
struct OwnTiles<'a, T> {
    a: &'a LocalBlocks<T>,
    b: &'a LocalBlocks<T>,
}

impl<T: Element> Source<T> for OwnTiles<'_, T> {
    fn copy(&self, piece: Piece, into: &mut [T], stride: usize) {
        let tiles = match piece.operand {
            Operand::A => self.a,
            Operand::B => self.b,
        };
        let holds = tiles.iter().find(|(rect, _)| rect.intersect(piece.rect) == piece.rect);
        let (rect, elements) = holds.expect("only own parts are copied, one part at a time");
        Parcel { rect: *rect, elements }.copy(piece, into, stride);
    }
}

/// Messages by MPI: the pieces, each row by row, one after the other, and in the last word the sender's time.
struct Mail<'a> {
    world: &'a World,
    rank: Rank,
    epoch: Instant,
    sending: Vec<Transfer>,
    receiving: BTreeMap<(Rank, u64), Transfer>,
    spare: Spare<u64>,
}

impl Mail<'_> {
    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }
}

/// Bytes of a message's elements.
fn bytes_of<T>(message: &Message) -> usize {
    message.elements() as usize * size_of::<T>()
}

/// Words of a message with its time.
fn words_of<T>(message: &Message) -> u64 {
    (bytes_of::<T>(message).div_ceil(size_of::<u64>()) + 1) as u64
}

impl<'t, T: Element> Courier<T> for Mail<'t>
where
    Self: 't,
{
    type Own = OwnTiles<'t, T>;

    fn send(&mut self, message: &Message, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<()> {
        debug_assert_eq!(message.from, self.rank, "a rank sends its own messages");
        let mpi = self.world.mpi();
        let gone = self.sending.extract_if(.., |transfer| mpi.done(transfer));
        self.spare.0.extend(gone.map(Transfer::into_words));
        let mut words = self.spare.take(words_of::<T>(message));
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let bytes = &mut bytes[..bytes_of::<T>(message)];
        let mut rest: &mut [T] = bytemuck::cast_slice_mut(bytes);
        for piece in &message.pieces {
            let (out, others) = rest.split_at_mut(piece.rect.area() as usize);
            blocks.give(*piece, out);
            rest = others;
        }
        *words.last_mut().expect("there is the time's word") = self.now().to_bits();
        self.sending.push(mpi.send(words, message.to.0, (message.tag % TAGS) as u16));
        Ok(())
    }

    fn expect(&mut self, message: &Message) -> Result<()> {
        let tag = (message.tag % TAGS) as u16;
        let room = self.spare.take(words_of::<T>(message));
        let transfer = self.world.mpi().receive(room, message.from.0, tag);
        self.receiving.insert((message.from, message.tag), transfer);
        Ok(())
    }

    fn receive(&mut self, message: &Message, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<f64> {
        let key = (message.from, message.tag);
        let mut transfer = self.receiving.remove(&key).expect("a message is expected before it is received");
        self.world.wait(&mut transfer)?;
        let words = transfer.words();
        let bytes: &[u8] = &bytemuck::cast_slice(words)[..bytes_of::<T>(message)];
        let mut rest: &[T] = bytemuck::cast_slice(bytes);
        for piece in &message.pieces {
            let (elements, others) = rest.split_at(piece.rect.area() as usize);
            blocks.take(*piece, &Parcel { rect: piece.rect, elements });
            rest = others;
        }
        let sent = f64::from_bits(words[words.len() - 1]);
        self.spare.0.push(transfer.into_words());
        // Clocks start together at a barrier, but for the time that its messages take.
        Ok(sent.min(self.now()))
    }

    fn flush(&mut self) -> Result<()> {
        for mut transfer in self.sending.drain(..) {
            self.world.wait(&mut transfer)?;
        }
        Ok(())
    }
}

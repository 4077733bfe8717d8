//! Transports: how an engine carries the messages of one processor.

use super::buffer_pool::BufferPool;
use super::mailboxes::{Mailboxes, StopSignal};
use super::shared::{Incoming, NOTICE, Sent};
use super::world::{TAGS, Transfer, Waiting, World};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::schedule::{Application, Broadcast, Executable, Message, Parcel, Piece, Posting, Step, Work};
use bytemuck::Pod;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Carries the messages of one processor, with pieces `P`. Times are in seconds since the run's epoch.
pub(super) trait Transport<P, W> {
    /// Starts sending a message.
    fn send(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<()>;

    /// Starts a send to several processors.
    fn broadcast(&mut self, broadcast: &Broadcast<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        broadcast.messages.iter().try_for_each(|message| self.send(message, holder))
    }

    /// Posts the receive of a later message.
    fn post_receive(&mut self, message: &Message<P>, holder: &dyn Holder<P, W>) -> Result<()>;

    /// Waits for a message and passes its pieces to the application. Returns the times at which the message
    /// started and arrived.
    fn receive(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<[f64; 2]>;

    /// Waits until all sent messages have left this processor.
    fn flush(&mut self) -> Result<()>;

    /// The processor computes or has ended: it sends nothing until it [resumes](Self::resume).
    fn suspend(&mut self) {}

    /// The processor may send from now on.
    fn resume(&mut self) {}
}

/// Packed messages by sender, receiver and tag.
pub(super) type Parcels = Mutex<BTreeMap<(Rank, Rank, u64), Box<dyn Any + Send>>>;

/// Messages between the threads of one process, on emulated links if the platform requests it. If the
/// application shares memory, a message is a permission to read; otherwise the packed pieces are handed over.
pub(super) struct SharedMemory<'a> {
    pub(crate) rank: Rank,
    pub(crate) mailboxes: &'a Mailboxes<'a>,
    pub(crate) parcels: &'a Parcels,
    pub(crate) stop: &'a StopSignal<'a>,
    pub(crate) epoch: Instant,
}

impl SharedMemory<'_> {
    /// Posts a message or a broadcast.
    fn post(&self, posting: impl FnOnce(f64) -> Posting) {
        self.mailboxes.post(posting(self.mailboxes.now(self.rank, self.epoch)));
    }

    /// Stores a packed message for its receiver, before it is announced.
    fn pack<P, W>(&self, message: &Message<P>, holder: &mut dyn Holder<P, W>) {
        if !holder.is_shared(&message.pieces) {
            let key = (message.from, message.to, message.tag);
            let parcel = holder.packed(&message.pieces);
            self.parcels.lock().unwrap_or_else(PoisonError::into_inner).insert(key, parcel);
        }
    }
}

impl<P: Piece, W> Transport<P, W> for SharedMemory<'_> {
    fn send(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        self.pack(message, holder);
        self.post(|now| Posting::message(message, holder.element_bytes() as u64, now));
        Ok(())
    }

    fn broadcast(&mut self, broadcast: &Broadcast<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        broadcast.messages.iter().for_each(|message| self.pack(message, holder));
        self.post(|now| Posting::broadcast(broadcast, holder.element_bytes() as u64, now));
        Ok(())
    }

    fn post_receive(&mut self, _: &Message<P>, _: &dyn Holder<P, W>) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<[f64; 2]> {
        let transit = self.mailboxes.receive(self.rank, message.from, message.tag, self.epoch, self.stop)?;
        if holder.is_shared(&message.pieces) {
            holder.take_shared(&message.pieces);
        } else {
            let key = (message.from, message.to, message.tag);
            let parcel = self.parcels.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            let parcel = parcel.expect("a parcel is there before it is announced");
            holder.unpack(&message.pieces, &*parcel);
        }
        Ok([transit.start, transit.arrival])
    }

    fn flush(&mut self) -> Result<()> {
        self.mailboxes.flush(self.rank, self.epoch, self.stop)
    }

    fn suspend(&mut self) {
        self.mailboxes.suspend(self.rank);
    }

    fn resume(&mut self) {
        self.mailboxes.resume(self.rank, self.epoch);
    }
}

// A processor's part of an application, without the types of its elements and data: the engine is compiled
// once for each kind of message and work, not again for each type of element.

/// The order of an application with pieces `P` and work `W`.
pub(super) type Order<'a, P, W> = dyn Application<Piece = P, Work = W> + Sync + 'a;

/// What one processor holds, and what can be done with it. The methods are those of [`Executable`], for all
/// pieces of a message.
pub(super) trait Holder<P, W> {
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
    fn compute(&mut self, work: &W, threads: usize) -> Result<f64>;
    /// Takes work from the queue of the process.
    fn take_left(&mut self) -> Option<W>;
    /// Does work from the queue.
    fn compute_left(&mut self, work: &W, threads: usize) -> Result<f64>;
    /// Frees what later steps do not need.
    fn free(&mut self, piece: &P);
    /// Bytes that went up to a device, and that came down.
    fn device_bytes(&self) -> [u64; 2];
    /// Peak number of bytes held so far.
    fn peak_bytes(&self) -> u64;
}

/// The part of one processor.
pub(super) struct LocalPart<'a, E: Executable> {
    pub(crate) app: &'a E,
    pub(crate) rank: Rank,
    pub(crate) local: E::Local<'a>,
}

impl<'a, E: Executable> LocalPart<'a, E> {
    /// Allocates the part of a processor.
    pub(crate) fn new(app: &'a E, rank: Rank) -> Self {
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

impl<E: Executable> Holder<E::Piece, E::Work> for LocalPart<'_, E> {
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

    fn compute(&mut self, work: &E::Work, threads: usize) -> Result<f64> {
        self.app.compute(&mut self.local, work, threads)
    }

    fn take_left(&mut self) -> Option<E::Work> {
        self.app.take_left(&mut self.local, self.rank)
    }

    fn compute_left(&mut self, work: &E::Work, threads: usize) -> Result<f64> {
        self.app.compute_left(&mut self.local, work, threads)
    }

    fn free(&mut self, piece: &E::Piece) {
        self.app.free(&mut self.local, piece);
    }

    fn device_bytes(&self) -> [u64; 2] {
        self.app.device_bytes(&self.local)
    }

    fn peak_bytes(&self) -> u64 {
        self.app.peak_bytes(&self.local)
    }
}

// Messages between the ranks of a world: the pieces one after the other, then one word with the sender's
// time.
//
// Where all ranks share memory, a message above the size that MPI libraries send at once is packed into it
// and read there. A notice travels instead: the sender's time, and where the words are.

/// Messages with fewer words travel whole.
const LEAST_SHARED: usize = 4096 / size_of::<u64>();

/// Steps among which the first messages are looked for.
const FIRST_STEPS: usize = 1000;

/// Messages besides those before the first computation that may be in shared memory at once: one is used, one
/// is ready.
const IN_TURN: usize = 2;

/// Makes room in shared memory for the messages that this rank sends first, before the clock starts, as for
/// the application's data.
pub(super) fn reserve<P: Piece, W: Work>(
    world: &World,
    order: &Order<'_, P, W>,
    rank: Rank,
    element: usize,
) -> Result<()> {
    let Some(shared) = world.shared() else { return Ok(()) };
    let (mut lengths, mut left) = (Vec::new(), None);
    for step in order.steps(rank).take(FIRST_STEPS) {
        if matches!(step, Step::Compute(_)) {
            left.get_or_insert(IN_TURN);
        }
        for message in step.sent() {
            let length = words_of(message, element);
            if length < LEAST_SHARED {
                continue;
            }
            match &mut left {
                Some(0) => return shared.reserve(&lengths),
                Some(left) => *left -= 1,
                None => {}
            }
            lengths.push(length);
        }
    }
    shared.reserve(&lengths)
}

/// Carries the messages of this rank.
pub(super) struct Messages<'a, P> {
    world: &'a World,
    epoch: Instant,
    /// True on a bus: a message of a later turn starts once those of earlier turns have been received, so
    /// that they do not share the bus (Tinetti, Figure 3.12).
    in_turns: bool,
    postponed: Vec<Message<P>>,
    sending: Vec<Transfer>,
    /// Messages in shared memory that may not be taken yet, with their receivers: those that were sent before
    /// the last flush, and later ones.
    untaken: [Vec<(Rank, Sent)>; 2],
    receiving: BTreeMap<(Rank, u64), Receiving>,
    pool: Pool,
}

/// Buffers that are free, also those that an application has kept for a while.
type Pool = Arc<Mutex<BufferPool<u64>>>;

/// A message that is expected, and its number of words.
struct Receiving {
    transfer: Transfer,
    words: usize,
    /// In shared memory: the sender's time and the words, once they have been taken.
    taken: Option<(f64, Incoming)>,
}

/// The bytes of a message, in memory that goes back to where it is from.
pub(super) struct Received {
    memory: Memory,
    bytes: usize,
}

enum Memory {
    Buffer(Vec<u64>, Pool),
    Shared(Incoming),
}

impl<T: Pod> AsRef<[T]> for Received {
    fn as_ref(&self) -> &[T] {
        let words = match &self.memory {
            Memory::Buffer(words, _) => words,
            Memory::Shared(message) => message.words(),
        };
        let bytes: &[u8] = bytemuck::cast_slice(words);
        bytemuck::cast_slice(&bytes[..self.bytes])
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if let Memory::Buffer(words, pool) = &mut self.memory {
            locked(pool).extend([std::mem::take(words)]);
        }
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, P> Messages<'a, P> {
    /// No messages yet; `in_turns` if the tags number turns on a bus.
    pub(crate) fn new(world: &'a World, epoch: Instant, in_turns: bool) -> Self {
        Self {
            world,
            epoch,
            in_turns,
            postponed: Vec::new(),
            sending: Vec::new(),
            untaken: [Vec::new(), Vec::new()],
            receiving: BTreeMap::new(),
            pool: Pool::default(),
        }
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }
}

/// Bytes of a message's elements, each of `element` bytes.
fn bytes_of<P: Piece>(message: &Message<P>, element: usize) -> usize {
    message.elements() as usize * element
}

/// Number of words of a message without its time.
fn words_of<P: Piece>(message: &Message<P>, element: usize) -> usize {
    bytes_of(message, element).div_ceil(size_of::<u64>())
}

/// The tag in the world. Two messages of a pair may share it: both ends handle them in the schedule's order,
/// and the world preserves that order.
fn tag_of(tag: u64) -> u16 {
    (tag % TAGS) as u16
}

/// The error of a notice that announces another message than the expected one.
fn out_of_step(from: &str) -> Error {
    let why = "it announces another message than the one that is due: it has lost the others' step".into();
    Error::WorkerLost { processor: format!("of {from}"), why }
}

impl<P: Piece> Messages<'_, P> {
    /// True if a message of this many words travels in shared memory; both ends decide alike.
    fn is_shared(&self, words: usize) -> bool {
        words >= LEAST_SHARED && self.world.shared().is_some()
    }

    /// Starts a send.
    fn start<W>(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        let world = self.world;
        let mut failure = Ok(());
        let gone = self.sending.extract_if(.., |transfer| {
            world.is_done(transfer).unwrap_or_else(|error| {
                failure = Err(error);
                false
            })
        });
        locked(&self.pool).extend(gone.map(Transfer::into_words));
        failure?;
        let element = holder.element_bytes();
        let (bytes, length) = (bytes_of(message, element), words_of(message, element));
        let mut pack = |words: &mut [u64]| {
            let room: &mut [u8] = bytemuck::cast_slice_mut(words);
            holder.pack(&message.pieces, &mut room[..bytes]);
        };
        let mut words;
        match world.shared().filter(|_| self.is_shared(length)) {
            Some(shared) => {
                let mut outgoing = shared.claim(length)?;
                pack(outgoing.words());
                let (notice, sent) = outgoing.send();
                words = locked(&self.pool).take(1 + NOTICE as u64);
                words[..NOTICE].copy_from_slice(&notice);
                self.untaken[1].push((message.to, sent));
            }
            None => {
                words = locked(&self.pool).take(1 + length as u64);
                pack(&mut words);
            }
        }
        *words.last_mut().expect("there is the time's word") = self.now().to_bits();
        self.sending.push(world.start_send(words, message.to.0, tag_of(message.tag)));
        Ok(())
    }

    /// True if a message of this turn may start.
    fn is_due(&self, turn: u64) -> bool {
        !self.in_turns || self.receiving.keys().all(|(_, tag)| *tag >= turn)
    }

    /// Takes a message in shared memory whose notice has come.
    fn take(&self, from: Rank, receiving: &mut Receiving) -> Result<()> {
        let words = receiving.transfer.words();
        let (notice, time) = words.split_first_chunk::<NOTICE>().expect("a notice has these words");
        let shared = self.world.shared().expect("a notice comes where memory is shared");
        let message = shared
            .take(from.0, *notice, receiving.words)?
            .ok_or_else(|| out_of_step(&self.world.name_of(from.0)))?;
        self.world.count_received(receiving.words);
        receiving.taken = Some((f64::from_bits(time[0]), message));
        Ok(())
    }

    /// Takes all messages in shared memory that have come, so that their senders need not wait until they are
    /// used.
    fn take_all(&mut self) -> Result<()> {
        let mut receiving = std::mem::take(&mut self.receiving);
        for ((from, _), expected) in &mut receiving {
            let is_notice = self.is_shared(expected.words);
            if is_notice && expected.taken.is_none() && self.world.is_done(&mut expected.transfer)? {
                self.take(*from, expected)?;
            }
        }
        self.receiving = receiving;
        Ok(())
    }
}

impl<P: Piece, W> Transport<P, W> for Messages<'_, P> {
    fn send(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        if self.is_due(message.tag) {
            return self.start(message, holder);
        }
        self.postponed.push(message.clone());
        Ok(())
    }

    fn post_receive(&mut self, message: &Message<P>, holder: &dyn Holder<P, W>) -> Result<()> {
        let words = words_of(message, holder.element_bytes());
        let room = if self.is_shared(words) { NOTICE } else { words };
        let room = locked(&self.pool).take(1 + room as u64);
        let transfer = self.world.start_receive(room, message.from.0, tag_of(message.tag));
        self.receiving.insert((message.from, message.tag), Receiving { transfer, words, taken: None });
        Ok(())
    }

    fn receive(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<[f64; 2]> {
        let key = (message.from, message.tag);
        let mut expected = self.receiving.remove(&key).expect("a receive is posted before it is waited for");
        let bytes = bytes_of(message, holder.element_bytes());
        if expected.taken.is_none() {
            match self.world.shared() {
                Some(_) => self.world.wait_and(&mut expected.transfer, || self.take_all())?,
                None => self.world.wait(&mut expected.transfer)?,
            }
            if self.is_shared(expected.words) {
                self.take(message.from, &mut expected)?;
            }
        }
        let arrived = self.now();
        let words = expected.transfer.into_words();
        let (sent, memory) = match expected.taken {
            Some((sent, message)) => {
                locked(&self.pool).extend([words]);
                (sent, Memory::Shared(message))
            }
            None => (f64::from_bits(words[words.len() - 1]), Memory::Buffer(words, self.pool.clone())),
        };
        holder.accept(&message.pieces, Arc::new(Received { memory, bytes }));
        for message in std::mem::take(&mut self.postponed) {
            self.send(&message, holder)?;
        }
        // Clocks start together at a barrier, up to the time of its messages.
        Ok([sent.min(arrived), arrived])
    }

    /// In shared memory, what was sent before the flush before this one must have been taken: a sender is
    /// ahead of its receivers by the messages between two flushes, and does not wait while they compute.
    fn flush(&mut self) -> Result<()> {
        for mut transfer in self.sending.drain(..) {
            self.world.wait(&mut transfer)?;
        }
        let mut waiting = Waiting::new();
        loop {
            self.untaken[0].retain(|(_, sent)| !sent.is_taken());
            let Some((to, _)) = self.untaken[0].first() else { break };
            self.world.pause(&mut waiting, to.0, None)?;
            self.take_all()?;
        }
        self.untaken.swap(0, 1);
        Ok(())
    }
}

//! Transports: how an engine carries the messages of one processor.

use super::mailboxes::{Mailboxes, StopSignal};
use super::world::{TAGS, Transfer, World};
use crate::error::Result;
use crate::geometry::Rank;
use crate::schedule::{Broadcast, Executable, Message, MessageOf, Posting};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Carries the messages of one processor of application `E`. Times are in seconds since the run's epoch.
pub(super) trait Transport<E: Executable> {
    /// Starts sending a message.
    fn send(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<()>;

    /// Starts a send to several processors.
    fn broadcast(
        &mut self,
        broadcast: &Broadcast<E::Piece>,
        app: &E,
        local: &mut E::Local<'_>,
    ) -> Result<()> {
        broadcast.messages.iter().try_for_each(|message| self.send(message, app, local))
    }

    /// Posts the receive of a later message.
    fn post_receive(&mut self, message: &MessageOf<E>) -> Result<()>;

    /// Waits for a message and passes its pieces to the application. Returns the times at which the message
    /// started and arrived.
    fn receive(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<[f64; 2]>;

    /// Waits until all sent messages have left this processor.
    fn flush(&mut self) -> Result<()>;
}

/// Packed messages by sender, receiver and tag.
pub(super) type Parcels<T> = Mutex<BTreeMap<(Rank, Rank, u64), Vec<T>>>;

/// Messages between the threads of one process, on emulated links if the platform requests it. If the
/// application shares memory, a message is a permission to read; otherwise the packed pieces are handed over.
pub(super) struct SharedMemory<'a, T> {
    pub rank: Rank,
    pub mailboxes: &'a Mailboxes<'a>,
    pub parcels: &'a Parcels<T>,
    pub stop: &'a StopSignal<'a>,
    pub epoch: Instant,
}

impl<T> SharedMemory<'_, T> {
    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    /// Stores a packed message for its receiver, before it is announced.
    fn pack<E: Executable<Element = T>>(&self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) {
        if !message.pieces.iter().all(|piece| app.is_shared(piece)) {
            let key = (message.from, message.to, message.tag);
            let parcel = packed(message, app, local);
            self.parcels.lock().unwrap_or_else(PoisonError::into_inner).insert(key, parcel);
        }
    }
}

impl<E: Executable> Transport<E> for SharedMemory<'_, E::Element> {
    fn send(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<()> {
        self.pack(message, app, local);
        let posting = Posting::message(message, size_of::<E::Element>() as u64, self.now());
        self.mailboxes.post(posting, |turn| app.senders(turn));
        Ok(())
    }

    fn broadcast(
        &mut self,
        broadcast: &Broadcast<E::Piece>,
        app: &E,
        local: &mut E::Local<'_>,
    ) -> Result<()> {
        broadcast.messages.iter().for_each(|message| self.pack(message, app, local));
        let posting = Posting::broadcast(broadcast, size_of::<E::Element>() as u64, self.now());
        self.mailboxes.post(posting, |turn| app.senders(turn));
        Ok(())
    }

    fn post_receive(&mut self, _: &MessageOf<E>) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<[f64; 2]> {
        let key = (self.rank, message.from, message.tag);
        let transit = self.mailboxes.receive(key, self.epoch, self.stop)?;
        if message.pieces.iter().all(|piece| app.is_shared(piece)) {
            message.pieces.iter().for_each(|piece| app.take_shared(local, piece));
        } else {
            let key = (message.from, message.to, message.tag);
            let parcel = self.parcels.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            unpack(&parcel.expect("a parcel is there before it is announced"), message, app, local);
        }
        Ok([transit.start, transit.arrival])
    }

    fn flush(&mut self) -> Result<()> {
        self.mailboxes.flush(self.rank, self.epoch, self.stop)
    }
}

/// Messages between the ranks of a world: the pieces one after the other, then one word with the sender's
/// time.
pub(super) struct Messages<'a, P> {
    pub world: &'a World,
    pub epoch: Instant,
    /// True on a bus: a message of a later turn starts once those of earlier turns have been received, so
    /// that they do not share the bus (Tinetti, Figure 3.12).
    in_turns: bool,
    held: Vec<Message<P>>,
    sending: Vec<Transfer>,
    receiving: BTreeMap<(Rank, u64), Transfer>,
    spare: Spare<u64>,
}

impl<'a, P> Messages<'a, P> {
    /// No messages yet; `in_turns` if the tags number turns on a bus.
    pub fn new(world: &'a World, epoch: Instant, in_turns: bool) -> Self {
        let (sending, receiving, spare) = (Vec::new(), BTreeMap::new(), Spare::default());
        Self { world, epoch, in_turns, held: Vec::new(), sending, receiving, spare }
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }
}

/// Bytes of a message's elements.
fn bytes_of<E: Executable>(message: &MessageOf<E>) -> usize {
    message.elements() as usize * size_of::<E::Element>()
}

/// Number of words of a message with its time.
fn words_of<E: Executable>(message: &MessageOf<E>) -> u64 {
    (bytes_of::<E>(message).div_ceil(size_of::<u64>()) + 1) as u64
}

/// The tag in the world. Two messages of a pair may share it: both ends handle them in the schedule's order,
/// and the world preserves that order.
fn tag_of(tag: u64) -> u16 {
    (tag % TAGS) as u16
}

impl<P> Messages<'_, P> {
    /// Starts a send.
    fn start<E: Executable<Piece = P>>(
        &mut self,
        message: &MessageOf<E>,
        app: &E,
        local: &mut E::Local<'_>,
    ) -> Result<()> {
        let world = self.world;
        let mut failure = Ok(());
        let gone = self.sending.extract_if(.., |transfer| {
            world.is_done(transfer).unwrap_or_else(|error| {
                failure = Err(error);
                false
            })
        });
        self.spare.0.extend(gone.map(Transfer::into_words));
        failure?;
        let mut words = self.spare.take(words_of::<E>(message));
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        pack_into(bytemuck::cast_slice_mut(&mut bytes[..bytes_of::<E>(message)]), message, app, local);
        *words.last_mut().expect("there is the time's word") = self.now().to_bits();
        self.sending.push(world.start_send(words, message.to.0, tag_of(message.tag))?);
        Ok(())
    }

    /// True if a message of this turn may start.
    fn is_due(&self, turn: u64) -> bool {
        !self.in_turns || self.receiving.keys().all(|(_, tag)| *tag >= turn)
    }
}

impl<E: Executable> Transport<E> for Messages<'_, E::Piece> {
    fn send(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<()> {
        if self.is_due(message.tag) {
            return self.start(message, app, local);
        }
        self.held.push(message.clone());
        Ok(())
    }

    fn post_receive(&mut self, message: &MessageOf<E>) -> Result<()> {
        let room = self.spare.take(words_of::<E>(message));
        let transfer = self.world.start_receive(room, message.from.0, tag_of(message.tag))?;
        self.receiving.insert((message.from, message.tag), transfer);
        Ok(())
    }

    fn receive(&mut self, message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Result<[f64; 2]> {
        let key = (message.from, message.tag);
        let mut transfer = self.receiving.remove(&key).expect("a receive is posted before it is waited for");
        self.world.wait(&mut transfer)?;
        let arrived = self.now();
        let words = transfer.into_words();
        let bytes: &[u8] = &bytemuck::cast_slice(&words)[..bytes_of::<E>(message)];
        unpack(bytemuck::cast_slice(bytes), message, app, local);
        let sent = f64::from_bits(words[words.len() - 1]);
        self.spare.0.push(words);
        for message in std::mem::take(&mut self.held) {
            self.send(&message, app, local)?;
        }
        // Clocks start together at a barrier, up to the time of its messages.
        Ok([sent.min(arrived), arrived])
    }

    fn flush(&mut self) -> Result<()> {
        for mut transfer in self.sending.drain(..) {
            self.world.wait(&mut transfer)?;
        }
        Ok(())
    }
}

fn packed<E: Executable>(message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Vec<E::Element> {
    let mut out = vec![bytemuck::Zeroable::zeroed(); message.elements() as usize];
    pack_into(&mut out, message, app, local);
    out
}

fn pack_into<E: Executable>(
    mut rest: &mut [E::Element],
    message: &MessageOf<E>,
    app: &E,
    local: &mut E::Local<'_>,
) {
    use crate::schedule::Piece;
    for piece in &message.pieces {
        let (out, others) = rest.split_at_mut(piece.elements() as usize);
        app.pack(local, piece, out);
        rest = others;
    }
}

fn unpack<E: Executable>(mut rest: &[E::Element], message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) {
    use crate::schedule::Piece;
    for piece in &message.pieces {
        let (elements, others) = rest.split_at(piece.elements() as usize);
        app.unpack(local, piece, elements);
        rest = others;
    }
}

/// Unused buffers, kept for reuse.
#[derive(Debug)]
pub(crate) struct Spare<T>(pub Vec<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: bytemuck::Pod> Spare<T> {
    /// Returns the smallest buffer that is long enough, or a new one: pages in use cost nothing more. If none
    /// is long enough, the longest is extended, so that the spare memory never exceeds the memory that was in
    /// use.
    pub fn take(&mut self, length: u64) -> Vec<T> {
        let length = length as usize;
        let fit = (0..self.0.len()).filter(|&i| self.0[i].capacity() >= length);
        let longest = || (0..self.0.len()).max_by_key(|&i| self.0[i].capacity());
        let best = fit.min_by_key(|&i| self.0[i].capacity()).or_else(longest);
        let Some(best) = best else { return vec![T::zeroed(); length] };
        let mut buffer = self.0.swap_remove(best);
        buffer.resize(length, T::zeroed());
        buffer
    }
}

//! Transports: how an engine carries the messages of one processor.

use super::mailboxes::{Mailboxes, StopSignal};
use crate::error::Result;
use crate::geometry::Rank;
use crate::schedule::{Broadcast, Executable, MessageOf, Posting};
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

fn packed<E: Executable>(message: &MessageOf<E>, app: &E, local: &mut E::Local<'_>) -> Vec<E::Element> {
    let mut out = vec![bytemuck::Zeroable::zeroed(); message.elements() as usize];
    pack_into(&mut out, message, app, local);
    out
}

pub(super) fn pack_into<E: Executable>(
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

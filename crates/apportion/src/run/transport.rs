//! Transports: how an engine carries the messages of one processor.

use super::holder::Holder;
use super::mailboxes::{Mailboxes, StopSignal};
use crate::error::Result;
use crate::geometry::Rank;
use crate::schedule::{Broadcast, Message, Piece, Posting};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
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
}

/// Packed messages by sender, receiver and tag.
pub(super) type Parcels = Mutex<BTreeMap<(Rank, Rank, u64), Box<dyn Any + Send>>>;

/// Messages between the threads of one process, on emulated links if the platform requests it. If the
/// application shares memory, a message is a permission to read; otherwise the packed pieces are handed over.
pub(super) struct SharedMemory<'a> {
    pub rank: Rank,
    pub mailboxes: &'a Mailboxes<'a>,
    pub parcels: &'a Parcels,
    pub stop: &'a StopSignal<'a>,
    pub epoch: Instant,
}

impl SharedMemory<'_> {
    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
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
        let posting = Posting::message(message, holder.element_bytes() as u64, self.now());
        self.mailboxes.post(posting, &|turn| holder.senders(turn));
        Ok(())
    }

    fn broadcast(&mut self, broadcast: &Broadcast<P>, holder: &mut dyn Holder<P, W>) -> Result<()> {
        broadcast.messages.iter().for_each(|message| self.pack(message, holder));
        let posting = Posting::broadcast(broadcast, holder.element_bytes() as u64, self.now());
        self.mailboxes.post(posting, &|turn| holder.senders(turn));
        Ok(())
    }

    fn post_receive(&mut self, _: &Message<P>, _: &dyn Holder<P, W>) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, message: &Message<P>, holder: &mut dyn Holder<P, W>) -> Result<[f64; 2]> {
        let key = (self.rank, message.from, message.tag);
        let transit = self.mailboxes.receive(key, self.epoch, self.stop)?;
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
}

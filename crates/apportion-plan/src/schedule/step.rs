//! The steps of one processor.

use super::Piece;
use crate::geometry::Rank;
use crate::platform::{Direction, Load};

/// Pieces that travel together. `(from, to, tag)` is unique within a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<P> {
    /// Sender.
    pub from: Rank,
    /// Receiver.
    pub to: Rank,
    /// Distinguishes the messages between the same two processors.
    pub tag: u64,
    /// Pieces, in the order of packing.
    pub pieces: Vec<P>,
}

impl<P: Piece> Message<P> {
    /// Elements of all pieces.
    pub fn elements(&self) -> u64 {
        self.pieces.iter().map(P::elements).sum()
    }

    /// Bytes by direction; `element` is the number of bytes per element.
    pub(crate) fn load(&self, element: u64) -> Load {
        let bytes = |direction| {
            let along = self.pieces.iter().filter(|piece| piece.direction() == direction);
            (along.map(P::elements).sum::<u64>() * element) as f64
        };
        Load { horizontal: bytes(Direction::Horizontal), vertical: bytes(Direction::Vertical) }
    }
}

/// Messages that one processor sends at once and that carry parts of the same elements. On a bus, each
/// element is transferred once and all receivers get it; elsewhere the messages travel one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast<P> {
    /// The sender.
    pub(crate) from: Rank,
    /// One message per receiver, all with the same tag; at least two.
    pub messages: Vec<Message<P>>,
    /// Strided elements in any of the messages, each counted once.
    pub(crate) horizontal_once: u64,
    /// Contiguous elements in any of the messages, each counted once.
    pub(crate) vertical_once: u64,
}

impl<P: Piece> Broadcast<P> {
    /// A broadcast of messages of one sender and tag. The elements of the largest message include those of all
    /// others.
    ///
    /// # Panics
    /// If there are fewer than two messages.
    pub fn of_largest(messages: Vec<Message<P>>) -> Self {
        assert!(messages.len() > 1, "a broadcast has several receivers");
        let largest = messages.iter().max_by_key(|message| message.elements()).expect("there are several");
        let along = |direction| {
            let pieces = largest.pieces.iter().filter(|piece| piece.direction() == direction);
            pieces.map(P::elements).sum()
        };
        let (horizontal_once, vertical_once) = (along(Direction::Horizontal), along(Direction::Vertical));
        Self { from: largest.from, horizontal_once, vertical_once, messages }
    }
}

impl<P> Broadcast<P> {
    /// All elements, each counted once: the load of a bus.
    pub fn elements(&self) -> u64 {
        self.horizontal_once + self.vertical_once
    }

    /// Bytes by direction, each element counted once.
    pub(crate) fn load(&self, element: u64) -> Load {
        Load {
            horizontal: (self.horizontal_once * element) as f64,
            vertical: (self.vertical_once * element) as f64,
        }
    }
}

/// One step of one processor. Messages carry `P`; computations are `W`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<P, W> {
    /// Starts a send. The data travel while later steps run.
    Send(Message<P>),
    /// Starts a send to several processors.
    Broadcast(Broadcast<P>),
    /// Posts the receive of a later message.
    PostReceive(Message<P>),
    /// Waits until that message has arrived.
    WaitReceive {
        /// Its sender.
        from: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Waits until every message sent so far has left this processor.
    WaitSends,
    /// Computes.
    Compute(W),
    /// Marks this part of the data, and everything received for it, as no longer needed.
    Free(P),
}

impl<P, W> Step<P, W> {
    /// The messages that this step sends.
    pub fn sent(&self) -> &[Message<P>] {
        match self {
            Self::Send(message) => std::slice::from_ref(message),
            Self::Broadcast(broadcast) => &broadcast.messages,
            _ => &[],
        }
    }
}

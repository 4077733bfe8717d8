//! What one processor does next.

use crate::geometry::{Rank, Rect, Span, SpanSet};
use std::collections::BTreeMap;

/// One of the two factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// The left factor, m x k; its pieces travel along rows.
    A,
    /// The right factor, k x n; its pieces travel along columns.
    B,
}

/// A rectangle of A (rows x inner) or of B (inner x columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Which matrix.
    pub operand: Operand,
    /// In that matrix's own rows and columns.
    pub rect: Rect,
}

/// Pieces that travel together. `(from, to, tag)` is unique in a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Sender.
    pub from: Rank,
    /// Receiver.
    pub to: Rank,
    /// Tells the messages of one pair apart.
    pub tag: u64,
    /// What it carries, in the order of packing; each piece row by row.
    pub pieces: Vec<Piece>,
}

impl Message {
    /// Elements of one operand.
    pub fn elements_of(&self, operand: Operand) -> u64 {
        self.pieces.iter().filter(|p| p.operand == operand).map(|p| p.rect.area()).sum()
    }

    /// All elements.
    pub fn elements(&self) -> u64 {
        self.pieces.iter().map(|p| p.rect.area()).sum()
    }
}

/// Messages that one processor sends at once, parts of the same elements: on a bus all receivers hear one transfer of
/// each element; elsewhere the messages go one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    /// Who sends.
    pub from: Rank,
    /// One to each receiver, all with the same tag; at least two.
    pub messages: Vec<Message>,
    /// Elements of A and of B that are in any of the messages, each counted once.
    once: (u64, u64),
}

impl Broadcast {
    /// The step that sends these messages of one sender: a broadcast, a plain send, or none at all.
    pub fn step(mut messages: Vec<Message>) -> Option<Step> {
        if messages.len() < 2 {
            return messages.pop().map(Step::Send);
        }
        // A sender's parts are disjoint: pieces with the same inner indices differ by their lines only.
        let mut lines: BTreeMap<(Operand, Span), Vec<Span>> = BTreeMap::new();
        for Piece { operand, rect } in messages.iter().flat_map(|message| &message.pieces) {
            let (across, inner) = match operand {
                Operand::A => (rect.rows, rect.cols),
                Operand::B => (rect.cols, rect.rows),
            };
            lines.entry((*operand, inner)).or_default().push(across);
        }
        let mut once = (0, 0);
        for ((operand, inner), lines) in lines {
            let elements = SpanSet::union(lines).len() * inner.len();
            match operand {
                Operand::A => once.0 += elements,
                Operand::B => once.1 += elements,
            }
        }
        Some(Step::Broadcast(Self { from: messages[0].from, messages, once }))
    }

    /// Elements of one operand, each counted once.
    pub fn elements_of(&self, operand: Operand) -> u64 {
        match operand {
            Operand::A => self.once.0,
            Operand::B => self.once.1,
        }
    }

    /// All elements, each counted once: what a bus carries.
    pub fn elements(&self) -> u64 {
        self.once.0 + self.once.1
    }
}

/// `C[rect] += A[rect.rows, inner] B[inner, rect.cols]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// Part of one of the processor's rectangles of C.
    pub rect: Rect,
    /// Inner indices, within one pivot block.
    pub inner: Span,
}

impl Update {
    /// Multiply-adds: area times inner length.
    pub fn work(&self) -> f64 {
        self.rect.area() as f64 * self.inner.len() as f64
    }
}

/// One step of one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Starts sending; the data travel while later steps run.
    Send(Message),
    /// Starts sending to several at once.
    Broadcast(Broadcast),
    /// Makes room for a message that will come.
    PostReceive(Message),
    /// Waits until that message has arrived.
    WaitReceive {
        /// Its sender.
        from: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Waits until every message sent so far has left.
    WaitSends,
    /// Computes.
    Compute(Update),
    /// This rectangle of B (inner indices x columns of C), and A's columns with these inner indices for it, are not
    /// needed any more.
    Free(Rect),
}

impl Step {
    /// The messages that it sends.
    pub fn sent(&self) -> &[Message] {
        match self {
            Self::Send(message) => std::slice::from_ref(message),
            Self::Broadcast(broadcast) => &broadcast.messages,
            _ => &[],
        }
    }
}

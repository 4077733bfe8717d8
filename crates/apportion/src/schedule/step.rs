//! What one processor does next.

use crate::rect::{Rank, Rect, Span};

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
    /// Makes room for a message that will come.
    Receive(Message),
    /// Waits until that message has arrived.
    Await {
        /// Its sender.
        from: Rank,
        /// Its tag.
        tag: u64,
    },
    /// Waits until every message sent so far has left.
    Flush,
    /// Computes.
    Compute(Update),
    /// The operands with these inner indices are not needed any more.
    Release(Span),
}

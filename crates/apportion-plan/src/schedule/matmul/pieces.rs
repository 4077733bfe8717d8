//! The messages and updates of a matrix product.

use crate::geometry::{Rect, Span, SpanSet};
use crate::plan::merged;
use crate::platform::{DeviceUploads, Direction};
use crate::schedule::{Broadcast, Message, Piece, Step, Work};
use std::collections::BTreeMap;

/// A matrix whose pieces travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// The left factor, m x k; its pieces travel along rows.
    A,
    /// The right factor, k x n; its pieces travel along columns.
    B,
    /// Partial sums of the product, m x n, if the layout cuts the inner dimension.
    C,
}

/// A rectangle of A (rows x inner), of B (inner x columns), or of partial sums of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandPiece {
    /// Which matrix.
    pub operand: Operand,
    /// Rows and columns within that matrix.
    pub rect: Rect,
}

impl OperandPiece {
    /// The piece of A with these rows, or of B with these columns, and these inner indices.
    pub fn new(operand: Operand, lines: Span, inner: Span) -> Self {
        let rect = if operand == Operand::B { Rect::new(inner, lines) } else { Rect::new(lines, inner) };
        Self { operand, rect }
    }

    /// Its inner indices; none for partial sums.
    pub fn inner(&self) -> Span {
        match self.operand {
            Operand::A => self.rect.cols,
            Operand::B => self.rect.rows,
            Operand::C => Span::default(),
        }
    }

    /// Its rows of A or of C, or its columns of B.
    pub fn lines(&self) -> Span {
        match self.operand {
            Operand::A | Operand::C => self.rect.rows,
            Operand::B => self.rect.cols,
        }
    }
}

impl Piece for OperandPiece {
    fn elements(&self) -> u64 {
        self.rect.area()
    }

    fn direction(&self) -> Direction {
        match self.operand {
            Operand::A | Operand::C => Direction::Horizontal,
            Operand::B => Direction::Vertical,
        }
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

impl Work for Update {
    /// Multiply-adds: area times inner length.
    fn amount(&self) -> f64 {
        self.rect.area() as f64 * self.inner.len() as f64
    }

    /// Panels of A and B, once for each tile of C that is on the device.
    fn uploads(&self, memory: Option<u64>, element: u64) -> DeviceUploads {
        let sizes = [self.rect.rows, self.inner, self.rect.cols].map(|span| span.len());
        DeviceUploads::of_product(sizes, element, memory)
    }
}

/// A step of a matrix product.
pub type MatmulStep = Step<OperandPiece, Update>;
/// A message of a matrix product; each piece travels row by row.
pub(crate) type MatmulMessage = Message<OperandPiece>;

/// A message as one for each rectangle of A and of B, tagged in order.
pub(super) fn separated(message: MatmulMessage) -> Vec<MatmulMessage> {
    let MatmulMessage { from, to, tag, pieces } = message;
    let mut all = Vec::new();
    for operand in [Operand::A, Operand::B] {
        let own: Vec<&OperandPiece> = pieces.iter().filter(|piece| piece.operand == operand).collect();
        // Lines are rows for both operands.
        let upright: Vec<Rect> = own.iter().map(|piece| Rect::new(piece.lines(), piece.inner())).collect();
        for rect in merged(&upright) {
            let within = |piece: &&OperandPiece| {
                let (lines, inner) = (piece.lines().intersect(rect.rows), piece.inner().intersect(rect.cols));
                let piece = OperandPiece::new(operand, lines, inner);
                (!piece.rect.is_empty()).then_some(piece)
            };
            let pieces = own.iter().filter_map(within).collect();
            all.push(MatmulMessage { from, to, tag: tag + all.len() as u64, pieces });
        }
    }
    all
}

/// The step that sends these messages of one sender: a broadcast, a plain send, or `None` if there is no
/// message.
pub(super) fn cast(mut messages: Vec<MatmulMessage>) -> Option<MatmulStep> {
    if messages.len() < 2 {
        return messages.pop().map(Step::Send);
    }
    // A sender's parts are disjoint: pieces with the same inner indices differ only in their lines.
    let mut lines: BTreeMap<(Operand, Span), Vec<Span>> = BTreeMap::new();
    for piece in messages.iter().flat_map(|message| &message.pieces) {
        lines.entry((piece.operand, piece.inner())).or_default().push(piece.lines());
    }
    let (mut horizontal_once, mut vertical_once) = (0, 0);
    for ((operand, inner), lines) in lines {
        let elements = SpanSet::union(lines).len() * inner.len();
        match operand {
            Operand::A | Operand::C => horizontal_once += elements,
            Operand::B => vertical_once += elements,
        }
    }
    Some(Step::Broadcast(Broadcast { from: messages[0].from, messages, horizontal_once, vertical_once }))
}

/// As [`cast`], for messages whose pieces may overlap in any way. O(pieces^2).
pub(super) fn cast_any(mut messages: Vec<MatmulMessage>) -> Option<MatmulStep> {
    if messages.len() < 2 {
        return messages.pop().map(Step::Send);
    }
    let once = |direction: Direction| {
        let all = messages.iter().flat_map(|message| &message.pieces);
        let rects: Vec<Rect> = all.filter(|p| p.direction() == direction).map(|p| p.rect).collect();
        merged(&rects).iter().map(|rect| rect.area()).sum()
    };
    let (horizontal_once, vertical_once) = (once(Direction::Horizontal), once(Direction::Vertical));
    Some(Step::Broadcast(Broadcast { from: messages[0].from, messages, horizontal_once, vertical_once }))
}

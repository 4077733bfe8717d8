//! The operands of one pivot block on one processor; with boxes, those of one turn.

use super::copy;
use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::kernels::{View, ViewMut};
use crate::matrix::Element;
use crate::product::application::Product;
use crate::run::BufferPool;
use crate::schedule::{MatmulSchedule, Operand, OperandPiece, Parcel};

/// The operands of adjacent inner indices for one group of columns: A's needed rows x inner (none if A is read
/// in place), and inner x B's needed columns of the group.
#[derive(Debug)]
pub(super) struct Panel<T> {
    rank: Rank,
    inner: Span,
    rows: SpanSet,
    cols: SpanSet,
    a: Side<T>,
    b: Side<T>,
}

/// Where an operand is.
#[derive(Debug)]
enum Side<T> {
    /// Nothing has arrived.
    Empty,
    /// The processor holds all of it in one block.
    Own,
    /// One message brought all of it: rows of `stride` elements, from element `first` on.
    Kept { parcel: Parcel<T>, first: usize, stride: usize },
    /// Own parts and received pieces, copied together: row-major.
    Copied(Vec<T>),
}

impl<T: Element> Panel<T> {
    /// A panel without elements.
    pub(crate) fn new(schedule: &MatmulSchedule, rank: Rank, inner: Span, group: Span) -> Self {
        let (rows, cols) = schedule.lines_at(rank, inner.start).expect("a panel has inner indices with work");
        let rows = if schedule.a_stays() { SpanSet::default() } else { rows.clone() };
        let cols = SpanSet::union(cols.intersect(group));
        Self { rank, inner, rows, cols, a: Side::Empty, b: Side::Empty }
    }

    pub(crate) fn inner(&self) -> Span {
        self.inner
    }

    /// The bytes of the operands, wherever they are.
    pub(crate) fn bytes(&self) -> u64 {
        (self.elements(Operand::A) + self.elements(Operand::B)) * size_of::<T>() as u64
    }

    /// Elements of an operand.
    pub(crate) fn elements(&self, operand: Operand) -> u64 {
        self.lines(operand).len() * self.inner.len()
    }

    fn lines(&self, operand: Operand) -> &SpanSet {
        if operand == Operand::B { &self.cols } else { &self.rows }
    }

    fn side(&self, operand: Operand) -> &Side<T> {
        if operand == Operand::B { &self.b } else { &self.a }
    }

    fn side_mut(&mut self, operand: Operand) -> &mut Side<T> {
        if operand == Operand::B { &mut self.b } else { &mut self.a }
    }

    /// Leaves a part of a piece in the memory of its message if it is all of an operand; otherwise returns
    /// false.
    pub(crate) fn keep(&mut self, part: &OperandPiece, whole: Rect, parcel: &Parcel<T>) -> bool {
        let is_all = part.inner() == self.inner && part.lines().len() == self.lines(part.operand).len();
        let side = self.side_mut(part.operand);
        if !is_all || !matches!(side, Side::Empty) {
            return false;
        }
        let at = part.rect.relative_to(whole);
        let stride = whole.cols.len() as usize;
        let first = at.rows.start as usize * stride + at.cols.start as usize;
        *side = Side::Kept { parcel: parcel.clone(), first, stride };
        true
    }

    /// Copies a piece within the panel from its source.
    pub(crate) fn fill(
        &mut self,
        product: &Product<'_, T>,
        piece: &OperandPiece,
        source: View<T>,
        spare: &mut BufferPool<T>,
    ) {
        self.copy_own(product, piece.operand, spare);
        self.copy_in(piece, source);
    }

    /// Prepares an operand for use: what has not arrived is the processor's own.
    pub(crate) fn complete(&mut self, product: &Product<'_, T>, operand: Operand, spare: &mut BufferPool<T>) {
        if !matches!(self.side(operand), Side::Empty) {
            return;
        }
        match self.lines(operand).spans() {
            [all] if product.own_view(&OperandPiece::new(operand, *all, self.inner)).is_some() => {
                *self.side_mut(operand) = Side::Own;
            }
            _ => self.copy_own(product, operand, spare),
        }
    }

    /// Makes an operand a copy, and copies the processor's own parts in.
    fn copy_own(&mut self, product: &Product<'_, T>, operand: Operand, spare: &mut BufferPool<T>) {
        match self.side(operand) {
            Side::Copied(_) => return,
            Side::Empty => {}
            Side::Own | Side::Kept { .. } => unreachable!("a complete operand gets no more pieces"),
        }
        *self.side_mut(operand) = Side::Copied(spare.take(self.elements(operand)));
        for piece in self.own_parts(product.schedule, operand) {
            self.copy_in(&piece, product.view(&piece));
        }
    }

    /// The parts of an operand that the processor owns.
    fn own_parts(&self, schedule: &MatmulSchedule, operand: Operand) -> Vec<OperandPiece> {
        let (own_a, own_b) = schedule.own(self.rank);
        let mut pieces = Vec::new();
        for part in if operand == Operand::B { own_b } else { own_a } {
            let own = OperandPiece { operand, rect: part.rect() };
            let inner = own.inner().intersect(self.inner);
            let lines = self.lines(operand).intersect(own.lines()).filter(|_| !inner.is_empty());
            pieces.extend(lines.map(|lines| OperandPiece::new(operand, lines, inner)));
        }
        pieces
    }

    /// True if the processor owns a part of an operand and receives the rest.
    pub(crate) fn is_mixed(&self, schedule: &MatmulSchedule, operand: Operand) -> bool {
        let own: u64 = self.own_parts(schedule, operand).iter().map(|piece| piece.rect.area()).sum();
        own > 0 && own < self.elements(operand)
    }

    fn copy_in(&mut self, piece: &OperandPiece, source: View<T>) {
        let (first, stride) = self.place(piece);
        if let Side::Copied(elements) = self.side_mut(piece.operand) {
            copy(source, ViewMut::new(&mut elements[first..], source.rows(), source.cols(), stride));
        }
    }

    /// Offset of a piece within the panel, and the distance between its rows, if they are row-major.
    fn place(&self, piece: &OperandPiece) -> (usize, usize) {
        // A piece is in one span of the needed rows or columns: its lines are adjacent in the panel too.
        let rect = piece.rect;
        let (row, col, stride) = if piece.operand == Operand::B {
            let first = self.cols.position(rect.cols.start).expect("only needed columns arrive");
            (rect.rows.start - self.inner.start, first, self.cols.len())
        } else {
            let first = self.rows.position(rect.rows.start).expect("only needed rows arrive");
            (first, rect.cols.start - self.inner.start, self.inner.len())
        };
        ((row * stride + col) as usize, stride as usize)
    }

    /// A piece within the panel.
    ///
    /// # Panics
    /// If its operand is empty.
    pub(crate) fn view<'s>(&'s self, product: &'s Product<'_, T>, piece: &OperandPiece) -> View<'s, T> {
        let (rows, cols) = (piece.rect.rows.len() as usize, piece.rect.cols.len() as usize);
        let (place, dense) = self.place(piece);
        match self.side(piece.operand) {
            Side::Empty => unreachable!("an operand is complete before it is used"),
            Side::Own => product.view(piece),
            Side::Copied(elements) => View::new(&elements[place..], rows, cols, dense),
            Side::Kept { parcel, first, stride } => {
                let at = first + place / dense * stride + place % dense;
                View::new(&parcel.elements()[at..], rows, cols, *stride)
            }
        }
    }

    /// The memory of the copies.
    pub(crate) fn into_copies(self) -> impl Iterator<Item = Vec<T>> {
        [self.a, self.b].into_iter().filter_map(|side| match side {
            Side::Copied(elements) => Some(elements),
            _ => None,
        })
    }
}

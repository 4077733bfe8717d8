//! The operands of a product, as far as this process holds them.

use crate::geometry::{Rank, Rect, Span};
use crate::matrix::{BlockViews, Element, LocalBlocks, Matrix, views_of};
use crate::plan::{Layout, Shape};
use crate::run::World;
use crate::schedule::{Flow, MatmulSchedule, ScheduleOptions};

/// The matrices of C = alpha A B + beta C0, as far as this process holds them. A single process holds each
/// matrix completely, as one block. A rank of several holds its own parts ([`MatmulSchedule::own`] of A and
/// B, [`MatmulSchedule::rects`] of C0).
#[derive(Debug, Clone, Copy)]
pub struct Operands<'a, T> {
    /// The left factor.
    pub(crate) a: &'a LocalBlocks<T>,
    /// The right factor.
    pub(crate) b: &'a LocalBlocks<T>,
    /// The initial C, if there is one.
    pub(crate) initial: Option<&'a LocalBlocks<T>>,
}

impl<'a, T> Operands<'a, T> {
    /// Two factors and no initial C.
    pub fn new(a: &'a LocalBlocks<T>, b: &'a LocalBlocks<T>) -> Self {
        Self { a, b, initial: None }
    }

    /// The same operands with an initial C.
    #[must_use]
    pub(crate) fn with_initial(self, initial: Option<&'a LocalBlocks<T>>) -> Self {
        Self { initial, ..self }
    }
}

/// [`Operands`] in memory that others own, such as the arrays of a program in another language.
#[derive(Debug, Clone)]
pub struct OperandViews<'a, T> {
    /// The left factor.
    pub(crate) a: BlockViews<'a, T>,
    /// The right factor.
    pub(crate) b: BlockViews<'a, T>,
    /// The initial C, if there is one.
    pub(crate) initial: Option<BlockViews<'a, T>>,
}

impl<'a, T> From<Operands<'a, T>> for OperandViews<'a, T> {
    fn from(operands: Operands<'a, T>) -> Self {
        let Operands { a, b, initial } = operands;
        Self { a: views_of(a), b: views_of(b), initial: initial.map(views_of) }
    }
}

/// The rectangles of A, B and C that this process holds: whole matrices in a single process, otherwise its
/// rank's parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRects {
    /// Of A.
    pub a: Vec<Rect>,
    /// Of B.
    pub b: Vec<Rect>,
    /// Of C.
    pub c: Vec<Rect>,
}

impl OwnRects {
    /// The rectangles that a layout gives to this process: a process alone has all of them, as whole matrices.
    pub fn of_layout(layout: &Layout, world: &World) -> Self {
        // No order of steps moves what a process owns.
        Self::of(&MatmulSchedule::new(layout, ScheduleOptions::new(Flow::OneToAll, 1)), world)
    }

    /// Whole matrices: those of a single process.
    pub(crate) fn whole(shape: Shape) -> Self {
        let whole = |rows, cols| vec![Rect::new(Span::new(0, rows), Span::new(0, cols))];
        Self { a: whole(shape.m, shape.k), b: whole(shape.k, shape.n), c: whole(shape.m, shape.n) }
    }

    /// The rectangles of the product that a schedule computes.
    pub fn of(schedule: &MatmulSchedule, world: &World) -> Self {
        if world.is_solo() {
            return Self::whole(schedule.layout().shape());
        }
        let rank = Rank(world.rank());
        let (a, b) = schedule.own(rank);
        let rects = |parts: &[crate::plan::Part]| parts.iter().map(|part| part.rect()).collect();
        Self { a: rects(a), b: rects(b), c: schedule.result_rects(rank) }
    }
}

/// Makes a whole matrix one block.
pub fn whole_block<T: Element>(matrix: Matrix<T>) -> LocalBlocks<T> {
    let rect = Rect::new(Span::new(0, matrix.rows() as u64), Span::new(0, matrix.cols() as u64));
    vec![(rect, matrix.into_elements())]
}

/// Makes one block a whole matrix.
///
/// # Panics
/// If there is not exactly one block.
pub fn whole_matrix<T: Element>(blocks: LocalBlocks<T>) -> Matrix<T> {
    let [(rect, elements)] = <[_; 1]>::try_from(blocks).expect("a process alone holds a matrix as one block");
    Matrix::new(rect.rows.len() as usize, rect.cols.len() as usize, elements)
}

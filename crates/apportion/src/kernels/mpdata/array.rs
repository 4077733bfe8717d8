//! An array over a box of cells, and what it holds beyond the ends of the grid.

use super::frame::{Cells, Domain, Frame, Place};
use super::number::Advectable;
use super::options::Boundary;

/// The planes beyond an end of axis 0 that the passes look at.
const BEYOND: isize = 3;

/// Elements of a box that are being computed.
#[derive(Debug)]
pub struct Array<'a, T> {
    /// Where they are.
    pub frame: Frame,
    data: Data<'a, T>,
}

#[derive(Debug)]
enum Data<'a, T> {
    /// The latest planes.
    Ring(Vec<T>),
    /// All of a result.
    Result(&'a mut [T]),
}

/// Whether an axis's own other end is what is beyond an end, within the same array.
pub type Wrapped = bool;

impl<'a, T: Advectable> Array<'a, T> {
    /// The latest planes of a box.
    pub fn ring(cells: &Cells, planes: usize) -> Self {
        let frame = Frame::ring(cells, planes);
        Self { frame, data: Data::Ring(vec![T::ZERO; frame.length()]) }
    }

    /// A result.
    pub fn result(frame: Frame, data: &'a mut [T]) -> Self {
        assert_eq!(frame.length(), data.len(), "an array of the frame's length");
        Self { frame, data: Data::Result(data) }
    }

    /// The elements.
    pub fn elements(&self) -> &[T] {
        match &self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) => elements,
        }
    }

    /// The elements.
    pub fn elements_mut(&mut self) -> &mut [T] {
        match &mut self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) => elements,
        }
    }

    /// Sets what is beyond the ends of the grid, after the elements `computed` of plane `i`; of a result,
    /// only what an axis's own other end is.
    pub fn close(&mut self, domain: &Domain, place: Place, computed: &Cells, i: isize, wrapped: Wrapped) {
        let frame = self.frame;
        let elements = match &mut self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) if wrapped => {
                return close_rows(elements, &frame, domain, place, (computed, i), wrapped);
            }
            Data::Result(_) => return,
        };
        let room = frame.cells();
        close_rows(elements, &frame, domain, place, (computed, i), wrapped);
        if let Some((lo, hi)) = domain.inside(place, 1)
            && domain.has[1]
        {
            let row = frame.row();
            let mut fill = |j: isize, from: isize| {
                let to = frame.at([i, j, room.lo[2]]);
                match domain.boundary[1] {
                    Boundary::Zero => elements[to..to + row].fill(T::ZERO),
                    _ => {
                        let from = frame.at([i, from, room.lo[2]]);
                        elements.copy_within(from..from + row, to);
                    }
                }
            };
            if computed.lo[1] == lo {
                (room.lo[1]..lo).for_each(|j| fill(j, lo));
            }
            if computed.hi[1] == hi {
                (hi..room.hi[1]).for_each(|j| fill(j, hi - 1));
            }
        }
        if let Some((lo, hi)) = domain.inside(place, 0)
            && domain.has[0]
        {
            let plane = frame.plane();
            let start = |i: isize| frame.at([i, room.lo[1], room.lo[2]]);
            let mut fill = |to: isize| match domain.boundary[0] {
                Boundary::Zero => elements[start(to)..start(to) + plane].fill(T::ZERO),
                _ => elements.copy_within(start(i)..start(i) + plane, start(to)),
            };
            if i == lo {
                (1..=BEYOND.min(i - room.lo[0])).for_each(|step| fill(lo - step));
            }
            if i == hi - 1 {
                (0..BEYOND).for_each(|step| fill(hi + step));
            }
        }
    }
}

/// Sets what is beyond the ends of axis 2, in the rows of `computed` in plane `i`.
pub fn close_rows<T: Advectable>(
    elements: &mut [T],
    frame: &Frame,
    domain: &Domain,
    place: Place,
    (computed, i): (&Cells, isize),
    wrapped: Wrapped,
) {
    let room = frame.cells();
    let n = domain.cells[2] as isize;
    if wrapped {
        let (before, behind, n) = ((-room.lo[2]) as usize, (room.hi[2] - n) as usize, n as usize);
        let count = (computed.hi[1] - computed.lo[1]).max(0) as usize;
        let first = frame.at([i, computed.lo[1], room.lo[2]]);
        let rows = elements[first..first + count * frame.row()].chunks_exact_mut(before + n + behind);
        if (before, behind) == (1, 1) {
            for row in rows {
                (row[0], row[n + 1]) = (row[n], row[1]);
            }
            return;
        }
        for row in rows {
            // From the inside out: there may be fewer cells than are looked at.
            (0..before).rev().for_each(|at| row[at] = row[at + n]);
            (0..behind).for_each(|at| row[before + n + at] = row[before + at]);
        }
    } else if let Some((lo, hi)) = domain.inside(place, 2) {
        for j in computed.lo[1]..computed.hi[1] {
            let first = frame.at([i, j, room.lo[2]]);
            let end = first + (room.hi[2] - room.lo[2]) as usize;
            let value = |inner: T| if domain.boundary[2] == Boundary::Zero { T::ZERO } else { inner };
            if computed.lo[2] == lo {
                let edge = first + (lo - room.lo[2]).max(0) as usize;
                let value = value(elements[edge]);
                elements[first..edge].fill(value);
            }
            if computed.hi[2] == hi {
                let edge = first + (hi - room.lo[2]) as usize;
                let value = value(elements[edge - 1]);
                elements[edge..end].fill(value);
            }
        }
    }
}

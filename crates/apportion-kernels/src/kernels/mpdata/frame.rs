//! Where the elements of a box of cells are in memory.

use super::options::{Advectable, Boundary};

/// A half-open box of cells, in the coordinates of the whole grid; cells beyond its ends have negative
/// coordinates or large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// First cell along each axis.
    pub lo: [isize; 3],
    /// One past the last cell along each axis.
    pub hi: [isize; 3],
}

impl Cells {
    /// Number of cells along each axis.
    pub fn lengths(&self) -> [usize; 3] {
        std::array::from_fn(|axis| (self.hi[axis] - self.lo[axis]).max(0) as usize)
    }

    /// Number of cells.
    pub fn count(&self) -> usize {
        self.lengths().iter().product()
    }

    /// True if there is no cell.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The box that is wider by this number of cells at both ends of each axis.
    #[must_use]
    pub(crate) fn grown(&self, by: [usize; 3]) -> Self {
        let by = by.map(|cells| cells as isize);
        Self {
            lo: std::array::from_fn(|axis| self.lo[axis] - by[axis]),
            hi: std::array::from_fn(|axis| self.hi[axis] + by[axis]),
        }
    }

    /// The common part, which may be empty.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            lo: std::array::from_fn(|axis| self.lo[axis].max(other.lo[axis])),
            hi: std::array::from_fn(|axis| self.hi[axis].min(other.hi[axis])),
        }
    }
}

/// What an element belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A cell.
    Centre,
    /// The face of a cell towards lower coordinates along an axis.
    Face(usize),
}

/// The grid and its ends. One dimension is axis 2; two are axes 0 and 2. Axis 2 is contiguous in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain {
    /// Number of cells along each axis; 1 along an axis that the grid does not have.
    pub cells: [usize; 3],
    /// Whether the grid has the axis.
    pub has: [bool; 3],
    /// What is beyond the ends of each axis.
    pub(crate) boundary: [Boundary; 3],
}

impl Domain {
    /// A grid of one to three dimensions; the last is contiguous in memory.
    ///
    /// # Panics
    /// If there are not one to three sizes and as many boundaries.
    pub fn new(cells: &[usize], boundary: &[Boundary]) -> Self {
        assert_eq!(cells.len(), boundary.len(), "one boundary per axis");
        let mut domain = Self { cells: [1; 3], has: [false; 3], boundary: [Boundary::Periodic; 3] };
        for (number, axis) in Self::axes_of(cells.len()).iter().enumerate() {
            domain.cells[*axis] = cells[number];
            domain.has[*axis] = true;
            domain.boundary[*axis] = boundary[number];
        }
        domain
    }

    fn axes_of(dimensions: usize) -> &'static [usize] {
        match dimensions {
            1 => &[2],
            2 => &[0, 2],
            3 => &[0, 1, 2],
            _ => panic!("a grid has one to three dimensions, not {dimensions}"),
        }
    }

    /// The axes that the grid has, in the order of its sizes.
    pub fn axes(&self) -> &'static [usize] {
        Self::axes_of(self.dimensions())
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.has.iter().filter(|has| **has).count()
    }

    /// The whole grid.
    pub fn whole(&self) -> Cells {
        Cells { lo: [0; 3], hi: self.cells.map(|n| n as isize) }
    }

    /// A width along the axes that the grid has.
    pub(crate) fn along(&self, width: usize) -> [usize; 3] {
        self.has.map(|has| if has { width } else { 0 })
    }

    /// The coordinates along an axis at which elements are given or computed; others follow from them. `None`
    /// if there is no end.
    pub fn inside(&self, place: Place, axis: usize) -> Option<(isize, isize)> {
        let closed = isize::from(place == Place::Face(axis));
        (self.boundary[axis] != Boundary::Periodic).then(|| (0, self.cells[axis] as isize + closed))
    }

    /// The coordinate that an element beyond an end takes its value from; `None` if it is 0.
    pub fn source(&self, place: Place, axis: usize, at: isize) -> Option<isize> {
        let n = self.cells[axis] as isize;
        match (self.inside(place, axis), self.boundary[axis]) {
            (None, _) => Some(at.rem_euclid(n)),
            (Some((lo, hi)), _) if (lo..hi).contains(&at) => Some(at),
            (Some(_), Boundary::Zero) => None,
            (Some((lo, hi)), _) => Some(at.clamp(lo, hi - 1)),
        }
    }
}

/// Where the elements of a box are: planes of axis 0, rows of axis 1. If `mask` is not all ones, planes share
/// memory with those 2^k planes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    first: [isize; 3],
    rows: usize,
    row: usize,
    mask: usize,
    planes: usize,
}

impl Frame {
    /// All cells of a box.
    pub(crate) fn of(cells: &Cells) -> Self {
        let [planes, rows, row] = cells.lengths();
        Self { first: cells.lo, rows, row, mask: usize::MAX, planes }
    }

    /// The latest planes of a box, at least this number of them.
    pub(crate) fn ring(cells: &Cells, planes: usize) -> Self {
        let planes = planes.next_power_of_two();
        Self { mask: planes - 1, planes, ..Self::of(cells) }
    }

    /// Number of elements.
    pub(crate) fn length(&self) -> usize {
        self.planes * self.plane()
    }

    /// Elements of a plane.
    pub(crate) fn plane(&self) -> usize {
        self.rows * self.row
    }

    /// Distance between elements that are neighbours along axis 1.
    pub(crate) fn row(&self) -> usize {
        self.row
    }

    /// The position of an element.
    ///
    /// # Panics
    /// In debug builds, if it is outside.
    #[inline(always)]
    pub(crate) fn at(&self, [i, j, k]: [isize; 3]) -> usize {
        let plane = (i - self.first[0]) as usize & self.mask;
        debug_assert!(plane < self.planes, "plane {i} of {self:?}");
        let within = (j - self.first[1]) * self.row as isize + (k - self.first[2]);
        debug_assert!((0..=self.plane() as isize).contains(&within), "row {j}, element {k} of {self:?}");
        plane * self.plane() + within as usize
    }

    /// The cells of the frame if it holds all of a box.
    pub(crate) fn cells(&self) -> Cells {
        let [i, j, k] = self.first;
        Cells {
            lo: self.first,
            hi: [i + self.planes as isize, j + self.rows as isize, k + self.row as isize],
        }
    }
}

// An array over a box of cells, and what it holds beyond the ends of the grid.

/// The planes beyond an end of axis 0 that the passes look at.
const BEYOND: isize = 3;

/// Elements of a box that are being computed.
#[derive(Debug)]
pub(crate) struct Array<'a, T> {
    /// Where they are.
    pub(crate) frame: Frame,
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
pub(crate) type Wrapped = bool;

impl<'a, T: Advectable> Array<'a, T> {
    /// The latest planes of a box.
    pub(crate) fn ring(cells: &Cells, planes: usize) -> Self {
        let frame = Frame::ring(cells, planes);
        Self { frame, data: Data::Ring(vec![T::ZERO; frame.length()]) }
    }

    /// A result.
    pub(crate) fn result(frame: Frame, data: &'a mut [T]) -> Self {
        assert_eq!(frame.length(), data.len(), "an array of the frame's length");
        Self { frame, data: Data::Result(data) }
    }

    /// The elements.
    pub(crate) fn elements(&self) -> &[T] {
        match &self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) => elements,
        }
    }

    /// The elements.
    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        match &mut self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) => elements,
        }
    }

    /// Sets what is beyond the ends of the grid, after the elements `computed` of plane `i`; of a result,
    /// only what an axis's own other end is.
    pub(crate) fn close(
        &mut self,
        domain: &Domain,
        place: Place,
        computed: &Cells,
        i: isize,
        wrapped: Wrapped,
    ) {
        let frame = self.frame;
        let elements = match &mut self.data {
            Data::Ring(elements) => elements,
            Data::Result(elements) if wrapped => {
                return close_rows(elements, &frame, domain, place, computed, i, wrapped);
            }
            Data::Result(_) => return,
        };
        let room = frame.cells();
        close_rows(elements, &frame, domain, place, computed, i, wrapped);
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
pub(crate) fn close_rows<T: Advectable>(
    elements: &mut [T],
    frame: &Frame,
    domain: &Domain,
    place: Place,
    computed: &Cells,
    i: isize,
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

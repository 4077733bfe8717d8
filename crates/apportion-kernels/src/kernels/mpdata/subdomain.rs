//! A box of a grid with what surrounds it: the data of one owner.

use super::frame::{Cells, Domain, Frame, Place, close_rows};
use super::options::{Advectable, Boundary, Scheme};
use super::step::{Passes, Results};
use serde::{Deserialize, Serialize};

/// When the owners of a grid exchange what surrounds their boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exchange {
    /// Once a step, as wide as all passes together look; parts of the earlier passes are computed twice.
    Wide,
    /// Before every pass, as wide as that pass looks.
    Narrow,
}

/// What computes a step, and when its halos are exchanged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stencil {
    /// The variant of MPDATA.
    pub scheme: Scheme,
    /// When halos are exchanged.
    pub exchange: Exchange,
}

impl Exchange {
    /// Cells on each side that are received before a pass, from 1.
    pub fn width(self, scheme: &Scheme, pass: usize) -> usize {
        match self {
            Self::Wide => scheme.halo(),
            // The limiter looks at the field before the step in every pass.
            Self::Narrow if pass == 1 => 1 + usize::from(scheme.nonoscillatory),
            Self::Narrow => scheme.reach(pass),
        }
    }

    /// Cells on each side that are kept.
    fn margin(self, scheme: &Scheme) -> usize {
        (1..=self.phases(scheme)).map(|pass| self.width(scheme, pass)).max().unwrap_or(1)
    }

    /// Number of exchanges in a step.
    pub fn phases(self, scheme: &Scheme) -> usize {
        if self == Self::Wide { 1 } else { scheme.passes }
    }
}

/// A part of what surrounds a box, and where its elements come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The elements, in the coordinates of the box: beyond the ends of the grid they are negative or large.
    pub here: Cells,
    /// What to add to reach the same elements within the grid.
    pub shift: [isize; 3],
}

impl Source {
    /// The elements within the grid.
    pub fn there(&self) -> Cells {
        let moved = |from: [isize; 3]| std::array::from_fn(|axis| from[axis] + self.shift[axis]);
        Cells { lo: moved(self.here.lo), hi: moved(self.here.hi) }
    }
}

/// The parts of a room that are within the grid or, on periodic axes, beyond its ends. What is beyond the
/// other ends has no source. If axis 2 is `closed`, only what is within the grid along it counts.
pub fn sources(domain: &Domain, place: Place, room: &Cells, closed: bool) -> Vec<Source> {
    let spans = |axis: usize| -> Vec<(isize, isize, isize)> {
        let (lo, hi) = (room.lo[axis], room.hi[axis]);
        let n = domain.cells[axis] as isize;
        let inside = domain.inside(place, axis).or((closed && axis == 2).then_some((0, n)));
        if let Some((first, end)) = inside {
            return vec![(lo.max(first), hi.min(end), 0)].into_iter().filter(|(lo, hi, _)| lo < hi).collect();
        }
        let mut spans = Vec::new();
        let mut at = lo;
        while at < hi {
            let image = at.div_euclid(n);
            let end = ((image + 1) * n).min(hi);
            spans.push((at, end, -image * n));
            at = end;
        }
        spans
    };
    let [first, second, third] = [0, 1, 2].map(spans);
    let mut found = Vec::with_capacity(first.len() * second.len() * third.len());
    for &(lo0, hi0, s0) in &first {
        for &(lo1, hi1, s1) in &second {
            for &(lo2, hi2, s2) in &third {
                let here = Cells { lo: [lo0, lo1, lo2], hi: [hi0, hi1, hi2] };
                found.push(Source { here, shift: [s0, s1, s2] });
            }
        }
    }
    found
}

/// A box of a grid, with the field and the Courant numbers in it and around it.
#[derive(Debug, Clone)]
pub struct Subdomain<T> {
    domain: Domain,
    scheme: Scheme,
    cells: Cells,
    wrapped: bool,
    signed: bool,
    /// Whether the ends of axis 2 are closed in the rows of the box before a step: they are after one.
    closed: bool,
    /// Whether the Courant numbers given are the same everywhere along an axis, also beyond the ends.
    uniform: [bool; 3],
    frame: Frame,
    /// The field before the step, after the last pass, and the pass under way.
    start: Vec<T>,
    psi: Vec<T>,
    out: Vec<T>,
    /// The Courant numbers given; of the last pass; of the pass under way.
    courant: [Vec<T>; 3],
    corrected: [Vec<T>; 3],
    next: [Vec<T>; 3],
}

impl<T: Advectable> Subdomain<T> {
    /// A box of a grid whose boxes all hold `undivided` axes completely. The field and the Courant numbers
    /// are 0. `signed` says that the field may hold values of both signs.
    pub fn new(
        domain: Domain,
        Stencil { scheme, exchange }: Stencil,
        cells: Cells,
        undivided: [bool; 3],
        signed: bool,
    ) -> Self {
        let room = Self::room(&domain, Stencil { scheme, exchange }, &cells, undivided);
        let frame = Frame::of(&room);
        let length = frame.length();
        let zeros = |wanted: bool| vec![T::ZERO; if wanted { length } else { 0 }];
        let narrow = exchange == Exchange::Narrow && scheme.passes > 1;
        let kept = narrow && scheme.passes > 2;
        Self {
            domain,
            scheme,
            cells,
            wrapped: Self::wraps(&domain, undivided),
            signed,
            closed: false,
            uniform: domain.has.map(|has| !has),
            frame,
            start: zeros(true),
            psi: zeros(narrow),
            out: zeros(true),
            courant: domain.has.map(zeros),
            corrected: domain.has.map(|has| zeros(has && kept)),
            next: domain.has.map(|has| zeros(has && kept)),
        }
    }

    /// True if the ends of axis 2 are closed within each box.
    pub(super) fn wraps(domain: &Domain, undivided: [bool; 3]) -> bool {
        undivided[2] && domain.boundary[2] == Boundary::Periodic
    }

    /// A box and what is kept around it.
    pub fn room(
        domain: &Domain,
        Stencil { scheme, exchange }: Stencil,
        cells: &Cells,
        undivided: [bool; 3],
    ) -> Cells {
        let mut by = domain.along(exchange.margin(&scheme));
        if undivided[2] {
            by[2] = 1 + usize::from(scheme.third_order);
        }
        cells.grown(by)
    }

    /// What a box needs of its surroundings, and itself, before a pass (from 1).
    pub fn needs(
        domain: &Domain,
        Stencil { scheme, exchange }: Stencil,
        cells: &Cells,
        undivided: [bool; 3],
        place: Place,
        pass: usize,
    ) -> Cells {
        let mut by = domain.along(exchange.width(&scheme, pass));
        if undivided[2] {
            by[2] = 0;
        }
        let mut needs = cells.grown(by);
        if undivided[2] && place == Place::Face(2) {
            needs.hi[2] += 1;
        }
        needs
    }

    /// The box.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Number of elements of all arrays of a box, by formula.
    pub fn elements(
        domain: &Domain,
        Stencil { scheme, exchange }: Stencil,
        cells: &Cells,
        undivided: [bool; 3],
    ) -> u64 {
        let room = Self::room(domain, Stencil { scheme, exchange }, cells, undivided).count() as u64;
        let axes = domain.dimensions() as u64;
        let narrow = exchange == Exchange::Narrow && scheme.passes > 1;
        let kept = if narrow && scheme.passes > 2 { 2 * axes } else { 0 };
        room * (2 + u64::from(narrow) + axes + kept)
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        let arrays = [&self.start, &self.psi, &self.out].into_iter();
        let courant = [&self.courant, &self.corrected, &self.next].into_iter().flatten();
        arrays.chain(courant).map(|array| (array.len() * size_of::<T>()) as u64).sum()
    }

    /// The array of the field or the Courant numbers that a pass starts from.
    fn array(&mut self, place: Place, pass: usize) -> &mut Vec<T> {
        match (place, pass) {
            (Place::Centre, 1) => &mut self.start,
            (Place::Centre, _) => &mut self.psi,
            (Place::Face(axis), 1) => &mut self.courant[axis],
            (Place::Face(axis), _) => &mut self.corrected[axis],
        }
    }

    /// Copies elements of the input of a pass (from 1) out, in the order of axes 0, 1, 2.
    pub fn pack(&mut self, place: Place, pass: usize, cells: &Cells, out: &mut [T]) {
        let frame = self.frame;
        let array = self.array(place, pass);
        rows(cells).zip(out.chunks_exact_mut(cells.lengths()[2].max(1))).for_each(|(row, out)| {
            let at = frame.at(row);
            out.copy_from_slice(&array[at..at + out.len()]);
        });
    }

    /// Stores elements of the input of a pass (from 1), in the order of axes 0, 1, 2.
    pub fn unpack(&mut self, place: Place, pass: usize, cells: &Cells, elements: &[T]) {
        let frame = self.frame;
        self.closed &= (place, pass) != (Place::Centre, 1) || cells.intersect(&self.cells).is_empty();
        if let (Place::Face(axis), 1) = (place, pass) {
            self.uniform[axis] = false;
        }
        let array = self.array(place, pass);
        rows(cells).zip(elements.chunks_exact(cells.lengths()[2].max(1))).for_each(|(row, elements)| {
            let at = frame.at(row);
            array[at..at + elements.len()].copy_from_slice(elements);
        });
    }

    /// Sets elements of a given Courant number to a constant.
    pub fn fill_courant(&mut self, axis: usize, value: T) {
        self.courant[axis].fill(value);
        self.uniform[axis] = !self.domain.boundary.contains(&Boundary::Zero);
    }

    /// Sets what is beyond the ends of the grid in the input of a pass, once the rest is there.
    pub fn close(&mut self, place: Place, pass: usize) {
        let (frame, domain, wrapped, cells) = (self.frame, self.domain, self.wrapped, self.cells);
        let closed = self.closed && (place, pass) == (Place::Centre, 1);
        let array = self.array(place, pass);
        if array.is_empty() {
            return;
        }
        let room = frame.cells();
        for axis in [2, 1, 0] {
            if !domain.has[axis] {
                continue;
            }
            if wrapped && axis == 2 {
                for i in room.lo[0]..room.hi[0] {
                    let own = closed && (cells.lo[0]..cells.hi[0]).contains(&i);
                    let (mut above, mut below) = (room, room);
                    (above.hi[1], below.lo[1]) = (cells.lo[1], cells.hi[1]);
                    let parts = if own { vec![above, below] } else { vec![room] };
                    for part in parts {
                        close_rows(array, &frame, &domain, place, &part, i, true);
                    }
                }
                continue;
            }
            let Some((lo, hi)) = domain.inside(place, axis) else { continue };
            let beyond = (room.lo[axis]..lo.min(room.hi[axis])).chain(hi.max(room.lo[axis])..room.hi[axis]);
            for at in beyond {
                // A box that is beyond an end of the grid by its room alone holds no source.
                let from = domain
                    .source(place, axis, at)
                    .filter(|from| (room.lo[axis]..room.hi[axis]).contains(from));
                let mut slice = room;
                (slice.lo[axis], slice.hi[axis]) = (at, at + 1);
                let length = slice.lengths()[2];
                for row in rows(&slice) {
                    let to = frame.at(row);
                    match from {
                        None => array[to..to + length].fill(T::ZERO),
                        Some(from) => {
                            let mut source = row;
                            source[axis] = from;
                            let source = frame.at(source);
                            array.copy_within(source..source + length, to);
                        }
                    }
                }
            }
        }
    }

    /// The computation of some cells of the box by a whole step (`pass` = 0) or by one pass (from 1), in up
    /// to `count` parts that may run at the same time.
    pub fn parts(&mut self, cells: &Cells, pass: usize, count: usize) -> Vec<Part<'_, T>> {
        let passes = if pass == 0 { (1, self.scheme.passes) } else { (pass, pass) };
        let first = if passes.0 == 1 { &self.start } else { &self.psi };
        let courant = if passes.0 <= 2 { &self.courant } else { &self.corrected };
        let input = Passes {
            domain: &self.domain,
            scheme: self.scheme,
            signed: self.signed,
            passes,
            wrapped: self.wrapped,
            frame: self.frame,
            start: &self.start,
            psi: first,
            courant: courant.each_ref().map(|array| &array[..]),
            uniform: passes.0 <= 2 && self.uniform == [true; 3],
        };
        let keeps = pass > 1 && pass < self.scheme.passes;
        let next = keeps.then(|| self.next.each_mut().map(|array| &mut array[..]));
        let results = Results { frame: self.frame, psi: &mut self.out, courant: next };
        results
            .slabs(cells, count)
            .into_iter()
            .map(|(cells, results)| Part { input, cells, results })
            .collect()
    }

    /// Computes some cells of the box on this thread.
    #[cfg(test)]
    pub(crate) fn compute(&mut self, cells: &Cells, pass: usize) {
        self.parts(cells, pass, 1).into_iter().for_each(Part::compute);
    }

    /// Ends a step (`pass` = 0) or a pass: its result is the newest field.
    pub fn finish(&mut self, pass: usize) {
        if pass == 0 || pass == self.scheme.passes {
            std::mem::swap(&mut self.start, &mut self.out);
            self.closed = self.wrapped;
        } else {
            std::mem::swap(&mut self.psi, &mut self.out);
            if pass > 1 {
                std::mem::swap(&mut self.corrected, &mut self.next);
            }
        }
    }
}

/// A part of a computation.
#[derive(Debug)]
pub struct Part<'a, T> {
    input: Passes<'a, T>,
    cells: Cells,
    results: Results<'a, T>,
}

impl<T: Advectable> Part<'_, T> {
    /// Computes it.
    pub fn compute(self) {
        T::compute(self);
    }

    /// What [`Advectable::compute`] does.
    #[inline(always)]
    pub(super) fn computed(self) {
        self.input.compute(&self.cells, self.results);
    }
}

/// The first element of every row of a box.
fn rows(cells: &Cells) -> impl Iterator<Item = [isize; 3]> + use<> {
    let Cells { lo, hi } = *cells;
    let along = lo[2] < hi[2];
    (lo[0]..hi[0]).flat_map(move |i| (lo[1]..hi[1]).map(move |j| [i, j, lo[2]])).filter(move |_| along)
}

// The memory of a step beside the arrays of its box.

impl<T: Advectable> Subdomain<T> {
    /// Bytes that each thread that computes a part of a box holds between the passes: an upper bound.
    pub fn between_bytes(
        domain: &Domain,
        Stencil { scheme, exchange }: Stencil,
        cells: &Cells,
        undivided: [bool; 3],
    ) -> u64 {
        if cells.is_empty() {
            return 0;
        }
        let room = Self::room(domain, Stencil { scheme, exchange }, cells, undivided);
        let passes = Passes::<T> {
            domain,
            scheme,
            signed: true,
            passes: (1, scheme.passes),
            wrapped: Self::wraps(domain, undivided),
            frame: Frame::of(&room),
            start: &[],
            psi: &[],
            courant: [&[]; 3],
            uniform: true,
        };
        passes.between_bytes(cells) as u64
    }
}

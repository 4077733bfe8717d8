//! The passes of a step over a box of cells, plane by plane: while a plane goes through the last pass, those
//! after it are still in earlier ones. The arrays between two passes are kept for a few planes of a strip,
//! so that they stay in the cache. Constant Courant numbers are read once, not at every face.

use super::flat::{Cross, Faces, GAUGE, POSITIVE, SIGNED};
use super::frame::{Array, Cells, Domain, Frame, Place, Wrapped};
use super::options::{Advectable, Scheme};
use super::vectors::{self, Vectors};
use crate::kernels::instructions::second_level;

/// Fewest rows of axis 1 that are computed together.
const LEAST_ROWS: usize = 8;

/// Some passes of a step, from arrays that hold the box and what they look at around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes<'a, T> {
    /// The grid.
    pub(crate) domain: &'a Domain,
    /// The variant.
    pub(crate) scheme: Scheme,
    /// True if the field may hold values of both signs.
    pub(crate) signed: bool,
    /// The first and the last pass, from 1.
    pub(crate) passes: (usize, usize),
    /// True if every box holds all of axis 2 and that axis is periodic: its ends are closed within the box.
    pub(crate) wrapped: Wrapped,
    /// Where the elements of the following arrays are.
    pub(crate) frame: Frame,
    /// The field before the step.
    pub(crate) start: &'a [T],
    /// The field after the pass before the first.
    pub(crate) psi: &'a [T],
    /// The Courant numbers of the pass before, on the faces towards lower coordinates, by axis.
    pub(crate) courant: [&'a [T]; 3],
    /// True if those of each axis are the same everywhere.
    pub(crate) uniform: bool,
}

/// Where the result goes.
#[derive(Debug)]
pub(crate) struct Results<'a, T> {
    /// Where the elements of the following arrays are.
    pub(crate) frame: Frame,
    /// The field after the last pass.
    pub(crate) psi: &'a mut [T],
    /// The Courant numbers of the last pass, if another one follows.
    pub(crate) courant: Option<[&'a mut [T]; 3]>,
}

impl<'a, T: Advectable> Results<'a, T> {
    /// A box cut along axis 0 into up to `count` parts, each with its planes.
    pub(crate) fn slabs(self, cells: &Cells, count: usize) -> Vec<(Cells, Self)> {
        let planes = (cells.hi[0] - cells.lo[0]).max(0) as usize;
        let count = count.clamp(1, planes.max(1));
        let (room, plane) = (self.frame.cells(), self.frame.plane());
        let cut = |t: usize| cells.lo[0] + (t * planes / count) as isize;
        let mut parts = Vec::with_capacity(count);
        // The faces of a part end where those of the next begin: a part has its lower faces, and what is
        // before the box or behind it belongs to the first and the last part.
        let (mut psi, mut courant, mut first) = (self.psi, self.courant, room.lo[0]);
        for t in 0..count {
            let end = if t + 1 == count { room.hi[0] } else { cut(t + 1) };
            let length = (end - first) as usize * plane;
            let part =
                Cells { lo: [cut(t), cells.lo[1], cells.lo[2]], hi: [cut(t + 1), cells.hi[1], cells.hi[2]] };
            let frame =
                Frame::of(&Cells { lo: [first, room.lo[1], room.lo[2]], hi: [end, room.hi[1], room.hi[2]] });
            let (mine, rest) = psi.split_at_mut(length);
            psi = rest;
            let mut numbers = None;
            courant = courant.map(|arrays| {
                let two = arrays.map(|array| {
                    let length = length.min(array.len());
                    array.split_at_mut(length)
                });
                let mut rests = two.map(|(mine, rest)| (Some(mine), Some(rest)));
                numbers = Some(rests.each_mut().map(|two| two.0.take().expect("each once")));
                rests.map(|two| two.1.expect("each once"))
            });
            parts.push((part, Self { frame, psi: mine, courant: numbers }));
            first = end;
        }
        parts
    }
}

/// The arrays of a pass: its result, its fluxes, its Courant numbers if they are needed again, the limits.
struct Level<'a, T> {
    psi: Array<'a, T>,
    fluxes: Option<[Option<Array<'a, T>>; 3]>,
    courant: Option<[Option<Array<'a, T>>; 3]>,
    limits: Option<[Array<'a, T>; 2]>,
}

impl<T: Advectable> Passes<'_, T> {
    /// Carries out the passes for a box of cells.
    ///
    /// # Panics
    /// If the arrays do not hold what the passes look at.
    pub(crate) fn compute(&self, cells: &Cells, results: Results<'_, T>) {
        if cells.is_empty() {
            return;
        }
        let Results { frame, psi, mut courant } = results;
        let rows = self.rows_of_a_strip(cells);
        let mut first = cells.lo[1];
        while first < cells.hi[1] {
            let mut strip = *cells;
            strip.lo[1] = first;
            strip.hi[1] = (first + rows).min(cells.hi[1]);
            let courant = courant.as_mut().map(|arrays| arrays.each_mut().map(|array| &mut array[..]));
            self.strip(&strip, Results { frame, psi: &mut *psi, courant });
            first = strip.hi[1];
        }
    }

    /// Rows of axis 1 whose arrays fit into the cache.
    fn rows_of_a_strip(&self, cells: &Cells) -> isize {
        let (first, last) = self.passes;
        let kept = (first..=last).map(|pass| self.arrays(pass)).sum::<usize>().max(1);
        let row = (cells.hi[2] - cells.lo[2]) as usize * size_of::<T>() * kept * self.planes();
        // The rest of the cache is for the input: the field, and Courant numbers where they are arrays.
        let fifths = if self.uniform { 3 } else { 2 };
        (second_level() / 5 * fifths / row.max(1)).max(LEAST_ROWS) as isize
    }

    /// Bytes of the arrays between the passes, while a strip of a box is computed: an upper bound.
    pub(crate) fn between_bytes(&self, cells: &Cells) -> usize {
        let mut strip = *cells;
        strip.hi[1] = strip.hi[1].min(strip.lo[1] + self.rows_of_a_strip(cells));
        let (first, last) = self.passes;
        let arrays: usize = (first..=last).map(|pass| self.arrays(pass)).sum();
        arrays * Frame::ring(&self.room(&strip), self.planes()).length() * size_of::<T>()
    }

    /// Number of arrays of a pass.
    fn arrays(&self, pass: usize) -> usize {
        let numbers = 3 * usize::from(self.keeps(pass));
        1 + if pass > 1 { 3 + numbers + 2 * usize::from(self.scheme.nonoscillatory) } else { 0 }
    }

    /// What is in the denominators of the corrections.
    fn kind(&self) -> u8 {
        match (self.scheme.infinite_gauge, self.signed) {
            (true, _) => GAUGE,
            (false, true) => SIGNED,
            (false, false) => POSITIVE,
        }
    }

    /// Whether the Courant numbers of a pass are needed besides its fluxes: another pass starts from them, or
    /// fluxes have other signs than they.
    fn keeps(&self, pass: usize) -> bool {
        let limited = self.scheme.nonoscillatory && self.kind() == SIGNED;
        pass > 1 && (pass < self.scheme.passes || limited)
    }

    /// Planes that are kept between passes.
    fn planes(&self) -> usize {
        let (first, last) = self.passes;
        let simple = !self.scheme.third_order;
        let endless = self.domain.inside(Place::Centre, 0).is_none();
        if last - first <= 1 && simple && endless { 4 } else { 8 }
    }

    /// Cells by which a pass is computed beyond the box.
    fn beyond(&self, pass: usize) -> usize {
        (pass + 1..=self.passes.1).map(|later| self.scheme.reach(later)).sum()
    }

    /// The elements to compute: a box wider by some cells, within the grid where that has an end.
    fn range(&self, place: Place, cells: &Cells, by: usize) -> Cells {
        let mut range = cells.grown(self.domain.along(by));
        if let Place::Face(axis) = place {
            range.hi[axis] += 1;
        }
        for axis in 0..3 {
            if let Some((lo, hi)) = self.domain.inside(place, axis) {
                range.lo[axis] = range.lo[axis].max(lo);
                range.hi[axis] = range.hi[axis].min(hi);
            }
        }
        if self.wrapped {
            (range.lo[2], range.hi[2]) = (0, self.domain.cells[2] as isize);
        }
        range
    }

    fn strip(&self, cells: &Cells, results: Results<'_, T>) {
        let (first, last) = self.passes;
        let limited = usize::from(self.scheme.nonoscillatory);
        // Arrays between passes: as far beyond the box as the input.
        let room = self.room(cells);
        let ring = || Array::ring(&room, self.planes());
        let Results { frame, psi, courant } = results;
        let mut psi = Some(Array::result(frame, psi));
        let mut courant = courant;
        let mut levels: Vec<Level<'_, T>> = (first..=last)
            .map(|pass| {
                let last = pass == last;
                let result = if last { psi.take() } else { None };
                Level {
                    psi: result.unwrap_or_else(ring),
                    fluxes: (pass > 1).then(|| self.domain.has.map(|has| has.then(ring))),
                    courant: self.keeps(pass).then(|| self.domain.has.map(|has| has.then(ring))),
                    limits: (pass > 1 && limited > 0).then(|| [ring(), ring()]),
                }
            })
            .collect();
        // A pass is this many planes behind the first.
        let behind = 2 + limited as isize;
        let begin = self.range(Place::Centre, cells, self.beyond(first) + limited).lo[0];
        let passes = (last - first) as isize + 1;
        let end = self.range(Place::Face(0), cells, self.beyond(first) + limited).hi[0] + behind * passes;
        for time in begin..end {
            let mut lag = -1;
            for pass in first..=last {
                let (before, rest) = levels.split_at_mut(pass - first);
                let (before, level) = (before.last(), &mut rest[0]);
                let wide = self.beyond(pass);
                if pass == 1 {
                    self.advance((cells, wide), time, before, level);
                    lag = 0;
                    continue;
                }
                self.correct((cells, wide + limited), time - lag - 1, before, level);
                if limited > 0 {
                    self.limits(cells, wide + 1, time - lag - 2, before, level);
                    if level.courant.is_some() {
                        self.limit(cells, wide, time - lag - 2, level);
                    }
                }
                lag += behind;
                if let (Some(arrays), true) = (&mut courant, pass == last) {
                    self.keep(cells, time - lag, level, &frame, arrays);
                }
                self.advance((cells, wide), time - lag, before, level);
            }
        }
    }

    /// Copies the Courant numbers of a plane that a later pass starts from.
    fn keep(&self, cells: &Cells, i: isize, level: &Level<'_, T>, frame: &Frame, arrays: &mut [&mut [T]; 3]) {
        let numbers = level.courant.as_ref().expect("Courant numbers are kept");
        for axis in self.domain.axes() {
            let (from, elements) = of(&numbers[*axis]);
            // A face between two boxes belongs to the one that it is the lower face of.
            let mut range = *cells;
            if self.domain.inside(Place::Face(*axis), *axis).is_some_and(|(_, hi)| range.hi[*axis] == hi - 1)
            {
                range.hi[*axis] += 1;
            }
            let last = range.hi[0] - 1;
            let planes = if i == cells.hi[0] - 1 { i..last + 1 } else { i..i + 1 };
            for i in planes.filter(|i| (range.lo[0]..range.hi[0]).contains(i)) {
                for j in range.lo[1]..range.hi[1] {
                    let at = [i, j, range.lo[2]];
                    let length = (range.hi[2] - range.lo[2]) as usize;
                    let (to, from) = (frame.at(at), from.at(at));
                    arrays[*axis][to..to + length].copy_from_slice(&elements[from..from + length]);
                }
            }
        }
    }

    /// The cells of arrays between passes.
    fn room(&self, cells: &Cells) -> Cells {
        let own = self.frame.cells();
        let by = self.beyond(self.passes.0) + self.scheme.pass_halo();
        let mut room = cells.grown(self.domain.along(by));
        // Runs go over several rows: these are as long as the input's.
        if self.domain.has[1] {
            (room.lo[2], room.hi[2]) = (own.lo[2], own.hi[2]);
        }
        room
    }

    /// The field that a pass starts from.
    fn field<'s>(&'s self, before: Option<&'s Level<'_, T>>) -> (&'s Frame, &'s [T]) {
        before.map_or((&self.frame, self.psi), |level| (&level.psi.frame, level.psi.elements()))
    }

    /// The Courant numbers that a pass starts from, by axis.
    fn numbers<'s>(&'s self, before: Option<&'s Level<'_, T>>, axis: usize) -> (&'s Frame, &'s [T]) {
        match before.and_then(|level| level.courant.as_ref()) {
            Some(arrays) => of(&arrays[axis]),
            None => (&self.frame, self.courant[axis]),
        }
    }

    fn advance(
        &self,
        (cells, by): (&Cells, usize),
        i: isize,
        before: Option<&Level<'_, T>>,
        level: &mut Level<'_, T>,
    ) {
        let range = self.range(Place::Centre, cells, by);
        let Some(run) = Run::of(&range, i, level.psi.frame.row()) else { return };
        let field = self.field(before);
        let out = level.psi.frame.at(run.at);
        let psi = run.at(field);
        let out = &mut level.psi.elements_mut()[out..out + run.length];
        let v = Vectors::detect();
        if let (Some(arrays), Some([up, down]), None) = (&level.fluxes, &level.limits, &level.courant) {
            // Fluxes that no later pass starts from are limited where they are used.
            let fluxes = self.two(arrays, &run);
            let [up, down] = [up, down].map(|array| (&array.frame, array.elements()));
            let [ups, downs] = [self.around(up, &run), self.around(down, &run)];
            let (up, down) = (run.at(up), run.at(down));
            macro_rules! go {
                ($n:literal, $axes:expr) => {{
                    let [fluxes, ups, downs] = [fluxes, ups, downs].map(|two| $axes.map(|a: usize| two[a]));
                    vectors::subtract_limited::<T, $n>(v, psi, fluxes, (up, ups), (down, downs), out)
                }};
            }
            match self.domain.dimensions() {
                1 => go!(1, [2]),
                2 => go!(2, [0, 2]),
                _ => go!(3, [0, 1, 2]),
            }
        } else if let Some(arrays) = &level.fluxes {
            let fluxes = self.two(arrays, &run);
            match self.domain.dimensions() {
                1 => vectors::subtract::<T, 1>(v, psi, [2].map(|a| fluxes[a]), out),
                2 => vectors::subtract::<T, 2>(v, psi, [0, 2].map(|a| fluxes[a]), out),
                _ => vectors::subtract::<T, 3>(v, psi, fluxes, out),
            }
        } else {
            let around = self.around(field, &run);
            let numbers = |axis: usize| self.numbers(None, axis);
            let courant = self.axes(|axis| [run.at(numbers(axis)), run.shifted(numbers(axis), &[(axis, 1)])]);
            macro_rules! go {
                ($n:literal, $axes:expr) => {{
                    let (around, courant) =
                        ($axes.map(|a: usize| around[a]), $axes.map(|a: usize| courant[a]));
                    match self.uniform {
                        true => vectors::advance::<T, $n, true>(v, psi, around, courant, out),
                        false => vectors::advance::<T, $n, false>(v, psi, around, courant, out),
                    }
                }};
            }
            match self.domain.dimensions() {
                1 => go!(1, [2]),
                2 => go!(2, [0, 2]),
                _ => go!(3, [0, 1, 2]),
            }
        }
        level.psi.close(self.domain, Place::Centre, &range, i, self.wrapped);
    }

    /// Something for every axis that the grid has.
    fn axes<'s, R: Default + Copy>(&self, of: impl Fn(usize) -> R) -> [R; 3]
    where
        T: 's,
    {
        std::array::from_fn(|axis| if self.domain.has[axis] { of(axis) } else { R::default() })
    }

    /// What is on the lower and upper faces, by axis.
    fn two<'s>(&self, arrays: &'s [Option<Array<'_, T>>; 3], run: &Run) -> [[&'s [T]; 2]; 3] {
        self.axes(|axis| [run.at(of(&arrays[axis])), run.shifted(of(&arrays[axis]), &[(axis, 1)])])
    }

    /// The cells before and behind, by axis.
    fn around<'s>(&self, field: (&Frame, &'s [T]), run: &Run) -> [[&'s [T]; 2]; 3] {
        self.axes(|axis| [run.shifted(field, &[(axis, -1)]), run.shifted(field, &[(axis, 1)])])
    }
}

/// An array that the grid has.
fn of<'s, T: Advectable>(array: &'s Option<Array<'_, T>>) -> (&'s Frame, &'s [T]) {
    let array = array.as_ref().expect("the grid has this axis");
    (&array.frame, array.elements())
}

// A stretch of elements in a plane.

/// Elements of a plane that are computed together: from the first of a range to its last, with what is
/// between its rows.
#[derive(Debug, Clone, Copy)]
struct Run {
    pub(crate) at: [isize; 3],
    pub(crate) length: usize,
}

impl Run {
    /// The run of a range in plane `i`, in arrays with rows of this length.
    pub(crate) fn of(range: &Cells, i: isize, row: usize) -> Option<Self> {
        let [_, rows, along] = range.lengths();
        let there = (range.lo[0]..range.hi[0]).contains(&i) && rows > 0 && along > 0;
        there.then(|| Self { at: [i, range.lo[1], range.lo[2]], length: (rows - 1) * row + along })
    }

    #[inline(always)]
    pub(crate) fn at<'s, T>(&self, (frame, elements): (&Frame, &'s [T])) -> &'s [T] {
        &elements[frame.at(self.at)..]
    }

    #[inline(always)]
    pub(crate) fn shifted<'s, T>(
        &self,
        (frame, elements): (&Frame, &'s [T]),
        by: &[(usize, isize)],
    ) -> &'s [T] {
        let mut at = self.at;
        by.iter().for_each(|(axis, steps)| at[*axis] += steps);
        &elements[frame.at(at)..]
    }
}

// Corrective passes: the antidiffusive fluxes of a plane, and their limiter.

impl<T: Advectable> Passes<'_, T> {
    /// The fluxes of a plane, and its Courant numbers if they are kept.
    fn correct(
        &self,
        within: (&Cells, usize),
        i: isize,
        before: Option<&Level<'_, T>>,
        level: &mut Level<'_, T>,
    ) {
        match self.domain.dimensions() {
            1 => self.correct_plane::<0>(within, i, before, level, |_| []),
            2 => self.correct_plane::<1>(within, i, before, level, |axis| [2 - axis]),
            _ => self.correct_plane::<2>(within, i, before, level, |axis| match axis {
                0 => [1, 2],
                1 => [0, 2],
                _ => [0, 1],
            }),
        }
    }

    /// `others` are the axes besides one.
    fn correct_plane<const N: usize>(
        &self,
        (cells, by): (&Cells, usize),
        i: isize,
        before: Option<&Level<'_, T>>,
        level: &mut Level<'_, T>,
        others: impl Fn(usize) -> [usize; N],
    ) {
        let Level { fluxes, courant, .. } = level;
        let fluxes = fluxes.as_mut().expect("a corrective pass has fluxes");
        let ranges = [0, 1, 2].map(|axis| self.range(Place::Face(axis), cells, by));
        let runs: [Option<Run>; 3] = std::array::from_fn(|axis| {
            let array = fluxes[axis].as_ref()?;
            Run::of(&ranges[axis], i, array.frame.row())
        });
        {
            let mut kept = courant.as_mut().map_or([None, None, None], |c| c.each_mut().map(Option::as_mut));
            for ((axis, array), run) in fluxes.iter_mut().enumerate().zip(runs) {
                let (Some(array), Some(run)) = (array, run) else { continue };
                let place = array.frame.at(run.at);
                let part = place..place + run.length;
                let kept = kept[axis].take().map(|array| &mut array.elements_mut()[part.clone()]);
                let faces = self.faces(axis, others(axis), &run, before);
                let out = &mut array.elements_mut()[part];
                // A pass after a corrective one has numbers of its own.
                if self.uniform && before.is_none_or(|level| level.courant.is_none()) {
                    self.correct_run::<N, true>(&faces, out, kept);
                } else {
                    self.correct_run::<N, false>(&faces, out, kept);
                }
            }
        }
        // Fluxes are looked at along their own axis only.
        let endless = [0, 1].iter().all(|axis| self.domain.inside(Place::Centre, *axis).is_none());
        for axis in self.domain.axes().iter().copied().filter(|axis| runs[*axis].is_some()) {
            let fluxes = (axis == 2 || !(endless && self.wrapped)).then_some(&mut *fluxes);
            for arrays in fluxes.into_iter().chain(courant.as_mut()) {
                let array = arrays[axis].as_mut().expect("the grid has this axis");
                array.close(self.domain, Place::Face(axis), &ranges[axis], i, self.wrapped);
            }
        }
    }

    /// What surrounds the faces of a run.
    fn faces<'s, const N: usize>(
        &'s self,
        axis: usize,
        others: [usize; N],
        run: &Run,
        before: Option<&'s Level<'_, T>>,
    ) -> Faces<'s, T, N> {
        let (psi, third) = (self.field(before), self.scheme.third_order);
        let cell = |by: &[(usize, isize)]| run.shifted(psi, by);
        let pair = |e: usize, step: isize| [cell(&[(axis, -1), (e, step)]), cell(&[(e, step)])];
        let cross = |e: usize| {
            let numbers = self.numbers(before, e);
            let number = |by: &[(usize, isize)]| run.shifted(numbers, by);
            let both = [number(&[]), number(&[(e, 1)])];
            let [upper, lower] = [number(&[(axis, -1)]), number(&[(axis, -1), (e, 1)])];
            Cross { up: pair(e, 1), down: pair(e, -1), courant: [both[0], both[1], upper, lower] }
        };
        let corner = |de: isize, df: isize| {
            let by = [(axis, -1), (others[0], de), (others[N - 1], df)];
            [cell(&by), cell(&by[1..])]
        };
        Faces {
            cells: [cell(&[(axis, -1)]), cell(&[])],
            courant: run.at(self.numbers(before, axis)),
            cross: others.map(cross),
            beyond: if third { [cell(&[(axis, -2)]), cell(&[(axis, 1)])] } else { [&[]; 2] },
            corners: if third && N == 2 {
                [corner(1, 1), corner(1, -1), corner(-1, 1), corner(-1, -1)]
            } else {
                [[&[]; 2]; 4]
            },
        }
    }

    /// Fluxes, from Courant numbers if those are kept.
    fn correct_run<const N: usize, const UNIFORM: bool>(
        &self,
        faces: &Faces<'_, T, N>,
        out: &mut [T],
        kept: Option<&mut [T]>,
    ) {
        let v = Vectors::detect();
        macro_rules! go {
            ($flux:literal, $out:expr) => {
                match (self.kind(), self.scheme.third_order) {
                    (GAUGE, false) => vectors::correct::<T, N, GAUGE, false, false, UNIFORM>(v, faces, $out),
                    (GAUGE, true) => vectors::correct::<T, N, GAUGE, true, false, UNIFORM>(v, faces, $out),
                    (SIGNED, false) => {
                        vectors::correct::<T, N, SIGNED, false, $flux, UNIFORM>(v, faces, $out)
                    }
                    (SIGNED, true) => vectors::correct::<T, N, SIGNED, true, $flux, UNIFORM>(v, faces, $out),
                    (_, false) => vectors::correct::<T, N, POSITIVE, false, $flux, UNIFORM>(v, faces, $out),
                    (_, true) => vectors::correct::<T, N, POSITIVE, true, $flux, UNIFORM>(v, faces, $out),
                }
            };
        }
        match kept {
            None => go!(true, out),
            Some(courant) => {
                go!(false, courant);
                vectors::fluxes::<T>(v, faces.cells, courant, out);
            }
        }
    }

    fn limits(
        &self,
        cells: &Cells,
        by: usize,
        i: isize,
        before: Option<&Level<'_, T>>,
        level: &mut Level<'_, T>,
    ) {
        let range = self.range(Place::Centre, cells, by);
        let [up, down] = level.limits.as_mut().expect("limits are kept");
        let Some(run) = Run::of(&range, i, up.frame.row()) else { return };
        let (field, start) = (self.field(before), (&self.frame, self.start));
        let (around, start_around) = (self.around(field, &run), self.around(start, &run));
        let fluxes = self.two(level.fluxes.as_ref().expect("a corrective pass has fluxes"), &run);
        let place = up.frame.at(run.at);
        let out = (
            &mut up.elements_mut()[place..place + run.length],
            &mut down.elements_mut()[place..place + run.length],
        );
        let v = Vectors::detect();
        macro_rules! go {
            ($n:literal, $axes:expr) => {{
                let start = (run.at(start), $axes.map(|a: usize| start_around[a]));
                let psi = (run.at(field), $axes.map(|a: usize| around[a]));
                vectors::limits::<T, $n>(v, start, psi, $axes.map(|a: usize| fluxes[a]), out)
            }};
        }
        match self.domain.dimensions() {
            1 => go!(1, [2]),
            2 => go!(2, [0, 2]),
            _ => go!(3, [0, 1, 2]),
        }
        up.close(self.domain, Place::Centre, &range, i, self.wrapped);
        down.close(self.domain, Place::Centre, &range, i, self.wrapped);
    }

    fn limit(&self, cells: &Cells, by: usize, i: isize, level: &mut Level<'_, T>) {
        let Level { fluxes, courant, limits, .. } = level;
        let [up, down] = limits.as_ref().expect("limits are kept");
        let [up, down] = [up, down].map(|array| (&array.frame, array.elements()));
        let fluxes = fluxes.as_mut().expect("a corrective pass has fluxes");
        let mut courant = courant.as_mut();
        for (axis, array) in fluxes.iter_mut().enumerate() {
            let Some(array) = array else { continue };
            let range = self.range(Place::Face(axis), cells, by);
            let Some(run) = Run::of(&range, i, array.frame.row()) else { continue };
            let two = |limits| [run.shifted(limits, &[(axis, -1)]), run.at(limits)];
            let place = array.frame.at(run.at);
            let part = place..place + run.length;
            let (v, out) = (Vectors::detect(), &mut array.elements_mut()[part.clone()]);
            let kept = courant.as_mut().and_then(|arrays| arrays[axis].as_mut());
            if let Some(kept) = kept {
                let numbers = &mut kept.elements_mut()[part];
                vectors::limit_both::<T>(v, two(up), two(down), out, numbers);
                kept.close(self.domain, Place::Face(axis), &range, i, self.wrapped);
            } else {
                vectors::limit::<T>(v, two(up), two(down), out);
            }
            array.close(self.domain, Place::Face(axis), &range, i, self.wrapped);
        }
    }
}

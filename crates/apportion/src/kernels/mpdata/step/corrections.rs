//! Corrective passes: the antidiffusive fluxes of a plane, and their limiter.

use super::run::Run;
use super::{Level, Passes};
use crate::kernels::mpdata::flat::{Cross, Faces, GAUGE, POSITIVE, SIGNED};
use crate::kernels::mpdata::frame::{Cells, Place};
use crate::kernels::mpdata::number::Advectable;
use crate::kernels::mpdata::vectors::{self, Vectors};

impl<T: Advectable> Passes<'_, T> {
    /// The fluxes of a plane, and its Courant numbers if they are kept.
    pub(super) fn correct(
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

    pub(super) fn limits(
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

    pub(super) fn limit(&self, cells: &Cells, by: usize, i: isize, level: &mut Level<'_, T>) {
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

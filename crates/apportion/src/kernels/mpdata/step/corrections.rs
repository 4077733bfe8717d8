//! Corrective passes: the antidiffusive Courant numbers of a plane, and their limiter.

use super::run::Run;
use super::{Level, Passes, of};
use crate::kernels::mpdata::flat::{Cross, Faces, GAUGE, POSITIVE, SIGNED};
use crate::kernels::mpdata::frame::{Cells, Place};
use crate::kernels::mpdata::number::Advectable;
use crate::kernels::mpdata::vectors::{self, Vectors};

impl<T: Advectable> Passes<'_, T> {
    pub(super) fn correct(
        &self,
        cells: &Cells,
        by: usize,
        i: isize,
        before: Option<&Level<'_, T>>,
        level: &mut Level<'_, T>,
    ) {
        let arrays = level.courant.as_mut().expect("a corrective pass has Courant numbers");
        let (psi, third) = (self.field(before), self.scheme.third_order);
        let v = Vectors::detect();
        for (axis, array) in arrays.iter_mut().enumerate() {
            let (Some(array), true) = (array, self.domain.has[axis]) else { continue };
            let range = self.range(Place::Face(axis), cells, by);
            let Some(run) = Run::of(&range, i, array.frame.row()) else { continue };
            let cell = |by: &[(usize, isize)]| run.shifted(psi, by);
            let pair = |e: usize, step: isize| [cell(&[(axis, -1), (e, step)]), cell(&[(e, step)])];
            let cross = |e: usize| {
                let numbers = self.numbers(before, e);
                let number = |by: &[(usize, isize)]| run.shifted(numbers, by);
                let both = [number(&[]), number(&[(e, 1)])];
                let [upper, lower] = [number(&[(axis, -1)]), number(&[(axis, -1), (e, 1)])];
                Cross { up: pair(e, 1), down: pair(e, -1), courant: [both[0], both[1], upper, lower] }
            };
            let courant = run.at(self.numbers(before, axis));
            let beyond = if third { [cell(&[(axis, -2)]), cell(&[(axis, 1)])] } else { [&[][..]; 2] };
            let place = array.frame.at(run.at);
            let out = &mut array.elements_mut()[place..place + run.length];
            let two = [cell(&[(axis, -1)]), cell(&[])];
            macro_rules! go {
                ($n:literal, $cross:expr, $corners:expr) => {{
                    let faces = Faces { cells: two, courant, cross: $cross, beyond, corners: $corners };
                    match (self.scheme.infinite_gauge, self.signed, third) {
                        (true, _, false) => vectors::correct::<T, $n, GAUGE, false>(v, &faces, out),
                        (true, _, true) => vectors::correct::<T, $n, GAUGE, true>(v, &faces, out),
                        (_, true, false) => vectors::correct::<T, $n, SIGNED, false>(v, &faces, out),
                        (_, true, true) => vectors::correct::<T, $n, SIGNED, true>(v, &faces, out),
                        (_, _, false) => vectors::correct::<T, $n, POSITIVE, false>(v, &faces, out),
                        (_, _, true) => vectors::correct::<T, $n, POSITIVE, true>(v, &faces, out),
                    }
                }};
            }
            let none = [[&[][..]; 2]; 4];
            let others: Vec<usize> = self.domain.axes().iter().copied().filter(|e| *e != axis).collect();
            match others[..] {
                [] => go!(0, [], none),
                [e] => go!(1, [cross(e)], none),
                [e, f] => {
                    let corner = |de: isize, df: isize| {
                        [cell(&[(axis, -1), (e, de), (f, df)]), cell(&[(e, de), (f, df)])]
                    };
                    let corners = if third {
                        [corner(1, 1), corner(1, -1), corner(-1, 1), corner(-1, -1)]
                    } else {
                        none
                    };
                    go!(2, [cross(e), cross(f)], corners)
                }
                _ => unreachable!("a grid has at most three axes"),
            }
            array.close(self.domain, Place::Face(axis), &range, i, self.wrapped);
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
        let arrays = level.courant.as_ref().expect("a corrective pass has Courant numbers");
        let courant =
            self.axes(|axis| [run.at(of(&arrays[axis])), run.shifted(of(&arrays[axis]), &[(axis, 1)])]);
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
                let courant = $axes.map(|a: usize| courant[a]);
                if self.scheme.infinite_gauge {
                    vectors::limits::<T, $n, GAUGE>(v, start, psi, courant, out)
                } else {
                    vectors::limits::<T, $n, POSITIVE>(v, start, psi, courant, out)
                }
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
        let [up, down] = level.limits.as_ref().expect("limits are kept");
        let [up, down] = [up, down].map(|array| (&array.frame, array.elements()));
        let arrays = level.courant.as_mut().expect("a corrective pass has Courant numbers");
        for (axis, array) in arrays.iter_mut().enumerate() {
            let (Some(array), true) = (array, self.domain.has[axis]) else { continue };
            let range = self.range(Place::Face(axis), cells, by);
            let Some(run) = Run::of(&range, i, array.frame.row()) else { continue };
            let two = |limits| [run.shifted(limits, &[(axis, -1)]), run.at(limits)];
            let place = array.frame.at(run.at);
            let out = &mut array.elements_mut()[place..place + run.length];
            vectors::limit::<T>(Vectors::detect(), two(up), two(down), out);
            array.close(self.domain, Place::Face(axis), &range, i, self.wrapped);
        }
    }
}

//! The loops: each computes a run of elements from runs of the same length. Every element is computed by the
//! same operations in the same order, whatever the run, so that results do not depend on how a grid is cut.

use super::options::Advectable;

/// The background of the corrections' ratios.
pub(crate) const POSITIVE: u8 = 0;
/// The field may change its sign: magnitudes are in the denominators.
pub(crate) const SIGNED: u8 = 1;
/// A large constant background.
pub(crate) const GAUGE: u8 = 2;

/// Keeps denominators away from 0.
const TINY: f64 = 1e-15;

/// A face between two cells and what surrounds it, for a run of faces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faces<'a, T, const N: usize> {
    /// The cell before and the cell behind the face.
    pub(crate) cells: [&'a [T]; 2],
    /// The Courant number on it.
    pub(crate) courant: &'a [T],
    /// Along every other axis.
    pub(crate) cross: [Cross<'a, T>; N],
    /// For third order: the cells beyond the two cells.
    pub(crate) beyond: [&'a [T]; 2],
    /// For third order in three dimensions: the eight cells diagonally across, (before, behind) at (+, +),
    /// (+, -), (-, +), (-, -).
    pub(crate) corners: [[&'a [T]; 2]; 4],
}

/// What surrounds a face along another axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cross<'a, T> {
    /// The cells before and behind, one step up.
    pub(crate) up: [&'a [T]; 2],
    /// The cells before and behind, one step down.
    pub(crate) down: [&'a [T]; 2],
    /// The Courant numbers along that axis on the upper and lower faces of the two cells.
    pub(crate) courant: [&'a [T]; 4],
}

// The arrays below are short. Loops over them compile many times faster than closures passed to `map`, of
// which each use is a function of its own.

/// The first `n` elements of each run.
#[inline(always)]
fn cut<T, const K: usize>(mut runs: [&[T]; K], n: usize) -> [&[T]; K] {
    for run in &mut runs {
        *run = &run[..n];
    }
    runs
}

/// [`cut`] for two runs on each axis.
#[inline(always)]
fn cut_all<T, const K: usize, const N: usize>(mut runs: [[&[T]; K]; N], n: usize) -> [[&[T]; K]; N] {
    for two in &mut runs {
        *two = cut(*two, n);
    }
    runs
}

/// Element `x` of each run.
#[inline(always)]
fn at<T: Advectable, const K: usize>(runs: [&[T]; K], x: usize) -> [T; K] {
    let mut values = [T::ZERO; K];
    for (value, run) in values.iter_mut().zip(&runs) {
        *value = run[x];
    }
    values
}

/// [`at`] for the runs on each axis.
#[inline(always)]
fn at_all<T: Advectable, const K: usize, const N: usize>(runs: [[&[T]; K]; N], x: usize) -> [[T; K]; N] {
    let mut values = [[T::ZERO; K]; N];
    for (value, runs) in values.iter_mut().zip(&runs) {
        *value = at(*runs, x);
    }
    values
}

/// The flux of `courant` through a face, positive from `before` to `behind`: the upwind cell's value times
/// the Courant number.
#[inline(always)]
fn upwind<T: Advectable>(before: T, behind: T, courant: T) -> T {
    courant * if courant > T::ZERO { before } else { behind }
}

/// The first pass: psi minus the outflow through all faces. `around` holds the cells before and behind,
/// `courant` the Courant numbers on the lower and upper faces, by axis; with `UNIFORM` the same along each
/// run.
#[inline(always)]
pub(crate) fn advance<T: Advectable, const N: usize, const UNIFORM: bool>(
    psi: &[T],
    around: [[&[T]; 2]; N],
    courant: [[&[T]; 2]; N],
    out: &mut [T],
) {
    let n = out.len();
    let psi = &psi[..n];
    let around = cut_all(around, n);
    let courant = cut_all(courant, n);
    if UNIFORM && n > 0 {
        // The upwind cells are the same all along.
        let numbers = at_all(courant, 0);
        let mut sources = around;
        for (two, &[lower, upper]) in sources.iter_mut().zip(&numbers) {
            let [before, behind] = *two;
            *two = [if lower > T::ZERO { before } else { psi }, if upper > T::ZERO { psi } else { behind }];
        }
        let sources = cut_all(sources, n);
        for x in 0..n {
            let mut sum = psi[x];
            for axis in 0..N {
                let ([below, above], [lower, upper]) = (sources[axis], numbers[axis]);
                sum = sum - (upper * above[x] - lower * below[x]);
            }
            out[x] = sum;
        }
        return;
    }
    for x in 0..n {
        let here = psi[x];
        let mut sum = here;
        for axis in 0..N {
            let ([before, behind], [lower, upper]) = (around[axis], courant[axis]);
            sum = sum - (upwind(here, behind[x], upper[x]) - upwind(before[x], here, lower[x]));
        }
        out[x] = sum;
    }
}

/// A corrective pass: psi minus the outflow through all faces, by their fluxes.
#[inline(always)]
pub(crate) fn subtract<T: Advectable, const N: usize>(psi: &[T], fluxes: [[&[T]; 2]; N], out: &mut [T]) {
    let n = out.len();
    let psi = &psi[..n];
    let fluxes = cut_all(fluxes, n);
    for x in 0..n {
        let mut sum = psi[x];
        for [lower, upper] in fluxes {
            sum = sum - (upper[x] - lower[x]);
        }
        out[x] = sum;
    }
}

/// The fluxes of Courant numbers through the faces between cells.
#[inline(always)]
pub(crate) fn fluxes<T: Advectable>([before, behind]: [&[T]; 2], courant: &[T], out: &mut [T]) {
    let n = out.len();
    let (before, behind, courant) = (&before[..n], &behind[..n], &courant[..n]);
    for x in 0..n {
        out[x] = upwind(before[x], behind[x], courant[x]);
    }
}

/// The Courant numbers of a corrective pass, which carry back what the pass before diffused, or with `FLUX`
/// their fluxes; with `GAUGE` the two are the same. With `UNIFORM` the Courant numbers are the same along
/// runs.
#[inline(always)]
pub(crate) fn correct<
    T: Advectable,
    const N: usize,
    const KIND: u8,
    const THIRD: bool,
    const FLUX: bool,
    const UNIFORM: bool,
>(
    faces: &Faces<'_, T, N>,
    out: &mut [T],
) {
    let n = out.len();
    if n == 0 {
        return;
    }
    let [before, behind] = cut(faces.cells, n);
    let courant = &faces.courant[..n];
    let mut cross = faces.cross;
    let mut steady_cross = [[T::ZERO; 4]; N];
    for (around, steady) in cross.iter_mut().zip(&mut steady_cross) {
        let Cross { up, down, courant } = *around;
        *around = Cross { up: cut(up, n), down: cut(down, n), courant: cut(courant, n) };
        *steady = at(courant, 0);
    }
    let beyond = if THIRD { cut(faces.beyond, n) } else { faces.beyond };
    let corners = if THIRD && N == 2 { cut_all(faces.corners, n) } else { faces.corners };
    let steady = courant[0];
    let c = T::constant;
    let size = |x: T| if KIND == SIGNED { x.magnitude() } else { x };
    for x in 0..n {
        let (a, b) = (before[x], behind[x]);
        let here = if UNIFORM { steady } else { courant[x] };
        let speed = here.magnitude();
        // A sum of fractions: over one denominator where that is exact enough, as division is slow.
        let mut sum = Fractions::<T, KIND>::new((speed - here * here) * (b - a), size(a) + size(b), 2.0);
        let mut sums = [T::ZERO; N];
        let eighth = c(-0.125) * here;
        for e in 0..N {
            let around = cross[e];
            let [up_a, up_b] = at(around.up, x);
            let [down_a, down_b] = at(around.down, x);
            let [c0, c1, c2, c3] = if UNIFORM { steady_cross[e] } else { at(around.courant, x) };
            // Four times the mean.
            let four = (c0 + c1) + (c2 + c3);
            sums[e] = four;
            let mut weight = eighth * four * ((up_a + up_b) - (down_a + down_b));
            if THIRD {
                let mixed = (up_b - up_a) - (down_b - down_a);
                weight = weight + c(0.25) * four * (speed - c(2.0) * here * here) * mixed;
            }
            sum.add(weight, (size(up_a) + size(up_b)) + (size(down_a) + size(down_b)), 4.0);
        }
        let mut total = sum.value();
        if THIRD {
            let [far_a, far_b] = at(beyond, x);
            let curved = ((far_b - b) - a) + far_a;
            let cubic = (c(3.0) * here * speed - c(2.0) * here * here * here - here) * c(1.0 / 3.0);
            let around = (size(far_b) + size(b)) + (size(a) + size(far_a));
            total = total + Fractions::<T, KIND>::new(cubic * curved, around, 4.0).value();
            if N == 2 {
                let pair = |at: usize| corners[at][0][x] + corners[at][1][x];
                let sizes = |at: usize| size(corners[at][0][x]) + size(corners[at][1][x]);
                let mixed = (pair(0) - pair(1)) - (pair(2) - pair(3));
                let weight = c(-2.0 / 48.0) * here * sums[0] * sums[N - 1];
                let around = (sizes(0) + sizes(1)) + (sizes(2) + sizes(3));
                total = total + Fractions::<T, KIND>::new(weight * mixed, around, 8.0).value();
            }
        }
        out[x] = if FLUX && KIND != GAUGE { upwind(a, b, total) } else { total };
    }
}

/// A sum of fractions. With `GAUGE` the denominators are constants.
struct Fractions<T, const KIND: u8> {
    above: T,
    below: T,
}

impl<T: Advectable, const KIND: u8> Fractions<T, KIND> {
    #[inline(always)]
    fn new(above: T, below: T, gauge: f64) -> Self {
        if KIND == GAUGE {
            return Self { above: above * T::constant(1.0 / gauge), below };
        }
        let below = below + T::constant(TINY);
        if T::WIDE { Self { above, below } } else { Self { above: above / below, below } }
    }

    #[inline(always)]
    fn add(&mut self, above: T, below: T, gauge: f64) {
        let next = Self::new(above, below, gauge);
        if KIND == GAUGE || !T::WIDE {
            self.above = self.above + next.above;
        } else {
            self.above = self.above * next.below + next.above * self.below;
            self.below = self.below * next.below;
        }
    }

    #[inline(always)]
    fn value(&self) -> T {
        if KIND == GAUGE || !T::WIDE { self.above } else { self.above / self.below }
    }
}

/// The limits of the non-oscillatory option: the fractions of a cell's inflow and outflow, by the corrective
/// fluxes, that take it to the largest and the smallest value around it before the step and now. `start` is
/// the field before the step, as the cell and its neighbours by axis.
#[inline(always)]
pub(crate) fn limits<T: Advectable, const N: usize>(
    (start, start_around): (&[T], [[&[T]; 2]; N]),
    (psi, around): (&[T], [[&[T]; 2]; N]),
    fluxes: [[&[T]; 2]; N],
    (up, down): (&mut [T], &mut [T]),
) {
    let n = up.len();
    let (start, psi, down) = (&start[..n], &psi[..n], &mut down[..n]);
    let start_around = cut_all(start_around, n);
    let around = cut_all(around, n);
    let fluxes = cut_all(fluxes, n);
    for x in 0..n {
        let here = psi[x];
        let mut most = here.larger(start[x]);
        let mut least = here.smaller(start[x]);
        let (mut inflow, mut outflow) = (T::constant(TINY), T::constant(TINY));
        for axis in 0..N {
            let [before, behind] = at(around[axis], x);
            let [was_before, was_behind] = at(start_around[axis], x);
            most = most.larger(before.larger(behind)).larger(was_before.larger(was_behind));
            least = least.smaller(before.smaller(behind)).smaller(was_before.smaller(was_behind));
            let [lower, upper] = at(fluxes[axis], x);
            inflow = inflow + (lower.larger(T::ZERO) - upper.smaller(T::ZERO));
            outflow = outflow + (upper.larger(T::ZERO) - lower.smaller(T::ZERO));
        }
        if T::WIDE {
            // One division instead of two.
            let both = T::constant(1.0) / (inflow * outflow);
            up[x] = (most - here) * outflow * both;
            down[x] = (here - least) * inflow * both;
        } else {
            up[x] = (most - here) / inflow;
            down[x] = (here - least) / outflow;
        }
    }
}

/// The fraction of a face's flux that its cells admit, forwards and backwards. `up` and `down` are the limits
/// of the cells before and behind it.
#[inline(always)]
fn admitted<T: Advectable>(up: [T; 2], down: [T; 2], forwards: bool) -> T {
    let (from, to) = if forwards { (down[0], up[1]) } else { (down[1], up[0]) };
    T::constant(1.0).smaller(from.smaller(to))
}

/// A corrective pass: psi minus the limited outflow through all faces. `up` and `down` are the limits of the
/// cell and of its neighbours by axis. The same bits as [`limit`] and [`subtract`].
#[inline(always)]
pub(crate) fn subtract_limited<T: Advectable, const N: usize>(
    psi: &[T],
    fluxes: [[&[T]; 2]; N],
    (up, up_around): (&[T], [[&[T]; 2]; N]),
    (down, down_around): (&[T], [[&[T]; 2]; N]),
    out: &mut [T],
) {
    let n = out.len();
    let (psi, up, down) = (&psi[..n], &up[..n], &down[..n]);
    let [fluxes, up_around, down_around] =
        [cut_all(fluxes, n), cut_all(up_around, n), cut_all(down_around, n)];
    for x in 0..n {
        let mut sum = psi[x];
        for axis in 0..N {
            let [lower, upper] = at(fluxes[axis], x);
            let [up_before, up_behind] = at(up_around[axis], x);
            let [down_before, down_behind] = at(down_around[axis], x);
            let in_part = admitted([up_before, up[x]], [down_before, down[x]], lower > T::ZERO);
            let out_part = admitted([up[x], up_behind], [down[x], down_behind], upper > T::ZERO);
            sum = sum - (upper * out_part - lower * in_part);
        }
        out[x] = sum;
    }
}

/// Limits corrective fluxes, in place.
#[inline(always)]
pub(crate) fn limit<T: Advectable>(up: [&[T]; 2], down: [&[T]; 2], fluxes: &mut [T]) {
    let n = fluxes.len();
    let (up, down) = (cut(up, n), cut(down, n));
    for (x, flux) in fluxes.iter_mut().enumerate() {
        *flux = *flux * admitted(at(up, x), at(down, x), *flux > T::ZERO);
    }
}

/// Limits corrective fluxes and their Courant numbers, in place.
#[inline(always)]
pub(crate) fn limit_both<T: Advectable>(up: [&[T]; 2], down: [&[T]; 2], fluxes: &mut [T], courant: &mut [T]) {
    let n = fluxes.len();
    let (up, down, courant) = (cut(up, n), cut(down, n), &mut courant[..n]);
    for x in 0..n {
        let here = courant[x];
        let part = admitted(at(up, x), at(down, x), here > T::ZERO);
        courant[x] = here * part;
        fluxes[x] = fluxes[x] * part;
    }
}

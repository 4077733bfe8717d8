//! The loops: each computes a run of elements from runs of the same length. Every element is computed by the
//! same operations in the same order, whatever the run, so that results do not depend on how a grid is cut.

use super::number::Advectable;

/// The background of the corrections' ratios.
pub const POSITIVE: u8 = 0;
/// The field may change its sign: magnitudes are in the denominators.
pub const SIGNED: u8 = 1;
/// A large constant background.
pub const GAUGE: u8 = 2;

/// Keeps denominators away from 0.
const TINY: f64 = 1e-15;

/// A face between two cells and what surrounds it, for a run of faces.
#[derive(Debug, Clone, Copy)]
pub struct Faces<'a, T, const N: usize> {
    /// The cell before and the cell behind the face.
    pub cells: [&'a [T]; 2],
    /// The Courant number on it.
    pub courant: &'a [T],
    /// Along every other axis.
    pub cross: [Cross<'a, T>; N],
    /// For third order: the cells beyond the two cells.
    pub beyond: [&'a [T]; 2],
    /// For third order in three dimensions: the eight cells diagonally across, (before, behind) at (+, +),
    /// (+, -), (-, +), (-, -).
    pub corners: [[&'a [T]; 2]; 4],
}

/// What surrounds a face along another axis.
#[derive(Debug, Clone, Copy)]
pub struct Cross<'a, T> {
    /// The cells before and behind, one step up.
    pub up: [&'a [T]; 2],
    /// The cells before and behind, one step down.
    pub down: [&'a [T]; 2],
    /// The Courant numbers along that axis on the upper and lower faces of the two cells.
    pub courant: [&'a [T]; 4],
}

/// The flux of `courant` through a face, positive from `before` to `behind`: the upwind cell's value times
/// the Courant number.
#[inline(always)]
fn flux<T: Advectable>(before: T, behind: T, courant: T) -> T {
    courant.larger(T::ZERO) * before + courant.smaller(T::ZERO) * behind
}

/// A pass: psi minus the outflow through all faces; with `GAUGE` the Courant numbers are the fluxes. `around`
/// holds the cells before and behind, `courant` the Courant numbers on the lower and upper faces, by axis.
#[inline(always)]
pub fn advance<T: Advectable, const N: usize, const KIND: u8>(
    psi: &[T],
    around: [[&[T]; 2]; N],
    courant: [[&[T]; 2]; N],
    out: &mut [T],
) {
    let n = out.len();
    let psi = &psi[..n];
    let around = around.map(|two| two.map(|run| &run[..n]));
    let courant = courant.map(|two| two.map(|run| &run[..n]));
    for x in 0..n {
        let here = psi[x];
        let mut sum = here;
        for axis in 0..N {
            let ([before, behind], [lower, upper]) = (around[axis], courant[axis]);
            let outflow = if KIND == GAUGE {
                upper[x] - lower[x]
            } else {
                flux(here, behind[x], upper[x]) - flux(before[x], here, lower[x])
            };
            sum = sum - outflow;
        }
        out[x] = sum;
    }
}

/// The Courant numbers of a corrective pass: they carry back what the pass before diffused.
#[inline(always)]
pub fn correct<T: Advectable, const N: usize, const KIND: u8, const THIRD: bool>(
    faces: &Faces<'_, T, N>,
    out: &mut [T],
) {
    let n = out.len();
    let [before, behind] = faces.cells.map(|run| &run[..n]);
    let courant = &faces.courant[..n];
    let cross = faces.cross.map(|c| Cross {
        up: c.up.map(|run| &run[..n]),
        down: c.down.map(|run| &run[..n]),
        courant: c.courant.map(|run| &run[..n]),
    });
    let beyond = if THIRD { faces.beyond.map(|run| &run[..n]) } else { faces.beyond };
    let corners =
        if THIRD && N == 2 { faces.corners.map(|two| two.map(|run| &run[..n])) } else { faces.corners };
    let c = T::constant;
    let size = |x: T| if KIND == SIGNED { x.magnitude() } else { x };
    for x in 0..n {
        let (a, b, here) = (before[x], behind[x], courant[x]);
        let speed = here.magnitude();
        // A sum of fractions: over one denominator where that is exact enough, as division is slow.
        let mut sum = Fractions::<T, KIND>::new((speed - here * here) * (b - a), size(a) + size(b), 2.0);
        let mut means = [T::ZERO; N];
        for e in 0..N {
            let around = cross[e];
            let [up_a, up_b] = around.up.map(|run| run[x]);
            let [down_a, down_b] = around.down.map(|run| run[x]);
            let [c0, c1, c2, c3] = around.courant.map(|run| run[x]);
            let mean = ((c0 + c1) + (c2 + c3)) * c(0.25);
            means[e] = mean;
            let mut weight = c(-0.5) * (here * mean) * ((up_a + up_b) - (down_a + down_b));
            if THIRD {
                let mixed = (up_b - up_a) - (down_b - down_a);
                weight = weight + mean * (speed - c(2.0) * here * here) * mixed;
            }
            sum.add(weight, (size(up_a) + size(up_b)) + (size(down_a) + size(down_b)), 4.0);
        }
        let mut total = sum.value();
        if THIRD {
            let [far_a, far_b] = beyond.map(|run| run[x]);
            let curved = ((far_b - b) - a) + far_a;
            let cubic = (c(3.0) * here * speed - c(2.0) * here * here * here - here) * c(1.0 / 3.0);
            let around = (size(far_b) + size(b)) + (size(a) + size(far_a));
            total = total + Fractions::<T, KIND>::new(cubic * curved, around, 4.0).value();
            if N == 2 {
                let pair = |at: usize| corners[at][0][x] + corners[at][1][x];
                let sizes = |at: usize| size(corners[at][0][x]) + size(corners[at][1][x]);
                let mixed = (pair(0) - pair(1)) - (pair(2) - pair(3));
                let weight = c(-2.0 / 3.0) * here * means[0] * means[N - 1];
                let around = (sizes(0) + sizes(1)) + (sizes(2) + sizes(3));
                total = total + Fractions::<T, KIND>::new(weight * mixed, around, 8.0).value();
            }
        }
        out[x] = total;
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
/// Courant numbers, that take it to the largest and the smallest value around it before the step and now.
/// `start` is the field before the step, as the cell and its neighbours by axis.
#[inline(always)]
pub fn limits<T: Advectable, const N: usize, const KIND: u8>(
    (start, start_around): (&[T], [[&[T]; 2]; N]),
    (psi, around): (&[T], [[&[T]; 2]; N]),
    courant: [[&[T]; 2]; N],
    (up, down): (&mut [T], &mut [T]),
) {
    let n = up.len();
    let (start, psi, down) = (&start[..n], &psi[..n], &mut down[..n]);
    let start_around = start_around.map(|two| two.map(|run| &run[..n]));
    let around = around.map(|two| two.map(|run| &run[..n]));
    let courant = courant.map(|two| two.map(|run| &run[..n]));
    for x in 0..n {
        let here = psi[x];
        let mut most = here.larger(start[x]);
        let mut least = here.smaller(start[x]);
        let (mut inflow, mut outflow) = (T::constant(TINY), T::constant(TINY));
        for axis in 0..N {
            let [before, behind] = around[axis].map(|run| run[x]);
            let [was_before, was_behind] = start_around[axis].map(|run| run[x]);
            most = most.larger(before.larger(behind)).larger(was_before.larger(was_behind));
            least = least.smaller(before.smaller(behind)).smaller(was_before.smaller(was_behind));
            let [lower, upper] = courant[axis].map(|run| run[x]);
            let (lower, upper) = if KIND == GAUGE {
                (lower, upper)
            } else {
                (flux(before, here, lower), flux(here, behind, upper))
            };
            inflow = inflow + (lower.larger(T::ZERO) - upper.smaller(T::ZERO));
            outflow = outflow + (upper.larger(T::ZERO) - lower.smaller(T::ZERO));
        }
        up[x] = (most - here) / inflow;
        down[x] = (here - least) / outflow;
    }
}

/// Limits corrective Courant numbers, in place. `up` and `down` are the limits of the cells before and
/// behind the faces.
#[inline(always)]
pub fn limit<T: Advectable>(up: [&[T]; 2], down: [&[T]; 2], courant: &mut [T]) {
    let n = courant.len();
    let (up, down) = (up.map(|run| &run[..n]), down.map(|run| &run[..n]));
    let one = T::constant(1.0);
    for x in 0..n {
        let forwards = one.smaller(down[0][x].smaller(up[1][x]));
        let backwards = one.smaller(up[0][x].smaller(down[1][x]));
        let here = courant[x];
        courant[x] = here.larger(T::ZERO) * forwards + here.smaller(T::ZERO) * backwards;
    }
}

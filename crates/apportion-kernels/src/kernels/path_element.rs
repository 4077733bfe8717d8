//! Paths that remember their last step: an element of max-plus or min-plus together with the vertex before
//! the end. Every engine, flow and layout therefore finds predecessors in the same way as distances.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::kernels::has;
use crate::kernels::view::check_shapes;
use crate::kernels::{Team, Tropical, View, ViewMut};
use crate::matrix::Element;
use std::fmt;

/// The length of a path, its number of edges, and the vertex before its end.
///
/// Ordered by length first. Among equal lengths fewer edges are better, then the smaller vertex. The product
/// of two paths adds lengths and edges, and takes the last step of the second path unless that is empty. With
/// the better of two paths as the sum this makes a semiring. Following `last` from vertex to vertex removes
/// one edge at each step, so that no chain closes a cycle of length 0. The empty path has no edges and ends
/// where it begins. An absent path has the semiring's zero as its length and no edges.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
#[repr(C)]
pub struct PathElement<T> {
    /// The path's length.
    pub length: T,
    /// Edges on it.
    pub edges: u32,
    /// The vertex before its end; 0 where there is no edge.
    pub last: u32,
}

impl<T: Tropical> PathElement<T> {
    /// No path.
    pub(in crate::kernels) fn absent<const MIN: bool>() -> Self {
        Self { length: T::zero::<MIN>(), edges: 0, last: 0 }
    }

    /// The empty path.
    pub(in crate::kernels) fn empty() -> Self {
        Self { length: T::NOUGHT, edges: 0, last: 0 }
    }

    /// One path after the other.
    pub(in crate::kernels) fn times<const MIN: bool>(self, then: Self) -> Self {
        let length = self.length.times::<MIN>(then.length);
        if length == T::zero::<MIN>() {
            return Self::absent::<MIN>();
        }
        let last = if then.edges == 0 { self.last } else { then.last };
        Self { length, edges: self.edges + then.edges, last }
    }

    /// The better of two paths.
    pub(in crate::kernels) fn over<const MIN: bool>(self, other: Self) -> Self {
        let shorter = if MIN { self.length < other.length } else { self.length > other.length };
        let simpler = self.length == other.length && self.step() < other.step();
        if shorter || simpler { self } else { other }
    }

    /// Edges and last vertex as one number, which distinguishes paths of equal length.
    fn step(self) -> u64 {
        u64::from(self.edges) << 32 | u64::from(self.last)
    }
}

impl<T: fmt::Display> fmt::Display for PathElement<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} edges past {}", self.length, self.edges, self.last)
    }
}

macro_rules! element {
    ($number:ident, $name:literal) => {
        // SAFETY: all bits 0 are a number of T and two of u32.
        unsafe impl bytemuck::Zeroable for PathElement<$number> {}
        // SAFETY: repr(C) of a number of 4 or 8 bytes and twice 4 bytes has no padding, and every bit pattern
        // is valid.
        unsafe impl bytemuck::Pod for PathElement<$number> {}

        impl Element for PathElement<$number> {
            const NAME: &'static str = $name;
            const DESCR: &'static str = "|V";
            const EPSILON: f64 = <$number as Element>::EPSILON;
            const TINY: f64 = <$number as Element>::TINY;
            const LARGEST: f64 = <$number as Element>::LARGEST;
            const ZERO: Self = Self { length: <$number as Element>::ZERO, edges: 0, last: 0 };

            fn to_f64(self) -> f64 {
                self.length.to_f64()
            }

            fn from_f64(value: f64) -> Self {
                Self { length: <$number>::from_f64(value), edges: 1, last: 0 }
            }
        }
    };
}

element!(f64, "f64-paths");
element!(f32, "f32-paths");
element!(i64, "i64-paths");
element!(i32, "i32-paths");

/// Number of columns processed together.
const WIDE: usize = 32;
/// The bits of [`PathElement::step`] that count edges.
const EDGES: u64 = !0 << 32;

/// A strip of B: lengths, the part of the first path's step to keep, and the step to add.
struct Strip<T> {
    lengths: Vec<[T; WIDE]>,
    mask: Vec<[u64; WIDE]>,
    added: Vec<[u64; WIDE]>,
}

/// C := the better of C and A B over paths, by the threads of a team: each packs the strips of B whose columns of C it
/// takes. 2 m n k operations on lengths, and the same number on steps.
pub(in crate::kernels) fn paths_product<T: Tropical, const MIN: bool>(
    a: View<PathElement<T>>,
    b: View<PathElement<T>>,
    c: ViewMut<PathElement<T>>,
    team: &dyn Team,
) where
    PathElement<T>: Element,
{
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let strips = n.div_ceil(WIDE);
    // Strips that are fewer than the threads are cut.
    let cuts =
        if team.threads() == 1 { 1 } else { (4 * team.threads()).div_ceil(strips.max(1)).min(m.max(1)) };
    team.share(strips * cuts, &|units| {
        for unit in units {
            let (first, cut) = (unit / cuts * WIDE, unit % cuts);
            let rows = cut * m / cuts..(cut + 1) * m / cuts;
            let wide = WIDE.min(n - first);
            // SAFETY: a team passes each unit once, and C is borrowed until all are done.
            let c = unsafe { c.part(rows.start, first, rows.len(), wide) };
            columns::<T, MIN>(a.tile(rows.start, 0, rows.len(), k), b.tile(0, first, k, wide), c);
        }
    });
}

/// The product on one thread.
fn columns<T: Tropical, const MIN: bool>(
    a: View<PathElement<T>>,
    b: View<PathElement<T>>,
    c: ViewMut<PathElement<T>>,
) {
    #[cfg(target_arch = "x86_64")]
    if has!(Avx512: "avx512f", "avx512dq") {
        // SAFETY: the feature was just detected.
        return unsafe { avx512::<T, MIN>(a, b, c) };
    } else if has!(Avx2: "avx2") {
        // SAFETY: the feature was just detected.
        return unsafe { avx2::<T, MIN>(a, b, c) };
    }
    body::<T, MIN>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn avx512<T: Tropical, const MIN: bool>(
    a: View<PathElement<T>>,
    b: View<PathElement<T>>,
    c: ViewMut<PathElement<T>>,
) {
    body::<T, MIN>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<T: Tropical, const MIN: bool>(
    a: View<PathElement<T>>,
    b: View<PathElement<T>>,
    c: ViewMut<PathElement<T>>,
) {
    body::<T, MIN>(a, b, c);
}

#[inline(always)]
fn body<T: Tropical, const MIN: bool>(
    a: View<PathElement<T>>,
    b: View<PathElement<T>>,
    mut c: ViewMut<PathElement<T>>,
) {
    check_shapes(&a, &b, &c);
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let absent = PathElement::<T>::absent::<MIN>();
    let mut strip = Strip { lengths: Vec::new(), mask: Vec::new(), added: Vec::new() };
    for first in (0..n).step_by(WIDE) {
        let wide = WIDE.min(n - first);
        strip.lengths.clear();
        strip.mask.clear();
        strip.added.clear();
        for p in 0..k {
            let row = &b.row(p)[first..first + wide];
            let at = |j: usize| *row.get(j).unwrap_or(&absent);
            strip.lengths.push(std::array::from_fn(|j| at(j).length));
            // After an empty path the first path's step stays.
            strip.mask.push(std::array::from_fn(|j| if at(j).edges == 0 { !0 } else { EDGES }));
            strip.added.push(std::array::from_fn(|j| at(j).step()));
        }
        for i in 0..m {
            let row = &mut c.row(i)[first..first + wide];
            let at = |j: usize| *row.get(j).unwrap_or(&absent);
            let mut lengths: [T; WIDE] = std::array::from_fn(|j| at(j).length);
            let mut steps: [u64; WIDE] = std::array::from_fn(|j| at(j).step());
            for (p, path) in a.row(i).iter().enumerate() {
                better::<T, MIN>(&mut lengths, &mut steps, *path, &strip, p);
            }
            for ((to, length), step) in row.iter_mut().zip(lengths).zip(steps) {
                *to = PathElement { length, edges: (step >> 32) as u32, last: step as u32 };
            }
        }
    }
}

/// One path followed by those of a strip; branch-free, so that it vectorizes.
#[inline(always)]
fn better<T: Tropical, const MIN: bool>(
    lengths: &mut [T; WIDE],
    steps: &mut [u64; WIDE],
    path: PathElement<T>,
    strip: &Strip<T>,
    p: usize,
) {
    let (seconds, mask, added) = (&strip.lengths[p], &strip.mask[p], &strip.added[p]);
    let before = path.step();
    for j in 0..WIDE {
        let sum = path.length.times::<MIN>(seconds[j]);
        let step = (before & mask[j]) + added[j];
        let shorter = if MIN { sum < lengths[j] } else { sum > lengths[j] };
        // An absent path has step 0, which is the minimum.
        let simpler = (sum == lengths[j]) & (step < steps[j]);
        let choose = shorter | simpler;
        lengths[j] = if choose { sum } else { lengths[j] };
        steps[j] = if choose { step } else { steps[j] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Alone;
    use crate::random::Random;
    use proptest::prelude::*;

    fn paths<const MIN: bool>(count: usize, seed: u64) -> Vec<PathElement<i64>> {
        let mut random = Random::new(seed);
        let mut next = |below: usize| random.below(below);
        (0..count)
            .map(|_| match next(6) {
                0 => PathElement::absent::<MIN>(),
                1 => PathElement::empty(),
                _ => PathElement {
                    length: next(5) as i64 - 2,
                    edges: 1 + next(3) as u32,
                    last: next(9) as u32,
                },
            })
            .collect()
    }

    fn times<const MIN: bool>(
        a: &[PathElement<i64>],
        b: &[PathElement<i64>],
        [m, k, n]: [usize; 3],
    ) -> Vec<PathElement<i64>> {
        let mut c = vec![PathElement::absent::<MIN>(); m * n];
        let (a, b, view) = (View::dense(a, m, k), View::dense(b, k, n), ViewMut::dense(&mut c, m, n));
        paths_product::<i64, MIN>(a, b, view, &Alone);
        c
    }

    fn check<const MIN: bool>([m, k, n, l]: [usize; 4], seed: u64) {
        let (a, b, c) =
            (paths::<MIN>(m * k, seed), paths::<MIN>(k * n, seed + 1), paths::<MIN>(n * l, seed + 2));
        let product = times::<MIN>(&a, &b, [m, k, n]);
        for (at, &found) in product.iter().enumerate() {
            let pairs = (0..k).map(|p| a[at / n * k + p].times::<MIN>(b[p * n + at % n]));
            let wanted = pairs.fold(PathElement::absent::<MIN>(), |best, path| path.over::<MIN>(best));
            assert_eq!(found, wanted, "({}, {}) of {m} x {k} x {n}", at / n, at % n);
        }
        let left = times::<MIN>(&product, &c, [m, n, l]);
        let right = times::<MIN>(&a, &times::<MIN>(&b, &c, [k, n, l]), [m, k, l]);
        assert_eq!(left, right, "associative");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn products_are_those_of_the_definition(
            shape in [1usize..9, 1usize..40, 1usize..70, 1usize..9], seed in 0u64..1 << 40,
        ) {
            check::<true>(shape, seed);
            check::<false>(shape, seed);
        }
    }

    #[test]
    fn infinities_and_extremes_stay_absent() {
        let far = PathElement::<f64>::absent::<true>();
        let mut c = [far];
        let (a, b) = ([far, PathElement { length: 1.0, edges: 1, last: 3 }], [PathElement::empty(), far]);
        let (a, b) = (View::dense(&a, 1, 2), View::dense(&b, 2, 1));
        paths_product::<f64, true>(a, b, ViewMut::dense(&mut c, 1, 1), &Alone);
        assert_eq!(c, [far]);
    }
}

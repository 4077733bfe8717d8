//! The laws of the tropical products.

use super::*;
use crate::kernels::packed::MicroKernel;
use crate::random::Random;
use proptest::prelude::*;

/// The product on one thread.
fn product<T: Tropical, const MIN: bool>(a: View<T>, b: View<T>, c: ViewMut<T>) {
    tropical_together::<T, MIN>(a, b, c, &Alone);
}

/// Elements to test with: mostly small numbers, some zeros of the semiring.
trait Sample: Tropical {
    fn sample<const MIN: bool>(random: &mut Random) -> Self;
    fn bits(self) -> u64;
}

macro_rules! sample {
    ($number:ident, $make:expr, $bits:expr) => {
        impl Sample for $number {
            fn sample<const MIN: bool>(random: &mut Random) -> Self {
                match random.below(10) {
                    0 => Self::zero::<MIN>(),
                    1 => $make(0.0) * $make(-1.0),
                    _ => $make(random.below(2_000_001) as f64 / 1e3 - 1e3),
                }
            }
            fn bits(self) -> u64 {
                $bits(self)
            }
        }
    };
}
sample!(f64, |x: f64| x, f64::to_bits);
sample!(f32, |x: f64| x as f32, |x: f32| x.to_bits().into());
sample!(i64, |x: f64| x as i64, |x: i64| x as u64);
sample!(i32, |x: f64| x as i32, |x: i32| x as u32 as u64);

fn samples<T: Sample, const MIN: bool>(n: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..n).map(|_| T::sample::<MIN>(&mut random)).collect()
}

/// A, B and C with strides beyond their widths.
struct Case<T> {
    shape: [usize; 3],
    strides: [usize; 3],
    data: [Vec<T>; 3],
}

impl<T: Sample> Case<T> {
    fn new<const MIN: bool>([m, n, k]: [usize; 3], slack: usize) -> Self {
        let strides = [k + slack, n + 2 * slack, n + 3 * slack];
        let lengths = [m * strides[0], k * strides[1], m * strides[2]];
        let data = [0, 1, 2].map(|i| samples::<T, MIN>(lengths[i], (m * 31 + n * 17 + k * 7 + i) as u64));
        Self { shape: [m, n, k], strides, data }
    }

    /// The bits of C's memory, slack included, after an operation on (A, B, C).
    fn after(&self, operation: impl FnOnce(View<T>, View<T>, ViewMut<T>)) -> Vec<u64> {
        let ([m, n, k], [a, b, c]) = (self.shape, &self.data);
        let mut c = c.clone();
        operation(
            View::new(a, m, k, self.strides[0]),
            View::new(b, k, n, self.strides[1]),
            ViewMut::new(&mut c, m, n, self.strides[2]),
        );
        c.into_iter().map(T::bits).collect()
    }
}

/// The product by one of the processor's micro-kernels.
fn by<T: Tropical>(tile: &MicroKernel<T>, a: View<T>, b: View<T>, c: ViewMut<T>) -> bool {
    // SAFETY: `Element::tiles` offers only tiles that the processor supports.
    unsafe { tile.product(a, b, c) }
}

/// The definition, element by element.
fn by_definition<T: Tropical, const MIN: bool>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
    for i in 0..a.rows() {
        for j in 0..b.cols() {
            for p in 0..a.cols() {
                let (x, y, old) = (a.row(i)[p], b.row(p)[j], c.row(i)[j]);
                let zero = T::zero::<MIN>();
                let sum = if x == zero || y == zero { zero } else { x.times::<MIN>(y) };
                let better = if MIN { sum < old } else { sum > old };
                c.row(i)[j] = if better { sum } else { old };
            }
        }
    }
}

const SHAPES: [[usize; 3]; 22] = [
    [0, 3, 2],
    [3, 0, 2],
    [3, 2, 0],
    [0, 0, 0],
    [1, 1, 1],
    [1, 7, 1],
    [7, 1, 5],
    [1, 97, 200],
    [97, 1, 200],
    [2, 3, 1],
    [5, 11, 13],
    [8, 24, 17],
    [8, 48, 3],
    [6, 8, 192],
    [9, 25, 193],
    [7, 23, 191],
    [16, 48, 385],
    [17, 49, 2],
    [31, 37, 41],
    [61, 67, 71],
    [13, 101, 409],
    [103, 53, 29],
];

fn equals_the_definition<T: Sample, const MIN: bool>() {
    for (shape, slack) in SHAPES.into_iter().flat_map(|shape| [(shape, 0), (shape, 3)]) {
        let case = Case::<T>::new::<MIN>(shape, slack);
        let expected = case.after(by_definition::<T, MIN>);
        assert_eq!(case.after(product::<T, MIN>), expected, "{shape:?}");
        assert_eq!(case.after(saturating::<T, MIN>), expected, "{shape:?}, saturating");
        for tile in T::tiles::<MIN>() {
            let found = case.after(|a, b, c| assert!(by(&tile, a, b, c)));
            assert_eq!(found, expected, "{shape:?} by {}", tile.name());
        }
    }
}

#[test]
fn max_plus_equals_its_definition_on_every_instruction_set() {
    equals_the_definition::<f64, false>();
    equals_the_definition::<f32, false>();
    equals_the_definition::<i64, false>();
    equals_the_definition::<i32, false>();
}

#[test]
fn min_plus_equals_its_definition_on_every_instruction_set() {
    equals_the_definition::<f64, true>();
    equals_the_definition::<f32, true>();
    equals_the_definition::<i64, true>();
    equals_the_definition::<i32, true>();
}

#[test]
fn many_blocks_in_every_dimension() {
    // A block of A holds 170 rows of f64, one of B 1365 columns.
    for shape in [[530, 30, 400], [10, 4110, 20]] {
        let case = Case::<f64>::new::<true>(shape, 1);
        assert_eq!(case.after(product::<f64, true>), case.after(by_definition::<f64, true>), "{shape:?}");
    }
}

#[test]
fn the_best_instruction_set_is_listed_first_and_the_portable_last() {
    let names: Vec<&str> = f64::tiles::<false>().iter().map(|t| t.name()).collect();
    assert_eq!(names.last(), Some(&"portable"));
    assert_eq!(instruction_set(), names[0]);
    #[cfg(target_arch = "x86_64")]
    {
        use crate::kernels::has;
        assert_eq!(names.contains(&"AVX2"), has!(Avx2: "avx2", "fma"));
        assert_eq!(names[0] == "AVX-512", has!(Avx512: "avx512f"));
    }
}

#[test]
fn the_zero_absorbs_even_the_opposite_infinity() {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    for tile in f64::tiles::<false>() {
        let mut c = [low];
        let (a, b) = ([low, high], [high, low]);
        let (a, b) = (View::dense(&a, 1, 2), View::dense(&b, 2, 1));
        assert!(by(&tile, a, b, ViewMut::dense(&mut c, 1, 1)));
        assert_eq!(c, [low], "{}", tile.name());
    }
}

#[test]
fn large_integers_saturate_and_their_zeros_absorb() {
    let a = [i32::MAX, i32::MIN, i32::MIN + 1, 5];
    let b = [i32::MAX, i32::MAX, -7, i32::MIN];
    let times = |x: i32, y: i32| {
        let mut c = [i32::MIN];
        max_plus(View::dense(&[x], 1, 1), View::dense(&[y], 1, 1), ViewMut::dense(&mut c, 1, 1));
        c[0]
    };
    let found: Vec<i32> = a.iter().zip(b).map(|(&x, y)| times(x, y)).collect();
    assert_eq!(found, [i32::MAX, i32::MIN, i32::MIN, i32::MIN]);
    let mut c = [i64::MAX];
    min_plus(
        View::dense(&[i64::MAX, i64::MIN + 2], 1, 2),
        View::dense(&[i64::MIN, -9], 2, 1),
        ViewMut::dense(&mut c, 1, 1),
    );
    assert_eq!(c, [i64::MIN]);
}

/// An integer that is too large, far inside A or B: the work done before it is found has no effect.
#[test]
fn a_late_large_integer_changes_the_way_and_not_the_result() {
    for wild in [0, 1] {
        let mut case = Case::<i32>::new::<true>([20, 30, 800], 1);
        let last = case.data[wild].len() - 40;
        case.data[wild][last] = i32::MIN + 7;
        assert_eq!(case.after(product::<i32, true>), case.after(saturating::<i32, true>));
    }
}

#[test]
fn the_largest_tame_integers_are_told_from_zeros() {
    fn check<T: Sample, const MIN: bool>(tame: [T; 2]) {
        let zero = T::zero::<MIN>();
        let of = |x: T| [(x, tame[0]), (x, tame[1]), (x, zero), (zero, x)];
        for (x, y) in tame.into_iter().chain([zero]).flat_map(of) {
            for tile in T::tiles::<MIN>() {
                let (a, b, mut c) = ([x], [y], [zero]);
                let one = |x| View::dense(x, 1, 1);
                let c_view = ViewMut::dense(&mut c, 1, 1);
                assert!(by(&tile, one(&a), one(&b), c_view));
                assert_eq!(c, [x.times::<MIN>(y)], "{x:?} + {y:?} by {}", tile.name());
            }
        }
    }
    let tame = i32::REACH / 2;
    check::<i32, false>([tame, -tame]);
    check::<i32, true>([tame, -tame]);
    let tame = i64::REACH / 2;
    check::<i64, false>([tame, -tame]);
    check::<i64, true>([tame, -tame]);
}

/// One integer, at any place of A or B, at and beyond either bound, among zeros and the largest tame ones.
#[test]
fn an_integer_too_large_is_found_at_any_place() {
    fn check<T: Sample, const MIN: bool>([least, greatest]: [T; 2], too_large: [T; 3]) {
        // Whole strips, a narrow one, and columns that the transposition leaves over.
        let [m, k, n] = [9, 11, 50];
        let sound = [T::zero::<MIN>(), least, greatest, T::NOUGHT];
        let fill = |length: usize| (0..length).map(|i| sound[i % 4]).collect::<Vec<T>>();
        for tile in T::tiles::<MIN>() {
            let is_done = |a: &[T], b: &[T]| {
                let mut c = vec![T::NOUGHT; m * n];
                by(&tile, View::dense(a, m, k), View::dense(b, k, n), ViewMut::dense(&mut c, m, n))
            };
            let (mut a, mut b) = (fill(m * k), fill(k * n));
            assert!(is_done(&a, &b), "{}", tile.name());
            for wild in too_large {
                for at in 0..m * k {
                    let old = std::mem::replace(&mut a[at], wild);
                    assert!(!is_done(&a, &b), "{wild:?} at {at} of A by {}", tile.name());
                    a[at] = old;
                }
                for at in 0..k * n {
                    let old = std::mem::replace(&mut b[at], wild);
                    assert!(!is_done(&a, &b), "{wild:?} at {at} of B by {}", tile.name());
                    b[at] = old;
                }
            }
        }
    }
    let most = i32::REACH / 2;
    check::<i32, false>([-most, most], [most + 1, -most - 1, i32::MAX]);
    check::<i32, true>([-most, most], [most + 1, -most - 1, i32::MIN]);
    let most = i64::REACH / 2;
    check::<i64, false>([-most, most], [most + 1, -most - 1, i64::MAX]);
    check::<i64, true>([-most, most], [most + 1, -most - 1, i64::MIN]);
}

#[test]
fn checks_name_the_first_place() {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(check_max_plus(&[0.0, low, 3.0]), Ok(()));
    assert_eq!(check_max_plus(&[0.0, high, f64::NAN]), Err(1));
    assert_eq!(check_max_plus(&[0.0, f64::NAN, high]), Err(1));
    assert_eq!(check_min_plus(&[0.0, high, 3.0]), Ok(()));
    assert_eq!(check_min_plus(&[0.0, 1.0, low]), Err(2));
    assert_eq!(check_min_plus(&[f32::NAN]), Err(0));
    assert_eq!(check_min_plus(&[i32::MIN, i32::MAX]), Ok(()));
}

#[test]
#[should_panic(expected = "fit")]
fn shapes_that_do_not_fit_are_refused() {
    let a = [0.0; 6];
    max_plus(View::dense(&a, 2, 3), View::dense(&a, 2, 3), ViewMut::dense(&mut [0.0; 6], 2, 3));
}

/// A dense product from zero.
fn times<const MIN: bool>(a: &[i32], b: &[i32], [m, n, k]: [usize; 3]) -> Vec<i32> {
    let mut c = vec![i32::zero::<MIN>(); m * n];
    product::<i32, MIN>(View::dense(a, m, k), View::dense(b, k, n), ViewMut::dense(&mut c, m, n));
    c
}

fn laws<const MIN: bool>([m, n, k, l]: [usize; 4], seed: u64) {
    let a = samples::<i32, MIN>(m * k, seed);
    let b = samples::<i32, MIN>(k * l, seed + 1);
    let b2 = samples::<i32, MIN>(k * l, seed + 2);
    let c = samples::<i32, MIN>(l * n, seed + 3);
    let left = times::<MIN>(&times::<MIN>(&a, &b, [m, l, k]), &c, [m, n, l]);
    let right = times::<MIN>(&a, &times::<MIN>(&b, &c, [k, n, l]), [m, n, k]);
    assert_eq!(left, right, "associative");
    let sum: Vec<i32> = b.iter().zip(&b2).map(|(x, &y)| x.over::<MIN>(y)).collect();
    let each = times::<MIN>(&a, &b2, [m, l, k]);
    let parts = times::<MIN>(&a, &b, [m, l, k]);
    let parts: Vec<i32> = parts.iter().zip(&each).map(|(x, &y)| x.over::<MIN>(y)).collect();
    assert_eq!(times::<MIN>(&a, &sum, [m, l, k]), parts, "distributive");
    let mut identity = vec![i32::zero::<MIN>(); k * k];
    identity.iter_mut().step_by(k + 1).for_each(|x| *x = 0);
    assert_eq!(times::<MIN>(&a, &identity, [m, k, k]), a, "the identity on the right");
    assert_eq!(times::<MIN>(&identity, &b, [k, l, k]), b, "the identity on the left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn semiring_laws(shape in [1usize..30, 1usize..30, 1usize..30, 1usize..30], seed in 0u64..1 << 40) {
        laws::<false>(shape, seed);
        laws::<true>(shape, seed);
    }
}

//! A team gives every element the bytes that one thread gives it.

use super::*;
use crate::kernels::{Blas, Kernel, PathElement, Semiring, View};
use crate::matrix::Element;
use crate::random::Random;

/// Elements of C outside the view, which nobody may touch, are of this byte.
const SLACK: usize = 3;

/// Shapes m x k x n: none of a side, fewer rows than threads, primes, more than one block of A (1,365 rows of f64),
/// depths and panels of B (5,461 columns of f64).
const SHAPES: [[usize; 3]; 12] = [
    [0, 5, 4],
    [5, 0, 4],
    [3, 4, 0],
    [1, 1, 1],
    [2, 700, 300],
    [5, 401, 331],
    [67, 101, 71],
    [64, 64, 64],
    [211, 397, 89],
    [1500, 390, 30],
    [9, 385, 5600],
    [401, 1, 800],
];

fn check<T: Element>(kernel: Kernel<T>, value: impl Fn(&mut Random) -> T) {
    // Under Miri a multiply-add takes a millisecond.
    let shapes = if cfg!(miri) { &SHAPES[..4] } else { &SHAPES[..] };
    for &[m, k, n] in shapes {
        let mut random = Random::new((m * 31 + k * 7 + n) as u64);
        let mut filled = |length: usize| -> Vec<T> { (0..length).map(|_| value(&mut random)).collect() };
        let (lda, ldb, ldc) = (k + SLACK, n + 1, n + SLACK);
        let (a, b, before) = (filled(m * lda), filled(k * ldb), filled(m * ldc));
        let after = |team: &dyn Team| -> Vec<u8> {
            let mut c = before.clone();
            let (a, b) = (View::new(&a, m, k, lda), View::new(&b, k, n, ldb));
            kernel.update_together(a, b, ViewMut::new(&mut c, m, n, ldc), team);
            bytemuck::cast_slice(&c).to_vec()
        };
        let right = after(&Alone);
        for threads in [1, 2, 3, 7] {
            assert!(
                after(&Threads(threads)) == right,
                "{} {m} x {k} x {n}, {threads} threads",
                kernel.name()
            );
        }
    }
}

#[test]
fn every_semiring_has_the_bytes_of_one_thread() {
    // Not small whole numbers: sums in another order would round differently.
    let real = |random: &mut Random| random.below(2_000_001) as f64 / 1e6 - 1.0;
    for semiring in [Semiring::PlusTimes, Semiring::MaxPlus, Semiring::MinPlus] {
        check(Kernel::<f64>::over(semiring).unwrap(), real);
        check(Kernel::<f32>::over(semiring).unwrap(), |random| real(random) as f32);
    }
    for semiring in [Semiring::MaxPlus, Semiring::MinPlus] {
        let zero = Kernel::<i64>::tropical(semiring).unwrap().zero();
        check(Kernel::<i64>::tropical(semiring).unwrap(), |random| match random.below(9) {
            0 => zero,
            _ => random.below(2001) as i64 - 1000,
        });
        // Elements too large for plain sums, in one of a hundred.
        check(Kernel::<i32>::tropical(semiring).unwrap(), |random| match random.below(100) {
            0 => i32::MAX / 2,
            _ => random.below(2001) as i32 - 1000,
        });
        check(Kernel::<PathElement<f64>>::paths(semiring).unwrap(), |random| PathElement {
            length: random.below(5) as f64,
            edges: random.below(3) as u32,
            last: random.below(9) as u32,
        });
    }
    check(Kernel::or_and(), |random| if random.below(20) == 0 { 1 + random.below(255) as u8 } else { 0 });
}

/// A loop of the caller's and a library get rows of C.
#[test]
fn own_loops_and_libraries_compute_the_rows_of_each_thread() {
    fn naive(a: View<f64>, b: View<f64>, mut c: ViewMut<f64>) {
        for i in 0..a.rows() {
            for (p, x) in a.row(i).iter().enumerate() {
                c.row(i).iter_mut().zip(b.row(p)).for_each(|(c, y)| *c += x * y);
            }
        }
    }
    let whole = |random: &mut Random| random.below(11) as f64 - 5.0;
    check(Kernel::<f64>::plus_times().with_update(naive), whole);
    let libraries = Blas::all();
    if libraries.is_empty() {
        apportion_testing::skip(apportion_testing::Need::Blas, "no BLAS library is installed");
    }
    // Whole numbers: exact in any order.
    libraries.into_iter().for_each(|blas| check(Kernel::<f64>::by_blas(blas), whole));
}

#[test]
fn a_team_fills_what_is_in_the_view() {
    for threads in [1, 2, 7] {
        let mut data = [0; 5 * 4];
        fill(&mut ViewMut::new(&mut data[..18], 5, 2, 4), 9, &Threads(threads));
        for (i, row) in data.chunks(4).enumerate() {
            assert_eq!(row, [9, 9, 0, 0], "row {i}");
        }
    }
}

#[test]
#[should_panic(expected = "do not fit: 1 x 2 times 1 x 2 into 1 x 2")]
fn shapes_that_do_not_fit_are_refused() {
    let factor = View::dense(&[0.0; 2], 1, 2);
    let kernel = Kernel::<f64>::plus_times().with_update(|_, _, _| ());
    kernel.update_together(factor, factor, ViewMut::dense(&mut [0.0; 2], 1, 2), &Threads(2));
}

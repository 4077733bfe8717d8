//! The cost of the checks: the words that a rank receives. Threads change no bit.

use super::super::parts::{Pass, each_piece, whole};
use super::*;

/// A world of 4 x 4 ranks, each with its part of all matrices.
const GRID: u64 = 4;

/// The most words that a rank receives to verify a product of this shape.
fn received<T: Element>(kernel: Kernel<T>, shape: Shape) -> u64 {
    let received = World::threads((GRID * GRID) as usize, &Monitor::new(), |world| {
        let (i, j) = (world.rank() as u64 / GRID, world.rank() as u64 % GRID);
        let part = |rows: u64, cols: u64| {
            let span = |i: u64, of: u64| Span::new(i * of / GRID, (i + 1) * of / GRID);
            let rect = Rect::new(span(i, rows), span(j, cols));
            vec![(rect, vec![kernel.zero(); rect.area() as usize])]
        };
        let (a, b, c) = (part(shape.m, shape.k), part(shape.k, shape.n), part(shape.m, shape.n));
        let scaling = Scaling::none(kernel.one());
        let (a, b, c) = (views_of(&a), views_of(&b), views_of(&c));
        verify_parts(Parts { a, b, c, initial: None, scaling, shape }, kernel, DRAWS, 1, world)?;
        Ok(world.received_words())
    });
    received.unwrap().into_iter().max().unwrap()
}

/// A rank needs vectors of the three sizes, which travel along trees of depth log2(16) = 4.
#[test]
fn vectors_alone_travel_over_plus_times() {
    let (m, k, n) = (640, 512, 256);
    let received = received(Kernel::<f64>::plus_times(), Shape::new(m, k, n, "test").unwrap());
    // 18 sums of each row of B, A and C; exponents and flags.
    let needed = 18 * (k + 2 * m) + 2 * m + n;
    assert!(received <= 4 * needed, "{received} words, {needed} needed");
}

/// Of B, a rank needs the rows that go with its columns of A, a quarter, and receives them once; each element
/// of the sample travels along trees, recomputed and as it is.
#[test]
fn a_rank_receives_only_its_rows_of_b_over_other_semirings() {
    let (m, k, n) = (64, 8192, 64);
    let received = received(Kernel::<f64>::max_plus(), Shape::new(m, k, n, "test").unwrap());
    let needed_of_b = k / GRID * n;
    let sample = m * n;
    assert!(received <= needed_of_b + 4 * 2 * (sample + 1000), "{received} words, {needed_of_b} of B needed");
    assert!(received < k * n / 2, "{received} of {} words of B", k * n);
}

/// Elements times the sum of their indices.
struct Weighted;

impl Pass<f64, f64> for Weighted {
    fn add(&self, i: usize, j: usize, row: &[f64], sum: &mut f64) {
        row.iter().zip(j..).for_each(|(x, j)| *sum += x * (i + j) as f64);
    }
}

/// Rows are divided among threads, so that the sums have the same bits for any number of threads.
#[test]
fn threads_change_no_bit() {
    let matrix = random::<f64>(1000, 500, 3, 1.0);
    let sums = |threads| {
        let mut sums = vec![0.0f64; 1000];
        each_piece(&whole(&matrix), &mut sums, threads, &Weighted);
        sums
    };
    let alone = sums(1);
    let definition =
        |i: usize| matrix.row(i).iter().zip(0..).fold(0.0, |sum, (x, j)| sum + x * (i + j) as f64);
    assert!(alone.iter().zip(0..).all(|(sum, i)| *sum == definition(i)));
    assert!((2..9).all(|threads| sums(threads) == alone));
}

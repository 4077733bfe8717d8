//! Semirings on one core: tropical products beside the peak of the registers, products of bits beside plain
//! rows of words, and closures by elimination beside squaring.
#![allow(unsafe_code)]

use super::Row;
use super::m4ri::M4ri;
use super::registers::Peak;
use apportion::kernels::{BitMatrix, Kernel, View, ViewMut, max_plus, min_plus};
use apportion::matrix::{Element, Matrix};
use apportion::model::Model;
use apportion::plan::shapes::{LayoutMethod, StraightLine};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{ClosureMethod, MatmulJob, matrix_closure, whole_block};
use apportion::random::Random;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use harness::clock::{of_all_threads, seconds};
use harness::median;
use std::hint::black_box;

const TURNS: usize = 5;

pub fn rows(quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let sizes: &[usize] = if quick { &[1024] } else { &[512, 1024, 2048] };
    for &n in sizes {
        rows.extend(tropical::<f64>(n));
        rows.extend(tropical::<f32>(n));
        rows.extend(tropical::<i32>(n));
        rows.extend(tropical::<i64>(n));
    }
    let m4ri = M4ri::load();
    if m4ri.is_none() {
        eprintln!("semirings: no M4RI (Debian: libm4ri-dev); its rows are left out");
    }
    let sizes: &[usize] = if quick { &[512, 4096] } else { &[512, 1024, 2048, 4096, 8192] };
    for &n in sizes {
        rows.extend([2, 10, 100, 1000].into_iter().flat_map(|rarity| bits(n, rarity, m4ri.as_ref())));
    }
    rows.push(closure(1000));
    rows
}

/// Max-plus and min-plus as fractions of the adds and comparisons that registers alone allow.
fn tropical<T: Peak + Element>(n: usize) -> [Row; 2] {
    let mut random = Random::new(1);
    let [a, b] = [(); 2]
        .map(|()| -> Vec<T> { (0..n * n).map(|_| T::from_small(random.below(1 << 12) as u16)).collect() });
    let mut c = vec![T::from_small(0); n * n];
    let operations = 2.0 * (n as f64).powi(3);
    let mut row = |name: &str, product: fn(View<T>, View<T>, ViewMut<T>)| {
        let mut turn = || {
            let mut counted = 0;
            let alone = seconds(|| counted = T::in_registers(1_000_000));
            let taken = seconds(|| {
                product(View::dense(&a, n, n), View::dense(&b, n, n), ViewMut::dense(&mut c, n, n));
                black_box(&mut c);
            });
            operations / taken / (counted as f64 / alone)
        };
        let ratio = median((0..TURNS).map(|_| turn()));
        let target = format!("{name} {}, n = {n}, one core, of the registers' peak", T::NAME);
        (target, ratio, 0.85, ratio >= 0.85)
    };
    [row("max-plus", max_plus), row("min-plus", min_plus)]
}

/// Or-and as the library chooses to multiply, relative to a plain loop and to M4RI.
fn bits(n: usize, rarity: usize, m4ri: Option<&M4ri>) -> Vec<Row> {
    let mut random = Random::new(1);
    // Some columns of B are empty, so that no row of C is full early.
    let mut sample = |open: bool| {
        let one = |i: usize| u8::from(random.below(rarity) == 0 && !(open && i % 64 == 5));
        BitMatrix::from_bytes(&(0..n * n).map(one).collect::<Vec<u8>>(), n, n)
    };
    let (a, b) = (sample(false), sample(true));
    let words = n / 64;
    let flat = |m: &BitMatrix| (0..n).flat_map(|i| m.words(i).to_vec()).collect::<Vec<u64>>();
    let (x, y) = (flat(&a), flat(&b));
    let plain = widest_plain_rows();
    let (mut c, mut z) = (BitMatrix::zeros(n, n), vec![0; n * words]);
    // The first products touch the memory.
    c.or_product(&a, &b);
    plain(&x, &y, &mut z, words);
    assert!((0..n).all(|i| c.words(i) == &z[i * words..][..words]), "the products of bits differ");
    let times = (rarity / 10).clamp(1, 20) * (4096 / n).pow(2).max(1);
    let own = || {
        seconds(|| {
            (0..times).for_each(|_| {
                // A C that has the product already would be left at once.
                let mut c = BitMatrix::zeros(n, n);
                c.or_product(black_box(&a), &b);
                black_box(&c);
            });
        })
    };
    let row = |rival: &str, turn: &mut dyn FnMut()| {
        let mut turn = || seconds(|| (0..times).for_each(|_| turn())) / own();
        let ratio = median((0..TURNS).map(|_| turn()));
        (format!("or-and, n = {n}, one in {rarity}, of {rival}' speed"), ratio, 1.0, ratio >= 1.0)
    };
    let mut rows = vec![row("plain rows", &mut || plain(black_box(&x), &y, black_box(&mut z), words))];
    if let Some(m4ri) = m4ri {
        let mut factors = m4ri.factors(n, [&|i, j| a.get(i, j), &|i, j| b.get(i, j)]);
        let (target, ratio, limit, met) = row("M4RI", &mut || factors.multiply());
        rows.push((target.replace("M4RI' speed", "M4RI's speed"), ratio, limit, met));
    }
    rows
}

/// C |= A B by rows of words: what one writes without a library.
#[inline(always)]
fn plain_rows(a: &[u64], b: &[u64], c: &mut [u64], words: usize) {
    for (a, c) in a.chunks_exact(words).zip(c.chunks_exact_mut(words)) {
        for (at, &word) in a.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let from = &b[(64 * at + left.trailing_zeros() as usize) * words..][..words];
                c.iter_mut().zip(from).for_each(|(c, b)| *c |= b);
                left &= left - 1;
            }
        }
    }
}

type Rows = fn(&[u64], &[u64], &mut [u64], usize);

/// The plain loop, compiled for the widest registers of this processor.
fn widest_plain_rows() -> Rows {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,bmi1,bmi2")]
        fn avx512(a: &[u64], b: &[u64], c: &mut [u64], words: usize) {
            plain_rows(a, b, c, words);
        }
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn avx2(a: &[u64], b: &[u64], c: &mut [u64], words: usize) {
            plain_rows(a, b, c, words);
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has these instructions.
            return |a, b, c, words| unsafe { avx512(a, b, c, words) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has these instructions.
            return |a, b, c, words| unsafe { avx2(a, b, c, words) };
        }
    }
    plain_rows
}

/// How many times faster a closure over min-plus is by elimination than by squaring, on one processor.
fn closure(n: usize) -> Row {
    let side = n as u64;
    let shape = Shape::new(side, side, side, "bench").expect("a sound shape");
    let platform = Platform::from_speeds(&[1.0]).expect("one processor");
    let layout = StraightLine.layout(shape, &[1.0]).expect("one processor");
    let plan = Plan::of_layout("straight-line", platform.names(), layout, 1.0);
    let models = [Model::constant("p0", 1e9).expect("a positive speed")];
    let job =
        MatmulJob::new(Kernel::min_plus(), &plan, ScheduleOptions::new(Flow::OneToAll, 256), &models, 256);
    let mut random = Random::new(1);
    let mut edge = || if random.below(100) == 0 { random.below(1000) as f64 } else { f64::INFINITY };
    let a = whole_block(Matrix::new(n, n, (0..n * n).map(|_| edge()).collect()));
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let time = |method| {
        let job = job.clone().with_closure(Some(method));
        let session = Session::new(&world, &platform, &monitor, method.work(side));
        let mut closed = Vec::new();
        let taken = of_all_threads(|| {
            closed = matrix_closure(&a, &job, &session).expect("a closure without negative cycles").0;
        });
        (taken, closed)
    };
    let turn = || {
        let ((squaring, by_squares), (elimination, by_blocks)) =
            (time(ClosureMethod::Squaring), time(ClosureMethod::Elimination));
        // Weights are whole numbers, so that both are exact.
        assert!(by_squares[0].1 == by_blocks[0].1, "the closures differ");
        squaring / elimination
    };
    let ratio = median((0..3).map(|_| turn()));
    (format!("closure, min-plus f64, n = {n}: squaring / elimination"), ratio, 1.0, ratio >= 1.0)
}

//! How close the kernels come to what the registers can do, on one thread.
//!
//! `cargo run --release -p apportion --example kernel_peaks`: for each element type the rate of add + max on
//! registers alone and the rate of the packed product, measured in turn, with medians of the rates and of
//! their ratios. Then the boolean products, row by row and by tables, in milliseconds.

#![allow(unsafe_code)]

use apportion::kernels::{BitMatrix, Tropical, View, ViewMut, instruction_set, max_plus};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    println!("max-plus by {}, Gop/s (an add and a max are two), medians", instruction_set());
    println!("{:>5} {:>6} {:>10} {:>8} {:>7}", "type", "n", "registers", "product", "ratio");
    for n in [512, 1024, 2048] {
        tropical::<f64>("f64", n);
        tropical::<f32>("f32", n);
        tropical::<i32>("i32", n);
    }
    println!("\nor-and, ms, medians; where columns of B are empty, no row of C fills up early");
    println!("{:>6} {:>11} {:>9} {:>9} {:>9}", "n", "ones", "by rows", "by tables", "chosen");
    for n in [2048, 4096] {
        boolean(n, 2, false);
        boolean(n, 2, true);
        boolean(n, 1000, true);
    }
}

/// The three ways of one product in turn: one in `rarity` elements is a one; with `open`, B has empty columns.
fn boolean(n: usize, rarity: u64, open: bool) {
    let mut state = 1u64;
    let mut sample = |open: bool| {
        let bytes: Vec<u8> = (0..n * n)
            .map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                u8::from((state >> 40).is_multiple_of(rarity) && !(open && i % 64 == 5))
            })
            .collect();
        BitMatrix::from_bytes(&bytes, n, n)
    };
    let (a, b) = (sample(false), sample(open));
    let ways = [BitMatrix::or_product_by_rows, BitMatrix::or_product_by_tables, BitMatrix::or_product];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..7 {
        for (way, times) in ways.iter().zip(&mut times) {
            let mut c = BitMatrix::zeros(n, n);
            let start = Instant::now();
            way(&mut c, &a, &b);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            black_box(c);
        }
    }
    let [rows, tables, chosen] = times.map(|mut t| {
        t.sort_by(f64::total_cmp);
        t[3]
    });
    let ones = format!("{}{}", if rarity == 2 { "50%" } else { "0.1%" }, if open { ", open" } else { "" });
    println!("{n:>6} {ones:>11} {rows:>9.2} {tables:>9.2} {chosen:>9.2}");
}

/// Registers and product in turn; one line with the medians.
fn tropical<T: Peak>(name: &str, n: usize) {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::from_small((state >> 20) as u16)
    };
    let a: Vec<T> = (0..n * n).map(|_| next()).collect();
    let b: Vec<T> = (0..n * n).map(|_| next()).collect();
    let mut c = vec![T::from_small(0); n * n];
    let operations = 2.0 * (n as f64).powi(3);
    let turns = if n < 2048 { 15 } else { 7 };
    let mut rates: Vec<[f64; 3]> = (0..turns)
        .map(|_| {
            let peak = rate(|| T::in_registers(2_000_000) as f64);
            let product = rate(|| {
                max_plus(View::dense(&a, n, n), View::dense(&b, n, n), ViewMut::dense(&mut c, n, n));
                black_box(&mut c);
                operations
            });
            [peak, product, product / peak]
        })
        .collect();
    let mut median = |i: usize| {
        rates.sort_by(|x, y| x[i].total_cmp(&y[i]));
        rates[turns / 2][i]
    };
    println!("{name:>5} {n:>6} {:>10.1} {:>8.1} {:>7.3}", median(0), median(1), median(2));
}

/// Gop/s of work that says how many operations it was.
fn rate(work: impl FnOnce() -> f64) -> f64 {
    let start = Instant::now();
    let operations = work();
    operations / start.elapsed().as_secs_f64() / 1e9
}

/// An element type with a loop that stays in registers.
trait Peak: Tropical {
    /// A number from a small one.
    fn from_small(x: u16) -> Self;
    /// Adds and compares on registers alone; returns how many, lane by lane.
    fn in_registers(rounds: u64) -> u64;
}

/// `rounds` rounds of `x = max(x + step, floor)` on so many independent chains that latency does not count.
macro_rules! rounds {
    ($rounds:ident, $chains:literal, $splat:expr, $add:expr, $max:expr) => {{
        let (step, floor) = (black_box($splat(1u8.into())), black_box($splat(3u8.into())));
        let mut chains = [floor; $chains];
        for _ in 0..$rounds {
            for x in &mut chains {
                *x = $max($add(*x, step), floor);
            }
        }
        black_box(chains);
        $rounds * $chains * 2 * (size_of_val(&step) as u64)
    }};
}

macro_rules! peak {
    ($t:ident, $module:ident, [$($wide:ident),*], [$($narrow:ident),*]) => {
        mod $module {
            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::*;
            use std::hint::black_box;

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            pub fn wide(rounds: u64) -> u64 {
                peak!(@rounds rounds, 16, $($wide),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            pub fn narrow(rounds: u64) -> u64 {
                peak!(@rounds rounds, 12, $($narrow),*)
            }
            pub fn plain(rounds: u64) -> u64 {
                let over = |x: [$t; 4], y: [$t; 4]| std::array::from_fn(|i| if x[i] > y[i] { x[i] } else { y[i] });
                let plus = |x: [$t; 4], y: [$t; 4]| std::array::from_fn(|i| x[i] + y[i]);
                rounds!(rounds, 12, |x: $t| [x; 4], plus, over)
            }
        }
        impl Peak for $t {
            fn from_small(x: u16) -> Self {
                x as $t
            }
            fn in_registers(rounds: u64) -> u64 {
                let bytes = match instruction_set() {
                    // SAFETY: these names mean that the processor has them.
                    #[cfg(target_arch = "x86_64")]
                    "AVX-512" => unsafe { $module::wide(rounds) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    "AVX2" => unsafe { $module::narrow(rounds) },
                    _ => $module::plain(rounds / 8),
                };
                bytes / size_of::<$t>() as u64
            }
        }
    };
    (@rounds $rounds:ident, $chains:literal, $splat:ident, $add:ident, $max:ident) => {
        rounds!($rounds, $chains, |x| $splat(x), |x, y| $add(x, y), |x, y| $max(x, y))
    };
}

peak!(
    f64,
    of_f64,
    [_mm512_set1_pd, _mm512_add_pd, _mm512_max_pd],
    [_mm256_set1_pd, _mm256_add_pd, _mm256_max_pd]
);
peak!(
    f32,
    of_f32,
    [_mm512_set1_ps, _mm512_add_ps, _mm512_max_ps],
    [_mm256_set1_ps, _mm256_add_ps, _mm256_max_ps]
);
peak!(
    i32,
    of_i32,
    [_mm512_set1_epi32, _mm512_add_epi32, _mm512_max_epi32],
    [_mm256_set1_epi32, _mm256_add_epi32, _mm256_max_epi32]
);

//! Max-plus and min-plus against the registers' peak.

use crate::clock::{median, seconds, verdict};
use crate::registers::Peak;
use apportion::kernels::{View, ViewMut, instruction_set, max_plus, min_plus};
use apportion::random::Random;
use std::hint::black_box;

/// Of the registers' peak.
const TARGET: f64 = 0.85;

/// One line for each element type, semiring and size.
pub fn report(turns: usize) {
    println!(
        "tropical products by {}, Gop/s (an add and a max are two); target {TARGET} of the peak",
        instruction_set()
    );
    println!(
        "{:>5} {:>9} {:>6} {:>10} {:>8} {:>7}",
        "type", "semiring", "n", "registers", "product", "ratio"
    );
    for n in [512, 1024, 2048] {
        both::<f64>("f64", n, turns);
        both::<f32>("f32", n, turns);
        both::<i32>("i32", n, turns);
        both::<i64>("i64", n, turns);
    }
}

fn both<T: Peak>(name: &str, n: usize, turns: usize) {
    one::<T>((name, "max-plus"), n, turns, max_plus);
    one::<T>((name, "min-plus"), n, turns, min_plus);
}

/// Registers and product in turn; medians of the rates and of their ratios.
fn one<T: Peak>(
    (name, semiring): (&str, &str),
    n: usize,
    turns: usize,
    product: impl Fn(View<T>, View<T>, ViewMut<T>),
) {
    let mut random = Random::new(1);
    let mut next = || T::from_small(random.below(1 << 12) as u16);
    let a: Vec<T> = (0..n * n).map(|_| next()).collect();
    let b: Vec<T> = (0..n * n).map(|_| next()).collect();
    let mut c = vec![T::from_small(0); n * n];
    let operations = 2.0 * (n as f64).powi(3);
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..turns {
        let mut counted = 0;
        let alone = seconds(|| counted = T::in_registers(1_000_000));
        let peak = counted as f64 / alone / 1e9;
        let taken = seconds(|| {
            product(View::dense(&a, n, n), View::dense(&b, n, n), ViewMut::dense(&mut c, n, n));
            black_box(&mut c);
        });
        let rate = operations / taken / 1e9;
        for (rates, rate) in rates.iter_mut().zip([peak, rate, rate / peak]) {
            rates.push(rate);
        }
    }
    let [peak, rate, ratio] = rates.map(median);
    println!(
        "{name:>5} {semiring:>9} {n:>6} {peak:>10.1} {rate:>8.1} {ratio:>7.3} {}",
        verdict(ratio, TARGET)
    );
}

//! The time to compute shares: `fpm` grows as p log n, `exact` as p m n / 64.
//!
//! `cargo run --release -p targets --example share_costs`

use apportion::model::{Model, Point};
use apportion::plan::shares::{exact, fpm};
use harness::median;
use std::time::Instant;

fn main() -> apportion::error::Result<()> {
    println!("fpm, piecewise-linear models of 50 points; median of 5");
    println!("{:>10} {:>16} {:>12} {:>22}", "processors", "units", "seconds", "ns / (p log2 n)");
    for processors in [10, 100, 1_000, 10_000] {
        let models: Vec<Model> = (0..processors).map(|i| falling(i as u64, 50)).collect::<Result<_, _>>()?;
        for n in [1_000_000_u64, 1_000_000_000, 1_000_000_000_000] {
            let seconds = median_of_5(|| fpm(&models, n).map(drop))?;
            let per_step = 1e9 * seconds / (processors as f64 * (n as f64).log2());
            println!("{processors:>10} {n:>16} {seconds:>12.6} {per_step:>22.1}");
        }
    }
    println!("\nexact, random times, sizes n/points apart or scattered; median of 5");
    println!("{:>10} {:>8} {:>8} {:>10} {:>12}", "processors", "points", "n", "sizes", "seconds");
    for (points, n) in [(100, 1_600), (1_000, 16_000)] {
        for scattered in [false, true] {
            let models: Vec<Model> =
                (0..16).map(|i| jumping(i, points, n, scattered)).collect::<Result<_, _>>()?;
            let seconds = median_of_5(|| exact(&models, n).map(drop))?;
            let sizes = if scattered { "scattered" } else { "even" };
            println!("{:>10} {points:>8} {n:>8} {sizes:>10} {seconds:>12.6}", 16);
        }
    }
    Ok(())
}

/// Speed that falls from a random peak over five decades of size.
fn falling(seed: u64, points: usize) -> apportion::error::Result<Model> {
    let mut random = Random(seed + 1);
    let mut speed = 1e6 * (1.0 + 9.0 * random.next());
    let points = (0..points).map(|i| {
        let size = 1e3 * 10_f64.powf(7.0 * i as f64 / points as f64);
        speed *= 0.93 + 0.07 * random.next();
        Point::new(size, size / speed)
    });
    Model::piecewise(format!("p{seed}"), points.collect(), None)
}

/// Times with no order at all, at even multiples of n / points or at scattered sizes.
fn jumping(seed: u64, points: u64, n: u64, scattered: bool) -> apportion::error::Result<Model> {
    let mut random = Random(seed + 77);
    let step = n / points;
    let points = (1..=points).map(|i| {
        let away = if scattered { (random.next() * step as f64) as u64 } else { 0 };
        let size = (i * step - away) as f64;
        Point::new(size, size * (0.5 + random.next()))
    });
    Model::piecewise(format!("p{seed}"), points.collect(), None)
}

fn median_of_5(mut work: impl FnMut() -> apportion::error::Result<()>) -> apportion::error::Result<f64> {
    let mut seconds = [0.0; 5];
    for s in &mut seconds {
        let start = Instant::now();
        work()?;
        *s = start.elapsed().as_secs_f64();
    }
    Ok(median(seconds))
}

/// A multiplicative generator (Lehmer, modulus 2^61 - 1): the example needs no more.
struct Random(u64);

impl Random {
    /// In 0..1.
    fn next(&mut self) -> f64 {
        const M: u128 = (1 << 61) - 1;
        self.0 = ((u128::from(self.0) * 437_799_614_237_992_725 + 1) % M) as u64;
        self.0 as f64 / M as f64
    }
}

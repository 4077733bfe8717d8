//! How near the layouts come to the lower bound: mean and maximum of cost over bound, for columns, recursive and the
//! best of all, over seeded draws; and the worst that a search for bad speeds finds.
//!
//! `cargo run --release -p apportion --example partition_quality [draws] [steps of the adversarial search] [seed]`

use apportion::shapes::{columns, least_cost, recursive};
use apportion::{Layout, Metrics, Shape};
use std::time::Instant;

/// splitmix64: the same draws on every machine.
struct Draws(u64);

impl Draws {
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A kind of speeds: name, processors, a draw.
type Kind = (&'static str, usize, fn(&mut Draws, usize) -> Vec<f64>);

fn one_fast(draws: &mut Draws, p: usize) -> Vec<f64> {
    let mut speeds = vec![1.0; p];
    speeds[0] = 20.0 + 60.0 * draws.unit();
    speeds
}

/// As [`one_fast`], with the others between 0.1 and 1.
fn one_fast_uneven(draws: &mut Draws, p: usize) -> Vec<f64> {
    let mut speeds: Vec<f64> = (0..p).map(|_| 0.1 + 0.9 * draws.unit()).collect();
    speeds[0] = 20.0 + 60.0 * draws.unit();
    speeds
}

/// Pareto with exponent 0.8: P(speed > x) = x^-0.8.
fn heavy_tailed(draws: &mut Draws, p: usize) -> Vec<f64> {
    (0..p).map(|_| (1.0 - draws.unit()).powf(-1.0 / 0.8)).collect()
}

fn uniform(draws: &mut Draws, p: usize) -> Vec<f64> {
    (0..p).map(|_| 1.0 - draws.unit()).collect()
}

/// Cost over bound on a matrix so large that rounding does not show.
fn ratio(layout: &Layout) -> f64 {
    let metrics = Metrics::of_layout(layout, 1.0);
    metrics.sum_half_perimeters.unwrap_or(0.0) / metrics.lower_bound.unwrap_or(1.0)
}

fn best_ratio(shape: Shape, speeds: &[f64]) -> apportion::Result<f64> {
    Ok(ratio(&least_cost(shape, speeds)?.1))
}

fn main() -> apportion::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|a| {
        let wrong =
            |_| apportion::Error::input("argument", format!("\"{a}\" is no number"), "give whole numbers");
        a.parse::<u64>().map_err(wrong)
    });
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (count, steps, seed) = (number(300)?.max(1), number(2000)?, number(1)?);
    let shape = Shape::new(50_000_000, 50_000_000, 50_000_000, "example")?;
    let kinds: [Kind; 10] = [
        ("one fast, 20-80 x", 2, one_fast),
        ("one fast, 20-80 x", 3, one_fast),
        ("one fast, 20-80 x", 8, one_fast),
        ("one fast, uneven", 8, one_fast_uneven),
        ("one fast, uneven", 20, one_fast_uneven),
        ("heavy-tailed", 8, heavy_tailed),
        ("heavy-tailed", 20, heavy_tailed),
        ("heavy-tailed", 40, heavy_tailed),
        ("uniform", 8, uniform),
        ("uniform", 40, uniform),
    ];
    println!("cost / lower bound, mean/max of {count} draws, seed {seed}");
    println!(
        "{:<18} {:>3}  {:>13}  {:>13}  {:>13}  {:>8}",
        "speeds", "p", "columns", "recursive", "best", "ms/draw"
    );
    for (name, p, draw) in kinds {
        let mut draws = Draws(seed);
        let mut ratios = [Vec::new(), Vec::new(), Vec::new()];
        let mut spent = 0.0;
        for _ in 0..count {
            let speeds = draw(&mut draws, p);
            ratios[0].push(ratio(&columns(shape, &speeds)?));
            ratios[1].push(ratio(&recursive(shape, &speeds)?));
            let clock = Instant::now();
            let best = least_cost(shape, &speeds)?.1;
            spent += clock.elapsed().as_secs_f64();
            ratios[2].push(ratio(&best));
        }
        let cell = |all: &Vec<f64>| {
            let mean = all.iter().sum::<f64>() / count as f64;
            format!("{mean:.4}/{:.4}", all.iter().copied().fold(0.0, f64::max))
        };
        let [a, b, c] = [&ratios[0], &ratios[1], &ratios[2]].map(cell);
        println!("{name:<18} {p:>3}  {a:>13}  {b:>13}  {c:>13}  {:>8.2}", 1e3 * spent / count as f64);
    }
    println!("\nworst of the best, by a search for bad speeds ({steps} steps from each of 4 starts)");
    for p in 2..=7 {
        let mut draws = Draws(seed + p as u64);
        let mut worst = (0.0, Vec::new());
        for _ in 0..4 {
            let mut speeds: Vec<f64> = (0..p).map(|_| (4.0 * draws.unit()).exp()).collect();
            let mut here = best_ratio(shape, &speeds)?;
            for step in 0..steps {
                let size = 1.0 - step as f64 / steps as f64;
                let mut next = speeds.clone();
                for speed in &mut next {
                    if draws.unit() < 0.5 {
                        *speed *= (1.5 * size * (draws.unit() - 0.5)).exp();
                    }
                }
                let there = best_ratio(shape, &next)?;
                if there >= here {
                    (here, speeds) = (there, next);
                }
            }
            if here > worst.0 {
                worst = (here, speeds);
            }
        }
        let (ratio, mut speeds) = worst;
        speeds.sort_by(|a, b| b.total_cmp(a));
        let least = speeds[p - 1];
        let text: Vec<String> = speeds.iter().map(|s| format!("{:.3}", s / least)).collect();
        println!("p = {p}: {ratio:.4} at {}", text.join(" : "));
    }
    Ok(())
}

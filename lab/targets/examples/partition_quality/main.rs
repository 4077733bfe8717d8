//! The ratio of the layouts' cost to the lower bound: mean and maximum for columns and the best of all
//! methods, over seeded draws; the worst ratio that a search for bad speeds finds; and the time for large
//! numbers of processors. Then the volume of boxes over the least of any plan; and plans on random machines:
//! processors that stay out and the certificate of time, shares by forecast, arrangement, and on a fifth of them
//! `auto` beside everything that can be typed.
//!
//! `cargo run --release -p targets --example partition_quality [DRAWS] [STEPS] [SEED] [SEEDS] [MACHINES]`,
//! with the number of steps of the adversarial search

mod arrangement;
mod auto;
mod depth;
mod machines;
mod shares;
mod subsets;

use apportion::error::Result;
use apportion::plan::shapes::{Columns, LayoutMethod, LeastCost, Recursive};
use apportion::plan::{Layout, Metrics, Shape};
use apportion::random::Random;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A kind of speeds: name, processors, a draw, and the mean and maximum to stay below, if any.
type Kind = (&'static str, usize, fn(&mut Random, usize) -> Vec<f64>, Option<[f64; 2]>);

const KINDS: [Kind; 10] = [
    ("one fast, 20-80 x", 2, one_fast, Some([1.013, 1.020])),
    ("one fast, 20-80 x", 3, one_fast, Some([1.036, 1.053])),
    ("one fast, 20-80 x", 8, one_fast, Some([1.039, 1.050])),
    ("one fast, uneven", 8, one_fast_uneven, Some([1.039, 1.050])),
    ("one fast, uneven", 20, one_fast_uneven, None),
    ("heavy-tailed", 8, heavy_tailed, None),
    ("heavy-tailed", 20, heavy_tailed, Some([1.017, 1.058])),
    ("heavy-tailed", 40, heavy_tailed, Some([1.018, 1.072])),
    ("uniform", 8, uniform, Some([1.020, 1.033])),
    ("uniform", 40, uniform, Some([1.009, 1.020])),
];

fn one_fast(draws: &mut Random, p: usize) -> Vec<f64> {
    let mut speeds = vec![1.0; p];
    speeds[0] = 20.0 + 60.0 * draws.unit();
    speeds
}

/// As [`one_fast`], with the others between 0.1 and 1.
fn one_fast_uneven(draws: &mut Random, p: usize) -> Vec<f64> {
    let mut speeds: Vec<f64> = (0..p).map(|_| 0.1 + 0.9 * draws.unit()).collect();
    speeds[0] = 20.0 + 60.0 * draws.unit();
    speeds
}

/// Pareto with exponent 0.8: P(speed > x) = x^-0.8.
fn heavy_tailed(draws: &mut Random, p: usize) -> Vec<f64> {
    (0..p).map(|_| (1.0 - draws.unit()).powf(-1.0 / 0.8)).collect()
}

fn uniform(draws: &mut Random, p: usize) -> Vec<f64> {
    (0..p).map(|_| 1.0 - draws.unit()).collect()
}

/// Cost over bound on a matrix so large that rounding is negligible.
fn ratio(layout: &Layout) -> f64 {
    let metrics = Metrics::of_layout(layout, 1.0);
    metrics.sum_half_perimeters.unwrap_or(0.0) / metrics.lower_bound.unwrap_or(1.0)
}

fn best_ratio(shape: Shape, speeds: &[f64]) -> Result<f64> {
    Ok(ratio(&LeastCost::default().choose(shape, speeds).layout))
}

/// `work` of 0..count on all cores, in order.
fn on_all_cores<T: Send>(count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    let result = work(i);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Mean and maximum.
fn summary(ratios: &[f64]) -> [f64; 2] {
    [ratios.iter().sum::<f64>() / ratios.len() as f64, ratios.iter().copied().fold(0.0, f64::max)]
}

fn cell([mean, max]: [f64; 2]) -> String {
    format!("{mean:.4}/{max:.4}")
}

/// Every kind of speeds: the first seed's figures, and the largest mean and maximum of all seeds.
fn random(shape: Shape, count: usize, seed: u64, seeds: u64) -> Result<()> {
    println!("cost / lower bound, mean/max of {count} draws");
    let all = format!("seeds {seed}-{}", seed + seeds - 1);
    println!(
        "{:<18} {:>3}  {:>13}  {:>13}  {all:>13}  {:>13}  {:>8}",
        "speeds", "p", "columns", "best", "wanted", "ms/draw"
    );
    for (name, p, draw, wanted) in KINDS {
        let (mut first, mut worst, mut spent) = (None, [0.0_f64; 2], 0.0);
        for seed in seed..seed + seeds {
            let mut draws = Random::new(seed);
            let speeds: Vec<Vec<f64>> = (0..count).map(|_| draw(&mut draws, p)).collect();
            let found = on_all_cores(count, |i| {
                let clock = Instant::now();
                let best = LeastCost::default().choose(shape, &speeds[i]).layout;
                let seconds = clock.elapsed().as_secs_f64();
                Ok([ratio(&Columns::default().layout(shape, &speeds[i])?), ratio(&best), seconds])
            })?;
            let column = |at: usize| found.iter().map(|row| row[at]).collect::<Vec<f64>>();
            let [here, best] = [0, 1].map(|at| summary(&column(at)));
            spent += column(2).iter().sum::<f64>();
            first.get_or_insert((here, best));
            worst = [worst[0].max(best[0]), worst[1].max(best[1])];
        }
        let (columns, best) = first.unwrap_or_default();
        let mark = wanted.map_or_else(String::new, |wanted| {
            // The figures to reach are given to three places.
            let reached = (0..2).all(|i| worst[i] < wanted[i] + 0.0005);
            format!("{:.3}/{:.3}{}", wanted[0], wanted[1], if reached { " +" } else { " -" })
        });
        let ms = 1e3 * spent / (count as f64 * seeds as f64);
        println!(
            "{name:<18} {p:>3}  {:>13}  {:>13}  {:>13}  {mark:>13}  {ms:>8.2}",
            cell(columns),
            cell(best),
            cell(worst)
        );
    }
    Ok(())
}

/// Hill climbing over speeds from one start: the worst ratio, and its speeds.
fn climb(shape: Shape, mut speeds: Vec<f64>, steps: u64, draws: &mut Random) -> Result<(f64, Vec<f64>)> {
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
    Ok((here, speeds))
}

/// The worst of the best for 2 to 7 processors: from twelve random starts, and from the worst of one fewer
/// with one more processor, very slow or as fast as the fastest.
fn adversarial(shape: Shape, steps: u64, seed: u64) -> Result<()> {
    println!(
        "\nworst of the best, by hill climbing ({steps} steps from each of 12 random starts and 2 worst of one fewer)"
    );
    let mut before = vec![3.0];
    for p in 2..=7 {
        let mut draws = Random::new(seed + p as u64);
        let mut starts: Vec<Vec<f64>> =
            (0..12).map(|i| (0..p).map(|_| (f64::from(2 + i) * draws.unit()).exp()).collect()).collect();
        let fastest = before.iter().copied().fold(0.0, f64::max);
        for speed in [fastest * 1e-4, fastest] {
            starts.push(before.iter().copied().chain([speed]).collect());
        }
        let found = on_all_cores(starts.len(), |i| {
            climb(shape, starts[i].clone(), steps, &mut Random::new(seed * 1000 + (p * 100 + i) as u64))
        })?;
        let random = found[..12].iter().map(|(ratio, _)| *ratio).fold(0.0, f64::max);
        let (worst, mut speeds) =
            found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, Vec::new()));
        speeds.sort_by(|a, b| b.total_cmp(a));
        let least = speeds.last().copied().unwrap_or(1.0);
        let text: Vec<String> = speeds.iter().map(|s| format!("{:.3}", s / least)).collect();
        println!("p = {p}: {worst:.4} ({random:.4} from random starts) at {}", text.join(" : "));
        before = speeds;
    }
    Ok(())
}

/// The time for many processors, including the integer layout and its check.
fn scale(seed: u64) -> Result<()> {
    println!("\nseconds for many processors, Pareto 0.8 and uniform");
    let shape = Shape::new(1 << 26, 1 << 26, 1 << 26, "example")?;
    let (recursive, columns) = (Recursive::default(), Columns::default());
    let methods: [(&str, usize, &dyn LayoutMethod); 4] = [
        ("recursive", 1_000, &recursive),
        ("recursive", 10_000, &recursive),
        ("columns", 100_000, &columns),
        ("columns", 1_000_000, &columns),
    ];
    for (name, p, method) in methods {
        let seconds = [heavy_tailed, uniform].map(|draw| {
            let speeds = draw(&mut Random::new(seed), p);
            let clock = Instant::now();
            method.layout(shape, &speeds).map(|_| clock.elapsed().as_secs_f64())
        });
        let [heavy, even] = seconds;
        println!("{name:<10} p = {p:>9}: {:.2} {:.2}", heavy?, even?);
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|a| {
        let wrong = |_| {
            apportion::error::Error::input("argument", format!("\"{a}\" is no number"), "give whole numbers")
        };
        a.parse::<u64>().map_err(wrong)
    });
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (count, steps, seed, seeds) = (number(300)?.max(1), number(2000)?, number(1)?, number(1)?.max(1));
    let machines = number(1000)?.max(1) as usize;
    let shape = Shape::new(50_000_000, 50_000_000, 50_000_000, "example")?;
    random(shape, count as usize, seed, seeds)?;
    adversarial(shape, steps, seed)?;
    scale(seed)?;
    depth::depths((count as usize).min(30), seed)?;
    subsets::table(machines, seed)?;
    shares::table(machines, seed)?;
    arrangement::table(machines, seed)?;
    auto::table(machines.div_ceil(5), seed)
}

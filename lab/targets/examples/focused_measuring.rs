//! How many benchmark seconds do good shares need? A simulation on seeded speed functions.
//!
//! `cargo run --release -p targets --example focused_measuring` compares three ways to measure four
//! processors before a number of units is divided among them: a focused sweep (`measure --units`), an
//! adaptive sweep of all sizes up to that number (`measure --adaptive`), and 8 sizes evenly spaced in scale
//! (`measure`). Seconds are those of one run of each point, over all processors, relative to the processor
//! seconds of the divided work itself. The accuracy of the focused sweep is 0.02, or the number after `--`.
//! Errors are those of the shares (of all units) and of the longest time beside the true functions'.

use apportion::error::Result;
use apportion::measure::FocusedSweep;
use apportion::model::{AdaptiveSweep, Model};
use apportion::plan::shares::{fpm, ideal_seconds};
use apportion::platform::Emulated;
use apportion::random::Random;

const PROCESSORS: usize = 4;

fn main() -> Result<()> {
    let accuracy = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.02);
    println!("functions  way       points  seconds / work  share off  worst  time off  worst");
    for (name, knee, cliff) in [("knee", true, false), ("cliff", false, true), ("both", true, true)] {
        let mut totals = [Total::default(); 3];
        for seed in 0..10 {
            let processors = seeded(seed, knee, cliff)?;
            let truth = processors.iter().map(|p| p.model("p")).collect::<Result<Vec<_>>>()?;
            for units in [30_000, 1_000_000, 30_000_000, 1_000_000_000] {
                let ways = [
                    focused(&processors, units, accuracy)?,
                    adaptive(&processors, units)?,
                    even(&processors, units)?,
                ];
                for (total, models) in totals.iter_mut().zip(ways) {
                    total.add(&models, &truth, units)?;
                }
            }
        }
        for (way, total) in ["focused", "adaptive", "even"].iter().zip(&totals) {
            println!("{name:<9}  {way:<8}  {total}");
        }
        let [focused, adaptive, _] = totals;
        println!(
            "{name:<9}  adaptive / focused: {:.1} times the seconds",
            adaptive.seconds / focused.seconds
        );
    }
    Ok(())
}

/// Four processors with a cache knee, a paging cliff or both, at seeded places over six decades of sizes.
fn seeded(seed: u64, knee: bool, cliff: bool) -> Result<Vec<Emulated>> {
    let mut numbers = Random::new(seed);
    let mut random = |low: f64, high: f64| low * (high / low).powf(numbers.unit());
    let mut one = || {
        let mut text = format!("peak {:e}", random(1e8, 2e9));
        if knee {
            text += &format!(", knee {:e} {}", random(3e3, 1e6), random(0.3, 0.9));
        }
        if cliff {
            text += &format!(", cliff {:e} {}", random(1e6, 5e8), random(0.05, 0.5));
        }
        text.parse()
    };
    (0..PROCESSORS).map(|_| one()).collect()
}

fn focused(processors: &[Emulated], units: u64, accuracy: f64) -> Result<Vec<Model>> {
    let mut sweep = FocusedSweep::new(processors.len(), units, accuracy)?;
    while let Some(request) = sweep.next()? {
        sweep.add(request.rank, processors[request.rank].point(request.size));
    }
    sweep.models(&vec!["p".to_string(); processors.len()])
}

fn adaptive(processors: &[Emulated], units: u64) -> Result<Vec<Model>> {
    let one = |processor: &Emulated| {
        let mut sweep = AdaptiveSweep::new(units as f64 / 1e3, units as f64, 0.05)?.with_most(30);
        while let Some(size) = sweep.next_size() {
            sweep.add(processor.point(size));
        }
        sweep.model("p")
    };
    processors.iter().map(one).collect()
}

fn even(processors: &[Emulated], units: u64) -> Result<Vec<Model>> {
    let size = |i: i32| units as f64 * 1e-3_f64.powf(f64::from(7 - i) / 7.0);
    let one = |p: &Emulated| Model::piecewise("p", (0..8).map(|i| p.point(size(i))).collect(), None);
    processors.iter().map(one).collect()
}

/// Sums over problems.
#[derive(Debug, Default, Clone, Copy)]
struct Total {
    problems: f64,
    points: f64,
    seconds: f64,
    shares: [f64; 2],
    times: [f64; 2],
}

impl Total {
    fn add(&mut self, models: &[Model], truth: &[Model], units: u64) -> Result<()> {
        let (ours, best) = (fpm(models, units)?, fpm(truth, units)?);
        let off =
            ours.iter().zip(&best).map(|(x, y)| x.abs_diff(*y) as f64 / units as f64).fold(0.0, f64::max);
        let longest = |shares: &[u64]| {
            truth.iter().zip(shares).map(|(model, &share)| model.seconds(share as f64)).fold(0.0, f64::max)
        };
        let late = longest(&ours) / longest(&best) - 1.0;
        let measured: f64 = models.iter().flat_map(Model::points).map(|point| point.seconds).sum();
        self.problems += 1.0;
        self.points +=
            models.iter().map(|model| model.points().len()).sum::<usize>() as f64 / models.len() as f64;
        self.seconds += measured / (ideal_seconds(truth, units)? * models.len() as f64);
        self.shares = [self.shares[0] + off, self.shares[1].max(off)];
        self.times = [self.times[0] + late, self.times[1].max(late)];
        Ok(())
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = |sum: f64| sum / self.problems;
        let percent = |x: f64| format!("{:.1} %", 100.0 * x);
        write!(
            f,
            "{:>6.1}  {:>14.2}  {:>9}  {:>5}  {:>8}  {:>6}",
            mean(self.points),
            mean(self.seconds),
            percent(mean(self.shares[0])),
            percent(self.shares[1]),
            percent(mean(self.times[0])),
            percent(self.times[1])
        )
    }
}

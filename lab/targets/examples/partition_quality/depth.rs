//! Products with a long inner dimension: volume over the least volume of any plan, by boxes and by the best
//! layout of C alone.

use super::{on_all_cores, summary};
use apportion::error::Result;
use apportion::plan::shapes::{Boxes, Grid, Inner, LayoutMethod, LeastCost};
use apportion::plan::{Metrics, Shape};
use apportion::random::Random;
use std::time::Instant;

/// m : k : n = 1 : d : 1 for these d.
const DEPTHS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
const PROCESSORS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// The mean to reach.
const WANTED: f64 = 1.25;

/// Volume over bound of the best layout of C, of slabs and of boxes, and the seconds for boxes.
fn ratios(shape: Shape, speeds: &[f64]) -> Result<[f64; 4]> {
    let flat = LeastCost::default().choose(shape, speeds).layout;
    let slabs = Inner.layout(shape, speeds)?;
    let clock = Instant::now();
    let deep = Boxes.layout(shape, speeds)?;
    let seconds = clock.elapsed().as_secs_f64();
    let bound = Metrics::of_layout(&deep, 1.0).volume_bound.unwrap_or(1).max(1) as f64;
    let over = |volume: u64| volume as f64 / bound;
    Ok([over(flat.volume()), over(slabs.volume()), over(deep.volume()), seconds])
}

/// Tables by the number of processors and by depth, over `count` draws of speeds, uniform between 0.1 and 1.
pub fn depths(count: usize, seed: u64) -> Result<()> {
    println!(
        "\nvolume / bound of any plan, m : k : n = 1 : d : 1, mean/max of {count} draws for each p and d"
    );
    println!("{:<8} {:>15}  {:>15}  {:>15}  {:>8}", "", "rectangles of C", "inner", "boxes", "ms/draw");
    let cases: Vec<(usize, u64)> =
        PROCESSORS.iter().flat_map(|&p| DEPTHS.iter().map(move |&depth| (p, depth))).collect();
    let found = on_all_cores(cases.len() * count, |i| {
        let (p, depth) = cases[i / count];
        let mut draws = Random::new(seed + (i % count) as u64);
        let speeds: Vec<f64> = (0..p).map(|_| 0.1 + 0.9 * draws.unit()).collect();
        let shape = Shape::new(4096, 4096 * depth, 4096, "example")?;
        ratios(shape, &speeds)
    })?;
    let line = |name: String, wanted: &dyn Fn(usize, u64) -> bool| {
        let rows: Vec<&[f64; 4]> = (0..found.len())
            .filter(|i| wanted(cases[i / count].0, cases[i / count].1))
            .map(|i| &found[i])
            .collect();
        let column = |at: usize| summary(&rows.iter().map(|row| row[at]).collect::<Vec<f64>>());
        let cell = |[mean, max]: [f64; 2]| format!("{mean:.3}/{max:.3}");
        println!(
            "{name:<8} {:>15}  {:>15}  {:>15}  {:>8.2}",
            cell(column(0)),
            cell(column(1)),
            cell(column(2)),
            1e3 * column(3)[0]
        );
        column(2)[0]
    };
    for p in PROCESSORS {
        line(format!("p = {p}"), &|of, _| of == p);
    }
    for depth in DEPTHS {
        line(format!("d = {depth}"), &|_, of| of == depth);
    }
    let mean = line("all".into(), &|_, _| true);
    println!("wanted: a mean of at most {WANTED} {}", if mean <= WANTED { "+" } else { "-" });
    let shape = Shape::new(2048, 65536, 2048, "example")?;
    let deep = Boxes.layout(shape, &[1.0; 8])?.volume();
    for (name, flat) in [
        ("a grid", Grid::default().layout(shape, &[1.0; 8])?),
        ("the best rectangles", LeastCost::default().choose(shape, &[1.0; 8]).layout),
    ] {
        let (flat, times) = (flat.volume(), flat.volume() as f64 / deep as f64);
        println!(
            "2048 x 65536 x 2048 on eight equal processors: {flat} elements by {name}, {deep} by boxes ({times:.1} times fewer)"
        );
    }
    Ok(())
}

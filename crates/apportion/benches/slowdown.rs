//! Does an emulated processor compute exactly as much slower as it should?
//!
//! `cargo bench --bench slowdown` multiplies two matrices on platforms with more and more emulated processors
//! and prints, for each processor, compute time / (slowdown x CPU time): 1.000 is exact. It needs an
//! otherwise idle machine, whose cores outnumber the sum of 1 / slowdown.

use apportion::matrix::{Element, Matrix};
use apportion::plan::{Shape, shapes};
use apportion::platform::{Platform, parse_platform};
use apportion::report::table;
use apportion::run::{Monitor, run_threads};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};

fn main() {
    let files = [
        ("nine-to-one-fast", include_str!("../../../platforms/nine-to-one-fast.toml")),
        ("hybrid-cpu-10-10", include_str!("../../../platforms/hybrid-cpu-10-10.toml")),
        ("becker-two, 25:1, 1 Gbit/s", include_str!("../../../platforms/becker-two/1gbit-ratio-25.toml")),
    ];
    let mut rows = Vec::new();
    for (name, text) in files {
        let platform = parse_platform(text, name).expect("a platform of the repository");
        let load: f64 = platform.processors.iter().map(|p| 1.0 / p.slowdown).sum();
        for size in [1000, 2000] {
            let mut errors = errors(&platform, size);
            errors.sort_by(f64::total_cmp);
            rows.push(vec![
                name.to_owned(),
                format!("{size}"),
                platform.len().to_string(),
                format!("{load:.2}"),
                format!("{:.4}", errors[errors.len() / 2]),
                format!("{:.4}", errors[0]),
                format!("{:.4}", errors[errors.len() - 1]),
            ]);
        }
    }
    println!(
        "{}",
        table(&["platform", "N", "processors", "cores needed", "median", "least", "largest"], rows)
    );
}

/// Compute time over slowdown x CPU time, of each processor with a share.
fn errors(platform: &Platform, size: u64) -> Vec<f64> {
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let weights: Vec<f64> = platform.processors.iter().map(|p| 1.0 / p.slowdown).collect();
    let layout = shapes::columns(shape, &weights).expect("columns serve everything");
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, 256).with_look_ahead(1));
    let matrix = |seed: usize| {
        let elements = (0..size * size).map(|i| f64::from_f64(((i as usize * 31 + seed) % 17) as f64 - 8.0));
        Matrix::new(size as usize, size as usize, elements.collect())
    };
    let run = run_threads(&matrix(1), &matrix(2), &schedule, platform, &Monitor::new())
        .expect("it is not interrupted");
    let compute = run.trace.compute();
    run.trace
        .lanes
        .iter()
        .zip(compute)
        .zip(&platform.processors)
        .filter(|((lane, _), _)| lane.cpu_seconds > 0.0)
        .map(|((lane, seconds), p)| seconds / (p.slowdown * lane.cpu_seconds))
        .collect()
}

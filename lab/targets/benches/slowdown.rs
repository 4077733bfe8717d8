//! The accuracy of slowdowns of emulated processors.
//!
//! `cargo bench -p targets --bench slowdown` multiplies two matrices on platforms with more and more emulated
//! processors and prints, for each processor, compute time / (slowdown x CPU time): 1.000 is exact. It needs
//! an otherwise idle machine, whose cores outnumber the sum of 1 / slowdown.

use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Plan, Shape, shapes};
use apportion::platform::{Platform, parse_platform};
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use apportion_report::table;
use harness::Sample;

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
            let errors = Sample::of(errors(&platform, size));
            rows.push(vec![
                name.to_owned(),
                format!("{size}"),
                platform.len().to_string(),
                format!("{load:.2}"),
                format!("{:.4}", errors.median()),
                format!("{:.4}", errors.least()),
                format!("{:.4}", errors.most()),
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
    let layout = shapes::Columns::default().layout(shape, &weights).expect("columns serve everything");
    let plan = Plan::of_layout("columns", platform.names(), layout, 1.0);
    let order = ScheduleOptions::new(Flow::OneToAll, 256).with_look_ahead(1);
    let models: Vec<Model> =
        weights.iter().map(|w| Model::constant("any", 1e9 * w).expect("a positive speed")).collect();
    let job = MatmulJob::new(Kernel::plus_times(), &plan, order, &models, 1);
    let block = |seed: u64| {
        let elements = (0..size * size).map(|i| ((i * 31 + seed) % 17) as f64 - 8.0);
        whole_block(Matrix::new(size as usize, size as usize, elements.collect()))
    };
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let session = Session::new(&world, platform, &monitor, job.work());
    let product = multiply(Operands::new(&block(1), &block(2)), &job, &session);
    let (_, report) = product.expect("the run is never stopped");
    let compute = report.trace.compute();
    report
        .trace
        .lanes
        .iter()
        .zip(compute)
        .zip(&platform.processors)
        .filter(|((lane, _), _)| lane.cpu_seconds > 0.0)
        .map(|((lane, seconds), p)| seconds / (p.slowdown * lane.cpu_seconds))
        .collect()
}

//! Seconds / ideal seconds, and forecast / measured, of whole runs on equal cores and on emulated unequal
//! processors. On equal cores, also the engine compared with the bare kernel, called by one thread per core
//! on rows of C.
//!
//! `cargo bench -p targets --bench efficiency` takes about four minutes on a quiet machine; `-- 1500` runs at
//! another N than 4,000. Each run is printed beside its targets: at most 1.03 of the ideal, a forecast within
//! 5 %, and the engine within 3 % of the bare kernel. Operands are read in place: nothing is copied or waited
//! for.

use apportion::kernels::{Kernel, View, ViewMut};
use apportion::matrix::Matrix;
use apportion::measure::{KernelUpdate, MeasureOptions, measure_speeds};
use apportion::model::{Machine, Model};
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Plan, Shape, shapes};
use apportion::platform::{Network, Platform};
use apportion::run::Monitor;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::{PlanOptions, plan_matmul};
use apportion_report::table;
use harness::median;
use harness::product::{RUNS, matrix, seconds, verdict};
use std::time::Instant;

/// Pivot blocks: the default of the command line, and one with which C is read and written less often.
const BLOCKS: [u64; 2] = [256, 1024];

/// Slowdowns, whose inverses add up to at most two cores.
const PLATFORMS: [&[f64]; 5] =
    [&[1.0, 1.0], &[1.5, 3.0], &[2.0, 18.0], &[2.0, 3.0, 6.0], &[2.5, 4.0, 5.0, 10.0]];

fn main() {
    let size = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(4000);
    let (a, b) = (matrix(size, 1), matrix(size, 2));
    for block in BLOCKS {
        println!("f64, N = {size}, pivot block {block}, medians of {RUNS}\n");
        report(size, block, (&a, &b));
    }
}

fn report(size: u64, block: u64, (a, b): (&Matrix<f64>, &Matrix<f64>)) {
    let mut rows = Vec::new();
    for slowdowns in PLATFORMS {
        let mut platform = Platform::from_speeds(&vec![1.0; slowdowns.len()]).expect("equal speeds");
        platform.network = Network::free();
        for (processor, &slowdown) in platform.processors.iter_mut().zip(slowdowns) {
            processor.slowdown = slowdown;
        }
        rows.push(row(size, block, &platform, (a, b)));
    }
    let head = [
        "slowdowns",
        "plan",
        "forecast",
        "measured",
        "ideal",
        "measured / ideal",
        "",
        "forecast / measured",
        "",
    ];
    println!("{}", table(&head, rows));
    let (bare, engine) = (bare_seconds(a, b), engine_seconds(size, block, (a, b)));
    println!(
        "two equal cores: engine {engine:.3} s, bare kernel {bare:.3} s, engine / bare {:.3} {}\n",
        engine / bare,
        verdict(engine / bare <= 1.03)
    );
}

/// The median of runs without any engine: two threads, each with one call of the kernel for half of C's rows.
fn bare_seconds(a: &Matrix<f64>, b: &Matrix<f64>) -> f64 {
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let kernel = Kernel::<f64>::plus_times();
    let mut c = vec![0.0; m * n];
    let run = |_| {
        c.fill(0.0);
        let begin = Instant::now();
        let (top, bottom) = ViewMut::dense(&mut c, m, n).split_at_row(m / 2);
        let (a, b) = (View::dense(a.as_slice(), m, k), View::dense(b.as_slice(), k, n));
        std::thread::scope(|scope| {
            scope.spawn(move || kernel.update(a.tile(0, 0, m / 2, k), b, top));
            kernel.update(a.tile(m / 2, 0, m - m / 2, k), b, bottom);
        });
        begin.elapsed().as_secs_f64()
    };
    median((0..RUNS).map(run))
}

/// The median of runs of the engine on the same halves.
fn engine_seconds(size: u64, block: u64, factors: (&Matrix<f64>, &Matrix<f64>)) -> f64 {
    let platform = Platform::from_speeds(&[1.0, 1.0]).expect("equal speeds");
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let layout = shapes::Rows::default().layout(shape, &[1.0, 1.0]).expect("two strips");
    let plan = Plan::of_layout("rows", platform.names(), layout, 1.0);
    let models = ["p0", "p1"].map(|name| Model::constant(name, 1e9).expect("a speed"));
    seconds(&plan, ScheduleOptions::new(Flow::Bulk, block), (&platform, &models, block), factors).measured
}

fn row(size: u64, block: u64, platform: &Platform, (a, b): (&Matrix<f64>, &Matrix<f64>)) -> Vec<String> {
    let largest = (size * size) as f64;
    let sizes = [0.05, 0.25, 0.5, 0.9].map(|part| largest * part);
    let update = KernelUpdate { kernel: Kernel::<f64>::plus_times(), block };
    let models = measure_speeds(&update, platform, &sizes, MeasureOptions::quick(), &Monitor::new())
        .expect("it is not interrupted")
        .models;
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let machine = Machine::new(platform.clone(), models, block);
    let choices = plan_matmul(shape, &machine, &PlanOptions::open(block, 8)).expect("columns serve all");
    let (plan, order) = (&choices[0].plan, choices[0].order);
    let took = seconds(plan, order, (platform, &machine.models, block), (a, b));
    let (slower, forecast) = (took.measured / took.ideal, took.forecast / took.measured);
    let slowdowns: Vec<String> = platform.processors.iter().map(|p| p.slowdown.to_string()).collect();
    vec![
        slowdowns.join(", "),
        format!("{}, {}{}", plan.method, order.flow, if order.overlaps() { ", overlap" } else { "" }),
        format!("{:.3} s", took.forecast),
        format!("{:.3} s", took.measured),
        format!("{:.3} s", took.ideal),
        format!("{slower:.3}"),
        verdict(slower <= 1.03),
        format!("{forecast:.3}"),
        verdict((forecast - 1.0).abs() <= 0.05),
    ]
}

//! Seconds / ideal seconds, and forecast / measured, of whole runs on emulated unequal processors.
//!
//! `cargo bench --bench efficiency` takes about two minutes on a quiet machine; `-- 1500` runs at another N
//! than 4,000. Each run is printed beside its targets: at most 1.05 of the ideal, and a forecast within 5 %. The
//! links are as fast as memory: data are copied, and nothing is waited for.

mod product;

use apportion::matrix::Matrix;
use apportion::measure::{MeasureOptions, measure_gemm};
use apportion::plan::Shape;
use apportion::platform::{Network, Platform};
use apportion::report::table;
use apportion::run::Monitor;
use apportion::select::{PlanOptions, plan_matmul};
use product::{BLOCK, RUNS, matrix, seconds, verdict};

/// Slowdowns, whose inverses add up to less than two cores.
const PLATFORMS: [&[f64]; 4] = [&[1.5, 3.0], &[2.0, 18.0], &[2.0, 3.0, 6.0], &[2.5, 4.0, 5.0, 10.0]];

fn main() {
    let size = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(4000);
    println!("f64, N = {size}, medians of {RUNS}\n");
    let (a, b) = (matrix(size, 1), matrix(size, 2));
    let mut rows = Vec::new();
    for slowdowns in PLATFORMS {
        let mut platform = Platform::from_speeds(&vec![1.0; slowdowns.len()]).expect("equal speeds");
        platform.network = Network::free();
        for (processor, &slowdown) in platform.processors.iter_mut().zip(slowdowns) {
            processor.slowdown = slowdown;
        }
        rows.push(row(size, &platform, (&a, &b)));
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
}

fn row(size: u64, platform: &Platform, (a, b): (&Matrix<f64>, &Matrix<f64>)) -> Vec<String> {
    let largest = (size * size) as f64;
    let sizes = [0.05, 0.25, 0.5, 0.9].map(|part| largest * part);
    let models = measure_gemm::<f64>(platform, &sizes, BLOCK, MeasureOptions::quick(), &Monitor::new())
        .expect("it is not interrupted")
        .models;
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let choices = plan_matmul(shape, platform, &models, BLOCK, &PlanOptions::open(BLOCK, 8))
        .expect("columns serve all");
    let (plan, order) = (&choices[0].plan, choices[0].order);
    let took = seconds(plan, order, (platform, &models), (a, b));
    let (slower, forecast) = (took.measured / took.ideal, took.forecast / took.measured);
    let slowdowns: Vec<String> = platform.processors.iter().map(|p| p.slowdown.to_string()).collect();
    vec![
        slowdowns.join(", "),
        format!("{}, {}{}", plan.method, order.flow, if order.overlaps() { ", overlap" } else { "" }),
        format!("{:.3} s", took.forecast),
        format!("{:.3} s", took.measured),
        format!("{:.3} s", took.ideal),
        format!("{slower:.3}"),
        verdict(slower <= 1.05),
        format!("{forecast:.3}"),
        verdict((forecast - 1.0).abs() <= 0.05),
    ]
}

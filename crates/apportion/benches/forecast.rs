//! How good is the forecast, and how close to the ideal is a run?
//!
//! `cargo bench --bench forecast` measures the processors, then runs each plan five times and prints medians: first
//! even split, straight line and square corner on an emulated 9:1 machine with a 100 Mbit/s link, then all methods
//! that `auto` considers at N = 3,000 with a memory-speed link.

use apportion::shapes::{Method, Terms};
use apportion::{
    Flow, Kernel, Layout, Matrix, MeasureOptions, Metrics, Model, Monitor, Multiplication, Order, Plan,
    Platform, Problem, Scaling, Shape, measure_gemm, multiply, parse_platform, table,
};

const BLOCK: u64 = 256;
const RUNS: usize = 5;

fn main() {
    let slow = include_str!("../../../platforms/nine-to-one-100mbit.toml");
    let bulk = Order { flow: Flow::Bulk, block: BLOCK, overlap: false, look_ahead: 1 };
    println!("9:1, half-duplex 100 Mbit/s, N = 2,000, bulk, medians of {RUNS}\n");
    let methods = [
        ("even split", Method::StraightLine, true),
        ("straight line", Method::StraightLine, false),
        ("square corner", Method::SquareCorner, false),
    ];
    compare(slow, 2000, &methods, &[bulk]);
    let fast = include_str!("../../../platforms/nine-to-one-fast.toml");
    println!("9:1, memory-speed link, N = 3,000, medians of {RUNS}\n");
    let orders = [
        Order { flow: Flow::OneToAll, overlap: true, ..bulk },
        Order { flow: Flow::OneToAll, ..bulk },
        Order { overlap: true, ..bulk },
        bulk,
    ];
    compare(fast, 3000, &methods[1..], &orders);
}

fn compare(file: &str, size: u64, methods: &[(&str, Method, bool)], orders: &[Order]) {
    let platform = parse_platform(file, "platform").expect("a platform of the repository");
    let sizes = [65_536.0, 524_288.0, 2_097_152.0];
    let models = measure_gemm::<f64>(&platform, &sizes, BLOCK, MeasureOptions::quick(), &Monitor::new())
        .expect("nobody stops it")
        .models;
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let half = shape.elements() as f64 / 2.0;
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(half)).collect();
    let (a, b) = (matrix(size, 1), matrix(size, 2));
    let mut rows = Vec::new();
    for &(name, method, even) in methods {
        let weights = if even { vec![1.0; speeds.len()] } else { speeds.clone() };
        let layout = method.layout(shape, &weights, &Terms::default()).expect("two processors");
        let plan = plan(name, &platform, layout);
        for &order in orders {
            rows.push(row(&plan, order, (&platform, &models), (&a, &b)));
        }
    }
    println!("{}", table(&["plan", "flow", "forecast", "measured", "error", "measured / ideal"], rows));
}

fn row(
    plan: &Plan,
    order: Order,
    (platform, models): (&Platform, &[Model]),
    (a, b): (&Matrix<f64>, &Matrix<f64>),
) -> Vec<String> {
    let what = Multiplication {
        kernel: Kernel::plus_times(),
        plan,
        order,
        platform,
        models,
        models_block: BLOCK,
        scaling: Scaling::none(1.0),
        adaptive: None,
        seed: 1,
    };
    let reports: Vec<_> =
        (0..RUNS).map(|_| multiply(a, b, &what, &Monitor::new()).expect("nobody stops it").1).collect();
    let mut seconds: Vec<f64> = reports.iter().map(|r| r.seconds()).collect();
    seconds.sort_by(f64::total_cmp);
    let (median, forecast) = (seconds[RUNS / 2], reports[0].forecast_seconds);
    vec![
        plan.method.clone(),
        format!("{}{}", order.flow, if order.overlap { ", overlap" } else { "" }),
        format!("{forecast:.3} s"),
        format!("{median:.3} s"),
        format!("{:+.1} %", 100.0 * (forecast / median - 1.0)),
        format!("{:.3}", median / reports[0].ideal_seconds),
    ]
}

fn plan(name: &str, platform: &Platform, layout: Layout) -> Plan {
    Plan {
        method: name.into(),
        problem: Problem::Matmul(layout.shape()),
        processors: platform.names(),
        shares: layout.shares(),
        metrics: Metrics::of_layout(&layout, 1.0),
        layout: Some(layout),
        forecast: None,
    }
}

fn matrix(size: u64, seed: u64) -> Matrix<f64> {
    let elements = (0..size * size).map(|i| ((i * 31 + seed * 7) % 1009) as f64 / 500.0 - 1.0);
    Matrix::new(size as usize, size as usize, elements.collect())
}

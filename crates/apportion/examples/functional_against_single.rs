//! Fig. 10 of Lastovetsky and Reddy 2007, emulated: striped N x N matrix multiplication on eight processors like those of
//! Table 2, divided by functional models and by three single-number models.
//!
//! `cargo run --release --example functional_against_single [picture.svg]`

use apportion::{
    Emulated, Interpolation, Model, Plot, Point, Series, plot_svg,
    shares::{fpm, proportional},
    write_whole,
};

/// Million multiply-adds per second against the megabytes of the task (a stripe of A and of C, and all of B). The constants
/// are chosen so that X1 is about 13.5, 3.75 and 57 times as fast as X5 at (500, 1000), (2500, 5000) and (4000, 8000), as section 4
/// reports, and that processors with more free memory page later.
const PROCESSORS: [&str; 8] = [
    "peak 135, knee 140 0.22, cliff 1300 0.5",
    "peak 135, knee 140 0.22, cliff 1330 0.5",
    "peak 135, knee 140 0.22, cliff 1320 0.5",
    "peak 135, knee 140 0.22, cliff 1320 0.5",
    "peak 10, knee 260 0.89, cliff 600 0.0585",
    "peak 10, knee 260 0.89, cliff 760 0.0585",
    "peak 10, knee 260 0.89, cliff 770 0.0585",
    "peak 10, knee 260 0.89, cliff 745 0.0585",
];

fn main() -> apportion::Result<()> {
    let processors: Vec<Emulated> =
        PROCESSORS.iter().map(|text| text.parse()).collect::<apportion::Result<_>>()?;
    let measured = [(500.0, 1000.0), (2500.0, 5000.0), (4000.0, 8000.0)];
    println!("speed of X1 over X5 at (rows, N):");
    for (rows, n) in measured {
        let ratio = speed(&processors[0], rows, n) / speed(&processors[4], rows, n);
        println!("  ({rows}, {n}): {ratio:.2}");
    }
    println!("\nforecast seconds, and how many times longer than by functional models");
    println!(
        "{:>6} {:>12} {:>12} {:>8} {:>12} {:>8} {:>12} {:>8}",
        "N", "functional", "small", "ratio", "medium", "ratio", "large", "ratio"
    );
    let mut curves: [Vec<[f64; 2]>; 3] = Default::default();
    for n in (1000..=10_000).step_by(1000) {
        let models = processors
            .iter()
            .enumerate()
            .map(|(i, p)| section(&format!("X{}", i + 1), p, n as f64))
            .collect::<apportion::Result<Vec<Model>>>()?;
        let functional = ends(&processors, &fpm(&models, n)?, n as f64);
        print!("{n:>6} {functional:>12.2}");
        for ((rows, at), curve) in measured.into_iter().zip(&mut curves) {
            let speeds: Vec<f64> = processors.iter().map(|p| speed(p, rows, at)).collect();
            let seconds = ends(&processors, &proportional(n, &speeds), n as f64);
            curve.push([n as f64, seconds / functional]);
            print!(" {seconds:>12.2} {:>8.2}", seconds / functional);
        }
        println!();
    }
    match std::env::args().nth(1) {
        Some(path) => write_whole(std::path::Path::new(&path), picture(measured, curves).as_bytes()),
        None => Ok(()),
    }
}

/// Fig. 10: how many times longer each single-number model takes.
fn picture(measured: [(f64, f64); 3], curves: [Vec<[f64; 2]>; 3]) -> String {
    let series = measured.into_iter().zip(curves).enumerate().map(|(colour, ((rows, n), points))| Series {
        name: format!("measured at {rows} x {n}"),
        points,
        dashed: false,
        colour,
    });
    plot_svg(&Plot {
        title: [
            "Time with single-number models over time with speed functions".into(),
            "Eight emulated processors after Table 2 of Lastovetsky and Reddy 2007".into(),
        ],
        axes: ["N, of N x N matrices".into(), "times as long".into()],
        series: series.collect(),
        references: vec![(1.0, "speed functions".into())],
    })
}

/// Multiply-adds per second for `rows` of an N x N product.
fn speed(processor: &Emulated, rows: f64, n: f64) -> f64 {
    let megabytes = 8e-6 * (2.0 * rows * n + n * n);
    1e6 * processor.speed(megabytes)
}

/// The model of one processor over its number of rows: the section of its surface at N (Fig. 8(d)).
fn section(name: &str, processor: &Emulated, n: f64) -> apportion::Result<Model> {
    let points = (1..=100).map(|i| {
        let rows = n * f64::from(i) / 100.0;
        Point::new(rows, rows * n * n / speed(processor, rows, n))
    });
    Model::new(name, Interpolation::PiecewiseLinear, points.collect(), None)
}

/// When the last processor ends, in truth.
fn ends(processors: &[Emulated], shares: &[u64], n: f64) -> f64 {
    let seconds = |(p, &rows): (&Emulated, &u64)| match rows {
        0 => 0.0,
        rows => rows as f64 * n * n / speed(p, rows as f64, n),
    };
    processors.iter().zip(shares).map(seconds).fold(0.0, f64::max)
}

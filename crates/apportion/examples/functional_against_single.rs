//! Fig. 10 of Lastovetsky and Reddy 2007: striped N x N matrix multiplication on eight processors like those
//! of Table 2, divided by functional models (sections of a file's surfaces at N) and by three single-number
//! models.
//!
//! `cargo run --release --example functional_against_single [--emulate] [surfaces.json] [picture.svg]`
//!
//! By forecast; with `--emulate` also by eight threads that take as long as the surfaces say, scaled so that
//! the functional division takes a fifth of a second (about 20 seconds in all).

use apportion::model::{Surface, Surfaces};
use apportion::output::write_whole;
use apportion::plan::shares::{fpm, proportional};
use apportion::report::{Plot, Series, plot_svg_on};
use std::path::Path;
use std::time::{Duration, Instant};

/// Seconds that an emulated division by functional models takes.
const EMULATED: f64 = 0.2;
/// The sizes at which the single-number models are measured: (rows, N).
const MEASURED: [(f64, f64); 3] = [(500.0, 1000.0), (2500.0, 5000.0), (4000.0, 8000.0)];

fn main() -> apportion::error::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |end: &str| arguments.iter().find(|a| a.ends_with(end)).cloned();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../platforms/fpm-2007-surfaces.json").to_owned();
    let file = named(".json").unwrap_or(shipped);
    let text = std::fs::read_to_string(&file)
        .map_err(|e| apportion::error::Error::input(&file, e.to_string(), "name a surfaces file"))?;
    let surfaces = Surfaces::parse(&text, &file)?;
    println!(
        "speed of {} over {} at (rows, N):",
        surfaces.surfaces[0].processor(),
        surfaces.surfaces[4].processor()
    );
    for (rows, n) in MEASURED {
        let ratio = surfaces.surfaces[0].speed(&[rows, n]) / surfaces.surfaces[4].speed(&[rows, n]);
        println!("  ({rows}, {n}): {ratio:.2}");
    }
    let emulate = arguments.iter().any(|a| a == "--emulate");
    println!(
        "\nforecast seconds, and how many times longer than by functional models{}",
        if emulate { " (emulated)" } else { "" }
    );
    println!("{:>6} {:>12} {:>22} {:>22} {:>22}", "N", "functional", "small", "medium", "large");
    let mut curves: [Vec<[f64; 2]>; 3] = Default::default();
    for n in (1000..=10_000).step_by(1000) {
        // Fig. 8(d): cut at N, then divide its rows.
        let models = surfaces.section(&[None, Some(n as f64)])?;
        let shares = fpm(&models, n)?;
        let functional = ends(&surfaces.surfaces, &shares, n as f64);
        let scale = EMULATED / functional;
        let emulated = if emulate { run(&surfaces.surfaces, &shares, n as f64, scale) } else { f64::NAN };
        print!("{n:>6} {functional:>12.2}");
        for ((rows, at), curve) in MEASURED.into_iter().zip(&mut curves) {
            let speeds: Vec<f64> = surfaces.surfaces.iter().map(|s| s.speed(&[rows, at])).collect();
            let shares = proportional(n, &speeds);
            let ratio = ends(&surfaces.surfaces, &shares, n as f64) / functional;
            curve.push([n as f64, ratio]);
            let measured = match emulate {
                true => format!(" ({:.2})", run(&surfaces.surfaces, &shares, n as f64, scale) / emulated),
                false => String::new(),
            };
            print!(" {:>22}", format!("{ratio:.2}{measured}"));
        }
        println!();
    }
    match named(".svg") {
        Some(path) => write_whole(Path::new(&path), picture(curves).as_bytes()),
        None => Ok(()),
    }
}

/// Fig. 10: how many times longer each single-number model takes.
fn picture(curves: [Vec<[f64; 2]>; 3]) -> String {
    let series = MEASURED.into_iter().zip(curves).enumerate().map(|(colour, ((rows, n), points))| Series {
        name: format!("measured at {rows} x {n}"),
        points,
        colour,
        ..Series::default()
    });
    let plot = Plot {
        title: [
            "Time with single-number models over time with speed functions".into(),
            "Eight emulated processors after Table 2 of Lastovetsky and Reddy 2007".into(),
        ],
        axes: ["N, of N x N matrices".into(), "time / time with speed functions".into()],
        series: series.collect(),
        references: vec![(1.0, "speed functions".into())],
        ..Plot::default()
    };
    // Most values are between 1 and 1.3.
    plot_svg_on(&plot, [false, true])
}

/// Seconds for a stripe of `rows` of an N x N product.
fn seconds(surface: &Surface, rows: u64, n: f64) -> f64 {
    if rows == 0 { 0.0 } else { surface.seconds(&[rows as f64, n]) }
}

/// The time at which the last processor finishes by the true speeds.
fn ends(surfaces: &[Surface], shares: &[u64], n: f64) -> f64 {
    surfaces.iter().zip(shares).map(|(s, &rows)| seconds(s, rows, n)).fold(0.0, f64::max)
}

/// The same in real time: a thread for each processor takes the processor's time.
fn run(surfaces: &[Surface], shares: &[u64], n: f64, scale: f64) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for (surface, &rows) in surfaces.iter().zip(shares) {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_secs_f64(scale * seconds(surface, rows, n)))
            });
        }
    });
    begin.elapsed().as_secs_f64()
}

//! Writes `platforms/fpm-2007-surfaces.json`: the eight processors of Lastovetsky and Reddy 2007, Table 2, as
//! surfaces over (rows, N) of a stripe of an N x N product.
//!
//! `cargo run --example fpm_2007_surfaces >platforms/fpm-2007-surfaces.json`

use apportion::platform::Emulated;

/// Million multiply-adds per second against the megabytes of the task (a stripe of A and of C, and all of B).
/// The source gives no curves: the constants are chosen so that X1 is about 13.5, 3.75 and 57 times as fast
/// as X5 at (500, 1000), (2500, 5000) and (4000, 8000), as section 4 reports, and that processors with more
/// free memory page later.
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

fn main() -> apportion::error::Result<()> {
    // Rows up to N, closer together than a cliff is wide; 500, 2,500 and 4,000 among them.
    let mut rows: Vec<f64> = (0..=28).map(|i| (10.0 * 1.28_f64.powi(i)).round()).collect();
    rows.extend([500.0, 2500.0, 4000.0]);
    rows.extend((1..=10).map(|i| 1000.0 * f64::from(i)));
    rows.sort_by(f64::total_cmp);
    rows.dedup();
    rows.retain(|x| *x <= 10_000.0);
    println!(
        "{{\"format\": \"apportion-surfaces\", \"version\": 1, \"kernel\": \"striped matrix product, 2007\","
    );
    println!("\"axes\": [\"rows\", \"n\"], \"work\": {{\"rows\": 1, \"n\": 2}}, \"surfaces\": [");
    for (i, text) in PROCESSORS.iter().enumerate() {
        let processor: Emulated = text.parse()?;
        let mut points = Vec::new();
        for n in (1..=10).map(|i| 1000.0 * f64::from(i)) {
            for &rows in &rows {
                let megabytes = 8e-6 * (2.0 * rows * n + n * n);
                let seconds = rows * n * n / (1e6 * processor.speed(megabytes));
                points.push(format!("{{\"at\":[{rows},{n}],\"seconds\":{seconds:.5e}}}"));
            }
        }
        let end = if i + 1 < PROCESSORS.len() { "," } else { "]}" };
        println!("{{\"processor\": \"X{}\", \"points\": [\n{}]}}{end}", i + 1, points.join(","));
    }
    Ok(())
}

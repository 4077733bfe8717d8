//! The eight processors of Lastovetsky and Reddy 2007, Table 2, as surfaces over (rows, N) of a stripe of an
//! N x N product: the file `platforms/fpm-2007-surfaces.json`.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table};
use apportion::error::Result;
use apportion::model::Surfaces;
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

/// Free main memory of Table 2, kBytes.
const FREE: [u64; 8] = [938_976, 972_924, 967_176, 967_312, 134_400, 409_600, 418_816, 395_264];

/// The sizes at which section 4 states the ratio of X1 to X5: rows, N, ratio.
pub const RATIOS: [(f64, f64, f64); 3] =
    [(500.0, 1000.0, 13.5), (2500.0, 5000.0, 3.75), (4000.0, 8000.0, 57.0)];

/// The file of the surfaces as shipped.
pub const SHIPPED: &str = include_str!("../../../../platforms/fpm-2007-surfaces.json");

/// The surfaces of all processors as a file.
fn surfaces() -> Result<String> {
    // Rows up to N, closer together than a cliff is wide; 500, 2,500 and 4,000 among them.
    let mut rows: Vec<f64> = (0..=28).map(|i| (10.0 * 1.28_f64.powi(i)).round()).collect();
    rows.extend([500.0, 2500.0, 4000.0]);
    rows.extend((1..=10).map(|i| 1000.0 * f64::from(i)));
    rows.sort_by(f64::total_cmp);
    rows.dedup();
    rows.retain(|x| *x <= 10_000.0);
    let mut text =
        "{\"format\": \"apportion-surfaces\", \"version\": 1, \"kernel\": \"striped matrix product, \
         2007\",\n\"axes\": [\"rows\", \"n\"], \"work\": {\"rows\": 1, \"n\": 2}, \"surfaces\": [\n"
            .to_owned();
    for (i, constants) in PROCESSORS.iter().enumerate() {
        let processor: Emulated = constants.parse()?;
        let mut points = Vec::new();
        for n in (1..=10).map(|i| 1000.0 * f64::from(i)) {
            for &rows in &rows {
                let megabytes = 8e-6 * (2.0 * rows * n + n * n);
                let seconds = rows * n * n / (1e6 * processor.speed(megabytes));
                points.push(format!("{{\"at\":[{rows},{n}],\"seconds\":{seconds:.5e}}}"));
            }
        }
        let end = if i + 1 < PROCESSORS.len() { "," } else { "]}" };
        text += &format!("{{\"processor\": \"X{}\", \"points\": [\n{}]}}{end}\n", i + 1, points.join(","));
    }
    Ok(text)
}

pub struct Table2;

impl Experiment for Table2 {
    fn about(&self) -> About {
        About {
            ids: &["fpm-table-2", "fpm-8"],
            source: "Lastovetsky and Reddy 2007, 4",
            shows: "eight processors as surfaces: the stated ratios of X1 to X5",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let made = surfaces()?;
        let shipped = Surfaces::parse(SHIPPED, "fpm-2007-surfaces.json")?;
        let same = Surfaces::parse(&made, "surfaces")? == shipped;
        report.checks.push(Check::new(
            "the shipped surfaces are those of the constants",
            "equal",
            if same { "equal" } else { "different" },
            same,
        ));
        let speed = |i: usize, rows: f64, n: f64| shipped.surfaces[i].speed(&[rows, n]);
        for (rows, n, published) in RATIOS {
            let here = speed(0, rows, n) / speed(4, rows, n);
            let check = Check::near(format!("X1 over X5 at ({rows}, {n})"), published, here, 0.01);
            report.checks.push(check.fitted(
                "The paper's curves are pictures: the constants of the surfaces were chosen for this ratio.",
            ));
        }
        let mut table = Table::new(
            "Million multiply-adds per second",
            &["processor", "free memory, kB", "small", "medium", "large"],
        );
        for (i, free) in FREE.into_iter().enumerate() {
            let speeds = RATIOS.map(|(rows, n, _)| format!("{:.2}", speed(i, rows, n) / 1e6));
            table.row([format!("X{}", i + 1), free.to_string()].into_iter().chain(speeds));
        }
        report.tables.push(table);
        report.files.push(("fpm-2007-surfaces.json".into(), made));
        report.note(
            "The paper gives its curves as pictures only. Small, medium and large are (500, 1000), (2500, \
                 5000) and (4000, 8000); the constants are chosen for the three ratios, and for paging in \
                 the order of free memory.",
        );
        Ok(report)
    }
}

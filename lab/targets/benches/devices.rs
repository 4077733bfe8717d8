//! A device beside a core: how near to ideal, how true the forecast is, and whether auto is ever slower than the
//! better of the two alone.
//!
//! `POCL_MAX_PTHREAD_COUNT=1 cargo bench -p targets --bench devices` runs f64 products on core 0 and on `opencl:0`,
//! which is driven by core 1: in core, and with memory for a quarter and a sixteenth of C; then on 40 machines with
//! emulated speeds and links. It needs an otherwise idle machine of two cores with pocl, and takes about ten minutes.
//! `-- several` runs them on machines of several kinds, with and without a device, and takes a minute.

use apportion::error::Result;
use apportion::job::{Context, MatrixJob, MatrixOperand, Operation, ProductTask, Sources};
use apportion::kernels::Semiring;
use apportion::matrix::{AnyView, Matrix};
use apportion::platform::parse_platform;
use apportion::product::RunReport;
use apportion::run::{Monitor, World};
use apportion_report::table;
use harness::median;

const SIZE: usize = 1536;
const RUNS: usize = 7;
/// The order of the matrices on emulated machines, and the runs of each.
const SMALL: usize = 1024;
const SMALL_RUNS: usize = 3;
/// The order of the matrices on machines of several kinds.
const LARGE: usize = 2000;
/// The device's time over the core's, and the bandwidths of its link in GB/s.
const RATIOS: [f64; 8] = [0.1, 0.2, 0.4, 0.8, 1.25, 2.5, 5.0, 10.0];
const LINKS: [f64; 5] = [0.1, 0.4, 1.6, 6.4, 30.0];

fn main() {
    let matrices = [SIZE, SMALL].map(|n| [1, 2].map(|seed| matrix(n, seed)));
    // The first use of the library is by a product: its driver's threads then stay on core 1.
    if let Err(error) = product(&matrices[1], &device("")) {
        println!("{error}");
        return;
    }
    if std::env::args().any(|argument| argument == "several") {
        return several(&[1, 2].map(|seed| matrix(LARGE, seed)));
    }
    for device in apportion::device::devices().unwrap_or_default() {
        println!("{}: {}", device.id, device.name);
    }
    beside(&matrices[0]);
    machines(&matrices[1]);
}

/// In core and out of core, beside each alone.
fn beside(matrices: &[Matrix<f64>; 2]) {
    let c = (SIZE * SIZE * size_of::<f64>()) as f64;
    let alone = [CORE.to_owned(), device("")]
        .map(|text| median(runs(matrices, &text, RUNS).iter().map(RunReport::seconds)));
    println!("alone: core {:.1} ms, device {:.1} ms", 1e3 * alone[0], 1e3 * alone[1]);
    let mut rows = Vec::new();
    for (name, part) in [("in core", None), ("a quarter of C", Some(4.0)), ("a sixteenth of C", Some(16.0))] {
        let memory = part.map_or(String::new(), |part| format!("memory = \"{:.0} B\"\n", c / part));
        let reports = runs(matrices, &format!("{CORE}{}", device(&memory)), RUNS);
        let seconds = median(reports.iter().map(RunReport::seconds));
        let within =
            reports.iter().filter(|r| (r.seconds() / r.forecast_seconds - 1.0).abs() <= 0.05).count();
        rows.push(vec![
            name.to_owned(),
            format!("{:.1}", 1e3 * seconds),
            format!("{:.3}", median(reports.iter().map(|report| report.seconds() / report.ideal_seconds))),
            format!("{:.3}", 1.0 / seconds / (1.0 / alone[0] + 1.0 / alone[1])),
            format!("{:.3}", median(reports.iter().map(|report| report.seconds() / report.forecast_seconds))),
            format!("{within} of {RUNS}"),
        ]);
    }
    let header = ["device memory", "ms", "seconds / ideal", "of the sum", "/ forecast", "within 5 %"];
    println!("{}", table(&header, rows));
}

/// Automatic plans on emulated machines, beside the better of the two alone.
fn machines(matrices: &[Matrix<f64>; 2]) {
    let mut rows = Vec::new();
    let mut slower = 0;
    for ratio in RATIOS {
        let slow = |by: f64| if by > 1.0 { format!("slowdown = {by}\n") } else { String::new() };
        let core = format!("{CORE}{}", slow(1.0 / ratio));
        for bandwidth in LINKS {
            let link = format!(
                "[network]\nemulate = true\n[[network.link]]\nlatency = \"20 us\"\nbandwidth = \"{bandwidth} GB/s\"\n"
            );
            let device = device(&slow(ratio));
            let own = format!("{link}between = [\"device\", \"device\"]\n");
            let joined = format!("{link}between = [\"device\", \"core\"]\n");
            let both = format!("{core}{device}{joined}");
            // Ratios decide the shares.
            let even = format!("{core}speed = 1\n{device}speed = 1\n{joined}");
            let [alone, behind, even, auto] = [core.clone(), format!("{device}{own}"), even, both]
                .map(|text| runs(matrices, &text, SMALL_RUNS))
                .map(|reports| {
                    (
                        median(reports.iter().map(RunReport::seconds)),
                        median(reports.iter().map(|r| r.forecast_seconds)),
                    )
                });
            let better = alone.0.min(behind.0);
            slower += usize::from(auto.0 > 1.03 * better);
            rows.push(vec![
                format!("{ratio}"),
                format!("{bandwidth}"),
                format!("{:.1}", 1e3 * alone.0),
                format!("{:.1}", 1e3 * behind.0),
                format!("{:.1}", 1e3 * even.0),
                format!("{:.1}", 1e3 * auto.0),
                format!("{:.1}", 1e3 * auto.1),
                format!("{:.2}", better / auto.0),
            ]);
        }
    }
    let header = [
        "device's time",
        "link, GB/s",
        "core, ms",
        "device, ms",
        "equal, ms",
        "auto, ms",
        "forecast, ms",
        "better / auto",
    ];
    println!("{}", table(&header, rows));
    println!(
        "slower than the better of the two by more than 3 %: {slower} of {}",
        RATIOS.len() * LINKS.len()
    );
}

/// Each processor of some machines alone, equal shares, and those of the plan with its forecast.
fn several(matrices: &[Matrix<f64>; 2]) {
    let slow = |name: &str, core: usize, by: f64| {
        format!("[[processor]]\nname = \"{name}\"\ncores = [{core}]\nslowdown = {by}\n")
    };
    let link = |between: &str| {
        format!(
            "[network]\nemulate = true\n[[network.link]]\nlatency = \"20 us\"\nbandwidth = \"1.6 GB/s\"\nbetween = \
             [\"device\", \"{between}\"]\n"
        )
    };
    let plain = || Vec::from([CORE.to_owned(), device("")]);
    let machines = [
        ("two equal cores", vec![slow("a", 0, 1.0), slow("b", 1, 1.0)], None),
        ("a core and one at a third", vec![slow("fast", 0, 1.0), slow("slow", 1, 3.0)], None),
        (
            "four processors, 4:2:1:1",
            vec![slow("a", 0, 2.5), slow("b", 1, 5.0), slow("c", 0, 10.0), slow("d", 1, 10.0)],
            None,
        ),
        ("a core and a device", plain(), None),
        ("the same behind 1.6 GB/s", plain(), Some(link as fn(&str) -> String)),
        ("a core at a third and the device", vec![slow("core", 0, 3.0), device("")], None),
    ];
    let mut rows = Vec::new();
    for (name, processors, link) in machines {
        let link = |between: &str| link.map_or(String::new(), |link| link(between));
        let measured = |text: String| {
            let reports = runs(matrices, &text, SMALL_RUNS);
            [
                median(reports.iter().map(RunReport::seconds)),
                median(reports.iter().map(|report| report.forecast_seconds)),
            ]
        };
        let ms = |seconds: f64| format!("{:.0}", 1e3 * seconds);
        let alone = processors.iter().map(|one| {
            let own = if one.contains("device = ") { link("device") } else { String::new() };
            ms(measured(format!("{one}{own}"))[0])
        });
        let alone = alone.collect::<Vec<_>>().join(", ");
        let even = processors.iter().map(|one| format!("{one}speed = 1\n")).collect::<String>();
        let [even, _] = measured(even + &link("core"));
        let [seconds, forecast] = measured(processors.concat() + &link("core"));
        rows.push(vec![
            name.to_owned(),
            alone,
            ms(even),
            ms(seconds),
            format!("{:.2}", even / seconds),
            ms(forecast),
            format!("{:.3}", seconds / forecast),
        ]);
    }
    let header = [
        "machine",
        "each alone, ms",
        "equal shares, ms",
        "by speeds, ms",
        "times as fast",
        "forecast, ms",
        "/ forecast",
    ];
    println!("{}", table(&header, rows));
}

const CORE: &str = "[[processor]]\nname = \"core\"\ncores = [0]\n";

fn device(more: &str) -> String {
    format!("[[processor]]\nname = \"device\"\ncores = [1]\ndevice = \"opencl:0\"\n{more}")
}

fn matrix(n: usize, seed: usize) -> Matrix<f64> {
    Matrix::new(n, n, (0..n * n).map(|i| ((i * 31 + seed) % 17) as f64 - 8.0).collect())
}

fn operand<'a>(name: &'static str, matrix: &'a Matrix<f64>) -> MatrixOperand<'a> {
    MatrixOperand::Array { name, view: AnyView::new(matrix.rows(), matrix.cols(), matrix.as_slice()) }
}

/// Products on a platform, after one that does not count.
fn runs(matrices: &[Matrix<f64>; 2], platform: &str, count: usize) -> Vec<RunReport> {
    let run = |_| product(matrices, platform).expect("nothing stops it");
    (0..=count).map(run).skip(1).collect()
}

fn product(matrices: &[Matrix<f64>; 2], platform: &str) -> Result<RunReport> {
    let platform = parse_platform(platform, "bench").expect("a platform");
    let task = ProductTask {
        b: Some(operand("b", &matrices[1])),
        sources: Sources { platform: Some(platform), ..Sources::default() },
        ..ProductTask::new(Operation::Product, Semiring::PlusTimes, operand("a", &matrices[0]))
    };
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    Ok(MatrixJob::open(&task, Context::silent(&world, &monitor))?.run()?.report)
}

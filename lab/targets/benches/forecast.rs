//! The accuracy of forecasts compared with measurements.
//!
//! `cargo bench -p targets --bench forecast` measures emulated processors, runs a product on each of twenty
//! settings of network, layout and flow five times, and prints forecast, median and error of each; at the end
//! the median and the worst error beside their targets, 5 % and 15 %. Two to three minutes on a quiet machine
//! of two cores; `-- 900` runs at another N than 1,600.

use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::measure::{KernelUpdate, MeasureOptions, measure_speeds};
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Platform, parse_platform};
use apportion::run::Monitor;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion_report::table;
use harness::Sample;
use harness::product::{RUNS, matrix, seconds, verdict};

/// Slowdowns whose inverses add up to less than two cores, and the runs on processors with these slowdowns.
const MACHINES: [(&[f64], &[Setting]); 4] = [
    (
        &[2.5, 22.5],
        &[
            Setting(SERIAL, Method::StraightLine, Flow::Bulk, Wait),
            Setting(SERIAL, Method::SquareCorner, Flow::Bulk, Wait),
            Setting(SERIAL, Method::SquareCorner, Flow::Bulk, Overlap),
            Setting(FULL, Method::StraightLine, Flow::OneToAll, Wait),
            Setting(FULL, Method::SquareCorner, Flow::OneToAll, Overlap),
            Setting(FAST, Method::StraightLine, Flow::OneToAll, Overlap),
        ],
    ),
    (
        &[4.0, 8.0],
        &[
            Setting(FAR, Method::StraightLine, Flow::OneToAll, Wait),
            Setting(FAR, Method::StraightLine, Flow::Ring, Overlap),
            Setting(SERIAL, Method::Columns, Flow::Broadcast, Wait),
        ],
    ),
    (
        &[5.0, 10.0, 10.0],
        &[
            Setting(FULL, Method::BlockRectangle, Flow::Bulk, Wait),
            Setting(FULL, Method::Columns, Flow::Ring, Wait),
            Setting(SERIAL, Method::Columns, Flow::Ring, Overlap),
            Setting(STAR, Method::StraightLine, Flow::Bulk, Wait),
            Setting(STAR, Method::Columns, Flow::OneToAll, Overlap),
            Setting(BUS, Method::Rows, Flow::Broadcast, Wait),
        ],
    ),
    (
        &[6.0, 10.0, 12.0, 20.0],
        &[
            Setting(BUS, Method::Rows, Flow::Broadcast, Overlap),
            Setting(BUS, Method::Columns, Flow::OneToAll, Wait),
            Setting(CLUSTERS, Method::Columns, Flow::Ring, Wait),
            Setting(CLUSTERS, Method::Columns, Flow::OneToAll, Overlap),
            Setting(CLUSTERS, Method::Recursive, Flow::Bulk, Wait),
        ],
    ),
];

/// A network (its name, and the file's `[network]`), a layout, a flow, and whether to compute while data
/// travel.
struct Setting(Net, Method, Flow, Meanwhile);
type Net = (&'static str, &'static str);

#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Wait,
    Overlap,
}
use Meanwhile::{Overlap, Wait};

/// Pivot block, of the runs and of the models.
const BLOCK: u64 = 256;

const SERIAL: Net = ("half duplex", "latency = \"200 us\"\nbandwidth = \"400 Mbit/s\"\nduplex = false\n");
const FULL: Net = ("full duplex", "latency = \"200 us\"\nbandwidth = \"400 Mbit/s\"\n");
const FAST: Net = ("as fast as memory", "bandwidth = \"10 GB/s\"\n");
const FAR: Net = ("latency 10 ms", "latency = \"10 ms\"\nbandwidth = \"800 Mbit/s\"\n");
const STAR: Net =
    ("star", "latency = \"200 us\"\nbandwidth = \"400 Mbit/s\"\ntopology = \"star\"\ncentre = \"p0\"\n");
const BUS: Net = ("bus", "latency = \"200 us\"\nbandwidth = \"400 Mbit/s\"\ntopology = \"bus\"\n");
const CLUSTERS: Net = (
    "two clusters",
    "latency = \"100 us\"\nbandwidth = \"2 Gbit/s\"\n[[network.link]]\nbetween = [\"c0\", \"c1\"]\n\
     latency = \"2 ms\"\nbandwidth = \"200 Mbit/s\"\nshared = true\n",
);

fn main() {
    let size = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1600);
    println!("f64, N = {size}, medians of {RUNS}\n");
    let factors = (matrix(size, 1), matrix(size, 2));
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for (slowdowns, settings) in MACHINES {
        let models = measured(&machine(slowdowns, ""), size);
        for setting in settings {
            let (row, error) = run(setting, slowdowns, &models, (size, &factors));
            eprintln!("{}", row.join(" | "));
            rows.push(row);
            errors.push(error.abs());
        }
    }
    println!(
        "{}",
        table(&["slowdowns", "network", "plan", "flow", "ideal", "forecast", "measured", "error"], rows)
    );
    let errors = Sample::of(errors);
    let (median, worst) = (errors.median(), errors.most());
    println!("\nmedian {:.1} % (at most 5: {})", 100.0 * median, verdict(median <= 0.05));
    println!("worst  {:.1} % (at most 15: {})", 100.0 * worst, verdict(worst <= 0.15));
}

fn machine(slowdowns: &[f64], network: &str) -> Platform {
    let processor = |(i, slowdown): (usize, &f64)| {
        format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{}\"\nslowdown = {slowdown:?}\n", i % 2)
    };
    let processors: String = slowdowns.iter().enumerate().map(processor).collect();
    let text = format!("{processors}[network]\nemulate = true\n{network}");
    parse_platform(&text, "machine").expect("a sound platform")
}

fn measured(platform: &Platform, size: u64) -> Vec<Model> {
    let sizes = [0.03, 0.1, 0.3, 0.6, 0.9].map(|part| part * (size * size) as f64);
    let update = KernelUpdate { kernel: Kernel::<f64>::plus_times(), block: BLOCK };
    measure_speeds(&update, platform, &sizes, MeasureOptions::quick(), &Monitor::new())
        .expect("it is not interrupted")
        .models
}

/// A line of the table, and forecast / measured - 1.
fn run(
    Setting((name, network), method, flow, meanwhile): &Setting,
    slowdowns: &[f64],
    models: &[Model],
    (size, (a, b)): (u64, &(Matrix<f64>, Matrix<f64>)),
) -> (Vec<String>, f64) {
    let platform = machine(slowdowns, network);
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let part = shape.elements() as f64 / slowdowns.len() as f64;
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(part)).collect();
    let layout =
        method.layout(shape, &speeds, &MethodOptions::default()).expect("the method serves these speeds");
    let order = ScheduleOptions::new(*flow, BLOCK).with_look_ahead(u64::from(*meanwhile == Overlap));
    let plan = plan(method, &platform, layout);
    let took = seconds(&plan, order, (&platform, models, BLOCK), (a, b));
    let error = took.forecast / took.measured - 1.0;
    let slowdowns: Vec<String> = slowdowns.iter().map(f64::to_string).collect();
    let row = vec![
        slowdowns.join(", "),
        (*name).to_owned(),
        plan.method,
        format!("{flow}{}", if *meanwhile == Overlap { ", overlap" } else { "" }),
        format!("{:.3} s", took.ideal),
        format!("{:.3} s", took.forecast),
        format!("{:.3} s", took.measured),
        format!("{:+.1} %", 100.0 * error),
    ];
    (row, error)
}

fn plan(method: &Method, platform: &Platform, layout: Layout) -> Plan {
    Plan::of_layout(method.to_string(), platform.names(), layout, 1.0)
}

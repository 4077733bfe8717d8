//! The core product of the Matrix Discrete Event Model on two unequal processors (Becker 2010, section 7.5.2,
//! Figures 7.4 and 7.5): straight line against square corner, N = 7,000, bytes, serial communications.
//!
//! `cargo bench --bench events` takes about thirteen minutes; `-- --quick` uses N = 2,000 and takes less than
//! one. `-- --pictures DIR` also draws the figures. Results: docs/results/discrete-events.md.

use apportion::events::core_factors;
use apportion::kernels::Kernel;
use apportion::matrix::LocalBlocks;
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Network, Platform, Processor};
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::report::{Plot, Series, plot_svg, table};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::select::rates;
use apportion::simulate::{CostModel, simulate};
use apportion::trace::{Activity, Lane, Trace};
use std::path::PathBuf;

/// Order of the matrices in the thesis, and the operations a second of its fast processor. It gives no speed:
/// that of a plain loop is assumed, as for the max-plus product, which costs about as much (7.5.2).
const ORIGINAL: (f64, f64) = (7000.0, 1e9);
/// Bytes per second of its link, 1 Gbit/s.
const LINK: f64 = 125e6;
const METHODS: [Method; 2] = [Method::StraightLine, Method::SquareCorner];

/// What is emulated here.
struct Setting {
    n: u64,
    /// Operations a second of the fast processor.
    speed: f64,
    ratios: &'static [u64],
}

const FULL: Setting = Setting { n: 7000, speed: 8e9, ratios: &[1, 2, 3, 4, 5, 6] };
const QUICK: Setting = Setting { n: 2000, speed: 2.7e9, ratios: &[1, 3, 6] };

/// Seconds until the last processor begins to compute, and until all is done.
#[derive(Clone, Copy)]
struct Times {
    communication: f64,
    execution: f64,
}

impl Times {
    fn of(trace: &Trace) -> Self {
        let first = |lane: &Lane| {
            lane.events.iter().find(|event| event.activity == Activity::Compute).map(|event| event.start)
        };
        let communication = trace.lanes.iter().filter_map(first).fold(0.0, f64::max);
        Self { communication, execution: trace.seconds() }
    }
}

/// One ratio: for each method measured, forecast, and elements that travel.
struct Line {
    ratio: u64,
    methods: [(Times, Times, u64); 2],
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let setting = if arguments.iter().any(|argument| argument == "--quick") { QUICK } else { FULL };
    let pictures = arguments.iter().position(|argument| argument == "--pictures").map(|at| {
        let directory = arguments.get(at + 1).expect("--pictures DIRECTORY");
        PathBuf::from(directory)
    });
    let n = setting.n as usize;
    let [a, b] = core_factors(n, 1).map(whole_block);
    let lines: Vec<Line> = setting.ratios.iter().map(|&ratio| line(&setting, ratio, (&a, &b))).collect();
    println!(
        "and/or product of bytes, N = {n}, two processors, serial communications; forecast in parentheses\n"
    );
    let figures = [
        ("7.4", "communication, ms", (|times| times.communication * 1e3) as fn(&Times) -> f64),
        ("7.5", "execution, s", |times| times.execution),
    ];
    for (figure, what, of) in figures {
        println!("Figure {figure}: {what}\n");
        let rows = lines.iter().map(|line| {
            let cells = line.methods.iter().map(|(now, then, _)| format!("{:.2} ({:.2})", of(now), of(then)));
            let volumes = line.methods.iter().map(|(.., volume)| volume.to_string());
            [format!("{}:1", line.ratio)].into_iter().chain(cells).chain(volumes).collect()
        });
        let header = ["ratio", "straight line", "square corner", "bytes, line", "bytes, corner"];
        println!("{}", table(&header, rows));
        println!("{}\n", crossover(&lines, of));
        if let Some(directory) = &pictures {
            let path = directory.join(format!("becker-{figure}.svg"));
            std::fs::write(path, plot_svg(&plot(&setting, figure, what, &lines, of))).expect("a picture");
        }
    }
}

/// Both layouts at one ratio of speeds.
fn line(setting: &Setting, ratio: u64, (a, b): (&LocalBlocks<u8>, &LocalBlocks<u8>)) -> Line {
    let shape = Shape::new(setting.n, setting.n, setting.n, "bench").expect("a square");
    // Multiply-adds a second; both are emulated by the clock.
    let speeds = [1.0, ratio as f64].map(|slower| setting.speed / 2.0 / slower);
    let processors: Vec<Processor> = speeds
        .iter()
        .enumerate()
        .map(|(i, speed)| Processor {
            emulated: Some(format!("peak {speed}").parse().expect("a positive speed")),
            ..Processor::named(format!("p{i}"))
        })
        .collect();
    let models: Vec<Model> =
        processors.iter().zip(speeds).map(|(p, s)| Model::constant(&p.name, s).expect("positive")).collect();
    // Communication and computation stand in the proportion of the original.
    let bandwidth = LINK * (setting.speed / ORIGINAL.1) * (ORIGINAL.0 / setting.n as f64);
    let mut network = Network::uniform(0.0, bandwidth);
    (network.emulate, network.duplex) = (true, false);
    let platform = Platform { name: "7.5.2".into(), processors, network };
    let order = ScheduleOptions::new(Flow::Bulk, setting.n);
    let methods = METHODS.map(|method| {
        let layout = method.layout(shape, &speeds, &MethodOptions::default()).expect("two parts");
        let forecast = forecast(&layout, order, &platform, &models);
        let plan = Plan::of_layout("7.5.2", platform.names(), layout, 1.0);
        let volume = plan.metrics.volume.expect("a layout has a volume");
        let job = MatmulJob::new(Kernel::or_and(), &plan, order, &models, 1);
        let monitor = Monitor::new();
        let world = World::solo(&monitor);
        let session = Session::new(&world, &platform, &monitor, job.work());
        let (_, report) = multiply(Operands::new(a, b), &job, &session).expect("the product is right");
        (Times::of(&report.trace), Times::of(&forecast), volume)
    });
    Line { ratio, methods }
}

fn forecast(layout: &Layout, order: ScheduleOptions, platform: &Platform, models: &[Model]) -> Trace {
    let rates = rates(models, &layout.shares(), 1);
    let costs = CostModel { rates: &rates, network: &platform.network, element: 1 };
    simulate(&MatmulSchedule::new(layout, order), costs).expect("speeds are positive")
}

/// The ratio from which the square corner is measured to be faster; 3:1 in the thesis.
fn crossover(lines: &[Line], of: fn(&Times) -> f64) -> String {
    let faster = |line: &&Line| of(&line.methods[1].0) < of(&line.methods[0].0);
    match lines.iter().rev().take_while(faster).last() {
        Some(line) => format!("square corner faster from {}:1 on (thesis: about 3:1)", line.ratio),
        None => "square corner not faster at the last ratio (thesis: from about 3:1 on)".into(),
    }
}

fn plot(setting: &Setting, figure: &str, what: &str, lines: &[Line], of: fn(&Times) -> f64) -> Plot {
    let series = |name: &str, method: usize, dashed: bool| Series {
        name: if dashed { format!("{name}, forecast") } else { name.to_owned() },
        points: lines
            .iter()
            .map(|line| {
                let (now, then, _) = &line.methods[method];
                [line.ratio as f64, of(if dashed { then } else { now })]
            })
            .collect(),
        dashed,
        colour: method,
        ..Series::default()
    };
    Plot {
        title: [
            format!("As Fig. {figure} of Becker 2010: {what}"),
            format!("and/or product of bytes, N = {}, serial communications", setting.n),
        ],
        axes: ["ratio of speeds".into(), what.into()],
        series: [("straight line", 0), ("square corner", 1)]
            .into_iter()
            .flat_map(|(name, method)| [false, true].map(|dashed| series(name, method, dashed)))
            .collect(),
        ..Plot::default()
    }
}

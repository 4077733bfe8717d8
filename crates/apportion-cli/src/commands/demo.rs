//! `apportion demo`: a product and a user's program on one new machine and two old ones, without a plan, with
//! the layouts of the literature, and with what apportion chooses.

use crate::args::numbers::within;
use crate::console::{Console, monitor};
use crate::output::demo::{Folder, SCRIPT, SIGN, comparison, explaining, program_text, written};
use crate::output::picture;
use crate::output::results::titles;
use apportion::error::Result;
use apportion::job::{
    Context, DEFAULT_BLOCK as BLOCK, FlowOptions, ForecastTask, find_fastest_order, measure_or_recall,
};
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::measure::{Balance, BalanceOptions, SecondsFrom, UserCommand, balance};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Platform, parse_platform};
use apportion::product::{MatmulJob, Operands, RunReport, multiply, whole_block};
use apportion::random::Random;
use apportion::record::Run;
use apportion::run::{Session, World};
use apportion::schedule::{MatmulSchedule, ScheduleOptions};
use apportion::select::{BaselinePlans, PlanOptions, areas, baseline_plans, imbalance_of, plan_matmul};
use apportion::simulate::{CostModel, forecast, simulate};
use apportion::trace::Trace;
use apportion::units::{show_count, show_seconds};
use apportion_report::{Candidate, Timeline, bars, chrome_timeline, sheet_svg, timeline_svg};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion demo\n  apportion demo --size 1000 --dir pictures")]
pub struct DemoArgs {
    /// Number of rows and columns of the matrices [default: 2000; less on a slow machine].
    #[arg(long, value_name = "N", value_parser = within(16..=20000), help_heading = "Output")]
    pub size: Option<u64>,
    /// Directory for the platform, models, plans and pictures: new, empty, or of an earlier demo.
    #[arg(long, value_name = "DIR", default_value = "apportion-demo", help_heading = "Output")]
    pub dir: PathBuf,
}

/// The emulated machine: one new and two old machines on links of 1 Gbit/s.
const PLATFORM: &str = include_str!("../../../../platforms/one-new-two-old-1gbit.toml");
/// The user's program: strips of an integral.
const PROGRAM: &str = include_str!("../../../../docs/how-to/integrate.sh");
/// The program's items.
const ITEMS: u64 = 4_000_000;
/// Rows and columns of the matrices, and the seconds of a product on one machine above which they are halved.
const SIZE: u64 = 2000;
const TOO_LONG: f64 = 6.0;

/// A plan of the product with its order of steps.
struct Row {
    plan: Plan,
    order: ScheduleOptions,
}

pub fn run(args: &DemoArgs, console: &Console) -> Result<()> {
    let folder = Folder::new(&args.dir)?;
    let platform = parse_platform(PLATFORM, "one-new-two-old-1gbit.toml")?;
    console.note(
        "One new machine and two old ones, a third as fast, on links of 1 Gbit/s (emulated on this machine).\n\
         1. measuring their speeds …",
    );
    let monitor = monitor();
    let world = World::solo(monitor);
    let context = Context { world: &world, monitor, observer: console };
    let work = (args.size.unwrap_or(SIZE) as f64).powi(3) / BLOCK as f64;
    let file =
        measure_or_recall(Kernel::<f64>::plus_times(), &platform, BLOCK, work, true, context)?.models()?;
    let models = file.in_order(&platform.names())?;
    let size = args.size.unwrap_or(SIZE);
    let machine = by_the_clock(Machine::new(platform.clone(), models, BLOCK), size)?;
    let (shape, rows) = rows(args.size, &machine)?;
    console.note(format!("2. multiplying two {0} x {0} matrices by five plans …", shape.n));
    let [a, b] = [1, 2].map(|seed| whole_block(random(shape.n as usize, seed)));
    let mut reports = Vec::new();
    for row in &rows {
        let (models, block) = (&machine.models, machine.block);
        let job = MatmulJob::new(Kernel::plus_times(), &row.plan, row.order, models, block);
        let session = Session::new(&world, &machine.platform, monitor, job.work());
        let operands = Operands::new(&a, &b);
        let (_, report) = console.watch(&row.plan.method, monitor, || multiply(operands, &job, &session))?;
        reports.push(report);
    }
    folder.write("platform.toml", &machine.platform.to_toml())?;
    folder.write("models.json", &file.to_json())?;
    let mut plans = rows.iter().map(|row| &row.plan);
    plans.try_for_each(|plan| folder.write(&format!("{}.json", file_name(plan)), &plan.to_json()))?;
    write_pictures(&folder, &reports, &machine)?;
    folder.write(SCRIPT, PROGRAM)?;
    let balanced = balance_program(&args.dir, &platform, console)?;
    let value = json!({
        "size": shape.n,
        "runs": reports.iter().map(Run::from).collect::<Vec<_>>(),
        "program": balanced.as_ref().map(|found| found.plan(&platform).to_value()),
    });
    folder.write(SIGN, &format!("{value:#}\n"))?;
    let explain = explaining(&args.dir, reports.last().expect("five reports"), &file_name(&rows[4].plan));
    console.result(
        || value.clone(),
        || {
            let program = balanced.as_ref().map(|found| program_text(found, &platform, ITEMS));
            format!(
                "\n{}\n{}{}\n{explain}\n",
                comparison(&reports),
                program.unwrap_or_default(),
                written(&args.dir, &file_name(&rows[4].plan)),
            )
        },
    );
    Ok(())
}

/// The machine whose processors keep, by the clock, the speeds that were measured at an equal share of the
/// product: slowed by CPU time they would compute with the cold caches of a core that pauses, times their
/// slowdown.
fn by_the_clock(measured: Machine, size: u64) -> Result<Machine> {
    let shares = vec![size * size / measured.processors() as u64; measured.processors()];
    let rates = measured.rates(&shares);
    let mut platform = measured.platform;
    for (processor, rate) in platform.processors.iter_mut().zip(rates) {
        processor.slowdown = 1.0;
        processor.emulated = Some(format!("peak {rate:.4e}").parse()?);
    }
    Machine::from_platform(platform, WorkUnit::MultiplyAdd)
}

/// The product's shape, and the plans to compare: without a plan first. Where the machine is slow, the size is
/// halved unless it is given.
fn rows(size: Option<u64>, machine: &Machine) -> Result<(Shape, Vec<Row>)> {
    let options = PlanOptions { inner_cuts: false, ..PlanOptions::open(BLOCK, 8) };
    let mut n = size.unwrap_or(SIZE);
    loop {
        let shape = Shape::new(n, n, n, "--size")?;
        let BaselinePlans { fastest_alone, even_split } = baseline_plans(shape, machine, &options)?;
        let alone = fastest_alone.as_ref().and_then(|plan| plan.forecast.as_ref());
        if size.is_none() && n > BLOCK && alone.is_some_and(|alone| alone.seconds > TOO_LONG) {
            n /= 2;
            continue;
        }
        let speeds = areas(&machine.models, shape)?;
        let named = |name: &str, method: Method| -> Result<Row> {
            let layout = method.layout(shape, &speeds, &MethodOptions::default())?;
            let imbalance = imbalance_of(&machine.models, &layout)?;
            with_order(Plan::of_layout(name, machine.platform.names(), layout, imbalance), machine)
        };
        let without = [fastest_alone, even_split].map(|plan| plan.expect("no memory is capped"));
        let [alone, even] = without.map(|plan| with_order(plan, machine));
        let mut rows = vec![
            alone?,
            even?,
            named("straight line", Method::StraightLine)?,
            named("square corner", Method::SquareCorner)?,
        ];
        let best = plan_matmul(shape, machine, &options)?.swap_remove(0);
        let method = format!("apportion: {}", best.plan.method);
        rows.push(Row { plan: Plan { method, ..best.plan }, order: best.order });
        return Ok((shape, rows));
    }
}

/// The plan with its fastest order of steps and the forecast of that.
fn with_order(plan: Plan, machine: &Machine) -> Result<Row> {
    let flow = FlowOptions::default();
    let layout: &Layout = plan.layout()?;
    let task = ForecastTask { layout, machine, flow: &flow, element: 8 };
    let found = find_fastest_order(task, monitor(), forecast, |forecast| forecast.seconds)?;
    Ok(Row { order: found.order, plan: Plan { forecast: Some(found.forecast), ..plan } })
}

/// `new-alone`, `even-split`, …; `chosen` for what apportion chose.
fn file_name(plan: &Plan) -> String {
    match plan.method.starts_with("apportion") {
        true => "chosen".into(),
        false => plan.method.replace(' ', "-"),
    }
}

fn write_pictures(folder: &Folder, reports: &[RunReport], machine: &Machine) -> Result<()> {
    let platform = &machine.platform;
    let costs: Vec<Vec<String>> = reports.iter().map(costs).collect();
    let candidates: Vec<Candidate<'_>> = reports[1..]
        .iter()
        .zip(&costs[1..])
        .map(|(report, costs)| Candidate { plan: &report.plan, costs, chosen: false })
        .collect();
    let clusters: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    let best = reports.last().expect("five reports");
    let predicted = forecast_lanes(best, machine)?;
    let [title, beneath] = titles(best);
    let timeline = Timeline {
        title: [&title, &beneath],
        forecast: Some(&predicted),
        ..Timeline::new(&best.trace, &best.plan.processors)
    };
    folder.write("plan.svg", &picture(&best.plan, platform))?;
    folder
        .write("layouts.svg", &sheet_svg("The same product, laid out four ways", &candidates, &clusters))?;
    folder.write("times.svg", &bars("Forecast and measured times", &times(reports)))?;
    folder.write("trace.svg", &timeline_svg(&timeline))?;
    folder.write("trace.json", &chrome_timeline(&timeline).to_string())
}

/// Divides the items of the user's program among the machines; `None` where there is no shell with awk.
fn balance_program(directory: &Path, platform: &Platform, console: &Console) -> Result<Option<Balance>> {
    let script = directory.join(SCRIPT);
    let words = ["sh", &script.display().to_string(), "{from}", "{to}"].map(str::to_owned);
    let works = |words: &[&str]| {
        let mut command = std::process::Command::new("sh");
        let quiet = || std::process::Stdio::null();
        command.args(words).stdin(quiet()).stdout(quiet()).stderr(quiet()).status().is_ok_and(|s| s.success())
    };
    if !works(&[&script.display().to_string(), "0", "1"]) {
        console.note(format!("3. left out: {SCRIPT} needs sh and awk"));
        return Ok(None);
    }
    console.note(format!("3. balancing {SCRIPT}, a program over {ITEMS} items, on the same machines …"));
    let command = UserCommand::of_words(&words, SecondsFrom::Wall)?;
    let mut found = None;
    let options = BalanceOptions { most_rounds: 8, ..BalanceOptions::default() };
    let mut each = |so_far: &Balance| found = Some(so_far.clone());
    console.watch("balancing", monitor(), || {
        balance(platform, &command, ITEMS, &options, &mut each, &World::solo(monitor()))
    })?;
    Ok(found)
}

/// The forecast of a run in full.
fn forecast_lanes(report: &RunReport, machine: &Machine) -> Result<Trace> {
    let schedule = MatmulSchedule::new(report.plan.layout()?, report.order);
    let rates = machine.rates(&report.plan.sizes());
    let network = &machine.platform.network;
    simulate(&schedule, CostModel { rates: &rates, network, element: report.element_bytes })
}

/// What a picture of the layout says of a run.
fn costs(report: &RunReport) -> Vec<String> {
    vec![
        format!("{} elements moved", show_count(u128::from(report.volume()))),
        format!("measured {}", show_seconds(report.seconds())),
    ]
}

/// Forecast and measured seconds of each run.
fn times(reports: &[RunReport]) -> Vec<(String, [f64; 2])> {
    reports.iter().map(|r| (r.plan.method.clone(), [r.forecast_seconds, r.seconds()])).collect()
}

/// A matrix of numbers in [-1, 1) from a seed.
fn random(n: usize, seed: u64) -> Matrix<f64> {
    let mut random = Random::new(seed);
    let data = (0..n * n).map(|_| random.word() as f64 / 2f64.powi(63) - 1.0).collect();
    Matrix::new(n, n, data)
}

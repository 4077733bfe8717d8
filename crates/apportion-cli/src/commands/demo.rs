//! `apportion demo`: three plans side by side on an emulated machine.

use crate::args::DemoArgs;
use crate::console::{Console, monitor};
use crate::output::demo::{Folder, SIGN, comparison, explaining, written};
use crate::output::picture;
use crate::output::results::titles;
use apportion::error::Result;
use apportion::job::{Context, DEFAULT_BLOCK as BLOCK, measure_or_recall};
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes;
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Platform, parse_platform};
use apportion::product::{MatmulJob, Operands, RunReport, multiply, whole_block};
use apportion::random::Random;
use apportion::run::{Session, World};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::select::{imbalance, rates};
use apportion::simulate::{CostModel, simulate};
use apportion::trace::Trace;
use apportion_report::{Report, Timeline, bars, beside, chrome_timeline, timeline_svg};
use serde_json::json;

/// The emulated machine: one processor is nine times as fast as the other, on a half-duplex 100 Mbit/s link.
const MACHINE: &str = include_str!("../../../../platforms/nine-to-one-100mbit.toml");

pub fn run(args: &DemoArgs, console: &Console) -> Result<()> {
    let folder = Folder::new(&args.dir)?;
    let platform = parse_platform(MACHINE, "nine-to-one-100mbit.toml")?;
    let shape = Shape::new(args.size, args.size, args.size, "--size")?;
    console.note(format!(
        "Two processors, one nine times as fast as the other, on a 100 Mbit/s link (emulated on this \
        machine);\n\
         two random {0} x {0} matrices in double precision.\n\
         1. measuring both processors …",
        args.size
    ));
    let monitor = monitor();
    let world = World::solo(monitor);
    let gemm = Kernel::<f64>::plus_times();
    let context = Context { world: &world, monitor, observer: console };
    let work = shape.flops() / 2.0 / BLOCK as f64;
    let file = measure_or_recall(gemm, &platform, BLOCK, work, true, context)?.models()?;
    let models = file.in_order(&platform.names())?;
    let speeds: Vec<f64> = models.iter().map(|m| m.speed(shape.elements() as f64 / 2.0)).collect();
    console.note("2. multiplying three times: even split, straight line, square corner …");
    let [a, b] = [1, 2].map(|seed| whole_block(random(args.size as usize, seed)));

    let plans = [
        ("even split", shapes::StraightLine.layout(shape, &[1.0, 1.0])?),
        ("straight line", Method::StraightLine.layout(shape, &speeds, &MethodOptions::default())?),
        ("square corner", Method::SquareCorner.layout(shape, &speeds, &MethodOptions::default())?),
    ];
    let mut reports = Vec::new();
    for (name, layout) in plans {
        let plan = plan(name, &platform, layout, &models)?;
        let order = ScheduleOptions::new(Flow::Bulk, BLOCK);
        let job = MatmulJob::new(Kernel::plus_times(), &plan, order, &models, BLOCK);
        let session = Session::new(&world, &platform, monitor, job.work());
        let (_, report) = console.watch(name, monitor, || multiply(Operands::new(&a, &b), &job, &session))?;
        reports.push(report);
    }
    folder.write("platform.toml", MACHINE)?;
    folder.write("models.json", &file.to_json())?;
    for report in &reports {
        folder.write(&format!("{}.json", report.plan.method.replace(' ', "-")), &report.plan.to_json())?;
    }
    let pictures: Vec<String> = reports.iter().map(|r| picture(&r.plan, &platform)).collect();
    let best = reports.last().expect("three reports");
    let predicted = forecast_lanes(best, &models, &platform)?;
    let [title, beneath] = titles(best);
    let timeline = Timeline {
        title: [&title, &beneath],
        forecast: Some(&predicted),
        ..Timeline::new(&best.trace, &best.plan.processors)
    };
    folder.write("plan.svg", pictures.last().expect("three pictures"))?;
    folder.write("layouts.svg", &beside("The same product, laid out three ways", &pictures))?;
    folder.write("times.svg", &bars("Forecast and measured time of the three layouts", &times(&reports)))?;
    folder.write("trace.svg", &timeline_svg(&timeline))?;
    folder.write("trace.json", &chrome_timeline(&timeline).to_string())?;
    let value =
        json!({"size": args.size, "runs": reports.iter().map(RunReport::to_value).collect::<Vec<_>>()});
    folder.write(SIGN, &format!("{value:#}\n"))?;
    let explain = explaining(&args.dir, best);
    console.result(
        || value.clone(),
        || {
            format!(
                "\n{}\nThe square corner's run in full:\n\n{}\n{}\n{explain}\n",
                comparison(&reports),
                best.to_text(),
                written(&args.dir),
            )
        },
    );
    Ok(())
}

/// The forecast of a run in full.
fn forecast_lanes(report: &RunReport, models: &[Model], platform: &Platform) -> Result<Trace> {
    let schedule = MatmulSchedule::new(report.plan.layout()?, report.order);
    let rates = rates(models, &report.plan.shares, BLOCK);
    let (network, element) = (&platform.network, report.element_bytes);
    simulate(&schedule, CostModel { rates: &rates, network, element })
}

/// Forecast and measured seconds of each run.
fn times(reports: &[RunReport]) -> Vec<(String, [f64; 2])> {
    reports.iter().map(|r| (r.plan.method.clone(), [r.forecast_seconds, r.seconds()])).collect()
}

fn plan(name: &str, platform: &Platform, layout: Layout, models: &[Model]) -> Result<Plan> {
    let imbalance = imbalance(models, &layout.shares())?;
    Ok(Plan::of_layout(name, platform.names(), layout, imbalance))
}

/// A matrix of numbers in [-1, 1) from a seed.
fn random(n: usize, seed: u64) -> Matrix<f64> {
    let mut random = Random::new(seed);
    let data = (0..n * n).map(|_| random.word() as f64 / 2f64.powi(63) - 1.0).collect();
    Matrix::new(n, n, data)
}

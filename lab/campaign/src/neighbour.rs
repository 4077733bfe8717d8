//! Products under `--adaptive` on two pinned workers, beside a neighbour that comes and goes: busy loops,
//! pinned to the core of one worker, for 5 to 60 seconds at a time.
//!
//! Each product is compared with an oracle that knows the neighbour's visits, and that never waits or moves
//! anything: see [`oracle`]. Every fourth product keeps its first shares, to show what repartitioning gains.

mod loops;
mod oracle;

use crate::Found;
use crate::figures::Figure;
use apportion::error::Error;
use apportion::kernels::Kernel;
use apportion::matrix::{LocalBlocks, Matrix};
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::process_memory::available_memory;
use apportion::product::{Adaptive, MatmulJob, Operands, RunReport, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use loops::Neighbour;
use oracle::Capacity;
use std::time::{Duration, Instant};

/// Rows and columns of C.
const SIZE: usize = 4096;
const BLOCK: u64 = 64;
/// Of so many products, the last keeps its shares.
const PLAIN: usize = 4;

/// What the part is asked for.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Minutes of products.
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    minutes: f64,
    /// The two cores of the workers. Several campaigns may run at once on cores of their own.
    #[arg(long, value_name = "N,N", default_value = "0,1", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Seconds of one product without a neighbour; less if a quarter of the free memory allows no more.
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    seconds: f64,
    /// Segments of the inner dimension, after each of which the speeds are looked at; the default is that of
    /// `matmul`.
    #[arg(long, value_name = "N", default_value_t = 64)]
    segments: u64,
}

/// One product.
struct Window {
    adaptive: bool,
    seconds: f64,
    /// Seconds of the oracle, and of the one that knows all other load, too.
    oracles: [f64; 2],
}

/// The operands, and where they are multiplied.
struct Workshop {
    platform: Platform,
    operands: [LocalBlocks<i64>; 2],
    inner: usize,
}

impl Workshop {
    fn new(cores: &[usize], inner: usize) -> Result<Self, String> {
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).map_err(told)?;
        for (processor, core) in platform.processors.iter_mut().zip(cores) {
            processor.cores = vec![*core];
        }
        let matrix = |rows: usize, cols: usize| {
            let value = |i: usize| (i % 7) as i64 - 3;
            whole_block(Matrix::new(rows, cols, (0..rows * cols).map(value).collect()))
        };
        Ok(Self { platform, operands: [matrix(SIZE, inner), matrix(inner, SIZE)], inner })
    }

    /// Multiplies from shares in the ratio of the speeds; without segments, they are kept.
    fn multiply(&self, speeds: [f64; 2], segments: Option<u64>) -> Result<RunReport, String> {
        let shape = Shape::new(SIZE as u64, self.inner as u64, SIZE as u64, "neighbour").map_err(told)?;
        let layout = Method::Columns.layout(shape, &speeds, &MethodOptions::default()).map_err(told)?;
        let plan = Plan::of_layout("columns", self.platform.names(), layout, 1.0);
        let model = |speed: f64| Model::constant("worker", speed / BLOCK as f64).map_err(told);
        let models = [model(speeds[0])?, model(speeds[1])?];
        let monitor = Monitor::new();
        let world = World::solo(&monitor);
        let order = ScheduleOptions::new(Flow::OneToAll, BLOCK);
        let job = MatmulJob::new(Kernel::<i64>::min_plus(), &plan, order, &models, BLOCK);
        let job = job.with_adaptive(segments.map(|segments| Adaptive { segments }));
        let session = Session::new(&world, &self.platform, &monitor, job.work());
        let [a, b] = &self.operands;
        Ok(multiply(Operands::new(a, b), &job, &session).map_err(told)?.1)
    }

    fn work(&self) -> f64 {
        (SIZE * SIZE) as f64 * self.inner as f64
    }
}

fn told(error: Error) -> String {
    error.to_string()
}

/// Runs for the minutes asked for, and tells of each product on stderr.
pub fn run(options: &Options, seed: u64) -> Found {
    let cores = &options.cores;
    if cores.len() != 2 || cores[0] == cores[1] {
        return Err(format!("--cores {cores:?}: two different cores are needed"));
    }
    let capacity = Capacity::measured(cores)?;
    let per_index = (SIZE * SIZE) as f64 / capacity.whole();
    let bytes = available_memory().unwrap_or(u64::MAX) / 4;
    let inner = (options.seconds / per_index).min(bytes as f64 / (16 * SIZE) as f64) as usize;
    let workshop = Workshop::new(cores, inner.max(SIZE))?;
    let neighbour = Neighbour::begins(cores, seed);
    let (begun, mut windows) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs_f64(options.minutes * 60.0) {
        let adaptive = windows.len() % PLAIN != PLAIN - 1;
        let from = neighbour.now();
        let report = workshop.multiply(capacity.speeds, adaptive.then_some(options.segments))?;
        let seconds = report.seconds();
        let by_visits = capacity.seconds(workshop.work(), from, &neighbour.visits());
        let by_workers = workshop.work() / capacity.got(&report.trace);
        let repartitions = report.adaptation.map_or(0, |adaptation| adaptation.repartitions.len());
        eprintln!(
            "product {} from {from:.1} s: {seconds:.2} s; over the oracle's {:.3}, by CPU time got {:.3}; {}, \
             {repartitions} repartitions",
            windows.len() + 1,
            seconds / by_visits,
            seconds / by_workers,
            if adaptive { "adaptive" } else { "plain" }
        );
        windows.push(Window { adaptive, seconds, oracles: [by_visits, by_workers] });
    }
    let visits = neighbour.visits().len();
    drop(neighbour);
    Ok(vec![figure(&windows, (visits, options), &capacity, seed)])
}

fn figure(
    windows: &[Window],
    (visits, options): (usize, &Options),
    capacity: &Capacity,
    seed: u64,
) -> Figure {
    let told = |adaptive: bool, oracle: usize| {
        let of = || windows.iter().filter(move |window| window.adaptive == adaptive);
        let mut ratios: Vec<f64> = of().map(|window| window.seconds / window.oracles[oracle]).collect();
        ratios.sort_by(f64::total_cmp);
        let Some(worst) = ratios.last() else { return "none".to_owned() };
        let sums = of().fold([0.0; 2], |[x, y], w| [x + w.seconds, y + w.oracles[oracle]]);
        let near = ratios.iter().filter(|ratio| **ratio <= 1.1).count();
        format!(
            "median {:.3}, worst {worst:.3}, all together {:.3}, {near} of {} at most 1.1",
            ratios[ratios.len() / 2],
            sums[0] / sums[1],
            ratios.len()
        )
    };
    let Options { minutes, cores, segments, .. } = options;
    Figure::new(
        format!(
            "products beside a neighbour, {minutes} minutes, {segments} segments, cores {cores:?}, seed {seed}"
        ),
        format!("{} products, {visits} visits; {capacity}", windows.len()),
        format!(
            "seconds over the oracle's: {}; by CPU time got: {}; without repartitioning: {}; by CPU time got: {}",
            told(true, 0),
            told(true, 1),
            told(false, 0),
            told(false, 1)
        ),
    )
}

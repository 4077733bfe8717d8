//! What does a dynamic tail recover of the time that a neighbour takes?
//!
//! `cargo bench --bench dynamic_tail` multiplies two matrices of 3000 x 3000 on all cores, one processor a
//! core, with tails of 0, 5, 10 and 20 %: alone, and beside a thread that burns a tenth of the first core's
//! time in pulses of 20 ms. It prints medians of seven runs relative to the run alone without a tail; a
//! perfect division of the noise would end at p / (p - 0.1). The rows take turns, so that a slow phase of the
//! machine hits all of them. It needs an otherwise idle machine. The lines after it are a simulation of the
//! same rule on more processors, which needs none.

use apportion::geometry::Rank;
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Plan, Shape, shapes};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::random::Random;
use apportion::report::table;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions, TailQueue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rows and columns, unless a number is given after `--`.
const SIZE: u64 = 3000;
const RUNS: usize = 7;
const TAILS: [f64; 4] = [0.0, 0.05, 0.1, 0.2];
/// The burner competes with a worker, so that it gets half of each pulse.
const PULSE: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(200);

fn main() {
    let size = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(SIZE);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut platform = Platform::from_names(&(0..cores).map(|i| format!("p{i}")).collect::<Vec<_>>());
    platform.processors.iter_mut().enumerate().for_each(|(i, processor)| processor.cores = vec![i]);
    let mut seconds = vec![[Vec::new(), Vec::new()]; TAILS.len()];
    for run in 0..=RUNS {
        for (tail, seconds) in TAILS.iter().zip(&mut seconds) {
            for (noisy, seconds) in [false, true].into_iter().zip(seconds) {
                let took = once(size, &platform, *tail, noisy);
                // The first run warms caches and clocks.
                if run > 0 {
                    seconds.push(took);
                }
            }
        }
    }
    let median = |times: &Vec<f64>| {
        let mut times = times.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let quiet = median(&seconds[0][0]);
    let rows = TAILS.iter().zip(&seconds).map(|(tail, times)| {
        let [alone, noisy] = times.each_ref().map(median);
        let ratio = |x: f64| format!("{x:.3}");
        vec![
            format!("{:.0} %", 100.0 * tail),
            ratio(alone / quiet),
            ratio(noisy / quiet),
            ratio(quiet / noisy),
        ]
    });
    println!("{cores} cores, {size} x {size}; perfect: {:.3}", cores as f64 / (cores as f64 - 0.1));
    println!("{}", table(&["tail", "alone", "beside noise", "efficiency"], rows));
    simulated();
}

/// Seconds of one product.
fn once(size: u64, platform: &Platform, tail: f64, noisy: bool) -> f64 {
    let shape = Shape::new(size, size, size, "bench").expect("a small shape");
    let weights = vec![1.0; platform.len()];
    let layout = shapes::Rows::default().layout(shape, &weights).expect("rows serve everything");
    let plan = Plan::of_layout("rows", platform.names(), layout, 1.0);
    let order = ScheduleOptions::new(Flow::OneToAll, 256).with_look_ahead(1);
    let models: Vec<Model> = weights.iter().map(|_| Model::constant("any", 1e9).expect("a speed")).collect();
    let job = MatmulJob::new(Kernel::plus_times(), &plan, order, &models, 1).with_tail(tail);
    let (a, b) = (whole_block(matrix(size, 1)), whole_block(matrix(size, 2)));
    let (monitor, over) = (Monitor::new(), AtomicBool::new(false));
    let world = World::solo(&monitor);
    let session = Session::new(&world, platform, &monitor, job.work());
    std::thread::scope(|scope| {
        if noisy {
            scope.spawn(|| burn(&over));
        }
        let (_, report) = multiply(Operands::new(&a, &b), &job, &session).expect("the run is never stopped");
        over.store(true, Ordering::Relaxed);
        report.seconds()
    })
}

/// A square matrix of small whole numbers.
fn matrix(size: u64, seed: u64) -> Matrix<f64> {
    let elements = (0..size * size).map(|i| ((i * 31 + seed) % 17) as f64 - 8.0);
    Matrix::new(size as usize, size as usize, elements.collect())
}

/// Burns the first core in pulses.
fn burn(over: &AtomicBool) {
    #[cfg(target_os = "linux")]
    {
        let mut first = rustix::thread::CpuSet::new();
        first.set(0);
        rustix::thread::sched_setaffinity(None, &first).expect("the first core is there");
    }
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        while begin.elapsed() < PULSE && !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        std::thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
    }
}

/// Efficiency with noise of up to a fifth, a tenth in the mean, on every processor, on a virtual clock: 100
/// tiles each.
fn simulated() {
    let rows = [2, 4, 16, 64].into_iter().map(|processors: usize| {
        let mut random = Random::new(1);
        let mut efficiency = [0.0; TAILS.len()];
        for _ in 0..200 {
            let speed: Vec<f64> = (0..processors).map(|_| 1.0 - 0.2 * random.unit()).collect();
            let ideal = 100.0 * processors as f64 / speed.iter().sum::<f64>();
            for (efficiency, tail) in efficiency.iter_mut().zip(TAILS) {
                let tiles = (100.0 * tail) as usize;
                let owners: Vec<Rank> =
                    (0..processors * tiles).map(|tile| Rank(tile / tiles.max(1))).collect();
                let arrivals: Vec<f64> = speed.iter().map(|s| (100 - tiles) as f64 / s).collect();
                let ends = TailQueue::new(processors, &owners).finish(&arrivals, |rank, _| 1.0 / speed[rank]);
                *efficiency += ideal / ends.iter().copied().fold(0.0, f64::max) / 200.0;
            }
        }
        let cells = efficiency.iter().map(|e| format!("{e:.3}"));
        std::iter::once(processors.to_string()).chain(cells).collect::<Vec<_>>()
    });
    println!("simulated efficiency, noise of 0 to 20 % on every processor:");
    println!("{}", table(&["processors", "0 %", "5 %", "10 %", "20 %"], rows));
}

//! Multiplies two matrices on processors of unequal speed: measure, plan, run, verify.
//!
//! `cargo run --release --example quickstart`. The second processor is emulated: it computes three times
//! slower than it could, so its share should be about a quarter.

use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::measure::{KernelUpdate, MeasureOptions, measure_speeds};
use apportion::model::Machine;
use apportion::plan::Shape;
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, multiply, whole_block, whole_matrix};
use apportion::run::{Monitor, Session, World};
use apportion::select::{PlanOptions, plan_matmul};

/// Columns of A and rows of B in one update.
const BLOCK: u64 = 64;

fn main() -> apportion::Result<()> {
    let size = 384;
    let mut platform = Platform::from_names(&["fast".into(), "slow".into()]);
    platform.processors[1].slowdown = 3.0;

    let (kernel, monitor) = (Kernel::<f64>::plus_times(), Monitor::new());
    let sizes = [10_000.0, 100_000.0];
    let update = KernelUpdate { kernel, block: BLOCK };
    let models = measure_speeds(&update, &platform, &sizes, MeasureOptions::quick(), &monitor)?.models;

    let machine = Machine::new(platform, models, BLOCK);

    let shape = Shape::new(size, size, size, "quickstart")?;
    let choices = plan_matmul(shape, &machine, &PlanOptions::open(BLOCK, 8))?;
    let best = &choices[0];
    println!("method {}, flow {:?}", best.plan.method, best.order.flow);
    for (processor, share) in machine.platform.processors.iter().zip(&best.plan.shares) {
        let percent = 100.0 * *share as f64 / (size * size) as f64;
        println!("  {}: {share} elements of C ({percent:.0} %)", processor.name);
    }

    let numbers = |seed: u64| (0..size * size).map(|i| ((i * 7 + seed) % 11) as f64 - 5.0).collect();
    let a = Matrix::new(size as usize, size as usize, numbers(1));
    let b = Matrix::new(size as usize, size as usize, numbers(2));
    let (a, b) = (whole_block(a), whole_block(b));
    let job = MatmulJob::new(kernel, &best.plan, best.order, &machine.models, machine.block);
    let world = World::solo(&monitor);
    let session = Session::new(&world, &machine.platform, &monitor, job.work());
    let (c, report) = multiply(Operands::new(&a, &b), &job, &session)?;
    let c = whole_matrix(c);
    println!("forecast {:.4} s, measured {:.4} s", report.forecast_seconds, report.seconds());
    println!("C is {} x {}, verified; its first element is {}", c.rows(), c.cols(), c.row(0)[0]);
    Ok(())
}

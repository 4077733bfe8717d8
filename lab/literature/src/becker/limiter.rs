//! The accuracy of the CPU limiter, by the thesis's criterion (5.6.1): the ratio of run times.
//!
//! The same work runs on a processor at full speed and on one with `slowdown`, one after the other and pinned
//! to the same core: the ratio of their times is compared with the slowdown.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict};
use crate::laboratory::middle;
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::{
    Plan, Shape,
    shapes::{LayoutMethod, Rows},
};
use apportion::platform::{Network, Platform, Processor, discover};
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};

/// Ratios of speeds.
const RATIOS: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 25.0];
/// Pairs of runs of a ratio.
const PAIRS: usize = 3;
/// Order of the matrices.
const SIZE: u64 = 2_000;

/// Why a slowed run takes longer than asked for.
const COLD: &str = "The slowdown multiplies the thread's own CPU time, and a thread that has slept begins its next \
     piece of work with cold caches and on a core that has slowed its clock: the work itself takes a few per cent \
     more CPU time after each pause, the more the longer the pause. This happens on an idle machine too. On a busy \
     one the unslowed run, which is timed by the clock, shares its core and is too long.";

pub struct Limiter;

impl Experiment for Limiter {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.6.1"],
            source: "Becker 2010, 5.6.1",
            shows: "the CPU limiter: ratio of run times against the ratio asked for",
            kind: Kind::Emulated,
            seconds: 45,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let mut table = Table::new(
            "Run time with a slowdown over run time without, medians",
            &["slowdown", "full speed, ms", "slowed, ms", "ratio", "off"],
        );
        let mut report = Report::default();
        for ratio in RATIOS {
            let (mut fast, mut slow, mut quotients) = (Vec::new(), Vec::new(), Vec::new());
            // The first pair warms the caches.
            for pair in 0..=PAIRS {
                if context.monitor.is_stopped() {
                    return Err(Error::Interrupted);
                }
                let (a, b) = (seconds(1.0, context.monitor)?, seconds(ratio, context.monitor)?);
                if pair > 0 {
                    fast.push(a);
                    slow.push(b);
                    quotients.push(b / a);
                }
            }
            let (a, b) = (middle(fast), middle(slow));
            let quotient = middle(quotients);
            let off = quotient / ratio - 1.0;
            let check = Check::near(format!("slowed by {ratio}: ratio of run times"), ratio, quotient, 0.02);
            report.checks.push(check.unless(Verdict::Short, COLD));
            table.row([
                format!("{ratio}"),
                format!("{:.2}", 1e3 * a),
                format!("{:.2}", 1e3 * b),
                format!("{quotient:.3}"),
                format!("{:+.2} %", 100.0 * off),
            ]);
        }
        report.tables.push(table);
        report.note(format!(
            "One processor, pinned to one core, N = {SIZE}, in turn at full speed and slowed; medians of \
                 {PAIRS} pairs."
        ));
        Ok(report)
    }
}

/// Compute time of a product on one processor.
fn seconds(slowdown: f64, monitor: &Monitor) -> Result<f64> {
    let core = discover().cores.last().map(|core| core.cpu);
    let processor = Processor { slowdown, cores: core.into_iter().collect(), ..Processor::named("p0") };
    let platform = Platform { name: "one".into(), processors: vec![processor], network: Network::free() };
    let shape = Shape::new(SIZE, SIZE, SIZE, "limiter")?;
    let plan = Plan::of_layout("rows", platform.names(), Rows::default().layout(shape, &[1.0])?, 1.0);
    let models = [Model::constant("p0", 1e9)?];
    let order = ScheduleOptions::new(Flow::OneToAll, SIZE / 2);
    let job = MatmulJob::new(Kernel::plus_times(), &plan, order, &models, 1);
    let matrix = |seed: u64| {
        let elements = (0..SIZE * SIZE).map(|i| ((i * 31 + seed) % 17) as f64 - 8.0).collect();
        whole_block(Matrix::new(SIZE as usize, SIZE as usize, elements))
    };
    let world = World::solo(monitor);
    let session = Session::new(&world, &platform, monitor, job.work());
    let (_, report) = multiply(Operands::new(&matrix(1), &matrix(2)), &job, &session)?;
    Ok(report.trace.compute()[0])
}

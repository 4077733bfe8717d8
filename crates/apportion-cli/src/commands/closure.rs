//! `apportion closure`: all paths of any length.

use super::product;
use crate::args::ClosureArgs;
use crate::console::Console;
use crate::prepare::task::{Job, Task};
use apportion::error::{Error, Result};
use apportion::kernels::Semiring;

pub fn run(args: &ClosureArgs, console: &Console) -> Result<()> {
    let refused = |place: &str, what, remedy| Err(Error::input(place, what, remedy));
    match args.semiring {
        Semiring::PlusTimes => {
            let remedy = "choose max-plus, min-plus or or-and";
            return refused("--semiring", "plus-times has no closure by paths", remedy);
        }
        Semiring::OrAnd if args.predecessors.is_some() => {
            let remedy = "choose --semiring min-plus or max-plus";
            return refused("--predecessors", "or-and has no best paths", remedy);
        }
        _ => args.running.blas.unused(args.semiring)?,
    }
    let task = Task {
        job: Job::Closure(args.predecessors.as_ref(), args.algorithm.method()),
        factors: (&args.a, &args.a),
        semiring: args.semiring,
        output: args.output.as_ref(),
        running: &args.running,
    };
    product::run(&task, console)
}

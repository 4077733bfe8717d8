//! `matmul`, `power` and `closure`: jobs whose result is a matrix.

use crate::args::{ClosureArgs, MatmulArgs, PowerArgs, RunningArgs};
use crate::console::{Console, monitor};
use crate::output::results::{Texts, print_and_commit};
use crate::prepare::options;
use crate::prepare::world::on_engine;
use apportion::error::Result;
use apportion::job::{Context, InputFiles, MatrixJob, Operation, ProductTask};

/// `apportion matmul`, the main command.
pub fn matmul(args: &MatmulArgs, console: &Console) -> Result<()> {
    run(&args.running, &args.files(), &|| args.task(), console)
}

/// `apportion power`: A multiplied by itself.
pub fn power(args: &PowerArgs, console: &Console) -> Result<()> {
    let task = || {
        let operation = Operation::Power(args.exponent);
        options::task(operation, args.semiring, &args.a, args.output.as_ref(), &args.running)
    };
    run(&args.running, &of_one(&args.a, &args.running), &task, console)
}

/// `apportion closure`: all paths of any length.
pub fn closure(args: &ClosureArgs, console: &Console) -> Result<()> {
    let task = || {
        let (method, predecessors) = (args.algorithm.method(), args.predecessors.is_some());
        let operation = Operation::Closure { method, predecessors };
        let task = options::task(operation, args.semiring, &args.a, args.output.as_ref(), &args.running)?;
        Ok(ProductTask { predecessors: args.predecessors.clone(), ..task })
    };
    run(&args.running, &of_one(&args.a, &args.running), &task, console)
}

fn of_one<'a>(a: &'a std::path::Path, running: &'a RunningArgs) -> InputFiles<'a> {
    InputFiles { files: running.files(), operands: vec![a], checkpoint: None }
}

fn run(
    running: &RunningArgs,
    inputs: &InputFiles<'_>,
    task: &dyn Fn() -> Result<ProductTask<'static>>,
    console: &Console,
) -> Result<()> {
    on_engine(running.engine.patient(), inputs, console, |world, console| {
        let context = Context { world, monitor: monitor(), observer: console };
        let task = world.all_ok(task())?;
        let texts = world.all_ok(Texts::open(running, world))?;
        let outcome = MatrixJob::open(&task, context)?.run()?;
        print_and_commit(outcome, texts, running, context, console)
    })
}

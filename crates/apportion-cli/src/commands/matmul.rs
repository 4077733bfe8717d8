//! `apportion matmul`, the main command.

use super::product;
use crate::args::MatmulArgs;
use crate::console::Console;
use crate::prepare::task::{Job, Task};
use apportion::error::Result;

pub fn run(args: &MatmulArgs, console: &Console) -> Result<()> {
    let task = Task {
        job: Job::Product(args),
        factors: (&args.a, &args.b),
        semiring: args.semiring,
        output: args.output.as_ref(),
        running: &args.running,
    };
    product::run(&task, console)
}

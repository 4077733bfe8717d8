//! `apportion power`: A multiplied by itself.

use super::product;
use crate::args::PowerArgs;
use crate::console::Console;
use crate::prepare::task::{Job, Task};
use apportion::error::Result;

pub fn run(args: &PowerArgs, console: &Console) -> Result<()> {
    let task = Task {
        job: Job::Power(args.exponent),
        factors: (&args.a, &args.a),
        semiring: args.semiring,
        output: args.output.as_ref(),
        running: &args.running,
    };
    product::run(&task, console)
}

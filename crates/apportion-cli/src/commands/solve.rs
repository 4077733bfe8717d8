//! `apportion solve`: linear systems.

use super::factor::{elimination, print, try_texts};
use crate::args::SolveArgs;
use crate::console::{Console, monitor};
use crate::prepare::world::on_engine;
use apportion::error::Result;
use apportion::job::{Context, InputFiles};
use apportion_factor::{MatrixSource, SolveTask, solve_matrix};

pub fn run(args: &SolveArgs, console: &Console) -> Result<()> {
    let inputs = InputFiles {
        files: args.elimination.files().collect(),
        operands: vec![&args.a, &args.b],
        checkpoint: None,
    };
    on_engine(args.elimination.engine.patient(), &inputs, console, |world, console| {
        let context = Context { world, monitor: monitor(), observer: console };
        let factor = world.all_ok(elimination(args.kind, &args.a, &args.elimination))?;
        world.on_root(|| try_texts(&args.elimination))?;
        let b = MatrixSource::from(args.b.as_path());
        let task = SolveTask { output: args.output.clone(), mixed: args.mixed, ..SolveTask::new(factor, b) };
        let mut outcome = solve_matrix(task, context)?;
        let measured = outcome.factor.measured.take();
        outcome.factor.files.extend(outcome.file);
        world.on_root(|| print(outcome.factor, Some(&outcome.report), &args.elimination, console))?;
        if let Some(mut measured) = measured.filter(|_| world.rank() == 0) {
            measured.warn(context);
        }
        Ok(())
    })
}

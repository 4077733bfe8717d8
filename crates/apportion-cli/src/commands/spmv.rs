//! `apportion spmv`: a sparse matrix times a vector, again and again, on unequal processors.

use crate::args::SpmvArgs;
use crate::args::spmv::SpmvMethodName;
use crate::console::{Console, monitor};
use crate::output::provenance::provenance;
use crate::output::{appear, open, timeline};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{Context, InputFiles, warn_of_uncertainty};
use apportion_graph::{GraphMethod, GraphOptions, SpmvMatrix, SpmvOutcome, SpmvTask, VectorSource, spmv};
use apportion_report::run_text;

pub fn run(args: &SpmvArgs, console: &Console) -> Result<()> {
    let named = [Some(args.matrix.as_path()), Some(args.vector.as_path()), args.given.as_deref()];
    let named = named.into_iter().chain(args.sources.files()).flatten();
    let compared = InputFiles { files: named.collect(), ..InputFiles::default() };
    on_engine(args.engine.patient(), &compared, console, |world, console| {
        let context = Context { world, monitor: monitor(), observer: console };
        let task = world.all_ok(args.task())?;
        let outcome = spmv(&task, context)?;
        world.on_root(|| tell(args, &outcome, context, console)).map(drop)
    })
}

impl SpmvArgs {
    /// The task of the library.
    fn task(&self) -> Result<SpmvTask<'static>> {
        if self.tolerance.is_some() && self.method == SpmvMethodName::Product {
            let remedy = "add --method jacobi or cg, or remove the flag";
            return Err(Error::input("--tolerance", "is of solutions, not of products", remedy));
        }
        let methods = GraphMethod::named("`divide`", &self.divide, false)?;
        let matrix = SpmvMatrix::File(self.matrix.clone());
        let task = SpmvTask::new(matrix, VectorSource::File(self.vector.clone()), self.steps);
        Ok(SpmvTask {
            method: self.method.into(),
            tolerance: self.tolerance.unwrap_or(task.tolerance),
            parts: self.given.clone(),
            options: GraphOptions { methods, ..GraphOptions::default() },
            sources: self.sources.load(None)?,
            remeasure: self.remeasure,
            output: self.output.clone(),
            reports: [&self.report, &self.trace].into_iter().flatten().cloned().collect(),
            ..task
        })
    }
}

/// Prints the report, and writes the files about the run.
fn tell(args: &SpmvArgs, outcome: &SpmvOutcome, context: Context<'_>, console: &Console) -> Result<()> {
    let mut run = outcome.record();
    run.provenance = Some(provenance());
    let names = &outcome.choices[0].plan.processors;
    appear([
        (open(args.report.as_ref())?, &|| format!("{:#}\n", run.to_value())),
        (open(args.trace.as_ref())?, &|| timeline(args.trace.as_ref(), &outcome.trace, names)),
    ])?;
    console.result(|| run.to_value(), || run_text(&run));
    if let Some(measured) = &outcome.measured {
        warn_of_uncertainty(measured, "they are measured at each start", context);
    }
    Ok(())
}

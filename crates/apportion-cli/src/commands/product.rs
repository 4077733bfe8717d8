//! The part of `matmul`, `power` and `closure` that runs on every process of a world.

use super::panels;
use crate::console::{Console, monitor};
use crate::output::results::{Kept, Outputs, tell_and_keep};
use crate::prepare::agreement::Inputs as Compared;
use crate::prepare::distributed;
use crate::prepare::fastest::{fastest, is_small, of_models};
use crate::prepare::operands::{Inputs, Kind, inputs_of};
use crate::prepare::product::{Given, Prepared, copies, given_in, settled_on, speeds};
use crate::prepare::quick::Quick;
use crate::prepare::simulate::rank_of;
use crate::prepare::task::{Job, Task};
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::kernels::{Kernel, PathElement, Real, Tropical};
use apportion::matrix::{Element, LocalBlocks};
use apportion::plan::Shape;
use apportion::product::{
    Adaptive, ClosureMethod, MatmulJob, Operands, OwnRects, RunReport, matrix_closure, matrix_paths,
    matrix_power, multiply, products_of_power,
};
use apportion::run::{Session, World};
use std::time::Instant;

/// Runs the task on its engine.
pub fn run(task: &Task<'_>, console: &Console) -> Result<()> {
    let running = task.running;
    let resumed = if let Job::Product(args) = task.job { args.panels.resume.as_deref() } else { None };
    let compared = Compared {
        files: [&[running.plan.as_deref()], &running.sources.files()[..]]
            .concat()
            .into_iter()
            .flatten()
            .collect(),
        operands: task.operands(),
        checkpoint: resumed,
    };
    on_engine(running.engine.patient(), &compared, console, |world, console| on_world(task, world, console))
}

fn on_world(task: &Task<'_>, world: &World, console: &Console) -> Result<()> {
    let predecessors = if let Job::Closure(file, _) = task.job { file } else { None };
    world.all_ok(distributed::check(task, predecessors))?;
    let mut outputs = world.all_ok(Outputs::open(task, predecessors, world))?;
    let (inputs, shape, kind) = world.all_ok(inputs_of(task, world))?;
    world.all_ok(outputs.reserve(shape.m.saturating_mul(shape.n), kind.bytes()))?;
    let part = Part { task, world, console, inputs, shape };
    match (kind, predecessors.is_some()) {
        (Kind::F32, true) => part.paths::<f32>(outputs),
        (Kind::F64, true) => part.paths::<f64>(outputs),
        (Kind::I32, true) => part.paths::<i32>(outputs),
        (Kind::I64, true) => part.paths::<i64>(outputs),
        (Kind::F32, false) => part.numbers::<f32>(outputs),
        (Kind::F64, false) => part.numbers::<f64>(outputs),
        (Kind::I32, false) => part.whole_numbers::<i32>(outputs),
        (Kind::I64, false) => part.whole_numbers::<i64>(outputs),
        (Kind::Truth { bool }, _) => {
            world.all_ok(task.running.blas.unused(task.semiring))?;
            part.product(Kernel::or_and(), Outputs { bool, ..outputs })
        }
    }
}

/// One process's part of the work.
pub struct Part<'a> {
    pub task: &'a Task<'a>,
    pub world: &'a World,
    pub console: &'a Console,
    pub inputs: Inputs<'a>,
    pub shape: Shape,
}

/// This process's blocks of A, of B, and of the initial C if there is one.
struct Blocks<T> {
    a: LocalBlocks<T>,
    b: LocalBlocks<T>,
    initial: Option<LocalBlocks<T>>,
}

impl Part<'_> {
    fn numbers<T: Real>(&self, outputs: Outputs) -> Result<()> {
        let named = self.world.all_ok(self.task.running.blas.kernel::<T>(self.task.semiring))?;
        let kernel = named.map_or_else(|| self.fastest(), Ok)?;
        self.product(kernel, outputs)
    }

    /// The kernel of plus-times where none is named: that of the models, or the winner of a race on this
    /// process's processors. A product in panels keeps to the built-in one, as it may be continued elsewhere.
    fn fastest<T: Real>(&self) -> Result<Kernel<T>> {
        let (task, world) = (self.task, self.world);
        let panelled = matches!(task.job, Job::Product(args) if args.panels.asked());
        if panelled || is_small(self.shape) {
            return Ok(Kernel::plus_times());
        }
        let given = given_in(task.running.plan.as_deref(), &task.running.sources, world)?;
        if let Some(models) = &given.models {
            return Ok(of_models(&models.kernel).unwrap_or_else(Kernel::plus_times));
        }
        let work = (self.shape.elements() as f64, task.running.flow.block());
        Ok(fastest(&given.platform, work, task.running.remeasure, (world, self.console))?.own)
    }

    fn whole_numbers<T: Element + Tropical>(&self, outputs: Outputs) -> Result<()> {
        self.world.all_ok(self.task.running.blas.unused(self.task.semiring))?;
        let kernel = self.world.all_ok(Kernel::<T>::tropical(self.task.semiring))?;
        self.product(kernel, outputs)
    }

    /// A product, a power or a closure.
    fn product<T: Element>(&self, kernel: Kernel<T>, outputs: Outputs) -> Result<()> {
        let (world, task) = (self.world, self.task);
        let (scaling, tail) = world.all_ok(task.scaling(kernel).and_then(|s| Ok((s, task.tail()?))))?;
        let panelled = matches!(task.job, Job::Product(args) if args.panels.asked());
        // A single process holds whole matrices for any plan: it finds bad elements before anything is
        // measured.
        let early =
            if world.is_solo() && !panelled { Some(self.timed(|| self.read(kernel, None))?) } else { None };
        let (given, speeds) = speeds(kernel, (task.running, self.shape), world, self.console)?;
        let given = Given { uncut: task.uncut(), ..given };
        let settled = if panelled {
            None
        } else {
            settled_on::<T>(task, (&given, &speeds), self.shape, world, self.console)?
        };
        world.all_ok(self.explainable(settled.as_ref()))?;
        let Some(prepared) = settled else {
            drop(early);
            let given = Given { uncut: given.uncut.or(Some("a product in panels")), ..given };
            return panels::run(self, kernel, (&given, speeds), outputs);
        };
        let (blocks, read_seconds) = match early {
            Some(early) => early,
            None => world.all_ok(self.timed(|| self.read(kernel, Some(&prepared))))?,
        };
        let adaptive = self.adaptive(&prepared);
        let job = prepared
            .job(kernel, task.running.seed)
            .with_scaling(scaling)
            .with_adaptive(adaptive)
            .with_tail(tail);
        let job = self.with_method(job, &prepared)?;
        let session = self.session(&job, &prepared);
        let (c, report) = self.console.watch("computing", monitor(), || match task.job {
            Job::Product(_) => {
                let operands = Operands::new(&blocks.a, &blocks.b).with_initial(blocks.initial.as_ref());
                multiply(operands, &job, &session)
            }
            Job::Power(exponent) => matrix_power(&blocks.a, exponent, &job, &session),
            Job::Closure(..) => matrix_closure(&blocks.a, &job, &session),
        })?;
        drop(blocks);
        let begin = Instant::now();
        let bool = outputs.bool;
        let kept = outputs.keep(&c, (self.shape, world), &prepared.schedule()?)?;
        let io_seconds = read_seconds + begin.elapsed().as_secs_f64();
        let element = if bool { "bool" } else { report.element };
        let report = report.with_io(io_seconds, element);
        self.told(report, &prepared, speeds.quick, kept)
    }

    /// Tells the report beside the range of its forecast, and checks the speeds by it.
    fn told(
        &self,
        mut report: RunReport,
        prepared: &Prepared,
        quick: Option<Quick>,
        kept: Kept,
    ) -> Result<()> {
        report.forecast_range = quick.as_ref().and_then(|quick| quick.range(report.forecast_seconds));
        tell_and_keep(&report, prepared, (self.task.running, self.world), kept, self.console)?;
        if let Some(quick) = quick.filter(|_| self.world.rank() == 0) {
            quick.check(&report, &prepared.platform, self.console);
        }
        Ok(())
    }

    /// A closure with predecessors; both files appear, or none.
    fn paths<T: Element + Tropical>(&self, outputs: Outputs) -> Result<()>
    where
        PathElement<T>: Element,
    {
        let (world, task) = (self.world, self.task);
        world.all_ok(task.running.blas.unused(task.semiring))?;
        let kernel = world.all_ok(Kernel::<PathElement<T>>::paths(task.semiring))?;
        let lengths = world.all_ok(Kernel::<T>::tropical(task.semiring))?;
        let early = if world.is_solo() { Some(self.timed(|| self.read(lengths, None))?) } else { None };
        let (given, speeds) = speeds(kernel, (task.running, self.shape), world, self.console)?;
        let given = Given { uncut: task.uncut(), ..given };
        let prepared =
            settled_on::<PathElement<T>>(task, (&given, &speeds), self.shape, world, self.console)?;
        world.all_ok(self.explainable(prepared.as_ref()))?;
        let prepared = prepared.expect("only a product is cut into panels");
        let (blocks, read_seconds) = match early {
            Some(early) => early,
            None => world.all_ok(self.timed(|| self.read(lengths, Some(&prepared))))?,
        };
        let job = self.with_method(prepared.job(kernel, task.running.seed), &prepared)?;
        let session = self.session(&job, &prepared);
        let paths = self.console.watch("computing", monitor(), || matrix_paths(&blocks.a, &job, &session))?;
        let begin = Instant::now();
        let kept = outputs.keep_both(&paths.lengths, &paths.predecessors, (self.shape, world))?;
        let report = paths.report.with_io(read_seconds + begin.elapsed().as_secs_f64(), T::NAME);
        self.told(report, &prepared, speeds.quick, kept)
    }

    /// The job with the method of its closure, the same on all ranks.
    fn with_method<'j, T: Element>(
        &self,
        job: MatmulJob<'j, T>,
        prepared: &Prepared,
    ) -> Result<MatmulJob<'j, T>> {
        let Job::Closure(_, asked) = self.task.job else { return Ok(job) };
        let method = match asked {
            Some(method) => method,
            None => ClosureMethod::of(&job, &prepared.platform, self.world)?,
        };
        Ok(job.with_closure(Some(method)))
    }

    /// The job's runs: the maximum number of products it can take.
    fn session<'s, T: Element>(&'s self, job: &MatmulJob<'_, T>, prepared: &'s Prepared) -> Session<'s> {
        let work = match self.task.job {
            Job::Product(_) => job.work(),
            Job::Power(exponent) => job.work() * products_of_power(exponent) as f64,
            Job::Closure(..) => job.closure.unwrap_or(ClosureMethod::Squaring).work(self.shape.m),
        };
        Session::new(self.world, &prepared.platform, monitor(), work).copying(copies(self.task.running))
    }

    /// Rejects --explain before the run where there is nothing to explain: for the forecast of one product
    /// with one plan only.
    fn explainable(&self, prepared: Option<&Prepared>) -> Result<()> {
        let Some(who) = &self.task.running.explain else { return Ok(()) };
        match (&self.task.job, prepared) {
            (Job::Product(args), Some(prepared)) if !args.adaptive => {
                rank_of(who, &prepared.choices[0].plan.processors).map(|_| ())
            }
            _ => Err(Error::input(
                "--explain",
                "explains the forecast of one product with one plan",
                "leave out --adaptive and what cuts C into panels, or explain with `apportion simulate`",
            )),
        }
    }

    /// Whether and how the run repartitions.
    fn adaptive(&self, prepared: &Prepared) -> Option<Adaptive> {
        let Job::Product(args) = self.task.job else { return None };
        if args.adaptive && self.shape.k <= prepared.choices[0].order.block {
            self.console.note(
                "--adaptive: there is one pivot block only, so the product cannot be repartitioned; use a smaller --block",
            );
        }
        args.adaptive.then_some(Adaptive { segments: args.segments })
    }

    /// This process's blocks, or whole matrices if no plan assigns blocks; no block of B if B is A.
    fn read<T: Element>(&self, kernel: Kernel<T>, prepared: Option<&Prepared>) -> Result<Blocks<T>> {
        let own = match prepared {
            Some(prepared) => OwnRects::of(&prepared.schedule()?, self.world),
            None => OwnRects::whole(self.shape),
        };
        let Inputs { a, b, initial } = &self.inputs;
        match self.task.job {
            Job::Product(_) => Ok(Blocks {
                a: a.read(kernel, &own.a)?,
                b: b.read(kernel, &own.b)?,
                initial: initial.as_ref().map(|c| c.read(kernel, &own.c)).transpose()?,
            }),
            // The blocks of a square matrix are those of its product.
            Job::Power(_) | Job::Closure(..) => {
                Ok(Blocks { a: a.read(kernel, &own.c)?, b: LocalBlocks::new(), initial: None })
            }
        }
    }

    /// Returns the result with the seconds that it took.
    fn timed<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
        let begin = Instant::now();
        work().map(|result| (result, begin.elapsed().as_secs_f64()))
    }
}

//! `--engine mpi` of `matmul`, `power` and `closure`: every process of an mpirun comes through here.

mod inputs;

use super::matmul::Scaled;
use crate::console::{Console, monitor};
use crate::output::open;
use crate::output::results::{Files, tell_and_keep};
use crate::prepare::processors::QUICK_SIZES;
use crate::prepare::product::{Given, Prepared, Running, given_by, known_models, settled};
use crate::prepare::world::{fits, in_world, processes};
use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect};
use apportion::kernels::Kernel;
use apportion::kernels::{PathElement, Real, Semiring, Tropical};
use apportion::matrix::{Element, LocalBlocks, Scaling, tiles_header, write_tiles};
use apportion::output::OutputFile;
use apportion::plan::{Plan, Shape};
use apportion::product::{MatmulJob, closure_mpi, measure_world, multiply_mpi, paths_mpi, power_mpi};
use apportion::report::RunReport;
use apportion::run::World;
use apportion::schedule::{Application, MatmulSchedule, ScheduleOptions};
use apportion::select::Choice;
use inputs::{Inputs, Kind, inputs_of};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is computed of the factors.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// alpha op(A) op(B) + beta C0.
    Product(&'a Scaled),
    /// A to this power.
    Power(u64),
    /// I + A + A A + …, and where the vertices before go, if they are asked for.
    Closure(Option<&'a PathBuf>),
}

/// The work of all processes.
#[derive(Debug)]
pub struct Task<'a> {
    pub job: Job<'a>,
    /// A and B; of a power or closure twice the same.
    pub factors: (&'a Path, &'a Path),
    pub semiring: Semiring,
    pub output: Option<&'a PathBuf>,
}

/// Runs a product's part of each process.
pub fn run(task: &Task<'_>, running: &Running, console: &Console) -> Result<()> {
    in_world(console, |world, console| on_rank(task, running, world, console))
}

fn on_rank(task: &Task<'_>, running: &Running, world: &World, console: &Console) -> Result<()> {
    let (inputs, shape, kind) = world.agree(inputs_of(task))?;
    let part = Part { task, running, world, console, inputs, shape };
    if let Job::Closure(Some(before)) = task.job {
        return match kind {
            Kind::F32 => part.paths::<f32>(before),
            Kind::F64 => part.paths::<f64>(before),
            Kind::I32 => part.paths::<i32>(before),
            Kind::I64 => part.paths::<i64>(before),
            Kind::Truth { .. } => unreachable!("or-and has no best paths, and was refused"),
        };
    }
    match kind {
        Kind::F32 => part.numbers::<f32>(),
        Kind::F64 => part.numbers::<f64>(),
        Kind::I32 => part.whole_numbers::<i32>(),
        Kind::I64 => part.whole_numbers::<i64>(),
        Kind::Truth { bool } => part.product(Kernel::or_and(), bool),
    }
}

/// One process's part of the work.
struct Part<'a> {
    task: &'a Task<'a>,
    running: &'a Running,
    world: &'a World,
    console: &'a Console,
    inputs: Inputs<'a>,
    shape: Shape,
}

impl Part<'_> {
    fn numbers<T: Real>(&self) -> Result<()> {
        let kernel = self.world.agree(self.running.blas.kernel::<T>(self.task.semiring))?;
        self.product(kernel, false)
    }

    fn whole_numbers<T: Element + Tropical>(&self) -> Result<()> {
        self.world.agree(self.running.blas.unused(self.task.semiring))?;
        let kernel = self.world.agree(Kernel::<T>::tropical(self.task.semiring))?;
        self.product(kernel, false)
    }

    /// A product, a power or a closure.
    fn product<T: Element>(&self, kernel: Kernel<T>, bool: bool) -> Result<()> {
        let world = self.world;
        let prepared = self.prepare(kernel)?;
        let scaling = match self.task.job {
            Job::Product(scaled) => world.agree(scaled.scaling(kernel, None))?,
            Job::Power(_) | Job::Closure(_) => Scaling::none(kernel.one()),
        };
        let begin = Instant::now();
        let (a, b, initial) = world.agree(self.read(kernel, &prepared.schedule()?))?;
        let read_seconds = begin.elapsed().as_secs_f64();
        let what = MatmulJob { scaling, ..prepared.multiplication(kernel, self.running.seed) };
        let job = || match self.task.job {
            Job::Product(_) => multiply_mpi((&a, &b, initial.as_ref()), &what, world, monitor()),
            Job::Power(exponent) => power_mpi(&a, exponent, &what, world, monitor()),
            Job::Closure(_) => closure_mpi(&a, &what, world, monitor()),
        };
        let (c, report) = self.console.watch("computing", monitor(), job)?;
        let begin = Instant::now();
        let file = self.task.output.map(|path| self.write(path, &c, bool)).transpose()?;
        self.appear(file)?;
        let io_seconds = read_seconds + begin.elapsed().as_secs_f64();
        let element = if bool { "bool" } else { report.element };
        self.tell(&RunReport { element, io_seconds, ..report }, &prepared)
    }

    /// A closure with the vertices before; both files appear, or none.
    fn paths<T: Element + Tropical>(&self, before: &Path) -> Result<()>
    where
        PathElement<T>: Element,
    {
        let world = self.world;
        let kernel = world.agree(Kernel::<PathElement<T>>::legs(self.task.semiring))?;
        let prepared = self.prepare(kernel)?;
        let begin = Instant::now();
        let lengths = world.agree(Kernel::<T>::tropical(self.task.semiring))?;
        let (a, ..) = world.agree(self.read(lengths, &prepared.schedule()?))?;
        let read_seconds = begin.elapsed().as_secs_f64();
        let what = prepared.multiplication(kernel, self.running.seed);
        let job = || paths_mpi(&a, &what, world, monitor());
        let (lengths, predecessors, report) = self.console.watch("computing", monitor(), job)?;
        let begin = Instant::now();
        let file = self.task.output.map(|path| self.write(path, &lengths, false)).transpose()?;
        let predecessors = self.write(before, &predecessors, false)?;
        self.appear(file)?;
        self.appear(Some(predecessors))?;
        let io_seconds = read_seconds + begin.elapsed().as_secs_f64();
        self.tell(&RunReport { io_seconds, ..report }, &prepared)
    }

    fn tell(&self, report: &RunReport, prepared: &Prepared) -> Result<()> {
        let tell = || tell_and_keep(report, prepared, self.running, Files::open(self.running)?, self.console);
        self.world.agree(if self.world.rank() == 0 { tell() } else { Ok(()) })
    }

    /// Finds out before the work whether the files can be written.
    fn try_outputs(&self) -> Result<()> {
        let before = if let Job::Closure(before) = self.task.job { before } else { None };
        [self.task.output, before].into_iter().try_for_each(|path| open(path).map(drop))?;
        Files::open(self.running).map(drop)
    }

    /// Platform and plan, the same on all ranks: rank 0 decides.
    fn prepare<T: Element>(&self, kernel: Kernel<T>) -> Result<Prepared> {
        let world = self.world;
        world.agree(if world.rank() == 0 { self.try_outputs() } else { Ok(()) })?;
        let here = processes(world)?;
        let given = world.agree(given_by(self.running, || here).and_then(|given| self.fitting(given)))?;
        given.warn_of_another_kernel(kernel, self.console);
        let (models, block) = match world.agree(known_models(&given))? {
            Some(known) => known,
            None => {
                let block = self.running.flow.block();
                self.console.detail("measuring speeds on all processes together");
                let measured =
                    measure_world(kernel, &given.platform, (&QUICK_SIZES, block), world, monitor())?;
                (world.agree(measured.in_order(&given.platform.names()))?, block)
            }
        };
        let settle =
            || settled::<T>(given.clone(), (models.clone(), block), self.shape, self.running, self.console);
        if world.rank() == 0 {
            let prepared = world.agree(settle())?;
            let Choice { plan, order, .. } = &prepared.choices[0];
            let text = json!({"plan": plan.to_value(), "order": order}).to_string();
            world.broadcast(text.as_bytes())?;
            return Ok(prepared);
        }
        world.agree(Ok(()))?;
        let text = world.broadcast(&[])?;
        let mut decided: Value = serde_json::from_slice(&text).expect("rank 0 sent JSON");
        let order: ScheduleOptions =
            serde_json::from_value(decided["order"].take()).expect("rank 0 sent an order");
        let plan = Plan::parse(&decided["plan"].to_string(), "rank 0's plan")?;
        let choices = vec![Choice { plan, order, rank: None, narrowed: None }];
        Ok(Prepared { platform: given.platform, models, block, choices, relative: false })
    }

    /// Refuses what this engine or this world cannot run.
    fn fitting(&self, given: Given) -> Result<Given> {
        if given.platform.network.emulate {
            return Err(Error::input(
                format!("platform \"{}\": network.emulate", given.platform.name),
                "an emulated network takes one process that sees all messages; MPI's messages take the real one",
                "use --engine threads, or remove emulate",
            ));
        }
        fits(self.world, given.platform.len())?;
        Ok(given)
    }

    /// This rank's own parts of A and of B, and of the initial C; of B none where it is A.
    fn read<T: Element>(&self, kernel: Kernel<T>, schedule: &MatmulSchedule) -> Result<Parts<T>> {
        let rank = Rank(self.world.rank());
        let Inputs { a, b, initial } = &self.inputs;
        let mine = schedule.rects(rank);
        match self.task.job {
            Job::Product(_) => {
                let (of_a, of_b) = schedule.own(rank);
                let of_a: Vec<Rect> = of_a.iter().map(|part| part.rect()).collect();
                let of_b: Vec<Rect> = of_b.iter().map(|part| part.rect()).collect();
                let initial = initial.as_ref().map(|c| c.read(kernel, mine)).transpose()?;
                Ok((a.read(kernel, &of_a)?, b.read(kernel, &of_b)?, initial))
            }
            // The parts of a square matrix are those of its product.
            Job::Power(_) | Job::Closure(_) => Ok((a.read(kernel, mine)?, LocalBlocks::new(), None)),
        }
    }

    /// Every rank writes its part of a result into one file, which is rank 0's to let [appear](Self::appear).
    fn write<T: Element>(&self, path: &Path, c: &LocalBlocks<T>, bool: bool) -> Result<Option<OutputFile>> {
        let (world, Shape { m, n, .. }) = (self.world, self.shape);
        let header = tiles_header::<T>(m as usize, n as usize, bool);
        let length = header.len() as u64 + m * n * size_of::<T>() as u64;
        let create = || {
            let mut file = OutputFile::create(path)?;
            file.put(&header)?;
            let place = file.share(length)?;
            Ok(Some((file, place)))
        };
        let created = world.agree(if world.rank() == 0 { create() } else { Ok(None) })?;
        let (file, place) = created.map_or((None, PathBuf::new()), |(file, place)| (Some(file), place));
        let place = world.broadcast(place.as_os_str().as_encoded_bytes())?;
        let place = PathBuf::from(String::from_utf8_lossy(&place).into_owned());
        // Whoever is stopped in the middle takes it away: rank 0 may be gone.
        let stray = Stray(Some(&place));
        let written = write_tiles(&place, c, (header.len() as u64, n));
        world.agree(written)?;
        std::mem::forget(stray);
        Ok(file)
    }

    fn appear(&self, file: Option<Option<OutputFile>>) -> Result<()> {
        self.world.agree(file.flatten().map_or(Ok(()), OutputFile::commit))
    }
}

/// A rank's parts of A, of B, and of the initial C if there is one.
type Parts<T> = (LocalBlocks<T>, LocalBlocks<T>, Option<LocalBlocks<T>>);

/// A file that is removed unless this is forgotten.
struct Stray<'a>(Option<&'a PathBuf>);

impl Drop for Stray<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

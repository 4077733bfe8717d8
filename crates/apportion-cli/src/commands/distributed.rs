//! `--engine mpi` of `matmul`, `power` and `closure`: every process of an mpirun comes through here.

use super::picture;
use super::product::{Given, Prepared, Running, given_by, known_models, not_numbers, settled};
use crate::console::{Console, monitor};
use crate::inputs::QUICK_SIZES;
use crate::world::{fits, in_world, processes};
use apportion::kernels::{Real, Semiring, Tropical};
use apportion::{
    AnyMatrix, Choice, Element, Error, Kernel, Matrix, Multiplication, NpyHeader, Order, OutputFile, Plan,
    Platform, Rank, Result, RunReport, Scaling, Schedule, Shape, Tiles, World, chrome_trace, closure_mpi,
    measure_world, multiply_mpi, power_mpi, read_npy_header, read_tiles, tiles_header, write_tiles,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is computed of the factors.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// A B.
    Product,
    /// A to this power.
    Power(u64),
    /// I + A + A A + …
    Closure,
}

/// The work of all processes.
#[derive(Debug)]
pub struct Task<'a> {
    pub job: Job,
    /// A and B; of a power or closure twice the same.
    pub factors: (&'a Path, &'a Path),
    pub semiring: Semiring,
    pub output: Option<&'a PathBuf>,
}

/// Runs a product's part of each process.
pub fn run(task: &Task<'_>, running: &Running, console: &Console) -> Result<()> {
    in_world(console, |world, console| on_rank(task, running, world, console))
}

/// The elements of the factors, and whether truth values are written as such.
#[derive(Debug, Clone, Copy)]
enum Kind {
    F32,
    F64,
    I32,
    I64,
    Truth { bool: bool },
}

fn on_rank(task: &Task<'_>, running: &Running, world: &World, console: &Console) -> Result<()> {
    let (a, b, shape, kind) = world.agree(headers(task))?;
    console.detail(format!("{} processes, {}", world.size(), world.library()));
    let part = Part { task, running, world, console, headers: (a, b), shape };
    match kind {
        Kind::F32 => part.numbers::<f32>(),
        Kind::F64 => part.numbers::<f64>(),
        Kind::I32 => part.whole_numbers::<i32>(),
        Kind::I64 => part.whole_numbers::<i64>(),
        Kind::Truth { bool } => part.carry_out(Kernel::or_and(), bool),
    }
}

/// The factors' headers, the shape of the product and the kind of its elements.
fn headers(task: &Task<'_>) -> Result<(NpyHeader, NpyHeader, Shape, Kind)> {
    let header = |path: &Path| {
        if path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() != Some("npy") {
            return Err(Error::input(
                path.display().to_string(),
                "is not called .npy: with --engine mpi each process reads its own part of the file",
                "give a NumPy .npy file, or use --engine threads",
            ));
        }
        read_npy_header(path)
    };
    let (path_a, path_b) = task.factors;
    let (a, b) = (header(path_a)?, header(path_b)?);
    let kind = match (task.semiring, a.dtype, b.dtype) {
        (Semiring::OrAnd, x, y) => {
            for (dtype, path) in [(x, path_a), (y, path_b)] {
                if dtype != "bool" && dtype != "u8" {
                    let what = format!("holds {dtype}, but or-and takes bool or u8");
                    let remedy = "save it as numpy.bool_ or numpy.uint8";
                    return Err(Error::input(path.display().to_string(), what, remedy));
                }
            }
            Kind::Truth { bool: x == "bool" && y == "bool" }
        }
        (_, "f32", "f32") => Kind::F32,
        (_, "f64", "f64") => Kind::F64,
        (Semiring::PlusTimes, "i32" | "i64", _) => {
            return Err(not_numbers(&none(a.dtype), task.semiring, path_a));
        }
        (Semiring::PlusTimes, _, "i32" | "i64") => {
            return Err(not_numbers(&none(b.dtype), task.semiring, path_b));
        }
        (_, "i32", "i32") => Kind::I32,
        (_, "i64", "i64") => Kind::I64,
        (semiring, "bool" | "u8", _) => return Err(not_numbers(&none(a.dtype), semiring, path_a)),
        (semiring, _, "bool" | "u8") => return Err(not_numbers(&none(b.dtype), semiring, path_b)),
        _ => {
            return Err(Error::input(
                path_b.display().to_string(),
                format!("holds {}, but {} holds {}", b.dtype, path_a.display(), a.dtype),
                "convert one of them, so that both have the same element type",
            ));
        }
    };
    if a.cols != b.rows {
        let (place, what, remedy) = match task.job {
            Job::Product => (
                path_b,
                format!("is {} x {}, but {} is {} x {}", b.rows, b.cols, path_a.display(), a.rows, a.cols),
                format!("the right factor needs {} rows", a.cols),
            ),
            Job::Power(_) | Job::Closure => {
                (path_a, format!("is {} x {}, not square", a.rows, a.cols), "give a square matrix".into())
            }
        };
        return Err(Error::input(place.display().to_string(), what, remedy));
    }
    Ok((a, b, Shape::new(a.rows as u64, a.cols as u64, b.cols as u64, "matrices")?, kind))
}

/// A matrix of this type, for a message about it.
fn none(dtype: &str) -> AnyMatrix {
    match dtype {
        "i32" => AnyMatrix::I32(Matrix::new(0, 0, Vec::new())),
        "i64" => AnyMatrix::I64(Matrix::new(0, 0, Vec::new())),
        "bool" => AnyMatrix::Bool(Matrix::new(0, 0, Vec::new())),
        _ => AnyMatrix::U8(Matrix::new(0, 0, Vec::new())),
    }
}

/// One process's part of the work.
struct Part<'a> {
    task: &'a Task<'a>,
    running: &'a Running,
    world: &'a World,
    console: &'a Console,
    headers: (NpyHeader, NpyHeader),
    shape: Shape,
}

impl Part<'_> {
    fn numbers<T: Real>(&self) -> Result<()> {
        let kernel = self.world.agree(self.running.blas.kernel::<T>(self.task.semiring))?;
        self.carry_out(kernel, false)
    }

    fn whole_numbers<T: Element + Tropical>(&self) -> Result<()> {
        self.world.agree(self.running.blas.unused(self.task.semiring))?;
        let kernel = self.world.agree(Kernel::<T>::tropical(self.task.semiring))?;
        self.carry_out(kernel, false)
    }

    fn carry_out<T: Element>(&self, kernel: Kernel<T>, bool: bool) -> Result<()> {
        let (world, first) = (self.world, self.world.rank() == 0);
        world.agree(if first { self.try_outputs() } else { Ok(()) })?;
        let prepared = self.prepare(kernel)?;
        let layout = prepared.choices[0].plan.layout.as_ref().expect("a plan of a product has a layout");
        let schedule = Schedule::matmul(layout, prepared.choices[0].order);
        let begin = Instant::now();
        let (a, b) = world.agree(self.read(kernel, &schedule))?;
        let read_seconds = begin.elapsed().as_secs_f64();
        let what = Multiplication {
            kernel,
            plan: &prepared.choices[0].plan,
            order: prepared.choices[0].order,
            platform: &prepared.platform,
            models: &prepared.models,
            models_block: prepared.block,
            scaling: Scaling::none(kernel.one()),
            adaptive: None,
            seed: self.running.seed,
        };
        let job = || match self.task.job {
            Job::Product => multiply_mpi((&a, b.as_ref().unwrap_or(&a)), &what, world, monitor()),
            Job::Power(exponent) => power_mpi(&a, exponent, &what, world, monitor()),
            Job::Closure => closure_mpi(&a, &what, world, monitor()),
        };
        let (c, mut report) = self.console.watch("computing", monitor(), job)?;
        let begin = Instant::now();
        if let Some(path) = self.task.output {
            self.write(path, &c, bool)?;
        }
        report.io_seconds = read_seconds + begin.elapsed().as_secs_f64();
        if bool {
            report.element = "bool";
        }
        world.agree(if first { self.tell(&report, &prepared.platform) } else { Ok(()) })
    }

    /// Finds out before the work whether the files can be written.
    fn try_outputs(&self) -> Result<()> {
        let Running { report, trace, svg, .. } = self.running;
        [self.task.output, report.as_ref(), trace.as_ref(), svg.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(|path| OutputFile::create(path).map(drop))
    }

    /// Platform and plan, the same on all ranks: rank 0 decides.
    fn prepare<T: Element>(&self, kernel: Kernel<T>) -> Result<Prepared> {
        let world = self.world;
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
        let order: Order = serde_json::from_value(decided["order"].take()).expect("rank 0 sent an order");
        let plan = Plan::parse(&decided["plan"].to_string(), "rank 0's plan")?;
        Ok(Prepared {
            platform: given.platform,
            models,
            block,
            choices: vec![Choice { plan, order, rank: None, narrowed: None }],
            relative: false,
        })
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

    /// This rank's own parts of A and of B; of B none where it is A.
    fn read<T: Element>(
        &self,
        kernel: Kernel<T>,
        schedule: &Schedule,
    ) -> Result<(Tiles<T>, Option<Tiles<T>>)> {
        let rank = Rank(self.world.rank());
        let read = |path: &Path, header: &NpyHeader, rects: Vec<_>| {
            let tiles = read_tiles::<T>(path, header, &rects)?;
            let place = path.display().to_string();
            tiles.iter().try_for_each(|(rect, tile)| kernel.check_tile((*rect, tile), &place))?;
            Ok(tiles)
        };
        let (path_a, path_b) = self.task.factors;
        let (header_a, header_b) = &self.headers;
        match self.task.job {
            Job::Product => {
                let (a, b) = schedule.own(rank);
                let a = read(path_a, header_a, a.iter().map(|part| part.rect()).collect())?;
                let b = read(path_b, header_b, b.iter().map(|part| part.rect()).collect())?;
                Ok((a, Some(b)))
            }
            // The parts of a square matrix are those of its product.
            Job::Power(_) | Job::Closure => {
                Ok((read(path_a, header_a, schedule.rects(rank).to_vec())?, None))
            }
        }
    }

    /// Every rank writes its part of the result into one file, which appears when all have.
    fn write<T: Element>(&self, path: &Path, c: &Tiles<T>, bool: bool) -> Result<()> {
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
        world.agree(file.map_or(Ok(()), OutputFile::commit))
    }

    /// Rank 0's files and words.
    fn tell(&self, report: &RunReport, platform: &Platform) -> Result<()> {
        let open = |path: &Option<PathBuf>| path.as_ref().map(OutputFile::create).transpose();
        super::appear([
            (open(&self.running.report)?, &|| format!("{:#}\n", report.to_value())),
            (open(&self.running.trace)?, &|| {
                chrome_trace(&report.trace, &report.plan.processors).to_string()
            }),
            (open(&self.running.svg)?, &|| picture(&report.plan, platform)),
        ])?;
        self.console.result(|| report.to_value(), || report.to_text());
        Ok(())
    }
}

/// A file that is removed unless this is forgotten.
struct Stray<'a>(Option<&'a PathBuf>);

impl Drop for Stray<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

//! `matmul --memory`, `--panels`, `--checkpoint`, `--resume`: panel by panel, from disk to disk, on every
//! process of a world.

use super::product::Part;
use crate::args::MatmulArgs;
use crate::console::monitor;
use crate::output::chosen::Chosen;
use crate::output::panels::{Cuts, cut_text, cut_value};
use crate::output::results::{About, Outputs};
use crate::output::{appear_with, picture, timeline};
use crate::prepare::checkpoint::{fingerprint, same_decisions};
use crate::prepare::cut::{Cut, cut};
use crate::prepare::product::{Given, Speeds, copies, data_path};
use crate::prepare::task::Job;
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::matrix::{Element, Matrix, NpyFile, npy_header, write_npy_rows};
use apportion::output::OutputFile;
use apportion::platform::{forget_peak_memory, return_freed_memory};
use apportion::product::{Checkpoint, Files, Manifest, MatmulJob, PanelRun};
use apportion::run::Session;
use std::path::Path;

/// The source of the panels, and the place where finished ones are kept.
struct Begun {
    manifest: Manifest,
    checkpoint: Option<Checkpoint>,
    /// The choice, if this run decided, and its reason.
    cut: Option<Cut>,
}

/// Computes the product panel by panel; `speeds` are those of its processors.
pub fn run<T: Element>(
    part: &Part<'_>,
    kernel: Kernel<T>,
    (given, mut speeds): (&Given, Speeds),
    outputs: Outputs,
) -> Result<()> {
    let Part { task, world, console, shape, .. } = *part;
    let Job::Product(args) = task.job else { unreachable!("only products are cut") };
    let (running, first) = (task.running, world.rank() == 0);
    let scaling = world.all_ok(task.scaling(kernel))?;
    let mut files = world.all_ok(open_files(args))?;
    let Begun { manifest, checkpoint, cut } = begin(part, kernel, (given, &speeds), (args, &mut files))?;
    world.all_ok(files.check_unchanged())?;
    let job = MatmulJob::new(kernel, &manifest.plan, manifest.order, &speeds.models, speeds.block)
        .with_scaling(scaling)
        .with_seed(running.seed);
    let work = shape.flops() / 2.0;
    let session = Session::new(world, &given.platform, monitor(), work).copying(copies(running));
    return_freed_memory();
    forget_peak_memory();
    let mut run = PanelRun::new(files, job, &session, (shape, manifest.panels));
    let Outputs { mut file, about, bool, .. } = world.all_ok(outputs.opened(world))?;
    if let Some(file) = &mut file {
        let (m, n) = (shape.m as usize, shape.n as usize);
        file.put(&npy_header::<T>(&[m, n], bool))?;
    }
    let panels = manifest.panels.of(shape);
    let mut resumed = 0;
    let outcome = console.watch("computing", monitor(), || {
        for (i, rows) in panels.iter().enumerate() {
            let damaged = &mut |path: &Path| {
                console.note(format!("{}: is damaged, and computed again", path.display()));
            };
            let found = world.all_ok(match &checkpoint {
                Some(checkpoint) if first => checkpoint.load(i, (*rows, shape.n), damaged),
                _ => Ok(None),
            })?;
            let known = world.broadcast(&[u8::from(found.is_some())])? == [1];
            resumed += usize::from(known);
            let panel: Option<Matrix<T>> = if known { found } else { run.panel(*rows)? };
            let mut keep = || {
                let Some(panel) = &panel else { return Ok(()) };
                if let Some(checkpoint) = checkpoint.as_ref().filter(|_| !known) {
                    checkpoint.save(i, panel)?;
                }
                file.as_mut().map_or(Ok(()), |file| write_npy_rows(file, panel.as_slice()))
            };
            world.all_ok(keep())?;
            if monitor().is_stopped() {
                return Err(Error::Interrupted);
            }
        }
        run.check_unchanged()?;
        world.all_ok(file.as_mut().map_or(Ok(()), OutputFile::complete))
    });
    outcome.map_err(|error| kept(error, args, checkpoint.as_ref(), panels.len()))?;
    let element = if bool { "bool" } else { T::NAME };
    let report = run.report()?;
    let io_seconds = report.io_seconds;
    let report = report.with_io(io_seconds, element);
    if !first {
        return world.all_ok(Ok(()));
    }
    let of = (given.platform.len() as u64, data_path(running, &given.platform, world));
    let cuts = Cuts {
        count: panels.len(),
        panels: manifest.panels,
        because: cut.as_ref().map_or("the run that began it", |cut| cut.because),
        resumed,
        cap: args.panels.memory,
        predicted: manifest.panels.predicted_bytes(shape, of, manifest.order, size_of::<T>() as u64),
    };
    let chosen = cut.as_ref().map(|cut| Chosen::of(&cut.prepared));
    let about_cuts = cut_value(&cuts);
    let value = || {
        let mut value = report.to_value();
        value["panels"] = about_cuts.clone();
        chosen.iter().for_each(|chosen| chosen.add_to(&mut value, &given.platform));
        value
    };
    let about = if world.is_solo() { about } else { About::open(running, world)? };
    let appeared = world.all_ok(appear_with(
        file.into_iter().collect(),
        [
            (about.report, &|| format!("{:#}\n", value())),
            (about.trace, &|| timeline(running.trace.as_ref(), &report.trace, &report.plan.processors)),
            (about.svg, &|| picture(&report.plan, &given.platform)),
        ],
    ));
    appeared.map_err(|error| kept(error, args, checkpoint.as_ref(), panels.len()))?;
    let text = || {
        let chosen = chosen
            .as_ref()
            .map_or_else(String::new, |chosen| chosen.text(&given.platform, speeds.source(), &report));
        report.to_text() + &chosen + &cut_text(&cuts)
    };
    console.result(value, text);
    if let Some(quick) = &mut speeds.quick {
        quick.warn(console);
    }
    Ok(())
}

fn open_files(args: &MatmulArgs) -> Result<Files> {
    let a = NpyFile::open(&args.a, args.scaled.transpose_a)?;
    let b = NpyFile::open(&args.b, args.scaled.transpose_b)?;
    let initial = args.scaled.c_in.as_deref().map(|path| NpyFile::open(path, false)).transpose()?;
    Ok(Files { a, b, initial })
}

/// Opens the checkpoint, if there is one, and decides how to cut C or reads how it was cut; rank 0 decides
/// for all.
fn begin<T: Element>(
    part: &Part<'_>,
    kernel: Kernel<T>,
    (given, speeds): (&Given, &Speeds),
    (args, files): (&MatmulArgs, &mut Files),
) -> Result<Begun> {
    let Part { world, console, shape, .. } = *part;
    let mut decide = || -> Result<Begun> {
        let path = data_path(part.task.running, &given.platform, world);
        let make = || cut::<T>((given, speeds), shape, (args, path), console);
        let Some(directory) = args.panels.directory() else {
            let cut = make()?;
            return Ok(Begun { manifest: cut.begun.clone(), checkpoint: None, cut: Some(cut) });
        };
        let fingerprint = fingerprint(files, args, kernel, given)?;
        // The hash is of what the run reads.
        files.check_unchanged()?;
        let (checkpoint, begun) = Checkpoint::open(directory, &fingerprint)?;
        if let Some(manifest) = begun {
            if args.panels.checkpoint.is_some() {
                let what = "holds a checkpoint already";
                let remedy = "continue it with --resume";
                return Err(Error::input(directory.display().to_string(), what, remedy));
            }
            let of = (given.platform.len() as u64, path);
            same_decisions(&manifest, args, shape, (of, size_of::<T>() as u64), directory)?;
            return Ok(Begun { manifest, checkpoint: Some(checkpoint), cut: None });
        }
        let cut = make()?;
        if args.panels.resume.is_some() {
            console.note(format!("{}: no checkpoint yet; starting a new one", directory.display()));
        }
        checkpoint.begin(&fingerprint, &cut.begun)?;
        Ok(Begun { manifest: cut.begun.clone(), checkpoint: Some(checkpoint), cut: Some(cut) })
    };
    if world.is_solo() {
        return decide();
    }
    let mine = world.on_root(decide)?;
    let text = mine.as_ref().map(|begun| begun.manifest.to_value().to_string()).unwrap_or_default();
    let text = world.broadcast(text.as_bytes())?;
    match mine {
        Some(begun) => Ok(begun),
        None => {
            let manifest = Manifest::parse(&String::from_utf8_lossy(&text), "rank 0's decisions")?;
            Ok(Begun { manifest, checkpoint: None, cut: None })
        }
    }
}

/// The error of a run whose finished panels are kept, with instructions to continue.
fn kept(error: Error, args: &MatmulArgs, checkpoint: Option<&Checkpoint>, count: usize) -> Error {
    let (Some(directory), Some(checkpoint)) = (args.panels.directory(), checkpoint) else { return error };
    let directory = directory.display();
    let kept = checkpoint
        .count()
        .map_or_else(|_| "the finished panels".into(), |kept| format!("{kept} of {count} panels"));
    error.with_kept(&format!(
        "{kept} kept in {directory}: the same command with --resume {directory} instead of --checkpoint continues"
    ))
}

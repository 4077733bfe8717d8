//! `matmul --memory`, `--panels`, `--checkpoint`, `--resume`: panel by panel, from disk to disk.

use super::matmul::Arguments;
use crate::console::{Console, monitor};
use crate::output::chosen::Chosen;
use crate::output::{appear, open, picture, timeline};
use crate::prepare::cut::{Cut, Task, cut};
use crate::prepare::product::{Given, speeds};
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::kernels::{Real, Semiring};
use apportion::matrix::{Element, Matrix, NpyFile, npy_header, npy_header_bool, write_npy_rows};
use apportion::output::OutputFile;
use apportion::plan::Shape;
use apportion::platform::{forget_peak_memory, peak_memory};
use apportion::product::{Checkpoint, Files, Fingerprint, Manifest, MatmulJob, PanelRun};
use apportion::report::pairs;
use apportion::units;
use apportion::units::Dimension;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Panelled {
    /// Hold at most this much memory, such as 64MiB: panels of C are streamed from and to disk (.npy files only).
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with_all = ["plan", "adaptive"])]
    pub memory: Option<u64>,
    /// Cut C's rows into so many panels, computed one after the other; default with --checkpoint: 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["plan", "adaptive"])]
    pub panels: Option<u64>,
    /// Keep each finished panel of C in this directory, so that --resume can go on after any end.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "adaptive"])]
    pub checkpoint: Option<PathBuf>,
    /// Go on from the panels in this directory, to the same bytes; they were cut as the first run decided.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "adaptive", "checkpoint"])]
    pub resume: Option<PathBuf>,
}

impl Panelled {
    pub fn asked(&self) -> bool {
        self.memory.is_some() || self.panels.is_some() || self.checkpoint.is_some() || self.resume.is_some()
    }
}

fn memory(text: &str) -> std::result::Result<u64, String> {
    let bytes = units::parse(text, Dimension::Bytes)?;
    if bytes >= 1.0 { Ok(bytes as u64) } else { Err("give a size such as 64MiB".into()) }
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    let a = NpyFile::open(&args.a, args.scaled.transpose_a)?;
    let b = NpyFile::open(&args.b, args.scaled.transpose_b)?;
    let initial = args.scaled.c_in.as_deref().map(|path| NpyFile::open(path, false)).transpose()?;
    let files = Files { a, b, initial };
    let types: Vec<_> = all(&files).map(|f| f.header().dtype).collect();
    let truth = types.iter().all(|t| ["bool", "u8"].contains(t));
    match (args.semiring, types[0]) {
        (Semiring::OrAnd, _) if truth => job(Kernel::or_and(), files, args, !types.contains(&"u8"), console),
        (Semiring::OrAnd, _) => Err(mixed(&files, "or-and takes bool or u8")),
        (_, first) if types.iter().any(|t| *t != first) => Err(mixed(&files, "all must be alike")),
        (_, "f32") => numbers::<f32>(files, args, console),
        (_, "f64") => numbers::<f64>(files, args, console),
        _ => Err(mixed(&files, "this semiring takes f32 or f64")),
    }
}

fn all(files: &Files) -> impl Iterator<Item = &NpyFile> {
    [&files.a, &files.b].into_iter().chain(&files.initial)
}

fn mixed(files: &Files, what: &str) -> Error {
    let held: Vec<_> =
        all(files).map(|f| format!("{} holds {}", f.path().display(), f.header().dtype)).collect();
    Error::input("element types", format!("{}, but {what}", held.join(", ")), "convert them")
}

fn numbers<T: Real>(files: Files, args: &Arguments, console: &Console) -> Result<()> {
    job(args.running.blas.kernel::<T>(args.semiring)?, files, args, false, console)
}

fn shape_of(files: &Files) -> Result<Shape> {
    let size = |f: &NpyFile| (f.header().rows as u64, f.header().cols as u64);
    let ((m, k), (inner, n)) = (size(&files.a), size(&files.b));
    let refuse = |file: &NpyFile, wanted: String| {
        let (rows, cols) = size(file);
        let what = format!("is {rows} x {cols}, but {wanted}");
        Err(Error::input(file.path().display().to_string(), what, "give matrices that fit together"))
    };
    if k != inner {
        return refuse(&files.b, format!("the right factor needs {k} rows"));
    }
    match &files.initial {
        Some(c) if size(c) != (m, n) => refuse(c, format!("the product is {m} x {n}")),
        _ => Shape::new(m, k, n, "matrices"),
    }
}

fn job<T: Element>(
    kernel: Kernel<T>,
    mut files: Files,
    args: &Arguments,
    bool: bool,
    console: &Console,
) -> Result<()> {
    let (shape, element) = (shape_of(&files)?, size_of::<T>() as u64);
    let scaling = args.scaled.scaling(kernel, None)?;
    let mut output = open(args.output.as_ref())?;
    let running = &args.running;
    let (report_file, trace_file, svg) =
        (open(running.report.as_ref())?, open(running.trace.as_ref())?, open(running.svg.as_ref())?);
    let (given, models) = speeds(kernel, running, console)?;
    let directory = args.panels.checkpoint.as_ref().or(args.panels.resume.as_ref());
    let saved = match directory {
        None => None,
        Some(directory) => {
            let identity = identity(&mut files, args, kernel, &given)?;
            Some((Checkpoint::open(directory, &identity)?, identity, directory))
        }
    };
    let platform = given.platform.clone();
    let (begun, decided) = match &saved {
        Some(((_, Some(_)), _, directory)) if args.panels.checkpoint.is_some() => {
            let what = "holds a checkpoint already";
            return Err(Error::input(directory.display().to_string(), what, "continue it with --resume"));
        }
        Some(((_, Some(begun)), _, directory)) => {
            same_decisions(begun, args, shape, (given.platform.len() as u64, element), directory)?;
            (begun.clone(), None)
        }
        _ => {
            let Cut { begun, prepared, because } =
                cut::<T>(&Task { shape, given: &given, models: &models }, args, console)?;
            (begun, Some((prepared, because)))
        }
    };
    let checkpoint = saved.as_ref().map(|((checkpoint, _), ..)| checkpoint);
    if let Some(((checkpoint, None), identity, directory)) = &saved {
        if args.panels.resume.is_some() {
            console.note(format!("{}: no checkpoint yet, beginning anew", directory.display()));
        }
        checkpoint.begin(identity, &begun)?;
    }
    let what = MatmulJob {
        kernel,
        plan: &begun.plan,
        order: begun.order,
        platform: &platform,
        models: &models.0,
        models_block: models.1,
        scaling,
        adaptive: None,
        seed: running.seed,
    };
    forget_peak_memory();
    let mut run = PanelRun::new(files, what, shape, begun.panels);
    if let Some(file) = &mut output {
        let (m, n) = (shape.m as usize, shape.n as usize);
        file.put(&if bool { npy_header_bool(m, n) } else { npy_header::<T>(m, n) })?;
    }
    let panels = begun.panels.of(shape);
    let mut resumed = 0;
    let outcome = console.watch("computing", monitor(), || {
        for (i, rows) in panels.iter().enumerate() {
            let damaged = &mut |path: &Path| {
                console.note(format!("{}: is damaged, and computed again", path.display()));
            };
            let found = match checkpoint {
                Some(checkpoint) => checkpoint.load(i, (*rows, shape.n), damaged)?,
                None => None,
            };
            resumed += usize::from(found.is_some());
            let panel: Matrix<T> = match found {
                Some(panel) => panel,
                None => {
                    let panel = run.panel(*rows, monitor())?;
                    checkpoint.map_or(Ok(()), |checkpoint| checkpoint.save(i, &panel))?;
                    panel
                }
            };
            if let Some(file) = &mut output {
                write_npy_rows(file, &panel)?;
            }
            if monitor().is_stopped() {
                return Err(Error::Interrupted);
            }
        }
        output.map_or(Ok(()), OutputFile::commit)
    });
    outcome.map_err(|error| {
        let (Some(directory), Some(checkpoint)) = (directory, checkpoint) else { return error };
        let (count, directory) = (panels.len(), directory.display());
        let kept = checkpoint.count().map_or_else(|_| "what was finished".into(), |kept| format!("{kept} of {count} panels"));
        error.with_kept(&format!(
            "{kept} kept in {directory}: the same command with --resume {directory} instead of --checkpoint goes on"
        ))
    })?;
    let mut report = run.report()?;
    if bool {
        report.element = "bool";
    }
    let predicted = begun.panels.predicted_bytes(shape, platform.len() as u64, begun.order, element);
    let because = decided.as_ref().map_or("the run that began it", |(_, because)| because);
    let chosen = decided.as_ref().map(|(prepared, _)| Chosen::of(prepared));
    let about = json!({
        "count": panels.len(),
        "rows": begun.panels.rows,
        "segment": begun.panels.segment,
        "decided_by": because,
        "resumed": resumed,
        "memory_cap_bytes": args.panels.memory,
        "predicted_memory_bytes": predicted,
        "peak_resident_bytes": peak_memory(),
    });
    let value = || {
        let mut value = report.to_value();
        value["panels"] = about.clone();
        chosen.iter().for_each(|chosen| chosen.add_to(&mut value, &platform));
        value
    };
    appear([
        (report_file, &|| format!("{:#}\n", value())),
        (trace_file, &|| timeline(running.trace.as_ref(), &report.trace, &report.plan.processors)),
        (svg, &|| picture(&report.plan, &platform)),
    ])?;
    let text = || {
        let mib = |bytes: u64| units::show_bytes(bytes as f64);
        let cut = [
            (
                "panels  ",
                format!(
                    "{} of {} rows of C, inner segments of {}, by {because}; {resumed} resumed",
                    panels.len(),
                    begun.panels.rows,
                    begun.panels.segment
                ),
            ),
            (
                "memory  ",
                format!(
                    "{} predicted for the whole process, {} held at most",
                    mib(predicted),
                    peak_memory().map_or_else(|| "unknown".into(), mib)
                ),
            ),
        ];
        let chosen = chosen.as_ref().map_or_else(String::new, |chosen| chosen.text(&platform));
        report.to_text() + &chosen + &pairs(&cut)
    };
    console.result(value, text);
    Ok(())
}

/// Refuses flags that ask for something else than a checkpoint was begun with.
fn same_decisions(
    begun: &Manifest,
    args: &Arguments,
    shape: Shape,
    (p, element): (u64, u64),
    directory: &Path,
) -> Result<()> {
    let (flow, panels, order) = (&args.running.flow, &args.panels, begun.order);
    let (rows, block) = (begun.panels.rows, flow.pivot(shape.k)?.min(shape.k));
    let needs = begun.panels.predicted_bytes(shape, p, order, element);
    let refusals = [
        ("--flow", flow.flow.0.is_some_and(|flow| flow != order.flow), order.flow.to_string()),
        (
            "--block",
            (flow.block.is_some() || flow.blocks.is_some()) && block != order.block,
            order.block.to_string(),
        ),
        ("--overlap", flow.overlap && !order.overlaps(), "none".into()),
        (
            "--look-ahead",
            flow.look_ahead.is_some_and(|n| !order.overlaps() || n != order.look_ahead),
            order.look_ahead.to_string(),
        ),
        (
            "--method",
            !["auto", &*begun.plan.method].contains(&&*args.running.method),
            begun.plan.method.clone(),
        ),
        (
            "--panels",
            panels.panels.is_some_and(|n| shape.m.div_ceil(n) != rows),
            format!("panels of {rows} rows"),
        ),
        (
            "--memory",
            panels.memory.is_some_and(|memory| memory < needs),
            format!("what needs {}", units::show_bytes(needs as f64)),
        ),
    ];
    match refusals.into_iter().find(|(_, refused, _)| *refused) {
        Some((flag, _, then)) => Err(Error::input(
            flag,
            format!("the product in {} was begun with {then}", directory.display()),
            "leave the flag out, or begin anew in another directory",
        )),
        None => Ok(()),
    }
}

/// What the product is one of.
fn identity<T: Element>(
    files: &mut Files,
    args: &Arguments,
    kernel: Kernel<T>,
    given: &Given,
) -> Result<Fingerprint> {
    let named = |file: &mut NpyFile| -> Result<Value> {
        let header = *file.header();
        Ok(json!({
            "name": file.path().file_name().map(|name| name.to_string_lossy().into_owned()),
            "rows": header.rows,
            "cols": header.cols,
            "hash": format!("{:016x}", file.fingerprint()?),
        }))
    };
    let mut inputs = vec![named(&mut files.a)?, named(&mut files.b)?];
    if let Some(initial) = &mut files.initial {
        inputs.push(named(initial)?);
    }
    let scalar = |given: Option<f64>| given.map(|x| x.to_string());
    let settings = json!({
        "semiring": kernel.semiring().name(),
        "transposed": [args.scaled.transpose_a, args.scaled.transpose_b],
        "alpha": scalar(args.scaled.alpha),
        "beta": scalar(args.scaled.beta),
        "processors": given.platform.names(),
    });
    Ok(Fingerprint { inputs, settings })
}

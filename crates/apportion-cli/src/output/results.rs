//! The outputs of a product: the matrix, the report, the trace, the picture, and the text.

use crate::args::RunningArgs;
use crate::console::{Console, monitor};
use crate::output::chosen::Chosen;
use crate::output::distributed::write_distributed;
use crate::output::{appear_with, explain, open, picture, timeline_of};
use crate::prepare::distributed::is_layout;
use crate::prepare::product::Prepared;
use crate::prepare::simulate::rank_of;
use crate::prepare::task::Task;
use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::matrix::{Element, LocalBlocks, npy_header, write_npy_rows, write_tiles};
use apportion::output::{OutputFile, try_output};
use apportion::plan::Shape;
use apportion::product::RunReport;
use apportion::report::{Timeline, off};
use apportion::run::{World, redistribute};
use apportion::schedule::MatmulSchedule;
use apportion::select::rates;
use apportion::simulate::{CostModel, History, Outcome, simulate, simulate_explained};
use apportion::units::show_seconds;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The text about a run.
#[derive(Default)]
pub struct About {
    pub report: Option<OutputFile>,
    pub trace: Option<OutputFile>,
    pub svg: Option<OutputFile>,
}

impl About {
    /// Opens them on rank 0.
    pub fn open(running: &RunningArgs, world: &World) -> Result<Self> {
        if world.rank() > 0 {
            return Ok(Self::default());
        }
        Ok(Self {
            report: open(running.report.as_ref())?,
            trace: open(running.trace.as_ref())?,
            svg: open(running.svg.as_ref())?,
        })
    }
}

/// The destination and format of a result; only rank 0 has the files.
#[derive(Default)]
pub struct Outputs {
    pub file: Option<OutputFile>,
    pub predecessors: Option<OutputFile>,
    pub about: About,
    /// True if truth values are written as bool.
    pub bool: bool,
    /// The paths of C and the predecessors; known to every rank.
    pub asked: [Option<PathBuf>; 2],
}

impl Outputs {
    /// Opens all files before the work, on rank 0, so that a file that cannot be written is reported at once.
    /// If the end of another rank could leave them half written, they are only tried here, and opened again
    /// when there is something to write.
    pub fn open(task: &Task<'_>, predecessors: Option<&PathBuf>, world: &World) -> Result<Self> {
        let asked = [task.output, predecessors].map(|path| path.cloned());
        if world.is_solo() {
            let about = About::open(task.running, world)?;
            let (file, predecessors) = (open(task.output)?, open(predecessors)?);
            return Ok(Self { file, predecessors, about, bool: false, asked });
        }
        if world.rank() == 0 {
            let RunningArgs { report, trace, svg, .. } = task.running;
            let all = [task.output, predecessors, report.as_ref(), trace.as_ref(), svg.as_ref()];
            all.into_iter().flatten().try_for_each(|path| try_output(path))?;
        }
        Ok(Self { asked, ..Self::default() })
    }

    /// Checks that the disks have room for matrices of `elements` of `size` bytes, before the work.
    pub fn reserve(&mut self, elements: u64, size: u64) -> Result<()> {
        let predecessors = elements.saturating_mul(size_of::<i32>() as u64);
        for (file, bytes) in
            [(&mut self.file, elements.saturating_mul(size)), (&mut self.predecessors, predecessors)]
        {
            file.as_mut().map_or(Ok(()), |file| file.reserve(bytes))?;
        }
        Ok(())
    }

    /// The same with its files open on rank 0.
    pub fn opened(mut self, world: &World) -> Result<Self> {
        if world.rank() == 0 && !world.is_solo() {
            self.file = open(self.asked[0].as_ref())?;
            self.predecessors = open(self.asked[1].as_ref())?;
        }
        Ok(self)
    }

    /// Writes C into one file, or with a layout file into one for each processor of the schedule; it appears
    /// with the outputs that remain.
    pub fn keep<T: Element>(
        self,
        c: &LocalBlocks<T>,
        at: (Shape, &World),
        schedule: &MatmulSchedule,
    ) -> Result<Kept> {
        let opened = at.1.all_ok(self.opened(at.1))?;
        let file = match &opened.asked[0] {
            None => None,
            Some(path) if is_layout(path) => {
                write_distributed(opened.file, path, (c, opened.bool), at, schedule)?
            }
            Some(path) => write((opened.file, path), c, opened.bool, at)?,
        };
        complete([file, None], opened.about, at.1)
    }

    /// Writes C and its predecessors; they appear with the outputs that remain.
    pub fn keep_both<T: Element>(
        self,
        c: &LocalBlocks<T>,
        predecessors: &LocalBlocks<i32>,
        at: (Shape, &World),
    ) -> Result<Kept> {
        let opened = at.1.all_ok(self.opened(at.1))?;
        let [file, beside] = &opened.asked;
        let file = match file {
            Some(path) => write((opened.file, path), c, false, at)?,
            None => None,
        };
        let path = beside.as_deref().unwrap_or(Path::new(""));
        let predecessors = write((opened.predecessors, path), predecessors, false, at)?;
        complete([file, predecessors], opened.about, at.1)
    }
}

/// Results that are on the disk, and appear together with the text about them.
#[derive(Default)]
pub struct Kept {
    files: Vec<OutputFile>,
    about: About,
}

impl From<About> for Kept {
    fn from(about: About) -> Self {
        Self { files: Vec::new(), about }
    }
}

/// Brings full files to the disk; they do not appear yet.
pub fn complete(files: [Option<OutputFile>; 2], about: About, world: &World) -> Result<Kept> {
    let mut files: Vec<OutputFile> = files.into_iter().flatten().collect();
    world.all_ok(files.iter_mut().try_for_each(OutputFile::complete))?;
    Ok(Kept { files, about })
}

/// Makes a file appear, unless the run was stopped.
pub fn commit(file: Option<OutputFile>, world: &World) -> Result<()> {
    if monitor().is_stopped() {
        return Err(Error::Interrupted);
    }
    world.all_ok(file.map_or(Ok(()), OutputFile::commit))
}

/// Every rank writes its blocks into one file; rank 0 makes it appear.
fn write<T: Element>(
    (mut file, path): (Option<OutputFile>, &Path),
    c: &LocalBlocks<T>,
    bool: bool,
    (shape, world): (Shape, &World),
) -> Result<Option<OutputFile>> {
    let (m, n) = (shape.m as usize, shape.n as usize);
    if world.is_solo() {
        if let Some(file) = &mut file {
            file.put(&npy_header::<T>(&[m, n], bool))?;
            c.iter().try_for_each(|(_, block)| write_npy_rows(file, block))?;
        }
        return Ok(file);
    }
    write_blocks((file, path), c, &npy_header::<T>(&[m, n], bool), (shape.m, shape.n), world)
}

/// Every process writes its blocks of a matrix of `rows` x `cols` after a header; rank 0 has the file, whose
/// name all know. Into a stream, rank 0 writes all.
pub fn write_blocks<T: Element>(
    (mut file, path): (Option<OutputFile>, &Path),
    c: &LocalBlocks<T>,
    header: &[u8],
    (rows, cols): (u64, u64),
    world: &World,
) -> Result<Option<OutputFile>> {
    let streamed = file.as_ref().is_some_and(OutputFile::is_stream);
    if world.broadcast(&[u8::from(streamed)])? == [1] {
        let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
        let wanted = if world.rank() == 0 { vec![whole] } else { Vec::new() };
        let found = redistribute(world, c, &wanted)?;
        let mut put = || match (&mut file, found.first()) {
            (Some(file), Some((_, elements))) => {
                file.put(header)?;
                write_npy_rows(file, elements)
            }
            _ => Ok(()),
        };
        world.all_ok(put())?;
        return Ok(file);
    }
    let length = header.len() as u64 + rows * cols * size_of::<T>() as u64;
    let mut create = || match &mut file {
        Some(file) => {
            file.put(header)?;
            file.share(length)
        }
        None => Ok(PathBuf::new()),
    };
    let place = world.all_ok(create())?;
    let place = world.broadcast(place.as_os_str().as_encoded_bytes())?;
    let place = path_of(place);
    // A rank that is stopped in the middle removes it: rank 0 may have ended.
    let stray = Stray(&place);
    let written = write_tiles(&place, c, header.len() as u64, cols).map_err(|error| match error {
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Error::input(
            path.display().to_string(),
            "the file that rank 0 has begun is not here",
            "write to a directory on a file system that all hosts share",
        ),
        Error::File { action, source, .. } => Error::file(path, action, source),
        other => other,
    });
    world.all_ok(written)?;
    std::mem::forget(stray);
    Ok(file)
}

/// A path as another process of the same system encoded it.
#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// A file that is removed unless this is forgotten.
struct Stray<'a>(&'a Path);

impl Drop for Stray<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// The forecast of a plain product in full, as its models make it; `None` for several products.
fn forecast_of(report: &RunReport, prepared: &Prepared, explained: bool) -> Result<Option<Outcome>> {
    if report.products != 1 || report.adaptation.is_some() {
        return Ok(None);
    }
    let schedule = MatmulSchedule::new(report.plan.layout()?, report.order);
    let rates = rates(&prepared.models, &report.plan.sizes(), prepared.block);
    let network = &prepared.platform.network;
    let conditions = CostModel { rates: &rates, network, element: report.element_bytes };
    let outcome = match explained {
        true => simulate_explained(&schedule, conditions)?,
        false => Outcome { trace: simulate(&schedule, conditions)?, history: None },
    };
    Ok(Some(outcome))
}

/// The waits of the forecast, the processor asked for, all names, and the bytes of an element.
type Story = (History, Rank, Vec<String>, u64);

fn story(report: &RunReport, prepared: &Prepared, who: &str) -> Result<Story> {
    let names = report.plan.processors.clone();
    let rank = rank_of(who, &names)?;
    let history = forecast_of(report, prepared, true)?.and_then(|outcome| outcome.history);
    // What has no such forecast was refused before the run.
    Ok((history.unwrap_or_default(), rank, names, report.element_bytes))
}

/// What ran, and how the forecast compares.
pub fn titles(report: &RunReport) -> [String; 2] {
    let processors = report.plan.processors.len();
    let plural = if processors == 1 { "" } else { "s" };
    let seconds = report.seconds();
    [
        format!("{}, {} flow, {processors} processor{plural}", report.plan.method, report.order),
        format!(
            "forecast {}, measured {} ({})",
            show_seconds(report.forecast_seconds),
            show_seconds(seconds),
            off(report.forecast_seconds, seconds)
        ),
    ]
}

/// Prints the run's report and choices, and writes them to the requested files; on rank 0.
pub fn tell_and_keep(
    report: &RunReport,
    prepared: &Prepared,
    (args, world): (&RunningArgs, &World),
    kept: Kept,
    console: &Console,
) -> Result<()> {
    let tell = || {
        let (value, text) = keep_about(report, prepared, (args, world), kept)?;
        console.detail(report.pairs_text());
        console.result(|| value, || text);
        Ok(())
    };
    world.on_root(tell).map(drop)
}

/// Writes the run's report and choices to the requested files, which appear together with the results, and
/// returns them as JSON and as text; only on rank 0.
pub fn keep_about(
    report: &RunReport,
    prepared: &Prepared,
    (args, world): (&RunningArgs, &World),
    Kept { files, about }: Kept,
) -> Result<(Value, String)> {
    let about = if world.is_solo() { about } else { About::open(args, world)? };
    let chosen = Chosen::of(prepared);
    let mut value = report.to_value();
    chosen.add_to(&mut value, &prepared.platform);
    let story = args.explain.as_deref().map(|who| story(report, prepared, who)).transpose()?;
    if let Some((history, rank, names, _)) = &story {
        value["explain"] = explain::json(history, *rank, names);
    }
    let told = || {
        story.as_ref().map_or_else(String::new, |(history, rank, names, element)| {
            format!("\nThe forecast explained:\n{}", explain::text(history, *rank, names, Some(*element)))
        })
    };
    let forecast = if args.trace.is_some() { forecast_of(report, prepared, false)? } else { None };
    let forecast = forecast.map(|outcome| outcome.trace);
    if monitor().is_stopped() {
        return Err(Error::Interrupted);
    }
    appear_with(
        files,
        [
            (about.report, &|| format!("{value:#}\n")),
            (about.trace, &|| {
                let title = titles(report);
                let names = &report.plan.processors;
                let title = [title[0].as_str(), title[1].as_str()];
                let timeline = Timeline { title, names, trace: &report.trace, forecast: forecast.as_ref() };
                timeline_of(args.trace.as_ref(), &timeline)
            }),
            (about.svg, &|| picture(&report.plan, &prepared.platform)),
        ],
    )?;
    let text = report.to_text() + &chosen.text(&prepared.platform, prepared.source, report) + &told();
    Ok((value, text))
}

//! Many products, one after the other and at the same time: nothing stays behind, and nothing grows.

use crate::Found;
use crate::figures::Figure;
use crate::fuzz::no_leftovers;
use crate::tool::{Tool, finish};
use apportion::kernels::Kernel;
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use std::fs;
use std::path::Path;

const SIZE: usize = 96;

/// `count` products in this process, as many by the command, and `together` commands at once.
pub fn run(count: u32, together: u32, tool: &Tool) -> Found {
    let mut figures = vec![in_process(count)?];
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let at = bench.path();
    fs::write(
        at.join("two.toml"),
        "[[processor]]\nname = \"f\"\nspeed = \"9 Gflop/s\"\n\
        [[processor]]\nname = \"s\"\nspeed = \"1 Gflop/s\"\n",
    )
    .map_err(|e| e.to_string())?;
    tool.must(at, &["random", "60", "60", "-o", "a.npy"])?;
    let words = ["matmul", "a.npy", "a.npy", "-o", "c.npy", "--platform", "two.toml"];
    tool.must(at, &words)?;
    let (right, files) = (read(at, "c.npy")?, names(at)?);
    for _ in 0..count {
        tool.must(at, &words)?;
        if read(at, "c.npy")? != right {
            return Err("a product of many differs".into());
        }
    }
    same_files(at, &files)?;
    figures.push(Figure::new("products in turn", format!("{count} commands"), "same bytes, no file left"));
    figures.push(at_once(together, (at, &right, &files), tool)?);
    Ok(figures)
}

/// Commands that all write the same output at once: it is whole at any time.
fn at_once(
    together: u32,
    (at, right, files): (&Path, &[u8], &[String]),
    tool: &Tool,
) -> Result<Figure, String> {
    let words = ["matmul", "a.npy", "a.npy", "-o", "c.npy", "--platform", "two.toml"];
    let start = |_| tool.command(at, &words).spawn().map_err(|e| e.to_string());
    let children = (0..together).map(start).collect::<Result<Vec<_>, _>>()?;
    for child in children {
        let ended = finish(child, &words)?;
        if ended.code != Some(0) {
            return Err(format!("one of {together} at once: {}", ended.said));
        }
        if read(at, "c.npy")? != right {
            return Err("a product of many at once differs".into());
        }
    }
    same_files(at, files)?;
    Ok(Figure::new("products at the same time", format!("{together} commands"), "same bytes, no file left"))
}

fn read(at: &Path, name: &str) -> Result<Vec<u8>, String> {
    fs::read(at.join(name)).map_err(|e| format!("{name}: {e}"))
}

fn names(at: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(at).map_err(|e| e.to_string())?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn same_files(at: &Path, before: &[String]) -> Result<(), String> {
    no_leftovers(at)?;
    let after = names(at)?;
    if after == before { Ok(()) } else { Err(format!("files were {before:?} and are {after:?}")) }
}

/// Products of the library: threads, files and memory after the first tenth and at the end.
fn in_process(count: u32) -> Result<Figure, String> {
    let told = |e: apportion::error::Error| e.to_string();
    let platform = Platform::from_speeds(&[3.0, 2.0, 1.0]).map_err(told)?;
    let models: Vec<Model> = [3e9, 2e9, 1e9]
        .iter()
        .map(|speed| Model::constant("p", *speed))
        .collect::<Result<_, _>>()
        .map_err(told)?;
    let shape = Shape::new(SIZE as u64, SIZE as u64, SIZE as u64, "load").map_err(told)?;
    let layout = Method::Columns.layout(shape, &[3.0, 2.0, 1.0], &MethodOptions::default()).map_err(told)?;
    let plan = Plan::of_layout("columns", platform.names(), layout, 1.0);
    let order = ScheduleOptions::new(Flow::OneToAll, 16);
    let matrix = |seed: usize| {
        let value = |i: usize| ((i * 7 + seed) % 11) as f64 - 5.0;
        whole_block(Matrix::new(SIZE, SIZE, (0..SIZE * SIZE).map(value).collect()))
    };
    let (a, b, monitor) = (matrix(1), matrix(2), Monitor::new());
    let world = World::solo(&monitor);
    let mut early = None;
    for turn in 0..count {
        let job = MatmulJob::new(Kernel::<f64>::plus_times(), &plan, order, &models, 16);
        let session = Session::new(&world, &platform, &monitor, job.work());
        multiply(Operands::new(&a, &b), &job, &session).map_err(told)?;
        if turn == count / 10 {
            early = Some(Footprint::now());
        }
    }
    let (early, late) = (early.unwrap_or_default(), Footprint::now());
    if late.threads > early.threads || late.files > early.files {
        return Err(format!("threads or files are left: {early:?}, then {late:?}"));
    }
    // The allocator may keep some pages; products that leaked 70 kB each would show.
    if late.kib > early.kib + 8 * 1024 {
        return Err(format!("memory grows: {early:?}, then {late:?}"));
    }
    let outcome = format!(
        "{} threads and {} files as before; {} KiB, then {} KiB",
        late.threads, late.files, early.kib, late.kib
    );
    Ok(Figure::new("products of the library in turn", format!("{count} products"), outcome))
}

/// What this process holds.
#[derive(Debug, Default)]
struct Footprint {
    threads: u64,
    files: usize,
    kib: u64,
}

impl Footprint {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self { threads: field("Threads:"), files, kib: field("VmRSS:") }
    }
}

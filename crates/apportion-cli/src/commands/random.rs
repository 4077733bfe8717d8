//! `apportion random`.

use crate::args::matrices::random;
use crate::args::numbers::{whole, within};
use crate::console::{Console, monitor};
use crate::output::open;
use apportion::error::{Error, Result};
use apportion::matrix::{RandomKind, write_random};
use apportion::units;
use apportion_graph::{Family, Generated, generate, laplacian, write_coordinates, write_market, write_metis};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion random 2000 2000 -o A.npy\n  \
    apportion random 10k 500 -o G.npy --kind i32 --seed 7\n  \
    apportion random --graph mesh-3d 1M -o mesh.graph\n  \
    apportion random --graph dense-region 250k -o A.mtx --coordinates A.xyz\n\
    Floating-point numbers are uniform in [0, 1), integers in 0 to 99, and 3 of 10 truth values are true. \
    The same sizes, kind and seed give the same bytes on every machine. The file is streamed: it may be \
    larger than memory. A graph is written as METIS .graph, or as its Laplacian matrix plus one (.mtx), which is \
    symmetric positive definite.")]
pub struct RandomArgs {
    /// Number of rows, or of vertices of --graph.
    #[arg(value_name = "M", value_parser = within(1..=1 << 53))]
    pub rows: u64,
    /// Number of columns.
    #[arg(value_name = "N", value_parser = within(1..=1 << 53), required_unless_present = "graph",
        conflicts_with = "graph")]
    pub cols: Option<u64>,
    /// Write a graph instead: mesh-2d, mesh-3d, dense-region, power-law or band.
    #[arg(long, value_name = "FAMILY", value_parser = family, help_heading = "Output")]
    pub graph: Option<Family>,
    /// Write the places of the vertices of --graph, one a line.
    #[arg(long = "coordinates", value_name = "FILE", requires = "graph", help_heading = "Output")]
    pub points: Option<PathBuf>,
    /// Output file (.npy; of a graph .graph or .mtx).
    #[arg(long, short, value_name = "FILE", value_parser = random, help_heading = "Output")]
    pub output: PathBuf,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Element type: f64, f32, i32, i64 or bool.
    #[arg(long, value_name = "KIND", default_value = "f64", value_parser = kind, conflicts_with = "graph",
        help_heading = "Output")]
    pub kind: RandomKind,
}

fn kind(text: &str) -> std::result::Result<RandomKind, String> {
    text.parse().map_err(|()| "choose f64, f32, i32, i64 or bool".into())
}

fn family(text: &str) -> std::result::Result<Family, String> {
    text.parse().map_err(|error: Error| match error {
        Error::Input { what, remedy, .. } => format!("{what} ({remedy})"),
        other => other.to_string(),
    })
}

pub fn run(args: &RandomArgs, console: &Console) -> Result<()> {
    let is = |ending: &str| args.output.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    let (rows, cols, kind) = match (args.graph, args.cols) {
        (Some(_), _) if is("npy") => {
            let what = format!("{}: a graph is no dense matrix", args.output.display());
            return Err(Error::input("--output", what, "name it .graph or .mtx"));
        }
        (Some(family), _) => return graph(args, family, is("mtx"), console),
        (None, Some(_)) if is("mtx") || is("graph") => {
            let what = format!("{}: a matrix is written as .npy", args.output.display());
            return Err(Error::input("--output", what, "name it .npy, or add --graph FAMILY"));
        }
        (None, cols) => (args.rows, cols.unwrap_or(1), args.kind),
    };
    let bytes = u128::from(rows) * u128::from(cols) * u128::from(kind.bytes());
    let Some(bytes) = u64::try_from(bytes).ok().filter(|&bytes| bytes < 1 << 62) else {
        let what = format!("{rows} x {cols} elements are more than any file holds");
        return Err(Error::input("M and N", what, "give smaller sizes"));
    };
    let monitor = monitor();
    let mut file = open(Some(&args.output))?.expect("a path was given");
    // The header is less than a kilobyte.
    if let Some(free) = file.room().filter(|&free| free < bytes + 1024) {
        let (path, bytes, free) =
            (args.output.display(), units::show_bytes(bytes as f64), units::show_bytes(free as f64));
        let what = format!("{path} needs {bytes}, but its disk has {free} free");
        return Err(Error::infeasible(what, "write a smaller matrix, or to a larger disk"));
    }
    monitor.begin(rows * cols);
    console.watch("writing", monitor, || {
        write_random(&mut file, rows as usize, cols as usize, kind, args.seed, &mut |written| {
            monitor.advance(written);
            if monitor.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
        })
    })?;
    file.commit()?;
    let path = args.output.display().to_string();
    console.result(
        || {
            json!({"path": path, "rows": rows, "cols": cols, "kind": kind.name(), "seed": args.seed,
                   "bytes": bytes})
        },
        || {
            let count = |n: u64| units::show_count(u128::from(n));
            format!("{path}: {} x {} {}, seed {}\n", count(rows), count(cols), kind.name(), args.seed)
        },
    );
    Ok(())
}

/// Writes a graph, or its matrix, and the places of its vertices.
fn graph(args: &RandomArgs, family: Family, is_matrix: bool, console: &Console) -> Result<()> {
    let (mut file, mut points) =
        (open(Some(&args.output))?.expect("a path was given"), open(args.points.as_ref())?);
    let monitor = monitor();
    monitor.begin(0);
    let Generated { graph, coordinates } =
        console.watch("writing", monitor, || generate(family, args.rows, args.seed))?;
    match is_matrix {
        true => write_market(&laplacian(&graph)?, true, &mut file)?,
        false => write_metis(&graph, &mut file)?,
    }
    match (&mut points, &coordinates) {
        (Some(points), Some(coordinates)) => write_coordinates(coordinates, points)?,
        (Some(_), None) => {
            let what = format!("vertices of {family} have no places");
            return Err(Error::input("--coordinates", what, "remove the flag, or use another family"));
        }
        (None, _) => {}
    }
    apportion::output::OutputFile::commit_all(std::iter::once(file).chain(points).collect())?;
    let (path, n, edges) = (args.output.display().to_string(), graph.vertices() as u64, graph.edges());
    console.result(
        || json!({"path": path, "graph": family.name(), "vertices": n, "edges": edges, "seed": args.seed}),
        || {
            let count = |n: u64| units::show_count(u128::from(n));
            format!("{path}: {family}, {} vertices, {} edges, seed {}\n", count(n), count(edges), args.seed)
        },
    );
    Ok(())
}

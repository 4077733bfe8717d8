//! `apportion random`.

use crate::args::matrices::matrix;
use crate::args::numbers::{whole, within};
use crate::console::{Console, monitor};
use crate::output::open;
use apportion::error::{Error, Result};
use apportion::matrix::{RandomKind, write_random};
use apportion::units;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion random 2000 2000 -o A.npy\n  \
    apportion random 10k 500 -o G.npy --kind i32 --seed 7\n\
    Floating-point numbers are uniform in [0, 1), integers in 0 to 99, and 3 of 10 truth values are true. \
    The same sizes, kind and seed give the same bytes on every machine. The file is streamed: it may be \
    larger than memory.")]
pub struct RandomArgs {
    /// Number of rows.
    #[arg(value_name = "M", value_parser = within(1..=1 << 53))]
    pub rows: u64,
    /// Number of columns.
    #[arg(value_name = "N", value_parser = within(1..=1 << 53))]
    pub cols: u64,
    /// Output file (.npy).
    #[arg(long, short, value_name = "FILE", value_parser = matrix, help_heading = "Output")]
    pub output: PathBuf,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Element type: f64, f32, i32, i64 or bool.
    #[arg(long, value_name = "KIND", default_value = "f64", value_parser = kind, help_heading = "Output")]
    pub kind: RandomKind,
}

fn kind(text: &str) -> std::result::Result<RandomKind, String> {
    text.parse().map_err(|()| "choose f64, f32, i32, i64 or bool".into())
}

pub fn run(args: &RandomArgs, console: &Console) -> Result<()> {
    let (rows, cols, kind) = (args.rows, args.cols, args.kind);
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

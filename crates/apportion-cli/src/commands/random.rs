//! `apportion random`.

use crate::args::RandomArgs;
use crate::console::{Console, monitor};
use crate::output::open;
use apportion::error::{Error, Result};
use apportion::matrix::write_random;
use apportion::units;
use serde_json::json;

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

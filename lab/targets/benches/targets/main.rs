//! Targets of speed, each with its figure and verdict: `cargo bench -p targets --bench targets -- quick`.
//!
//! Kernels and rivals run in turn, in CPU time of one thread; ratios are medians over the turns. Whole
//! commands and MPI run `target/release/apportion` (`cargo build --release` first), beside NumPy and
//! ScaLAPACK where they are installed. A rival that is absent is named, and its rows are left out. Further
//! words choose parts by their names: `-- quick MPI`. Not a test: figures of a busy machine say little, and
//! the verdict is not an exit code.

mod command;
mod compile;
mod fresh;
mod kernels;
mod m4ri;
mod mpi;
mod planning;
mod pool;
mod registers;
mod semirings;

use apportion_report::table;
use harness::rivals::{Row, scalapack_rank};

/// The rows of a subject; few with `quick`.
type Part = fn(bool) -> Vec<Row>;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == scalapack_rank::ARGUMENT) {
        return scalapack_rank::rank(&arguments[1..]);
    }
    if arguments.first().is_some_and(|first| first == pool::ARGUMENT) {
        return pool::multiply(&arguments[1]);
    }
    // Cargo adds flags of its own.
    arguments.retain(|argument| !argument.starts_with('-'));
    let quick = arguments.iter().any(|argument| argument == "quick");
    let wanted: Vec<&String> = arguments.iter().filter(|argument| *argument != "quick").collect();
    println!("{}; tropical kernels use {}\n", machine(), apportion::kernels::instruction_set());
    // Wide enough for the longest target.
    apportion_report::set_text_width(130);
    let mut missed = 0;
    let parts: [(&str, Part); 9] = [
        ("fresh starts", fresh::rows),
        ("kernels", kernels::rows),
        ("pools", pool::rows),
        ("semirings", semirings::rows),
        ("the whole command", command::rows),
        ("MPI beside threads", mpi::rows),
        ("MPI beside ScaLAPACK", mpi::beside_scalapack),
        ("planning, simulation", planning::rows),
        ("builds", compile::rows),
    ];
    for (name, rows) in parts {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let rows = rows(quick);
        missed += rows.iter().filter(|row| !row.3).count();
        if rows.is_empty() {
            continue;
        }
        let lines = rows.into_iter().map(|(target, figure, limit, met)| {
            vec![
                target,
                format!("{figure:.3}"),
                format!("{limit:.3}"),
                if met { "met" } else { "MISSED" }.into(),
            ]
        });
        println!("{}", table(&[name, "figure", "limit", "verdict"], lines.collect::<Vec<_>>()));
    }
    println!("{missed} missed");
}

/// The processor's name, as the system gives it.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("an unknown processor".into(), |(_, name)| name.to_owned())
}

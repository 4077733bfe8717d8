//! Determinism: the same input, plan and kernel give the same bytes, whatever runs them.

use crate::Found;
use crate::figures::Figure;
use crate::tool::{Tool, ended, mpirun};
use apportion::random::Random;
use std::fs;
use std::path::Path;

const METHODS: [&str; 8] =
    ["rows", "columns", "grid", "recursive", "nagamochi-abe", "inner", "boxes", "auto"];
const FLOWS: [&str; 3] = ["one-to-all", "ring", "bulk"];
const SEMIRINGS: [&str; 4] = ["plus-times", "max-plus", "min-plus", "or-and"];
const KINDS: [&str; 4] = ["f64", "f32", "f64", "bool"];
/// Sizes with primes and one among them.
const SIZES: [usize; 10] = [1, 7, 13, 31, 48, 64, 97, 101, 128, 150];

/// Compares this many configurations.
pub fn run(count: u32, seed: u64, tool: &Tool) -> Found {
    let mut random = Random::new(seed);
    let mpi = mpirun();
    let mut runs = 0;
    for _ in 0..count {
        runs += compare(&mut random, mpi, tool)?;
    }
    let engines = match mpi {
        Some(_) => "threads, copies, repeated runs, MPI",
        None => "threads, copies, repeated runs; MPI skipped: no mpirun",
    };
    let tried = format!("{count} configurations, {runs} runs: {engines}");
    Ok(vec![Figure::new("same bytes", tried, "no byte differs")])
}

/// One random configuration; returns the number of runs.
fn compare(random: &mut Random, mpi: Option<&str>, tool: &Tool) -> Result<u32, String> {
    fn of<'a, T: ?Sized>(random: &mut Random, list: &[&'a T]) -> &'a T {
        list[random.below(list.len())]
    }
    let bench = tempfile::tempdir().map_err(|e| e.to_string())?;
    let at = bench.path();
    let [m, k, n] = std::array::from_fn(|_| SIZES[random.below(SIZES.len())].to_string());
    let processors = 1 + random.below(5);
    let semiring = of(random, &SEMIRINGS);
    let kind = if semiring == "or-and" { "bool" } else { of(random, &KINDS[..3]) };
    let mut platform = String::new();
    for i in 0..processors {
        // Slow processors get parts that are one element wide.
        let speed = if random.below(3) == 0 { 1 } else { 1 + random.below(60) };
        platform += &format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{speed} Gflop/s\"\n");
    }
    platform += "[network]\nbandwidth = \"1 GB/s\"\nlatency = \"10 us\"\n";
    fs::write(at.join("p.toml"), platform).map_err(|e| e.to_string())?;
    tool.must(at, &["random", &m, &k, "-o", "a.npy", "--kind", kind])?;
    tool.must(at, &["random", &k, &n, "-o", "b.npy", "--kind", kind, "--seed", "5"])?;
    let (method, flow) = (of(random, &METHODS), of(random, &FLOWS));
    // Partial sums have no ring.
    let flow = if matches!(method, "inner" | "boxes") && flow == "ring" { "bulk" } else { flow };
    let shape = format!("{m}x{k}x{n}");
    tool.must(
        at,
        &["partition", "--shape", &shape, "--platform", "p.toml", "--method", method, "-o", "plan.json"],
    )?;
    let block = (1 + random.below(40)).to_string();
    let mut words = vec![
        "matmul",
        "a.npy",
        "b.npy",
        "--platform",
        "p.toml",
        "--plan",
        "plan.json",
        "--semiring",
        semiring,
        "--flow",
        flow,
        "--block",
        &block,
    ];
    if random.below(2) == 0 {
        words.push("--overlap");
    }
    let about = format!("{shape}, {processors} processors, {kind}: {}", words.join(" "));
    let run = |name: &str, more: &[&str]| -> Result<Vec<u8>, String> {
        tool.must(at, &[&words[..], &["-o", name], more].concat())?;
        fs::read(at.join(name)).map_err(|e| e.to_string())
    };
    let first = run("first.npy", &[])?;
    let mut runs = 1;
    for (name, more) in [("again.npy", &[][..]), ("copy.npy", &["--copy"])] {
        if run(name, more)? != first {
            return Err(format!("other bytes in {name}: {about}"));
        }
        runs += 1;
    }
    if let Some(mpirun) = mpi {
        if under_mpi(tool, (at, mpirun), &words, processors)? != first {
            return Err(format!("other bytes under MPI: {about}"));
        }
        runs += 1;
    }
    Ok(runs)
}

fn under_mpi(
    tool: &Tool,
    (at, mpirun): (&Path, &str),
    words: &[&str],
    processors: usize,
) -> Result<Vec<u8>, String> {
    let words = [words, &["-o", "mpi.npy", "--engine", "mpi"]].concat();
    let ended = ended(tool.command_under(mpirun, processors, at, &words), &words)?;
    if ended.code != Some(0) {
        return Err(format!("mpirun apportion {}: {}", words.join(" "), ended.said));
    }
    fs::read(at.join("mpi.npy")).map_err(|e| e.to_string())
}

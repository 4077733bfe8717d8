//! Factorisations of apportion beside those of ScaLAPACK on the same MPI ranks and of SciPy on the same cores, and
//! on emulated unequal processors beside the time that no division can beat and beside the forecast.
//!
//! `cargo build --release && cargo bench -p targets --bench factor` takes some minutes on a quiet machine; `-- quick`
//! takes the smaller sizes only. All times are those of the factorisation alone: nobody's has reading, measuring or
//! verification in it. A rival that is absent is named, and its rows are left out.

use apportion::matrix::{Matrix, write_npy};
use apportion::output::OutputFile;
use apportion::random::Random;
use apportion_report::table;
use harness::median;
use harness::rivals::scalapack_rank::{self, Routine};
use harness::rivals::{Busy, Row, binary, python, scalapack};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The rows of a part, for matrices of these sizes.
type Part = fn(&[u64]) -> Vec<Row>;

const TURNS: usize = 5;
/// Each kind with the routine of ScaLAPACK, if it has one, and SciPy's call. `scipy.linalg.ldl` unpacks the factors in
/// Python besides: its routine alone is compared.
const KINDS: [(&str, Option<Routine>, &str); 3] = [
    ("cholesky", Some(Routine::Pdpotrf), "scipy.linalg.cholesky(a, lower=True, check_finite=False)"),
    ("lu", Some(Routine::Pdgetrf), "scipy.linalg.lu_factor(a, check_finite=False)"),
    ("ldlt", None, "scipy.linalg.lapack.dsytrf(a, lower=1, lwork=64 * len(a))"),
];
/// Slowdowns of emulated processors, whose inverses add up to at most two cores.
const PLATFORMS: [(&str, &[f64]); 2] = [("9:1", &[2.0, 18.0]), ("4:2:1:1", &[2.5, 5.0, 10.0, 10.0])];
/// A forecast is good within this, and so many of twenty are to be.
const NEAR: f64 = 0.05;
const GOOD: f64 = 18.0 / 20.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == scalapack_rank::ARGUMENT) {
        return scalapack_rank::rank(&arguments[1..]);
    }
    let quick = arguments.iter().any(|argument| argument == "quick");
    apportion_report::set_text_width(130);
    let sizes: &[u64] = if quick { &[2000] } else { &[2000, 4000] };
    let parts: [(&str, Part); 3] =
        [("beside ScaLAPACK", beside_scalapack), ("beside SciPy", beside_scipy), ("emulated", emulated)];
    for (name, rows) in parts {
        let rows = rows(sizes);
        let line = |(target, figure, limit, met): Row| {
            let verdict = if met { "met" } else { "MISSED" };
            vec![target, format!("{figure:.3}"), format!("{limit:.3}"), verdict.into()]
        };
        if !rows.is_empty() {
            println!("{}", table(&[name, "figure", "limit", "verdict"], rows.into_iter().map(line)));
        }
    }
}

/// Writes a matrix of its kind: symmetric with a diagonal that outweighs the rest, half of it negative for L D L^T; or
/// for LU random, so that most of its rows are exchanged.
fn operand(at: &Path, kind: &str, n: u64) {
    let n = n as usize;
    let mut random = Random::new(7);
    let mut elements: Vec<f64> = (0..n * n).map(|_| 2.0 * random.unit() - 1.0).collect();
    if kind != "lu" {
        for i in 0..n {
            for j in 0..i {
                elements[j * n + i] = elements[i * n + j];
            }
            let sign = if kind == "ldlt" && i % 2 == 1 { -1.0 } else { 1.0 };
            elements[i * n + i] = sign * 2.0 * n as f64;
        }
    }
    let mut file = OutputFile::create(at.join("a.npy")).expect("a writable directory");
    write_npy(&mut file, &Matrix::new(n, n, elements)).expect("room for a matrix");
    file.commit().expect("room for a matrix");
}

/// The arguments of a factorisation; LU and L D L^T write their pivots.
fn arguments(kind: &str) -> Vec<&str> {
    let mut arguments = vec!["factor", "a.npy", "--kind", kind, "-o", "f.npy"];
    arguments.extend(["--pivots", "p.npy"].iter().filter(|_| kind != "cholesky"));
    arguments
}

fn beside_scalapack(sizes: &[u64]) -> Vec<Row> {
    let of = |(kind, routine, _): (&'static str, Option<Routine>, &str)| {
        let mut arguments = arguments(kind);
        arguments.push("--remeasure");
        Some(scalapack::rows(sizes, routine?, &arguments, |_, at, n| operand(at, kind, n), [1.0, 1.8]))
    };
    KINDS.into_iter().filter_map(of).flatten().collect()
}

/// SciPy's seconds / apportion's, in turn, on equal cores and beside another program.
fn beside_scipy(sizes: &[u64]) -> Vec<Row> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let (Some(program), Some(python)) = (binary(), python("scipy.linalg", at)) else {
        eprintln!(
            "SciPy: needs the release binary (cargo build --release) and a Python with SciPy, which NUMPY_PYTHON may \
             name; its rows are left out"
        );
        return Vec::new();
    };
    let mut rows = Vec::new();
    for &n in sizes {
        for (kind, _, call) in KINDS {
            operand(at, kind, n);
            // The first call starts threads.
            let script = format!(
                "import numpy, scipy.linalg, time\na = numpy.load('a.npy')\n{call}\nstart = time.perf_counter()\n\
                 {call}\nprint('{{\"seconds\": %r}}' % (time.perf_counter() - start))"
            );
            let own = || {
                let mut command = Command::new(&program);
                command.args(arguments(kind)).args(["--json", "--quiet"]).current_dir(at);
                let report: Value = serde_json::from_slice(&command.output().ok()?.stdout).ok()?;
                report["seconds"].as_f64()
            };
            let theirs = || {
                let output = Command::new(&python).args(["-c", &script]).current_dir(at).output().ok()?;
                let report: Value = serde_json::from_slice(&output.stdout).ok()?;
                report["seconds"].as_f64()
            };
            let mut beside = |cores: &str, limit: f64| {
                // Speeds are measured once, beside what else runs.
                own()?;
                let ratio = median((0..TURNS).map(|_| Some(theirs()? / own()?)).collect::<Option<Vec<_>>>()?);
                let target = format!("{kind}, n = {n}, {cores}, of SciPy's speed");
                rows.push((target, ratio, limit, ratio >= limit));
                Some(())
            };
            let _ = beside("equal cores", 0.9);
            if let Some(_busy) = Busy::second_core("5") {
                let _ = beside("cores 1.3:1 by another program", 1.0);
            }
        }
    }
    rows
}

/// Seconds / ideal of emulated processors, and the forecasts that are near.
fn emulated(sizes: &[u64]) -> Vec<Row> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let at = place.path();
    let Some(program) = binary() else { return Vec::new() };
    let (mut rows, mut near, mut all) = (Vec::new(), 0, 0);
    for &n in sizes {
        for ((name, slowdowns), (kind, ..)) in PLATFORMS.into_iter().flat_map(|p| KINDS.map(|kind| (p, kind)))
        {
            operand(at, kind, n);
            let processor = |(i, slowdown): (usize, &f64)| {
                format!("[[processor]]\nname = \"p{i}\"\nslowdown = {slowdown:.1}\n\n")
            };
            let platform: String = slowdowns.iter().enumerate().map(processor).collect();
            std::fs::write(at.join("platform.toml"), platform).expect("a writable directory");
            let turn = || {
                let mut command = Command::new(&program);
                command.args(arguments(kind)).args(["--platform", "platform.toml", "--json", "--quiet"]);
                let report: Value =
                    serde_json::from_slice(&command.current_dir(at).output().ok()?.stdout).ok()?;
                Some(["seconds", "ideal_seconds", "forecast_seconds"].map(|field| report[field].as_f64()))
            };
            let turns: Vec<[f64; 3]> = (0..TURNS)
                .filter_map(|_| turn())
                .filter_map(|[seconds, ideal, forecast]| Some([seconds?, ideal?, forecast?]))
                .collect();
            if turns.is_empty() {
                eprintln!("{kind}, n = {n}, {name}: failed");
                continue;
            }
            near += turns
                .iter()
                .filter(|[seconds, _, forecast]| (forecast / seconds - 1.0).abs() <= NEAR)
                .count();
            all += turns.len();
            let ratio = median(turns.iter().map(|[seconds, ideal, _]| seconds / ideal));
            rows.push((format!("{kind}, n = {n}, {name}: seconds / ideal"), ratio, 1.1, ratio <= 1.1));
        }
    }
    if all > 0 {
        let part = near as f64 / all as f64;
        rows.push((format!("forecasts within 5 %: {near} of {all}"), part, GOOD, part >= GOOD));
    }
    rows
}

//! A pool of all cores beside NumPy on the same cores, and its forecast beside its time. Seconds are those that the
//! library reports for a product, and those of `numpy.matmul` into an existing array, both warm.
//!
//! A process uses one set of instructions: this bench starts itself for each, as it starts Python.

use super::Row;
use apportion::job::{Context, KernelChoice, MatrixJob, MatrixOperand, Operation, ProductTask, RunOptions};
use apportion::kernels::Semiring;
use apportion::matrix::AnyView;
use apportion::run::{Monitor, World};
use harness::median;
use harness::rivals::python;
use std::path::Path;
use std::process::Command;

/// The first argument of a process that multiplies; the size follows.
pub const ARGUMENT: &str = "pool-product";
const SIZES: [usize; 4] = [500, 1000, 2000, 4000];
const TURNS: usize = 5;
/// Products of a process, of which the first two warm it up.
const PRODUCTS: usize = 9;
/// By how much the forecast may differ.
const OFF: f64 = 0.05;

/// The instructions of the kernels, and the kernels of OpenBLAS that use the same.
const INSTRUCTIONS: [[&str; 3]; 2] = [["AVX-512", "avx512", "SkylakeX"], ["AVX2", "avx2", "Haswell"]];

/// The rival: the median of its products.
const SCRIPT: &str = "import numpy, sys, time, statistics
n, products = int(sys.argv[1]), int(sys.argv[2])
a, b, c = numpy.random.rand(n, n) - .5, numpy.random.rand(n, n) - .5, numpy.zeros((n, n))
def seconds():
    begin = time.perf_counter(); numpy.matmul(a, b, out=c); return time.perf_counter() - begin
print(statistics.median([seconds() for _ in range(products)][2:]))";

pub fn rows(quick: bool) -> Vec<Row> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let Some(python) = python("numpy", place.path()) else {
        eprintln!("pools: no NumPy (NUMPY_PYTHON names the Python that has it); their rows are left out");
        return Vec::new();
    };
    let mut rows = Vec::new();
    for [name, ours, theirs] in INSTRUCTIONS {
        for n in SIZES.into_iter().take(if quick { 3 } else { 4 }) {
            let (mut ratios, mut forecasts) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                let Some([seconds, forecast]) = product(place.path(), n, ours) else { continue };
                let Some(rival) = rival(&python, n, theirs) else { continue };
                ratios.push(seconds / rival);
                forecasts.push((forecast / seconds - 1.0).abs());
            }
            if ratios.len() == TURNS {
                let (ratio, off) = (median(ratios), median(forecasts));
                let target = format!("a pool of all cores, n = {n}, {name}, of NumPy's seconds");
                rows.push((target, ratio, 1.0 + OFF, ratio <= 1.0 + OFF));
                let target = format!("its forecast, n = {n}, {name}: relative error");
                rows.push((target, off, OFF, off <= OFF));
            }
        }
    }
    rows
}

/// Seconds and forecast of a process of this bench.
fn product(place: &Path, n: usize, instructions: &str) -> Option<[f64; 2]> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args([ARGUMENT, &n.to_string()]).env("APPORTION_INSTRUCTIONS", instructions);
    // Speeds are measured once, and remembered there.
    let output = command.env("XDG_CACHE_HOME", place).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}

fn rival(python: &Path, n: usize, kernels: &str) -> Option<f64> {
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT, &n.to_string(), &PRODUCTS.to_string()]).env("OPENBLAS_CORETYPE", kernels);
    String::from_utf8(command.output().ok()?.stdout).ok()?.trim().parse().ok()
}

/// A process that multiplies: the median of its seconds, and the forecast of the last product.
pub fn multiply(n: &str) {
    let n: usize = n.parse().expect("a size");
    let filled = |seed: usize| -> Vec<f64> {
        (0..n * n).map(|i| ((i * 31 + seed) % 1009) as f64 / 500.0 - 1.0).collect()
    };
    let (a, b) = (filled(1), filled(2));
    let operand = |name, elements| MatrixOperand::Array { name, view: AnyView::new(n, n, elements) };
    let task = ProductTask {
        b: Some(operand("B", &b)),
        options: RunOptions { kernel: KernelChoice::BuiltIn, seed: 1, ..RunOptions::default() },
        ..ProductTask::new(Operation::Product, Semiring::PlusTimes, operand("A", &a))
    };
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let once = || {
        let context = Context::silent(&world, &monitor);
        MatrixJob::open(&task, context).and_then(MatrixJob::run).expect("the product is right").report
    };
    let reports: Vec<_> = (0..PRODUCTS).map(|_| once()).collect();
    let seconds = median(reports[2..].iter().map(|report| report.seconds()));
    println!("{seconds} {}", reports[PRODUCTS - 1].forecast_seconds);
}

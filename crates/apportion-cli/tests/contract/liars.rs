//! A library that multiplies wrongly is caught, whatever the error and the scale of rows and columns.

use super::Bench;
use super::bench::TWO;
use apportion::kernels::Real;
use apportion::matrix::Matrix;
use std::process::{Command, Stdio};

/// Errors that a library may make in each of its products; the last is relative.
const LIES: [&str; 10] =
    ["element", "row", "column", "other columns", "zeros", "signs", "nan", "infinity", "swapped", "off by "];

/// How much the last row of A and the last column of B are larger than the first ones.
#[derive(Clone, Copy)]
struct Scales {
    rows: f64,
    columns: f64,
}

const M: usize = 40;
const K: usize = 30;
const N: usize = 50;

/// Positive elements, so that no small element is the difference of large ones.
fn operands<T: Real>(bench: &Bench, scales: Scales) {
    let value = |i: usize| 1.0 + (i as f64 * 0.618_033_988_75).fract();
    let scale = |at: usize, of: usize, largest: f64| largest.powf(at as f64 / (of - 1) as f64);
    let a = |i: usize| T::from_f64(value(i) * scale(i / K, M, scales.rows));
    let b = |i: usize| T::from_f64(value(i + 7) * scale(i % N, N, scales.columns));
    bench.matrix("a.npy", &Matrix::new(M, K, (0..M * K).map(a).collect::<Vec<T>>()));
    bench.matrix("b.npy", &Matrix::new(K, N, (0..K * N).map(b).collect::<Vec<T>>()));
}

/// Each lie over each scale; `smallest` is the last lie's relative error.
fn caught<T: Real>(largest: f64, smallest: &str) -> usize {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.write("liar.c", include_str!("liars/liar.c"));
    let compile = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", "liar.so", "liar.c", "-lm"];
    let compiled = Command::new("cc").args(compile).current_dir(bench.path("")).status().unwrap();
    assert!(compiled.success());
    let run = |lie: Option<&str>| {
        let words =
            ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--platform", "two.toml", "--blas", "./liar.so"];
        let mut command = bench.command(&words);
        lie.map(|lie| command.env("LIAR", lie));
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let mut lies = 0;
    for (rows, columns) in [(1.0, 1.0), (1.0, largest), (largest, 1.0)] {
        operands::<T>(&bench, Scales { rows, columns });
        let (code, said) = run(None);
        assert_eq!(code, Some(0), "the truth, rows to {rows:e}, columns to {columns:e}: {said}");
        std::fs::remove_file(bench.path("c.npy")).unwrap();
        for lie in LIES {
            let lie = if lie.ends_with(' ') { format!("{lie}{smallest}") } else { lie.to_owned() };
            let (code, said) = run(Some(&lie));
            assert_eq!(code, Some(1), "{lie}, rows to {rows:e}, columns to {columns:e}: {said}");
            assert!(said.contains("the result is wrong: element ("), "{lie}: {said}");
            assert!(!bench.path("c.npy").exists(), "{lie}");
            lies += 1;
        }
    }
    lies
}

#[test]
fn a_library_that_lies_in_f64_is_caught() {
    assert_eq!(caught::<f64>(1e300, "1e-9"), 30);
}

#[test]
fn a_library_that_lies_in_f32_is_caught() {
    assert_eq!(caught::<f32>(1e30, "1e-3"), 30);
}

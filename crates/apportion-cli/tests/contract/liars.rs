//! A library that multiplies wrongly is caught, whatever the error and the scale of rows and columns.

use super::Bench;
use super::bench::TWO;
use apportion::kernels::Real;
use apportion::matrix::Matrix;
use std::process::{Command, Stdio};

/// Errors that a library may make in each of its products; the last is relative.
const LIES: [&str; 10] =
    ["element", "row", "column", "other columns", "zeros", "signs", "nan", "infinity", "swapped", "off by "];

/// How much the last row of A and the last column of B are larger than the first ones, and the size of all.
#[derive(Clone, Copy)]
struct Scales {
    rows: f64,
    columns: f64,
    all: f64,
}

const M: usize = 40;
const K: usize = 30;
const N: usize = 50;

/// Positive elements, so that no small element is the difference of large ones.
fn operands<T: Real>(bench: &Bench, scales: Scales) {
    let value = |i: usize| 1.0 + (i as f64 * 0.618_033_988_75).fract();
    let scale = |at: usize, of: usize, largest: f64| largest.powf(at as f64 / (of - 1) as f64);
    let a = |i: usize| T::from_f64(scales.all * value(i) * scale(i / K, M, scales.rows));
    let b = |i: usize| T::from_f64(scales.all * value(i + 7) * scale(i % N, N, scales.columns));
    bench.matrix("a.npy", &Matrix::new(M, K, (0..M * K).map(a).collect::<Vec<T>>()));
    bench.matrix("b.npy", &Matrix::new(K, N, (0..K * N).map(b).collect::<Vec<T>>()));
}

/// A bench with the library.
fn with_library() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.write("liar.c", include_str!("liars/liar.c"));
    let compile = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", "liar.so", "liar.c", "-lm"];
    let compiled = Command::new("cc").args(compile).current_dir(bench.path("")).status().unwrap();
    assert!(compiled.success());
    bench
}

/// The exit code and the messages of a product by a library with a lie or without.
fn run(bench: &Bench, lie: Option<&str>) -> (Option<i32>, String) {
    let words = "matmul a.npy b.npy -o c.npy --platform two.toml --blas ./liar.so";
    let mut command = bench.command(words);
    lie.map(|lie| command.env("LIAR", lie));
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Each lie over each scale, one of them of products of the size `least`; `smallest` is the last lie's
/// relative error.
fn caught<T: Real>(largest: f64, least: f64, smallest: &str) -> usize {
    let bench = with_library();
    let mut lies = 0;
    for (rows, columns, all) in
        [(1.0, 1.0, 1.0), (1.0, largest, 1.0), (largest, 1.0, 1.0), (1.0, 1.0, least.sqrt())]
    {
        operands::<T>(&bench, Scales { rows, columns, all });
        let (code, said) = run(&bench, None);
        assert_eq!(code, Some(0), "the truth, rows to {rows:e}, columns to {columns:e}, {all:e}: {said}");
        bench.remove("c.npy");
        for lie in LIES {
            let lie = if lie.ends_with(' ') { format!("{lie}{smallest}") } else { lie.to_owned() };
            let (code, said) = run(&bench, Some(&lie));
            assert_eq!(code, Some(1), "{lie}, rows to {rows:e}, columns to {columns:e}, {all:e}: {said}");
            assert!(said.contains("the result is wrong: element ("), "{lie}: {said}");
            assert!(!bench.path("c.npy").exists(), "{lie}");
            lies += 1;
        }
    }
    lies
}

/// What is not finite is compared in kind and sign: where elements overflow, and where infinities reach them.
fn infinities_caught<T: Real>(largest: f64) {
    let bench = with_library();
    for (m, n) in [(M, N), (120, 130)] {
        for infinite in [false, true] {
            let a = |i: usize| {
                if infinite && i == 2 * K + 3 {
                    return T::from_f64(f64::INFINITY);
                }
                T::from_f64(if infinite && i == 3 * K { f64::NAN } else { 1.0 + (i % 7) as f64 / 7.0 })
            };
            let sign = |j: usize| if j == 4 { -1.0 } else { 1.0 };
            let size = |j: usize| if !infinite && (3..6).contains(&j) { largest } else { 1.0 };
            let b = |i: usize| T::from_f64(sign(i % n) * size(i % n) * (1.0 + (i / n % 5) as f64 / 9.0));
            bench.matrix("a.npy", &Matrix::new(m, K, (0..m * K).map(a).collect::<Vec<T>>()));
            bench.matrix("b.npy", &Matrix::new(K, n, (0..K * n).map(b).collect::<Vec<T>>()));
            let (code, said) = run(&bench, None);
            assert_eq!(code, Some(0), "the truth, {m} x {n}: {said}");
            bench.remove("c.npy");
            for lie in ["other infinity", "nan for infinity", "infinity for nan"] {
                if lie == "infinity for nan" && !infinite {
                    continue;
                }
                for count in ["", " once"] {
                    let lie = format!("{lie}{count}");
                    let (code, said) = run(&bench, Some(&lie));
                    assert_eq!(code, Some(1), "{lie}, {m} x {n}, {infinite}: {said}");
                    assert!(said.contains("the result is wrong: element ("), "{lie}: {said}");
                }
            }
        }
    }
}

#[test]
fn a_library_with_the_wrong_infinity_is_caught() {
    infinities_caught::<f64>(1.7e308);
    infinities_caught::<f32>(3e38);
}

#[test]
fn a_library_that_writes_into_the_factors_is_caught() {
    let bench = with_library();
    operands::<f64>(&bench, Scales { rows: 1.0, columns: 1.0, all: 1.0 });
    for (lie, name) in [("writes a", "A"), ("writes b", "B")] {
        let (code, said) = run(&bench, Some(lie));
        assert_eq!(code, Some(1), "{lie}: {said}");
        assert!(said.contains("the library has written into row"), "{said}");
        assert!(said.contains(&format!("of {name}, counted from 0")), "{said}");
        assert!(!bench.path("c.npy").exists(), "{lie}");
    }
}

#[test]
fn a_library_that_lies_in_f64_is_caught() {
    assert_eq!(caught::<f64>(1e300, 1e-305, "1e-9"), 40);
}

#[test]
fn a_library_that_lies_in_f32_is_caught() {
    assert_eq!(caught::<f32>(1e30, 1e-36, "1e-3"), 40);
}

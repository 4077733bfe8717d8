//! The contract of `matmul --semiring`, `power`, `closure` and `measure --kernel`: the binary against plain
//! loops.

use super::bench::Bench;
use std::path::Path;

/// Exit code and the one line of a failing call.
fn refusal(directory: &Bench, arguments: &str) -> (i32, String) {
    let output = directory.run(arguments);
    let line = apportion_testing::without_progress(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(line.lines().count(), 1, "{line}");
    (output.status.code().unwrap(), line)
}

fn save(path: &Path, descr: &str, (rows, cols): (usize, usize), body: &[u8]) {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.extend(body);
    std::fs::write(path, bytes).unwrap();
}

fn save_f64(path: &Path, shape: (usize, usize), values: &[f64]) {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    save(path, "<f8", shape, &bytes);
}

/// The header's text and the body of a written file.
fn load(path: &Path) -> (String, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    (String::from_utf8(bytes[10..end].to_vec()).unwrap(), bytes[end..].to_vec())
}

fn load_f64(path: &Path) -> Vec<f64> {
    let (header, body) = load(path);
    assert!(header.contains("'<f8'"), "{header}");
    body.chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
}

fn numbers(length: usize, by: usize) -> Vec<f64> {
    (0..length).map(|i| ((i * by) % 23) as f64 - 11.0).collect()
}

/// Sizes that no block divides; more processors than rows.
#[test]
fn tropical_products_are_those_of_three_loops() {
    let directory = Bench::new();
    let (m, k, n) = (3, 41, 37);
    let (a, b) = (numbers(m * k, 7), numbers(k * n, 13));
    save_f64(&directory.join("a.npy"), (m, k), &a);
    save_f64(&directory.join("b.npy"), (k, n), &b);
    for (semiring, zero, better) in [
        ("max-plus", f64::NEG_INFINITY, f64::max as fn(f64, f64) -> f64),
        ("min-plus", f64::INFINITY, f64::min as fn(f64, f64) -> f64),
    ] {
        let mut expected = vec![zero; m * n];
        for (i, p, j) in (0..m * k * n).map(|at| (at / k / n, at / n % k, at % n)) {
            expected[i * n + j] = better(expected[i * n + j], a[i * k + p] + b[p * n + j]);
        }
        for flow in ["one-to-all", "ring", "bulk", "broadcast"] {
            let report = directory.json(&format!(
                "matmul a.npy b.npy -o c.npy --semiring {semiring} --flow {flow} --block 16 --speeds 5,3,2,1"
            ));
            assert_eq!(load_f64(&directory.join("c.npy")), expected, "{semiring} {flow}");
            assert_eq!(report["semiring"], semiring);
            assert_eq!(report["verified"], true);
            assert_eq!(report["verification"]["method"], "sampled");
            assert_eq!(
                report["verification"]["elements"],
                (m * n) as u64,
                "a small product is recomputed whole"
            );
            assert_eq!(report["odds_of_a_miss"], 0.0);
            let seconds = |field: &str| report[field].as_f64().unwrap();
            let (forecast, ideal) = (seconds("forecast_seconds"), seconds("ideal_seconds"));
            assert!(ideal > 0.0 && forecast >= 0.999 * ideal, "no forecast is below the ideal: {report}");
        }
    }
    let kept: Vec<String> = std::fs::read_dir(directory.cache().join("apportion"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for kernel in ["models-max-plus-f64-", "models-min-plus-f64-"] {
        assert!(kept.iter().any(|name| name.starts_with(kernel)), "{kept:?}");
    }
}

#[test]
fn truth_values_keep_their_type() {
    let directory = Bench::new();
    let (m, k, n) = (5, 70, 67);
    let a: Vec<u8> = (0..m * k).map(|i| u8::from(i * i % 13 == 1)).collect();
    let b: Vec<u8> = (0..k * n).map(|i| u8::from(i * 7 % 31 == 3)).collect();
    let reached = |i: usize, j: usize| (0..k).any(|p| a[i * k + p] & b[p * n + j] == 1);
    let expected: Vec<u8> = (0..m * n).map(|at| reached(at / n, at % n).into()).collect();
    let scaled: Vec<u8> = b.iter().map(|x| x * 200).collect();
    save(&directory.join("a.npy"), "|b1", (m, k), &a);
    save(&directory.join("b.npy"), "|b1", (k, n), &b);
    save(&directory.join("u.npy"), "|u1", (k, n), &scaled);
    for (right, descr, element) in [("b.npy", "|b1", "bool"), ("u.npy", "|u1", "u8")] {
        let arguments = format!("matmul a.npy {right} -o c.npy --semiring or-and --block 16 --speeds 3,1");
        let report = directory.json(&arguments);
        assert_eq!((&report["element"], &report["verified"]), (&element.into(), &true.into()));
        let (header, body) = load(&directory.join("c.npy"));
        assert!(header.contains(descr), "{header}");
        assert_eq!(body, expected);
    }
}

#[test]
fn powers_and_closures() {
    let directory = Bench::new();
    let far = f64::INFINITY;
    let a = [far, 4.0, far, far, far, 5.0, 1.0, far, far];
    save_f64(&directory.join("a.npy"), (3, 3), &a);
    let with = "--block 2 --speeds 2,1";
    let report = directory.json(&format!("closure a.npy -o c.npy --semiring min-plus {with}"));
    assert_eq!(load_f64(&directory.join("c.npy")), [0.0, 4.0, 9.0, 6.0, 0.0, 5.0, 1.0, 5.0, 0.0]);
    assert_eq!((&report["products"], &report["verified"]), (&2.into(), &true.into()));
    // Three edges lead back to the start, each vertex on its own cycle of length 10.
    let report = directory.json(&format!("power a.npy -k 3 -o c.npy --semiring min-plus {with}"));
    assert_eq!(load_f64(&directory.join("c.npy")), [10.0, far, far, far, 10.0, far, far, far, 10.0]);
    assert_eq!(report["products"], 2);
    directory.json(&format!("power a.npy -k 0 -o c.npy --semiring max-plus {with}").replace("max", "min"));
    assert_eq!(load_f64(&directory.join("c.npy")), [0.0, far, far, far, 0.0, far, far, far, 0.0]);
    save_f64(&directory.join("f.npy"), (2, 2), &[1.0, 1.0, 1.0, 0.0]);
    directory.json(&format!("power f.npy -k 10 -o c.npy {with}"));
    assert_eq!(load_f64(&directory.join("c.npy")), [89.0, 55.0, 55.0, 34.0]);
    save(&directory.join("t.npy"), "|b1", (3, 3), &[0, 1, 0, 0, 0, 1, 0, 0, 0]);
    directory.json(&format!("closure t.npy -o c.npy --semiring or-and {with}"));
    assert_eq!(load(&directory.join("c.npy")).1, [1, 1, 1, 0, 1, 1, 0, 0, 1]);
}

#[test]
fn every_kernel_can_be_measured() {
    let directory = Bench::new();
    for kernel in ["max-plus-f64", "max-plus-f32", "min-plus-f64", "min-plus-f32", "or-and"] {
        let models = directory
            .json(&format!("measure --kernel {kernel} --sizes 400,900 --block 16 --max-seconds 0.01"));
        assert_eq!(models["kernel"], kernel);
        assert_eq!(models["models"][0]["points"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn whole_numbers_over_max_plus_and_min_plus() {
    let directory = Bench::new();
    let far = i32::MAX;
    let save_i32 = |name: &str, values: &[i32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        save(&directory.join(name), "<i4", (3, 3), &bytes);
    };
    let load_i32 = |name: &str| -> Vec<i32> {
        let (header, body) = load(&directory.join(name));
        assert!(header.contains("'<i4'"), "{header}");
        body.chunks_exact(4).map(|x| i32::from_le_bytes(x.try_into().unwrap())).collect()
    };
    save_i32("a.npy", &[far, 4, far, far, far, 5, 1, far, far]);
    let with = "--block 2 --speeds 2,1";
    let report = directory.json(&format!("closure a.npy -o c.npy {with}"));
    assert_eq!(load_i32("c.npy"), [0, 4, 9, 6, 0, 5, 1, 5, 0]);
    assert_eq!((&report["element"], &report["verified"]), (&"i32".into(), &true.into()));
    directory.json(&format!("matmul a.npy a.npy -o c.npy --semiring min-plus {with}"));
    assert_eq!(load_i32("c.npy"), [far, far, 9, 6, far, far, far, 5, far]);
    // Sums beyond the type's range saturate, and absent entries absorb even them.
    save_i32("b.npy", &[i32::MAX, 1 << 30, i32::MIN, 7, 0, 0, 0, 0, 0]);
    directory.json(&format!("power b.npy -k 2 -o c.npy --semiring max-plus {with}"));
    assert_eq!(
        load_i32("c.npy"),
        [i32::MAX, i32::MAX, 1 << 30, i32::MAX, (1 << 30) + 7, 0, i32::MAX, 1 << 30, 0]
    );
}

/// An entry that a sparse file does not list is no edge: not one of length 0.
#[test]
fn sparse_files_over_every_semiring() {
    let directory = Bench::new();
    let head = "%%MatrixMarket matrix coordinate";
    directory.write("p.mtx", format!("{head} pattern general\n3 3 2\n1 2\n2 3\n"));
    directory.write("w.mtx", format!("{head} integer general\n3 3 3\n1 2 4\n2 3 5\n3 3 0\n"));
    let with = "--block 2 --speeds 2,1";
    directory.json(&format!("closure p.mtx -o c.npy --semiring or-and {with}"));
    let (header, body) = load(&directory.join("c.npy"));
    assert!(header.contains("|b1"), "{header}");
    assert_eq!(body, [1, 1, 1, 0, 1, 1, 0, 0, 1]);
    // A 0 that is listed is false.
    directory.json(&format!("power w.mtx -k 1 -o c.npy --semiring or-and {with}"));
    assert_eq!(load(&directory.join("c.npy")).1, [0, 1, 0, 0, 0, 1, 0, 0, 0]);
    directory.json(&format!("closure w.mtx -o c.npy --predecessors p.npy {with}"));
    let far = f64::INFINITY;
    assert_eq!(load_f64(&directory.join("c.npy")), [0.0, 4.0, 9.0, far, 0.0, 5.0, far, far, 0.0]);
    let (header, body) = load(&directory.join("p.npy"));
    assert!(header.contains("'<i4'"), "{header}");
    let before: Vec<i32> = body.chunks_exact(4).map(|x| i32::from_le_bytes(x.try_into().unwrap())).collect();
    assert_eq!(before, [-1, 0, 1, -1, -1, 1, -1, -1, -1]);
    directory.json(&format!("matmul w.mtx w.mtx -o c.npy {with}"));
    assert_eq!(load_f64(&directory.join("c.npy")), [0.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

/// Every chain of predecessors leads back along edges that add up to the distance, for every layout and flow.
#[test]
#[ignore = "slow"]
fn predecessors_on_every_flow() {
    let directory = Bench::new();
    let n = 23;
    let far = f64::INFINITY;
    let a: Vec<f64> = (0..n * n)
        .map(|at| if at * at % 11 < 7 { far } else { (at % 4) as f64 + (at / n) as f64 - (at % n) as f64 })
        .collect();
    save_f64(&directory.join("a.npy"), (n, n), &a);
    let mut files = Vec::new();
    for flow in ["one-to-all", "ring", "bulk"] {
        for method in ["columns", "straight-line"] {
            let with = format!("--flow {flow} --method {method} --block 5 --speeds 5,3,2");
            directory.json(&format!("closure a.npy -o d.npy {with}"));
            let plain = load_f64(&directory.join("d.npy"));
            let report = directory.json(&format!("closure a.npy -o c.npy --predecessors p.npy {with}"));
            assert_eq!((&report["verified"], &report["element"]), (&true.into(), &"f64".into()));
            assert_eq!(load_f64(&directory.join("c.npy")), plain, "{flow}, {method}");
            files.push((plain, load(&directory.join("p.npy")).1));
        }
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "the same bytes by every flow and layout");
    let (lengths, body) = &files[0];
    let before: Vec<i32> = body.chunks_exact(4).map(|x| i32::from_le_bytes(x.try_into().unwrap())).collect();
    for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
        let (mut at, mut length) = (j, 0.0);
        for _ in 0..n {
            let Ok(previous) = usize::try_from(before[i * n + at]) else { break };
            length += a[previous * n + at];
            at = previous;
        }
        let expected = if at == i { length } else { far };
        assert_eq!(lengths[i * n + j], expected, "from {i} to {j}");
    }
}

/// If the machine has a BLAS, it gives the same integers; if a named one is missing, one line says so.
#[test]
fn a_library_multiplies_where_there_is_one() {
    let directory = Bench::new();
    let (m, k, n) = (30, 41, 37);
    save_f64(&directory.join("a.npy"), (m, k), &numbers(m * k, 7));
    save_f64(&directory.join("b.npy"), (k, n), &numbers(k * n, 13));
    let with = "--block 16 --speeds 3,1";
    directory.json(&format!("matmul a.npy b.npy -o c.npy --blas none {with}"));
    let built_in = load_f64(&directory.join("c.npy"));
    let report = directory.json(&format!("matmul a.npy b.npy -o c.npy --blas auto {with}"));
    assert_eq!(report["verified"], true);
    assert_eq!(load_f64(&directory.join("c.npy")), built_in);
    directory.json("measure --kernel gemm-f32 --blas auto --sizes 400 --block 16 --max-seconds 0.01");
    directory.json(&format!("matmul a.npy b.npy -o c.npy --blas auto --semiring max-plus {with}"));
}

/// A cycle that is negative by the rounding of its edges counts as 0, with a note; others are refused by
/// weight and vertices. Zeros without an absent edge have a note.
#[test]
fn cycles_and_zeros_are_noted() {
    let directory = Bench::new();
    let far = f64::INFINITY;
    let with = "--block 2 --speeds 2,1";
    let three = |last: f64| [far, 0.1, far, far, far, 0.7, last, far, far];
    for (algorithm, files) in [("squaring", ""), ("elimination", "--predecessors p.npy")] {
        save_f64(&directory.join("a.npy"), (3, 3), &three(-0.8));
        let run = format!("closure a.npy -o c.npy --algorithm {algorithm} {files} {with}");
        let report = directory.json(&run);
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.contains("weighs -8.3") && note.contains("counts as 0"), "{note}");
        assert_eq!(load_f64(&directory.join("c.npy"))[0], 0.0);
        save_f64(&directory.join("a.npy"), (3, 3), &three(-1.3));
        let (code, line) = refusal(&directory, &run);
        assert_eq!(code, 1, "{line}");
        assert!(line.contains("a cycle of negative weight passes through vertex"), "{line}");
        assert!(line.contains(" weighs -0.5") && line.contains("remove one of its edges"), "{line}");
    }
    save_f64(&directory.join("a.npy"), (3, 3), &[0.0, 4.0, 0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 0.0]);
    let report = directory.json(&format!("closure a.npy -o c.npy {with}"));
    assert!(report["notes"][0].as_str().unwrap().contains("write inf there"), "{report}");
}
